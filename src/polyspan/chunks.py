"""Views in chunks of rows, from arrays, files or a cluster, and those who work on the chunks.

A method for many samples is a few functions of one chunk and a few sums over all chunks. Whether
the functions run one after another, in threads or on a Dask cluster is decided here, once: both
`Threads` and `Cluster` have ``map`` (one call per chunk), ``submit`` (one call) and ``collect``
(what came out). The functions are pure, so a call that is lost with its machine can be repeated.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_info, threadpool_limits

from polyspan.datasets.optional import require
from polyspan.linalg import Array
from polyspan.views import _rows, _unit

SUFFIXES = (".npy", ".parquet", ".zarr")
BLOCK = 32  # columns that are solved for together


# ---- who works ---------------------------------------------------------------------------------


class Threads:
    """Work on chunks in this process, in ``n_jobs`` threads; 1 is a plain loop.

    None is as many threads as BLAS and OpenMP would use. Each of ours gets one of theirs: results
    then do not depend on how many there are.

    Examples
    --------
    >>> with Threads(2) as workers:
    ...     workers.collect(workers.map(pow, [1, 2, 3], [2, 2, 2]))
    [1, 4, 9]
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        if n_jobs is None:
            n_jobs = max((library["num_threads"] for library in threadpool_info()), default=1)
        self.n_jobs = n_jobs

    def columns(self, m: int) -> list[tuple[int, int]]:
        """Cut m columns into blocks; fixed, so that nothing depends on the threads."""
        return bounds(m, BLOCK)

    def __enter__(self) -> "Threads":
        self._limit = threadpool_limits(1)
        # The limit of OpenMP belongs to a thread, so every thread sets its own.
        self._pool = ThreadPoolExecutor(self.n_jobs, initializer=threadpool_limits, initargs=(1,))
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._limit.restore_original_limits()

    def map(self, function: Callable[..., Any], *lists: Sequence[Any], **fixed: Any) -> list[Any]:
        """Call ``function`` with the first of every list, then with the second, and so on."""
        if self.n_jobs == 1:
            return [function(*one, **fixed) for one in zip(*lists, strict=True)]
        calls = [self._pool.submit(function, *a, **fixed) for a in zip(*lists, strict=True)]
        return [call.result() for call in calls]

    def submit(self, function: Callable[..., Any], *args: Any, **fixed: Any) -> Any:
        """Call once."""
        return function(*args, **fixed)

    def share(self, value: Any) -> Any:
        """Make something known to all."""
        return value

    def collect(self, results: Any) -> Any:
        """Return what `map` or `submit` gave."""
        return results


