"""Exact reductions and factorisations that the solvers share.

Everything runs on any array library that follows the array API, on the device of its input.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_cupy_array, is_numpy_array, is_torch_array

Array = Any


def to_numpy(x: Array) -> np.ndarray:
    """Bring an array of any library and device to NumPy."""
    if is_torch_array(x):
        return x.detach().cpu().numpy()
    if is_cupy_array(x):
        return x.get()
    return x if is_numpy_array(x) else np.from_dlpack(x)


def gram(X: Array) -> Array:
    """Inner products of the rows of X, dense; X may be scipy.sparse."""
    return (X @ X.T).toarray() if sp.issparse(X) else X @ X.T


def diagonal(A: Array) -> Array:
    """Main diagonal of a square matrix."""
    return array_namespace(A).linalg.diagonal(A)


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
    if is_torch_array(values):
        return [float(values.kthvalue(rank + 1).values) for rank in ranks]
    ordered = array_namespace(values).sort(values)
    return [float(ordered[rank]) for rank in ranks]


def kth_smallest(D: Array, k: int) -> Array:
    """k-th smallest entry (k = 1 is the smallest) of every row, as a column."""
    if is_numpy_array(D):
        return np.partition(D, k - 1, axis=1)[:, k - 1 : k]
    if is_torch_array(D):
        return D.kthvalue(k, dim=1, keepdim=True).values
    return array_namespace(D).sort(D, axis=1)[:, k - 1 : k]


def column_lengths(A: Array) -> Array:
    """Euclidean length of every column."""
    xp = array_namespace(A)
    return xp.sqrt(xp.sum(A * A, axis=0))


def longest_column(A: Array) -> float:
    """Length of the longest column."""
    return float(array_namespace(A).max(column_lengths(A)))


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
        Maps an (r, n) matrix of the reduced coordinates to the (d, n) original ones.

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
    G = gram(X)
    xp = array_namespace(G)
    w, U = xp.linalg.eigh(G)
    keep = w > n * xp.finfo(w.dtype).eps * xp.max(w)  # below this w is rounding noise
    w, U = w[keep], U[:, keep]
    R = xp.sqrt(w)[:, None] * U.T
    return R, lambda D: X.T @ (R.T @ (D / w[:, None]))


def factor_z_step(
    G: Array, L: Array | None, orientation: str = "samples"
) -> tuple[Array, Array, Callable[[float, Array], Array]]:
    """Factor once what every Z step of an augmented Lagrangian solves, whatever mu is.

    With M = L + L^T the Z step reads ``mu (G + I) Z + Z M = B`` (orientation ``"samples"``) or
    ``(mu (G + I) + M) Z = B`` (``"published"``). Let ``U diag(d) U^T = G + I``. The solver works
    on ``U^T Z``: the nuclear norm does not notice the rotation, columns keep their lengths, and
    ``X Z = (X U) (U^T Z)``.

    Parameters
    ----------
    G : (n, n) array
        Sum of the Gram matrices of the views.
    L : (n, n) array or None
        Weighted Laplacian; None is zero, and both orientations are then equal.
    orientation : {"samples", "published"}
        On which side M stands.

    Returns
    -------
    U : (n, n) array
        The rotation.
    d : (n, 1) array
        Eigenvalues of G + I.
    solve : callable
        ``solve(mu, B)`` takes ``U^T B`` and returns ``U^T Z``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, L, B = rng.normal(size=(3, 6, 6))
    >>> G, L = A @ A.T, L @ L.T
    >>> U, d, solve = factor_z_step(G, L, "samples")
    >>> Z = U @ solve(0.5, U.T @ B)
    >>> np.allclose(0.5 * (G + np.eye(6)) @ Z + Z @ (L + L.T), B)
    True
    """
    xp = array_namespace(G)
    g, U = xp.linalg.eigh(G)
    d = 1 + xp.clip(g, min=0.0)[:, None]  # G has no negative eigenvalues but for rounding
    if L is None:
        return U, d, lambda mu, B: B / (mu * d)
    M = L + L.T
    if orientation == "samples":
        m, V = xp.linalg.eigh(M)
        m = xp.clip(m, min=0.0)[None, :]
        return U, d, lambda mu, B: ((B @ V) / (mu * d + m)) @ V.T
    root = 1 / xp.sqrt(d)
    w, V = xp.linalg.eigh(root * (U.T @ M @ U) * root.T)
    w, T = xp.clip(w, min=0.0)[:, None], root * V
    return U, d, lambda mu, B: T @ ((T.T @ B) / (w + mu))


def largest_entry(A: Array, rows: int, tol: float, back: Callable[[Array], Array]) -> float:
    """Largest absolute entry of a residual in original coordinates, when it decides about ``tol``.

    ``A`` is the residual in coordinates that keep the lengths of columns, ``back`` maps it to the
    original ones, which have ``rows`` rows. With b the length of its longest column the largest
    entry lies between ``b / sqrt(rows)`` and b. When both are on one side of ``tol``, b is
    returned: the answer is the same and the map is spared.

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
    A = back(A)
    xp = array_namespace(A)
    return float(xp.max(xp.abs(A)))
