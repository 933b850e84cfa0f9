"""Reader of text tables (.csv, .tsv, .txt), row by row: the text is never in memory as a whole."""

import csv
import gzip
import io
import os
import re
import time
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyspan.io.columns import (
    Columns,
    as_numbers,
    check_unique,
    is_id_name,
    is_kept,
    is_missing,
)
from polyspan.progress import follower
from polyspan.runtime.memory import available_memory
from polyspan.runtime.messages import setting

SHOWN = 50  # columns with words whose words are kept, for messages; ids are kept anyway
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
# The usual spellings of a missing value, for speed; the others take a longer way.
NAN = dict.fromkeys(("", "NA", "NaN", "N/A", "null", "NULL", "None"), "nan")


class _Style(NamedTuple):
    """How the fields of a file are separated."""

    delimiter: str
    spaces: bool = False  # any number of spaces separates two fields


def read_csv(path: Path, header: bool | None = None, wanted: Collection[str] = ()) -> Columns:
    r"""Columns of a .csv, .tsv or .txt file, possibly compressed; see `load_file`.

    Columns in ``wanted``, and those that may be ids, are kept as words even if they are numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pets.csv")
    ...     _ = path.write_text("name;legs\nfox;4,5\nwren;2\n")
    ...     dict(read_csv(path))
    {'name': ['fox', 'wren'], 'legs': array([4.5, 2. ])}
    """
    with _rows(path) as (rows, style):
        head = list(islice(rows, 2))
        if not head:
            raise ValueError(f"{path} is empty")
        # R's write.table leaves out the name of the first column.
        if len(head) == 2 and len(head[1]) == len(head[0]) + 1 and header is not False:
            head[0].insert(0, "")
        named = has_names(path, head) if header is None else header
        names = [f"column{j}" for j in range(1, len(head[0]) + 1)]
        if named:
            names = [name.strip() for name in head.pop(0)]
        check_unique(path, names)
        kept = [j for j, name in enumerate(names) if is_kept(j, name, wanted)]
        reading = _Reading(path, len(names), kept, style.delimiter == ";")
        _check_size(path, head, len(names))
        for number, row in enumerate(chain(head, rows), start=1 + named):
            reading.take(number, row)
    text = reading.text
    if late := [j for j in sorted(reading.words) if j not in text][:SHOWN]:
        with _rows(path) as (rows, _):  # once more, for columns that turned out to hold words
            text |= {j: [] for j in late}
            for row in islice(rows, int(named), None):
                for j in late:
                    text[j].append(row[j])
    return Columns(
        names,
        reading.finished(),
        {names[j]: column for j, column in text.items()},
        [names[j] for j in reading.words],
    )