class Cluster:
    """Work on chunks where a ``distributed.Client`` leads: only what is collected comes back.

    Whatever `map` and `submit` return stays on the workers; when one of them is lost, Dask repeats
    the calls that led to what it held.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._threads = sum(client.nthreads().values())

    def columns(self, m: int) -> list[tuple[int, int]]:
        """Cut m columns into blocks, one for every thread of the cluster if they are not tiny."""
        return bounds(m, min(BLOCK, max(4, -(-m // max(self._threads, 1)))))

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, function: Callable[..., Any], *lists: Sequence[Any], **fixed: Any) -> list[Any]:
        """Call ``function`` with the first of every list, then with the second, and so on."""
        return [self.submit(function, *a, **fixed) for a in zip(*lists, strict=True)]

    def submit(self, function: Callable[..., Any], *args: Any, **fixed: Any) -> Any:
        """Call once."""
        return self.client.submit(function, *args, **fixed, pure=False)

    def share(self, value: Any) -> Any:
        """Send something once, for many calls; unlike scattered data it survives a lost worker."""
        return self.submit(_same, value)

    def collect(self, results: Any) -> Any:
        """Bring results here."""
        return self.client.gather(results)


def _same(value: Any) -> Any:
    return value


def pick(pair: Sequence[Any], i: int) -> Any:
    """Return one of several results, where they are."""
    return pair[i]


# ---- where rows come from ----------------------------------------------------------------------


class Parquet:
    """Rows of a Parquet file of number columns; the row groups last used stay in memory.

    The index that pandas wrote is no feature.
    """

    dtype, ndim = np.dtype(np.float64), 2  # dask wants to know

    def __init__(self, path: Path) -> None:
        parquet = require("pyarrow.parquet", "scale", f"reading {path.name}")
        self._path = path.absolute()
        self._file = parquet.ParquetFile(path)
        meta, schema = self._file.metadata, self._file.schema_arrow
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        self._columns = [i for i, name in enumerate(schema.names) if name not in index]
        bad = [schema.names[i] for i in self._columns if not _is_number(schema.types[i])]
        if bad:
            raise ValueError(
                f"{path.name} has columns that are not numbers ({', '.join(bad[:5])}): drop or "
                "encode them first."
            )
        self.shape = (meta.num_rows, len(self._columns))
        self._ends = np.cumsum([meta.row_group(i).num_rows for i in range(meta.num_row_groups)])
        self._kept: tuple[tuple[int, ...], np.ndarray] = ((), np.empty(0))
        self._lock = Lock()  # one reader at a time: the library crashes otherwise

    def __reduce__(self) -> tuple[Any, ...]:
        return Parquet, (self._path,)  # another process opens the file itself

    def __getitem__(self, where: Any) -> np.ndarray:
        rows, columns = where if isinstance(where, tuple) else (where, slice(None))
        first, last = np.searchsorted(self._ends, [rows.start, rows.stop - 1], side="right")
        groups = tuple(range(int(first), int(last) + 1))
        with self._lock:
            if self._kept[0] != groups:
                table = self._file.read_row_groups(list(groups), use_threads=False)
                found = [table.column(i).to_numpy() for i in self._columns]
                self._kept = groups, np.column_stack(found).astype(np.float64)
            values = self._kept[1]
        start = 0 if first == 0 else int(self._ends[first - 1])
        return values[rows.start - start : rows.stop - start, columns]


def _is_number(kind: Any) -> bool:
    types = require("pyarrow.types", "scale", "reading Parquet")
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def is_large(X: Any) -> bool:
    """Whether X, or one of the views in it, is to be read in chunks: a file, a lazy array.

    Examples
    --------
    >>> is_large([np.eye(3)]), is_large(["view.npy", np.eye(3)])
    (False, True)
    """
    if isinstance(X, Mapping):
        X = list(X.values())
    if isinstance(X, list | tuple):
        return any(_is_lazy(view) for view in X)
    return _is_lazy(X)


def _is_lazy(view: Any) -> bool:
    if isinstance(view, str | Path | np.memmap | Parquet):
        return True
    return type(view).__module__.split(".")[0] in ("zarr", "dask") and hasattr(view, "shape")


def is_dask(view: Any) -> bool:
    """Whether a view is a dask array."""
    return type(view).__module__.split(".")[0] == "dask" and hasattr(view, "to_delayed")


def open_views(X: Any) -> tuple[list[Any], list[str]]:
    """Open what a user gave as large views: things with ``shape`` and rows to slice, and names.

    Nothing is read but sizes.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "text.npy"
    ...     np.save(path, np.eye(3))
    ...     views, names = open_views([path, np.ones((3, 2))])
    >>> [view.shape for view in views], names
    ([(3, 3), (3, 2)], ['0', '1'])
    """
    if isinstance(X, Mapping):
        named = {repr(name): view for name, view in X.items()}
    else:
        several = X if isinstance(X, list | tuple) else [X]
        named = {str(k): view for k, view in enumerate(several)}
    views = [_open(view, name) for name, view in named.items()]
    names = list(named)
    for view, name in zip(views, names, strict=True):
        if len(view.shape) != 2 or 0 in view.shape:
            raise ValueError(
                f"view {name} has the shape {tuple(view.shape)}: a view is 2-D, with samples in "
                "rows and features in columns, and has some of both."
            )
    lengths = [int(view.shape[0]) for view in views]
    if len(set(lengths)) > 1:
        told = ", ".join(f"view {a} has {b} samples" for a, b in zip(names, lengths, strict=True))
        raise ValueError(f"The views differ in length: {told}; every view needs the same samples.")
    return views, names


def _open(view: Any, name: str) -> Any:
    if isinstance(view, str | Path):
        path = Path(view)
        if path.suffix not in SUFFIXES:
            raise ValueError(
                f"view {name}: cannot read {path.name}; the files that are read in chunks end in "
                f"{', '.join(SUFFIXES)}."
            )
        if not path.exists():
            raise FileNotFoundError(f"view {name}: there is no file {path}.")
        if path.suffix == ".npy":
            view = np.load(path, mmap_mode="r")
        elif path.suffix == ".parquet":
            view = Parquet(path)
        else:
            view = require("zarr", "scale", f"reading {path.name}").open_array(path, mode="r")
    if sp.issparse(view):
        return sp.csr_array(view)
    if is_dask(view):
        _check_dask(view, name)
    if not hasattr(view, "shape"):
        view = np.asarray(view)
    kind = getattr(np.dtype(getattr(view, "dtype", float)), "kind", "f")
    if kind not in "fiub":
        raise ValueError(f"view {name} holds {view.dtype} values: convert them to numbers.")
    return view


def _check_dask(view: Any, name: str) -> None:
    """Refuse dask tables, and arrays made of them, that do not know their number of rows."""
    is_array = hasattr(type(view), "chunks")
    if not is_array or any(np.isnan(size) for sizes in view.chunks for size in sizes):
        what = "dask array with chunks of unknown size" if is_array else "dask table"
        raise ValueError(
            f"view {name} is a {what}: give the array that the table's "
            "to_dask_array(lengths=True) returns."
        )


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
    """Scale rows of all views as `polyspan.views.scale_views` would scale the whole.

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


def bounds(n: int, size: int) -> list[tuple[int, int]]:
    """First and last row (not included) of every chunk.

    Examples
    --------
    >>> bounds(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def active_client(views: Sequence[Any]) -> Any:
    """Return the active ``distributed.Client`` when a view is a dask array, else None."""
    if not any(is_dask(view) for view in views):
        return None
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


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
