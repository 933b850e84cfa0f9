"""MVSC: multi-view subspace clustering with one common indicator.

Every view has its own representation, and one indicator matrix F (n x c) fits all their graphs.
Objective, with samples in the columns of X_v (d_v x n)::

    min sum_v |X_v - X_v Z_v - E_v|_F^2 + lam_cut tr(F^T (D_v - W_v) F) + lam |E_v|_1
    s.t. 1^T Z_v = 1^T,  diag Z_v = 0,  F^T F = I,  W_v = (|Z_v| + |Z_v|^T) / 2

The trace is the sum of ``P_ij |z_ij| / 2`` with P_ij the squared distance of rows i and j of F:
samples that F separates are penalized for representing each other. One iteration is::

    Z_v = argmin |X_v - E_v - X_v Z|_F^2 + lam_cut/2 sum_ij P_ij |z_ij|   s.t. the constraints
    E_v = X_v - X_v Z_v, entries shrunk by lam/2
    F   = the c lowest eigenvectors of sum_v (D_v - W_v)

and the objective never rises, except within the tolerance of the first step. ADMM solves this step,
starting where the last iteration ended, to a tenth of ``tol`` or for ``max_inner`` iterations::

    A  = argmin |X - E - X A|_F^2 + rho/2 |A - Z + Y/rho|_F^2   s.t.  1^T A = 1^T
    Z  = A + Y/rho, entries shrunk by lam_cut P_ij / (2 rho), zero diagonal
    Y += rho (A - Z)

The paper takes the labels from k-means on the rows of F (``labels_from="indicator"``; here they are
scaled to unit length). With an unnormalized Laplacian a few outliers can take up whole columns of
F: on 3-Sources that leaves one cluster with nearly all samples. So the default is normalized
spectral clustering of the sum of the W_v. The paper does not give the start, here E = 0 with all
P_ij = 2c/n, their mean for any centered F, nor rho, here constant.

Reference: H. Gao, F. Nie, X. Li, H. Huang, "Multi-view subspace clustering", ICCV 2015.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from polyspan.base import About, Embedding, Graph, Iterative
from polyspan.graphs import proximity
from polyspan.inputs.params import fitted, integer, one_of, param, positive, weight
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, to_numpy
from polyspan.solvers import prox
from polyspan.solvers.eigen import lowest_eigenpairs
from polyspan.solvers.loop import Run


class MVSC(Iterative):
    """Multi-view subspace clustering with one cluster indicator for all views.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam_cut : float, default=0.1
        Weight of the common indicator, lam1 in the paper. This and ``labels_from`` were chosen on
        3-Sources, using its labels.
    lam : float, default=0.1
        Weight of the entrywise errors, lam2 in the paper.
    labels_from : {"graph", "indicator"}, default="graph"
        Cluster the sum of the W_v by normalized spectral clustering, or the rows of F by k-means
        as in the paper.
    max_inner : int, default=100
        Maximum number of iterations of ADMM, which finds the representations.
    max_iter : int, default=50
        Maximum number of iterations.
    tol : float, default=1e-3
        Stop when the objective falls by less than this fraction of the squared size of the views.
    scale, n_init, views, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, n_iter_
        As in `GRMSC`.
    embedding_ : (n, n_clusters) array
        F, the common indicator.
    affinity_matrix_ : (n, n) array
        Sum of the W_v.
    history_ : dict
        Per iteration: ``fall`` of the objective, as a share of the views' squared size, at most 1.

    Examples
    --------
    >>> from polyspan import MVSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> MVSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    solves_products = True
    about = About(
        paper="Gao et al., ICCV 2015",
        objective="min sum_v |X_v - X_v Z_v - E_v|_F^2 + lam_cut tr(F^T L_v F) + lam |E_v|_1, "
        "F^T F = I, 1^T Z_v = 1^T, diag Z_v = 0",
        needs="lam_cut, lam; dense features",
        cost="O(m n^2 (100 n + d)) per iteration, about 5 iterations",
    )

    lam_cut: float = param(positive, default=0.1)
    lam: float = param(weight, default=0.1)
    labels_from: str = param(one_of("graph", "indicator"), default="graph")
    max_inner: int = param(integer(1), default=100)
    max_iter: int = 50
    tol: float = 1e-3

    affinity_matrix_: Array = fitted()
    embedding_: Array = fitted()

    def scaled(self, views: Views) -> list[Array]:
        """Scale samples, and make the views dense NumPy arrays."""
        Xs = super().scaled(views)
        return [X.toarray() if sp.issparse(X) else to_numpy(X) for X in Xs]

    def solve(self, views: Views, Xs: list[Array]) -> Graph | Embedding:
        """Return the sum of the W_v, with the common indicator F."""
        run = self._run()
        params = self._given("lam_cut", "lam", "max_inner")
        Zs, F = solve_mvsc(Xs, self.n_clusters, **params, run=run)
        W, record = sum(map(_graph, Zs)), run.record()
        if self.labels_from == "indicator":
            return Embedding(F, **record, extras={"affinity_matrix_": W})
        return Graph(W, **record, extras={"embedding_": F})

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: five per view, and the dense features."""
        n = views.n_samples
        return 10 + 5 * len(views.arrays) + 4 * sum(x.shape[1] for x in views.arrays) / n, 0.0


def solve_mvsc(
    Xs: Sequence[np.ndarray],
    c: int,
    *,
    lam_cut: float,
    lam: float,
    max_inner: int = 100,
    run: Run | None = None,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Representations Z_v of views Xs (samples in rows) and the common indicator F (n x c).

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> (Z,), F = solve_mvsc([X], 2, lam_cut=0.1, lam=0.1)
    >>> bool(np.all(np.diag(Z) == 0)), np.allclose(Z.sum(axis=0), 1, atol=0.01), F.shape
    (True, True, (9, 2))
    """
    run = Run("MVSC", 50, 1e-3) if run is None else run
    n = Xs[0].shape[0]
    steps = [RepresentationStep(X) for X in Xs]
    Es = [np.zeros_like(X.T) for X in Xs]
    P = np.full((n, n), 2 * c / n)
    size = sum(float(np.sum(X * X)) for X in Xs)
    before = np.inf
    for _ in run:
        total = 0.0
        Zs = []
        for v, (X, step) in enumerate(zip(Xs, steps, strict=True)):
            Z = step(Es[v], lam_cut / 2 * P, run.tol / 10, max_inner)
            D = X.T - X.T @ Z
            Es[v] = prox.soft(D, lam / 2)
            total += float(np.sum((D - Es[v]) ** 2) + lam * np.sum(np.abs(Es[v])))
            Zs.append(Z)
        w, F = lowest_eigenpairs(proximity.laplacian(sum(map(_graph, Zs))), c)
        P = proximity.squared_distances(F)
        total += lam_cut * float(np.sum(w))
        run.check(fall=min((before - total) / size, 1.0))
        before = total
    return Zs, F


