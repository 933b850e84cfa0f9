"""Samples that lack views: what is let through, the problem that is solved, and how well."""

import warnings

import literal
import numpy as np
import pytest
import scipy.sparse as sp
from cases import case
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from polyspan import GRMSC, METHODS
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs.proximity import incomplete_laplacian
from polyspan.inputs.rows import filled, missing_rows
from polyspan.inputs.scaling import feature_moments, scale_views
from polyspan.inputs.views import check_views
from polyspan.methods.grmsc import graph_laplacian, solve_grmsc
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run, watching


def planted(n=45, noise=0.02):
    data = make_subspaces(n, 3, n_features=[6, 8, 9], subspace_dim=2, noise=noise, random_state=0)
    return data.views, data.labels


def remove(views, share, seed=0):
    """A share of the (sample, view) pairs becomes rows of NaN; every sample keeps a view."""
    n, v = len(views[0]), len(views)
    gone, left = np.zeros((n, v), bool), round(share * n * v)
    for pair in np.random.default_rng(seed).permutation(n * v):
        i, k = divmod(int(pair), v)
        if left and gone[i].sum() < v - 1:
            gone[i, k], left = True, left - 1
    return [np.where(gone[:, [k]], np.nan, X) for k, X in enumerate(views)]


def impute(views):
    return [np.where(np.isnan(X), np.nanmean(X, axis=0), X) for X in views]


