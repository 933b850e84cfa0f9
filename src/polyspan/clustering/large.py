"""Spectral clustering of large sparse graphs, by rows in memory or on the workers of a cluster.

It differs from `polyspan.clustering.spectral` in two ways. The eigenvectors are accurate to 1.5e-3
only, by a filtered block iteration. And the embedding may have more columns than there are
clusters: as the number of samples grows, the smoothest functions *inside* a large cluster come as
close to 1 as those that tell clusters apart, and c eigenvectors may no longer hold the latter
(`benchmarks/eigenvectors.py`). So k-means is run on c, 1.5 c and 2 c columns, and the clustering
with most links inside its clusters is taken.

A good start for the eigenvectors are those of a smaller graph, of groups. Every eighth sample leads
a group, and the others join the group to which their links are strongest. The links between groups
are again a graph,

    W_c = P^T W P,  P_ig = 1 if sample i is in group g,

and its smoothest functions, repeated for all samples of a group, are close to those of W. Its own
eigenvectors are found in the same way, from groups of groups, down to a graph that is small enough
for a dense solver. So much of the work is done on small graphs, and fewer rounds of the filter
(`polyspan.solvers.filtered`) are left for the large one.
"""

from collections.abc import Sequence
from operator import getitem
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import KMeans
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.utils import check_random_state

from polyspan.clustering.spectral import RandomState, quiet_kmeans, unit_rows
from polyspan.graphs.knn import entry_rows
from polyspan.graphs.neighbors import cell_centers
from polyspan.runtime.arrays import inverse_root
from polyspan.runtime.messages import warn_user
from polyspan.runtime.threads import Span, Threads, bounds, take_samples, unzip
from polyspan.solvers.eigen import highest_eigenpairs
from polyspan.solvers.filtered import leading_eigenvectors, random_rows

LARGE = 20_000  # samples above which a sparse graph is clustered here
ROWS = 16_384  # of the graph, in a block
SAMPLE = 20_000  # rows of the embedding on which k-means restarts
CELLS = 100  # of samples that lie together in memory
STEPS = 10  # of k-means on all rows, at most
TOL = 1.5e-3  # residual of the eigenvectors
SHARE = 8  # samples in a group, on average
DENSE = 2_000  # samples for which the dense solver is fastest
JOINS = 3  # rounds in which samples join the groups of those they are linked to
COARSE_ROUNDS = 8  # of the filter on a graph of groups, at most
COARSE_TOL = 2e-3  # residual there; more accurate ones hardly make a better start


def cluster_graph(
    W: sp.csr_array, n_clusters: int, *, n_init: int = 20, random_state: RandomState = None
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
    root = inverse_root(np.asarray(W.sum(axis=1), dtype=np.float64).ravel())
    # What is strongly connected in a symmetric graph is connected; it takes a quarter of the time.
    _, piece = connected_components(W, connection="strong")
    root[np.bincount(piece)[piece] < n / (10 * n_clusters)] = 0
    labels = np.empty(n, dtype=np.int32)
    with Threads() as workers:
        spans = bounds(n, ROWS)
        Y = first_vectors(workers, W, root, size, n_clusters)
        order = graph_order(workers, Y)
        rank = np.argsort(order).astype(W.indices.dtype)
        numbers = [order[first:last] for first, last in spans]
        blocks = workers.map(_normalized, numbers, W=W, root=root, rank=rank)
        labels[order] = cluster_blocks(
            workers, blocks, spans, n_clusters, n_init=n_init, random_state=random_state,
            order=order, start=[Y[rows] for rows in numbers],
        )  # fmt: skip
    return labels


def first_vectors(
    workers: Any, W: sp.csr_array, root: np.ndarray, size: int, n_clusters: int
) -> np.ndarray:
    """Vectors that are close to the eigenvectors: `coarse_vectors`, or random ones.

    Examples
    --------
    >>> W = sp.csr_array(np.kron(np.eye(2), np.ones((50, 50))))
    >>> with Threads(1) as workers:
    ...     Y = first_vectors(workers, W, np.full(100, 50**-0.5), 2, 2)
    >>> bool(np.linalg.norm(W @ Y / 50 - Y) < 0.02)
    True
    """
    n, spans = W.shape[0], bounds(W.shape[0], ROWS)
    blocks = workers.map(_normalized, [slice(*span) for span in spans], W=W, root=root)
    vectors = coarse_vectors(workers, blocks, spans, root, size, n_clusters)
    return random_rows((0, n), size, np.float32) if vectors is None else np.concatenate(vectors)


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
    rows: Any, W: sp.csr_array, root: np.ndarray, rank: np.ndarray | None = None
) -> sp.csr_array:
    """Some rows of the normalized graph, with new numbers of the samples if they have a rank."""
    block = scaled_rows(W[rows].astype(np.float32), rows, root)
    if rank is not None:
        block.indices = rank[block.indices]
        block.has_sorted_indices = False
    return block


