"""Which samples are the nearest where distances tie: one rule, blind to the order of the samples.

With counts and binary features many samples are equally far, and a rule such as «the lower row
number first» would make a graph depend on the order of the file. Public files are sorted by class,
so such a graph sees the classes. Here samples that are tied for the last places share them: with c
closer ones and t tied for the other k - c places, each of the t has the share (k - c) / t. More
than 3 k tied samples say too little to fill a row: all of them are left out, unless the sample
would then have no neighbor at all. The rule is here twice: for n x n matrices of any array library,
and for blocks of rows in NumPy (`block_neighbors` and below), whose neighbors are listed.

The alternatives were measured (`benchmarks/order.py`, and the page on the order of samples): taking
all tied samples in makes graphs of counts dense, leaving all out cuts duplicates off each other.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_numpy_array, is_torch_array

from polyspan.runtime.arrays import Array, astype, diagonal_mask

BLOCK = 2**23  # distances held at a time: 64 MB
GROUP = 16  # columns whose lowest is looked at first
CROWD = 3  # more than this many times k tied samples are left out
TIED = {"float64": 1e-12, "float32": 1e-6}  # equal squared distances, relative to squared lengths
SOLVED = 1e-9  # equal entries of what a solver computed, relative to the largest of their row


def tied(dtype: object) -> float:
    """How far equal numbers of a type may lie apart, relatively; the type is of any array library.

    Examples
    --------
    >>> tied(np.dtype("float32"))
    1e-06
    """
    return TIED[str(dtype).rpartition(".")[2]]


def tie_slack(X: Array) -> Array:
    """Rounding that distances of rows of X may have, as (n, 1): a part of the squared lengths.

    Examples
    --------
    >>> tie_slack(np.array([[3.0, 4.0]]))
    array([[2.5e-11]])
    """
    if sp.issparse(X):
        return tied(X.dtype) * squared_lengths(X)[:, None]
    return tied(X.dtype) * array_namespace(X).sum(X * X, axis=1, keepdims=True)


def without_self(D2: Array) -> Array:
    """Copy a matrix of distances with an infinite diagonal, so that no sample is its own neighbor.

    Examples
    --------
    >>> without_self(np.zeros((2, 2)))
    array([[inf,  0.],
           [ 0., inf]])
    """
    xp = array_namespace(D2)
    return xp.where(diagonal_mask(D2), xp.full_like(D2, xp.inf), D2)


def ranked(D: Array, k: int, slack: Array | float = 0.0) -> tuple[Array, Array]:
    """Which entries of every row are below its k-th smallest, and which are equal to it.

    Entries are equal that differ by no more than ``slack``, a number or one per row, plus 1e-12 of
    the k-th smallest (1e-6 in float32).

    Examples
    --------
    >>> below, equal = ranked(np.array([[0.0, 5.0, 2.0, 2.0]]), 2)
    >>> below.astype(int), equal.astype(int)
    (array([[1, 0, 0, 0]]), array([[0, 0, 1, 1]]))
    """
    xp = array_namespace(D)
    if is_numpy_array(D):
        limit = lowest_values(D, k)[:, k - 1 :]
    elif is_torch_array(D):  # much faster than kthvalue on a GPU
        limit = D.topk(k, dim=1, largest=False).values[:, k - 1 :]
    else:
        limit = xp.sort(D, axis=1)[:, k - 1 : k]
    slack = slack + tied(D.dtype) * xp.abs(limit)
    below = limit - slack > D
    return below, (limit + slack >= D) & ~below


def lowest_values(D: np.ndarray, k: int) -> np.ndarray:
    """The k lowest of every row, in order.

    The k-th lowest among the minima of groups of columns is at least the k-th lowest of the row:
    only what is not above it is sorted, unless many entries are equal. Where k is small, selecting
    from whole rows takes longer.

    Examples
    --------
    >>> lowest_values(np.array([[4.0, 0.0, 5.0, 2.0]]), 2)
    array([[0., 2.]])
    """
    groups = D.shape[1] // GROUP
    if groups >= 4 * k:
        minima = D[:, : groups * GROUP].reshape(len(D), GROUP, groups).min(axis=1)
        bound = np.partition(minima, k - 1, axis=1)[:, k - 1 : k]
        i, j = np.divmod(np.flatnonzero(bound >= D), D.shape[1])
        counts = np.bincount(i, minlength=len(D))
        if len(i) <= 2 * k * len(D) and counts.min() >= k:
            values, starts = D[i, j], np.cumsum(counts) - counts
            return values[np.lexsort((values, i))][starts[:, None] + np.arange(k)]
    return np.sort(np.partition(D, k - 1, axis=1)[:, :k], axis=1)


def lowest_shares(D: Array, k: int, slack: Array | float = 0.0) -> Array:
    """How much every entry counts among the k lowest of its row: 1, 0, or its share of a tie.

    Examples
    --------
    >>> lowest_shares(np.array([[0.0, 5.0, 2.0, 2.0]]), 2)
    array([[1. , 0. , 0.5, 0.5]])
    """
    xp = array_namespace(D)
    below, equal = ranked(D, k, slack)
    c, t = (xp.count_nonzero(mask, axis=1, keepdims=True) for mask in (below, equal))
    share = astype(k - c, D.dtype) / astype(t, D.dtype)
    share = xp.where((t > CROWD * k) & (c > 0), xp.zeros_like(share), share)
    return xp.where(below, xp.ones_like(D), xp.where(equal, share, xp.zeros_like(D)))


def neighbor_shares(D2: Array, k: int, slack: Array | float = 0.0) -> Array:
    """How much j counts among the k nearest others of i, given squared distances.

    Examples
    --------
    >>> D2 = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 4.0], [1.0, 4.0, 0.0]])
    >>> neighbor_shares(D2, 1)
    array([[0. , 0.5, 0.5],
           [1. , 0. , 0. ],
           [1. , 0. , 0. ]])
    """
    return lowest_shares(without_self(D2), k, slack)


def largest_entries(A: np.ndarray, k: int) -> np.ndarray:
    """The k largest entries of every row of a non-negative matrix; the others are zero.

    Entries tied for the last places are lowered to their share; as solvers computed them, they are
    equal to 1e-9 of the largest in the row.

    Examples
    --------
    >>> largest_entries(np.array([[0.0, 3.0, 2.0, 2.0]]), 2)
    array([[0., 3., 1., 1.]])
    """
    if k >= A.shape[1]:
        return A
    slack = max(SOLVED, tied(A.dtype)) * np.max(A, axis=1, keepdims=True)
    return A * lowest_shares(-A, k, slack)


def gap_shares(E: np.ndarray, members: np.ndarray, following: np.ndarray) -> np.ndarray:
    """Share a weight of 1 in every row among its members, by how far they lie below the following.

    ``s_ij = (e_i - e_ij) / sum_{h in members} (e_i - e_ih)``, with e_i the mean of the entries of E
    that follow the members in row i. If all are equal, the members share equally, and if a row has
    none, those that follow share equally.

    Examples
    --------
    >>> E = np.array([[1.0, 2.0, 4.0, 9.0]])
    >>> gap_shares(E, E < 4, E == 4)
    array([[0.6, 0.4, 0. , 0. ]])
    """
    members = np.where(members.any(axis=1, keepdims=True), members, following)
    e = np.where(members | following, E, 0)
    count = np.sum(members, axis=1, keepdims=True)
    mean = np.sum(e * following, axis=1, keepdims=True) / following.sum(axis=1, keepdims=True)
    gaps = np.where(members, mean - e, 0)
    total = np.sum(gaps, axis=1, keepdims=True)
    # They differ only by rounding: all are equally good.
    even = np.abs(total) <= 1e-14 * np.max(np.abs(e), axis=1, keepdims=True)
    return np.where(even, members / count, gaps / np.where(even, 1, total))


def squared_lengths(X: Any) -> np.ndarray:
    """Squared lengths of the rows of an array or csr_array.

    Examples
    --------
    >>> squared_lengths(np.array([[3.0, 4.0]]))
    array([25.])
    """
    return np.asarray((X.multiply(X) if sp.issparse(X) else X * X).sum(axis=1)).ravel()


def block_neighbors(
    X: Any, lengths: np.ndarray, rows: np.ndarray, k: int, equal: float
) -> tuple[np.ndarray, ...]:
    """Rows, columns, squares and shares of the neighbors of some samples, and their nearest.

    Every distance is computed. X is float64, ``lengths`` are its squared lengths, ``rows`` are the
    numbers of these samples (0 in the answer is the first of them), and squared distances that
    differ by ``equal`` relative to the squared lengths are tied.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [-1.0], [5.0]])
    >>> i, j, squares, shares, low = block_neighbors(X, X[:, 0] ** 2, np.array([0]), 1, 1e-12)
    >>> j, shares
    (array([1, 2]), array([0.5, 0.5]))
    """
    query_lengths = lengths[rows]
    D2 = distances(X[rows], X, query_lengths, lengths)
    D2[np.arange(len(query_lengths)), rows] = np.inf
    return lowest(D2, query_lengths, k, equal)


def distances(Q: Any, X: Any, query_lengths: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Squared distances of the rows of Q to those of X, from their squared lengths.

    Examples
    --------
    >>> Q, X = np.array([[0.0]]), np.array([[1.0], [3.0]])
    >>> distances(Q, X, squared_lengths(Q), squared_lengths(X))
    array([[1., 9.]])
    """
    G = Q @ X.T
    D2 = G.toarray() if sp.issparse(G) else G
    D2 *= -2
    D2 += query_lengths[:, None]
    D2 += lengths
    return D2


