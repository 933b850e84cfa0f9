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

Everything costs O(n), and no step is an approximation:

- What A_k cannot reach of a sample stays as it is; it counts only by its length. So X_k becomes
  its coordinates in the range of A_k and one more, that length: at most m + 1 rows.
- With ``Y1' = Y1 + mu (X - A Z - E)`` and ``Y2' = Y2 + mu (Z - Q)`` before the Z step, its step D
  solves ``mu (G + I) D + (Z + D) M = A^T Y1' - Y2'``, with G = sum_k A_k^T A_k, M = lam2 (L + L^T),
  and then Y1 = Y1' - mu A D, Y2 = Y2' + mu D. E is a multiple of Y1' column by column and
  ``Q = H Y2'`` with an m x m matrix H: neither is stored.
- ``G = U diag(g) U^T``; on U^T Z the Z step falls apart into m systems
  ``(mu (g_i + 1) I + M) d_i = b_i``, solved by conjugate gradients (`polyspan.laplacians`).
- As long as E = 0 and Q = 0, which lengths and an m x m matrix prove, Y1 and Y2 are known.

Samples are in rows below: Z, D, Y2 are n x m, chunk by chunk.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from polyspan import graphs, laplacians, prox
from polyspan import views as in_memory
from polyspan.anchors import (
    Bipartite,
    Frame,
    bipartite_graph,
    choose_anchors,
    embed,
    make_frame,
    nearest_center,
    project,
)
from polyspan.base import COMMON, About, MultiViewClusterer
from polyspan.chunks import (
    Cluster,
    Rows,
    Threads,
    active_client,
    bounds,
    check_content,
    check_finite,
    dask_chunks,
    inspect,
    is_large,
    load,
    open_views,
    pick,
    scaled,
    standardize,
    take_samples,
)
from polyspan.linalg import Array, eigh, largest_entry, to_numpy
from polyspan.neighbors import EXACT_BELOW, neighbors, recall
from polyspan.params import check_params, integer, one_of, real
from polyspan.run import Run
from polyspan.spectral import quiet_kmeans
from polyspan.views import Views, available_memory, check_products

DENSE_BELOW = 2_000  # samples up to which the graphs are those of GRMSC to the last digit
SAMPLE = 20_000  # samples from which anchors and centres are learnt, at least


class Part(NamedTuple):
    """State of the solver on a chunk of samples, in rows."""

    D: np.ndarray  # X - A Z
    Y1: np.ndarray
    Z: np.ndarray
    Y2: np.ndarray
    h: np.ndarray  # E = h Y1' for every view