def cluster_blocks(
    workers: Any,
    blocks: Sequence[Any],
    spans: Sequence[Span],
    n_clusters: int,
    *,
    n_init: int = 20,
    random_state: RandomState = None,
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
    candidates = []
    for columns in sorted({n_clusters, min(size, n_clusters * 3 // 2), size}):
        Us = workers.map(_first_columns, Ys, columns=columns)
        (some,) = take_samples(workers, [[U] for U in Us], spans, places)
        with quiet_kmeans():
            model = KMeans(n_clusters, n_init=n_init, random_state=rng).fit(some)
        labels = lloyd(workers, Us, model.cluster_centers_)
        candidates.append((_inside(workers, blocks, spans, labels, n_clusters), labels))
    return max(candidates, key=lambda pair: pair[0])[1]


def _first_columns(Y: np.ndarray, columns: int) -> np.ndarray:
    return unit_rows(Y[:, :columns])


def _inside(workers: Any, blocks: Any, spans: Any, labels: np.ndarray, n_clusters: int) -> float:
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


def _sums(Y: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Sizes and sums of the rows nearest to each center, and their squared distances."""
    labels, far = pairwise_distances_argmin_min(Y, centers.astype(Y.dtype))
    member = sp.csr_array(
        (np.ones(len(Y)), labels, np.arange(len(Y) + 1)), shape=(len(Y), len(centers))
    )
    return member.sum(axis=0), member.T @ Y.astype(np.float64), float(np.sum(far**2))


def _nearest(Y: np.ndarray, centers: np.ndarray) -> np.ndarray:
    return pairwise_distances_argmin_min(Y, centers.astype(Y.dtype))[0].astype(np.int32)


def coarse_vectors(
    workers: Any, blocks: Any, spans: Any, root: Any, size: int, wanted: int, order: Any = None
) -> list[Any] | None:
    """Vectors close to the leading eigenvectors of N, by rows; None if the graph is too small.

    Parameters
    ----------
    workers : Threads or Cluster
        Where the work runs, and where the vectors stay.
    blocks, spans : list
        Rows of ``N = D^-1/2 W D^-1/2`` and their first and last numbers.
    root : (n,) array
        Diagonal of ``D^-1/2``; 0 for samples that are left out.
    size, wanted : int
        As in `polyspan.solvers.filtered.leading_eigenvectors`.
    order : (n,) array, optional
        Numbers of the samples in the rows, if they are not in order: the same samples lead then.

    Examples
    --------
    >>> from polyspan.runtime.threads import Threads
    >>> N = sp.csr_array(np.kron(np.eye(2), np.full((5, 5), 0.2)))
    >>> with Threads(1) as workers:
    ...     (Y,) = coarse_vectors(workers, [N], [(0, 10)], np.full(10, 5**-0.5), 2, 2)
    >>> np.allclose(N @ Y, Y)
    True
    """
    n = spans[-1][1]
    if n <= DENSE:
        whole = workers.submit(_dense, list(blocks), size)
        return workers.map(getitem, [whole] * len(spans), [slice(*span) for span in spans])
    m = n // SHARE
    if m < 2 * size:
        return None
    (groups,), (numbers,) = unzip(workers, [workers.submit(_leaders, n, m, order)], 2)
    for i in range(JOINS):
        joined = workers.map(_join, blocks, spans, groups=groups, m=m, last=i == JOINS - 1)
        groups = workers.submit(np.concatenate, joined)
    cuts = bounds(m, -(-m // max(1, len(blocks) // SHARE)))
    sent = workers.map(_links, blocks, spans, groups=groups, root=root, m=m, cuts=cuts)
    links = workers.map(_total, unzip(workers, sent, len(cuts)), cuts, m=m)
    del sent
    Ns, inner = normalized_rows(workers, links, cuts)
    start = coarse_vectors(workers, Ns, cuts, inner, size, wanted, numbers)
    settings = size, wanted, COARSE_TOL, start, COARSE_ROUNDS
    _, vectors, _ = leading_eigenvectors(workers, Ns, cuts, *settings)
    whole = workers.submit(np.concatenate, vectors)
    return workers.map(_spread, spans, groups=groups, root=root, inner=inner, whole=whole)


def normalized_rows(
    workers: Any, blocks: list[Any], spans: Sequence[Span]
) -> tuple[list[Any], Any]:
    """Rows of ``D^-1/2 W D^-1/2`` from those of W, and the diagonal of ``D^-1/2``: D are degrees.

    The list of the rows of W is emptied.

    Examples
    --------
    >>> from polyspan.runtime.threads import Threads
    >>> W = sp.csr_array([[0.0, 3.0, 1.0], [3.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> with Threads(1) as workers:
    ...     rows, root = normalized_rows(workers, [W[:2], W[2:]], [(0, 2), (2, 3)])
    >>> sp.vstack(rows).toarray().round(4), root.round(4)
    (array([[0.   , 0.866, 0.5  ],
           [0.866, 0.   , 0.   ],
           [0.5  , 0.   , 0.   ]]), array([0.5   , 0.5774, 1.    ]))
    """
    root = workers.submit(_inverse_roots, workers.map(_degrees, blocks))
    rows = workers.map(scaled_rows, blocks, [slice(*span) for span in spans], root=root)
    blocks.clear()  # their memory is needed
    return rows, root


def scaled_rows(block: sp.csr_array, rows: Any, root: np.ndarray) -> sp.csr_array:
    """Some rows of W times the inverse roots of the degrees of these rows and of all columns.

    Examples
    --------
    >>> scaled_rows(sp.csr_array([[0.0, 8.0]]), slice(0, 1), np.array([0.5, 0.25])).toarray()
    array([[0., 1.]])
    """
    data = block.data * np.repeat(root[rows], np.diff(block.indptr)) * root[block.indices]
    return sp.csr_array((data.astype(block.dtype), block.indices, block.indptr), shape=block.shape)


def _degrees(rows: sp.csr_array) -> np.ndarray:
    return np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel()


def _inverse_roots(parts: Sequence[np.ndarray]) -> np.ndarray:
    return inverse_root(np.concatenate(parts))


def _dense(blocks: Sequence[sp.csr_array], size: int) -> np.ndarray:
    """Leading eigenvectors of a small graph, the largest first."""
    N = sp.vstack(blocks).toarray().astype(np.float64)
    return highest_eigenpairs((N + N.T) / 2, size)[1][:, ::-1].astype(blocks[0].dtype)


def _leaders(n: int, m: int, order: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Groups of n samples, of which only the m that lead have one yet; the others have -1.

    Groups are numbered by the rows of their leaders, so that near groups have near numbers; the
    second array has the numbers that they would have with the samples in order.
    """
    rows, numbers = np.sort(np.random.RandomState(0).choice(n, m, replace=False)), None
    if order is not None:
        rows = np.argsort(order)[rows]
        numbers = np.argsort(rows)
        rows = rows[numbers]
    groups = np.full(n, -1, dtype=np.int32 if n < 2**31 else np.int64)
    groups[rows] = np.arange(m)
    return groups, numbers


def _join(block: sp.csr_array, span: Span, groups: np.ndarray, m: int, last: bool) -> np.ndarray:
    """Groups of the samples of a block: those without join the one they are most linked to.

    Any group is as good as another for those that are ``last`` without.
    """
    joined = groups[slice(*span)].copy()
    free = np.flatnonzero(joined < 0)
    rows = block[free]
    theirs = groups[rows.indices]
    known = theirs >= 0
    where = entry_rows(rows)[known], theirs[known]
    sums = sp.csr_array((rows.data[known], where), shape=(len(free), m))
    i = entry_rows(sums)
    order = np.lexsort((-sums.data, i))
    some, first = np.unique(i[order], return_index=True)
    joined[free[some]] = sums.indices[order[first]]
    if last:
        left = np.flatnonzero(joined < 0)
        joined[left] = (left + span[0]) % m
    return joined


def _links(
    block: sp.csr_array, span: Span, groups: np.ndarray, root: np.ndarray, m: int, cuts: list[Span]
) -> list[sp.csr_array]:
    """Links between groups that come from a block of samples, by rows: parts of ``P^T W P``."""
    side = np.divide(1, root, out=np.zeros(len(root), dtype=np.float32), where=root > 0)
    W = scaled_rows(block, slice(*span), side)
    i = np.repeat(groups[slice(*span)], np.diff(W.indptr))
    links = sp.csr_array((W.data, (i, groups[W.indices])), shape=(m, m))
    return [links[start:stop] for start, stop in cuts]


def _total(parts: Sequence[sp.csr_array], span: Span, m: int) -> sp.csr_array:
    """Sum of some rows over the blocks they come from."""
    lists = ((part.data, entry_rows(part), part.indices) for part in parts)
    data, i, j = (np.concatenate(several) for several in zip(*lists, strict=True))
    return sp.csr_array((data, (i, j)), shape=(span[1] - span[0], m))


def _spread(
    span: Span, groups: np.ndarray, root: np.ndarray, inner: np.ndarray, whole: np.ndarray
) -> np.ndarray:
    """Vectors of some samples from those of the groups: ``D^1/2 P D_c^-1/2 U``."""
    roots, groups = root[slice(*span)], groups[slice(*span)]
    side = np.divide(1, roots, out=np.zeros(len(roots)), where=roots > 0)
    return (side * inner[groups]).astype(whole.dtype)[:, None] * whole[groups]
