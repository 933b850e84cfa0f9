"""CGD: cross-view graph diffusion.

W_v is the neighbor graph of view v, S_v = D^-1/2 W_v D^-1/2 with its degrees D. The graph A of all
views is smooth along the links of each of them, for pairs of pairs of samples::

    min_A sum_v b_v H_v(A) + lam_identity |A - I|_F^2
    H_v(A) = 1/2 sum_ijkl w_ij w_kl (a_ki / sqrt(d_i d_k) - a_lj / sqrt(d_j d_l))^2
           = |A|_F^2 - <A, S_v A S_v>

Setting the derivative to zero gives a diffusion, which starts from A = I::

    A <- sum_v a_v S_v A S_v + (1 - sum_v a_v) I,     a_v = b_v / (lam_identity + sum_u b_u)   (1)

and forgets its start by the factor 1 / (1 + lam_identity) in every round. The weights b_v are 1/V;
the paper learns them, with the penalty 19/2 |b|^2 of the authors' program, after every ten rounds::

    b <- argmin_b sum_v b_v H_v(A) + 19/2 |b|^2   s.t.  b >= 0, sum_v b_v = 1            (2)

H_v grows with n and the penalty does not: of many samples one view wins, the one that is smoothest
already. On most data equal weights are better, so they are the default. A is cut by spectral
clustering. As in the program W_v = (G + G^T) / 2, where G has exp(-(d_ij^2 / max d^2)^2 / .25) for
the neighbors j of i, and 1 for i itself, which is one of the k there and comes on top here.
Samples that are equally far share the last places among the k (`polyspan.graphs.knn`).

Reference: C. Tang, X. Liu, X. Zhu, E. Zhu, Z. Luo, L. Wang, W. Gao, "CGD: multi-view clustering via
cross-view graph diffusion", AAAI 2020.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.base import About, Graph, InNumPy
from polyspan.graphs.knn import diffused, nearest_neighbors
from polyspan.graphs.proximity import squared_distances
from polyspan.inputs.params import Neighbors, fitted, integer, one_of, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, inverse_root, sum_squares
from polyspan.solvers import prox

WIDTH = 0.5  # of the kernel, as a share of the largest squared distance
PENALTY = 19.0  # of unequal weights of the views
ALTERNATIONS = 10  # of diffusion and weights


class CGD(InNumPy):
    """Cross-view graph diffusion: one graph that is smooth along the links of every view.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors in the graph of every view; None is min(16, n - 1). Beyond 20,000 samples they
        are approximate: A depends a little on the order of the samples.
    lam_identity : float, default=0.3
        Weight of the distance from the identity, mu in the paper; less spreads the graph more.
    view_weights : {"fixed", "adaptive"}, default="fixed"
        Equal weights of the views, or learned ones as in the paper, which take ten times as long.
    n_rounds : int, default=10
        Rounds of diffusion.
    scale : {"unit", "standard+unit", None}, default="unit"
        Scaling of samples to unit length, after standardizing features if asked.
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
        The graph A.
    weights_ : (m,) array
        Weights b_v of the views.

    Examples
    --------
    >>> from polyspan import CGD
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, subspace_dim=2, random_state=0)
    >>> CGD(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Tang et al., AAAI 2020, doi:10.1609/aaai.v34i04.6052",
        objective="min sum_v b_v (|A|_F^2 - <A, S_v A S_v>) + lam_identity |A - I|_F^2",
        needs="n_neighbors, lam_identity, scale",
        cost="O(n^2 k) per view and round, 10 rounds",
    )
    family = "mean graph"
    solve_counts = False

    n_neighbors: int | None = param(Neighbors(16), default=None)
    lam_identity: float = param(positive, default=0.3)
    view_weights: str = param(one_of("fixed", "adaptive"), default="fixed")
    n_rounds: int = param(integer(1), default=10)

    weights_: np.ndarray = fitted()
    affinity_matrix_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Graph:
        """Return the graph A, and the weights of the views beside it."""
        k = self._neighbors(views.n_samples)
        A, b = solve_cgd(
            [neighbor_links(X, k) for X in Xs],
            **self._given("lam_identity", "view_weights", "n_rounds"),
        )
        return Graph(A, extras={"weights_": b})

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices, of float64: the graph, its next round, distances, eigenvectors."""
        return 8.0 * 8 / views.itemsize, 0.0


def neighbor_links(X: Any, k: int) -> sp.csr_array:
    """Normalized neighbor graph S of one view, samples in rows.

    Examples
    --------
    >>> neighbor_links(np.array([[0.0], [1.0], [3.0]]), 1).toarray().round(4)
    array([[0.5123, 0.4616, 0.    ],
           [0.4616, 0.459 , 0.1388],
           [0.    , 0.1388, 0.8151]])
    """
    near = nearest_neighbors(X, k)
    largest = np.max(squared_distances(X.astype(np.float64))) or 1.0
    G = near.graph(np.exp(-((near.squares / largest / WIDTH) ** 2)))
    W = (G + G.T) / 2 + sp.eye_array(X.shape[0])
    root = sp.diags_array(inverse_root(W.sum(axis=1)))
    return sp.csr_array(root @ W @ root)


def solve_cgd(
    Ss: Sequence[sp.csr_array],
    *,
    lam_identity: float = 0.3,
    view_weights: str = "fixed",
    n_rounds: int = 10,
) -> tuple[np.ndarray, np.ndarray]:
    """Graph A and weights b of views with the normalized graphs S_v.

    Examples
    --------
    >>> S = sp.csr_array(np.kron(np.eye(2), np.full((3, 3), 1 / 3)))
    >>> A, b = solve_cgd([S, S])
    >>> int(np.count_nonzero(A)), b
    (18, array([0.5, 0.5]))
    """
    n, b = Ss[0].shape[0], np.full(len(Ss), 1 / len(Ss))
    A, adaptive = np.eye(n), view_weights == "adaptive"
    for _ in range(ALTERNATIONS if adaptive else 1):
        a = b / (lam_identity + np.sum(b))
        for _ in range(n_rounds):
            A = sum(a_v * diffused(S, A) for a_v, S in zip(a, Ss, strict=True) if a_v > 0)
            A.flat[:: n + 1] += 1 - np.sum(a)  # eq. (1)
        if adaptive:
            H = np.array([sum_squares(A) - np.sum(A * diffused(S, A)) for S in Ss])
            b = prox.simplex(-H[None, :] / PENALTY)[0]  # eq. (2)
    return A, b
