import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from late_fusion import clouds, distances, shares, tied_views, unit
from numpy.testing import assert_allclose
from sklearn.neighbors import kneighbors_graph

from polyspan import MeanGraph
from polyspan.chunked.graph import mean_graph_rows
from polyspan.clustering.large import normalized_rows
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs import neighbors
from polyspan.methods.meangraph import neighbor_graph
from polyspan.metrics import clustering_scores
from polyspan.runtime.threads import Threads, bounds


def literal(X, k, weights):
    """Graph of a view by the definitions."""
    D = distances(unit(X))
    A, nearest = shares(D, k)
    if weights == "self_tuning":
        s = nearest[:, min(7, k) - 1]
        s[s == 0] = s[s > 0].mean()
        A = A * np.exp(-(D**2) / np.outer(s, s))
    return A


@pytest.mark.parametrize("weights", ["binary", "self_tuning"])
@pytest.mark.parametrize("k", [3, 7, 9])
def test_equals_the_definition(weights, k):
    views = tied_views()
    W = MeanGraph(2, n_neighbors=k, weights=weights, random_state=0).fit(views).affinity_matrix_
    As = [literal(X, k, weights) for X in views]
    assert_allclose(W.toarray(), sum(A + A.T for A in As) / 6, atol=1e-10)


@pytest.mark.parametrize("weights", ["binary", "self_tuning"])
def test_the_order_of_the_samples_does_not_matter(weights):
    views, order = tied_views(), np.random.default_rng(1).permutation(40)
    model = MeanGraph(2, weights=weights, random_state=0)
    W = model.fit(views).affinity_matrix_.toarray()
    shuffled = model.fit([X[order] for X in views]).affinity_matrix_.toarray()
    assert_allclose(shuffled, W[np.ix_(order, order)], atol=1e-10)


def test_one_view_without_ties_is_the_usual_graph():
    X = make_subspaces(60, 3, n_features=[8], noise=0.1, random_state=0).views[0]
    A = kneighbors_graph(unit(X), 10)
    W = MeanGraph(3, random_state=0).fit(X).affinity_matrix_
    assert_allclose(W.toarray(), ((A + A.T) / 2).toarray())


def test_seven_duplicates_have_the_width_of_the_others():
    X = np.vstack([np.ones((9, 2)), [[1.0, 2.0], [3.0, 1.0], [2.0, 5.0]]])
    A = neighbor_graph(X, 9, "self_tuning").toarray()
    assert_allclose(A[:9, :9], 1 - np.eye(9))
    assert np.all(A[9:, :9] > 0.01)
    same = np.vstack([np.ones((4, 2)), 2 * np.ones((4, 2))])
    assert_allclose(neighbor_graph(same, 2, "self_tuning").sum(axis=1), 2)


def test_samples_may_lack_views():
    views, truth = clouds()
    views[0][:20], views[1][30:50] = np.nan, np.nan
    for weights in ("binary", "self_tuning"):
        model = MeanGraph(3, weights=weights, random_state=0).fit(views)
        assert clustering_scores(truth, model.labels_)["acc"] == 1
        # Samples 0 to 19 have the links of the second view only, at full weight.
        A = neighbor_graph(unit(views[1]), 10, weights).toarray()
        W = model.affinity_matrix_.toarray()
        assert_allclose(W[:20, 50:], ((A + A.T) / 2)[:20, 50:], atol=1e-12)
        assert not W[:20, 30:50].any()


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_recovered(seed):
    views, truth = clouds(seed=seed)
    for weights in ("binary", "self_tuning"):
        labels = MeanGraph(3, weights=weights, random_state=0).fit_predict(views)
        assert clustering_scores(truth, labels)["acc"] == 1


@pytest.mark.slow
def test_no_matrix_is_n_by_n():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=8000)
    views = [(rng.normal(size=(3, d))[truth] + rng.normal(size=(8000, d)) / 4) for d in (4, 6)]
    tracemalloc.start()
    try:
        model = MeanGraph(3, n_init=2, random_state=0).fit(views)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sp.issparse(model.affinity_matrix_)
    assert clustering_scores(truth, model.labels_)["nmi"] > 0.9
    assert peak < 2**28  # 256 MiB; an n x n matrix has 488 MiB


