"""LRR: robust recovery of subspace structures by low-rank representation, one view.

Objective, with samples in the columns of X (d x n)::

    min |Z|_* + lam |E|_{2,1}   s.t.  X = X Z + E

The inexact augmented Lagrangian (Algorithm 1 there) splits off J = Z and repeats::

    J  = Z + Y2/mu, singular values lowered by 1/mu
    Z  = (I + X^T X)^-1 (X^T (X - E) + J + (X^T Y1 - Y2) / mu)
    E  = columns of X - X Z + Y1/mu, shortened by lam/mu
    Y1 += mu (X - X Z - E);  Y2 += mu (Z - J);  mu = min(rho mu, mu_max)

Reference: G. Liu, Z. Lin, S. Yan, J. Sun, Y. Yu, Y. Ma, "Robust recovery of subspace structures by
low-rank representation", IEEE TPAMI 35(1), 2013.
"""

from array_api_compat import array_namespace

from polyspan.base import About, OnDevice, Penalized, Representation, RepresentationClusterer
from polyspan.inputs.params import param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array
from polyspan.solvers import prox
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import factor_z_step, largest_entry, reduce_rows


class LRR(RepresentationClusterer, Penalized, OnDevice):
    """Low-rank representation of a single view, with an l2,1 error.

    For several views, wrap it: ``BestSingleView(LRR(...))``.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam : float, default=0.5
        Weight of the errors; smaller allows more corrupted samples.
    rho, mu0, mu_max : float, default=1.1, 1e-6 and 1e6
        Growth, start and limit of the penalty mu.
    tol : float, default=1e-6
        Stop when all entries of ``X - X Z - E`` and ``Z - J`` are smaller.
    max_iter : int, default=500
        Maximum number of iterations.
    affinity, n_kept, scale, n_init, views, device, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, representation_, affinity_matrix_, n_iter_, history_
        As in `GRMSC`.

    Examples
    --------
    >>> from polyspan import LRR
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, n_views=1, random_state=0)
    >>> LRR(n_clusters=3, random_state=0).fit_predict(data.views[0]).shape
    (60,)
    """

    about = About(
        paper="Liu et al., TPAMI 2013, arXiv:1010.2955",
        objective="min |Z|_* + lam |X - X Z|_{2,1}",
        needs="lam; one view",
        cost="O(n^3) per iteration, about 170 iterations",
    )
    view_tags = {"single_view": True}
    solve_counts = False

    lam: float = param(positive, default=0.5)
    rho: float = 1.1
    mu0: float = 1e-6
    max_iter: int = 500

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return the representation Z of the one view."""
        run = self._run()
        return Representation(
            solve_lrr(Xs[0], lam=self.lam, **self._penalty(), run=run), **run.record()
        )


def solve_lrr(
    X: Array,
    *,
    lam: float,
    rho: float = 1.1,
    mu0: float = 1e-6,
    mu_max: float = 1e6,
    run: Run | None = None,
) -> Array:
    """Low-rank representation Z of one view, samples in the rows of X.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> np.allclose(X.T @ solve_lrr(X, lam=10.0), X.T)
    True
    """
    run = Run("LRR", 500, 1e-6) if run is None else run
    R, back = reduce_rows(X)
    xp = array_namespace(R)
    I, _, z_step = factor_z_step(R.T @ R, None)
    # From here C stands for U^T (I - Z), I for U^T, J and Y2 for U^T J and U^T Y2, R for R U: see
    # `factor_z_step`. Only rounding changes.
    R = R @ I.T
    E, Y1, C, Y2, mu = xp.zeros_like(R), xp.zeros_like(R), I + 0.0, xp.zeros_like(I), mu0
    lower_singular = prox.SingularThreshold()
    for _ in run:
        J = lower_singular(I - C + Y2 / mu, 1 / mu)
        Y2 -= mu * J
        C = z_step(mu, Y2 - R.T @ (Y1 - mu * E))
        D = R @ C  # X - X Z
        E = prox.columns(D + Y1 / mu, lam / mu)
        Z = I - C
        Y1 += mu * (D - E)
        Y2 += mu * Z
        mu = min(rho * mu, mu_max)
        split = largest_entry(Z - J, I.shape[0], run.tol, lambda A: I.T @ A)
        decides = run.tol if split < run.tol else 0.0
        run.check(split=split, data=largest_entry(D - E, X.shape[1], decides, back))
    return I.T @ Z
