"""Nearest neighbors of many samples, chunk by chunk: exact, or within the nearest cells.

For many samples, space is divided into cells, the regions around centers. A sample is compared with
the samples of the few cells whose centers are nearest to it, and the best k of all are kept. Cells
are searched independently and their results merged: the work is linear in n, no worker needs all
samples, and the result does not depend on where it is computed. Among more than a thousand centers
those nearest to a sample are searched near the nearest of a few *roots*, centers of centers. Of
samples at equal distances, those of the own cell are found, and there the lower row numbers; only
where every pair is compared do they share the places.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from polyspan.graphs.cell_search import Found, nearest_of, search_cells, stack
from polyspan.graphs.exact import BLOCK, block_neighbors, squared_lengths
from polyspan.graphs.ties import tied
from polyspan.runtime.arrays import Array
from polyspan.runtime.threads import Threads, bounds

EXACT_BELOW = 20_000  # samples up to which every pair is compared
CELL = 1_000  # samples in a cell, on average; more beyond 16 million samples
ROWS = 8192  # samples in a chunk of an array in memory
PROBES = 4  # cells searched for the neighbors of a sample
FLAT = 1_000  # centers up to which each is compared with every sample
AROUND = 6  # times the centers that a root has, searched around it


def neighbors(
    workers: Any,
    chunks: Sequence[Any],
    spans: Sequence[tuple[int, int]],
    view: int,
    k: int,
    sample: Array,
    random_state: int = 0,
) -> tuple[list[Any], list[Any] | None]:
    """Find the k nearest others of every sample in one view.

    Parameters
    ----------
    workers : polyspan.chunked.workers.Threads or Cluster
        Where the work runs.
    chunks, spans : list
        Chunks of all views, and their first and last rows.
    view : int
        Index of the view.
    k : int
        Number of neighbors.
    sample : (s, d) array
        Some samples of this view, used to learn the centers of the cells.
    random_state : int
        Seed for the centers.

    Returns
    -------
    found : list of `Found`
        One for every chunk, kept on the workers.
    cells : list of (rows, probes) arrays, or None
        Nearest cells of the samples, nearest first; None when every pair was compared.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> from polyspan.chunked.workers import Threads
    >>> with Threads(1) as workers:
    ...     found, _ = neighbors(workers, [[X[:2]], [X[2:]]], [(0, 2), (2, 4)], 0, 1, X)
    >>> np.concatenate([part.ids for part in found]).ravel()
    array([1, 0, 1, 2])
    """
    n, firsts = spans[-1][1], [start for start, _ in spans]
    if n <= EXACT_BELOW:
        whole = workers.submit(_whole, list(chunks), view=view)
        return workers.map(_exact, chunks, firsts, whole=whole, view=view, k=k), None
    centers = cell_centers(sample, n_cells(n), random_state)
    tree, probes = workers.share(cell_tree(centers)), min(PROBES, len(centers))
    cells = workers.map(_assign, chunks, view=view, tree=tree, probes=probes)
    return search_cells(workers, chunks, spans, view, k, cells, len(centers), probes), cells


def approximate_neighbors(X: Array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and squared distances of the k nearest others of the rows of X, nearest first.

    -1 and inf where fewer were found. Computed in the threads that BLAS would use; the answer does
    not depend on how many these are.

    Examples
    --------
    >>> ids, squares = approximate_neighbors(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> ids.ravel(), squares.ravel()
    (array([1, 0, 1]), array([1., 1., 4.]))
    """
    n = X.shape[0]
    spans = bounds(n, ROWS)
    with Threads() as workers:
        chunks = [[X[start:stop]] for start, stop in spans]
        found, _ = neighbors(workers, chunks, spans, 0, k, _drawn(X))
    ids, squares = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    return ids, squares


