"""Sparse graphs of nearest neighbors; up to 20,000 samples they do not depend on their order.

The rule for samples that are equally far is that of `polyspan.graphs.ties`: those tied for the last
places share them. Among more samples the neighbors are searched in cells
(`polyspan.graphs.neighbors`): about 98% of them are found, those tied for the last place go to its
own cell and the lower row numbers, and the cells are learned from samples drawn with a fixed seed.
The graph is then a function of the rows in their order, the same on any number of threads.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.graphs import neighbors, ties
from polyspan.inputs.rows import missing_rows
from polyspan.runtime.cache import shared
from polyspan.runtime.memory import available_memory, check_free
from polyspan.runtime.threads import bounds

ROWS = 2**16  # of a graph whose entries are looked at together
COLUMNS = 32  # of a dense matrix that are multiplied at a time
TOGETHER = 20  # neighbors that fits on the same data search at once, at least
SEVENTH = 7  # the neighbor whose distance is the width at a sample


class Near(NamedTuple):
    """The neighbors of all samples in one view."""

    shares: sp.csr_array  # (n, n), or (m, n) of new samples: 1 for a neighbor, less for a tied one
    squares: np.ndarray  # squared distance of every entry of ``shares``, in its order
    nearest: np.ndarray  # (n, k): squared distances of the k nearest, ascending; inf without view

    @property
    def rows(self) -> np.ndarray:
        """Row number of every entry; ``shares.indices`` has its column."""
        return entry_rows(self.shares)

    @property
    def mean_distances(self) -> np.ndarray:
        """Mean distance of every sample to its k nearest."""
        return np.mean(np.sqrt(self.nearest), axis=1)

    @property
    def widths(self) -> np.ndarray:
        """The `local_widths` of all samples."""
        return local_widths([seventh_distances(self.nearest)])

    def graph(self, weights: np.ndarray) -> sp.csr_array:
        """Graph of these neighbors: shares times weights of the entries."""
        parts = (self.shares.data * weights, self.shares.indices, self.shares.indptr)
        return sp.csr_array(parts, shape=self.shares.shape)


def seventh_distances(squares: np.ndarray) -> np.ndarray:
    """Distances to the 7th neighbors, or to the last of fewer, from ascending squares.

    Examples
    --------
    >>> seventh_distances(np.array([[0.0, 1.0], [4.0, 9.0]]))
    array([1., 3.])
    """
    return np.sqrt(squares[:, :SEVENTH][:, -1])


def local_widths(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Local scale at every sample, from the `seventh_distances` of all parts.

    0, with seven duplicates, is replaced by the mean of the others.

    Examples
    --------
    >>> local_widths([np.array([1.0, 3.0]), np.array([0.0])])
    array([1., 3., 2.])
    """
    s = np.concatenate(parts)
    known = (s > 0) & np.isfinite(s)
    return np.where(s > 0, s, np.mean(s[known]) if np.any(known) else 1.0)


def nearest_neighbors(X: Any, k: int, new: Any = None, device: str | None = None) -> Near:
    """Find the k nearest others of every sample, in blocks of rows: nothing is n x n.

    Up to 20,000 samples every distance is computed, and the answer does not depend on the order of
    the samples. Among more the search is approximate (see the top of the module), unless ``new``
    samples are looked up.

    Parameters
    ----------
    X : (n, d) NumPy array or csr_array
        Samples in rows, two or more; a row of NaN has no neighbors and is none.
    k : int
        Number of neighbors; all others, where there are fewer.
    new : (m, d) array of the same kind, default=None
        Samples whose neighbors in ``X`` are wanted, each with its view; None is ``X`` itself.
    device : str, default=None
        An accelerator, as torch names it, for dense views of more than 20,000 samples: it compares
        all pairs up to 200,000, and searches cells beyond.

    Returns
    -------
    Near
        In float64, or in the dtype of ``X`` among more than 20,000; with ``new`` it has m rows.

    Examples
    --------
    >>> near = nearest_neighbors(np.array([[0.0], [1.0], [-1.0], [5.0]]), 1)
    >>> near.shares.toarray()
    array([[0. , 0.5, 0.5, 0. ],
           [1. , 0. , 0. , 0. ],
           [1. , 0. , 0. , 0. ],
           [0. , 1. , 0. , 0. ]])
    >>> near.nearest.ravel()
    array([ 1.,  1.,  1., 16.])
    >>> nearest_neighbors(np.array([[0.0], [1.0], [5.0]]), 2, np.array([[2.0]])).nearest
    array([[1., 4.]])
    """
    n, (there, rows) = X.shape[0], present(X)
    if new is not None:
        return _among(rows, there, n, k, new)
    if len(there) > neighbors.EXACT_BELOW:
        return _from_many(rows, there, n, k, device)
    most = max(k, TOGETHER)  # one search serves members with different numbers
    near = shared(_search, most, [X], 32 * n * most, lambda: _among(rows, there, n, k))
    return near if near.nearest.shape[1] <= k else _fewer(near, rows, there, k)


