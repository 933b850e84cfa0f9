"""Find the id column of a table, by its name or its values.

The id column is the one named by ``id``. By default it is the first column, if its name says so
(id, sample, patient_id, name, ...) or if it holds words that are all different; or another
column whose name says so, if its values are all different; or the first column, if it holds the
same whole numbers in all tables; or the index written by pandas.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyspan.io.columns import (
    ROW_NUMBERS,
    all_whole,
    as_ids,
    as_numbers,
    counts_rows,
    is_id_name,
    is_like_id,
    may_be_ids,
)
from polyspan.runtime.messages import quoted, setting

UNNAMED = re.compile(rf"{ROW_NUMBERS.pattern}|column\d+")  # names that no person gave
LOOKED_AT = 50  # columns of a table that may hold ranks


class Table(NamedTuple):
    """A table as read from its source, without the columns to drop."""

    columns: Any  # a DataFrame
    dropped: list[str]
    nameless: bool  # whether the file has no column names


def id_columns(tables: Mapping[str, Table], wanted: list[str]) -> dict[str, str | None]:
    """The id column of every table, None if it has none; see the notes of `load_views`.

    Examples
    --------
    >>> table = Table({"legs": [4, 2], "pet_id": ["fox", "wren"]}, [], False)
    >>> id_columns({"look.csv": table, "sound.csv": table}, [])
    {'look.csv': 'pet_id', 'sound.csv': 'pet_id'}
    """
    columns = {path: table.columns for path, table in tables.items()}
    if wanted:
        return {path: _wanted_column(path, table, wanted) for path, table in columns.items()}
    first = {path: _first_column(table) for path, table in columns.items()}
    if None not in first.values() and len(set(first.values())) == 1:
        return first
    if (shared := _shared_column(list(columns.values()))) is not None:
        return dict.fromkeys(columns, shared)
    if same := _same_numbers(columns):
        return dict(same)
    named = {
        path: _named_column(table) if first[path] is None else first[path]
        for path, table in columns.items()
    }
    if None in named.values() and (same := shared_numbers(columns)):
        names = list(dict.fromkeys(same.values()))
        raise ValueError(
            f"{tell_shared(names)} in all tables: if these are the ids, use "
            f"{setting('id', *names)}, otherwise leave out {setting('drop', names)}"
        )
    rows = {path: _row_numbers(table) for path, table in columns.items()}
    if None in named.values() and None not in rows.values():
        # Not all have ids, but all have row numbers, perhaps of one table they were taken from.
        numbers = [as_ids(columns[path][name or ""]) for path, name in rows.items()]
        if not all(counts_rows(ids, in_order=True) for ids in numbers):
            return rows
    return {path: rows[path] if named[path] is None else named[path] for path in columns}


def _wanted_column(path: str, table: Any, wanted: list[str]) -> str:
    for name in wanted:
        if name in table:
            return name
    there = quoted(table)
    raise ValueError(f"{path} has no column {quoted(wanted)} for {setting('id')}; it has {there}")


def _first_column(table: Any) -> str | None:
    """The first column, if its name says that it holds ids or if it holds distinct words."""
    first = next(iter(table), None)
    if first is None or (is_id_name(first) and not ROW_NUMBERS.fullmatch(first)):
        return first
    ids = as_ids(table[first]) if as_numbers(table[first]) is None else None
    return first if ids is not None and len(set(ids)) == len(ids) else None


def _shared_column(tables: list[Any]) -> str | None:
    """A column in all tables whose name says that it holds ids and whose values can be ids."""
    names = [name for name in tables[0] if is_like_id(name)] if tables else []
    for name in sorted(names, key=is_id_name, reverse=True):
        there = not ROW_NUMBERS.fullmatch(name) and all(name in table for table in tables)
        if there and all(may_be_ids(table[name]) for table in tables):
            return name
    return None


def _same_numbers(tables: Mapping[str, Any]) -> dict[str, str]:
    """The first columns, if all have the same whole numbers, all different, whatever their names.

    Nothing if all are called like row numbers, if there is only one table, or if other columns hold
    these numbers, too, as in a table of ranks.
    """
    first = {path: next(iter(table)) for path, table in tables.items() if len(table)}
    if len(first) < max(2, len(tables)) or all(map(ROW_NUMBERS.fullmatch, first.values())):
        return {}
    found = [tables[path][name] for path, name in first.items()]
    if len({frozenset(as_ids(column)) for column in found}) > 1 or not all(map(may_be_ids, found)):
        return {}
    numbers = _distinct(found[0])
    others = [tables[path][name] for path in first for name in list(tables[path])[1:LOOKED_AT]]
    ranks = numbers and any(_distinct(column) == numbers for column in others)
    return {} if ranks else first


def shared_numbers(tables: Mapping[str, Any]) -> dict[str, str]:
    """The one column of each table that holds the same whole numbers in all of them, all different.

    Nothing if there is none, or if a table has several, as one of ranks does.

    Examples
    --------
    >>> look, sound = {"nr": [7, 3, 5], "legs": [4, 2, 6]}, {"key": [3, 5, 7], "pitch": [1, 2, 3]}
    >>> shared_numbers({"look": look, "sound": sound})
    {'look': 'nr', 'sound': 'key'}
    """
    if len(tables) < 2:
        return {}
    found: dict[str, dict[frozenset[float], list[str]]] = {}
    left: set[frozenset[float]] | None = None
    for path, table in sorted(tables.items(), key=lambda one: len(list(one[1]))):
        found[path] = {}
        known = None if left is None else frozenset().union(*left)
        for name in table:
            if not UNNAMED.fullmatch(name) and (numbers := _distinct(table[name], known)):
                found[path].setdefault(numbers, []).append(name)
        left = set(found[path]) if left is None else left & set(found[path])
        if not left:
            return {}
    one = [same for same in left or () if all(len(own[same]) == 1 for own in found.values())]
    return {path: found[path][one[0]][0] for path in tables} if len(one) == 1 else {}


def tell_shared(names: Sequence[str]) -> str:
    """Say that columns with these names hold the same numbers.

    Examples
    --------
    >>> tell_shared(["nr"]), tell_shared(["nr", "key"])[:32]
    ("column 'nr' holds the same whole numbers, all different,", "columns 'nr', 'key' hold the sam")
    """
    hold = f"columns {quoted(names)} hold" if names[1:] else f"column {names[0]!r} holds"
    return f"{hold} the same whole numbers, all different,"


def _distinct(column: Any, known: Collection[float] | None = None) -> frozenset[float]:
    """The numbers of a column, if they are whole and all different; all must be ``known``."""
    first = as_numbers(column[:1]) if known is not None and len(column) else None
    if first is not None and first[0] not in (known or ()):
        return frozenset()  # most columns end here, without a look at the rest
    numbers = as_numbers(column)
    if numbers is None or not all_whole(numbers) or len(np.unique(numbers)) < len(numbers):
        return frozenset()
    return frozenset(numbers.tolist())


def _named_column(table: Any) -> str | None:
    """A column of this one table whose name says that it holds ids and whose values can be ids."""
    for name in table:
        if is_id_name(name) and not ROW_NUMBERS.fullmatch(name) and may_be_ids(table[name]):
            return name
    return None


def _row_numbers(table: Any) -> str | None:
    """The first column, if its name is that of an index written by pandas."""
    first = next(iter(table), None)
    return first if first is not None and ROW_NUMBERS.fullmatch(first) else None


def numbers_rows(name: str, column: Any) -> bool:
    """Whether a column is a pandas index, perhaps of selected or shuffled rows."""
    if not ROW_NUMBERS.fullmatch(name) or as_numbers(column) is None:
        return False
    return counts_rows(as_ids(column)) if name == "index" else may_be_ids(column)
