"""The section on the affinity: a picture, and the closest pairs of clusters."""

import numpy as np
import scipy.sparse as sp

from polyspan.report.charts import png
from polyspan.report.content import Content
from polyspan.report.markup import bar, escape, table, user
from polyspan.report.measure import Affinity, shrink_affinity

MOST_PIXELS = 600  # on each side of the picture of the affinity
MOST_PAIRS = 12  # in the list of the closest pairs


def show_affinity(c: Content, colors: list[str], affinity: Affinity | None) -> str:
    """The affinity as a picture, and the closest pairs of clusters."""
    if affinity is None:
        return (
            f"<p>{escape(type(c.shown).__name__)} finds its clusters without an affinity "
            "between samples, so there is none to show.</p>"
        )
    n = len(c.ids)
    order = np.argsort(c.codes, kind="stable")
    # Single dots of a sparse matrix would be too faint: fewer, larger dots show more.
    most = MOST_PIXELS // 2 if sp.issparse(c.affinity) else MOST_PIXELS
    shades = np.sqrt(np.maximum(shrink_affinity(c.affinity, order, most), 0))
    positive = shades[shades > 0]
    darkest = float(np.percentile(positive, 99)) if positive.size else 1.0
    levels = np.round(255 * np.minimum(shades / darkest, 1))
    sizes = np.bincount(c.codes)
    starts = np.cumsum(sizes) - sizes
    frames, strip = [], []
    for k in range(len(sizes)):
        at, size = 1000 * starts[k] / n, 1000 * sizes[k] / n
        box = f'x="{at:.2f}" y="{at:.2f}" width="{size:.2f}" height="{size:.2f}"'
        frames.append(f"<rect {box}/>")
        strip.append(f'<span style="flex:{sizes[k]};background:{colors[k]}"></span>')
    fine = ' class="fine"' if len(sizes) > 40 else ""  # frames must not hide the picture
    block = -(-n // len(shades))
    average = (
        f" One dot is the mean over {block} \u00d7 {block} pairs of samples." if block > 1 else ""
    )
    return (
        "<p>Affinity of every sample (row) with every other (column), sorted by cluster. Squares "
        "that stand out on the diagonal, with little elsewhere, are well-separated clusters. "
        f"Shades follow the square root of the affinity.{average}</p>"
        '<div class="two broad"><div><div class="matrix">'
        f'<div class="strip across" aria-hidden="true">{"".join(strip)}</div>'
        f'<div class="strip down" aria-hidden="true">{"".join(strip)}</div>'
        f'<div class="picture" id="matrix"><img src="{png(levels)}" '
        'alt="Affinity matrix sorted by cluster">'
        f'<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true"{fine}>'
        f'{"".join(frames)}</svg></div></div><p class="readout" id="matrix-out">\u00a0</p></div>'
        f"{_closest(c, affinity.between)}</div>"
    )


def _closest(c: Content, between: np.ndarray) -> str:
    """The pairs of clusters that are least separated."""
    k = len(between)
    if k < 2:
        return ""
    inside = np.diag(between)
    a, b = np.triu_indices(k, 1)
    # A cluster of one sample has no pairs inside: the value of the other cluster is used.
    both = np.where((inside[a] > 0) & (inside[b] > 0), np.sqrt(inside[a] * inside[b]),
                    np.maximum(inside[a], inside[b]))  # fmt: skip
    ratio = between[a, b] / np.where(both > 0, both, np.inf)
    rows = [
        [
            (user(c.clusters[a[j]]), int(a[j])),
            (user(c.clusters[b[j]]), int(b[j])),
            (bar(float(ratio[j]), f"{ratio[j]:.3f}"), float(ratio[j])),
        ]
        for j in np.argsort(-ratio, kind="stable")[:MOST_PAIRS].tolist()
    ]
    return (
        "<div><h3>Closest pairs of clusters</h3><p>Mean affinity between two clusters, divided by "
        "that inside them. If it is near 1, they may be one cluster.</p>"
        + table(["Cluster", "and", "Between / inside"], rows, name="Closest pairs of clusters")
        + "</div>"
    )
