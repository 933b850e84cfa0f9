"""Graphs of views: distances, similarities, neighbors, proximities, Laplacians, random walks."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_numpy_array

from polyspan.graphs import ties
from polyspan.inputs.precomputed import like
from polyspan.inputs.rows import missing_rows, present_rows
from polyspan.runtime.arrays import (
    Array,
    astype,
    diagonal_mask,
    gram,
    inverse_root,
    order_statistics,
    to_numpy,
)
from polyspan.solvers.eigen import lowest_eigenpairs


def squared_distances(X: Array, *, rounded: bool = False) -> Array:
    """Squared Euclidean distances between the rows of X, from its Gram matrix.

    Distances below the rounding error of the products are set to zero, so that equal samples are
    at distance zero. The work is done in float64, which a difference of products needs.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Samples in rows.
    rounded : bool, default=False
        Round the distances to about eleven digits of the squared lengths, so that distances that
        differ only by rounding become equal, for `stable_ranks`; binary features, for example, give
        many. (`polyspan.graphs.ties` needs no rounding.)

    Examples
    --------
    >>> squared_distances(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[ 0., 25.],
           [25.,  0.]])
    """
    dtype = X.dtype
    G = gram(X.astype(np.float64) if sp.issparse(X) else astype(X, "float64"))
    xp = array_namespace(G)
    squares = xp.linalg.diagonal(G)
    sums = squares[:, None] + squares[None, :]
    D2 = sums - 2 * G
    eps = xp.finfo(D2.dtype).eps
    D2 = xp.where(D2 > 64 * eps * sums, D2, xp.zeros_like(D2))
    if rounded:
        # Powers of two, so that the grids of pairs of different lengths are nested.
        grid = 2.0 ** xp.floor(xp.log2(xp.where(sums > 0, sums, xp.ones_like(sums)))) * 2**14 * eps
        D2 = xp.round(D2 / grid) * grid
    return astype(xp.where(diagonal_mask(D2), xp.zeros_like(D2), D2), dtype)


def median_distance(D2: Array, *, diagonal: bool = False) -> float:
    """Median over all pairs i < j of the distance, given squared distances.

    ``diagonal=True`` takes it over all n^2 entries, the zeros of the diagonal included, as some
    authors' programs do. When more than half of the distances are zero (duplicated samples), the
    result is the median of the others, or 1 if there are none, so that a Gaussian of this width is
    defined.

    Examples
    --------
    >>> D2 = squared_distances(np.array([[0.0], [1.0], [3.0]]))
    >>> median_distance(D2), median_distance(D2, diagonal=True)
    (2.0, 1.0)
    """
    xp = array_namespace(D2)
    n = D2.shape[0]
    pairs = n * (n - 1) // 2
    # Sorted, the matrix is the n zeros of the diagonal, then every pair twice.
    ranks = [n + 2 * ((pairs - 1) // 2), n + 2 * (pairs // 2)]
    if diagonal:
        ranks = [(n * n - 1) // 2, n * n // 2]
    values = xp.reshape(D2, (-1,))
    low, high = order_statistics(values, ranks)
    if high == 0.0:
        values = values[values > 0]
        if values.shape[0] == 0:
            return 1.0
        low, high = order_statistics(values, [(values.shape[0] - 1) // 2, values.shape[0] // 2])
    return (low**0.5 + high**0.5) / 2


def gaussian(D2: Array, sigma: float) -> Array:
    """Similarities ``exp(-d^2 / sigma^2)``; the ratio is capped at 1000, where they are 0.

    Examples
    --------
    >>> gaussian(np.array([0.0, 4.0, 1e300]), 2.0)
    array([1.        , 0.36787944, 0.        ])
    """
    xp = array_namespace(D2)
    return xp.exp(-xp.clip(D2, max=1000 * sigma**2) / sigma**2)


def median_kernel(X: Array, factor: float = 1.0, *, diagonal: bool = False) -> Array:
    """Gaussian kernel ``exp(-d^2 / (2 s^2))`` of the rows of X, s = factor x median distance.

    The median is `median_distance`, with its ``diagonal``. This is the kernel of the spectral
    methods; `gaussian` itself has no factor 2.

    Examples
    --------
    >>> median_kernel(np.array([[0.0], [1.0], [3.0]]))[0]
    array([1.        , 0.8824969 , 0.32465247])
    """
    D2 = squared_distances(X)
    return gaussian(D2, 2**0.5 * factor * median_distance(D2, diagonal=diagonal))


def mutual_neighbors(D2: Array, k: int, slack: Array | float = 0.0) -> Array:
    """How much i and j are each among the k nearest of the other (self excluded): 0 to 1.

    It is 1 for mutual neighbors, and the smaller of the two shares where samples are tied at the
    k-th distance, see `polyspan.graphs.ties`; ``slack`` is its `ties.tie_slack`.

    Examples
    --------
    >>> x = np.array([[0.0], [1.0], [3.0]])
    >>> mutual_neighbors(squared_distances(x), 1)
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    near = ties.neighbor_shares(D2, k, slack)
    return array_namespace(near).minimum(near, near.T)


