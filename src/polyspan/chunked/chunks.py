"""Chunks of rows of all views: read, checked, scaled and sampled, one at a time.

A chunk is a sequence of arrays, one per view: a list of them in memory or on a worker, or
`Rows`, which reads and scales a view whenever it is accessed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.chunked.sources import is_dask
from polyspan.chunked.workers import Cluster, Threads
from polyspan.inputs import scaling
from polyspan.inputs.rows import Content, check_content, joined, look
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array
from polyspan.runtime.memory import available_memory
from polyspan.runtime.optional import require
from polyspan.runtime.threads import Span, bounds


@dataclass(frozen=True)
class Rows:
    """Some rows of all views, not read yet, and how to scale them.

    Examples
    --------
    >>> rows = Rows([np.array([[3.0, 4.0], [0.0, 2.0]])], 0, 1, "unit", None, np.float64)
    >>> len(rows), rows[0]
    (1, array([[0.6, 0.8]]))
    """

    views: Sequence[Any]
    start: int
    stop: int
    scale: scaling.Scale
    moments: Sequence[Any] | None
    dtype: Any

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, k: int) -> Array:
        moments = None if self.moments is None else self.moments[k]
        scale = scaling.scaling_per_view(self.scale, len(self))[k]
        return scaled(self.read(k), scale, moments, self.dtype)

    def __iter__(self) -> Iterator[Array]:
        return (self[k] for k in range(len(self)))

    def read(self, k: int) -> Array:
        """Read the rows of one view, unscaled."""
        part = self.views[k][self.start : self.stop]
        if hasattr(part, "compute"):  # a dask array without a cluster
            part = part.compute(scheduler="synchronous")
        # Row-major: the memory layout must not affect the result.
        return part if sp.issparse(part) else np.ascontiguousarray(part)


def scaled(part: Array, scale: scaling.Scaling, moments: Any, dtype: Any) -> Array:
    """Scale rows of a view as `polyspan.inputs.scaling.scale_views` would scale the whole view.

    Examples
    --------
    >>> scaled(np.array([[3.0, 4.0]]), "unit", None, np.float32)
    array([[0.6, 0.8]], dtype=float32)
    """
    # Integers and float16 are scaled in float64, like views in memory.
    part = part.astype(part.dtype if part.dtype in (np.float32, np.float64) else np.float64)
    if scale in scaling.STANDARDIZED:
        size, mean, spread = (x.astype(part.dtype) for x in moments)
        part = scaling.standard(part.toarray() if sp.issparse(part) else part, (size, mean, spread))
    return (part if scale in ("standard", None) else scaling.unit(part)).astype(dtype)


def scaled_list(parts: Sequence[Array], **how: Any) -> list[Array]:
    """Scale rows of all views."""
    return list(Rows(parts, 0, parts[0].shape[0], **how))


def make_chunks(
    workers: Threads | Cluster,
    views: Views,
    size: int,
    scale: scaling.Scale,
    dtype: Any,
    new: bool,
    missing: bool = False,
) -> tuple[list[Any], list[Span], list[Any] | None]:
    """Cut views into chunks of at most ``size`` rows, check them if they are new, scale them.

    Parameters
    ----------
    workers : Threads or Cluster
        Where the work runs; with a cluster the chunks stay there.
    views : Views
        Arrays in memory, lazy ones, or dask arrays.
    size, scale, dtype
        Rows per chunk, scaling, and dtype of the scaled chunks.
    new : bool
        Whether the rows have not been checked yet.
    missing : bool, default=False
        Allow rows of NaN: samples that lack the view.

    Returns
    -------
    chunks, spans : list
        The chunks, and their first and last rows.
    moments : list or None
        The size, mean and spread used to standardize features; None for views where they were
        not, or for all of them.

    Examples
    --------
    >>> with Threads(1) as workers:
    ...     views = Views([np.eye(3)], ["0"])
    ...     chunks, spans, _ = make_chunks(workers, views, 2, "unit", np.float64, False)
    >>> [chunk[0].shape for chunk in chunks], spans
    ([(2, 3), (1, 3)], [(0, 2), (2, 3)])
    """
    raw: list[Any]
    if isinstance(workers, Cluster):
        raw, spans = dask_chunks(workers.client, views.arrays, size)
    else:
        spans = bounds(views.n_samples, size)
        raw = [Rows(views.arrays, *span, scale, None, dtype) for span in spans]
    moments: list[Any] | None = None
    scales = scaling.scaling_per_view(scale, len(views.arrays))
    standardized = [how in scaling.STANDARDIZED for how in scales]
    if new or any(standardized):
        seen = workers.collect(workers.map(inspect, raw))
        if new:
            check_content(contents(seen), views.names, missing=missing)
            check_directions(seen, views, scales)
        if any(standardized):
            used = zip(standardize(seen), standardized, strict=True)
            moments = [of_view if wanted else None for of_view, wanted in used]
    if isinstance(workers, Cluster):
        fixed = {"scale": scale, "moments": moments, "dtype": dtype}
        return workers.map(scaled_list, raw, **fixed), spans, moments
    lazy = [replace(part, moments=moments) for part in raw]
    free, features = available_memory(), sum(int(view.shape[1]) for view in views.arrays)
    need = views.n_samples * features * np.dtype(dtype).itemsize
    if free is None or need < free / 4 or any(sp.issparse(view) for view in views.arrays):
        lazy = workers.map(list, lazy)  # otherwise they are read again each time
    return lazy, spans, moments


class Inspected(NamedTuple):
    """What must be known about a chunk of one view before it is scaled."""

    content: Content
    size: np.ndarray  # largest absolute value of each column
    mean: np.ndarray
    squares: np.ndarray  # sums of squared deviations from the mean, in units of the size
    directions: np.ndarray  # of all rows, at most two that differ


def inspect(chunk: Any) -> list[Inspected]:
    """Inspect the rows of a chunk before they are scaled."""
    inspected = []
    parts = (chunk.read(k) for k in range(len(chunk))) if isinstance(chunk, Rows) else chunk
    for part in parts:
        part = part.toarray() if sp.issparse(part) else part
        content = look(part)
        there = part[~content.gone] if content.gone.any() else part
        clean = np.where(np.isfinite(there), there, 0).astype(np.float64)
        size = np.abs(clean).max(axis=0, initial=0.0)
        units = np.where(size > 0, size, 1)  # squares of very large numbers would overflow
        mean = (clean / units).sum(axis=0) / max(1, len(clean))
        squares = ((clean / units - mean) ** 2).sum(axis=0)
        rows = clean.astype(np.float32) if part.dtype == np.float32 else clean
        inspected.append(Inspected(content, size, mean * units, squares, directions(rows)))
    return inspected


def contents(seen: Sequence[Sequence[Inspected]]) -> list[Content]:
    """What the rows of every view hold, from all chunks."""
    return [joined([part.content for part in parts]) for parts in zip(*seen, strict=True)]


def directions(part: np.ndarray) -> np.ndarray:
    """The direction of all rows, or if they do not have the same one, two that differ most.

    Examples
    --------
    >>> directions(np.array([[3.0, 4.0], [6.0, 8.0]])), len(directions(np.eye(3)))
    (array([[0.6, 0.8]]), 2)
    """
    for some in (part[:100], part):  # most views vary in their first rows
        rows = scaling.unit(some)
        if len(part) > 1 and not scaling.is_constant(rows):
            return rows[[0, np.abs(rows - rows[0]).max(axis=1).argmax()]]
    return rows[:1]


def check_directions(
    seen: Sequence[Sequence[Inspected]], views: Views, scales: Sequence[scaling.Scaling]
) -> None:
    """Raise if all rows of a view are equal once they have unit length."""
    for parts, (view, name), how in zip(zip(*seen, strict=True), views, scales, strict=True):
        rows = np.concatenate([part.directions for part in parts])
        if how == "unit" and (len(rows) == 1 or scaling.is_constant(rows)):
            raise scaling.constant_view(name, how, view.shape[1])


def standardize(chunks: Sequence[Sequence[Inspected]]) -> list[tuple[np.ndarray, ...]]:
    """Size, mean and spread of every feature of every view, from the inspected chunks.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [4.0, 5.0]])
    >>> [(size, mean, spread)] = standardize([inspect([X[:1]]), inspect([X[1:]])])
    >>> np.allclose(size * mean, X.mean(axis=0)), np.allclose(size * spread, X.std(axis=0))
    (True, True)
    """
    moments: list[tuple[np.ndarray, ...]] = []
    for parts in zip(*chunks, strict=True):
        size = np.max([part.size for part in parts], axis=0)
        size[size == 0] = 1
        count, mean, squares = 0, 0.0 * size, 0.0 * size
        for part in parts:  # combine sums of squares about two means into one about their mean
            length = int(np.sum(~part.content.gone))
            gap, total = part.mean / size - mean, max(1, count + length)
            squares += part.squares * (part.size / size) ** 2 + gap**2 * count * length / total
            mean += gap * length / total
            count += length
        moments.append((size, mean, np.sqrt(squares / count)))
    return moments


def dask_chunks(client: Any, views: Sequence[Any], size: int) -> tuple[list[Any], list[Span]]:
    """Chunks of dask arrays as lists of futures of arrays, and their first and last rows.

    The rows are split like those of the first dask array, and at ``size`` where its chunks are
    longer.
    """
    da = require("dask.array", "scale", "a dask array")
    first = next(view for view in views if is_dask(view))
    lengths = [stop - start for c in first.chunks[0] for start, stop in bounds(int(c), size)]
    cut, whole = [], (tuple(lengths), -1)
    for view in views:
        array = view if is_dask(view) else da.from_array(view, chunks=whole, name=False)
        pieces = array.rechunk(whole).to_delayed()[:, 0]
        cut.append(client.compute(list(pieces)))
    spans = list(pairwise(np.cumsum([0, *lengths]).tolist()))
    return [list(parts) for parts in zip(*cut, strict=True)], spans
