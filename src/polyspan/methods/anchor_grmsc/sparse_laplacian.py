"""Laplacian of GRMSC's two graphs without an n x n matrix, and linear systems with it.

The second-order proximity of samples i and j is ``exp(-|Lambda_i - Lambda_j|^2 / sigma^2)``, with
Lambda_i a column of the first-order graph. Expanded, it is
``u_i u_j exp(2 <Lambda_i, Lambda_j> / sigma^2)``: if i and j share no neighbor, it is u_i u_j.
So the weights are exactly a sparse matrix S plus v rank-one terms, and a product with the
Laplacian ``L = D - S - U U^T`` costs O(n k^2).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from scipy.sparse.csgraph import connected_components

from polyspan.graphs import proximity
from polyspan.graphs.knn import entry_rows
from polyspan.graphs.neighbors import Found, graph_rows
from polyspan.runtime.arrays import Array, like, sum_products, to_numpy
from polyspan.runtime.devices import move_arrays, move_csr
from polyspan.runtime.threads import Span

ROWS = 8_192  # rows of the sparse part processed at a time, so that their numbers fit in the cache
GROUP = 64  # at most this many samples in a group of the consistent graph that is solved exactly
FLOOR = 1e-3  # smallest eigenvalue within a group, as a fraction of the largest
MAX_PRODUCTS = 500  # in one solution of all systems
WORSE = 1e8  # a squared residual that grows this much has met rounding errors: the column is done


class Graph(NamedTuple):
    """First-order graph of a view, and what its second-order proximity needs."""

    Lambda: sp.csr_array
    squares: np.ndarray  # squared lengths of its columns, over sigma^2
    sigma: float  # width of the second-order proximity


class Groups(NamedTuple):
    """Small groups of samples that the consistent graph connects, and L within each.

    ``V diag(w) V^T`` is the part of D - S within the groups, V having one block for each.
    """

    members: np.ndarray  # group after group
    V: sp.csr_array
    V_T: sp.csr_array
    w: np.ndarray


class Laplacian(NamedTuple):
    """``L = D - S - U U^T``, with samples reordered so that neighbors are close together."""

    S: list[sp.csr_array]  # blocks of rows
    U: np.ndarray
    degrees: np.ndarray
    order: np.ndarray | None  # old numbers in the new order; None if nothing was moved
    groups: Groups


def dense_graph(X: Array, k: int, second_width: str = "own") -> Graph:
    """Build the graph of one view of few samples, as exact GRMSC does."""
    Lambda, sigma = proximity.first_order(X, k)
    return _with_second(sp.csr_array(Lambda), None if second_width == "own" else sigma, None)


def sparse_graph(
    found: Sequence[Found],
    sigma: float,
    second_width: str = "own",
    rank: np.ndarray | None = None,
    sample: np.ndarray | None = None,
) -> Graph:
    """Build the graph of one view from the neighbors of all samples.

    Parameters
    ----------
    found : list of `polyspan.graphs.neighbors.Found`
        Neighbors, chunk by chunk.
    sigma : float
        Width of the first-order proximity: the median distance.
    second_width : {"own", "first"}
        Width of the second-order proximity.
    rank : (n,) array, optional
        New numbers of the samples.
    sample : array of int, optional
        New numbers of the samples used to determine the second width; all by default.

    Examples
    --------
    >>> near = Found(np.array([[1], [0], [1]]), np.array([[1.0], [1.0], [4.0]]))
    >>> sparse_graph([near], 2.0).Lambda.toarray().round(3)
    array([[0.   , 0.779, 0.   ],
           [0.779, 0.   , 0.   ],
           [0.   , 0.   , 0.   ]])
    """
    n, blocks = sum(len(part.ids) for part in found), []
    for part in found:
        weights = proximity.gaussian(part.squares, sigma)
        weights = weights if part.shares is None else weights * part.shares
        blocks.append(graph_rows(part.ids, weights, n))
    one_way = sp.vstack(blocks, format="csr")
    if rank is not None:
        order = np.argsort(rank)
        one_way = one_way[order][:, order]
        one_way.sort_indices()
    # Keep mutual neighbors only. The two distances of a pair may differ by rounding.
    Lambda = sp.csr_array(one_way.minimum(one_way.T))
    Lambda.eliminate_zeros()
    return _with_second(Lambda, None if second_width == "own" else sigma, sample)


def _with_second(Lambda: sp.csr_array, sigma: float | None, sample: np.ndarray | None) -> Graph:
    if sigma is None:
        columns = Lambda if sample is None else Lambda[sample]
        sigma = proximity.median_distance(proximity.squared_distances(columns))
    squares = np.asarray(Lambda.multiply(Lambda).sum(axis=1)).ravel() / sigma**2
    return Graph(Lambda, squares, sigma)


def sparse_rows(span: Span, graphs: Sequence[Graph], alpha: float) -> sp.csr_array:
    """Some rows of S: all weights minus ``alpha sum_k u_k u_k^T``, which L holds as U U^T."""
    rows = slice(*span)
    inside = _consistent([graph.Lambda[rows] for graph in graphs])
    total: Any = None
    for graph in graphs:
        two_hops = sp.csr_array(graph.Lambda[rows] @ graph.Lambda)
        low = _exponents(two_hops, graph, rows)
        # Add before exponentiating: the separate factors can under- or overflow.
        high = np.minimum(low + two_hops.data * (2 / graph.sigma**2), 0)
        two_hops.data = alpha * (np.exp(high) - np.exp(low))
        total = two_hops if total is None else total + two_hops
    omega = inside.copy()
    omega.data = np.ones_like(omega.data)
    exact = inside.data.copy()
    for graph in graphs:  # on Omega the weight is Lambda* alone
        exact -= alpha * np.exp(_exponents(inside, graph, rows))
    inside.data = exact
    return sp.csr_array(total - total.multiply(omega) + inside)


def _consistent(Lambdas: Sequence[sp.csr_array]) -> sp.csr_array:
    """Product of the first-order weights, where all views have one."""
    inside = sp.csr_array(proximity.consistent(Lambdas))
    inside.eliminate_zeros()
    return inside


def _exponents(entries: sp.csr_array, graph: Graph, rows: slice) -> np.ndarray:
    """Return log(u_i u_j) at the non-zeros of some rows."""
    i = entry_rows(entries) + rows.start
    return -(graph.squares[i] + graph.squares[entries.indices])


def assemble(
    blocks: Sequence[sp.csr_array],
    graphs: Sequence[Graph],
    alpha: float,
    order: np.ndarray | None = None,
    dtype: Any = np.float64,
) -> Laplacian:
    """Put the rows of S together; the degrees are the row sums of all weights.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> graphs = [dense_graph(X, 5), dense_graph(X[:, :2], 5)]
    >>> L = assemble([sparse_rows((0, 30), graphs, 0.1)], graphs, 0.1)
    >>> from polyspan.methods.grmsc import graph_laplacian
    >>> np.allclose(product(L, np.eye(30)), graph_laplacian([X, X[:, :2]], 5, alpha=0.1))
    True
    """
    U = np.sqrt(alpha) * np.exp(-np.stack([graph.squares for graph in graphs], axis=1))
    ones = np.ones(U.shape[0])
    degrees = np.concatenate([block @ ones for block in blocks]) + U @ U.sum(axis=0)
    groups = _groups(_consistent([graph.Lambda for graph in graphs]), blocks, degrees, dtype)
    # `astype` of a csr_array would sort the entries of rows, which takes time.
    parts = ((block.data.astype(dtype), block.indices, block.indptr) for block in blocks)
    S = [sp.csr_array(part, b.shape) for part, b in zip(parts, blocks, strict=True)]
    return Laplacian(S, U.astype(dtype), degrees.astype(dtype), order, groups)


def _groups(
    consistent: sp.csr_array, blocks: Sequence[sp.csr_array], degrees: np.ndarray, dtype: Any
) -> Groups:
    """Find the small components of the consistent graph, and the eigenvectors of D - S in each."""
    _, component = connected_components(consistent, directed=False)
    count = np.bincount(component)
    size = np.where(count <= GROUP, count, 0)[component]  # of the group of each sample
    members = np.flatnonzero(size > 1)
    members = members[np.lexsort((component[members], size[members]))]
    place = np.empty(len(degrees), dtype=np.int64)
    place[members] = np.arange(len(members))
    parts, first = [], 0
    for block in blocks:
        i, j = entry_rows(block) + first, block.indices
        inside = (component[i] == component[j]) & (size[i] > 1)
        parts.append((place[i[inside]], place[j[inside]], block.data[inside]))
        first += block.shape[0]
    i, j, weight = (np.concatenate(several) for several in zip(*parts, strict=True))
    sizes = size[members]
    w, vectors = [np.empty(0)], [sp.csr_array((0, 0))]
    for s in np.unique(sizes):  # all groups of one size at once
        low, high = np.searchsorted(sizes, [s, s + 1])
        own, count = (i >= low) & (i < high), (high - low) // s
        dense = np.zeros((high - low, s))
        dense[i[own] - low, (j[own] - low) % s] = -weight[own]
        dense[np.arange(high - low), np.arange(high - low) % s] += degrees[members[low:high]]
        values, turned = np.linalg.eigh(dense.reshape(-1, s, s))
        # Eigenvalues near zero would amplify rounding errors; a preconditioner need not be exact.
        w.append(np.maximum(values, FLOOR * values[:, -1:]).ravel())
        numbers = np.arange(count + 1, dtype=np.int32)
        vectors.append(sp.bsr_array((turned, numbers[:-1], numbers)))
    V = sp.block_diag(vectors, format="csr").astype(dtype)
    return Groups(members, V, sp.csr_array(V.T), np.concatenate(w).astype(dtype))


def move_laplacian(L: Laplacian, device: str) -> Laplacian:
    """Move a Laplacian to a device, with all rows in one block.

    Examples
    --------
    >>> import pytest; torch = pytest.importorskip("torch")
    >>> graphs = [dense_graph(np.random.default_rng(0).normal(size=(30, 4)), 5)]
    >>> L = assemble([sparse_rows((0, 30), graphs, 0.1)], graphs, 0.1)
    >>> there = product(move_laplacian(L, "cpu"), torch.eye(30, dtype=torch.float64))
    >>> np.allclose(product(L, np.eye(30)), there)
    True
    """
    members, V, V_T, w = L.groups
    order = np.arange(len(L.degrees)) if L.order is None else L.order
    U, degrees, order, members, w = move_arrays([L.U, L.degrees, order, members, w], device)
    groups = Groups(members, move_csr(V, device), move_csr(V_T, device), w)
    S = move_csr(sp.vstack(L.S, format="csr"), device)
    return Laplacian([S], U, degrees, order, groups)


def product(L: Laplacian, Z: Array) -> Array:
    """Product of L with the columns of Z, samples in rows and in the order of L."""
    out = array_namespace(Z).empty_like(Z)
    UZ = L.U.T @ Z
    for rows, block in _blocks(L):
        out[rows] = _times(L, rows, block, Z, UZ)
    return out


def _blocks(L: Laplacian) -> list[tuple[slice, sp.csr_array]]:
    ends = np.cumsum([block.shape[0] for block in L.S])
    return [(slice(int(b) - S.shape[0], int(b)), S) for S, b in zip(L.S, ends, strict=True)]


def _times(L: Laplacian, rows: slice, block: sp.csr_array, Z: Array, UZ: Array) -> Array:
    """Some rows of L Z; UZ is U^T Z."""
    part = L.degrees[rows, None] * Z[rows]
    part -= block @ Z
    part -= L.U[rows] @ UZ
    return part


def solve(
    L: Laplacian,
    Zs: Sequence[Array],
    Fs: Sequence[Array],
    weight: float,
    shift: np.ndarray,
    tol: float,
    max_iter: int = MAX_PRODUCTS,
) -> tuple[Array, int]:
    """Step X from Z that makes ``shift_i X_i + weight L (Z + X)_i = F_i`` for every column i.

    Uses conjugate gradients on all columns at once; the constant vectors, which L maps to zero, are
    solved for exactly at the start. The preconditioner is the diagonal, and the exact inverse
    within small groups of the consistent graph: their strong inner links make the diagonal large,
    so that with the diagonal alone the group as a whole, weakly linked to the rest, would hardly
    move. The start is X = 0, so that Z, the last solution, is the warm start.

    Parameters
    ----------
    L : Laplacian
        The graphs.
    Zs, Fs : list of (rows, b) arrays
        Z and right-hand side by chunks, samples in rows.
    weight : float
        Factor of L.
    shift : (b,) array
        One positive shift for every column.
    tol : float
        A column is done when its residual is below ``tol`` times F, both measured in the norm of
        the preconditioner.
    max_iter : int
        Maximum number of iterations.

    Returns
    -------
    X : (n, b) array
        The step.
    n_iter : int
        Number of products with L.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> graphs = [dense_graph(rng.normal(size=(30, 4)), 5)]
    >>> L = assemble([sparse_rows((0, 30), graphs, 0.1)], graphs, 0.1)
    >>> Z, F, shift = rng.normal(size=(30, 2)), rng.normal(size=(30, 2)), np.array([0.1, 3.0])
    >>> X, _ = solve(L, [Z], [F], 2.0, shift, 1e-12)
    >>> np.allclose(shift * X + 2.0 * product(L, Z + X), F)
    True
    """
    Z, R = (_ordered(parts, L.order) for parts in (Zs, Fs))
    xp = array_namespace(R)
    shift = like(shift, R)
    blocks = _blocks(L)
    members, V, V_T, w = L.groups
    spread = shift + weight * w[:, None]
    P, AP = xp.zeros_like(R), xp.empty_like(R)  # AP also holds the preconditioned residual

    def products(A: Array, B: Array) -> np.ndarray:
        return to_numpy(sum_products(A, B, 0)).astype(np.float64)

    def by_diagonal(rows: slice) -> Any:
        """Precondition some rows of R into AP, and return the product of the two."""
        AP[rows] = R[rows] / (shift + weight * L.degrees[rows, None])
        return products(R[rows], AP[rows])

    def in_groups() -> Any:
        """Use the exact inverse within groups instead, and return the change of the product."""
        inside = R[members]
        exact = V @ ((V_T @ inside) / spread)
        change = products(inside, exact - AP[members])
        AP[members] = exact
        return change

    size = sum(by_diagonal(rows) for rows, _ in blocks) + in_groups()
    R -= weight * product(L, Z)
    means = like(xp.sum(R, axis=0, dtype=xp.float64) / R.shape[0], R)
    R -= means
    X = Z  # its memory
    X[:] = means / shift
    left = sum(by_diagonal(rows) for rows, _ in blocks) + in_groups()
    beta = xp.zeros_like(shift)
    done, least = 1, left
    while np.any(going := (left > tol**2 * size) & (left <= WORSE * least)) and done < max_iter:
        UP: Any = 0.0
        for rows, _ in blocks:
            P[rows] *= beta
            P[rows] += AP[rows]
            UP = UP + L.U[rows].T @ P[rows]
        curvature: Any = 0.0
        for rows, block in blocks:
            part = _times(L, rows, block, P, UP)
            part *= weight
            part += shift * P[rows]
            AP[rows] = part
            curvature = curvature + products(P[rows], part)
        # A column that is done no longer changes.
        step = np.where((curvature > 0) & going, left, 0)
        step = like(step / np.where(curvature > 0, curvature, 1), R)
        before, left = left, 0.0
        for rows, _ in blocks:  # while they are in the cache
            X[rows] += step * P[rows]
            R[rows] -= step * AP[rows]
            left = left + by_diagonal(rows)
        left = left + in_groups()
        beta = like(np.where(going, left / np.where(before > 0, before, 1), 0), R)
        done, least = done + 1, np.minimum(least, left)
    if L.order is not None:
        back = xp.empty_like(X)
        back[L.order] = X
        X = back
    return X, done


def _ordered(parts: Sequence[Array], order: Array | None) -> Array:
    whole = array_namespace(*parts).concat(list(parts))
    return whole if order is None else whole[order]
