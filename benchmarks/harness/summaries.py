"""Summaries of the runs of a method on a data set: means over seeds, ranks, the paper's values."""

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from operator import itemgetter
from typing import Any

import numpy as np

from harness.plan import SELECTIONS
from harness.store import Row, latest
from polyspan.metrics import PAPER_SCORES, SCORES

_GROUP = itemgetter("protocol", "dataset", "selection", "method")
LOWER_IS_BETTER = ("avg_entropy",)
DIGITS = 4
ORDER_WORDS = {
    "shuffled": "shuffled",
    "file": "in the order of the file",
    "sorted": "sorted by class",
}


@dataclass
class Summary:
    """All runs of a method on a data set, under one selection."""

    protocol: str
    dataset: str
    source: dict[str, Any]
    method: str
    paper: str
    selection: str
    order: str = "file"  # of the samples
    params: dict[str, Any] | None = None  # None: no run was started
    runs: int = 0
    failed_runs: int = 0
    settings: int = 0  # tried in the tuning stage
    failed_settings: int = 0
    not_converged: int = 0
    superseded: int = 0  # runs at a setting that is no longer the chosen one
    seconds: float | None = None
    mean: dict[str, float] = field(default_factory=dict)
    std: dict[str, float] = field(default_factory=dict)

    @property
    def published(self) -> dict[str, tuple[float, float]]:
        """The paper's mean and deviation, by score; empty if the paper has none."""
        whole = len(self.source) == 1  # a subset is different data
        return read_paper().get((self.source["name"], self.paper), {}) if whole else {}


def summarize(rows: list[Row]) -> list[Summary]:
    """Means and deviations over seeds, in the paper's order of data sets and methods.

    If a method was run at several settings (the grid was changed and tuned again), they are not
    mixed: only the setting of the last run counts. Nor are runs with samples in different orders.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in latest(rows):
        groups.setdefault((*_GROUP(row), order_of(row)), []).append(row)
    return sorted(map(_summary, groups.values()), key=_place)


def order_of(row: Mapping[str, Any]) -> str:
    """The order of the samples in a run; rows that do not say it were run in that of the file.

    Examples
    --------
    >>> order_of({"order": "shuffled"}), order_of({})
    ('shuffled', 'file')
    """
    order: str = row.get("order", "file")
    return order


def split(rows: list[Row]) -> dict[str, list[Row]]:
    """The rows that belong in the same tables, by title: those of one protocol and one order.

    Examples
    --------
    >>> rows = [{"protocol": "a", "order": "file"}, {"protocol": "b"},
    ...         {"protocol": "a", "order": "shuffled"}]
    >>> list(split(rows))
    ['a, samples in the order of the file', 'a, samples shuffled', 'b']
    """
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["protocol"], order_of(row)), []).append(row)
    several = Counter(protocol for protocol, _ in found)
    return {
        f"{protocol}, samples {ORDER_WORDS[order]}" if several[protocol] > 1 else protocol: own
        for (protocol, order), own in sorted(found.items())
    }


def _summary(rows: list[Row]) -> Summary:
    names = ("protocol", "dataset", "source", "method", "paper", "selection")
    found = Summary(**{name: rows[-1][name] for name in names}, order=order_of(rows[-1]))
    tuning = [row for row in rows if row["stage"] == "tune"]
    found.settings = len({_text(row["params"]) for row in tuning})
    found.failed_settings = len({_text(r["params"]) for r in tuning if r["status"] != "ok"})
    finals = [row for row in rows if row["stage"] == "final"]
    if not finals:
        return found
    found.params = finals[-1]["params"]
    current = [row for row in finals if row["params"] == found.params]
    found.superseded = len(finals) - len(current)
    well = [row for row in current if row["status"] == "ok"]
    found.runs, found.failed_runs = len(well), len(current) - len(well)
    if well:
        found.not_converged = sum(row["converged"] is False for row in well)
        found.seconds = float(np.mean([row["seconds"] for row in well]))
        for name in SCORES:
            values = [row[name] for row in well]
            found.mean[name] = float(np.mean(values))
            # n - 1, as in the programs of this field; one run has no deviation
            found.std[name] = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return found


def _text(params: Mapping[str, Any]) -> str:
    return repr(sorted(params.items()))


@cache
def read_paper() -> dict[tuple[str, str], dict[str, tuple[float, float]]]:
    """Tables 2 and 3 of the paper: (data set, method) -> score -> (mean, deviation).

    Examples
    --------
    >>> read_paper()["ngs", "GRMSC"]["nmi"]
    (0.9547, 0.0)
    """
    text = resources.files("harness").joinpath("paper.csv").read_text("utf-8")
    return {
        (line["dataset"], line["method"]): {
            name: (float(line[name]), float(line[f"{name}_std"])) for name in PAPER_SCORES
        }
        for line in csv.DictReader(text.splitlines())
    }


def ranks(summaries: Iterable[Summary]) -> dict[tuple[str, str], dict[str, list[float]]]:
    """Rank of every method on each data set: (selection, method) -> score -> one rank per data set.

    Only methods of the same selection are compared; those with nothing to tune are among the tuned.
    Methods with equal means, as printed, share the mean of their ranks; a method without a result
    is last.
    """
    groups: dict[tuple[str, str, str], list[Summary]] = {}
    for one in summaries:
        groups.setdefault((one.protocol, one.dataset, rivals(one)), []).append(one)
    found: dict[tuple[str, str], dict[str, list[float]]] = {}
    for group in groups.values():
        for name in PAPER_SCORES:
            values = [badness(one, name) for one in group]
            for one, value in zip(group, values, strict=True):
                better, equal = sum(v < value for v in values), values.count(value)
                lists = found.setdefault((one.selection, one.method), {})
                lists.setdefault(name, []).append(better + (equal + 1) / 2)
    return found


def rivals(one: Summary) -> str:
    """The selection that a method is compared with: its own, or tuned if there is nothing to tune.

    Examples
    --------
    >>> rivals(Summary("p", "NGs", {"name": "ngs"}, "GMC", "GMC", "nothing to tune"))
    'tuned'
    """
    return "tuned" if one.selection == "nothing to tune" else one.selection


def badness(one: Summary, name: str) -> float:
    """The mean as printed, negated if needed so that lower is better; infinite without a result."""
    if name not in one.mean:
        return math.inf
    value = round(one.mean[name], DIGITS)
    return value if name in LOWER_IS_BETTER else -value


def _place(one: Summary) -> tuple[Any, ...]:
    """Sort key: the paper's order with GRMSC last, then whatever is not in the paper, by name."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in read_paper()))
    methods = [method for method in dict.fromkeys(m for _, m in read_paper()) if method != "GRMSC"]
    methods.append("GRMSC")

    def position(name: str, names: list[str]) -> int:
        return names.index(name) if name in names else len(names)

    return (
        one.protocol,
        one.order,
        position(one.source["name"], datasets),
        one.dataset,
        SELECTIONS.index(rivals(one)),
        position(one.paper, methods),
        one.method,
    )
