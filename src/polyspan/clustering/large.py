"""Spectral clustering of large sparse graphs, by rows in memory or on the workers of a cluster.

It differs from `polyspan.clustering.spectral` in two ways. The eigenvectors are accurate to 1.5e-3
only, by a filtered block iteration. And the embedding may have more columns than there are
clusters: as the number of samples grows, the smoothest functions *inside* a large cluster come as
close to 1 as those that tell clusters apart, and c eigenvectors may no longer hold the latter
(`benchmarks/eigenvectors.py`). So k-means is run on c, 1.5 c and 2 c columns, and the clustering
with most links inside its clusters is taken.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.utils import check_random_state

from polyspan.clustering.coarse import coarse_vectors, scaled_rows
from polyspan.clustering.spectral import quiet_kmeans, unit_rows
from polyspan.graphs.neighbors import cell_centers
from polyspan.runtime.arrays import inverse_root
from polyspan.runtime.messages import warn_user
from polyspan.runtime.threads import Threads, bounds
from polyspan.solvers.filtered import leading_eigenvectors, random_rows

LARGE = 20_000  # samples above which a sparse graph is clustered here
ROWS = 16_384  # of the graph, in a block
SAMPLE = 20_000  # rows of the embedding on which k-means restarts
CELLS = 100  # of samples that lie together in memory
STEPS = 10  # of k-means on all rows, at most
TOL = 1.5e-3  # residual of the eigenvectors


def cluster_graph(
    W: sp.csr_array,
    n_clusters: int,
    *,
    n_init: int = 20,
    random_state: int | np.random.RandomState | None = None,
) -> np.ndarray:
    """Cluster the samples of a large symmetric graph in memory.

    Pieces without links to the rest that hold less than a tenth of a cluster of average size take
    no part: each would be an eigenvector of its own. Their samples go to one of the clusters.

    Examples
    --------
    >>> W = sp.csr_array(np.kron(np.eye(2), np.ones((5, 5))))
    >>> labels = cluster_graph(W, 2, random_state=0)
    >>> len(set(labels[:5])), len(set(labels[5:])), len(set(labels))
    (1, 1, 2)
    """
    n, size = W.shape[0], min(2 * n_clusters, W.shape[0])
    root, labels = _roots(W, n_clusters), np.empty(W.shape[0], dtype=np.int32)
    with Threads() as workers:
        spans = bounds(n, ROWS)
        Y = first_vectors(workers, W, root, size, n_clusters)
        order = graph_order(workers, Y)
        rank = np.argsort(order).astype(W.indices.dtype)
        blocks = workers.map(_normalized, spans, W=W, root=root, order=order, rank=rank)
        labels[order] = cluster_blocks(
            workers, blocks, spans, n_clusters, n_init=n_init, random_state=random_state,
            order=order, start=[Y[order[first:last]] for first, last in spans],
        )  # fmt: skip
    return labels


def _roots(W: sp.csr_array, n_clusters: int) -> np.ndarray:
    """Inverse roots of the degrees, 0 in pieces of less than a tenth of an average cluster."""
    root = inverse_root(np.asarray(W.sum(axis=1), dtype=np.float64).ravel())
    # What is strongly connected in a symmetric graph is connected; it takes a quarter of the time.
    _, piece = connected_components(W, connection="strong")
    root[np.bincount(piece)[piece] < W.shape[0] / (10 * n_clusters)] = 0
    return root


def first_vectors(
    workers: Any, W: sp.csr_array, root: np.ndarray, size: int, n_clusters: int
) -> np.ndarray:
    """Vectors that are close to the eigenvectors, by `polyspan.clustering.coarse`.

    Examples
    --------
    >>> W = sp.csr_array(np.kron(np.eye(2), np.ones((50, 50))))
    >>> with Threads(1) as workers:
    ...     Y = first_vectors(workers, W, np.full(100, 50**-0.5), 2, 2)
    >>> bool(np.linalg.norm(W @ Y / 50 - Y) < 0.02)
    True
    """
    n, spans = W.shape[0], bounds(W.shape[0], ROWS)
    blocks = workers.map(_scaled, spans, W=W, root=root)
    found = coarse_vectors(workers, blocks, spans, root, size, n_clusters)
    return random_rows((0, n), size, np.float32) if found is None else np.concatenate(found)


def _scaled(span: tuple[int, int], W: sp.csr_array, root: np.ndarray) -> sp.csr_array:
    rows = W[span[0] : span[1]].astype(np.float32)
    return scaled_rows(rows, root[span[0] : span[1]], root)


def graph_order(workers: Any, Y: np.ndarray) -> np.ndarray:
    """Order of samples in which those that are linked are mostly close together.

    Linked samples have similar rows in Y, so that they are mostly in one of a hundred cells; the
    memory that a product with the rows of a cell reads then fits into the cache.

    Examples
    --------
    >>> Y = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.1], [0.1, 1.0]])
    >>> with Threads(1) as workers:
    ...     order = graph_order(workers, Y)
    >>> order.tolist() in ([0, 2, 1, 3], [1, 3, 0, 2])
    True
    """
    n = len(Y)
    some = np.random.RandomState(0).choice(n, min(n, SAMPLE), replace=False)
    with quiet_kmeans():
        centers = cell_centers(unit_rows(Y[np.sort(some)]), min(CELLS, n // 2), 0)
    parts = workers.map(_cells, [Y[a:b] for a, b in bounds(n, ROWS)], centers=centers)
    return np.argsort(np.concatenate(parts), kind="stable")


def _cells(Y: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return _nearest(unit_rows(Y), centers)


def _normalized(
    span: tuple[int, int], W: sp.csr_array, root: np.ndarray, order: np.ndarray, rank: np.ndarray
) -> sp.csr_array:
    """Some rows of the normalized graph in another order."""
    rows = order[span[0] : span[1]]
    block = scaled_rows(W[rows].astype(np.float32), root[rows], root)
    block.indices = rank[block.indices]
    block.has_sorted_indices = False
    return block


def cluster_blocks(
    workers: Any,
    blocks: Sequence[Any],
    spans: Sequence[tuple[int, int]],
    n_clusters: int,
    *,
    n_init: int = 20,
    random_state: int | np.random.RandomState | None = None,
    order: np.ndarray | None = None,
    root: Any = None,
    start: list[Any] | None = None,
) -> np.ndarray:
    """Labels from rows of ``D^-1/2 W D^-1/2`` that lie with the workers; only labels come back.

    Parameters
    ----------
    workers : Threads or Cluster
        Where the work runs.
    blocks, spans : list
        Rows of the normalized graph, and their first and last numbers.
    n_clusters, n_init, random_state
        As in `polyspan.clustering.spectral.spectral_clustering`.
    order : (n,) array, optional
        Numbers of the samples in the rows, if they are not in order.
    root : (n,) array, optional
        Inverse roots of the degrees, from which a start is found.
    start : list of (rows, 2 c) arrays, optional
        Vectors from which the eigenvectors are found, by rows; random ones if neither is given.

    Examples
    --------
    >>> N = sp.csr_array(np.kron(np.eye(2), np.full((5, 5), 0.2)))
    >>> with Threads(1) as workers:
    ...     labels = cluster_blocks(workers, [N], [(0, 10)], 2, random_state=0)
    >>> len(set(labels[:5])), len(set(labels[5:])), len(set(labels))
    (1, 1, 2)
    """
    n = spans[-1][1]
    size = min(2 * n_clusters, n)
    if root is not None:
        start = coarse_vectors(workers, blocks, spans, root, size, n_clusters, workers.share(order))
    _, Ys, residual = leading_eigenvectors(workers, blocks, spans, size, n_clusters, TOL, start)
    if residual > TOL:
        warn_user(
            f"The eigenvectors of the graph are only accurate to {residual:.1e} instead of "
            f"{TOL:g}: there may not be {n_clusters} clusters, or the graph needs "
            "more neighbors."
        )
    rng = check_random_state(random_state)
    drawn = np.sort(rng.choice(n, min(n, max(SAMPLE, 100 * n_clusters)), replace=False))
    places = drawn if order is None else np.argsort(order)[drawn]
    where = np.argsort(places)
    sought = places[where]
    inside = [sought[(sought >= a) & (sought < b)] - a for a, b in spans]
    found = []
    for columns in sorted({n_clusters, min(size, n_clusters * 3 // 2), size}):
        Us = workers.map(_first_columns, Ys, columns=columns)
        some = np.concatenate(workers.collect(workers.map(_rows, Us, inside)))[np.argsort(where)]
        with quiet_kmeans():
            model = KMeans(n_clusters, n_init=n_init, random_state=rng).fit(some)
        labels = lloyd(workers, Us, model.cluster_centers_)
        found.append((_inside(workers, blocks, spans, labels, n_clusters), labels))
    return max(found, key=lambda pair: pair[0])[1]


def _first_columns(Y: np.ndarray, columns: int) -> np.ndarray:
    return unit_rows(Y[:, :columns])


def _inside(
    workers: Any,
    blocks: Sequence[Any],
    spans: Sequence[tuple[int, int]],
    labels: np.ndarray,
    n_clusters: int,
) -> float:
    """Links inside clusters: the sum over clusters of ``1^T N 1 / n``, at most their number."""
    parts = [labels[start:stop] for start, stop in spans]
    fixed = {"labels": workers.share(labels), "n_clusters": n_clusters}
    sums = sum(workers.collect(workers.map(_links_inside, blocks, parts, **fixed)))
    counts = np.bincount(labels, minlength=n_clusters)
    return float(np.sum(sums / np.maximum(counts, 1)))


def _links_inside(
    block: sp.csr_array, own: np.ndarray, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    rows = np.repeat(own, np.diff(block.indptr))
    same = rows == labels[block.indices]
    return np.bincount(rows[same], weights=block.data[same], minlength=n_clusters)


def lloyd(workers: Any, Ys: Sequence[Any], centers: np.ndarray) -> np.ndarray:
    """Labels after a few steps of k-means over all rows, from good centers.

    Examples
    --------
    >>> Ys = [np.array([[0.0], [1.0]]), np.array([[5.0]])]
    >>> with Threads(1) as workers:
    ...     lloyd(workers, Ys, np.array([[0.0], [4.0]]))
    array([0, 0, 1], dtype=int32)
    """
    last = np.inf
    for _ in range(STEPS):
        parts = workers.collect(workers.map(_sums, Ys, centers=centers))
        counts, sums, costs = (sum(several) for several in zip(*parts, strict=True))
        if costs > (1 - 1e-4) * last:
            break
        last = costs
        centers = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
    return np.concatenate(workers.collect(workers.map(_nearest, Ys, centers=centers)))


def _rows(Y: np.ndarray, inside: np.ndarray) -> np.ndarray:
    return Y[inside]


def _sums(Y: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Sizes and sums of the rows nearest to each center, and their squared distances."""
    labels, far = pairwise_distances_argmin_min(Y, centers.astype(Y.dtype))
    member = sp.csr_array(
        (np.ones(len(Y)), labels, np.arange(len(Y) + 1)), shape=(len(Y), len(centers))
    )
    return member.sum(axis=0), member.T @ Y.astype(np.float64), float(np.sum(far**2))


def _nearest(Y: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return pairwise_distances_argmin_min(Y, centers.astype(Y.dtype))[0].astype(np.int32)
