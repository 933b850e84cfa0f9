"""Closed-form steps: argmin_B t * penalty(B) + |B - A|_F^2 / 2, for any array library.

Tensors (m, n, n) hold one matrix per view.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_array

from polyspan.runtime.arrays import Array, column_lengths, sum_squares
from polyspan.solvers.eigen import TopEigenvectors


def soft(A: Array, t: float) -> Array:
    """Shrink every entry towards zero by t: the prox of the l1 norm.

    Examples
    --------
    >>> soft(np.array([-3.0, 0.5, 2.0]), 1.0)
    array([-2.,  0.,  1.])
    """
    xp = array_namespace(A)
    return xp.sign(A) * xp.clip(xp.abs(A) - t, min=0.0)


def column_factors(A: Array, t: float) -> Array:
    """Factor by which `columns` shortens each column of A.

    Examples
    --------
    >>> column_factors(np.array([[3.0, 0.6], [4.0, 0.8]]), 2.5)
    array([0.5, 0. ])
    """
    xp = array_namespace(A)
    lengths = column_lengths(A)
    return xp.clip(lengths - t, min=0.0) / xp.where(lengths > 0, lengths, xp.ones_like(lengths))


def columns(A: Array, t: float) -> Array:
    """Shorten every column by t, but not below zero: the prox of the l2,1 norm.

    Examples
    --------
    >>> columns(np.array([[3.0, 0.6], [4.0, 0.8]]), 2.5)
    array([[1.5, 0. ],
           [2. , 0. ]])
    """
    return A * column_factors(A, t)[None, :]


def columns_of_views(A: Array, rows: Sequence[slice], ts: Sequence[Any]) -> Array:
    """Shorten the columns of every view by its own t; ``rows`` are the views' rows of A.

    A is overwritten. A t may be an array with one number per column.

    Examples
    --------
    >>> columns_of_views(np.array([[3.0], [4.0], [2.0]]), [slice(0, 2), slice(2, 3)], [2.5, 0.5])
    array([[1.5],
           [2. ],
           [1.5]])
    """
    for k, t in zip(rows, ts, strict=True):
        A[k, :] *= column_factors(A[k, :], t)[None, :]
    return A


def simplex(A: Array) -> Array:
    """Project every row onto the simplex: non-negative entries that sum to 1.

    Examples
    --------
    >>> simplex(np.array([[0.5, 0.5, 2.0], [0.4, 0.3, 0.0]]))
    array([[0. , 0. , 1. ],
           [0.5, 0.4, 0.1]])
    """
    xp = array_namespace(A)
    counts = xp.arange(1, A.shape[1] + 1, dtype=A.dtype, device=device(A))[None, :]
    # The level rises as long as the next largest entry is above it, so the right one is the
    # largest of all levels.
    if is_numpy_array(A):  # the same numbers, in place and from an ascending sort
        levels = np.sort(-A, axis=1)
        np.cumsum(levels, axis=1, out=levels)
        levels += 1
        levels /= counts
        return np.maximum(A + np.min(levels, axis=1, keepdims=True), 0)
    ordered = xp.sort(A, axis=1, descending=True)
    levels = (xp.cumulative_sum(ordered, axis=1) - 1) / counts
    return xp.clip(A - xp.max(levels, axis=1, keepdims=True), min=0.0)


@dataclass
class SingularThreshold:
    """Lower every singular value by t, but not below zero: the prox of the nuclear norm.

    It has a memory: each call starts from the singular vectors of the last one. The result comes
    from eigenvectors of ``C = A^T A`` with eigenvalues above ``t^2``:
    ``Q = A V diag(1 - t / s) V^T``. There are three ways, tried cheapest first:

    1. ``|A|_F <= t`` or ``|C|_F <= t^2`` prove Q = 0;
    2. the last call's vectors are refined until Q is accurate to ``1e-10 |A|``, and a
       Cholesky factorization proves that no singular value above t was missed
       (`polyspan.solvers.eigen.TopEigenvectors`);
    3. a full eigendecomposition of C, when the rank is high or the proof fails.

    Squaring is harmless here: in all solvers t is at least 1e-6 of the largest singular value, so
    singular values near t are wrong by at most 1e-10 of it. For the same reason, float32 input is
    squared and factored in float64.

    Examples
    --------
    >>> threshold = SingularThreshold()
    >>> threshold(np.diag([3.0, 1.0]), 2.0).round(12)
    array([[1., 0.],
           [0., 0.]])
    >>> threshold.rank
    1
    """

    rank: int = 0
    _top: TopEigenvectors = field(default_factory=TopEigenvectors)

    def __call__(self, A: Array, t: float) -> Array:
        """Return A with its singular values lowered by t."""
        if A.shape[0] < A.shape[1]:  # work on the smaller Gram matrix
            return self(A.T, t).T
        xp = array_namespace(A)
        dtype = A.dtype
        self.rank = 0
        if sum_squares(A) <= t * t:  # |A|_2 <= |A|_F
            return xp.zeros_like(A)
        if t == 0.0:
            self.rank = A.shape[1]
            return xp.asarray(A, copy=True)
        A = xp.astype(A, xp.float64, copy=False)
        C = A.T @ A
        if sum_squares(C) <= t**4:  # |A|_2^2 = |C|_2 <= |C|_F
            return xp.zeros_like(A, dtype=dtype)
        w, V = self._top(C, t * t)
        self.rank = w.shape[0]
        if self.rank == 0:
            return xp.zeros_like(A, dtype=dtype)
        return xp.astype((A @ V) @ ((1 - t / xp.sqrt(w))[:, None] * V.T), dtype, copy=False)
