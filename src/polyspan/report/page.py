"""The whole page: heading, notes, sections, and the data for its script."""

import base64
import hashlib
from importlib import resources
from string import Template
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from polyspan import __version__
from polyspan.figures import cluster_colors
from polyspan.report.affinity import show_affinity
from polyspan.report.agreement import measure_consensus
from polyspan.report.certainty import sample_data, show_consensus, show_rivals
from polyspan.report.clusters import show_certainty, show_clusters, show_map
from polyspan.report.content import Content, sampled
from polyspan.report.drawings import ALONE, scatter
from polyspan.report.evidence import show_evidence
from polyspan.report.features import feature_data, measure_features, show_features
from polyspan.report.known import known_data, measure_known, show_known
from polyspan.report.markup import clean, escape, long_table, number, packed, to_json, user
from polyspan.report.measure import (
    Affinity,
    Map,
    center_margin,
    compare_view,
    draw_map,
    measure_affinity,
)
from polyspan.report.members import show_members
from polyspan.report.methods import show_methods
from polyspan.report.run import show_convergence, show_run
from polyspan.report.verdict import show_verdict
from polyspan.report.views import show_views
from polyspan.runtime.messages import plural

MOST_BETWEEN = 200  # clusters; with more, the picture of the affinity shows no means


def build_page(content: Content, date: str) -> str:
    """Measure everything once and fill the template."""
    c = sampled(content)
    n, k = len(c.ids), len(c.clusters)
    affinity = None if c.affinity is None else measure_affinity(c.affinity, c.codes, k)
    certainty, meaning = _certainty(c, affinity)
    agreed = measure_consensus(c)
    second = agreed.second if agreed is not None else None if affinity is None else affinity.second
    plane = draw_map(c.affinity, c.views, k, c.scales)
    each = list(zip(c.views, c.scales, strict=True))
    compared = [compare_view(X, c.codes, scale) for X, scale in each]
    own_maps = [draw_map(None, [X], k, scale) for X, scale in each] if len(each) > 1 else []
    features, known = measure_features(c), measure_known(c)
    painted = known_data(c, known)
    colors = cluster_colors(k)
    method = type(c.shown).__name__
    by = f"Consensus of {plural(c.n_agreeing, 'member')}" if c.n_agreeing else method
    title = c.title or f"{by}: {plural(k, 'cluster')} in {plural(n, 'sample')}"
    lists = {"samples": sample_data(c, certainty, second)}
    if features is not None:
        lists["markers"] = feature_data(c, features)
    sections = [
        ("features", "Features", show_features(c, colors, certainty, features) if features else ""),
        ("known", "What is known", show_known(c, colors, known) if known else ""),
        ("map", "Map", show_map(c, plane, [one["name"] for one in painted])),
        ("consensus", "Consensus", show_consensus(c, colors, agreed)),
        ("certainty", "Certainty", show_certainty(c, certainty, meaning, second)),
        ("rivals", "Rivals", show_rivals(c, colors)),
        ("clusters", "Clusters", show_clusters(c, colors, certainty, compared)),
        ("views", "Views", show_views(c, compared)),
        ("samples", "Samples", long_table("samples", "id or cluster")),
        ("methods", "Methods", show_methods(c, known)),
        ("run", "Run", show_run(c, date)),
        ("affinity", "Appendix: affinity", show_affinity(c, colors, affinity)),
        ("count", "Appendix: number of clusters", show_evidence(c.evidence)),
        ("members", "Appendix: members", show_members(c.members)),
        ("convergence", "Appendix: convergence", show_convergence(c)),
    ]
    sections = [part for part in sections if part[2]]
    _keep_maps(c, plane, own_maps, colors)
    data = {
        "n": n,
        "ids": [clean(name) for name in c.ids],
        "codes": packed(c.codes, "u2"),
        "certainty": packed(np.round(certainty * 10000), "u2"),
        "second": None if second is None else packed(second, "i2"),
        "axes": [packed(_levels(axis), "u2") for axis in plane.axes.T],
        "maps": [
            {"name": clean(name), "axes": [packed(_levels(axis), "u2") for axis in one.axes.T[:2]]}
            for name, one in zip(c.view_names, own_maps, strict=False)
        ],
        "known": _clean(painted),
        "lists": _clean(lists),
        "style": ALONE,
        "clusters": [
            {"name": clean(name), "size": int(size), "color": color}
            for name, size, color in zip(c.clusters, np.bincount(c.codes), colors, strict=True)
        ],
        "between": None
        if affinity is None or k > MOST_BETWEEN
        else [[number(x) for x in row] for row in affinity.between],
    }
    files = resources.files("polyspan.report") / "template"
    style, script = ((files / f"report.{kind}").read_text("utf-8") for kind in ("css", "js"))
    return Template((files / "report.html").read_text("utf-8")).substitute(
        title=escape(title),
        lead=_lead(c, date),
        verdict=show_verdict(c, certainty, compared, features, known),
        tiles=_tiles(c, certainty),
        notes=_notes(c),
        links=_links([(name, head) for name, head, _ in sections]),
        sections="".join(
            f'<section id="{name}" aria-labelledby="h-{name}"><h2 id="h-{name}">{head}</h2>'
            f"{body}</section>"
            for name, head, body in sections
        ),
        version=escape(__version__),
        data=to_json(data),
        style=style,
        script=script,
        # Only this script may run, and nothing may be fetched.
        hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _links(sections: list[tuple[str, str]]) -> str:
    """Links to the sections; one leads to the whole appendix."""
    shown = [pair for pair in sections if not pair[1].startswith("Appendix")]
    shown += [(name, "Appendix") for name, head in sections if head.startswith("Appendix")][:1]
    return "".join(f'<a href="#{name}">{head}</a>' for name, head in shown)


def _keep_maps(c: Content, plane: Map, own: list[Map], colors: list[str]) -> None:
    """Keep the maps as figures."""
    names = ["map", *(f"map-{k}" for k in range(1, len(own) + 1))]
    for name, one in zip(names, [plane, *own], strict=True):
        xs, ys = (_levels(axis) / 65535 for axis in one.axes.T[:2])
        c.figures[name] = scatter(xs, ys, c.codes, colors, name)


def _clean(value: Any) -> Any:
    """Text without characters that no HTML file can hold, at any depth."""
    if isinstance(value, dict):
        return {key: _clean(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_clean(one) for one in value]
    return clean(value) if isinstance(value, str) else value


def _certainty(c: Content, affinity: Affinity | None) -> tuple[np.ndarray, str]:
    """Certainty of every sample, and a sentence that says what it is."""
    if c.certainty is not None and c.certainty_of == "consensus":
        return c.certainty, (
            "Certainty is the share of the members in the consensus that put a sample together "
            "with another one of its cluster (mean over these), minus that share for the best "
            "other cluster. At 1 all members agree; at 0 the sample lies between two clusters."
        )
    if c.certainty is not None:
        return c.certainty, "Certainty was computed by the method or was given with the labels."
    if affinity is not None:
        return affinity.own, (
            "Certainty is the share of a sample\u2019s affinity that goes to the other samples of "
            "its cluster. It is naturally lower with many clusters and a dense affinity, so "
            "compare samples with each other, not with 1."
        )
    return center_margin(c.views, c.codes, c.scales), (
        "The method has no affinity. Certainty is how much nearer a sample is to the center of its "
        "own cluster than to the next one: 0 is halfway between the two, 1 is at the center."
    )


def _lead(c: Content, date: str) -> str:
    names = ", ".join(user(name) for name in c.view_names[:6])
    more = f" and {len(c.view_names) - 6} more" if len(c.view_names) > 6 else ""
    by = f"<strong>{escape(type(c.shown).__name__)}</strong>"
    what = ""
    if c.n_agreeing:
        what = (
            " The map, and affinity and convergence in the appendix, are those of the member "
            f"nearest to the consensus, {by}."
        )
        by = f"the <strong>consensus of {plural(c.n_agreeing, 'member')}</strong>"
    return (
        f"{plural(len(c.ids), 'sample')} described by {plural(len(c.views), 'view')} "
        f"({names}{more}), put into {plural(len(c.clusters), 'cluster')} by {by} of polyspan "
        f'{escape(__version__)}.{what} <time class="date">{escape(date)}</time>'
    )


def _tiles(c: Content, certainty: np.ndarray) -> str:
    sizes = np.bincount(c.codes)
    verdict = getattr(c.estimator, "structure_", None)
    tiles = [] if verdict is None else [(escape(verdict), "structure")]
    tiles += [
        (number(len(c.ids)), "samples"[: 7 - (len(c.ids) == 1)]),
        (number(len(c.views)), "views"[: 5 - (len(c.views) == 1)]),
        (number(len(c.clusters)), "clusters"[: 8 - (len(c.clusters) == 1)]),
        (f"{number(sizes.min())}\u2013{number(sizes.max())}", "samples per cluster"),
        (f"{np.median(certainty):.2f}", "median certainty"),
    ]
    return "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for value, label in tiles)


def _notes(c: Content) -> str:
    notes = [user(note) for note in [*_consensus_notes(c), *c.notes]]
    iterations = getattr(c.shown, "n_iter_", None)
    params = c.shown.get_params(deep=False)
    last = [ys[-1] for ys in (getattr(c.shown, "history_", None) or {}).values() if len(ys)]
    tol = params.get("tol")
    if (
        iterations is not None
        and iterations == params.get("max_iter")
        and tol
        and max(last, default=0) > tol
    ):
        notes.append(
            f"The solver stopped after max_iter={iterations} iterations without converging to "
            f"tol={tol:g}: raise max_iter, or treat the result with caution."
        )
    own = getattr(c.shown, "labels_", None)
    if own is not None and len(own) > c.rows[-1]:
        same = normalized_mutual_info_score(c.codes, np.asarray(own)[c.rows])
        if same < 1 - 1e-9:
            notes.append(
                f"The clusters shown differ from those of {type(c.shown).__name__} alone: their "
                f"normalized mutual information is {same:.3f}."
            )
    if not notes:
        return ""
    items = "".join(f"<li>{note}</li>" for note in notes)
    return f'<ul class="notes" aria-label="Notes">{items}</ul>'


def _consensus_notes(c: Content) -> list[str]:
    """What a consensus says of the data: scaling of the views, rival clusterings."""
    notes = []
    notes += [f"Scaling of {sentence}." for sentence in getattr(c.estimator, "scaling_", [])]
    for one in getattr(c.estimator, "alternatives_", []):
        views = ", ".join(
            f"{name} {value:.2f}"
            for name, value in zip(c.view_names, one["modularity"], strict=True)
        )
        notes.append(
            f"The members disagree: {one['share']:.0%} of the votes are for another clustering "
            f"(NMI {one['similarity']:.2f} with this one; modularity in the views: {views})."
        )
    return notes


def _levels(axis: np.ndarray) -> np.ndarray:
    """A coordinate scaled to 0..65535."""
    low, high = float(axis.min()), float(axis.max())
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        return np.full(len(axis), 32768)
    return np.round((axis - low) / (high - low) * 65535)
