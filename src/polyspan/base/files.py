"""Methods that also take views which are read in chunks: files, lazy arrays, dask arrays."""

from typing import Any

from polyspan.base.kinds import ScaledClusterer
from polyspan.chunked.sources import open_views
from polyspan.inputs.views import Views, remember


class FromFiles(ScaledClusterer):
    """Base of methods whose views may be files or lazy arrays."""

    def _open(self, X: Any) -> Views:
        """Check parameters and sizes of views that are read in chunks; nothing else is read."""
        self._check_params()
        if self.views is not None:
            raise ValueError(
                "views=... cuts one 2-D array in memory into views; pass files and lazy arrays as "
                "a list of views instead."
            )
        views = Views(*open_views(X))
        if views.n_samples < 2:
            raise ValueError(f"view {views.names[0]} has 1 sample; clustering needs at least 2.")
        self._check_counts(views.n_samples)
        self._check_scales(len(views.arrays))
        self.view_names_ = views.names
        self._view_widths = [int(view.shape[1]) for view in views.arrays]
        remember(self, sum(self._view_widths))
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        return views
