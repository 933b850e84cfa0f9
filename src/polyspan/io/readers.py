"""One reader per format: tables become DataFrames, matrices are returned by name.

The file extension gives the format. `polyspan.io.text` reads text.
"""

import os
import pickle
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyspan.io.safety import (
    DamagedError,
    check_size,
    check_sparse,
    in_child,
    is_hdf5,
    opened,
)
from polyspan.io.tables import tidy
from polyspan.io.text import has_names, read_text
from polyspan.runtime.memory import check_reading
from polyspan.runtime.messages import one_line, own_warnings, quoted
from polyspan.runtime.optional import require

TEXT = (".csv", ".tsv", ".txt")
R_FILES = (".rds", ".rda", ".rdata")
TABLES = (*TEXT, ".parquet", ".xlsx", *R_FILES)
MATRICES = (".mat", ".npz", ".npy", ".mtx")
BIO = (".h5ad", ".h5mu")


class SparseTable(NamedTuple):
    """A sparse matrix, with the names of its rows and columns where it has any."""

    values: Any  # CSR
    rows: list[str] | None
    columns: list[str] | None

    @property
    def T(self) -> "SparseTable":
        """The table with rows and columns exchanged."""
        return SparseTable(self.values.T.tocsr(), self.columns, self.rows)


def check_file(path: Path, others: Sequence[str] = ()) -> str:
    """Return a file's extension, without .gz, after checking that it is known and the file exists.

    Examples
    --------
    >>> check_file(Path("pets.docx"))
    Traceback (most recent call last):
        ...
    ValueError: pets.docx is not a supported file: its name must end in one of .mat, .npz, ...
    """
    packed = path.suffix.lower() == ".gz"
    ending = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    known = [*MATRICES, *TABLES, *others]
    if ending in (".xls", ".ods"):
        raise ValueError(f"{path} is an old or open spreadsheet: save it as .xlsx or as CSV first")
    if ending not in ((*TEXT, ".mtx") if packed else known):
        raise ValueError(
            f"{path} is not a supported file: its name must end in one of {', '.join(known)}"
        )
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if not os.access(path, os.R_OK):
        raise PermissionError(f"{path} cannot be read: you have no permission to read it")
    return ending


@contextmanager
def _read_as(path: Path, what: str) -> Iterator[None]:
    """Say in one sentence that a file is not what its name says."""
    try:
        with own_warnings():
            warnings.simplefilter("ignore")  # of what readers do not know or will change
            yield
    except (MemoryError, ImportError, DamagedError):
        raise
    except Exception as error:  # a damaged file may raise any exception
        causes = (error, error.__context__, getattr(error.__context__, "__context__", None))
        if any(type(cause).__module__.startswith("defusedxml") for cause in causes):
            raise ValueError(
                f"{path} declares XML entities, which no spreadsheet needs: save it again with a "
                "spreadsheet program"
            ) from error
        raise ValueError(f"{path} cannot be read {what}: {one_line(error)}") from error


# ---- tables --------------------------------------------------------------------------------------


def read_tables(
    path: Path,
    header: bool | None = None,
    wanted: Collection[str] | None = (),
    notes: list[str] | None = None,
    duplicates: str = "fail",
) -> dict[str, Any]:
    """The tables of a file by name, "" if there is only one: DataFrames, or `SparseTable`.

    Columns that may be ids, or are ``wanted`` (all if that is None), stay as they are in the file.
    What is not used is named in the notes.
    """
    ending = check_file(path)
    notes = [] if notes is None else notes
    if ending in TEXT:
        return {"": read_text(path, header, wanted, duplicates)}
    check_size(path, ending)
    if ending == ".parquet":
        tables: dict[str, Any] = {"": _read_parquet(path)}
    elif ending == ".xlsx":
        tables = _read_excel(path, header, notes)
    else:
        tables = _read_r_tables(path, notes)
    if len(tables) == 1:
        tables = {"": next(iter(tables.values()))}
    for name, table in tables.items():
        if isinstance(table, SparseTable):
            check_sparse(table.values, place(path, name))
        else:
            tables[name] = tidy(table, place(path, name), wanted, duplicates)
    return tables


def place(path: Path, name: str) -> str:
    """Where a table is, for messages: its file, and its name there if it has one.

    Examples
    --------
    >>> place(Path("pets.xlsx"), "look"), place(Path("pets.csv"), "")
    ('pets.xlsx:look', 'pets.csv')
    """
    return f"{path}:{name}" if name else str(path)


