"""RMSC: robust multi-view spectral clustering by a shared low-rank transition matrix.

Every view v of m gives a random walk T_v: its Gaussian kernel (width the median distance) with
rows divided by their sums. Objective::

    min |P|_* + lam sum_v |E_v|_1   s.t.  T_v = P + E_v,  P >= 0,  P 1 = 1

The augmented Lagrangian splits off Q = P and repeats::

    P   = rows of (Q - Z/mu + sum_v (T_v - E_v - Y_v/mu)) / (m + 1), projected on the simplex
    Q   = P + Z/mu, singular values lowered by 1/mu
    E_v = T_v - P - Y_v/mu, entries shrunk by lam/mu
    Y_v += mu (P + E_v - T_v);  Z += mu (P - Q);  mu = min(rho mu, mu_max)

With pi the stationary distribution of P and D = diag(pi), the top eigenvectors of
``(D^1/2 P D^-1/2 + its transpose) / 2`` are clustered. The affinity ``(D P + P^T D) / 2`` has the
degrees pi, so this is its normalized spectral clustering.

The penalty mu nearly doubles, which is fast but ends above the optimum: 1% on 40 texts
(`benchmarks/optimum.py`). ``RMSC(rho=1.02, mu0=0.01, max_iter=2000)`` ends at the optimum.

The authors' program, ``as_released=True``, takes the median over all n^2 distances, those of the
samples to themselves included, and stops when the largest row sum of T_v - P - E_v is below tol,
not the largest entry: an iteration or two later.

Reference: R. Xia, Y. Pan, L. Du, J. Yin, "Robust multi-view spectral clustering via low-rank and
sparse decomposition", AAAI 2014.
"""

from collections.abc import Sequence

from array_api_compat import array_namespace, device

from polyspan.base import About, Graph, Penalized
from polyspan.graphs.proximity import median_kernel
from polyspan.inputs.params import fitted, flag, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, astype, largest_row_sum
from polyspan.solvers import prox
from polyspan.solvers.loop import Run

TELEPORT = 1e-8  # share of uniform jumps, which makes the stationary distribution unique


class RMSC(Penalized):
    """Robust multi-view spectral clustering: the low-rank part that all views' graphs share.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam : float, default=0.1
        Weight of the errors; smaller lets the views differ more from the shared walk.
    as_released : bool, default=False
        Take the width of the kernels and the stopping rule of the authors' program, see the module.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        As in `GRMSC`. Published comparisons ran RMSC without scaling (None), which is far worse on
        texts of different lengths.
    rho, mu0, mu_max : float, default=1.9, 1e-3 and 1e10
        Growth, start and limit of the penalty mu.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-6
        Stop when all entries (``as_released``: sums of absolute values over rows) of
        ``T_v - P - E_v`` are smaller; as in the authors' program, ``P - Q`` is not checked, so that
        a very small ``lam`` can end the loop early.
    n_init, views, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, n_iter_
        As in `GRMSC`.
    transition_matrix_ : (n, n) array
        P, the shared random walk: rows sum to 1.
    affinity_matrix_ : (n, n) array
        ``(D P + P^T D) / 2``, how often the walk moves between two samples.
    history_ : dict
        Per iteration: ``data``, what ``tol`` limits.

    Examples
    --------
    >>> from polyspan import RMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> RMSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Xia et al., AAAI 2014",
        objective="min |P|_* + lam sum_v |T_v - P|_1, P >= 0, P 1 = 1",
        needs="lam; samples of unit length, though papers used raw features",
        cost="O(n^3) per iteration, about 30 iterations",
    )

    lam: float = param(positive, default=0.1)
    as_released: bool = param(flag, default=False)
    mu0: float = 1e-3
    mu_max: float = 1e10

    affinity_matrix_: Array = fitted()
    transition_matrix_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Graph:
        """Return ``(D P + P^T D) / 2``, with the walk P."""
        run = self._run()
        Ts = [random_walk(median_kernel(X, diagonal=self.as_released)) for X in Xs]
        params = self._given("lam", "as_released")
        P = solve_rmsc(Ts, **params, **self._penalty(), run=run)
        DP = stationary_distribution(P)[:, None] * P
        return Graph((DP + DP.T) / 2, **run.record(), extras={"transition_matrix_": P})

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: five per view."""
        return 10.0 + 5 * len(views.arrays), 0.0


def solve_rmsc(
    Ts: Sequence[Array],
    *,
    lam: float,
    as_released: bool = False,
    rho: float = 1.9,
    mu0: float = 1e-3,
    mu_max: float = 1e10,
    run: Run | None = None,
) -> Array:
    """The random walk P that the walks Ts of all views share.

    Examples
    --------
    >>> import numpy as np
    >>> T = random_walk(np.exp(np.random.default_rng(0).normal(size=(6, 6))))
    >>> np.allclose(solve_rmsc([T, T], lam=10.0), T, atol=1e-6)
    True
    """
    run = Run("RMSC", 100, 1e-6) if run is None else run
    xp = array_namespace(*Ts)
    Q = Z = xp.zeros_like(Ts[0])
    Es = Ys = [xp.zeros_like(T) for T in Ts]
    mu = mu0
    lower_singular = prox.SingularThreshold()
    size = largest_row_sum if as_released else _largest_entry
    for _ in run:
        S = sum((T - E - Y / mu for T, E, Y in zip(Ts, Es, Ys, strict=True)), start=Q - Z / mu)
        P = prox.simplex(S / (len(Ts) + 1))
        Q = lower_singular(P + Z / mu, 1 / mu)
        Es = [prox.soft(T - P - Y / mu, lam / mu) for T, Y in zip(Ts, Ys, strict=True)]
        residuals = [P + E - T for T, E in zip(Ts, Es, strict=True)]
        Ys = [Y + mu * R for Y, R in zip(Ys, residuals, strict=True)]
        Z = Z + mu * (P - Q)
        mu = min(rho * mu, mu_max)
        run.check(data=max(map(size, residuals)))
    return P


def _largest_entry(A: Array) -> float:
    xp = array_namespace(A)
    return float(xp.max(xp.abs(A)))


def random_walk(K: Array) -> Array:
    """Divide the rows of a kernel by their sums.

    Examples
    --------
    >>> import numpy as np
    >>> random_walk(np.array([[1.0, 1.0], [1.0, 3.0]]))
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    return K / array_namespace(K).sum(K, axis=1, keepdims=True)


def stationary_distribution(P: Array) -> Array:
    """Stationary distribution of a random walk, all entries positive.

    The walk jumps to a random sample once in 1e8 steps, because P may consist of separate pieces.

    Examples
    --------
    >>> import numpy as np
    >>> stationary_distribution(np.array([[0.5, 0.5], [0.25, 0.75]])).round(6)
    array([0.333333, 0.666667])
    """
    walk = astype(P, "float64")
    xp = array_namespace(walk)
    n = walk.shape[0]
    I = xp.eye(n, dtype=walk.dtype, device=device(walk))
    jumps = xp.full((n, 1), TELEPORT / n, dtype=walk.dtype, device=device(walk))
    pi = xp.linalg.solve(I - (1 - TELEPORT) * walk.T, jumps)[:, 0]
    return astype(pi / xp.sum(pi), P.dtype)
