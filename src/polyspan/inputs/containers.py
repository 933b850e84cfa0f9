"""Open what holds several views and knows their samples: data sets, AnnData and MuData.

The classes are recognized by name, so that neither package is imported here.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.inputs.names import unknown_name
from polyspan.inputs.samples import View, is_frame, samples_of


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
    for one in type(X).__mro__:
        if one.__module__.split(".")[0] in ("anndata", "mudata"):
            return one.__name__ if one.__name__ in ("AnnData", "MuData") else ""
    return ""


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
    if isinstance(X, str | Path):
        raise ValueError(_no_files([X]))
    if annotated_kind(X):
        order = list(X.obs_names) if annotated_kind(X) == "MuData" else None
        return {block.name or "X": _named(block) for block in blocks(X)}, order
    if hasattr(X, "view_names") and hasattr(X, "views"):  # a Dataset or MatchedViews
        return _of_dataset(X), None
    if isinstance(X, Mapping | list | tuple) and len(X) == 0:
        raise ValueError(f"X is an empty {type(X).__name__}: give at least one view.")
    if isinstance(X, Mapping):
        return {name: _one(X[key]) for name, key in names_of(X).items()}, None
    if isinstance(X, list | tuple):
        if paths := [view for view in X if isinstance(view, str | Path)]:
            raise ValueError(_no_files(paths))
        if any(dimensions(view) >= 2 or annotated_kind(view) == "MuData" for view in X):
            return {str(k): _one(view) for k, view in enumerate(X)}, None
        _check_arrays(X)
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


def _check_arrays(X: Sequence[Any]) -> None:
    """Refuse several 1-D arrays, which may be meant as views; lists of numbers are rows."""
    if len(X) > 1 and all(hasattr(view, "shape") and dimensions(view) == 1 for view in X):
        raise ValueError(
            f"X is a {type(X).__name__} of {len(X)} 1-D arrays, which may be views or samples: a "
            "view is 2-D, so give a view of one feature as x.reshape(-1, 1), and samples as one "
            "2-D array."
        )


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


def _no_files(paths: Sequence[str | Path]) -> str:
    shown = ", ".join(repr(str(path)) for path in paths[:2]) + ", ..." * (len(paths) > 2)
    return (
        f"X names {'files' if len(paths) > 1 else 'a file'} ({shown}), which fit does not read: "
        f"use fit(load_views([{shown}])), with load_views from polyspan.datasets."
    )


def _one(view: Any) -> View:
    """One view, with the ids of its rows if it has any."""
    if isinstance(view, str | Path):
        raise ValueError(_no_files([view]))
    kind = annotated_kind(view)
    if kind == "MuData":
        raise ValueError(
            "X holds a MuData, which has several views itself: pass the MuData alone, or "
            "load_views([...]) of polyspan.datasets for several."
        )
    if kind == "AnnData":
        return _named(blocks(view)[0])
    if is_frame(view):
        return View(view, samples_of(view.index, view.index.name))
    return View(view)


def _named(one: Block) -> View:
    samples = samples_of(one.table.obs_names, one.table.obs_names.name)
    return View(one.matrix, samples, one.columns)


def _of_dataset(X: Any) -> dict[str, View]:
    ids = getattr(X, "ids", None)
    if ids is None:
        ids = getattr(X, "extra", {}).get("id")
    samples = None if ids is None else samples_of(ids, getattr(X, "id_name", ""))
    columns = getattr(X, "columns", None) or [None] * len(X.views)
    parts = zip(X.view_names, X.views, columns, strict=True)
    return {str(name): View(view, samples, own or None) for name, view, own in parts}


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
    >>> [(one.name, one.matrix.shape) for one in blocks(data, ["pca"], ["X"])]
    [('X', (3, 3)), ('pca', (3, 2))]
    """
    where = where or f"the {annotated_kind(data)}"
    for name, value in (("obsm", obsm), ("layers", layers)):
        if isinstance(value, str):
            raise ValueError(f"{name} must be a list of keys, such as [{value!r}]; got {value!r}.")
    holders = {"": data} if annotated_kind(data) == "AnnData" else dict(data.mod)
    if not holders:
        raise ValueError(f"{where} holds no modality")
    if not obsm and not layers:
        return [_block(name, one.X, one, where) for name, one in holders.items()]
    sets = {name: {"X": one.X, **one.layers} for name, one in holders.items()}
    found = _chosen("layer", layers, sets, where)
    sets = {name: dict(one.obsm) for name, one in holders.items()}
    if annotated_kind(data) == "MuData":  # it also keeps there which modality has which sample
        sets[""] = {key: value for key, value in data.obsm.items() if key not in data.mod}
    found += _chosen("obsm key", obsm, sets, where)
    tables = {**holders, "": data}
    return [
        _block(f"{mod}:{key}" if mod else key, value, tables[mod], where, kind == "layer")
        for kind, mod, key, value in found
    ]


def _chosen(
    kind: str, keys: Sequence[str], sets: Mapping[str, Mapping[str, Any]], where: str
) -> list[tuple[str, str, str, Any]]:
    """The matrices with these keys: the kind, the modality ("" if there is none), key, values."""
    found: list[tuple[str, str, str, Any]] = []
    for key in keys:
        own = [
            (kind, holder, name, value)
            for holder, values in sets.items()
            for name, value in values.items()
            if key in (name, f"{holder}:{name}")
        ]
        if not own:
            known = [f"{a}:{b}" if a else b for a, values in sets.items() for b in values]
            if not known:
                raise ValueError(f"{where} has no {kind} {key!r}, nor any other.")
            raise ValueError(unknown_name(kind, key, known, where=where))
        found += own
    return found


def _block(name: str, matrix: Any, table: Any, where: str, named: bool = True) -> Block:
    here = f"{where}:{name}" if name else where
    if matrix is None or 0 in matrix.shape:
        raise ValueError(
            f"{here} has no X, or an empty X: there is nothing to cluster, unless obsm or layers "
            "name other matrices (load_views in Python, --obsm and --layer in the shell)"
        )
    if hasattr(matrix, "to_memory"):  # backed by a file
        matrix = matrix.to_memory()
    columns = list(table.var_names) if named else None
    if is_frame(matrix):
        columns, matrix = [str(one) for one in matrix.columns], matrix.to_numpy()
    lazy = type(matrix).__module__.split(".")[0] == "dask"
    if not sp.issparse(matrix) and not lazy:
        matrix = np.asarray(matrix)
    return Block(name, matrix, table, columns)
