"""AMGL: parameter-free auto-weighted multiple graph learning, its clustering method.

With L_v the normalised Laplacian of the neighbour graph of view v::

    min_F sum_v sqrt(tr(F^T L_v F))   s.t.  F^T F = I

The root weighs the views without a parameter: a turn is::

    alpha_v = 1 / (2 sqrt(tr(F^T L_v F)))
    F       = the c lowest eigenvectors of sum_v alpha_v L_v

and the objective never rises. k-means on the rows of F, as they are, gives the labels.

Reference: F. Nie, J. Li, X. Li, "Parameter-free auto-weighted multiple graph learning: a framework
for multiview clustering and semi-supervised classification", IJCAI 2016.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.cluster import KMeans

from polyspan.base import COMMON, About, MultiViewClusterer
from polyspan.clustering.spectral import quiet_kmeans
from polyspan.graphs import proximity
from polyspan.inputs.params import integer
from polyspan.inputs.scaling import scale_views
from polyspan.inputs.views import Views
from polyspan.solvers.eigen import lowest_eigenpairs
from polyspan.solvers.loop import Run


class AMGL(MultiViewClusterer):
    """Auto-weighted multiple graph learning: spectral clustering of a weighted sum of graphs.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbours in the graphs of the views; None is min(5, n - 1).
    scale : {"unit", "standard+unit", None}, default="unit"
        Scaling of samples to unit length, after standardising features if asked.
    max_iter : int, default=100
        Most turns.
    tol : float, default=1e-8
        Stop when the objective falls by less, relatively.
    n_init : int, default=20
        Restarts of k-means. The published tables have ``n_init=1``, hence their large standard
        deviations.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views.
    random_state : int, RandomState or None, default=None
        Seeds k-means.
    verbose : int, default=0
        Print every ``verbose``-th turn.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    embedding_ : (n, n_clusters) array
        F, what was clustered.
    weights_ : (m,) array
        Weights alpha_v of the views.
    affinity_matrix_ : (n, n) array
        Sum of the graphs of the views, weighted by ``weights_`` over their sum.
    n_iter_ : int
        Turns done.
    history_ : dict
        Per turn: ``fall``, by how much of itself the objective fell.

    Examples
    --------
    >>> from polyspan import AMGL
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, subspace_dim=2, random_state=0)
    >>> AMGL(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    _about = About(
        paper="Nie et al., IJCAI 2016",
        objective="min sum_v sqrt(tr(F^T L_v F)), F^T F = I",
        needs="no weights; unit samples",
        cost="O(n^3) per turn, about 10 turns",
    )
    _checks = {name: check for name, check in COMMON.items() if name not in ("affinity", "n_kept")}
    _checks |= {"n_neighbors": integer(1, none="min(5, n - 1)")}

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int | None = None,
        scale: str | None = "unit",
        max_iter: int = 100,
        tol: float = 1e-8,
        n_init: int = 20,
        views: Sequence[Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.views = views
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples; ``X`` as in every method, ``y`` is ignored."""
        views = self._check(X)
        k = min(5, views.n_samples - 1) if self.n_neighbors is None else self.n_neighbors
        Ws = []
        for view in scale_views(views, self.scale):
            S = proximity.adaptive_neighbors(proximity.squared_distances(view, ties=True), k)
            Ws.append((S + S.T) / 2)
        run = self._run()
        self.embedding_, alpha = solve_amgl(Ws, self.n_clusters, run=run)
        self.n_iter_ = run.n_iter
        self.weights_ = alpha
        self.affinity_matrix_ = np.tensordot(alpha / np.sum(alpha), Ws, axes=1)
        with quiet_kmeans():
            self.labels_ = KMeans(
                self.n_clusters, n_init=self.n_init, random_state=self.random_state
            ).fit_predict(self.embedding_)
        return self

    def _n_square(self, views: Views) -> float:
        return 8 + 3 * len(views.arrays)


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
    Ls = [_normalized_laplacian(W) for W in Ws]

    def step(alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Best F for given weights, and the roots of its traces."""
        _, F = lowest_eigenpairs(np.tensordot(alpha, Ls, axes=1), c)
        traces = np.array([np.sum(F * (L @ F)) for L in Ls])
        return F, np.sqrt(np.maximum(traces, 1e-12))  # zero, but for rounding, in c pieces

    alpha = np.full(len(Ls), 1 / len(Ls))
    F, roots = step(alpha)
    for _ in run:
        alpha = 1 / (2 * roots)
        before = np.sum(roots)
        F, roots = step(alpha)
        run.check(fall=1 - np.sum(roots) / before)
    return F, alpha


def _normalized_laplacian(W: np.ndarray) -> np.ndarray:
    """Return ``D^-1/2 (D - W) D^-1/2``."""
    root = 1 / np.sqrt(np.sum(W, axis=1))
    return root[:, None] * proximity.laplacian(W) * root[None, :]
