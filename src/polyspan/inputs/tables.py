"""Tables in memory: pandas DataFrames, and polars and pyarrow tables by narwhals."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals
import numpy as np

from polyspan.inputs.ids import as_ids
from polyspan.inputs.samples import is_frame
from polyspan.runtime.messages import view_title


class KnownView(NamedTuple):
    """What new samples must have in one view of a fitted model."""

    key: str  # the name of the view
    width: int  # number of features
    columns: list[str] | None  # their names; None if they have none
    medians: np.ndarray | None  # of the fitted samples; None if they are not known


def is_other_table(view: Any) -> bool:
    """Whether a view is a polars or pyarrow table.

    Examples
    --------
    >>> import pyarrow
    >>> is_other_table(pyarrow.table({"a": [1]})), is_other_table(np.eye(1))
    (True, False)
    """
    room = type(view).__module__.split(".")[0]
    return room in ("polars", "pyarrow") and type(view).__name__ in ("DataFrame", "Table")


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
        # Numbers and booleans, nullable or not, have these kinds; text, dates, categories do not.
        dtypes = zip(view.columns, view.dtypes, strict=True)
        bad = [str(name) for name, one in dtypes if getattr(one, "kind", "O") not in "fiub"]
    elif is_other_table(view):
        schema = narwhals.from_native(view, eager_only=True).schema
        bad = [x for x, one in schema.items() if not (one.is_numeric() or one == narwhals.Boolean)]
    else:
        return
    if bad:
        shown = ", ".join(repr(column) for column in bad[:5]) + (", ..." if len(bad) > 5 else "")
        told, them = ("columns that are", "them") if len(bad) > 1 else ("column that is", "it")
        raise ValueError(
            f"{name} has {len(bad)} {told} not numbers ({shown}): drop or encode {them} first."
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
    kind, room = type(view).__name__, type(view).__module__.split(".")[0]
    if kind == "LazyFrame":
        raise ValueError(f"{name} is a LazyFrame: call its collect() first.")
    if room.startswith("dask") and hasattr(view, "compute"):
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
    if not is_other_table(view):
        return view
    return narwhals.from_native(view, eager_only=True).to_numpy()


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
    return None if names == [str(j) for j in range(len(names))] else names


def match_columns(
    values: Any, name: str, own: Sequence[str] | None, wanted: Sequence[str] | None
) -> Any:
    """Put the columns of an array in the order of the names wanted; refuse other names.

    Examples
    --------
    >>> match_columns(np.array([[1.0, 2.0]]), "0", ["b", "a"], ["a", "b"])
    array([[2., 1.]])
    >>> match_columns(np.array([[1.0, 2.0]]), "0", ["b", "c"], ["a", "b"])
    Traceback (most recent call last):
    ...
    ValueError: view 0 lacks 1 feature of the fit ('a'): pass the same features as to fit.
    """
    if own is None or wanted is None or list(own) == list(wanted) or len(own) != len(wanted):
        return values  # a wrong number of features is refused later
    place = {one: j for j, one in enumerate(own)}
    if len(place) < len(own):  # repeated names do not tell them apart
        return values
    if gone := [one for one in wanted if one not in place]:
        shown = ", ".join(map(repr, gone[:3])) + ", ..." * (len(gone) > 3)
        raise ValueError(
            f"{view_title(name)} lacks {len(gone)} feature{'s' * (len(gone) > 1)} of the fit "
            f"({shown}): pass the same features as to fit."
        )
    return values[:, np.array([place[one] for one in wanted])]


def match_kernel(values: Any, view: Any) -> Any:
    """Put the columns of a kernel in the order of its rows, if a table names both alike.

    Examples
    --------
    >>> import pandas as pd
    >>> K = pd.DataFrame([[0.0, 1.0], [2.0, 0.0]], index=["a", "b"], columns=["b", "a"])
    >>> match_kernel(K.to_numpy(), K)
    array([[1., 0.],
           [0., 2.]])
    """
    if not is_frame(view):
        return values
    rows, columns = as_ids(view.index), as_ids(view.columns)
    if rows == columns or len(set(columns)) < len(columns) or set(rows) != set(columns):
        return values
    return match_columns(values, "", columns, rows)
