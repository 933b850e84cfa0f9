"""Every feature of a view, one cluster against the rest: rank test, AUC, effect size."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import norm, rankdata

MOST_VALUES = 4_000_000  # ranked at a time


class Comparison(NamedTuple):
    """One number for every cluster and feature, (c, d) each."""

    effect: np.ndarray  # difference of the means in units of the pooled standard deviation
    auc: np.ndarray  # chance that a sample of the cluster has the larger value
    p: np.ndarray  # two-sided Mann-Whitney test
    mean_in: np.ndarray
    mean_out: np.ndarray


def compare_features(X: Any, codes: np.ndarray, n_clusters: int) -> Comparison:
    """Compare every cluster with the rest in every feature; a sparse view stays sparse.

    The test is that of Mann and Whitney with the normal approximation, corrected for ties and
    continuity. Missing values (NaN, dense views only) are left out, feature by feature.

    Parameters
    ----------
    X : (n, d) array or scipy.sparse matrix
        One view.
    codes : (n,) array of int
        Cluster of every sample, 0 to n_clusters - 1; samples with -1 are left out.
    n_clusters : int
        Number of clusters.

    Examples
    --------
    >>> X = np.array([[0.0, 5], [1, 5], [8, 5], [9, 5]])
    >>> found = compare_features(X, np.array([0, 0, 1, 1]), 2)
    >>> found.auc[1], found.mean_in[1]
    (array([1. , 0.5]), array([8.5, 5. ]))
    """
    if np.any(codes < 0):
        X, codes = (sp.csr_array(X) if sp.issparse(X) else X)[codes >= 0], codes[codes >= 0]
    n, d = X.shape
    G = sp.csr_array((np.ones(n), (codes, np.arange(n))), shape=(n_clusters, n))
    if sp.issparse(X):
        return _compare(_sparse_sums(sp.csc_array(X, dtype=np.float64), G))
    step = max(1, MOST_VALUES // n)
    parts = [_compare(_dense_sums(X[:, j : j + step], G)) for j in range(0, d, step)]
    return Comparison(*(np.concatenate(one, axis=1) for one in zip(*parts, strict=True)))


class _Sums(NamedTuple):
    """Sums over the samples of every cluster (c, d), or over all (d,)."""

    sizes: np.ndarray
    value: np.ndarray  # of the values less ``shift``
    square: np.ndarray
    rank: np.ndarray
    ranks_squared: np.ndarray  # over all samples
    shift: np.ndarray  # subtracted from the values, so that no digits are lost


def _dense_sums(X: np.ndarray, G: sp.csr_array) -> _Sums:
    X = np.asarray(X, dtype=np.float64)
    known = ~np.isnan(X)
    # Missing values rank last, so that the ranks of the others are as without them.
    R = np.where(known, rankdata(np.where(known, X, np.inf), axis=0), 0.0)
    shift = np.where(known, X, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    off = np.where(known, X - shift, 0)
    return _Sums(G @ known.astype(float), G @ off, G @ off**2, G @ R, (R * R).sum(axis=0), shift)


def _sparse_sums(X: sp.csc_array, G: sp.csr_array) -> _Sums:
    n, d = X.shape
    X.sum_duplicates()
    X.eliminate_zeros()
    if np.isnan(X.data).any():
        raise ValueError("a sparse view holds missing values: make it dense, or fill them in.")
    stored = np.diff(X.indptr)
    column = np.repeat(np.arange(d), stored)
    negative = np.bincount(column[X.data < 0], minlength=d)
    zeros = n - stored
    R = sp.csc_array((_ranks_within(X), X.indices, X.indptr), shape=(n, d))
    R.data += np.where(X.data > 0, zeros[column], 0)
    of_zeros = negative + (zeros + 1) / 2  # the zeros share one rank, between the two signs
    held = sp.csc_array((np.ones(X.nnz), X.indices, X.indptr), shape=(n, d))
    sizes = np.asarray(G.sum(axis=1)).reshape(-1, 1)
    count = np.broadcast_to(sizes, (G.shape[0], d)).astype(float)
    rank = (G @ R).toarray() + (count - (G @ held).toarray()) * of_zeros
    squared = np.asarray((R * R).sum(axis=0)).ravel() + zeros * of_zeros**2
    value, square = (G @ X).toarray(), (G @ (X * X)).toarray()
    return _Sums(count, value, square, rank, squared, np.zeros(d))


def _ranks_within(X: sp.csc_array) -> np.ndarray:
    """Ranks of what is stored among the values of the same column, from 1."""
    columns = np.split(X.data, X.indptr[1:-1])
    return np.concatenate([rankdata(column) for column in columns])


def _compare(sums: _Sums) -> Comparison:
    count, value, square, rank, ranks_squared, shift = sums
    n = count.sum(axis=0)
    n1, n2 = count, n - count
    both = (n1 > 0) & (n2 > 0)
    pairs = np.where(both, n1 * n2, 1)
    U = rank - n1 * (n1 + 1) / 2
    auc = np.where(both, U / pairs, 0.5)
    # The variance of the ranks has the correction for ties in it.
    spread = ranks_squared - n * (n + 1) ** 2 / 4
    sd = np.sqrt(pairs / np.maximum(n * (n - 1), 1) * np.maximum(spread, 0))
    told = both & (sd > 0)
    z = (np.maximum(U, n1 * n2 - U) - n1 * n2 / 2 - 0.5) / np.where(told, sd, 1)
    p = np.where(told, np.minimum(2 * norm.sf(z), 1), 1.0)
    s1, s2 = value, value.sum(axis=0) - value
    q1, q2 = square, square.sum(axis=0) - square
    m1, m2 = s1 / np.maximum(n1, 1), s2 / np.maximum(n2, 1)
    inside = np.maximum(q1 - n1 * m1**2, 0) + np.maximum(q2 - n2 * m2**2, 0)
    inside = np.where(inside <= 1e-13 * (q1 + q2), 0, inside)  # only rounding errors
    pooled = np.sqrt(inside / np.maximum(n - 2, 1))
    gap = m1 - m2
    same = np.abs(gap) <= 1e-12 * (np.abs(m1) + np.abs(m2))
    with np.errstate(divide="ignore", invalid="ignore"):  # no spread inside: an infinite effect
        effect = np.where(both & ~same, gap / pooled, 0.0)
    return Comparison(effect, auc, p, m1 + shift, m2 + shift)
