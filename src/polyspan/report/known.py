"""The section on what is known of the samples: tests, contingency tables, survival."""

from typing import Any, NamedTuple

import numpy as np

from polyspan.explain.associations import Association, associations
from polyspan.explain.given import is_unknown
from polyspan.explain.markers import Markers, of_codes
from polyspan.explain.survival import Survival, survival
from polyspan.figures import cluster_colors
from polyspan.report.content import Content
from polyspan.report.drawings import steps
from polyspan.report.features import given
from polyspan.report.markup import cell, figure, number, p_value, table, user
from polyspan.runtime.messages import plural

MOST_TABLES = 8  # columns whose contingency tables are shown
MOST_CLASSES = 8  # of a column whose features are named
MOST_PAINTED = 40  # classes that the map can tell apart


class Separated(NamedTuple):
    """What tells the classes of a known column apart."""

    column: str
    classes: list[str]
    markers: Markers


class KnownOf(NamedTuple):
    """What the section shows."""

    found: list[Association]
    separated: list[Separated]
    survival: Survival | None


def measure_known(c: Content) -> KnownOf | None:
    """Test every column against the clusters, and name what separates its classes."""
    if not c.known or len(c.clusters) < 2:
        return None
    compared = {name: one for name, one in c.known.items() if name not in (c.survival or ())}
    found = associations(np.array(c.clusters, dtype=object)[c.codes], compared)
    lived = None
    if c.survival is not None:
        time, event = (c.known[name] for name in c.survival)
        lived = survival(np.array(c.clusters)[c.codes], time, event)
    named = [
        _separated(c, one)
        for one in found
        if one.kind == "classes" and len(one.values) <= MOST_CLASSES
    ]
    return KnownOf(found, named[:MOST_TABLES], lived)


def _separated(c: Content, one: Association) -> Separated:
    codes = class_codes(c.known[one.column], one.values)
    classes = np.array(one.values, dtype=object)
    return Separated(one.column, one.values, of_codes(given(c), classes, [codes] * len(c.views)))


def class_codes(values: np.ndarray, classes: list[str]) -> np.ndarray:
    """The place of every value among the classes; -1 where it is unknown.

    Examples
    --------
    >>> class_codes(np.array(["b", None, 2.0], dtype=object), ["2", "b"])
    array([ 1, -1,  0])
    """
    place = {name: k for k, name in enumerate(classes)}
    words = [
        str(int(x)) if isinstance(x, float) and x == x and x == int(x) else str(x) for x in values
    ]
    return np.array([-1 if is_unknown(x) else place[w] for x, w in zip(values, words, strict=True)])


def show_known(c: Content, colors: list[str], known: KnownOf) -> str:
    """The tests, the contingency tables and the survival of the clusters."""
    parts = [
        "<p><strong>What is known never reached the clustering:</strong> it is only compared with "
        "the clusters here.</p>"
    ]
    if known.found:
        parts.append(_tests(c, known.found))
    if known.survival is not None:
        parts.append(_survival(c, colors, known.survival))
    shown = [one for one in known.found if one.kind][:MOST_TABLES]
    inside = "".join(f"<div>{_contingency(c, one)}</div>" for one in shown)
    return "".join(parts) + f'<div class="two">{inside}</div>'


def _tests(c: Content, found: list[Association]) -> str:
    heads = ["Column", "Kind", "Known", "Test", "Statistic", "p", "p corrected", "ARI", "NMI"]
    rows = []
    for one in found:
        numbers = (one.statistic, one.p, one.p_adjusted, one.ari, one.nmi)
        rows.append([
            cell(one.column), cell(one.kind or None), cell(one.n_samples), cell(one.test),
            *(cell(_or_none(x)) for x in numbers),
        ])  # fmt: skip
    names = list(found[0].row())
    c.tables["known"] = lambda: [names, *(list(one.row().values()) for one in found)]
    return (
        "<p>Classes by the chi-squared test (Fisher\u2019s exact test or permutations where cells "
        "are small), numbers by the Kruskal-Wallis test, corrected over the columns. ARI and NMI "
        "say how much classes and clusters agree: 1 is the same; by chance ARI is 0, and NMI a "
        "little above.</p>" + table(heads, rows, name="Clusters against what is known")
    )


def _contingency(c: Content, one: Association) -> str:
    kept = range(len(one.values))[:12]
    heads = ["Cluster", *(user(one.values[j]) for j in kept)]
    rows: list[list[tuple[str, Any]]] = [
        [cell(name), *(cell(_or_none(one.table[k, j])) for j in kept)]
        for k, name in enumerate(c.clusters)
    ]
    more = "" if len(one.values) <= 12 else f" (12 of {len(one.values)} classes)"
    told = f"{one.test}, {p_value(one.p)}"
    return f"<h3>{user(one.column)}{more}</h3><p>{told}</p>" + table(
        heads, rows, name=f"Clusters and {one.column}"
    )


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _survival(c: Content, colors: list[str], found: Survival) -> str:
    assert c.survival is not None
    place = {name: k for k, name in enumerate(c.clusters)}
    at = [place[str(one.cluster)] for one in found.curves]
    svg = steps(
        [(one.times, one.alive) for one in found.curves],
        [colors[k] for k in at],
        [f"{c.clusters[k]}" for k in at],
        found.ticks,
        found.at_risk,
        c.survival[0],
    )
    heads = ["Cluster", "Samples", "Events", "Median"]
    rows = [
        [
            cell(str(one.cluster)),
            cell(one.n_samples),
            cell(one.events),
            (number(one.median), one.median),
        ]
        for one in found.curves
    ]
    c.tables["survival"] = lambda: (
        [["cluster", "time", "alive", "lower", "upper"]]
        + [
            [one.cluster, *row]
            for one in found.curves
            for row in zip(one.times, one.alive, one.lower, one.upper, strict=True)
        ]
    )
    return (
        f"<h3>Survival</h3><p>Kaplan-Meier curves of {plural(found.n_samples, 'sample')} with "
        f"numbers at risk; log-rank test of all clusters: {p_value(found.p)} (chi-squared "
        f"{number(found.statistic)}, {len(found.curves) - 1} degrees of freedom), by lifelines. An "
        "infinite median: more than half survive.</p>"
        + figure(c.figures, "survival", svg)
        + table(heads, rows, name="Survival of the clusters")
    )


def known_data(c: Content, known: KnownOf | None) -> list[dict[str, Any]]:
    """The columns by which the map can be colored, for the script."""
    found: list[dict[str, Any]] = []
    for one in known.found if known else []:
        if one.kind == "classes" and len(one.values) <= MOST_PAINTED:
            codes = class_codes(c.known[one.column], one.values).tolist()
            colors = cluster_colors(len(one.values))
            found.append(
                {"name": one.column, "classes": one.values, "codes": codes, "colors": colors}
            )
        elif one.kind == "numbers":
            values = [None if is_unknown(x) else float(x) for x in c.known[one.column]]
            known_values = [x for x in values if x is not None]
            low, high = min(known_values), max(known_values)
            shares = [None if x is None else round((x - low) / (high - low), 4) for x in values]
            found.append({"name": one.column, "low": low, "high": high, "shares": shares})
    return found