def test_figures_of_published_data(data_dir):
    data = load_dataset("ngs")
    labels = MeanGraph(5, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["nmi"] == pytest.approx(0.932, abs=0.01)


@pytest.mark.parametrize(
    ("n", "k"), [(8, 7), (10_000, 10), (100_000, 12), (1_000_000, 13), (10**8, 16)]
)
def test_neighbors_grow_with_the_number_of_samples(n, k):
    assert MeanGraph()._links(n) == k
    assert MeanGraph(n_neighbors=6)._links(n) == 6


def planted(lacking, n=1200):
    """Views of four subspaces, of which samples lack some, in float32."""
    data = make_subspaces(n, 4, n_views=3, n_features=20, noise=0.1, outliers=0.05, random_state=0)
    gone = np.random.default_rng(0).random((n, 3)) < lacking
    gone[gone.all(axis=1), 0] = False
    pairs = zip(gone.T, data.views, strict=True)
    return [np.where(g[:, None], np.nan, X).astype(np.float32) for g, X in pairs], data.labels


@pytest.fixture
def large(monkeypatch):
    """The ways for many samples are used from 500 samples on."""
    monkeypatch.setattr(neighbors, "EXACT_BELOW", 500)
    monkeypatch.setattr(neighbors, "CELL", 150)
    monkeypatch.setattr("polyspan.base.outcome.LARGE", 500)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["binary", "self_tuning"])
@pytest.mark.parametrize("lacking", [0.0, 0.2])
def test_many_samples(large, weights, lacking):
    views, labels = planted(lacking)
    gone = np.isnan(np.column_stack([X[:, 0] for X in views]))
    model = MeanGraph(4, weights=weights, random_state=0).fit(views)
    assert clustering_scores(labels, model.labels_)["nmi"] > 0.97
    W = model.affinity_matrix_
    assert abs(W - W.T).max() < 1e-7
    both = (~gone).astype(float) @ (~gone).T.astype(float)
    assert np.all(both[W.nonzero()] > 0)


@pytest.mark.slow
@pytest.mark.parametrize("lacking", [0.0, 0.2])
@pytest.mark.parametrize(
    "given", [{}, {"weights": "self_tuning"}, {"scale": "standard+unit", "n_neighbors": 6}]
)
def test_files_have_the_labels_of_arrays(large, tmp_path, monkeypatch, lacking, given):
    views, labels = planted(lacking)
    monkeypatch.setattr("polyspan.methods.meangraph.CHUNK", 300)
    paths = [tmp_path / f"{i}.npy" for i in range(3)]
    for path, X in zip(paths, views, strict=True):
        np.save(path, X)
    model = MeanGraph(4, random_state=0, **given)
    wanted = model.fit(views).labels_
    assert clustering_scores(labels, wanted)["nmi"] > 0.95
    found = model.fit(paths)
    assert clustering_scores(wanted, found.labels_)["nmi"] == 1  # but for the numbers of clusters
    assert found.affinity_matrix_.shape == (1200, 1200)


@pytest.mark.parametrize("weights", ["binary", "self_tuning"])
@pytest.mark.parametrize("lacking", [0.0, 0.3])
def test_chunks_have_the_graph_of_arrays(weights, lacking):
    views, _ = planted(lacking, 90)
    W = MeanGraph(4, n_neighbors=5, weights=weights).fit(views).affinity_matrix_.toarray()
    spans = bounds(90, 40)
    with Threads(1) as workers:
        chunks = [[unit(X[a:b]).astype(np.float32) for X in views] for a, b in spans]
        rows = mean_graph_rows(workers, chunks, spans, 5, weights)
        blocks, found = normalized_rows(workers, list(rows), spans)
    # Distances in float32 have an error of about 1e-7, and their squares are divided by 0.03.
    assert_allclose(sp.vstack(rows).toarray(), W, atol=1e-5)
    root = 1 / np.sqrt(W.sum(axis=1))
    assert_allclose(sp.vstack(blocks).toarray(), root[:, None] * W * root, atol=1e-5)
    assert_allclose(found, root, atol=1e-5)


def test_files_that_say_nothing_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((30, 2)))
    with pytest.raises(ValueError, match="view 0 is constant"):
        MeanGraph(2).fit([tmp_path / "a.npy"])
    holes = np.ones((30, 2))
    holes[3, 1] = np.nan
    np.save(tmp_path / "b.npy", holes)
    with pytest.raises(ValueError, match="view 0 contains NaN in part of a sample"):
        MeanGraph(2).fit([tmp_path / "b.npy"])
    with pytest.raises(ValueError, match="cuts one 2-D array in memory"):
        MeanGraph(2, views=[[0], [1]]).fit([tmp_path / "b.npy"])
