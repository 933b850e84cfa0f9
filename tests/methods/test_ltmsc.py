import warnings

import numpy as np
import pytest
from cases import case
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from polyspan import LTMSC
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.methods.ltmsc import fold, solve_ltmsc, unfold
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run

# Columns: as_released, lam, lam_rank, mean NMI; the program has one parameter for lam and lam_rank.
REACHED = [
    (True, 0.1, 0.1, 0.7040),
    (True, 1.0, 1.0, 0.7040),  # nearly flat: .7123
    (False, 1.0, 1.0, 0.6134),  # our own
]


@pytest.mark.parametrize(("as_released", "lam", "lam_rank", "nmi"), REACHED)
def test_reaches_the_known_figures(data_dir, as_released, lam, lam_rank, nmi):
    data = load_dataset("three_sources")
    model = LTMSC(
        data.n_clusters, lam=lam, lam_rank=lam_rank, as_released=as_released, random_state=0
    )
    model.fit(data.views)
    # Nothing before k-means is random, so one solve serves four seeds.
    found = [
        spectral_clustering(model.affinity_matrix_, data.n_clusters, random_state=seed)
        for seed in range(4)
    ]
    assert np.array_equal(found[0], model.labels_)
    scores = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    assert np.mean(scores) == pytest.approx(nmi, abs=0.03)