def _graph(Z: np.ndarray) -> np.ndarray:
    A = np.abs(Z)
    return (A + A.T) / 2


class RepresentationStep:
    """The Z step of one view; each call starts where the last one ended."""

    def __init__(self, X: np.ndarray) -> None:
        n = X.shape[0]
        self.X, self.G = X, X @ X.T
        self.rho = 2 * np.trace(self.G) / n  # of the same size as 2 G
        M = np.linalg.inv(2 * self.G + self.rho * np.eye(n))
        ones = np.sum(M, axis=1, keepdims=True)
        self.M, self.ones = M, ones / np.sum(ones)
        self.Z, self.Y = np.zeros((2, n, n))

    def __call__(
        self, E: np.ndarray, weights: np.ndarray, tol: float, max_inner: int
    ) -> np.ndarray:
        """Return ``argmin |X - E - X Z|_F^2 + sum weights |Z|`` with sums 1 and zero diagonal."""
        rho, Z, Y = self.rho, self.Z, self.Y
        B = 2 * (self.G - self.X @ E)
        for _ in range(max_inner):
            A = self.M @ (B + rho * Z - Y)
            A -= self.ones * (np.sum(A, axis=0) - 1)  # the multiplier of 1^T A = 1^T
            before, Z = Z, prox.soft(A + Y / rho, weights / rho)
            np.fill_diagonal(Z, 0)
            Y = Y + rho * (A - Z)
            if max(np.max(np.abs(A - Z)), np.max(np.abs(Z - before))) < tol:
                break
        self.Z, self.Y = Z, Y
        return Z
