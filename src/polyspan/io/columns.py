"""What a column holds: numbers, missing values, ids."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyspan.runtime.messages import quoted

# What programs write for a missing value: pandas, R, SQL, spreadsheets.
MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>"})
STAND_INS = (-9999, -99999)
EXACT = 2**53  # larger whole numbers lose digits as floats
LABEL_NAMES = ["truth", "truelabel", "true_label", "label", "labels", "gt", "gnd", "y", "target"]
THINGS = "sample|subject|patient|participant|case|donor|cell|barcode"
ID_NAME = re.compile(f"(({THINGS}|obs|row)?(id|name)|{THINGS}|key|index|uu?id)s?")
ROW_NUMBERS = re.compile(r"|index|Unnamed: \d+(\.\d+)*")  # columns that may just count the rows


def is_missing(value: Any) -> bool:
    """Whether a field of a table is empty or holds a word for a missing value.

    Examples
    --------
    >>> is_missing("NA"), is_missing(None), is_missing("0")
    (True, True, False)
    """
    if isinstance(value, str):
        return len(value) < 100 and value.strip().lower() in MISSING
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_date(value: Any) -> bool:
    """Whether a value is a date or a duration of NumPy, which ``float`` takes for a number.

    Examples
    --------
    >>> is_date(np.timedelta64(7, "ns")), is_date(7)
    (True, False)
    """
    return isinstance(value, np.datetime64 | np.timedelta64)


def as_numbers(column: Sequence[Any]) -> NDArray[np.float64] | None:
    """The column as floats, missing values as NaN; None if it holds anything but numbers.

    Examples
    --------
    >>> as_numbers(["1", "2.5", "NA"]), as_numbers(["1", "two"])
    (array([1. , 2.5, nan]), None)
    """
    kind = getattr(getattr(column, "dtype", None), "kind", "O")
    if kind in "mM":  # dates and times would be counted from 1970, in units nobody sees
        return None
    if kind in "biuf":
        values: Any = column
        if not isinstance(column, np.ndarray):
            values = values.to_numpy(dtype=float, na_value=np.nan)
        return values.astype(float)
    if any(map(is_date, column)):
        return None
    try:
        numbers = np.array([np.nan if is_missing(v) else float(v) for v in column])
    except (TypeError, ValueError):
        return None
    # Python reads 1_2 as 12, but in a table it is text.
    return None if any(isinstance(v, str) and "_" in v for v in column) else numbers


def as_ids(values: Iterable[Any]) -> list[str]:
    """Ids as strings: 7, 7.0 and "7" are the same; a missing id is empty.

    Examples
    --------
    >>> as_ids([7, 7.0, " 7", None])
    ['7', '7', '7', '']
    """

    def word(value: Any) -> str:
        if isinstance(value, float | np.floating):
            return "" if np.isnan(value) else f"{value:.0f}" if value.is_integer() else str(value)
        if is_missing(value):
            return ""
        return (value.decode() if isinstance(value, bytes) else str(value)).strip()

    return [word(value) for value in values]


def are_numbered(names: Sequence[str]) -> bool:
    """Whether names only count 0, 1, ..., as those of a table without names do.

    Examples
    --------
    >>> are_numbered(["0", "1"]), are_numbered(["1", "2"])
    (True, False)
    """
    return list(names) == [str(i) for i in range(len(names))]


def counts_rows(ids: list[str], in_order: bool = False) -> bool:
    """Whether ids are consecutive numbers from 0 or 1, in any order or, ``in_order``, ascending.

    Examples
    --------
    >>> counts_rows(["2", "1", "3"]), counts_rows(["2", "1", "3"], in_order=True)
    (True, False)
    """
    counts = [list(map(str, range(k, len(ids) + k))) for k in (0, 1)]
    return ids in counts if in_order else set(ids) in map(set, counts)


def may_be_ids(column: Sequence[Any]) -> bool:
    """Whether a column holds words or whole numbers, none missing and all different.

    Examples
    --------
    >>> may_be_ids(["fox", "bee"]), may_be_ids([1, 2]), may_be_ids([0.5, 2]), may_be_ids([1, 1])
    (True, True, False, False)
    """
    numbers = as_numbers(column)
    if numbers is not None and not all_whole(numbers):
        return False
    ids = as_ids(column)  # not the numbers, which are not exact above 15 digits
    return len(set(ids)) == len(ids) and "" not in ids


def all_whole(numbers: Any) -> bool:
    """Whether all numbers are finite and whole."""
    return bool(np.all(np.isfinite(numbers)) and np.all(numbers == np.floor(numbers)))


def is_id_name(name: str) -> bool:
    """Whether a column with this name holds ids.

    Examples
    --------
    >>> is_id_name("Sample ID"), is_id_name("patient_id"), is_id_name("width")
    (True, True, False)
    """
    return bool(ID_NAME.fullmatch("".join(filter(str.isalnum, name.lower()))))


def is_like_id(name: str) -> bool:
    """Whether a column with this name may hold ids, if its values allow it.

    Examples
    --------
    >>> is_like_id("visit_id"), is_like_id("visit")
    (True, False)
    """
    return is_id_name(name) or name.lower().endswith("_id")


def is_kept(j: int, name: str, wanted: Collection[str] | None) -> bool:
    """Whether a column may hold ids, so that 007 must not become 7.

    Examples
    --------
    >>> is_kept(0, "who", []), is_kept(1, "pet_id", []), is_kept(1, "legs", [])
    (True, True, False)
    """
    return j == 0 or wanted is None or name in wanted or is_like_id(name)


def check_unique(where: object, names: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    if repeated := sorted(name for name, count in Counter(names).items() if count > 1):
        raise ValueError(f"{where}: several columns are called {quoted(repeated)}")


def tell_stand_ins(title: str, matrix: Any, names: Sequence[str] = ()) -> list[str]:
    """A note if a dense matrix holds a number that stands for missing values elsewhere.

    Examples
    --------
    >>> tell_stand_ins("view 0", np.array([[1.0, 2.0], [3.0, -9999.0]]))
    ['view 0: column 1 holds -9999, used as a number; if it stands for missing values, ...']
    """
    found = []
    for number in STAND_INS:
        columns = np.flatnonzero((matrix == number).any(axis=0))
        if len(columns):
            shown = repr(names[columns[0]]) if len(names) else columns[0]
            more = f" and {len(columns) - 1} more" * (len(columns) > 1)
            found.append(
                f"{title}: column {shown}{more} holds {number}, used as a number; if it stands for "
                "missing values, write these as NA or NaN"
            )
    return found


def first_repeated(ids: list[str]) -> str:
    """Say which id is repeated, and where.

    Examples
    --------
    >>> first_repeated(["fox", "bee", "fox"])
    "'fox' is sample 1 and sample 3"
    """
    twice = next(name for name, count in Counter(ids).items() if count > 1)
    first = ids.index(twice) + 1
    return f"{twice!r} is sample {first} and sample {ids.index(twice, first) + 1}"
