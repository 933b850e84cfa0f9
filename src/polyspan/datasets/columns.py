"""What a column of a table holds: numbers, missing values, ids."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyspan.inputs.ids import is_missing

LABEL_NAMES = ["truth", "truelabel", "true_label", "label", "labels", "gt", "gnd", "y", "target"]


def as_numbers(column: Sequence[Any]) -> NDArray[np.float64] | None:
    """The column as floats, missing values as NaN; None if it holds anything but numbers.

    Examples
    --------
    >>> as_numbers(["1", "2.5", "NA"]), as_numbers(["1", "two"])
    (array([1. , 2.5, nan]), None)
    """
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return column.astype(float)
    try:
        found = np.array([np.nan if is_missing(v) else float(v) for v in column])
    except (TypeError, ValueError):
        return None
    # Python reads 1_2 as 12, but in a table it is text.
    return None if any(isinstance(v, str) and "_" in v for v in column) else found


def is_id_name(name: str) -> bool:
    """Whether a column with this name holds ids.

    Examples
    --------
    >>> is_id_name("Sample ID"), is_id_name("patient_id"), is_id_name("width")
    (True, True, False)
    """
    things = "sample|subject|patient|participant|case|donor|cell|barcode"
    plain = "".join(filter(str.isalnum, name.lower()))
    return bool(re.fullmatch(f"(({things}|obs|row)?(id|name)|{things}|key|index|uu?id)s?", plain))


def quoted(names: Iterable[str], most: int = 12) -> str:
    """Names for a message, at most the first ``most`` of them.

    Examples
    --------
    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = [repr(name) for name in names]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" * (len(listed) > most))
