"""Run a single-view method on every view and choose one view."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from sklearn.base import clone
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils import get_tags

from polyspan.base import About, Labels, MultiViewClusterer, ViewTags
from polyspan.clustering.spectral import spectral_clustering
from polyspan.inputs.params import clusterer, fitted, flag, integer, param
from polyspan.inputs.scaling import scaling_per_view
from polyspan.inputs.views import Views
from polyspan.methods.lrr import LRR
from polyspan.runtime.arrays import Array


class BestSingleView(MultiViewClusterer):
    """Fit a single-view method on each view and keep the best view's clustering.

    Without labels, the best view is the one whose clustering agrees most (mean normalized mutual
    information) with those of the other views and with the clustering of the mean affinity of
    all views; with two views, only the latter makes a difference.

    Parameters
    ----------
    estimator : clusterer, default=None
        The method; None is ``LRR()``. It must set ``labels_``, and
        ``affinity_matrix_`` if there are exactly two views.
    n_clusters : int or None, default=None
        Number of clusters; None is that of ``estimator``.
    oracle : bool, default=False
        Choose the view by the true labels, passed to ``fit`` as ``y``. This is how papers report
        a "best single view" (LRR_BSV); it is not possible without labels, and ``chosen_by_``
        records it.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views.
    random_state : int, RandomState or None, default=None
        Seed for every view; None is that of ``estimator``.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample, from the chosen view.
    best_view_ : int
        Index of the chosen view.
    chosen_by_ : {"agreement", "labels"}
        How the view was chosen.
    scores_ : list of float
        Score of every view: agreement, or normalized mutual information with the labels.
    estimators_ : list
        The fitted method of every view; ``best_estimator_`` is the chosen one.
    n_iter_ : int
        Number of iterations for the chosen view.

    Examples
    --------
    >>> from polyspan import LRR, BestSingleView
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> model = BestSingleView(LRR(n_clusters=3, random_state=0)).fit(data.views)
    >>> len(model.scores_) == len(data.views), model.chosen_by_
    (True, 'agreement')
    """

    about = About(
        paper="LRR_BSV of many papers",
        objective="that of its estimator, view by view",
        needs="a single-view estimator; oracle=True needs the labels",
        cost="its estimator's, m times",
    )

    estimator: Any = param(clusterer, default=None, kw_only=False)
    n_clusters: int | None = param(  # type: ignore[assignment]
        integer(1, none="that of the estimator"), default=None
    )
    oracle: bool = param(flag, default=False)

    best_view_: int = fitted()
    chosen_by_: str = fitted()
    scores_: list[float] = fitted()
    estimators_: list[Any] = fitted()
    best_estimator_: Any = fitted()
    n_iter_: int = fitted()

    def _inner(self, view: int = 0) -> Any:
        """A fresh copy of the method for one view, with what was asked for here."""
        inner: Any = LRR() if self.estimator is None else clone(self.estimator)
        if self._ours() and isinstance(getattr(inner, "scale", None), list | tuple):
            inner.scale = inner.scale[view]
        asked = self._given("n_clusters", "random_state")
        return inner.set_params(**{name: x for name, x in asked.items() if x is not None})

    def _ours(self) -> bool:
        """Whether the method is one of polyspan's, which take checked views with names."""
        return self.estimator is None or isinstance(self.estimator, MultiViewClusterer)

    def solve(self, views: Views, Xs: list[Array]) -> Labels:
        """Fit every view; the true labels are used only when ``oracle=True``."""
        y = views.y
        if self.oracle and y is None:
            raise ValueError(
                "BestSingleView: oracle=True chooses the view by the true labels: pass them as y, "
                "or set oracle=False."
            )
        if self.oracle and len(y) != views.n_samples:
            raise ValueError(f"y has {len(y)} labels for {views.n_samples} samples.")
        models = [
            self._inner(k).fit(view if self._ours() else view.arrays[0])
            for k, view in enumerate(views.singly)
        ]
        if self.oracle:
            scores = [float(normalized_mutual_info_score(y, model.labels_)) for model in models]
        else:
            scores = self._agreement(models)
        best = int(np.argmax(scores))
        learned = {
            "estimators_": models,
            "best_estimator_": models[best],
            "best_view_": best,
            "chosen_by_": "labels" if self.oracle else "agreement",
            "scores_": scores,
        }
        n_iter = getattr(models[best], "n_iter_", 1)
        return Labels(models[best].labels_, n_iter=n_iter, extras=learned)

    def _agreement(self, models: list[Any]) -> list[float]:
        """Mean agreement of every view with the other views and with all views together."""
        labels = [model.labels_ for model in models]
        if len(labels) == 1:
            return [1.0]
        others = list(labels)
        if all(hasattr(model, "affinity_matrix_") for model in models):
            mean = mean_affinity([model.affinity_matrix_ for model in models])
            inner = self._inner()
            state = getattr(inner, "random_state", None)
            others.append(spectral_clustering(mean, inner.n_clusters, random_state=state))
        return [
            float(np.mean([normalized_mutual_info_score(a, b) for b in others if b is not a]))
            for a in labels
        ]

    def _shareable(self) -> bool:
        return False  # its estimators share their solutions, and an oracle looks at labels

    def __sklearn_tags__(self) -> ViewTags:
        tags = super().__sklearn_tags__()
        tags.one_solution = self._ours() and bool(get_tags(self._inner()).one_solution)
        return tags

    def _check_scales(self, n_views: int) -> None:
        scale = getattr(self.estimator, "scale", None) if self._ours() else None
        scaling_per_view(scale, n_views, "BestSingleView")

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: those of one fit, plus Z and the affinity of the others."""
        if not self._ours():
            return 0.0, 0.0
        most = max(self._inner().footprint(view)[0] for view in views.singly)
        return most + 2.0 * (len(views.arrays) - 1) if most else 0.0, 0.0


def mean_affinity(affinities: Sequence[Array]) -> Array:
    """Sum of dense or sparse affinities, each divided by the sum of its entries."""
    return sum(A / (_total(A) or 1.0) for A in affinities)


def _total(A: Array) -> float:
    return float(A.sum() if sp.issparse(A) else array_namespace(A).sum(A))
