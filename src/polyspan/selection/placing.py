"""New samples for a fitted consensus: their clusters, how certain these are, and how like the fit.

A new sample x is compared with the fitted samples in every view that it has, in the scalings that
voted in the fit, with the means and spreads of the fitted columns. Its k nearest fitted samples
vote for their clusters, each with the weight of self-tuning spectral clustering, where s is the
distance to the 7th neighbor::

    votes_v(c) = sum_{j near x in view v, label c} exp(-d_xj^2 / (s_x s_j)),  scaled to sum 1
    votes(c)   = sum_v q_v votes_v(c) / sum_v q_v

votes_v is the mean over the scalings of the view, and q_v what the view says of the consensus: its
modularity there (``modularity_``), at least 0. The sums are over the views that x has.

Whether x is like any of them: m_v is the mean distance to the k nearest in view v, less the mean of
m_v over the fitted samples and divided by its standard deviation. The mean of m_v over the views,
weighted by q_v, is compared with that of the fitted samples in the same views; likeness is the
share of those that are at least as far from their neighbors.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from polyspan.base import MultiViewClusterer
from polyspan.graphs.knn import SEVENTH, Near, nearest_neighbors
from polyspan.inputs.params import check_params, fitted, real
from polyspan.inputs.rows import missing_rows
from polyspan.inputs.scaling import Scaling, feature_moments, numpy_views, scale_views
from polyspan.inputs.views import Views, check_views
from polyspan.io.containers import annotated_kind
from polyspan.io.samples import KnownView
from polyspan.runtime.arrays import Array, to_numpy
from polyspan.runtime.messages import plural, view_names
from polyspan.selection.evidence import NEIGHBORS


class Placed(NamedTuple):
    """What is known of new samples."""

    labels: np.ndarray  # (m,): the cluster with most votes
    certainty: np.ndarray  # (m,): share of the votes less that of the second cluster
    likeness: np.ndarray  # (m,): share of the fitted samples at least as far from their neighbors
    votes: np.ndarray  # (m, n_clusters): share of the votes of every cluster


class Fitted(NamedTuple):
    """What `place` needs to know of one view of the fitted samples."""

    X: Array  # as it was given, NumPy or sparse
    name: str
    scales: Sequence[Scaling]
    near: Sequence[tuple[np.ndarray, np.ndarray]]  # for every scaling, widths and mean distances
    weight: float  # q_v


def kept_for_placing(
    views: Views, scalings: Sequence[Sequence[Scaling]], near: Sequence[Sequence[Near]]
) -> dict[str, Any]:
    """What a fit keeps for `Placing.place`, by the names of the attributes; views are copied."""
    pairs = zip(zip(*scalings, strict=True), near, strict=True)
    by_scaling = [dict(zip(scales, of_view, strict=True)) for scales, of_view in pairs]
    return {
        "_dictionary": [X.copy() if sp.issparse(X) else to_numpy(X) + 0 for X in views.arrays],
        "_view_scales": [list(of_view) for of_view in by_scaling],
        "_near": [
            [(found.widths, found.mean_distances) for found in of_view.values()]
            for of_view in by_scaling
        ],
    }


def place(
    known: Sequence[Fitted], new: Sequence[Any], labels: np.ndarray, n_clusters: int | None = None
) -> Placed:
    """Place new samples among the fitted ones.

    Parameters
    ----------
    known : list of Fitted
        The fitted samples in every view.
    new : list of (m, d_k) arrays or None
        The new samples in the same views, each in one at least; a row of NaN, or None for the whole
        view, where they lack it.
    labels : (n,) array
        Clusters of the fitted samples, 0, 1, ...
    n_clusters : int, default=None
        How many clusters there are, if the last of them may not be among the labels.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> near = nearest_neighbors(X, 5)
    >>> known = Fitted(X, "0", [None], [(near.widths, near.mean_distances)], 1.0)
    >>> found = place([known], [np.array([[1.5], [40.0]])], np.array([0, 0, 0, 1, 1, 1]))
    >>> found.labels, found.likeness
    (array([0, 1]), array([1., 0.]))
    """
    m, c = next(x.shape[0] for x in new if x is not None), n_clusters or int(labels.max()) + 1
    there = np.array([_has_view(x, m) for x in new])
    q = np.array([max(view.weight, 0.0) for view in known])
    weights = _weights(q, there)
    votes, far = np.zeros((m, c)), np.zeros(there.shape)
    for v, (view, x) in enumerate(zip(known, new, strict=True)):
        if (rows := np.flatnonzero(there[v])).size:
            in_view, far[v, rows] = _place_in_view(view, x[rows], labels, c)
            votes[rows] += weights[v, rows, None] * in_view
    last = np.sort(votes, axis=1)[:, ::-1]
    certainty = last[:, 0] - (last[:, 1] if c > 1 else 0.0)
    return Placed(np.argmax(votes, axis=1), certainty, _likeness(known, q, there, far), votes)


def _has_view(x: Any, m: int) -> np.ndarray:
    """Which of m new samples have a view."""
    gone = None if x is None else missing_rows(x)
    return np.full(m, x is not None) if gone is None else ~gone


def _weights(q: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Weights of the views for every sample, which sum to 1; equal where all its views have 0."""
    weights = np.where(there, q[:, None], 0.0)
    weights = np.where(weights.sum(axis=0) > 0, weights, there)
    return weights / np.maximum(weights.sum(axis=0), np.finfo(float).tiny)


