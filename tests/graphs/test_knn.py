import numpy as np
import pytest
import scipy.sparse as sp
from cases import case
from late_fusion import distances, shares, tied_views
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import kneighbors_graph

from polyspan.graphs import knn
from polyspan.graphs.knn import diffused, local_kernel, mean_of_graphs, nearest_neighbors


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
    monkeypatch.setattr(knn, "BLOCK", block)
    for form in (np.asarray, sp.csr_array):
        found = nearest_neighbors(form(X), 5)
        assert_array_equal(found.shares.toarray(), wanted.shares.toarray())
        assert_allclose(found.squares, wanted.squares, atol=1e-12)


def test_rows_of_nan_have_no_neighbours():
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


def test_more_neighbours_than_others_are_all_of_them():
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
    with pytest.raises(MemoryError, match=r"^A sample has 29 neighbours at equal distances"):
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
