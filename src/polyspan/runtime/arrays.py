"""Small operations on arrays of any library that follows the array API, on their device."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_cupy_array, is_numpy_array, is_torch_array

Array = Any


def to_numpy(x: Array) -> np.ndarray:
    """Bring an array of any library and device to NumPy."""
    if is_torch_array(x):
        return x.detach().cpu().numpy()
    if is_cupy_array(x):
        return x.get()
    return x if is_numpy_array(x) else np.from_dlpack(x)


def astype(x: Array, dtype: Any) -> Array:
    """Convert to a dtype, given by name or as a dtype of x's library; copies only if needed."""
    xp = array_namespace(x)
    return xp.astype(x, getattr(xp, dtype) if isinstance(dtype, str) else dtype, copy=False)


def like(x: Array, other: Array) -> Array:
    """Return x as an array of the library, dtype and device of another; copied only if needed.

    Examples
    --------
    >>> like(np.array([1.0, 2.0]), np.zeros(1, dtype=np.float32)).dtype
    dtype('float32')
    """
    if is_numpy_array(other):
        return np.asarray(x, dtype=other.dtype)
    return array_namespace(other).asarray(x, dtype=other.dtype, device=device(other))


def sum_products(A: Array, B: Array, axis: int) -> Array:
    """Inner products of the columns (axis 0) or the rows (axis 1) of two matrices.

    Examples
    --------
    >>> sum_products(np.array([[1.0, 2.0], [3.0, 4.0]]), np.ones((2, 2)), 1)
    array([3., 7.])
    """
    if is_numpy_array(A):
        return np.einsum("ij,ij->j" if axis == 0 else "ij,ij->i", A, B)  # no temporary
    return array_namespace(A).sum(A * B, axis=axis)


def gram(X: Array) -> Array:
    """Inner products of the rows of X, dense; X may be scipy.sparse."""
    return (X @ X.T).toarray() if sp.issparse(X) else X @ X.T


def take_rows(X: Array, rows: np.ndarray) -> Array:
    """Rows of an array of any library, or of a sparse matrix, in a given order.

    Examples
    --------
    >>> take_rows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0])).ravel()
    array([3., 1.])
    """
    if sp.issparse(X):
        return X[rows]
    xp = array_namespace(X)
    return xp.take(X, xp.asarray(rows, device=device(X)), axis=0)


def diagonal_mask(A: Array) -> Array:
    """Boolean identity matrix of the size, library and device of a square matrix."""
    xp = array_namespace(A)
    return xp.eye(A.shape[0], dtype=xp.bool, device=device(A))


def order_statistics(values: Array, ranks: Sequence[int]) -> list[float]:
    """Return the values with the given ranks (0 = smallest) in a 1-D array.

    Examples
    --------
    >>> order_statistics(np.array([5.0, 1.0, 3.0]), [0, 1])
    [1.0, 3.0]
    """
    if is_numpy_array(values):
        ordered = np.partition(values, sorted(set(ranks)))
    else:
        ordered = array_namespace(values).sort(values)
    return [float(ordered[rank]) for rank in ranks]


def inverse_root(degrees: Array) -> Array:
    """``D^-1/2`` of the degrees of a graph; samples without weights get 1.

    Examples
    --------
    >>> inverse_root(np.array([4.0, 0.0]))
    array([0.5, 1. ])
    """
    xp = array_namespace(degrees)
    return 1 / xp.sqrt(xp.where(degrees > 0, degrees, xp.ones_like(degrees)))


def column_lengths(A: Array) -> Array:
    """Euclidean length of every column."""
    if is_numpy_array(A):
        return np.sqrt(np.einsum("ij,ij->j", A, A))  # one pass, no temporary
    return array_namespace(A).linalg.vector_norm(A, axis=0)


def sum_squares(A: Array) -> float:
    """Squared Frobenius norm."""
    if is_numpy_array(A):
        return float(np.einsum("ij,ij->", A, A))  # no temporary
    return float(array_namespace(A).sum(A * A))


def longest_column(A: Array) -> float:
    """Length of the longest column."""
    return float(array_namespace(A).max(column_lengths(A)))


def largest_row_sum(A: Array) -> float:
    """Largest sum of the absolute values of a row: the infinity norm, as in MATLAB."""
    xp = array_namespace(A)
    return float(xp.max(xp.sum(xp.abs(A), axis=1)))