def center_samples(n: int) -> int:
    """Samples from which the centers of cells are learned: 1%, at least 20,000 if there are.

    Examples
    --------
    >>> center_samples(1_000), center_samples(10_000_000)
    (1000, 100000)
    """
    return min(n, max(20_000, n // 100))


def n_cells(n: int) -> int:
    """Number of cells for n samples.

    Examples
    --------
    >>> n_cells(100_000), n_cells(10_000_000), n_cells(100_000_000)
    (100, 10000, 40000)
    """
    return max(1, n // max(CELL, int(n**0.5 / 4)))


def centers_of(X: Array) -> np.ndarray:
    """Centers of cells of all samples in memory, learned from some that are drawn.

    Examples
    --------
    >>> centers_of(np.array([[0.0], [1.0], [5.0]]))
    array([[2.]])
    """
    return cell_centers(_drawn(X), n_cells(X.shape[0]), 0)


def _drawn(X: Array) -> Array:
    """Samples from which centers are learned, with a fixed seed."""
    n = X.shape[0]
    return X[np.sort(np.random.RandomState(0).choice(n, center_samples(n), replace=False))]


def cell_centers(sample: Array, n_cells: int, random_state: int) -> np.ndarray:
    """Centers of cells, from a few iterations of k-means on a sample; near ones have near numbers.

    Examples
    --------
    >>> X = np.array([[0.0], [10.0], [1.0], [11.0]])
    >>> sorted(cell_centers(X, 4, 0)[:2].ravel().tolist()) in ([0.0, 1.0], [10.0, 11.0])
    True
    """
    n_cells = min(n_cells, sample.shape[0])
    model = KMeans(n_cells, init="random", n_init=1, max_iter=5, random_state=random_state)
    centers = model.fit(sample).cluster_centers_
    return centers[np.argsort(_roots(centers).labels_, kind="stable")]


def _roots(centers: np.ndarray) -> KMeans:
    return KMeans(int(len(centers) ** 0.5), n_init=1, random_state=0).fit(centers)


class Tree(NamedTuple):
    """Centers of cells, roots among them, and the numbers of the centers around every root."""

    centers: np.ndarray
    roots: np.ndarray
    around: np.ndarray


def cell_tree(centers: np.ndarray) -> Tree:
    """Roots of many centers; one for up to a thousand.

    Examples
    --------
    >>> cell_tree(np.array([[0.0], [2.0]]))
    Tree(centers=array([[0.],
           [2.]]), roots=array([[1.]]), around=array([[0, 1]]))
    """
    m = len(centers)
    if m <= FLAT:
        return Tree(centers, centers.mean(axis=0, keepdims=True), np.arange(m)[None])
    roots = _roots(centers).cluster_centers_
    return Tree(centers, roots, _nearest(roots, centers, min(m, AROUND * m // len(roots))))


def _nearest(X: Array, centers: np.ndarray, count: int) -> np.ndarray:
    """Numbers of the nearest centers of the rows of X, nearest first."""
    model = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(centers)
    return model.kneighbors(X, return_distance=False)


def nearest_cells(X: Array, tree: Tree, probes: int) -> np.ndarray:
    """Cells whose centers are nearest to the rows of X, nearest first.

    Examples
    --------
    >>> nearest_cells(np.array([[0.5], [1.5]]), cell_tree(np.array([[0.0], [2.0]])), 2)
    array([[0, 1],
           [1, 0]], dtype=int32)
    """
    cells = np.empty((X.shape[0], probes), dtype=np.int32)
    root = _nearest(X, tree.roots, 1)[:, 0]
    for one in np.unique(root):
        rows, near = np.flatnonzero(root == one), tree.around[one]
        cells[rows] = near[_nearest(X[rows], tree.centers[near], probes)]
    return cells


def _whole(chunks: Sequence[Any], view: int) -> Array:
    return stack([chunk[view] for chunk in chunks])


def _exact(chunk: Any, start: int, whole: Array, view: int, k: int) -> Found:
    """Neighbors of the samples of a chunk among all; those tied for the last places share them."""
    n, k = whole.shape[0], min(k, whole.shape[0] - 1)
    own = np.arange(start, start + chunk[view].shape[0])
    near = nearest_of(chunk[view], own, whole, np.arange(n), k + 1)
    X, equal = whole.astype(np.float64), tied(whole.dtype)
    lengths = squared_lengths(X)
    last, following = near.squares[:, k - 1], near.squares[:, k]
    unsure = np.flatnonzero(following - last <= 4 * equal * (lengths[own] + last))
    if not unsure.size:
        return Found(near.ids[:, :k], near.squares[:, :k], np.ones((len(own), k), whole.dtype))
    parts = []
    for some in np.array_split(unsure, -(-unsure.size * n // BLOCK)):
        i, *rest, _ = block_neighbors(X, lengths, own[some], k, equal)
        parts.append((some[i], *rest))
    i, j, squares, shares = (np.concatenate(several) for several in zip(*parts, strict=True))
    order = np.lexsort((squares, i))  # i is in order already
    counts = np.bincount(i, minlength=len(own))
    place = np.arange(len(i)) - np.repeat(np.cumsum(counts) - counts, counts)
    sure, wide = np.isin(np.arange(len(own)), unsure, invert=True), (len(own), max(k, *counts))
    ids, D2, counted = np.full(wide, -1), np.full(wide, np.inf), np.zeros(wide)
    ids[sure, :k], D2[sure, :k], counted[sure, :k] = near.ids[sure, :k], near.squares[sure, :k], 1
    ids[i, place], D2[i, place], counted[i, place] = j[order], squares[order], shares[order]
    return Found(ids, D2.astype(whole.dtype), counted.astype(whole.dtype))


def _assign(chunk: Any, view: int, tree: Tree, probes: int) -> np.ndarray:
    return nearest_cells(chunk[view], tree, probes)


def recall(
    workers: Any,
    chunks: Sequence[Any],
    spans: Sequence[tuple[int, int]],
    view: int,
    k: int,
    found: Sequence[Any],
    queries: np.ndarray,
) -> float:
    """Measure what fraction of the true neighbors of some samples was found.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> wrong = Found(np.array([[1], [0], [0], [0]]), np.ones((4, 1)))
    >>> from polyspan.chunked.workers import Threads
    >>> with Threads(1) as workers:
    ...     recall(workers, [[X]], [(0, 4)], 0, 1, [wrong], np.arange(4))
    0.5
    """
    inside = [queries[(queries >= a) & (queries < b)] for a, b in spans]
    firsts = [start for start, _ in spans]
    rows = workers.collect(workers.map(_take, chunks, inside, firsts, view=view))
    asked = stack([part for part in rows if part.shape[0]])
    fixed = {"view": view, "k": k, "queries": workers.share(asked), "own": queries}
    true = workers.collect(workers.map(_from_chunk, chunks, firsts, **fixed))
    ids, squares = (np.concatenate([part[i] for part in true], axis=1) for i in (0, 1))
    best = np.take_along_axis(ids, np.argsort(squares, axis=1, kind="stable")[:, :k], axis=1)
    got = np.concatenate(workers.collect(workers.map(_ids, found, inside, firsts)))
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(best, got, strict=True)]))


def _take(chunk: Any, rows: np.ndarray, first: int, view: int) -> Array:
    return chunk[view][rows - first]


def _from_chunk(
    chunk: Any, first: int, view: int, k: int, queries: Array, own: np.ndarray
) -> Found:
    X = chunk[view]
    return nearest_of(queries, own, X, np.arange(first, first + X.shape[0]), k)


def _ids(found: Found, rows: np.ndarray, first: int) -> np.ndarray:
    return found.ids[rows - first]
