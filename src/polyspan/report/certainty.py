"""The sections on certainty: the ordered consensus, silhouettes, rival clusterings."""

from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from polyspan.report.agreement import Consensus, shrink_consensus
from polyspan.report.content import Content
from polyspan.report.drawings import flow, matrix, silhouettes
from polyspan.report.markup import cell, figure, table
from polyspan.runtime.messages import plural

MOST_PIXELS = 560
MOST_RIVALS = 6


def show_consensus(c: Content, colors: list[str], found: Consensus | None) -> str:
    """The ordered consensus matrix and the silhouettes on it."""
    if found is None:
        return ""
    order = np.lexsort((-found.silhouette, c.codes))
    shades = shrink_consensus(found.B, order, MOST_PIXELS)
    picture = matrix(shades, np.bincount(c.codes), colors, "Consensus matrix, ordered")
    bars = silhouettes(found.silhouette, c.codes, colors, c.clusters)
    means = np.bincount(c.codes, weights=found.silhouette) / np.bincount(c.codes)
    below = np.bincount(c.codes, weights=found.silhouette < 0)
    rows = [
        [cell(name), cell(round(float(means[k]), 3)), cell(int(below[k]))]
        for k, name in enumerate(c.clusters)
    ]
    heads = ["Cluster", "Mean silhouette", "Samples nearer to another"]
    return (
        "<p>How often the members of the consensus put two samples together: dark is always, white "
        "never. Samples are ordered by cluster and, inside it, by silhouette. The silhouette uses "
        "one minus this share as distance: 1 is deep inside the cluster, 0 between two, negative "
        "nearer to another.</p>"
        '<div class="two"><div>'
        + figure(c.figures, "consensus", picture)
        + "</div><div>"
        + figure(c.figures, "silhouette", bars)
        + table(heads, rows, name="Silhouettes on the consensus")
        + "</div></div>"
    )


def rivals(c: Content) -> list[tuple[str, np.ndarray]]:
    """Other clusterings of the same samples, by what they are called."""
    if not c.n_agreeing:
        return []
    found = []
    for one in getattr(c.estimator, "alternatives_", []):
        labels = np.asarray(one["labels"])[c.rows]
        found.append((f"rival with {one['share']:.0%} of the votes", labels))
    by_number = getattr(c.estimator, "labels_by_k_", {})
    for k, labels in by_number.items():
        if k != len(c.clusters):
            found.append((f"{k} clusters", np.asarray(labels)[c.rows]))
    return found[:MOST_RIVALS]


def show_rivals(c: Content, colors: list[str]) -> str:
    """Rival clusterings and other numbers of clusters, with who moves where."""
    others = rivals(c)
    if not others or len(c.clusters) > 30:
        return ""
    drawn, rows = [], []
    for place, (name, labels) in enumerate(others, start=1):
        kinds, at = np.unique(labels, return_inverse=True)
        counts = np.zeros((len(c.clusters), len(kinds)), dtype=int)
        np.add.at(counts, (c.codes, at), 1)
        similar = normalized_mutual_info_score(c.codes, at)
        moved = len(at) - int(counts.max(axis=1).sum())
        rows.append([cell(name), cell(len(kinds)), cell(float(similar)), cell(moved)])
        names = [str(one) for one in kinds.tolist()]
        svg = flow(counts, colors, c.clusters, names, f"Who moves: {name}")
        drawn.append(f"<div><h3>{name}</h3>{figure(c.figures, f'flow-{place}', svg)}</div>")
    heads = ["Clustering", "Clusters", "NMI with this one", "Samples that leave their cluster"]
    return (
        f"<p>{plural(len(others), 'other clustering')} of the same samples: rivals with votes of "
        "their own, and the other numbers of clusters on the short list. Bands show who moves; "
        "samples leave if they do not go where most of their cluster goes.</p>"
        + table(heads, rows, name="Other clusterings")
        + f'<div class="three">{"".join(drawn)}</div>'
    )


def sample_data(c: Content, certainty: np.ndarray, second: np.ndarray | None) -> dict[str, Any]:
    """The table of all samples, for the script; also kept."""
    heads = ["Sample", "Cluster", "Certainty"] + ["Second choice"] * (second is not None)
    rows: list[list[Any]] = []
    for i, one in enumerate(c.ids):
        row: list[Any] = [one, c.clusters[c.codes[i]], round(float(certainty[i]), 4)]
        if second is not None:
            row.append(c.clusters[second[i]] if second[i] >= 0 else None)
        rows.append(row)
    c.tables["samples"] = lambda: [heads, *rows]
    return {"heads": heads}
