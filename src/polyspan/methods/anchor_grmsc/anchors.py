"""Anchors: their choice, samples in their coordinates, and the clustering of the links."""

from collections.abc import Sequence
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin

from polyspan.chunked.workers import Cluster, Threads
from polyspan.clustering.spectral import quiet_kmeans, unit_rows
from polyspan.graphs.knn import entry_rows
from polyspan.graphs.ties import largest_entries
from polyspan.runtime.arrays import Array
from polyspan.runtime.threads import Span, bounds, take_samples
from polyspan.solvers.eigen import eigh, highest_eigenpairs

LINKS = 2**18  # between samples, whose coordinates are compared at a time
SAMPLE = 20_000  # anchors and centers are learned from at least this many samples


def choose_anchors(
    sample: Sequence[Array], m: int, how: str, random_state: np.random.RandomState
) -> list[np.ndarray]:
    """Choose m anchors, the same in every view, from a sample of all views (samples in rows).

    ``"kmeans"`` takes the centers of k-means on the views side by side, ``"sample"`` the samples
    that seed it (k-means++); with as many anchors as samples, these are the anchors. In each view,
    a center is scaled to the mean length of the samples, because a mean is shorter than they are.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> rng = np.random.RandomState(0)
    >>> [A.shape for A in choose_anchors([X, X[:, :2]], 5, "kmeans", rng)]
    [(5, 3), (5, 2)]
    """
    whole = sp.hstack(sample, format="csr") if any(map(sp.issparse, sample)) else np.hstack(sample)
    if m >= whole.shape[0]:
        return [_dense(X) for X in sample]
    if how == "sample":
        rows = kmeans_plusplus(whole, m, random_state=random_state)[1]
        return [_dense(X[rows]) for X in sample]
    with quiet_kmeans():
        centers = KMeans(m, n_init=1, random_state=random_state).fit(whole).cluster_centers_
    parts = np.split(centers, np.cumsum([X.shape[1] for X in sample])[:-1], axis=1)
    return [
        (unit_rows(A) * _mean_length(X)).astype(X.dtype) for A, X in zip(parts, sample, strict=True)
    ]


def _dense(X: Array) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X


def _mean_length(X: Array) -> float:
    squares = X.multiply(X) if sp.issparse(X) else X * X
    return float(np.mean(np.sqrt(squares.sum(axis=1))))


class Bipartite(NamedTuple):
    """How links to anchors become coordinates, for fitted and new samples."""

    n_kept: int | None  # links kept per sample; None keeps all
    degrees: np.ndarray  # of the anchors
    vectors: np.ndarray  # m x c


def links(Z: np.ndarray, n_kept: int | None) -> np.ndarray:
    """Link samples (rows of Z) to anchors by ``|Z|``, all entries or the largest in each row.

    Examples
    --------
    >>> links(np.array([[0.5, -2.0, 1.0]]), 2)
    array([[0., 2., 1.]])
    """
    B = np.abs(Z)
    return B if n_kept is None else largest_entries(B, n_kept)


def _anchor_degrees(Z: np.ndarray, n_kept: int | None) -> np.ndarray:
    return links(Z, n_kept).sum(axis=0, dtype=np.float64)


def _normalized(Z: np.ndarray, n_kept: int | None, degrees: np.ndarray) -> np.ndarray:
    B = links(Z, n_kept).astype(np.float64)
    own = B.sum(axis=1, keepdims=True)
    return B / np.sqrt(np.where(own > 0, own, 1) * np.where(degrees > 0, degrees, 1))


def _link_gram(Z: np.ndarray, n_kept: int | None, degrees: np.ndarray) -> np.ndarray:
    B = _normalized(Z, n_kept, degrees)
    return B.T @ B


def embed(Z: np.ndarray, graph: Bipartite) -> np.ndarray:
    """Coordinates of samples, rows of unit length."""
    return unit_rows(_normalized(Z, graph.n_kept, graph.degrees) @ graph.vectors)


