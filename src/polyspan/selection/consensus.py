"""Score several clusterings of the same samples by their agreement, and merge them into one."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from polyspan.clustering.spectral import cluster_rows, spectral_clustering
from polyspan.runtime.arrays import inverse_root
from polyspan.solvers.eigen import highest_eigenpairs

SHARE = 1 / 3  # of the members, the best, enter the consensus
FEWEST = 5  # but at least so many


def rank_members(
    labels: np.ndarray,
    families: Sequence[str],
    groups: Sequence[str],
    modularities: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score members by agreement and by modularity, and weigh them for the consensus.

    The score is the rank by agreement with the other families plus the rank by modularity on the
    views' neighbor graphs. A block of like members cannot raise its own agreement, and where
    agreement misleads, because families err together, the views object. The best third enter the
    consensus, five at least. Every group among them (a family in one scaling) has one vote, but
    like members tend to err together: a family with g groups there has the root of g votes.

    Parameters
    ----------
    labels : (m, n) array of int
        One row of labels per member.
    families : m strings
        Which members are of one kind.
    groups : m strings
        Which members share a vote: a family in one scaling.
    modularities : (m, v) array
        Modularity of every member's labels in every view.

    Returns
    -------
    agreement : (m,) array
        Mean over the other families of the mean normalized mutual information with their members;
        with a single family, with the other members.
    scores : (m,) array
        Mean of the ranks by agreement and by modularity, from 0 to 1.
    weights : (m,) array
        0 for members that are left out; the sum is 1, that of every group of a family the same.

    Examples
    --------
    >>> labels = np.array([[0, 0, 1, 1]] * 5 + [[0, 1, 0, 1]])
    >>> families = ["a", "a", "b", "b", "c", "c"]
    >>> found = rank_members(labels, families, families, np.ones((6, 1)))
    >>> found[0].round(2), found[2].round(2)
    (array([0.75, 0.75, 0.75, 0.75, 1.  , 0.  ]), array([0.17, 0.17, 0.17, 0.17, 0.33, 0.  ]))
    """
    A = pairwise_nmi(labels)
    m, kinds = len(A), np.array(families)
    agreement = _agreement(A, kinds)
    # Rounded, so that members with the same labels have one rank in any order of the samples.
    ranks = [rankdata(one.round(9)) for one in (agreement, modularities.mean(axis=1))]
    scores = sum(ranks) / (2 * m)
    limit = np.sort(scores)[::-1][min(m, max(FEWEST, int(np.ceil(SHARE * m)))) - 1]
    used = scores >= limit - 1e-12  # equal ones alike
    weights = np.zeros(m)
    for kind in np.unique(kinds[used]):
        own = used & (kinds == kind)
        names, places, sizes = np.unique(
            np.array(groups)[own], return_inverse=True, return_counts=True
        )
        weights[own] = 1 / sizes[places] / np.sqrt(len(names))
    return agreement, scores, weights / weights.sum()


def _agreement(A: np.ndarray, families: np.ndarray) -> np.ndarray:
    """Mean over the other families of the mean similarity to their members."""
    m = len(A)
    if m == 1:
        return np.ones(1)
    names = list(dict.fromkeys(families.tolist()))
    if len(names) == 1:
        return (A.sum(axis=1) - 1) / (m - 1)
    means = np.array([A[:, families == name].mean(axis=1) for name in names])
    own = np.array([families == name for name in names])
    return np.where(own, 0.0, means).sum(axis=0) / (len(names) - 1)


