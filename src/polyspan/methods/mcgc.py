"""MCGC: multiview consensus graph clustering.

Each view gives a graph W_v with c components; embeddings U_v of the views and one graph S are made
to agree, and S is also made to have c components, the clusters::

    max sum_v tr(U_v^T (W_v + lam_agreement S) U_v) - |S|_F^2 / 2 - lam_components tr(H^T L_S H)
    s.t. U_v^T U_v = I, H^T H = I, rows of S on the simplex

One iteration, with A = lam_agreement sum_v U_v U_v^T::

    U_v : the c highest eigenvectors of W_v + lam_agreement S
    S   : row i = a_ij - lam_components/2 |h_i - h_j|^2 on the simplex, then (S + S^T)/2
    H   : the c lowest eigenvectors of the Laplacian L_S; lam_components by the rank rule

The last two are repeated until S has c components; the rank rule is `proximity.rank_step`. W_v
solves ``min sum_j d_ij w_ij + a_i w_ij^2 + t |f_i - f_j|^2 w_ij`` over the others j, with a_i such
that t = 0 gives the k probabilistic neighbors of `proximity.adaptive_neighbors`, by the same
alternation.

Reference: K. Zhan, F. Nie, J. Wang, Y. Yang, "Multiview consensus graph clustering", IEEE TIP
28(3), 2019. The paper leaves the starts open; here S starts as the mean of the W_v, t as the mean
of the a_i, and lam_components is a parameter. The iterations end when the components stay. The
authors' program (``as_released=True``) differs, as its public source shows: once W_v has started,
it drops the distances d and keeps only |f_i - f_j|^2 over the k nearest, to a tolerance of 1e-11;
ties go to the lower row number, so that it depends on the order of the file; S starts as A of the
W_v alone, may take 50 steps to reach its components (30 here), and all 5 iterations are made. Its
figures need the first and the start (3-Sources, lam_agreement .6, 2: NMI .73, .77, not .63, .64).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from polyspan.base import About, Graph, Iterative
from polyspan.clustering.spectral import component_clustering
from polyspan.graphs import proximity
from polyspan.graphs.ties import gap_shares, tie_slack
from polyspan.inputs.params import Neighbors, fitted, flag, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, to_numpy
from polyspan.solvers import prox
from polyspan.solvers.eigen import lowest_eigenpairs
from polyspan.solvers.loop import Run

RANK_ITERATIONS = 30  # at most, to reach c components; the weight has then grown by 1e9
RELEASED_RANK_ITERATIONS = 50  # the same for S in the authors' program


class MCGC(Iterative):
    """Multiview consensus graph clustering: the clusters are the components of a learned graph.

    Nothing is random as long as the graph reaches ``n_clusters`` components; otherwise there is a
    ``ConvergenceWarning`` and the labels come from spectral clustering of the graph.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors k in the graphs of the views; None is min(15, n - 1).
    lam_agreement : float, default=2.0
        Weight of the agreement between the views and the consensus graph, beta in the paper.
    lam_components : float, default=1.0
        First weight of the rank term (gamma in the paper); the rank rule doubles and halves it.
    as_released : bool, default=False
        Build the graphs of the views, start S and count iterations as in the authors' program,
        see the module.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        Scales samples to unit length; ``"standard+unit"`` standardizes the features first.
    max_iter : int, default=5
        Maximum number of iterations. They end when the components stay the same;
        ``as_released`` makes all.
    tol : float, default=1e-10
        Sums of eigenvalues of the Laplacian below this count as zero; ``as_released`` takes a tenth
        of it in the graphs of the views.
    n_init, views, random_state, verbose
        As in `GRMSC`; k-means runs only where spectral clustering is needed.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample: its connected component.
    affinity_matrix_ : (n, n) array
        The learned graph S.
    n_iter_ : int
        Number of iterations.
    history_ : dict
        Per iteration: ``eigenvalues`` and ``excess`` as in `GMC`, and ``moved``, the share of
        samples whose component has a different number than before.

    Examples
    --------
    >>> from polyspan import MCGC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, subspace_dim=2, random_state=0)
    >>> MCGC(n_clusters=3).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Zhan et al., TIP 2019, doi:10.1109/TIP.2018.2877335",
        objective="max sum_v tr(U_v^T (W_v + lam_agreement S) U_v) - |S|_F^2 / 2 "
        "- lam_components tr(H^T L_S H)",
        needs="n_neighbors, lam_agreement; as_released for the authors' scores",
        cost="O(m n^3) per iteration, up to 5 iterations",
    )
    sees_order = "as_released"  # ties go by row numbers

    n_neighbors: int | None = param(Neighbors(15), default=None)
    lam_agreement: float = param(positive, default=2.0)
    lam_components: float = param(positive, default=1.0)
    as_released: bool = param(flag, default=False)
    max_iter: int = 5
    tol: float = 1e-10

    affinity_matrix_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Graph:
        """Return the consensus graph S."""
        k, run = self._neighbors(views.n_samples), self._run()
        Ws = [view_graph(X, self.n_clusters, k, self.tol, self.as_released) for X in Xs]
        params = self._given("lam_agreement", "lam_components", "as_released")
        return Graph(
            solve_mcgc(Ws, self.n_clusters, **params, run=run), component_clustering, **run.record()
        )

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: two per view."""
        return 14.0 + 2 * len(views.arrays), 0.0


def view_graph(
    X: Array, c: int, k: int, tol: float = 1e-10, as_released: bool = False
) -> np.ndarray:
    """Graph W_v of one view: about k neighbors, symmetric, with c components if possible.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [9.0], [10.0], [11.0]])
    >>> np.flatnonzero(view_graph(X, 2, 3)[0])
    array([1, 2])
    """
    if as_released:
        D2, members, following = proximity.adaptive_ranks(X, k, as_released=True)
        W = gap_shares(D2, members, following)
        A = np.where(members, 0.0, -np.inf)
        _, F = lowest_eigenpairs(proximity.laplacian((W + W.T) / 2), c)
        return _make_components(A, F, 1.0, 0.5, tol / 10)[0]
    D2 = to_numpy(proximity.squared_distances(X)).astype(np.float64)
    d = proximity.nearest(D2, k + 1)[1]
    a = np.sum(d[:, k:] - d[:, :k], axis=1, keepdims=True) / 2
    t = float(np.mean(a)) or 1.0
    a = np.where(a > k * to_numpy(tie_slack(X)), a, t)  # zero where all k + 1 are equally far
    A = -D2 / (2 * a)
    np.fill_diagonal(A, -np.inf)
    W = prox.simplex(A)
    _, F = lowest_eigenpairs(proximity.laplacian((W + W.T) / 2), c)
    return _make_components(A, F, t, 1 / (2 * a), tol)[0]


def solve_mcgc(
    Ws: Sequence[np.ndarray],
    c: int,
    *,
    lam_agreement: float,
    lam_components: float = 1.0,
    as_released: bool = False,
    run: Run | None = None,
) -> np.ndarray:
    """Consensus graph S with c components, from symmetric graphs of the views.

    Examples
    --------
    >>> W = np.kron(np.eye(2), np.ones((3, 3)) / 3)
    >>> np.allclose(solve_mcgc([W, W + 0.01], 2, lam_agreement=2.0), W)
    True
    """
    run = Run("MCGC", 5, 1e-10) if run is None else run
    S = np.mean(Ws, axis=0)
    if as_released:
        Us = [lowest_eigenpairs(-W, c)[1] for W in Ws]
        S = lam_agreement * np.sum([U @ U.T for U in Us], axis=0)
    most = RELEASED_RANK_ITERATIONS if as_released else RANK_ITERATIONS
    _, H = lowest_eigenpairs(proximity.laplacian(S), c)
    labels = np.full(S.shape[0], -1)
    for _ in run:
        Us = [lowest_eigenpairs(-(W + lam_agreement * S), c)[1] for W in Ws]
        A = lam_agreement * np.sum([U @ U.T for U in Us], axis=0)
        S, H, lam_components, (low, excess) = _make_components(
            A, H, lam_components, 0.5, run.tol, most
        )
        before, labels = labels, connected_components(sp.csr_array(S), directed=False)[1]
        run.check(eigenvalues=low, excess=excess, moved=np.mean(labels != before))
        if as_released:
            run.converged = run.n_iter == run.max_iter  # the program makes them all: no warning
    return S


def _make_components(
    A: np.ndarray, F: np.ndarray, weight: float, slope: Any, tol: float, most: int | None = None
) -> tuple[np.ndarray, np.ndarray, float, tuple[float, float]]:
    """Rows of ``A - weight slope |f_i - f_j|^2`` on the simplex, until they have c components.

    ``most`` is the limit of steps; None is RANK_ITERATIONS.
    Returns the graph, F, the weight, and what the last rank step found.
    """
    for _ in range(RANK_ITERATIONS if most is None else most):
        S = prox.simplex(A - weight * slope * proximity.squared_distances(F))
        S = (S + S.T) / 2
        F, factor, low = proximity.rank_step(S, F, tol)
        weight *= factor
        if factor == 1:
            break
    return S, F, weight, (low, float(factor < 1))
