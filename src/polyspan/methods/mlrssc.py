"""MLRSSC: multi-view low-rank sparse subspace clustering, linear or with kernels.

Every view v of m has a kernel K_v, inner products of its samples or of their images phi, and its
own representation C_v, which is low-rank, sparse and close to those of other views. Objective::

    min sum_v lam/2 |phi(X_v) - phi(X_v) C_v|_F^2 + rank_share |C_v|_* + (1 - rank_share) |C_v|_1
        + lam_agreement R(C)   s.t.  diag C_v = 0

    pairwise:  R(C) = sum_{v<w} |C_v - C_w|_F^2        centroid:  R(C) = sum_v |C_v - C*|_F^2

ADMM with A = C1 = C2 = C3 per view and all mu equal repeats::

    A  = (lam K + 3 mu I)^-1 (lam K + mu (C1 + C2 + C3) - L1 - L2 - L3)
    C2 = A + L2/mu, entries shrunk by (1 - rank_share)/mu, zero diagonal
    C1 = A + L1/mu, singular values lowered by rank_share/mu
    C3 = (t sum_{w != v} C2_w + mu A + L3) / (t (m - 1) + mu)                          pairwise
    C3 = (t C* + mu A + L3) / (t + mu),  C* = mean of the C2_v                         centroid
    Li += mu (A - Ci);  mu = min(rho mu, mu_max)

with t = 2 lam_agreement. The mean of the C2 is the representation, and also the centroid. The paper
has no lam (it is 1) and does not scale the features, so their size weighs the data against the
penalties; samples of length 1 need a weight instead.

As mu starts high and grows by half, the loop ends above the optimum: 2% on 40 texts in one view
(`benchmarks/optimum.py`). ``MLRSSC(rho=1.02, mu0=1.0, max_iter=2000)`` ends at the optimum.

The authors' program, ``as_released=True``, also waits until no entry of A changes by tol, and its
median distance is that of all n^2 pairs, those of the samples with themselves included. With
``variant="centroid"`` it has another centroid, because it never sets the sum back to zero::

    C* = (C* + lam_agreement sum_v C2_v) / (m lam_agreement)

C* is then what is clustered. It settles at a multiple of the mean only if m lam_agreement > 1, and
grows without limit otherwise.

Reference: M. Brbic, I. Kopriva, "Multi-view low-rank sparse subspace clustering", Pattern
Recognition 73, 2018.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from polyspan.base import About, OnDevice, Penalized, Representation, RepresentationClusterer
from polyspan.graphs.proximity import median_kernel
from polyspan.inputs.params import flag, one_of, param, positive, real, weight
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, gram
from polyspan.solvers import prox
from polyspan.solvers.eigen import eigh
from polyspan.solvers.loop import Run


def _sigma(value: Any) -> str | None:
    single = not isinstance(value, list | tuple | np.ndarray)
    right = [positive(x) is None for x in ([value] if single else value)]
    return (
        None
        if right and all(right)
        else "a finite number >= 1e-50 and <= 1e+50, or a list with one per view"
    )


class MLRSSC(RepresentationClusterer, Penalized, OnDevice):
    """Multi-view low-rank sparse subspace clustering: one representation per view, kept similar.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    variant : {"pairwise", "centroid"}, default="pairwise"
        Make the representations of the views agree with each other, or with their mean.
    kernel : {"linear", "gaussian"}, default="linear"
        Inner products, or ``exp(-d^2 / (2 s^2))`` with s = ``sigma`` times the view's median
        distance.
    sigma : float or list of float, default=1.0
        Width of the Gaussian kernel in median distances; one for all views, or one per view.
    rank_share : float, default=0.3
        Weight of the nuclear norm, beta1 in the paper; that of the l1 norm is ``1 - rank_share``.
    lam_agreement : float, default=0.3
        Weight of the agreement between views, lam3 in the authors' program.
    lam : float, default=100.0
        Weight of the data; the paper uses 1, with ``scale=None``.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        As in `GRMSC`. The paper uses None: views with larger numbers then count more.
    as_released : bool, default=False
        Follow the authors' program, which has another centroid, waits for A and takes another
        median distance, see the module.
    mu0, rho, mu_max : float, default=100.0, 1.5 and 1e6
        Start, growth and limit of the penalty mu. The start matters (the paper uses 100 to 1e4):
        mu grows fast, so the loop ends before the optimum, and the larger mu starts, the further
        from it.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-5
        Stop when all entries of ``A - C1``, ``A - C2`` and ``A - C3`` are smaller. The paper uses
        1e-3 with the linear and 1e-5 with the Gaussian kernel. ``as_released`` also wants all
        changes of A to be smaller.
    n_init : int, default=20
        Restarts of k-means; the paper uses 1.
    affinity, n_kept, views, device, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, affinity_matrix_, n_iter_
        As in `GRMSC`.
    representation_ : (n, n) array
        Mean of the representations C2 of all views; ``as_released`` the program's centroid, if
        ``variant="centroid"``.
    history_ : dict
        Per iteration: ``low_rank``, ``sparse`` and ``agreement``, the largest entries of ``A -
        C1``, ``A - C2`` and ``A - C3`` over all views; ``as_released`` also ``change``, that of
        the change of A.

    Examples
    --------
    >>> from polyspan import MLRSSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> MLRSSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Brbic and Kopriva, Pattern Recognition 2018, arXiv:1708.08732",
        objective="min sum_v lam/2 |X_v - X_v C_v|_F^2 + rank_share |C_v|_* "
        "+ (1 - rank_share) |C_v|_1 + lam_agreement R(C)",
        needs="rank_share, lam_agreement and mu0; lam=1 if scale=None; kernel",
        cost="O(m n^3) per iteration, about 25 iterations",
    )
    solve_counts = False

    variant: str = param(one_of("pairwise", "centroid"), default="pairwise")
    kernel: str = param(one_of("linear", "gaussian"), default="linear")
    sigma: float | Sequence[float] = param(_sigma, default=1.0)
    rank_share: float = param(real(0, 1), default=0.3)
    lam_agreement: float = param(weight, default=0.3)
    lam: float = param(positive, default=100.0)
    as_released: bool = param(flag, default=False)
    mu0: float = 100.0
    rho: float = 1.5
    tol: float = 1e-5

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return the mean of the representations C2 of all views, or the program's centroid."""
        if self.as_released and self.variant == "centroid" and self.lam_agreement == 0:
            raise ValueError(
                "MLRSSC: as_released divides the centroid by lam_agreement, which is 0: pass "
                "lam_agreement > 0."
            )
        sigmas: Any = self.sigma if np.ndim(self.sigma) else [self.sigma] * len(Xs)
        if len(sigmas) != len(Xs):
            raise ValueError(
                f"MLRSSC: sigma has {len(sigmas)} numbers for {len(Xs)} views: pass one per view."
            )
        if self.kernel == "linear":
            Ks = [self.lam * gram(X) for X in Xs]
        else:
            Ks = [
                self.lam * median_kernel(X, s, diagonal=self.as_released)
                for X, s in zip(Xs, sigmas, strict=True)
            ]
        run = self._run()
        params = self._given("variant", "rank_share", "lam_agreement", "as_released")
        return Representation(
            solve_mlrssc(Ks, **params, **self._penalty(), run=run), **run.record()
        )

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: ten per view."""
        return 10.0 + 10 * len(views.arrays), 0.0


def solve_mlrssc(
    Ks: Sequence[Array],
    *,
    rank_share: float,
    lam_agreement: float,
    variant: str = "pairwise",
    as_released: bool = False,
    mu0: float = 100.0,
    rho: float = 1.5,
    mu_max: float = 1e6,
    run: Run | None = None,
) -> Array:
    """The mean representation of views with (weighted) kernels Ks, or the program's centroid.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> C = solve_mlrssc([100 * X @ X.T], rank_share=0.3, lam_agreement=0.0)
    >>> np.allclose(np.diag(C), 0)
    True
    """
    run = Run("MLRSSC", 100, 1e-5) if run is None else run
    xp = array_namespace(*Ks)
    m, mu, t = len(Ks), mu0, 2 * lam_agreement
    factors = [eigh(K) for K in Ks]
    zero = xp.zeros_like(Ks[0])
    off_diagonal = 1 - xp.eye(zero.shape[0], dtype=zero.dtype, device=device(zero))
    C1s, C2s, C3s, L1s, L2s, L3s = ([zero] * m for _ in range(6))
    thresholds = [prox.SingularThreshold() for _ in Ks]
    others = m - 1 if variant == "pairwise" else 1
    centroid, As = zero, [zero] * m
    kept = as_released and variant == "centroid"
    for _ in run:
        total = sum(C2s, start=zero)
        if not kept:
            centroid = total / m
        worst = np.zeros(3 + as_released)
        for v, (K, (g, U), lower_singular) in enumerate(zip(Ks, factors, thresholds, strict=True)):
            B = K + mu * (C1s[v] + C2s[v] + C3s[v]) - L1s[v] - L2s[v] - L3s[v]
            A = U @ ((U.T @ B) / (g + 3 * mu)[:, None])
            near = total - C2s[v] if variant == "pairwise" else centroid
            C2s[v] = off_diagonal * prox.soft(A + L2s[v] / mu, (1 - rank_share) / mu)
            C1s[v] = lower_singular(A + L1s[v] / mu, rank_share / mu)
            C3s[v] = (t * near + mu * A + L3s[v]) / (t * others + mu)
            gaps = [A - C1s[v], A - C2s[v], A - C3s[v]]
            L1s[v], L2s[v], L3s[v] = (
                L + mu * gap for L, gap in zip((L1s[v], L2s[v], L3s[v]), gaps, strict=True)
            )
            if as_released:
                gaps.append(A - As[v])
                As[v] = A
            worst = np.maximum(worst, [float(xp.max(xp.abs(gap))) for gap in gaps])
        if kept:  # as in the program, the sum goes on from the last centroid
            centroid = (centroid + lam_agreement * sum(C2s, start=zero)) / (m * lam_agreement)
        mu = min(rho * mu, mu_max)
        names = ("low_rank", "sparse", "agreement", "change")[: len(worst)]
        run.check(**dict(zip(names, worst, strict=True)))
    return centroid if kept else sum(C2s, start=zero) / m
