"""DSSMSC: dual shared-specific multi-view subspace clustering.

Shared and specific parts are learned twice: of the latent representation of every view, and of how
its samples represent each other. View v (X_v, d_v x n, samples in columns) is projected to
``H^v = [H_s; H_v]``, with H_s common to all views and H_v its own. Objective::

    min |Z|_* + lam_d sum_v |Z_v|_1 + lam sum_v |[E_v^p; E_v^h]|_{2,1}
    s.t. P_v X_v = H^v + E_v^p,  H^v = H^v (Z + Z_v) + E_v^h,  diag Z_v = 0,  P_v P_v^T = I

The augmented Lagrangian splits off J = Z and Q_v = Z_v, starts at random H_s and H_v and repeats,
with B_v = I - Z - Z_v, for each view::

    P_v = U V^T  with  U S V^T = (H^v + E_v^p - Y_v^p/mu) X_v^T
    H_v : H_v (I + B_v B_v^T) = its rows of P_v X_v - E_v^p + Y_v^p/mu + (E_v^h - Y_v^h/mu) B_v^T
    Q_v = Z_v + Y_v^s/mu, entries shrunk by lam_d/mu, zero diagonal
    Z_v = (H^vT H^v + I)^-1 (H^vT (H^v - H^v Z - E_v^h + Y_v^h/mu) + Q_v - Y_v^s/mu)
    E_v = columns of [P_v X_v - H^v + Y_v^p/mu; H^v B_v + Y_v^h/mu], shortened by lam/mu

then for all of them::

    J   = Z + Y/mu, singular values lowered by 1/mu
    Z   = (sum_v H^vT H^v + I)^-1 (sum_v H^vT (H^v - H^v Z_v - E_v^h + Y_v^h/mu) + J - Y/mu)
    H_s : as H_v, with the sums over all views on both sides
    Y_v^p += mu (P_v X_v - H^v - E_v^p);  Y_v^h += mu (H^v B_v - E_v^h)
    Y_v^s += mu (Z_v - Q_v);  Y += mu (Z - J);  mu = min(rho mu, mu_max)

The affinity is the mean of those of the ``Z + Z_v``. The objective and the steps are those of the
authors' public program, which has two guards of 1e-8 that are not here; the paper's text was not at
hand. Its P_v is the best one only if it has at least as many rows as columns: of fewer rows, the
length of P_v X_v depends on P_v, which the step leaves out.

Reference: T. Zhou, C. Zhang, X. Peng, H. Bhaskar, J. Yang, "Dual shared-specific multiview subspace
clustering", IEEE Transactions on Cybernetics 50(8), 2020 (online 2019).
"""

from collections.abc import Sequence
from copy import deepcopy

from array_api_compat import array_namespace, device
from sklearn.utils import check_random_state

from polyspan.base import About, OnDevice, Penalized, Representation, RepresentationClusterer
from polyspan.inputs.params import fitted, integer, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, diagonal_mask, largest_row_sum
from polyspan.solvers import prox
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import reduce_rows


