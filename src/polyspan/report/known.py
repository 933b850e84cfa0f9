"""Annotations of the samples: compared with the clusters, and as colors of the map."""

from typing import Any, NamedTuple

import numpy as np

from polyspan.explain.associations import Association, as_class, associations
from polyspan.explain.given import is_unknown
from polyspan.explain.markers import Markers, of_codes
from polyspan.explain.survival import Survival, survival
from polyspan.figures import cluster_colors
from polyspan.report.content import Content
from polyspan.report.features import given

MOST_SEPARATED = 8  # columns, and classes of each, whose features are compared
MOST_PAINTED = 40  # classes that the map can tell apart


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
            separated.append((one, of_codes(given(c), clusters, [codes] * len(c.views))))
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
