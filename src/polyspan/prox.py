"""Closed-form steps: argmin_B t * penalty(B) + |B - A|_F^2 / 2, for any array library."""

from typing import Any

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace, is_numpy_array

from polyspan.linalg import column_lengths

Array = Any


def soft(A: Array, t: float) -> Array:
    """Shrink every entry towards zero by t: the prox of the l1 norm.

    Examples
    --------
    >>> soft(np.array([-3.0, 0.5, 2.0]), 1.0)
    array([-2.,  0.,  1.])
    """
    xp = array_namespace(A)
    return xp.sign(A) * xp.clip(xp.abs(A) - t, min=0.0)


def columns(A: Array, t: float) -> Array:
    """Shorten every column by t, at most to zero: the prox of the l2,1 norm.

    Examples
    --------
    >>> columns(np.array([[3.0, 0.6], [4.0, 0.8]]), 2.5)
    array([[1.5, 0. ],
           [2. , 0. ]])
    """
    xp = array_namespace(A)
    lengths = column_lengths(A)
    kept = xp.clip(lengths - t, min=0.0) / xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    return A * kept[None, :]


def singular(A: Array, t: float) -> Array:
    """Lower every singular value by t, at most to zero: the prox of the nuclear norm.

    Examples
    --------
    >>> singular(np.diag([3.0, 1.0, 2.0]), 1.5)
    array([[1.5, 0. , 0. ],
           [0. , 0. , 0. ],
           [0. , 0. , 0.5]])
    """
    xp = array_namespace(A)
    if float(xp.sum(A * A)) <= t * t:  # the largest singular value is at most the Frobenius norm
        return xp.zeros_like(A)
    U, s, Vh = svd(A)
    keep = s > t
    return (U[:, keep] * (s[keep] - t)) @ Vh[keep, :]


def svd(A: Array) -> tuple[Array, Array, Array]:
    """Thin singular value decomposition, with a second LAPACK driver behind the first."""
    xp = array_namespace(A)
    try:
        return tuple(xp.linalg.svd(A, full_matrices=False))  # type: ignore[return-value]
    except np.linalg.LinAlgError:  # gesdd gives up on some finite matrices; gesvd does not
        if not is_numpy_array(A):
            raise
        return scipy.linalg.svd(A, full_matrices=False, lapack_driver="gesvd")
