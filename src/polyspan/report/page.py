"""The page: what the report says, section by section."""

import base64
import hashlib
import inspect
import platform
from collections.abc import Mapping
from importlib import metadata, resources
from string import Template
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score

from polyspan import __version__
from polyspan.report.measure import (
    Affinity,
    Agreement,
    Map,
    center_margin,
    compare_view,
    draw_map,
    measure_affinity,
    shrink_affinity,
    summarize_view,
)
from polyspan.report.palette import cluster_colors
from polyspan.report.parts import (
    bar,
    clean,
    escape,
    histogram,
    line_chart,
    number,
    packed,
    percent,
    plural,
    png,
    setting,
    table,
    to_json,
    user,
)

MOST_PIXELS = 600  # sides of the picture of the affinity
MOST_DOUBTFUL = 30  # samples in the list of the least certain
MOST_PAIRS = 12  # of clusters in the list of the closest
MOST_BETWEEN = 200  # clusters up to which the picture of the affinity tells means


class Content(NamedTuple):
    """What a report is made of, checked."""

    views: list[Any]
    view_names: list[str]
    ids: list[str]
    clusters: list[str]
    codes: np.ndarray  # (n,) position of every sample's cluster in ``clusters``
    estimator: Any
    affinity: Any
    certainty: np.ndarray | None
    certainty_of: str
    selection: Any
    n_agreeing: int  # settings whose consensus the clusters are, 0 for those of the estimator
    notes: list[str]
    scale: str | None
    command: str = ""
    repeat: str = ""
    title: str = ""


