"""Eigenvalues and eigenvectors of symmetric matrices: all, the lowest, or those above a limit."""

from contextlib import suppress

import numpy as np
import scipy.linalg
from array_api_compat import array_namespace, device, is_cupy_array, is_numpy_array

from polyspan.runtime.arrays import Array, column_lengths


def eigh(A: Array, *, overwrite: bool = False) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix.

    If LAPACK's divide and conquer fails, its QR iteration is used. ``overwrite`` allows the memory
    of a NumPy A to be reused for the vectors.
    """
    if not is_numpy_array(A):
        return tuple(array_namespace(A).linalg.eigh(A))
    if overwrite and A.shape[0] > 2000:  # saves memory; below that size, a copy does not matter
        return scipy.linalg.eigh(A.T, driver="evd", overwrite_a=True, check_finite=False)
    try:
        w, V = np.linalg.eigh(A)
        return w, V
    except np.linalg.LinAlgError:
        return scipy.linalg.eigh(A, driver="ev")


def lowest_eigenpairs(A: Array, c: int) -> tuple[Array, Array]:
    """Return the c lowest eigenvalues, ascending, and eigenvectors of a symmetric matrix.

    Examples
    --------
    >>> lowest_eigenpairs(np.diag([3.0, 1.0, 2.0]), 2)[0]
    array([1., 2.])
    """
    return _some_eigenpairs(A, 0, c)


def highest_eigenpairs(A: Array, c: int) -> tuple[Array, Array]:
    """Return the c highest eigenvalues, ascending, and eigenvectors of a symmetric matrix.

    Examples
    --------
    >>> highest_eigenpairs(np.diag([3.0, 1.0, 2.0]), 2)[0]
    array([2., 3.])
    """
    return _some_eigenpairs(A, A.shape[0] - c, A.shape[0])


def _some_eigenpairs(A: Array, first: int, stop: int) -> tuple[Array, Array]:
    """Eigenpairs in ascending order, from ``first`` up to ``stop``."""
    if is_numpy_array(A):
        with suppress(np.linalg.LinAlgError):  # LAPACK may fail on nearly equal eigenvalues,
            w, V = scipy.linalg.eigh(A, subset_by_index=[first, stop - 1])
            if V.shape[1] == stop - first:  # or find too few of them
                return w, V
    w, V = eigh(A)
    return w[first:stop], V[:, first:stop]


class TopEigenvectors:
    """All eigenpairs above a limit, for a sequence of symmetric positive semi-definite matrices.

    Each call starts from the eigenvectors of the last one, a few more than were above the limit,
    and refines them by rounds of a Chebyshev filter (which damps everything below the block's
    smallest Ritz value) and Rayleigh-Ritz. Two certificates must hold:

    - with residuals ``C v - w v``, the root sum of squares of ``|residual| / sqrt(w)`` bounds the
      error of anything of the form ``A V f(w) V^T`` with ``C = A^T A`` and 1-Lipschitz
      ``s f(s^2)``; it must be below 1e-10 of the largest singular value;
    - a Cholesky factorization of ``limit - (C without the pairs found)`` exists only if no
      eigenvalue above the limit was missed.

    If they fail or would cost more than a full eigendecomposition, the latter is used.

    Attributes
    ----------
    how : {"none", "partial", "full"}
        How the last answer was found.

    Examples
    --------
    >>> top = TopEigenvectors()
    >>> w, V = top(np.diag([1.0, 5.0, 3.0]), 2.0)
    >>> w
    array([3., 5.])
    """

    SMALL = 200  # up to this size a full decomposition is as fast
    ACCURACY = 1e-10
    FULL_COST = 3.0  # of a full decomposition, in units of 2 n^3 flops at the speed of GEMM
    GROWTH = 1e10  # between top and limit in one filter; more would swamp the small directions

    how = "none"
    _rank = 0
    _V: Array | None = None

    def __call__(self, C: Array, limit: float) -> tuple[Array, Array]:
        """Return eigenvalues above ``limit``, ascending, and their eigenvectors; C is consumed."""
        n = C.shape[0]
        refined = None
        if self._V is not None and self._V.shape[0] != n:
            self._rank, self._V = 0, None
        if n > self.SMALL:
            if self._rank == 0 and self._none_above(C, limit):
                self.how = "none"
                return C[0, :0], C[:, :0]
            if self._V is not None:
                refined = self._refine(C, limit)
        self.how = "full" if refined is None else "partial"
        w, V = eigh(C, overwrite=True) if refined is None else refined
        rank = int(array_namespace(w).count_nonzero(w > limit))
        # Keep spare vectors: many while the rank grows, few once it has settled.
        spare = max(40, rank) if rank > 1.05 * self._rank else max(20, rank // 5)
        self._rank, block = rank, min(rank + spare, n // 4)
        worth = n > self.SMALL and 0 < rank < 0.9 * block
        self._V = self._start(V, block) if worth else None
        return w[w.shape[0] - rank :], V[:, V.shape[1] - rank :]

    def _start(self, V: Array, block: int) -> Array:
        """Take the last ``block`` vectors; if there are fewer, add fixed random ones."""
        n, b = V.shape
        xp = array_namespace(V)
        if b >= block:  # a copy: a view would keep all of an n x n matrix alive
            return xp.asarray(V[:, b - block :], copy=True)
        extra = np.random.RandomState(0).normal(size=(n, block - b))
        return xp.concat([xp.asarray(extra, dtype=V.dtype, device=device(V)), V], axis=1)

    def _none_above(self, C: Array, limit: float, w: Array = None, V: Array = None) -> bool:
        """Prove by Cholesky that C without the pairs (w, V) has no eigenvalue above the limit."""
        xp = array_namespace(C)
        S = -C if V is None else (V * w[None, :]) @ V.T
        if V is not None:
            S -= C
        xp.reshape(S, (-1,), copy=False)[:: C.shape[0] + 1] += limit  # on the diagonal
        try:
            if is_numpy_array(S):  # in place; S is symmetric, so its transpose will do
                scipy.linalg.cholesky(S.T, lower=True, overwrite_a=True, check_finite=False)
            elif is_cupy_array(S):  # fails silently unless told to raise
                import cupyx

                with cupyx.errstate(linalg="raise"):
                    xp.linalg.cholesky(S)
            else:
                xp.linalg.cholesky(S)
        except (np.linalg.LinAlgError, RuntimeError):  # not positive definite; torch: RuntimeError
            return False
        return True

    def _refine(self, C: Array, limit: float) -> tuple[Array, Array] | None:
        """Improve the last call's vectors until both certificates hold, or give up."""
        xp = array_namespace(C)
        w, V, CV = _rayleigh_ritz(C, self._V)
        n, b = V.shape
        products = 0
        while True:
            products += 1
            rank = int(xp.count_nonzero(w > limit))
            top = float(w[-1])
            tol = self.ACCURACY * top**0.5
            if rank == b:  # no spare vector left: the rank grew too fast
                return None
            kept = slice(b - rank, b)
            residual = CV[:, kept] - V[:, kept] * w[kept][None, :]
            scaled = xp.sum(residual * residual, axis=0) / w[kept]
            error = float(xp.sum(scaled)) ** 0.5
            if error <= tol:
                # Singular values within tol above sqrt(limit) may be missed: their effect is less.
                slack = (limit**0.5 + tol) ** 2
                proved = self._none_above(C, slack, w[kept], V[:, kept])
                return (w, V) if proved else None
            damped = max(float(w[0]), 1e-3 * limit)
            gain = _chebyshev_gain(limit / damped)
            most = np.log(self.GROWTH) / max(np.log(_chebyshev_gain(top / damped) / gain), 1e-3)
            degree = int(np.ceil(np.log(10 * error / tol) / max(np.log(gain), 1e-3)))
            # A full decomposition may be cheaper; then stop here.
            if (products + degree) * b > self.FULL_COST * n:
                return None
            degree = max(1, min(degree, int(most)))
            products += degree
            w, V, CV = _rayleigh_ritz(C, _chebyshev(C, V, CV, damped, degree))


def _chebyshev_gain(ratio: float) -> float:
    """Growth per degree of a Chebyshev polynomial on [0, 1] at ``ratio`` > 1."""
    x = max(2 * ratio - 1, 1.0)
    return x + (x * x - 1) ** 0.5


def _chebyshev(C: Array, V: Array, CV: Array, damped: float, degree: int) -> Array:
    """Chebyshev polynomial of C on V that stays in [-1, 1] on [0, damped]."""
    half = damped / 2
    before, now = V, CV / half - V
    for _ in range(degree - 1):
        before, now = now, (2 / half) * (C @ now) - 2 * now - before
    return now


def _rayleigh_ritz(C: Array, Y: Array) -> tuple[Array, Array, Array]:
    """Ritz values, ascending, orthonormal Ritz vectors V in the span of Y, and C V."""
    xp = array_namespace(C)
    Y = Y / column_lengths(Y)[None, :]
    CY = C @ Y
    g, P = eigh(Y.T @ Y)
    P = P / xp.sqrt(xp.clip(g, min=1e-14 * float(g[-1])))[None, :]
    w, S = eigh(P.T @ (Y.T @ CY) @ P)
    P = P @ S
    return w, Y @ P, CY @ P
