"""The mean of the views' neighbor graphs, by chunks of rows: from files, or on a Dask cluster.

Every chunk of samples becomes a block of rows of the graph W. The neighbors are searched in cells;
links are then sent from the chunk that found them to that of the sample at their other end, so that
W is symmetric. On a cluster nothing of the size of the graph is ever in one place.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.chunked.chunks import Span
from polyspan.chunked.order import drawn_samples
from polyspan.chunked.workers import Cluster, Threads, pick
from polyspan.graphs.knn import SEVENTH
from polyspan.graphs.neighbors import Found, neighbors
from polyspan.inputs.rows import missing_rows
from polyspan.runtime.arrays import Array


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
    n_views = len(workers.collect(workers.submit(_shapes, chunks[0])))
    graphs, lacks = [], []
    for view in range(n_views):
        own, gone = _view_graph(workers, chunks, spans, view, k, weights, order)
        graphs.append(own)
        lacks.append(gone)
    chunks.clear()  # their memory is needed
    rows = workers.map(_sum, *graphs)
    del graphs, own
    sent = workers.map(_sent, rows, spans=spans)
    joined = [
        workers.submit(_joined, row, [workers.submit(pick, part, i) for part in sent])
        for i, row in enumerate(rows)
    ]
    del rows, sent
    lacks = [gone for gone in lacks if gone is not None]
    return workers.map(_mean, joined, spans, n_views=n_views, lacks=workers.share(lacks))


def _shapes(chunk: Any) -> list[tuple[int, ...]]:
    return [part.shape for part in chunk]


def _view_graph(
    workers: Any,
    chunks: list[Any],
    spans: list[Span],
    view: int,
    k: int,
    weights: str,
    order: np.ndarray | None,
) -> tuple[list[Any], np.ndarray | None]:
    """Rows of the graph of one view by chunks, and which samples lack the view."""
    seen = workers.collect(workers.map(_missing, chunks, view=view))
    n, gone, there = spans[-1][1], None, None
    if any(one is not None for one in seen):
        lengths = [stop - start for start, stop in spans]
        pairs = zip(seen, lengths, strict=True)
        parts = [np.zeros(length, bool) if one is None else one for one, length in pairs]
        gone = np.concatenate(parts)
        there = np.flatnonzero(~gone)
        order = None if order is None else order[there]
        chunks, view = workers.map(_present, chunks, parts, view=view), 0
        ends = np.concatenate([[0], np.cumsum([np.sum(~part) for part in parts])])
        spans = [(int(a), int(b)) for a, b in pairwise(ends)]
    sample = drawn_samples(workers, chunks, spans, view, order)
    found, _ = neighbors(workers, chunks, spans, view, min(k, spans[-1][1] - 1), sample)
    widths = None
    if weights == "self_tuning":
        widths = workers.submit(_widths, workers.map(_seventh, found))
    fixed = {"n": n, "there": workers.share(there), "widths": widths}
    graph = workers.map(_rows, found, spans, **fixed)
    return (graph if gone is None else workers.map(_spread, graph, parts)), gone


def _missing(chunk: Any, view: int) -> np.ndarray | None:
    return missing_rows(chunk[view])


def _present(chunk: Any, gone: np.ndarray, view: int) -> list[Array]:
    return [chunk[view][~gone]]


def _seventh(found: Found) -> np.ndarray:
    """Distances to the 7th neighbors, or to the last of fewer."""
    return np.sqrt(found.squares[:, : min(SEVENTH, found.squares.shape[1])][:, -1])


def _widths(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Width at every sample; 0, with seven duplicates, is replaced by the mean of the others."""
    s = np.concatenate(parts)
    known = (s > 0) & np.isfinite(s)
    return np.where(s > 0, s, np.mean(s[known]) if np.any(known) else 1.0)


def _rows(
    found: Found, span: Span, n: int, there: np.ndarray | None, widths: np.ndarray | None
) -> sp.csr_array:
    """Links of some samples in one view: those of the chunk that have it."""
    inside = found.ids >= 0
    columns = found.ids[inside]
    data = np.ones(len(columns)) if found.shares is None else found.shares[inside]
    ends = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    if widths is not None:
        own = np.repeat(widths[span[0] : span[1]], np.diff(ends))
        data = data * np.exp(-found.squares[inside] / (own * widths[columns]))
    columns = columns if there is None else there[columns]
    graph = sp.csr_array((data.astype(np.float32), columns, ends), shape=(len(inside), n))
    return _short(graph)


def _short(graph: sp.csr_array) -> sp.csr_array:
    """Sort a block of rows, and store its numbers in 32 bits where they fit."""
    graph.sort_indices()
    if max(graph.nnz, graph.shape[1]) < 2**31:
        graph.indices = graph.indices.astype(np.int32, copy=False)
        graph.indptr = graph.indptr.astype(np.int32, copy=False)
    return graph


def _spread(graph: sp.csr_array, gone: np.ndarray) -> sp.csr_array:
    """Add empty rows for the samples that lack the view."""
    counts = np.zeros(len(gone), dtype=np.int64)
    counts[~gone] = np.diff(graph.indptr)
    ends = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((graph.data, graph.indices, ends), shape=(len(gone), graph.shape[1]))


def _sum(*graphs: sp.csr_array) -> sp.csr_array:
    total: Any = sum(graphs[1:], start=graphs[0])
    return sp.csr_array(total)


def _sent(rows: sp.csr_array, spans: Sequence[Span]) -> list[sp.csr_array]:
    """Links of a chunk, turned around, by the chunk they lead to."""
    columns = sp.csr_array(rows.T)  # (n, rows of the chunk)
    return [_short(columns[start:stop]) for start, stop in spans]


def _joined(rows: sp.csr_array, parts: Sequence[sp.csr_array]) -> sp.csr_array:
    """Links of a chunk in both directions."""
    return _short(sp.csr_array(rows + sp.hstack(parts, format="csr")))


def _mean(
    rows: sp.csr_array, span: Span, n_views: int, lacks: Sequence[np.ndarray]
) -> sp.csr_array:
    """Divide sums by twice the number of views that both samples have."""
    shared: Any = n_views
    if lacks:
        i = np.repeat(np.arange(*span), np.diff(rows.indptr))
        shared = n_views - sum(np.where(gone[i] | gone[rows.indices], 1, 0) for gone in lacks)
    data = (rows.data / (2 * shared)).astype(np.float32)
    return sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
