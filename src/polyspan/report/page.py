"""The whole page: what is measured and drawn once, and the templates that show it."""

import base64
import hashlib
from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Any

import numpy as np
import scipy.sparse as sp
from markupsafe import Markup
from scipy.stats.contingency import crosstab
from sklearn.metrics import normalized_mutual_info_score

from polyspan.figures import cluster_colors, matrices, plots, svg_text
from polyspan.report import measure
from polyspan.report.content import Content, sampled
from polyspan.report.explained import (
    drawn_features,
    feature_data,
    known_data,
    measure_features,
    measure_known,
)
from polyspan.report.words import environment, number, packed, without_addresses

MOST_BETWEEN = 200  # clusters; with more, the picture of the affinity shows no means
MOST_DOUBTFUL = 30  # samples in the list of the least certain
MOST_PAIRS = 12  # in the list of the closest pairs
MOST_RIVALS = 6


def build_page(content: Content, date: str) -> str:
    """Measure and draw everything once, and fill the templates."""
    c = sampled(content)
    found = _measure(c)
    c.drawings.update(_drawings(c, found))
    svg = {}
    for name, draw in c.drawings.items():
        figure = c.figures[name] = draw().figure
        if not name.startswith("map"):  # the script draws these
            svg[name] = Markup(svg_text(figure, name, page=True))
            figure.set_layout_engine("none")  # which files need not find again
    files = resources.files("polyspan.report") / "templates"
    style, script = ((files / f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    return environment().get_template("report.j2").render(
        found, c=c, date=date, figures=svg, data=_data(c, found),
        python=_call(c.estimator if c.n_agreeing else c.shown),
        style=Markup(style), script=Markup(script),
        # Only this script may run, and nothing may be fetched.
        hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )  # fmt: skip


def _measure(c: Content) -> dict[str, Any]:
    """All numbers of the page, by their names in the templates."""
    n, k, sizes = len(c.ids), len(c.clusters), np.bincount(c.codes)
    affinity = None if c.affinity is None else measure.measure_affinity(c.affinity, c.codes, k)
    certainty, certainty_of = _certainty(c, affinity)
    votes, weights = _votes(c)
    silhouette, second = None, None if affinity is None else affinity.second
    if votes is not None:
        silhouette, second = matrices.consensus_silhouette(votes, c.codes, weights)
    each = list(zip(c.views, c.scales, strict=True))
    compared = [measure.compare_view(X, c.codes, scale) for X, scale in each]
    by_view = list(zip(c.view_names, compared, strict=True))
    params, known = c.shown.get_params(deep=False), measure_known(c)
    history = {name: values for name, values in (getattr(c.shown, "history_", None) or {}).items()
               if np.any(np.asarray(values, dtype=float) > 0)}  # fmt: skip
    ends = [values[-1] for values in history.values()]
    stopped = getattr(c.shown, "n_iter_", None) == params.get("max_iter", "none")
    return {
        "method": type(c.shown).__name__, "params": params, "history": history,
        "seed": (c.estimator if c.n_agreeing else c.shown).get_params(deep=False)["random_state"],
        "unconverged": stopped and params.get("tol") and max(ends, default=0) > params["tol"],
        "alone": _alone(c), "rivals": _rivals(c), "evidence": _evidence(c),
        "features": measure_features(c), "known": known, "painted": known_data(c, known),
        "plane": measure.draw_map(c.affinity, c.views, k, c.scales),
        "maps": [measure.draw_map(None, [X], k, scale) for X, scale in each if len(each) > 1],
        "votes": votes, "weights": weights, "silhouette": silhouette, "second": second,
        "certainty": certainty, "certainty_of": certainty_of,
        "doubtful": np.argsort(certainty, kind="stable")[:MOST_DOUBTFUL].tolist(),
        "quantile": partial(np.quantile, certainty), "low": int(np.sum(certainty < 0.5)),
        "compared": compared, "summaries": [measure.summarize_view(X) for X in c.views],
        "nmi": {name: one.nmi for name, one in by_view if one.nmi is not None},
        "near": {name: one.near.tolist() for name, one in by_view if one.near is not None},
        "used": sorted({one.n_used for one in compared if one.nmi is not None and one.n_used < n}),
        "affinity": affinity, "closest": [] if affinity is None else _closest(affinity.between),
        "block": -(-n // (matrices.MOST_PIXELS // (1 + sp.issparse(c.affinity)))),
        "colors": cluster_colors(k), "sizes": sizes,
        "means": np.bincount(c.codes, weights=certainty) / sizes,
    }  # fmt: skip


def _drawings(c: Content, m: dict[str, Any]) -> dict[str, Callable[..., Any]]:
    """What draws every figure, by its name."""
    draw: dict[str, Callable[..., Any]] = {
        "certainty": partial(plots.plot_certainty, m["certainty"])
    }
    for j, plane in enumerate([m["plane"], *m["maps"]]):
        points = np.stack([_levels(axis) for axis in plane.axes.T[:2]], axis=1)
        draw[f"map-{j}" if j else "map"] = partial(plots.plot_map, points, c.codes, c.clusters)
    if m["features"]:
        columns = drawn_features(c, m["features"])
        draw["features"] = partial(
            plots.plot_markers, columns, c.codes, -m["certainty"], c.clusters
        )
    if m["known"] and m["known"].survival and c.survival:
        draw["survival"] = partial(
            plots.plot_survival, m["known"].survival, c.survival[0], c.clusters
        )
    if m["votes"] is not None:
        draw["consensus"] = partial(
            matrices.plot_consensus, m["votes"], c.codes, m["weights"], c.clusters
        )
        draw["silhouette"] = partial(plots.plot_silhouettes, m["silhouette"], c.codes, c.clusters)
    for j, rival in enumerate(m["rivals"], start=1):
        draw[f"flow-{j}"] = partial(plots.plot_flow, c.codes, rival["labels"], c.clusters)
    if m["nmi"]:
        draw["agreement"] = partial(plots.plot_agreement, m["nmi"])
    if m["affinity"] is not None:
        draw["affinity"] = partial(matrices.plot_affinity, c.affinity, c.codes, c.clusters)
    for name, series in m["evidence"].items():
        draw[name] = partial(plots.plot_count, series, (c.evidence or {})["chosen"], name)
    if m["history"]:
        draw["convergence"] = partial(plots.plot_convergence, m["history"], m["params"].get("tol"))
    return draw


def _data(c: Content, m: dict[str, Any]) -> dict[str, Any]:
    """What the script needs: the map, and the long tables."""
    ordered = {"Sample": c.ids, "Cluster": [c.clusters[j] for j in c.codes],
               "Certainty": np.round(m["certainty"], 4)}  # fmt: skip
    if m["second"] is not None:
        ordered["Second choice"] = [c.clusters[j] if j >= 0 else None for j in m["second"]]
    c.tables["samples"] = ordered
    lists: dict[str, Any] = {"samples": {"heads": list(ordered)}}
    if m["features"]:
        lists["markers"] = feature_data(m["features"])
    axes = [
        [packed(_levels(axis), "u2") for axis in one.axes.T] for one in [m["plane"], *m["maps"]]
    ]
    between = m["affinity"] is not None and len(c.clusters) <= MOST_BETWEEN
    return {
        "n": len(c.ids), "safe": c.safe_ids, "ids": c.ids,
        "codes": packed(c.codes, "u2"), "axes": axes[0],
        "certainty": packed(np.round(m["certainty"] * 10000), "u2"),
        "second": None if m["second"] is None else packed(m["second"], "i2"),
        "maps": [{"name": name, "axes": two[:2]}
                 for name, two in zip(c.view_names, axes[1:], strict=False)],
        "known": m["painted"], "lists": lists,
        "clusters": [{"name": name, "size": size, "color": color} for name, size, color in
                     zip(c.clusters, m["sizes"].tolist(), m["colors"], strict=True)],
        "between": [list(map(number, row)) for row in m["affinity"].between] if between else None,
    }  # fmt: skip


def _certainty(c: Content, affinity: measure.Affinity | None) -> tuple[np.ndarray, str]:
    """Certainty of every sample, and what it is of."""
    if c.certainty is not None:
        return c.certainty, c.certainty_of
    if affinity is not None:
        return affinity.own, "affinity"
    return measure.center_margin(c.views, c.codes, c.scales), "centers"


def _votes(c: Content) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The clusters of the members in the consensus, and their weights; None for one method."""
    labels = getattr(c.estimator, "member_labels_", None)
    if not c.n_agreeing or labels is None or len(c.clusters) < 2:
        return None, None
    return labels[:, c.rows], np.array([r["weight"] for r in c.members if r["status"] == "ok"])


def _rivals(c: Content) -> list[dict[str, Any]]:
    """Other clusterings of the same samples, and how they differ from the one shown."""
    if not c.n_agreeing or len(c.clusters) > 30:
        return []
    others = [
        (f"rival with {one['share']:.0%} of the votes", one["labels"])
        for one in getattr(c.estimator, "alternatives_", [])
    ]
    by_number = getattr(c.estimator, "labels_by_k_", {})
    others += [(f"{k} clusters", by_number[k]) for k in by_number if k != len(c.clusters)]
    rivals = []
    for name, labels in others[:MOST_RIVALS]:
        labels = np.asarray(labels)[c.rows]
        (_, kinds), counts = crosstab(c.codes, labels)
        rivals.append({
            "name": name, "labels": labels, "n_clusters": len(kinds),
            "moved": len(labels) - int(counts.max(axis=1).sum()),
            "nmi": float(normalized_mutual_info_score(c.codes, labels)),
        })  # fmt: skip
    return rivals


def _closest(between: np.ndarray) -> list[tuple[int, int, float]]:
    """The pairs of clusters that are least separated, and how close they are."""
    inside = np.diag(between)
    a, b = np.triu_indices(len(between), 1)
    # A cluster of one sample has no pairs inside: the value of the other cluster is used.
    both = np.where((inside[a] > 0) & (inside[b] > 0), np.sqrt(inside[a] * inside[b]),
                    np.maximum(inside[a], inside[b]))  # fmt: skip
    ratio = between[a, b] / np.where(both > 0, both, np.inf)
    order = np.argsort(-ratio, kind="stable")[:MOST_PAIRS]
    return list(zip(a[order].tolist(), b[order].tolist(), ratio[order].tolist(), strict=True))


def _evidence(c: Content) -> dict[str, dict[int, float]]:
    """The evidence for every number of clusters, by name; the eigenvalues are last."""
    if not c.evidence:
        return {}
    e = c.evidence
    columns: dict[str, dict[int, float]] = {
        name: dict(sorted(zip(e["candidates"], e[name], strict=True)))
        for name in ("gaps", "stability", "scores")
    }
    columns["votes"] = dict(sorted((int(count), votes) for count, votes in e["votes"].items()))
    # Far beyond the candidates there is nothing to see.
    seen = e["eigenvalues"][: int(1.5 * max(max(series) for series in columns.values())) + 3]
    return columns | {"eigenvalues": dict(enumerate(seen, start=1))}


def _alone(c: Content) -> float | None:
    """NMI of the clusters shown with those of the method shown; None if they are the same."""
    own = getattr(c.shown, "labels_", None)
    if own is None or len(own) <= c.rows[-1]:
        return None
    same = float(normalized_mutual_info_score(c.codes, np.asarray(own)[c.rows]))
    return same if same < 1 - 1e-9 else None


def _call(model: Any) -> str:
    """The lines of Python that fit this estimator."""
    own = [model, *(getattr(model, "members", None) or [])]
    ours = {type(one).__name__ for one in own if type(one).__module__.startswith("polyspan.")}
    others = {type(one).__name__ for one in own} - ours
    lines = [
        f"from {source} import {', '.join(sorted(names))}"
        for source, names in (("polyspan", ours), ("...", others))
        if names
    ]
    call = without_addresses(" ".join(model.__repr__(N_CHAR_MAX=10**6).split()))
    return "\n".join([*lines, "", f"labels = {call}.fit_predict(views)"])


def _levels(axis: np.ndarray) -> np.ndarray:
    """A coordinate scaled to 0..65535."""
    low, high = float(axis.min()), float(axis.max())
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        return np.full(len(axis), 32768)
    return np.round((axis - low) / (high - low) * 65535)
