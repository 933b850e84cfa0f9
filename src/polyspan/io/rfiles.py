"""Reader of R's files, .rda (or .RData) and .rds: matrices, data frames, lists and factors."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyspan.io.safety import check_sparse
from polyspan.runtime.messages import one_line, own_warnings
from polyspan.runtime.optional import require


class RTable(NamedTuple):
    """A matrix or a data frame, with the names of its rows and columns where it has any."""

    values: Any  # 2-dimensional: dense, sparse (CSR), or of objects for a data frame with text
    rows: list[str] | None
    columns: list[str] | None

    @property
    def turned(self) -> "RTable":
        """The table with rows and columns exchanged; a sparse one is CSR again."""
        values = self.values.T.tocsr() if sparse.issparse(self.values) else self.values.T
        return RTable(values, self.columns, self.rows)


def read_r(path: Path) -> dict[str, Any]:
    """The objects of an .rda file by name, or the one of an .rds file under the file's name.

    Matrices and data frames become `RTable`, sparse matrices of the package Matrix too, without
    becoming dense; lists with names become dictionaries, factors and vectors become arrays.
    """
    rdata = require("rdata", "r", path.name)
    known = rdata.conversion.DEFAULT_CLASS_MAP
    read = rdata.read_rds if path.suffix.lower() == ".rds" else rdata.read_rda
    try:
        with own_warnings():
            warnings.simplefilter("ignore")  # of classes unknown to rdata, and of encodings
            content = read(path, constructor_dict={**known, **_SPARSE})
    except Exception as error:  # a damaged file may raise any exception
        raise ValueError(f"{path} cannot be read as an R file: {one_line(error)}") from error
    plain = _plain(content)
    return {path.stem: plain} if path.suffix.lower() == ".rds" else plain


def _sparse_matrix(slots: Any, attributes: Mapping[str, Any]) -> RTable:
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
    return RTable(sparse.csr_array(matrix, dtype=float), rows, columns)


_SPARSE = {f"dg{kind}Matrix": _sparse_matrix for kind in "CRT"}


def _plain(value: Any) -> Any:
    if isinstance(value, RTable):
        return value
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    kind = type(value).__name__  # of pandas and xarray, which rdata brings
    if kind == "DataFrame":
        return _from_frame(value)
    if kind == "DataArray" and value.ndim == 2:
        rows, columns = (
            [str(name) for name in value.coords[axis].values] if axis in value.coords else None
            for axis in value.dims
        )
        return RTable(_floats(value.values), rows, columns)
    if kind == "Categorical":
        return np.asarray(value, dtype=str)
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "biuf":
        return RTable(_floats(value), None, None)
    return value


def _from_frame(frame: Any) -> RTable:
    values = np.array([_column(frame[name]) for name in frame]).T
    numbered = type(frame.index).__name__ == "RangeIndex"  # the rows have no names
    rows = None if numbered else [str(name) for name in frame.index]
    return RTable(values, rows, [str(name) for name in frame.columns])


def _floats(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)


def _column(column: Any) -> NDArray[Any]:
    if column.dtype.kind in "biuf":  # R's NA is pandas' NA
        return column.to_numpy(dtype=float, na_value=np.nan)
    return column.to_numpy(dtype=object, na_value=None)
