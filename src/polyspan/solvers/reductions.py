"""Exact reductions and factorizations shared by the solvers: results change only by rounding."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from polyspan.runtime.arrays import Array, astype, gram, longest_column, sum_squares
from polyspan.solvers.eigen import eigh


def reduce_rows(X: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Replace the d x n matrix of a view by R with at most n rows and R^T R = X^T X.

    A solver whose errors and multipliers stay in the range of X, and which uses them only
    through inner products and column lengths, produces the same iterates with R.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        One view, samples in rows as given by the user.

    Returns
    -------
    R : (r, n) array
        The reduced view, samples in columns as in the papers; r <= min(d, n).
    back : callable
        Maps an (r, n) matrix in reduced coordinates, or some of its columns, to the original
        coordinates: d rows, without those of features that are zero in every sample of a sparse X.

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
        X = X[:, np.unique(X.indices)]  # millions of columns may be empty
    G = gram(X.astype(np.float64) if sp.issparse(X) else astype(X, "float64"))
    w, U = eigh(G)  # in float64, which squares of float32 numbers need
    xp = array_namespace(w)
    noise = n * xp.finfo(w.dtype).eps * float(w[-1])  # below this, w is rounding error
    first = n - int(xp.count_nonzero(w > noise))
    w, U = w[first:], U[:, first:]
    R = astype(xp.sqrt(w)[:, None] * U.T, X.dtype)
    w = astype(w, X.dtype)
    return R, lambda D: X.T @ (R.T @ (D / w[:, None]))


def orthogonal_rows(X: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
    """`reduce_rows`, rotated so that the rows of R are orthogonal: R R^T is diagonal.

    With S = R R^T, ``(R^T R + p I)^-1 R^T = R^T (S + p I)^-1`` for every p: the system that an
    augmented Lagrangian with several representations solves in every iteration becomes a division.

    Returns
    -------
    R : (r, n) array
        The reduced view, samples in columns.
    s2 : (r, 1) array
        Squared lengths of its rows, the diagonal S.
    back : callable
        As in `reduce_rows`.

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


def stack_views(Xs: Sequence[Array]) -> tuple[Array, Array, list[slice], Callable[..., float]]:
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
        ``worst(D, tol, largest_sum)`` is its `largest_sum`.

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


def view_step(
    R: Array, s2: Array, B: Array, E: Array, Y: Array, mu: float, p: float = 1.0
) -> tuple[Array, Array]:
    """Representation of a view with orthogonal rows that is pulled towards B by p penalties.

    ``Z = (p I + X^T X)^-1 (X^T (X - E + Y/mu) + p B)``, the step of methods with one
    representation per view.

    Parameters
    ----------
    R, s2
        The view and the squared lengths of its rows, from `orthogonal_rows`.
    B : (n, n) array
        What Z is pulled towards.
    E, Y : (r, n) arrays
        Errors and multipliers of the view.
    mu : float
        The penalty.
    p : float, default=1.0
        How many terms pull it, or the ratio of their penalty to mu.

    Returns
    -------
    Z : (n, n) array
    D : (r, n) array
        ``X - X Z``.

    Examples
    --------
    >>> R, s2, _ = orthogonal_rows(np.random.default_rng(0).normal(size=(5, 3)))
    >>> B, zero = np.eye(5) / 2, np.zeros_like(R)
    >>> Z, D = view_step(R, s2, B, zero, zero, 1.0, 3)
    >>> np.allclose((3 * np.eye(5) + R.T @ R) @ Z, R.T @ R + 3 * B), np.allclose(D, R - R @ Z)
    (True, True)
    """
    D = R - R @ B
    H = (D - E + Y / mu) / (p + s2)
    return B + R.T @ H, D - s2 * H


def factor_z_step(
    G: Array, L: Array | None, orientation: str = "samples"
) -> tuple[Array, Array, Callable[..., Array]]:
    """Factor once the system of every Z step of an augmented Lagrangian, for any mu and lam2.

    With M = lam2 (L + L^T) the Z step reads ``mu (G + I) Z + Z M = mu G - F`` (orientation
    ``"samples"``) or ``(mu (G + I) + M) Z = mu G - F`` (``"published"``). Two changes of variable
    make it cheap and exact:

    - Let ``U diag(d) U^T = G + I``. The solver works on ``U^T Z``: the rotation does not change the
      nuclear norm or the lengths of columns, and ``X Z = (X U) (U^T Z)``.
    - It solves for the complement ``C = I - Z``, so that ``X - X Z = X C`` has no cancellation. C
      satisfies the same equation with ``mu I + M + F`` on the right.

    Parameters
    ----------
    G : (n, n) array
        Sum of the Gram matrices of the views.
    L : (n, n) array or None
        Laplacian; None means zero, and both orientations are then equal.
    orientation : {"samples", "published"}
        On which side M stands.

    Returns
    -------
    I : (n, n) array
        ``U^T``, the identity in the solver's coordinates.
    d : (n, 1) array
        Eigenvalues of G + I.
    solve : callable
        ``solve(mu, F, lam2=1.0)`` takes ``U^T F`` and returns ``U^T (I - Z)``.

    Notes
    -----
    The factors are computed in float64 and rounded to the dtype of G: in float32, the eigenvalues
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
    # G and M have no negative eigenvalues, except through rounding.
    d = 1 + xp.clip(g, min=0.0)[:, None]
    # Copied to be row-major: entrywise work on differently ordered matrices is slow.
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
    """Largest absolute entry of a residual in original coordinates, for comparison with ``tol``.

    ``A`` is the residual in coordinates that preserve column lengths; ``back`` maps it to the
    original ones, which have ``rows`` rows. With b the length of its longest column, the largest
    entry is between ``b / sqrt(rows)`` and b. If both are on the same side of ``tol``, b is
    returned: the decision is the same, and the map is not needed. ``tol=0`` always returns b, for a
    loop that cannot stop in this iteration anyway.

    Examples
    --------
    >>> rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> largest_entry(np.array([[5.0], [0.0]]), 2, 1.0, lambda A: rotation @ A)
    5.0
    >>> largest_entry(np.array([[5.0], [0.0]]), 2, 4.5, lambda A: rotation @ A)
    4.0
    """
    bound = longest_column(A)
    if bound < tol or bound >= tol * rows**0.5:
        return bound
    xp = array_namespace(A)
    return max(float(xp.max(xp.abs(back(part)))) for part in _column_blocks(A, rows))


def largest_sum(A: Array, rows: int, tol: float, back: Callable[[Array], Array]) -> float:
    """`largest_row_sum` of a residual in original coordinates, for comparison with ``tol``.

    Works like `largest_entry`. With f the Frobenius norm of A, which has n columns, the largest sum
    is between ``f / sqrt(rows)`` and ``sqrt(n) f``; if both are on the same side of ``tol``, the
    latter is returned.

    Examples
    --------
    >>> rotation = np.array([[0.6, -0.8], [0.8, 0.6]])
    >>> largest_sum(np.array([[5.0, 5.0], [0.0, 0.0]]), 2, 7.0, lambda A: rotation @ A)
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
    """Columns of A in blocks: with ``rows`` rows, each block has about n x n numbers."""
    n = A.shape[1]
    step = max(1, max(n * n, 2**20) // rows)
    return (A[:, j : min(j + step, n)] for j in range(0, n, step))
