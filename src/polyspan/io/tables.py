"""Readers of tables: columns by name, in the file's order. Excel and R files may hold several."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy import sparse

from polyspan.io.columns import Columns, check_unique, collect
from polyspan.io.rfiles import RTable, read_r
from polyspan.io.safety import check_sparse, check_workbook
from polyspan.io.sizes import check_size
from polyspan.io.text import has_names, read_csv
from polyspan.runtime.messages import one_line
from polyspan.runtime.optional import require

TEXT = (".csv", ".tsv", ".txt")
R_FILES = (".rds", ".rda", ".rdata")
TABLES = (*TEXT, ".parquet", ".xlsx", *R_FILES)


def read_tables(
    path: Path,
    header: bool | None = None,
    wanted: Collection[str] = (),
    notes: list[str] | None = None,
) -> dict[str, Columns | RTable]:
    """The tables of a file by name, "" if there is only one; `RTable` if it is sparse.

    What is in an R file besides matrices and data frames is named in the notes.
    """
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending in TEXT:
        return {"": read_csv(path, header, wanted)}
    check_size(path, ending)
    if ending == ".parquet":
        return {"": read_parquet(path, wanted)}
    if ending == ".xlsx":
        return read_excel(path, header, wanted)
    found, others = _r_tables(read_r(path))
    if not found:
        raise ValueError(
            f"{path} holds no matrix and no data frame, but {', '.join(others) or 'nothing'}: save "
            "the views as matrices or data frames"
        )
    for name, table in found.items():
        if sparse.issparse(table.values):
            check_sparse(table.values, place(path, name))
    if others and notes is not None:
        verb = "are" if len(others) > 1 else "is"
        notes.append(f"{path} also holds {', '.join(others)}, which {verb} not used")
    if len(found) == 1:
        found = {"": next(iter(found.values()))}
    return {
        name: table if sparse.issparse(table.values) else _from_r(place(path, name), table, wanted)
        for name, table in found.items()
    }


def place(path: Path, name: str) -> str:
    """Where a table is, for messages: its file, and its name there if it has one.

    Examples
    --------
    >>> place(Path("pets.xlsx"), "look"), place(Path("pets.csv"), "")
    ('pets.xlsx:look', 'pets.csv')
    """
    return f"{path}:{name}" if name else str(path)


def read_parquet(path: Path, wanted: Collection[str] = ()) -> Columns:
    """Columns of a .parquet file; an index written by pandas comes first, named or not."""
    parquet = require("pyarrow.parquet", "files", path.name)
    try:
        table = parquet.read_table(path)
        columns = [column.to_numpy() for column in table.columns]
        index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    except Exception as error:  # pyarrow is optional, so its exceptions cannot be named here
        raise ValueError(f"{path} cannot be read as Parquet: {one_line(error)}") from error
    check_unique(path, table.column_names)
    by_name = dict(zip(table.column_names, columns, strict=True))
    # DataFrame.to_parquet puts the index last; here it comes first, as in a .csv file.
    first = [name for name in index if isinstance(name, str) and name in by_name][:1]
    ordered = {
        "" if [name] == first and name.startswith("__index_level_") else name: by_name[name]
        for name in dict.fromkeys([*first, *by_name])
        if [name] == first or not name.startswith("__index_level_")
    }
    return collect(path, list(ordered), list(ordered.values()), wanted)


def read_excel(
    path: Path, header: bool | None = None, wanted: Collection[str] = ()
) -> dict[str, Columns | RTable]:
    """Columns of every sheet of an .xlsx file that is not empty; formulas count as their values."""
    openpyxl = require("openpyxl", "excel", path.name)
    require("defusedxml", "excel", path.name)  # openpyxl then reads no entities
    check_workbook(path)
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        sheets = {sheet.title: _sheet_rows(sheet) for sheet in book.worksheets}
        book.close()
    except MemoryError:
        raise
    except Exception as error:  # a damaged file may raise any exception
        raise ValueError(f"{path} cannot be read as an Excel file: {one_line(error)}") from error
    sheets = {name: rows for name, rows in sheets.items() if rows}
    if not sheets:
        raise ValueError(f"{path} is empty")
    found: dict[str, Columns | RTable] = {}
    if len(sheets) == 1:
        sheets = {"": next(iter(sheets.values()))}
    for name, rows in sheets.items():
        where = place(path, name)
        head = [["" if field is None else str(field).strip() for field in row] for row in rows[:2]]
        named = has_names(where, head) if header is None else header
        names = head[0] if named else [f"column{j}" for j in range(1, len(head[0]) + 1)]
        columns = list(zip(*rows[int(named) :], strict=True)) or [()] * len(names)
        found[name] = collect(where, names, columns, wanted)
    return found


def _sheet_rows(sheet: Any) -> list[tuple[Any, ...]]:
    """The rows of a sheet without empty ones, and without empty columns at the end."""
    rows = [row for row in sheet.iter_rows(values_only=True) if any(x is not None for x in row)]
    width = max((j + 1 for row in rows for j, x in enumerate(row) if x is not None), default=0)
    return [(*row[:width], *[None] * (width - len(row))) for row in rows]


def _r_tables(objects: Mapping[str, Any]) -> tuple[dict[str, RTable], list[str]]:
    """Tables by name, also those in lists, and what else there is."""
    tables: dict[str, RTable] = {}
    others: list[str] = []
    for name, value in objects.items():
        if isinstance(value, RTable):
            tables[name] = value
        elif isinstance(value, dict):
            inner, rest = _r_tables(value)
            prefix = "" if len(objects) == 1 else f"{name}."
            tables |= {prefix + one: table for one, table in inner.items()}
            others += [prefix + one for one in rest]
        else:
            others.append(name)
    return tables, others


def _from_r(where: str, table: RTable, wanted: Collection[str]) -> Columns:
    """Columns of a dense matrix or data frame; row names come first."""
    count = table.values.shape[1]
    names = [f"column{j}" for j in range(1, count + 1)] if table.columns is None else table.columns
    columns: Sequence[Any] = list(table.values.T)
    if table.rows is not None:
        names, columns = ["", *names], [table.rows, *columns]
    return collect(where, names, columns, wanted)
