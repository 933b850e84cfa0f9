r"""GRMSC: consistent and complementary graph-regularised multi-view subspace clustering.

Objective, with samples in the columns of X_k (d_k x n) and v views::

    min |Z|_* + lam1 sum_k |E_k|_{2,1} + lam2 (ConGR(Z) + alpha ComGR(Z))                eq. (8)
    s.t. X_k = X_k Z + E_k

ConGR ties samples that are mutual neighbours in every view (the non-zeros Omega of the product of
the first-order graphs), ComGR the others by how alike their neighbourhoods are (second order).
Both together are ``sum_k Tr(Z L_k Z^T)``, L_k the Laplacian of W_k = Lambda*/v on Omega and
alpha Upsilon_k elsewhere, eq. (20). The augmented Lagrangian splits off Q = Z and repeats::

    E_k = columns of X_k - X_k Z + Y1_k/mu, shortened by lam1/mu                         eq. (13)
    Q   = Z + Y2/mu, singular values lowered by 1/mu                                     eq. (17)
    Z   : Z lam2 (L + L^T) + mu (sum_k X_k^T X_k + I) Z
          = sum_k X_k^T (Y1_k + mu (X_k - E_k)) + mu Q - Y2                              eq. (22)
    Y1_k += mu (X_k - X_k Z - E_k);  Y2 += mu (Z - Q);  mu = min(rho mu, mu_max)         eq. (24)

Where the paper's print and its definitions differ, this follows the definitions: the right-hand
side of eq. (22) is the derivative of the Lagrangian (printed with + mu X^T E and without Y2), and
the regulariser acts on columns, the samples (``orientation="samples"``). The printed update, with
``lam2 (L + L^T) Z`` on the left, is ``orientation="published"``.

Reference: Q. Zheng, J. Zhu, Z. Li, S. Pang, J. Wang, L. Chen, "Consistent and complementary graph
regularized multi-view subspace clustering", 2020, arXiv:2004.03106.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array
from sklearn.utils import Tags, check_random_state

from polyspan.base import COMMON, About, MultiViewClusterer
from polyspan.graphs import proximity
from polyspan.graphs.incomplete import incomplete_laplacian
from polyspan.inputs.missing import error_weights, split_missing
from polyspan.inputs.params import device_name, integer, matrices, one_of, real, view_weights
from polyspan.inputs.precomputed import check_graphs, check_kernel_scales, kernel_features, like
from polyspan.inputs.scaling import SCALES
from polyspan.inputs.views import Views, weighted_views
from polyspan.solvers import prox
from polyspan.solvers.arrays import Array, longest_column, sum_squares
from polyspan.solvers.cache import fingerprint, shared
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import factor_z_step, largest_entry, reduce_rows


class GRMSC(MultiViewClusterer):
    """One low-rank representation of all views, tied by what their graphs share and what each adds.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbours k of the first-order graphs; None is min(30, n - 1). The paper does not give
        it, and it matters.
    lam1, lam2 : float, default=100.0 and 1000.0
        Weights of the errors and of the graphs. Untuned defaults that work; good values mostly
        have ``lam2 / lam1`` near 10.
    alpha : float, default=1e-3
        Weight of the complementary against the consistent graph. The complementary graph is
        dense: for many thousands of samples lower alpha like 1/n.
    orientation : {"samples", "published"}, default="samples"
        Graphs act on the columns of Z, as defined, or on its rows, as in the printed update.
    regularizer : {"both", "first_order", "none"}, default="both"
        ``"both"`` is GRMSC; ``"first_order"`` takes the sum of the first-order graphs as they are
        (the paper's GRMSC_Naive); ``"none"`` drops the graphs (MSC_Naive).
    affinity : {"dense", "sparse"}, default="dense"
        ``|Z| + |Z|^T`` of all entries, or of the ``n_kept`` largest in each column of ``|Z|``,
        which is often better on images and measurements.
    n_kept : int, default=10
        Entries kept per column by ``affinity="sparse"``.
    sigma2 : {"own", "first"}, default="own"
        Width of the second-order Gaussian: the median distance between columns of the
        first-order graph, or the first order's own width (the paper uses one letter for both).
    scale : {"unit", "standard+unit", None}, default="unit"
        Scaling of samples to unit length, after standardising features if asked.
    graph_scale : {"same", "unit", "standard+unit", None}, default="same"
        Scaling of the features from which the graphs are built; ``"same"`` is that of ``scale``.
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
        Most turns.
    tol : float, default=1e-6
        Stop when all entries of ``X_k - X_k Z - E_k`` and ``Z - Q`` are smaller.
    init : {"zeros", "random"}, default="zeros"
        Start of Z. The paper starts at random; as long as ``lam1 / mu0`` is large the first turn
        forgets the start, so nothing depends on it.
    n_init : int, default=20
        Restarts of k-means on the spectral embedding.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views, for pipelines and grid search.
    device : str or None, default=None
        Where to compute, such as ``"cuda"``: NumPy input is moved there by torch, all results come
        back as NumPy arrays. None computes where the views are, with the library they are of;
        only the labels are always NumPy.
    random_state : int, RandomState or None, default=None
        Seeds k-means and ``init="random"``.
    verbose : int, default=0
        Print every ``verbose``-th turn.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    representation_ : (n, n) array
        Z; column j is sample j in terms of all samples.
    affinity_matrix_ : (n, n) array or scipy.sparse.csr_array
        What was clustered.
    n_iter_ : int
        Turns done.
    history_ : dict
        Per turn: ``data``, the largest entry of ``X_k - X_k Z - E_k``, and ``split``, that of
        ``Z - Q``. Both hold the length of the longest column, an upper bound, while that is far
        from ``tol``.
    dictionary_ : list of arrays
        The scaled views, for `predict`.

    Notes
    -----
    A sample may lack views: give its row there as NaN throughout (dense views only). Its errors in
    such a view are free (E costs nothing there), it describes no other sample there, and the
    graphs use the views that a pair has in common, see `polyspan.graphs.incomplete`.

    Examples
    --------
    >>> from polyspan import GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> GRMSC(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    _about = About(
        paper="Zheng et al. 2020, arXiv:2004.03106",
        objective="min |Z|_* + lam1 sum_k |X_k - X_k Z|_{2,1} + lam2 sum_k Tr(Z L_k Z^T)",
        needs="n_neighbors, lam1 and lam2 together; alpha like 1/n for many samples",
        cost="O(n^3) per turn, about 30 turns",
    )
    _solve_counts = False
    _checks = COMMON | {
        "n_neighbors": integer(1, none="min(30, n - 1)"),
        "lam1": real(0, open_low=True),
        "lam2": real(0),
        "alpha": real(0),
        "orientation": one_of("samples", "published"),
        "regularizer": one_of("both", "first_order", "none"),
        "sigma2": one_of("own", "first"),
        "graph_scale": one_of("same", *SCALES),
        "view_weights": view_weights,
        "precomputed": one_of(None, "kernel"),
        "graphs": matrices,
        "rho": real(1),
        "mu0": real(0, open_low=True),
        "mu_max": real(0, open_low=True),
        "init": one_of("zeros", "random"),
        "device": device_name,
    }
    _missing_views = True
    takes_missing_views = True

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int | None = None,
        lam1: float = 100.0,
        lam2: float = 1000.0,
        alpha: float = 1e-3,
        orientation: str = "samples",
        regularizer: str = "both",
        affinity: str = "dense",
        n_kept: int = 10,
        sigma2: str = "own",
        scale: str | None = "unit",
        graph_scale: str | None = "same",
        view_weights: Sequence[float] | None = None,
        precomputed: str | None = None,
        graphs: Any = None,
        rho: float = 1.9,
        mu0: float = 1e-4,
        mu_max: float = 1e6,
        max_iter: int = 100,
        tol: float = 1e-6,
        init: str = "zeros",
        n_init: int = 20,
        views: Sequence[Any] | None = None,
        device: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.lam1 = lam1
        self.lam2 = lam2
        self.alpha = alpha
        self.orientation = orientation
        self.regularizer = regularizer
        self.affinity = affinity
        self.n_kept = n_kept
        self.sigma2 = sigma2
        self.scale = scale
        self.graph_scale = graph_scale
        self.view_weights = view_weights
        self.precomputed = precomputed
        self.graphs = graphs
        self.rho = rho
        self.mu0 = mu0
        self.mu_max = mu_max
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.n_init = n_init
        self.views = views
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def _prepare(self, views: Views) -> Views:
        views = self._used(views)
        self._given_graphs(views.n_samples)
        self.kernel_maps_: list[np.ndarray] | None = None
        if self.precomputed == "kernel":
            check_kernel_scales("GRMSC", self.scale, self.graph_scale)
            both = [kernel_features(K, name, "GRMSC") for K, name in zip(*views, strict=True)]
            self.kernel_maps_ = [T for _, T in both]
            views = Views([X for X, _ in both], views.names)
        return views

    def _prepare_new(self, views: Views) -> Views:
        views = self._used(views, new=True)
        if self.kernel_maps_ is None:
            return views
        return Views(
            [K @ T for K, T in zip(views.arrays, self.kernel_maps_, strict=True)], views.names
        )

    def _used(self, views: Views, new: bool = False) -> Views:
        return weighted_views("GRMSC", views, self.view_weights, new)

    def _weights(self) -> list[float] | None:
        return None if self.view_weights is None else [float(w) for w in self.view_weights if w > 0]

    def _given_graphs(self, n: int) -> list[Any] | None:
        """Checked first-order graphs of the views that have a weight, if they were given."""
        if self.graphs is None:
            return None
        found = check_graphs("GRMSC", self.graphs, self.view_names_, n, self.sigma2)
        if self.view_weights is None:
            return found
        return [graph for graph, w in zip(found, self.view_weights, strict=True) if w > 0]

    def _solve(self, views: Views, Xs: list[Array]) -> Array:
        n = views.n_samples
        k = min(30, n - 1) if self.n_neighbors is None else self.n_neighbors
        lam2 = 0.0 if self.regularizer == "none" else self.lam2
        weights = self._weights() or [1.0] * len(Xs)
        filled, present = split_missing(Xs)

        def graph() -> Array:
            features = Xs if self.graph_scale == "same" else self._scaled(views, self.graph_scale)
            options: dict[str, Any] = {"alpha": self.alpha, "sigma2": self.sigma2}
            options |= {"regularizer": self.regularizer, "weights": weights}
            if self.graphs is None and any(there is not None for there in present):
                return incomplete_laplacian(features, k, **options)
            return graph_laplacian(features, k, **options, given=self._given_graphs(n))

        # Settings of a grid differ in lam1 and lam2, which the factorisation does not know.
        data = fingerprint(views.arrays) if self.graphs is None else None
        key: tuple[Any, ...] = (data, "grmsc", self.scale, self.device)
        if lam2 > 0:
            key += (k, self.alpha, self.orientation, self.regularizer, self.sigma2)
            key += (self.graph_scale, tuple(weights))
        factors = shared(
            key,
            lambda: factor_grmsc(filled, graph if lam2 > 0 else None, self.orientation),
            size=int(self._n_square(views) / 2) * n * n * views.itemsize,
        )
        Z = None
        if self.init == "random":
            Z = check_random_state(self.random_state).uniform(size=(n, n))
        run = self._run()
        Z = solve_grmsc(
            filled, lam1=error_weights(self.lam1, weights, present, Xs), lam2=lam2, rho=self.rho,
            mu0=self.mu0, mu_max=self.mu_max, run=run, Z=Z, factors=factors,
        )  # fmt: skip
        self.n_iter_ = run.n_iter
        return Z

    def _shareable(self) -> bool:
        return self.init != "random" and self.graphs is None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.precomputed == "kernel"
        return tags


def graph_laplacian(
    Xs: Sequence[Array],
    n_neighbors: int,
    *,
    alpha: float = 1e-3,
    sigma2: str = "own",
    regularizer: str = "both",
    weights: Sequence[float] | None = None,
    given: Sequence[Any] | None = None,
) -> Array:
    """Laplacian L = sum_k L_k of the graphs of all views, samples in rows of every X.

    ``weights`` multiply what a single view says; ``given`` are first-order graphs to take instead.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> L = graph_laplacian([X, X[:, :2]], 3)
    >>> np.allclose(L @ np.ones(9), 0)
    True
    """
    weights = [1.0] * len(Xs) if weights is None else weights
    if given is None:
        firsts = [_compact(*proximity.first_order(X, n_neighbors)) for X in Xs]  # eq. (3)
    else:
        firsts = [(like(Lambda, X), 0.0) for Lambda, X in zip(given, Xs, strict=True)]
    if regularizer == "first_order":
        parts = (w * Lambda for w, (Lambda, _) in zip(weights, firsts, strict=True))
        return proximity.laplacian(_dense(sum(parts)))
    W = _dense(proximity.consistent([Lambda for Lambda, _ in firsts]))  # eq. (4)
    xp = array_namespace(W)
    inside = W != 0
    for w, (Lambda, sigma) in zip(weights, firsts, strict=True):
        Upsilon = proximity.second_order(Lambda, sigma if sigma2 == "first" else None)
        W += w * alpha * xp.where(inside, xp.zeros_like(W), Upsilon)  # eq. (20), summed
    return proximity.laplacian(W)


def _compact(Lambda: Array, sigma: float) -> tuple[Array, float]:
    """Store a NumPy graph of few neighbours as a sparse one: v of them are held at once."""
    return sp.csr_array(Lambda) if is_numpy_array(Lambda) else Lambda, sigma


def _dense(W: Array) -> Array:
    return W.toarray() if sp.issparse(W) else W + 0.0


class Factors(NamedTuple):
    """What `solve_grmsc` needs of the views and graphs, whatever lam1, lam2 and mu are."""

    R: Array  # the reduced views, one below the other, times U
    rows: list[slice]  # where each view is in R
    back: Sequence[Callable[[Array], Array]]  # from the rows of R to features, for each view
    I: Array  # U^T
    d: Array
    z_step: Callable[..., Array]


def factor_grmsc(
    Xs: Sequence[Array], L: Array | Callable[[], Array] | None = None, orientation: str = "samples"
) -> Factors:
    """Reduce the views Xs (samples in rows) and factor the Z step with the graph L.

    A function that makes L may stand for it, so that nobody holds its memory during the loop.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 40))
    >>> factor_grmsc([X]).R.shape
    (9, 9)
    """
    Rs, back = zip(*(reduce_rows(X) for X in Xs), strict=True)
    R = array_namespace(*Rs).concat(Rs)
    ends = np.cumsum([part.shape[0] for part in Rs])
    rows = [slice(int(b - part.shape[0]), int(b)) for b, part in zip(ends, Rs, strict=True)]
    I, d, z_step = factor_z_step(R.T @ R, L() if callable(L) else L, orientation)
    return Factors(R @ I.T, rows, back, I, d, z_step)


def solve_grmsc(
    Xs: Sequence[Array],
    L: Array | Callable[[], Array] | None = None,
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

    ``factors`` of `factor_grmsc` may stand for L and the orientation. ``lam1`` may differ by view,
    a list; and in a view by sample, an (n,) array: 0 frees its errors.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> Z = solve_grmsc([X], lam1=10.0)
    >>> np.linalg.matrix_rank(Z, tol=1e-4)
    np.int64(4)
    """
    run = Run("GRMSC", 100, 1e-6) if run is None else run
    # From here Z, Q and Y2 stand for U^T Z, U^T Q and U^T Y2, and I is U^T.
    R, rows, back, I, d, z_step = factors or factor_grmsc(Xs, L, orientation)
    xp = array_namespace(I)
    lams = lam1 if isinstance(lam1, list) else [float(lam1)] * len(rows)
    least = min(float(xp.min(lam)) if is_array_api_obj(lam) else lam for lam in lams)
    C = I + 0.0 if Z is None else I - I @ xp.asarray(Z, dtype=I.dtype, device=device(I))
    turns, mu, weights = iter(run), mu0, xp.sqrt(d - 1)  # |R x| = |weights * x|
    # As long as E = 0 and Q = 0, Y1 = R S and Y2 = m I - S, with S the sum of all mu (I - Z) and m
    # that of all mu: no view is touched. T_E and Z + Y2/mu prove it, by their lengths.
    S, m = xp.zeros_like(I), 0.0
    while (
        longest_column(weights * (mu * C + S)) <= least
        and sum_squares((mu + m) * I - mu * C - S) <= 1
        and next(turns, None)
    ):
        C = z_step(mu, m * I - d * S, lam2)
        S += mu * C
        m, mu = m + mu, min(rho * mu, mu_max)
        run.check(split=longest_column(I - C), data=longest_column(weights * C))
    lower_singular = prox.SingularThreshold()
    Y1, Y2, D, Z = R @ S, m * I - S, R @ C, I - C  # D = X - X Z
    del S, C
    for _ in turns:
        E, D = D, None
        E *= mu
        E += Y1
        for k, lam in zip(rows, lams, strict=True):
            E[k, :] *= prox.column_factors(E[k, :], lam)[None, :]  # mu E by eq. (13)
        Q = lower_singular(Z + Y2 / mu, 1 / mu)  # eq. (17)
        Y1 -= E  # the parts of eq. (24) that T_ZB contains
        Y2 -= mu * Q
        Z = z_step(mu, Y2 - R.T @ Y1, lam2)  # I - Z by eq. (22)
        D = R @ Z
        Z = I - Z
        Y1 += mu * D  # the rest of eq. (24)
        Y2 += mu * Z
        Q -= Z
        E /= -mu
        E += D
        split = largest_entry(Q, I.shape[0], run.tol, lambda A: I.T @ A)
        decides = run.tol if split < run.tol else 0.0
        data = [
            largest_entry(E[k, :], X.shape[1], decides, to_features)
            for k, X, to_features in zip(rows, Xs, back, strict=True)
        ]
        run.check(split=split, data=max(data))
        mu = min(rho * mu, mu_max)
        del Q  # n x n: the next threshold needs the room
    return I.T @ Z
