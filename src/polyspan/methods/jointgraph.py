"""JointGraph: a joint affinity graph from one low-rank representation of all views.

All views share one representation Z, whose affinity is the graph. A diversity term makes redundant
views share their weight, and a rank term uses the number of clusters. Objective, with samples in
the columns of X_v (d_v x n)::

    min |Z|_* + lam sum_v w_v^2 |X_v - X_v Z|_{2,1} + lam_v w^T R w + 2 lam_cut tr(F^T L_Z F)
    s.t. sum_v w_v = m, w >= 0, F^T F = I

with L_Z the Laplacian of the affinity ``(|Z| + |Z|^T) / 2``, of which tr(F^T L_Z F) is the sum of
the c lowest eigenvalues: zero if the graph has c components. R_vu, from 0 to 1, says how much two
views say the same: the cosine of their centered inner products, ``<G_v, G_u> / (|G_v| |G_u|)``. As
``tr(F^T L_Z F) = sum_ij |z_ij| |f_i - f_j|^2 / 2``, the rank term is a weighted l1 norm of Z. The
augmented Lagrangian splits off J = Z and C = Z and repeats::

    E_v = columns of X_v - X_v Z + Y_v/mu, shortened by lam w_v^2/mu
    J   = Z + Y1/mu, singular values lowered by 1/mu
    C   = Z + Y2/mu, entries shrunk by lam_cut |f_i - f_j|^2/mu
    Z   = (sum_v X_v^T X_v + 2 I)^-1 (sum_v X_v^T (X_v - E_v + Y_v/mu) + J + C - (Y1 + Y2)/mu)
    w   = argmin lam sum_v w_v^2 |E_v|_{2,1} + lam_v w^T R w   s.t. sum_v w_v = m, w >= 0
    F   = the c lowest eigenvectors of L_Z
    Y_v += mu (X_v - X_v Z - E_v);  Y1 += mu (Z - J);  Y2 += mu (Z - C);  mu = min(rho mu, mu_max)

It starts with w = 1 and without F, which is kept as it is where the graph has more than c
components already. Normalized cuts of the graph are the clusters.

Neither program nor full text was at hand. From the abstract: the shared low-rank representation
that gives the graph, the diversity term for the weights of the views, the rank term, the augmented
Lagrangian with alternating directions and the normalized cuts. Ours: the norm of the errors; the
squared weights with a matrix R, as in multiple kernel k-means with matrix-induced regularization
(Liu, Dou, Yin, Wang, Zhu, AAAI 2016), by some of the authors, with the sum m, so that equal
weights are the plain sum; the rank as a penalty, not a constraint; all constants.

Reference: C. Tang, X. Zhu, X. Liu, M. Li, P. Wang, C. Zhang, L. Wang, "Learning a joint affinity
graph for multiview subspace clustering", IEEE Transactions on Multimedia 21(7), 2019.
"""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import nnls

from polyspan.base import About, InNumPy, Penalized, Representation, RepresentationClusterer
from polyspan.graphs import proximity
from polyspan.inputs.params import fitted, param, positive, weight
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, column_lengths
from polyspan.solvers import prox
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import stack_views


class JointGraph(RepresentationClusterer, Penalized, InNumPy):
    """Joint affinity graph: one low-rank representation, diverse weights of the views, a rank term.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, which the rank term uses, too.
    lam : float, default=0.05
        Weight of the errors.
    lam_v : float, default=1.0
        Weight of the diversity: the larger, the less two views weigh that say the same.
    lam_cut : float, default=0.1
        Weight of the rank term, the cut of the graph into ``n_clusters`` pieces.
    rho, mu0, mu_max : float, default=1.5, 1e-2 and 1e6
        Growth, start and limit of the penalty mu.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-6
        Stop when all entries of ``X_v - X_v Z - E_v``, ``Z - J`` and ``Z - C`` are smaller.
    affinity, n_kept, scale, n_init, views, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, representation_, affinity_matrix_, n_iter_
        As in `GRMSC`.
    weights_ : (m,) array
        Weights w of the views; their mean is 1.
    history_ : dict
        Per iteration: ``data``, ``low_rank`` and ``sparse``, what ``tol`` limits.

    Examples
    --------
    >>> from polyspan import JointGraph
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> JointGraph(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Tang et al., TMM 2019, doi:10.1109/TMM.2018.2889560",
        objective="min |Z|_* + lam sum_v w_v^2 |X_v - X_v Z|_{2,1} + lam_v w^T R w "
        "+ 2 lam_cut tr(F^T L_Z F)",
        needs="lam, lam_cut; lam_v for redundant views",
        cost="O(n^3) per iteration, about 40 iterations",
    )

    lam: float = param(positive, default=0.05)
    lam_v: float = param(weight, default=1.0)
    lam_cut: float = param(positive, default=0.1)
    rho: float = 1.5
    mu0: float = 1e-2

    weights_: np.ndarray = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return Z, with the weights of the views."""
        run = self._run()
        params = self._given("lam", "lam_v", "lam_cut")
        Z, w, _F = solve_joint_graph(Xs, self.n_clusters, **params, **self._penalty(), run=run)
        return Representation(Z, **run.record(), extras={"weights_": w})


