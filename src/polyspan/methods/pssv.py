"""PSSV: multi-view spectral clustering by the partial sum of singular values.

Like RMSC, but the c largest singular values of the shared matrix are free: of a graph with c
clusters they stand for the clusters. Every view v of m gives a matrix T_v. Objective, with s_i the
i-th largest singular value::

    min sum_{i > c} s_i(P) + lam sum_v |E_v|_1   s.t.  T_v = P + E_v

T_v is the normalized Laplacian ``D^-1/2 K D^-1/2`` of the view's Gaussian kernel K (width the
median distance); with ``matrix="walk"`` it is the random walk ``D^-1 K``, and P is one, too: ``P >=
0, P 1 = 1``. The augmented Lagrangian splits off Q = P and repeats::

    P   = (Q - Z/mu + sum_v (T_v - E_v - Y_v/mu)) / (m + 1); rows projected on the simplex (walk)
    Q   = P + Z/mu, singular values beyond the c-th lowered by 1/mu
    E_v = T_v - P - Y_v/mu, entries shrunk by lam/mu
    Y_v += mu (P + E_v - T_v);  Z += mu (P - Q);  mu = min(rho mu, mu_max)

The top c eigenvectors of P, rows of length 1, are clustered; those of a walk P as in RMSC, from
``(D^1/2 P D^-1/2 + its transpose) / 2`` with D the stationary distribution.

Neither program nor full text was at hand. The abstract says: a normalized Laplacian of every view,
a shared low-rank one by this sum and a sparse error, an augmented Lagrangian, and spectral
clustering of the shared one. The rest is ours: the kernel, the matrix that goes by the name of
Laplacian (of the usual one, I minus this, the clusters are the *smallest* singular values), the
order of the steps and all constants, which are RMSC's, and ``matrix="walk"``, RMSC's matrix, for
comparison: with c = 0 it would be RMSC. The sum is not convex, so that the loop finds a stationary
point; it depends on nothing random.

Reference: L. Zhai, J. Zhu, Q. Zheng, S. Pang, Z. Li, J. Wang, "Multi-view spectral clustering via
partial sum minimisation of singular values", Electronics Letters 55(6), 2019.
"""

import math
from collections.abc import Sequence

from array_api_compat import array_namespace

from polyspan.base import About, Embedding, Penalized
from polyspan.graphs.proximity import median_kernel, normalized
from polyspan.inputs.params import fitted, one_of, param, positive
from polyspan.inputs.views import Views
from polyspan.methods.rmsc import random_walk, stationary_distribution
from polyspan.runtime.arrays import Array
from polyspan.solvers import prox
from polyspan.solvers.eigen import TopEigenvectors, highest_eigenpairs
from polyspan.solvers.loop import Run


class PSSV(Penalized):
    """Spectral clustering of a shared low-rank Laplacian, whose c largest singular values are free.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of the singular values that are free.
    lam : float, default=0.1
        Weight of the errors; smaller lets the views differ more from what they share.
    matrix : {"laplacian", "walk"}, default="laplacian"
        What the views share: a normalized Laplacian, or a random walk as in `RMSC`.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        As in `GRMSC`.
    rho, mu0, mu_max : float, default=1.9, 1e-3 and 1e10
        Growth, start and limit of the penalty mu.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-6
        Stop when all entries of ``T_v - P - E_v`` and ``P - Q`` are smaller.
    n_init, views, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, n_iter_
        As in `GRMSC`.
    shared_matrix_ : (n, n) array
        P, what the views share.
    embedding_ : (n, n_clusters) array
        Its top eigenvectors.
    history_ : dict
        Per iteration: ``data`` and ``split``, what ``tol`` limits.

    Examples
    --------
    >>> from polyspan import PSSV
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> PSSV(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Zhai et al., Electronics Letters 2019, doi:10.1049/el.2018.7883",
        objective="min sum_{i > c} s_i(P) + lam sum_v |T_v - P|_1",
        needs="lam; samples of unit length",
        cost="O(n^3) per iteration, about 30 iterations",
    )

    lam: float = param(positive, default=0.1)
    matrix: str = param(one_of("laplacian", "walk"), default="laplacian")
    mu0: float = 1e-3
    mu_max: float = 1e10

    shared_matrix_: Array = fitted()
    embedding_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Embedding:
        """Return the top eigenvectors of P, with P."""
        run, walk = self._run(), self.matrix == "walk"
        divided = random_walk if walk else normalized
        Ts = [divided(median_kernel(X)) for X in Xs]
        c = self.n_clusters
        P = solve_pssv(Ts, c, lam=self.lam, walk=walk, **self._penalty(), run=run)
        S = P
        if walk:
            root = stationary_distribution(P) ** 0.5
            S = root[:, None] * P / root[None, :]
        _, F = highest_eigenpairs((S + S.T) / 2, c)
        return Embedding(F, **run.record(), extras={"shared_matrix_": P})

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: five per view."""
        return 10.0 + 5 * len(views.arrays), 0.0


def solve_pssv(
    Ts: Sequence[Array],
    c: int,
    *,
    lam: float,
    walk: bool = False,
    rho: float = 1.9,
    mu0: float = 1e-3,
    mu_max: float = 1e10,
    run: Run | None = None,
) -> Array:
    """The matrix P that the matrices Ts of all views share, with c free singular values.

    Examples
    --------
    >>> import numpy as np
    >>> two = np.kron(np.eye(2), np.full((3, 3), 1 / 3))
    >>> np.allclose(solve_pssv([two, two], 2, lam=0.1), two)
    True
    """
    run = Run("PSSV", 100, 1e-6) if run is None else run
    xp = array_namespace(*Ts)
    Q = Z = xp.zeros_like(Ts[0])
    Es = Ys = [xp.zeros_like(T) for T in Ts]
    mu = mu0
    lower_rest = _LowerRest(c)
    for _ in run:
        S = sum((T - E - Y / mu for T, E, Y in zip(Ts, Es, Ys, strict=True)), start=Q - Z / mu)
        P = S / (len(Ts) + 1)
        P = prox.simplex(P) if walk else P
        Q = lower_rest(P + Z / mu, 1 / mu)
        Es = [prox.soft(T - P - Y / mu, lam / mu) for T, Y in zip(Ts, Ys, strict=True)]
        residuals = [P + E - T for T, E in zip(Ts, Es, strict=True)]
        Ys = [Y + mu * R for Y, R in zip(Ys, residuals, strict=True)]
        Z = Z + mu * (P - Q)
        mu = min(rho * mu, mu_max)
        data = max(float(xp.max(xp.abs(R))) for R in residuals)
        run.check(data=data, split=float(xp.max(xp.abs(P - Q))))
    return P


class _LowerRest:
    """Lower the singular values beyond the c-th by t, as `prox.SingularThreshold` lowers all."""

    def __init__(self, c: int) -> None:
        self.c, self.top, self.limit = c, TopEigenvectors(), 0.0

    def __call__(self, A: Array, t: float) -> Array:
        xp = array_namespace(A)
        C = A.T @ A
        # Where the c-th was last, that is enough to find the c largest again, mostly.
        w, V = self.top(C + 0.0, min(t * t, self.limit))
        if w.shape[0] < self.c:
            w, V = highest_eigenpairs(C, self.c)
        rest = w.shape[0] - self.c
        factors = xp.clip(1 - t / xp.sqrt(w[:rest]), min=0.0)
        self.limit = max(0.8 * float(w[rest]), 0.0) if self.c else math.inf
        factors = xp.concat([factors, xp.ones_like(w[rest:])])
        return (A @ V) @ (factors[:, None] * V.T)