def _place_in_view(
    view: Fitted, x: Any, labels: np.ndarray, c: int
) -> tuple[np.ndarray, np.ndarray]:
    """Votes in one view, and how far its samples are from their neighbors: means over scalings."""
    if sp.issparse(view.X):
        x = sp.csr_array(x)
    elif sp.issparse(x):
        x = x.toarray()
    old, members = Views([view.X], [view.name]), sp.csr_array(np.eye(c)[labels])
    votes, far = np.zeros((x.shape[0], c)), np.zeros(x.shape[0])
    for scale, (widths, means) in zip(view.scales, view.near, strict=True):
        X = numpy_views(old, scale)[0]
        Q = scale_views(Views([x], [view.name]), scale, feature_moments(old, scale))[0]
        k = min(NEIGHBORS, int(np.isfinite(means).sum()) - 1)  # as in the fit
        near = nearest_neighbors(X, k, Q)
        s = np.sqrt(near.nearest[:, :SEVENTH][:, -1])
        s = np.where(s > 0, s, np.mean(widths[np.isfinite(widths)]))
        power = near.squares / (s[near.rows] * widths[near.shares.indices])
        least = np.minimum.reduceat(power, near.shares.indptr[:-1])
        W = near.graph(np.exp(least[near.rows] - power))  # the nearest of a far sample keep a vote
        sums = (W @ members).toarray()
        votes += sums / sums.sum(axis=1, keepdims=True)
        far += _standing(near.mean_distances, means)
    return votes / len(view.scales), far / len(view.scales)


