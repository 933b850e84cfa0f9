"""GMC: graph-based multi-view clustering.

Each view gives a graph S_v of its k nearest neighbors, and all views together give one graph U.
They improve each other until U has exactly c connected components, the clusters::

    min sum_v (sum_ij d_v,ij s_v,ij + alpha |S_v|_F^2 + w_v |U - S_v|_F^2)
        + 2 lam_components tr(F^T L_U F)
    s.t. rows of S_v and U on the simplex, F^T F = I,   w_v = 1 / (2 |U - S_v|_F)

with d squared distances, alpha such that rows of S_v have k entries, and L_U the Laplacian of
(U + U^T)/2. With e_v,ij = d_v,ij - 2 w_v u_ij and the neighbors j = 1 ... k + 1 of i in view v,
one iteration is::

    S_v : s_ij = max(0, (e_i,k+1 - e_ij) / (k e_i,k+1 - sum_{h<=k} e_ih))
    w_v = 1 / (2 |U - S_v|_F)
    U   : row i = mean_v (s_v,ij - lam_components / (2 m w_v) |f_i - f_j|^2) on the simplex
    F   : the c lowest eigenvectors of L_U; lam_components by the rank rule, `proximity.rank_step`

The U step is not the minimizer of this objective, in the paper and in its program alike: that would
have the mean of the S_v with the weights w_v, where they have the plain mean, and lam_components /
(2 sum_v w_v) as the factor of |f_i - f_j|^2. So ``as_released`` does not change it.

As in the program behind the published figures, the neighbors are those by d and never change, U
is non-zero only where some S_v is, and numerator and denominator of the S_v step may both be
negative (on Prokaryotic that matters: NMI .07 without). Where several samples are as far as the
(k + 1)-th, e_i,k+1 is their mean and none of them a neighbor. The program, ``as_released=True``,
gives ties to the lower row number, and takes the first of a sample's equals for the sample itself,
so that it depends on the order of the file. The published figures come out either way.

Reference: H. Wang, Y. Yang, B. Liu, "GMC: graph-based multi-view clustering", IEEE TKDE 32(6),
2020.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.base import About, Graph, Iterative
from polyspan.clustering.spectral import component_clustering
from polyspan.graphs import proximity
from polyspan.graphs.ties import gap_shares
from polyspan.inputs.params import Neighbors, PerView, fitted, flag, param, positive
from polyspan.inputs.scaling import SCALES, Scale, scale_view
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, to_numpy
from polyspan.solvers import prox
from polyspan.solvers.eigen import lowest_eigenpairs
from polyspan.solvers.loop import Run


class GMC(Iterative):
    """Graph-based multi-view clustering: the clusters are the components of a learned graph.

    Nothing is random as long as the graph reaches ``n_clusters`` components; otherwise there is a
    ``ConvergenceWarning`` and the labels come from spectral clustering of the graph. That is the
    usual case for a single view, where U stays equal to S and the rank term has no weight.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors k in the graphs of the views; None is min(15, n - 1).
    lam_components : float, default=1.0
        First weight of the rank term (lam in the paper); the rank rule doubles and halves it.
    as_released : bool, default=False
        Take neighbors at equal distances by their row numbers, see the module.
    scale : {"zscore", "unit", "standard+unit", "standard", None} or one per view, default="zscore"
        ``"zscore"``, as in the paper, gives every sample mean 0 and variance 1 over its features;
        this makes a sparse view dense. Views with one or two features are not scaled, because
        z-scores would leave only two distinct points.
    max_iter : int, default=20
        Maximum number of iterations.
    tol : float, default=1e-10
        Sums of eigenvalues of the Laplacian below this count as zero.
    n_init, views, random_state, verbose
        As in `GRMSC`; k-means runs only where spectral clustering is needed.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample: its connected component.
    affinity_matrix_ : (n, n) array
        The learned graph, ``(U + U^T) / 2``.
    weights_ : (m,) array
        Weights w_v of the views.
    n_iter_ : int
        Number of iterations.
    history_ : dict
        Per iteration: ``eigenvalues``, the sum of the c lowest of the Laplacian, zero if there are
        at least c components, and ``excess``, 1 if there are more.

    Examples
    --------
    >>> from polyspan import GMC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, subspace_dim=2, random_state=0)
    >>> GMC(n_clusters=3).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Wang et al., TKDE 2020, doi:10.1109/TKDE.2019.2903810",
        objective="min sum_v <D_v, S_v> + alpha |S_v|^2 + w_v |U - S_v|^2 "
        "+ 2 lam_components tr(F^T L_U F)",
        needs="n_neighbors; lam_components adapts itself; z-scored samples",
        cost="O(n^3 + m n^2) per iteration, up to 20 iterations",
    )

    sees_order = "as_released"  # ties go by row numbers

    n_neighbors: int | None = param(Neighbors(15), default=None)
    lam_components: float = param(positive, default=1.0)
    as_released: bool = param(flag, default=False)
    scale: Scale = param(PerView("zscore", *SCALES), default="zscore")
    max_iter: int = 20
    tol: float = 1e-10

    affinity_matrix_: Array = fitted()
    weights_: np.ndarray = fitted()

    def scaled(self, views: Views) -> list[Array]:
        """Scale samples; ``"zscore"`` is this method's own."""
        return [
            _zscore(view, name) if scale == "zscore" else scale_view(view, name, scale)
            for (view, name), scale in zip(views, self._scalings(views), strict=True)
        ]

    def solve(self, views: Views, Xs: list[Array]) -> Graph:
        """Return the learned graph, with the weights of the views."""
        k, run = self._neighbors(views.n_samples), self._run()
        params = self._given("lam_components", "as_released")
        U, w = solve_gmc(Xs, self.n_clusters, k=k, **params, run=run)
        return Graph((U + U.T) / 2, component_clustering, **run.record(), extras={"weights_": w})

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: two per view, and the dense features."""
        features = sum(view.shape[1] for view in views.arrays)
        return 12 + 2 * len(views.arrays) + 3 * features / views.n_samples, 0.0


def _zscore(view: Any, name: str) -> Any:
    """Give samples mean 0 and variance 1 over their features; constant samples become 0."""
    if view.shape[1] < 3:
        return scale_view(view, name, None)
    X = view.toarray() if sp.issparse(view) else to_numpy(view)
    X = X.astype(np.float64)
    size = np.max(np.abs(X), axis=1, keepdims=True)
    X = X / np.where(size > 0, size, 1)  # so that nothing overflows
    X = X - np.mean(X, axis=1, keepdims=True)
    spread = np.std(X, axis=1, ddof=1, keepdims=True)
    noise = 10 * np.finfo(np.float64).eps  # the spread of a constant sample is rounding errors
    return np.where(spread > noise, X / np.where(spread > noise, spread, 1), 0)


def solve_gmc(
    Xs: Sequence[Array],
    c: int,
    *,
    k: int = 15,
    lam_components: float = 1.0,
    as_released: bool = False,
    run: Run | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Graph U with c components and the weights w, for views Xs (scaled, samples in rows).

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0]])
    >>> U, w = solve_gmc([X], 2, k=2)
    >>> np.flatnonzero(U[:3].sum(axis=0)), np.allclose(U.sum(axis=1), 1)
    (array([0, 1, 2]), True)
    """
    run = Run("GMC", 20, 1e-10) if run is None else run
    near = [proximity.adaptive_ranks(X, k, as_released=as_released) for X in Xs]
    S = np.stack([gap_shares(*of_view) for of_view in near])
    m = len(Xs)
    w = np.full(m, 1 / m)
    U = np.mean(S, axis=0)
    _, F = lowest_eigenpairs(proximity.laplacian((U + U.T) / 2), c)
    for _ in run:
        for v, (D2, members, following) in enumerate(near):
            S[v] = np.maximum(gap_shares(D2 - 2 * w[v] * U, members, following), 0)
        w = 1 / (2 * np.maximum(np.linalg.norm(U - S, axis=(1, 2)), np.finfo(np.float64).eps))
        pull = lam_components * np.mean(1 / (2 * m * w))
        P = np.mean(S, axis=0) - pull * proximity.squared_distances(F)
        U = prox.simplex(np.where(np.any(S > 0, axis=0), P, -np.inf))
        F, factor, low = proximity.rank_step(U, F, run.tol)
        lam_components *= factor
        run.check(eigenvalues=low, excess=float(factor < 1))
    return U, w