def bipartite_graph(
    workers: Threads | Cluster, Zs: Sequence[Any], n_clusters: int, n_kept: int | None
) -> Bipartite:
    """Spectral coordinates of the graph between samples and anchors, from its m x m side.

    With B the links divided by the roots of the degrees on both sides, the left singular vectors
    of B are the normalized eigenvectors of the samples; they are B V / s.

    Examples
    --------
    >>> Z = np.kron(np.eye(2), np.ones((3, 2)))
    >>> with Threads(1) as workers:
    ...     graph = bipartite_graph(workers, [Z[:4], Z[4:]], 2, None)
    >>> Y = embed(Z, graph)
    >>> np.allclose(Y @ Y.T, np.kron(np.eye(2), np.ones((3, 3))))
    True
    """
    return link_spectrum(workers, Zs, n_clusters, n_kept)[1]


def link_spectrum(
    workers: Threads | Cluster, Zs: Sequence[Any], k: int, n_kept: int | None
) -> tuple[np.ndarray, Bipartite]:
    """The k largest eigenvalues of ``B^T B``, in ascending order, and the coordinates they give.

    They are the squared singular values of B, and the eigenvalues of ``B B^T``, the affinity of
    samples by the anchors they share. It is normalized: its largest eigenvalue is 1.

    Examples
    --------
    >>> Z = np.kron(np.eye(2), np.ones((3, 2)))
    >>> with Threads(1) as workers:
    ...     link_spectrum(workers, [Z], 3, None)[0].round(12) + 0.0
    array([0., 1., 1.])
    """
    degrees = sum(workers.collect(workers.map(_anchor_degrees, Zs, n_kept=n_kept)))
    gram = sum(workers.collect(workers.map(_link_gram, Zs, n_kept=n_kept, degrees=degrees)))
    m = len(gram)
    w, V = highest_eigenpairs(gram, k)
    sure = w > m * np.finfo(float).eps  # the largest is 1; the rest is rounding
    return w, Bipartite(n_kept, degrees, np.where(sure, V / np.sqrt(np.where(sure, w, 1)), 0))


