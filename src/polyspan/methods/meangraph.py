"""MeanGraph: spectral clustering of the mean of the views' neighbor graphs.

A_v links every sample to its k nearest in view v::

    W = 1/V sum_v (A_v + A_v^T) / 2

with weights 1, or those of self-tuning spectral clustering, in which s_i is the distance of sample
i to its 7th neighbor (to the k-th, if k is below 7)::

    (A_v)_ij = exp(-d_ij^2 / (s_i s_j))

Of two samples that lack views, the mean is over the views that both have. Samples that are equally
far share the last places among the k (`polyspan.graphs.knn`): W does not depend on the order of the
samples. s_i = 0, with seven duplicates, is replaced by the mean of the other s.

The graphs stay apart until they are added: a view that sees the clusters is not drowned by the
features of another. It is the simplest late fusion, and a baseline that is hard to beat.

Reference for the weights: L. Zelnik-Manor, P. Perona, "Self-tuning spectral clustering", NIPS 2004.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.base import About, Graph, InNumPy, Labels, OnDevice, TakesFiles
from polyspan.chunked.chunks import make_chunks
from polyspan.chunked.graph import mean_graph_rows, near_together
from polyspan.chunked.sources import is_large
from polyspan.chunked.workers import Cluster, Threads, active_client
from polyspan.clustering.large import cluster_blocks, normalized_rows
from polyspan.graphs.knn import mean_of_graphs, neighbor_graph
from polyspan.graphs.neighbors import EXACT_BELOW
from polyspan.inputs.params import Neighbors, fitted, one_of, param
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array
from polyspan.runtime.memory import available_memory, check_memory

CHUNK = 8192  # samples of a file that are read together; 16 times as many on a cluster


class MeanGraph(TakesFiles, InNumPy, OnDevice):
    """Mean of the neighbor graphs of the views: sparse, takes samples that lack views.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors in the graph of every view; None is 10 (at most n - 1), and beyond 10,000 samples
        more in proportion to log n, 13 for a million, so that the graph stays in one piece.
    weights : {"binary", "self_tuning"}, default="binary"
        Weights of the links: 1, or smaller for samples that are far apart, measured by the
        distances around them.
    scale : {"unit", "standard+unit", None}, default="unit"
        Scaling of samples to unit length, after standardizing features if asked.
    n_init : int, default=20
        Restarts of k-means.
    device : str or None, default=None
        An accelerator, such as ``"cuda"``, on which the neighbors of more than 20,000 samples are
        searched, up to 200,000 exactly (needs torch).
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views.
    random_state : int, RandomState or None, default=None
        Seeds k-means; the graph does not depend on it.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    affinity_matrix_ : scipy.sparse matrix
        The mean graph W. Not kept when fitted on a Dask cluster.

    Notes
    -----
    Among more than 20,000 samples the neighbors are approximate (`polyspan.graphs.knn`): W depends
    a little on the order of the samples then; clusters come from `polyspan.clustering.large`.

    Views may also be memory-mapped, Zarr or dask arrays, or paths to ``.npy``, ``.parquet`` and
    ``.zarr``; these are read in chunks. dask arrays are fitted on the active
    ``distributed.Client``, if there is one; then the graph stays on its workers, too.

    Examples
    --------
    >>> from polyspan import MeanGraph
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, subspace_dim=2, random_state=0)
    >>> MeanGraph(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="baseline",
        objective="normalized cut of the mean of the views' k-NN graphs",
        needs="n_neighbors, scale; views may be files or dask arrays",
        cost="O(n^2 d) once, beyond 20,000 samples O(n d 5000); sparse eigenvectors",
    )
    family = "mean graph"
    view_tags = {"missing_views": True}
    solve_counts = False

    n_neighbors: int | None = param(Neighbors(10), default=None)
    weights: str = param(one_of("binary", "self_tuning"), default="binary")

    affinity_matrix_: sp.csr_array = fitted()

    def scaled(self, views: Views) -> list[Array]:
        """Scale samples, in NumPy; those of large views are scaled chunk by chunk."""
        return [] if is_large(views.arrays) else super().scaled(views)

    def solve(self, views: Views, Xs: list[Array]) -> Graph | Labels:
        """Return the mean graph W, or of dask arrays on a cluster the labels: W stays there."""
        if is_large(views.arrays):
            return self._solve_in_chunks(views)
        k = self._links(views.n_samples)
        graphs = [neighbor_graph(X, k, self.weights, self.device) for X in Xs]
        return Graph(mean_of_graphs(graphs, Xs))

    def _solve_in_chunks(self, views: Views) -> Graph | Labels:
        single = all(getattr(view, "dtype", np.float64) == np.float32 for view in views.arrays)
        dtype, client = np.dtype("f4" if single else "f8"), active_client(views.arrays)
        n, k = views.n_samples, self._links(views.n_samples)
        if client is None:
            check_memory(type(self).__name__, n, 4, *self.footprint(views), available_memory())
        size = CHUNK if client is None else 16 * CHUNK
        with Threads() if client is None else Cluster(client) as workers:
            chunks, spans, _ = make_chunks(
                workers, views, size, self.scale, dtype, new=True, missing=True
            )
            order = None
            if client is not None and n > EXACT_BELOW:  # where ties depend on the order anyway
                chunks, spans, order = near_together(workers, chunks, spans)
            rows = mean_graph_rows(workers, chunks, spans, k, self.weights, order)
            if client is None:
                return Graph(sp.vstack(rows, format="csr"))
            blocks, root = normalized_rows(workers, rows, spans)
            given = self._given("n_clusters", "n_init", "random_state")
            labels = cluster_blocks(workers, blocks, spans, root=root, order=order, **given)
            return Labels(labels if order is None else labels[np.argsort(order)])

    def _check_scaled(self, views: Views, Xs: list[Array]) -> None:
        if not is_large(views.arrays):
            super()._check_scaled(views, Xs)

    def _outcome(self, views: Views, Xs: list[Array]) -> Any:
        # What is read in chunks is not kept for other fits.
        return self.solve(views, Xs) if is_large(views.arrays) else super()._outcome(views, Xs)

    def _links(self, n: int) -> int:
        """Neighbors per view."""
        more = round(1.5 * np.log10(max(n, 10_000) / 10_000)) if self.n_neighbors is None else 0
        return self._neighbors(n) + int(more)

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count numbers per sample: features twice, and links with their places."""
        links = self._links(views.n_samples) * len(views.arrays)
        return 0.0, sum(views.widths) + 2 * max(views.widths) + 16 * links + 2 * self.n_clusters
