"""The section on the number of clusters: the evidence for it."""

from typing import Any

from polyspan.report.charts import line_chart
from polyspan.report.markup import cell, number, table, user
from polyspan.selection.count import Evidence

Series = dict[int, float]  # by number of clusters, in ascending order for the charts

MEANING = {
    "gaps": "drop in the eigenvalues of the affinities after this number; larger is better",
    "stability": "agreement between settings with this number of clusters; 1 is perfect",
    "scores": "gap times stability, divided by the best; near 1 is about as good as the best",
    "votes": "number of settings that have their own largest gap here",
}
RULES = {
    "settings": "gap times stability between settings, as in the second table",
    "views": "modularity times agreement: what the views say to the clusters of their mean graph",
    "mean graph": "drop in the eigenvalues of the mean of the views' neighbor graphs",
}


def show_evidence(evidence: Evidence | None) -> str:
    """Why there are this many clusters: scores of the candidates, the spectrum, the settings."""
    if not evidence:
        return ""
    chosen = evidence["chosen"]
    columns = score_columns(evidence)
    facts = {"number of clusters": number(chosen)}
    facts |= {name: user(words) for name, words in MEANING.items()}
    lines = "".join(f"<dt>{user(name)}</dt><dd>{shown}</dd>" for name, shown in facts.items())
    return (
        _shortlist(evidence)
        + f'<p>Why there are this many clusters.</p><dl class="facts">{lines}</dl>'
        + _scores(columns, chosen)
        + _charts(columns, evidence["eigenvalues"], chosen)
        + _settings(evidence)
    )


def _shortlist(evidence: Evidence) -> str:
    """The numbers to consider, and how the clusters of one split in the next."""
    listed = evidence.get("shortlist")
    if not listed:  # written before there was a list
        return ""
    names = ["score", "gap", "stability", "modularity", "agreement"]
    rows = [
        [
            cell(row["n_clusters"]),
            *(cell(row[name]) for name in names),
            (user(", ".join(row["rules"])), ", ".join(row["rules"])),
        ]
        for row in listed
    ]
    heads = ["Clusters", *map(user, names), "Proposed by"]
    facts = "".join(f"<dt>{user(rule)}</dt><dd>{user(words)}</dd>" for rule, words in RULES.items())
    return (
        "<p>Numbers to consider, the best first. Several can be right: large clusters may have "
        "smaller ones within them.</p>"
        + table(heads, rows, name="Short list of numbers of clusters")
        + f'<p>The rules that propose them:</p><dl class="facts">{facts}</dl>'
        + _nesting(evidence.get("nesting", []))
    )


def _nesting(steps: list[dict[str, Any]]) -> str:
    """Which clusters split, a line for every two numbers."""
    lines = []
    for step in steps:
        splits = [f"{j} into {_words(parts)}" for j, parts in step["splits"].items()]
        told = "; ".join(splits) or "no cluster splits"
        lines.append(f"<li>{step['from']} to {step['to']} clusters: {user(told)}</li>")
    if not lines:
        return ""
    return (
        "<details><summary>Which clusters split</summary><p>Clusters of the mean graph, numbered "
        "by size from 0; parts of less than 10% are left out. The numbers are not those of the "
        f"labels.</p><ul>{''.join(lines)}</ul></details>"
    )


def _words(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def score_columns(evidence: Evidence) -> dict[str, Series]:
    """The evidence for every number of clusters, by name.

    Examples
    --------
    >>> evidence = Evidence(
    ...     candidates=[9, 2], gaps=[0.3, 0.2], stability=[1.0, 0.5], scores=[1.0, 0.3],
    ...     votes={"2": 0, "5": 1, "9": 3},
    ... )
    >>> score_columns(evidence)["gaps"], score_columns(evidence)["votes"]
    ({2: 0.2, 9: 0.3}, {2: 0, 5: 1, 9: 3})
    """
    candidates = evidence["candidates"]
    columns: dict[str, Series] = {
        "gaps": dict(zip(candidates, evidence["gaps"], strict=True)),
        "stability": dict(zip(candidates, evidence["stability"], strict=True)),
        "scores": dict(zip(candidates, evidence["scores"], strict=True)),
        "votes": {int(count): votes for count, votes in evidence["votes"].items()},
    }
    return {name: dict(sorted(series.items())) for name, series in columns.items()}


def _counts(columns: dict[str, Series]) -> list[int]:
    return sorted({count for series in columns.values() for count in series})


def _scores(columns: dict[str, Series], chosen: int) -> str:
    """The table: one row for every number with any evidence, and the chosen one."""
    heads = ["Clusters", *map(user, columns), "Choice"]
    rows = [
        [
            cell(count),
            *(cell(series.get(count)) for series in columns.values()),
            ("<strong>chosen</strong>", "chosen") if count == chosen else ("", None),
        ]
        for count in sorted({*_counts(columns), chosen})
    ]
    return table(heads, rows, name="Evidence for the number of clusters")


def _charts(columns: dict[str, Series], eigenvalues: list[float], chosen: int) -> str:
    """One small chart for each, because they differ in scale."""
    charts = [
        line_chart(
            {name: (list(series), list(series.values()))}, name, "number of clusters", mark_x=chosen
        )
        for name, series in columns.items()
    ]
    # Far beyond the candidates there is nothing to see.
    seen = eigenvalues[: int(1.5 * _counts(columns)[-1]) + 3]
    spectrum = {"eigenvalues": (range(1, len(seen) + 1), seen)}
    charts.append(line_chart(spectrum, "eigenvalues", "number", mark_x=chosen))
    return f'<div class="two">{"".join(f"<div>{chart}</div>" for chart in charts)}</div>'


def _settings(evidence: Evidence) -> str:
    """The settings whose spectra were used, collapsed."""
    settings = evidence["settings"]
    names = list(dict.fromkeys(name for params in settings for name in params))
    rows = [[cell(params.get(name)) for name in names] for params in settings]
    inside = table([user(name) for name in names], rows, name="settings")
    return f"<details><summary>{len(rows)} {user('settings')}</summary>{inside}</details>"