def build_page(content: Content, date: str) -> str:
    """Measure everything once and fill the template."""
    c = content
    n, k = len(c.ids), len(c.clusters)
    affinity = None if c.affinity is None else measure_affinity(c.affinity, c.codes, k)
    certainty, meaning = _certainty(c, affinity)
    plane = draw_map(c.affinity, c.views, k, c.scale)
    compared = [compare_view(X, c.codes, c.scale) for X in c.views]
    colors = cluster_colors(k)
    method = type(c.estimator).__name__
    by = f"Consensus of {plural(c.n_agreeing, 'setting')}" if c.n_agreeing else method
    title = c.title or f"{by}: {plural(k, 'cluster')} in {plural(n, 'sample')}"
    sections = [
        ("map", "Map", _map(c, plane)),
        ("clusters", "Clusters", _clusters(c, colors, certainty, compared)),
        ("affinity", "Affinity", _affinity(c, colors, affinity)),
        ("views", "Views", _views(c, compared)),
        ("certainty", "Certainty", _doubtful(c, certainty, meaning, affinity)),
        ("convergence", "Convergence", _convergence(c)),
        ("selection", "Selection", _selection(c)),
        ("count", "Number of clusters", _evidence(c)),
        ("run", "Run", _run(c, date)),
    ]
    sections = [part for part in sections if part[2]]
    data = {
        "n": n,
        "ids": [clean(name) for name in c.ids],
        "codes": packed(c.codes, "u2"),
        "certainty": packed(np.round(certainty * 10000), "u2"),
        "second": None if affinity is None else packed(affinity.second, "i2"),
        "axes": [packed(_levels(axis), "u2") for axis in plane.axes.T],
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
        tiles=_tiles(c, certainty),
        notes=_notes(c),
        links="".join(f'<a href="#{name}">{head}</a>' for name, head, _ in sections),
        sections="".join(
            f'<section id="{name}" aria-labelledby="h-{name}"><h2 id="h-{name}">{head}</h2>'
            f"{body}</section>"
            for name, head, body in sections
        ),
        version=escape(__version__),
        data=to_json(data),
        style=style,
        script=script,
        # Only this very script may run, and nothing may be fetched.
        hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _certainty(c: Content, affinity: Affinity | None) -> tuple[np.ndarray, str]:
    """Certainty of every sample, and a sentence that says what it is."""
    if c.certainty is not None and c.certainty_of == "selection":
        return c.certainty, (
            "Certainty is the share of the settings in the consensus that put a sample together "
            "with another one of its cluster (the mean over these), less that share for the best "
            "other cluster: 1 is agreement of all, 0 a sample between two clusters."
        )
    if c.certainty is not None:
        return c.certainty, "Certainty was given with the labels."
    if affinity is not None:
        return affinity.own, (
            "Certainty is the share of a sample\u2019s affinity that goes to its own cluster, "
            "itself left out. It is lower by nature with many clusters and a dense affinity: "
            "compare samples with each other, not with 1."
        )
    return center_margin(c.views, c.codes, c.scale), (
        "The method has no affinity. Certainty is how much nearer a sample is to the centre of its "
        "own cluster than to the next one: 0 is halfway between, 1 is at the centre."
    )


def _lead(c: Content, date: str) -> str:
    names = ", ".join(user(name) for name in c.view_names[:6])
    more = f" and {len(c.view_names) - 6} more" if len(c.view_names) > 6 else ""
    by = f"<strong>{escape(type(c.estimator).__name__)}</strong>"
    what = ""
    if c.n_agreeing:
        what = (
            " Where one estimator is shown (map, affinity, convergence), it is the setting nearest "
            f"to the consensus, {by}."
        )
        by = f"the <strong>consensus of {plural(c.n_agreeing, 'setting')}</strong>"
    return (
        f"{plural(len(c.ids), 'sample')} described by {plural(len(c.views), 'view')} "
        f"({names}{more}), put into {plural(len(c.clusters), 'cluster')} by {by} of polyspan "
        f'{escape(__version__)}.{what} <time class="date">{escape(date)}</time>'
    )


def _tiles(c: Content, certainty: np.ndarray) -> str:
    sizes = np.bincount(c.codes)
    tiles = [
        (number(len(c.ids)), "samples"[: 7 - (len(c.ids) == 1)]),
        (number(len(c.views)), "views"[: 5 - (len(c.views) == 1)]),
        (number(len(c.clusters)), "clusters"[: 8 - (len(c.clusters) == 1)]),
        (f"{number(sizes.min())}\u2013{number(sizes.max())}", "samples per cluster"),
        (f"{np.median(certainty):.2f}", "median certainty"),
    ]
    turns = getattr(c.estimator, "n_iter_", None)
    if turns is not None:
        tiles.append((number(turns), "turns of the solver"))
    return "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for value, label in tiles)


def _notes(c: Content) -> str:
    notes = [user(note) for note in c.notes]
    turns = getattr(c.estimator, "n_iter_", None)
    params = c.estimator.get_params(deep=False)
    last = [ys[-1] for ys in (getattr(c.estimator, "history_", None) or {}).values() if len(ys)]
    tol = params.get("tol")
    if turns is not None and turns == params.get("max_iter") and tol and max(last, default=0) > tol:
        notes.append(
            f"The solver stopped after max_iter={turns} turns before it converged to "
            f"tol={tol:g}: raise max_iter, or read the result with care."
        )
    own = getattr(c.estimator, "labels_", None)
    if own is not None and len(own) == len(c.codes):
        same = normalized_mutual_info_score(c.codes, own)
        if same < 1 - 1e-9:
            notes.append(
                "The clusters shown are not those of the estimator shown alone"
                f"{'' if c.n_agreeing else ' (a consensus, for instance)'}: the two agree by a "
                f"normalised mutual information of {same:.3f}."
            )
    if not notes:
        return ""
    items = "".join(f"<li>{note}</li>" for note in notes)
    return f'<ul class="notes" aria-label="Notes">{items}</ul>'


def _levels(axis: np.ndarray) -> np.ndarray:
    """A coordinate in 0..65535."""
    low, high = float(axis.min()), float(axis.max())
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-300):
        return np.full(len(axis), 32768)
    return np.round((axis - low) / (high - low) * 65535)


