"""LMSC: latent multi-view subspace clustering.

All views are stacked into M (d x n, samples in columns) and seen as images of one latent H
(K x n), whose columns are represented by each other. Objective::

    min |[E_h; E_r]|_{2,1} + lam_rank |Z|_*   s.t.  M = P H + E_h,  H = H Z + E_r,  P^T P = I

The augmented Lagrangian splits off J = Z, starts at a random H and repeats::

    P = U V^T  with  U S V^T = (M - E_h + Y1/mu) H^T
    H : H + H (I - Z)(I - Z)^T = P^T (M - E_h + Y1/mu) + (E_r - Y2/mu)(I - Z)^T
    J = Z - Y3/mu, singular values lowered by lam_rank/mu
    Z = (H^T H + I)^-1 (J + H^T (H - E_r) + (Y3 + H^T Y2)/mu)
    [E_h; E_r] = columns of [M - P H + Y1/mu; H - H Z + Y2/mu], shortened by 1/mu
    Y1 += mu (M - P H - E_h);  Y2 += mu (H - H Z - E_r);  Y3 += mu (J - Z)
    mu = min(rho mu, mu_max)

The Sylvester equation for H has P^T P = I in front of H, so it is a symmetric linear system.

The authors' program passes this equation's right-hand side to a solver of A X + X B + C = 0, which
returns -H. The published figures come from that program; ``as_released=True`` follows it, and like
it adds 1e-6 I to mu (I - Z)(I - Z)^T and 1e-8 I to the matrix whose singular values are lowered:
two guards, which the paper does not have. The first is no trifle at first, as mu starts at 1e-4.
``as_released="corrected"`` is the program with its sign corrected and both guards, for which there
are figures, too. The default has no guards.

With lam_rank = 1 the Z as released was seen to tend to zero (1e-8 on 3-Sources): what is then
clustered is whatever is left of it when the loop stops, so the figures depend on the stopping rule.
That rule and all constants are the program's; its infinity norm is the largest sum over a row.

Reference: C. Zhang, Q. Hu, H. Fu, P. Zhu, X. Cao, "Latent multi-view subspace clustering", CVPR
2017.
"""

from copy import deepcopy
from typing import Any

import scipy.sparse as sp
from array_api_compat import array_namespace, device
from sklearn.utils import check_random_state

from polyspan.base import About, OnDevice, Penalized, Representation, RepresentationClusterer
from polyspan.inputs.params import fitted, flag, integer, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, largest_row_sum
from polyspan.solvers import prox
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import largest_sum, reduce_rows


def _released(value: Any) -> str | None:
    corrected = isinstance(value, str) and value == "corrected"
    return None if corrected or flag(value) is None else f"{flag(...)}, or 'corrected'"


class LMSC(RepresentationClusterer, Penalized, OnDevice):
    """Latent multi-view subspace clustering: low-rank representation of what the views share.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam_rank : float, default=1.0
        Weight of the nuclear norm relative to the errors, lam in the paper.
    latent_dim : int, default=100
        Dimension K of the latent representation, limited to the number of rows that the stacked
        views have after their exact reduction, min(n, d).
    as_released : bool or "corrected", default=False
        Use -H for H and two small offsets, like the authors' program. This does not minimize the
        objective, but the published figures come from it. ``"corrected"`` is the program with H
        for H: it has the offsets only.
    rho, mu0, mu_max : float, default=1.2, 1e-4 and 1e6
        Growth, start and limit of the penalty mu.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-6
        Stop when the sum of absolute values is smaller in every row of ``M - P H - E_h``,
        ``H - H Z - E_r`` and ``J - Z``.
    random_state : int, RandomState or None, default=None
        Seeds the start of H, on which the result depends, and k-means.
    affinity, n_kept, scale, n_init, views, device, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, representation_, affinity_matrix_, n_iter_
        As in `GRMSC`.
    latent_ : (n, K) array
        H^T, the representation common to all views; one row per sample.
    history_ : dict
        Per iteration: ``data``, ``latent`` and ``split``, the largest row sums of the three
        residuals in ``tol``. The first is an upper bound while the others are not yet below
        ``tol``.

    Examples
    --------
    >>> from polyspan import LMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> LMSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Zhang et al., CVPR 2017",
        objective="min |[E_h; E_r]|_{2,1} + lam_rank |Z|_*, "
        "M = P H + E_h, H = H Z + E_r, P^T P = I",
        needs="lam_rank, latent_dim; random start; as_released for published scores",
        cost="O(n^3) per iteration, about 90 iterations",
    )
    solve_counts = False
    draws = True  # its start

    lam_rank: float = param(positive, default=1.0)
    latent_dim: int = param(integer(1), default=100)
    as_released: bool | str = param(_released, default=False)
    rho: float = 1.2

    latent_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return Z, with the latent H."""
        if any(map(sp.issparse, Xs)):
            X = sp.csr_array(sp.hstack(Xs))
        else:
            X = array_namespace(*Xs).concat(Xs, axis=1)
        K = min(self.latent_dim, *X.shape)
        # From a copy, so that k-means finds a RandomState at its start, as with a number.
        random = deepcopy(check_random_state(self.random_state))
        H = random.uniform(size=(K, views.n_samples))
        run = self._run()
        params = self._given("lam_rank", "as_released")
        Z, H = solve_lmsc(X, H, **params, **self._penalty(), run=run)
        return Representation(Z, **run.record(), extras={"latent_": self.brought_back(H.T)})


