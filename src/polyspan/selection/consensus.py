"""What several clusterings of the same samples agree on: which count, and what they come to.

- Members are ranked by what the views say of them, and weighed (`rank_members`).
- The consensus clusters the samples by how often the members put them together, in memory
  (`consensus`) or by chunks (`consensus_of_many`).
- Where members fall into camps that disagree, there are rival clusterings (`find_rivals`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform
from sklearn.utils import check_random_state

from polyspan.chunked.workers import Cluster, Threads, bounds, workers_for
from polyspan.clustering.large import SAMPLE, lloyd
from polyspan.clustering.spectral import (
    cluster_rows,
    kmeans,
    settled,
    spectral_clustering,
    unit_rows,
)
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import inverse_root
from polyspan.runtime.threads import take_samples
from polyspan.selection.evidence import EVERY, Graphs, view_modularity
from polyspan.solvers.eigen import highest_eigenpairs

SHARE = 1 / 3  # of the members, the best, enter the consensus
FEWEST = 5  # but at least so many
ROWS = 131_072  # samples in a chunk
MOST_CAMPS = 3
SMALLEST = 0.15  # share of the votes that makes a camp
APART = 0.85  # similarity between camps, as a share of that within them, below which they are two
CUTS = 5  # of the tree that are looked at
SAME = 0.9  # normalized mutual information from which two clusterings are one

Seed = int | np.random.RandomState | None
Merge = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # labels, weights


# ---- ranks and weights ---------------------------------------------------------------------------


def rank_members(
    labels: np.ndarray,
    families: Sequence[str],
    groups: Sequence[str],
    modularities: np.ndarray,
    score: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
    share: float = SHARE,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score members by what the views say of their labels, and weigh them for the consensus.

    The score is the mean over the views, and over their graphs of neighbors and of self-expression,
    of the squared modularity: a clustering that is clear on some graphs counts more than one that
    is so-so on all, and graphs without clusters (a view of noise; self-expression, where there are
    no subspaces) decide nothing. Self-expression compares directions: views whose lengths count
    have no such graph. The best third enter the consensus, five at least. Every group
    among them (a family in one scaling) has one vote, but like members tend to err together: a
    family with g groups there has the root of g votes.

    How the rule was chosen, and what else was tried: `benchmarks/label_free.py`.

    Parameters
    ----------
    labels : (m, n) array of int
        One row of labels per member.
    families : m strings
        Which members are of one kind.
    groups : m strings
        Which members share a vote: a family in one scaling.
    modularities : (m, v, 2) array
        Modularity of every member's labels on the two graphs of every view; NaN without.
    score : callable, default=None
        Another rule than `score_of`, and
    share : float, default=1/3
        another share of the members that enter.

    Returns
    -------
    agreement : (m,) array
        Mean over the other families of the mean normalized mutual information with their members;
        with a single family, with the other members.
    scores : (m,) array
        Mean squared modularity; what is negative counts as 0.
    weights : (m,) array
        0 for members that are left out; the sum is 1, that of every group of a family the same.

    Examples
    --------
    >>> labels = np.array([[0, 0, 1, 1]] * 5 + [[0, 1, 0, 1]])
    >>> families = ["a", "a", "b", "b", "c", "c"]
    >>> modularities = np.repeat([0.5, 0.1], [5, 1])[:, None, None] * np.ones((1, 2))
    >>> found = rank_members(labels, families, families, modularities)
    >>> found[0].round(2), found[2].round(2)
    (array([0.75, 0.75, 0.75, 0.75, 1.  , 0.  ]), array([0.17, 0.17, 0.17, 0.17, 0.33, 0.  ]))
    """
    A = pairwise_nmi(labels)
    m, kinds = len(A), np.array(families)
    agreement = _agreement(A, kinds)
    scores = (score or score_of)(agreement, modularities)
    limit = np.sort(scores)[::-1][min(m, max(FEWEST, int(np.ceil(share * m)))) - 1]
    used = scores >= limit - 1e-9  # members with equal labels alike, in any order of the samples
    weights = np.zeros(m)
    for kind in np.unique(kinds[used]):
        alike = used & (kinds == kind)
        names, places, sizes = np.unique(
            np.array(groups)[alike], return_inverse=True, return_counts=True
        )
        weights[alike] = 1 / sizes[places] / np.sqrt(len(names))
    return agreement, scores, weights / weights.sum()


