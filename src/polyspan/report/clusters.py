"""The sections on clusters and samples: the map, sizes, certainty."""

from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from polyspan.report.charts import histogram
from polyspan.report.content import Content
from polyspan.report.markup import bar, escape, figure, number, percent, table, user
from polyspan.report.measure import Agreement, Map

MOST_DOUBTFUL = 30  # samples in the list of the least certain


def show_map(c: Content, plane: Map, painted_by: Sequence[str] = ()) -> str:
    """The map, with every sample as a point, and a small one of every view."""
    what = (
        "Every point is a sample, placed by the principal axes of the spectral embedding: "
        "the eigenvectors of the normalized affinity from which the clusters were computed."
        if plane.spectral
        else "Every point is a sample, placed by the principal axes of the scaled views side by "
        "side, because this method has no affinity."
    )
    options = [
        f'<option value="{k}"{" selected" * (k == chosen)}>axis {k + 1} ({percent(share)})</option>'
        for chosen in (0, 1)
        for k, share in enumerate(plane.shares)
    ]
    half = len(options) // 2
    text = (resources.files("polyspan.report") / "template" / "map.html").read_text("utf-8")
    painted = [
        f'<option value="{k}">by {escape(name)}</option>' for k, name in enumerate(painted_by)
    ]
    minis = (
        "<h3>Every view by itself</h3><p>The same samples on the principal axes of each view, in "
        "the same colors; a sample that is pointed at or selected is ringed in all maps.</p>"
        '<div class="minis" id="minis"></div>'
    )
    return Template(text).substitute(
        what=what, across="".join(options[:half]), up="".join(options[half:]),
        painted="".join(painted), minis=minis if len(c.views) > 1 else "",
    )  # fmt: skip


def show_clusters(
    c: Content, colors: list[str], certainty: np.ndarray, compared: list[Agreement]
) -> str:
    """Sizes of the clusters, their certainty, and the views that hold them together."""
    sizes = np.bincount(c.codes)
    shown = [j for j, one in enumerate(compared) if one.near is not None]
    heads = ["Cluster", "Samples", "Share", "Certainty"]
    heads += [f'<span class="in">known in</span> {user(c.view_names[j])}' for j in shown]
    means = np.bincount(c.codes, weights=certainty) / sizes
    rows = []
    for k, name in enumerate(c.clusters):
        swatch = f'<span class="swatch" style="background:{colors[k]}"></span>'
        row: list[tuple[str, Any]] = [
            (swatch + user(name), k),
            (bar(sizes[k] / sizes.max(), number(sizes[k]), colors[k]), int(sizes[k])),
            (percent(sizes[k] / sizes.sum()), float(sizes[k] / sizes.sum())),
            (f"{means[k]:.2f}", float(means[k])),
        ]
        for j in shown:
            near = compared[j].near
            assert near is not None
            row.append((_heat(float(near[k])), float(near[k])))
        rows.append(row)
    text = "<p>Sizes of the clusters and the mean certainty of their samples."
    if shown:
        text += (
            " The last columns show which views know a cluster: the chance that one of its samples "
            "has more of its nearest neighbors in the cluster, in that view alone, than a sample "
            "of another cluster has. 1 is always and 0.5 is by chance, whatever the cluster\u2019s "
            "size."
        )
    return text + "</p>" + table(heads, rows, name="Sizes of the clusters")


def _heat(share: float) -> str:
    if not np.isfinite(share):
        return "\u2013"
    shade = 200 * max(share - 0.5, 0)
    return f'<span class="heat" style="--p:{shade:.0f}%">{share:.2f}</span>'


def show_certainty(
    c: Content, certainty: np.ndarray, meaning: str, second: np.ndarray | None
) -> str:
    """How certain the samples are, and the least certain ones."""
    order = np.argsort(certainty, kind="stable")[:MOST_DOUBTFUL]
    heads = ["Sample", "Cluster", "Certainty"] + ["Next cluster"] * (second is not None)
    rows = []
    for i in order.tolist():
        row: list[tuple[str, Any]] = [
            (
                f'<button type="button" class="sample" data-sample="{i}">{user(c.ids[i])}</button>',
                c.ids[i],
            ),
            (user(c.clusters[c.codes[i]]), int(c.codes[i])),
            (f"{certainty[i]:.3f}", float(certainty[i])),
        ]
        if second is not None:
            other = int(second[i])
            row.append((user(c.clusters[other]) if other >= 0 else "\u2013", other))
        rows.append(row)
    facts = {
        "lowest": certainty.min(),
        "10% are below": np.quantile(certainty, 0.1),
        "50% are below": np.median(certainty),
        "mean": certainty.mean(),
    }
    lines = "".join(f"<dt>{name}</dt><dd>{value:.3f}</dd>" for name, value in facts.items())
    return (
        f'<p>{meaning}</p><div class="two"><div>{_drawn(c, certainty)}'
        f'<dl class="facts">{lines}</dl></div><div><h3>Least certain samples</h3>'
        + table(heads, rows, name="Least certain samples")
        + "</div></div>"
    )


def _drawn(c: Content, certainty: np.ndarray) -> str:
    return figure(c.figures, "certainty", histogram(certainty, "Histogram of certainty"))
