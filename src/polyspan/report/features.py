"""The section on features: what tells every cluster from the rest, and how far to trust it."""

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.explain.given import Given
from polyspan.explain.markers import Markers, markers_of, of_codes
from polyspan.inputs.views import Views
from polyspan.methods.meangraph import MeanGraph
from polyspan.report.content import Content
from polyspan.report.drawings import heatmap
from polyspan.report.markup import cell, figure, long_table, table, user

MOST_ROWS = 3000  # in the table of features
MOST_DRAWN = 36  # features in the heatmap
MOST_COLUMNS = 720  # of the heatmap; with more samples, neighbors are averaged
MOST_REFITTED = 5000  # samples for which the clusters are found once more without each view
MOST_CLUSTERS = 60  # with more, features are not compared


class Features(NamedTuple):
    """Markers of the clusters, and those of the clusters that the other views alone have."""

    all: Markers
    honest: Markers | None


def given(c: Content) -> Given:
    """The views of a report as `polyspan.explain` has them."""
    arrays = [
        sp.csr_array(X, dtype=float) if sp.issparse(X) else np.asarray(X, dtype=float)
        for X in c.views
    ]
    return Given(Views(arrays, c.view_names), c.view_names, c.feature_names, c.ids)


def measure_features(c: Content) -> Features | None:
    """Compare all features; with two views, also honestly."""
    if not 2 <= len(c.clusters) <= MOST_CLUSTERS:
        return None
    here, clusters = given(c), np.array(c.clusters, dtype=object)
    found = of_codes(here, clusters, [c.codes] * len(c.views))
    honest = None
    if len(c.views) > 1 and len(c.ids) <= MOST_REFITTED and not any(map(_has_gaps, c.views)):
        scale: Any = c.scales[0] if len(set(c.scales)) == 1 else "standard+unit"
        scale = scale if scale in ("unit", None) else "standard+unit"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the fit has already issued them
                model = MeanGraph(scale=scale, random_state=0)
                honest = markers_of(here, clusters, c.codes, model)
        except ValueError:  # too few samples, or a view that is empty for too many
            honest = None
    return Features(found, honest)


def _has_gaps(X: Any) -> bool:
    """Whether a view lacks single values, not only whole samples."""
    if sp.issparse(X):
        return False
    gone = np.isnan(np.asarray(X, dtype=float))
    return bool(np.any(gone.any(axis=1) & ~gone.all(axis=1)))


def show_features(c: Content, colors: list[str], certainty: np.ndarray, f: Features) -> str:
    """The heatmap of the best features, the table of many, and which view carries a cluster."""
    c.tables["markers"] = partial(_rows, f.all)
    honest = ""
    if f.honest is not None:
        c.tables["markers-held-out"] = partial(_rows, f.honest)
        honest = (
            " The column \u201cheld out\u201d has the honest version: clusters are found from the "
            "other views alone (mean of their neighbor graphs), so that this feature has no part "
            "in them, and the corrected p-value of the matching cluster is given."
        )
    return (
        "<p>Every feature is compared between a cluster and all other samples: difference of the "
        "means in standard deviations, AUC (chance that a sample of the cluster has the larger "
        "value), Mann-Whitney test, corrected over all features, clusters and views (Benjamini and "
        "Hochberg). <strong>The clusters were made from these features, so these p-values are "
        f"optimistic:</strong> even noise, cut into clusters, differs between them.{honest}</p>"
        + figure(c.figures, "features", _heatmap(c, colors, certainty, f))
        + "<h3>Features of the clusters</h3>"
        + f"<p>{_told(c, f)}</p>"
        + long_table("markers", "feature, view or cluster")
        + _carriers(c, f)
    )


def _rows(found: Markers) -> list[list[Any]]:
    columns = found.columns()
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def _told(c: Content, f: Features) -> str:
    shown = len(best_rows(c, f))
    whole = len(f.all.view)
    if shown == whole:
        return f"All {whole:,} comparisons."
    return (
        f"The first {shown:,} of {whole:,} comparisons: the best of every cluster in every view. "
        "The option --figures writes all of them."
    )


