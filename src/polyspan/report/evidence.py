"""What the page shows of the number of clusters: the evidence for it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polyspan.report.charts import line_chart
from polyspan.report.content import Content
from polyspan.report.parts import number, table, user
from polyspan.report.settings import cell

EVIDENCE = {  # what `polyspan.selection.count_clusters` looks at
    "gaps": "how far the eigenvalues of the affinities drop after so many; large is good",
    "stability": "how well different settings agree on so many clusters; 1 is the same clusters",
    "scores": "gap times stability, as a share of the best; near 1 is as good",
    "votes": "how many settings alone have their largest gap there",
}


def show_evidence(c: Content) -> str:
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
        f"<dt>{user(name)}</dt><dd>{cell(name, value)[0]}</dd>"
        for name, value in facts.items()
        if name not in spectra and name not in tables
    )
    if lines:
        out.append(f'<dl class="facts">{lines}</dl>')
    if columns:
        heads = ["Clusters"] + [user(name) for name in columns] + ["Choice"] * (mark is not None)
        rows = []
        for x in counts:
            row = [(number(x), x)] + [cell("", series.get(x)) for series in columns.values()]
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
        cells = [[cell(head, row.get(head)) for head in heads] for row in value]
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
