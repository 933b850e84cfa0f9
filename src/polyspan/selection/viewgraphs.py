"""What the neighbor graphs of the views say about the number of clusters, in seconds.

Every view has a neighbor graph, the mean over a few scalings, and the mean of these graphs fuses
the views. The mean graph and the graph of each view are clustered into every number that is tried.
Nothing is random but the choice of samples where there are very many: the clusters start from a
pivoted QR decomposition of the eigenvectors (A. Damle, V. Minden, L. Ying, "Simple, direct and
efficient multi-way spectral clustering", Information and Inference, 2019), and the order of the
samples does not matter.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from polyspan.clustering.spectral import quiet_kmeans, unit_rows
from polyspan.graphs.knn import entry_rows, mean_of_graphs
from polyspan.inputs.choice import scalings_for
from polyspan.inputs.scaling import Scale, Scaling, numpy_views, scaling_per_view
from polyspan.inputs.views import Views, check_views
from polyspan.methods.meangraph import neighbor_graph
from polyspan.runtime.arrays import inverse_root, to_numpy
from polyspan.selection.shortlist import numbers_to_try
from polyspan.solvers.eigen import eigh, highest_eigenpairs

NEIGHBORS = 10
N_SCALINGS = 2  # the first of those that suit the views
MOST = 150  # clusters, if no limit is given
SEEN = 4_000  # samples used where there are more
DENSE_BELOW = 1_000  # samples up to which a dense eigensolver is used


class ViewGraphs(NamedTuple):
    """Neighbor graphs of the samples that are looked at."""

    mean: sp.csr_array
    views: list[sp.csr_array]  # one for each view; for a single view, one for each scaling
    scales: list[list[Scaling]]  # one scaling for each view


class Embedded(NamedTuple):
    """Graphs with the eigenvectors that they are clustered by."""

    graphs: ViewGraphs
    eigenvalues: np.ndarray  # of the mean graph, largest first
    vectors: np.ndarray  # its eigenvectors
    rows: list[np.ndarray]  # for every graph of a view, the samples that have the view
    own: list[np.ndarray]  # its eigenvectors, for these samples


def labels_for(
    views: Any,
    numbers: Sequence[int],
    scales: Sequence[Scale] | None = None,
    seed: int | None = None,
) -> dict[int, np.ndarray]:
    """Cluster the mean graph of the views into several numbers of clusters.

    The eigenvectors are computed once.

    Parameters
    ----------
    views : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
        The views; samples may lack some.
    numbers : list of int
        Numbers of clusters, 1 or more and below n.
    scales : list, default=None
        The scalings whose graphs are averaged, each for all views or one per view. None is the
        first two that suit the values.
    seed : int, default=None
        Seeds restarts of k-means; None has no restarts and is not random.

    Returns
    -------
    dict of int to (n,) array
        Labels by number of clusters. Clusters are numbered by size, the largest is 0.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=90, n_clusters=3, noise=0.1, random_state=1)
    >>> {c: np.bincount(labels).tolist() for c, labels in labels_for(data.views, [1, 3]).items()}
    {1: [90], 3: [30, 30, 30]}
    """
    checked = views if isinstance(views, Views) else check_views(views, missing=True)
    graphs = view_graphs(checked, scales)
    V = top_eigenvectors(graphs.mean, max(numbers))[1]
    return {c: cluster_vectors(V[:, :c], seed) for c in numbers}


def view_graphs(views: Views, scales: Sequence[Scale] | None = None) -> ViewGraphs:
    """Neighbor graphs of the views, each the mean over the scalings that fit into memory.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [2.0, 0.1]])
    >>> found = view_graphs(check_views([X, X]), ["unit"])
    >>> len(found.views), found.scales, found.mean.shape
    (2, [['unit', 'unit']], (4, 4))
    """
    if scales is None:
        scales = scalings_for(views)[:N_SCALINGS]
    k = min(NEIGHBORS, views.n_samples - 1)
    found: list[list[sp.csr_array]] = []
    means, used, failed = [], [], None
    for scale in scales:
        try:
            Xs = numpy_views(views, scale)
            graphs = [neighbor_graph(X, k) for X in Xs]
        except (MemoryError, ValueError) as error:  # too wide to be dense, or too large unscaled
            failed = error
            continue
        found.append([sp.csr_array((A + A.T) / 2) for A in graphs])
        means.append(mean_of_graphs(graphs, Xs))
        used.append(scaling_per_view(scale, len(Xs)))
    if not found:
        raise failed or ValueError("scales is empty: give at least one scaling.")
    several = [sp.csr_array(sum(same) / len(found)) for same in zip(*found, strict=True)]
    parts = several if len(several) > 1 else [graphs[0] for graphs in found]
    return ViewGraphs(sp.csr_array(sum(means) / len(means)), parts, used)


def sample_of(views: Views, most: int, seed: int) -> Views:
    """At most this many of the samples, drawn at random.

    Examples
    --------
    >>> sample_of(check_views(np.eye(5)), 3, 0).n_samples
    3
    """
    n = views.n_samples
    if n <= most:
        return views
    rows = np.sort(np.random.RandomState(seed).choice(n, most, replace=False))
    few = [X[rows] if sp.issparse(X) else to_numpy(X)[rows] for X in views.arrays]
    return Views(few, views.names)


def embed_graphs(graphs: ViewGraphs, limit: int) -> Embedded:
    """Compute the eigenvectors for up to this many clusters."""
    rows = [np.flatnonzero(np.asarray(S.sum(axis=1)).ravel() > 0) for S in graphs.views]
    w, V = top_eigenvectors(graphs.mean, min(limit + 1, graphs.mean.shape[0]))
    own = [
        top_eigenvectors(S[there][:, there], min(limit, len(there)))[1]
        for S, there in zip(graphs.views, rows, strict=True)
    ]
    return Embedded(graphs, w, V, rows, own)


def measure(found: Embedded, c: int) -> tuple[float, float]:
    """Modularity and agreement of c clusters of the mean graph, means over the views.

    Modularity is that of the clusters on the graph of a view. Agreement is the adjusted Rand index
    with the clusters of that graph alone; it is 0 by chance for any number of clusters.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=90, n_clusters=3, noise=0.1, random_state=1)
    >>> found = embed_graphs(view_graphs(check_views(data.views)), 6)
    >>> max(range(2, 7), key=lambda c: np.prod(measure(found, c)))
    3
    """
    labels = cluster_vectors(found.vectors[:, :c])
    inside = [modularity(S, labels) for S in found.graphs.views]
    agree = [
        adjusted_rand_score(labels[there], cluster_vectors(U[:, :c]))
        for there, U in zip(found.rows, found.own, strict=True)
    ]
    return float(np.mean(inside)), float(np.mean(agree))


def measure_numbers(
    found: Embedded, deadline: float | None = None
) -> dict[int, tuple[float, float]]:
    """Modularity and agreement of every number to try, small ones first, while there is time."""
    measured = {}
    for c in numbers_to_try(len(found.eigenvalues) - 1):
        measured[c] = measure(found, c)
        if deadline is not None and time.perf_counter() >= deadline:
            break
    return measured


def top_eigenvectors(W: sp.csr_array, c: int) -> tuple[np.ndarray, np.ndarray]:
    """The c largest eigenvalues of the normalized graph and their eigenvectors, largest first.

    Examples
    --------
    >>> W = sp.csr_array(np.kron(np.eye(2), np.ones((3, 3))))
    >>> top_eigenvectors(W, 3)[0].round(12) + 0.0
    array([1., 1., 0.])
    """
    n = W.shape[0]
    root = sp.diags_array(inverse_root(np.asarray(W.sum(axis=1)).ravel()))
    N = root @ W @ root
    # Lanczos iterations may miss some of many equal eigenvalues, which pieces without links have.
    if n > DENSE_BELOW and c < n // 4 and connected_components(W)[0] == 1:
        try:
            w, V = eigsh(N, c, which="LA", v0=np.ones(n) + root.diagonal())
        except ArpackNoConvergence:
            w, V = eigh(N.toarray())
    else:
        w, V = highest_eigenpairs(N.toarray(), c)
    order = np.argsort(-w, kind="stable")[:c]
    return w[order], V[:, order]


def cluster_vectors(V: np.ndarray, seed: int | None = None) -> np.ndarray:
    """Cluster the rows of c eigenvectors into c clusters, numbered by size.

    k-means on rows of unit length starts from the samples that a pivoted QR decomposition picks,
    which are as different from each other as possible; a seed adds ten random restarts.

    Examples
    --------
    >>> V = np.repeat(np.eye(2), [1, 3], axis=0) / np.sqrt([1, 3])
    >>> cluster_vectors(V).tolist()
    [1, 0, 0, 0]
    """
    c = V.shape[1]
    pivots = scipy.linalg.qr(V.T, mode="economic", pivoting=True)[2][:c]
    left, _, right = np.linalg.svd(V[pivots].T)
    first = np.argmax(np.abs(V @ (left @ right)), axis=1)
    Y = unit_rows(V)
    centers = Y[pivots].copy()
    for j in np.unique(first):
        centers[j] = Y[first == j].mean(axis=0)
    with quiet_kmeans():
        model = KMeans(c, init=centers, n_init=1, max_iter=30).fit(Y)
        if seed is not None:
            other = KMeans(c, n_init=10, random_state=seed).fit(Y)
            model = min(model, other, key=lambda one: one.inertia_)
    return by_size(model.labels_)


def by_size(labels: np.ndarray) -> np.ndarray:
    """Number the clusters by size; of two that are equal, the one seen first is first.

    Examples
    --------
    >>> by_size(np.array([5, 2, 2, 7])).tolist()
    [1, 0, 0, 2]
    """
    _, first, inverse, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    places = np.empty(len(sizes), dtype=np.int64)
    places[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return places[inverse]


def modularity(S: sp.csr_array, labels: np.ndarray) -> float:
    """Newman's modularity of a clustering on a symmetric graph.

    It is the share of links within clusters, less that expected if the links were random.

    Examples
    --------
    >>> S = sp.csr_array(np.kron(np.eye(2), np.ones((3, 3))))
    >>> modularity(S, np.array([0, 0, 0, 1, 1, 1])), modularity(S, np.zeros(6, dtype=int))
    (0.5, 0.0)
    """
    degrees = np.asarray(S.sum(axis=1)).ravel()
    total = degrees.sum()
    if total <= 0:
        return 0.0
    inside = S.data[labels[entry_rows(S)] == labels[S.indices]].sum()
    return float(inside / total - np.sum((np.bincount(labels, degrees) / total) ** 2))
