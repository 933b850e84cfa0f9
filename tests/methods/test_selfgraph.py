import numpy as np
import pytest
import scipy.sparse as sp
from late_fusion import clouds, shares, tied_views, unit
from numpy.testing import assert_allclose

from polyspan import SelfGraph
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs import self_expression
from polyspan.graphs.self_expression import expressed, self_graph
from polyspan.metrics import clustering_scores


def coefficients(X, lam):
    """Every sample by ridge regression on the others, one problem after the other."""
    n, ridge = len(X), lam * np.sum(X**2) / len(X)
    C = np.zeros((n, n))
    for i in range(n):
        others = np.arange(n) != i
        A = X[others]
        C[i, others] = np.linalg.solve(A @ A.T + ridge * np.eye(n - 1), A @ X[i])
    return C


def literal(X, lam, k):
    """Its largest coefficients by the definitions, ties shared."""
    C = np.abs(coefficients(X, lam))
    C[C < 1e-12] = 0
    kept = C * shares(-C.round(10), k)[0]
    sums = kept.sum(axis=1, keepdims=True)
    return kept / np.where(sums > 0, sums, 1)


@pytest.mark.parametrize("width", [4, 60])  # columns: the inverse is of d x d, or of n x n
@pytest.mark.parametrize("lam", [0.1, 1.0, 10.0])
def test_equals_ridge_regressions_on_the_others(width, lam):
    views = [unit(np.random.default_rng(v).normal(size=(40, width))) for v in range(2)]
    wanted = [literal(X, lam, 10) for X in views]
    W = SelfGraph(2, lam=lam, random_state=0).fit(views).affinity_matrix_.toarray()
    assert_allclose(W, sum(S + S.T for S in wanted) / 4, atol=1e-10)


def test_neighbors_are_added_with_the_same_weight():
    views = [unit(np.random.default_rng(v).normal(size=(40, 5))) for v in range(2)]
    near = [shares(np.linalg.norm(X[:, None] - X, axis=2), 6)[0] for X in views]
    both = [(literal(X, 1.0, 10) + A / 6) / 2 for X, A in zip(views, near, strict=True)]
    W = SelfGraph(2, n_neighbors=6, random_state=0).fit(views).affinity_matrix_.toarray()
    assert_allclose(W, sum(B + B.T for B in both) / 4, atol=1e-10)


def test_sparse_views_and_kernels_give_the_graph_of_their_features():
    views = tied_views()
    W = SelfGraph(2, random_state=0).fit(views).affinity_matrix_.toarray()
    sparse = SelfGraph(2, random_state=0).fit([sp.csr_array(X) for X in views])
    assert_allclose(sparse.affinity_matrix_.toarray(), W, atol=1e-9)
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(40, 60)) for _ in range(2)]
    W = SelfGraph(2, random_state=0).fit(views).affinity_matrix_.toarray()
    kernels = SelfGraph(2, precomputed="kernel", random_state=0).fit([X @ X.T for X in views])
    assert_allclose(kernels.affinity_matrix_.toarray(), W, atol=1e-8)


def test_the_order_of_the_samples_does_not_matter():
    views, order = tied_views(), np.random.default_rng(1).permutation(40)
    model = SelfGraph(2, n_neighbors=5, random_state=0)
    W = model.fit(views).affinity_matrix_.toarray()
    shuffled = model.fit([X[order] for X in views]).affinity_matrix_.toarray()
    assert_allclose(shuffled, W[np.ix_(order, order)], atol=1e-9)


def test_samples_that_lack_a_view_are_placed_by_the_others():
    views, truth = clouds()
    views[0][:20], views[1][30:50] = np.nan, np.nan
    model = SelfGraph(3, n_neighbors=10, random_state=0).fit(views)
    assert clustering_scores(truth, model.labels_)["acc"] == 1
    assert not model.affinity_matrix_.toarray()[:20, 30:50].any()  # no view in common
    there = self_graph(views[0], 1.0, 10).toarray()
    assert not there[:20].any()
    assert_allclose(there[20:, 20:], self_graph(views[0][20:], 1.0, 10).toarray())


def test_new_samples_are_written_in_terms_of_the_fitted_ones():
    X = np.random.default_rng(0).normal(size=(30, 6))
    new = np.random.default_rng(1).normal(size=(4, 6))
    ridge = np.sum(X**2) / 30
    C = np.abs(np.linalg.solve(X @ X.T + ridge * np.eye(30), X @ new.T).T)
    C[C < np.sort(C, axis=1)[:, [-10]]] = 0
    wanted = C / C.sum(axis=1, keepdims=True)
    assert_allclose(expressed(X, new, 1.0, 10).toarray(), wanted, atol=1e-10)
    views, truth = clouds(n=150)
    for k in (None, 10):
        model = SelfGraph(3, n_neighbors=k, random_state=0).fit([V[:90] for V in views])
        assert clustering_scores(truth[:90], model.labels_)["acc"] == 1
        found = model.predict([V[90:] for V in views])
        assert clustering_scores(truth[90:], found)["acc"] == 1


def test_among_many_samples_links_are_sought_among_the_nearest(monkeypatch):
    data = make_subspaces(n_samples=300, n_clusters=4, n_features=30, noise=0.1, random_state=0)
    X = unit(data.views[0])
    exact = self_graph(X)
    monkeypatch.setattr(self_expression, "EXACT_UP_TO", 200)
    monkeypatch.setattr(self_expression, "AMONG", 299)  # all: the same
    assert_allclose(self_graph(X).toarray(), exact.toarray(), atol=1e-9)
    monkeypatch.setattr(self_expression, "AMONG", 60)
    monkeypatch.setattr(self_expression, "DIRECTIONS", 25)  # of 30 columns
    links = self_graph(X)
    i, j = links.nonzero()
    assert np.all(np.diff(links.indptr) == 10)
    nearest = np.argsort(np.linalg.norm(X[:, None] - X, axis=2), axis=1)[:, 1:61]
    assert all(column in nearest[row] for row, column in zip(i, j, strict=True))
    assert np.mean(data.labels[i] == data.labels[j]) > 0.9


def test_on_a_device_it_finds_the_same_graph():
    pytest.importorskip("torch")
    for width in (5, 60):
        X = np.random.default_rng(0).normal(size=(40, width))
        there = self_graph(X, device="cpu").toarray()
        assert_allclose(there, self_graph(X).toarray(), atol=1e-10)


@pytest.mark.data
def test_faces_lie_in_subspaces():
    data = load_dataset("yale_images")
    model = SelfGraph(15, random_state=0).fit(data.views)
    assert clustering_scores(data.labels, model.labels_)["nmi"] > 0.75  # MeanGraph: .67
