"""GLMSC: generalized latent multi-view subspace clustering.

All views are images of one latent H (K x n), whose columns represent each other. With samples in
the columns of X_v (d_v x n)::

    min sum_v |X_v - f_v(H)|_F^2 / 2 + lam_self |H - H Z|_F^2 / 2 + lam_rank |Z|_*

``mapping="linear"``: ``f_v(H) = P_v H`` and ``P^T P = I`` for the P_v below each other (without
that, a small H and a large P would cost nothing). ``mapping="network"``: ``f_v(H) = A_v tanh(B_v
H)``, and ``decay/2`` times the squares of all A_v and B_v is added. Repeated are, in both cases::

    Z = V diag(max(0, 1 - lam_rank / (lam_self s^2))) V^T  with  U diag(s) V^T = H

linear, from ``H = P^T X`` with the leading left singular vectors P of the stacked views X::

    H : H (I + lam_self (I - Z)^2) = P^T X;   P = U V^T  with  U S V^T = X H^T

with networks, from the same H and random B_v::

    A_v = X_v T_v^T (T_v T_v^T + decay I)^-1,  T_v = tanh(B_v H)
    H, then all B_v: a gradient step, as long as the objective falls by half its length times |g|^2

Every step lowers the objective, and all but the last two are its exact minimum; Z is that of the
closed form of Favaro, Vidal and Ravichandran (CVPR 2011).

Neither program nor full text was at hand; the abstract and summaries by others tell of a linear
and a neural version of LMSC with one latent representation, its self-representation and a nuclear
norm. Ours are the squares (LMSC has l2,1 norms, which need an augmented Lagrangian), all constants,
the starts, the closed forms in place of an augmented Lagrangian, one hidden layer, and gradient
steps on all samples. With squares the linear version has a plain answer: Z is a function of the
singular values of the stacked views.

Reference: C. Zhang, H. Fu, Q. Hu, X. Cao, Y. Xie, D. Tao, D. Xu, "Generalized latent multi-view
subspace clustering", IEEE TPAMI 42(1), 2020.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from polyspan.base import About, InNumPy, Representation, RepresentationClusterer
from polyspan.inputs.params import fitted, integer, one_of, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array
from polyspan.runtime.optional import require
from polyspan.solvers.eigen import eigh
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import reduce_rows


class GLMSC(RepresentationClusterer, InNumPy):
    """Generalized latent subspace clustering: views are linear or neural images of one latent H.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    mapping : {"linear", "network"}, default="linear"
        How the views follow from the latent representation; networks need the extra ``torch``.
    lam_self : float, default=1.0
        Weight of the self-representation of H, lambda1 in the paper.
    lam_rank : float, default=0.3
        Weight of the nuclear norm, lambda2 in the paper.
    latent_dim : int, default=100
        Dimension K of the latent representation, limited to min(n, d) of the stacked views.
    hidden_dim : int, default=100
        Width of the hidden layer of every network.
    decay : float, default=0.1
        Weight of the squared weights of the networks.
    max_iter : int, default=300
        Maximum number of iterations.
    tol : float, default=1e-3
        Stop when the objective falls by less than this fraction of it.
    random_state : int, RandomState or None, default=None
        Seeds the start of the networks, and k-means; the linear version has no random start.
    affinity, n_kept, scale, n_init, views, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, representation_, affinity_matrix_, n_iter_
        As in `GRMSC`.
    latent_ : (n, K) array
        H^T, the representation common to all views; one row per sample.
    history_ : dict
        Per iteration: ``fall``, the relative fall of the objective.

    Examples
    --------
    >>> from polyspan import GLMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> GLMSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Zhang et al., TPAMI 2020, doi:10.1109/TPAMI.2018.2877660",
        objective="min sum_v |X_v - f_v(H)|_F^2 / 2 + lam_self |H - H Z|_F^2 / 2 + lam_rank |Z|_*",
        needs="lam_rank, latent_dim; mapping='network' needs torch and has a random start",
        cost="O(n^3) once, O(n K (K + m n)) per iteration",
    )
    solve_counts = False

    mapping: str = param(one_of("linear", "network"), default="linear")
    lam_self: float = param(positive, default=1.0)
    lam_rank: float = param(positive, default=0.3)
    latent_dim: int = param(integer(1), default=100)
    hidden_dim: int = param(integer(1), default=100)
    decay: float = param(positive, default=0.1)
    max_iter: int = 300
    tol: float = 1e-3

    latent_: Array = fitted()

    def _shareable(self) -> bool:
        """The start of networks is random."""
        return self.mapping == "linear"

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return Z, with the latent H."""
        run, weights = self._run(), self._given("lam_self", "lam_rank")
        X = sp.csr_array(sp.hstack(Xs)) if any(map(sp.issparse, Xs)) else np.hstack(Xs)
        if self.mapping == "linear":
            Z, H = solve_linear(X, self.latent_dim, **weights, run=run)
        else:
            # From a copy, so that k-means finds a RandomState at its start, as with a number.
            random = deepcopy(check_random_state(self.random_state))
            H = start_latent(reduce_rows(X)[0].astype(np.float64), self.latent_dim)
            shape = (self.hidden_dim, len(H))
            Bs = [random.normal(size=shape) / len(H) ** 0.5 for _ in Xs]
            Z, H = solve_networks(Xs, H, Bs, decay=self.decay, **weights, run=run)
        return Representation(Z, **run.record(), extras={"latent_": H.T})


def start_latent(M: np.ndarray, K: int) -> np.ndarray:
    """The K leading principal directions of the samples (columns of M), times their lengths.

    Signs are such that the cubes of a row sum to a positive number, whatever the order of samples.

    Examples
    --------
    >>> start_latent(np.array([[3.0, 0.0], [0.0, -1.0]]), 2)
    array([[3., 0.],
           [0., 1.]])
    """
    _, s, Vt = np.linalg.svd(M, full_matrices=False)
    H = s[:K, None] * Vt[:K]
    return H * np.where(np.sum(H**3, axis=1, keepdims=True) < 0, -1, 1) + 0.0


def latent_step(H: np.ndarray, lam_self: float, lam_rank: float) -> tuple[np.ndarray, np.ndarray]:
    """The leading right singular vectors V of H and the z with ``Z = V diag(z) V^T``.

    Examples
    --------
    >>> V, z = latent_step(np.array([[2.0, 0.0], [0.0, 1.0]]), 1.0, 1.0)
    >>> (V * z) @ V.T
    array([[0.75, 0.  ],
           [0.  , 0.  ]])
    """
    w, U = eigh(H @ H.T)
    kept = w > lam_rank / lam_self
    w, U = w[kept], U[:, kept]
    return H.T @ (U / np.sqrt(w)), 1 - lam_rank / (lam_self * w)


def cost_of_z(
    H: np.ndarray, V: np.ndarray, z: np.ndarray, lam_self: float, lam_rank: float
) -> float:
    """The two terms of the objective that have Z.

    Examples
    --------
    >>> H = np.eye(2)
    >>> cost_of_z(H, H[:, :1], np.ones(1), 1.0, 0.5)
    1.0
    """
    gap = H - ((H @ V) * z) @ V.T
    return lam_self / 2 * float(np.sum(gap * gap)) + lam_rank * float(np.sum(z))


def solve_linear(
    X: Array, K: int, *, lam_self: float, lam_rank: float, run: Run | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Z and H of the stacked views X (samples in rows).

    Examples
    --------
    >>> Z, H = solve_linear(np.diag([3.0, 3.0, 0.1]), 2, lam_self=1.0, lam_rank=1.0)
    >>> Z.round(2)
    array([[0.89, 0.  , 0.  ],
           [0.  , 0.89, 0.  ],
           [0.  , 0.  , 0.  ]])
    """
    run = Run("GLMSC", 300, 1e-3) if run is None else run
    M = reduce_rows(X)[0].astype(np.float64)
    H = PX = start_latent(M, K)
    before = np.inf
    for _ in run:
        V, z = latent_step(H, lam_self, lam_rank)
        # (I + lam (I - Z)^2)^-1, for Z = V diag(z) V^T
        a, b = 1 / (1 + lam_self), 1 / (1 + lam_self * (1 - z) ** 2)
        H = a * PX + ((PX @ V) * (b - a)) @ V.T
        U, _, Wt = np.linalg.svd(M @ H.T, full_matrices=False)
        P = U @ Wt
        PX = P.T @ M
        gap = M - P @ H
        cost = float(np.sum(gap * gap)) / 2 + cost_of_z(H, V, z, lam_self, lam_rank)
        before = _fall(run, before, cost)
    V, z = latent_step(H, lam_self, lam_rank)
    return (V * z) @ V.T, H


