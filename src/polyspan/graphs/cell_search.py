"""The search for neighbors in cells, the regions around centers: first in the own, then beyond.

A sample is compared with all samples of its own cell, then, cell by cell, with those of the next
nearest cells that are closer than the k-th found so far, which one product of matrices and a
comparison tell. Cells are searched in groups, independently of each other, here or on the workers
of a cluster.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from polyspan.graphs.exact import squared_lengths
from polyspan.runtime.arrays import Array

GROUPS = 32  # of cells, at most
TABLE = 2**18  # products compared at a time, which fit in the cache


class Found(NamedTuple):
    """Nearest neighbors of some samples: their numbers and squared distances, nearest first.

    Where fewer than k were found, the number is -1 and the distance infinite. ``shares`` says how
    much each counts where samples are tied for the last places, which may be more than k then (see
    `polyspan.graphs.ties`); None means that all count fully.
    """

    ids: np.ndarray
    squares: np.ndarray
    shares: np.ndarray | None = None


class Members(NamedTuple):
    """Samples of a chunk that live in a group of cells, and those that search it."""

    base: Array
    base_ids: np.ndarray
    base_cells: np.ndarray
    queries: Array
    query_ids: np.ndarray
    query_cells: np.ndarray
    limits: np.ndarray  # only what is as close, as a squared distance, is wanted


class Pairs(NamedTuple):
    """Samples that search, ascending, with what they found: one pair in every entry.

    In the own cell every sample is there once, with rows of ids and squares.
    """

    rows: np.ndarray
    ids: np.ndarray
    squares: np.ndarray


def search_cells(
    workers: Any,
    chunks: Sequence[Any],
    spans: Sequence[tuple[int, int]],
    view: int,
    k: int,
    cells: Sequence[Any],
    n_cells: int,
    probes: int,
) -> list[Any]:
    """The k nearest others of every sample among those in its cells, one `Found` for every chunk.

    Parameters
    ----------
    workers : polyspan.chunked.workers.Threads or Cluster
        Where the work runs, and where what is found stays.
    chunks, spans : list
        Chunks of all views, and their first and last rows.
    view, k : int
        The view, and the number of neighbors.
    cells : list of (rows, probes) arrays
        Cells of the samples of every chunk, their own first.
    n_cells, probes : int
        Number of cells, and of those that are searched for a sample.

    Examples
    --------
    >>> from polyspan.runtime.threads import Threads
    >>> X, cells = np.array([[0.0], [1.0], [3.0]]), np.array([[0, 1], [0, 1], [1, 0]])
    >>> with Threads(1) as workers:
    ...     (found,) = search_cells(workers, [[X]], [(0, 3)], 0, 1, [cells], 2, 2)
    >>> found.ids.ravel(), found.squares.ravel()
    (array([1, 0, 1], dtype=int32), array([1., 1., 4.]))
    """
    edges = [round(i) for i in np.linspace(0, n_cells, min(GROUPS, n_cells) + 1)]
    groups, firsts = list(pairwise(edges)), [start for start, _ in spans]

    def searched(known: Sequence[Any], probe: int) -> list[list[Any]]:
        """What the samples of every chunk found in one of their cells, in parts by groups."""
        fixed: dict[str, Any] = {"view": view, "probe": probe}
        if workers.remote:  # send only members of cells, and what is found to its own chunk
            lists = (chunks, cells, firsts, known)
            results = [  # group by group: what is searched in is let go before the next is made
                workers.submit(
                    _divided, workers.map(_members, *lists, group=group, **fixed), probe, k, firsts
                )
                for group in groups
            ]
            numbers = range(len(spans))
            return [[workers.submit(_part, found, i) for found in results] for i in numbers]
        fixed |= {"chunks": chunks, "cells": cells, "firsts": firsts, "known": known, "k": k}
        return [list(parts) for parts in zip(*workers.map(_here, groups, **fixed), strict=True)]

    found = workers.map(_placed, spans, searched([None] * len(chunks), 0), k=k)
    for probe in range(1, probes):
        found = workers.map(_merge, spans, found, searched(found, probe), k=k)
    return found


def _members(
    chunk: Any,
    cells: np.ndarray,
    first: int,
    known: Found | None,
    view: int,
    probe: int,
    group: tuple[int, int],
) -> Members:
    X, own, asked = chunk[view], cells[:, 0], cells[:, probe]
    base = np.flatnonzero((own >= group[0]) & (own < group[1]))
    rows = np.flatnonzero((asked >= group[0]) & (asked < group[1]))
    limits = np.full(len(rows), np.inf) if known is None else known.squares[rows, -1]
    return Members(X[base], base + first, own[base], X[rows], rows + first, asked[rows], limits)


def _here(
    group: tuple[int, int],
    chunks: Sequence[Any],
    cells: Sequence[np.ndarray],
    firsts: Sequence[int],
    known: Sequence[Any],
    view: int,
    probe: int,
    k: int,
) -> list[Pairs]:
    lists = zip(chunks, cells, firsts, known, strict=True)
    return _divided([_members(*one, view, probe, group) for one in lists], probe, k, firsts)


def _divided(parts: Sequence[Members], probe: int, k: int, firsts: Sequence[int]) -> list[Pairs]:
    """What is found in a group of cells, for every chunk what its own samples found."""
    found = _search_own(parts, k) if probe == 0 else _search_beyond(parts, k)
    cuts = np.searchsorted(found.rows, firsts[1:])
    return [Pairs(*one) for one in zip(*(np.split(part, cuts) for part in found), strict=True)]


def _part(parts: Sequence[Pairs], i: int) -> Pairs:
    # A copy, because a part on its own is sent and kept without the whole.
    return Pairs(*(part.copy() for part in parts[i]))


def _by_cell(parts: Sequence[Members]) -> Iterator[tuple[Any, ...]]:
    """Samples that search a cell with their numbers and limits, and those in it with theirs."""
    base, queries = (stack([part[i] for part in parts]) for i in (0, 3))
    base_ids, base_cells, query_ids, query_cells, limits = (
        np.concatenate([part[i] for part in parts]) for i in (1, 2, 4, 5, 6)
    )
    by_base, by_query = (np.argsort(c, kind="stable") for c in (base_cells, query_cells))
    for cell in np.unique(base_cells):
        low, high = np.searchsorted(base_cells[by_base], [cell, cell + 1])
        lives = by_base[low:high]
        low, high = np.searchsorted(query_cells[by_query], [cell, cell + 1])
        asks = by_query[low:high]
        yield queries[asks], query_ids[asks], limits[asks], base[lives], base_ids[lives]


def _search_own(parts: Sequence[Members], k: int) -> Pairs:
    """Search every cell of a group for the neighbors of its own samples."""
    found = [
        _narrow(np.empty(0, int), np.empty((0, k), int), np.empty((0, k), parts[0].base.dtype))
    ]
    for Q, rows, _, B, ids in _by_cell(parts):
        found.append(_narrow(rows, *nearest_of(Q, rows, B, ids, k)[:2]))
    return _ascending(found)


def _search_beyond(parts: Sequence[Members], k: int) -> Pairs:
    """Search every cell of a group for those of other cells, which know some already."""
    found = [_narrow(np.empty(0, int), np.empty(0, int), np.empty(0, parts[0].base.dtype))]
    for Q, rows, limits, B, ids in _by_cell(parts):
        some = np.isinf(limits)  # no k-th neighbor is known
        if some.any():
            found.append(_pairs(rows[some], nearest_of(Q[some], rows[some], B, ids, k)))
        if not some.all():
            found.append(_closer(Q[~some], rows[~some], limits[~some], B, ids))
    return _ascending(found)


def _ascending(found: Sequence[Pairs]) -> Pairs:
    joined = _joined(found)
    order = np.argsort(joined.rows, kind="stable")
    return Pairs(*(part[order] for part in joined))


def _closer(Q: Array, rows: np.ndarray, limits: np.ndarray, B: Array, ids: np.ndarray) -> Pairs:
    """Pairs of samples Q and B whose squared distance is at most the limit of the former.

    ``|q - b|^2 <= limit`` where ``q^T b - |b|^2 / 2 >= (|q|^2 - limit) / 2``, up to rounding; the
    pairs that remain are compared by their differences.
    """
    lengths, others = squared_lengths(Q), squared_lengths(B)
    slack = 100 * np.finfo(lengths.dtype).eps * (lengths + others.max())
    low, half = (lengths - limits - slack) / 2, others / 2
    step, found = max(1, TABLE // len(ids)), []
    for some in (slice(start, start + step) for start in range(0, len(rows), step)):
        G = Q[some] @ B.T
        G = G.toarray() if sp.issparse(G) else G
        G -= half
        i, j = np.divmod(np.flatnonzero(G >= low[some, None]), len(ids))
        D = Q[some][i].astype(np.float64) - B[j].astype(np.float64)
        squares = squared_lengths(D).astype(limits.dtype)
        kept = squares <= limits[some][i]
        found.append(_narrow(rows[some][i[kept]], ids[j[kept]], squares[kept]))
    return _joined(found)


def _pairs(rows: np.ndarray, near: Found) -> Pairs:
    i, j = np.nonzero(near.ids >= 0)
    return _narrow(rows[i], near.ids[i, j], near.squares[i, j])


def _narrow(rows: np.ndarray, ids: np.ndarray, squares: np.ndarray) -> Pairs:
    """With numbers in 32 bits, if that is enough."""
    small = np.int32 if max(rows.max(initial=0), ids.max(initial=0)) < 2**31 else np.int64
    return Pairs(rows.astype(small), ids.astype(small), squares)


def _joined(parts: Sequence[Pairs]) -> Pairs:
    return Pairs(*(np.concatenate(several) for several in zip(*parts, strict=True)))


def nearest_of(X: Array, own: np.ndarray, base: Array, ids: np.ndarray, k: int) -> Found:
    """Return the k rows of ``base``, numbered ``ids``, nearest to each row of X, except ``own``.

    Examples
    --------
    >>> B = np.array([[0.0], [1.0], [3.0]])
    >>> nearest_of(B[:1], np.array([7]), B, np.array([7, 8, 9]), 1)
    Found(ids=array([[8]]), squares=array([[1.]]), shares=None)
    """
    asked, wide = min(k + 1, base.shape[0]), len(own)
    model = NearestNeighbors(n_neighbors=asked, algorithm="brute").fit(base)
    distances, rows = model.kneighbors(X)
    numbers, squares = np.full((wide, k + 1), -1), np.full((wide, k + 1), np.inf, dtype=X.dtype)
    numbers[:, :asked], squares[:, :asked] = ids[rows], distances.astype(X.dtype) ** 2
    itself = numbers == own[:, None]
    place = np.where(itself.any(axis=1), itself.argmax(axis=1), k)  # which of all is left out
    others = np.arange(k) + (np.arange(k) >= place[:, None])
    return Found(*(np.take_along_axis(A, others, axis=1) for A in (numbers, squares)))


def stack(parts: Sequence[Array]) -> Array:
    """Rows of several arrays or csr_arrays in one.

    Examples
    --------
    >>> stack([np.eye(2)[:1], np.eye(2)[1:]])
    array([[1., 0.],
           [0., 1.]])
    """
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _placed(span: tuple[int, int], parts: Sequence[Pairs], k: int) -> Found:
    """What the samples of one chunk found in their own cells."""
    rows, ids, squares = _joined(parts)
    wide = span[1] - span[0], k
    found = Found(np.full(wide, -1, ids.dtype), np.full(wide, np.inf, squares.dtype))
    found.ids[rows - span[0]], found.squares[rows - span[0]] = ids, squares
    return found


def _merge(span: tuple[int, int], known: Found, parts: Sequence[Pairs], k: int) -> Found:
    """Keep the best of what is known and found for the samples of one chunk."""
    start, stop = span
    found = Found(known.ids.copy(), known.squares.copy())
    touched = np.unique(np.concatenate([part.rows for part in parts])) - start
    some = Found(found.ids[touched], found.squares[touched])
    rows, ids, squares = _joined([_pairs(touched + start, some), *parts])
    order = np.lexsort((squares, rows))
    counts = np.bincount(rows - start, minlength=stop - start)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    best = order[place < k]
    where = rows[best] - start, place[place < k]
    found.ids[where], found.squares[where] = ids[best], squares[best]
    return found