def score_of(agreement: np.ndarray, modularities: np.ndarray) -> np.ndarray:
    """Score of every member, as in `rank_members`; other rules are tried in `benchmarks/label_free.py`.

    Examples
    --------
    >>> score_of(np.ones(2), np.array([[[0.5, 0.1]], [[0.3, 0.3]]])).round(2)
    array([0.13, 0.09])
    """
    return np.asarray(np.nanmean(np.maximum(modularities, 0) ** 2, axis=(1, 2)))


def _agreement(A: np.ndarray, families: np.ndarray) -> np.ndarray:
    """Mean over the other families of the mean similarity to their members."""
    m = len(A)
    if m == 1:
        return np.ones(1)
    names = list(dict.fromkeys(families.tolist()))
    if len(names) == 1:
        return (A.sum(axis=1) - 1) / (m - 1)
    means = np.array([A[:, families == name].mean(axis=1) for name in names])
    same = np.array([families == name for name in names])
    return np.where(same, 0.0, means).sum(axis=0) / (len(names) - 1)


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
    columns = Columns(_names(labels), np.ones(m))
    H, starts = sp.csc_array(_indicators(labels, columns)), columns.starts
    entropies = np.add.reduceat(_plogp(H.sum(axis=0) / n), starts)
    A = np.eye(m)
    for i in range(m - 1):
        end = starts[i + 1]
        joint = sp.coo_array(H[:, starts[i] : end].T @ H[:, end:])
        other = np.searchsorted(starts[i + 1 :] - end, joint.coords[1], side="right") - 1
        both = np.bincount(other, weights=_plogp(joint.data / n), minlength=m - i - 1)
        total = entropies[i] + entropies[i + 1 :]
        # A clustering with one cluster has no entropy: two such clusterings are the same.
        A[i, i + 1 :] = np.where(total > 0, 2 * (total - both) / np.where(total > 0, total, 1), 1.0)
    return np.clip(np.maximum(A, A.T), 0.0, 1.0)


def _plogp(p: np.ndarray) -> np.ndarray:
    return -p * np.log(np.where(p > 0, p, 1.0))


# ---- the consensus -------------------------------------------------------------------------------


class Columns(NamedTuple):
    """The clusters of all members, side by side."""

    names: Sequence[np.ndarray]  # for every member, its labels
    values: np.ndarray  # for every member, what is written where a sample is in its cluster

    @property
    def starts(self) -> np.ndarray:
        """The first column of every member."""
        return np.cumsum([0, *map(len, self.names[:-1])])


def _names(labels: np.ndarray) -> list[np.ndarray]:
    return [np.unique(row) for row in labels]


def _indicators(labels: np.ndarray, columns: Columns) -> sp.csr_array:
    """Samples x clusters of all members: the value of the member, or 0."""
    m, n = labels.shape
    pairs = zip(columns.names, labels, strict=True)
    places = [np.searchsorted(names, row) for names, row in pairs]
    where = (np.stack(places, axis=1) + columns.starts).ravel()
    data, ends = np.tile(columns.values, n), np.arange(0, m * n + 1, m)
    return sp.csr_array((data, where, ends), shape=(n, sum(map(len, columns.names))))


