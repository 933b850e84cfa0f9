"""Find the id column of a table, by its name or its values.

The id column is the one named by ``id``. By default it is the first column, if its name says so
(id, sample, patient_id, name, ...) or if it holds words that are all different; or another
column whose name says so, if its values are all different; or the first column, if it holds the
same whole numbers in all tables; or the index written by pandas.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from polyspan.io.columns import (
    Columns,
    as_numbers,
    is_id_name,
    is_like_id,
    quoted,
)
from polyspan.io.samples import as_ids, is_missing
from polyspan.runtime.messages import setting

ROW_NUMBERS = re.compile(r"|index|Unnamed: \d+(\.\d+)*")  # columns that may just count the rows


class Table(NamedTuple):
    """A table as read from its file, without the columns to drop."""

    columns: Columns
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
    if wanted:
        return {path: _wanted_column(path, table, wanted) for path, table in tables.items()}
    first = {path: _first_column(table) for path, table in tables.items()}
    if None not in first.values() and len(set(first.values())) == 1:
        return first
    if (shared := _shared_column(list(tables.values()))) is not None:
        return dict.fromkeys(tables, shared)
    if same := _same_numbers(tables):
        return dict(same)
    named = {
        path: _named_column(table) if first[path] is None else first[path]
        for path, table in tables.items()
    }
    rows = {path: _row_numbers(table) for path, table in tables.items()}
    if None in named.values() and None not in rows.values():
        # Not all have ids, but all have row numbers, perhaps of one table they were taken from.
        numbers = [as_ids(tables[path].columns[name or ""]) for path, name in rows.items()]
        if not all(counts_rows(ids, in_order=True) for ids in numbers):
            return rows
    return {path: rows[path] if named[path] is None else named[path] for path in tables}


def _wanted_column(path: str, table: Table, wanted: list[str]) -> str:
    for name in wanted:
        if name in table.columns:
            return name
    raise ValueError(
        f"{path} has no column {quoted(wanted)} for {setting('id')}; it has {quoted(table.columns)}"
    )


def _first_column(table: Table) -> str | None:
    """The first column, if its name says that it holds ids or if it holds distinct words."""
    first = next(iter(table.columns), None)
    if first is None:
        return None
    if is_id_name(first) and not ROW_NUMBERS.fullmatch(first):
        return first
    words = as_numbers(table.columns[first]) is None
    return first if words and _all_different(table.columns[first]) else None


def _shared_column(tables: list[Table]) -> str | None:
    """A column in all tables whose name says that it holds ids and whose values can be ids."""
    if not tables:
        return None
    names = [
        name
        for name in tables[0].columns
        if all(name in table.columns for table in tables) and not ROW_NUMBERS.fullmatch(name)
    ]
    known = sorted(filter(is_like_id, names), key=is_id_name, reverse=True)
    for name in known:
        if all(may_be_ids(table.columns[name]) for table in tables):
            return name
    return None


def _same_numbers(tables: Mapping[str, Table]) -> dict[str, str]:
    """The first columns, if all have the same whole numbers, all different, whatever their names.

    Nothing if all are called like row numbers, or if there is only one table.
    """
    first = {path: next(iter(table.columns)) for path, table in tables.items() if table.columns}
    if len(first) < max(2, len(tables)) or all(map(may_number_rows, first.values())):
        return {}
    found = [tables[path].columns[name] for path, name in first.items()]
    same = len({frozenset(as_ids(column)) for column in found}) == 1
    return first if same and all(map(may_be_ids, found)) else {}


def _named_column(table: Table) -> str | None:
    """A column of this one table whose name says that it holds ids and whose values can be ids."""
    for name, column in table.columns.items():
        if is_id_name(name) and not ROW_NUMBERS.fullmatch(name) and may_be_ids(column):
            return name
    return None


def _row_numbers(table: Table) -> str | None:
    """The first column, if its name is that of an index written by pandas."""
    first = next(iter(table.columns), None)
    return first if first is not None and ROW_NUMBERS.fullmatch(first) else None


def _all_different(column: Sequence[Any]) -> bool:
    words = as_ids(column)
    return len(set(words)) == len(words)


def may_be_ids(column: Sequence[Any]) -> bool:
    """Whether a column holds words or whole numbers, none missing and all different.

    Examples
    --------
    >>> may_be_ids(["fox", "bee"]), may_be_ids([1, 2]), may_be_ids([0.5, 2]), may_be_ids([1, 1])
    (True, True, False, False)
    """
    numbers = as_numbers(column)
    if numbers is None:
        return _all_different(column) and not any(is_missing(value) for value in column)
    return all_whole(numbers) and len(np.unique(numbers)) == len(numbers)


def all_whole(numbers: Any) -> bool:
    """Whether all numbers are finite and whole."""
    return bool(np.all(np.isfinite(numbers)) and np.all(numbers == np.floor(numbers)))


def may_number_rows(name: str) -> bool:
    """Whether a column with this name may just count the rows.

    Examples
    --------
    >>> may_number_rows(""), may_number_rows("Unnamed: 0"), may_number_rows("legs")
    (True, True, False)
    """
    return bool(ROW_NUMBERS.fullmatch(name))


def numbers_rows(name: str, column: Sequence[Any]) -> bool:
    """Whether a column is a pandas index, perhaps of selected or shuffled rows."""
    if not ROW_NUMBERS.fullmatch(name) or as_numbers(column) is None:
        return False
    return counts_rows(as_ids(column)) if name == "index" else may_be_ids(column)


def counts_rows(ids: list[str], in_order: bool = False) -> bool:
    """Whether ids are consecutive numbers from 0 or 1, in any order or, ``in_order``, ascending.

    Examples
    --------
    >>> counts_rows(["2", "1", "3"]), counts_rows(["2", "1", "3"], in_order=True)
    (True, False)
    """
    found = [list(map(str, range(k, len(ids) + k))) for k in (0, 1)]
    return ids in found if in_order else set(ids) in map(set, found)
