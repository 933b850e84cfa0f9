import numpy as np
import pytest
import scipy.sparse as sp
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polyspan.graphs import proximity, ties

steady = examples(60)

# small whole numbers: exact distances, many ties, many duplicates
points = st.tuples(st.integers(2, 12), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-2, 2).map(float))
)


def distances(X):
    return np.linalg.norm(X[:, None, :] - X[None, :, :], axis=2)


def naive_mutual(D, k):
    """How much i and j are among the k nearest of each other; ties share the places left."""
    n = len(D)
    near = np.zeros((n, n))
    for i in range(n):
        others = np.delete(np.arange(n), i)
        last = np.sort(D[i, others])[k - 1]
        closer, tied = others[D[i, others] < last], others[D[i, others] == last]
        near[i, closer] = 1
        if len(tied) <= 3 * k or not len(closer):
            near[i, tied] = (k - len(closer)) / len(tied)
    return np.minimum(near, near.T)


def data(n=15, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@given(points)
@steady
def test_squared_distances_are_exact_on_whole_numbers(X):
    np.testing.assert_array_equal(proximity.squared_distances(X), np.rint(distances(X) ** 2))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_squared_distances(make):
    D2 = proximity.squared_distances(make(data()))
    # the Gram matrix loses digits of small distances: absolute, not relative
    np.testing.assert_allclose(D2, distances(data()) ** 2, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(D2, D2.T)


def test_equal_samples_are_at_distance_zero():
    X = np.repeat(data(5, 30) * 1e3, 3, axis=0)
    D2 = proximity.squared_distances(X)
    assert np.all(D2[np.kron(np.eye(5), np.ones((3, 3))) == 1] == 0)
    assert np.count_nonzero(D2) == 15 * 15 - 5 * 9


@given(points)
@steady
def test_median_is_numpys_over_pairs(X):
    n = len(X)
    D = distances(X)[np.triu_indices(n, 1)]
    found = proximity.median_distance(proximity.squared_distances(X))
    if np.median(D) > 0:
        assert found == pytest.approx(np.median(D), rel=1e-15)
    elif np.any(D > 0):  # more than half are duplicates: the median of the others
        assert found == pytest.approx(np.median(D[D > 0]), rel=1e-15)
    else:
        assert found == 1.0


@pytest.mark.parametrize("n", [2, 3, 4, 5, 10, 11])
def test_median_for_odd_and_even_numbers_of_pairs(n):
    D = distances(data(n))
    found = proximity.median_distance(proximity.squared_distances(data(n)))
    assert found == pytest.approx(np.median(D[np.triu_indices(n, 1)]), rel=1e-12)


def test_median_when_exactly_half_of_the_distances_are_zero():
    X = np.array([[0.0], [0.0], [0.0], [1.0]])  # three pairs at 0, three at 1
    assert proximity.median_distance(proximity.squared_distances(X)) == 0.5


def test_median_is_never_zero():
    mostly = np.array([[0.0]] * 8 + [[2.0]])
    assert proximity.median_distance(proximity.squared_distances(mostly)) == 2.0
    assert proximity.median_distance(np.zeros((4, 4))) == 1.0


@given(points, st.integers(1, 11))
@steady
def test_mutual_neighbors_with_ties(X, k):
    D2 = proximity.squared_distances(X)
    k = min(k, len(X) - 1)
    np.testing.assert_array_equal(proximity.mutual_neighbors(D2, k), naive_mutual(D2, k))


@pytest.mark.parametrize("crowd", [6, 7])
def test_a_crowd_is_left_out_unless_there_is_nobody_closer(crowd):
    D2 = np.full((crowd + 2, crowd + 2), 4.0)
    D2[0, 1] = D2[1, 0] = 1.0
    near = ties.neighbor_shares(D2, 2)
    assert near[0, 1] == 1
    np.testing.assert_array_equal(near[0, 2:], 1 / crowd if crowd <= 3 * 2 else 0)
    np.testing.assert_array_equal(near[2, [0, 1, 3]], 2 / (crowd + 1))  # nobody is closer


@pytest.mark.parametrize("k", [1, 3, 14])
def test_mutual_neighbors_without_ties(k):
    D = distances(data())
    np.testing.assert_array_equal(proximity.mutual_neighbors(D**2, k), naive_mutual(D, k))


def test_mutual_neighbors_leave_their_input():
    D2 = distances(data()) ** 2
    D2.setflags(write=False)
    assert not proximity.mutual_neighbors(D2, 3).diagonal().any()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_first_order(make):
    X, k = data(), 4
    D = distances(X)
    wanted = np.median(D[np.triu_indices(15, 1)])
    Lambda, sigma = proximity.first_order(make(X), k)
    # Distances are rounded to eleven digits, so that ties are ties on every machine.
    assert sigma == pytest.approx(wanted, rel=1e-10)
    S = np.exp(-((D / wanted) ** 2)) * naive_mutual(D, k)
    np.testing.assert_allclose(Lambda, S, rtol=1e-9)


@pytest.mark.parametrize("sigma", [None, 0.7])
def test_second_order(sigma):
    Lambda, _ = proximity.first_order(data(), 4)
    D = distances(Lambda.T)
    width = np.median(D[np.triu_indices(15, 1)]) if sigma is None else sigma
    wanted = np.exp(-((D / width) ** 2))
    np.testing.assert_allclose(proximity.second_order(Lambda, sigma), wanted, rtol=1e-12)


@given(points)
@steady
def test_graphs_are_symmetric_similarities(X):
    k = min(3, len(X) - 1)
    Lambda, sigma = proximity.first_order(X, k)
    Upsilon = proximity.second_order(Lambda)
    both = proximity.consistent([Lambda, proximity.first_order(X[:, :1], k)[0]])
    assert sigma > 0
    for graph in (Lambda, Upsilon, both):
        np.testing.assert_array_equal(graph, graph.T)
        assert graph.min() >= 0
        assert graph.max() <= 1
    assert not Lambda.diagonal().any()
    assert not both.diagonal().any()


def test_consistent_is_the_product():
    one, two = proximity.first_order(data(), 8)[0], proximity.first_order(data(seed=1), 8)[0]
    three = proximity.first_order(data(seed=2), 8)[0]
    wanted = np.zeros((15, 15))
    for i in range(15):
        for j in range(15):
            wanted[i, j] = one[i, j] * two[i, j] * three[i, j]
    np.testing.assert_allclose(proximity.consistent([one, two, three]), wanted, rtol=1e-15)
    np.testing.assert_array_equal(proximity.consistent([one]), one)
    assert wanted.any()


def test_gaussian_does_not_overflow():
    found = proximity.gaussian(np.array([[0.0, 1e200], [1e200, 0.0]]), 1e-100)
    np.testing.assert_array_equal(found, np.eye(2))
    # and the limit it uses is beyond the last number above zero
    D2 = np.linspace(0, 999, 50)
    np.testing.assert_array_equal(proximity.gaussian(D2, 1.0), np.exp(-D2))


def test_median_kernel_is_one_over_root_e_at_the_median():
    X = np.array([[0.0], [1.0], [3.0]])  # median distance 2
    np.testing.assert_allclose(
        proximity.median_kernel(X), np.exp(-((X - X.T) ** 2) / 8), rtol=1e-14
    )
    wide = proximity.median_kernel(X, 3.0)
    np.testing.assert_allclose(wide, np.exp(-((X - X.T) ** 2) / 72), rtol=1e-14)
    np.testing.assert_array_equal(wide, proximity.median_kernel(sp.csr_array(X), 3.0))


def test_laplacian():
    W = np.abs(data(9, 9))
    W = W + W.T
    L = proximity.laplacian(W)
    off = ~np.eye(9, dtype=bool)
    np.testing.assert_array_equal(L[off], -W[off])
    np.testing.assert_allclose(L.sum(1), 0, atol=1e-13)
    assert np.linalg.eigvalsh(L)[0] > -1e-12  # positive semi-definite
    x = data(9, 1)[:, 0]
    smooth = sum(W[i, j] * (x[i] - x[j]) ** 2 for i in range(9) for j in range(9)) / 2
    assert x @ L @ x == pytest.approx(smooth, rel=1e-12)


def test_the_diagonal_of_the_weights_does_not_matter():
    W = np.abs(data(6, 6))
    W = W + W.T
    bare = W - np.diag(W.diagonal())
    np.testing.assert_allclose(proximity.laplacian(W), proximity.laplacian(bare), atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtype_is_kept(dtype):
    Lambda, _ = proximity.first_order(data().astype(dtype), 4)
    Upsilon = proximity.second_order(Lambda)
    graph = proximity.laplacian(proximity.consistent([Lambda, Lambda]) + Upsilon)
    assert Lambda.dtype == Upsilon.dtype == graph.dtype == dtype


def test_ties_do_not_depend_on_rounding():
    # 0/1 features, z-scored: many distances are equal but for rounding
    X = (np.random.default_rng(0).uniform(size=(60, 300)) < 0.1).astype(float)
    Z = (X - X.mean(1, keepdims=True)) / X.std(1, keepdims=True)
    order = np.random.default_rng(1).permutation(300)
    one, two = (proximity.squared_distances(z, rounded=True) for z in (Z, Z[:, order]))
    apart = proximity.squared_distances(Z) != proximity.squared_distances(Z[:, order])
    assert np.mean(apart) > 0.5
    assert np.mean(one != two) < 0.002  # only where the distance is between two grid points
    np.testing.assert_array_equal(one, one.T)
    # eleven digits of the squared lengths, 300 each
    np.testing.assert_allclose(one, distances(Z) ** 2, rtol=0, atol=600 * 1e-11)


def test_ties_of_samples_that_are_zero():
    D2 = proximity.squared_distances(np.array([[0.0], [0.0], [2.0]]), rounded=True)
    np.testing.assert_array_equal(D2, [[0, 0, 4], [0, 0, 4], [4, 4, 0]])


def test_nearest_repeats_the_last_when_there_are_too_few():
    order, d = proximity.nearest(np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]]), 4)
    np.testing.assert_array_equal(order, [[1, 2, 2, 2], [0, 2, 2, 2], [1, 0, 0, 0]])
    np.testing.assert_array_equal(d, [[1, 4, 4, 4], [1, 1, 1, 1], [1, 4, 4, 4]])


