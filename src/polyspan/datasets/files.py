"""Your own files: .mat (all versions), .npz, .npy, .csv, .tsv, .parquet and .mtx.

A .mat or .npz file holds all views and the labels; any other is one view with samples in rows, a
table (.csv, .tsv, .parquet) or a bare matrix (.npy, MatrixMarket). Published .mat files differ in
everything: samples in rows or in columns, views in a cell array or as named variables, labels under
a dozen names. The rules here read them all: the labels are found by their name and give the number
of samples; each view is turned so that its rows are the samples.
"""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyspan.datasets.dataset import Dataset, contiguous_labels
from polyspan.inputs.optional import require

LABEL_NAMES = ["truth", "truelabel", "true_label", "label", "labels", "gt", "gnd", "y", "target"]
TABLES = (".csv", ".tsv", ".parquet")
# What programs write for a value that is not there: pandas, R, SQL, spreadsheets.
MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>"})


def load_file(
    path: str | Path,
    *,
    views: Sequence[str] | None = None,
    labels: str | None = None,
    header: bool | None = None,
) -> Dataset:
    """Load views (and labels) from one file: .mat, .npz, .npy, .csv, .tsv, .parquet or .mtx.

    `load_views` reads several files and matches their samples by an id column.

    Parameters
    ----------
    path : str or Path
        The file; its ending says what it is. .csv, .tsv and .mtx may be packed (.csv.gz). MATLAB
        files of version 7.3 and .parquet need the extra ``polyspan[files]``.
    views : sequence of str, optional
        .mat and .npz: the variables that are views, a matrix or a cell array of matrices each.
        Without it: the first cell array of matrices, or else every matrix with as many rows or
        columns as there are labels.
        Tables: the columns that make up the one view. Without it: all but `labels`.
    labels : str, optional
        The variable or column with the true classes, numbers or words. Without it: in .mat and
        .npz the variable with a usual name (truth, gt, gnd, y, label, ...), if there is one;
        in other files none.
    header : bool, optional
        .csv and .tsv: whether the first row holds names. Without it: see the notes.

    Returns
    -------
    Dataset
        Samples in rows, float64; sparse matrices stay sparse (CSR). Without labels, `labels` is
        empty and `n_clusters` is 0.

    Notes
    -----
    A matrix with as many rows as columns is taken to have its samples in rows. Without labels, the
    samples are in rows if all views have equally many rows, else in columns.

    In a .csv file the delimiter is a comma, a semicolon or a tab. The first row is taken for names
    if something in it is not a number, unless its numbers are in no order, as in a sample after
    its id; and if it counts (0, 1, 2, ...) and the next row does not. Where it could be both,
    `header` must say it. Missing values (empty, NA, NaN, null, ...) become NaN.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from polyspan.datasets import load_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/pets.npz", sound=np.eye(4, 7), look=np.ones((5, 4)), y=[1, 1, 2, 2])
    ...     load_file(f"{folder}/pets.npz")
    Dataset('pets': 4 samples, 2 views (sound 7, look 5), 2 clusters)
    """
    path = Path(path)
    ending = check_file(path)
    contents = read_file(path, header)
    if ending in TABLES:
        contents.pop("", None)  # row numbers that pandas writes without a name
        return _from_table(path, contents, views, labels)
    if ending in (".npy", ".mtx"):
        views = list(contents)  # it is the view, even with a single column
    return _from_variables(path, contents, views, labels)


def check_file(path: Path, others: Sequence[str] = ()) -> str:
    """The ending that says what a file is, without .gz, if it can be read and is there.

    Examples
    --------
    >>> check_file(Path("pets.xlsx"))
    Traceback (most recent call last):
        ...
    ValueError: pets.xlsx is none of .mat, .npz, .csv, .parquet, .tsv, .npy, .mtx: ...
    """
    packed = path.suffix.lower() == ".gz"
    ending = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    known = [*_READERS, *others]
    if ending not in ((".csv", ".tsv", ".mtx") if packed else known):
        raise ValueError(f"{path} is none of {', '.join(known)}: its ending says what it is")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    return ending


def read_file(path: Path, header: bool | None = None) -> dict[str, Any]:
    """The contents of a checked file by name: columns of a table, or variables."""
    ending = check_file(path)
    return _read_csv(path, header) if ending in (".csv", ".tsv") else _READERS[ending](path)


# --- Readers: each returns the file's contents by name, in the file's order. ---


