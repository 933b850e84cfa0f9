r"""AnchorGRMSC: GRMSC for many samples, represented by a few anchors instead of each other.

Objective, with samples in the columns of X_k (d_k x n) and m anchors, the same in every view, in
those of A_k (d_k x m)::

    min |Z|_* + lam1 sum_k |E_k|_{2,1} + lam2 Tr(Z L Z^T)    s.t. X_k = A_k Z + E_k

Z is m x n, L the Laplacian of the two graphs of GRMSC on the samples. With the samples as anchors
this is GRMSC (``orientation="samples"``), with the same iterates of the augmented Lagrangian::

    E_k  = columns of X_k - A_k Z + Y1_k/mu, shortened by lam1/mu
    Q    = Z + Y2/mu, singular values lowered by 1/mu
    Z    : mu (sum_k A_k^T A_k + I) Z + Z lam2 (L + L^T)
           = sum_k A_k^T (Y1_k + mu (X_k - E_k)) + mu Q - Y2
    Y1_k += mu (X_k - A_k Z - E_k);  Y2 += mu (Z - Q);  mu = min(rho mu, mu_max)

In the other files of this package, ``solver`` does this in O(n) per iteration without approximating
any step, ``laplacian`` computes L, and ``anchors`` the anchors and the clusters.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyspan.base import About, Labels, OnDevice, Penalized, TakesFiles
from polyspan.chunked.chunks import Rows, contents, inspect, make_chunks
from polyspan.chunked.sources import is_large, open_views
from polyspan.chunked.workers import Cluster, Threads, active_client, refuse_device
from polyspan.graphs.neighbors import EXACT_BELOW
from polyspan.inputs.params import Neighbors, fitted, integer, jobs, one_of, param, positive, real
from polyspan.inputs.rows import check_content
from polyspan.inputs.scaling import (
    STANDARDIZED,
    Scale,
    check_dense,
    check_products,
    constant_view,
    is_constant,
    scaling_per_view,
    short_indices,
    unit,
)
from polyspan.inputs.views import Views
from polyspan.methods.anchor_grmsc.anchors import (
    SAMPLE,
    Bipartite,
    Frame,
    choose_anchors,
    cluster_links,
    embed,
    make_frame,
    nearest_center,
    project,
    rotated,
)
from polyspan.methods.anchor_grmsc.laplacian import exact_neighbors, sample_laplacian, unreliable
from polyspan.methods.anchor_grmsc.solver import (
    gram,
    represent,
    solve_anchors,
    solve_on_device,
    unsolved,
)
from polyspan.runtime.arrays import Array, to_numpy
from polyspan.runtime.cache import shared
from polyspan.runtime.devices import check_device
from polyspan.runtime.memory import available_memory
from polyspan.runtime.threads import Span, bounds, take_samples
from polyspan.solvers.eigen import eigh


def kind_of_anchors(value: Any) -> str | None:
    """Check that a value is a way to choose anchors, or the indices of samples."""
    words = "'kmeans' or 'sample' or a 1-D array of different sample numbers"
    if isinstance(value, str):
        return None if value in ("kmeans", "sample") else words
    found = np.asarray(value)
    usable = found.ndim == 1 and found.dtype.kind in "iu" and 0 < len(found) == len(set(found))
    return None if usable and found.min() >= 0 else words


class AnchorGRMSC(OnDevice, Penalized, TakesFiles):
    """GRMSC for up to millions of samples, represented by anchors; also on Dask, or on a GPU.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_anchors : int or None, default=None
        Number m of anchors; None is min(n, max(100, 5 n_clusters)). Cost and memory grow like m.
    anchors : {"kmeans", "sample"} or array of int, default="kmeans"
        Centers of k-means on the views side by side (learned from 20,000 samples or 1% of them),
        samples chosen by k-means++, or the indices of the samples to use. With all samples as
        anchors this is exactly GRMSC in float64; in float32 ``mu0`` is higher.
    n_neighbors : int or None, default=None
        Neighbors k of the graphs; None is min(10, n - 1). Exact up to 20,000 samples; above, only
        near cells are searched, see ``recall_``, and ties depend on the order of the samples.
    lam1, lam2 : float, default=0.1 and 1.0
        Weights of the errors and of the graphs.
    alpha : float or None, default=None
        Weight of the complementary graph relative to the consistent one; None is
        ``1e-3 min(1, 2000 / n)``. The complementary graph is dense, so with a fixed alpha its
        degrees would grow like n, while those of the consistent graph do not.
    affinity : {"dense", "sparse"}, default="sparse"
        Links of samples to anchors: all of ``|Z|``, or the ``n_kept`` largest for each sample.
    n_kept : int, default=5
        Links kept by ``affinity="sparse"``; with many anchors fewer are often better.
    smoothing : int, default=10
        Steps in which the spectral coordinates of a sample move towards those of its neighbors in
        the views that are alike; 0, or ``lam2=0``, clusters the links to anchors alone.
    second_width : {"own", "first"}, default="own"
        Width of the second-order Gaussian, as in `GRMSC`. Medians of distances are taken over at
        most 2,000 samples.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        Scales samples to unit length; ``"standard+unit"`` standardizes the features first.
    rho, mu_max : float, default=1.9 and 1e6
        Growth and limit of the penalty mu.
    mu0 : float or None, default=None
        Start of mu; None is 1e-4, as in `GRMSC`, up to 20,000 samples in float64. Above, and in
        float32, it is 1e-2: that saves about seven iterations in which hardly anything happens, and
        whose systems may be too ill-conditioned for float32.
    max_iter : int, default=100
        Maximum number of iterations.
    tol : float, default=1e-4
        Stop when all entries of ``X_k - A_k Z - E_k`` and ``Z - Q`` are smaller. (GRMSC uses 1e-6,
        which float32 does not always reach.)
    n_init : int, default=20
        Restarts of k-means on the spectral embedding of up to 20,000 samples; the others are
        assigned to the nearest center.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Type of the numbers in the solver; ``"auto"`` is float32 for more than 20,000 samples,
        otherwise that of the input.
    chunk_size : int, default=8192
        Samples processed at a time; dask arrays keep their own chunks if these are smaller.
    n_jobs : int or None, default=None
        Number of threads; None is 1, or what a joblib context says, and -1 is all cores. The result
        does not depend on it.
    device : str or None, default=None
        An accelerator on which Z is solved for, such as ``"cuda"`` (needs torch; not with Dask),
        and the neighbors of more than 20,000 samples are searched, up to 200,000 exactly. The rest
        is computed on the CPU.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` in memory into views, for pipelines and grid search.
    random_state : int, RandomState or None, default=None
        Seeds the anchors, the samples for medians and cells, and k-means.
    verbose : int, default=0
        Print every ``verbose``-th iteration.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    anchors_ : list of (m, d_k) arrays
        The anchors, scaled like the samples.
    representation_ : (m, n) array
        Z; column j is sample j in terms of the anchors. Not kept when fitted on a Dask cluster.
    recall_ : list of float
        Per view, the share of the true neighbors of 300 samples that was found; 1.0 if the
        search was exact. Below 0.8 there is a warning.
    alpha_ : float
        The alpha that was used.
    n_iter_ : int
        Number of iterations.
    history_ : dict
        Per iteration: ``data`` and ``split``, as in `GRMSC`.
    products_ : list of int
        Per iteration, the number of products with the Laplacian in the conjugate gradients.

    Notes
    -----
    Views may be arrays in memory as in every method, memory-mapped arrays, Zarr or dask arrays, or
    paths to ``.npy``, ``.parquet`` and ``.zarr``; these are read in chunks and need not fit in
    memory. dask arrays are fitted on the active ``distributed.Client``, if there is one.

    `predict` assigns new samples without a new fit. With ``Psi = (Z Z^T)^{1/2}`` the nuclear norm
    at the solution is ``(Tr(Z^T Psi^-1 Z) + Tr Psi) / 2``, a sum over samples; a new sample x
    solves its own part, ``min_z z^T Psi^-1 z / 2 + lam1 sum_k |x_k - A_k z|``, to convergence.
    The graphs are not used, because a new sample has no row in them. Then the links ``|z|`` are
    embedded like those of the fit, and the nearest center gives the label.

    Examples
    --------
    >>> from polyspan import AnchorGRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=600, n_clusters=3, random_state=0)
    >>> model = AnchorGRMSC(n_clusters=3, n_anchors=30, random_state=0).fit(data.views)
    >>> model.representation_.shape, model.predict([X[:5] for X in data.views]).shape
    ((30, 600), (5,))
    """

    about = About(
        paper="GRMSC on anchors, after Zheng et al. 2020, arXiv:2004.03106",
        objective="min |Z|_* + lam1 sum_v |X_v - A_v Z|_{2,1} + lam2 sum_v tr(Z L_v Z^T)",
        needs="n_anchors; n_neighbors, lam1, lam2 as in GRMSC; views may be files or dask arrays",
        cost="O(n a (a + q + k^2)) per iteration, about 25 iterations",
    )
    family = "subspace"
    draws = True  # its anchors

    n_anchors: int | None = param(integer(1, none="min(n, max(100, 5 n_clusters))"), default=None)
    anchors: Any = param(kind_of_anchors, default="kmeans")
    n_neighbors: int | None = param(Neighbors(10), default=None)
    lam1: float = param(positive, default=0.1)
    lam2: float = param(real(0), default=1.0)
    alpha: float | None = param(real(0, none="1e-3 min(1, 2000 / n)"), default=None)
    affinity: str = param(one_of("dense", "sparse"), default="sparse")
    n_kept: int = param(integer(1), default=5)
    smoothing: int = param(integer(0), default=10)
    second_width: str = param(one_of("own", "first"), default="own")
    mu0: float | None = param(
        real(0, open_low=True, none="1e-4 up to 20,000 samples in float64, else 1e-2"), default=None
    )
    tol: float = 1e-4
    dtype: str = param(one_of("auto", "float32", "float64"), default="auto")
    chunk_size: int = param(integer(1), default=8192)
    n_jobs: int | None = param(jobs, default=None)

    anchors_: list[np.ndarray] = fitted()
    representation_: np.ndarray = fitted()
    recall_: list[float] = fitted()
    alpha_: float = fitted()
    products_: list[int] = fitted()
    _bipartite: tuple[Any, ...] = fitted()
    _centers: np.ndarray = fitted()
    _frame: tuple[Any, ...] = fitted()
    _root: np.ndarray = fitted()
    _scaling: list[Any] | None = fitted()

    def check(self, X: Any) -> Views:
        """Check as in every method, and whether there is room for the anchors."""
        views = super().check(X)
        if not is_large(views.arrays):
            views = in_numpy(views, self.scale)
        n, size = views.n_samples, self._numbers(views).itemsize
        check_room(views, self._count_anchors(n), self._neighbors(n), size, self.device)
        return views

    def scaled(self, views: Views) -> list[Array]:
        """Return nothing: the workers scale the chunks."""
        return []

    def solve(self, views: Views, Xs: list[Array]) -> Labels:
        """Represent the samples and cluster their links, on the workers."""
        client = active_client(views.arrays)
        with (
            Threads(effective_n_jobs(self.n_jobs)) if client is None else Cluster(client) as workers
        ):
            Zs, spans, neighbors, record, state = self._represented(workers, views)
            rng = np.random.RandomState()
            rng.set_state(state)  # continue after the draws of the representation
            kept = None if self.affinity == "dense" else self.n_kept
            own = self._given("n_clusters", "smoothing", "n_init")
            clusters = cluster_links(workers, Zs, spans, neighbors, rng, n_kept=kept, **own)
            # Plain tuples can be saved.
            learned = {"_bipartite": tuple(clusters.graph), "_centers": clusters.centers}
            if client is None:
                learned["representation_"] = np.concatenate(Zs).T
        return Labels(clusters.labels, **record | {"extras": record["extras"] | learned})

    def _represented(self, workers: Threads | Cluster, views: Views) -> "Represented":
        """Call `represent`, or reuse an earlier fit inside `polyspan.runtime.cache.sharing`."""
        # The fit must depend on data and parameters alone.
        known = isinstance(self.random_state, int | np.integer) and isinstance(self.anchors, str)
        if not known or is_large(views.arrays):
            return self.represent(workers, views)
        m = self._count_anchors(views.n_samples)
        own = {"n_anchors": m, "scale": tuple(self._scalings(views))}
        params = self.get_params(deep=False) | own
        for name in ("n_clusters", "affinity", "n_kept", "smoothing", "n_init", "views"):
            del params[name]
        size = views.n_samples * m * self._numbers(views).itemsize
        what = tuple(sorted(params.items()))
        return shared(
            represent_problem, what, views.arrays, size, lambda: self.represent(workers, views)
        )

    def represent(self, workers: Threads | Cluster, views: Views) -> "Represented":
        """Solve for Z on the workers, transposed and in chunks."""
        n, rng, dtype = views.n_samples, check_random_state(self.random_state), self._numbers(views)
        m, new = self._count_anchors(n), is_large(views.arrays)
        chunks, spans, moments = make_chunks(
            workers, views, self.chunk_size, self.scale, dtype, new
        )
        chosen = rng.choice(n, min(n, max(SAMPLE, n // 100)), replace=False)
        sample = take_samples(workers, chunks, spans, np.sort(chosen))
        if isinstance(self.anchors, str):
            As = choose_anchors(sample, m, self.anchors, rng)
        else:
            taken = take_samples(workers, chunks, spans, np.asarray(self.anchors))
            As = [A.toarray() if sp.issparse(A) else A for A in taken]
        alpha = 1e-3 * min(1, 2000 / n) if self.alpha is None else float(self.alpha)
        recall, L, S = [1.0] * len(As), None, None
        if self.lam2 > 0:
            k = self._neighbors(n)
            near = None if new else exact_neighbors(views, self.scale, k)
            graph = k, alpha, self.second_width
            L, S, recall = sample_laplacian(
                workers, chunks, spans, sample, *graph, rng, self.device, near
            )
        del sample
        run, frame = self._run(), make_frame(As)
        exact = n <= EXACT_BELOW and As[0].dtype == np.float64
        penalty = self._penalty()
        if self.mu0 is None:
            penalty["mu0"] = 1e-4 if exact else 1e-2
        coordinates = workers.map(project, chunks, frame=workers.share(frame))
        chunks.clear()  # their memory is needed
        given: dict[str, Any] = {"lam1": self.lam1, "lam2": self.lam2, "run": run} | penalty
        if self.device is None:
            Zs, products = solve_anchors(workers, coordinates, spans, frame, L, **given)
        else:
            Zs, products = solve_on_device(self.device, coordinates, spans, frame, L, **given)
        del L
        # What predict needs: Psi^{1/2} A, in the coordinates of the solver.
        w, V = eigh(sum(workers.collect(workers.map(gram, Zs))))
        record = run.record()
        record["complaints"] += (*unreliable(recall), *unsolved(products))
        record["extras"] = {
            "anchors_": As,
            "alpha_": alpha,
            "recall_": recall,
            "products_": products,
            "_scaling": moments,
            "_frame": tuple(frame),
            "_root": (V * np.clip(w, 0, None) ** 0.25) @ V.T,
        }
        Zs = workers.map(rotated, Zs, U=frame.U)
        return Represented(Zs, spans, S, record, rng.get_state())

    def predict(self, X: Any) -> np.ndarray:
        """Assign new samples to the clusters without a new fit (see the notes of the class).

        Parameters
        ----------
        X : list, tuple or dict of views, or one view
            New samples, with the same views and features as in ``fit``; views in a dictionary are
            matched by name.

        Returns
        -------
        (n,) array
            Cluster of every new sample.
        """
        check_is_fitted(self)
        if is_large(X):
            views, names = open_views(X)
            views = self._in_order(views, names)
        else:
            views = self._check_new(X).arrays
        frame = Frame(*self._frame)
        n, dtype = int(views[0].shape[0]), frame.A.dtype
        fixed = {"frame": frame, "root": self._root, "lam1": self.lam1}
        with Threads(effective_n_jobs(self.n_jobs)) as workers:
            parts = [
                Rows(views, a, b, self.scale, self._scaling, dtype)
                for a, b in bounds(n, self.chunk_size)
            ]
            if is_large(X):
                seen = workers.map(inspect, parts)
                check_content(contents(seen), self.view_names_, new=True)
            Zs = workers.map(represent, parts, **fixed)
            Ys = workers.map(embed, Zs, graph=Bipartite(*self._bipartite))
            return np.concatenate(workers.map(nearest_center, Ys, centers=self._centers))

    def _count_anchors(self, n: int) -> int:
        """Return the number of anchors, or raise if it is wrong."""
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
                f"AnchorGRMSC: n_anchors={m} is fewer than n_clusters={self.n_clusters}: use at "
                "least as many anchors as clusters."
            )
        return m

    def _numbers(self, views: Views) -> Any:
        """Return the dtype of the solver."""
        if self.dtype != "auto":
            return np.dtype(self.dtype)
        single = all(getattr(view, "dtype", np.float64) == np.float32 for view in views.arrays)
        return np.dtype("f4" if single or views.n_samples > EXACT_BELOW else "f8")

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count nothing: `check_room` checks the memory once the number of anchors is known."""
        return 0.0, 0.0


def check_room(views: Views, m: int, k: int, size: int, device: str | None) -> None:
    """Raise if m anchors and k neighbors, in numbers of ``size`` bytes, do not fit in memory."""
    n = views.n_samples
    reduced = sum(min(m, int(view.shape[1])) + 1 for view in views.arrays)
    # The state, four m x n matrices for the systems to solve, and half of the two-hop entries
    # (there are fewer than k mutual neighbors) of every view, each with its column index.
    need = n * (size * (2 * reduced + 8 * m) + len(views.arrays) * k * k / 2 * (size + 4))
    client = active_client(views.arrays)
    free, where = available_memory(), "free"
    if client is not None:
        found = client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker["memory_limit"] for worker in found]
        free, where = sum(limits) if all(limits) else None, "on the cluster"
        refuse_device("AnchorGRMSC", device)
    elif device is not None:
        there = check_device("AnchorGRMSC", device)
        if there is not None and (free is None or there < free):
            free, where = there, f"free on {device}"
    if free is not None and need > free:
        raise MemoryError(
            f"AnchorGRMSC on {n} samples with {m} anchors needs about {need / 2**30:.0f} GiB, "
            f"but {free / 2**30:.0f} GiB are {where}: lower n_anchors or n_neighbors, use "
            'dtype="float32", or use dask arrays on a larger cluster.'
        )


def in_numpy(views: Views, scale: Scale) -> Views:
    """Return checked views in memory as NumPy or sparse arrays."""
    check_products(views, scale)
    scales = scaling_per_view(scale, len(views.arrays))
    for (view, name), scaling in zip(views, scales, strict=True):
        if scaling in STANDARDIZED and sp.issparse(view):
            check_dense(view, name, scaling)
    arrays = [short_indices(x) if sp.issparse(x) else to_numpy(x) for x in views.arrays]
    for view, name, scaling in zip(arrays, views.names, scales, strict=True):
        # Standardized views vary, and of most others the first rows do.
        if scaling == "unit" and is_constant(unit(view[:100])) and is_constant(unit(view)):
            raise constant_view(name, scaling, view.shape[1])
    return replace(views, arrays=arrays)


class Represented(NamedTuple):
    """Z of the samples, transposed and in chunks, and how the solver found it."""

    Zs: list[Any]
    spans: list[Span]
    neighbors: Any  # mean graph of the samples, on the workers; None without lam2
    record: dict[str, Any]  # fields of `polyspan.base.Outcome`
    random_state: Any  # after the draws


def represent_problem(what: tuple[tuple[str, Any], ...], arrays: Sequence[Array]) -> Represented:
    """Represent with a new model that has these parameters and no others."""
    model = AnchorGRMSC(**dict(what), n_clusters=1)
    with Threads(effective_n_jobs(model.n_jobs)) as workers:
        return model.represent(workers, Views(list(arrays), [str(k) for k in range(len(arrays))]))