def consensus(
    labels: np.ndarray, weights: np.ndarray, n_clusters: int, random_state: Seed = None
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
    B = _indicators(labels[used], Columns(_names(labels[used]), np.sqrt(weights[used])))
    n, d = B.shape
    if n <= d:
        merged = spectral_clustering((B @ B.T).toarray(), n_clusters, random_state=random_state)
    else:  # the same eigenvectors from the smaller matrix, without any n x n matrix
        N = _normalized(B, _column_sums(B))
        Y = N @ _right_vectors(_gram(N), n_clusters)
        merged = cluster_rows(Y, n_clusters, random_state=random_state)
    places, sizes = np.unique(merged, return_inverse=True, return_counts=True)[1:]
    return merged, certainty_of_rows(B, places, _sums_by_cluster(B, places, len(sizes)), sizes)


def consensus_of_many(
    workers: Threads | Cluster,
    labels: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster so many samples that they are worked on by chunks, in memory or on a cluster.

    Where a sample lies depends only on its labels, so that with d clusters of all members together
    the eigenvectors come from a d x d matrix, a sum over chunks. k-means restarts on 20,000 samples
    drawn at random and goes on over all of them. In this process there are only the labels, the
    certainty and these sums. The answer does not depend on the number of workers, and time and
    memory are linear in that of the samples.

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

    def total(parts: Sequence[Any]) -> Any:  # only the sum comes back
        return workers.collect(workers.submit(sum, parts))

    used, n = weights > 0, labels.shape[1]
    spans = bounds(n, ROWS)
    blocks = [workers.share(labels[used, a:b]) for a, b in spans]
    by_member = zip(*workers.collect(workers.map(_names, blocks)), strict=True)
    names = [np.unique(np.concatenate(of_blocks)) for of_blocks in by_member]
    columns = Columns(names, np.sqrt(weights[used]))
    Bs = workers.map(_indicators, blocks, columns=columns)
    Ns = workers.map(_normalized, Bs, counts=total(workers.map(_column_sums, Bs)))
    V = _right_vectors(total(workers.map(_gram, Ns)), n_clusters)
    Ys = workers.map(_embedding, Ns, V=workers.share(V))
    del Ns
    rng, few = check_random_state(random_state), max(SAMPLE, 10 * n_clusters)
    drawn = np.arange(n) if n <= few else np.sort(rng.choice(n, few, replace=False))
    some = take_samples(workers, [[Y] for Y in Ys], spans, drawn)[0]
    merged = lloyd(workers, Ys, kmeans(some, n_clusters, random_state=rng).cluster_centers_)
    del Ys
    places, sizes = np.unique(merged, return_inverse=True, return_counts=True)[1:]
    parts = [places[a:b] for a, b in spans]
    sums = workers.share(total(workers.map(_sums_by_cluster, Bs, parts, n_clusters=len(sizes))))
    certainty = workers.map(certainty_of_rows, Bs, parts, totals=sums, sizes=sizes)
    return merged, np.concatenate(workers.collect(certainty))


def _column_sums(B: sp.csr_array) -> np.ndarray:
    return np.asarray(B.sum(axis=0)).ravel()


def _normalized(B: sp.csr_array, counts: np.ndarray) -> sp.csr_array:
    """``D^-1/2 B``, where D are the degrees of the samples in ``B B^T``."""
    return sp.csr_array(sp.diags_array(inverse_root(B @ counts)) @ B)


def _gram(N: sp.csr_array) -> np.ndarray:
    return (N.T @ N).toarray()


def _right_vectors(G: np.ndarray, n_clusters: int) -> np.ndarray:
    """What N is multiplied by to get the eigenvectors of ``N N^T``, where G is ``N^T N``."""
    d = len(G)
    w, V = highest_eigenpairs(G, min(n_clusters, d))
    sure = w > d * np.finfo(float).eps
    return np.where(sure, V / np.sqrt(np.where(sure, w, 1.0)), 0.0)


def _embedding(N: sp.csr_array, V: np.ndarray) -> np.ndarray:
    return settled(unit_rows(N @ V))


def _sums_by_cluster(B: sp.csr_array, places: np.ndarray, n_clusters: int) -> np.ndarray:
    n = len(places)
    members = sp.csr_array((np.ones(n), places, np.arange(n + 1)), shape=(n, n_clusters))
    return (B.T @ members).toarray()


def certainty_of_rows(
    B: sp.csr_array, places: np.ndarray, totals: np.ndarray, sizes: np.ndarray
) -> np.ndarray:
    """Certainty of some samples, from what is known of all clusters.

    It is the mean co-association with the own cluster, without the sample itself, less that with
    the best other one.

    Parameters
    ----------
    B : (rows, d) csr_array
        Clusters of every member that the samples are in: the root of its weight.
    places : (rows,) array
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
    sums, rows = B @ totals, np.arange(len(places))
    inside = (sums[rows, places] - 1) / np.maximum(sizes[places] - 1, 1)  # 1: with itself
    if len(sizes) == 1:
        return np.clip(inside, 0.0, 1.0)
    shares = sums / sizes
    shares[rows, places] = -1
    inside = np.where(sizes[places] > 1, inside, 1.0)  # a cluster of one sample
    return np.clip(inside - shares.max(axis=1), 0.0, 1.0)


def merging(views: Views | None, n_clusters: int, seed: int) -> Merge:
    """The consensus as a function of labels and weights: by chunks where views are, or in memory.

    Examples
    --------
    >>> merged, _ = merging(Views([np.eye(4)], ["0"]), 2, 0)(np.array([[0, 0, 1, 1]]), np.ones(1))
    >>> bool(merged[0] == merged[1] != merged[2] == merged[3])
    True
    """

    def merge(labels: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if views is None:
            return consensus(labels, weights, n_clusters, seed)
        with workers_for(views.arrays) as workers:
            return consensus_of_many(workers, labels, weights, n_clusters, seed)

    return merge


class Merged(NamedTuple):
    """The consensus of members."""

    labels: np.ndarray
    certainty: np.ndarray
    nearest: int  # number of the member in the consensus whose labels are nearest to it


def merge_members(
    rows: list[dict[str, Any]],
    labels: np.ndarray,
    graphs: Sequence[Sequence[Graphs]],
    merge: Merge,
    part: Any,
) -> Merged:
    """Rank the members by a part of the samples, those of the graphs; complete rows, and merge."""
    some = labels[:, part]
    quality = np.array([view_modularity(graphs, row) for row in some])
    families, groups = ([row[name] for row in rows] for name in ("family", "group"))
    agreement, scores, weights = rank_members(some, families, groups, quality)
    merged, certainty = merge(labels, weights)
    nearness = pairwise_nmi(np.vstack([merged[part], some]))[0, 1:]
    names = ("agreement", "modularity", "score", "weight", "nearness")
    columns = zip(
        agreement, np.nanmean(quality, axis=(1, 2)), scores, weights, nearness, strict=True
    )
    for row, values in zip(rows, columns, strict=True):
        row |= dict(zip(names, map(float, values), strict=True))
    return Merged(merged, certainty, int(np.argmax(np.where(weights > 0, nearness, -1))))


# ---- rival clusterings ---------------------------------------------------------------------------


def find_camps(votes: np.ndarray) -> list[np.ndarray]:
    """Split clusterings into camps that agree within and not with each other.

    They are joined by average linkage of their normalized mutual information. A cut into two to
    five camps counts if two or more of them have at least 15% of the votes, and if clusterings of
    different camps are less than 0.85 times as similar as those of the same camp. The coarsest cut
    that counts is taken; smaller camps are left out. If none counts there is one camp, the common
    case.

    Parameters
    ----------
    votes : (m, n) array of int
        One row of labels per vote.

    Returns
    -------
    list of arrays of int
        Rows of every camp, the largest camp first.

    Examples
    --------
    >>> left, right = np.repeat([0, 1], 10), np.tile([0, 1], 10)
    >>> find_camps(np.array([left, left, right, right]))
    [array([0, 1]), array([2, 3])]
    >>> find_camps(np.array([left, left, left, left]))
    [array([0, 1, 2, 3])]
    """
    m = len(votes)
    if m >= 4:
        A = pairwise_nmi(votes)
        tree = linkage(squareform(1 - A, checks=False), "average")
        for k in range(2, min(m, CUTS) + 1):
            cut = fcluster(tree, k, "maxclust")
            camps = [np.flatnonzero(cut == j) for j in np.unique(cut)]
            camps = [camp for camp in camps if len(camp) >= SMALLEST * m]
            if len(camps) > 1 and _apart(A, camps):
                return sorted(camps, key=lambda camp: (-len(camp), camp[0]))[:MOST_CAMPS]
    return [np.arange(m)]


def _apart(A: np.ndarray, camps: list[np.ndarray]) -> bool:
    """Whether all camps agree much less with each other than within."""
    sums = [(A[np.ix_(camp, camp)].sum(), len(camp)) for camp in camps]
    within = [(total - m) / (m * (m - 1)) if m > 1 else 1.0 for total, m in sums]
    return all(
        A[np.ix_(camps[i], camps[j])].mean() < APART * min(within[i], within[j])
        for i, j in combinations(range(len(camps)), 2)
    )


def find_rivals(
    labels: np.ndarray,
    rows: list[dict[str, Any]],
    main: np.ndarray,
    graphs: list[list[Graphs]],
    n_clusters: int,
    seed: int,
    merge: Merge | None = None,
    part: Any = EVERY,
) -> list[dict[str, Any]]:
    """Describe the rival clusterings; none if the members are of one camp.

    A vote is the consensus of the better half, by score, of a group of like members. A camp's
    clustering is the consensus of its votes. Camps are sought in a ``part`` of the samples, those
    of the graphs; ``merge`` finds a consensus of all of them.

    Returns
    -------
    list of dict
        For every camp whose clustering differs from the main one: ``labels``, ``certainty``,
        ``members`` (numbers of rows), ``share`` of the votes, ``similarity`` to the main clustering
        (normalized mutual information) and ``modularity`` in every view.
    """
    groups = np.array([row["group"] for row in rows])
    members = [np.flatnonzero(groups == name) for name in dict.fromkeys(groups.tolist())]
    if len(members) < 4:
        return []
    scores = np.array([row["score"] for row in rows])
    plain = partial(consensus, n_clusters=n_clusters, random_state=seed)
    votes = np.array([_vote(labels[:, part], scores, group, plain) for group in members])
    camps = find_camps(votes)
    if len(camps) == 1:
        return []
    merge = merge or plain
    if part is not EVERY:
        votes = np.array([_vote(labels, scores, group, merge) for group in members])
    rivals: list[dict[str, Any]] = []
    for camp in camps:
        merged, certainty = merge(votes[camp], np.full(len(camp), 1 / len(camp)))
        similarity = float(pairwise_nmi(np.vstack([merged[part], main[part]]))[0, 1])
        if similarity < SAME:
            rivals.append(
                {
                    "labels": merged,
                    "certainty": certainty,
                    "members": np.concatenate([members[k] for k in camp]).tolist(),
                    "share": len(camp) / len(members),
                    "similarity": similarity,
                    "modularity": view_modularity(graphs, merged[part])[:, 0].tolist(),
                }
            )
    return rivals


def _vote(labels: np.ndarray, scores: np.ndarray, members: np.ndarray, merge: Merge) -> np.ndarray:
    """What the better half of a group says."""
    better = members[scores[members] >= np.median(scores[members])]
    if len(better) == 1:
        return labels[better[0]]
    return merge(labels[better], np.full(len(better), 1 / len(better)))[0]
