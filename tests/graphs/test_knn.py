import numpy as np
import pytest
import scipy.sparse as sp
from cases import case
from late_fusion import distances, shares, tied_views
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import kneighbors_graph

from polyspan.graphs import knn, neighbors, ties
from polyspan.graphs.knn import diffused, local_kernel, mean_of_graphs, nearest_neighbors
from polyspan.runtime.cache import sharing
from polyspan.runtime.threads import Threads


def normal(n=50, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_without_ties_it_is_the_usual_graph():
    X = normal()
    near = nearest_neighbors(X, 4)
    assert_array_equal(near.shares.toarray(), kneighbors_graph(X, 4).toarray())
    D = distances(X)
    assert_allclose(near.squares, D[near.rows, near.shares.indices] ** 2, rtol=1e-12)
    assert_allclose(near.nearest, np.sort(D, axis=1)[:, 1:5] ** 2, rtol=1e-12)
    assert_allclose(near.mean_distances, np.sort(D, axis=1)[:, 1:5].mean(axis=1), rtol=1e-12)
    assert_allclose(near.graph(2 * near.squares).data, 2 * near.squares)


@pytest.mark.parametrize("k", [1, 2, 5, 12, 39])
def test_ties_share_the_last_places(k):
    views = tied_views()
    for number, X in enumerate(
        [*views, 0.1 * views[0], 0.1 * views[1] + 0.7]
    ):  # ties but for rounding
        wanted, nearest = shares(distances(X), k)
        for form in (np.asarray, sp.csr_array):
            with case(f"view {number}, {form.__name__}"):
                near = nearest_neighbors(form(X), k)
                assert_allclose(near.shares.toarray(), wanted, atol=1e-14)
                assert_allclose(np.sqrt(near.nearest), nearest, atol=1e-7)


def test_a_crowd_is_left_out_unless_there_is_nobody_else():
    corners = np.eye(20)  # all equally far
    near = nearest_neighbors(corners, 2)
    assert_allclose(near.shares.toarray(), (2 / 19) * (1 - np.eye(20)))
    closer = np.vstack([corners, corners[:1] * 1.1])
    near = nearest_neighbors(closer, 2)
    assert_array_equal(np.flatnonzero(near.shares.toarray()[0]), [20])  # 19 are tied for one place
    near = nearest_neighbors(closer, 7)
    assert_allclose(near.shares.toarray()[0, 1:20], 6 / 19)  # three times 7 may be tied


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_order_of_the_samples_does_not_matter(dtype):
    order = np.random.default_rng(1).permutation(40)
    for number, X in enumerate(tied_views()):
        X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(dtype)
        with case(f"view {number}"):
            A = nearest_neighbors(X, 6).shares.toarray()
            B = nearest_neighbors(X[order], 6).shares.toarray()
            assert_allclose(B, A[np.ix_(order, order)], atol=1e-12)


@pytest.mark.parametrize("block", [1, 130, 10_000])
def test_blocks_change_nothing(block, monkeypatch):
    X = tied_views()[0]
    wanted = nearest_neighbors(X, 5)
    monkeypatch.setattr(ties, "BLOCK", block)
    for form in (np.asarray, sp.csr_array):
        found = nearest_neighbors(form(X), 5)
        assert_array_equal(found.shares.toarray(), wanted.shares.toarray())
        assert_allclose(found.squares, wanted.squares, atol=1e-12)


def test_rows_of_nan_have_no_neighbors():
    X = normal()
    X[[0, 7]] = np.nan
    there = np.delete(np.arange(50), [0, 7])
    near, wanted = nearest_neighbors(X, 4), nearest_neighbors(X[there], 4)
    A = near.shares.toarray()
    assert_array_equal(A[np.ix_(there, there)], wanted.shares.toarray())
    assert not A[[0, 7]].any()
    assert not A[:, [0, 7]].any()
    assert_array_equal(near.squares, wanted.squares)
    assert_array_equal(near.nearest[there], wanted.nearest)
    assert np.isinf(near.nearest[[0, 7]]).all()


def test_more_neighbors_than_others_are_all_of_them():
    X = normal(n=5)
    X[0] = np.nan
    near = nearest_neighbors(X, 10)
    assert near.nearest.shape == (5, 3)
    assert near.shares.nnz == 12


def test_equal_samples_are_at_distance_zero():
    X = np.repeat(normal(n=20, d=300) * 1e3 + 5e3, 2, axis=0)
    near = nearest_neighbors(X, 1)
    assert_array_equal(near.squares, 0)
    assert_array_equal(near.shares.indices, np.arange(40) ^ 1)


def test_too_many_ties_for_the_memory(monkeypatch):
    monkeypatch.setattr(knn, "available_memory", lambda: 2**14)
    nearest_neighbors(normal(n=30), 2)
    with pytest.raises(MemoryError, match=r"^A sample has 29 neighbors at equal distances"):
        nearest_neighbors(np.eye(30), 2)


def test_the_mean_is_over_the_views_that_both_have():
    Xs = [normal(n=12, seed=1), normal(n=12, seed=2), normal(n=12, seed=3)]
    Xs[0][:4], Xs[1][3:6] = np.nan, np.nan
    As = [nearest_neighbors(X, 3).shares for X in Xs]
    W = mean_of_graphs(As, Xs).toarray()
    for i in range(12):
        for j in range(12):
            both = [v for v in range(3) if not np.isnan([Xs[v][i, 0], Xs[v][j, 0]]).any()]
            wanted = np.mean([(As[v][i, j] + As[v][j, i]) / 2 for v in both])
            assert W[i, j] == pytest.approx(wanted, abs=1e-15)


def test_the_kernel_is_as_wide_as_distances_are_there():
    D2, sums = np.array([1.0, 4.0, 0.0]), np.array([2.0, 4.0, 3.0])
    wanted = np.exp(-D2 / (2 * (0.3 * (sums + np.sqrt(D2)) / 3) ** 2))
    assert_allclose(local_kernel(D2, sums, 0.3), wanted, rtol=1e-15)


@pytest.mark.parametrize("n", [3, 32, 33, 100])
def test_diffusion(n):
    rng = np.random.default_rng(0)
    S = sp.random_array((n, n), density=0.2, format="csr", rng=rng)
    A = rng.normal(size=(n, n))
    A = A + A.T
    found = diffused(S, A)
    assert_allclose(found, S.toarray() @ A @ S.toarray().T, atol=1e-12)
    assert_allclose(found, found.T, atol=1e-12)


@pytest.fixture
def few(monkeypatch):
    """Cells of about 100 samples are searched from 500 samples on."""
    monkeypatch.setattr(neighbors, "EXACT_BELOW", 500)
    monkeypatch.setattr(neighbors, "CELL", 100)
    monkeypatch.setattr(neighbors, "ROWS", 300)


def flat(n=1000):
    """Points near a plane, as data are: cells work there."""
    return normal(n, 2) @ normal(2, 6, seed=1) + 0.01 * normal(n, 6, seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_among_many_samples_most_neighbors_are_found(few, form):
    X = flat()
    near, exact = nearest_neighbors(form(X), 8), kneighbors_graph(X, 8)
    assert near.shares.multiply(exact).sum() > 0.97 * exact.sum()
    assert_array_equal(np.diff(near.shares.indptr), 8)
    D = distances(X)
    assert_allclose(near.squares, D[near.rows, near.shares.indices] ** 2, rtol=1e-9)
    assert_allclose(np.sort(near.squares.reshape(-1, 8), axis=1), near.nearest)
    assert near.shares.has_sorted_indices


def test_many_samples_have_the_same_neighbors_on_any_number_of_threads(few, monkeypatch):
    X = flat().astype(np.float32)
    found = []
    for threads in (1, 2, 3):
        monkeypatch.setattr(neighbors, "Threads", lambda threads=threads: Threads(threads))
        found.append(nearest_neighbors(X, 8))
    for other in found[1:]:
        assert_array_equal(other.shares.indices, found[0].shares.indices)
        assert_array_equal(other.squares, found[0].squares)
    assert found[0].squares.dtype == np.float32


def test_of_many_samples_those_without_the_view_are_left_out(few):
    X, gone = flat(), np.arange(1000) % 7 == 0
    holes = np.where(gone[:, None], np.nan, X)
    near, present = nearest_neighbors(holes, 8), nearest_neighbors(X[~gone], 8)
    assert_array_equal(near.shares.toarray()[np.ix_(~gone, ~gone)], present.shares.toarray())
    assert near.shares[gone].nnz == near.shares[:, gone].nnz == 0
    assert_array_equal(near.nearest[~gone], present.nearest)
    assert np.all(np.isinf(near.nearest[gone]))


@pytest.mark.slow
def test_on_a_device_all_neighbors_are_found(few, monkeypatch):
    pytest.importorskip("torch")
    X = flat()
    near, exact = nearest_neighbors(X, 8, device="cpu"), kneighbors_graph(X, 8)
    assert_array_equal(near.shares.toarray(), exact.toarray())
    assert_allclose(np.sort(near.squares.reshape(-1, 8), axis=1), near.nearest)
    monkeypatch.setattr(neighbors, "DEVICE_BLOCK", 300_000)  # in blocks of 300 rows
    assert_array_equal(nearest_neighbors(X, 8, device="cpu").nearest, near.nearest)


def test_on_a_device_the_same_cells_are_searched(few, monkeypatch):
    pytest.importorskip("torch")
    X = flat()
    monkeypatch.setattr(neighbors, "DEVICE_EXACT", 999)
    monkeypatch.setattr(neighbors, "PROBES", 2)
    monkeypatch.setattr(neighbors, "DEVICE_BLOCK", 5_000)  # some rows of a cell at a time
    cells, there = nearest_neighbors(X, 8), nearest_neighbors(X, 8, device="cpu")
    assert_array_equal(there.shares.toarray(), cells.shares.toarray())
    # Differences of squared lengths, about 10, are rounded in float32 on the device only.
    assert_allclose(there.nearest, cells.nearest, rtol=0, atol=1e-5)
    assert np.any(cells.shares.toarray() != kneighbors_graph(X, 8).toarray())


def test_the_mean_over_the_views_that_both_have_is_taken_row_block_by_row_block(monkeypatch):
    Xs = [np.where(normal(40, 1, seed=v) > 1, np.nan, normal(40, 3, seed=v)) for v in range(3)]
    graphs = [nearest_neighbors(X, 5).shares for X in Xs]
    whole = mean_of_graphs(graphs, Xs)
    monkeypatch.setattr(knn, "ROWS", 7)
    assert_array_equal(mean_of_graphs(graphs, Xs).toarray(), whole.toarray())
    there = np.array([~np.isnan(X[:, 0]) for X in Xs]).astype(float)
    total = sum(graphs).toarray()
    wanted = (total + total.T) / 2 / np.maximum(there.T @ there, 1)
    assert_allclose(whole.toarray(), wanted, rtol=1e-12)


@pytest.mark.parametrize("kind", ["plain", "counts", "duplicates", "crowded", "holes", "sparse"])
def test_inside_sharing_one_search_serves_smaller_numbers(kind, monkeypatch):
    X = normal(60, 3)
    if kind == "counts":
        X = np.round(X)
    if kind == "duplicates":
        X[:30] = X[0]
    if kind == "crowded":  # all others but two are equally far: too many to be neighbors
        X = np.eye(200)
        X[1], X[2] = 0.9 * X[0], 0.8 * X[0]
    if kind == "holes":
        X[::7] = np.nan
    if kind == "sparse":
        X = sp.csr_array(np.maximum(np.round(X), 0))
    alone = {k: nearest_neighbors(X, k) for k in (1, 4, 10, 20, 30)}
    searched, search = [], knn._among
    monkeypatch.setattr(knn, "_among", lambda *args: searched.append(1) or search(*args))
    with sharing():
        for k, wanted in alone.items():
            found = nearest_neighbors(X, k)
            assert_array_equal(found.shares.toarray(), wanted.shares.toarray())
            assert_array_equal(found.shares.indices, wanted.shares.indices)
            assert_array_equal(found.squares, wanted.squares)
            assert_array_equal(found.nearest, wanted.nearest)
    assert len(searched) == 2  # for 20, and for 30
