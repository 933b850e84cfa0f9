"""LMVSC: large-scale multi-view subspace clustering in linear time.

Each view has m anchors, the columns of A_v (d_v x m), which are centers of k-means. With samples in
the columns of X_v (d_v x n), every sample is a mixture of them::

    min_Z |X_v - A_v Z|_F^2 + lam_ridge |Z|_F^2   s.t.  Z >= 0, columns of Z sum to 1

The m x n solutions are stacked, Zbar = [Z_1; ...; Z_V] / sqrt(V). They link samples to anchors;
with Sigma the row sums of Zbar, S = Zbar^T Sigma^-1 Zbar is the graph of the samples, its rows sum
to a constant, and its eigenvectors are the right singular vectors of Sigma^-1/2 Zbar, from an
m V x m V eigenproblem. k-means on the leading ones gives the labels. S is never computed.

The n quadratic programs share their matrix H = A^T A + lam_ridge I. An accelerated projected
gradient method (FISTA with adaptive restart) solves a block of them together. With L and mu the
largest and smallest eigenvalue of H, its step T is a contraction by 1 - mu / L, so that
|T(y) - z*| <= (L / mu - 1) |y - T(y)|: every column is iterated until this bound on its distance
from the solution z* is below tol. As the columns sum to 1, any point may be subtracted from anchors
and samples; with the mean of the anchors, L falls from the order of m to that of their spread.

Reference: Z. Kang, W. Zhou, Z. Zhao, J. Shao, M. Han, Z. Xu, "Large-scale multi-view subspace
clustering in linear time", AAAI 2020.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from polyspan.base import About, Embedding, InNumPy
from polyspan.clustering.spectral import left_singular, quiet_kmeans
from polyspan.inputs.params import fitted, flag, integer, param, positive, real
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, column_lengths, inverse_root
from polyspan.runtime.cache import shared
from polyspan.solvers import prox

BLOCK = 1024  # samples solved together: their matrices stay in the cache
SAMPLE = 20_000  # samples from which the anchors are computed


class LMVSC(InNumPy):
    """Large-scale subspace clustering: samples as mixtures of k-means anchors, linear in n.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_anchors : int or None, default=None
        Anchors per view; None is the larger of 50 and n_clusters, but at most n. The paper uses
        the best of n_clusters, 50 and 100.
    lam_ridge : float, default=0.01
        Weight of ``|Z|_F^2``, alpha in the paper; larger spreads a sample over more anchors.
    normalize : bool, default=True
        Divide the links of every anchor by the square root of their sum, so that large and small
        anchors count the same. The authors' program does not do this.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        As in `GRMSC`. The authors' program does not scale.
    max_iter : int, default=5000
        Maximum number of iterations of the solver.
    tol : float, default=1e-4
        Largest distance of any column of Z_v from the solution of its problem.
    n_init : int, default=10
        Restarts of the k-means that gives the labels. The k-means that gives the anchors starts
        once (10 times in the authors' program). Both see at most 20,000 samples.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views.
    random_state : int, RandomState or None, default=None
        Seeds k-means.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    representation_ : (V m, n) array
        Zbar, every sample as a mixture of the anchors of all views.
    anchors_ : list of (m, d_v) arrays
        Anchors of the views in rows, in terms of the scaled features.
    embedding_ : (n, n_clusters) array
        The singular vectors that were clustered.
    n_iter_ : int
        Number of iterations of the slowest block of samples.

    Examples
    --------
    >>> from polyspan import LMVSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> LMVSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Kang et al., AAAI 2020, arXiv:1911.09290",
        objective="min sum_v |X_v - A_v Z_v|_F^2 + lam_ridge |Z_v|_F^2, Z_v >= 0, 1^T Z_v = 1^T",
        needs="lam_ridge, n_anchors",
        cost="O(n a (d + a)) per view; no n x n matrix",
    )
    family = "anchors"
    draws = True  # its anchors

    n_anchors: int | None = param(integer(1, none="max(50, n_clusters), at most n"), default=None)
    lam_ridge: float = param(positive, default=0.01)
    normalize: bool = param(flag, default=True)
    max_iter: int = param(integer(1), default=5000)
    tol: float = param(real(0), default=1e-4)
    n_init: int = 10

    anchors_: list[np.ndarray] = fitted()
    representation_: np.ndarray = fitted()
    embedding_: np.ndarray = fitted()
    n_iter_: int = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Embedding:
        """Return singular vectors of Zbar, with Zbar and the anchors."""
        m, n = self._m(views), views.n_samples
        seed = check_random_state(self.random_state).randint(2**31 - 1)  # the same for every view
        Z = np.empty((n, m * len(Xs)), dtype=Xs[0].dtype)
        anchors, most, worst = [], 0, 0.0
        what = (m, seed, self.lam_ridge, self.max_iter, self.tol)
        for v, X in enumerate(Xs):
            A, Z_v, iterations, distance = shared(_represented, what, [X], 8 * n * m)
            anchors.append(A)
            Z[:, v * m : (v + 1) * m] = Z_v
            most, worst = max(most, iterations), max(worst, distance)
        Z /= len(Xs) ** 0.5
        links = np.sum(Z, axis=0, dtype=np.float64)
        B = Z * inverse_root(links).astype(Z.dtype) if self.normalize else Z
        learned = {"representation_": Z.T, "anchors_": anchors}
        U = left_singular(B, self.n_clusters)
        complaints = () if worst <= self.tol else (self._far_from_solved(worst),)
        record: dict[str, Any] = {"n_iter": most, "complaints": complaints, "random_state": seed}
        return Embedding(U, by_direction=False, **record, extras=learned)

    def _far_from_solved(self, worst: float) -> Warning:
        return ConvergenceWarning(
            f"LMVSC stopped after max_iter={self.max_iter} iterations with samples up to "
            f"{worst:.1e} from their solution, above tol={self.tol:g}: raise max_iter or tol."
        )

    def _m(self, views: Views) -> int:
        """Anchors per view."""
        n, m = views.n_samples, self.n_anchors
        if m is None:
            return min(max(50, self.n_clusters), n)
        if m > n or m < self.n_clusters:
            wrong = f"more than n_samples={n}" if m > n else f"below n_clusters={self.n_clusters}"
            raise ValueError(
                f"LMVSC: n_anchors={m} is {wrong}: choose a number from n_clusters to n_samples, "
                "or None."
            )
        return m

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count numbers per sample: features and links to the anchors of all views."""
        links = self._m(views) * len(views.arrays)
        return 0.0, sum(views.widths) + 2 * max(views.widths) + 2 * links + 2 * self.n_clusters


def _represented(what: tuple[Any, ...], Xs: Sequence[Any]) -> tuple[np.ndarray, Any, int, float]:
    """Anchors of a view, centers of k-means of at most ``SAMPLE`` samples, and its Z^T."""
    (X,), (m, seed, lam_ridge, max_iter, tol) = Xs, what
    n, few = X.shape[0], max(SAMPLE, 10 * m)
    some = np.sort(np.random.RandomState(seed).choice(n, few, replace=False)) if n > few else None
    with quiet_kmeans():
        fitted = KMeans(m, n_init=1, random_state=seed).fit(X if some is None else X[some])
    A = fitted.cluster_centers_
    return A, *solve_lmvsc(X, A, lam_ridge=lam_ridge, max_iter=max_iter, tol=tol)


def solve_lmvsc(
    X: Any, A: np.ndarray, *, lam_ridge: float, max_iter: int = 5000, tol: float = 1e-4
) -> tuple[np.ndarray, int, float]:
    """Z^T of one view, the iterations, and the distance of the worst column if above tol, or 0.

    Samples are in the rows of X, anchors in those of A.

    Examples
    --------
    >>> X, A = np.array([[0.0, 1.0, 0.0], [0.5, 0.5, 0.0]]), np.eye(3)
    >>> Z, iterations, distance = solve_lmvsc(X, A, lam_ridge=1.0)
    >>> Z.round(4)
    array([[0.1667, 0.6667, 0.1667],
           [0.4167, 0.4167, 0.1667]])
    """
    n, m = X.shape[0], A.shape[0]
    mean = np.mean(A, axis=0, dtype=np.float64)
    A = A - mean
    G = A @ A.T
    w = lam_ridge + np.clip(np.linalg.eigvalsh(G), 0, None)
    L, mu = w[-1], w[min(1, m - 1)]  # w[0] belongs to the vector of ones, no direction of Z
    M, f = np.eye(m) - (G + lam_ridge * np.eye(m)) / L, A @ mean / L
    links, most, worst = np.empty((n, m), dtype=X.dtype), 0, 0.0
    for start in range(0, n, BLOCK):
        rows, iterations = np.arange(start, min(start + BLOCK, n)), 0
        F = X[start : start + BLOCK] @ (A.T / L) - f
        Z = Y = np.full(F.shape, 1 / m)
        t = np.ones((len(rows), 1))
        while len(rows) and iterations < max_iter:
            iterations += 1
            before, Z = Z, prox.simplex(Y @ M + F)
            links[rows] = Z
            D, step = Z - Y, Z - before
            distance = (L / mu - 1) * column_lengths(D.T)
            t[np.einsum("ij,ij->i", D, step) < 0] = 1  # it went uphill: restart
            grown = (1 + np.sqrt(1 + 4 * t * t)) / 2
            Y = Z + (t - 1) / grown * step
            left = distance > tol
            rows, F, Z, Y, t = (x[left] for x in (rows, F, Z, Y, grown))
        most, worst = max(most, iterations), max([worst, *distance[left]])
    return links, most, worst
