"""CSMSC: consistent and specific multi-view subspace clustering.

The representation of view v is a low-rank C that all views share plus a small D_v of its own.
Objective, with samples in the columns of X_v (d_v x n)::

    min sum_v |E_v|_{2,1} + lam_c |C|_* + lam_d sum_v |D_v|_F^2
    s.t. X_v = X_v (C + D_v) + E_v

The augmented Lagrangian splits off J = C and repeats::

    D_v = (X_v^T X_v + 2 lam_d/mu I)^-1 X_v^T (X_v - X_v C - E_v + Y_v/mu)
    E_v = columns of X_v - X_v (C + D_v) + Y_v/mu, shortened by 1/mu
    J   = C + Y2/mu, singular values lowered by lam_c/mu
    C   = (sum_v X_v^T X_v + I)^-1 (sum_v X_v^T (X_v - X_v D_v - E_v + Y_v/mu) + J - Y2/mu)
    Y_v += mu (X_v - X_v (C + D_v) - E_v);  Y2 += mu (C - J);  mu = min(rho mu, mu_max)

The authors' program, ``as_released=True``, also splits off W_v = E_v::

    E_v = (X_v - X_v (C + D_v) + Y_v/mu + W_v - Y3_v/mu) / 2
    W_v = columns of E_v + Y3_v/mu, shortened by 1/mu
    Y3_v += mu (E_v - W_v)

and stops when ``sum_v |X_v - X_v (C + D_v)|_F^2`` changes by less than tol, or after 100
iterations. The 100 iterations end first: mu has then grown from 1e-6 to .014, and the constraints
are far from satisfied. From .1 on lam_c hardly matters there, below it does: NMI .27, .47, .58 and
.73 at lam_c .01, .05, .07 and .1 on 3-Sources.

This is the one method whose default is the program, not the paper: the optimum of the objective
shows no clusters where the program does (NMI .08 instead of .73 on 3-Sources), so that the
published figures can only come from the program. ``as_released=False`` follows the paper.

The affinity is that of C plus the mean of the affinities of the D_v.

Reference: S. Luo, C. Zhang, W. Zhang, X. Cao, "Consistent and specific multi-view subspace
clustering", AAAI 2018.
"""

from collections.abc import Sequence

from array_api_compat import array_namespace

from polyspan.base import About, OnDevice, Penalized, Representation, RepresentationClusterer
from polyspan.inputs.params import fitted, flag, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, sum_squares
from polyspan.solvers import prox
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import factor_z_step, largest_entry, stack_views


