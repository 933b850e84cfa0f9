"""New samples for a fitted clustering: their representation and their labels.

The mathematics is described in `polyspan.base.RepresentationClusterer.predict`. NumPy only.
"""

from collections.abc import Sequence

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from polyspan.clustering.spectral import spectral_eigenvectors, unit_rows
from polyspan.graphs.ties import largest_entries
from polyspan.inputs.rows import missing_rows
from polyspan.runtime.arrays import Array, gram, inverse_root
from polyspan.solvers.eigen import eigh

RIDGE = 0.1  # weight of the low-rank term, in units of the fitted samples' mean squared length


def new_representation(
    Xs: Sequence[Array], new: Sequence[Array], Z: np.ndarray, weights: Sequence[float] | None = None
) -> np.ndarray:
    """Representation of new samples in terms of the fitted ones, one column each.

    ``z = argmin sum_k w_k |x_k - X_k z|^2 + g z^T (Z Z^T)^-1/2 z``, the sum over the views that
    the sample has. With ``Z Z^T = U diag(s^2) U^T`` and ``P = U diag(sqrt s)`` the answer is
    ``z = P b``, ``(P^T K P + g I) b = P^T sum_k w_k X_k^T x_k``, K the sum of the weighted Gram
    matrices. Samples that have the same views share one factorization.

    Parameters
    ----------
    Xs : list of (n, d_k) arrays
        The fitted samples in every view, scaled; zeros where a sample lacks the view.
    new : list of (m, d_k) arrays
        The new samples, scaled; rows of NaN where a sample lacks the view.
    Z : (n, n) array
        The fitted representation.
    weights : list of float, optional
        Weights of the views; default: all 1.

    Returns
    -------
    (n, m) array

    Examples
    --------
    >>> X = np.eye(4)[[0, 0, 1, 1]]
    >>> Z = np.kron(np.eye(2), np.full((2, 2), 0.5))
    >>> new_representation([X], [np.array([[0.0, 3.0, 0.0, 0.0]])], Z).ravel().round(2)
    array([0.  , 0.  , 1.43, 1.43])
    """
    n, m = Xs[0].shape[0], new[0].shape[0]
    weights = [1.0] * len(Xs) if weights is None else weights
    lacking = [missing_rows(view) for view in new]
    lacks = np.column_stack([np.zeros(m, bool) if gone is None else gone for gone in lacking])
    Z = Z.astype(np.float64, copy=False)
    w, U = eigh(Z @ Z.T)
    kept = w > n * np.finfo(w.dtype).eps * w[-1]  # the others are rounding errors
    if not kept.any():  # nothing was represented: Z = 0
        return np.zeros((n, m))
    P = U[:, kept] * w[kept] ** 0.25
    B = np.zeros((P.shape[1], m))
    for pattern in np.unique(lacks, axis=0):
        rows = np.flatnonzero((lacks == pattern).all(axis=1))
        K, C = np.zeros((n, n)), np.zeros((n, rows.size))
        for X, x, weight, gone in zip(Xs, new, weights, pattern, strict=True):
            if not gone:
                K += weight * gram(X)
                product = X @ x[rows].T
                C += weight * (product.toarray() if sp.issparse(product) else product)
        A = P.T @ K @ P
        A[np.diag_indices(len(A))] += RIDGE * (np.trace(K) / n or 1.0)
        B[:, rows] = scipy.linalg.solve(A, P.T @ C, assume_a="pos")
    return P @ B


def extend_labels(
    W: Array, labels: np.ndarray, n_clusters: int, Z: np.ndarray, *, n_kept: int | None = None
) -> np.ndarray:
    """Labels of new samples: the nearest cluster in the fitted samples' spectral embedding.

    Parameters
    ----------
    W : (n, n) array or sparse matrix
        Affinity of the fitted samples.
    labels : (n,) array
        Their clusters.
    n_clusters : int
        Number of clusters; some may be empty.
    Z : (n, m) array
        Representation of the new samples; its absolute values are their affinities to the fitted
        ones.
    n_kept : int, optional
        Keep only this many of the largest affinities per column; default: all.

    Examples
    --------
    >>> W, labels = np.kron(np.eye(2), np.ones((3, 3))), np.array([1, 1, 1, 0, 0, 0])
    >>> extend_labels(W, labels, 2, np.array([[0.0, 0, 0.1, -2.0, 0, 0], [1.0, 0, 0, 0, 0, 0.2]]).T)
    array([0, 1])
    """
    A = np.abs(Z)
    if n_kept is not None:
        A = largest_entries(A.T, n_kept).T
    present = np.unique(labels)  # duplicated samples may leave clusters empty
    w, Y, degrees = spectral_eigenvectors(W, n_clusters)
    new = unit_rows((A * inverse_root(degrees)[:, None]).T @ (Y / np.where(w != 0, w, 1)))
    fitted = unit_rows(Y)
    centers = np.array([fitted[labels == label].mean(axis=0) for label in present])
    distances = (centers**2).sum(axis=1) - 2 * new @ centers.T  # without |new|^2, equal for all
    return present[np.argmin(distances, axis=1)].astype(labels.dtype)