def _read_parquet(path: Path) -> Any:
    """A .parquet file; an index written by pandas comes first, named or not."""
    parquet = require("pyarrow.parquet", "files", path.name)
    with _read_as(path, "as Parquet"):
        # A string that is repeated is kept once, as in the file.
        kinds = {field.name: str(field.type) for field in parquet.read_schema(path)}
        if nested := [name for name, kind in kinds.items() if "<" in kind and "dict" not in kind]:
            raise ValueError(f"columns {quoted(nested)} hold lists: leave them out of the file")
        words = [name for name, kind in kinds.items() if "string" in kind or "binary" in kind]
        frame = parquet.read_table(path, read_dictionary=words).to_pandas()
        for name in (name for name, kind in kinds.items() if "binary" in kind and name in frame):
            spelled = frame[name].cat.categories.map(lambda word: word.decode(errors="replace"))
            frame[name] = frame[name].cat.set_categories(spelled, rename=True)
    return frame if type(frame.index).__name__ == "RangeIndex" else with_index(frame)


def with_index(frame: Any) -> Any:
    """The DataFrame with its index in front, as columns; one without a name is called ""."""
    names = ["" if name is None else str(name) for name in frame.index.names]
    return frame.reset_index(names=names)


def _read_excel(path: Path, header: bool | None, notes: list[str]) -> dict[str, Any]:
    """Every sheet of an .xlsx file that is not empty; formulas count as their values."""
    import pandas as pd

    openpyxl = require("openpyxl", "excel", path.name)
    require("defusedxml", "excel", path.name)  # openpyxl then reads no entities
    with _read_as(path, "as an Excel file"):
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
        hidden = [sheet.title for sheet in book.worksheets if sheet.sheet_state != "visible"]
        sheets = {
            sheet.title: rows
            for sheet in book.worksheets
            if sheet.title not in hidden and (rows := _sheet_rows(sheet))
        }
        book.close()
    notes += [f"{path}: the sheet {name!r} is hidden and not used" for name in hidden]
    if not sheets:
        raise ValueError(f"{path} is empty")
    found = {}
    for name, rows in sheets.items():
        where = place(path, name * (len(sheets) > 1))
        head = [["" if field is None else str(field).strip() for field in row] for row in rows[:2]]
        named = has_names(where, head) if header is None else header
        names = head[0] if named else [f"column{j}" for j in range(1, len(head[0]) + 1)]
        found[name] = pd.DataFrame(rows[int(named) :], columns=names, dtype=object)
    return found


def _sheet_rows(sheet: Any) -> list[tuple[Any, ...]]:
    """The rows of a sheet without empty ones, and without empty columns at the end."""
    rows = [row for row in sheet.iter_rows(values_only=True) if any(x is not None for x in row)]
    width = max((j + 1 for row in rows for j, x in enumerate(row) if x is not None), default=0)
    return [(*row[:width], *[None] * (width - len(row))) for row in rows]


# ---- R -------------------------------------------------------------------------------------------


def _read_r_tables(path: Path, notes: list[str]) -> dict[str, Any]:
    found, others = _r_tables(read_r(path))
    if not found:
        raise ValueError(
            f"{path} holds no matrix and no data frame, but {', '.join(others) or 'nothing'}: save "
            "the views as matrices or data frames"
        )
    if others:
        verb = "are" if len(others) > 1 else "is"
        notes.append(f"{path} also holds {', '.join(others)}, which {verb} not used")
    return {
        name: with_index(table) if _has_names(table) else table for name, table in found.items()
    }


def _has_names(table: Any) -> bool:
    return not isinstance(table, SparseTable) and table.index.dtype.kind == "O"


