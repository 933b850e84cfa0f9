import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from polyspan import MVSC
from polyspan.clustering.spectral import cluster_rows, spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.methods.mvsc import RepresentationStep, solve_mvsc
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run


def test_keeps_its_figure(data_dir):
    # No published figure on these data: this is our own, and the defaults were chosen on it.
    data = load_dataset("three_sources")
    model = MVSC(data.n_clusters, random_state=0).fit(data.views)
    found = [
        spectral_clustering(model.affinity_matrix_, data.n_clusters, random_state=seed)
        for seed in range(4)
    ]
    assert np.array_equal(found[0], model.labels_)
    scores = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    assert np.mean(scores) == pytest.approx(0.595, abs=0.03)


def views(n=12, dims=(4, 30), seed=0):
    rng = np.random.default_rng(seed)
    Xs = [rng.normal(size=(n, d)) for d in dims]
    return [X / np.linalg.norm(X, axis=1, keepdims=True) for X in Xs]


@pytest.mark.parametrize("d", [4, 30])
def test_the_representation_step_against_cvxpy(d):
    cvxpy = pytest.importorskip("cvxpy")
    n = 8
    (X,) = views(n, (d,))
    rng = np.random.default_rng(1)
    E, weights = 0.1 * rng.normal(size=(d, n)), rng.uniform(0, 0.3, size=(n, n))
    V = cvxpy.Variable((n, n))
    cost = cvxpy.sum_squares(X.T - E - X.T @ V) + cvxpy.sum(cvxpy.multiply(weights, cvxpy.abs(V)))
    limits = [cvxpy.diag(V) == 0, cvxpy.sum(V, axis=0) == 1]
    best = cvxpy.Problem(cvxpy.Minimize(cost), limits).solve(cvxpy.CLARABEL)
    Z = RepresentationStep(X)(E, weights, 1e-10, 20_000)
    assert np.all(np.diag(Z) == 0)
    assert_allclose(Z.sum(axis=0), 1, rtol=0, atol=1e-8)  # tol, n times
    found = np.linalg.norm(X.T - E - X.T @ Z) ** 2 + np.sum(weights * np.abs(Z))
    assert found == pytest.approx(best, rel=1e-6)  # cvxpy's own accuracy


def objective(Xs, Zs, F, lam_cut, lam):
    """From the definition, with the best E."""
    total = 0.0
    for X, Z in zip(Xs, Zs, strict=True):
        D = X.T - X.T @ Z
        E = np.sign(D) * np.maximum(np.abs(D) - lam / 2, 0)
        W = (np.abs(Z) + np.abs(Z).T) / 2
        L = np.diag(W.sum(axis=1)) - W
        total += np.linalg.norm(D - E) ** 2 + lam * np.abs(E).sum()
        total += lam_cut * np.trace(F.T @ L @ F)
    return total


@pytest.mark.slow
def test_the_objective_falls_and_the_history_says_by_how_much():
    Xs = views()
    values = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for iterations in range(1, 5):
            run = Run("", iterations, 0.0)  # tol 0: the inner loop goes all its iterations
            Zs, F = solve_mvsc(Xs, 3, lam_cut=0.3, lam=0.1, max_inner=2000, run=run)
            values.append(objective(Xs, Zs, F, 0.3, 0.1))
    falls = -np.diff(values) / sum(np.sum(X * X) for X in Xs)
    assert falls.min() > -1e-8  # the inner loop's accuracy
    assert falls[0] > 1e-3
    assert_allclose(run.history["fall"][1:], falls, rtol=0, atol=1e-12)  # rounding


@pytest.mark.slow
def test_no_other_representation_is_better_for_the_last_indicator():
    Xs, lam_cut, lam = views(), 0.3, 0.1
    run = Run("", 500, 1e-9)
    Zs, F = solve_mvsc(Xs, 3, lam_cut=lam_cut, lam=lam, max_inner=20_000, run=run)
    assert run.converged
    P = np.sum((F[:, None, :] - F[None, :, :]) ** 2, axis=2)
    for X, Z in zip(Xs, Zs, strict=True):
        W = (np.abs(Z) + np.abs(Z).T) / 2
        trace = np.trace(F.T @ (np.diag(W.sum(axis=1)) - W) @ F)
        assert np.sum(P * np.abs(Z)) / 2 == pytest.approx(trace, abs=1e-12)  # as the module says
        D = X.T - X.T @ Z
        E = np.sign(D) * np.maximum(np.abs(D) - lam / 2, 0)
        other = RepresentationStep(X)(E, lam_cut * P / 2, 1e-10, 20_000)
        one, two = (objective([X], [A], F, lam_cut, lam) for A in (Z, other))
        assert one == pytest.approx(two, rel=1e-5)  # the last iteration fell by 1e-9 of |X|^2


def test_the_indicator_is_the_best_for_the_graphs():
    Xs = views()
    Zs, F = solve_mvsc(Xs, 3, lam_cut=0.3, lam=0.1)
    assert_allclose(F.T @ F, np.eye(3), rtol=0, atol=1e-12)  # rounding
    W = sum((np.abs(Z) + np.abs(Z).T) / 2 for Z in Zs)
    L = np.diag(W.sum(axis=1)) - W
    assert np.trace(F.T @ L @ F) == pytest.approx(np.linalg.eigvalsh(L)[:3].sum(), abs=1e-12)


@pytest.mark.parametrize("labels_from", ["graph", "indicator"])
@pytest.mark.parametrize("seed", range(2))
def test_recovers_planted_subspaces_with_the_defaults(seed, labels_from):
    data = make_subspaces(120, 4, noise=0.01, random_state=seed)
    model = MVSC(4, labels_from=labels_from, random_state=0).fit(data.views)
    assert clustering_scores(data.labels, model.labels_)["acc"] == 1.0


def test_labels_of_the_indicator_are_an_option():
    data = make_subspaces(60, 3, noise=0.5, random_state=0)
    one, two = (
        MVSC(3, labels_from=source, random_state=0).fit(data.views)
        for source in ("graph", "indicator")
    )
    assert np.array_equal(two.labels_, cluster_rows(two.embedding_, 3, random_state=0))
    assert np.array_equal(one.labels_, spectral_clustering(one.affinity_matrix_, 3, random_state=0))
    assert not np.array_equal(one.labels_, two.labels_)


def test_costly_errors_are_none():
    # with E = 0 throughout lam does not matter
    Xs = views()
    a, b = (solve_mvsc(Xs, 3, lam_cut=0.3, lam=lam)[0] for lam in (1e3, 1e4))
    for one, two in zip(a, b, strict=True):
        assert np.array_equal(one, two)


def test_the_affinity_is_the_sum_of_the_graphs():
    Xs = views(20)
    model = MVSC(3, scale=None).fit(Xs)
    Zs, F = solve_mvsc(Xs, 3, lam_cut=0.1, lam=0.1)
    W = sum((np.abs(Z) + np.abs(Z).T) / 2 for Z in Zs)
    assert_allclose(model.affinity_matrix_, W, rtol=0, atol=1e-14)  # rounding
    assert np.array_equal(model.embedding_, F)


def test_other_array_libraries_find_the_same():
    strict = pytest.importorskip("array_api_strict")
    Xs = make_subspaces(45, 3, noise=0.1).views
    wanted = MVSC(3, random_state=0).fit(Xs)
    found = MVSC(3, random_state=0).fit([strict.asarray(X) for X in Xs])
    assert np.array_equal(found.labels_, wanted.labels_)