def first_order(X: Array, n_neighbors: int) -> tuple[Array, float]:
    """First-order proximity Lambda of a view, and its sigma (GRMSC, eq. 2 and 3)."""
    D2 = squared_distances(X)
    sigma = median_distance(D2)
    return mutual_neighbors(D2, n_neighbors, ties.tie_slack(X)) * gaussian(D2, sigma), sigma


def second_order(Lambda: Array, sigma: float | None = None) -> Array:
    """Second-order proximity Upsilon: how similar the neighborhoods are (GRMSC, eq. 6).

    ``sigma=None`` uses the median distance between the columns of Lambda.
    """
    D2 = squared_distances(Lambda)  # Lambda is symmetric: rows are columns
    return gaussian(D2, median_distance(D2) if sigma is None else sigma)


def consistent(Lambdas: Sequence[Array]) -> Array:
    """Consistent graph: the entrywise product of all first-order proximities (GRMSC, eq. 4)."""
    return math.prod(Lambdas[1:], start=Lambdas[0])


def laplacian(W: Array) -> Array:
    """Graph Laplacian ``D - W`` of a symmetric weight matrix; the diagonal of W has no effect.

    Examples
    --------
    >>> laplacian(np.array([[0.0, 2.0], [2.0, 0.0]]))
    array([[ 2., -2.],
           [-2.,  2.]])
    """
    xp = array_namespace(W)
    degrees: Any = xp.sum(W, axis=1, keepdims=True)
    return xp.where(diagonal_mask(W), degrees - W, -W)


class GraphParams(NamedTuple):
    """All parameters of GRMSC's graphs; see `polyspan.GRMSC`."""

    n_neighbors: int
    alpha: float = 1e-3
    second_width: str = "own"
    regularizer: str = "both"
    weights: Sequence[float] | None = None  # of the contributions of views; None means 1 for all


def graph_laplacian(
    Xs: Sequence[Array], n_neighbors: int, *, given: Sequence[Any] | None = None, **params: Any
) -> Array:
    """Laplacian L = sum_k L_k of the graphs of all views, samples in rows of every X.

    ``given`` are first-order graphs to use instead of building them; the other parameters are those
    of `GraphParams`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> L = graph_laplacian([X, X[:, :2]], 3)
    >>> np.allclose(L @ np.ones(9), 0)
    True
    """
    _, alpha, second_width, regularizer, weights = GraphParams(n_neighbors, **params)
    weights = (1.0,) * len(Xs) if weights is None else weights
    if given is None:
        firsts = [first_order(X, n_neighbors) for X in Xs]  # eq. (3)
        # NumPy graphs have few neighbors and are stored sparse: v of them are held at once.
        firsts = [(sp.csr_array(L) if is_numpy_array(L) else L, sigma) for L, sigma in firsts]
    else:
        firsts = [(like(Lambda, X), 0.0) for Lambda, X in zip(given, Xs, strict=True)]
    if regularizer == "first_order":
        parts = (w * Lambda for w, (Lambda, _) in zip(weights, firsts, strict=True))
        total: Any = sum(parts)
        return laplacian(total.toarray() if sp.issparse(total) else total)
    W = consistent([Lambda for Lambda, _ in firsts])  # eq. (4)
    W = W.toarray() if sp.issparse(W) else W + 0.0
    xp = array_namespace(W)
    inside = W != 0
    for w, (Lambda, sigma) in zip(weights, firsts, strict=True):
        Upsilon = second_order(Lambda, sigma if second_width == "first" else None)
        W += w * alpha * xp.where(inside, xp.zeros_like(W), Upsilon)  # eq. (20), summed
    return laplacian(W)


