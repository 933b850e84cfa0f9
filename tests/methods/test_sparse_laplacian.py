import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from polyspan.chunked.workers import Threads, bounds
from polyspan.graphs import proximity
from polyspan.graphs.neighbors import neighbors
from polyspan.methods.anchor_grmsc import sparse_laplacian
from polyspan.methods.anchor_grmsc.sparse_laplacian import (
    assemble,
    dense_graph,
    move_laplacian,
    product,
    solve,
    sparse_graph,
    sparse_rows,
)
from polyspan.methods.grmsc import graph_laplacian


def some_views(n=90, seed=0):
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(n, 3))
    return [basis @ rng.normal(size=(3, d)) + 0.2 * rng.normal(size=(n, d)) for d in (8, 5, 6)]


def make(views, k, alpha, second_width="own", step=37, order=None, sparse=False):
    """The Laplacian of some views, its rows made in blocks."""
    n = len(views[0])
    if sparse:
        with Threads(1) as workers:
            lists = [neighbors(workers, [views], [(0, n)], i, k, X)[0] for i, X in enumerate(views)]
        rank = None if order is None else np.argsort(order)
        sigmas = [proximity.median_distance(proximity.squared_distances(X)) for X in views]
        found = [sparse_graph(a, s, second_width, rank) for a, s in zip(lists, sigmas, strict=True)]
    else:
        found = [dense_graph(X, k, second_width) for X in views]
    blocks = [sparse_rows(span, found, alpha) for span in bounds(n, step)]
    return assemble(blocks, found, alpha, order)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("second_width", ["own", "first"])
@pytest.mark.parametrize("alpha", [0.0, 1e-3, 0.5])
def test_equals_the_dense_laplacian(alpha, second_width, sparse):
    views = some_views()
    L = make(views, 7, alpha, second_width, sparse=sparse)
    wanted = graph_laplacian(views, 7, alpha=alpha, second_width=second_width)
    # the neighbors' distances come from another routine: rounding of squares
    assert_allclose(product(L, np.eye(90)), wanted, rtol=0, atol=1e-9)


def test_the_sparse_part_has_entries_only_where_neighbors_are_shared():
    views = some_views()
    found = [dense_graph(X, 4) for X in views]
    S = sparse_rows((0, 90), found, 0.1)
    two_hops = sum((abs(g.Lambda) @ abs(g.Lambda) + abs(g.Lambda)).toarray() for g in found)
    assert np.all(two_hops[S.toarray() != 0] > 0)
    assert 0 < S.nnz < 90 * 90 / 2


def test_reordered_samples_are_the_same_graph():
    views = some_views()
    order = np.random.default_rng(1).permutation(90)
    L = make(views, 7, 0.1, order=order, sparse=True)
    wanted = graph_laplacian(views, 7, alpha=0.1)[np.ix_(order, order)]
    assert_allclose(product(L, np.eye(90)), wanted, rtol=0, atol=1e-9)


def test_wide_exponents_neither_overflow_nor_vanish():
    # columns of length 30 over a width of 1: u_i alone is exp(-900), their product with the shared
    # part is not
    Lambda = sp.csr_array(30 * (np.ones((3, 3)) - np.eye(3)))
    graph = sparse_laplacian.Graph(Lambda, np.full(3, 1800.0), 1.0)
    S = sparse_rows((0, 3), [graph, graph._replace(Lambda=sp.csr_array((3, 3)))], 1.0).toarray()
    wanted = np.exp(-((Lambda.toarray()[0] - Lambda.toarray()[1]) ** 2).sum())
    assert S[0, 1] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("order", [False, True])
@pytest.mark.parametrize("weight", [0.0, 1e-3, 2.0, 1e4])
def test_solves_every_column(weight, order):
    rng = np.random.default_rng(0)
    views = some_views()
    moved = rng.permutation(90) if order else None
    L = make(views, 7, 0.01, order=moved, sparse=True)
    dense = graph_laplacian(views, 7, alpha=0.01)
    Z, F = rng.normal(size=(2, 90, 4))
    shift = np.array([1e-4, 0.1, 7.0, 1e5])
    X, iterations = solve(L, [Z[:50], Z[50:]], [F[:50], F[50:]], weight, shift, 1e-12)
    for i, s in enumerate(shift):
        wanted = np.linalg.solve(
            s * np.eye(90) + weight * dense, F[:, i] - weight * dense @ Z[:, i]
        )
        # the dense solver loses nine digits where weight / shift is 1e8
        assert_allclose(X[:, i], wanted, rtol=0, atol=1e-6 * np.abs(wanted).max())
    assert iterations <= 120


