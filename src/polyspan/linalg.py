"""Exact reductions and factorisations that the solvers share.

Everything runs on any array library that follows the array API, on the device of its input.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.linalg
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
    """Convert to a dtype, given by name or as a dtype of x's library; no copy when it has it."""
    xp = array_namespace(x)
    return xp.astype(x, getattr(xp, dtype) if isinstance(dtype, str) else dtype, copy=False)


def gram(X: Array) -> Array:
    """Inner products of the rows of X, dense; X may be scipy.sparse."""
    return (X @ X.T).toarray() if sp.issparse(X) else X @ X.T


def diagonal(A: Array) -> Array:
    """Main diagonal of a square matrix."""
    return array_namespace(A).linalg.diagonal(A)


def diagonal_mask(A: Array) -> Array:
    """Boolean identity matrix of the size, library and device of a square matrix."""
    xp = array_namespace(A)
    return xp.eye(A.shape[0], dtype=xp.bool, device=device(A))


def eigh(A: Array, *, overwrite: bool = False) -> tuple[Array, Array]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric matrix.

    When LAPACK's divide and conquer gives up, its QR iteration takes over. ``overwrite`` allows
    NumPy to use the memory of A for the vectors.
    """
    if not is_numpy_array(A):
        w, V = array_namespace(A).linalg.eigh(A)
        return w, V
    if overwrite and A.shape[0] > 2000:  # memory counts; below, numpy's own copy is as good
        return scipy.linalg.eigh(A.T, driver="evd", overwrite_a=True, check_finite=False)
    try:
        w, V = np.linalg.eigh(A)
    except np.linalg.LinAlgError:
        w, V = scipy.linalg.eigh(A, driver="ev")
    return w, V


def lowest_eigenpairs(A: Array, c: int) -> tuple[Array, Array]:
    """Return the c lowest eigenvalues, ascending, and eigenvectors of a symmetric matrix.

    Examples
    --------
    >>> lowest_eigenpairs(np.diag([3.0, 1.0, 2.0]), 2)[0]
    array([1., 2.])
    """
    if is_numpy_array(A):
        return scipy.linalg.eigh(A, subset_by_index=[0, c - 1])
    w, V = eigh(A)
    return w[:c], V[:, :c]


def order_statistics(values: Array, ranks: Sequence[int]) -> list[float]:
    """Return the values of given ranks (0 = smallest) of a 1-D array, without sorting it all.

    Examples
    --------
    >>> order_statistics(np.array([5.0, 1.0, 3.0]), [0, 1])
    [1.0, 3.0]
    """
    if is_numpy_array(values):
        part = np.partition(values, sorted(set(ranks)))
        return [float(part[rank]) for rank in ranks]
    return [_order_statistic(values, rank) for rank in ranks]


def _order_statistic(values: Array, rank: int) -> float:
    """Value of one rank by bisection: a few dozen counting passes, fast on any device."""
    xp = array_namespace(values)
    low, high = float(xp.min(values)), float(xp.max(values))
    below = 0  # how many values are < low
    while True:
        inside = (values >= low) & (values <= high)
        if int(xp.count_nonzero(inside)) <= 2**16:
            return float(xp.sort(values[inside])[rank - below])
        middle = low + (high - low) / 2
        if middle in (low, high):  # neighbouring numbers: all values inside are one of the two
            least = below + int(xp.count_nonzero(values == low))
            return low if rank < least else high
        left = int(xp.count_nonzero(values < middle))
        if left > rank:
            high = middle
        else:
            low, below = middle, left


def kth_smallest(D: Array, k: int) -> Array:
    """k-th smallest entry (k = 1 is the smallest) of every row, as a column."""
    if is_numpy_array(D):
        return np.partition(D, k - 1, axis=1)[:, k - 1 : k]
    if is_torch_array(D):  # much faster than kthvalue on a GPU
        return D.topk(k, dim=1, largest=False).values[:, k - 1 :]
    return array_namespace(D).sort(D, axis=1)[:, k - 1 : k]


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
    """Largest sum of the absolute values of a row: the infinity norm, as MATLAB has it."""
    xp = array_namespace(A)
    return float(xp.max(xp.sum(xp.abs(A), axis=1)))


def reduce_rows(X: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Replace the d x n matrix of a view by R with at most n rows and R^T R = X^T X.

    A solver whose errors and multipliers stay in the range of X, and which looks at them only
    through inner products and lengths of columns, makes the same iterates with R.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        One view, samples in rows as users give it.

    Returns
    -------
    R : (r, n) array
        The reduced view, samples in columns as the papers write it; r <= min(d, n).
    back : callable
        Maps an (r, n) matrix of the reduced coordinates, or some of its columns, to the original
        ones: d rows, without those of features that a sparse X has in no sample.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5, 40))
    >>> R, back = reduce_rows(X)
    >>> R.shape, np.allclose(R.T @ R, X @ X.T), np.allclose(back(R), X.T)
    ((5, 5), True, True)
    """
    n, d = X.shape
    if d <= n and not sp.issparse(X):
        return X.T, lambda D: D
    if sp.issparse(X):
        X = X[:, np.unique(X.indices)]  # millions of columns may hold nothing
    G = gram(X.astype(np.float64) if sp.issparse(X) else astype(X, "float64"))
    w, U = eigh(G)  # in float64: squares of float32 numbers need it
    xp = array_namespace(w)
    noise = n * xp.finfo(w.dtype).eps * float(w[-1])  # below this w is rounding
    first = n - int(xp.count_nonzero(w > noise))
    w, U = w[first:], U[:, first:]
    R = astype(xp.sqrt(w)[:, None] * U.T, X.dtype)
    w = astype(w, X.dtype)
    return R, lambda D: X.T @ (R.T @ (D / w[:, None]))


