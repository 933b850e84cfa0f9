"""The features that tell a cluster from the rest, in every view."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.stats import false_discovery_control
from sklearn.base import clone
from sklearn.metrics import confusion_matrix, jaccard_score

from polyspan.atomic import replacing
from polyspan.base import MultiViewClusterer
from polyspan.explain.given import label_codes, named_views
from polyspan.explain.statistics import compare_features
from polyspan.inputs.rows import look
from polyspan.inputs.views import Views
from polyspan.io.align import take
from polyspan.methods.meangraph import MeanGraph
from polyspan.runtime.messages import is_formula

OPTIMISTIC = (
    "The clusters were made from these features, so the p-values are optimistic: even noise, cut "
    "into clusters, differs between them. Those of held_out_view=True are honest."
)


class Markers(NamedTuple):
    """Features of clusters, the most telling first: columns of equal length.

    Attributes
    ----------
    view, feature, cluster : arrays
        What is compared: this feature in this cluster and in the rest.
    effect : array
        Difference of the means in units of the pooled standard deviation (Cohen's d); positive
        where the cluster has more.
    auc : array
        Chance that a sample of the cluster has a larger value than one of the rest.
    p, p_adjusted : arrays
        Two-sided Mann-Whitney test, and the same corrected over everything here (Benjamini and
        Hochberg).
    mean_in, mean_out : arrays
        Means in the cluster and in the rest.
    found_without : dict of str to dict
        With ``held_out_view``: for every view and cluster, how much of the cluster is found
        without the view (Jaccard index, 1 is all). A cluster that is lost without a view is
        carried by it.
    """

    view: np.ndarray
    feature: np.ndarray
    cluster: np.ndarray
    effect: np.ndarray
    auc: np.ndarray
    p: np.ndarray
    p_adjusted: np.ndarray
    mean_in: np.ndarray
    mean_out: np.ndarray
    found_without: dict[str, dict[Any, float]]

    def columns(self) -> dict[str, np.ndarray]:
        """The columns by name."""
        return {name: one for name, one in self._asdict().items() if name != "found_without"}

    def frame(self) -> Any:
        """The columns as a pandas.DataFrame."""
        return pd.DataFrame(self.columns())

    def top(self, n: int, cluster: Any = None, view: str | None = None) -> list[dict[str, Any]]:
        """The first n rows as dictionaries, perhaps of one cluster or one view."""
        kept = np.ones(len(self.view), dtype=bool)
        if cluster is not None:
            kept &= self.cluster == cluster
        if view is not None:
            kept &= self.view == view
        rows = np.flatnonzero(kept)[:n]
        return [{name: one[i] for name, one in self.columns().items()} for i in rows]


def markers(
    views: Any,
    labels: Any,
    *,
    held_out_view: bool = False,
    estimator: MultiViewClusterer | None = None,
) -> Markers:
    """Compare every feature of every view between each cluster and the rest.

    Parameters
    ----------
    views : as in ``fit``
        A list or dictionary of arrays and tables, an AnnData or a MuData, or what `load_views`
        and `load_dataset` return. Values are compared as they are, before any scaling.
    labels : (n,) array-like
        Cluster of every sample.
    held_out_view : bool, default=False
        Compare the features of each view between clusters that were found from the other views
        alone. Without it the p-values are optimistic, because the clusters were made from these
        very features; with it, independent noise gives no markers. Needs two views.
    estimator : estimator, optional
        What finds the clusters of the other views; a copy of it is fitted for every view, with as
        many clusters as the labels have. None is `MeanGraph`.

    Returns
    -------
    Markers
        Sorted by p-value, then by the size of the effect.

    Examples
    --------
    >>> import pandas as pd
    >>> from polyspan.explain import markers
    >>> look = pd.DataFrame({"legs": [2.0, 2, 4, 4], "size": [1.0, 30, 2, 25]})
    >>> found = markers({"look": look}, ["bird", "bird", "beast", "beast"])
    >>> found.feature[0], str(found.cluster[0]), float(found.auc[0])
    ('legs', 'beast', 1.0)
    """
    return markers_of(named_views(views), labels, held_out_view, estimator)


def markers_of(
    views: Views,
    labels: Any,
    held_out_view: bool = False,
    estimator: MultiViewClusterer | None = None,
) -> Markers:
    """Markers of checked views, as `markers` finds them."""
    clusters, codes = label_codes(labels, views.n_samples)
    if not held_out_view:
        return of_codes(views, clusters, [codes] * len(views.names))
    if len(views.names) < 2:
        raise ValueError("held_out_view=True needs two views: clusters come from the others.")
    estimator = MeanGraph(random_state=0) if estimator is None else estimator
    c = len(clusters)
    overlap = partial(jaccard_score, labels=range(c), average=None, zero_division=0)
    refitted = [_without(views, k, codes, c, estimator) for k in range(len(views.names))]
    without = {
        name: dict(zip(clusters.tolist(), overlap(codes, own).tolist(), strict=True))
        for name, own in zip(views.names, refitted, strict=True)
    }
    return of_codes(views, clusters, refitted)._replace(found_without=without)


def of_codes(views: Views, clusters: np.ndarray, codes: list[np.ndarray]) -> Markers:
    """Markers of views with names, with the clusters that each of them is compared in."""
    c = len(clusters)
    found = [compare_features(X, own, c) for X, own in zip(views.arrays, codes, strict=True)]
    named = list(views.columns.items())
    columns: dict[str, np.ndarray] = {
        "view": np.concatenate([np.full(c * len(one), name, object) for name, one in named]),
        "feature": np.concatenate([np.array(one * c, object) for _, one in named]),
        "cluster": np.concatenate([np.repeat(clusters, len(one)) for _, one in named]),
    }
    for name in ("effect", "auc", "p", "mean_in", "mean_out"):
        columns[name] = np.concatenate([getattr(one, name).ravel() for one in found])
    columns["p_adjusted"] = false_discovery_control(columns["p"])
    order = np.lexsort((-np.abs(columns["effect"]), columns["p"]))
    return Markers(**{name: one[order] for name, one in columns.items()}, found_without={})


def _without(
    views: Views, k: int, codes: np.ndarray, c: int, estimator: MultiViewClusterer
) -> np.ndarray:
    """Clusters of all views but one, numbered like those they overlap; -1 without the others."""
    others = [j for j in range(len(views.arrays)) if j != k]
    lacks = np.array([look(views.arrays[j]).gone for j in others])
    rows = np.flatnonzero(~lacks.all(axis=0))
    arrays = [views.arrays[j] for j in others]
    if len(rows) < views.n_samples:
        arrays = [take(one, rows) for one in arrays]
    model = clone(estimator).set_params(n_clusters=c)
    found = model.fit(Views(arrays, [views.names[j] for j in others])).labels_
    own = np.unique(found, return_inverse=True)[1]
    both = confusion_matrix(own, codes[rows], labels=range(c))
    place = linear_sum_assignment(both, maximize=True)[1]
    result = np.full(len(codes), -1)
    result[rows] = place[own]
    return result


def write_markers(found: Markers, path: str | Path) -> Path:
    """Write markers as a .csv file, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> X = np.array([[1.0], [2], [8], [9]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_markers(markers([X], [0, 0, 1, 1]), f"{folder}/markers.csv")
    ...     path.read_text().splitlines()[0]
    'view,feature,cluster,effect,auc,p,p_adjusted,mean_in,mean_out'
    """
    path = Path(path)
    with replacing(path) as part:
        part.write_text(csv_text(found.columns()), "utf-8", newline="")
    return path


def csv_text(columns: Mapping[str, Any], safe: bool = False) -> str:
    """Columns of equal length as a .csv file, numbers with six digits.

    With ``safe``, text that a spreadsheet would take for a formula gets a ' in front.

    Examples
    --------
    >>> csv_text({"a": ["1", None], "b": [1 / 3, 0.5]}).splitlines()
    ['a,b', '1,0.333333', ',0.5']
    """
    table = pd.DataFrame(columns)
    if safe:
        table = table.map(lambda one: f"'{one}" if is_formula(one) else one)
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