def _map(c: Content, plane: Map) -> str:
    what = (
        "Every point is a sample, placed by the principal axes of the spectral embedding: "
        "the eigenvectors of the normalised affinity that the clusters are made from."
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
    return Template(text).substitute(
        what=what, across="".join(options[:half]), up="".join(options[half:])
    )


def _clusters(
    c: Content, colors: list[str], certainty: np.ndarray, compared: list[Agreement]
) -> str:
    sizes = np.bincount(c.codes)
    shown = [j for j, one in enumerate(compared) if one.near is not None]
    heads = ["Cluster", "Samples", "Share", "Certainty"]
    heads += [f'<span class="in">near in</span> {user(c.view_names[j])}' for j in shown]
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
            " The last columns say which view holds a cluster together: the share of its "
            "samples\u2019 nearest neighbours in that view alone that are in the same cluster."
        )
    return text + "</p>" + table(heads, rows, name="Clusters")


def _heat(share: float) -> str:
    if not np.isfinite(share):
        return "\u2013"
    return f'<span class="heat" style="--p:{100 * share:.0f}%">{share:.2f}</span>'


def _affinity(c: Content, colors: list[str], affinity: Affinity | None) -> str:
    if affinity is None:
        return (
            f"<p>{escape(type(c.estimator).__name__)} makes its clusters without an affinity "
            "between samples, so there is none to show.</p>"
        )
    n = len(c.ids)
    order = np.argsort(c.codes, kind="stable")
    # Single dots of a sparse matrix would be too faint: fewer and larger ones show more.
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
    fine = ' class="fine"' if len(sizes) > 40 else ""  # frames must not hide what they frame
    block = -(-n // len(shades))
    average = (
        f" One dot is the mean over {block} \u00d7 {block} pairs of samples." if block > 1 else ""
    )
    return (
        "<p>How much every sample (row) has in common with every other (column), sorted by "
        "cluster: squares that stand out on the diagonal, and little elsewhere, are clusters that "
        f"hold together. Shades follow the square root.{average}</p>"
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
    """The pairs of clusters that are least apart."""
    k = len(between)
    if k < 2:
        return ""
    inside = np.diag(between)
    a, b = np.triu_indices(k, 1)
    # A cluster of one sample has no inside: the other's stands for both.
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
        "<div><h3>Closest pairs of clusters</h3><p>Mean affinity between the two, as a share of "
        "that inside them. Near 1, they may be one.</p>"
        + table(["Cluster", "and", "Between / inside"], rows, name="Closest pairs of clusters")
        + "</div>"
    )


def _views(c: Content, compared: list[Agreement]) -> str:
    best = max((one.nmi for one in compared if one.nmi is not None), default=None)
    bars = []
    for name, one in zip(c.view_names, compared, strict=True):
        if one.nmi is None:
            shown = f'<span class="why">{user(one.why)}</span>'
        else:
            shown = bar(one.nmi, f"{one.nmi:.3f}")
        first = ' class="best"' if one.nmi is not None and one.nmi == best else ""
        bars.append(f"<dt{first}>{user(name)}</dt><dd>{shown}</dd>")
    n = len(c.ids)
    used = sorted({one.n_used for one in compared if one.nmi is not None and one.n_used < n})
    part = ""
    if used:
        told = " to ".join(number(m) for m in dict.fromkeys((used[0], used[-1])))
        part = (
            f" Computed on {told} of the {n:,} samples: those without missing values, "
            "drawn at random when there are more than 2,000."
        )
    summaries = [summarize_view(X) for X in c.views]
    heads = ["View", "Features", "Zeros", "Missing", "Smallest", "Largest", "Typical size",
             "Spread of features", "Stored"]  # fmt: skip
    rows: list[list[tuple[str, Any]]] = []
    for name, s in zip(c.view_names, summaries, strict=True):
        missing = number(s.missing)
        if s.missing_samples:
            missing += f" ({plural(s.missing_samples, 'whole sample')})"
        spread = f"{number(s.spread[0])} to {number(s.spread[1])}"
        if s.constant:
            spread += f" ({s.constant:,} constant)"
        storage = escape(s.storage.replace(" ", "\u00a0"))
        rows.append([
            (user(name), name), (number(s.n_features), s.n_features), (percent(s.zeros), s.zeros),
            (missing, s.missing), (number(s.smallest), s.smallest), (number(s.largest), s.largest),
            (number(s.typical), s.typical), (spread, s.spread[1]), (storage, s.storage),
        ])  # fmt: skip
    return (
        "<h3>Which view agrees with the result</h3>"
        "<p>Normalised mutual information between the clusters and those of one view alone "
        "(spectral clustering of its 10-nearest-neighbours graph): 1 is the same clusters, 0 "
        f"nothing in common.{part}</p>"
        f'<dl class="bars">{"".join(bars)}</dl>'
        f"<h3>What is in the views</h3><p>All have {plural(n, 'sample')}. Values are as read, "
        "before scaling; the typical size is the median of those that are not zero, the spread the "
        "standard deviation of a feature, smallest to largest.</p>"
        + table(heads, rows, name="What is in the views")
    )


def _doubtful(c: Content, certainty: np.ndarray, meaning: str, affinity: Affinity | None) -> str:
    order = np.argsort(certainty, kind="stable")[:MOST_DOUBTFUL]
    heads = ["Sample", "Cluster", "Certainty"] + ["Next cluster"] * (affinity is not None)
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
        if affinity is not None:
            second = int(affinity.second[i])
            row.append((user(c.clusters[second]) if second >= 0 else "\u2013", second))
        rows.append(row)
    facts = {
        "lowest": certainty.min(),
        "one in ten is below": np.quantile(certainty, 0.1),
        "half are below": np.median(certainty),
        "mean": certainty.mean(),
    }
    lines = "".join(f"<dt>{name}</dt><dd>{value:.3f}</dd>" for name, value in facts.items())
    return (
        f'<p>{meaning}</p><div class="two"><div>{histogram(certainty, "Histogram of certainty")}'
        f'<dl class="facts">{lines}</dl></div><div><h3>Least certain samples</h3>'
        + table(heads, rows, name="Least certain samples")
        + "</div></div>"
    )


def _convergence(c: Content) -> str:
    history = getattr(c.estimator, "history_", None) or {}
    tol = c.estimator.get_params(deep=False).get("tol")
    series = {
        str(name): (list(range(1, len(values) + 1)), list(values))
        for name, values in history.items()
        if len(values)
    }
    chart = line_chart(
        series,
        "Residuals of every turn",
        "turn",
        log=True,
        mark_y=(tol, f"tol {number(tol, 1)}") if tol else None,
    )
    if not chart:
        return ""
    last = "".join(
        f"<dt>{user(name)}</dt><dd>{number(values[-1], 2)}</dd>"
        for name, (_, values) in series.items()
    )
    return (
        "<p>What the solver measured after every turn, on a logarithmic axis.</p>"
        f'<div class="two"><div>{chart}</div>'
        f'<div><h3>After the last turn</h3><dl class="facts">{last}</dl></div></div>'
    )


def _selection(c: Content) -> str:
    rows = getattr(c.selection, "table", None)
    if rows is None or len(rows) == 0:
        return ""
    rows = rows.to_dict("records") if hasattr(rows, "to_dict") else [dict(row) for row in rows]
    heads = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_cell(name, row.get(name)) for name in heads] for row in rows]
    return (
        f"<p>{plural(len(rows), 'setting')} that were tried without labels, and how they "
        "scored. A heading sorts.</p>"
        + table([user(name) for name in heads], cells, name="Settings that were tried")
    )


