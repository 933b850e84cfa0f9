"""Check the index arrays of sparse matrices that come from outside, before compiled code does."""

from typing import Any

import numpy as np


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
    >>> import scipy.sparse as sp
    >>> check_sparse(sp.csr_array((np.ones(1), [7], [0, 1]), shape=(1, 2)), "rna.npz")
    Traceback (most recent call last):
    ...
    ValueError: rna.npz is a damaged sparse matrix (a column index is 7, but there are 2): write ...
    """
    found = {
        "csr": _wrong_compressed,
        "csc": _wrong_compressed,
        "bsr": _wrong_compressed,
        "coo": _wrong_triplets,
    }.get(matrix.format)
    wrong = None if found is None else found(matrix)
    if wrong:
        raise ValueError(f"{name} is a damaged sparse matrix ({wrong}): write it again.")
    return matrix


def _wrong_compressed(matrix: Any) -> str | None:
    """What is wrong with a matrix by rows, by columns or by blocks, or None."""
    axes, shape = ("row", "column"), tuple(map(int, matrix.shape))
    if matrix.format == "csc":
        axes, shape = axes[::-1], shape[::-1]
    elif matrix.format == "bsr":
        axes, blocks = ("block row", "block column"), matrix.blocksize
        if blocks != matrix.data.shape[1:] or any(
            a % b for a, b in zip(shape, blocks, strict=True)
        ):
            return "its blocks do not fill it"
        shape = shape[0] // blocks[0], shape[1] // blocks[1]
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
    both = (matrix.row, "row", matrix.shape[0]), (matrix.col, "column", matrix.shape[1])
    if len({len(matrix.data), len(matrix.row), len(matrix.col)}) > 1:
        return "its entries and indices are not equally many"
    return next((wrong for one in both if (wrong := _outside(*one))), None)


def _outside(indices: Any, axis: str, n: int) -> str | None:
    for index in (indices.min(), indices.max()) if len(indices) else ():
        if not 0 <= index < n:
            return f"a {axis} index is {index}, but there are {n}"
    return None
