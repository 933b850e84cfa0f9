"""What holds views: lists, dictionaries, tables, data sets, AnnData and MuData.

Classes of other packages are recognized by name, so that they are not imported here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import narwhals
import numpy as np
import scipy.sparse as sp

from polyspan.io.columns import EXACT, are_numbered, as_ids, check_unique, is_missing
from polyspan.io.samples import View, is_frame, samples_of
from polyspan.runtime.messages import first_few, plural, setting, unknown_name


class Block(NamedTuple):
    """One matrix of an AnnData or MuData."""

    name: str  # of the modality and the key; "" for X of an AnnData
    matrix: Any
    table: Any  # the AnnData, or MuData, that knows its samples
    columns: list[str] | None  # None if they have no names


def annotated_kind(X: Any) -> str:
    """``"AnnData"``, ``"MuData"``, or "" for anything else.

    Examples
    --------
    >>> annotated_kind(np.eye(2))
    ''
    """
    names = [(_package(cls), cls.__name__) for cls in type(X).__mro__]
    known = ("anndata", "AnnData"), ("mudata", "MuData")
    return next((name for package, name in names if (package, name) in known), "")


def _package(cls: type) -> str:
    return cls.__module__.split(".")[0]


def open_views(X: Any) -> tuple[dict[str, View] | None, Sequence[str] | None]:
    """The views in X by their names in messages, or None when X is a single 2-D array.

    The second value has the ids of all samples where X says in which order they are: for MuData.

    Examples
    --------
    >>> list(open_views({"text": np.eye(2), "image": np.eye(2)})[0])
    ['text', 'image']
    """
    if sp.issparse(X) or is_frame(X):  # first, because dok_array is a dict
        return None, None
    if annotated_kind(X):
        order = list(X.obs_names) if annotated_kind(X) == "MuData" else None
        return {block.name or "X": _view_of(block) for block in blocks(X)}, order
    if hasattr(X, "view_names") and hasattr(X, "views"):  # a Dataset or MatchedViews
        return _views_of_dataset(X), None
    held = X.values() if isinstance(X, Mapping) else X if isinstance(X, list | tuple) else [X]
    if paths := [view for view in held if isinstance(view, str | Path)]:
        raise _no_files(paths)
    if isinstance(X, Mapping | list | tuple) and len(X) == 0:
        raise ValueError(f"X is an empty {type(X).__name__}: give at least one view.")
    if isinstance(X, Mapping):
        return {name: _open_one(X[key]) for name, key in names_of(X).items()}, None
    if isinstance(X, list | tuple):
        if any(dimensions(view) >= 2 or annotated_kind(view) == "MuData" for view in X):
            return {str(k): _open_one(view) for k, view in enumerate(X)}, None
        if len(X) > 1 and all(hasattr(view, "shape") and dimensions(view) == 1 for view in X):
            raise ValueError(
                f"X is a {type(X).__name__} of {len(X)} 1-D arrays, which may be views or samples: "
                "a view is 2-D, so give a view of one feature as x.reshape(-1, 1), and samples as "
                "one 2-D array."
            )
    return None, None  # a list of lists of numbers is one array, not a list of views


def names_of(X: Mapping[Any, Any]) -> dict[str, Any]:
    """The keys of a dictionary of views by their names, which are text.

    Examples
    --------
    >>> names_of({"rna": np.eye(2), 1: np.eye(2)})
    {'rna': 'rna', '1': 1}
    """
    keys = {str(key): key for key in X}
    if len(keys) < len(X):
        twice = next(key for key in X if keys[str(key)] is not key)
        raise ValueError(f"two views are called {str(twice)!r}: give every view a name of its own.")
    return keys


def dimensions(view: Any) -> int:
    """Count dimensions without converting; for lists, count the nesting.

    Examples
    --------
    >>> dimensions(np.eye(2)), dimensions([[1, 2], [3, 4]]), dimensions(7)
    (2, 2, 0)
    """
    if type(view).__name__ == "LazyFrame":
        return 2
    if hasattr(view, "shape"):
        return len(view.shape)
    if isinstance(view, list | tuple):
        return 1 + (dimensions(view[0]) if view else 0)
    return 0


def _no_files(paths: Sequence[Any]) -> ValueError:
    shown = first_few([repr(str(path)) for path in paths], 2)
    return ValueError(
        f"X names {'files' if len(paths) > 1 else 'a file'} ({shown}), which fit does not read: "
        f"use fit(load_views([{shown}])), with load_views from polyspan.datasets."
    )


def _open_one(view: Any) -> View:
    """One view, with the ids of its rows if it has any."""
    kind = annotated_kind(view)
    if kind == "MuData":
        raise ValueError(
            "X holds a MuData, which has several views itself: pass the MuData alone, or "
            "load_views([...]) of polyspan.datasets for several."
        )
    if kind == "AnnData":
        return _view_of(blocks(view)[0])
    return View(view, samples_of(view.index) if is_frame(view) else None)


def _view_of(block: Block) -> View:
    return View(block.matrix, samples_of(block.table.obs_names), block.columns)


def _views_of_dataset(X: Any) -> dict[str, View]:
    ids = getattr(X, "ids", None)
    if ids is None:
        ids = getattr(X, "extra", {}).get("id")
    samples = None if ids is None else samples_of(ids, getattr(X, "id_name", ""))
    columns = getattr(X, "columns", None) or [None] * len(X.views)
    parts = zip(X.view_names, X.views, columns, strict=True)
    return {str(name): View(view, samples, own or None) for name, view, own in parts}


# ---- AnnData and MuData --------------------------------------------------------------------------


def blocks(
    data: Any, obsm: Sequence[str] = (), layers: Sequence[str] = (), where: str = ""
) -> list[Block]:
    """The matrices of an AnnData or MuData that are views.

    Parameters
    ----------
    data : AnnData or MuData
        Samples in rows.
    obsm, layers : sequence of str
        Keys of ``obsm`` and ``layers``; ``"X"`` counts as a layer. Of a MuData, ``"rna:counts"`` is
        that of one modality, ``"counts"`` those of every modality that has it. Without any, X, or X
        of every modality.
    where : str
        What to call the data in errors.

    Examples
    --------
    >>> import anndata
    >>> data = anndata.AnnData(np.eye(3), obsm={"pca": np.ones((3, 2))})
    >>> [(block.name, block.matrix.shape) for block in blocks(data, ["pca"], ["X"])]
    [('X', (3, 3)), ('pca', (3, 2))]
    """
    where = where or f"the {annotated_kind(data)}"
    for name, value in (("obsm", obsm), ("layers", layers)):
        if isinstance(value, str):
            raise ValueError(f"{name} must be a list of keys, such as [{value!r}]; got {value!r}.")
    tables = {"": data} if annotated_kind(data) == "AnnData" else dict(data.mod)
    if not tables:
        raise ValueError(f"{where} holds no modality")
    if not obsm and not layers:
        return [_block(name, table.X, table, where) for name, table in tables.items()]
    matrices = {name: {"X": table.X, **table.layers} for name, table in tables.items()}
    embeddings = {name: dict(table.obsm) for name, table in tables.items()}
    if annotated_kind(data) == "MuData":  # it also keeps there which modality has which sample
        embeddings[""] = {key: value for key, value in data.obsm.items() if key not in data.mod}
    tables[""] = data
    return [
        _block(name, matrix, tables[modality], where, kind == "layer")
        for kind, keys, held in (("layer", layers, matrices), ("obsm key", obsm, embeddings))
        for key in keys
        for modality, name, matrix in _with_key(kind, key, held, where)
    ]


def _with_key(
    kind: str, key: str, held: Mapping[str, Mapping[str, Any]], where: str
) -> list[tuple[str, str, Any]]:
    """The matrices with a key: their modality ("" if there is none), full name and values."""
    named = [
        (modality, f"{modality}:{own}" if modality else own, own, matrix)
        for modality, matrices in held.items()
        for own, matrix in matrices.items()
    ]
    chosen = [(mod, name, matrix) for mod, name, own, matrix in named if key in (own, name)]
    if not chosen:
        if not named:
            raise ValueError(f"{where} has no {kind} {key!r}, nor any other.")
        raise ValueError(unknown_name(kind, key, [name for _, name, _, _ in named], where=where))
    return chosen


def _block(name: str, matrix: Any, table: Any, where: str, named: bool = True) -> Block:
    here = f"{where}:{name}" if name else where
    if matrix is None or 0 in matrix.shape:
        raise ValueError(
            f"{here} has no X, or an empty X: there is nothing to cluster, unless "
            f"{setting('obsm')} or {setting('layers')} name other matrices (`load_views`)"
        )
    if hasattr(matrix, "to_memory"):  # backed by a file
        matrix = matrix.to_memory()
    columns = list(table.var_names) if named else None
    if is_frame(matrix):
        columns, matrix = [str(column) for column in matrix.columns], matrix.to_numpy()
    if not sp.issparse(matrix) and _package(type(matrix)) != "dask":
        matrix = np.asarray(unmasked(matrix))
    return Block(name, matrix, table, columns)


# ---- tables: pandas DataFrames, and polars and pyarrow by narwhals -------------------------------


def is_other_table(view: Any) -> bool:
    """Whether a view is a polars or pyarrow table.

    Examples
    --------
    >>> import pyarrow
    >>> is_other_table(pyarrow.table({"a": [1]})), is_other_table(np.eye(1))
    (True, False)
    """
    known = _package(type(view)) in ("polars", "pyarrow")
    return known and type(view).__name__ in ("DataFrame", "Table")


def check_tables(view: Any, name: str) -> None:
    """Refuse columns that are not numbers, and tables that are not in memory.

    Examples
    --------
    >>> import pyarrow
    >>> check_tables(pyarrow.table({"a": [1], "b": ["x"]}), "view 0")
    Traceback (most recent call last):
    ...
    ValueError: view 0 has 1 column that is not numbers ('b'): drop or encode it first.
    """
    refuse_lazy(view, name)
    if is_frame(view):
        check_unique(name, list(map(str, view.columns)))
        # Numbers and booleans, nullable or not, have these kinds; text, dates, categories do not.
        kinds = [getattr(kind, "kind", "O") for kind in view.dtypes]
        bad = [str(column) for column, kind in zip(view, kinds, strict=True) if kind not in "fiub"]
        largest = dict(view.loc[:, [kind in "iu" for kind in kinds]].max())
    elif is_other_table(view):
        frame = narwhals.from_native(view, eager_only=True)
        schema = frame.schema.items()
        bad = [key for key, kind in schema if not (kind.is_numeric() or kind == narwhals.Boolean)]
        whole = [key for key, kind in schema if kind.is_integer()]
        largest = frame.select(narwhals.col(whole).max()).rows(named=True)[0] if whole else {}
    else:
        return
    if long := [str(key) for key, x in largest.items() if not is_missing(x) and x > EXACT]:
        raise ValueError(
            f"{name}: column {long[0]!r} holds whole numbers of more than 15 digits, which lose "
            "some as features: if it is the id, use it as the index, otherwise drop it."
        )
    if bad:
        what = plural(len(bad), "column that is", "columns that are")
        raise ValueError(
            f"{name} has {what} not numbers ({first_few(map(repr, bad), 5)}): drop or encode "
            f"{'them' if len(bad) > 1 else 'it'} first."
        )


def refuse_lazy(view: Any, name: str) -> None:
    """Refuse tables and arrays that are not in memory.

    Examples
    --------
    >>> import polars
    >>> refuse_lazy(polars.DataFrame({"a": [1]}).lazy(), "view 0")
    Traceback (most recent call last):
    ...
    ValueError: view 0 is a LazyFrame: call its collect() first.
    """
    if type(view).__name__ == "LazyFrame":
        raise ValueError(f"{name} is a LazyFrame: call its collect() first.")
    if _package(type(view)).startswith("dask") and hasattr(view, "compute"):
        raise ValueError(
            f"{name} is a dask {'table' if hasattr(view, 'columns') else 'array'}: call its "
            "compute() first, or give AnchorGRMSC a list of dask arrays, which it reads in chunks."
        )


def numbers_of(view: Any) -> Any:
    """A polars or pyarrow table as an array; anything else as it is.

    Examples
    --------
    >>> import pyarrow
    >>> numbers_of(pyarrow.table({"a": [1.0, None], "b": [3, 4]}))
    array([[ 1.,  3.],
           [nan,  4.]])
    """
    return narwhals.from_native(view, eager_only=True).to_numpy() if is_other_table(view) else view


def unmasked(view: Any) -> Any:
    """A masked array, or a list of some, with NaN where it is masked; anything else as it is.

    Examples
    --------
    >>> unmasked(np.ma.masked_equal([[1, -9999]], -9999))
    array([[ 1., nan]])
    """
    if isinstance(view, list | tuple) and any(isinstance(x, np.ma.MaskedArray) for x in view):
        view = np.ma.array(view)
    return np.ma.filled(view.astype(float), np.nan) if isinstance(view, np.ma.MaskedArray) else view


def column_names(view: Any) -> list[str] | None:
    """Names of the columns as text; None if it is no table, or if they are only numbered.

    Examples
    --------
    >>> import pandas as pd
    >>> column_names(pd.DataFrame({"a": [1], "b": [2]})), column_names(pd.DataFrame([[1, 2]]))
    (['a', 'b'], None)
    """
    if is_frame(view):
        names = as_ids(view.columns)
    elif is_other_table(view):
        names = list(narwhals.from_native(view, eager_only=True).columns)
    else:
        return None
    return None if are_numbered(names) else names