def _read_mat(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        start = stream.read(10)
    if start.startswith((b"MATLAB 7.3", b"\x89HDF")):
        return _read_mat_hdf5(path)
    from scipy.io import loadmat

    try:
        variables = loadmat(path)
    except Exception as error:  # a damaged file fails anywhere in the parser, with any exception
        raise ValueError(f"{path} cannot be read as a MATLAB file: {error}") from error
    return {
        name: list(value.ravel(order="F")) if _is_cell(value) else value
        for name, value in variables.items()
        if not name.startswith("__")
    }


def _is_cell(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _read_mat_hdf5(path: Path) -> dict[str, Any]:
    h5py = require("h5py", "files", f"{path.name} (MATLAB 7.3)")

    def value(item: Any) -> Any:
        attributes = item.attrs
        if "MATLAB_sparse" in attributes:  # compressed columns; `data` is missing when all is zero
            ends = item["jc"][()].astype(np.int64)
            entries = item["data"][()] if "data" in item else np.empty(0)
            rows = item["ir"][()].astype(np.int64) if "ir" in item else np.empty(0, np.int64)
            shape = (int(attributes["MATLAB_sparse"]), len(ends) - 1)
            return sparse.csc_array((entries.astype(float), rows, ends), shape=shape)
        if isinstance(item, h5py.Group) or "MATLAB_empty" in attributes:
            return None  # a struct, or an empty matrix of which only the size is stored
        if attributes.get("MATLAB_class") == b"char":
            return None
        if (
            h5py.check_ref_dtype(item.dtype) is not None
        ):  # a cell array: references, in MATLAB's order
            return [value(file[reference]) for reference in item[()].ravel()]
        return item[()].T  # HDF5 counts the dimensions the other way round

    try:
        with h5py.File(path) as file:
            return {name: value(item) for name, item in file.items() if not name.startswith("#")}
    except (OSError, KeyError, RuntimeError) as error:
        raise ValueError(f"{path} cannot be read as a MATLAB 7.3 file: {error}") from error


def _read_npz(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if {"indptr", "format", "shape"} <= set(arrays.files):  # by scipy.sparse.save_npz
                return {path.stem: sparse.csr_array(sparse.load_npz(path))}
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # a damaged file, or pickled objects, which are never loaded
        raise ValueError(f"{path} cannot be read as arrays: {error}") from error


def _read_npy(path: Path) -> dict[str, Any]:
    try:
        matrix = np.load(path, allow_pickle=False)
    except Exception as error:  # as above
        raise ValueError(f"{path} cannot be read as an array: {error}") from error
    return {path.stem: matrix}


def _read_mtx(path: Path) -> dict[str, Any]:
    from scipy.io import mmread

    try:
        matrix = mmread(path)  # unpacks .gz itself
    except Exception as error:  # a damaged file fails anywhere in the parser, with any exception
        raise ValueError(f"{path} cannot be read as MatrixMarket: {error}") from error
    return {
        path.name.split(".mtx")[0]: sparse.csr_array(matrix) if sparse.issparse(matrix) else matrix
    }


def _read_csv(path: Path, header: bool | None = None) -> dict[str, Sequence[Any]]:
    try:
        packed = path.read_bytes()
        text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text: save it as CSV UTF-8") from error
    first = text[: text.find("\n")] if "\n" in text else text
    delimiter = max(",;\t", key=first.count)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from error
    if not rows:
        raise ValueError(f"{path} is empty")
    for number, row in enumerate(rows, start=1):
        # R's write.table leaves out the name of the first column.
        if number == 2 and len(row) == len(rows[0]) + 1 and header is not False:
            rows[0].insert(0, "")
        if len(row) != len(rows[0]):
            raise ValueError(
                f"{path}: row {number} has {len(row)} fields, the first has {len(rows[0])}"
            )
    if _has_names(path, rows) if header is None else header:
        names = [name.strip() for name in rows.pop(0)]
    else:
        names = [f"column{j}" for j in range(1, len(rows[0]) + 1)]
    return _by_unique_name(path, names, zip(*rows, strict=True) if rows else [[]] * len(names))


def _has_names(path: Path, rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row holds names: numbers may be names, a sample may begin with an id."""
    given = [field for field in rows[0] if not is_missing(field)]
    numbers = [x for field in given if (x := as_numbers([field])) is not None]
    words = len(given) - len(numbers)
    # DataFrame.to_csv leaves the corner empty; then the rest may be numbers and yet be names.
    if rows[0][0] == "" or is_id_name(rows[0][0]) or not numbers:
        return True
    steps = np.diff(np.ravel(numbers))
    if np.any(steps <= 0) or words + len(numbers) < (2 if words else 3):
        return False  # names in numbers rise: years, wavelengths, positions
    if not words and len(rows) > 1:
        second = as_numbers(rows[1])
        if second is None or np.all(np.diff(second) > 0):
            return False  # rising is the way of these samples
    if words > len(numbers) or (len(steps) and np.all(steps == 1)):
        return True
    if not words and len(numbers) == 3:
        return False  # chance enough
    shown = ", ".join(rows[0][:4]) + (", ..." if len(rows[0]) > 4 else "")
    raise ValueError(
        f"{path}: the first row ({shown}) may be names or a sample: say --header yes or "
        "--header no (in Python header=True or False)"
    )


def is_id_name(name: str) -> bool:
    """Whether a column of this name holds ids.

    Examples
    --------
    >>> is_id_name("Sample ID"), is_id_name("patient_id"), is_id_name("width")
    (True, True, False)
    """
    things = "sample|subject|patient|participant|case|donor|cell|barcode"
    plain = "".join(filter(str.isalnum, name.lower()))
    return bool(re.fullmatch(f"(({things}|obs|row)?(id|name)|{things}|key|index|uu?id)s?", plain))


def _read_parquet(path: Path) -> dict[str, Sequence[Any]]:
    parquet = require("pyarrow.parquet", "files", path.name)
    try:
        table = parquet.read_table(path)
    except Exception as error:  # pyarrow has its own exceptions; the package may not be here
        raise ValueError(f"{path} cannot be read as Parquet: {error}") from error
    columns = [column.to_numpy() for column in table.columns]
    by_name = _by_unique_name(path, table.column_names, columns)
    # DataFrame.to_parquet puts the index last; here it comes first, as in a .csv file.
    index = (table.schema.pandas_metadata or {}).get("index_columns", [])
    first = [name for name in index if isinstance(name, str) and name in by_name][:1]
    ordered = {name: by_name[name] for name in [*first, *by_name]}
    return {
        "" if [name] == first and name.startswith("__index_level_") else name: column
        for name, column in ordered.items()
        if [name] == first or not name.startswith("__index_level_")
    }


def _by_unique_name(path: Path, names: list[str], columns: Iterable[Any]) -> dict[str, Any]:
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: several columns are called {quoted(repeated)}")
    return dict(zip(names, columns, strict=True))


_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".mat": _read_mat,
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".tsv": _read_csv,
    ".npy": _read_npy,
    ".mtx": _read_mtx,
}


# --- From contents to views and labels. ---


def _from_table(
    path: Path,
    columns: Mapping[str, Sequence[Any]],
    views: Sequence[str] | None,
    labels: str | None,
) -> Dataset:
    wanted = [views] if isinstance(views, str) else views
    names = list(wanted) if wanted is not None else [name for name in columns if name != labels]
    _check_present(path, columns, [*names, *([labels] if labels else [])], "column")
    numbers = {name: as_numbers(columns[name]) for name in names}
    if words := [name for name in names if numbers[name] is None]:
        hint = "" if labels else f"; if one is the labels, say labels={words[-1]!r}"
        raise ValueError(f"{path}: not numbers in column {quoted(words)}{hint}")
    if not names or len(columns[names[0]]) == 0:
        raise ValueError(
            f"{path} holds no samples" if names else f"{path} has no columns of a view"
        )
    view = np.column_stack([column for column in numbers.values() if column is not None])
    classes = _clean_labels(path, columns[labels]) if labels else None
    return _dataset(path, [view], [path.stem], classes)


def as_numbers(column: Sequence[Any]) -> NDArray[np.float64] | None:
    """The column as floats, empty fields as NaN; None when it is not numbers.

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
    # Python reads 1_2 as 12; in a table it is a name.
    return None if any(isinstance(v, str) and "_" in v for v in column) else found


def is_missing(value: Any) -> bool:
    """Whether a field of a table holds nothing, or a word for it.

    Examples
    --------
    >>> is_missing("NA"), is_missing(None), is_missing("0")
    (True, True, False)
    """
    return value is None or (isinstance(value, str) and value.strip().lower() in MISSING)


def _from_variables(
    path: Path, variables: Mapping[str, Any], views: Sequence[str] | None, labels: str | None
) -> Dataset:
    wanted = [views] if isinstance(views, str) else views
    _check_present(path, variables, [*(wanted or []), *([labels] if labels else [])], "variable")
    if labels is None:
        usual = [name for name in variables if _is_usual_label(name, variables[name], wanted)]
        labels = min(usual, key=lambda name: LABEL_NAMES.index(name.lower()), default=None)
    classes = _clean_labels(path, _first_of_cell(variables[labels])) if labels else None

    others = {name: value for name, value in variables.items() if name != labels}
    if wanted is not None:
        chosen = {name: others[name] for name in wanted if name in others}
    else:
        chosen = _find_views(others, None if classes is None else len(classes))
    named = [
        (f"{name}{k}" if isinstance(value, list) and len(value) > 1 else name, matrix)
        for name, value in chosen.items()
        for k, matrix in enumerate(value if isinstance(value, list) else [value], start=1)
    ]
    if not named:
        raise ValueError(
            f"{path} has no matrices that could be views; its variables: {quoted(variables)}"
        )
    if bad := [name for name, matrix in named if not _is_matrix(matrix)]:
        raise ValueError(f"{path}: not a matrix of numbers: {quoted(bad)}")
    oriented = _samples_in_rows(path, named, None if classes is None else len(classes))
    return _dataset(path, oriented, [name for name, _ in named], classes)


def _is_usual_label(name: str, value: Any, views: Sequence[str] | None) -> bool:
    if name.lower() not in LABEL_NAMES or name in (views or ()):
        return False
    shape = getattr(_first_of_cell(value), "shape", ())
    return len(shape) > 0 and int(np.prod(shape)) == max(shape) > 1  # a vector


def _first_of_cell(value: Any) -> Any:
    # Some files repeat the labels once per view.
    return value[0] if isinstance(value, list) and value else value


def _is_matrix(value: Any) -> bool:
    if sparse.issparse(value):
        return True
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "biuf"


def _find_views(variables: Mapping[str, Any], n_samples: int | None) -> dict[str, Any]:
    for name, value in variables.items():
        if isinstance(value, list) and value and all(_is_matrix(matrix) for matrix in value):
            return {name: value}
    return {
        name: value
        for name, value in variables.items()
        if _is_matrix(value)
        and (min(value.shape) > 1 if n_samples is None else n_samples in value.shape)
    }


def _samples_in_rows(
    path: Path, named: Sequence[tuple[str, Any]], n_samples: int | None
) -> list[Any]:
    shapes = [matrix.shape for _, matrix in named]
    if n_samples is None:
        for axis in (0, 1):
            if len({shape[axis] for shape in shapes}) == 1:
                return [matrix if axis == 0 else matrix.T for _, matrix in named]
        raise ValueError(f"{path}: the views share no number of samples, their shapes are {shapes}")
    for name, matrix in named:
        if n_samples not in matrix.shape:
            raise ValueError(
                f"{path}: view {name!r} has shape {matrix.shape}, but there are {n_samples} labels"
            )
    return [matrix if matrix.shape[0] == n_samples else matrix.T for _, matrix in named]


def _clean_labels(path: Path, values: Any) -> NDArray[np.int64]:
    marks = np.asarray(values.toarray() if sparse.issparse(values) else values)
    if marks.size == 0 or marks.size != max(marks.shape):
        raise ValueError(f"{path}: the labels have shape {marks.shape}, expected one per sample")
    marks = marks.ravel()
    numbers = as_numbers(marks.tolist())
    missing = (
        [v is None or v == "" for v in marks.tolist()] if numbers is None else np.isnan(numbers)
    )
    if np.any(missing):
        raise ValueError(f"{path}: {int(np.sum(missing))} labels are missing")
    return contiguous_labels(marks.astype(str) if numbers is None else numbers)


def _dataset(
    path: Path, views: list[Any], names: list[str], classes: NDArray[np.int64] | None
) -> Dataset:
    floats = [
        sparse.csr_array(view, dtype=float) if sparse.issparse(view) else _dense(view)
        for view in views
    ]
    labels = np.empty(0, dtype=np.int64) if classes is None else classes
    return Dataset(path.stem, floats, labels, names, int(labels.max(initial=-1)) + 1)


def _dense(view: Any) -> NDArray[np.float64]:
    return np.ascontiguousarray(view, dtype=float)


def _check_present(path: Path, contents: Mapping[str, Any], names: list[str], kind: str) -> None:
    if absent := [name for name in names if name not in contents]:
        raise ValueError(
            f"{path} has no {kind} {quoted(absent)}; it has {quoted(contents) or 'none'}"
        )


def quoted(names: Iterable[str], most: int = 12) -> str:
    """Names for a message, the first ones of many.

    Examples
    --------
    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = [repr(name) for name in names]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" * (len(listed) > most))
