"""What could do harm: a full memory, wrong indices, links to other files, entities in XML."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from polyspan.runtime.memory import available_memory
from polyspan.runtime.messages import one_line

EXCEL_TIMES = 4  # memory of a workbook's cells, in units of its unpacked size


def check_workbook(path: Path) -> None:
    """Refuse an Excel file that declares XML entities, or that does not fit into memory."""
    if not zipfile.is_zipfile(path):
        return  # left to the reader
    free = available_memory()
    with zipfile.ZipFile(path) as archive:
        need = EXCEL_TIMES * sum(one.file_size for one in archive.infolist())
        if free is not None and need > free:
            raise MemoryError(
                f"{path} needs about {need / 2**30:.1f} GiB of memory when it is unpacked, but "
                f"{free / 2**30:.1f} GiB are free: save its sheets as CSV"
            )
        for name in archive.namelist():
            if name.endswith((".xml", ".rels")):
                with archive.open(name) as stream:
                    if b"<!DOCTYPE" in stream.read(4096).upper():
                        raise ValueError(
                            f"{path} declares XML entities, which no spreadsheet needs: save it "
                            "again with a spreadsheet program"
                        )


def check_links(path: Path, h5py: Any) -> None:
    """Refuse an HDF5 file that takes data from other files."""

    def check(name: str, item: Any) -> str | None:
        if isinstance(item, h5py.Group):
            for key in item:
                if isinstance(item.get(key, getlink=True), h5py.ExternalLink):
                    return f"{name}/{key}".lstrip("/")
        elif item.external or item.is_virtual:
            return name
        return None

    try:
        file = h5py.File(path, "r")
    except OSError:
        return  # left to the reader
    with file:
        try:
            found = check("", file) or file.visititems(check)
        except Exception as error:  # a damaged file may raise any exception
            raise ValueError(f"{path} is damaged: {one_line(error)}") from error
        if found is not None:
            raise ValueError(
                f"{path}: {found!r} is a link to another file, which is not followed: save all "
                "data in one file"
            )


def check_sparse(matrix: Any, name: str) -> Any:
    """Return a sparse matrix, or raise if an index points outside of it.

    The compiled code of SciPy trusts these indices: a damaged file would otherwise read and write
    anywhere in memory. The matrix is not changed.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array
        In any format.
    name : str
        What to call it: a file, a view.

    Examples
    --------
    >>> check_sparse(sp.csr_array((np.ones(1), [7], [0, 1]), shape=(1, 2)), "rna.npz")
    Traceback (most recent call last):
    ...
    ValueError: rna.npz is a damaged sparse matrix (a column index is 7, but there are 2): write ...
    """
    wrong = None
    if matrix.format in ("csr", "csc", "bsr"):
        wrong = _wrong_compressed(matrix)
    elif matrix.format == "coo":
        wrong = _wrong_triplets(matrix)
    if wrong:
        raise ValueError(f"{name} is a damaged sparse matrix ({wrong}): write it again.")
    return matrix


def _wrong_compressed(matrix: Any) -> str | None:
    """What is wrong with a matrix by rows, by columns or by blocks, or None."""
    axes, shape = ("row", "column"), tuple(map(int, matrix.shape))
    if matrix.format == "csc":
        axes, shape = axes[::-1], shape[::-1]
    elif matrix.format == "bsr":
        axes, (height, width) = ("block row", "block column"), matrix.blocksize
        if matrix.data.shape[1:] != (height, width) or shape[0] % height or shape[1] % width:
            return "its blocks do not fill it"
        shape = shape[0] // height, shape[1] // width
    ends, indices = matrix.indptr, matrix.indices
    if ends.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        return "its indices are not whole numbers"
    if ends.ndim != 1 or indices.ndim != 1 or len(ends) != shape[0] + 1:
        return f"there are {len(ends) - 1} ends of {axes[0]}s, but {shape[0]} {axes[0]}s"
    if ends[0] != 0 or np.any(ends[1:] < ends[:-1]):
        return f"the ends of its {axes[0]}s do not ascend from 0"
    if not ends[-1] <= len(indices) == len(matrix.data):
        return f"it has {len(matrix.data)} entries, {len(indices)} indices and ends at {ends[-1]}"
    return _outside(indices[: ends[-1]], axes[1], shape[1])


def _wrong_triplets(matrix: Any) -> str | None:
    if len({len(matrix.data), len(matrix.row), len(matrix.col)}) > 1:
        return "its entries and indices are not equally many"
    n, d = matrix.shape
    return _outside(matrix.row, "row", n) or _outside(matrix.col, "column", d)


def _outside(indices: Any, axis: str, n: int) -> str | None:
    for index in (indices.min(), indices.max()) if len(indices) else ():
        if not 0 <= index < n:
            return f"a {axis} index is {index}, but there are {n}"
    return None
