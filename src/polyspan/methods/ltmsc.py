"""LTMSC: low-rank tensor constrained multi-view subspace clustering.

The representations Z_v of all m views form one n x n x m tensor Z, which should have low rank in
each unfolding: [Z_1, ..., Z_m], [Z_1^T, ..., Z_m^T], and one long row per view. Objective,
with samples in the columns of X_v (d_v x n)::

    min sum_u lam_rank |Z_(u)|_* + lam |[E_1; ...; E_m]|_{2,1}   s.t.  X_v = X_v Z_v + E_v

over the unfoldings u = 1, 2, 3. The augmented Lagrangian splits off one G_u = Z for each and
repeats::

    Z_v = (3 I + X_v^T X_v)^-1 (X_v^T (X_v - E_v + Y_v/mu) + sum_u (G_u,v - W_u,v/mu))
    E   = columns of the stacked X_v - X_v Z_v + Y_v/mu, shortened by lam/mu
    G_u = Z + W_u/mu, unfolded, singular values lowered by lam_rank/mu
    Y_v += mu (X_v - X_v Z_v - E_v);  W_u += mu (Z - G_u);  mu = min(rho mu, mu_max)

with one mu for all constraints and one lam_rank for all unfoldings. Doubling mu is fast but ends
above the optimum: 2% at lam 1 on 40 texts (`benchmarks/optimum.py`). ``LTMSC(rho=1.02, mu0=0.1,
max_iter=2000)`` ends at the optimum.

The authors' program, ``as_released=True``, is a different algorithm that does better on the texts
of 3-Sources (NMI .70 instead of .61). Its Z step uses only the G of the third and the W of the
first unfolding, with a second penalty nu whose limit is 100 times that of mu::

    Z_v = (nu I + mu X_v^T X_v)^-1 (mu X_v^T (X_v - E_v + Y_v/mu) + nu G_3,v - W_1,v)

and G_3,v is the transpose of what belongs there: the unfolding has the entries of Z_v^T in a row,
and they are folded as if they were those of Z_v. It updates E after every view. It stops when the
largest row sums of X_v - X_v Z_v - E_v and Z_v - G_3,v are below tol. The latter would need a
symmetric Z_v, so in practice it stops after its limit of 52 iterations. Its single parameter is
both lam and lam_rank, so that its value hardly matters. It does not minimize the objective.

Reference: C. Zhang, H. Fu, S. Liu, G. Liu, X. Cao, "Low-rank tensor constrained multiview subspace
clustering", ICCV 2015.
"""

from collections.abc import Sequence

from array_api_compat import array_namespace, device

from polyspan.base import About, OnDevice, Penalized, Representation, RepresentationClusterer
from polyspan.inputs.params import flag, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, largest_row_sum
from polyspan.solvers import prox
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import largest_sum, stack_views, view_step

RELEASED_ITERATIONS = 52  # the most that the authors' program makes