class CSMSC(RepresentationClusterer, Penalized, OnDevice):
    """Consistent and specific multi-view subspace clustering: one shared part, one part per view.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam_c, lam_d : float, default=0.1 and 0.1
        Weights of the common and of the specific representations relative to the errors.
    as_released : bool, default=True
        Follow the authors' program and end, as it does, after ``max_iter`` iterations; the module
        says why that is the default. False minimizes the objective, which takes about 200
        iterations: raise ``max_iter``.
    rho, mu0, mu_max : float, default=1.1, 1e-6 and 1e6
        Growth, start and limit of the penalty mu, as in the authors' program.
    tol : float, default=1e-7
        Stop when the sum of squares of all ``X_v - X_v (C + D_v)`` changes by less; without
        ``as_released``, when all entries of ``X_v - X_v (C + D_v) - E_v`` and ``C - J`` are
        smaller.
    max_iter : int, default=100
        Maximum number of iterations, as in the authors' program.
    affinity, n_kept, scale, n_init, views, device, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, affinity_matrix_, n_iter_
        As in `GRMSC`.
    history_ : dict
        Per iteration, what ``tol`` limits: ``change`` as released, else ``data`` and ``split``.
    representation_ : (n, n) array
        ``|C|`` plus the mean of the ``|D_v|``, from which the affinity is computed.
    consistent_ : (n, n) array
        C, what the views share.
    specific_ : list of (n, n) arrays
        The D_v.

    Examples
    --------
    >>> from polyspan import CSMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> CSMSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Luo et al., AAAI 2018, doi:10.1609/aaai.v32i1.11617",
        objective="min sum_v |X_v - X_v (C + D_v)|_{2,1} + lam_c |C|_* + lam_d sum_v |D_v|_F^2",
        needs="lam_c, lam_d; as_released=False minimizes the objective",
        cost="O(n^3) per iteration, 100 iterations",
    )
    solve_counts = False

    lam_c: float = param(positive, default=0.1)
    lam_d: float = param(positive, default=0.1)
    as_released: bool = param(flag, default=True)
    rho: float = 1.1
    mu0: float = 1e-6
    tol: float = 1e-7

    consistent_: Array = fitted()
    specific_: list[Array] = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return ``|C|`` plus the mean of the ``|D_v|``, with C and the D_v."""
        run = self._run()
        params = self._given("lam_c", "lam_d", "as_released")
        C, Ds = solve_csmsc(Xs, **params, **self._penalty(), run=run)
        xp = array_namespace(C)
        Z = xp.abs(C) + sum(xp.abs(D) for D in Ds) / len(Ds)
        back = self.brought_back
        return Representation(
            Z, **run.record(), extras={"consistent_": back(C), "specific_": [back(D) for D in Ds]}
        )

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: one D_v for every view."""
        return super().footprint(views)[0] + 4 * len(views.arrays), 0.0


def solve_csmsc(
    Xs: Sequence[Array],
    *,
    lam_c: float,
    lam_d: float,
    as_released: bool = True,
    rho: float = 1.1,
    mu0: float = 1e-6,
    mu_max: float = 1e6,
    run: Run | None = None,
) -> tuple[Array, list[Array]]:
    """The common C and the specific D_v of views Xs, samples in rows.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> run = Run("CSMSC", 400, 1e-7)
    >>> C, (D,) = solve_csmsc([X], lam_c=0.01, lam_d=0.01, as_released=False, run=run)
    >>> np.allclose(X.T @ (C + D), X.T)
    True
    """
    run = Run("CSMSC", 100, 1e-7) if run is None else run
    R, s2, rows, worst = stack_views(Xs)
    xp = array_namespace(R)
    I, _, c_step = factor_z_step(R.T @ R, None)
    # As in LRR: B stands for U^T (I - C), J and Y2 for U^T J and U^T Y2, I is U^T, Q is R U.
    Q = R @ I.T
    E = W = Y1 = Y3 = xp.zeros_like(R)
    B, Y2, mu = I + 0.0, xp.zeros_like(I), mu0
    A = Q @ B  # X - X C
    fit = sum_squares(A)
    lower_singular = prox.SingularThreshold()
    for _ in run:
        F = (A - E + Y1 / mu) / (s2 + 2 * lam_d / mu)  # D_v = X_v^T F_v: X_v X_v^T is diag(s2)
        XD = s2 * F
        T = A - XD + Y1 / mu
        if as_released:
            E = (T + W - Y3 / mu) / 2
            T = E + Y3 / mu
        W = prox.columns_of_views(T, rows, [1 / mu] * len(rows))
        if as_released:
            Y3 = Y3 + mu * (E - W)
        else:
            E = W
        J = lower_singular(I - B + Y2 / mu, lam_c / mu)
        B = c_step(1.0, Y2 / mu - J + Q.T @ (XD + E - Y1 / mu))
        A = Q @ B
        data, split = A - XD - E, I - B - J
        Y1, Y2 = Y1 + mu * data, Y2 + mu * split
        mu = min(rho * mu, mu_max)
        if as_released:
            fit, before = sum_squares(A - XD), fit
            run.check(change=abs(fit - before))
            run.converged |= run.n_iter == run.max_iter  # the program ends here: no warning
        else:
            run.check(
                split=largest_entry(split, I.shape[0], run.tol, lambda A: I.T @ A),
                data=worst(data, run.tol),
            )
    return I.T @ (I - B), [R[k, :].T @ F[k, :] for k in rows]
