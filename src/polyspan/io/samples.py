"""Names of rows and columns: samples are matched by id, features by name.

pandas indexes and the obs_names of AnnData are ids. An index 0, 1, ..., n - 1 is the default, not
ids, unless another table has the same numbers as ids. Arrays, sparse matrices, polars and pyarrow
tables have no ids, and are matched by order, in that of the first view.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from polyspan.io.align import Aligned, Labels, align, few_ids, positions, take
from polyspan.io.columns import are_numbered, as_ids
from polyspan.runtime.messages import plural, view_title, warn_user


class Samples(NamedTuple):
    """Ids of the samples, as they were given, and what they are called."""

    ids: np.ndarray
    name: str


class View(NamedTuple):
    """One view as it was given, and the names of its rows; None where it has none."""

    values: Any
    samples: Samples | None = None
    columns: list[str] | None = None  # where the values themselves have no names for them


class KnownView(NamedTuple):
    """What new samples must have in one view of a fitted model."""

    key: str  # the name of the view
    width: int  # number of features
    columns: list[str] | None  # their names; None if they have none
    medians: np.ndarray | None  # of the fitted samples; None if they are not known


def is_frame(view: Any) -> bool:
    """Whether a view is a pandas DataFrame, or a table that works like one.

    Examples
    --------
    >>> import pandas as pd
    >>> is_frame(pd.DataFrame(np.eye(2))), is_frame(np.eye(2))
    (True, False)
    """
    if type(view).__module__.startswith("dask"):  # looks the same, but is not in memory
        return False
    return all(hasattr(view, name) for name in ("iloc", "index", "columns"))


def samples_of(index: Any, name: Any = None) -> Samples:
    """Ids from an index: numbers and dates stay as they are, anything else becomes text.

    Examples
    --------
    >>> samples_of(["wren", "fox"], "animal")
    Samples(ids=array(['wren', 'fox'], dtype=object), name='animal')
    """
    ids = np.asarray(index)
    if ids.ndim != 1 or ids.dtype.kind not in "iufMm":
        ids = np.array([str(value) for value in index] + [""], dtype=object)[:-1]
    name = getattr(index, "name", None) if name is None else name
    return Samples(ids, "sample" if name is None or name == "" else str(name))


def match_rows(
    views: dict[str, View], order: Sequence[Any] | None = None
) -> tuple[dict[str, Any], Samples | None]:
    """Give all views the same samples in the same rows, in the order of the first one.

    Parameters
    ----------
    views : dict of str to View
        By their names in messages.
    order : sequence of ids, optional
        Another order of the samples, where what holds the views has its own.

    Returns
    -------
    dict of str to Any
        The values of the views; those already in order are not copied.
    Samples or None
        The ids of the rows; None if no view has any.

    Examples
    --------
    >>> legs = View(np.array([[1.0], [2.0]]), samples_of(["wren", "fox"]))
    >>> size = View(np.array([[20.0], [10.0]]), samples_of(["fox", "wren"]))
    >>> match_rows({"legs": legs, "size": size})[0]["size"]
    array([[10.],
           [20.]])
    """
    values = {name: view.values for name, view in views.items()}
    different = {id(view.samples): view.samples for view in views.values()}
    if len(different) == 1:  # one view, views without ids, or views that are already matched
        return values, next(iter(different.values()))
    known = {name: view.samples for name, view in views.items() if view.samples is not None}
    ids = _without_defaults({name: as_ids(own.ids.tolist()) for name, own in known.items()})
    labels = {view_title(name): Labels(ids.get(name)) for name in views}
    found = align(labels, "give all tables the same ids in their index.")
    if found.samples is None:
        return values, None
    samples = known[next(iter(ids))]
    if found.note:
        warn_user(f"{found.note}.")
    if found.rows is None:
        return values, samples
    _check_same(found, list(labels))
    if order is not None:
        samples = samples_of(order, samples.name)
    wanted = positions(found.samples, as_ids(samples.ids.tolist()))
    for name, rows in zip(views, found.rows, strict=True):
        if not np.array_equal(rows[wanted], np.arange(len(rows))):
            values[name] = take(values[name], rows[wanted])
    return values, samples


def _without_defaults(ids: dict[str, list[str]]) -> dict[str, list[str]]:
    """Leave out default indexes that share nothing with the ids of the other tables."""
    default = {name for name, own in ids.items() if are_numbered(own)}
    others = {sample for name, own in ids.items() if name not in default for sample in own}
    return {
        name: own for name, own in ids.items() if name not in default or not others.isdisjoint(own)
    }


def _check_same(found: Aligned, titles: list[str]) -> None:
    """Refuse tables that do not have the same samples, and say how to drop or keep them."""
    there = np.array(found.rows) >= 0
    if there.all():
        return
    samples, gaps = np.array(found.samples, dtype=object), []
    for title, here in zip(titles, there, strict=True):
        if not here.all():
            gaps.append(f"{title} lacks {np.sum(~here)} ({few_ids(samples[~here])})")
    raise ValueError(
        f"Only {there.all(axis=0).sum()} of {len(samples)} samples are in every view by their ids: "
        f"{', '.join(gaps)}; fit(load_views(X, missing='drop')) drops the others, and "
        "missing='keep' keeps them with rows of NaN, for the methods that take samples without a "
        "view (load_views is in polyspan.datasets)."
    )


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
    known = set(own)
    if len(known) < len(own):
        raise ValueError(
            f"{view_title(name)} has several features of one name, and not in the order of the "
            "fit: pass the features in that order, or give each a name of its own."
        )
    if gone := [feature for feature in wanted if feature not in known]:
        raise ValueError(
            f"{view_title(name)} lacks {plural(len(gone), 'feature')} of the fit "
            f"({few_ids(gone)}): pass the same features as to fit."
        )
    return values[:, positions(own, wanted)]


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
    return match_columns(values, "", columns, rows) if set(rows) == set(columns) else values
