"""Normalized spectral clustering (Ng, Jordan and Weiss) of an affinity matrix."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_numpy_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from polyspan.runtime.arrays import Array, inverse_root, to_numpy
from polyspan.runtime.messages import own_warnings, warn_user
from polyspan.solvers.eigen import eigh, highest_eigenpairs

RandomState = int | np.random.RandomState | None
EXACT_BELOW = 3000  # samples up to which a dense eigensolver is used
SPARSE_BELOW = 1000  # likewise of sparse graphs, if few eigenvectors are wanted: a share of
FEW_VECTORS = 1 / 20  # the samples
FEW = 2_000  # rows; beyond, scikit-learn's k-means takes as long with one restart after the other


def spectral_embedding(W: Array, n_clusters: int) -> np.ndarray:
    """Eigenvectors of the ``n_clusters`` smallest eigenvalues of the normalized Laplacian.

    Rows are scaled to unit length; rows of samples without any affinity stay zero. If the rank of
    the affinity is too low, the columns that would only be rounding error are zero too.

    Examples
    --------
    >>> W = np.kron(np.eye(2), np.ones((3, 3)))
    >>> Y = spectral_embedding(W, 2)
    >>> np.allclose(Y @ Y.T, W)
    True
    """
    return unit_rows(spectral_eigenvectors(W, n_clusters)[1])


def spectral_eigenvectors(W: Array, n_clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Largest eigenvalues and eigenvectors of ``D^-1/2 W D^-1/2``, and the degrees D.

    Where they would only be rounding error, both are zero; so are the rows of samples without any
    affinity.

    Examples
    --------
    >>> w, Y, degrees = spectral_eigenvectors(np.kron(np.eye(2), np.ones((3, 3))), 2)
    >>> w.round(12), degrees
    (array([1., 1.]), array([3., 3., 3., 3., 3., 3.]))
    """
    w, Y, degrees = graph_eigenvectors(W, n_clusters)
    sure = np.abs(w) > len(degrees) * np.finfo(w.dtype).eps  # the largest is 1
    return np.where(sure, w, 0), np.where(sure & (degrees[:, None] > 0), Y, 0), degrees


