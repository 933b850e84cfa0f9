import warnings

import numpy as np
import pytest
from cases import case
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from polyspan import CSMSC
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.methods.csmsc import solve_csmsc
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run


@pytest.mark.parametrize(("lam_c", "lam_d", "nmi"), [(0.1, 0.1, 0.7261), (0.5, 0.1, 0.7188)])
def test_reaches_the_known_figures(data_dir, lam_c, lam_d, nmi):
    data = load_dataset("three_sources")
    model = CSMSC(data.n_clusters, lam_c=lam_c, lam_d=lam_d, random_state=0).fit(data.views)
    # Nothing before k-means is random, so one solve serves four seeds.
    found = [
        spectral_clustering(model.affinity_matrix_, data.n_clusters, random_state=seed)
        for seed in range(4)
    ]
    assert np.array_equal(found[0], model.labels_)
    scores = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    assert np.mean(scores) == pytest.approx(nmi, abs=0.05)


def views(n=12, dims=(5, 30), seed=0):
    """Unit samples near a space of dimension 4: fewer and more features than samples."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, 4))
    Xs = [H @ rng.normal(size=(4, d)) + 0.3 * rng.normal(size=(n, d)) for d in dims]
    return [X / np.linalg.norm(X, axis=1, keepdims=True) for X in Xs]


def literal(Xs, lam_c, lam_d, as_released, iterations, rho=1.1, mu=1e-6):
    """The recursion from the mathematics: all features, plain SVDs and inverses."""
    Xs = [X.T for X in Xs]
    n = Xs[0].shape[1]
    I = np.eye(n)
    C, Y2 = np.zeros((2, n, n))
    Ds = [np.zeros((n, n)) for _ in Xs]
    Es, Ws, Ys, Y3s = ([np.zeros_like(X) for X in Xs] for _ in range(4))
    for _ in range(iterations):
        right = np.zeros((n, n))
        for v, X in enumerate(Xs):
            left = X.T @ X + 2 * lam_d / mu * I
            Ds[v] = np.linalg.solve(left, X.T @ (X - X @ C - Es[v] + Ys[v] / mu))
            T = X - X @ (C + Ds[v]) + Ys[v] / mu
            if as_released:
                Es[v] = (T + Ws[v] - Y3s[v] / mu) / 2
                T = Es[v] + Y3s[v] / mu
            Ws[v] = T * np.maximum(1 - 1 / mu / np.linalg.norm(T, axis=0), 0)
            Es[v] = Es[v] if as_released else Ws[v]
            right += X.T @ (X - X @ Ds[v] - Es[v] + Ys[v] / mu)
        U, s, Vt = np.linalg.svd(C + Y2 / mu)
        J = U @ np.diag(np.maximum(s - lam_c / mu, 0)) @ Vt
        C = np.linalg.inv(sum(X.T @ X for X in Xs) + I) @ (right + J - Y2 / mu)
        for v, X in enumerate(Xs):
            Ys[v] = Ys[v] + mu * (X - X @ (C + Ds[v]) - Es[v])
            Y3s[v] = Y3s[v] + mu * (Es[v] - Ws[v])
        Y2 = Y2 + mu * (C - J)
        mu *= rho
    return C, Ds


@pytest.mark.parametrize("as_released", [False, True])
@pytest.mark.parametrize(("lam_c", "lam_d"), [(0.1, 0.1), (0.02, 1.0)])
def test_equals_the_literal_algorithm(as_released, lam_c, lam_d):
    Xs = views()
    for iterations in (1, 5, 100, 180):
        with case(iterations, "iterations"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                C, Ds = solve_csmsc(
                    Xs,
                    lam_c=lam_c,
                    lam_d=lam_d,
                    as_released=as_released,
                    run=Run("", iterations, 0.0),
                )
            wanted = literal(Xs, lam_c, lam_d, as_released, iterations)
            # singular values are lowered to an accuracy of 1e-10, and iterations make that a little
            # more
            assert_allclose(C, wanted[0], rtol=0, atol=1e-8)
            for one, two in zip(Ds, wanted[1], strict=True):
                assert_allclose(one, two, rtol=0, atol=1e-8)


def objective(Xs, C, Ds, lam_c, lam_d):
    errors = sum(
        np.linalg.norm(X.T - X.T @ (C + D), axis=0).sum() for X, D in zip(Xs, Ds, strict=True)
    )
    own = sum(np.linalg.norm(D) ** 2 for D in Ds)
    return errors + lam_c * np.linalg.norm(C, "nuc") + lam_d * own


@pytest.mark.parametrize(("lam_c", "lam_d"), [(0.5, 0.3), (0.2, 1.0), (1.0, 2.0)])
def test_reaches_the_optimum_that_cvxpy_finds(lam_c, lam_d):
    cvxpy = pytest.importorskip("cvxpy")
    Xs = views(8, dims=(3, 10))
    C = cvxpy.Variable((8, 8))
    Ds = [cvxpy.Variable((8, 8)) for _ in Xs]
    errors = sum(
        cvxpy.sum(cvxpy.norm(X.T - X.T @ (C + D), 2, axis=0)) for X, D in zip(Xs, Ds, strict=True)
    )
    own = sum(cvxpy.sum_squares(D) for D in Ds)
    problem = cvxpy.Problem(cvxpy.Minimize(errors + lam_c * cvxpy.normNuc(C) + lam_d * own))
    best = problem.solve(solver=cvxpy.SCS, eps=1e-8, max_iters=100_000)
    run = Run("CSMSC", 20_000, 1e-9)
    found = solve_csmsc(
        Xs, lam_c=lam_c, lam_d=lam_d, as_released=False, rho=1.005, mu0=0.1, mu_max=1e9, run=run
    )
    assert run.converged
    # mu grows by 0.5% an iteration, which leaves a gap of some 1e-5
    assert objective(Xs, *found, lam_c, lam_d) == pytest.approx(best, rel=1e-4)
    assert min(np.abs(A).max() for A in (found[0], *found[1])) > 1e-2  # both parts are in use


def test_costly_differences_leave_the_common_part():
    run = Run("CSMSC", 400, 1e-7)
    C, Ds = solve_csmsc(views(), lam_c=0.1, lam_d=1e8, as_released=False, run=run)
    assert max(np.abs(D).max() for D in Ds) < 1e-6
    assert np.abs(C).max() > 0.1


def test_costly_common_part_leaves_the_differences():
    run = Run("CSMSC", 1000, 1e-6)
    C, Ds = solve_csmsc(views(), lam_c=100.0, lam_d=0.1, as_released=False, rho=1.05, run=run)
    assert np.abs(C).max() < 1e-5  # tol is 1e-6
    assert min(np.abs(D).max() for D in Ds) > 0.1


def test_the_affinity_is_made_of_both_parts():
    model = CSMSC(3, random_state=0).fit(make_subspaces(45, 3, noise=0.1).views)
    own = np.mean([np.abs(D) for D in model.specific_], axis=0)
    Z = np.abs(model.consistent_) + own
    assert_allclose(model.representation_, Z, rtol=0, atol=1e-14)  # rounding
    assert_allclose(model.affinity_matrix_, Z + Z.T, rtol=0, atol=1e-14)
    assert min(np.abs(A).max() for A in (model.consistent_, own)) > 1e-2


@pytest.mark.parametrize("seed", range(3))
def test_recovers_planted_subspaces_with_the_defaults(seed):
    data = make_subspaces(120, 4, noise=0.01, random_state=seed)
    labels = CSMSC(4, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["acc"] == 1.0


def test_history_is_the_stopping_rule():
    model = CSMSC(3, as_released=False, max_iter=400).fit(make_subspaces(45, 3).views)
    assert set(model.history_) == {"data", "split"}
    last, before = ([values[k] for values in model.history_.values()] for k in (-1, -2))
    assert max(last) < 1e-7 <= max(before)


def test_the_program_ends_after_its_iterations_without_a_warning():
    Xs = make_subspaces(45, 3, noise=0.1).views
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = CSMSC(3).fit(Xs)
    assert model.n_iter_ == 100
    with pytest.warns(ConvergenceWarning, match="CSMSC stopped after max_iter=100 iterations"):
        CSMSC(3, as_released=False).fit(Xs)


def test_the_program_stops_when_the_fit_stands_still():
    model = CSMSC(3, scale=None, max_iter=600).fit(make_subspaces(45, 3).views)
    assert set(model.history_) == {"change"}
    Xs = [X.T for X in make_subspaces(45, 3).views]
    fits = [sum(np.sum(X**2) for X in Xs)]
    for iterations in (1, 2):
        C, Ds = literal([X.T for X in Xs], 0.1, 0.1, True, iterations)
        fits.append(sum(np.sum((X - X @ (C + D)) ** 2) for X, D in zip(Xs, Ds, strict=True)))
    # rounding of sums of squares that are near 90
    assert_allclose(model.history_["change"][:2], np.abs(np.diff(fits)), rtol=0, atol=1e-9)
    assert model.n_iter_ < 600
    assert model.history_["change"][-1] < 1e-7 <= model.history_["change"][-2]


def test_constants_are_those_of_the_authors_program():
    params = CSMSC().get_params()
    known = {"rho": 1.1, "mu0": 1e-6, "mu_max": 1e6, "max_iter": 100, "tol": 1e-7}
    assert {name: params[name] for name in known} == known
    assert params["as_released"]


def test_other_array_libraries_find_the_same():
    strict = pytest.importorskip("array_api_strict")
    Xs = make_subspaces(45, 3, n_features=[20, 60]).views
    wanted = CSMSC(3, random_state=0).fit(Xs)
    found = CSMSC(3, random_state=0).fit([strict.asarray(X) for X in Xs])
    assert_allclose(np.asarray(found.representation_), wanted.representation_, rtol=0, atol=1e-8)
    assert np.array_equal(found.labels_, wanted.labels_)
