"""Text tables (.csv, .tsv, .txt): pandas reads them; what it would misread is refused here."""

import csv
import io
import re
import warnings
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyspan.io.columns import (
    MISSING,
    as_numbers,
    is_id_name,
    is_kept,
    is_missing,
)
from polyspan.io.safety import opened
from polyspan.io.tables import of_one_name, with_names
from polyspan.runtime.messages import one_line, own_warnings, setting

LONGEST = 2**26  # characters in one of the first rows
LOOK = 2**16  # characters that are looked at before a file is read, at least two lines
WIDE = 50_000  # columns; the time that pandas takes to put pieces together grows as their square
EXACT = 2**24  # bytes; of larger files pandas reads about 15 digits, in a third of the time
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
# The usual spellings of a missing value, for speed; the others take a longer way.
NAN = [spelling for word in MISSING for spelling in (word, word.upper(), word.title())] + ["NaN"]


class Look(NamedTuple):
    """The beginning of a file, and how its fields are separated."""

    rows: list[list[str]]
    delimiter: str
    several: bool = False  # any number of delimiters, which are spaces, separates two fields


def read_text(
    path: Path,
    header: bool | None = None,
    wanted: Collection[str] | None = (),
    duplicates: str = "fail",
) -> Any:
    r"""The table of a .csv, .tsv or .txt file, possibly compressed, as a DataFrame.

    Columns that may be ids, or are ``wanted`` (all if that is None), are text as in the file;
    other columns are numbers if they can be.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pets.csv")
    ...     _ = path.write_text("name;legs\nfox;4,5\nwren;2\n")
    ...     read_text(path)
       name  legs
    0   fox   4.5
    1  wren   2.0
    """
    with _readable(path):
        look = _look(path)
        if not look.rows:
            raise ValueError(f"{path} is empty")
        first, second = look.rows[0], look.rows[1] if len(look.rows) > 1 else []
        if len(second) == len(first) + 1 and header is not False:
            if second[-1].strip() == "":
                raise ValueError(
                    f"{path}: row 2 ends in a delimiter and has a field more than the first row: "
                    "remove the delimiters at the ends of the rows"
                )
            first.insert(0, "")  # R's write.table leaves out the name of the first column
        named = has_names(path, look.rows[:2]) if header is None else header
        names = [name.strip() if named else f"column{j}" for j, name in enumerate(first, start=1)]
        of_one_name(path, names, duplicates, "columns")  # before all is read
        kept = [j for j, name in enumerate(names) if is_kept(j, name, wanted)]
        if second and len(second) != len(names):
            _check_lengths(path, look, len(names))
        frame = _read(path, look, named, len(names), kept)
        if len(frame) and frame.iloc[:, -1].isna().any():  # as in a row that ends too early
            _check_lengths(path, look, len(names))
        return with_names(frame, names, path, duplicates)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: save it as CSV UTF-8") from error
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read or decompressed: {error}") from error
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def _lines(path: Path, show: bool = False, copies: float = 3) -> io.TextIOWrapper:
    return io.TextIOWrapper(opened(path, show, copies), encoding="utf-8-sig", newline="")


def _look(path: Path) -> Look:
    """The delimiter is the one that gives all rows the same number of fields, at least two."""
    start: list[str] = []
    with _lines(path) as lines:
        while line := lines.readline(LONGEST + 1):
            if len(line) > LONGEST:
                raise ValueError(
                    f"{path}: row {len(start) + 1} has more than {LONGEST:,} characters: write the "
                    "table with the samples in columns, or as .parquet or .npy"
                )
            if line.strip():
                start.append(line)
            if len(start) > 1 and sum(map(len, start)) > LOOK:
                break
    marks = [mark for mark in "\t;," if any(mark in line for line in start[:2])] or [","]
    looks = [Look(_fields(start, mark), mark) for mark in marks]
    for look in looks:
        lengths = [len(row) for row in look.rows[:10]]
        if len(set(lengths[1:])) == 1 and lengths[1] > 1 and 0 <= lengths[1] - lengths[0] <= 1:
            return look
    widest = max(looks[::-1], key=lambda look: len(look.rows[0]) if look.rows else 0)
    spaced = Look(_fields([line.strip() for line in start], " ", True), " ", True)
    if len(start) < 2 or len(widest.rows[0]) > 1:
        return widest
    names, sample = spaced.rows[:2]
    several = len(names) > 1 or as_numbers(sample[-1:]) is not None
    return spaced if len(sample) > 1 and len(sample) - len(names) in (0, 1) and several else widest


