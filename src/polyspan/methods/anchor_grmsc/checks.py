"""Checks of AnchorGRMSC before any work: wrong anchors, too little memory."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.chunked.workers import active_client, refuse_device
from polyspan.inputs.scaling import (
    STANDARDIZED,
    Scale,
    check_dense,
    check_products,
    constant_view,
    is_constant,
    scaling_per_view,
    short_indices,
    unit,
)
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import to_numpy
from polyspan.runtime.devices import check_device
from polyspan.runtime.memory import available_memory


def kind_of_anchors(value: Any) -> str | None:
    """Check that a value is a way to choose anchors, or the indices of samples."""
    words = "'kmeans' or 'sample' or a 1-D array of different sample numbers"
    if isinstance(value, str):
        return None if value in ("kmeans", "sample") else words
    found = np.asarray(value)
    usable = found.ndim == 1 and found.dtype.kind in "iu" and 0 < len(found) == len(set(found))
    return None if usable and found.min() >= 0 else words


def check_room(views: Views, m: int, k: int, size: int, device: str | None) -> None:
    """Raise if m anchors and k neighbors, in numbers of ``size`` bytes, do not fit in memory."""
    n = views.n_samples
    reduced = sum(min(m, int(view.shape[1])) + 1 for view in views.arrays)
    # The state, four m x n matrices for the systems to solve, and half of the two-hop entries
    # (there are fewer than k mutual neighbors) of every view, each with its column index.
    need = n * (size * (2 * reduced + 8 * m) + len(views.arrays) * k * k / 2 * (size + 4))
    client = active_client(views.arrays)
    free, where = available_memory(), "free"
    if client is not None:
        found = client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker["memory_limit"] for worker in found]
        free, where = sum(limits) if all(limits) else None, "on the cluster"
        refuse_device("AnchorGRMSC", device)
    elif device is not None:
        there = check_device("AnchorGRMSC", device)
        if there is not None and (free is None or there < free):
            free, where = there, f"free on {device}"
    if free is not None and need > free:
        raise MemoryError(
            f"AnchorGRMSC on {n} samples with {m} anchors needs about {need / 2**30:.0f} GiB, "
            f"but {free / 2**30:.0f} GiB are {where}: lower n_anchors or n_neighbors, use "
            'dtype="float32", or use dask arrays on a larger cluster.'
        )


def in_numpy(views: Views, scale: Scale) -> Views:
    """Return checked views in memory as NumPy or sparse arrays."""
    check_products(views, scale)
    scales = scaling_per_view(scale, len(views.arrays))
    for (view, name), one in zip(views, scales, strict=True):
        if one in STANDARDIZED and sp.issparse(view):
            check_dense(view, name, one)
    arrays = [short_indices(x) if sp.issparse(x) else to_numpy(x) for x in views.arrays]
    for view, name, one in zip(arrays, views.names, scales, strict=True):
        # Standardized views vary, and of most others the first rows do.
        if one == "unit" and is_constant(unit(view[:100])) and is_constant(unit(view)):
            raise constant_view(name, one, view.shape[1])
    return replace(views, arrays=arrays)