def _standing(distances: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Distances, less the mean of the fitted samples' and divided by their spread."""
    means = means[np.isfinite(means)]
    return (distances - means.mean()) / (means.std() or means.mean() or 1.0)


def _likeness(
    known: Sequence[Fitted], q: np.ndarray, there: np.ndarray, far: np.ndarray
) -> np.ndarray:
    """Share of the fitted samples that are at least as far, in the views that a new one has."""
    seen = np.array([np.isfinite(view.near[0][1]) for view in known])
    standing = [[_standing(means, means) for _, means in view.near] for view in known]
    fitted_far = np.where(seen, [np.mean(of_view, axis=0) for of_view in standing], 0.0)
    likeness = np.zeros(far.shape[1])
    for pattern in np.unique(there, axis=1).T:
        rows = (there == pattern[:, None]).all(axis=0)
        both = seen & pattern[:, None]
        mean = np.sort(np.sum(_weights(q, both) * fitted_far, axis=0)[both.any(axis=0)])
        D = np.sum(_weights(q, there[:, rows]) * far[:, rows], axis=0)
        likeness[rows] = 1 - np.searchsorted(mean, D) / len(mean)
    return likeness


class Placing(MultiViewClusterer):
    """What a consensus says of samples that it was not fitted on."""

    modularity_: list[float] = fitted()
    _dictionary: list[Array] = fitted()
    _drawn: Any = fitted()
    _near: list[list[tuple[np.ndarray, np.ndarray]]] = fitted()
    _view_scales: list[list[Scaling]] = fitted()

    def predict(self, X: Any, *, abstain: float = 0.01, return_certainty: bool = False) -> Any:
        """Find the clusters of new samples, without changing the fit.

        The nearest fitted samples in every view vote for their clusters; see `place`.

        Parameters
        ----------
        X : list, tuple or dict of (m, d_k) arrays or None, or one (m, d) array
            The new samples, with the same views and features as in ``fit``; views in a dictionary,
            an AnnData, a MuData and the like are matched by name, and the columns of tables, too.
            They are scaled by the means and spreads of the fitted samples. A sample may lack views:
            give its row there as NaN throughout. If all of them lack a view, give None instead of
            it, or leave its name out.
        abstain : float, default=0.01
            Samples get -1 where less than this share of the fitted samples are as far from their
            neighbors: they are unlike all that were fitted. 0.01 is for samples farther than 99% of
            the fitted ones; 0 never abstains.
        return_certainty : bool, default=False
            Also return how certain each label is.

        Returns
        -------
        labels : (m,) array
            Cluster of every new sample, numbered as in ``labels_``, or -1.
        certainty : (m,) array
            From 0 to 1, only with ``return_certainty``: the share of the votes for this cluster,
            less that of the second. It says which of the clusters, not whether any.

        Examples
        --------
        >>> from polyspan import ConsensusClusterer, MeanGraph, NEMO
        >>> from polyspan.datasets import make_subspaces
        >>> data = make_subspaces(n_samples=90, n_clusters=3, noise=0.1, random_state=0)
        >>> model = ConsensusClusterer(3, members=[MeanGraph(), NEMO()], random_state=0)
        >>> a, b = data.views
        >>> _ = model.fit([a[:60], b[:60]])
        >>> labels, certainty = model.predict([a[60:], b[60:]], return_certainty=True)
        >>> labels.shape, certainty.shape
        ((30,), (30,))
        >>> model.predict([a[60:], None]).shape  # samples without the second view
        (30,)
        >>> model.predict([100 + a[60:62], b[60:62]])  # unlike all
        array([-1, -1])
        """
        check_params(type(self).__name__, {"abstain": abstain}, {"abstain": real(0, 1)})
        placed = self.place(X)
        labels = np.where(placed.likeness < abstain, -1, placed.labels)
        return (labels, placed.certainty) if return_certainty else labels

    def place(self, X: Any) -> Placed:
        """Say all that is known of new samples: cluster, certainty, likeness and votes.

        In every view that a sample has, its ten nearest fitted samples vote for their clusters,
        near ones with more weight; the views are weighted by ``modularity_``, what they say of the
        clusters. ``polyspan.selection.placing`` has the formulas.

        Parameters
        ----------
        X : as in `predict`

        Returns
        -------
        Placed
            ``labels`` without any abstention; ``certainty``; ``likeness``, the share of the fitted
            samples that are at least as far from their neighbors (0: farther than all of them);
            and ``votes``, (m, n_clusters), the share of the votes of every cluster.

        Examples
        --------
        >>> from polyspan import ConsensusClusterer, MeanGraph, NEMO
        >>> from polyspan.datasets import make_subspaces
        >>> data = make_subspaces(n_samples=60, n_clusters=3, noise=0.1, random_state=0)
        >>> model = ConsensusClusterer(3, members=[MeanGraph(), NEMO()], random_state=0)
        >>> found = model.fit(data.views).place(data.views)
        >>> found.votes.shape, bool(np.allclose(found.votes.sum(axis=1), 1))
        ((60, 3), True)
        """
        check_is_fitted(self, "labels_")
        if not hasattr(self, "_near"):
            raise ValueError(
                f"This {type(self).__name__} was saved by a version of polyspan that could not "
                "predict after a consensus: fit it again."
            )
        new = self._new_views(X)
        known = zip(
            self._dictionary,
            self.view_names_,
            self._view_scales,
            self._near,
            self.modularity_,
            strict=True,
        )
        kept = self.labels_[getattr(self, "_drawn", slice(None))]
        return place([Fitted(*view) for view in known], new, kept, int(self.labels_.max()) + 1)

    def known_views(self) -> list[KnownView]:
        """What new samples must have: the views and features of the fit; see `GRMSC`.

        ``medians`` are those of the fitted samples that have the view, None for a sparse view.
        """
        medians = [
            None if sp.issparse(X) else np.nanmedian(X, axis=0)
            for X in getattr(self, "_dictionary", [])
        ]
        views = super().known_views()
        pairs = zip(views, medians or [None] * len(views), strict=True)
        return [view._replace(medians=values) for view, values in pairs]

    def _new_views(self, X: Any) -> list[Any]:
        """New samples in the order of the fitted views, None for those that they all lack."""
        names, where = self.view_names_, None
        given: dict[Any, Any] | None = None  # those that are given, where they have names
        if isinstance(X, list | tuple) and any(view is None for view in X):
            self._check_number(len(X))
            given = {k: view for k, view in enumerate(X) if view is not None}
            where = [names[k] for k in given]
        elif isinstance(X, Mapping) and not sp.issparse(X):  # dok_array is a dict
            given = {name: view for name, view in X.items() if view is not None}
        if given is not None and not given:
            raise ValueError(
                f"{type(self).__name__}.predict: every view is None: give at least one."
            )
        views = check_views(X if given is None else given, self.views, self, missing=True, new=True)
        named = given is not None or annotated_kind(X) or hasattr(X, "view_names")
        if where is None and named and set(views.names) < set(names):
            where = views.names
        if where is None:
            self._check_number(len(views.arrays))
            arrays = self._in_order(views.arrays, views.names)
        else:
            there = dict(zip(where, views.arrays, strict=True))
            widths = zip(names, self._view_widths, strict=True)
            none = {name: np.empty((0, d)) for name, d in widths}
            arrays = self._in_order([(none | there)[name] for name in names], names)
        arrays = [X if sp.issparse(X) else to_numpy(X) for X in arrays]
        return [X if X.shape[0] else None for X in arrays]

    def _check_number(self, n: int) -> None:
        """Refuse another number of views than in the fit."""
        if n != len(self.view_names_):
            raise ValueError(
                f"{type(self).__name__}.predict: got {plural(n, 'view')}, but the model was "
                f"fitted on {len(self.view_names_)} ({view_names(self.view_names_)}): give None "
                "for a view that the samples lack, or pass a dictionary without it."
            )
