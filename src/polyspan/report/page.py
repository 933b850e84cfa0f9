"""The whole page: what is measured and drawn once, and the templates that show it."""

import base64
import hashlib
import inspect
import platform
from collections.abc import Callable
from functools import partial
from importlib import metadata, resources
from typing import Any

import numpy as np
import scipy.sparse as sp
from markupsafe import Markup
from sklearn.metrics import normalized_mutual_info_score

from polyspan import __version__
from polyspan.base import MultiViewClusterer
from polyspan.figures import cluster_colors, matrices, plots, svg_text
from polyspan.report.content import Content, sampled
from polyspan.report.features import drawn_features, feature_data, measure_features
from polyspan.report.known import known_data, measure_known
from polyspan.report.measure import (
    Affinity,
    center_margin,
    compare_view,
    draw_map,
    measure_affinity,
    summarize_view,
)
from polyspan.report.words import environment, number, packed, setting, to_json
from polyspan.runtime.messages import plural

MOST_BETWEEN = 200  # clusters; with more, the picture of the affinity shows no means
MOST_DOUBTFUL = 30  # samples in the list of the least certain
MOST_PAIRS = 12  # in the list of the closest pairs
MOST_RIVALS = 6
TITLES = {
    "features": "Features",
    "known": "Annotations",
    "map": "Map",
    "consensus": "Consensus",
    "certainty": "Certainty",
    "rivals": "Rivals",
    "clusters": "Clusters",
    "views": "Views",
    "samples": "Samples",
    "methods": "Methods",
    "run": "Run",
    "affinity": "Appendix: affinity",
    "count": "Appendix: number of clusters",
    "members": "Appendix: members",
    "convergence": "Appendix: convergence",
}
Drawings = dict[str, Callable[..., Any]]  # by the name of the figure


