"""What tells every cluster from the rest, and how far to trust it."""

import warnings
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.explain.given import Given
from polyspan.explain.markers import Markers, markers_of, of_codes
from polyspan.inputs.rows import look
from polyspan.inputs.views import Views
from polyspan.methods.meangraph import MeanGraph
from polyspan.report.content import Content

MOST_ROWS = 3000  # in the table of features
MOST_DRAWN = 36  # features in the heatmap
MOST_REFITTED = 5000  # samples for which the clusters are found once more without each view
MOST_CLUSTERS = 60  # with more, features are not compared


class Features(NamedTuple):
    """Markers of the clusters, and those of the clusters that the other views alone have."""

    all: Markers
    honest: Markers | None
    shown: np.ndarray  # the markers in the table: as many for every cluster and view


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
    whole = not any(map(_has_gaps, here.views.arrays))
    honest = None
    if len(c.views) > 1 and len(c.ids) <= MOST_REFITTED and whole:
        scale: Any = c.scales[0] if set(c.scales) in ({"unit"}, {None}) else "standard+unit"
        # Refused with too few samples, or where a view is empty for too many.
        with suppress(ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit has already issued them
            model = MeanGraph(scale=scale, random_state=0)
            honest = markers_of(here, np.array(c.clusters, object)[c.codes], True, model)
    c.tables["markers"] = found.columns()
    if honest is not None:
        c.tables["markers-held-out"] = honest.columns()
    each = max(3, MOST_ROWS // (len(clusters) * len(c.views)))
    seen: dict[tuple[str, str], int] = {}
    shown = []
    for i, key in enumerate(zip(found.view, found.cluster, strict=True)):
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= each:
            shown.append(i)
    return Features(found, honest, np.array(shown, dtype=int))


def _has_gaps(X: Any) -> bool:
    """Whether a view lacks single values, not only whole samples."""
    rows = look(X)
    return bool(np.any(rows.bad & ~rows.gone))


def feature_data(f: Features) -> dict[str, Any]:
    """The table of features for the script."""
    heads = ["View", "Feature", "Cluster", "Effect", "AUC", "p", "p corrected"]
    m, rows = f.all, f.shown
    lists = [one[rows].tolist() for one in (m.view, m.feature, m.cluster)]
    lists += [list(map(_plain, one[rows])) for one in (m.effect, m.auc, m.p, m.p_adjusted)]
    if f.honest is not None:
        h = f.honest
        keys = zip(h.view, h.feature, h.cluster, strict=True)
        held_out = dict(zip(keys, h.p_adjusted, strict=True))
        heads.append("held out")
        lists.append([_plain(held_out[key]) for key in zip(*lists[:3], strict=True)])
    return {"heads": heads, "columns": lists}


def _plain(value: float) -> float | None:
    return float(f"{value:.3g}") if np.isfinite(value) else None


def drawn_features(c: Content, f: Features) -> dict[str, np.ndarray]:
    """The best few features of every cluster, in the order of the clusters, by name and view."""
    each = max(1, min(12, MOST_DRAWN // len(c.clusters)))
    drawn = {}
    for cluster in c.clusters:
        for row in f.all.top(each, cluster=cluster):
            k = c.view_names.index(row["view"])
            x = c.views[k][:, [c.feature_names[k].index(row["feature"])]]
            x = x.toarray() if sp.issparse(x) else np.asarray(x, dtype=float)
            drawn[f"{row['feature']} ({row['view']})"] = x.ravel()
    return drawn