@pytest.mark.parametrize("k", [1, 3, 13, 14])
def test_adaptive_neighbors(k):
    D2 = distances(data()) ** 2
    S = proximity.adaptive_neighbors(data(), k)
    for i in range(15):
        near = np.argsort(D2[i])[1:]
        d = D2[i, near]
        beyond = d[min(k, 13)]  # of 14 others the last is its own next one
        wanted = np.zeros(15)
        wanted[near[:k]] = (beyond - d[:k]) / (k * beyond - d[:k].sum())
        np.testing.assert_allclose(S[i], wanted, atol=1e-12)


def test_adaptive_neighbors_equally_far_share():
    S = proximity.adaptive_neighbors(np.eye(5), 2)  # all are at the same distance
    np.testing.assert_allclose(S, (1 - np.eye(5)) / 4, rtol=0, atol=1e-15)


def test_adaptive_neighbors_tied_with_the_next_have_no_weight():
    x = np.array([[0.0], [1.0], [2.0], [-2.0], [9.0]])
    np.testing.assert_array_equal(proximity.adaptive_neighbors(x, 2)[0], [0, 1, 0, 0, 0])


def test_stable_ranks_go_by_row_numbers():
    D2 = 1.0 - np.eye(4)
    members, following = proximity.stable_ranks(D2, 2)
    np.testing.assert_array_equal(members[3], [True, True, False, False])
    # Row 0 begins with itself, row 3 with row 3: 0 sorts first.
    np.testing.assert_array_equal(members[0], [False, True, True, False])
    np.testing.assert_array_equal(following[0], [False, False, False, True])