def solve_networks(
    Xs: Sequence[Array],
    H: np.ndarray,
    Bs: Sequence[np.ndarray],
    *,
    lam_self: float,
    lam_rank: float,
    decay: float,
    run: Run | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Z and H of views Xs (samples in rows), from a start of H and of the first layers Bs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, H, B = rng.normal(size=(9, 6)), rng.normal(size=(3, 9)), rng.normal(size=(5, 3))
    >>> Z, H = solve_networks([X], H, [B], lam_self=1.0, lam_rank=0.1, decay=0.1)
    >>> Z.shape, H.shape
    ((9, 9), (3, 9))
    """
    torch = require("torch", "torch", "GLMSC with networks")
    run = Run("GLMSC", 300, 1e-3) if run is None else run
    Rs = [torch.asarray(reduce_rows(X)[0].astype(np.float64)) for X in Xs]
    latent: Any = torch.asarray(H)
    B: Any = torch.asarray(np.stack(Bs))
    I = torch.eye(B.shape[1], dtype=latent.dtype)
    before, steps = np.inf, [1.0, 1.0]
    for _ in run:
        V, z = (torch.asarray(part) for part in latent_step(latent.numpy(), lam_self, lam_rank))
        A = []
        for R, B_v in zip(Rs, B, strict=True):
            T = torch.tanh(B_v @ latent)
            A.append(torch.linalg.solve(T @ T.T + decay * I, T @ R.T).T)

        def cost(H: Any, B: Any, V: Any = V, z: Any = z, A: Any = A) -> Any:
            """The objective for given Z and A, without the terms that only they have."""
            gap = H - ((H @ V) * z) @ V.T
            total = lam_self * torch.sum(gap**2) + decay * torch.sum(B**2)
            for R, A_v, B_v in zip(Rs, A, B, strict=True):
                total = total + torch.sum((R - A_v @ torch.tanh(B_v @ H)) ** 2)
            return total / 2

        latent, steps[0] = _step(torch, partial(cost, B=B), latent, steps[0])
        B, steps[1] = _step(torch, partial(cost, latent), B, steps[1])
        rest = decay / 2 * sum(torch.sum(A_v**2) for A_v in A) + lam_rank * torch.sum(z)
        before = _fall(run, before, float(cost(latent, B) + rest))
    H = latent.numpy()
    V, z = latent_step(H, lam_self, lam_rank)
    return (V * z) @ V.T, H


def _step(torch: Any, cost: Callable[[Any], Any], x: Any, t: float) -> tuple[Any, float]:
    """A gradient step that lowers the cost enough, and the length to try next."""
    x = x.detach().requires_grad_()
    value = cost(x)
    (g,) = torch.autograd.grad(value, x)
    with torch.no_grad():
        size = torch.sum(g * g)
        while t > 1e-12:
            new = x - t * g
            if cost(new) <= value - t / 2 * size:
                return new, 2 * t
            t /= 2
    return x.detach(), 1.0


def _fall(run: Run, before: float, cost: float) -> float:
    """Record how much the objective fell, relative to it."""
    run.check(fall=min((before - cost) / max(cost, np.finfo(np.float64).tiny), 1.0))
    return cost