def best_rows(c: Content, f: Features) -> np.ndarray:
    """Which markers the table shows: the same number for every cluster and view."""
    each = max(3, MOST_ROWS // (len(c.clusters) * len(c.views)))
    taken: dict[tuple[str, str], int] = {}
    rows = []
    for i, key in enumerate(zip(f.all.view, f.all.cluster, strict=True)):
        taken[key] = taken.get(key, 0) + 1
        if taken[key] <= each:
            rows.append(i)
    return np.array(rows, dtype=int)


def feature_data(c: Content, f: Features) -> dict[str, Any]:
    """The table of features for the script."""
    rows = best_rows(c, f)
    heads = ["View", "Feature", "Cluster", "Effect", "AUC", "p", "p corrected"]
    m = f.all
    lists: list[list[Any]] = [
        [m.view[i] for i in rows], [m.feature[i] for i in rows], [m.cluster[i] for i in rows],
        *([_plain(one[i]) for i in rows] for one in (m.effect, m.auc, m.p, m.p_adjusted)),
    ]  # fmt: skip
    if f.honest is not None:
        h = f.honest
        keys = zip(h.view, h.feature, h.cluster, strict=True)
        known = dict(zip(keys, h.p_adjusted, strict=True))
        heads.append("held out")
        own = zip(m.view[rows], m.feature[rows], m.cluster[rows], strict=True)
        lists.append([_plain(known[key]) for key in own])
    return {"heads": heads, "columns": lists}


def _plain(value: float) -> float | None:
    return float(f"{value:.3g}") if np.isfinite(value) else None


def chosen_features(c: Content, f: Features) -> list[tuple[int, int]]:
    """(view, feature) of the best few of every cluster, in the order of the clusters."""
    each = max(1, min(12, MOST_DRAWN // len(c.clusters)))
    places = [{name: j for j, name in enumerate(own)} for own in c.feature_names]
    found: dict[tuple[int, int], None] = {}
    for name in c.clusters:
        for row in f.all.top(each, cluster=name):
            k = c.view_names.index(row["view"])
            found[k, places[k][row["feature"]]] = None
    return list(found)


def _heatmap(c: Content, colors: list[str], certainty: np.ndarray, f: Features) -> str:
    order = np.lexsort((-certainty, c.codes))
    block = -(-len(order) // MOST_COLUMNS)
    lines, names = [], []
    for k, j in chosen_features(c, f):
        X = c.views[k]
        x = X[:, [j]].toarray().ravel() if sp.issparse(X) else np.asarray(X[:, j], dtype=float)
        spread = np.nanstd(x) or 1.0
        z = np.nan_to_num((x - np.nanmean(x)) / spread)[order]
        sums = np.add.reduceat(z, np.arange(0, len(z), block))
        counts = np.add.reduceat(np.ones(len(z)), np.arange(0, len(z), block))
        lines.append(sums / counts)
        names.append(f"{c.feature_names[k][j]} ({c.view_names[k]})")
    return heatmap(np.array(lines), names, np.bincount(c.codes), colors, c.clusters)


def _carriers(c: Content, f: Features) -> str:
    """How much of every cluster is found without each view."""
    if f.honest is None:
        return ""
    heads = ["Cluster", *(f'<span class="in">without</span> {user(v)}' for v in c.view_names)]
    without = f.honest.found_without
    rows = [[cell(k), *(cell(without[v][k]) for v in c.view_names)] for k in c.clusters]
    return (
        "<h3>Which view carries a cluster</h3><p>How much of a cluster is found again without a "
        "view (Jaccard index: 1 is all of it). A cluster that is lost without one view is carried "
        "by it.</p>" + table(heads, rows, name="Which view carries a cluster")
    )
