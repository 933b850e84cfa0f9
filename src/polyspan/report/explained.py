"""What the clusters are: features that tell them apart, and what is known of the samples."""

import warnings
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.explain.associations import Association, as_class, associations
from polyspan.explain.given import is_unknown
from polyspan.explain.markers import Markers, markers_of, of_codes
from polyspan.explain.survival import Survival, survival
from polyspan.figures import cluster_colors
from polyspan.inputs.rows import look
from polyspan.inputs.views import Views
from polyspan.methods.meangraph import MeanGraph
from polyspan.report.content import Content

MOST_ROWS = 3000  # in the table of features
MOST_DRAWN = 36  # features in the heatmap
MOST_REFITTED = 5000  # samples for which the clusters are found once more without each view
MOST_CLUSTERS = 60  # with more, features are not compared
MOST_SEPARATED = 8  # known columns, and classes of each, whose features are compared
MOST_PAINTED = 40  # classes that the map can tell apart


class Features(NamedTuple):
    """Markers of the clusters, and those of the clusters that the other views alone have."""

    all: Markers
    honest: Markers | None
    shown: np.ndarray  # the markers in the table: as many for every cluster and view


def _views(c: Content) -> Views:
    """The views of a report as `polyspan.explain` has them."""
    arrays = [
        sp.csr_array(X, dtype=float) if sp.issparse(X) else np.asarray(X, dtype=float)
        for X in c.views
    ]
    columns = dict(zip(c.view_names, c.feature_names, strict=True))
    return Views(arrays, c.view_names, columns=columns)


def measure_features(c: Content) -> Features | None:
    """Compare all features; with two views, also honestly."""
    if not 2 <= len(c.clusters) <= MOST_CLUSTERS:
        return None
    here, clusters = _views(c), np.array(c.clusters, dtype=object)
    found = of_codes(here, clusters, [c.codes] * len(c.views))
    whole = not any(map(_has_gaps, here.arrays))
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
    rank = found.frame().groupby(["view", "cluster"], sort=False).cumcount()
    return Features(found, honest, np.flatnonzero(rank < each))


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


# ---- what is known of the samples ----------------------------------------------------------------


class KnownOf(NamedTuple):
    """What the section shows."""

    found: list[Association]
    separated: list[tuple[Association, Markers]]  # what tells the classes of a column apart
    survival: Survival | None


def measure_known(c: Content) -> KnownOf | None:
    """Test every column against the clusters, and name what separates its classes."""
    if not c.known or len(c.clusters) < 2:
        return None
    found = associations(c.codes, {k: v for k, v in c.known.items() if k not in (c.survival or ())})
    if found:
        rows = [one.row() for one in found]
        c.tables["known"] = {name: [row[name] for row in rows] for name in rows[0]}
    separated = []
    for one in found:
        if one.kind == "classes" and len(one.values) <= MOST_SEPARATED:
            codes = class_codes(c.known[one.column], one.values)
            clusters = np.array(one.values, dtype=object)
            separated.append((one, of_codes(_views(c), clusters, [codes] * len(c.views))))
    return KnownOf(found, separated[:MOST_SEPARATED], _survival(c))


def _survival(c: Content) -> Survival | None:
    """Survival of the clusters, by their names."""
    if c.survival is None:
        return None
    found = survival(c.codes, *(c.known[name] for name in c.survival))
    curves = [one._replace(cluster=c.clusters[one.cluster]) for one in found.curves]
    found = found._replace(curves=curves)
    c.tables["survival"] = found.columns()
    return found


def class_codes(values: np.ndarray, classes: list[str]) -> np.ndarray:
    """The place of every value among the classes; -1 where it is unknown.

    Examples
    --------
    >>> class_codes(np.array(["b", None, 2.0], dtype=object), ["2", "b"])
    array([ 1, -1,  0])
    """
    place = {name: k for k, name in enumerate(classes)}
    return np.array([-1 if is_unknown(x) else place[as_class(x)] for x in values])


def known_data(c: Content, known: KnownOf | None) -> list[dict[str, Any]]:
    """The columns by which the map can be colored, for the script."""
    painted: list[dict[str, Any]] = []
    for one in known.found if known else []:
        column = {"name": one.column}
        if one.kind == "classes" and len(one.values) <= MOST_PAINTED:
            codes = class_codes(c.known[one.column], one.values).tolist()
            colors = cluster_colors(len(one.values))
            painted.append(column | {"classes": one.values, "codes": codes, "colors": colors})
        elif one.kind == "numbers":
            values = [None if is_unknown(x) else float(x) for x in c.known[one.column]]
            low, high = (end(x for x in values if x is not None) for end in (min, max))
            shares = [None if x is None else round((x - low) / (high - low), 4) for x in values]
            painted.append(column | {"low": low, "high": high, "shares": shares})
    return painted
