"""AMGL: the clustering method of parameter-free auto-weighted multiple graph learning.

With L_v the normalized Laplacian of the neighbor graph of view v::

    min_F sum_v sqrt(tr(F^T L_v F))   s.t.  F^T F = I

The square root weights the views without a parameter. One iteration is::

    alpha_v = 1 / (2 sqrt(tr(F^T L_v F)))
    F       = the c lowest eigenvectors of sum_v alpha_v L_v

and the objective never rises. k-means on the rows of F, not scaled, gives the labels.

The graphs are those of `proximity.adaptive_neighbors`. The program behind the published figures,
``as_released=True``, gives ties to the lower row number, and takes the first of a sample's equals
for the sample itself (3-Sources has duplicates), so that it depends on the order of the file.

Reference: F. Nie, J. Li, X. Li, "Parameter-free auto-weighted multiple graph learning: a framework
for multiview clustering and semi-supervised classification", IJCAI 2016.
"""

from collections.abc import Sequence

import numpy as np

from polyspan.base import About, Embedding, Iterative
from polyspan.graphs import proximity
from polyspan.inputs.params import Neighbors, fitted, flag, param
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, inverse_root
from polyspan.solvers.eigen import lowest_eigenpairs
from polyspan.solvers.loop import Run


class AMGL(Iterative):
    """Auto-weighted multiple graph learning: spectral clustering of a weighted sum of graphs.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors in the graphs of the views; None is min(5, n - 1).
    as_released : bool, default=False
        Take neighbors at equal distances by their row numbers, see the module.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        Scales samples to unit length; ``"standard+unit"`` standardizes the features first.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-8
        Stop when the relative decrease of the objective is smaller.
    n_init : int, default=20
        Restarts of k-means. The published tables use ``n_init=1``, hence their large standard
        deviations.
    views, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    embedding_ : (n, n_clusters) array
        F, which was clustered.
    weights_ : (m,) array
        Weights alpha_v of the views.
    affinity_matrix_ : (n, n) array
        Mean of the graphs of the views, weighted by ``weights_``.
    n_iter_ : int
        Number of iterations.
    history_ : dict
        Per iteration: ``fall``, the relative decrease of the objective.

    Examples
    --------
    >>> from polyspan import AMGL
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, subspace_dim=2, random_state=0)
    >>> AMGL(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Nie et al., IJCAI 2016",
        objective="min sum_v sqrt(tr(F^T L_v F)), F^T F = I",
        needs="no weight to tune; samples of unit length; as_released for the authors' scores",
        cost="O(n^3) per iteration, about 10 iterations",
    )
    sees_order = "as_released"  # ties go by row numbers

    n_neighbors: int | None = param(Neighbors(5), default=None)
    as_released: bool = param(flag, default=False)
    tol: float = 1e-8

    weights_: np.ndarray = fitted()
    affinity_matrix_: Array = fitted()
    embedding_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Embedding:
        """Return the embedding F, with the weights and the weighted graph."""
        k, run, Ws = self._neighbors(views.n_samples), self._run(), []
        for X in Xs:
            S = proximity.adaptive_neighbors(X, k, **self._given("as_released"))
            Ws.append((S + S.T) / 2)
        F, alpha = solve_amgl(Ws, self.n_clusters, run=run)
        W = np.tensordot(alpha / np.sum(alpha), Ws, axes=1)
        return Embedding(
            F, by_direction=False, **run.record(), extras={"weights_": alpha, "affinity_matrix_": W}
        )

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: three per view."""
        return 8.0 + 3 * len(views.arrays), 0.0


def solve_amgl(
    Ws: Sequence[np.ndarray], c: int, *, run: Run | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Embedding F and weights alpha of symmetric graphs without samples of degree zero.

    Examples
    --------
    >>> W = np.kron(np.eye(2), np.ones((3, 3))) + 0.1
    >>> F, alpha = solve_amgl([W, W], 2)
    >>> np.allclose(F.T @ F, np.eye(2)), bool(alpha[0] == alpha[1])
    (True, True)
    """
    run = Run("AMGL", 100, 1e-8) if run is None else run
    roots_of = [inverse_root(np.sum(W, axis=1)) for W in Ws]
    Ls = [
        r[:, None] * proximity.laplacian(W) * r[None, :] for r, W in zip(roots_of, Ws, strict=True)
    ]

    def step(alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Best F for given weights, and the roots of its traces."""
        _, F = lowest_eigenpairs(np.tensordot(alpha, Ls, axes=1), c)
        traces = np.array([np.sum(F * (L @ F)) for L in Ls])
        return F, np.sqrt(np.maximum(traces, 1e-12))  # of c pieces it is zero up to rounding

    alpha = np.full(len(Ls), 1 / len(Ls))
    F, roots = step(alpha)
    for _ in run:
        alpha = 1 / (2 * roots)
        before = np.sum(roots)
        F, roots = step(alpha)
        run.check(fall=1 - np.sum(roots) / before)
    return F, alpha