class Early(NamedTuple):
    """The same as long as E = 0 and Q = 0: Y1 = m X - A S and Y2 = S, m being the sum of all mu."""

    X: np.ndarray
    C: np.ndarray  # A^T X
    Z: np.ndarray
    S: np.ndarray  # sum of all mu Z


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
        anchors this is exact GRMSC.
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
    rho, mu0, mu_max : float, default=1.9, 1e-4 and 1e6
        Growth, start and limit of the penalty mu.
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
        "mu0": real(0, open_low=True),
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
        mu0: float = 1e-4,
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
        if is_large(X):
            views, names = self._open(X)
        else:
            views, names = _arrays(self._check(X), self.scale)
        m = self._count_anchors(int(views[0].shape[0]))
        client = active_client(views)
        self._check_room(views, m, client)
        with Threads(self.n_jobs) if client is None else Cluster(client) as workers:
            chunks, spans, scaling = self._chunks(workers, views, names, is_large(X))
            self._fit(workers, chunks, spans, m)
        self.scaling_, self.dims_ = scaling, [int(view.shape[1]) for view in views]
        return self

    def _fit(self, workers: Any, chunks: list[Any], spans: list[Any], m: int) -> None:
        n, rng = spans[-1][1], check_random_state(self.random_state)
        chosen = rng.choice(n, min(n, max(SAMPLE, n // 100)), replace=False)
        sample = take_samples(workers, chunks, spans, np.sort(chosen))
        if isinstance(self.anchors, str):
            As = choose_anchors(sample, m, self.anchors, rng)
        else:
            taken = take_samples(workers, chunks, spans, np.asarray(self.anchors))
            As = [A.toarray() if sp.issparse(A) else A for A in taken]
        self.alpha_ = 1e-3 * min(1, 2000 / n) if self.alpha is None else float(self.alpha)
        self.recall_ = [1.0] * len(As)
        L = self._graphs(workers, chunks, spans, sample, rng) if self.lam2 > 0 else None
        del sample
        run, frame = self._run(), make_frame(As)
        Xs = workers.map(project, chunks, frame=workers.share(frame))
        chunks.clear()  # their memory is needed
        Zs, self.products_ = solve_anchors(
            workers, Xs, spans, frame, L, lam1=self.lam1, lam2=self.lam2, rho=self.rho,
            mu0=self.mu0, mu_max=self.mu_max, run=run,
        )  # fmt: skip
        del L
        # What predict needs: Psi^{1/2} A, in the coordinates of the solver.
        w, V = eigh(sum(workers.collect(workers.map(_gram, Zs))))
        root = (V * np.clip(w, 0, None) ** 0.25) @ V.T
        self.frame_: tuple[Any, ...] = tuple(frame)
        self.root_ = root
        Zs = workers.map(_rotated, Zs, U=frame.U)
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
        self.n_iter_, self.anchors_ = run.n_iter, As
        if isinstance(workers, Threads):
            self.representation_ = np.concatenate(Zs).T
        else:
            self.__dict__.pop("representation_", None)  # of an earlier fit

    def _graphs(
        self,
        workers: Any,
        chunks: list[Any],
        spans: list[Any],
        sample: list[Array],
        rng: np.random.RandomState,
    ) -> Any:
        """Make the Laplacian, where the workers are."""
        n, v = spans[-1][1], len(sample)
        k = min(10, n - 1) if self.n_neighbors is None else self.n_neighbors
        if n <= DENSE_BELOW:
            order = None
            fixed = {"chunks": chunks, "k": k, "sigma2": self.sigma2}
            found = workers.map(_dense_graph, range(v), **fixed)
        else:
            few = rng.choice(sample[0].shape[0], DENSE_BELOW, replace=False)
            queries = np.sort(rng.choice(n, min(n, 300), replace=False))
            sigmas, lists = [], []
            order = rank = None
            for view, X in enumerate(sample):
                sigmas.append(graphs.median_distance(graphs.squared_distances(X[few], ties=True)))
                seed = rng.randint(2**31)
                near, cells = neighbors(workers, chunks, spans, view, k, X, seed)
                lists.append(near)
                if cells is not None:
                    found_part = recall(workers, chunks, spans, view, k, near, queries)
                    self.recall_[view] = found_part
                    if found_part < 0.8:
                        warnings.warn(
                            f"Only {found_part:.0%} of the neighbours in view {view} were found: "
                            "the graph of this view is not reliable; reduce its features first.",
                            UserWarning,
                            stacklevel=4,
                        )
                    if order is None:
                        order = workers.submit(_by_cell, cells)
                        rank = workers.submit(np.argsort, order)
            found = workers.map(
                laplacians.sparse_graph, lists, sigmas, sigma2=self.sigma2, rank=rank,
                sample=rng.choice(n, DENSE_BELOW, replace=False),
            )  # fmt: skip
        blocks = workers.map(
            laplacians.sparse_rows, bounds(n, laplacians.ROWS), found=found, alpha=self.alpha_
        )
        fixed = {"alpha": self.alpha_, "order": order, "dtype": sample[0].dtype}
        return workers.submit(laplacians.assemble, blocks, found, **fixed)

    def predict(self, X: Any) -> np.ndarray:
        """Assign new samples to the clusters, without a new fit (see the notes of the class).

        Parameters
        ----------
        X : list, tuple or dict of views, or one view
            New samples, in the form and with the features of those that were fitted.

        Returns
        -------
        (n,) array
            Cluster of every new sample.
        """
        check_is_fitted(self)
        views, names = self._new_views(X)
        frame = Frame(*self.frame_)
        n, dtype = int(views[0].shape[0]), frame.A.dtype
        fixed = {"frame": frame, "root": self.root_, "lam1": self.lam1}
        with Threads(self.n_jobs) as workers:
            parts = [
                Rows(views, a, b, self.scale, self.scaling_, dtype)
                for a, b in bounds(n, self.chunk_size)
            ]
            check_finite(workers.map(inspect, parts, [part.start for part in parts]), names)
            Zs = workers.map(_represent, parts, **fixed)
            Ys = workers.map(embed, Zs, graph=Bipartite(*self.bipartite_))
            return np.concatenate(workers.map(nearest_center, Ys, centers=self.centers_))

    def _new_views(self, X: Any) -> tuple[list[Any], list[str]]:
        """Check the form of new samples: as many views and features as in the fit."""
        several = None if is_large(X) else in_memory._as_several(X)
        if is_large(X):
            views, names = open_views(X)
        elif several is not None:
            names = list(several)
            views = [in_memory._check_one(x, f"view {k}", None) for k, x in several.items()]
        else:
            kept: dict[str, Any] = {"accept_sparse": "csr", "ensure_all_finite": False}
            whole = validate_data(self, X, reset=False, **kept)
            views = [whole] if self.views is None else in_memory._cut(whole, self.views)
            names = [str(k) for k in range(len(views))]
        dims = [int(view.shape[1]) for view in views]
        if dims != self.dims_:
            raise ValueError(
                f"AnchorGRMSC was fitted on views of {self.dims_} features, X has views of {dims}: "
                "give the same views in the same order."
            )
        if len({int(view.shape[0]) for view in views}) > 1:
            raise ValueError("The views differ in length: every view needs the same samples.")
        return views, names

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

    def _numbers(self, views: Sequence[Any]) -> Any:
        """Return the dtype of the solver."""
        if self.dtype != "auto":
            return np.dtype(self.dtype)
        single = all(getattr(view, "dtype", np.float64) == np.float32 for view in views)
        return np.dtype("f4" if single or views[0].shape[0] > EXACT_BELOW else "f8")

    def _check_room(self, views: Sequence[Any], m: int, client: Any) -> None:
        """Refuse what does not fit in memory, before any work."""
        n, size = int(views[0].shape[0]), self._numbers(views).itemsize
        k = min(10, n - 1) if self.n_neighbors is None else self.n_neighbors
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
                in_memory._check_dense(view, name)
    return [x if sp.issparse(x) else to_numpy(x) for x in views.arrays], views.names


def _alone(Y: np.ndarray) -> list[np.ndarray]:
    return [Y]


def _rotated(Z: np.ndarray, U: np.ndarray) -> np.ndarray:
    return Z @ U.T.astype(Z.dtype)


def _dense_graph(view: int, chunks: list[Any], k: int, sigma2: str) -> laplacians.Graph:
    parts = [load(chunk)[view] for chunk in chunks]
    X = sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)
    return laplacians.dense_graph(X, k, sigma2)


def _by_cell(cells: list[np.ndarray]) -> np.ndarray:
    """Order samples by their nearest cell, within it by the second nearest, and so on.

    Samples that are near each other in space then mostly are so in memory, too.
    """
    return np.lexsort(np.concatenate(cells).T[::-1])


# ---- the solver ----------------------------------------------------------------------------------


def solve_anchors(
    workers: Any,
    Xs: list[Any],
    spans: list[Any],
    frame: Frame,
    L: Any,
    *,
    lam1: float,
    lam2: float,
    rho: float,
    mu0: float,
    mu_max: float,
    run: Run,
) -> tuple[list[Any], list[int]]:
    """Chunks of U^T Z, samples in rows, and the number of products with L of every turn.

    ``Xs`` are chunks of projected samples, ``L`` is the Laplacian where the workers are, or None.
    """
    turns, mu, m, products = iter(run), mu0, 0.0, []
    there = workers.share(frame)
    fixed: dict[str, Any] = {"frame": there, "inplace": isinstance(workers, Threads)}

    def z_step(parts: list[Any], Fs: list[Any]) -> list[Any]:
        """Steps of all chunks, each in pieces of a few columns."""
        columns = workers.columns(len(frame.d))
        if L is None:
            products.append(0)
            return workers.map(_divide, Fs, mu=mu, frame=there)
        pairs = list(zip(parts, Fs, strict=True))
        cut = [[workers.submit(_columns, *pair, span) for pair in pairs] for span in columns]
        shifts = [mu * frame.d[a:b] for a, b in columns]
        done = workers.map(_solve_block, cut, shifts, L=L, weight=2 * lam2)
        products.append(max(workers.collect(workers.map(pick, done, [1] * len(done)))))
        steps = workers.map(pick, done, [0] * len(done))
        return [[workers.submit(_span, X, span) for X in steps] for span in spans]

    early = workers.map(begin, Xs, frame=there)
    del Xs
    while True:
        found = workers.map(quiet, early, mu=mu, m=m, frame=there)
        longest, largest = workers.collect(workers.submit(loudest, found))
        if longest > lam1 or largest > 1 or next(turns, None) is None:
            break  # E or Q is no longer zero
        Fs = workers.map(early_forces, early, mu=mu, m=m, frame=there)
        done = workers.map(early_advance, early, z_step(early, Fs), mu=mu, frame=there)
        early = [workers.submit(pick, one, 0) for one in done]
        sizes = workers.collect([workers.submit(pick, one, 1) for one in done])
        m, mu = m + mu, min(rho * mu, mu_max)
        run.check(split=max(s for s, _ in sizes), data=max(d for _, d in sizes))
    parts = workers.map(settle, early, m=m, frame=there)
    del early
    grams = workers.map(_multiplied_gram, parts, mu=mu)
    for _ in turns:
        threshold = workers.submit(singular_threshold, grams, mu)
        done = workers.map(forces, parts, mu=mu, lam1=lam1, threshold=threshold, **fixed)
        parts = [workers.submit(pick, one, 0) for one in done]
        Fs = [workers.submit(pick, one, 1) for one in done]
        del done
        steps = z_step(parts, Fs)
        del Fs
        now = {"mu": mu, "after": min(rho * mu, mu_max), "tol": run.tol, "threshold": threshold}
        done = workers.map(advance, parts, steps, **now, **fixed)
        parts = [workers.submit(pick, one, 0) for one in done]
        grams = [workers.submit(pick, one, 1) for one in done]
        sizes = workers.collect([workers.submit(pick, one, 2) for one in done])
        run.check(split=max(s for s, _ in sizes), data=max(d for _, d in sizes))
        mu = now["after"]
        del done, steps
    if max(products, default=0) >= laplacians.MAX_PRODUCTS:
        warnings.warn(
            f"Some systems of the Z step were not solved to the end in {max(products)} products "
            "with the Laplacian: raise alpha, which ties all samples together, or lower lam2.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return [workers.submit(pick, part, 2) for part in parts], products


def begin(X: np.ndarray, frame: Frame) -> Early:
    """Start at Z = 0."""
    C = X @ frame.A.T
    return Early(X, C, np.zeros_like(C), np.zeros_like(C))


def _sum_rows(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", A, B)


def _gram(M: np.ndarray) -> np.ndarray:
    M = M.astype(np.float64)  # squares of float32 numbers need it
    return M.T @ M


def quiet(part: Early, mu: float, m: float, frame: Frame) -> tuple[np.ndarray, float]:
    """What proves that Q = 0 and E = 0: the Gram matrix of mu Z + Y2, the longest mu D + Y1."""
    X, C, Z, S = part
    T = S + mu * Z
    g = (frame.d - 1).astype(T.dtype)
    a = m + mu
    squares = a * a * _sum_rows(X, X) - 2 * a * _sum_rows(C, T) + _sum_rows(T * g, T)
    return _gram(T), float(np.sqrt(max(squares.max(), 0)))


def loudest(found: list[tuple[np.ndarray, float]]) -> tuple[float, float]:
    """Longest of the columns, and the largest eigenvalue of the sum of the Gram matrices."""
    return max(length for _, length in found), float(eigh(sum(gram for gram, _ in found))[0][-1])


def singular_threshold(grams: list[np.ndarray], mu: float) -> tuple[np.ndarray, np.ndarray]:
    """From the Gram matrix of mu Z + Y2: what turns it into mu Q, and Y2' into Q."""
    w, V = eigh(sum(grams))
    tau = np.sqrt(np.clip(w, 1, None))  # singular values; those up to 1 vanish
    return (V * (1 - 1 / tau)) @ V.T, (V * ((tau - 1) / mu)) @ V.T


def early_forces(part: Early, mu: float, m: float, frame: Frame) -> np.ndarray:
    """A^T Y1' - Y2' as long as E = 0 and Q = 0."""
    return (m + mu) * part.C - (part.S + mu * part.Z) * frame.d.astype(part.C.dtype)


def early_advance(
    part: Early, steps: list[np.ndarray], mu: float, frame: Frame
) -> tuple[Early, tuple[float, float]]:
    """Take the Z step; also return the lengths of the longest columns of Z and of X - A Z."""
    X, C, Z, S = part
    Z = Z + np.hstack(steps)
    g = (frame.d - 1).astype(Z.dtype)
    data = _sum_rows(X, X) - 2 * _sum_rows(C, Z) + _sum_rows(Z * g, Z)
    split = np.sqrt(_sum_rows(Z, Z).max())
    return Early(X, C, Z, S + mu * Z), (float(split), float(np.sqrt(max(data.max(), 0))))


def settle(part: Early, m: float, frame: Frame) -> Part:
    """Write down what was known without being stored."""
    X, _, Z, S = part
    h = np.zeros((len(X), len(frame.spans)), dtype=X.dtype)
    return Part(X - Z @ frame.A, m * X - S @ frame.A, Z, S, h)


def _multiplied_gram(part: Part, mu: float) -> np.ndarray:
    return _gram(mu * part.Z + part.Y2)


def forces(
    part: Part, mu: float, lam1: float, threshold: Any, frame: Frame, inplace: bool
) -> tuple[Part, np.ndarray]:
    """E and Q steps: multipliers Y1' and Y2' after them, and A^T Y1' - Y2'."""
    D, Y1, Z, Y2, _ = part if inplace else (part.D, part.Y1.copy(), part.Z, part.Y2.copy(), None)
    Y1 += mu * D
    h = np.empty((len(D), len(frame.spans)), dtype=D.dtype)
    for k, columns in enumerate(frame.spans):
        T = Y1[:, columns]
        lengths = np.sqrt(_sum_rows(T, T))
        h[:, k] = np.clip(lengths / lam1 - 1, 0, None) / mu
        T *= (lam1 / np.maximum(lengths, lam1))[:, None]
    Y2 += mu * Z
    Y2 -= Y2 @ threshold[0].astype(Y2.dtype)  # mu Z + Y2 - mu Q
    return Part(D, Y1, Z, Y2, h), Y1 @ frame.A.T - Y2


def advance(
    part: Part,
    steps: list[np.ndarray],
    mu: float,
    after: float,
    threshold: Any,
    tol: float,
    frame: Frame,
    inplace: bool,
) -> tuple[Part, np.ndarray, tuple[float, float]]:
    """Z step and the rest of the multipliers; Gram matrix for the next Q, and the residuals."""
    D, Y1, Z, Y2, h = part if inplace else (*(x.copy() for x in part[:4]), part.h)
    step = np.hstack(steps)
    moved = step @ frame.A
    D -= moved
    Z += step
    Q = Y2 @ threshold[1].astype(Z.dtype)
    split = largest_entry((Z - Q).T, Z.shape[1], tol, _turn(frame.U))
    data = []
    for k, (columns, P) in enumerate(zip(frame.spans, frame.bases, strict=True)):
        rest = D[:, columns] - h[:, k : k + 1] * Y1[:, columns]
        data.append(largest_entry(rest.T, P.shape[0], tol, _features(P)))
    moved *= mu
    Y1 -= moved
    step *= mu
    Y2 += step
    part = Part(D, Y1, Z, Y2, h)
    return part, _multiplied_gram(part, after), (split, max(data))


def _turn(U: np.ndarray) -> Any:
    return lambda Z: U.astype(Z.dtype) @ Z


def _features(P: np.ndarray) -> Any:
    """To original features; of what lies out of the range of A only the length is known."""
    return lambda R: np.abs(P @ R[:-1]) + np.abs(R[-1:])


def _divide(F: np.ndarray, mu: float, frame: Frame) -> list[np.ndarray]:
    return [F / (mu * frame.d).astype(F.dtype)]


def _columns(part: Any, F: np.ndarray, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    return part.Z[:, slice(*span)], F[:, slice(*span)]


def _span(X: np.ndarray, span: tuple[int, int]) -> np.ndarray:
    return X[slice(*span)]


def _solve_block(
    cut: list[Any], shift: np.ndarray, L: laplacians.Laplacian, weight: float
) -> tuple[np.ndarray, int]:
    Zs, Fs = zip(*cut, strict=True)
    tol = float(np.sqrt(np.finfo(Zs[0].dtype).eps))
    return laplacians.solve(L, Zs, Fs, weight, shift, tol)


def _represent(chunk: Any, frame: Frame, root: np.ndarray, lam1: float) -> np.ndarray:
    """Z of new samples, in rows: ``min_y |y|^2 / 2 + lam1 sum_k |x_k - y K_k|``, K = Psi^{1/2} A.

    The augmented Lagrangian with a fixed mu, whose y step has one matrix for all samples. A sample
    that has converged leaves, so that no sample depends on the others.
    """
    X = project(chunk, frame).astype(np.float64)
    K = root @ frame.A
    size = np.sqrt(np.mean(np.sum(frame.A**2, axis=1)))  # length of an anchor
    mu = 10 * lam1 / size if size > 0 else lam1
    g, V = eigh(K @ K.T)
    step = K.T @ (V / (1 + mu * g)) @ V.T
    found = np.zeros((len(X), len(K)))
    left = np.arange(len(X))  # who has not converged
    E, Y, y = np.zeros_like(X), np.zeros_like(X), found
    for _ in range(2000):
        last = y
        y = (mu * (X - E) + Y) @ step
        D = X - y @ K
        E = D + Y / mu
        for columns in frame.spans:
            E[:, columns] *= prox.column_factors(E[:, columns].T, lam1 / mu)[:, None]
        Y += mu * (D - E)
        found[left] = y
        moved = np.linalg.norm(y - last, axis=1) > 1e-6 * np.linalg.norm(y, axis=1)
        active = moved | (np.linalg.norm(D - E, axis=1) > 1e-6 * size)
        left, X, E, Y, y = (A[active] for A in (left, X, E, Y, y))
        if len(left) == 0:
            break
    return found @ root @ frame.U.T
