"""The consensus of so many samples that they are worked on by chunks, in memory or on a cluster.

It is that of `polyspan.selection.consensus`. Where a sample lies depends only on its labels, so
that with d clusters of all members together the eigenvectors come from a d x d matrix, a sum over
chunks. k-means restarts on 20,000 samples drawn at random and goes on over all of them. In this
process there are only the labels, the certainty and these sums.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from polyspan.chunked.workers import Cluster, Threads, bounds, workers_for
from polyspan.clustering.large import SAMPLE, lloyd
from polyspan.clustering.spectral import kmeans, settled, unit_rows
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import inverse_root
from polyspan.runtime.threads import take_samples
from polyspan.selection.consensus import certainty_of_rows
from polyspan.solvers.eigen import highest_eigenpairs

ROWS = 131_072  # samples in a chunk


class Columns(NamedTuple):
    """The clusters of all members, side by side."""

    names: Sequence[np.ndarray]  # for every member, its labels
    roots: np.ndarray  # for every member, the root of its weight


def consensus_of_many(
    workers: Threads | Cluster,
    labels: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster many samples by how often the members put them together.

    The answer does not depend on the number of workers, and time and memory are linear in that of
    the samples.

    Parameters
    ----------
    workers : Threads or Cluster
        Where the work runs.
    labels, weights, n_clusters, random_state
        As in `polyspan.selection.consensus`.

    Returns
    -------
    merged, certainty : (n,) arrays
        As in `polyspan.selection.consensus`.

    Examples
    --------
    >>> rows = np.array([[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1]])
    >>> with Threads(1) as workers:
    ...     merged, certainty = consensus_of_many(workers, rows, np.ones(3) / 3, 2, random_state=0)
    >>> bool(merged[0] == merged[1] == merged[2] != merged[5]), int(certainty.argmin())
    (True, 3)
    """
    used, n = weights > 0, labels.shape[1]
    spans = bounds(n, ROWS)
    blocks = [workers.share(labels[used, a:b]) for a, b in spans]
    seen = workers.collect(workers.map(_names, blocks))
    names = [np.unique(np.concatenate(own)) for own in zip(*seen, strict=True)]
    columns = Columns(names, np.sqrt(weights[used]))
    Bs = workers.map(_indicators, blocks, columns=columns)
    counts = _total(workers, workers.map(_column_sums, Bs))
    Ns = workers.map(_normalized, Bs, counts=counts)
    d = len(counts)
    w, V = highest_eigenpairs(_total(workers, workers.map(_gram, Ns)), min(n_clusters, d))
    sure = w > d * np.finfo(float).eps
    V = np.where(sure, V / np.sqrt(np.where(sure, w, 1.0)), 0.0)
    Ys = workers.map(_embedding, Ns, V=workers.share(V))
    del Ns
    merged = _cluster(workers, Ys, spans, n_clusters, random_state)
    del Ys
    found, own = np.unique(merged, return_inverse=True)
    parts, sizes = [own[a:b] for a, b in spans], np.bincount(own)
    totals = _total(workers, workers.map(_sums_by_cluster, Bs, parts, n_clusters=len(found)))
    certainty = workers.map(certainty_of_rows, Bs, parts, totals=workers.share(totals), sizes=sizes)
    return merged, np.concatenate(workers.collect(certainty))


def consensus_on_workers(
    views: Views,
    labels: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The same on the cluster of the views if they are dask arrays, or in this process.

    Examples
    --------
    >>> views = Views([np.eye(4)], ["0"])
    >>> merged, _ = consensus_on_workers(views, np.array([[0, 0, 1, 1]]), np.ones(1), 2)
    >>> bool(merged[0] == merged[1] != merged[2] == merged[3])
    True
    """
    with workers_for(views.arrays) as workers:
        return consensus_of_many(workers, labels, weights, n_clusters, random_state)


def _cluster(
    workers: Threads | Cluster,
    Ys: Sequence[Any],
    spans: list[tuple[int, int]],
    n_clusters: int,
    random_state: int | np.random.RandomState | None,
) -> np.ndarray:
    """k-means whose restarts see some of the rows."""
    n, rng = spans[-1][1], check_random_state(random_state)
    few = max(SAMPLE, 10 * n_clusters)
    drawn = np.arange(n) if n <= few else np.sort(rng.choice(n, few, replace=False))
    some = take_samples(workers, [[Y] for Y in Ys], spans, drawn)[0]
    return lloyd(workers, Ys, kmeans(some, n_clusters, random_state=rng).cluster_centers_)


def _total(workers: Threads | Cluster, parts: Sequence[Any]) -> Any:
    """The sum of what lies with the workers; only the sum comes back."""
    return workers.collect(workers.submit(sum, parts))


def _names(labels: np.ndarray) -> list[np.ndarray]:
    return [np.unique(row) for row in labels]


def _indicators(labels: np.ndarray, columns: Columns) -> sp.csr_array:
    """Samples x clusters of all members: the root of the member's weight, or 0."""
    (m, n), sizes = labels.shape, [len(own) for own in columns.names]
    starts = np.cumsum([0, *sizes[:-1]])
    places = [np.searchsorted(*one) for one in zip(columns.names, labels, strict=True)]
    where = (np.stack(places, axis=1) + starts).ravel()
    data = np.tile(columns.roots, n)
    return sp.csr_array((data, where, np.arange(0, m * n + 1, m)), shape=(n, sum(sizes)))


def _column_sums(B: sp.csr_array) -> np.ndarray:
    return np.asarray(B.sum(axis=0)).ravel()


def _normalized(B: sp.csr_array, counts: np.ndarray) -> sp.csr_array:
    """``D^-1/2 B``, where D are the degrees of the samples in ``B B^T``."""
    return sp.csr_array(sp.diags_array(inverse_root(B @ counts)) @ B)


def _gram(N: sp.csr_array) -> np.ndarray:
    return (N.T @ N).toarray()


def _embedding(N: sp.csr_array, V: np.ndarray) -> np.ndarray:
    return settled(unit_rows(N @ V))


def _sums_by_cluster(B: sp.csr_array, own: np.ndarray, n_clusters: int) -> np.ndarray:
    G = sp.csr_array(
        (np.ones(len(own)), own, np.arange(len(own) + 1)), shape=(len(own), n_clusters)
    )
    return (B.T @ G).toarray()
