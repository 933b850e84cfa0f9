"""What a column of a table holds: numbers, missing values, ids."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyspan.io.samples import is_missing
from polyspan.runtime.messages import quoted

LABEL_NAMES = ["truth", "truelabel", "true_label", "label", "labels", "gt", "gnd", "y", "target"]
THINGS = "sample|subject|patient|participant|case|donor|cell|barcode"
ID_NAME = re.compile(f"(({THINGS}|obs|row)?(id|name)|{THINGS}|key|index|uu?id)s?")


class Columns(Mapping[str, Any]):
    """The columns of a table by name: all numbers in one matrix, and what is not numbers.

    Parameters
    ----------
    names : sequence of str
        The names of the columns, all different.
    matrix : (n, d) array
        The numbers, NaN where a value is missing or a word.
    text : mapping of str to sequence
        Columns as they stand in the file: those with words, and those that may be ids.
    words : collection of str
        The columns that do not only hold numbers.

    Examples
    --------
    >>> pets = Columns(["name", "legs"], np.array([[np.nan, 4], [np.nan, 2]]),
    ...                {"name": ["fox", "wren"]}, ["name"])
    >>> pets["name"], pets["legs"], pets.without(["name"]).numbers(["legs"]).shape
    (['fox', 'wren'], array([4., 2.]), (2, 1))
    """

    def __init__(
        self,
        names: Iterable[str],
        matrix: NDArray[np.float64],
        text: Mapping[str, Sequence[Any]],
        words: Collection[str] = (),
    ) -> None:
        self._place = {name: j for j, name in enumerate(names)}
        self.matrix, self.text, self.words = matrix, text, frozenset(words)

    def __getitem__(self, name: str) -> Any:
        place = self._place[name]
        if name in self.words and name not in self.text:
            raise ValueError(f"the words of column {name!r} were not kept: name it in `wanted`")
        return self.text[name] if name in self.text else self.matrix[:, place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)

    def __len__(self) -> int:
        return len(self._place)

    def without(self, names: Collection[str]) -> "Columns":
        """The other columns; the numbers are shared."""
        left = Columns((), self.matrix, self.text, self.words)
        left._place = {name: j for name, j in self._place.items() if name not in names}
        return left

    def numbers(self, names: Sequence[str]) -> NDArray[np.float64]:
        """The matrix of some columns, without a copy where they stand side by side."""
        places = [self._place[name] for name in names]
        if places and places == list(range(places[0], places[0] + len(places))):
            return self.matrix[:, places[0] : places[-1] + 1]
        return self.matrix[:, places]


def collect(
    file: object, names: Sequence[str], columns: Sequence[Sequence[Any]], wanted: Collection[str]
) -> Columns:
    """Put columns that are all in memory together; those in ``wanted`` are kept as they are.

    Examples
    --------
    >>> found = collect("pets.csv", ["name", "legs"], [["fox", "wren"], ["4", "2"]], [])
    >>> found["name"], found["legs"]
    (['fox', 'wren'], array([4., 2.]))
    """
    check_unique(file, names)
    matrix = np.full((len(columns[0]) if len(columns) else 0, len(names)), np.nan)
    text, words = {}, []
    for j, (name, column) in enumerate(zip(names, columns, strict=True)):
        found = as_numbers(column)
        if found is None:
            words.append(name)
        else:
            matrix[:, j] = found
        if found is None or is_kept(j, name, wanted):
            text[name] = column
    return Columns(names, matrix, text, words)


def is_kept(j: int, name: str, wanted: Collection[str]) -> bool:
    """Whether a column may hold ids, so that 007 must not become 7.

    Examples
    --------
    >>> is_kept(0, "who", []), is_kept(1, "pet_id", []), is_kept(1, "legs", [])
    (True, True, False)
    """
    return j == 0 or name in wanted or is_like_id(name)


def check_unique(file: object, names: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) < len(names):
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(f"{file}: several columns are called {quoted(repeated)}")


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
    return bool(ID_NAME.fullmatch("".join(filter(str.isalnum, name.lower()))))


def is_like_id(name: str) -> bool:
    """Whether a column with this name may hold ids, if its values allow it.

    Examples
    --------
    >>> is_like_id("visit_id"), is_like_id("visit")
    (True, False)
    """
    return is_id_name(name) or name.lower().endswith("_id")