# ---- how well ----------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("name", ["three_sources", "handwritten"])
def test_better_than_filling_gaps_with_means(data_dir, name, share):
    data = load_dataset(name)
    rows = np.random.default_rng(0).permutation(len(data.labels))[:300]
    views = [X[rows].toarray() if sp.issparse(X) else X[rows].astype(float) for X in data.views]
    gaps = remove(views, share)
    nmi = []
    for X in (gaps, impute(gaps)):
        model = GRMSC(data.n_clusters, affinity="sparse", max_iter=40, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            nmi.append(clustering_scores(data.labels[rows], model.fit_predict(X))["nmi"])
    assert nmi[0] > nmi[1] + 0.05


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_planted_subspaces_are_found_through_gaps(share):
    views, labels = planted(n=120)
    found = GRMSC(3, random_state=0).fit_predict(remove(views, share))
    assert clustering_scores(labels, found)["acc"] > 0.9


# ---- the problem -------------------------------------------------------------------------------


def tiny():
    rng = np.random.default_rng(0)
    views = remove([rng.normal(size=(9, d)) for d in (5, 4)], 0.3)
    Xs = scale_views(check_views(views, missing=True), "unit")
    return Xs, 0.3 * incomplete_laplacian(Xs, 3, alpha=0.1)


def objective(Z, Xs, L, lam1):
    """GRMSC's objective, where in each view only samples that have it appear on either side."""
    errors = 0.0
    for X in Xs:
        there = ~np.isnan(X[:, 0])
        D = X[there].T - X[there].T @ Z[np.ix_(there, there)]
        errors += np.linalg.norm(D, axis=0).sum()
    return np.linalg.norm(Z, "nuc") + lam1 * errors + np.trace(Z @ L @ Z.T)


def test_reaches_the_optimum_that_cvxpy_finds():
    cvxpy = pytest.importorskip("cvxpy")
    Xs, L = tiny()
    root = np.linalg.cholesky(L + 1e-12 * np.eye(9))
    V = cvxpy.Variable((9, 9))
    errors = 0
    for X in Xs:
        there = np.flatnonzero(~np.isnan(X[:, 0]))
        A = X[there].T
        errors += cvxpy.sum(cvxpy.norm(A - A @ V[there, :][:, there], 2, axis=0))
    goal = cvxpy.normNuc(V) + 0.7 * errors + cvxpy.sum_squares(V @ root)
    best = cvxpy.Problem(cvxpy.Minimize(goal)).solve(solver=cvxpy.SCS, eps=1e-8, max_iters=100_000)
    lam1 = [0.7 * ~np.isnan(X[:, 0]) for X in Xs]
    run = Run("GRMSC", 20_000, 1e-8)
    Z = solve_grmsc(Xs, L, lam1=lam1, rho=1.01, mu0=1e-2, mu_max=1e8, run=run)
    assert run.converged
    # SCS is asked for 1e-8; our mu grows by 1% an iteration, which leaves a gap of some 1e-5.
    assert objective(Z, Xs, L, 0.7) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("weights", [None, [0.5, 2.0, 1.0]])
@pytest.mark.parametrize(("lam1", "lam2"), [(0.1, 1.0), (100.0, 1000.0)])
def test_equals_the_literal_algorithm(lam1, lam2, weights):
    gaps = remove(planted(noise=0.3)[0], 0.3)
    unit = scale_views(check_views(gaps, missing=True), "unit")
    L = incomplete_laplacian(unit, 8, weights=weights)
    model = GRMSC(3, n_neighbors=8, lam1=lam1, lam2=lam2, max_iter=200, view_weights=weights)
    model.fit(gaps)
    lams = [w * lam1 * ~missing_rows(X) for w, X in zip(weights or [1] * 3, unit, strict=True)]
    Z, iterations = literal.algorithm_1(
        [filled(X).T for X in unit], L, lams, lam2, "samples", max_iter=200, symmetric=True
    )
    assert model.n_iter_ == iterations
    assert_allclose(model.representation_, Z, rtol=0, atol=1e-6)  # as without gaps


def test_without_gaps_nothing_changes(monkeypatch):
    views, _ = planted()
    monkeypatch.setattr("polyspan.methods.grmsc.incomplete_laplacian", None)  # not to be called
    model = GRMSC(3, random_state=0).fit(views)
    Xs = scale_views(check_views(views), "unit")
    L = graph_laplacian(Xs, 30, alpha=1e-3)
    assert_array_equal(model.representation_, solve_grmsc(Xs, L, lam1=100.0, lam2=1000.0))


@pytest.mark.parametrize("options", [{}, {"regularizer": "first_order"}, {"second_width": "first"}])
def test_the_graphs_without_gaps_are_grmscs(options):
    Xs = scale_views(check_views(planted()[0]), "unit")
    weights = [1.0, 0.5, 2.0]
    wanted = graph_laplacian(Xs, 8, weights=weights, **options)
    found = incomplete_laplacian(Xs, 8, weights=weights, **options)
    assert_allclose(found, wanted, rtol=0, atol=1e-12)  # logarithms and back


def literal_graph(Xs, k, alpha):
    """The rule of `incomplete_laplacian`, pair by pair."""
    n, v = len(Xs[0]), len(Xs)
    firsts, seconds = [], []
    for X in Xs:
        there = np.flatnonzero(~np.isnan(X[:, 0]))
        D = np.linalg.norm(X[there][:, None] - X[there][None], axis=2)
        upper = np.triu_indices(len(there), 1)
        count = max(1, round(k * len(there) / n))
        order = [[j for j in np.argsort(row) if j != i][:count] for i, row in enumerate(D)]
        Lambda = np.exp(-(D**2) / np.median(D[upper]) ** 2)
        for i, j in np.ndindex(*D.shape):
            if j not in order[i] or i not in order[j]:
                Lambda[i, j] = 0
        D = np.linalg.norm(Lambda[:, None] - Lambda[None], axis=2)
        Upsilon = np.exp(-(D**2) / np.median(D[upper]) ** 2)
        for found, part in ((firsts, Lambda), (seconds, Upsilon)):
            found.append(np.full((n, n), np.nan))
            found[-1][np.ix_(there, there)] = part
    W = np.zeros((n, n))
    for i, j in np.ndindex(n, n):
        common = [q for q in range(v) if not np.isnan(firsts[q][i, j])]
        if i == j or not common:
            continue
        product = np.prod([firsts[q][i, j] for q in common]) ** (v / len(common))
        W[i, j] = product or alpha * v * np.mean([seconds[q][i, j] for q in common])
    return np.diag(W.sum(axis=1)) - W


def test_the_graphs_with_gaps_follow_their_rule():
    Xs = remove(scale_views(check_views(planted(n=30, noise=0.3)[0]), "unit"), 0.4)
    found = incomplete_laplacian(Xs, 8, alpha=0.1)
    # Distances of the first order are rounded to about eleven digits, for the sake of ties.
    assert_allclose(found, literal_graph(Xs, 8, 0.1), rtol=0, atol=1e-10)


def test_no_nan_gets_out():
    model = GRMSC(3, random_state=0).fit(remove(planted()[0], 0.3))
    assert np.isfinite(model.representation_).all()
    assert np.isfinite(model.affinity_matrix_).all()
    assert all(np.isfinite(X).all() for X in model._dictionary)


def test_standardizing_uses_the_samples_that_are_there():
    X = np.arange(12.0).reshape(6, 2) ** 2
    gaps = X.copy()
    gaps[[1, 4]] = np.nan
    there = [0, 2, 3, 5]
    views = check_views([gaps, np.eye(6)], missing=True)
    assert_allclose(
        scale_views(views, "standard+unit")[0][there],
        scale_views(check_views(X[there]), "standard+unit")[0],
    )
    for found, wanted in zip(
        feature_moments(views)[0], feature_moments(check_views(X[there]))[0], strict=True
    ):
        assert_array_equal(found, wanted)


@pytest.mark.parametrize("scale", ["unit", "standard+unit", None])
@pytest.mark.parametrize("graph_scale", ["same", "unit", "standard+unit", None])
def test_every_scale(scale, graph_scale):
    views, labels = planted()
    model = GRMSC(3, scale=scale, graph_scale=graph_scale, max_iter=300, random_state=0)
    found = model.fit_predict(remove(views, 0.2))
    assert np.isfinite(model.representation_).all()
    assert clustering_scores(labels, found)["nmi"] > 0.3


VARIANTS = [
    {"orientation": "published"},
    {"regularizer": "first_order"},
    {"regularizer": "none", "lam1": 0.1},
]


@pytest.mark.parametrize("options", VARIANTS)
def test_every_variant(options):
    views, labels = planted(n=90)
    found = GRMSC(3, random_state=0, **options).fit_predict(remove(views, 0.2))
    assert clustering_scores(labels, found)["nmi"] > 0.3  # chance is .02


def test_sparse_views_may_stand_beside_gaps():
    views, _ = planted()
    gaps = remove(views, 0.2)
    gaps[2] = views[2]
    wanted = GRMSC(3, random_state=0).fit(gaps).representation_
    found = GRMSC(3, random_state=0).fit([*gaps[:2], sp.csr_array(views[2])]).representation_
    assert_allclose(found, wanted, rtol=0, atol=1e-8)  # as sparse and dense without gaps


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_libraries(library):
    xp = pytest.importorskip(library)
    gaps = remove(planted()[0], 0.3)
    wanted = GRMSC(3, random_state=0).fit(gaps).representation_
    found = GRMSC(3, random_state=0).fit([xp.asarray(X) for X in gaps]).representation_
    assert_allclose(np.asarray(found), wanted, rtol=0, atol=1e-8)


# ---- what is refused ---------------------------------------------------------------------------


def spoilt(k, rows, columns, value=np.nan):
    views = [X.copy() for X in planted()[0]]
    views[k][rows, columns] = value
    return views


def everywhere(row):
    return [np.where(np.arange(45)[:, None] == row, np.nan, X) for X in planted()[0]]


WRONG = {
    "part": (
        spoilt(1, 3, 2),
        r"^view 1 contains NaN in part of a sample \(row 3\): drop or",
    ),
    "inf": (spoilt(1, 3, slice(None), np.inf), r"^view 1 contains inf .* in part .* \(row 3\)"),
    "all": (spoilt(1, slice(None), slice(None)), "^view 1 contains NaN in every sample: leave it"),
    "nowhere": (everywhere(7), r"^1 of 45 samples are NaN in every view \(row 7\): drop them"),
    "one left": (spoilt(1, slice(1, None), slice(None)), r"^view 1 is constant \(all 1 samples"),
    "one view": (spoilt(0, 4, slice(None))[:1], r"^1 of 45 samples are NaN in every view \(row 4"),
}


def zero_elsewhere():
    views = spoilt(0, 4, slice(None))
    views[1][4] = views[2][4] = 0
    return views


@pytest.mark.parametrize("case", WRONG)
def test_refused(case):
    views, match = WRONG[case]
    iterations = []
    with watching(iterations.append), pytest.raises(ValueError, match=match) as caught:
        GRMSC(3).fit(views)
    assert not iterations
    assert "\n" not in str(caught.value)


def test_zeros_and_gaps_together_say_nothing_either():
    with pytest.raises(ValueError, match=r"^1 of 45 samples are all zeros or NaN in every view"):
        GRMSC(3).fit(zero_elsewhere())


def test_sparse_views_cannot_have_gaps():
    views = spoilt(1, 3, slice(None))
    views[1] = sp.csr_array(views[1])
    with pytest.raises(ValueError, match=r"^view 1 contains NaN: .* rows of NaN, .* dense array"):
        GRMSC(3).fit(views)


def test_other_methods_refuse_gaps():
    match = r"^view 0 contains NaN: drop or impute these values"
    for name, cls in METHODS.items():
        tags = get_tags(cls())
        if not tags.missing_views:
            views = spoilt(0, 3, slice(None))[: 1 if tags.single_view else 3]
            with case(name), pytest.raises(ValueError, match=match):
                cls(n_clusters=3).fit(views)
