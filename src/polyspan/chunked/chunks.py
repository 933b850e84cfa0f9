"""Chunks of rows of all views: read, looked at, scaled and taken apart, one at a time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.chunked.sources import is_dask
from polyspan.chunked.workers import Cluster, Threads, bounds
from polyspan.inputs.optional import require
from polyspan.inputs.scaling import _unit
from polyspan.inputs.views import _rows
from polyspan.solvers.arrays import Array

# ---- chunks ------------------------------------------------------------------------------------


class Rows(NamedTuple):
    """Some rows of all views, not read yet, and how to scale them."""

    views: list[Any]
    start: int
    stop: int
    scale: str | None
    scaling: list[Any] | None
    dtype: Any


def read(views: Sequence[Any], start: int, stop: int) -> list[Array]:
    """Read some rows of all views, as they are."""
    parts = []
    for view in views:
        part = view[start:stop]
        if hasattr(part, "compute"):  # a dask array without a cluster
            part = part.compute(scheduler="synchronous")
        # In the order of rows: the order in memory must not enter the result.
        parts.append(part if sp.issparse(part) else np.ascontiguousarray(part))
    return parts


def scaled(
    parts: Sequence[Array], scale: str | None, scaling: Sequence[Any] | None, dtype: Any
) -> list[Array]:
    """Scale rows of all views as `polyspan.inputs.scaling.scale_views` would scale the whole.

    Examples
    --------
    >>> scaled([np.array([[3.0, 4.0]])], "unit", None, np.float32)
    [array([[0.6, 0.8]], dtype=float32)]
    """
    done = []
    for k, part in enumerate(parts):
        # Integers and float16 are scaled in float64, as they are in memory.
        part = part.astype(part.dtype if part.dtype in (np.float32, np.float64) else np.float64)
        if scaling is not None:
            size, mean, spread = (x.astype(part.dtype) for x in scaling[k])
            part = part.toarray() if sp.issparse(part) else part
            part = np.where(spread > 0, (part / size - mean) / np.where(spread > 0, spread, 1), 0)
        done.append((part if scale is None else _unit(part)).astype(dtype))
    return done


def load(chunk: Any) -> list[Array]:
    """Return the scaled views of a chunk: what is in memory, or else it is read now."""
    if not isinstance(chunk, Rows):
        return chunk
    parts = read(chunk.views, chunk.start, chunk.stop)
    return scaled(parts, chunk.scale, chunk.scaling, chunk.dtype)


def take(chunk: Any, inside: np.ndarray) -> list[Array]:
    """Take some rows of a chunk, counted from its first."""
    return [part[inside] for part in load(chunk)]


def take_samples(
    workers: Threads | Cluster, chunks: list[Any], spans: list[Any], wanted: np.ndarray
) -> list[Array]:
    """Bring some samples of all views here, in the order in which they are wanted.

    Examples
    --------
    >>> X = np.arange(4.0)[:, None]
    >>> with Threads(1) as workers:
    ...     take_samples(workers, [[X[:2]], [X[2:]]], [(0, 2), (2, 4)], np.array([3, 0]))
    [array([[3.],
           [0.]])]
    """
    where = np.argsort(wanted, kind="stable")
    ordered = wanted[where]
    inside = [ordered[(ordered >= a) & (ordered < b)] - a for a, b in spans]
    parts = workers.collect(workers.map(take, chunks, inside))
    back = np.argsort(where, kind="stable")
    stack = [[part[k] for part in parts if part[k].shape[0]] for k in range(len(parts[0]))]
    return [
        (sp.vstack(X, format="csr") if sp.issparse(X[0]) else np.concatenate(X))[back]
        for X in stack
    ]


class Content(NamedTuple):
    """What must be known of a chunk of one view before any work."""

    bad: np.ndarray  # rows with NaN or inf
    nan: bool
    zero: np.ndarray  # rows of zeros
    first: np.ndarray  # first row, and whether all are equal to it
    equal: bool
    length: int
    size: np.ndarray  # largest absolute value of each column
    mean: np.ndarray
    squares: np.ndarray  # sums of squared distances to the mean, in units of the size


def inspect(chunk: Any, start: int) -> list[Content]:
    """Look at the rows of a chunk, which begins at row ``start``, before they are scaled."""
    found = []
    for part in read(*chunk[:3]) if isinstance(chunk, Rows) else chunk:
        part = part.toarray() if sp.issparse(part) else part
        finite = np.isfinite(part)
        clean = np.where(finite, part, 0).astype(np.float64)
        size = np.abs(clean).max(axis=0)
        unit = np.where(size > 0, size, 1)  # squares of very large numbers would overflow
        mean = (clean / unit).mean(axis=0)
        found.append(
            Content(
                np.flatnonzero(~finite.all(axis=1)) + start, bool(np.isnan(part).any()),
                np.flatnonzero(~part.any(axis=1)) + start, part[0],
                bool((part == part[:1]).all()), len(part), size, mean * unit,
                ((clean / unit - mean) ** 2).sum(axis=0),
            )
        )  # fmt: skip
    return found


def check_finite(contents: Sequence[Sequence[Content]], names: Sequence[str]) -> None:
    """Refuse NaN and inf, naming the view and the rows.

    Examples
    --------
    >>> X = np.array([[1.0], [np.nan], [3.0]])
    >>> check_finite([inspect([X[:1]], 0), inspect([X[1:]], 1)], ["'text'"])
    Traceback (most recent call last):
    ...
    ValueError: view 'text' contains NaN in 1 of 3 samples (row 1): drop or impute these values ...
    """
    for parts, name in zip(zip(*contents, strict=True), names, strict=True):
        bad = np.concatenate([part.bad for part in parts])
        n = sum(part.length for part in parts)
        if len(bad):
            what = "NaN" if any(part.nan for part in parts) else "inf (infinite values)"
            raise ValueError(
                f"view {name} contains {what} in {len(bad)} of {n} samples "
                f"({_rows(np.isin(np.arange(n), bad))}): drop or impute these values before "
                "clustering."
            )


def check_content(
    contents: Sequence[Sequence[Content]], names: Sequence[str], new: bool = False
) -> None:
    """Refuse what no method can use: NaN, inf, constant views, samples that are zero throughout.

    Samples that are ``new`` to a fitted model may be constant.
    """
    check_finite(contents, names)
    n = sum(chunk[0].length for chunk in contents)
    zeros = []
    for parts, name in zip(zip(*contents, strict=True), names, strict=True):
        first = parts[0].first
        if not new and all(part.equal and np.array_equal(part.first, first) for part in parts):
            raise ValueError(
                f"view {name} is constant (all {n} samples are equal), so it tells nothing about "
                "clusters: leave it out."
            )
        zeros.append(np.isin(np.arange(n), np.concatenate([part.zero for part in parts])))
    lost = np.logical_and.reduce(zeros)
    if lost.any():
        raise ValueError(
            f"{lost.sum()} of {n} samples are all zeros in every view ({_rows(lost)}): drop them, "
            "nothing is known about them."
        )


def standardize(chunks: Sequence[Sequence[Content]]) -> list[tuple[np.ndarray, ...]]:
    """Size, mean and spread of every feature of every view, from what is known of the chunks.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [3.0, 5.0], [4.0, 5.0]])
    >>> [(size, mean, spread)] = standardize([inspect([X[:1]], 0), inspect([X[1:]], 1)])
    >>> np.allclose(size * mean, X.mean(axis=0)), np.allclose(size * spread, X.std(axis=0))
    (True, True)
    """
    found: list[tuple[np.ndarray, ...]] = []
    for parts in zip(*chunks, strict=True):
        size = np.max([part.size for part in parts], axis=0)
        size[size == 0] = 1
        count, mean, squares = 0, 0.0 * size, 0.0 * size
        for part in parts:  # sums of squares about two means make one about the common mean
            gap, total = part.mean / size - mean, count + part.length
            squares += part.squares * (part.size / size) ** 2 + gap**2 * count * part.length / total
            mean += gap * part.length / total
            count = total
        spread = np.sqrt(squares / count)
        noise = 10 * np.finfo(float).eps  # a constant feature has a spread of rounding errors
        found.append((size, mean, np.where(spread > noise, spread, 0)))
    return found


def dask_chunks(client: Any, views: Sequence[Any], size: int) -> tuple[list[Any], list[Any]]:
    """Chunks of dask arrays as futures of lists of arrays, and their first and last rows.

    The rows are cut as those of the first dask array are, and at ``size`` where its chunks are
    longer.
    """
    da = require("dask.array", "scale", "a dask array")
    first = next(view for view in views if is_dask(view))
    lengths = [stop - start for c in first.chunks[0] for start, stop in bounds(int(c), size)]
    cut = []
    for view in views:
        whole = (tuple(lengths), -1)
        array = view if is_dask(view) else da.from_array(view, chunks=whole, name=False)
        pieces = array.rechunk(whole).to_delayed()[:, 0]
        cut.append(client.compute(list(pieces)))
    ends = np.cumsum(lengths)
    spans = [(int(b - a), int(b)) for a, b in zip(lengths, ends, strict=True)]
    return [list(parts) for parts in zip(*cut, strict=True)], spans
