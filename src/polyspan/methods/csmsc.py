"""CSMSC: consistent and specific multi-view subspace clustering.

The representation of view v is a low-rank C that all views share plus a small D_v of its own.
Objective, with samples in the columns of X_v (d_v x n)::

    min sum_v |E_v|_{2,1} + lam_c |C|_* + lam_d sum_v |D_v|_F^2
    s.t. X_v = X_v (C + D_v) + E_v

The augmented Lagrangian splits off J = C and repeats::

    J   = C + Y2/mu, singular values lowered by lam_c/mu
    C   = (sum_v X_v^T X_v + I)^-1 (sum_v X_v^T (X_v - X_v D_v - E_v + Y_v/mu) + J - Y2/mu)
    D_v = (X_v^T X_v + 2 lam_d/mu I)^-1 X_v^T (X_v - X_v C - E_v + Y_v/mu)
    E_v = columns of X_v - X_v (C + D_v) + Y_v/mu, shortened by 1/mu
    Y_v += mu (X_v - X_v (C + D_v) - E_v);  Y2 += mu (C - J);  mu = min(rho mu, mu_max)

The affinity is that of C plus the mean of those of the D_v.

Reference: S. Luo, C. Zhang, W. Zhang, X. Cao, "Consistent and specific multi-view subspace
clustering", AAAI 2018.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from polyspan import prox
from polyspan.base import COMMON, About, MultiViewClusterer
from polyspan.linalg import Array, factor_z_step, largest_entry, orthogonal_rows, to_numpy
from polyspan.params import device_name, real
from polyspan.run import Run
from polyspan.views import Views


class CSMSC(MultiViewClusterer):
    """Consistent and specific multi-view subspace clustering: what views share, what each has.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam_c, lam_d : float, default=0.1 and 0.1
        Weights of the common and of the specific representations against the errors.
    rho, mu0, mu_max : float, default=1.9, 1e-4 and 1e6
        Growth, start and limit of the penalty mu. The growth matters: when mu grows slowly the loop
        comes near the optimum, which on 3-Sources shows no clusters (NMI .08 with rho=1.1, .75
        with 1.9). The default was chosen on that data set, with its labels.
    tol : float, default=1e-6
        Stop when all entries of ``X_v - X_v (C + D_v) - E_v`` and ``C - J`` are smaller.
    max_iter : int, default=100
        Most turns.
    affinity, n_kept, scale, n_init, views, device, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, affinity_matrix_, n_iter_, history_
        As in `GRMSC`.
    representation_ : (n, n) array
        ``|C|`` plus the mean of the ``|D_v|``, of which the affinity is made.
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

    _about = About(
        paper="Luo et al., AAAI 2018, doi:10.1609/aaai.v32i1.11617",
        objective="min sum_v |X_v - X_v (C + D_v)|_{2,1} + lam_c |C|_* + lam_d sum_v |D_v|_F^2",
        needs="lam_c, lam_d; rho not near 1",
        cost="O(n^3) per turn, about 25 turns",
    )
    _checks = COMMON | {
        "lam_c": real(0, open_low=True),
        "lam_d": real(0, open_low=True),
        "rho": real(1),
        "mu0": real(0, open_low=True),
        "mu_max": real(0, open_low=True),
        "device": device_name,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        lam_c: float = 0.1,
        lam_d: float = 0.1,
        affinity: str = "dense",
        n_kept: int = 10,
        scale: str | None = "unit",
        rho: float = 1.9,
        mu0: float = 1e-4,
        mu_max: float = 1e6,
        max_iter: int = 100,
        tol: float = 1e-6,
        n_init: int = 20,
        views: Sequence[Any] | None = None,
        device: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.lam_c = lam_c
        self.lam_d = lam_d
        self.affinity = affinity
        self.n_kept = n_kept
        self.scale = scale
        self.rho = rho
        self.mu0 = mu0
        self.mu_max = mu_max
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.views = views
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _solve(self, views: Views, Xs: list[Array]) -> Array:
        run = self._run()
        C, Ds = solve_csmsc(
            Xs, lam_c=self.lam_c, lam_d=self.lam_d, rho=self.rho, mu0=self.mu0,
            mu_max=self.mu_max, run=run,
        )  # fmt: skip
        self.n_iter_ = run.n_iter
        xp = array_namespace(C)
        back = (lambda A: A) if self.device is None else to_numpy
        self.consistent_, self.specific_ = back(C), [back(D) for D in Ds]
        return xp.abs(C) + sum(xp.abs(D) for D in Ds) / len(Ds)

    def _n_square(self, views: Views) -> float:
        return super()._n_square(views) + len(views.arrays)


def solve_csmsc(
    Xs: Sequence[Array],
    *,
    lam_c: float,
    lam_d: float,
    rho: float = 1.9,
    mu0: float = 1e-4,
    mu_max: float = 1e6,
    run: Run | None = None,
) -> tuple[Array, list[Array]]:
    """The common C and the specific D_v of views Xs, samples in rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> C, (D,) = solve_csmsc([X], lam_c=0.01, lam_d=0.01)
    >>> np.allclose(X.T @ (C + D), X.T)
    True
    """
    run = Run("CSMSC", 100, 1e-6) if run is None else run
    Rs, squares, back = zip(*(orthogonal_rows(X) for X in Xs), strict=True)
    xp = array_namespace(*Rs)
    R, s2 = xp.concat(Rs), xp.concat(squares)
    ends = np.cumsum([part.shape[0] for part in Rs])
    rows = [slice(int(b - part.shape[0]), int(b)) for b, part in zip(ends, Rs, strict=True)]
    I, _, c_step = factor_z_step(R.T @ R, None)
    # As in LRR: B stands for U^T (I - C), J and Y2 for U^T J and U^T Y2, I is U^T, Q is R U.
    Q = R @ I.T
    E, Y1, XD = xp.zeros_like(R), xp.zeros_like(R), xp.zeros_like(R)
    B, Y2, mu = I + 0.0, xp.zeros_like(I), mu0
    lower_singular = prox.SingularThreshold()
    for _ in run:
        J = lower_singular(I - B + Y2 / mu, lam_c / mu)
        B = c_step(1.0, Y2 / mu - J + Q.T @ (XD + E - Y1 / mu))
        T = Q @ B + Y1 / mu  # X - X C + Y/mu
        F = (T - E) / (s2 + 2 * lam_d / mu)  # D_v = X_v^T F_v, as X_v X_v^T is diag(s2)
        XD = s2 * F
        T = T - XD
        for k in rows:
            E[k, :] = prox.columns(T[k, :], 1 / mu)
        gap = T - E - Y1 / mu
        Y1 = Y1 + mu * gap
        split = I - B - J
        Y2 = Y2 + mu * split
        mu = min(rho * mu, mu_max)
        run.check(
            split=largest_entry(split, I.shape[0], run.tol, lambda A: I.T @ A),
            data=max(
                largest_entry(gap[k, :], X.shape[1], run.tol, to_features)
                for k, X, to_features in zip(rows, Xs, back, strict=True)
            ),
        )
    return I.T @ (I - B), [R[k, :].T @ F[k, :] for k in rows]
