"""Where rows come from: arrays, files and lazy arrays that need not fit in memory."""

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.inputs.views import Views, different_lengths
from polyspan.io.columns import as_ids
from polyspan.io.containers import annotated_kind, is_other_table, names_of
from polyspan.io.samples import is_frame
from polyspan.runtime.messages import view_title
from polyspan.runtime.optional import require

SUFFIXES = (".npy", ".parquet", ".zarr")


class Parquet:
    """Rows of a Parquet file with numeric columns; the row groups last used stay in memory.

    An index written by pandas is not a feature.
    """

    dtype, ndim = np.dtype(np.float64), 2  # needed by dask

    def __init__(self, path: Path) -> None:
        parquet = require("pyarrow.parquet", "scale", f"reading {path.name}")
        self._path = path.absolute()
        self._file = parquet.ParquetFile(path)
        meta, schema = self._file.metadata, self._file.schema_arrow
        index = (schema.pandas_metadata or {}).get("index_columns", [])
        self._index = [name for name in index if name in schema.names]  # not a range
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
        self._lock = Lock()  # one reader at a time; otherwise the library crashes

    def __reduce__(self) -> tuple[Any, ...]:
        return Parquet, (self._path,)  # another process opens the file itself

    def ids(self) -> list[str] | None:
        """The index that pandas wrote, as text; None if there is none, or only a range."""
        if len(self._index) != 1:
            return None
        return as_ids(self._file.read(self._index).column(0).to_pylist())

    def __getitem__(self, where: Any) -> np.ndarray:
        rows, columns = where if isinstance(where, tuple) else (where, slice(None))
        first, last = np.searchsorted(self._ends, [rows.start, rows.stop - 1], side="right")
        groups = tuple(range(int(first), int(last) + 1))
        with self._lock:
            if self._kept[0] != groups:
                table = self._file.read_row_groups(list(groups), use_threads=False)
                columns_read = [table.column(i).to_numpy() for i in self._columns]
                self._kept = groups, np.column_stack(columns_read).astype(np.float64)
            values = self._kept[1]
        start = 0 if first == 0 else int(self._ends[first - 1])
        return values[rows.start - start : rows.stop - start, columns]


def _is_number(kind: Any) -> bool:
    types = require("pyarrow.types", "scale", "reading Parquet")
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def is_large(X: Any) -> bool:
    """Whether X, or one of the views in it, must be read in chunks: a file or a lazy array.

    Examples
    --------
    >>> is_large([np.eye(3)]), is_large(["view.npy", np.eye(3)])
    (False, True)
    """
    return any(_is_lazy(view) for view in _several(X))


def holds_dask(X: Any) -> bool:
    """Whether X, or one of the views in it, is a dask array.

    Examples
    --------
    >>> holds_dask([np.eye(3)]), holds_dask("view.npy")
    (False, False)
    """
    return any(is_dask(view) for view in _several(X))


def _several(X: Any) -> list[Any]:
    """The views in X."""
    if isinstance(X, Views):
        return X.arrays
    if isinstance(X, Mapping):
        return list(X.values())
    return list(X) if isinstance(X, list | tuple) else [X]


def _is_lazy(view: Any) -> bool:
    if isinstance(view, str | Path | np.memmap | Parquet):
        return True
    return type(view).__module__.split(".")[0] in ("zarr", "dask") and hasattr(view, "shape")


def is_dask(view: Any) -> bool:
    """Whether a view is a dask array."""
    return type(view).__module__.split(".")[0] == "dask" and hasattr(view, "to_delayed")


def open_views(X: Any) -> tuple[list[Any], list[str]]:
    """Open large views as objects with a ``shape`` and rows to slice; return them and their names.

    Only sizes are read.

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
        named = {name: X[key] for name, key in names_of(X).items()}
    else:
        named = {str(k): view for k, view in enumerate(_several(X))}
    names, views = list(named), [_open(view, name) for name, view in named.items()]
    for view, name in zip(views, names, strict=True):
        if len(view.shape) != 2 or 0 in view.shape:
            raise ValueError(
                f"{view_title(name)} has the shape {tuple(view.shape)}: a view must be 2-D, with "
                "samples in rows and features in columns, at least one of each."
            )
    lengths = [int(view.shape[0]) for view in views]
    if len(set(lengths)) > 1:
        raise different_lengths(names, lengths)
    _check_ids(views, names)
    return views, names


def _check_ids(views: list[Any], names: list[str]) -> None:
    """Refuse Parquet files whose ids differ: rows that are read in chunks are matched by order."""
    files = [pair for pair in zip(names, views, strict=True) if isinstance(pair[1], Parquet)]
    known = [(name, ids) for name, view in files if (ids := view.ids()) is not None]
    for name, ids in known[1:]:
        first, wanted = known[0]
        if ids != wanted:
            i = next(i for i, (a, b) in enumerate(zip(ids, wanted, strict=True)) if a != b)
            raise ValueError(
                f"{view_title(name)} has other ids in its index than {view_title(first)}, or in "
                f"another order (row {i}: {ids[i]!r} and {wanted[i]!r}), but rows that are read in "
                "chunks are matched by order: save the files with the same samples in one order."
            )


def _open(view: Any, name: str) -> Any:
    if isinstance(view, str | Path):
        path = Path(view)
        if path.suffix not in SUFFIXES:
            raise ValueError(
                f"{view_title(name)}: cannot read {path.name}; files that are read in chunks must "
                f"end in {', '.join(SUFFIXES)}; load_views of polyspan.datasets reads others into "
                "memory."
            )
        if not path.exists():
            raise FileNotFoundError(f"{view_title(name)}: there is no file {path}.")
        if path.suffix == ".npy":
            view = np.load(path, mmap_mode="r")
        elif path.suffix == ".parquet":
            view = Parquet(path)
        else:
            view = require("zarr", "scale", f"reading {path.name}").open_array(path, mode="r")
    if sp.issparse(view):
        return sp.csr_array(view)
    if is_frame(view) or is_other_table(view) or annotated_kind(view):
        raise ValueError(
            f"{view_title(name)} is a {type(view).__name__} in memory beside views that are read "
            "in chunks, by order: give it as an array with the samples in their order."
        )
    if is_dask(view):
        # Tables, and arrays made from them, do not know their number of rows.
        is_array = hasattr(type(view), "chunks")
        if not is_array or any(np.isnan(size) for sizes in view.chunks for size in sizes):
            what = "dask array with chunks of unknown size" if is_array else "dask table"
            raise ValueError(
                f"{view_title(name)} is a {what}: give the array that the table's "
                "to_dask_array(lengths=True) returns."
            )
    if not hasattr(view, "shape"):
        view = np.asarray(view)
    kind = getattr(np.dtype(getattr(view, "dtype", float)), "kind", "f")
    if kind not in "fiub":
        raise ValueError(f"{view_title(name)} holds {view.dtype} values: convert them to numbers.")
    return view
