"""Normalised spectral clustering (Ng, Jordan and Weiss) of an affinity matrix."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from array_api_compat import array_namespace, is_numpy_array
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from polyspan.linalg import Array, to_numpy

EXACT_BELOW = 3000  # samples up to which a dense eigensolver is used


def spectral_embedding(W: Array, n_clusters: int) -> np.ndarray:
    """Eigenvectors of the ``n_clusters`` smallest eigenvalues of the normalised Laplacian.

    Rows are scaled to unit length; rows of samples without any affinity stay zero.

    Examples
    --------
    >>> W = np.kron(np.eye(2), np.ones((3, 3)))
    >>> Y = spectral_embedding(W, 2)
    >>> np.allclose(Y @ Y.T, W)
    True
    """
    if sp.issparse(W) or is_numpy_array(W):
        degrees = np.asarray(W.sum(axis=1)).ravel()
        root = 1 / np.sqrt(np.where(degrees > 0, degrees, 1))
        if sp.issparse(W):
            N = sp.diags_array(root) @ W @ sp.diags_array(root)
        else:
            N = root[:, None] * W * root
        Y = _top_eigenvectors(N, n_clusters)
    else:  # on another device: its own dense solver
        xp = array_namespace(W)
        degrees = xp.sum(W, axis=1)
        root = 1 / xp.sqrt(xp.where(degrees > 0, degrees, xp.ones_like(degrees)))
        Y = to_numpy(xp.linalg.eigh(root[:, None] * W * root[None, :])[1][:, -n_clusters:])
        degrees = to_numpy(degrees)
    Y = np.where(degrees[:, None] > 0, Y, 0)
    lengths = np.linalg.norm(Y, axis=1, keepdims=True)
    return Y / np.where(lengths > 0, lengths, 1)


def _top_eigenvectors(N: Array, c: int) -> np.ndarray:
    """Eigenvectors of the c largest eigenvalues of a symmetric matrix."""
    n = N.shape[0]
    if n <= EXACT_BELOW or c >= n // 2:
        dense = N.toarray() if sp.issparse(N) else N
        return scipy.linalg.eigh(dense, subset_by_index=[n - c, n - 1])[1]
    start = np.random.RandomState(0).uniform(size=n)  # fixed: the result is a function of N
    return eigsh(N, c, which="LA", v0=start.astype(N.dtype))[1]


def spectral_clustering(
    W: Array,
    n_clusters: int,
    *,
    n_init: int = 20,
    random_state: int | np.random.RandomState | None = None,
) -> np.ndarray:
    """Cluster the rows of the spectral embedding of W by k-means.

    Examples
    --------
    >>> W = np.kron(np.eye(2), np.ones((3, 3)))
    >>> labels = spectral_clustering(W, 2, random_state=0)
    >>> len(set(labels[:3])), len(set(labels[3:])), len(set(labels))
    (1, 1, 2)
    """
    Y = spectral_embedding(W, n_clusters)
    with quiet_kmeans():
        return KMeans(n_clusters, n_init=n_init, random_state=random_state).fit_predict(Y)


@contextmanager
def quiet_kmeans() -> Iterator[None]:
    """Silence k-means where duplicated samples leave fewer distinct points than clusters.

    The labels stay in range then; some clusters are empty.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning, message="Number of distinct")
        yield
