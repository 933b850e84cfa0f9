"""Samples of a cluster in another order: those that are near each other lie together.

Products with a graph of neighbors read the rows of a sample's neighbors. If these lie together,
most of what is read is in the cache, and a chunk has most of its links inside.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from polyspan.chunked.chunks import Span, take, take_samples
from polyspan.chunked.workers import Cluster, Threads, pick
from polyspan.graphs.neighbors import (
    Tree,
    cell_centers,
    cell_tree,
    center_samples,
    n_cells,
    nearest_cells,
    stack,
)
from polyspan.inputs.rows import missing_rows
from polyspan.runtime.arrays import Array

CHUNKS = 32  # at most, if their rows are not given


class Moved(NamedTuple):
    """Samples on their way: their rows in every view, their numbers and cells."""

    views: list[Array]
    ids: np.ndarray
    cells: np.ndarray


def drawn_samples(
    workers: Threads | Cluster,
    chunks: list[Any],
    spans: list[Span],
    view: int,
    order: np.ndarray | None = None,
) -> Array:
    """Samples of one view from which the centers of its cells are learned, with a fixed seed.

    With the numbers of the samples in the rows, ``order``, they are the same in any order.

    Examples
    --------
    >>> X = np.array([[3.0], [1.0], [0.0], [2.0]])
    >>> chunks, spans, order = [[X[:2]], [X[2:]]], [(0, 2), (2, 4)], np.array([3, 1, 0, 2])
    >>> with Threads(1) as workers:
    ...     drawn_samples(workers, chunks, spans, 0, order).ravel()
    array([0., 1., 2., 3.])
    """
    n = spans[-1][1]
    drawn = np.sort(np.random.RandomState(0).choice(n, center_samples(n), replace=False))
    places = drawn if order is None else np.argsort(order)[drawn]
    return take_samples(workers, workers.map(_only, chunks, view=view), spans, places)[0]


def _only(chunk: Any, view: int) -> list[Array]:
    return [chunk[view]]


def near_together(
    workers: Threads | Cluster, chunks: list[Any], spans: list[Span]
) -> tuple[list[Any], list[Span], np.ndarray]:
    """Sort the samples by their cells in the first view.

    Parameters
    ----------
    workers : Threads or Cluster
        Where the chunks are, and stay.
    chunks, spans : list
        Chunks of all views, scaled, and their first and last rows; the list is emptied. A row of
        NaN is a sample that lacks the view; those that lack the first may be anywhere.

    Returns
    -------
    chunks, spans : list
        As many rows in each as the longest had, or a 32nd of all if that is more, about.
    order : (n,) array
        The former numbers of the samples.

    Examples
    --------
    >>> X = np.array([[0.0], [9.0], [1.0], [8.0]])
    >>> with Threads(1) as workers:
    ...     chunks, spans, order = near_together(workers, [[X[:2]], [X[2:]]], [(0, 2), (2, 4)])
    >>> spans, order, bool(np.all(chunks[0][0] == X[order]))
    ([(0, 4)], array([0, 1, 2, 3]), True)
    """
    n = spans[-1][1]
    sample = drawn_samples(workers, chunks, spans, 0)
    gone = missing_rows(sample)
    if gone is not None and gone.all():  # hardly any sample has the first view
        return list(chunks), spans, np.arange(n)
    centers = cell_centers(sample if gone is None else sample[~gone], n_cells(n), 0)
    tree, count = workers.share(cell_tree(centers)), len(centers)
    cells = workers.map(_cells, chunks, spans, tree=tree)
    sizes = sum(workers.collect(workers.map(np.bincount, cells, minlength=count)))
    most = max(*(stop - start for start, stop in spans), n // CHUNKS)
    goals = np.unique((np.cumsum(sizes) - sizes) // most, return_inverse=True)[1]
    sent = workers.map(_sent, chunks, cells, spans, goals=workers.share(goals))
    chunks.clear()  # their memory is needed
    moved = [
        workers.submit(_arrived, [workers.submit(pick, parts, i) for parts in sent])
        for i in range(goals[-1] + 1)
    ]
    del sent
    order = np.concatenate(workers.collect(workers.map(pick, moved, [1] * len(moved))))
    ends = [0, *np.cumsum(np.bincount(goals, weights=sizes)).astype(int).tolist()]
    return workers.map(pick, moved, [0] * len(moved)), list(pairwise(ends)), order


def _cells(chunk: Any, span: Span, tree: Tree) -> np.ndarray:
    """Cells of the samples of a chunk."""
    cells = np.arange(*span) % len(tree.centers)
    gone = missing_rows(chunk[0])
    there = slice(None) if gone is None else ~gone
    cells[there] = nearest_cells(chunk[0][there], tree, 1)[:, 0]
    return cells


def _sent(chunk: Any, cells: np.ndarray, span: Span, goals: np.ndarray) -> list[Moved]:
    """Samples of a chunk by the chunk they go to."""
    found = []
    for goal in range(goals[-1] + 1):
        rows = np.flatnonzero(goals[cells] == goal)
        found.append(Moved(take(chunk, rows), rows + span[0], cells[rows]))
    return found


def _arrived(parts: Sequence[Moved]) -> tuple[list[Array], np.ndarray]:
    """Samples that come from all chunks, by cell, and their numbers."""
    ids, cells = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    order = np.argsort(cells, kind="stable")
    views = [stack(several)[order] for several in zip(*(part.views for part in parts), strict=True)]
    return views, ids[order]