def pairwise_nmi(labels: np.ndarray) -> np.ndarray:
    """Normalized mutual information between all rows of labels.

    Examples
    --------
    >>> pairwise_nmi(np.array([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]])).round(2)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    m, n = labels.shape
    H, starts = _indicators(labels)
    entropies = np.add.reduceat(_plogp(H.sum(axis=0) / n), starts)
    A = np.eye(m)
    for i in range(m - 1):
        end = starts[i + 1]
        joint = sp.coo_array(H[:, starts[i] : end].T @ H[:, end:])
        setting = np.searchsorted(starts[i + 1 :] - end, joint.coords[1], side="right") - 1
        both = np.bincount(setting, weights=_plogp(joint.data / n), minlength=m - i - 1)
        total = entropies[i] + entropies[i + 1 :]
        # A clustering with one cluster has no entropy: two such clusterings are the same.
        A[i, i + 1 :] = np.where(total > 0, 2 * (total - both) / np.where(total > 0, total, 1), 1.0)
    return np.clip(np.maximum(A, A.T), 0.0, 1.0)


def _plogp(p: np.ndarray) -> np.ndarray:
    return -p * np.log(np.where(p > 0, p, 1.0))


def _indicators(labels: np.ndarray) -> tuple[sp.csc_array, np.ndarray]:
    """Samples x clusters of all rows, 1 for membership; and the first column of each row."""
    rows = [np.unique(row, return_inverse=True)[1] for row in labels]
    sizes = [row.max() + 1 for row in rows]
    starts = np.cumsum([0, *sizes[:-1]])
    columns = np.concatenate([row + start for row, start in zip(rows, starts, strict=True)])
    samples = np.tile(np.arange(labels.shape[1]), len(rows))
    shape = labels.shape[1], int(sum(sizes))
    return sp.csc_array((np.ones(len(columns)), (samples, columns)), shape=shape), starts


def consensus(
    labels: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster the samples by how often the settings put them together.

    Parameters
    ----------
    labels : (m, n) array of int
        One row of labels per setting.
    weights : (m,) array
        Weights of the settings; they sum to 1.
    n_clusters : int
        Number of clusters.
    random_state : int, RandomState or None, default=None
        Seeds k-means.

    Returns
    -------
    merged : (n,) array of int
        The clusters.
    certainty : (n,) array
        Mean share of settings that put the sample together with the others of its cluster, less
        that for the best other cluster; between 0 and 1.

    Examples
    --------
    >>> rows = np.array([[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1]])
    >>> merged, certainty = consensus(rows, np.ones(3) / 3, 2, random_state=0)
    >>> bool(merged[0] == merged[1] == merged[2] != merged[5]), int(certainty.argmin())
    (True, 3)
    """
    used = weights > 0
    H, starts = _indicators(labels[used])
    counts = np.diff([*starts, H.shape[1]])
    B = sp.csr_array(H @ sp.diags_array(np.sqrt(np.repeat(weights[used], counts))))
    n, d = B.shape
    if n <= d:
        merged = spectral_clustering((B @ B.T).toarray(), n_clusters, random_state=random_state)
    else:  # the same eigenvectors from the smaller matrix, without any n x n matrix
        degrees = B @ (B.T @ np.ones(n))
        N = sp.csr_array(sp.diags_array(inverse_root(degrees)) @ B)
        w, V = highest_eigenpairs((N.T @ N).toarray(), min(n_clusters, d))
        sure = w > d * np.finfo(float).eps
        Y = N @ np.where(sure, V / np.sqrt(np.where(sure, w, 1.0)), 0.0)
        merged = cluster_rows(Y, n_clusters, random_state=random_state)
    return merged, _certainty(B, merged)


def _certainty(B: sp.csr_array, merged: np.ndarray) -> np.ndarray:
    """Mean co-association with the own cluster, without the sample itself, less the best other."""
    own = np.unique(merged, return_inverse=True)[1]
    G, _ = _indicators(own[None, :])
    return certainty_of_rows(B, own, (B.T @ G).toarray(), np.bincount(own))


def certainty_of_rows(
    B: sp.csr_array, own: np.ndarray, totals: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """Certainty of some samples, from what is known of all clusters.

    Parameters
    ----------
    B : (rows, d) csr_array
        Clusters of every member that the samples are in: the root of its weight.
    own : (rows,) array
        Their clusters in the consensus.
    totals : (d, c) array
        Sums of B over all samples of every cluster.
    sizes : (c,) array
        Sizes of the clusters, none of them 0.

    Examples
    --------
    >>> B = sp.csr_array(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    >>> certainty_of_rows(B, np.array([0, 0, 0]), np.array([[2.0], [1.0]]), np.array([3]))
    array([0.5, 0.5, 0. ])
    """
    sums, rows = B @ totals, np.arange(len(own))
    inside = (sums[rows, own] - 1) / np.maximum(sizes[own] - 1, 1)  # 1 is the sample with itself
    if len(sizes) == 1:
        return np.clip(inside, 0.0, 1.0)
    shares = sums / sizes
    shares[rows, own] = -1
    inside = np.where(sizes[own] > 1, inside, 1.0)  # a cluster of one sample
    return np.clip(inside - shares.max(axis=1), 0.0, 1.0)
