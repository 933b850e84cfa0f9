"""Local moves: every sample of a clustering goes where the links it can trust go.

Among many samples the members are cheap, and many of their errors are single samples on the wrong
side of a border. Their neighbors in the views tell which side is right, but a view may also link
samples of different clusters, for reasons of its own. So a link counts as far as the members put
its two ends together::

    A_ij = mean of the views' neighbor graphs at (i, j) x share of the members with l_i = l_j

and a sample moves to the cluster that raises the modularity of the labels on A most, as in the
first phase of Louvain's method, but from a given clustering and with no cluster lost.

Reference: V. D. Blondel, J.-L. Guillaume, R. Lambiotte, E. Lefebvre, "Fast unfolding of communities
in large networks", Journal of Statistical Mechanics (2008).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.graphs.knn import entry_rows

PARTS = 4  # of the samples, which move one after the other: all at once would change places
ROUNDS = 30  # at most
FEW = 1e-3  # of the samples, in a round that is the last


def refined(
    graphs: Sequence[Sequence[sp.csr_array]], labels: np.ndarray, random_state: int
) -> np.ndarray:
    """Refine the clusterings of all members on the links that they agree on.

    Parameters
    ----------
    graphs : list of lists of (n, n) csr_array
        Symmetric neighbor graphs, one list for each view.
    labels : (m, n) array
        One row of labels per member.
    random_state : int
        Seed of the order in which samples move.

    Returns
    -------
    (m, n) array

    Examples
    --------
    >>> A = sp.csr_array(np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)))
    >>> refined([[A]], np.array([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]]), 0)
    array([[0, 0, 0, 1, 1, 1],
           [0, 0, 0, 1, 1, 1]])
    """
    A = agreed_links(graphs, labels)
    return np.array([refine(A, row, random_state) for row in labels])


def agreed_links(graphs: Sequence[Sequence[sp.csr_array]], labels: np.ndarray) -> sp.csr_array:
    """Mean of the views' graphs; a link counts as far as the clusterings put its ends together.

    Examples
    --------
    >>> A = sp.csr_array(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    >>> agreed_links([[A], [A, A]], np.array([[0, 0, 1], [0, 0, 0]])).toarray()
    array([[0. , 1. , 0.5],
           [1. , 0. , 0. ],
           [0.5, 0. , 0. ]])
    """
    mean: Any = sum(sum(own) / len(own) for own in graphs) / len(graphs)
    A = sp.csr_array(mean)
    i, j = entry_rows(A), A.indices
    together = np.zeros(len(j), dtype=np.int32)
    for row in labels:
        together += row[i] == row[j]
    A.data = A.data * together / len(labels)
    A.eliminate_zeros()
    return A


def refine(A: sp.csr_array, labels: np.ndarray, random_state: int = 0) -> np.ndarray:
    """Move samples between the clusters as long as the modularity on a graph grows.

    A quarter of the samples move at a time, in up to thirty rounds. The samples of a cluster that
    nobody would be left in keep it.

    Parameters
    ----------
    A : (n, n) csr_array
        Symmetric graph without loops.
    labels : (n,) array
        Clusters to start from.
    random_state : int, default=0
        Seed of the order in which samples move.

    Returns
    -------
    (n,) array of int
        Clusters from 0 on, as many as there were.

    Examples
    --------
    >>> A = sp.csr_array(np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)))
    >>> refine(A, np.array([0, 0, 0, 0, 1, 1]))
    array([0, 0, 0, 1, 1, 1])
    """
    before = np.unique(labels, return_inverse=True)[1]
    found, n, c = before.copy(), len(before), int(before.max()) + 1
    degrees = np.asarray(A.sum(axis=1)).ravel()
    shares = degrees / (degrees.sum() or 1.0)
    order = np.random.RandomState(random_state).permutation(n)
    parts = [(rows, A[rows]) for rows in np.array_split(order, min(PARTS, n))]
    for _ in range(ROUNDS):
        moved = sum(_move(*part, found, degrees, shares, c) for part in parts)
        if moved <= FEW * n:
            break
    while len(gone := np.setdiff1d(before, found)):
        back = np.isin(before, gone)
        found[back] = before[back]
    return found


def _move(
    rows: np.ndarray,
    A: sp.csr_array,
    labels: np.ndarray,
    degrees: np.ndarray,
    shares: np.ndarray,
    c: int,
) -> int:
    """Move some samples, whose rows of the graph are A, to their best clusters; how many moved."""
    i, own = np.arange(len(rows)), labels[rows]
    places = entry_rows(A) * c + labels[A.indices]
    links = np.bincount(places, weights=A.data, minlength=len(rows) * c).reshape(-1, c)
    expected = degrees[rows, None] * np.bincount(labels, weights=shares, minlength=c)
    expected[i, own] -= degrees[rows] * shares[rows]  # its own place in its cluster
    gain = links - expected
    best = np.argmax(gain, axis=1)
    better = gain[i, best] > gain[i, own] + 1e-12 * degrees[rows]
    labels[rows[better]] = best[better]
    return int(np.sum(better))