def present(X: Any) -> tuple[np.ndarray, Any]:
    """Numbers and rows of the samples that have the view."""
    gone = missing_rows(X)
    there = np.arange(X.shape[0]) if gone is None else np.flatnonzero(~gone)
    return there, X if gone is None else X[there]


def _search(k: int, Xs: Sequence[Any]) -> Near:
    there, X = present(Xs[0])
    return _among(X, there, Xs[0].shape[0], k)


def _among(X: Any, there: np.ndarray, n: int, k: int, new: Any = None) -> Near:
    """Neighbors among the rows of X, which are ``there`` of n, of these rows or of new samples."""
    slack, X = ties.tied(X.dtype), X.astype(np.float64)
    rows, Q = (there, X) if new is None else (np.arange(new.shape[0]), new.astype(np.float64))
    lengths = ties.squared_lengths(X)
    query_lengths = lengths if new is None else ties.squared_lengths(Q)
    m = n if new is None else len(rows)
    k = min(k, len(there) - 1 if new is None else len(there))
    nearest = np.full((m, k), np.inf)
    counts, parts = np.zeros(m, dtype=np.int64), []
    step = max(1, ties.BLOCK // len(there) // (2 if sp.issparse(X) else 1))
    for start, stop in bounds(len(rows), step):
        if new is None:
            i, *rest, low = ties.block_neighbors(X, lengths, np.arange(start, stop), k, slack)
        else:
            D2 = ties.distances(Q[start:stop], X, query_lengths[start:stop], lengths)
            i, *rest, low = ties.lowest(D2, query_lengths[start:stop], k, slack)
        _check_crowd(len(i), len(rows) - start, len(low))
        counts[rows[start:stop]] = np.bincount(i, minlength=len(low))
        nearest[rows[start:stop]] = low
        parts.append(rest)
    columns, squares, shares = (np.concatenate(several) for several in zip(*parts, strict=True))
    ends = np.concatenate([[0], np.cumsum(counts)])
    return Near(sp.csr_array((shares, there[columns], ends), shape=(m, n)), squares, nearest)


def _fewer(near: Near, X: Any, there: np.ndarray, k: int) -> Near:
    """The k nearest, from a search for more: the same as a search for k."""
    lengths, rows, nearest = np.zeros(len(near.nearest)), near.rows, near.nearest[:, :k]
    lengths[there] = ties.squared_lengths(X.astype(np.float64))
    kept, shares = ties.fewer(rows, near.squares, nearest[:, -1], lengths, k, ties.tied(X.dtype))
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=len(lengths)))])
    graph = sp.csr_array((shares, near.shares.indices[kept], ends), shape=near.shares.shape)
    return Near(graph, near.squares[kept], nearest)


def _from_many(X: Any, there: np.ndarray, n: int, k: int, device: str | None) -> Near:
    """Neighbors of the rows of X, which are the rows ``there`` of n, from cells or a device."""
    if device is None or sp.issparse(X):
        ids, squares = neighbors.approximate_neighbors(X, k)
    else:
        ids, squares = neighbors.device_neighbors(X, k, device)
    if len(there) < n:
        places, some = np.where(ids >= 0, there[ids], -1), squares
        ids, squares = np.full((n, k), -1), np.full((n, k), np.inf, dtype=some.dtype)
        ids[there], squares[there] = places, some
    graph = neighbors.graph_rows(ids, squares, n)
    shares = sp.csr_array((np.ones_like(graph.data), graph.indices, graph.indptr), graph.shape)
    return Near(shares, graph.data, squares)


def _check_crowd(entries: int, left: int, done: int) -> None:
    """Refuse graphs that do not fit in memory, because very many samples are equally far."""
    crowd = f"A sample has {entries / done:.0f} neighbors at equal distances on average"
    hint = "leave out views in which most samples are equal, or scale them in another way"
    graph = f"{crowd}, and their graph needs about {{}} GiB"
    check_free(64 * entries * left / done, available_memory(), graph, hint)


