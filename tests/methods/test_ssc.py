import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso

from polyspan import SSC, BestSingleView
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.methods.ssc import smallest_maximum, solve_ssc
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run


def view(n=14, d=5, seed=0):
    """Unit samples; more than features, or fewer."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def objective(X, C, lam):
    return np.abs(C).sum() + lam / 2 * np.linalg.norm(X.T - X.T @ C) ** 2


@pytest.mark.parametrize("d", [5, 30], ids=["few features", "many features"])
@pytest.mark.parametrize("lam", [2.0, 30.0])
def test_every_column_is_a_lasso(d, lam):
    X = view(d=d)
    run = Run("SSC", 20_000, 1e-9)
    C = solve_ssc(X, lam=lam, rho=lam, run=run)
    assert run.converged
    for j in range(len(X)):
        others = np.delete(np.arange(len(X)), j)
        # scikit-learn's objective is |y - A c|^2 / (2 d) + alpha |c|_1: this, divided by lam d
        lasso = Lasso(1 / (lam * d), fit_intercept=False, tol=1e-12, max_iter=100_000)
        lasso.fit(X[others].T, X[j])
        # unique at these sizes; both stop at 1e-9 or so
        assert_allclose(C[others, j], lasso.coef_, rtol=0, atol=1e-6)


@pytest.mark.parametrize("lam", [2.0, 30.0])
def test_reaches_the_optimum_that_cvxpy_finds(lam):
    cvxpy = pytest.importorskip("cvxpy")
    X = view(10, 4)
    V = cvxpy.Variable((10, 10))
    cost = cvxpy.sum(cvxpy.abs(V)) + lam / 2 * cvxpy.sum_squares(X.T - X.T @ V)
    best = cvxpy.Problem(cvxpy.Minimize(cost), [cvxpy.diag(V) == 0]).solve(cvxpy.CLARABEL)
    C = solve_ssc(X, lam=lam, rho=lam, run=Run("SSC", 20_000, 1e-9))
    assert objective(X, C, lam) == pytest.approx(best, rel=1e-6)  # cvxpy's own accuracy


def released(X, lam_ratio, iterations, tol=0.0):
    """The steps of the public program: X has the samples in rows, as in the library."""
    G = X @ X.T
    largest = np.abs(G - np.diag(np.diag(G))).max(axis=0)
    lam, n = lam_ratio / largest.min(), len(X)
    C, Y = np.zeros((2, n, n))
    inverse = np.linalg.inv(lam * G + lam_ratio * np.eye(n))
    made = 0
    while made < iterations:
        made += 1
        Z = inverse @ (lam * G + lam_ratio * (C - Y / lam_ratio))
        Z = Z - np.diag(np.diag(Z))
        B = Z + Y / lam_ratio
        C = np.maximum(np.abs(B) - 1 / lam_ratio, 0) * np.sign(B)
        C = C - np.diag(np.diag(C))
        Y = Y + lam_ratio * (Z - C)
        if np.abs(Z - C).max() <= tol:
            break
    return C, made


@pytest.mark.parametrize("d", [5, 30], ids=["few features", "many features"])
@pytest.mark.parametrize("lam_ratio", [5.0, 20.0, 800.0])
def test_as_released_equals_the_literal_program(d, lam_ratio):
    X = view(d=d)
    lam = lam_ratio / smallest_maximum(X @ X.T)
    _, last = released(X, lam_ratio, 199, 2e-4)
    for iterations in (1, 5, last):
        run = Run("SSC", iterations, 0.0)
        C = solve_ssc(X, lam=lam, rho=lam_ratio, as_released=True, run=run)
        assert run.n_iter == iterations
        wanted, _ = released(X, lam_ratio, iterations)
        assert_allclose(C, wanted, rtol=0, atol=1e-9)  # rounding of an inverse
    run = Run("SSC", 2000, 2e-4)
    solve_ssc(X, lam=lam, rho=lam_ratio, as_released=True, run=run)
    assert run.n_iter == last


def test_as_released_ends_after_199_iterations_without_a_warning():
    model = SSC(2, as_released=True, tol=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(view(20, 4))
    assert model.n_iter_ == 199
    assert set(model.history_) == {"split"}


@pytest.mark.parametrize(
    ("as_released", "entries", "known"),
    [(True, 18, (0.58, 0.61, 0.70)), (False, 117, (0.47, 0.53, 0.59))],
)
def test_reaches_the_known_figures(data_dir, as_released, entries, known):
    data = load_dataset("three_sources")
    counts = []
    for X, nmi in zip(data.views, known, strict=True):
        model = SSC(data.n_clusters, as_released=as_released, random_state=0).fit(X)
        counts.append(np.count_nonzero(np.abs(model.representation_) > 1e-3, axis=0).mean())
        found = [
            spectral_clustering(model.affinity_matrix_, data.n_clusters, random_state=seed)
            for seed in range(4)
        ]
        scores = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
        assert np.mean(scores) == pytest.approx(nmi, abs=0.03)  # starts of k-means
    assert np.mean(counts) == pytest.approx(entries, rel=0.1)


def test_the_penalty_does_not_change_the_result():
    X = view()
    a, b = (solve_ssc(X, lam=10.0, rho=rho, run=Run("", 20_000, 1e-9)) for rho in (2.0, 50.0))
    assert_allclose(a, b, rtol=0, atol=1e-6)  # both stop at 1e-9, the last digits go slowly


def test_weight_one_is_where_the_first_column_wakes():
    X = view()
    G = X @ X.T
    largest = np.abs(G - np.diag(np.diag(G))).max(axis=1)
    assert smallest_maximum(G) == pytest.approx(largest.min(), abs=1e-15)
    for factor, alone in [(0.99, True), (1.01, False)]:
        C = solve_ssc(X, lam=factor / largest.min(), rho=1.0, run=Run("", 20_000, 1e-10))
        assert bool(np.all(C[:, np.argmin(largest)] == 0)) == alone


def test_the_smallest_maximum_passes_over_lonely_samples():
    G = np.diag([1.0, 1.0, 1.0])
    assert smallest_maximum(G) == 1.0
    G[0, 1] = G[1, 0] = -0.3
    assert smallest_maximum(G) == 0.3


def test_lam_is_relative_and_columns_are_scaled():
    X = view(20, 4)
    model = SSC(2, lam_ratio=5.0, tol=1e-8, max_iter=20_000, scale=None).fit(X)
    run = Run("", 20_000, 1e-8)
    C = solve_ssc(X, lam=5.0 / smallest_maximum(X @ X.T), rho=5.0, run=run)
    assert_allclose(model.representation_, C / np.abs(C).max(axis=0), rtol=0, atol=1e-12)
    assert model.n_iter_ == run.n_iter
    larger = SSC(2, lam_ratio=5.0, tol=1e-8, max_iter=20_000, scale=None).fit(7 * X)
    # 7 X has 49 times the inner products and 1/49 of lam: the same
    assert_allclose(larger.representation_, model.representation_, rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_recovers_planted_subspaces_with_the_defaults(seed, noise):
    data = make_subspaces(120, 4, n_views=1, noise=noise, random_state=seed)
    model = SSC(4, random_state=0).fit(data.views[0])
    assert clustering_scores(data.labels, model.labels_)["acc"] == 1.0
    if noise == 0:  # nothing between different subspaces, but for the tolerance
        between = data.labels[:, None] != data.labels
        assert model.affinity_matrix_[between].max() < 1e-2


def test_best_single_view():
    data = make_subspaces(60, 3, noise=0.01, random_state=0)
    labels = BestSingleView(SSC(3), random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["acc"] == 1.0


def test_several_views_are_refused():
    with pytest.raises(ValueError, match=r"^SSC takes one view; got 2: wrap it in BestSingleView"):
        SSC(3).fit([view(), view()])


def test_history_is_the_stopping_rule():
    model = SSC(3).fit(view(45))
    assert set(model.history_) == {"split", "change"}
    last, before = ([values[k] for values in model.history_.values()] for k in (-1, -2))
    assert max(last) < 2e-4 <= max(before)


def test_other_array_libraries_find_the_same():
    strict = pytest.importorskip("array_api_strict")
    X = make_subspaces(45, 3, n_views=1).views[0]
    wanted = SSC(3, random_state=0).fit(X)
    found = SSC(3, random_state=0).fit(strict.asarray(X))
    assert_allclose(np.asarray(found.representation_), wanted.representation_, rtol=0, atol=1e-8)
    assert np.array_equal(found.labels_, wanted.labels_)
