"""One reader per format of matrices; each returns a file's variables by name.

The file extension gives the format: .mat (all versions), .npz, .npy, .mtx; `tables` reads tables.
"""

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyspan.io.matlab import is_matlab_5, read_matlab_5
from polyspan.io.matrixmarket import read_matrix_market
from polyspan.io.safety import check_links, check_sparse
from polyspan.io.sizes import check_size
from polyspan.io.tables import TABLES, TEXT
from polyspan.runtime.messages import one_line
from polyspan.runtime.optional import require


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
    known = [*_READERS, *TABLES, *others]
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


def read_file(path: Path) -> dict[str, Any]:
    """The variables of a file of matrices by name."""
    ending = check_file(path)
    check_size(path, ending)
    return _sound(path, _READERS[ending](path))


def _sound(path: Path, contents: dict[str, Any]) -> dict[str, Any]:
    """The contents of a file, after a check of all sparse matrices among them."""
    for name, value in contents.items():
        for one in value if isinstance(value, list) else [value]:
            if sparse.issparse(one):
                check_sparse(one, f"{path}: {name}")
    return contents


def _read_mat(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        start = stream.read(128)
    if start.startswith((b"MATLAB 7.3", b"\x89HDF")):
        return _read_mat_hdf5(path)
    try:
        if is_matlab_5(start):
            return read_matlab_5(path)
        from scipy.io import loadmat

        variables = loadmat(path)
    except Exception as error:  # a damaged file may raise any exception
        raise ValueError(f"{path} cannot be read as a MATLAB file: {one_line(error)}") from error
    return {
        name: list(value.ravel(order="F")) if _is_cell(value) else value
        for name, value in variables.items()
        if not name.startswith("__")
    }


def _is_cell(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object


def _read_mat_hdf5(path: Path) -> dict[str, Any]:
    h5py = require("h5py", "files", f"{path.name} (MATLAB 7.3)")
    check_links(path, h5py)

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

    try:
        with h5py.File(path) as file:
            return {name: value(item) for name, item in file.items() if not name.startswith("#")}
    except Exception as error:  # a damaged file may raise any exception
        raise ValueError(
            f"{path} cannot be read as a MATLAB 7.3 file: {one_line(error)}"
        ) from error


def _read_npz(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            if {"indptr", "format", "shape"} <= set(arrays.files):  # from scipy.sparse.save_npz
                return {path.stem: _csr(sparse.load_npz(path))}
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # a damaged file, or pickled objects, which are never loaded
        raise ValueError(f"{path} cannot be read as arrays: {one_line(error)}") from error


def _read_npy(path: Path) -> dict[str, Any]:
    try:
        matrix = np.load(path, allow_pickle=False)
    except Exception as error:  # as above
        raise ValueError(f"{path} cannot be read as an array: {one_line(error)}") from error
    return {path.stem: matrix}


def _read_mtx(path: Path) -> dict[str, Any]:
    try:
        matrix = read_matrix_market(path)
    except Exception as error:  # a damaged file may raise any exception
        raise ValueError(f"{path} cannot be read as MatrixMarket: {one_line(error)}") from error
    return {re.split(r"(?i)\.mtx", path.name)[0]: matrix}


def _csr(matrix: Any) -> Any:
    return sparse.csr_array(check_sparse(matrix, "it"))


_READERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    ".mat": _read_mat,
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".mtx": _read_mtx,
}