def _cell(name: Any, value: Any) -> tuple[str, Any]:
    """A cell of a table of unknown content."""
    if value is None:
        return "\u2013", None
    if isinstance(value, bool | np.bool_):
        return ("yes", "1") if value else ("no", "0")
    if isinstance(value, int | float | np.integer | np.floating):
        value = float(value)
        if str(name) in ("agreement", "score") and 0 <= value <= 1:
            return bar(value, f"{value:.3f}"), value
        return number(value), value
    text = value if isinstance(value, str) else setting(value)
    return user(text), text


EVIDENCE = {  # what `polyspan.selection.count_clusters` looks at
    "gaps": "how far the eigenvalues of the affinities drop after so many; large is good",
    "stability": "how well different settings agree on so many clusters; 1 is the same clusters",
    "scores": "gap times stability, as a share of the best; near 1 is as good",
    "votes": "how many settings alone have their largest gap there",
}


def _evidence(c: Content) -> str:
    """Scores of the candidate counts as a table and charts, other numbers as charts."""
    evidence = getattr(c.selection, "evidence", None)
    if not isinstance(evidence, Mapping) or not evidence:
        return ""
    columns, facts = _series(evidence)
    chosen = getattr(c.selection, "n_clusters", None)
    chosen = facts.pop("chosen", None) if chosen is None else chosen
    if _is_number(chosen) and facts.get("chosen") == chosen:
        del facts["chosen"]  # the table says it
    mark = float(chosen) if _is_number(chosen) else None
    out = ["<p>Why there are this many clusters.</p>"]
    facts = {name: words for name, words in EVIDENCE.items() if name in columns} | facts
    if chosen is not None:
        facts = {"number of clusters": chosen} | facts
    counts = sorted({x for series in columns.values() for x in series})
    spectra = {name: value for name, value in facts.items() if _is_list(value)}
    tables = {name: value for name, value in facts.items() if _is_table(value)}
    lines = "".join(
        f"<dt>{user(name)}</dt><dd>{_cell(name, value)[0]}</dd>"
        for name, value in facts.items()
        if name not in spectra and name not in tables
    )
    if lines:
        out.append(f'<dl class="facts">{lines}</dl>')
    if columns:
        heads = ["Clusters"] + [user(name) for name in columns] + ["Choice"] * (mark is not None)
        rows = []
        for x in counts:
            row = [(number(x), x)] + [_cell("", series.get(x)) for series in columns.values()]
            own = [("<strong>chosen</strong>", "chosen") if x == mark else ("", None)]
            rows.append(row + own * (mark is not None))
        out.append(table(heads, rows, name="Evidence for the number of clusters"))
    charts = {}  # scores differ in scale: one small chart each
    for name, series in columns.items():
        charts[name] = line_chart(
            {name: (list(series), list(series.values()))}, name, "number of clusters", mark_x=mark
        )
    for name, values in spectra.items():
        # Far beyond the candidates there is nothing to see.
        seen = values[: int(1.5 * counts[-1]) + 3] if counts else values
        charts[name] = line_chart(
            {name: (range(1, len(seen) + 1), seen)}, name, "number", mark_x=mark
        )
    if charts:
        inside = "".join(f"<div>{chart}</div>" for chart in charts.values() if chart)
        out.append(f'<div class="two">{inside}</div>')
    for name, value in tables.items():
        heads = list(dict.fromkeys(head for row in value for head in row))
        cells = [[_cell(head, row.get(head)) for head in heads] for row in value]
        inside = table([user(head) for head in heads], cells, name=name)
        out.append(f"<details><summary>{len(value)} {user(name)}</summary>{inside}</details>")
    return "".join(out)


