"""DiMSC: diversity-induced multi-view subspace clustering.

Every view has its own smooth representation, and those of different views should differ, as
measured by the Hilbert-Schmidt independence criterion with linear kernels. Objective, with
samples in the columns of X_v (d_v x n), L_v the Laplacian of a neighbor graph and
H = I - 1 1^T / n::

    min sum_v |X_v - X_v Z_v|_F^2 + lam_s sum_v tr(Z_v L_v Z_v^T) + lam_v sum_{v<w} HSIC(Z_v, Z_w)
    HSIC(Z_v, Z_w) = tr(K_v H K_w H),  K_v = Z_v^T Z_v

It starts at lam_v = 0; each iteration updates one view at a time to the best Z_v given the others,
the solution of a Sylvester equation, so that the objective never rises::

    X_v^T X_v Z_v + Z_v (lam_s L_v + lam_v sum_{w != v} H K_w H) = X_v^T X_v

Where this is singular, the Z_v of least norm is taken. As in the paper, the factor (n - 1)^-2 of
HSIC is part of lam_v. The paper leaves the graph open: here two samples are linked, with weight 1,
if one is among the ``n_neighbors`` nearest of the other; samples tied for the last place share it.
The affinity is the sum of all ``|Z_v| + |Z_v|^T``.

Reference: X. Cao, C. Zhang, H. Fu, S. Liu, H. Zhang, "Diversity-induced multi-view subspace
clustering", CVPR 2015.
"""

from collections.abc import Sequence

import numpy as np
from array_api_compat import array_namespace, device

from polyspan.base import About, Representation, RepresentationClusterer
from polyspan.graphs import proximity
from polyspan.graphs.ties import neighbor_shares, tie_slack
from polyspan.inputs.params import Neighbors, param, positive, weight
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, to_numpy
from polyspan.solvers.eigen import eigh
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import orthogonal_rows


class DiMSC(RepresentationClusterer):
    """Diversity-induced multi-view subspace clustering: one representation per view, diverse.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors in the graphs of the views; None is min(5, n - 1).
    lam_s, lam_v : float, default=0.1 and 1.0
        Weights of smoothness and of diversity. These and ``n_neighbors`` were chosen by a grid
        search on 3-Sources, using its labels, and on planted subspaces.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-4
        Stop when the relative decrease of the objective is smaller.
    affinity, n_kept, scale, n_init, views, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, affinity_matrix_, n_iter_
        As in `GRMSC`.
    representation_ : (n, n) array
        Mean of the ``|Z_v|``.
    history_ : dict
        Per iteration: ``fall``, the relative decrease of the objective.

    Examples
    --------
    >>> from polyspan import DiMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> DiMSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Cao et al., CVPR 2015",
        objective=(
            "min sum_v |X_v - X_v Z_v|_F^2 + lam_s tr(Z_v L_v Z_v^T) + lam_v sum_{v<w} "
            "HSIC(Z_v, Z_w)"
        ),
        needs="n_neighbors, lam_s, lam_v",
        cost="O(m n^3) per iteration, about 3 iterations",
    )
    solve_counts = False

    n_neighbors: int | None = param(Neighbors(5), default=None)
    lam_s: float = param(positive, default=0.1)
    lam_v: float = param(weight, default=1.0)
    tol: float = 1e-4

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return the mean of the ``|Z_v|``."""
        k = self._neighbors(views.n_samples)
        Ls = [proximity.laplacian(neighbor_graph(X, k)) for X in Xs]
        run = self._run()
        Zs = solve_dimsc(Xs, Ls, lam_s=self.lam_s, lam_v=self.lam_v, run=run)
        return Representation(sum(array_namespace(Z).abs(Z) for Z in Zs) / len(Zs), **run.record())

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: Z, K, L and its eigenvectors per view."""
        return super().footprint(views)[0] + 4 * len(views.arrays), 0.0


def neighbor_graph(X: Array, k: int) -> np.ndarray:
    """Link two samples if one is among the k nearest of the other; samples that tie share a link.

    Examples
    --------
    >>> neighbor_graph(np.array([[0.0], [1.0], [3.0]]), 1)
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """
    D2 = proximity.squared_distances(X)
    W = to_numpy(neighbor_shares(D2, k, tie_slack(X))).astype(np.float64)
    return np.maximum(W, W.T)


def solve_dimsc(
    Xs: Sequence[Array],
    Ls: Sequence[np.ndarray],
    *,
    lam_s: float,
    lam_v: float,
    run: Run | None = None,
) -> list[Array]:
    """Representations Z_v of views Xs (samples in rows) with Laplacians Ls.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> L = proximity.laplacian(neighbor_graph(X, 3))
    >>> Z, _ = solve_dimsc([X, X], [L, L], lam_s=1e-6, lam_v=1e-6)
    >>> np.allclose(X.T @ Z, X.T, atol=1e-3)
    True
    """
    run = Run("DiMSC", 100, 1e-4) if run is None else run
    Rs, squares, _ = zip(*(orthogonal_rows(X) for X in Xs), strict=True)
    xp = array_namespace(*Rs)
    where = {"dtype": Rs[0].dtype, "device": device(Rs[0])}
    Ms = [lam_s * xp.asarray(L, **where) for L in Ls]
    Zs = [_smooth(*view) for view in zip(Rs, squares, Ms, strict=True)]
    Ks = [_centered_kernel(Z) for Z in Zs]
    before = _objective(Rs, Ms, Zs, Ks, lam_v)
    for _ in run:
        for v, (R, s2, M) in enumerate(zip(Rs, squares, Ms, strict=True)):
            others = (lam_v * K for w, K in enumerate(Ks) if w != v)
            Zs[v] = _smooth(R, s2, sum(others, start=M))
            Ks[v] = _centered_kernel(Zs[v])
        now = _objective(Rs, Ms, Zs, Ks, lam_v)
        run.check(fall=1 - now / before if before > 0 else 0.0)
        before = now
    return Zs


def _smooth(R: Array, s2: Array, M: Array) -> Array:
    """Solve ``R^T R Z + Z M = R^T R`` for R with orthogonal rows and positive semi-definite M."""
    xp = array_namespace(R)
    m, V = eigh(M)
    bottom = s2 + xp.clip(m, min=0.0)[None, :]
    return R.T @ (R @ V / xp.where(bottom > 0, bottom, xp.ones_like(bottom)) @ V.T)


def _centered_kernel(Z: Array) -> Array:
    """H Z^T Z H."""
    Z = Z - array_namespace(Z).mean(Z, axis=1, keepdims=True)
    return Z.T @ Z


def _objective(
    Rs: Sequence[Array], Ms: Sequence[Array], Zs: Sequence[Array], Ks: Sequence[Array], lam_v: float
) -> float:
    xp = array_namespace(*Rs)
    data = sum(float(xp.sum((R - R @ Z) ** 2)) for R, Z in zip(Rs, Zs, strict=True))
    smooth = sum(float(xp.sum((Z @ M) * Z)) for Z, M in zip(Zs, Ms, strict=True))
    pairs = [(K, Ks[w]) for v, K in enumerate(Ks) for w in range(v)]
    return data + smooth + lam_v * sum(float(xp.sum(K1 * K2)) for K1, K2 in pairs)