class DSSMSC(RepresentationClusterer, Penalized, OnDevice):
    """Dual shared-specific subspace clustering: shared and own parts of latent space and of Z.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam : float, default=0.1
        Weight of the errors.
    lam_d : float, default=0.001
        Weight of the specific representations Z_v, beta in the paper. Both weights are those of
        the program for BBCSport, which asks for others on other data.
    shared_dim, specific_dim : int, default=30 and 80
        Dimensions of H_s and of the H_v.
    rho, mu0, mu_max : float, default=1.5, 1e-4 and 1e6
        Growth, start and limit of the penalty mu.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-3
        Stop when the sum of absolute values is smaller in every row of the four residuals, by
        which the multipliers change. The program has 1e-6, which its 100 iterations seldom reach:
        ``Z_v - Q_v`` falls slowly once mu is at its limit.
    random_state : int, RandomState or None, default=None
        Seeds the start of H_s and the H_v, on which the result depends, and k-means.
    affinity, n_kept, scale, n_init, views, device, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, affinity_matrix_, n_iter_
        As in `GRMSC`.
    representation_ : (n, n) array
        Mean of the ``|Z + Z_v|``, from which the affinity is computed.
    consistent_ : (n, n) array
        Z, what the views share.
    specific_ : list of (n, n) arrays
        The Z_v.
    latent_ : (n, shared_dim) array
        H_s^T, the part of the latent representations that the views share.
    history_ : dict
        Per iteration: ``data``, ``latent``, ``sparse`` and ``low_rank``, what ``tol`` limits.

    Examples
    --------
    >>> from polyspan import DSSMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> DSSMSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Zhou et al., IEEE Trans. Cybernetics 2020, doi:10.1109/TCYB.2019.2918495",
        objective="min |Z|_* + lam_d sum_v |Z_v|_1 + lam sum_v |[E_v^p; E_v^h]|_{2,1}, "
        "P_v X_v = H^v + E_v^p, H^v = H^v (Z + Z_v) + E_v^h, P_v P_v^T = I, diag Z_v = 0",
        needs="lam, lam_d, shared_dim, specific_dim; random start",
        cost="O(m n^3) per iteration, about 60 iterations",
    )
    solve_counts = False
    draws = True  # its start

    lam: float = param(positive, default=0.1)
    lam_d: float = param(positive, default=0.001)
    shared_dim: int = param(integer(1), default=30)
    specific_dim: int = param(integer(1), default=80)
    rho: float = 1.5
    tol: float = 1e-3

    consistent_: Array = fitted()
    specific_: list[Array] = fitted()
    latent_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return the mean of the ``|Z + Z_v|``, with its parts and H_s."""
        # From a copy, so that k-means finds a RandomState at its start, as with a number.
        random, n = deepcopy(check_random_state(self.random_state)), views.n_samples
        start = [random.uniform(size=(self.shared_dim, n))]
        start += [random.uniform(size=(self.specific_dim, n)) for _ in Xs]
        run = self._run()
        params = self._given("lam", "lam_d")
        Z, Zs, H = solve_dssmsc(Xs, start, **params, **self._penalty(), run=run)
        xp, back = array_namespace(Z), self.brought_back
        mean = sum(xp.abs(Z + own) for own in Zs) / len(Zs)
        found = {"consistent_": back(Z), "specific_": list(map(back, Zs)), "latent_": back(H.T)}
        return Representation(mean, **run.record(), extras=found)

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: three more for every view."""
        return super().footprint(views)[0] + 6 * len(views.arrays), 0.0


def solve_dssmsc(
    Xs: Sequence[Array],
    start: Sequence[Array],
    *,
    lam: float,
    lam_d: float,
    rho: float = 1.5,
    mu0: float = 1e-4,
    mu_max: float = 1e6,
    run: Run | None = None,
) -> tuple[Array, list[Array], Array]:
    """Z, the Z_v and H_s of views Xs (samples in rows), from a start of H_s and of every H_v.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, start = rng.normal(size=(9, 6)), rng.uniform(size=(2, 3, 9))
    >>> Z, (Z1,), H = solve_dssmsc([X], start, lam=1.0, lam_d=0.1)
    >>> Z.shape, Z1.shape, H.shape
    ((9, 9), (9, 9), (3, 9))
    """
    run = Run("DSSMSC", 100, 1e-3) if run is None else run
    Rs = [reduce_rows(X)[0] for X in Xs]
    xp = array_namespace(*Rs)
    views, n = range(len(Rs)), Rs[0].shape[1]
    Hs, *Hv = (xp.asarray(H, dtype=Rs[0].dtype, device=device(Rs[0])) for H in start)
    k, I = Hs.shape[0], xp.eye(n, dtype=Hs.dtype, device=device(Hs))
    Z = Y = xp.zeros_like(I)
    Zs, Qs, Ys, Bs = ([Z] * len(Rs) for _ in range(4))
    Yp, Yh, Ep, Eh, PX = ([xp.zeros_like(_all(Hs, H)) for H in Hv] for _ in range(5))
    diagonal = diagonal_mask(Z)
    lower_singular, mu = prox.SingularThreshold(), mu0
    for _ in run:
        sides = []
        for v in views:
            H = _all(Hs, Hv[v])
            U, _s, Vt = xp.linalg.svd((H + Ep[v] - Yp[v] / mu) @ Rs[v].T, full_matrices=False)
            PX[v] = U @ (Vt @ Rs[v])
            Bs[v] = I - Z - Zs[v]
            side = PX[v] - Ep[v] + Yp[v] / mu + (Eh[v] - Yh[v] / mu) @ Bs[v].T
            Hv[v] = xp.linalg.solve(I + Bs[v] @ Bs[v].T, side[k:, :].T).T
            H = _all(Hs, Hv[v])
            Q = prox.soft(Zs[v] + Ys[v] / mu, lam_d / mu)
            Qs[v] = xp.where(diagonal, xp.zeros_like(Q), Q)
            F = H - Eh[v] + Yh[v] / mu
            Zs[v] = ridge(H, F - H @ Z, Qs[v] - Ys[v] / mu)
            own = H @ Zs[v]
            E = xp.concat([PX[v] - H + Yp[v] / mu, H - H @ Z - own + Yh[v] / mu])
            E = prox.columns(E, lam / mu)
            Ep[v], Eh[v] = E[: H.shape[0], :], E[H.shape[0] :, :]
            sides.append(H - own - Eh[v] + Yh[v] / mu)
        J = lower_singular(Z + Y / mu, 1 / mu)
        Z = ridge(xp.concat([_all(Hs, H) for H in Hv]), xp.concat(sides), J - Y / mu)
        side, total = xp.zeros_like(Hs), xp.zeros_like(I)
        for v in views:
            Bs[v] = I - Z - Zs[v]
            side = side + (PX[v] - Ep[v] + Yp[v] / mu + (Eh[v] - Yh[v] / mu) @ Bs[v].T)[:k, :]
            total = total + I + Bs[v] @ Bs[v].T
        Hs = xp.linalg.solve(total, side.T).T
        sizes = []
        for v in views:
            H = _all(Hs, Hv[v])
            gaps = PX[v] - H - Ep[v], H @ Bs[v] - Eh[v], Zs[v] - Qs[v]
            Yp[v], Yh[v], Ys[v] = (
                Y_v + mu * gap for Y_v, gap in zip((Yp[v], Yh[v], Ys[v]), gaps, strict=True)
            )
            sizes.append(list(map(largest_row_sum, gaps)))
        split = Z - J
        Y = Y + mu * split
        mu = min(rho * mu, mu_max)
        data, latent, sparse = map(max, zip(*sizes, strict=True))
        run.check(data=data, latent=latent, sparse=sparse, low_rank=largest_row_sum(split))
    return Z, Zs, Hs


def _all(Hs: Array, Hv: Array) -> Array:
    return array_namespace(Hs).concat([Hs, Hv])


def ridge(H: Array, F: Array, C: Array) -> Array:
    """Return ``(H^T H + I)^-1 (H^T F + C)``; H has fewer rows than columns, mostly.

    Examples
    --------
    >>> import numpy as np
    >>> H, F, C = np.ones((1, 2)), np.ones((1, 2)), np.eye(2)
    >>> np.allclose((H.T @ H + np.eye(2)) @ ridge(H, F, C), H.T @ F + C)
    True
    """
    xp = array_namespace(H)
    r, n = H.shape
    I = xp.eye(min(r, n), dtype=H.dtype, device=device(H))
    if r < n:
        return C + H.T @ xp.linalg.solve(H @ H.T + I, F - H @ C)
    return xp.linalg.solve(H.T @ H + I, H.T @ F + C)
