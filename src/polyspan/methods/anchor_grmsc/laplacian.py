"""The Laplacian of AnchorGRMSC: first- and second-order graphs of the samples, on the workers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.graphs import neighbors as search
from polyspan.graphs import proximity
from polyspan.graphs.knn import Near, nearest_neighbors
from polyspan.inputs.scaling import Scale, numpy_views
from polyspan.inputs.views import Views
from polyspan.methods.anchor_grmsc import sparse_laplacian
from polyspan.runtime.arrays import Array
from polyspan.runtime.threads import bounds, whole_view

DENSE_BELOW = 2_000  # up to this many samples the graphs are exactly those of GRMSC


def sample_laplacian(
    workers: Any,
    chunks: list[Any],
    spans: list[Any],
    sample: Sequence[Array],
    k: int,
    alpha: float,
    second_width: str,
    random_state: np.random.RandomState,
    device: str | None = None,
    searched: Sequence[Near] | None = None,
) -> tuple[Any, Any, list[float]]:
    """Compute the Laplacian of all samples, their mean graph, and the recall of the neighbors.

    Laplacian and mean graph stay on the workers; there is a recall for every view.

    Parameters
    ----------
    workers : Threads or Cluster
        The workers that compute the Laplacian and keep it.
    chunks, spans : list
        Chunks of all views, and their first and last rows.
    sample : list of arrays
        Some samples of every view, for medians of distances and the cells of the search.
    k, alpha, second_width
        Parameters of `AnchorGRMSC`.
    random_state : RandomState
        Chooses the samples for the medians, the cells and the recall.
    device : str, optional
        An accelerator that searches the neighbors of more than 20,000 samples.
    searched : list, optional
        The k nearest neighbors in every view, if they are known; otherwise they are searched.

    Examples
    --------
    >>> from polyspan.runtime.threads import Threads
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> rng = np.random.RandomState(0)
    >>> with Threads(1) as workers:
    ...     L, S, recalls = sample_laplacian(workers, [[X]], [(0, 40)], [X], 5, 0.1, "own", rng)
    >>> bool(np.allclose(sparse_laplacian.product(L, np.ones((40, 1))), 0)), S.shape, recalls
    (True, (40, 40), [1.0])
    """
    n, v = spans[-1][1], len(sample)
    recalls = [1.0] * v
    order = rank = None
    if n <= DENSE_BELOW:
        graphs = workers.map(_dense_graph, range(v), chunks=chunks, k=k, second_width=second_width)
    else:
        few = random_state.choice(sample[0].shape[0], DENSE_BELOW, replace=False)
        queries = np.sort(random_state.choice(n, min(n, 300), replace=False))
        sigmas, lists = [], []
        for view, X in enumerate(sample):
            sigmas.append(proximity.median_distance(proximity.squared_distances(X[few])))
            seed = random_state.randint(2**31)
            there = device is not None and n > search.EXACT_BELOW and not sp.issparse(X)
            if searched is not None:
                near, cells = [_as_found(searched[view], X.dtype)], None
            elif there:
                near, cells = _on_device(chunks, spans, view, k, device), None
            else:
                near, cells = search.neighbors(workers, chunks, spans, view, k, X, seed)
            lists.append(near)
            if cells is not None or (there and n > search.DEVICE_EXACT):
                recalls[view] = search.recall(workers, chunks, spans, view, k, near, queries)
                if order is None and cells is not None:
                    order = workers.submit(_by_cell, cells)
                    rank = workers.submit(np.argsort, order)
        graphs = workers.map(
            sparse_laplacian.sparse_graph, lists, sigmas, second_width=second_width, rank=rank,
            sample=random_state.choice(n, DENSE_BELOW, replace=False),
        )  # fmt: skip
    rows = bounds(n, sparse_laplacian.ROWS)
    blocks = workers.map(sparse_laplacian.sparse_rows, rows, graphs=graphs, alpha=alpha)
    fixed = {"alpha": alpha, "order": order, "dtype": sample[0].dtype}
    L = workers.submit(sparse_laplacian.assemble, blocks, graphs, **fixed)
    return L, workers.submit(_mean_graph, graphs, rank=rank, dtype=sample[0].dtype), recalls


def exact_neighbors(views: Views, scale: Scale, k: int) -> list[Near] | None:
    """The neighbors of a middling number of samples in memory, which other methods need as well.

    None where the graphs are those of GRMSC, or every pair would be too many.

    Examples
    --------
    >>> views = Views([np.random.default_rng(0).normal(size=(3_000, 2))], ["0"])
    >>> [near.shares.nnz for near in exact_neighbors(views, "unit", 5)]
    [15000]
    """
    if not DENSE_BELOW < views.n_samples <= search.EXACT_BELOW:
        return None
    return [nearest_neighbors(X, k) for X in numpy_views(views, scale)]


def _as_found(near: Near, dtype: Any) -> search.Found:
    """Neighbors in rows of equal length."""
    pairs = near.rows, near.shares.indices, near.squares, near.shares.data
    return search.in_rows(len(near.nearest), 0, pairs, dtype)


def _on_device(chunks: Any, spans: Any, view: int, k: int, device: Any) -> list[search.Found]:
    ids, squares = search.device_neighbors(whole_view(chunks, view), k, device)
    return [search.Found(ids[start:stop], squares[start:stop]) for start, stop in spans]


def unreliable(recalls: Sequence[float]) -> list[Warning]:
    """Warnings about views in which too few neighbors were found."""
    return [
        UserWarning(
            f"Only {share:.0%} of the neighbors in view {view} were found: the graph of this view "
            "is not reliable; reduce its number of features first."
        )
        for view, share in enumerate(recalls)
        if share < 0.8
    ]


def _dense_graph(view: int, chunks: list[Any], k: int, second_width: str) -> sparse_laplacian.Graph:
    return sparse_laplacian.dense_graph(whole_view(chunks, view), k, second_width)


def _mean_graph(
    graphs: Sequence[sparse_laplacian.Graph], rank: np.ndarray | None, dtype: Any
) -> sp.csr_array:
    """Sum of the first-order graphs of the views, with samples in their own order."""
    S = sp.csr_array(sum(graph.Lambda for graph in graphs), dtype=dtype)
    return S if rank is None else S[rank][:, rank]


def _by_cell(cells: list[np.ndarray]) -> np.ndarray:
    """Order samples by their nearest cell, within it by the second nearest, and so on.

    Samples that are close in space are then mostly close in memory, too.
    """
    return np.lexsort(np.concatenate(cells).T[::-1])
