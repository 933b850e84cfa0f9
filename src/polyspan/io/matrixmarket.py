"""Reader of MatrixMarket files (.mtx, .mtx.gz), which checks every count and index."""

import gzip
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyspan.runtime.messages import own_warnings

_PER_ENTRY = {"real": 3, "double": 3, "integer": 3, "pattern": 2}


def read_matrix_market(path: Path) -> Any:
    r"""The matrix of a file: an array, or a csr_array.

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
    with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
        words = file.readline().decode("latin-1").lower().split()
        if len(words) < 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise ValueError("its first line is not %%MatrixMarket matrix ...")
        _, _, layout, kind, symmetry = words[:5]
        if kind not in _PER_ENTRY or symmetry not in ("general", "symmetric", "skew-symmetric"):
            raise ValueError(f"matrices that are {kind} {symmetry} are not supported")
        line = next((one for one in file if one.strip() and not one.startswith(b"%")), b"")
        sizes = [int(word) for word in line.split()]
        if layout not in ("coordinate", "array") or len(sizes) != (2 + (layout == "coordinate")):
            raise ValueError("its size is missing")
        if min(sizes) < 0 or (symmetry != "general" and sizes[0] != sizes[1]):
            raise ValueError(f"its size is {sizes}")
        with own_warnings():
            warnings.simplefilter("ignore")  # of words that are no numbers: they are counted below
            numbers = np.fromstring(file.read(), sep=" ")
    if layout == "array":
        return _dense(numbers, sizes, symmetry)
    return _sparse(numbers, sizes, _PER_ENTRY[kind], symmetry)


def _check_count(numbers: np.ndarray, wanted: int) -> None:
    if len(numbers) != wanted:
        raise ValueError(f"it holds {len(numbers)} numbers where {wanted} should be")


def _dense(numbers: np.ndarray, sizes: list[int], symmetry: str) -> np.ndarray:
    n, d = sizes
    if symmetry == "general":
        _check_count(numbers, n * d)
        return numbers.reshape((n, d), order="F")
    skew = symmetry == "skew-symmetric"  # the diagonal is zero and left out
    _check_count(numbers, n * (n - 1) // 2 if skew else n * (n + 1) // 2)
    columns, rows = np.triu_indices(n, 1 if skew else 0)  # the lower triangle, column by column
    whole = np.zeros((n, n))
    whole[columns, rows] = -numbers if skew else numbers
    whole[rows, columns] = numbers
    return whole


def _sparse(numbers: np.ndarray, sizes: list[int], each: int, symmetry: str) -> Any:
    n, d, count = sizes
    _check_count(numbers, count * each)
    table = numbers.reshape((count, each))
    i, j = table[:, 0] - 1, table[:, 1] - 1
    for index, size in ((i, n), (j, d)):
        if not np.all((index >= 0) & (index < size) & (index == np.floor(index))):
            raise ValueError(f"an index is not from 1 to {size}")
    values = np.ones(count) if each == 2 else table[:, 2]
    if symmetry != "general":
        off = i != j
        sign = -1 if symmetry == "skew-symmetric" else 1
        i, j = np.concatenate([i, j[off]]), np.concatenate([j, i[off]])
        values = np.concatenate([values, sign * values[off]])
    where = i.astype(np.int64), j.astype(np.int64)
    return sparse.csr_array(sparse.coo_array((values, where), shape=(n, d)))