def incomplete_laplacian(Xs: Sequence[Array], n_neighbors: int, **params: Any) -> Array:
    """Laplacian of GRMSC's graphs when samples lack views; equal to GRMSC's without gaps.

    - First order: view k connects the n_k samples that have it, each with its ``k n_k / n``
      nearest, so that neighbors are as close as in the complete data.
    - Consistent: Omega is the set of pairs that are mutual neighbors in every view that both have
      (at least one); the weight is the product of those c first-order weights to the power v/c, as
      if the other views agreed on average.
    - Complementary: the mean of the second-order weights over the views that both have, times v. A
      pair without a common view has weight zero.

    A view has information only about the samples that have it. Parameters are those of
    `graph_laplacian`; rows of NaN mark the gaps.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> X[3] = np.nan
    >>> L = incomplete_laplacian([X, np.ones((9, 1)) * np.arange(9)[:, None]], 3)
    >>> np.allclose(L @ np.ones(9), 0)
    True
    """
    v, n = len(Xs), Xs[0].shape[0]
    _, alpha, second_width, regularizer, weights = GraphParams(n_neighbors, **params)
    weights = (1.0,) * v if weights is None else weights
    dense = next((X for X in Xs if missing_rows(X) is not None), Xs[0])  # others may be sparse
    xp, where = array_namespace(dense), device(dense)
    zeros = xp.zeros((n, n), dtype=dense.dtype, device=where)
    pairs, agree, logs, shared, second = zeros, zeros, zeros, zeros, zeros
    for X, w in zip(Xs, weights, strict=True):
        gone = missing_rows(X)
        there = present_rows(X, gone)
        gone = xp.zeros(n, dtype=xp.bool, device=where) if gone is None else gone
        count = int(there.shape[0])
        k = min(max(1, round(n_neighbors * count / n)), count - 1)
        Lambda, sigma = first_order(there, k)
        both = astype(~gone[:, None] & ~gone[None, :], X.dtype)
        first = _spread(Lambda, gone)
        near = first > 0
        pairs, shared = pairs + both, shared + w * both
        agree = agree + astype(near, X.dtype)
        logs = logs + xp.log(xp.where(near, first, xp.ones_like(first)))
        if regularizer == "both":
            first = _spread(second_order(Lambda, sigma if second_width == "first" else None), gone)
        second = second + w * first
    second = sum(weights) * second / xp.where(shared > 0, shared, xp.ones_like(shared))
    if regularizer == "first_order":
        return laplacian(second)
    inside = (pairs > 0) & (agree == pairs)
    product = xp.exp(logs * v / xp.where(pairs > 0, pairs, xp.ones_like(pairs)))
    return laplacian(xp.where(inside, product, alpha * second))


def _spread(A: Array, gone: Array) -> Array:
    """Expand a matrix over the present samples to all samples, with zeros for the others."""
    xp = array_namespace(A)
    place = xp.clip(xp.cumulative_sum(astype(~gone, xp.int64)) - 1, min=0)
    A = xp.take(xp.take(A, place, axis=0), place, axis=1)
    return xp.where(gone[:, None] | gone[None, :], xp.zeros_like(A), A)


def normalized(W: Array) -> Array:
    """Scale symmetric weights by the degrees: ``D^-1/2 W D^-1/2``, largest eigenvalue 1.

    Samples without weights stay without.

    Examples
    --------
    >>> normalized(np.array([[0.0, 4.0], [4.0, 12.0]]))
    array([[0.  , 0.5 ],
           [0.5 , 0.75]])
    """
    root = inverse_root(array_namespace(W).sum(W, axis=1))
    return root[:, None] * W * root[None, :]