def lowest(D2: np.ndarray, lengths: np.ndarray, k: int, equal: float) -> tuple[np.ndarray, ...]:
    """Rows, columns, squares and shares of the k lowest in every row, and these in order."""
    low = lowest_values(D2, k)
    last = low[:, -1]
    slack = equal * (lengths + np.maximum(last, 0))
    i, j = np.nonzero(D2 <= (last + slack)[:, None])
    squares = D2[i, j]
    shares, kept = _places(i, squares, last, slack, k)
    noise = 2**7 * np.finfo(np.float64).eps * lengths  # what rounding leaves between equal samples
    squares[squares <= noise[i]] = 0
    low[low <= noise[:, None]] = 0
    return i[kept], j[kept], squares[kept], shares[kept], low


def _places(
    i: np.ndarray, squares: np.ndarray, last: np.ndarray, slack: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Shares of entries in rows i that are not above the last of k places, and which are kept."""
    closer = squares < (last - slack)[i]
    n_closer = np.bincount(i[closer], minlength=len(last))
    n_tied = np.bincount(i[~closer], minlength=len(last))
    shares = np.where(closer, 1.0, ((k - n_closer) / np.maximum(n_tied, 1))[i])
    return shares, closer | ((n_tied <= CROWD * k) | (n_closer == 0))[i]


def fewer(
    i: np.ndarray, squares: np.ndarray, last: np.ndarray, own: np.ndarray, k: int, equal: float
) -> tuple[np.ndarray, np.ndarray]:
    """Which neighbors are among the k nearest, and their shares, when more than k were found.

    Parameters
    ----------
    i, squares : arrays
        Row and squared distance of every neighbor found.
    last : (n,) array
        Squared distance of the k-th nearest of every sample; inf without any.
    own : (n,) array
        Squared lengths of the samples.
    k : int
        Number of neighbors.
    equal : float
        Squared distances that differ by this, relative to the squared lengths, are tied.

    Examples
    --------
    >>> i, squares = np.zeros(4, int), np.array([4.0, 1.0, 4.0, 9.0])
    >>> fewer(i, squares, np.array([4.0]), np.ones(1), 2, 1e-12)
    (array([0, 1, 2]), array([0.5, 1. , 0.5]))
    """
    slack = equal * (own + np.where(np.isfinite(last), np.maximum(last, 0), 0))
    among = np.flatnonzero(squares <= (last + slack)[i])
    shares, kept = _places(i[among], squares[among], last, slack, k)
    return among[kept], shares[kept]