def test_a_solved_system_costs_one_product():
    L = make(some_views(), 7, 0.01)
    Z = np.random.default_rng(0).normal(size=(90, 2))
    X, iterations = solve(L, [Z], [2.0 * product(L, Z)], 2.0, np.array([0.1, 1.0]), 1e-6)
    assert iterations == 1
    assert_allclose(X, 0, atol=1e-12)


def test_stops_at_max_iter(monkeypatch):
    monkeypatch.setattr(sparse_laplacian, "GROUP", 1)  # no group is solved for exactly
    L = make(some_views(), 7, 0.0)
    F = np.random.default_rng(0).normal(size=(90, 1))
    assert solve(L, [0 * F], [F], 1.0, np.array([1e-6]), 1e-14, max_iter=5)[1] == 5


def test_float32_stays_float32():
    found = [dense_graph(X, 5) for X in some_views()]
    L = assemble([sparse_rows((0, 90), found, 0.1)], found, 0.1, dtype=np.float32)
    Z = np.ones((90, 2), dtype=np.float32)
    X, _ = solve(L, [Z], [Z], 1.0, np.array([1.0, 2.0]), 1e-4)
    assert X.dtype == np.float32
    # constant right-hand sides: L maps constants to zero
    assert_allclose(X, np.tile([1.0, 0.5], (90, 1)), rtol=1e-5)


def test_groups_are_the_small_components_of_the_consistent_graph(monkeypatch):
    monkeypatch.setattr(sparse_laplacian, "GROUP", 7)
    views = some_views()
    L = make(views, 7, 0.01, step=37)
    inside = np.prod([dense_graph(X, 7).Lambda.toarray() > 0 for X in views], axis=0)
    _, component = sp.csgraph.connected_components(sp.csr_array(inside), directed=False)
    sizes = np.bincount(component)
    assert sizes.max() > 7
    assert {2, 7} < set(sizes)  # one is just small enough
    members, V, _, w = L.groups
    small = (sizes[component] > 1) & (sizes[component] <= 7)
    assert set(members) == set(np.flatnonzero(small))
    # D - S between members of the same group, nothing between groups
    dense = product(L, np.eye(90)) + L.U @ L.U.T
    wanted = dense[np.ix_(members, members)]
    wanted *= component[members][:, None] == component[members]
    assert_allclose(V @ np.diag(w) @ V.T, wanted, atol=1e-12)


def test_groups_that_move_as_one_need_few_products():
    # Pairs linked by weights of 1, and to all others by about 1e-2: the diagonal cannot see them.
    n, rng = 400, np.random.default_rng(0)
    S = sp.csr_array(sp.kron(sp.eye(n // 2), [[0.0, 1.0], [1.0, 0.0]]))
    U = np.sqrt(1e-2 * rng.uniform(0.3, 2, n) / n)[:, None]
    degrees = S.sum(axis=1) + (U @ U.sum(axis=0))
    groups = sparse_laplacian._groups(S, [S], degrees, float)
    L = sparse_laplacian.Laplacian([S], U, degrees, None, groups)
    Z, F = rng.normal(size=(n, 2)), rng.normal(size=(n, 2))
    shift = np.array([1e-6, 1e-5])
    X, few = solve(L, [Z], [F], 1.0, shift, 1e-10)
    assert_allclose(shift * X + product(L, Z + X), F, atol=1e-8)  # 1e-10 of a residual of 20
    none = sparse_laplacian._groups(sp.csr_array((n, n)), [S], degrees, float)
    X, many = solve(L._replace(groups=none), [Z], [F], 1.0, shift, 1e-10)
    assert_allclose(shift * X + product(L, Z + X), F, atol=1e-8)
    assert few <= 5 < 40 < many  # all eigenvalues but one are 1, against a wide spread


def test_on_a_device_reordered_samples_have_the_same_solutions():
    torch, rng = pytest.importorskip("torch"), np.random.default_rng(0)
    L = make(some_views(), 7, 0.1, order=rng.permutation(90), sparse=True)
    Z, F, shift = rng.normal(size=(90, 4)), rng.normal(size=(90, 4)), np.array([0.1, 1.0, 2.0, 9.0])
    here, products = solve(L, [Z[:50], Z[50:]], [F], 2.0, shift, 1e-10)
    parts = [torch.asarray(Z), torch.asarray(F)]
    there = solve(move_laplacian(L, "cpu"), parts[:1], parts[1:], 2.0, shift, 1e-10)
    assert there[1] == products
    assert_allclose(there[0].numpy(), here, rtol=0, atol=1e-12)  # sums in another order
