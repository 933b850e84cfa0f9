"""Camps: rival clusterings, where the members of a consensus fall into groups that disagree."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from polyspan.selection.consensus import consensus, pairwise_nmi
from polyspan.selection.drawn import EVERY
from polyspan.selection.quality import view_modularity

MOST = 3  # camps
SMALLEST = 0.15  # share of the votes that makes a camp
APART = 0.85  # similarity between camps, as a share of that within them, below which they are two
CUTS = 5  # of the tree that are looked at
SAME = 0.9  # normalized mutual information from which two clusterings are one
Merge = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]  # labels, weights


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
            camps = [one for one in camps if len(one) >= SMALLEST * m]
            if len(camps) > 1 and _apart(A, camps):
                return sorted(camps, key=lambda one: (-len(one), one[0]))[:MOST]
    return [np.arange(m)]


def _apart(A: np.ndarray, camps: list[np.ndarray]) -> bool:
    """Whether all camps agree much less with each other than within."""
    within = [_mean_within(A, one) for one in camps]
    return all(
        A[np.ix_(camps[i], camps[j])].mean() < APART * min(within[i], within[j])
        for i in range(len(camps))
        for j in range(i)
    )


def _mean_within(A: np.ndarray, camp: np.ndarray) -> float:
    part = A[np.ix_(camp, camp)]
    return float((part.sum() - len(camp)) / (len(camp) * (len(camp) - 1))) if len(camp) > 1 else 1.0


def alternatives(
    labels: np.ndarray,
    rows: list[dict[str, Any]],
    main: np.ndarray,
    graphs: list[list[sp.csr_array]],
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
    groups = [row["group"] for row in rows]
    names = list(dict.fromkeys(groups))
    if len(names) < 4:
        return []
    inside = [np.flatnonzero(np.array(groups) == name) for name in names]
    scores = np.array([row["score"] for row in rows])
    plain = partial(consensus, n_clusters=n_clusters, random_state=seed)
    votes = np.array([_vote(labels[:, part], scores, one, plain) for one in inside])
    camps = find_camps(votes)
    if len(camps) == 1:
        return []
    merge = merge or plain
    if part is not EVERY:
        votes = np.array([_vote(labels, scores, one, merge) for one in inside])
    found: list[dict[str, Any]] = []
    for camp in camps:
        equal = np.full(len(camp), 1 / len(camp))
        merged, certainty = merge(votes[camp], equal)
        similar = float(pairwise_nmi(np.vstack([merged[part], main[part]]))[0, 1])
        if similar < SAME:
            found.append(
                {
                    "labels": merged,
                    "certainty": certainty,
                    "members": [int(i) for one in camp for i in inside[one]],
                    "share": len(camp) / len(names),
                    "similarity": similar,
                    "modularity": view_modularity(graphs, merged[part]).tolist(),
                }
            )
    return found


def _vote(labels: np.ndarray, scores: np.ndarray, members: np.ndarray, merge: Merge) -> np.ndarray:
    """What the better half of a group says."""
    better = members[scores[members] >= np.median(scores[members])]
    if len(better) == 1:
        return labels[better[0]]
    equal = np.full(len(better), 1 / len(better))
    return merge(labels[better], equal)[0]
