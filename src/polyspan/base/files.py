"""Graph methods that also take views which are read in chunks: files, lazy and dask arrays."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.base.graph import GraphClusterer
from polyspan.base.spine import MultiViewClusterer
from polyspan.chunked.chunks import make_chunks
from polyspan.chunked.order import near_together
from polyspan.chunked.sources import is_large, open_views
from polyspan.chunked.workers import Cluster, Threads, active_client
from polyspan.clustering.coarse import normalized_rows
from polyspan.clustering.large import cluster_blocks
from polyspan.graphs.neighbors import EXACT_BELOW
from polyspan.inputs.memory import available_memory, check_memory
from polyspan.inputs.scaling import numpy_views
from polyspan.inputs.views import Views, remember
from polyspan.solvers.arrays import Array
from polyspan.solvers.loop import Solution

CHUNK = 8192  # samples of a file that are read together; 16 times as many on a cluster


class TakesFiles(MultiViewClusterer):
    """Base of methods that also take views which are read in chunks."""

    def _open(self, X: Any) -> Views:
        """Check parameters and sizes of views that are read in chunks; nothing else is read."""
        self._check_params()
        if self.views is not None:
            raise ValueError(
                "views=... cuts one 2-D array in memory into views; pass files and lazy arrays as "
                "a list of views instead."
            )
        views = X if isinstance(X, Views) else Views(*open_views(X))
        if views.n_samples < 2:
            raise ValueError(f"view {views.names[0]} has 1 sample; clustering needs at least 2.")
        self._check_counts(views.n_samples)
        self._check_scales(len(views.arrays))
        self.view_names_ = views.names
        self._view_widths = [int(view.shape[1]) for view in views.arrays]
        remember(self, sum(self._view_widths))
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        return views


class ChunkedGraphClusterer(GraphClusterer, TakesFiles):
    """Base of methods whose graph can be found by rows; samples may lack views.

    A subclass has ``rows(workers, chunks, spans, order)``, which returns the blocks of W.
    """

    def check(self, X: Any) -> Views:
        """Check parameters and views without fitting; of large views only the sizes.

        Parameters
        ----------
        X : list, tuple or dict of views, or one view
            Samples in rows, as for any method, or memory-mapped, Zarr or dask arrays, or
            paths to ``.npy``, ``.parquet`` or ``.zarr`` (see the notes of the class).

        Returns
        -------
        Views
        """
        return self._open(X) if is_large(X) else super().check(X)

    def scaled(self, views: Views) -> list[Array]:
        """Scale samples, in NumPy; those of large views are scaled chunk by chunk."""
        return [] if is_large(views.arrays) else numpy_views(views, self.scale)

    def rows(self, workers: Any, chunks: list[Any], spans: Any, order: Any = None) -> list[Any]:
        """Blocks of rows of W, which stay on the workers; the list of chunks is emptied.

        ``order`` has the numbers of the samples in the rows, if they are not in order.
        """
        raise NotImplementedError

    def _check_scaled(self, views: Views, Xs: list[Array]) -> None:
        if not is_large(views.arrays):
            super()._check_scaled(views, Xs)

    def _solution(self, views: Views, Xs: list[Array], y: Any = None) -> Solution:
        large = is_large(views.arrays)
        return self._from_chunks(views) if large else super()._solution(views, Xs, y)

    def _cluster(self, found: Solution, views: Views, Xs: list[Array]) -> dict[str, Any]:
        if sp.issparse(found.Z):
            return super()._cluster(found, views, Xs)
        return {"labels_": found.Z}

    def _from_chunks(self, views: Views) -> Solution:
        """Return W of large views, or on a cluster the labels: there W stays with the workers."""
        single = all(getattr(view, "dtype", np.float64) == np.float32 for view in views.arrays)
        dtype, client = np.dtype("f4" if single else "f8"), active_client(views.arrays)
        if client is None:
            n, free = views.n_samples, available_memory()
            check_memory(type(self).__name__, n, 4, *self.footprint(views), free)
        size = CHUNK if client is None else 16 * CHUNK
        with Threads() if client is None else Cluster(client) as workers:
            chunks, spans, _ = make_chunks(
                workers, views, size, self.scale, dtype, new=True, missing=True
            )
            if client is None:
                return Solution(sp.vstack(self.rows(workers, chunks, spans), format="csr"))
            order = None
            if views.n_samples > EXACT_BELOW:  # where ties depend on the order anyway
                chunks, spans, order = near_together(workers, chunks, spans)
            blocks, root = normalized_rows(workers, self.rows(workers, chunks, spans, order), spans)
            given = self._given("n_clusters", "n_init", "random_state")
            labels = cluster_blocks(workers, blocks, spans, root=root, order=order, **given)
            return Solution(labels if order is None else labels[np.argsort(order)])