def build_page(content: Content, date: str) -> str:
    """Measure and draw everything once, and fill the templates."""
    c = sampled(content)
    n, k, sizes = len(c.ids), len(c.clusters), np.bincount(c.codes)
    affinity = None if c.affinity is None else measure_affinity(c.affinity, c.codes, k)
    certainty, certainty_of = _certainty(c, affinity)
    votes, weights = _votes(c)
    silhouette, second = None, None if affinity is None else affinity.second
    if votes is not None:
        silhouette, second = matrices.consensus_silhouette(votes, c.codes, weights)
    plane = draw_map(c.affinity, c.views, k, c.scales)
    each = list(zip(c.views, c.scales, strict=True))
    compared = [compare_view(X, c.codes, scale) for X, scale in each]
    nmi = {name: one.nmi for name, one in zip(c.view_names, compared, strict=True)
           if one.nmi is not None}  # fmt: skip
    maps = [draw_map(None, [X], k, scale) for X, scale in each] if len(each) > 1 else []
    features, known, others = measure_features(c), measure_known(c), _rivals(c)
    history = {name: values for name, values in (getattr(c.shown, "history_", None) or {}).items()
               if np.any(np.asarray(values, dtype=float) > 0)}  # fmt: skip
    params, columns = c.shown.get_params(deep=False), _evidence(c)
    painted, colors, method = known_data(c, known), cluster_colors(k), type(c.shown).__name__

    draw = c.drawings
    for name, one in zip(["map", *(f"map-{j + 1}" for j in range(len(maps)))], [plane, *maps],
                         strict=True):  # fmt: skip
        draw[name] = partial(plots.plot_map, one.axes, c.codes, c.clusters)
    if features is not None:
        rows = drawn_features(c, features)
        draw["features"] = partial(plots.plot_markers, rows, c.codes, -certainty, c.clusters)
    if known is not None and known.survival is not None and c.survival is not None:
        lived = partial(plots.plot_survival, known.survival, c.survival[0], c.clusters)
        draw["survival"] = lived
    if silhouette is not None:
        draw["consensus"] = partial(
            matrices.plot_consensus, votes, c.codes, weights, names=c.clusters
        )
        draw["silhouette"] = partial(plots.plot_silhouettes, silhouette, c.codes, c.clusters)
    draw["certainty"] = partial(plots.plot_certainty, certainty)
    for j, (_, labels) in enumerate(others, start=1):
        draw[f"flow-{j}"] = partial(plots.plot_flow, c.codes, labels, c.clusters)
    if nmi:
        draw["agreement"] = partial(plots.plot_agreement, nmi)
    if affinity is not None:
        draw["affinity"] = partial(matrices.plot_affinity, c.affinity, c.codes, c.clusters)
    for name, series in columns.items():
        draw[name] = partial(plots.plot_count, series, (c.evidence or {})["chosen"], name)
    if history:
        draw["convergence"] = partial(plots.plot_convergence, history, params.get("tol"))
    c.figures.update({name: one().figure for name, one in draw.items()})
    svg = {}
    for name, figure in c.figures.items():
        if not name.startswith("map"):  # the script draws these
            svg[name] = Markup(svg_text(figure, name, page=True))
            figure.set_layout_engine("none")  # which files need not find again

    ordered = {"Sample": c.ids, "Cluster": [c.clusters[j] for j in c.codes],
               "Certainty": np.round(certainty, 4)}  # fmt: skip
    if second is not None:
        ordered["Second choice"] = [c.clusters[j] if j >= 0 else None for j in second]
    c.tables["samples"] = ordered
    lists: dict[str, Any] = {"samples": {"heads": list(ordered)}}
    if features is not None:
        lists["markers"] = feature_data(features)
    data = {
        "n": n,
        "ids": c.ids,
        "codes": packed(c.codes, "u2"),
        "certainty": packed(np.round(certainty * 10000), "u2"),
        "second": None if second is None else packed(second, "i2"),
        "axes": [packed(_levels(axis), "u2") for axis in plane.axes.T],
        "maps": [{"name": name, "axes": [packed(_levels(axis), "u2") for axis in one.axes.T[:2]]}
                 for name, one in zip(c.view_names, maps, strict=False)],
        "known": painted,
        "lists": lists,
        "clusters": [{"name": name, "size": int(size), "color": color}
                     for name, size, color in zip(c.clusters, sizes, colors, strict=True)],
        "between": None if affinity is None or k > MOST_BETWEEN
        else [[number(x) for x in row] for row in affinity.between],
    }  # fmt: skip
    left_out = {
        "features": features is None, "known": known is None, "consensus": silhouette is None,
        "rivals": not others, "count": not columns, "members": not c.members,
        "convergence": not history,
    }  # fmt: skip
    sections = [(name, head) for name, head in TITLES.items() if not left_out.get(name)]
    by = f"Consensus of {plural(c.n_agreeing, 'member')}" if c.n_agreeing else method
    verdict = getattr(c.estimator, "structure_", None)
    pages = environment()
    files = resources.files("polyspan.report") / "templates"
    style, script = ((files / f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    context = {
        "c": c,
        "method": method,
        "params": params,
        "seed": (c.estimator if c.n_agreeing else c.shown).get_params(deep=False).get(
            "random_state"
        ),
        "about": (type(c.shown).__doc__ or "").strip().split("\n")[0],
        "python": _call(c.estimator if c.n_agreeing else c.shown),
        "date": date,
        "title": c.title or f"{by}: {plural(k, 'cluster')} in {plural(n, 'sample')}",
        "structure": getattr(c.estimator, "structure_evidence_", None) or {},
        "scaling": getattr(c.estimator, "scaling_", []),
        "alternatives": getattr(c.estimator, "alternatives_", []),
        "unconverged": _unconverged(c, params),
        "alone": _alone(c),
        "tiles": [
            *([(verdict, "structure")] if verdict else []),
            (number(n), "sample" if n == 1 else "samples"),
            (number(len(c.views)), "view" if len(c.views) == 1 else "views"),
            (number(k), "cluster" if k == 1 else "clusters"),
            (f"{number(sizes.min())}\u2013{number(sizes.max())}", "samples per cluster"),
            (f"{np.median(certainty):.2f}", "median certainty"),
        ],
        "sections": sections,
        "appendix": next(name for name, head in sections if head.startswith("Appendix")),
        "features": features,
        "known": known,
        "plane": plane,
        "painted": painted,
        "silhouettes": [] if silhouette is None else [
            (name, float(own.mean().round(3)), int(np.sum(own < 0)))
            for j, name in enumerate(c.clusters) for own in [silhouette[c.codes == j]]
        ],
        "certainty": certainty.tolist(),
        "certainty_of": certainty_of,
        "middle": np.median(certainty),
        "low": int(np.sum(certainty < 0.5)),
        "quantiles": [("lowest", certainty.min()), ("10% are below", np.quantile(certainty, 0.1)),
                      ("50% are below", np.median(certainty)), ("mean", certainty.mean())],
        "doubtful": np.argsort(certainty, kind="stable")[:MOST_DOUBTFUL].tolist(),
        "second": None if second is None else second.tolist(),
        "rivals": [_moved(name, c.codes, labels) for name, labels in others],
        "colors": colors,
        "sizes": sizes,
        "means": np.bincount(c.codes, weights=certainty) / sizes,
        "near": {name: one.near.tolist() for name, one in zip(c.view_names, compared, strict=True)
                 if one.near is not None},
        "compared": compared,
        "nmi": nmi,
        "used": sorted({one.n_used for one in compared if one.nmi is not None and one.n_used < n}),
        "summaries": [summarize_view(X) for X in c.views],
        "affinity": affinity,
        "block": -(-n // (matrices.MOST_PIXELS // (1 + sp.issparse(c.affinity)))),
        "closest": [] if affinity is None else _closest(affinity.between),
        "evidence_columns": {name: columns[name] for name in list(columns)[:-1]},
        "evidence_counts": sorted({count for name in list(columns)[:-1] for count in columns[name]}
                                  | {(c.evidence or {}).get("chosen", 0)}),
        "history": history,
        "figures": svg,
        "versions": {"polyspan": __version__, "Python": platform.python_version()} | {
            name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")
        } | ({"lifelines": metadata.version("lifelines")} if "survival" in draw else {}),
        "data": to_json(data),
        "style": Markup(style),
        "script": Markup(script),
        # Only this script may run, and nothing may be fetched.
        "hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    }  # fmt: skip
    return pages.get_template("report.j2").render(context)


def _certainty(c: Content, affinity: Affinity | None) -> tuple[np.ndarray, str]:
    """Certainty of every sample, and what it is of."""
    if c.certainty is not None:
        return c.certainty, c.certainty_of
    if affinity is not None:
        return affinity.own, "affinity"
    return center_margin(c.views, c.codes, c.scales), "centers"


def _votes(c: Content) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The clusters of the members in the consensus, and their weights; None for one method."""
    labels = getattr(c.estimator, "member_labels_", None)
    if not c.n_agreeing or labels is None or len(c.clusters) < 2:
        return None, None
    return labels[:, c.rows], np.array([r["weight"] for r in c.members if r["status"] == "ok"])


def _rivals(c: Content) -> list[tuple[str, np.ndarray]]:
    """Other clusterings of the same samples, by what they are called."""
    if not c.n_agreeing or len(c.clusters) > 30:
        return []
    found = [
        (f"rival with {one['share']:.0%} of the votes", np.asarray(one["labels"])[c.rows])
        for one in getattr(c.estimator, "alternatives_", [])
    ]
    for k, labels in getattr(c.estimator, "labels_by_k_", {}).items():
        if k != len(c.clusters):
            found.append((f"{k} clusters", np.asarray(labels)[c.rows]))
    return found[:MOST_RIVALS]


def _moved(name: str, codes: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """How another clustering differs from the one shown."""
    kinds, there = np.unique(labels, return_inverse=True)
    counts = np.zeros((codes.max() + 1, len(kinds)), dtype=int)
    np.add.at(counts, (codes, there), 1)
    return {"name": name, "n_clusters": len(kinds), "moved": int(len(codes) - counts.max(1).sum()),
            "nmi": float(normalized_mutual_info_score(codes, there))}  # fmt: skip


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


def _unconverged(c: Content, params: dict[str, Any]) -> bool:
    """Whether the solver stopped before it was done."""
    ends = [ys[-1] for ys in (getattr(c.shown, "history_", None) or {}).values() if len(ys)]
    stopped = getattr(c.shown, "n_iter_", None) == params.get("max_iter", "none")
    return bool(stopped and params.get("tol") and max(ends, default=0) > params["tol"])


def _alone(c: Content) -> float | None:
    """NMI of the clusters shown with those of the method shown; None if they are the same."""
    own = getattr(c.shown, "labels_", None)
    if own is None or len(own) <= c.rows[-1]:
        return None
    same = float(normalized_mutual_info_score(c.codes, np.asarray(own)[c.rows]))
    return same if same < 1 - 1e-9 else None


def _call(model: MultiViewClusterer) -> str:
    """The lines of Python that fit this estimator."""
    defaults = inspect.signature(type(model)).parameters
    given = {
        name: _typed(value)
        for name, value in model.get_params(deep=False).items()
        if name not in defaults or setting(value) != setting(defaults[name].default)
    }
    own = [model, *(getattr(model, "members", None) or [])]
    ours = {type(one).__name__ for one in own if type(one).__module__.startswith("polyspan.")}
    others = {type(one).__name__ for one in own} - ours
    lines = [
        f"from {source} import {', '.join(sorted(names))}"
        for source, names in (("polyspan", ours), ("...", others))
        if names
    ]
    call = ", ".join(f"{name}={value}" for name, value in given.items())
    return "\n".join([*lines, "", f"labels = {type(model).__name__}({call}).fit_predict(views)"])


def _typed(value: Any) -> str:
    """A value as you would type it; members in full, so that they can be pasted."""
    if isinstance(value, list | tuple) and any(isinstance(x, MultiViewClusterer) for x in value):
        return f"[{', '.join(' '.join(repr(x).split()) for x in value)}]"
    return setting(value)


def _levels(axis: np.ndarray) -> np.ndarray:
    """A coordinate scaled to 0..65535."""
    low, high = float(axis.min()), float(axis.max())
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        return np.full(len(axis), 32768)
    return np.round((axis - low) / (high - low) * 65535)
