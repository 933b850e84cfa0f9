"""The common shape of all methods: views -> representation -> affinity -> labels."""

from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import Tags

from polyspan.affinity import affinity_matrix
from polyspan.devices import check_device, move_arrays
from polyspan.linalg import Array, to_numpy
from polyspan.params import Check, check_params, integer, one_of, real, seed
from polyspan.run import Run
from polyspan.spectral import spectral_clustering
from polyspan.views import (
    SCALES,
    Views,
    available_memory,
    check_memory,
    check_products,
    check_views,
    scale_views,
)

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


class About(NamedTuple):
    """What the table of methods says of a method; plain text, mathematics in ASCII."""

    paper: str  # short citation with the year; arXiv:... or doi:... at its end becomes a link
    objective: str
    needs: str  # parameters and preprocessing that a user must think about
    cost: str


class MultiViewClusterer(ClusterMixin, BaseEstimator):
    """Base of all methods; a subclass lists its parameters and says how it finds Z.

    A subclass has ``_about``, its row in the table of methods, ``_checks``, a dictionary from
    parameter to check (see `polyspan.params`), and ``_solve(views, Xs)``, which gets the checked
    and the scaled views and returns the representation Z. Its constructor only stores.
    """

    _about: ClassVar[About]
    _checks: ClassVar[dict[str, Check]] = {}
    _single_view: ClassVar[bool] = False
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
        Z = self._solve(views, self._scaled(views, self.scale))
        W = affinity_matrix(Z, self.affinity, self.n_kept)
        self.labels_ = spectral_clustering(
            W, self.n_clusters, n_init=self.n_init, random_state=self.random_state
        )
        self.representation_, self.affinity_matrix_ = Z, W
        if self.device is not None:  # what was moved there is brought back
            self.representation_ = to_numpy(Z)
            self.affinity_matrix_ = W if sp.issparse(W) else to_numpy(W)
        return self

    def _scaled(self, views: Views, scale: str | None) -> list[Array]:
        """Scale the views and move them to ``device``, if there is one."""
        Xs = scale_views(views, scale)
        return Xs if self.device is None else move_arrays(Xs, self.device)

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
        check_memory(name, n, views.itemsize, self._n_square(views), free)
        return views

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

    def _n_square(self, views: Views) -> float:
        """Peak memory in units of n x n matrices."""
        n = views.n_samples
        return 10 + 5 * sum(min(view.shape[1], n) for view in views.arrays) / n

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
