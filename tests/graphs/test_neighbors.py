import numpy as np
import pytest
import scipy.sparse as sp

from polyspan.chunked.workers import Threads, bounds
from polyspan.graphs import neighbors as module
from polyspan.graphs.neighbors import cell_centers, cell_tree, nearest_cells, neighbors, recall
from polyspan.graphs.proximity import first_order, median_distance, squared_distances
from polyspan.methods.anchor_grmsc.sparse_laplacian import sparse_graph


def search(X, k, size=60, threads=1, **changed):
    """Neighbors of all samples, and the cells."""
    spans = bounds(X.shape[0], size)
    chunks = [[X[a:b]] for a, b in spans]
    with Threads(threads) as workers:
        found, cells = neighbors(workers, chunks, spans, 0, k, X)
        queries = np.arange(0, X.shape[0], 3)
        measured = recall(workers, chunks, spans, 0, k, found, queries)
    ids, squares = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    return ids, squares, cells, measured


def brute(X, k):
    D2 = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(D2, np.inf)
    order = np.argsort(D2, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(D2, order, axis=1)


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(250, 4))


def test_exact(points):
    ids, squares, cells, measured = search(points, 6)
    wanted_ids, wanted_squares = brute(points, 6)
    np.testing.assert_array_equal(ids, wanted_ids)
    np.testing.assert_allclose(squares, wanted_squares, rtol=1e-9)
    assert cells is None
    assert measured == 1.0


def test_sparse_samples(points):
    points = np.where(points > 0.5, points, 0)
    points[:, 0] = np.arange(250) ** 0.5  # no ties
    _, squares, *_ = search(sp.csr_array(points), 6)
    np.testing.assert_allclose(squares, brute(points, 6)[1], atol=1e-9)


@pytest.mark.parametrize("k", [1, 5, 30])
def test_where_every_pair_is_compared_ties_share_the_places(k):
    X = np.random.default_rng(0).integers(0, 3, size=(90, 3)).astype(float)  # 27 different ones
    D2 = squared_distances(X)
    with Threads(1) as workers:
        chunks, spans = [[X[:40]], [X[40:]]], [(0, 40), (40, 90)]
        found, _ = neighbors(workers, chunks, spans, 0, k, X)
        graph = sparse_graph(found, median_distance(D2))
    np.testing.assert_allclose(graph.Lambda.toarray(), first_order(X, k)[0], rtol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
def test_all_cells_are_exact(points, monkeypatch, threads):
    monkeypatch.setattr(module, "EXACT_BELOW", 0)
    monkeypatch.setattr(module, "CELL", 25)
    monkeypatch.setattr(module, "PROBES", 10)
    ids, _, cells, measured = search(points, 6, threads=threads)
    np.testing.assert_array_equal(ids, brute(points, 6)[0])
    assert cells[0].shape == (60, 10)
    assert measured == 1.0


def test_few_cells_find_most_and_the_recall_says_how_many(points, monkeypatch):
    monkeypatch.setattr(module, "EXACT_BELOW", 0)
    monkeypatch.setattr(module, "CELL", 25)
    monkeypatch.setattr(module, "PROBES", 2)
    ids, _, _, measured = search(points, 6)
    true = brute(points, 6)[0]
    hits = [np.isin(a, b).mean() for a, b in zip(true, ids, strict=True)]
    assert 0.5 < np.mean(hits) < 1
    assert measured == pytest.approx(np.mean(hits[::3]), abs=1e-12)
    assert not np.any(ids == np.arange(250)[:, None])  # nobody is its own neighbor


def test_cells_with_too_few_samples(monkeypatch):
    monkeypatch.setattr(module, "EXACT_BELOW", 0)
    monkeypatch.setattr(module, "CELL", 2)
    monkeypatch.setattr(module, "PROBES", 1)
    X = np.repeat(np.arange(10.0), 2)[:, None]
    ids, squares, *_ = search(X, 3)
    assert set(ids[:, 2]) == {-1}
    assert np.all(np.isinf(squares[ids == -1]))


def test_near_centers_have_near_numbers():
    X = np.random.default_rng(0).uniform(size=(900, 2))
    centers = cell_centers(X, 100, 0)
    steps = np.linalg.norm(np.diff(centers, axis=0), axis=1)
    shuffled = np.linalg.norm(
        np.diff(np.random.default_rng(1).permutation(centers), axis=0), axis=1
    )
    assert steps.mean() < 0.6 * shuffled.mean()


def test_cells_among_many_centers_are_searched_around_a_root(monkeypatch):
    rng = np.random.default_rng(0)
    X, centers = rng.uniform(size=(500, 2)), cell_centers(rng.uniform(size=(2000, 2)), 225, 0)
    flat = nearest_cells(X, cell_tree(centers), 4)
    D2 = ((X[:, None] - centers) ** 2).sum(axis=2)
    np.testing.assert_array_equal(flat, np.argsort(D2, axis=1)[:, :4])
    monkeypatch.setattr(module, "FLAT", 100)
    tree = cell_tree(centers)
    assert tree.roots.shape == (15, 2)
    assert tree.around.shape == (15, 90)
    found = nearest_cells(X, tree, 4)
    # In the plane, 6 times the centers of a root hold nearly all that are near to its samples.
    assert np.mean(found[:, 0] == flat[:, 0]) > 0.99
    assert np.mean([np.isin(a, b).mean() for a, b in zip(flat, found, strict=True)]) > 0.99
    monkeypatch.setattr(module, "AROUND", 15)
    np.testing.assert_array_equal(nearest_cells(X, cell_tree(centers), 4), flat)


def test_duplicates_are_neighbors():
    X = np.repeat(np.eye(4), 3, axis=0)
    ids, squares, *_ = search(X, 2)
    assert np.all(squares == 0)
    assert np.all(ids // 3 == np.arange(12)[:, None] // 3)
    assert not np.any(ids == np.arange(12)[:, None])
