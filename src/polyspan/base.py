"""The common shape of all methods: views -> representation -> affinity -> labels."""

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from polyspan.clustering.affinity import affinity_matrix
from polyspan.clustering.extension import extend_labels, new_representation
from polyspan.clustering.spectral import spectral_clustering
from polyspan.inputs.devices import check_device, move_arrays
from polyspan.inputs.memory import available_memory, check_memory
from polyspan.inputs.missing import missing_rows
from polyspan.inputs.params import Check, check_params, integer, one_of, real, seed
from polyspan.inputs.scaling import SCALES, check_products, feature_moments, scale_views
from polyspan.inputs.views import Views, check_views
from polyspan.solvers.arrays import Array, to_numpy
from polyspan.solvers.cache import fingerprint, shared
from polyspan.solvers.loop import Run

T = TypeVar("T")

COMMON: dict[str, Check] = {
    "n_clusters": integer(1),
    "affinity": one_of("dense", "sparse"),
    "n_kept": integer(1),
    "scale": one_of(*SCALES),
    "max_iter": integer(1),
    "tol": real(0),
    "n_init": integer(1),
    "random_state": seed,
    "verbose": integer(0),
}


# Parameters that do not change what `_solve` finds, only what becomes of it.
AFTER_THE_SOLUTION = {"affinity", "n_kept", "n_init", "random_state", "verbose", "views"}


class About(NamedTuple):
    """What the table of methods says of a method; plain text, mathematics in ASCII."""

    paper: str  # short citation with the year; arXiv:... or doi:... at its end becomes a link
    objective: str
    needs: str  # parameters and preprocessing that a user must think about
    cost: str


def _predicts(model: Any) -> bool:
    """Whether a method's labels come from its representation, as those of new samples do."""
    return type(model).fit is MultiViewClusterer.fit


