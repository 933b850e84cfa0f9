r"""AnchorGRMSC: GRMSC for many samples, which are made of a few anchors instead of each other.

Objective, with samples in the columns of X_k (d_k x n) and m anchors, the same in every view, in
those of A_k (d_k x m)::

    min |Z|_* + lam1 sum_k |E_k|_{2,1} + lam2 Tr(Z L Z^T)    s.t. X_k = A_k Z + E_k

Z is m x n, L the Laplacian of the two graphs of GRMSC on the samples. With the samples as anchors
this is GRMSC (``orientation="samples"``), and so are all iterates of its augmented Lagrangian::

    E_k  = columns of X_k - A_k Z + Y1_k/mu, shortened by lam1/mu
    Q    = Z + Y2/mu, singular values lowered by 1/mu
    Z    : mu (sum_k A_k^T A_k + I) Z + Z lam2 (L + L^T)
           = sum_k A_k^T (Y1_k + mu (X_k - E_k)) + mu Q - Y2
    Y1_k += mu (X_k - A_k Z - E_k);  Y2 += mu (Z - Q);  mu = min(rho mu, mu_max)

The files beside this one: ``solver`` does this in O(n) per turn, without approximating any step;
``laplacian`` makes L, ``anchors`` the anchors and the clusters.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyspan.base import AFTER_THE_SOLUTION, COMMON, About, MultiViewClusterer
from polyspan.chunked.chunks import (
    Rows,
    check_content,
    dask_chunks,
    inspect,
    load,
    scaled,
    standardize,
    take_samples,
)
from polyspan.chunked.sources import is_large, open_views
from polyspan.chunked.workers import Cluster, Threads, active_client, bounds
from polyspan.clustering.spectral import quiet_kmeans
from polyspan.graphs.neighbors import EXACT_BELOW
from polyspan.inputs.memory import available_memory
from polyspan.inputs.params import check_params, integer, one_of, real
from polyspan.inputs.scaling import _check_dense, check_products
from polyspan.inputs.views import Views
from polyspan.methods.anchor_grmsc.anchors import (
    Bipartite,
    Frame,
    bipartite_graph,
    choose_anchors,
    embed,
    make_frame,
    nearest_center,
    project,
)
from polyspan.methods.anchor_grmsc.laplacian import sample_laplacian
from polyspan.methods.anchor_grmsc.solver import gram, represent, solve_anchors
from polyspan.solvers.arrays import to_numpy
from polyspan.solvers.cache import fingerprint, shared
from polyspan.solvers.eigen import eigh

SAMPLE = 20_000  # samples from which anchors and centres are learnt, at least


def _kind_of_anchors(value: Any) -> str | None:
    words = "'kmeans' or 'sample' or a 1-D array of different sample numbers"
    if isinstance(value, str):
        return None if value in ("kmeans", "sample") else words
    found = np.asarray(value)
    usable = found.ndim == 1 and found.dtype.kind in "iu" and 0 < len(found) == len(set(found))
    return None if usable and found.min() >= 0 else words


class AnchorGRMSC(MultiViewClusterer):
    """GRMSC for up to millions of samples, which are represented by anchors; also on Dask.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_anchors : int or None, default=None
        Anchors m; None is min(n, max(100, 5 n_clusters)). Cost and memory grow like m.
    anchors : {"kmeans", "sample"} or array of int, default="kmeans"
        Centres of k-means on the views side by side (learnt from 20,000 samples or 1% of them),
        samples chosen by k-means++, or the numbers of the samples to take. With all samples as
        anchors this is exact GRMSC, in float64; in float32 ``mu0`` starts higher.
    n_neighbors : int or None, default=None
        Neighbours k of the first-order graphs; None is min(10, n - 1). Up to 20,000 samples they
        are exact; beyond, they are looked for in the nearest cells of samples, see ``recall_``.
    lam1, lam2 : float, default=0.1 and 1.0
        Weights of the errors and of the graphs.
    alpha : float or None, default=None
        Weight of the complementary against the consistent graph; None is
        ``1e-3 min(1, 2000 / n)``. The complementary graph is dense, so with a fixed alpha its
        degrees would grow like n, while those of the consistent graph do not.
    affinity : {"dense", "sparse"}, default="sparse"
        Links of samples to anchors: all of ``|Z|``, or the ``n_kept`` largest of each sample.
    n_kept : int, default=5
        Links kept by ``affinity="sparse"``; with many anchors fewer are often better.
    sigma2 : {"own", "first"}, default="own"
        Width of the second-order Gaussian, as in `GRMSC`. Medians of distances are taken over all
        samples up to 2,000, over 2,000 of them beyond.
    scale : {"unit", "standard+unit", None}, default="unit"
        Scaling of samples to unit length, after standardising features if asked.
    rho, mu_max : float, default=1.9 and 1e6
        Growth and limit of the penalty mu.
    mu0 : float or None, default=None
        Start of mu; None is that of `GRMSC`, 1e-4, up to 20,000 samples in float64. Beyond, and in
        float32, it is 1e-2: that saves some seven turns in which hardly anything happens, and
        whose systems may be too ill-conditioned for float32.
    max_iter : int, default=100
        Most turns.
    tol : float, default=1e-4
        Stop when all entries of ``X_k - A_k Z - E_k`` and ``Z - Q`` are smaller. (GRMSC has 1e-6,
        which float32 does not always reach.)
    n_init : int, default=20
        Restarts of k-means on the spectral embedding of up to 20,000 samples; the others go to the
        nearest centre.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Numbers of the solver; ``"auto"`` is float32 for more than 20,000 samples and that of the
        input up to there.
    chunk_size : int, default=8192
        Samples worked on at a time; dask arrays keep their own chunks where these are smaller.
    n_jobs : int or None, default=None
        Threads; None is as many as BLAS may use. The result does not depend on it.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` in memory into views, for pipelines and grid search.
    random_state : int, RandomState or None, default=None
        Seeds anchors, samples for medians and cells, and k-means.
    verbose : int, default=0
        Print every ``verbose``-th turn.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    anchors_ : list of (m, d_k) arrays
        The anchors, scaled as the samples are.
    representation_ : (m, n) array
        Z; column j is sample j in terms of the anchors. Not kept when fitted on a Dask cluster.
    recall_ : list of float
        Per view, the part of the true neighbours of 300 samples that was found; 1.0 where the
        search was exact. Below 0.8 there is a warning.
    alpha_ : float
        The weight used.
    n_iter_ : int
        Turns done.
    history_ : dict
        Per turn: ``data`` and ``split``, as in `GRMSC`.
    products_ : list of int
        Per turn, products with the Laplacian that the conjugate gradients took.

    Notes
    -----
    Views may be arrays in memory as in every method, memory-mapped arrays, Zarr or dask arrays, or
    paths to ``.npy``, ``.parquet`` and ``.zarr``; these are read in chunks and need not fit in
    memory. dask arrays are fitted on the active ``distributed.Client``, if there is one.

    `predict` assigns new samples without a new fit. With ``Psi = (Z Z^T)^{1/2}`` the nuclear norm
    at the solution is ``(Tr(Z^T Psi^-1 Z) + Tr Psi) / 2``, a sum over samples; a new sample x
    solves its own part, ``min_z z^T Psi^-1 z / 2 + lam1 sum_k |x_k - A_k z|``, to convergence.
    The graphs take no part: a new sample has no row in them. Then the links ``|z|`` are embedded as
    those of the fit, and the nearest centre gives the label.

    Examples
    --------
    >>> from polyspan import AnchorGRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=600, n_clusters=3, random_state=0)
    >>> model = AnchorGRMSC(n_clusters=3, n_anchors=30, random_state=0).fit(data.views)
    >>> model.representation_.shape, model.predict([X[:5] for X in data.views]).shape
    ((30, 600), (5,))
    """

    _about = About(
        paper="GRMSC on anchors, after Zheng et al. 2020, arXiv:2004.03106",
        objective="min |Z|_* + lam1 sum_k |X_k - A_k Z|_{2,1} + lam2 sum_k Tr(Z L_k Z^T)",
        needs="n_anchors; n_neighbors, lam1 and lam2 as GRMSC; views may be files or dask arrays",
        cost="O(n m (m + p + k^2)) per turn with m anchors, about 25 turns",
    )
    _checks = COMMON | {
        "n_anchors": integer(1, none="min(n, max(100, 5 n_clusters))"),
        "anchors": _kind_of_anchors,
        "n_neighbors": integer(1, none="min(10, n - 1)"),
        "lam1": real(0, open_low=True),
        "lam2": real(0),
        "alpha": real(0, none="1e-3 min(1, 2000 / n)"),
        "sigma2": one_of("own", "first"),
        "rho": real(1),
        "mu0": real(0, open_low=True, none="1e-4 up to 20,000 samples in float64, else 1e-2"),
        "mu_max": real(0, open_low=True),
        "dtype": one_of("auto", "float32", "float64"),
        "chunk_size": integer(1),
        "n_jobs": integer(1, none="as many as BLAS may use"),
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_anchors: int | None = None,
        anchors: Any = "kmeans",
        n_neighbors: int | None = None,
        lam1: float = 0.1,
        lam2: float = 1.0,
        alpha: float | None = None,
        affinity: str = "sparse",
        n_kept: int = 5,
        sigma2: str = "own",
        scale: str | None = "unit",
        rho: float = 1.9,
        mu0: float | None = None,
        mu_max: float = 1e6,
        max_iter: int = 100,
        tol: float = 1e-4,
        n_init: int = 20,
        dtype: str = "auto",
        chunk_size: int = 8192,
        n_jobs: int | None = None,
        views: Sequence[Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_anchors = n_anchors
        self.anchors = anchors
        self.n_neighbors = n_neighbors
        self.lam1 = lam1
        self.lam2 = lam2
        self.alpha = alpha
        self.affinity = affinity
        self.n_kept = n_kept
        self.sigma2 = sigma2
        self.scale = scale
        self.rho = rho
        self.mu0 = mu0
        self.mu_max = mu_max
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.dtype = dtype
        self.chunk_size = chunk_size
        self.n_jobs = n_jobs
        self.views = views
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples.

        Parameters
        ----------
        X : list, tuple or dict of views, or one view
            Samples in rows: what every method takes, or memory-mapped, Zarr or dask arrays, or
            paths to ``.npy``, ``.parquet`` or ``.zarr`` (see the notes of the class).
        y : ignored
            For scikit-learn's conventions.

        Returns
        -------
        self
        """
        data = None  # what Z is shared by, and bytes per number
        if is_large(X):
            views, names = self._open(X)
        else:
            views, names = _arrays(self._check(X), self.scale)
            content = fingerprint(views) if self._shareable() else None
            data = None if content is None else (content, self._numbers(views).itemsize)
        m = self._count_anchors(int(views[0].shape[0]))
        client = active_client(views)
        self._check_room(views, m, client)
        with Threads(self.n_jobs) if client is None else Cluster(client) as workers:
            chunks, spans, scaling = self._chunks(workers, views, names, is_large(X))
            self._fit(workers, chunks, spans, m, data)
        self.scaling_ = scaling
        return self

    def _fit(
        self,
        workers: Any,
        chunks: list[Any],
        spans: list[Any],
        m: int,
        data: tuple[str, int] | None,
    ) -> None:
        n, rng = spans[-1][1], check_random_state(self.random_state)
        Zs = self._shared(workers, chunks, spans, m, rng, data)
        kept = None if self.affinity == "dense" else self.n_kept
        bipartite = bipartite_graph(workers, Zs, self.n_clusters, kept)
        self.bipartite_: tuple[Any, ...] = tuple(bipartite)  # plain tuples can be saved
        Ys = workers.map(embed, Zs, graph=bipartite)
        chosen = np.sort(rng.choice(n, min(n, max(SAMPLE, 100 * self.n_clusters)), replace=False))
        (Y,) = take_samples(workers, workers.map(_alone, Ys), spans, chosen)
        with quiet_kmeans():
            kmeans = KMeans(self.n_clusters, n_init=self.n_init, random_state=rng).fit(Y)
        self.centers_ = kmeans.cluster_centers_
        found = workers.map(nearest_center, Ys, centers=self.centers_)
        self.labels_ = np.concatenate(workers.collect(found))
        if isinstance(workers, Threads):
            self.representation_ = np.concatenate(Zs).T
        else:
            self.__dict__.pop("representation_", None)  # of an earlier fit

    def _shareable(self) -> bool:
        """Whether data and parameters say all that a fit finds."""
        return isinstance(self.random_state, int | np.integer) and isinstance(self.anchors, str)

    def _shared(
        self,
        workers: Any,
        chunks: list[Any],
        spans: list[Any],
        m: int,
        rng: np.random.RandomState,
        data: tuple[str, int] | None,
    ) -> list[Any]:
        """Z by `_represent`, or from an earlier fit inside `polyspan.solvers.cache.sharing`."""
        if data is None:
            return self._represent(workers, chunks, spans, m, rng)

        def make() -> Any:
            return self._recorded(
                lambda: (self._represent(workers, chunks, spans, m, rng), rng.get_state())
            )

        after = (AFTER_THE_SOLUTION | {"n_clusters", "n_anchors", "n_jobs"}) - {"random_state"}
        params = {k: v for k, v in self.get_params().items() if k not in after}
        key = data[0], type(self).__name__, m, repr(sorted(params.items()))
        Zs, state = self._replayed(shared(key, make, spans[-1][1] * m * data[1]), frames=5)
        rng.set_state(state)  # what is drawn after it is the same as well
        return Zs

    def _represent(
        self,
        workers: Any,
        chunks: list[Any],
        spans: list[Any],
        m: int,
        rng: np.random.RandomState,
    ) -> list[Any]:
        """Solve for Z, transposed and in chunks."""
        n = spans[-1][1]
        chosen = rng.choice(n, min(n, max(SAMPLE, n // 100)), replace=False)
        sample = take_samples(workers, chunks, spans, np.sort(chosen))
        if isinstance(self.anchors, str):
            As = choose_anchors(sample, m, self.anchors, rng)
        else:
            taken = take_samples(workers, chunks, spans, np.asarray(self.anchors))
            As = [A.toarray() if sp.issparse(A) else A for A in taken]
        self.alpha_ = 1e-3 * min(1, 2000 / n) if self.alpha is None else float(self.alpha)
        self.recall_, L = [1.0] * len(As), None
        if self.lam2 > 0:
            k = self._count_neighbors(n)
            L, self.recall_ = sample_laplacian(
                workers, chunks, spans, sample, k, self.alpha_, self.sigma2, rng
            )
        del sample
        run, frame = self._run(), make_frame(As)
        exact = n <= EXACT_BELOW and As[0].dtype == np.float64
        mu0 = (1e-4 if exact else 1e-2) if self.mu0 is None else self.mu0
        Xs = workers.map(project, chunks, frame=workers.share(frame))
        chunks.clear()  # their memory is needed
        Zs, self.products_ = solve_anchors(
            workers, Xs, spans, frame, L, lam1=self.lam1, lam2=self.lam2, rho=self.rho,
            mu0=mu0, mu_max=self.mu_max, run=run,
        )  # fmt: skip
        del L
        # What predict needs: Psi^{1/2} A, in the coordinates of the solver.
        w, V = eigh(sum(workers.collect(workers.map(gram, Zs))))
        root = (V * np.clip(w, 0, None) ** 0.25) @ V.T
        self.frame_: tuple[Any, ...] = tuple(frame)
        self.root_ = root
        self.n_iter_, self.anchors_ = run.n_iter, As
        return workers.map(_rotated, Zs, U=frame.U)

    def predict(self, X: Any) -> np.ndarray:
        """Assign new samples to the clusters, without a new fit (see the notes of the class).

        Parameters
        ----------
        X : list, tuple or dict of views, or one view
            New samples, in the form and with the features of those that were fitted; views in a
            dictionary are matched by name.

        Returns
        -------
        (n,) array
            Cluster of every new sample.
        """
        check_is_fitted(self)
        views, names = self._open_new(X) if is_large(X) else self._check_new(X)
        frame = Frame(*self.frame_)
        n, dtype = int(views[0].shape[0]), frame.A.dtype
        fixed = {"frame": frame, "root": self.root_, "lam1": self.lam1}
        with Threads(self.n_jobs) as workers:
            parts = [
                Rows(views, a, b, self.scale, self.scaling_, dtype)
                for a, b in bounds(n, self.chunk_size)
            ]
            if is_large(X):
                contents = workers.map(inspect, parts, [part.start for part in parts])
                check_content(contents, names, new=True)
            Zs = workers.map(represent, parts, **fixed)
            Ys = workers.map(embed, Zs, graph=Bipartite(*self.bipartite_))
            return np.concatenate(workers.map(nearest_center, Ys, centers=self.centers_))

    def _open_new(self, X: Any) -> tuple[list[Any], list[str]]:
        """Check the form of new samples that are read in chunks, as `_check_new` does in memory."""
        views, names = open_views(X)
        if isinstance(X, Mapping) and self._named():
            if set(names) != set(self.view_names_):
                raise ValueError(
                    f"AnchorGRMSC.predict got the views {', '.join(names)}, but the model was "
                    f"fitted on {', '.join(self.view_names_)}: give views of the same names."
                )
            views = [views[names.index(known)] for known in self.view_names_]
        dims = [int(view.shape[1]) for view in views]
        if dims != self.view_widths_:
            raise ValueError(
                f"AnchorGRMSC.predict: the views have {dims} features, but the model was fitted on "
                f"{self.view_widths_}: give the same views as to fit."
            )
        return views, self.view_names_

    def _open(self, X: Any) -> tuple[list[Any], list[str]]:
        """Check parameters and sizes of views that are read in chunks."""
        name = type(self).__name__
        check_params(name, self.get_params(deep=False), self._checks)
        if self.views is not None:
            raise ValueError(
                "views=... cuts one 2-D array in memory into views; give files and lazy arrays as "
                "a list of views instead."
            )
        views, names = open_views(X)
        if views[0].shape[0] < 2:
            raise ValueError(f"view {names[0]} has 1 sample; clustering needs at least 2.")
        self._check_counts(int(views[0].shape[0]))
        self.n_features_in_ = sum(int(view.shape[1]) for view in views)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        self.view_names_, self.view_widths_ = names, [int(view.shape[1]) for view in views]
        return views, names

    def _count_anchors(self, n: int) -> int:
        """Return the number of anchors, or refuse it."""
        if not isinstance(self.anchors, str):
            m, worst = len(self.anchors), int(np.max(self.anchors))
            if worst >= n:
                raise ValueError(
                    f"AnchorGRMSC: anchors names sample {worst}, but there are {n} samples, from 0 "
                    f"to {n - 1}."
                )
        else:
            m = max(100, 5 * self.n_clusters) if self.n_anchors is None else self.n_anchors
            m = min(n, m)
        if m < self.n_clusters:
            raise ValueError(
                f"AnchorGRMSC: n_anchors={m} is fewer than n_clusters={self.n_clusters}: take at "
                "least as many anchors as clusters."
            )
        return m

    def _count_neighbors(self, n: int) -> int:
        return min(10, n - 1) if self.n_neighbors is None else self.n_neighbors

    def _numbers(self, views: Sequence[Any]) -> Any:
        """Return the dtype of the solver."""
        if self.dtype != "auto":
            return np.dtype(self.dtype)
        single = all(getattr(view, "dtype", np.float64) == np.float32 for view in views)
        return np.dtype("f4" if single or views[0].shape[0] > EXACT_BELOW else "f8")

    def _check_room(self, views: Sequence[Any], m: int, client: Any) -> None:
        """Refuse what does not fit in memory, before any work."""
        n, size = int(views[0].shape[0]), self._numbers(views).itemsize
        k = self._count_neighbors(n)
        reduced = sum(min(m, int(view.shape[1])) + 1 for view in views)
        # The state, four m x n matrices of the systems that are solved, and half of the two-hop
        # entries (mutual neighbours are fewer than k) of every view, each with its column number.
        need = n * (size * (2 * reduced + 8 * m) + len(views) * k * k / 2 * (size + 4))
        free, where = available_memory(), "free"
        if client is not None:
            found = client.scheduler_info(n_workers=-1)["workers"].values()
            limits = [worker["memory_limit"] for worker in found]
            free, where = sum(limits) if all(limits) else None, "on the cluster"
        if free is not None and need > free:
            raise MemoryError(
                f"AnchorGRMSC on {n} samples with {m} anchors needs about {need / 2**30:.0f} GiB, "
                f"but {free / 2**30:.0f} GiB are {where}: lower n_anchors or n_neighbors, use "
                'dtype="float32", or give dask arrays and a larger cluster.'
            )

    def _chunks(
        self, workers: Any, views: list[Any], names: list[str], unchecked: bool
    ) -> tuple[list[Any], list[Any], Any]:
        """Cut the views into chunks, look at them, and scale them."""
        dtype, n = self._numbers(views), int(views[0].shape[0])
        lazy: list[Any]
        if isinstance(workers, Cluster):
            lazy, spans = dask_chunks(workers.client, views, self.chunk_size)
        else:
            spans = bounds(n, self.chunk_size)
            lazy = [Rows(views, *span, self.scale, None, dtype) for span in spans]
        scaling = None
        if unchecked or self.scale == "standard+unit":
            contents = workers.collect(workers.map(inspect, lazy, [start for start, _ in spans]))
            if unchecked:
                check_content(contents, names)
            if self.scale == "standard+unit":
                scaling = standardize(contents)
        if isinstance(workers, Cluster):
            fixed = {"scale": self.scale, "scaling": scaling, "dtype": dtype}
            return workers.map(scaled, lazy, **fixed), spans, scaling
        lazy = [part._replace(scaling=scaling) for part in lazy]
        free = available_memory()
        size = n * sum(int(view.shape[1]) for view in views) * dtype.itemsize
        if free is None or size < free / 4 or any(sp.issparse(view) for view in views):
            lazy = workers.map(load, lazy)  # else they are read again each time
        return lazy, spans, scaling

    def _n_square(self, views: Views) -> float:
        return 0.0


def _arrays(views: Views, scale: str | None) -> tuple[list[Any], list[str]]:
    """Return checked views in memory as NumPy or sparse arrays, and their names."""
    if scale is None:
        check_products(views)
    if scale == "standard+unit":
        for view, name in zip(*views, strict=True):
            if sp.issparse(view):
                _check_dense(view, name)
    return [x if sp.issparse(x) else to_numpy(x) for x in views.arrays], views.names


def _alone(Y: np.ndarray) -> list[np.ndarray]:
    return [Y]


def _rotated(Z: np.ndarray, U: np.ndarray) -> np.ndarray:
    return Z @ U.T.astype(Z.dtype)
