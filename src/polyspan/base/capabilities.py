"""Mixins by what methods share; each owns its parameters, their checks and what it keeps."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from polyspan.base.estimator import MultiViewClusterer, ViewTags
from polyspan.base.outcome import Outcome, Representation
from polyspan.chunked.sources import is_large, open_views
from polyspan.clustering.extension import extend_labels, new_representation
from polyspan.inputs.params import (
    PerView,
    device_or_none,
    fitted,
    integer,
    one_of,
    param,
    positive,
    real,
)
from polyspan.inputs.precomputed import check_kernel_scales, kernel_features
from polyspan.inputs.rows import filled
from polyspan.inputs.scaling import (
    SCALES,
    Scale,
    Scaling,
    check_products,
    check_varied,
    feature_moments,
    numpy_views,
    scale_views,
    scaling_per_view,
)
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, to_numpy
from polyspan.runtime.devices import check_device, move_arrays
from polyspan.runtime.messages import view_title
from polyspan.solvers.loop import Run


class ScaledClusterer(MultiViewClusterer):
    """Methods that scale the views and end in k-means: all except those that wrap others."""

    solves_products: ClassVar[bool] = False  # whether the solver uses X^T X + I

    scale: Scale = param(PerView(*SCALES), default="unit")
    n_init: int = param(integer(1), default=20, after=True)

    def scaled(self, views: Views) -> list[Array]:
        """Scale checked views."""
        scales = self._scalings(views)
        if self.solves_products:
            check_products(views, scales)
        return scale_views(views, scales)

    def _check_scaled(self, views: Views, Xs: list[Array]) -> None:
        """Refuse views that are constant after scaling."""
        check_varied(Xs, views.names, self._scalings(views))

    def _check_scales(self, n_views: int) -> None:
        """Refuse lists of scalings that are not as many as the views."""
        for name, check in self.parameter_checks().items():
            if isinstance(check, PerView):
                scaling_per_view(getattr(self, name), n_views, type(self).__name__, name)

    def _scalings(self, views: Views, name: str = "scale") -> list[Scaling]:
        """One scaling for each of the prepared views, without those of views that are left out."""
        scale = getattr(self, name)
        if isinstance(scale, list | tuple) and views.used is not None:
            scale = [scale[k] for k in views.used]
        scalings = scaling_per_view(scale, len(views.arrays))
        if "same" not in scalings:
            return scalings
        both = zip(scalings, self._scalings(views), strict=True)
        return [usual if scaling == "same" else scaling for scaling, usual in both]


class Iterative(ScaledClusterer):
    """Methods with a loop that ends when the residuals are below ``tol``."""

    max_iter: int = param(integer(1), default=100)
    tol: float = param(real(0), default=1e-6)
    verbose: int = param(integer(0), default=0)

    n_iter_: int = fitted()
    history_: dict[str, list[float]] = fitted()

    def _run(self) -> Run:
        """Return the loop, which counts, records, prints if ``verbose``, and stops."""
        return Run(type(self).__name__, self.max_iter, self.tol, self.verbose)


class Penalized(Iterative):
    """Augmented Lagrangians: the penalty mu starts at mu0 and grows by rho up to mu_max."""

    rho: float = param(real(1), default=1.9)
    mu0: float | None = param(positive, default=1e-4)
    mu_max: float = param(positive, default=1e6)

    def _penalty(self) -> dict[str, Any]:
        return {"rho": self.rho, "mu0": self.mu0, "mu_max": self.mu_max}


class InNumPy(ScaledClusterer):
    """Methods that compute with NumPy and SciPy only."""

    def scaled(self, views: Views) -> list[Array]:
        """Scale checked views; they become NumPy or sparse arrays."""
        return numpy_views(views, self._scalings(views))


class OnDevice(ScaledClusterer):
    """Methods that can compute on another device than the CPU."""

    device: str | None = param(device_or_none, default=None)

    def scaled(self, views: Views) -> list[Array]:
        """Scale checked views and move them to ``device``, if there is one."""
        return self._moved(super().scaled(views))

    def _moved(self, Xs: list[Array]) -> list[Array]:
        return Xs if self.device is None else move_arrays(Xs, self.device)

    def brought_back(self, X: Array) -> Array:
        """Return an array of the device as a NumPy array, if the views were moved there."""
        return X if self.device is None else to_numpy(X)

    def _free_memory(self) -> int | None:
        """Bytes that are free on the device; refuses one that is not available."""
        if self.device is None:
            return super()._free_memory()
        return check_device(type(self).__name__, self.device)


class TakesKernels(ScaledClusterer):
    """Methods that also take kernels instead of features."""

    precomputed: str | None = param(one_of(None, "kernel"), default=None)

    _kernel_maps: list[np.ndarray] | None = fitted()

    def _prepare(self, views: Views) -> Views:
        """Turn kernels into features."""
        views = super()._prepare(views)
        if self.precomputed != "kernel":
            return views
        name = type(self).__name__
        check_kernel_scales(name, self._given(*self.parameter_checks()))
        both = [kernel_features(K, view, name) for K, view in views]
        features, maps = ([pair[i] for pair in both] for i in range(2))
        return replace(views, arrays=features, kernel_maps=maps, given=views.given or views)

    def _prepare_new(self, views: Views) -> Views:
        views = super()._prepare_new(views)
        maps = getattr(self, "_kernel_maps", None)
        if maps is None:
            return views
        features = [K @ T for K, T in zip(views.arrays, maps, strict=True)]
        return replace(views, arrays=features)

    def __sklearn_tags__(self) -> ViewTags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.precomputed == "kernel"
        return tags


class RepresentationClusterer(Iterative):
    """Methods whose solver finds Z (n x n): column j is sample j in terms of all samples.

    Spectral clustering is run on its affinity, ``|Z| + |Z|^T`` or its largest entries; new samples
    are written in terms of the fitted ones.
    """

    solves_products = True

    affinity: str = param(one_of("dense", "sparse"), default="dense", after=True)
    n_kept: int = param(integer(1), default=10, after=True)

    representation_: Array = fitted()
    affinity_matrix_: Array = fitted()
    _moments: list[Any] = fitted()
    _dictionary: list[Array] = fitted()

    def represent(self, X: Any) -> Array:
        """Check the model and solve for Z, without fitting.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        (n, n) array
        """
        views = self.check(X)
        outcome: Outcome = self._outcome(views, self.scaled(views))
        assert isinstance(outcome, Representation)
        return outcome.Z

    def _kept(self, views: Views, Xs: list[Array]) -> dict[str, Any]:
        """What new samples are scaled by and compared with."""
        moments = feature_moments(views, self._scalings(views))
        theirs = set(map(id, views.arrays))  # a view that was not scaled is the user's to change
        Xs = [
            X.copy() if sp.issparse(X) else np.array(to_numpy(X), copy=id(X) in theirs) for X in Xs
        ]
        return {
            "_moments": [of_view and tuple(map(to_numpy, of_view)) for of_view in moments],
            "_dictionary": list(map(filled, Xs)),
        }

    def predict(self, X: Any) -> np.ndarray:
        """Find the clusters of new samples, without changing the fit.

        A new sample x gets the column z that it would add to the representation Z if the columns
        of the fitted samples stayed the same; it is then placed in their spectral embedding::

            z = argmin_z  sum_k w_k |x_k - X_k z|^2 + g z^T (Z Z^T)^-1/2 z
            y = sum_i |z_i| / sqrt(d_i)  v_i / lambda

        X_k are the scaled views of the fitted samples (the sum is over the views that x has) and
        w_k the ``view_weights``, or 1 if there are none. The second term is what z adds to the
        nuclear norm of Z, to first order: ``|[Z z]|_* = |Z|_* + z^T (Z Z^T)^-1/2 z / 2``; it keeps
        z within the fitted subspaces. Its weight g is a tenth of the mean squared length of the
        fitted samples. v_i is the row of sample i in the eigenvectors of the normalized affinity,
        lambda their eigenvalues, d_i the degree of i: a fitted sample with these affinities has
        the same y (Nystroem's extension). With ``affinity="sparse"`` only the ``n_kept`` largest
        ``|z_i|`` count. y is scaled to unit length, and the label is that of the nearest mean of
        the fitted clusters.

        Parameters
        ----------
        X : list, tuple or dict of (m, d_k) arrays, or one (m, d) array
            The new samples, with the same views and features as in ``fit``; views in a dictionary
            are matched by name. They are scaled like the fitted ones; the computation is in NumPy.

        Returns
        -------
        (m,) array
            Cluster of every new sample.

        Examples
        --------
        >>> from polyspan import GRMSC
        >>> from polyspan.datasets import make_subspaces
        >>> data = make_subspaces(n_samples=90, n_clusters=3, random_state=0)
        >>> model = GRMSC(n_clusters=3, random_state=0).fit([X[:60] for X in data.views])
        >>> model.predict([X[60:] for X in data.views]).shape
        (30,)
        """
        check_is_fitted(self, "labels_")
        views = self._check_new(X)
        Xs = scale_views(views, self._scalings(views), self._moments)
        Z = new_representation(
            self._dictionary, Xs, to_numpy(self.representation_), self._weights()
        )
        W = self.affinity_matrix_
        return extend_labels(
            W if sp.issparse(W) else to_numpy(W),
            self.labels_,
            self.n_clusters,
            Z,
            n_kept=self.n_kept if self.affinity == "sparse" else None,
        )

    def _weights(self) -> list[float] | None:
        """Weights of the prepared views, or None if they are equal."""
        return None


class TakesFiles(MultiViewClusterer):
    """Methods that also take views which are read in chunks: files, lazy and dask arrays."""

    def check(self, X: Any) -> Views:
        """Check parameters and views without fitting; of large views only the sizes.

        Parameters
        ----------
        X : list, tuple or dict of views, or one view
            Samples in rows, as for any method, or what is read in chunks (see the notes of the
            class).

        Returns
        -------
        Views
        """
        if not self._in_chunks(X):
            return super().check(X)
        self._check_params()
        if self.views is not None:
            raise ValueError(
                "views=... cuts one 2-D array in memory into views; pass files and lazy arrays as "
                "a list of views instead."
            )
        views = X if isinstance(X, Views) else Views(*open_views(X))
        if views.n_samples < 2:
            raise ValueError(
                f"{view_title(views.names[0])} has 1 sample; clustering needs at least 2."
            )
        self._check_counts(views.n_samples)
        self._check_scales(len(views.arrays))
        return views

    def _in_chunks(self, X: Any) -> bool:
        """Whether X must be read in chunks."""
        return is_large(X)