def views(n=12, dims=(5, 30, 4), seed=0):
    """Unit samples near a space of dimension 4: fewer and more features than samples."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, 4))
    Xs = [H @ rng.normal(size=(4, d)) + 0.3 * rng.normal(size=(n, d)) for d in dims]
    return [X / np.linalg.norm(X, axis=1, keepdims=True) for X in Xs]


def unfoldings(Z):
    """The three unfoldings, from the definition."""
    m, n, _ = Z.shape
    return np.hstack(list(Z)), np.hstack([A.T for A in Z]), Z.reshape(m, n * n)


def test_unfolding_and_folding():
    Z = np.random.default_rng(0).normal(size=(3, 4, 4))
    for u, wanted in enumerate(unfoldings(Z), start=1):
        assert np.array_equal(unfold(Z, u), wanted)
        assert np.array_equal(fold(wanted, u, 3), Z)


def lowered(T, u, t):
    """Singular values of an unfolding lowered, one SVD."""
    U, s, Vt = np.linalg.svd(unfoldings(T)[u], full_matrices=False)
    A = (U * np.maximum(s - t, 0)) @ Vt
    m, n, _ = T.shape
    if u == 2:
        return A.reshape(m, n, n)
    parts = np.split(A, m, axis=1)
    return np.array(parts if u == 0 else [part.T for part in parts])


def literal(Xs, lam, lam_rank, as_released, iterations, rho=2.0, mu=1e-4):
    """The recursion as printed: all features, plain SVDs and inverses.

    ``as_released``: the steps of the authors' program, which has a second penalty nu.
    """
    nu = mu
    Xs = [X.T for X in Xs]
    n, m = Xs[0].shape[1], len(Xs)
    Z = np.zeros((m, n, n))
    G, W = np.zeros((2, 3, m, n, n))
    Es, Ys = ([np.zeros_like(X) for X in Xs] for _ in range(2))

    def errors():
        F = np.vstack([X - X @ Z[v] + Ys[v] / mu for v, X in enumerate(Xs)])
        F = F * np.maximum(1 - lam / mu / np.linalg.norm(F, axis=0), 0)
        return np.split(F, np.cumsum([len(X) for X in Xs])[:-1])

    for _ in range(iterations):
        for v, X in enumerate(Xs):
            right = X.T @ (X - Es[v] + Ys[v] / mu)
            if as_released:
                right = mu * right + nu * G[2, v] - W[0, v]
                Z[v] = np.linalg.solve(nu * np.eye(n) + mu * X.T @ X, right)
                Es = errors()
                Ys[v] = Ys[v] + mu * (X - X @ Z[v] - Es[v])
            else:
                right = right + np.sum(G[:, v] - W[:, v] / mu, axis=0)
                Z[v] = np.linalg.solve(3 * np.eye(n) + X.T @ X, right)
        if not as_released:
            Es = errors()
            for v, X in enumerate(Xs):
                Ys[v] = Ys[v] + mu * (X - X @ Z[v] - Es[v])
        G = np.array([lowered(Z + W[u] / mu, u, lam_rank / mu) for u in range(3)])
        if as_released:  # the entries of Z_v^T in a row, folded as if they were those of Z_v
            G[2] = np.array([A.T for A in G[2]])
        W = W + mu * (Z - G)
        mu, nu = min(rho * mu, 1e11), min(rho * nu, 1e13)
    return Z


@pytest.mark.parametrize("as_released", [False, True])
@pytest.mark.parametrize("lam", [0.1, 1.0])
def test_equals_the_literal_algorithm(as_released, lam):
    Xs = views()
    for iterations in (1, 5, 18, 52):
        with case(iterations, "iterations"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                run = Run("", iterations, 0.0)
                Z = solve_ltmsc(Xs, lam=lam, lam_rank=0.3, as_released=as_released, run=run)
            # singular values are lowered to an accuracy of 1e-10
            assert_allclose(Z, literal(Xs, lam, 0.3, as_released, iterations), rtol=0, atol=1e-8)


def test_as_released_sums_rows_and_ends_after_52_iterations_without_a_warning():
    model = LTMSC(3, scale=None, as_released=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(views(24))
    assert model.n_iter_ == 52
    assert model.history_["split"][-1] > 1e-7
    run = Run("", 1, 0.0)
    Z = solve_ltmsc(views(), lam=0.3, as_released=True, run=run)
    # The first iteration: G is zero.
    assert run.history["split"] == [pytest.approx(np.abs(Z).sum(axis=2).max(), rel=1e-12)]


def test_as_released_differs():
    a, b = (solve_ltmsc(views(), lam=0.3, as_released=x) for x in (False, True))
    assert np.abs(a - b).max() > 1e-3


def objective(Xs, Z, lam):
    E = np.vstack([X.T - X.T @ Zv for X, Zv in zip(Xs, Z, strict=True)])
    norms = sum(np.linalg.norm(A, "nuc") for A in unfoldings(Z))
    return 0.5 * norms + lam * np.linalg.norm(E, axis=0).sum()


@pytest.mark.parametrize("lam", [1.0, 3.0])
def test_reaches_the_optimum_that_cvxpy_finds(lam):
    cvxpy = pytest.importorskip("cvxpy")
    n = 6
    Xs = views(n, dims=(3, 8))
    Zs = [cvxpy.Variable((n, n)) for _ in Xs]
    E = cvxpy.vstack([X.T - X.T @ Z for X, Z in zip(Xs, Zs, strict=True)])
    long = cvxpy.vstack([cvxpy.reshape(Z, (1, n * n), order="C") for Z in Zs])
    norms = sum(map(cvxpy.normNuc, (cvxpy.hstack(Zs), cvxpy.hstack([Z.T for Z in Zs]), long)))
    cost = 0.5 * norms + lam * cvxpy.sum(cvxpy.norm(E, 2, axis=0))
    best = cvxpy.Problem(cvxpy.Minimize(cost)).solve(cvxpy.SCS, eps=1e-7, max_iters=50_000)
    run = Run("LTMSC", 20_000, 1e-9)
    Z = solve_ltmsc(Xs, lam=lam, lam_rank=0.5, rho=1.005, mu0=0.1, run=run)
    assert run.converged
    # mu grows by 0.5% an iteration, which leaves a gap of some 1e-5
    assert objective(Xs, Z, lam) == pytest.approx(best, rel=1e-4)
    assert 1e-2 < np.abs(Z).max()


def test_the_default_growth_ends_above_the_optimum_and_the_slow_one_at_it():
    Xs = views(40)
    values = []
    for penalty in ({}, {"rho": 1.02, "mu0": 0.1}, {"rho": 1.005, "mu0": 0.1}):
        run = Run("", 5000, 1e-7)
        values.append(
            objective(Xs, solve_ltmsc(Xs, lam=1.0, lam_rank=0.5, **penalty, run=run), 1.0)
        )
        assert run.converged
    assert values[0] > 1.005 * values[2]
    assert values[1] == pytest.approx(values[2], rel=1e-4)  # 0.00%, as the table has it


@pytest.mark.parametrize("as_released", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_recovers_planted_subspaces_with_the_defaults(seed, as_released):
    data = make_subspaces(120, 4, noise=0.01, random_state=seed)
    labels = LTMSC(4, as_released=as_released, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["acc"] == 1.0


def test_the_representation_is_the_mean_of_absolute_values():
    Xs = make_subspaces(45, 3, noise=0.1).views
    model = LTMSC(3, scale=None).fit(Xs)
    Z = solve_ltmsc(Xs, lam=1.0)
    assert_allclose(model.representation_, np.mean(np.abs(Z), axis=0), rtol=0, atol=1e-14)


def test_history_is_the_stopping_rule():
    model = LTMSC(3).fit(make_subspaces(45, 3).views)
    assert set(model.history_) == {"data", "split"}
    last, before = ([values[k] for values in model.history_.values()] for k in (-1, -2))
    assert max(last) < 1e-7 <= max(before)


def test_other_array_libraries_find_the_same():
    strict = pytest.importorskip("array_api_strict")
    Xs = make_subspaces(45, 3, n_features=[20, 60]).views
    wanted = LTMSC(3, random_state=0).fit(Xs)
    found = LTMSC(3, random_state=0).fit([strict.asarray(X) for X in Xs])
    assert_allclose(np.asarray(found.representation_), wanted.representation_, rtol=0, atol=1e-9)
    assert np.array_equal(found.labels_, wanted.labels_)


def test_constants_are_those_of_the_program():
    params = LTMSC().get_params()
    printed = {"rho": 2.0, "mu0": 1e-4, "mu_max": 1e11, "tol": 1e-7}
    assert {name: params[name] for name in printed} == printed
