"""The consensus as a matrix: how often the members put two samples together."""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.report.content import Content


class Consensus(NamedTuple):
    """What the members say of every sample."""

    B: sp.csr_array  # samples x clusters of all members: B @ B.T is how often two are together
    silhouette: np.ndarray  # (n,) with 1 - B @ B.T as distance
    second: np.ndarray  # (n,) the other cluster that most members put the sample into


def measure_consensus(c: Content) -> Consensus | None:
    """The co-association of the members in the consensus; None if one method found the clusters."""
    labels = getattr(c.estimator, "member_labels_", None)
    if not c.n_agreeing or labels is None or len(c.clusters) < 2:
        return None
    labels = labels[:, c.rows]
    ran = [row for row in c.members if row["status"] == "ok"]
    weights = np.array([row["weight"] for row in ran])
    used = np.flatnonzero(weights > 0)
    n = len(c.ids)
    parts = []
    for i in used:
        own = np.unique(labels[i], return_inverse=True)[1]
        ones = np.full(n, np.sqrt(weights[i]))
        parts.append(sp.csr_array((ones, (np.arange(n), own)), shape=(n, int(own.max()) + 1)))
    B = sp.csr_array(sp.hstack(parts))
    return Consensus(B, *_silhouette(B, c.codes, len(c.clusters)))


def _silhouette(B: sp.csr_array, codes: np.ndarray, c: int) -> tuple[np.ndarray, np.ndarray]:
    """The silhouette of every sample and its nearest other cluster, without any n x n matrix."""
    n = len(codes)
    G = sp.csr_array((np.ones(n), (np.arange(n), codes)), shape=(n, c))
    sums, sizes = (B @ (B.T @ G)).toarray(), np.bincount(codes, minlength=c)
    rows = np.arange(n)
    inside = (sums[rows, codes] - 1) / np.maximum(sizes[codes] - 1, 1)  # 1: with itself
    others = sums / sizes
    others[rows, codes] = -1
    second = others.argmax(axis=1)
    a, b = 1 - inside, 1 - others[rows, second]
    found = (b - a) / np.maximum(np.maximum(a, b), np.finfo(float).tiny)
    return np.where(sizes[codes] > 1, np.clip(found, -1, 1), 0.0), second


def shrink_consensus(B: sp.csr_array, order: np.ndarray, most: int) -> np.ndarray:
    """The co-association sorted and averaged over equal blocks, without samples with themselves.

    Examples
    --------
    >>> B = sp.csr_array(np.array([[1.0, 0], [1, 0], [0, 1], [0, 1]]))
    >>> shrink_consensus(B, np.arange(4), most=2)
    array([[1., 0.],
           [0., 1.]])
    """
    n = len(order)
    block = -(-n // most)
    side = -(-n // block)
    P = sp.csr_array((np.ones(n), (np.arange(n) // block, order)), shape=(side, n))
    sums = ((P @ B) @ (P @ B).T).toarray()
    size = np.asarray(P.sum(axis=1)).ravel()
    if block == 1:
        return sums
    return (sums - np.diag(size)) / np.maximum(np.outer(size, size) - np.diag(size), 1)