def nearest_center(Y: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Cluster of every row: the nearest of the centers.

    Examples
    --------
    >>> nearest_center(np.array([[0.9], [0.2]]), np.array([[0.0], [1.0]]))
    array([1, 0], dtype=int32)
    """
    return pairwise_distances_argmin(Y, centers).astype(np.int32)


def smooth(
    workers: Threads | Cluster, Ys: Sequence[Any], spans: list[Span], graph: Any, steps: int
) -> list[Any]:
    """Coordinates of all samples, moved towards those of neighbors that are alike, in steps.

    With y_i the coordinates of sample i, of unit length, and s_ij the links of the graph::

        y_i <- y_i + sum_j s_ij max(0, y_i^T y_j) y_j / sum_j s_ij,  scaled to unit length

    A neighbor in another cluster, which a corrupted view may suggest, has no weight, and a sample
    that has only such neighbors, or none, stays.

    Examples
    --------
    >>> graph = sp.csr_array(np.array([[0.0, 2.0, 2.0], [2.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
    >>> Ys = [np.array([[0.6, 0.8], [0.0, 1.0]]), np.array([[-1.0, 0.0]])]
    >>> with Threads(1) as workers:
    ...     np.concatenate(smooth(workers, Ys, [(0, 2), (2, 3)], graph, 1)).round(2)
    array([[ 0.45,  0.89],
           [ 0.28,  0.96],
           [-1.  ,  0.  ]])
    """
    blocks = workers.map(getitem, [graph] * len(spans), [slice(*span) for span in spans])
    for _ in range(steps):
        whole = workers.submit(np.concatenate, list(Ys))
        Ys = workers.map(_smoothed, blocks, Ys, whole=whole)
    return list(Ys)


def _smoothed(block: sp.csr_array, Y: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """One step for some rows of the graph, whose coordinates are Y, among those of all samples."""
    i, j, P = entry_rows(block), block.indices, block.copy()
    parts = [slice(*span) for span in bounds(len(i), LINKS)]
    alike = [np.einsum("ij,ij->i", Y[i[part]], whole[j[part]]) for part in parts]
    P.data = block.data * np.clip(np.concatenate(alike), 0, None)
    degrees = np.asarray(block.sum(axis=1))[:, None]
    return unit_rows(Y + (P @ whole) / np.where(degrees > 0, degrees, 1))


class Clusters(NamedTuple):
    """Clusters of the links, and what new samples need to find theirs."""

    labels: np.ndarray
    graph: Bipartite
    centers: np.ndarray


def cluster_links(
    workers: Threads | Cluster,
    Zs: Sequence[Any],
    spans: list[Span],
    neighbors: Any,
    random_state: np.random.RandomState,
    *,
    n_clusters: int,
    n_kept: int | None,
    smoothing: int,
    n_init: int,
) -> Clusters:
    """Cluster samples by their links to anchors, smoothed over the graph ``neighbors`` if any.

    Examples
    --------
    >>> Z, rng = np.kron(np.eye(2), np.ones((3, 2))), np.random.RandomState(0)
    >>> own = {"n_clusters": 2, "n_kept": None, "smoothing": 0, "n_init": 1}
    >>> with Threads(1) as workers:
    ...     found = cluster_links(workers, [Z], [(0, 6)], None, rng, **own)
    >>> len(set(found.labels[:3])), len(set(found.labels))
    (1, 2)
    """
    graph = bipartite_graph(workers, Zs, n_clusters, n_kept)
    Ys = workers.map(embed, Zs, graph=graph)
    if neighbors is not None and smoothing:
        Ys = smooth(workers, Ys, spans, neighbors, smoothing)
    n, most = spans[-1][1], max(SAMPLE, 100 * n_clusters)
    chosen = np.sort(random_state.choice(n, min(n, most), replace=False))
    (Y,) = take_samples(workers, [[Y] for Y in Ys], spans, chosen)
    with quiet_kmeans():
        centers = KMeans(n_clusters, n_init=n_init, random_state=random_state).fit(Y)
    centers = centers.cluster_centers_
    labels = np.concatenate(workers.collect(workers.map(nearest_center, Ys, centers=centers)))
    used, codes = np.unique(labels, return_inverse=True)  # centers may be the same
    return Clusters(codes.astype(labels.dtype), graph, centers[used])


class Frame(NamedTuple):
    """Anchors of all views in the coordinates in which the solver works."""

    bases: list[np.ndarray]  # orthonormal basis of the range of every A_k, d_k x r_k
    spans: list[slice]  # columns of every view; the last is the length outside the range
    A: np.ndarray  # m x sum (r_k + 1), rotated by U
    d: np.ndarray  # g + 1
    U: np.ndarray


def make_frame(As: list[np.ndarray]) -> Frame:
    """Coordinates in which the anchors of all views (m x d_k each) are small and G is diagonal.

    Examples
    --------
    >>> frame = make_frame([np.eye(3, 40), np.ones((3, 2))])
    >>> frame.A.shape, frame.spans, frame.d
    ((3, 6), [slice(0, 4, None), slice(4, 6, None)], array([2., 2., 8.]))
    """
    bases, parts, spans, start = [], [], [], 0
    for A in As:
        P, s, W = np.linalg.svd(A.T.astype(np.float64), full_matrices=False)
        r = int(np.sum(s > max(A.shape) * np.finfo(A.dtype).eps * s[0])) if s[0] > 0 else 0
        bases.append(P[:, :r].astype(A.dtype))
        parts.append(np.hstack([W[:r].T * s[:r], np.zeros((len(A), 1))]))
        spans.append(slice(start, start + r + 1))
        start += r + 1
    A = np.hstack(parts)
    g, U = eigh(A @ A.T)
    d = 1 + np.clip(g, 0, None)
    return Frame(bases, spans, (U.T @ A).astype(As[0].dtype), d, U)


def project(chunk: Any, frame: Frame) -> np.ndarray:
    """Coordinates of samples in the range of the anchors, and their length outside it.

    Examples
    --------
    >>> frame = make_frame([np.array([[1.0, 0.0, 0.0]])])
    >>> np.abs(project([np.array([[2.0, 3.0, 4.0]])], frame))
    array([[2., 5.]])
    """
    parts = []
    for X, P in zip(chunk, frame.bases, strict=True):
        C = np.asarray(X @ P)
        if sp.issparse(X):  # may be too wide to convert to dense
            squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() - np.sum(C * C, axis=1)
            rest = np.sqrt(np.clip(squares, 0, None))
        else:
            rest = np.linalg.norm(X - C @ P.T, axis=1)
        parts += [C, rest[:, None].astype(C.dtype)]
    return np.hstack(parts)


def rotated(Z: np.ndarray, U: np.ndarray) -> np.ndarray:
    """Convert Z, samples in rows, from the coordinates of the solver to the anchors."""
    return Z @ U.T.astype(Z.dtype)
