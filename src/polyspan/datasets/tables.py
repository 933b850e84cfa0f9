"""Readers of tables (.csv, .tsv, .parquet, .rds, .rda): columns by name, in the file's order."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyspan.datasets.columns import as_numbers, is_id_name, is_missing, quoted
from polyspan.datasets.rfiles import RTable, read_r
from polyspan.inputs.optional import require
from polyspan.solvers.messages import one_line

TABLES = (".csv", ".tsv", ".parquet", ".rds", ".rda", ".rdata")


def read_csv(path: Path, header: bool | None = None) -> dict[str, Sequence[Any]]:
    r"""Columns of a .csv or .tsv file, possibly compressed, as strings; see `load_file`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pets.csv")
    ...     _ = path.write_text("name;legs\nfox;4\nwren;2\n")
    ...     read_csv(path)
    {'name': ('fox', 'wren'), 'legs': ('4', '2')}
    """
    try:
        packed = path.read_bytes()
        text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read or decompressed: {one_line(error)}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: save it as CSV UTF-8") from error
    first = text[: text.find("\n")] if "\n" in text else text
    delimiter = max(",;\t", key=first.count)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as a table: {one_line(error)}") from error
    if not rows:
        raise ValueError(f"{path} is empty")
    for number, row in enumerate(rows, start=1):
        # R's write.table leaves out the name of the first column.
        if number == 2 and len(row) == len(rows[0]) + 1 and header is not False:
            rows[0].insert(0, "")
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{path}: row {number} has {len(row)} fields, but the first has {len(rows[0])}"
            )
    if _has_names(path, rows) if header is None else header:
        names = [name.strip() for name in rows.pop(0)]
    else:
        names = [f"column{j}" for j in range(1, len(rows[0]) + 1)]
    return _by_unique_name(path, names, zip(*rows, strict=True) if rows else [[]] * len(names))


def _has_names(path: Path, rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names: numbers can be names, a sample can start with an id."""
    given = [field for field in rows[0] if not is_missing(field)]
    numbers = [x for field in given if (x := as_numbers([field])) is not None]
    words = len(given) - len(numbers)
    # DataFrame.to_csv leaves the corner empty; then the rest are names even if they are numbers.
    if rows[0][0] == "" or is_id_name(rows[0][0]) or not numbers:
        return True
    steps = np.diff(np.ravel(numbers))
    if np.any(steps <= 0) or words + len(numbers) < (2 if words else 3):
        return False  # names that are numbers ascend: years, wavelengths, positions
    if not words and len(rows) > 1:
        second = as_numbers(rows[1])
        if second is None or np.all(np.diff(second) > 0):
            return False  # samples ascend here too
    if words > len(numbers) or (len(steps) and np.all(steps == 1)):
        return True
    if not words and len(numbers) == 3:
        return False  # three numbers may ascend by chance
    shown = ", ".join(rows[0][:4]) + (", ..." if len(rows[0]) > 4 else "")
    raise ValueError(
        f"{path}: the first row ({shown}) may be names or a sample: use --header yes or "
        "--header no (in Python, header=True or False)"
    )


def read_parquet(path: Path) -> dict[str, Sequence[Any]]:
    """Columns of a .parquet file; an index written by pandas comes first, named or not."""
    parquet = require("pyarrow.parquet", "files", path.name)
    try:
        table = parquet.read_table(path)
        columns = [column.to_numpy() for column in table.columns]
        index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    except Exception as error:  # pyarrow is optional, so its exceptions cannot be named here
        raise ValueError(f"{path} cannot be read as Parquet: {one_line(error)}") from error
    by_name = _by_unique_name(path, table.column_names, columns)
    # DataFrame.to_parquet puts the index last; here it comes first, as in a .csv file.
    first = [name for name in index if isinstance(name, str) and name in by_name][:1]
    ordered = {name: by_name[name] for name in [*first, *by_name]}
    return {
        "" if [name] == first and name.startswith("__index_level_") else name: column
        for name, column in ordered.items()
        if [name] == first or not name.startswith("__index_level_")
    }


def read_r_table(path: Path) -> dict[str, Sequence[Any]]:
    """Columns of the one matrix or data frame in an .rds or .rda file; row names come first."""
    objects = read_r(path)
    table = next(iter(objects.values()), None)
    if len(objects) != 1 or not isinstance(table, RTable) or sparse.issparse(table.values):
        raise ValueError(
            f"{path} must hold one matrix or data frame, dense, but it holds "
            f"{', '.join(f'{name} ({_kind(one)})' for name, one in objects.items()) or 'nothing'}: "
            "save one with saveRDS, or a sparse one with Matrix::writeMM as .mtx"
        )
    count = table.values.shape[1]
    names = [f"column{j}" for j in range(1, count + 1)] if table.columns is None else table.columns
    columns = _by_unique_name(path, names, table.values.T)
    return columns if table.rows is None else {"": table.rows, **columns}


def _kind(value: Any) -> str:
    if isinstance(value, RTable):
        return f"a {'sparse ' * sparse.issparse(value.values)}matrix or data frame"
    return "a list" if isinstance(value, dict | list) else "something else"


def _by_unique_name(path: Path, names: list[str], columns: Iterable[Any]) -> dict[str, Any]:
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: several columns are called {quoted(repeated)}")
    return dict(zip(names, columns, strict=True))