def graph_eigenvectors(W: Array, n_clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same with rounding errors, as the solver gives them, in ascending order.

    Examples
    --------
    >>> w, Y, degrees = graph_eigenvectors(sp.csr_array(np.kron(np.eye(2), np.ones((3, 3)))), 2)
    >>> w.round(12), Y.shape
    (array([1., 1.]), (6, 2))
    """
    if sp.issparse(W):
        degrees = np.asarray(W.sum(axis=1)).ravel()
        pieces = _piece_eigenvectors(W, degrees, n_clusters)
        if pieces is not None:
            return np.ones(n_clusters), pieces, degrees
        D = sp.diags_array(inverse_root(degrees))
        N = D @ W @ D
    else:
        degrees = array_namespace(W).sum(W, axis=1)
        root = inverse_root(degrees)
        N = root[:, None] * W * root[None, :]
    n, on_device = W.shape[0], not (sp.issparse(W) or is_numpy_array(W))
    if _iterates(W, n_clusters) and not on_device:
        start = np.random.RandomState(0).uniform(size=n)  # fixed: the result is a function of N
        with suppress(ArpackNoConvergence):  # many equal eigenvalues: many pieces without links
            return *eigsh(N, n_clusters, which="LA", v0=start.astype(N.dtype)), degrees
    w, Y = highest_eigenpairs(N.toarray() if sp.issparse(N) else N, n_clusters)
    return to_numpy(w), to_numpy(Y), to_numpy(degrees)


def _iterates(W: Array, c: int) -> bool:
    """Whether c eigenvectors are found by Lanczos iterations."""
    n = W.shape[0]
    sparse = sp.issparse(W) and n > SPARSE_BELOW and c <= FEW_VECTORS * n
    return sparse or (n > EXACT_BELOW and c < n // 4)


def _piece_eigenvectors(W: Any, degrees: np.ndarray, c: int) -> np.ndarray | None:
    """Eigenvectors of a large graph in c or more pieces without links, or None.

    All pieces have the eigenvalue 1, and of equal eigenvalues ARPACK returns arbitrary vectors,
    other ones each time; these are exact, of the c pieces with most samples.
    """
    if not _iterates(W, c):
        return None
    _, piece = connected_components(W, directed=False)
    sizes = np.bincount(piece, weights=degrees > 0)
    chosen = np.argsort(-sizes, kind="stable")[:c]
    if len(chosen) < c or sizes[chosen[-1]] == 0:
        return None
    inside = piece[:, None] == chosen
    return inside * np.sqrt(degrees[:, None] / (degrees @ inside))


def spectral_clustering(
    W: Array, n_clusters: int, *, n_init: int = 20, random_state: RandomState = None
) -> np.ndarray:
    """Cluster the rows of the spectral embedding of W by k-means.

    Examples
    --------
    >>> W = np.kron(np.eye(2), np.ones((3, 3)))
    >>> labels = spectral_clustering(W, 2, random_state=0)
    >>> len(set(labels[:3])), len(set(labels[3:])), len(set(labels))
    (1, 1, 2)
    """
    Y = settled(spectral_embedding(W, n_clusters))
    model = kmeans(Y, n_clusters, n_init=n_init, random_state=random_state, sample=len(Y))
    return model.labels_


def unit_rows(Y: Array) -> Array:
    """Scale rows to unit length; zero rows stay zero.

    Examples
    --------
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    xp = array_namespace(Y)
    lengths = xp.linalg.vector_norm(Y, axis=1, keepdims=True)
    return Y / xp.where(lengths > 0, lengths, xp.ones_like(lengths))


def settled(Y: np.ndarray) -> np.ndarray:
    """Make rows of unit length equal that differ only by rounding: k-means would part them.

    Examples
    --------
    >>> Y = np.array([[0.1 + 0.2, 1.0], [0.3, 1.0]])
    >>> len(np.unique(Y, axis=0)), len(np.unique(settled(Y), axis=0))
    (2, 1)
    """
    return np.round(Y, 12 if Y.dtype.itemsize == 8 else 5)


def cluster_rows(
    Y: Array, n_clusters: int, *, n_init: int = 20, random_state: RandomState = None
) -> np.ndarray:
    """Cluster the rows of an embedding, scaled to unit length, by k-means.

    With more than 20,000 rows, the restarts use a sample of that size, as in `kmeans`.

    Examples
    --------
    >>> labels = cluster_rows(np.array([[1.0, 0.0], [9.0, 0.0], [0.0, 2.0]]), 2, random_state=0)
    >>> bool(labels[0] == labels[1] != labels[2])
    True
    """
    Y = settled(unit_rows(to_numpy(Y)))
    return kmeans(Y, n_clusters, n_init=n_init, random_state=random_state).labels_


def left_singular(Z: np.ndarray, c: int) -> np.ndarray:
    """Left singular vectors of the c largest singular values of a tall matrix, from Z^T Z.

    If the rank of Z is too low, the columns that would only be rounding error are zero. The sums
    run over blocks of rows in float64, so that float32 loses no further precision.

    Examples
    --------
    >>> Z = np.array([[3.0, 0.0], [0.0, 2.0], [4.0, 0.0]])
    >>> np.abs(left_singular(Z, 2)).round(12)
    array([[0.6, 0. ],
           [0. , 1. ],
           [0.8, 0. ]])
    """
    n, p = Z.shape
    blocks = [slice(i, i + 2**14) for i in range(0, n, 2**14)]
    G = np.zeros((p, p))
    for rows in blocks:
        part = Z[rows].astype(np.float64, copy=False)
        G += part.T @ part
    w, V = eigh(G)
    w, V = w[: -c - 1 : -1], V[:, : -c - 1 : -1]
    sure = w > p * np.finfo(Z.dtype).eps * w[0]
    V = np.where(sure, V / np.sqrt(np.where(sure, w, 1)), 0)
    U = np.zeros((n, c), dtype=Z.dtype)
    for rows in blocks:
        U[rows, : V.shape[1]] = Z[rows] @ V
    return U


def kmeans(
    Y: Any,
    n_clusters: int,
    *,
    n_init: int = 20,
    random_state: RandomState = None,
    sample: int = 20_000,
) -> KMeans:
    """Fit k-means to the rows of Y, without multiplying the cost by the number of restarts.

    With more than ``max(sample, 10 n_clusters)`` rows, the restarts use only that many, drawn at
    random; the best of them starts one run on all rows.

    Examples
    --------
    >>> Y = np.repeat(np.eye(2), 500, axis=0)
    >>> model = kmeans(Y, 2, random_state=0, sample=100)
    >>> bool(model.labels_[0] == model.labels_[499] != model.labels_[500])
    True
    """
    n, few = Y.shape[0], max(sample, 10 * n_clusters)
    rng = check_random_state(random_state)
    with quiet_kmeans():
        if n <= few:
            return restarted(Y, n_clusters, n_init, rng).fit(Y)
        some = Y[np.sort(rng.choice(n, few, replace=False))]
        start = KMeans(n_clusters, n_init=n_init, random_state=rng).fit(some).cluster_centers_
        return KMeans(n_clusters, init=start, n_init=1, random_state=rng).fit(Y)


def restarted(Y: Any, n_clusters: int, n_init: int, random_state: RandomState) -> KMeans:
    """K-means for the rows of Y, not yet fitted, that has its starts from `greedy_starts`.

    With few rows, scikit-learn spends most of its time on calling its functions for the starts.
    The labels are those of its own starts.

    Examples
    --------
    >>> Y = np.repeat(np.eye(3), 4, axis=0)
    >>> restarted(Y, 3, 5, 0).fit(Y).inertia_
    0.0
    """
    if sp.issparse(Y) or len(Y) > FEW:
        return KMeans(n_clusters, n_init=n_init, random_state=random_state)
    starts: list[np.ndarray] = []

    def start(X: np.ndarray, n_clusters: int, random_state: np.random.RandomState) -> np.ndarray:
        if not starts:
            starts.extend(greedy_starts(X, n_clusters, n_init, random_state))
        return starts.pop(0)

    return KMeans(n_clusters, init=start, n_init=n_init, random_state=random_state)


def greedy_starts(X: np.ndarray, c: int, n_starts: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw starts for k-means: an array of ``n_starts`` times c rows of X.

    Greedy k-means++: every further center is the best of 2 + log(c) rows drawn with probability
    proportional to the squared distance to the nearest center so far. Random numbers are drawn in
    scikit-learn's order, so that the same seed gives the same starts.

    D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [5.0]])
    >>> np.sort(greedy_starts(X, 2, 4, np.random.RandomState(0))[..., 0]).tolist()
    [[0.0, 5.0], [0.0, 5.0], [0.0, 5.0], [0.0, 5.0]]
    """
    n, trials = len(X), 2 + int(np.log(c))
    drawn = rng.uniform(size=(n_starts, 1 + (c - 1) * trials))
    later = drawn[:, 1:].reshape(n_starts, c - 1, trials)
    squares = np.einsum("ij,ij->i", X, X)

    def distances(rows: np.ndarray) -> np.ndarray:
        """Squared, of rows of X to all rows."""
        D = X[rows.ravel()] @ X.T
        D *= -2
        D += squares[rows.ravel(), None]
        D += squares
        return np.maximum(D, 0, out=D).reshape(*rows.shape, n)

    shares = np.full(n, 1 / n).cumsum()
    chosen = np.empty((n_starts, c), dtype=np.intp)
    chosen[:, 0] = np.searchsorted(shares / shares[-1], drawn[:, 0], side="right")
    D = distances(chosen[:, 0])  # to the nearest center of every start
    for k in range(1, c):
        aims = later[:, k - 1] * D.sum(axis=1, keepdims=True)
        sums = np.cumsum(D, axis=1)
        rows = np.array([np.searchsorted(*pair) for pair in zip(sums, aims, strict=True)])
        rows = np.minimum(rows, n - 1)
        nearer = np.minimum(distances(rows), D[:, None])
        best = np.argmin(nearer.sum(axis=2), axis=1)
        D = nearer[np.arange(n_starts), best]
        chosen[:, k] = rows[np.arange(n_starts), best]
    return X[chosen]


def component_clustering(
    W: np.ndarray, n_clusters: int, *, n_init: int = 20, random_state: RandomState = None
) -> np.ndarray:
    """Label the connected components of a graph that was built to have ``n_clusters`` of them.

    If it has a different number, warn and use spectral clustering of the graph instead.

    Examples
    --------
    >>> component_clustering(np.kron(np.eye(2), np.ones((3, 3))), 2)
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """
    pieces, labels = connected_components(sp.csr_array(W + W.T), directed=False)
    if pieces == n_clusters:
        return labels
    warn_user(
        f"The learned graph has {pieces} connected components instead of n_clusters={n_clusters}: "
        "the labels come from spectral clustering of it.",
        ConvergenceWarning,
    )
    return spectral_clustering(W + W.T, n_clusters, n_init=n_init, random_state=random_state)


@contextmanager
def quiet_kmeans() -> Iterator[None]:
    """Silence k-means if duplicated samples leave fewer distinct points than clusters.

    The labels stay in range; some clusters are then empty.
    """
    with own_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning, message="Number of distinct")
        yield
