"""The one way to give views the same samples in the same rows: by id, or by order.

By id if every view has ids, in the order of the first view; otherwise by order, which needs the
same samples in the same order wherever there are ids.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from polyspan.io.columns import first_repeated
from polyspan.runtime.messages import first_few, plural, setting


class Labels(NamedTuple):
    """The ids of the rows of one view; None where it has none."""

    ids: list[str] | None
    column: str = "its index"  # what messages call the place of the ids


class Aligned(NamedTuple):
    """All samples, and the row of each in every view, -1 where the view lacks it."""

    samples: list[str] | None  # None if no view has ids
    rows: list[np.ndarray] | None  # None if all views have their rows in this order
    note: str = ""


def align(views: Mapping[str, Labels], advice: str, *, chains: bool = False) -> Aligned:
    """Find the samples of all views, in the order of the first view, and their rows.

    Parameters
    ----------
    views : dict of str to Labels
        By what messages call them.
    advice : str
        What to do if no sample is in all views.
    chains : bool, default=False
        Samples may lack views: it is enough that chains of shared samples link all views.

    Examples
    --------
    >>> look, sound = Labels(["fox", "bee"]), Labels(["bee", "fox", "bat"])
    >>> align({"look": look, "sound": sound}, "check the ids")
    Aligned(samples=['fox', 'bee', 'bat'], rows=[array([ 0,  1, -1]), array([1, 0, 2])], note='')
    """
    named = {title: view.ids for title, view in views.items() if view.ids is not None}
    if len(named) < len(views):
        return _by_order(named, [title for title in views if title not in named])
    for title, ids in named.items():
        _check_different(title, ids, views[title].column)
    samples = list(dict.fromkeys(sample for ids in named.values() for sample in ids))
    rows = []
    for ids in named.values():
        place = {sample: i for i, sample in enumerate(ids)}
        rows.append(np.array([place.get(sample, -1) for sample in samples]))
    there = np.array(rows) >= 0
    both = there.astype(float) @ there.T
    linked = connected_components(both, directed=False)[0] == 1 if chains else there.all(0).any()
    if not linked:
        heads = "; ".join(f"{title} has {few_ids(ids)}" for title, ids in named.items())
        what = "the views do not share ids" if chains else "no sample is in every view by its id"
        raise ValueError(f"{what} ({heads}): {spelling_hint(list(named.values()))}{advice}")
    return Aligned(samples, rows)


def _by_order(named: dict[str, list[str]], bare: list[str]) -> Aligned:
    """Refuse to match by order where views with ids disagree; otherwise say what is assumed."""
    if not named:
        return Aligned(None, None)
    listed, (first, *others) = ", ".join(bare), named
    have, their = ("have", "their") if bare[1:] else ("has", "its")
    for title in others:
        if named[title] != named[first]:
            raise ValueError(
                f"{listed} {have} no ids, and those of {first} and {title} are not the same in the "
                "same order: give every view ids, or all of them the same order and none"
            )
    note = f"{listed} {have} no ids: {their} rows are taken to be the samples of {first}, in that "
    return Aligned(named[first], None, f"{note}order")


def _check_different(title: str, ids: list[str], column: str) -> None:
    """Refuse ids that are empty or repeated."""
    if "" in ids:
        raise ValueError(
            f"{title} has {plural(ids.count(''), 'sample')} without an id in {column} (the first "
            f"is sample {ids.index('') + 1}): give every sample an id"
        )
    if repeated := len(ids) - len(set(ids)):
        raise ValueError(
            f"{title} has {plural(repeated, 'repeated id')} in {column} ({first_repeated(ids)}): "
            "give every sample an id of its own"
        )


def trimmed(ids: Sequence[str], trims: Sequence[str]) -> list[str]:
    r"""Ids in lower case, without zeros in front, or without what a regular expression matches.

    Examples
    --------
    >>> trimmed(["TCGA-02-01A", "TCGA-03-01A"], ["-01A$", "case"]), trimmed(["007"], ["zeros"])
    (['tcga-02', 'tcga-03'], ['7'])
    """
    found = list(ids)
    for trim in trims:
        try:
            pattern = re.compile(r"^0+(?=.)" if trim == "zeros" else trim)
        except re.error as error:
            raise ValueError(
                f"{setting('id_trim')}: {trim!r} is no regular expression ({error}): use one, "
                "or case or zeros"
            ) from error
        found = [one.lower() if trim == "case" else pattern.sub("", one) for one in found]
    return found


def spelling_hint(ids: Sequence[Sequence[str]]) -> str:
    """How more ids would agree if they were trimmed, if they would."""
    before = len(set.intersection(*map(set, ids)))
    for trim in ("case", "zeros", r"\s", r"[\W_]", *_additions(ids)):
        sets = [set(trimmed(own, [trim])) for own in ids]
        same_size = all(len(one) == len(own) for one, own in zip(sets, ids, strict=True))
        if same_size and (after := len(set.intersection(*sets))) > before:
            return f"{after} agree with {setting('id_trim', trim)}; "
    return ""


def _additions(ids: Sequence[Sequence[str]]) -> Iterator[str]:
    """Patterns of what ids have behind or in front of those of another view."""
    for long, short in permutations(ids, 2):
        known, sizes = set(short), {len(one) for one in short}
        behind = {one[size:] for one in long for size in sizes if one[:size] in known}
        front = {one[:-size] for one in long for size in sizes if size and one[-size:] in known}
        size = min(sizes) if len(sizes) == 1 else 0
        rest = f"(?<=.{{{size}}}).+", f"^.+(?=.{{{size}}}$)"
        for parts, pattern, other in ((behind, "{}$", rest[0]), (front, "^{}", rest[1])):
            left = sorted(parts - {""})
            if len(left) == 1:
                yield pattern.format(re.escape(left[0]).replace(r"\-", "-"))
            elif left and size:
                yield other


def few_ids(ids: Sequence[str]) -> str:
    """The first three ids, for a message."""
    return first_few(map(repr, ids), 3)


def positions(names: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """Where the wanted names are.

    Examples
    --------
    >>> positions(["wren", "fox"], ["fox", "wren"])
    array([1, 0])
    """
    place = {name: i for i, name in enumerate(names)}
    return np.array([place[name] for name in wanted])


def take(values: Any, rows: Any) -> Any:
    """Rows of a table, an array or a sparse matrix, by their numbers.

    Examples
    --------
    >>> take(np.eye(3), [2, 0])
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    if sp.issparse(values):
        return sp.csr_array(values)[rows]
    return values[np.asarray(rows)]
