"""Sample ids: as text that can be compared, and what is wrong with them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

# What programs write for a missing value: pandas, R, SQL, spreadsheets.
MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>"})


def is_missing(value: Any) -> bool:
    """Whether a field of a table is empty or holds a word for a missing value.

    Examples
    --------
    >>> is_missing("NA"), is_missing(None), is_missing("0")
    (True, True, False)
    """
    return value is None or (isinstance(value, str) and value.strip().lower() in MISSING)


def as_ids(values: Sequence[Any]) -> list[str]:
    """Ids as strings: 7, 7.0 and "7" are the same; a missing id is empty.

    Examples
    --------
    >>> as_ids([7, 7.0, " 7", None])
    ['7', '7', '7', '']
    """

    def word(value: Any) -> str:
        if is_missing(value):
            return ""
        if isinstance(value, float | np.floating):
            if np.isnan(value):
                return ""
            return str(int(value)) if value == int(value) else str(value)
        return (value.decode() if isinstance(value, bytes) else str(value)).strip()

    return [word(value) for value in values]


def first_repeated(ids: list[str]) -> str:
    """Say which id is repeated, and where.

    Examples
    --------
    >>> first_repeated(["fox", "bee", "fox"])
    "'fox' is sample 1 and sample 3"
    """
    first: dict[str, int] = {}
    for i, one in enumerate(ids, start=1):
        if one in first:
            return f"{one!r} is sample {first[one]} and sample {i}"
        first[one] = i
    return "they are"