def _r_tables(objects: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Tables by name, also those in lists, and what else there is."""
    tables: dict[str, Any] = {}
    others: list[str] = []
    for name, value in objects.items():
        if isinstance(value, SparseTable) or hasattr(value, "iloc"):
            tables[name] = value
        elif isinstance(value, dict):
            inner, rest = _r_tables(value)
            prefix = "" if len(objects) == 1 else f"{name}."
            tables |= {prefix + key: table for key, table in inner.items()}
            others += [prefix + key for key in rest]
        else:
            others.append(name)
    return tables, others


def read_r(path: Path) -> dict[str, Any]:
    """The objects of an .rda file by name, or the one of an .rds file under the file's name.

    Matrices and data frames become DataFrames, sparse matrices of the package Matrix `SparseTable`;
    lists with names become dictionaries, factors and vectors become arrays.
    """
    rdata = require("rdata", "r", path.name)
    known = {**rdata.conversion.DEFAULT_CLASS_MAP, **_SPARSE}
    single = path.suffix.lower() == ".rds"
    with _read_as(path, "as an R file"):
        content = (rdata.read_rds if single else rdata.read_rda)(path, constructor_dict=known)
        plain = _plain(content)
    return {path.stem: plain} if single else plain


def _sparse_matrix(slots: Any, attributes: Mapping[str, Any]) -> SparseTable:
    """A matrix of the package Matrix: by columns (C), by rows (R), or as triplets (T)."""
    shape = tuple(int(n) for n in slots.Dim)
    kind = attributes["class"][0][2]
    if kind == "C":
        matrix = sparse.csc_array((slots.x, slots.i, slots.p), shape=shape)
    elif kind == "R":
        matrix = sparse.csr_array((slots.x, slots.j, slots.p), shape=shape)
    else:
        matrix = sparse.coo_array((slots.x, (slots.i, slots.j)), shape=shape)
    rows, columns = (None if names is None else list(map(str, names)) for names in slots.Dimnames)
    matrix = check_sparse(matrix, "it")
    return SparseTable(sparse.csr_array(matrix, dtype=float), rows, columns)


_SPARSE = {f"dg{kind}Matrix": _sparse_matrix for kind in "CRT"}


def _plain(value: Any) -> Any:
    """Matrices as DataFrames, whose index and columns are numbers where R has no names."""
    import pandas as pd

    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, pd.Categorical):
        return np.asarray(value, dtype=str)
    if isinstance(value, pd.DataFrame) and not isinstance(value.index, pd.RangeIndex):
        return value.set_axis(value.index.astype(str).astype(object))
    matrix = (
        getattr(value, "ndim", 0) == 2 and getattr(value, "dtype", np.dtype("O")).kind in "biuf"
    )
    if not matrix or isinstance(value, pd.DataFrame):
        return value
    rows, columns = (
        pd.Index(list(map(str, value.coords[axis].values)), dtype=object)
        if axis in getattr(value, "coords", ())
        else None
        for axis in getattr(value, "dims", "rc")
    )
    if columns is None:
        columns = pd.Index([f"column{j}" for j in range(1, value.shape[1] + 1)])
    numbers: Any = np.ma.filled(np.ma.asarray(np.asarray(value), dtype=float), np.nan)
    return pd.DataFrame(numbers, rows, columns)


# ---- matrices ------------------------------------------------------------------------------------


def read_file(path: Path) -> dict[str, Any]:
    """The variables of a file of matrices by name; a cell array of MATLAB is a list."""
    ending = check_file(path)
    check_size(path, ending)
    contents = _READERS[ending](path)
    for name, value in contents.items():
        for matrix in value if isinstance(value, list) else [value]:
            if sparse.issparse(matrix):
                check_sparse(matrix, f"{path}: {name}")
    return contents


# SciPy's reader trusts the sizes in a file, so a damaged one may end the process.
_LOADMAT = """
import pickle, sys
from scipy.io import loadmat
pickle.dump(loadmat(sys.argv[1]), sys.stdout.buffer, 5)
"""


def _read_mat(path: Path) -> dict[str, Any]:
    if is_hdf5(path):
        return _read_mat_hdf5(path)
    with _read_as(path, "as a MATLAB file"):
        return variables_of(pickle.loads(in_child(_LOADMAT, path, "structure")))


def variables_of(loaded: Mapping[str, Any]) -> dict[str, Any]:
    """What SciPy's loadmat returns, with cell arrays as lists in MATLAB's order."""
    return {
        name: list(value.ravel(order="F")) if _is_cell(value) else value
        for name, value in loaded.items()
        if not name.startswith("__")
    }


def _is_cell(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "O"


def _read_mat_hdf5(path: Path) -> dict[str, Any]:
    h5py = require("h5py", "files", f"{path.name} (MATLAB 7.3)")

    def value(item: Any) -> Any:
        attributes = item.attrs
        if "MATLAB_sparse" in attributes:  # CSC; `data` is missing when all entries are zero
            ends = item["jc"][()].astype(np.int64)
            entries = item["data"][()] if "data" in item else np.empty(0)
            rows = item["ir"][()].astype(np.int64) if "ir" in item else np.empty(0, np.int64)
            shape = (int(attributes["MATLAB_sparse"]), len(ends) - 1)
            return sparse.csc_array((entries.astype(float), rows, ends), shape=shape)
        if isinstance(item, h5py.Group) or "MATLAB_empty" in attributes:
            return None  # a struct, or an empty matrix, for which only the size is stored
        if attributes.get("MATLAB_class") == b"char":
            return None
        if h5py.check_ref_dtype(item.dtype) is not None:
            # A cell array: references, in MATLAB's order.
            return [value(file[reference]) for reference in item[()].ravel()]
        return item[()].T  # HDF5 stores the dimensions in reverse order

    with _read_as(path, "as a MATLAB 7.3 file"), h5py.File(path) as file:
        return {name: value(item) for name, item in file.items() if not name.startswith("#")}


def _read_npz(path: Path) -> dict[str, Any]:
    with _read_as(path, "as arrays"), np.load(path, allow_pickle=False) as arrays:
        if {"indptr", "format", "shape"} <= set(arrays.files):  # from scipy.sparse.save_npz
            return {path.stem: check_sparse(sparse.load_npz(path), "it").tocsr()}
        return {name: arrays[name] for name in arrays.files}


def _read_npy(path: Path) -> dict[str, Any]:
    with _read_as(path, "as an array"):
        return {path.stem: np.load(path, allow_pickle=False)}


def _read_mtx(path: Path) -> dict[str, Any]:
    with _read_as(path, "as MatrixMarket"):
        return {re.split(r"(?i)\.mtx", path.name)[0]: read_matrix_market(path)}


def read_matrix_market(path: Path) -> Any:
    r"""The matrix of a .mtx file: an array, or a csr_array.

    SciPy's reader follows wrong indices out of the matrix and reads 1.5 as the index 1.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.mtx")
    ...     _ = path.write_text("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n")
    ...     read_matrix_market(path)
    array([[1., 3.],
           [2., 4.]])
    """
    import pandas as pd

    with opened(path) as file:
        words = file.readline(2**10).decode("latin-1").lower().split()
        if len(words) < 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise ValueError("its first line is not %%MatrixMarket matrix ...")
        layout, kind, symmetry = words[2:5]
        known = kind in ("real", "double", "integer", "pattern")
        if not known or symmetry not in ("general", "symmetric", "skew-symmetric"):
            raise ValueError(f"matrices that are {kind} {symmetry} are not supported")
        line = next((line for line in file if line.strip() and not line.startswith(b"%")), b"")
        sizes = [int(word) for word in line.split()]
        if layout not in ("coordinate", "array") or len(sizes) != (2 + (layout == "coordinate")):
            raise ValueError("its size is missing")
        if min(sizes) < 0 or (symmetry != "general" and sizes[0] != sizes[1]):
            raise ValueError(f"its size is {sizes}")
        n, d, *stored = sizes
        skew = symmetry == "skew-symmetric"  # the diagonal is zero and left out
        count = (
            stored[0] if stored else n * d if symmetry == "general" else n * (n + 1 - 2 * skew) // 2
        )
        width = 1 if not stored else 2 if kind == "pattern" else 3
        check_reading(path, 8 * width * count)
        table = pd.read_csv(
            file,
            sep=r"\s+",
            header=None,
            names=range(width),
            index_col=False,
            dtype=float,
            na_filter=False,
            float_precision="round_trip",  # all digits
            nrows=count + 1,  # a file may have any number
        ).to_numpy()
    if len(table) != count:
        if len(table) > count:
            raise ValueError(f"it holds more than the {count} entries that its header names")
        raise ValueError(f"it holds {len(table)} entries where {count} should be")
    if not stored and symmetry == "general":
        return np.ascontiguousarray(table.reshape((n, d), order="F"))
    values = np.ones(count) if width == 2 else table[:, -1]
    j, i = (table[:, [1, 0]].T - 1) if stored else np.triu_indices(n, int(skew))
    for index, size in ((i, n), (j, d)):
        if not np.all((index >= 0) & (index < size) & (index == np.floor(index))):
            raise ValueError(f"an index is not from 1 to {size}")
    half = sparse.csr_array(
        sparse.coo_array((values, (i.astype(int), j.astype(int))), shape=(n, d))
    )
    if symmetry != "general":
        turned = half.T - sparse.diags_array(half.diagonal())
        half = sparse.csr_array(half - turned if skew else half + turned)
    return half if stored else half.toarray()


_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".mat": _read_mat,
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".mtx": _read_mtx,
}


def read_annotated(path: Path) -> Any:
    """The AnnData or MuData in a .h5ad or .h5mu file."""
    ending = path.suffix.lower()
    package, read = ("anndata", "read_h5ad") if ending == ".h5ad" else ("mudata", "read_h5mu")
    with own_warnings():
        warnings.simplefilter("ignore")  # both warn of future changes that do not concern the user
        module = require(package, "bio", path.name)
    check_size(path, ending)
    with _read_as(path, f"by {package}"):
        return getattr(module, read)(path)