def _fields(lines: Any, delimiter: str, several: bool = False) -> list[list[str]]:
    return [row for row in csv.reader(lines, delimiter=delimiter, skipinitialspace=several) if row]


def _check_lengths(path: Path, look: Look, d: int) -> None:
    """Refuse rows of another length, of which pandas fills up the short ones."""
    with _lines(path) as stream:
        lines = (line.strip() for line in stream) if look.several else stream
        rows = csv.reader(lines, delimiter=look.delimiter, skipinitialspace=look.several)
        for number, row in enumerate(filter(None, rows), start=1):
            if len(row) != d and (number > 1 or len(row) != d - 1):
                raise ValueError(
                    f"{path}: row {number} has {len(row)} fields, but the first has {d}"
                )


def _read(path: Path, look: Look, named: bool, d: int, kept: list[int]) -> Any:
    """Numbers where pandas can read them, otherwise text, with 0, 1, ... as names."""
    import pandas as pd

    sizes = [len(field) + 1 for row in look.rows[1:] for field in row] or [8]
    copies = max(3, 24 * len(sizes) / sum(sizes))  # short numbers take 8 bytes, too, some copied

    def read(**options: Any) -> Any:
        try:
            with _lines(path, True, copies) as lines, own_warnings():
                warnings.simplefilter("ignore")  # of columns of numbers and words: read again
                return pd.read_csv(
                    lines,
                    sep=r"\s+" if look.several else look.delimiter,
                    header=0 if named else None,
                    names=range(d),
                    index_col=False,
                    keep_default_na=False,
                    na_values=NAN,
                    low_memory=d < WIDE,
                    float_precision="round_trip" if path.stat().st_size < EXACT else None,
                    **options,
                )
        except pd.errors.ParserError as error:
            _check_lengths(path, look, d)
            raise ValueError(f"{path} cannot be read as a table: {one_line(error)}") from error

    fields = [field.strip() for row in look.rows[int(named) :] for field in row]
    commas = look.delimiter == ";" and any(map(_has_decimal_comma, fields))
    decimal = "," if commas else "."
    frame = read(converters=dict.fromkeys(kept, str), decimal=decimal)
    text = [j for j, dtype in enumerate(frame.dtypes) if dtype.kind not in "biuf" and j not in kept]
    if text:  # once more, as it stands in the file: pandas mixes numbers and words
        frame = pd.concat([frame.drop(columns=text), read(usecols=text, dtype=str)], axis=1)
    columns = {j: frame[j].tolist() for j in (*kept, *text)}
    if look.delimiter == ";" and (commas or text):
        _check_decimals(path, frame, columns, next(filter(_has_decimal_comma, fields), ""))
        columns = {j: list(map(_with_point, column)) for j, column in columns.items()}
    for j, column in columns.items():
        numbers = as_numbers(column)
        if numbers is not None:
            frame[j] = column if j in kept else numbers
    return frame[list(range(d))] if text else frame


def _has_decimal_comma(field: str) -> bool:
    return _with_point(field) != field and not THOUSANDS.fullmatch(field)


def _with_point(field: Any) -> Any:
    """A number with a decimal comma, with a point; anything else as it is."""
    if isinstance(field, str) and field.count(",") == 1 and "." not in field:
        turned = field.strip().replace(",", ".")
        return field if as_numbers([turned]) is None else turned
    return field


def _check_decimals(path: Path, frame: Any, columns: dict[int, list[Any]], comma: str) -> None:
    """Refuse numbers with a point beside those with a comma, and commas that may be thousands."""
    fields = {x.strip() for column in columns.values() for x in column if isinstance(x, str)}
    commas = sorted(field for field in fields if _with_point(field) != field)
    comma = comma or next(filter(_has_decimal_comma, commas), "")
    points = [field for field in sorted(fields) if "." in field and as_numbers([field]) is not None]
    if not comma and not points:
        numbers = frame.select_dtypes("float").to_numpy()
        points = [str(x) for x in numbers[numbers % 1 > 0][:1]]
    if points and (comma or commas):
        raise ValueError(
            f"{path} has numbers with a point ({points[0]!r}) and with a comma "
            f"({comma or commas[0]!r}): write all decimals in one way"
        )
    if commas and not comma:
        raise ValueError(
            f"{path}: {commas[0]!r} may be a decimal or a thousand: write decimals with a point, "
            "and thousands without a comma"
        )


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