def nearest(D2: Array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the k nearest others of every sample, and their squared distances, as (n, k).

    The numbers depend on the order of the samples, the distances do not: ties go to the lower row
    number, and the first entry of a stable sort of the row counts as the sample itself, as in the
    programs behind some published figures; for duplicated samples it may be the duplicate. If there
    are fewer than k others, the last is repeated.

    Examples
    --------
    >>> nearest(squared_distances(np.array([[0.0], [1.0], [3.0]])), 1)[0]
    array([[1],
           [0],
           [1]])
    """
    D = to_numpy(D2)
    order = np.argsort(D, axis=1, kind="stable")[:, 1 : k + 1]
    order = np.pad(order, ((0, 0), (0, k - order.shape[1])), mode="edge")
    return order, np.take_along_axis(D, order, axis=1)


def stable_ranks(D2: Array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Mark the k nearest by `nearest`, and the one that follows them: depends on the order.

    `ties.ranked` is what does not.

    Examples
    --------
    >>> members, following = stable_ranks(squared_distances(np.array([[0.0], [1.0], [3.0]])), 1)
    >>> members.astype(int)
    array([[0, 1, 0],
           [1, 0, 0],
           [0, 1, 0]])
    """
    order, _ = nearest(D2, k + 1)
    members, following = np.zeros((2, *D2.shape), dtype=bool)
    np.put_along_axis(members, order[:, :k], True, axis=1)
    np.put_along_axis(following, order[:, k:], True, axis=1)
    return members, following


def adaptive_neighbors(X: Array, k: int, *, as_released: bool = False) -> np.ndarray:
    """Graph of probabilistic nearest neighbors (PKN) of a view: rows sum to 1.

    ``s_ij = (d_i,k+1 - d_ij) / (k d_i,k+1 - sum_{h<=k} d_ih)`` over the k nearest others, where d
    are squared distances. Samples tied with the next one have no weight, so that ties need no rule,
    unless the k + 1 nearest are all equally far: then all at that distance share the weight.
    ``as_released`` breaks ties by row numbers, see `adaptive_ranks`.

    Examples
    --------
    >>> adaptive_neighbors(np.array([[0.0], [0.0], [1.0], [3.0]]), 2).round(4)
    array([[0.    , 0.5294, 0.4706, 0.    ],
           [0.5294, 0.    , 0.4706, 0.    ],
           [0.5   , 0.5   , 0.    , 0.    ],
           [0.    , 0.    , 1.    , 0.    ]])
    """
    return ties.gap_shares(*adaptive_ranks(X, k, as_released=as_released))


def adaptive_ranks(
    X: Array, k: int, *, as_released: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared distances of a view in NumPy; who is closer than the (k + 1)-th other, who as far.

    ``as_released`` takes `stable_ranks`, as the programs of several papers do.

    Examples
    --------
    >>> _, closer, equal = adaptive_ranks(np.array([[0.0], [1.0], [-2.0], [2.0]]), 1)
    >>> closer[0].astype(int), equal[0].astype(int)
    (array([0, 1, 0, 0]), array([0, 0, 1, 1]))
    """
    D2 = to_numpy(squared_distances(X, rounded=as_released)).astype(np.float64)
    if as_released:
        return D2, *stable_ranks(D2, k)
    D2 = ties.without_self(D2)
    last = min(k + 1, len(D2) - 1)
    return D2, *ties.ranked(D2, last, to_numpy(ties.tie_slack(X)))


def rank_step(W: np.ndarray, F: np.ndarray, tol: float = 1e-10) -> tuple[np.ndarray, float, float]:
    """Eigen step and rank rule of methods that require a graph with exactly c components.

    A graph has c components if the c lowest eigenvalues of its Laplacian are zero and the next
    is not. The rule says how to change the weight of the term ``tr(F^T L F)``.

    Parameters
    ----------
    W : (n, n) array
        Weights of the graph; made symmetric here.
    F : (n, c) array
        Eigenvectors from the previous iteration.
    tol : float, default=1e-10
        Sums of eigenvalues up to this count as zero.

    Returns
    -------
    F : (n, c) array
        Lowest eigenvectors of the Laplacian of W; the given F if W has too many components.
    factor : {2.0, 1.0, 0.5}
        Factor for the weight: 2 for fewer than c components, 1 for exactly c, 0.5 for more.
    low : float
        Sum of the c lowest eigenvalues.

    Examples
    --------
    >>> two = np.kron(np.eye(2), np.ones((3, 3)))
    >>> [rank_step(two, np.ones((6, c)))[1] for c in (1, 2, 3)]
    [0.5, 1.0, 2.0]
    """
    c = F.shape[1]
    w, V = lowest_eigenpairs(laplacian((W + W.T) / 2), min(c + 1, F.shape[0]))
    low = float(np.sum(w[:c]))
    if low > tol:
        return V[:, :c], 2.0, low
    if w.shape[0] > c and float(np.sum(w)) < tol:
        return F, 0.5, low
    return V[:, :c], 1.0, low
