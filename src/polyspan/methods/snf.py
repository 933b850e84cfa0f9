"""SNF: similarity network fusion.

In view v sample i has k neighbors at the mean distance m_i. Similarities of all pairs::

    w_ij = exp(-d_ij^2 / (2 (mu eps_ij)^2)),      eps_ij = (m_i + m_j + d_ij) / 3

are normalized so that half of the weight of a row is on the diagonal, then made symmetric::

    N(W)_ij = w_ij / (2 sum_{r != i} w_ir)  for j != i,  1/2 for j = i                   (1)
    P_v     = (N(W_v) + N(W_v)^T) / 2
    S_v     = P_v on the sample and its k neighbors, rows divided by their sums         (2)

Every round passes the mean of the other views along the links of a view::

    P_v <- S_v (mean_{u != v} P_u) S_v^T,  normalized and made symmetric as above        (3)

The mean of the P_v, normalized again, is cut by spectral clustering. A single view is its own
«others». Samples that are equally far share the last places among the neighbors
(`polyspan.graphs.knn`).

The paper has exp(-d^2 / (mu eps)), whose result depends on the unit of d, and S_v from W_v; its
program has (1) to (3), with w divided by eps and with the sample itself as one of the k neighbors
of S_v.

Reference: B. Wang, A. M. Mezlini, F. Demir, M. Fiume, Z. Tu, M. Brudno, B. Haibe-Kains,
A. Goldenberg, "Similarity network fusion for aggregating data types on a genomic scale", Nature
Methods 11 (2014).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.base import About, Graph, InNumPy
from polyspan.graphs.knn import diffused, local_kernel, nearest_neighbors
from polyspan.graphs.proximity import squared_distances
from polyspan.inputs.params import Neighbors, fitted, integer, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array


class SNF(InNumPy):
    """Similarity network fusion: each view's similarities diffuse along the links of the others.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors of a sample in every view, K in the paper; None is min(20, n - 1). Beyond 20,000
        samples they are approximate: labels depend a little on the order of the samples.
    mu : float, default=0.5
        Width of the kernel as a multiple of the distances around two samples.
    n_rounds : int, default=20
        Rounds of fusion, t in the paper.
    scale : {"unit", "standard+unit", None}, default="unit"
        Scaling of samples to unit length, after standardizing features if asked. The authors
        standardize features.
    n_init : int, default=20
        Restarts of k-means.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views.
    random_state : int, RandomState or None, default=None
        Seeds k-means; the graph does not depend on it.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    affinity_matrix_ : (n, n) array
        The fused similarities.

    Examples
    --------
    >>> from polyspan import SNF
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, subspace_dim=2, random_state=0)
    >>> SNF(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Wang et al., Nature Methods 2014, doi:10.1038/nmeth.2810",
        objective="normalized cut of the limit of P_v <- S_v (mean_{u != v} P_u) S_v^T",
        needs="n_neighbors, scale",
        cost="O(n^2 k) per view and round, 20 rounds",
    )
    family = "diffusion"
    solve_counts = False

    n_neighbors: int | None = param(Neighbors(20), default=None)
    mu: float = param(positive, default=0.5)
    n_rounds: int = param(integer(1), default=20)

    affinity_matrix_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Graph:
        """Return the fused similarities."""
        k = self._neighbors(views.n_samples)
        return Graph(
            solve_snf(
                *zip(*(similarities(X, k, self.mu) for X in Xs), strict=True),
                n_rounds=self.n_rounds,
            )
        )

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices, of float64: two of every view, and six."""
        return (6.0 + 2 * len(views.arrays)) * 8 / views.itemsize, 0.0


def similarities(X: Any, k: int, mu: float) -> tuple[np.ndarray, sp.csr_array]:
    """Similarities P of one view, samples in rows, and its links S.

    Examples
    --------
    >>> P, S = similarities(np.array([[0.0], [1.0], [3.0]]), 1, 0.5)
    >>> np.diag(P), S.sum(axis=1)
    (array([0.5, 0.5, 0.5]), array([1., 1., 1.]))
    """
    near, X = nearest_neighbors(X, k), X.astype(np.float64)
    m = near.mean_distances
    P = normalized(local_kernel(squared_distances(X), m[:, None] + m, mu))
    S = near.graph(P[near.rows, near.shares.indices]) + sp.diags_array(np.diag(P))
    return P, sp.csr_array(sp.diags_array(1 / S.sum(axis=1)) @ S)  # eq. (2)


def normalized(W: np.ndarray) -> np.ndarray:
    """Give the diagonal half of the weight of every row of a symmetric W, then symmetrize.

    ``(N(W) + N(W)^T) / 2`` with eq. (1), in one pass.

    Examples
    --------
    >>> normalized(np.array([[9.0, 1.0, 3.0], [1.0, 9.0, 0.0], [3.0, 0.0, 9.0]]))
    array([[0.5   , 0.3125, 0.4375],
           [0.3125, 0.5   , 0.    ],
           [0.4375, 0.    , 0.5   ]])
    """
    others = np.sum(W, axis=1) - np.diag(W)
    halves = 0.25 / np.where(others > 0, others, 1)
    P = halves[:, None] + halves
    P *= W
    np.fill_diagonal(P, 0.5)
    return P


def solve_snf(
    Ps: Sequence[np.ndarray], Ss: Sequence[sp.csr_array], *, n_rounds: int = 20
) -> np.ndarray:
    """Fuse the similarities of the views.

    Examples
    --------
    >>> views = [np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([[0.0], [2.0], [6.0], [7.0]])]
    >>> Ps, Ss = zip(*(similarities(X, 1, 0.5) for X in views))
    >>> W = solve_snf(Ps, Ss)
    >>> bool(W[0, 1] > 100 * W[0, 2])
    True
    """
    m = len(Ps)
    for _ in range(n_rounds):
        total: Any = sum(Ps)
        others = ((total - P) / (m - 1) if m > 1 else P for P in Ps)
        Ps = [normalized(diffused(S, M)) for S, M in zip(Ss, others, strict=True)]  # eq. (3)
    fused: Any = sum(Ps)
    return normalized(fused / m)