def orthogonal_rows(X: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
    """`reduce_rows`, turned so that the rows of R are orthogonal: R R^T is diagonal.

    With S the diagonal, ``(R^T R + p I)^-1 R^T = R^T (S + p I)^-1`` for every p: what an augmented
    Lagrangian with several representations solves in every turn becomes a division.

    Returns
    -------
    R : (r, n) array
        The reduced view, samples in columns.
    s2 : (r, 1) array
        Squared lengths of its rows, the diagonal S.
    back : callable
        As that of `reduce_rows`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> R, s2, back = orthogonal_rows(X)
    >>> np.allclose(R @ R.T, np.diag(s2[:, 0])), np.allclose(back(R), X.T)
    (True, True)
    """
    R, back = reduce_rows(X)
    w, P = eigh(astype(R @ R.T, "float64"))
    xp = array_namespace(w)
    P = astype(P, R.dtype)
    return P.T @ R, astype(xp.clip(w, min=0.0), R.dtype)[:, None], lambda A: back(P @ A)


def stack_views(
    Xs: Sequence[Array],
) -> tuple[Array, Array, list[slice], Callable[..., float]]:
    """`orthogonal_rows` of all views, one below the other.

    Returns
    -------
    R : (r, n) array
        The reduced views, samples in columns.
    s2 : (r, 1) array
        Squared lengths of its rows.
    rows : list of slice
        Which rows of R belong to which view.
    worst : callable
        ``worst(D, tol)`` is the `largest_entry` of an (r, n) residual D, over all views;
        ``worst(D, tol, largest_sum)`` its `largest_sum`.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> R, s2, rows, worst = stack_views([X, X[:, 1:]])
    >>> R.shape, rows, bool(worst(R, 1.0) >= np.abs(X).max())
    ((5, 5), [slice(0, 3, None), slice(3, 5, None)], True)
    """
    parts, squares, backs = zip(*(orthogonal_rows(X) for X in Xs), strict=True)
    xp = array_namespace(*parts)
    ends = np.cumsum([part.shape[0] for part in parts])
    rows = [slice(int(b - part.shape[0]), int(b)) for b, part in zip(ends, parts, strict=True)]

    def worst(D: Array, tol: float, measure: Callable[..., float] = largest_entry) -> float:
        return max(
            measure(D[k, :], X.shape[1], tol, back)
            for k, X, back in zip(rows, Xs, backs, strict=True)
        )

    return xp.concat(parts), xp.concat(squares), rows, worst


def factor_z_step(
    G: Array, L: Array | None, orientation: str = "samples"
) -> tuple[Array, Array, Callable[..., Array]]:
    """Factor once what every Z step of an augmented Lagrangian solves, whatever mu and lam2 are.

    With M = lam2 (L + L^T) the Z step reads ``mu (G + I) Z + Z M = mu G - F`` (orientation
    ``"samples"``) or ``(mu (G + I) + M) Z = mu G - F`` (``"published"``). Two changes of variable
    make it cheap and exact:

    - Let ``U diag(d) U^T = G + I``. The solver works on ``U^T Z``: the nuclear norm does not
      notice the rotation, columns keep their lengths, and ``X Z = (X U) (U^T Z)``.
    - It asks for the complement ``C = I - Z``, so that ``X - X Z = X C`` has no cancellation. C
      solves the same equation with ``mu I + M + F`` on the right.

    Parameters
    ----------
    G : (n, n) array
        Sum of the Gram matrices of the views.
    L : (n, n) array or None
        Laplacian; None is zero, and both orientations are then equal.
    orientation : {"samples", "published"}
        On which side M stands.

    Returns
    -------
    I : (n, n) array
        ``U^T``, the identity in the coordinates of the solver.
    d : (n, 1) array
        Eigenvalues of G + I.
    solve : callable
        ``solve(mu, F, lam2=1.0)`` takes ``U^T F`` and returns ``U^T (I - Z)``.

    Notes
    -----
    The factors are computed in float64 and rounded to the dtype of G: in float32 the eigenvalues
    near zero of a heavily weighted Laplacian would be noise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, L, F = rng.normal(size=(3, 6, 6))
    >>> G, L = A @ A.T, L @ L.T
    >>> I, d, solve = factor_z_step(G, L, "samples")
    >>> Z = np.eye(6) - I.T @ solve(0.5, I @ F)
    >>> np.allclose(0.5 * (G + np.eye(6)) @ Z + Z @ (L + L.T), 0.5 * G - F)
    True
    """
    xp, dtype = array_namespace(G), G.dtype
    g, U = eigh(astype(G, "float64"))
    # Neither G nor M has negative eigenvalues but for rounding.
    d = 1 + xp.clip(g, min=0.0)[:, None]
    # In the order of rows in memory: entrywise work on I and a transposed matrix is slow.
    I, e = xp.asarray(astype(U.T, dtype), copy=True), astype(d, dtype)
    if L is None:
        return I, e, lambda mu, F, lam2=1.0: (mu * I + F) / (mu * e)
    M = astype(L, "float64")
    M = M + M.T
    if orientation == "samples":
        m, V = eigh(M)
        del M
        T = astype(U.T @ V, dtype)
        del U
        V, m = astype(V, dtype), astype(xp.clip(m, min=0.0)[None, :], dtype)

        def solve(mu: float, F: Array, lam2: float = 1.0) -> Array:
            C = F @ V
            C += T * (mu + lam2 * m)
            C /= mu * e + lam2 * m
            return C @ V.T

        return I, e, solve
    root = 1 / xp.sqrt(d)
    K = U.T @ M
    w, V = eigh(root * (K @ U) * root.T)
    V, K, w = (astype(x, dtype) for x in (root * V, K, xp.clip(w, min=0.0)[:, None]))

    def solve_published(mu: float, F: Array, lam2: float = 1.0) -> Array:
        C = V.T @ (mu * I + lam2 * K + F)
        C /= lam2 * w + mu
        return V @ C

    return I, e, solve_published


def largest_entry(A: Array, rows: int, tol: float, back: Callable[[Array], Array]) -> float:
    """Largest absolute entry of a residual in original coordinates, when it decides about ``tol``.

    ``A`` is the residual in coordinates that keep the lengths of columns, ``back`` maps it to the
    original ones, which have ``rows`` rows. With b the length of its longest column the largest
    entry lies between ``b / sqrt(rows)`` and b. When both are on one side of ``tol``, b is
    returned: the answer is the same and the map is spared. ``tol=0`` always returns b, for a loop
    that cannot stop in this turn anyway.

    Examples
    --------
    >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> largest_entry(np.array([[5.0], [0.0]]), 2, 1.0, lambda A: turn @ A)
    5.0
    >>> largest_entry(np.array([[5.0], [0.0]]), 2, 4.5, lambda A: turn @ A)
    4.0
    """
    bound = longest_column(A)
    if bound < tol or bound >= tol * rows**0.5:
        return bound
    xp = array_namespace(A)
    return max(float(xp.max(xp.abs(back(part)))) for part in _column_blocks(A, rows))


def largest_sum(A: Array, rows: int, tol: float, back: Callable[[Array], Array]) -> float:
    """`largest_row_sum` of a residual in original coordinates, when it decides about ``tol``.

    As `largest_entry`. With f the Frobenius norm of A, which has n columns, the largest sum lies
    between ``f / sqrt(rows)`` and ``sqrt(n) f``; when both are on one side of ``tol`` the latter
    is returned.

    Examples
    --------
    >>> turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> largest_sum(np.array([[5.0, 5.0], [0.0, 0.0]]), 2, 7.0, lambda A: turn @ A)
    8.0
    """
    norm = sum_squares(A) ** 0.5
    bound = norm * A.shape[1] ** 0.5
    if bound < tol or norm >= tol * rows**0.5:
        return bound
    xp = array_namespace(A)
    sums = [xp.sum(xp.abs(back(part)), axis=1) for part in _column_blocks(A, rows)]
    return float(xp.max(sum(sums)))


def _column_blocks(A: Array, rows: int) -> Iterator[Array]:
    """Columns of A, so many at a time that ``rows`` rows of them are about n x n numbers."""
    n = A.shape[1]
    step = max(1, max(n * n, 2**20) // rows)
    return (A[:, j : min(j + step, n)] for j in range(0, n, step))


class TopEigenvectors:
    """All eigenpairs of symmetric positive semi-definite matrices above a limit, call after call.

    Each call starts from the eigenvectors of the last one, a few more than were above the limit.
    Rounds of a Chebyshev filter (which damps what is below the block's smallest Ritz value) and
    Rayleigh-Ritz refine them. Two certificates decide:

    - with residuals ``C v - w v``, the root sum of squares of ``|residual| / sqrt(w)`` bounds the
      error of anything of the form ``A V f(w) V^T`` with ``C = A^T A`` and 1-Lipschitz
      ``s f(s^2)``; it must be below 1e-10 of the largest singular value;
    - a Cholesky factorisation of ``limit - (C without the pairs found)`` exists only if no
      eigenvalue above the limit was missed.

    When either cannot be had more cheaply, a full eigendecomposition answers.

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
    GROWTH = 1e10  # between top and limit in one filter: more would drown the small directions

    def __init__(self) -> None:
        self.how = "none"
        self._rank = 0
        self._V: Array | None = None

    def __call__(self, C: Array, limit: float) -> tuple[Array, Array]:
        """Return eigenvalues above ``limit``, ascending, and their eigenvectors; C is consumed."""
        n = C.shape[0]
        found = None
        if self._V is not None and self._V.shape[0] != n:
            self._rank, self._V = 0, None
        if n > self.SMALL:
            if self._rank == 0 and self._none_above(C, limit):
                self.how = "none"
                return C[0, :0], C[:, :0]
            if self._V is not None:
                found = self._refine(C, limit)
        self.how = "full" if found is None else "partial"
        w, V = eigh(C, overwrite=True) if found is None else found
        rank = int(array_namespace(w).count_nonzero(w > limit))
        # With spare vectors: many while the rank grows, few when it has settled.
        spare = max(40, rank) if rank > 1.05 * self._rank else max(20, rank // 5)
        self._rank, block = rank, min(rank + spare, n // 4)
        worth = n > self.SMALL and 0 < rank < 0.9 * block
        self._V = self._start(V, block) if worth else None
        return w[w.shape[0] - rank :], V[:, V.shape[1] - rank :]

    def _start(self, V: Array, block: int) -> Array:
        """Take the last ``block`` vectors; where there are fewer, fixed random ones join them."""
        n, b = V.shape
        xp = array_namespace(V)
        if b >= block:  # a copy: a view would keep all of an n x n matrix alive
            return xp.asarray(V[:, b - block :], copy=True)
        extra = np.random.RandomState(0).normal(size=(n, block - b))
        return xp.concat([xp.asarray(extra, dtype=V.dtype, device=device(V)), V], axis=1)

    def _none_above(self, C: Array, limit: float, w: Array = None, V: Array = None) -> bool:
        """Prove by Cholesky that C, less the pairs (w, V), has no eigenvalue above the limit."""
        xp = array_namespace(C)
        S = -C if V is None else (V * w[None, :]) @ V.T
        if V is not None:
            S -= C
        xp.reshape(S, (-1,), copy=False)[:: C.shape[0] + 1] += limit  # on the diagonal
        try:
            if is_numpy_array(S):  # in place; S is symmetric, so its transpose is as good
                scipy.linalg.cholesky(S.T, lower=True, overwrite_a=True, check_finite=False)
            elif is_cupy_array(S):  # says nothing of a failure unless it is asked to
                import cupyx

                with cupyx.errstate(linalg="raise"):
                    xp.linalg.cholesky(S)
            else:
                xp.linalg.cholesky(S)
        except (np.linalg.LinAlgError, RuntimeError):  # not positive definite; torch's is the last
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
                # What is above t by less than tol may be missed: it changes the result by less.
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
