"""The mean of the views' neighbor graphs, by chunks of rows: from files, or on a Dask cluster.

Every chunk of samples becomes a block of rows of the graph W. The neighbors are searched in cells;
links are then sent from the chunk that found them to that of the sample at their other end, so that
W is symmetric. On a cluster nothing of the size of the graph is ever in one place.

There the samples are first put in another order, in which those that are near each other lie
together: products with the graph read the rows of a sample's neighbors, most of which are then in
the cache, and a chunk has most of its links inside.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.chunked.workers import Cluster, Threads
from polyspan.graphs import neighbors as search
from polyspan.graphs.knn import common_views, entry_rows, local_widths, seventh_distances
from polyspan.inputs.rows import missing_rows
from polyspan.runtime.arrays import Array
from polyspan.runtime.threads import Span, stack, take, take_samples, unzip

CHUNKS = 32  # at most, if their rows are not given


def mean_graph_rows(
    workers: Threads | Cluster,
    chunks: list[Any],
    spans: list[Span],
    k: int,
    weights: str,
    order: np.ndarray | None = None,
) -> list[Any]:
    """Rows of the mean graph W of `MeanGraph`, one block for every chunk.

    Parameters
    ----------
    workers : Threads or Cluster
        Where the work runs, and where the blocks stay.
    chunks, spans : list
        Chunks of all views, scaled, and their first and last rows; a row of NaN is a sample that
        lacks the view. The list of chunks is emptied.
    k : int
        Number of neighbors in every view.
    weights : {"binary", "self_tuning"}
        As in `MeanGraph`.
    order : (n,) array, optional
        Numbers of the samples in the rows, if they are not in order.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> with Threads(1) as workers:
    ...     blocks = mean_graph_rows(workers, [[X[:3]], [X[3:]]], [(0, 3), (3, 4)], 1, "binary")
    >>> sp.vstack(blocks).toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 0., 0.],
           [0., 0., 0., 1.],
           [0., 0., 1., 0.]], dtype=float32)
    """
    n_views = workers.collect(workers.submit(len, chunks[0]))
    rows_of = [
        _view_graph(workers, chunks, spans, view, k, weights, order) for view in range(n_views)
    ]
    graphs, lacks = zip(*rows_of, strict=True)
    chunks.clear()  # their memory is needed
    rows = workers.map(_sum, *graphs)
    del rows_of, graphs
    sent = unzip(workers, workers.map(_sent, rows, spans=spans), len(rows))
    joined = workers.map(_joined, rows, sent)
    del rows, sent
    lacks = workers.share([gone for gone in lacks if gone is not None])
    return workers.map(_mean, joined, spans, n_views=n_views, lacks=lacks)


def _view_graph(
    workers: Any, chunks: Any, spans: Any, view: int, k: int, weights: str, order: np.ndarray | None
) -> tuple[list[Any], np.ndarray | None]:
    """Rows of the graph of one view by chunks, and which samples lack the view."""
    parts = workers.collect(workers.map(_missing, chunks, view=view))
    n, gone, there = spans[-1][1], np.concatenate(parts), None
    if gone.any():
        present, there = [np.flatnonzero(~part) for part in parts], np.flatnonzero(~gone)
        order = None if order is None else order[there]
        chunks, view = workers.map(take, chunks, present, view=view), 0
        spans = list(pairwise(np.cumsum([0, *map(len, present)]).tolist()))
    sample = drawn_samples(workers, chunks, spans, view, order)
    found, _ = search.neighbors(workers, chunks, spans, view, min(k, spans[-1][1] - 1), sample)
    widths = None
    if weights == "self_tuning":
        widths = workers.submit(local_widths, workers.map(_seventh, found))
    fixed = {"n": n, "there": workers.share(there), "widths": widths}
    graph = workers.map(_rows, found, spans, **fixed)
    return (graph, None) if there is None else (workers.map(_spread, graph, parts), gone)


def _missing(chunk: Any, view: int) -> np.ndarray:
    gone = missing_rows(chunk[view])
    return np.zeros(chunk[view].shape[0], bool) if gone is None else gone


def _seventh(found: search.Found) -> np.ndarray:
    return seventh_distances(found.squares)


def _rows(
    found: search.Found, span: Span, n: int, there: np.ndarray | None, widths: np.ndarray | None
) -> sp.csr_array:
    """Links of some samples in one view: those of the chunk that have it."""
    ids, squares, shares = found
    weights = np.ones(ids.shape) if shares is None else shares
    if widths is not None:
        weights = weights * np.exp(-squares / (widths[slice(*span), None] * widths[ids]))
    ids = ids if there is None else np.where(ids >= 0, there[ids], -1)
    return search.graph_rows(ids, weights.astype(np.float32), n)


def _spread(graph: sp.csr_array, gone: np.ndarray) -> sp.csr_array:
    """Add empty rows for the samples that lack the view."""
    counts = np.zeros(len(gone) + 1, dtype=graph.indptr.dtype)
    counts[1:][~gone] = np.diff(graph.indptr)
    ends = np.cumsum(counts, dtype=counts.dtype)
    return sp.csr_array((graph.data, graph.indices, ends), shape=(len(gone), graph.shape[1]))


def _sum(*graphs: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(sum(graphs[1:], start=graphs[0]))


def _sent(rows: sp.csr_array, spans: Sequence[Span]) -> list[sp.csr_array]:
    """Links of a chunk, turned around, by the chunk they lead to."""
    columns = sp.csr_array(rows.T)  # (n, rows of the chunk)
    return [columns[start:stop] for start, stop in spans]


def _joined(rows: sp.csr_array, parts: Sequence[sp.csr_array]) -> sp.csr_array:
    """Links of a chunk in both directions."""
    return sp.csr_array(rows + sp.hstack(parts, format="csr"))


def _mean(
    rows: sp.csr_array, span: Span, n_views: int, lacks: Sequence[np.ndarray]
) -> sp.csr_array:
    """Divide sums by twice the number of views that both samples have."""
    common: Any = n_views
    if lacks:
        common = common_views(n_views, lacks, entry_rows(rows) + span[0], rows.indices)
    data = (rows.data / (2 * common)).astype(np.float32)
    return sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def drawn_samples(
    workers: Any, chunks: list[Any], spans: list[Span], view: int, order: np.ndarray | None = None
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
    drawn = np.sort(np.random.RandomState(0).choice(n, search.center_samples(n), replace=False))
    places = drawn if order is None else np.argsort(order)[drawn]
    return take_samples(workers, chunks, spans, places, view)[0]


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
    centers = search.cell_centers(sample if gone is None else sample[~gone], search.n_cells(n), 0)
    tree, count = workers.share(search.cell_tree(centers)), len(centers)
    cells = workers.map(_cells, chunks, spans, tree=tree)
    sizes = sum(workers.collect(workers.map(np.bincount, cells, minlength=count)))
    most = max(*(stop - start for start, stop in spans), n // CHUNKS)
    goals = np.unique((np.cumsum(sizes) - sizes) // most, return_inverse=True)[1]
    sent = workers.map(_by_goal, chunks, cells, spans, goals=workers.share(goals))
    chunks.clear()  # their memory is needed
    moved, order = unzip(workers, workers.map(_arrived, unzip(workers, sent, goals[-1] + 1)), 2)
    del sent
    ends = np.cumsum([0, *np.bincount(goals, weights=sizes).astype(int)]).tolist()
    return moved, list(pairwise(ends)), np.concatenate(workers.collect(order))


def _cells(chunk: Any, span: Span, tree: search.Tree) -> np.ndarray:
    """Cells of the samples of a chunk."""
    cells = np.arange(*span) % len(tree.centers)
    gone = missing_rows(chunk[0])
    there = slice(None) if gone is None else ~gone
    cells[there] = search.nearest_cells(chunk[0][there], tree, 1)[:, 0]
    return cells


def _by_goal(chunk: Any, cells: np.ndarray, span: Span, goals: np.ndarray) -> list[Any]:
    """Samples of a chunk by the chunk they go to: rows in every view, numbers, and cells."""
    moved = [np.flatnonzero(goals[cells] == goal) for goal in range(goals[-1] + 1)]
    return [(take(chunk, rows), rows + span[0], cells[rows]) for rows in moved]


def _arrived(parts: Sequence[Any]) -> tuple[list[Array], np.ndarray]:
    """Samples that come from all chunks, by cell, and their numbers."""
    chunks, ids, cells = zip(*parts, strict=True)
    order = np.argsort(np.concatenate(cells), kind="stable")
    views = [stack(several)[order] for several in zip(*chunks, strict=True)]
    return views, np.concatenate(ids)[order]
