"""GSF: graph structure fusion.

Each view gives a graph S_v of its k nearest neighbors, and their entrywise product one graph A of
what is near in all views. A graph S with exactly c connected components, the clusters, is learned
from it::

    min tr(U^T L_S U) - lam_agreement tr(S A) + lam_ridge |S|_F^2
    s.t. rows of S on the simplex, U^T U = I

with L_S the Laplacian of (S + S^T)/2. S_v has the probabilistic neighbors of
`proximity.adaptive_neighbors`. A row of S is non-zero only among the n_candidates samples that are
nearest in the first U, the c lowest eigenvectors of the Laplacian of A. One iteration is::

    S : row i = (lam_agreement a_ij - |u_i - u_j|^2) / (2 lam_ridge) on the simplex
    U : the c lowest eigenvectors of L_S
    lam_ridge : halved if there are fewer than c components; doubled, and U set back, if more

Reference: K. Zhan, C. Niu, C. Chen, F. Nie, C. Zhang, Y. Yang, "Graph structure fusion for
multiview clustering", IEEE TKDE 31(10), 2019. The paper leaves open, and is decided here:

- A sample may have no neighbor that all views share; with sparse texts most samples have none. It
  is then linked by the mean of the S_v to the power of the number of views, which the product
  equals where the views agree and is below elsewhere.
- Nothing depends on the order of the samples: a sample is never its own neighbor, though it may
  have duplicates, and all candidates that are equally far count. If A has more than c components,
  the first U has one eigenvector for each, as c of them could be any.
- The authors set both numbers of neighbors anew for every data set (39 and 6 on one with 40
  classes). Here there are 30, as in `GRMSC`, and 15 candidates, as many as neighbors in `GMC`;
  scores of a small grid on up to seven data sets were in sight. They change a good deal with both.
"""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from polyspan.base import About, Graph, Iterative
from polyspan.clustering.spectral import component_clustering
from polyspan.graphs import proximity
from polyspan.graphs.proximity import adaptive_neighbors
from polyspan.inputs.params import Neighbors, fitted, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array
from polyspan.solvers import prox
from polyspan.solvers.eigen import lowest_eigenpairs
from polyspan.solvers.loop import Run

TIED = 1e-9  # squared distances in the embedding that are equal, in mean squared lengths


class GSF(Iterative):
    """Graph structure fusion: components of a graph learned from what is near in all views.

    Nothing is random as long as the graph reaches ``n_clusters`` components; otherwise there is a
    ``ConvergenceWarning`` and the labels come from spectral clustering of the graph.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors in the graphs of the views, K1 in the paper; None is min(30, n - 1).
    n_candidates : int or None, default=None
        Samples that a sample may be linked to, K2 in the paper; None is min(15, n - 1).
    lam_agreement : float, default=1.0
        Weight of the agreement with the product of the views' graphs, gamma1 in the paper.
    lam_ridge : float, default=1.0
        First weight of the squared norm of S, gamma2 in the paper; it is halved and doubled until
        S has its components.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        As in `GRMSC`.
    max_iter : int, default=30
        Maximum number of iterations.
    tol : float, default=1e-5
        Sums of eigenvalues of the Laplacian below this count as zero.
    n_init, views, random_state, verbose
        As in `GRMSC`; k-means runs only where spectral clustering is needed.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample: its connected component.
    affinity_matrix_ : (n, n) array
        The learned graph, ``(S + S^T) / 2``.
    n_iter_ : int
        Number of iterations.
    history_ : dict
        Per iteration: ``eigenvalues`` and ``excess`` as in `GMC`.

    Examples
    --------
    >>> from polyspan import GSF
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, subspace_dim=2, random_state=0)
    >>> GSF(n_clusters=3).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Zhan et al., TKDE 2019, doi:10.1109/TKDE.2018.2872061",
        objective="min tr(U^T L_S U) - lam_agreement tr(S A) + lam_ridge |S|_F^2, "
        "A the product of the views' graphs",
        needs="n_neighbors, n_candidates; lam_ridge adapts itself",
        cost="O(n^3) per iteration, about 10 iterations",
    )

    n_neighbors: int | None = param(Neighbors(30), default=None)
    n_candidates: int | None = param(Neighbors(15), default=None)
    lam_agreement: float = param(positive, default=1.0)
    lam_ridge: float = param(positive, default=1.0)
    max_iter: int = 30
    tol: float = 1e-5

    affinity_matrix_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Graph:
        """Return the learned graph."""
        n, run = views.n_samples, self._run()
        A = fused_graph([adaptive_neighbors(X, self._neighbors(n)) for X in Xs])
        k, params = self._neighbors(n, "n_candidates"), self._given("lam_agreement", "lam_ridge")
        return Graph(
            solve_gsf(A, self.n_clusters, k, **params, run=run),
            component_clustering,
            **run.record(),
        )

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: one per view."""
        return 14.0 + len(views.arrays), 0.0


def solve_gsf(
    A: np.ndarray,
    c: int,
    k: int,
    *,
    lam_agreement: float = 1.0,
    lam_ridge: float = 1.0,
    run: Run | None = None,
) -> np.ndarray:
    """Symmetric graph S with c components among the k candidates of every sample, from A.

    Examples
    --------
    >>> A = np.kron(np.eye(2), np.ones((3, 3)) - np.eye(3)) / 2 + 0.01
    >>> S = solve_gsf(A, 2, 2)
    >>> np.flatnonzero(S[0]), S.sum(axis=1).round(6)
    (array([1, 2]), array([1., 1., 1., 1., 1., 1.]))
    """
    run = Run("GSF", 30, 1e-5) if run is None else run
    pieces = connected_components(sp.csr_array(A), directed=False)[0]
    U = lowest_eigenpairs(proximity.laplacian(A), max(c, pieces))[1]
    near = _candidates(U, k)
    for _ in run:
        P = lam_agreement * A - proximity.squared_distances(U)
        S = prox.simplex(np.where(near, P / (2 * lam_ridge), -np.inf))
        S = (S + S.T) / 2
        F, factor, low = proximity.rank_step(S, U[:, :c], run.tol)
        U = F if factor >= 1 else U
        lam_ridge /= factor
        run.check(eigenvalues=low, excess=float(factor < 1))
    return S


def _candidates(U: np.ndarray, k: int) -> np.ndarray:
    """Which others are among the k nearest of a row of U, all that are equally far included."""
    E = proximity.squared_distances(U)
    np.fill_diagonal(E, np.inf)
    limit = np.partition(E, k - 1, axis=1)[:, k - 1 : k]
    near: np.ndarray = limit + TIED * np.sum(U * U) / len(U) >= E
    return near


def fused_graph(Ss: Sequence[np.ndarray]) -> np.ndarray:
    """Entrywise product A of the views' graphs, symmetric; no sample is without links (GSF).

    Examples
    --------
    >>> one, two = np.zeros((2, 3, 3))
    >>> one[[0, 1, 2], [1, 0, 0]] = two[[0, 1, 2], [1, 0, 1]] = 1
    >>> fused_graph([one, two])  # the third has no neighbor that both views share
    array([[0.   , 1.   , 0.125],
           [1.   , 0.   , 0.125],
           [0.125, 0.125, 0.   ]])
    """
    A = np.prod(Ss, axis=0)
    A = (A + A.T) / 2
    lonely = ~np.any(A > 0, axis=1)
    if np.any(lonely):
        mean = np.mean(Ss, axis=0) ** len(Ss)
        A = np.where(lonely[:, None] | lonely[None, :], (mean + mean.T) / 2, A)
    return A
