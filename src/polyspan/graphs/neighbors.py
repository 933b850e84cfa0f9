"""Nearest neighbours of many samples, chunk by chunk: exact, or within the nearest cells.

For many samples, space is divided into cells, the regions around centres. A sample is compared with
the samples of the few cells whose centres are nearest to it, and the best k of all are kept. Cells
are searched independently and their results merged: the work is linear in n, no worker needs all
samples, and the result does not depend on where it is computed (beyond 4 million samples
the work grows like n^1.5, because the cells get larger). Of samples at equal distances, those with
the lower row numbers are found; only where every pair is compared do they share the places.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from polyspan.graphs.exact import BLOCK, block_neighbors, squared_lengths
from polyspan.graphs.ties import tied
from polyspan.solvers.arrays import Array
from polyspan.solvers.threads import Threads, bounds

EXACT_BELOW = 20_000  # samples up to which every pair is compared
CELL = 1_000  # samples in a cell, on average; more beyond 4 million samples
ROWS = 8192  # samples in a chunk of an array in memory
PROBES = 4  # cells searched for the neighbours of a sample


class Found(NamedTuple):
    """Nearest neighbours of some samples: their numbers and squared distances, nearest first.

    Where fewer than k were found, the number is -1 and the distance infinite. ``shares`` says how
    much each counts where samples are tied for the last places, which may be more than k then (see
    `polyspan.graphs.ties`); None means that all count fully.
    """

    ids: np.ndarray
    squares: np.ndarray
    shares: np.ndarray | None = None


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
        Number of neighbours.
    sample : (s, d) array
        Some samples of this view, used to learn the centres of the cells.
    random_state : int
        Seed for the centres.

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
    centres = cell_centres(sample, n_cells(n), random_state)
    fixed: dict[str, Any] = {"view": view, "probes": min(PROBES, len(centres))}
    cells = workers.map(_assign, chunks, centres=workers.share(centres), **fixed)
    edges = [round(i) for i in np.linspace(0, len(centres), min(32, len(centres)) + 1)]
    groups = list(pairwise(edges))
    if workers.remote:  # send only members of cells
        parts = [
            workers.map(_members, chunks, cells, firsts, view=view, group=group) for group in groups
        ]
        results = workers.map(_search, parts, k=k)
    else:
        fixed = {"chunks": chunks, "cells": cells, "firsts": firsts, "view": view, "k": k}
        results = workers.map(_search_here, groups, **fixed)
    return workers.map(_merge, spans, results=results, k=k), cells


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
    drawn = np.random.RandomState(0).choice(n, centre_samples(n), replace=False)
    with Threads() as workers:
        chunks = [[X[start:stop]] for start, stop in spans]
        found, _ = neighbors(workers, chunks, spans, 0, k, X[np.sort(drawn)])
    ids, squares = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    return ids, squares


def centre_samples(n: int) -> int:
    """Samples from which the centres of cells are learned: 1%, at least 20,000 if there are.

    Examples
    --------
    >>> centre_samples(1_000), centre_samples(10_000_000)
    (1000, 100000)
    """
    return min(n, max(20_000, n // 100))


def n_cells(n: int) -> int:
    """Number of cells for n samples.

    Comparing with n / size centres and with 4 size samples costs the same at size = sqrt(n) / 2.

    Examples
    --------
    >>> n_cells(100_000), n_cells(100_000_000)
    (100, 20000)
    """
    return max(1, n // max(CELL, int(n**0.5 / 2)))


def centres_of(X: Array) -> np.ndarray:
    """Centres of cells of all samples in memory, learned from some that are drawn.

    Examples
    --------
    >>> centres_of(np.array([[0.0], [1.0], [5.0]]))
    array([[2.]])
    """
    n = X.shape[0]
    drawn = np.random.RandomState(0).choice(n, centre_samples(n), replace=False)
    return cell_centres(X[np.sort(drawn)], n_cells(n), 0)


def cell_centres(sample: Array, n_cells: int, random_state: int) -> np.ndarray:
    """Centres of cells, from a few iterations of k-means on a sample."""
    n_cells = min(n_cells, sample.shape[0])
    model = KMeans(n_cells, init="random", n_init=1, max_iter=5, random_state=random_state)
    return model.fit(sample).cluster_centers_


def _whole(chunks: Sequence[Any], view: int) -> Array:
    return stack([chunk[view] for chunk in chunks])


def stack(parts: Sequence[Array]) -> Array:
    """Rows of several arrays or csr_arrays in one.

    Examples
    --------
    >>> stack([np.eye(2)[:1], np.eye(2)[1:]])
    array([[1., 0.],
           [0., 1.]])
    """
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _exact(chunk: Any, start: int, whole: Array, view: int, k: int) -> Found:
    """Neighbours of the samples of a chunk among all; those tied for the last places share them."""
    n, k = whole.shape[0], min(k, whole.shape[0] - 1)
    own = np.arange(start, start + chunk[view].shape[0])
    near = _nearest(chunk[view], own, whole, np.arange(n), k + 1)
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


def _nearest(X: Array, own: np.ndarray, base: Array, ids: np.ndarray, k: int) -> Found:
    """Return the k rows of ``base``, numbered ``ids``, nearest to each row of X, except ``own``."""
    asked = min(k + 1, base.shape[0])
    model = NearestNeighbors(n_neighbors=asked, algorithm="brute").fit(base)
    distances, rows = model.kneighbors(X)
    numbers, squares = ids[rows].astype(np.int64), distances.astype(X.dtype) ** 2
    squares[numbers == own[:, None]] = np.inf  # puts the sample itself last
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    numbers, squares = (np.take_along_axis(A, order, axis=1) for A in (numbers, squares))
    numbers[np.isinf(squares)] = -1
    missing = ((0, 0), (0, k - numbers.shape[1]))
    return Found(
        np.pad(numbers, missing, constant_values=-1),
        np.pad(squares, missing, constant_values=np.inf),
    )


def _assign(chunk: Any, view: int, centres: np.ndarray, probes: int) -> np.ndarray:
    """Return the nearest cells of the samples of a chunk, nearest first."""
    model = NearestNeighbors(n_neighbors=probes, algorithm="brute").fit(centres)
    return model.kneighbors(chunk[view], return_distance=False).astype(np.int32)


class _Members(NamedTuple):
    """Samples of a chunk that lie in a group of cells (base), and those that search it."""

    base: Array
    base_ids: np.ndarray
    base_cells: np.ndarray
    queries: Array
    query_ids: np.ndarray
    query_cells: np.ndarray


def _members(
    chunk: Any, cells: np.ndarray, first: int, view: int, group: tuple[int, int]
) -> _Members:
    X = chunk[view]
    inside = (cells >= group[0]) & (cells < group[1])
    base = np.flatnonzero(inside[:, 0])
    rows, probes = np.nonzero(inside)
    return _Members(
        X[base], base + first, cells[base, 0], X[rows], rows + first, cells[rows, probes]
    )


def _search(parts: Sequence[_Members], k: int) -> tuple[np.ndarray, Found]:
    """Search every cell of a group; return the query ids, ascending, and what was found."""
    base, queries = (stack([part[i] for part in parts]) for i in (0, 3))
    base_ids, base_cells, query_ids, query_cells = (
        np.concatenate([part[i] for part in parts]) for i in (1, 2, 4, 5)
    )
    found = Found(
        np.full((len(query_ids), k), -1, dtype=np.int32),  # half of the memory
        np.full((len(query_ids), k), np.inf, dtype=base.dtype),
    )
    by_base, by_query = (np.argsort(c, kind="stable") for c in (base_cells, query_cells))
    for cell in np.unique(base_cells):
        low, high = np.searchsorted(base_cells[by_base], [cell, cell + 1])
        lives = by_base[low:high]
        low, high = np.searchsorted(query_cells[by_query], [cell, cell + 1])
        asks = by_query[low:high]
        near = _nearest(queries[asks], query_ids[asks], base[lives], base_ids[lives], k)
        found.ids[asks], found.squares[asks] = near.ids, near.squares
    order = np.argsort(query_ids, kind="stable")
    return query_ids[order], Found(found.ids[order], found.squares[order])


def _search_here(
    group: tuple[int, int],
    chunks: Sequence[Any],
    cells: Sequence[np.ndarray],
    firsts: Sequence[int],
    view: int,
    k: int,
) -> tuple[np.ndarray, Found]:
    parts = [
        _members(chunk, c, first, view, group)
        for chunk, c, first in zip(chunks, cells, firsts, strict=True)
    ]
    return _search(parts, k)


def _merge(span: tuple[int, int], results: Sequence[tuple[np.ndarray, Found]], k: int) -> Found:
    """Keep the best results from all cells for the samples of one chunk."""
    start, stop = span
    asked, ids, squares = [], [], []
    for query_ids, found in results:
        low, high = np.searchsorted(query_ids, [start, stop])
        asked.append(query_ids[low:high] - start)
        ids.append(found.ids[low:high])
        squares.append(found.squares[low:high])
    rows = np.concatenate(asked)
    order = np.argsort(rows, kind="stable")
    probes = len(rows) // (stop - start)  # every sample searched the same number of cells
    wide = (stop - start, probes * k)
    all_ids = np.concatenate(ids)[order].reshape(wide)
    all_squares = np.concatenate(squares)[order].reshape(wide)
    best = np.argsort(all_squares, axis=1, kind="stable")[:, :k]
    ids_of_best = np.take_along_axis(all_ids, best, axis=1).astype(np.int64)
    return Found(ids_of_best, np.take_along_axis(all_squares, best, axis=1))


def recall(
    workers: Any,
    chunks: Sequence[Any],
    spans: Sequence[tuple[int, int]],
    view: int,
    k: int,
    found: Sequence[Any],
    queries: np.ndarray,
) -> float:
    """Measure what fraction of the true neighbours of some samples was found.

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
    return _nearest(queries, own, X, np.arange(first, first + X.shape[0]), k)


def _ids(found: Found, rows: np.ndarray, first: int) -> np.ndarray:
    return found.ids[rows - first]