class LTMSC(RepresentationClusterer, Penalized, OnDevice):
    """Low-rank tensor constrained multi-view subspace clustering: low rank in every unfolding.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam : float, default=1.0
        Weight of the errors.
    lam_rank : float, default=1.0
        Weight of every nuclear norm, gamma in the paper; only ``lam / lam_rank`` matters much.
    as_released : bool, default=False
        Follow the authors' program, which mixes the unfoldings; with ``lam_rank=lam``.
    rho, mu0, mu_max : float, default=2.0, 1e-4 and 1e11
        Growth, start and limit of the penalty mu. With ``rho=1.02``, ``mu0=0.1`` and
        ``max_iter=2000`` the loop ends at the optimum instead of 2% above it, see the module.
    tol : float, default=1e-7
        Stop when all entries of ``X_v - X_v Z_v - E_v`` and ``Z - G_u`` are smaller
        (``as_released``: all sums of absolute values over rows, of ``Z - G_3`` only).
    max_iter : int, default=200
        Maximum number of iterations; ``as_released`` makes 52 at most.
    affinity, n_kept, scale, n_init, views, device, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, affinity_matrix_, n_iter_, history_
        As in `GRMSC`.
    representation_ : (n, n) array
        Mean of the ``|Z_v|``.

    Examples
    --------
    >>> from polyspan import LTMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> LTMSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Zhang et al., ICCV 2015",
        objective="min lam_rank sum_u |Z_(u)|_* + lam |[E_1; ...; E_m]|_{2,1}, E_v = X_v - X_v Z_v",
        needs="lam / lam_rank; as_released for the authors' scores",
        cost="O(m n^3) per iteration, about 35 iterations",
    )
    solve_counts = False

    lam: float = param(positive, default=1.0)
    lam_rank: float = param(positive, default=1.0)
    as_released: bool = param(flag, default=False)
    rho: float = 2.0
    mu_max: float = 1e11
    max_iter: int = 200
    tol: float = 1e-7

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return the mean of the ``|Z_v|``."""
        run = self._run()
        params = self._given("lam", "lam_rank", "as_released")
        Z = solve_ltmsc(Xs, **params, **self._penalty(), run=run)
        xp = array_namespace(Z)
        return Representation(xp.mean(xp.abs(Z), axis=0), **run.record())

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: three tensors G and three W of all views."""
        return super().footprint(views)[0] + 14 * len(views.arrays), 0.0


def solve_ltmsc(
    Xs: Sequence[Array],
    *,
    lam: float,
    lam_rank: float = 1.0,
    as_released: bool = False,
    rho: float = 2.0,
    mu0: float = 1e-4,
    mu_max: float = 1e11,
    run: Run | None = None,
) -> Array:
    """Representations Z_v of views Xs (samples in rows), as one array (m, n, n).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> Z = solve_ltmsc([X, X[:, 1:]], lam=1e3)
    >>> np.allclose(X.T @ Z[0], X.T), np.allclose(X.T[1:] @ Z[1], X.T[1:])
    (True, True)
    """
    run = Run("LTMSC", 200, 1e-7) if run is None else run
    R, s2, rows, worst = stack_views(Xs)
    xp = array_namespace(R)
    E, Y, D, mu = xp.zeros_like(R), xp.zeros_like(R), R + 0.0, mu0
    m, n = len(Xs), R.shape[1]
    Z = xp.zeros((m, n, n), dtype=R.dtype, device=device(R))
    Gs, Ws = [xp.zeros_like(Z)] * 3, [xp.zeros_like(Z)] * 3
    thresholds = [prox.SingularThreshold() for _ in Gs]
    nu = mu0  # the program's second penalty
    if as_released:
        run.max_iter = min(run.max_iter, RELEASED_ITERATIONS)
    for _ in run:
        if as_released:
            B, p = Gs[2] - Ws[0] / nu, nu / mu
        else:
            B, p = sum(G - W / mu for G, W in zip(Gs, Ws, strict=True)) / 3, 3.0
        for v, k in enumerate(rows):
            Z[v, :, :], D[k, :] = view_step(R[k, :], s2[k, :], B[v, :, :], E[k, :], Y[k, :], mu, p)
            if as_released:
                E = prox.columns(D + Y / mu, lam / mu)
                Y[k, :] += mu * (D[k, :] - E[k, :])
        if not as_released:
            E = prox.columns(D + Y / mu, lam / mu)
            Y += mu * (D - E)
        Gs = [
            fold(lower_singular(unfold(Z + W / mu, u), lam_rank / mu), u, m)
            for u, (W, lower_singular) in enumerate(zip(Ws, thresholds, strict=True), start=1)
        ]
        if as_released:
            Gs[2] = xp.matrix_transpose(Gs[2])
        Ws = [W + mu * (Z - G) for W, G in zip(Ws, Gs, strict=True)]
        mu, nu = min(rho * mu, mu_max), min(rho * nu, 100 * mu_max)
        if as_released:
            split = max(largest_row_sum(Z[v, :, :] - Gs[2][v, :, :]) for v in range(m))
            run.check(split=split, data=worst(D - E, run.tol, largest_sum))
            run.converged |= run.n_iter == run.max_iter  # the program ends here: no warning
        else:
            split = max(float(xp.max(xp.abs(Z - G))) for G in Gs)
            run.check(split=split, data=worst(D - E, run.tol))
    return Z


def unfold(T: Array, u: int) -> Array:
    """Unfold a tensor (m, n, n): rows side by side (u = 1), columns (2), one row per view (3).

    Examples
    --------
    >>> import numpy as np
    >>> [unfold(np.ones((2, 3, 3)), u).shape for u in (1, 2, 3)]
    [(3, 6), (3, 6), (2, 9)]
    """
    xp = array_namespace(T)
    T = xp.permute_dims(T, {1: (1, 0, 2), 2: (2, 0, 1), 3: (0, 1, 2)}[u])
    return xp.reshape(T, (T.shape[0], -1))


def fold(A: Array, u: int, m: int) -> Array:
    """Inverse of `unfold`."""
    xp = array_namespace(A)
    n = A.shape[0] if u < 3 else round(A.shape[1] ** 0.5)
    T = xp.reshape(A, (n, m, n) if u < 3 else (m, n, n))
    return xp.permute_dims(T, {1: (1, 0, 2), 2: (1, 2, 0), 3: (0, 1, 2)}[u])