def pieces(n, link=0.0):
    """Graph of n triangles in a row, with links of a given weight; not symmetric."""
    W = np.kron(np.eye(n), 1 - np.eye(3))
    for k in range(n - 1):
        W[3 * k, 3 * k + 3] = 2 * link
    return W


@pytest.mark.parametrize(("c", "factor"), [(2, 0.5), (3, 1.0), (4, 2.0)])
def test_rank_step(c, factor):
    F = np.random.default_rng(0).normal(size=(9, c))
    found, times, low = proximity.rank_step(pieces(3), F)
    assert times == factor
    assert low == pytest.approx(3.0 if c == 4 else 0.0, abs=1e-14)  # a triangle has 0, 3, 3
    if factor == 0.5:
        assert found is F
    else:
        L = proximity.laplacian(pieces(3))
        np.testing.assert_allclose(found.T @ found, np.eye(c), atol=1e-14)
        assert np.trace(found.T @ L @ found) == pytest.approx(low, abs=1e-13)


def test_rank_step_counts_weak_links():
    F = np.ones((9, 3))
    for link, tol, factor in [(1e-3, 1e-10, 2.0), (1e-12, 1e-10, 1.0), (1e-3, 1e-2, 1.0)]:
        assert proximity.rank_step(pieces(3, link), F, tol)[1] == factor


def test_rank_step_with_as_many_components_as_samples():
    F, factor, low = proximity.rank_step(np.eye(4), np.ones((4, 4)))
    assert (factor, low) == (1.0, 0.0)
    assert F.shape == (4, 4)


def test_normalized_weights_have_largest_eigenvalue_one():
    W = np.random.default_rng(0).uniform(size=(9, 9))
    W = W + W.T
    W[4, :] = W[:, 4] = 0  # without weights: stays so
    N = proximity.normalized(W)
    degrees = W.sum(axis=1)
    np.testing.assert_allclose(N @ np.sqrt(degrees), np.sqrt(degrees), rtol=0, atol=1e-14)
    assert N[0, 1] == pytest.approx(W[0, 1] / np.sqrt(degrees[0] * degrees[1]), abs=1e-15)
    assert not N[4].any()
    assert np.linalg.eigvalsh(N)[-1] == pytest.approx(1, abs=1e-14)
