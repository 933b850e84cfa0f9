"""Match the rows of tables that name their samples: by id, in the order of the first table.

pandas indexes and the obs_names of AnnData are ids. An index 0, 1, ..., n - 1 is the default, not
ids, unless another table has the same numbers as ids. Arrays, sparse matrices, polars and pyarrow
tables have no ids, and are matched by order.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.inputs.ids import as_ids, first_repeated
from polyspan.runtime.messages import view_title, warn_user

BY_ORDER = "to match rows by order instead, call reset_index(drop=True) on every table."


class Samples(NamedTuple):
    """Ids of the samples, as they were given, and what they are called."""

    ids: np.ndarray
    name: str


class View(NamedTuple):
    """One view as it was given, and the names of its rows; None where it has none."""

    values: Any
    samples: Samples | None = None
    columns: list[str] | None = None  # where the values themselves have no names for them


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


def samples_of(values: Any, name: Any = None) -> Samples:
    """Ids from an index: numbers and dates stay as they are, anything else becomes text.

    Examples
    --------
    >>> samples_of(["wren", "fox"], "animal")
    Samples(ids=array(['wren', 'fox'], dtype=object), name='animal')
    """
    found = np.asarray(values)
    if found.ndim != 1 or found.dtype.kind not in "iufMm":
        found = np.array([str(one) for one in values] + [""], dtype=object)[:-1]
    return Samples(found, "sample" if name is None or name == "" else str(name))


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
    >>> one = View(np.array([[1.0], [2.0]]), samples_of(["wren", "fox"]))
    >>> other = View(np.array([[20.0], [10.0]]), samples_of(["fox", "wren"]))
    >>> match_rows({"0": one, "1": other})[0]["1"]
    array([[10.],
           [20.]])
    """
    values = {name: view.values for name, view in views.items()}
    alike = {id(view.samples): view.samples for view in views.values()}
    if len(alike) == 1:  # one view, views without ids, or views that are already matched
        return values, next(iter(alike.values()))
    known = {name: view.samples for name, view in views.items() if view.samples is not None}
    ids = {name: as_ids(samples.ids.tolist()) for name, samples in known.items()}
    ids = _without_defaults(ids)
    if not ids:
        return values, None
    for name, own in ids.items():
        _check_different(name, own)
    first = next(iter(ids))
    if len(ids) < len(views):
        _check_by_order(ids, [name for name in views if name not in ids])
        return values, known[first]
    _check_same(ids)
    wanted = ids[first] if order is None else as_ids(order)
    for name, own in ids.items():
        if own != wanted:
            place = {one: i for i, one in enumerate(own)}
            values[name] = take(values[name], [place[one] for one in wanted])
    return values, known[first] if order is None else samples_of(order, known[first].name)


def _without_defaults(ids: dict[str, list[str]]) -> dict[str, list[str]]:
    """Leave out default indexes that share nothing with the ids of the other tables."""
    default = {name for name, own in ids.items() if own == [str(i) for i in range(len(own))]}
    told = {one for name, own in ids.items() if name not in default for one in own}
    return {
        name: own for name, own in ids.items() if name not in default or not told.isdisjoint(own)
    }


def _check_different(name: str, ids: list[str]) -> None:
    """Refuse ids that are empty or repeated."""
    if "" in ids:
        raise ValueError(
            f"{view_title(name)} has no id in row {ids.index('')}: give every sample an id in the "
            f"index, or, {BY_ORDER}"
        )
    if len(set(ids)) < len(ids):
        n = len(ids) - len(set(ids))
        raise ValueError(
            f"{view_title(name)} has {n} repeated id{'s' * (n > 1)} in its index "
            f"({first_repeated(ids)}): give every sample an id of its own, or, {BY_ORDER}"
        )


def _check_by_order(ids: dict[str, list[str]], bare: list[str]) -> None:
    """Refuse to match by order where tables with ids disagree; otherwise say what is assumed."""
    first, *others = ids
    told = f"view{'s' * (len(bare) > 1)} {' and '.join(bare)}"
    has, its = ("have", "their") if len(bare) > 1 else ("has", "its")
    for name in others:
        if ids[name] != ids[first]:
            raise ValueError(
                f"{told} {has} no ids, and those of views {first} and {name} are not the same in "
                "the same order: give every view as a table with the ids in its index, or all in "
                "the same order without ids."
            )
    warn_user(
        f"{told} {has} no ids: {its} rows are taken to be the samples of {view_title(first)}, in "
        "that order."
    )


def _check_same(ids: dict[str, list[str]]) -> None:
    """Refuse tables that do not have the same samples, and say how to drop or keep them."""
    sets = {name: set(own) for name, own in ids.items()}
    every, some = set.intersection(*sets.values()), set.union(*sets.values())
    if len(every) == len(some):
        return
    if not every:
        heads = [f"{view_title(name)} has {_examples(own)}" for name, own in ids.items()]
        raise ValueError(
            f"The views have no sample in common by their ids ({'; '.join(heads)}): give all "
            f"tables the same ids in their index; {BY_ORDER}"
        )
    order = dict.fromkeys(one for own in ids.values() for one in own)
    lacking = {name: [one for one in order if one not in own] for name, own in sets.items()}
    told = [
        f"{view_title(name)} lacks {len(gone)} ({_examples(gone)})"
        for name, gone in lacking.items()
        if gone
    ]
    raise ValueError(
        f"Only {len(every)} of {len(some)} samples are in every view by their ids: "
        f"{', '.join(told)}; fit(load_views(X, missing='drop')) drops the others, and "
        "missing='keep' keeps them with rows of NaN, for the methods that take samples without a "
        "view (load_views is in polyspan.datasets)."
    )


def _examples(ids: Sequence[str]) -> str:
    return ", ".join(map(repr, ids[:3])) + ", ..." * (len(ids) > 3)


def take(values: Any, rows: Any) -> Any:
    """Rows of a table, an array or a sparse matrix, by their numbers.

    Examples
    --------
    >>> take(np.eye(3), [2, 0])
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    if is_frame(values):
        return values.iloc[rows]
    if sp.issparse(values):
        return sp.csr_array(values)[rows]
    return values[np.asarray(rows)]