class MultiViewClusterer(ClusterMixin, BaseEstimator):
    """Base of all methods; a subclass lists its parameters and says how it finds Z.

    A subclass has ``_about``, its row in the table of methods, ``_checks``, a dictionary from
    parameter to check (see `polyspan.inputs.params`), and ``_solve(views, Xs)``, which gets the
    checked and the scaled views and returns the representation Z. Its constructor only stores.
    """

    _about: ClassVar[About]
    _checks: ClassVar[dict[str, Check]] = {}
    _single_view: ClassVar[bool] = False
    _missing_views: ClassVar[bool] = False  # whether rows of NaN, samples without a view, may be
    takes_missing_views: ClassVar[bool] = False  # the same, for other rooms
    # Whether `_solve` may read n_clusters. A method that says False shares its solution between
    # different numbers of clusters, see `polyspan.solvers.cache`.
    _solve_counts: ClassVar[bool] = True
    device: str | None = None  # a parameter of the methods whose solver can run elsewhere

    # Parameters that every subclass has.
    n_clusters: int
    affinity: str
    n_kept: int
    scale: str | None
    views: Any
    max_iter: int
    tol: float
    n_init: int
    random_state: int | np.random.RandomState | None
    verbose: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples.

        Parameters
        ----------
        X : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
            The views, samples in rows: arrays, DataFrames or scipy.sparse matrices. A single
            2-D array is one view, or several when ``views`` says which columns belong together.
        y : ignored
            For scikit-learn's conventions.

        Returns
        -------
        self
        """
        views = self._check(X)
        if self.scale is None:
            check_products(views)
        Xs = self._scaled(views, self.scale)
        Z = self._solution(views, Xs)
        W = affinity_matrix(Z, self.affinity, self.n_kept)
        self.labels_ = spectral_clustering(
            W, self.n_clusters, n_init=self.n_init, random_state=self.random_state
        )
        self.representation_, self.affinity_matrix_ = Z, W
        if self.device is not None:  # what was moved there is brought back
            self.representation_ = to_numpy(Z)
            self.affinity_matrix_ = W if sp.issparse(W) else to_numpy(W)
        # What new samples are scaled by and compared with.
        self.moments_: list[Any] | None = None
        if self.scale == "standard+unit":
            self.moments_ = [tuple(map(to_numpy, one)) for one in feature_moments(views)]
        self.dictionary_ = [_remembered(X) for X in Xs]
        return self

    def _solution(self, views: Views, Xs: list[Array]) -> Array:
        """Z by `_solve`, or from an earlier fit inside `polyspan.solvers.cache.sharing`."""
        data = fingerprint(views.arrays) if self._shareable() else None
        if data is None:
            return self._solve(views, Xs)

        after = AFTER_THE_SOLUTION | (set() if self._solve_counts else {"n_clusters"})
        params = {k: v for k, v in self.get_params().items() if k not in after}
        key = data, type(self).__name__, repr(sorted(params.items()))
        solve = partial(self._recorded, lambda: self._solve(views, Xs))
        return self._replayed(shared(key, solve, views.n_samples**2 * views.itemsize))

    def _recorded(self, solve: Callable[[], T]) -> tuple[T, dict[str, Any], list[Warning]]:
        """What ``solve`` returns, with the attributes that it sets and its warnings."""
        before = {k: v for k, v in vars(self).items() if k.endswith("_")}
        for name in before:  # else what is set to the same small number again would not show
            delattr(self, name)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                found = solve()
        finally:
            fitted = {k: v for k, v in vars(self).items() if k.endswith("_")}
            self.__dict__.update(before | fitted)
        return found, fitted, [one.message for one in caught]  # type: ignore[misc]

    def _replayed(self, recorded: tuple[T, dict[str, Any], list[Warning]], frames: int = 4) -> T:
        """Bring what was recorded to this model; its user is so many frames away."""
        found, fitted, messages = recorded
        for name, value in fitted.items():
            setattr(self, name, value)
        for message in messages:
            warnings.warn(message, stacklevel=frames)
        return found

    def _shareable(self) -> bool:
        """Whether views and parameters say all that `_solve` finds: it draws no random numbers."""
        return True

    @available_if(_predicts)
    def predict(self, X: Any) -> np.ndarray:
        """Find the clusters of new samples, without changing the fit.

        A new sample x gets the column z that it would add to the representation Z, with the fitted
        samples as they are; then it is placed in their spectral embedding::

            z = argmin_z  sum_k w_k |x_k - X_k z|^2 + g z^T (Z Z^T)^-1/2 z
            y = sum_i |z_i| / sqrt(d_i)  v_i / lambda

        X_k are the scaled views of the fitted samples (the sum is over the views that x has) and
        w_k the ``view_weights``, 1 without them. The second term is what z adds to the nuclear norm
        of Z, to first order: ``|[Z z]|_* = |Z|_* + z^T (Z Z^T)^-1/2 z / 2``; it keeps z within the
        subspaces that were found. Its weight g is a tenth of the mean squared length of the fitted
        samples. v_i is the row of sample i in the eigenvectors of the normalised affinity, lambda
        their eigenvalues, d_i the degree of i: a fitted sample with these affinities has the same
        y (Nystroem's extension). With ``affinity="sparse"`` only the ``n_kept`` largest ``|z_i|``
        count. The label is that of the nearest mean of the fitted clusters, y scaled to unit
        length.

        Parameters
        ----------
        X : list, tuple or dict of (m, d_k) arrays, or one (m, d) array
            The new samples, in the views and features of ``fit``; views in a dictionary are
            matched by name. They are scaled as the fitted ones were, and computed in NumPy.

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
        Xs = scale_views(views, self.scale, self.moments_)
        Z = new_representation(
            self.dictionary_, Xs, to_numpy(self.representation_), self._weights()
        )
        W = self.affinity_matrix_
        return extend_labels(
            W if sp.issparse(W) else to_numpy(W),
            self.labels_,
            self.n_clusters,
            Z,
            n_kept=self.n_kept if self.affinity == "sparse" else None,
        )

    def _scaled(self, views: Views, scale: str | None) -> list[Array]:
        """Scale the views and move them to ``device``, if there is one."""
        Xs = scale_views(views, scale)
        return Xs if self.device is None else move_arrays(Xs, self.device)

    def check(self, X: Any) -> Views:
        """Check parameters and views, as `fit` does first; nothing is computed."""
        return self._check(X)

    def _check(self, X: Any) -> Views:
        """Check parameters and views; all that can be known to fail fails here."""
        name = type(self).__name__
        check_params(name, self.get_params(deep=False), self._checks)
        views = check_views(X, self.views, self)
        n = views.n_samples
        if self._single_view and len(views.arrays) > 1:
            raise ValueError(
                f"{name} takes one view; got {len(views.arrays)}: wrap it in BestSingleView, or "
                "concatenate the views."
            )
        self._check_counts(n)
        free = available_memory() if self.device is None else check_device(name, self.device)
        need = self._n_square(views), free, self._n_linear(views)
        check_memory(name, n, views.itemsize, *need)
        self.view_names_ = views.names
        self.view_widths_ = [int(view.shape[1]) for view in views.arrays]
        return self._prepare(views)

    def _check_counts(self, n: int) -> None:
        """Refuse more clusters or neighbours than n samples allow."""
        name = type(self).__name__
        if self.n_clusters is not None and self.n_clusters > n:
            raise ValueError(
                f"{name}: n_clusters={self.n_clusters} is more than n_samples={n}: "
                "ask for fewer clusters."
            )
        neighbors = getattr(self, "n_neighbors", None)
        if neighbors is not None and neighbors >= n:
            raise ValueError(
                f"{name}: n_neighbors={neighbors} must be below n_samples={n}: a sample has only "
                f"{n - 1} others."
            )

    def _check_new(self, X: Any) -> Views:
        """Check new samples against the views of the fit."""
        name = type(self).__name__
        views = check_views(X, self.views, self, new=True)
        names, arrays = views.names, views.arrays
        if len(arrays) != len(self.view_names_):
            raise ValueError(
                f"{name}.predict: got {len(arrays)} views, but the model was fitted on "
                f"{len(self.view_names_)}: give the same views as to fit."
            )
        if names != self.view_names_ and isinstance(X, Mapping) and self._named():
            if set(names) != set(self.view_names_):
                raise ValueError(
                    f"{name}.predict got the views {', '.join(names)}, but the model was fitted on "
                    f"{', '.join(self.view_names_)}: give views of the same names."
                )
            arrays = [arrays[names.index(known)] for known in self.view_names_]
        for view, known, d in zip(arrays, self.view_names_, self.view_widths_, strict=True):
            if view.shape[1] != d:
                raise ValueError(
                    f"{name}.predict: view {known} has {view.shape[1]} features, but the model was "
                    f"fitted on {d}: give the same features as to fit."
                )
        arrays = [view if sp.issparse(view) else to_numpy(view) for view in arrays]
        return self._prepare_new(Views(arrays, self.view_names_))

    def _named(self) -> bool:
        """Whether the fitted views came in a dictionary."""
        return self.view_names_ != [str(k) for k in range(len(self.view_names_))]

    def _prepare(self, views: Views) -> Views:
        """What a method does to checked views before they are scaled."""
        return views

    def _prepare_new(self, views: Views) -> Views:
        """The same for new samples."""
        return views

    def _weights(self) -> list[float] | None:
        """Weights of the prepared views, None for equal ones."""
        return None

    def _n_square(self, views: Views) -> float:
        """Peak memory in units of n x n matrices."""
        n = views.n_samples
        return 10 + 5 * sum(min(view.shape[1], n) for view in views.arrays) / n

    def _n_linear(self, views: Views) -> float:
        """Peak memory of a method without n x n matrices, in numbers per sample."""
        return 0.0

    def _solve(self, views: Views, Xs: list[Array]) -> Array:
        raise NotImplementedError

    def _run(self) -> Run:
        """Start the loop and keep its record: ``history_`` fills while it runs."""
        run = Run(type(self).__name__, self.max_iter, self.tol, self.verbose)
        self.history_ = run.history
        return run

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _remembered(X: Array) -> Array:
    """Copy a view to NumPy, with zeros for samples that lack it: there they describe nobody."""
    X = X.copy() if sp.issparse(X) else np.array(to_numpy(X))
    gone = missing_rows(X)
    if gone is not None:
        X[gone] = 0.0
    return X
