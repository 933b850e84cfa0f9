r"""GRMSC: consistent and complementary graph-regularized multi-view subspace clustering.

Objective, with samples in the columns of X_k (d_k x n) and v views::

    min |Z|_* + lam1 sum_k |E_k|_{2,1} + lam2 (ConGR(Z) + alpha ComGR(Z))                eq. (8)
    s.t. X_k = X_k Z + E_k

ConGR links samples that are mutual neighbors in every view (the non-zeros Omega of the product of
the first-order graphs); ComGR links the others by how similar their neighborhoods are (second
order). Together they are ``sum_k Tr(Z L_k Z^T)``, L_k the Laplacian of W_k = Lambda*/v on Omega and
alpha Upsilon_k elsewhere, eq. (20). The augmented Lagrangian splits off Q = Z and repeats::

    E_k = columns of X_k - X_k Z + Y1_k/mu, shortened by lam1/mu                         eq. (13)
    Q   = Z + Y2/mu, singular values lowered by 1/mu                                     eq. (17)
    Z   : Z lam2 (L + L^T) + mu (sum_k X_k^T X_k + I) Z
          = sum_k X_k^T (Y1_k + mu (X_k - E_k)) + mu Q - Y2                              eq. (22)
    Y1_k += mu (X_k - X_k Z - E_k);  Y2 += mu (Z - Q);  mu = min(rho mu, mu_max)         eq. (24)

Where the paper's printed updates and its definitions differ, this follows the definitions: the
right-hand side of eq. (22) is the derivative of the Lagrangian (printed with + mu X^T E and without
Y2), and the regularizer acts on columns, the samples (``orientation="samples"``). The printed
update, with ``lam2 (L + L^T) Z`` on the left, is ``orientation="published"``. ``tests/literal.py``
is Algorithm 1 written out step by step; the solver here is tested against it.

Reference: Q. Zheng, J. Zhu, Z. Li, S. Pang, J. Wang, L. Chen, "Consistent and complementary graph
regularized multi-view subspace clustering", 2020, arXiv:2004.03106.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device, is_array_api_obj

from polyspan.base import (
    About,
    OnDevice,
    Penalized,
    Representation,
    RepresentationClusterer,
    TakesKernels,
)
from polyspan.graphs.proximity import GraphParams, graph_laplacian, incomplete_laplacian
from polyspan.inputs.params import (
    Neighbors,
    PerView,
    matrices,
    one_of,
    param,
    positive,
    weight,
    weights_per_view,
)
from polyspan.inputs.precomputed import check_graphs
from polyspan.inputs.rows import filled, missing_rows
from polyspan.inputs.scaling import SCALES, Scale, scale_views
from polyspan.inputs.views import Views, weighted_views
from polyspan.runtime.arrays import Array, astype, longest_column, sum_squares
from polyspan.runtime.cache import shared
from polyspan.solvers import prox
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import factor_z_step, largest_entry, reduce_rows


class GRMSC(RepresentationClusterer, Penalized, OnDevice, TakesKernels):
    """One low-rank representation of all views, tied by consistent and complementary graphs.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors k in the first-order graphs; None is min(30, n - 1). It matters, and the paper
        does not give it.
    lam1, lam2 : float, default=100.0 and 1000.0
        Weights of the errors and of the graphs. The defaults are not tuned; good values mostly
        have ``lam2 / lam1`` near 10.
    alpha : float, default=1e-3
        Weight of the complementary graph relative to the consistent one. The complementary graph
        is dense: for many thousands of samples, lower alpha like 1/n.
    orientation : {"samples", "published"}, default="samples"
        Apply the graphs to the columns of Z, as defined, or to its rows, as in the printed update.
    regularizer : {"both", "first_order", "none"}, default="both"
        ``"both"`` is GRMSC; ``"first_order"`` uses the plain sum of the first-order graphs
        (the paper's GRMSC_Naive); ``"none"`` uses no graphs (MSC_Naive).
    affinity : {"dense", "sparse"}, default="dense"
        ``|Z| + |Z|^T`` of all entries, or of the ``n_kept`` largest in each column of ``|Z|``,
        which is often better on images and measurements.
    n_kept : int, default=10
        Entries kept per column by ``affinity="sparse"``.
    second_width : {"own", "first"}, default="own"
        Width of the second-order Gaussian: the median distance between columns of the
        first-order graph, or the width used for the first order (sigma in the paper is both).
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        Scales samples to unit length; ``"standard+unit"`` standardizes the features first.
    graph_scale : {"same", "unit", "standard+unit", "standard", None} or list, default="same"
        Scaling of the features from which the graphs are built; ``"same"`` uses ``scale``.
    view_weights : list of float or None, default=None
        Weight w_k of every view: its errors count ``lam1 w_k`` and its part of the complementary
        graph (or of ``"first_order"``) w_k; the consistent graph is shared by all views. 0 leaves
        the view out. None is 1 for all.
    precomputed : {None, "kernel"}, default=None
        ``"kernel"``: every view is an n x n kernel, positive semi-definite, instead of features;
        `predict` then takes the m x n kernels between new and fitted samples.
    graphs : list or dict of (n, n) arrays or sparse matrices, default=None
        First-order graphs to use instead of those built from the features, one per view:
        symmetric, non-negative weights; their diagonals do not matter.
    rho, mu0, mu_max : float, default=1.9, 1e-4 and 1e6
        Growth, start and limit of the penalty mu.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-6
        Stop when all entries of ``X_k - X_k Z - E_k`` and ``Z - Q`` are smaller.
    n_init : int, default=20
        Restarts of k-means on the spectral embedding.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views, for pipelines and grid search.
    device : str or None, default=None
        Where to compute, such as ``"cuda"``: NumPy input is moved there with torch, and all results
        come back as NumPy arrays. None computes where the views are, with their own array library;
        only the labels are then always NumPy.
    random_state : int, RandomState or None, default=None
        Seeds k-means.
    verbose : int, default=0
        Print every ``verbose``-th iteration.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    representation_ : (n, n) array
        Z; column j is sample j in terms of all samples.
    affinity_matrix_ : (n, n) array or scipy.sparse.csr_array
        The affinity that was clustered.
    n_iter_ : int
        Number of iterations.
    history_ : dict
        Per iteration: ``data``, the largest entry of ``X_k - X_k Z - E_k``, and ``split``, that of
        ``Z - Q``. While they are far from ``tol``, both are upper bounds, the length of the longest
        column.

    Notes
    -----
    A sample may lack views: fill its row there with NaN (dense views only). In such a view its
    errors are free (E costs nothing there) and it represents no other sample; the graphs use the
    views that a pair has in common, see `polyspan.graphs.proximity`.

    Examples
    --------
    >>> from polyspan import GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> GRMSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Zheng et al. 2020, arXiv:2004.03106",
        objective="min |Z|_* + lam1 sum_v |X_v - X_v Z|_{2,1} + lam2 sum_v tr(Z L_v Z^T)",
        needs="n_neighbors; lam1 and lam2 together; alpha, lower for many samples",
        cost="O(n^3) per iteration, about 30 iterations",
    )
    family = "subspace"
    solve_counts = False
    view_tags = {"missing_views": True}

    n_neighbors: int | None = param(Neighbors(30), default=None)
    lam1: float = param(positive, default=100.0)
    lam2: float = param(weight, default=1000.0)
    alpha: float = param(weight, default=1e-3)
    orientation: str = param(one_of("samples", "published"), default="samples")
    regularizer: str = param(one_of("both", "first_order", "none"), default="both")
    second_width: str = param(one_of("own", "first"), default="own")
    graph_scale: Scale = param(PerView("same", *SCALES), default="same")
    view_weights: Sequence[float] | None = param(weights_per_view, default=None)
    graphs: Any = param(matrices, default=None)

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return Z of Algorithm 1; factors that do not depend on lam1 and lam2 may be shared."""
        n, weights = views.n_samples, [1.0] * len(Xs)
        if self.view_weights is not None:
            weights = self._weights() or weights
        lam2 = 0.0 if self.regularizer == "none" else self.lam2
        arrays, what = Xs, FactorParams(len(Xs))
        if lam2 > 0:
            k = self._neighbors(n)
            graph = GraphParams(k, self.alpha, self.second_width, self.regularizer, tuple(weights))
            what = FactorParams(len(Xs), self.orientation, graph)
            if self.graph_scale != "same":
                scales = self._scalings(views, "graph_scale")
                arrays = [*Xs, *self._moved(scale_views(views, scales))]
        if views.graphs is None:
            size = int(self.footprint(views)[0] / 2) * n * n * views.itemsize
            factors = shared(factor_problem, what, arrays, size)
        else:
            factors = factor_problem(what, arrays, views.graphs)
        lam1: list[Any] = [float(self.lam1 * w) for w in weights]
        for k, gone in enumerate(map(missing_rows, Xs)):
            if gone is not None:  # their errors are free there and put no constraint on Z
                lam1[k] = lam1[k] * astype(~gone, Xs[k].dtype)
        run, steps = self._run(), {"lam1": lam1, "lam2": lam2, **self._penalty()}
        return Representation(solve_grmsc(Xs, **steps, run=run, factors=factors), **run.record())

    def _prepare(self, views: Views) -> Views:
        """Leave out views of weight 0, check the graphs, and turn kernels into features."""
        given = views
        if self.view_weights is not None:
            views = weighted_views("GRMSC", views, self.view_weights)
        if self.graphs is not None:
            ids = None if views.samples is None else views.samples.ids
            checked = check_graphs(
                "GRMSC", self.graphs, given.names, views.n_samples, self.second_width, ids
            )
            used = range(len(checked)) if views.used is None else views.used
            views = replace(views, graphs=[checked[k] for k in used])
        return super()._prepare(views)

    def _prepare_new(self, views: Views) -> Views:
        return super()._prepare_new(weighted_views("GRMSC", views, self.view_weights, new=True))

    def _weights(self) -> list[float] | None:
        return None if self.view_weights is None else [float(w) for w in self.view_weights if w > 0]

    def _shareable(self) -> bool:
        return self.graphs is None


class FactorParams(NamedTuple):
    """What the factors of the Z step depend on besides the views; also the key to share them."""

    n_views: int
    orientation: str = "samples"
    graph: GraphParams | None = None


class Factors(NamedTuple):
    """What `solve_grmsc` needs from the views and graphs, independent of lam1, lam2 and mu."""

    R: Array  # the reduced views, one below the other, times U
    rows: list[slice]  # where each view is in R
    back: Sequence[Callable[[Array], Array]]  # from the rows of R to features, for each view
    I: Array  # U^T
    d: Array
    z_step: Callable[..., Array]


def factor_problem(
    what: FactorParams, arrays: Sequence[Array], given: Sequence[Any] | None = None
) -> Factors:
    """Factors of the views in ``arrays``; features for the graphs may follow the views in it."""
    Xs, features = arrays[: what.n_views], arrays[-what.n_views :]
    if what.graph is None:
        return factor_grmsc(Xs)
    if given is None and any(missing_rows(X) is not None for X in Xs):
        L = incomplete_laplacian(features, **what.graph._asdict())
    else:
        L = graph_laplacian(features, **what.graph._asdict(), given=given)
    return factor_grmsc(Xs, L, what.orientation)


def factor_grmsc(
    Xs: Sequence[Array], L: Array | None = None, orientation: str = "samples"
) -> Factors:
    """Reduce the views Xs (samples in rows) and factor the Z step with the graph L.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 40))
    >>> factor_grmsc([X]).R.shape
    (9, 9)
    """
    Rs, back = zip(*(reduce_rows(filled(X)) for X in Xs), strict=True)
    R = array_namespace(*Rs).concat(Rs)
    ends = np.cumsum([part.shape[0] for part in Rs])
    rows = [slice(int(b - part.shape[0]), int(b)) for b, part in zip(ends, Rs, strict=True)]
    I, d, z_step = factor_z_step(R.T @ R, L, orientation)
    return Factors(R @ I.T, rows, back, I, d, z_step)


def solve_grmsc(
    Xs: Sequence[Array],
    L: Array | None = None,
    *,
    lam1: float | list[Any],
    lam2: float = 1.0,
    orientation: str = "samples",
    rho: float = 1.9,
    mu0: float = 1e-4,
    mu_max: float = 1e6,
    run: Run | None = None,
    Z: Array | None = None,
    factors: Factors | None = None,
) -> Array:
    """Algorithm 1: the representation Z of views Xs (samples in rows) with graph L.

    ``factors`` from `factor_grmsc` may replace L and the orientation. ``lam1`` may be a list with,
    for each view, a number or an (n,) array with a number per sample; 0 makes errors free.
    ``Z`` is the start, None for zero. The paper starts at random; as long as ``lam1 / mu0`` is
    large, the start is forgotten in the first iteration.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> Z = solve_grmsc([X], lam1=10.0)
    >>> np.linalg.matrix_rank(Z, tol=1e-4)
    np.int64(4)
    """
    run = Run("GRMSC", 100, 1e-6) if run is None else run
    R, rows, back, I, _, z_step = factors = factors or factor_grmsc(Xs, L, orientation)
    lams = lam1 if isinstance(lam1, list) else [float(lam1)] * len(rows)
    iterations = iter(run)
    C, Y1, Y2, mu = quiet_iterations(iterations, run, factors, lams, lam2, rho, mu0, mu_max, Z)
    # Z, Q, Y2 stand for U^T Z, U^T Q, U^T Y2, I for U^T, C for I - Z and D for X - X Z = R C.
    Z, D = I - C, R @ C
    del C
    lower_singular = prox.SingularThreshold()
    for _ in iterations:
        E = prox.columns_of_views(D + Y1 / mu, rows, [lam / mu for lam in lams])  # eq. (13)
        Q = lower_singular(Z + Y2 / mu, 1 / mu)  # eq. (17)
        C = z_step(mu, Y2 - mu * Q - R.T @ (Y1 - mu * E), lam2)  # eq. (22)
        Z, D = I - C, R @ C
        gaps, apart = D - E, Z - Q
        Y1 += mu * gaps  # eq. (24)
        Y2 += mu * apart
        mu = min(rho * mu, mu_max)
        split = largest_entry(apart, I.shape[0], run.tol, lambda A: I.T @ A)
        decides = run.tol if split < run.tol else 0.0
        data = [
            largest_entry(gaps[k, :], X.shape[1], decides, to_features)
            for k, X, to_features in zip(rows, Xs, back, strict=True)
        ]
        run.check(split=split, data=max(data))
        del C, Q, apart  # n x n each: memory peaks in the next threshold
    return I.T @ Z


def quiet_iterations(
    iterations: Iterator[int],
    run: Run,
    factors: Factors,
    lams: list[Any],
    lam2: float,
    rho: float,
    mu: float,
    mu_max: float,
    Z: Array | None,
) -> tuple[Array, Array, Array, float]:
    """The first iterations, in which E = 0 and Q = 0: I - Z, Y1, Y2 and mu after them.

    There Y1 = R S and Y2 = m I - S, with S the sum of all mu (I - Z) and m that of all mu, so that
    no view is used. The lengths of T_E and of Z + Y2/mu prove that E = 0 and Q = 0.
    """
    R, _, _, I, d, z_step = factors
    xp = array_namespace(I)
    least = min(float(xp.min(lam)) if is_array_api_obj(lam) else lam for lam in lams)
    C = I + 0.0 if Z is None else I - I @ xp.asarray(Z, dtype=I.dtype, device=device(I))
    S, m, weights = xp.zeros_like(I), 0.0, xp.sqrt(d - 1)  # |R x| = |weights * x|
    while (
        longest_column(weights * (mu * C + S)) <= least
        and sum_squares((mu + m) * I - mu * C - S) <= 1
        and next(iterations, None)
    ):
        C = z_step(mu, m * I - d * S, lam2)
        S += mu * C
        m, mu = m + mu, min(rho * mu, mu_max)
        run.check(split=longest_column(I - C), data=longest_column(weights * C))
    return C, R @ S, m * I - S, mu