def _series(evidence: Mapping[Any, Any]) -> tuple[dict[str, dict[float, float]], dict[str, Any]]:
    """Part evidence into series {name: {count: score}} and the rest."""
    if all(_is_number(name) for name in evidence):  # {2: .8, 3: .9} or {2: {"gap": .1}, ...}
        if all(isinstance(value, Mapping) for value in evidence.values()):
            names = dict.fromkeys(name for value in evidence.values() for name in value)
            evidence = {
                name: {count: value[name] for count, value in evidence.items() if name in value}
                for name in names
            }
        else:
            evidence = {"score": evidence}
    counts: list[float] | None = None
    for name in ("n_clusters", "candidates"):
        if counts is None and _is_list(evidence.get(name)):
            counts = [float(x) for x in evidence[name]]
            evidence = {key: value for key, value in evidence.items() if key != name}
    columns, facts = {}, {}
    for name, value in evidence.items():
        if isinstance(value, Mapping) and value and all(map(_is_count, value)):
            if all(map(_is_number, value.values())):
                columns[str(name)] = {float(x): float(y) for x, y in value.items()}
                continue
        elif counts is not None and _is_list(value) and len(value) == len(counts):
            columns[str(name)] = dict(zip(counts, map(float, value), strict=True))
            continue
        facts[str(name)] = value
    # A line goes from left to right, whatever order the candidates came in.
    return {name: dict(sorted(series.items())) for name, series in columns.items()}, facts