def entry_rows(A: sp.csr_array) -> np.ndarray:
    """Row numbers of the stored entries of a csr_array.

    Examples
    --------
    >>> entry_rows(sp.csr_array(np.array([[0, 1], [1, 1]])))
    array([0, 1, 1])
    """
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))


def neighbor_graph(
    X: Any, k: int, weights: str = "binary", device: str | None = None
) -> sp.csr_array:
    """Graph of one view, samples in rows: row i has the neighbors of sample i.

    Weights are 1, or ``exp(-d_ij^2 / (s_i s_j))``, s the distances to the 7th neighbors.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> neighbor_graph(X, 1).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 1., 0.]])
    >>> neighbor_graph(X, 1, "self_tuning").toarray().round(4)
    array([[0.    , 0.3679, 0.    ],
           [0.3679, 0.    , 0.    ],
           [0.    , 0.1353, 0.    ]])
    """
    near = nearest_neighbors(X, k, device=device)
    if weights == "binary":
        return near.shares
    s = near.widths
    return near.graph(np.exp(-near.squares / (s[near.rows] * s[near.shares.indices])))


def mean_of_graphs(graphs: Sequence[sp.csr_array], Xs: Sequence[Any]) -> sp.csr_array:
    """Symmetric mean of the graphs of the views: over the views that both samples of a pair have.

    Examples
    --------
    >>> A = sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]]))
    >>> X = np.ones((2, 1))
    >>> mean_of_graphs([A, A.T], [X, X]).toarray()
    array([[0. , 0.5],
           [0.5, 0. ]])
    >>> mean_of_graphs([A, 0 * A], [X, np.array([[1.0], [np.nan]])]).toarray()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    total: Any = sum(graphs)
    W = sp.csr_array(total + total.T)
    del total
    W.sort_indices()
    lacks = [gone for X in Xs if (gone := missing_rows(X)) is not None]
    W.data /= 2 if lacks else 2 * len(Xs)
    if lacks:
        for start, stop in bounds(W.shape[0], ROWS):  # all entries at once would need much memory
            entries = slice(W.indptr[start], W.indptr[stop])
            i, j = start + entry_rows(W[start:stop]), W.indices[entries]
            W.data[entries] /= common_views(len(Xs), lacks, i, j)
    return W


def common_views(n_views: int, lacks: Sequence[np.ndarray], i: Any, j: Any) -> Any:
    """How many views the samples i and j both have; ``lacks`` says who lacks a view, where any do.

    Examples
    --------
    >>> common_views(2, [np.array([False, True])], np.array([0, 0]), np.array([0, 1]))
    array([2, 1])
    """
    return n_views - sum(np.where(gone[i] | gone[j], 1, 0) for gone in lacks)


def local_kernel(D2: np.ndarray, sums: np.ndarray, mu: float) -> np.ndarray:
    """Similarities ``exp(-d^2 / (2 (mu eps)^2))`` with eps = (m_i + m_j + d) / 3, in new memory.

    ``sums`` are m_i + m_j, the mean distances of the two samples to their neighbors: where samples
    lie close together the kernel is narrow. Equal samples have similarity 1.

    Examples
    --------
    >>> local_kernel(np.array([0.0, 4.0]), np.array([0.0, 4.0]), 0.5).round(4)
    array([1.    , 0.1353])
    """
    eps = (sums + np.sqrt(D2)) / 3
    return np.exp(-D2 / (2 * (mu * np.where(eps > 0, eps, 1)) ** 2))


def diffused(S: sp.csr_array, A: np.ndarray) -> np.ndarray:
    """``S A S^T`` for a sparse S and a dense symmetric A, in parts that stay in the cache.

    Examples
    --------
    >>> S = sp.csr_array(np.array([[0.5, 0.5], [0.0, 1.0]]))
    >>> diffused(S, np.eye(2))
    array([[0.5, 0.5],
           [0.5, 1. ]])
    """
    B, C = np.empty_like(A), np.empty_like(A)
    parts = [slice(*span) for span in bounds(A.shape[0], COLUMNS)]
    for part in parts:
        B[:, part] = S @ np.ascontiguousarray(A[part].T)  # S A
    for part in parts:  # S (S A)^T: the rows from here on, and their mirror image
        C[part.start :, part] = S[part.start :] @ np.ascontiguousarray(B[part].T)
        C[part, part.stop :] = C[part.stop :, part].T
    return C