def solve_joint_graph(
    Xs: Sequence[np.ndarray],
    c: int,
    *,
    lam: float,
    lam_v: float,
    lam_cut: float,
    rho: float = 1.5,
    mu0: float = 1e-2,
    mu_max: float = 1e6,
    run: Run | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Z, the weights w and the indicator F of views Xs, samples in rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> Z, w, F = solve_joint_graph([X, X], 2, lam=10.0, lam_v=1.0, lam_cut=0.1)
    >>> Z.shape, w.round(2), F.shape
    ((9, 9), array([1., 1.]), (9, 2))
    """
    run = Run("JointGraph", 100, 1e-6) if run is None else run
    A, _, rows, worst = stack_views(Xs)
    n, m, mu = A.shape[1], len(Xs), mu0
    M = np.linalg.inv(A.T @ A + 2 * np.eye(n))
    R = redundancy([A[k] for k in rows])
    Z, Y1, Y2 = np.zeros((3, n, n))
    Y, w, F = np.zeros_like(A), np.ones(m), np.zeros((n, c))
    AZ = np.zeros_like(A)
    lower_singular = prox.SingularThreshold()
    for _ in run:
        E = prox.columns_of_views(A - AZ + Y / mu, rows, list(lam * w**2 / mu))
        J = lower_singular(Z + Y1 / mu, 1 / mu)
        C = prox.soft(Z + Y2 / mu, lam_cut / mu * proximity.squared_distances(F))
        Z = M @ (A.T @ (A - E + Y / mu) + J + C - (Y1 + Y2) / mu)
        AZ = A @ Z
        w = diverse_weights(lam * np.array([column_lengths(E[k]).sum() for k in rows]), lam_v * R)
        F = proximity.rank_step(np.abs(Z), F, run.tol)[0]
        data, low_rank, sparse = A - AZ - E, Z - J, Z - C
        Y, Y1, Y2 = Y + mu * data, Y1 + mu * low_rank, Y2 + mu * sparse
        mu = min(rho * mu, mu_max)
        run.check(
            data=worst(data, run.tol), low_rank=np.abs(low_rank).max(), sparse=np.abs(sparse).max()
        )
    return Z, w, F


def redundancy(As: Sequence[np.ndarray]) -> np.ndarray:
    """How much every two views (samples in columns) say the same: 0 to 1.

    Examples
    --------
    >>> redundancy([np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 0.0, 1.0]])])
    array([[1., 0.],
           [0., 1.]])
    """
    As = [A - np.mean(A, axis=1, keepdims=True) for A in As]
    R = np.array([[np.sum((A @ B.T) ** 2) for B in As] for A in As])  # <A^T A, B^T B>
    size = np.sqrt(np.maximum(np.diag(R), np.finfo(np.float64).tiny))
    return R / size[:, None] / size


def diverse_weights(errors: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Minimize ``sum_v w_v^2 errors_v + w^T R w`` over w >= 0 with mean 1.

    Examples
    --------
    >>> diverse_weights(np.array([1.0, 3.0]), np.zeros((2, 2)))
    array([1.5, 0.5])
    """
    Q = np.diag(errors) + R
    m, size = len(Q), np.trace(Q)
    if size == 0:
        return np.ones(m)
    # For w of a given direction, |L^T w|^2 + (1 - sum w)^2 is least at a length that grows with the
    # sum, so that the best direction is that of the same problem without the limit of the sum.
    L = np.linalg.cholesky(Q / size + 1e-12 * np.eye(m))
    w, _ = nnls(np.vstack([L.T, np.ones(m)]), np.append(np.zeros(m), 1.0))
    return w * m / np.sum(w)