class _Reading:
    """The numbers and words of the rows taken so far."""

    def __init__(self, path: Path, d: int, kept: Iterable[int], commas: bool) -> None:
        self.path, self.d, self.commas = path, d, commas
        self.text: dict[int, list[str]] = {j: [] for j in kept}
        self.words: set[int] = set()
        self._values, self._n = np.empty((16, d)), 0
        # The first number with a point, with a decimal comma, and with a comma of either meaning.
        self._points = self._decimal_commas = self._unclear = ""

    def take(self, number: int, row: list[str]) -> None:
        if len(row) != self.d:
            raise ValueError(
                f"{self.path}: row {number} has {len(row)} fields, but the first has {self.d}"
            )
        for j, column in self.text.items():
            column.append(row[j])
        for j in self.words:
            row[j] = "nan"
        if self._n == len(self._values):
            self._grow()
        self._values[self._n] = self._floats(row)
        self._n += 1

    def _floats(self, row: list[str]) -> Any:
        """The numbers of a row: the common ones fast, the others one by one."""
        together = "".join(row)
        points = self.commas and "." in together  # one is enough to know that there are some
        if "_" not in together and (self._points or not points):
            plain = row
            if self._decimal_commas and not points:
                plain = [field.replace(",", ".", 1) for field in row]
            try:
                return np.fromiter(map(float, plain), float, self.d)
            except ValueError:
                plain = [NAN.get(field, field) for field in plain]
            for j in self.text:  # where words are most likely
                plain[j] = repr(self._number(j, row[j]))
            with suppress(ValueError):
                return np.fromiter(map(float, plain), float, self.d)
        return [self._number(j, field) for j, field in enumerate(row)]

    def _number(self, j: int, field: str) -> float:
        """One field, or NaN if it is missing or a word."""
        if is_missing(field):
            return np.nan
        found = as_numbers([field])
        if found is not None:
            self._points = self._points or field * ("." in field)
        elif self.commas and field.count(",") == 1 and "." not in field:
            found = as_numbers([field.replace(",", ".")])
            if found is not None and THOUSANDS.fullmatch(field.strip()):
                self._unclear = self._unclear or field
            elif found is not None:
                self._decimal_commas = self._decimal_commas or field
        if found is None:
            self.words.add(j)
            return np.nan
        return float(found[0])

    def _grow(self) -> None:
        more = max(self._values.nbytes // 2, 2**20)
        free = available_memory()
        if free is not None and more > free:
            raise MemoryError(_too_large(self.path, self._values.nbytes + more, free))
        rows = len(self._values) + max(1, more // (8 * self.d))
        self._values.resize((rows, self.d), refcheck=False)

    def finished(self) -> NDArray[np.float64]:
        """The matrix; refuses commas that may mean two things."""
        comma = self._decimal_commas or self._unclear
        if self._points and comma:
            raise ValueError(
                f"{self.path} has numbers with a point ({self._points!r}) and with a comma "
                f"({comma!r}): write all decimals in one way"
            )
        if self._unclear and not self._decimal_commas:
            raise ValueError(
                f"{self.path}: {comma!r} may be a decimal or a thousand: write decimals with a "
                "point, and thousands without a comma"
            )
        self._values.resize((self._n, self.d), refcheck=False)
        return self._values


def _check_size(path: Path, head: list[list[str]], d: int) -> None:
    """Refuse a file whose numbers will not fit into memory; a packed one is watched as it grows."""
    free = available_memory()
    if free is None or not head or path.suffix.lower() == ".gz":
        return
    need = os.path.getsize(path) / (sum(map(len, head[0])) + d) * 8 * d
    if need > free:
        raise MemoryError(_too_large(path, need, free))


def _too_large(path: Path, need: float, free: int) -> str:
    return (
        f"{path} needs about {need / 2**30:.1f} GiB of memory, but {free / 2**30:.1f} GiB are "
        "free: use fewer columns or rows, or a larger machine"
    )


@contextmanager
def _rows(path: Path) -> Iterator[tuple[Iterator[list[str]], _Style]]:
    """The rows of a file that are not empty, as fields, and how they are separated."""
    try:
        with path.open("rb") as raw:
            packed = gzip.GzipFile(fileobj=raw) if path.suffix.lower() == ".gz" else raw
            lines = _lines(packed, raw, path)
            first = list(islice((line for line in lines if line.strip()), 2))
            style = _style(first)
            yield _fields(chain(first, lines), style), style
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read or decompressed: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: save it as CSV UTF-8") from error
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def _lines(packed: Any, raw: Any, path: Path) -> Iterator[str]:
    size, tell, next_time = os.path.getsize(path), follower(), 0.0
    for line in io.TextIOWrapper(packed, encoding="utf-8-sig", newline=""):
        if tell is not None and time.perf_counter() > next_time:
            tell(raw.tell() // 10**6, size // 10**6, f"MB of {path.name}")
            next_time = time.perf_counter() + 0.2
        yield line


def _fields(lines: Iterable[str], style: _Style) -> Iterator[list[str]]:
    if style.spaces:
        lines = (line.strip() for line in lines)
    reader = csv.reader(lines, delimiter=style.delimiter, skipinitialspace=style.spaces)
    return (row for row in reader if row)


def _style(first: list[str]) -> _Style:
    """The delimiter by the first two lines: a comma, a semicolon, a tab, or spaces."""
    delimiter = max(",;\t", key=first[0].count) if first else ","
    if not first or delimiter in first[0] or len(first) == 1:
        return _Style(delimiter)
    if (found := max(",;\t", key=first[1].count)) in first[1] and " " not in first[0].strip():
        return _Style(found)  # R's write.table of one column: its row names have no name
    names, sample = _fields(first, _Style(" ", spaces=True))
    several = len(names) > 1 or as_numbers(sample[-1:]) is not None
    spaced = len(sample) > 1 and len(sample) - len(names) in (0, 1) and several
    return _Style(" ", spaces=True) if spaced else _Style(delimiter)


def has_names(path: object, rows: list[list[str]]) -> bool:
    """Whether the first row holds names: numbers can be names, a sample can start with an id."""
    # DataFrame.to_csv leaves the corner empty; then the rest are names even if they are numbers.
    if rows[0][0] == "" or is_id_name(rows[0][0]):
        return True
    given = [field for field in rows[0] if not is_missing(field)]
    numbers = [x for field in given if (x := as_numbers([field])) is not None]
    words = len(given) - len(numbers)
    if not numbers:
        return True
    steps = np.diff(np.ravel(numbers))
    second = as_numbers(rows[1]) if not words and len(rows) > 1 else None
    if second is not None and len(numbers) > 1 and given == [str(j) for j in range(len(given))]:
        # DataFrame.to_csv(index=False) without names; a sample of two may be 0 and 1, too.
        if len(numbers) > 2 and not np.all(np.diff(second) == 1):
            return True
        raise ValueError(_may_be_both(path, rows[0]))
    if np.any(steps <= 0) or words + len(numbers) < (2 if words else 3):
        return False  # names that are numbers ascend: years, wavelengths, positions
    if not words and len(rows) > 1 and (second is None or np.all(np.diff(second) > 0)):
        return False  # samples ascend here too
    if words > len(numbers) or (len(steps) and np.all(steps == 1)):
        return True
    if not words and len(numbers) == 3:
        return False  # three numbers may ascend by chance
    raise ValueError(_may_be_both(path, rows[0]))


def _may_be_both(path: object, row: list[str]) -> str:
    shown = ", ".join(row[:4]) + (", ..." if len(row) > 4 else "")
    return (
        f"{path}: the first row ({shown}) may be names or a sample: use "
        f"{setting('header', True)} or {setting('header', False)}"
    )