def _is_number(value: Any) -> bool:
    kinds = int | float | np.integer | np.floating
    return isinstance(value, kinds) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    """A number, also as JSON has it for a key."""
    return _is_number(value) or (isinstance(value, str) and value.isdecimal())


def _is_table(value: Any) -> bool:
    rows = isinstance(value, list | tuple) and len(value) > 0
    return rows and all(isinstance(row, Mapping) for row in value)


def _is_list(value: Any) -> bool:
    kinds = list | tuple | range | np.ndarray
    return isinstance(value, kinds) and len(value) > 0 and all(map(_is_number, value))


def _run(c: Content, date: str) -> str:
    params = c.estimator.get_params(deep=False)
    method = type(c.estimator).__name__
    defaults = inspect.signature(type(c.estimator)).parameters
    call = ", ".join(
        f"{name}={setting(value)}"
        for name, value in params.items()
        if name not in defaults or setting(value) != setting(defaults[name].default)
    )
    source = "polyspan" if type(c.estimator).__module__.startswith("polyspan.") else "..."
    python = f"from {source} import {method}\n\nlabels = {method}({call}).fit_predict(views)"
    about = (type(c.estimator).__doc__ or "").strip().split("\n")[0]
    head = f"<strong>{escape(method)}</strong>: {escape(about)}"
    if c.n_agreeing:
        python = _select_call(c)
        head = (
            f"The clusters are the consensus of {plural(c.n_agreeing, 'setting')}. Nearest to it, "
            f"with the parameters below, is {head}"
        )
    blocks = []
    if c.command:
        blocks.append(_code("command", "The command", c.command))
    if c.repeat:
        blocks.append(_code("repeat", "The command that repeats it", c.repeat))
    blocks.append(_code("python", "In Python", python))
    lines = "".join(
        f"<dt>{escape(name)}</dt><dd><code>{escape(setting(value))}</code></dd>"
        for name, value in params.items()
    )
    versions = "".join(
        f"<dt>{name}</dt><dd>{escape(version)}</dd>"
        for name, version in [
            ("polyspan", __version__),
            ("Python", platform.python_version()),
            *((name, metadata.version(name)) for name in ("numpy", "scipy", "scikit-learn")),
            ("date", date),
        ]
    )
    return (
        f"<p>{head}</p>{''.join(blocks)}"
        f'<div class="two"><div><h3>Parameters</h3><dl class="facts pairs">{lines}</dl></div>'
        f'<div><h3>Versions</h3><dl class="facts">{versions}</dl></div></div>'
    )


def _select_call(c: Content) -> str:
    """The call of `polyspan.selection.select` that gives the consensus."""
    asked = {"n_clusters": len(c.clusters)} | getattr(c.selection, "asked", {})
    shown = [setting(asked.pop("n_clusters"))]
    lines = ["from polyspan.selection import select"]
    if "estimator" in asked:
        method = asked["estimator"]
        source = "polyspan" if method.__module__.startswith("polyspan.") else "..."
        lines.insert(0, f"from {source} import {method.__name__}")
        shown.append(f"estimator={asked.pop('estimator').__name__}")
    if "grid" in asked:  # in full, as it can be pasted
        shown.append(f"grid={[dict(params) for params in asked.pop('grid')]!r}")
    shown += [f"{name}={setting(value)}" for name, value in asked.items()]
    return "\n".join([*lines, "", f"labels = select(views, {', '.join(shown)}).labels"])


def _code(name: str, head: str, text: str) -> str:
    return (
        f'<div class="code"><div class="code-head"><h3>{head}</h3>'
        f'<button type="button" data-copy="code-{name}">Copy</button></div>'
        f'<pre tabindex="0"><code id="code-{name}">{escape(text)}</code></pre></div>'
    )