def solve_lmsc(
    X: Array,
    H: Array,
    *,
    lam_rank: float,
    as_released: bool | str = False,
    rho: float = 1.2,
    mu0: float = 1e-4,
    mu_max: float = 1e6,
    run: Run | None = None,
) -> tuple[Array, Array]:
    """Z and H of the stacked views X (samples in rows), from a start of H (K x n).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Z, H = solve_lmsc(rng.normal(size=(9, 6)), rng.uniform(size=(4, 9)), lam_rank=0.1)
    >>> Z.shape, H.shape
    ((9, 9), (4, 9))
    """
    run = Run("LMSC", 100, 1e-6) if run is None else run
    M, back = reduce_rows(X)
    xp = array_namespace(M)
    H = xp.asarray(H[: M.shape[0], :], dtype=M.dtype, device=device(M))  # P^T P = I: K <= rows of M
    r, (K, n) = M.shape[0], H.shape
    I, IK = (xp.eye(size, dtype=M.dtype, device=device(M)) for size in (n, K))
    Z = Y3 = xp.zeros_like(I)
    Eh = Y1 = xp.zeros_like(M)
    Er = Y2 = xp.zeros_like(H)
    mu = mu0
    ridge, shift = (1e-6, 1e-8) if as_released else (0.0, 0.0)
    turned = as_released and not isinstance(as_released, str)
    lower_singular = prox.SingularThreshold()
    for _ in run:
        A = M - Eh + Y1 / mu
        U, _s, Vt = xp.linalg.svd(A @ H.T, full_matrices=False)
        P = U @ Vt
        B = I - Z
        H = xp.linalg.solve((1 + ridge / mu) * I + B @ B.T, A.T @ P + B @ (Er - Y2 / mu).T).T
        H = -H if turned else H
        J = lower_singular(Z - Y3 / mu + shift * I, lam_rank / mu)
        # (H^T H + I)^-1 (C + H^T F) = C + H^T (H H^T + I)^-1 (F - H C): smaller, and H^T H, which
        # may be large, is never added to I.
        C, F = J + Y3 / mu, H - Er + Y2 / mu
        Z = C + H.T @ xp.linalg.solve(H @ H.T + IK, F - H @ C)
        D1, D2 = M - P @ H, H - H @ Z
        E = prox.columns(xp.concat([D1 + Y1 / mu, D2 + Y2 / mu]), 1 / mu)
        Eh, Er = E[:r, :], E[r:, :]
        D1, D2, D3 = D1 - Eh, D2 - Er, J - Z
        Y1, Y2, Y3 = Y1 + mu * D1, Y2 + mu * D2, Y3 + mu * D3
        mu = min(rho * mu, mu_max)
        latent, split = largest_row_sum(D2), largest_row_sum(D3)
        # If this iteration is not the last, a bound is enough, which tol=0 gives.
        decides = run.tol if max(latent, split) < run.tol else 0.0
        run.check(data=largest_sum(D1, X.shape[1], decides, back), latent=latent, split=split)
    return Z, H
