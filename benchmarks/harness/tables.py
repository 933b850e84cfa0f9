"""Tables from the rows of a store: mean(std) as in the paper, comparison, ranks, settings."""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from harness.budgets import BUDGETS, budgets
from harness.plan import SELECTIONS
from harness.store import Row, latest
from harness.summaries import (
    DIGITS,
    ORDER_WORDS,
    Summary,
    badness,
    ranks,
    rivals,
    split,
    summarize,
)
from polyspan.metrics import PAPER_SCORES, SCORES

HEADINGS = ("NMI", "ACC", "F-score", "AVG", "Precision", "RI")
NONE = "-"


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    bold: bool = False


class Table(NamedTuple):
    """A table before it is written in a particular format."""

    title: str
    note: str
    header: Sequence[str]
    rows: list[list[Cell]]


def report(rows: list[Row], format: str = "markdown") -> str:
    """Write all tables for the rows of a store.

    Parameters
    ----------
    rows : list of dict
        From `read_rows`.
    format : {"markdown", "latex", "csv"}
        CSV gives one table with everything in columns; the others give several tables.

    Returns
    -------
    str

    Examples
    --------
    >>> from harness import report
    >>> scores = dict.fromkeys(SCORES, 0.5)
    >>> row = {"protocol": "mine", "dataset": "planted", "source": {"name": "subspaces"},
    ...        "method": "GRMSC", "paper": "GRMSC", "selection": "default", "params": {}, "seed": 0,
    ...        "stage": "final", "key": "1", "status": "ok", "reason": None, "converged": True,
    ...        "seconds": 1.0, **scores}
    >>> print(report([row, row | {"key": "2", "seed": 1, "nmi": 0.7}]))
    # mine
    ...
    | planted | GRMSC | default | **0.6000(0.1414)** | **0.5000(0.0000)** | ...
    """
    writers: dict[str, Callable[[list[Row]], str]] = {
        "markdown": lambda rows: _pages(rows, "# {}\n", _markdown),
        "latex": lambda rows: _pages(rows, "% {}\n", _latex),
        "csv": lambda rows: _csv(summarize(rows)),
    }
    if format not in writers:
        raise ValueError(f"format must be {' or '.join(map(repr, writers))}; got {format!r}")
    if not rows:
        raise ValueError("the store has no rows: there is nothing to report")
    return writers[format](rows)


def tables(rows: list[Row]) -> list[Table]:
    """The tables of one protocol; those that would be empty are left out."""
    found = summarize(rows)
    made = [_results(found), _beside_the_paper(found), _ranking(found), _equal_budgets(rows)]
    made += [_settings(found), _failures(latest(rows), found)]
    return [table for table in made if table.rows]


def _results(found: list[Summary]) -> Table:
    best: dict[tuple[str, str, str], float] = {}
    for one in found:
        for name in one.mean:
            group = one.dataset, rivals(one), name
            best[group] = min(best.get(group, math.inf), badness(one, name))
    rows = []
    for one in found:
        cells = [
            Cell(
                _mean_std(one.mean.get(name), one.std.get(name)),
                name in one.mean and badness(one, name) == best[one.dataset, rivals(one), name],
            )
            for name in PAPER_SCORES
        ]
        seconds = NONE if one.seconds is None else f"{one.seconds:.2f}"
        last = (str(one.runs), _failed(one), str(one.not_converged), seconds)
        rows.append([*_texts(one.dataset, one.method, selected(one)), *cells, *_texts(*last)])
    orders = " and ".join(dict.fromkeys(ORDER_WORDS[one.order] for one in found))
    note = (
        f"Samples are {orders}. Mean(std) over the successful runs; for AVG (average entropy), "
        "lower is better. Bold is best among the methods of the same selection on the same data: "
        "default is one setting for all data, tuned was chosen using the labels among as many "
        "settings as its number says (a method with nothing to tune is compared with these), "
        "label-free without labels. Seconds are for one fit."
    )
    if stale := sum(one.superseded for one in found):
        note += f" {stale} runs at settings that are no longer the chosen ones are not included."
    header = ("data", "method", "selection", *HEADINGS)
    return Table("Results", note, (*header, "runs", "failed", "not converged", "seconds"), rows)


def _beside_the_paper(found: list[Summary]) -> Table:
    rows = []
    for one in found:
        if not one.published:
            continue
        cells = []
        for name in PAPER_SCORES:
            mean, std = one.published[name]
            text = _mean_std(mean, std)
            if name in one.mean:
                text += f" {one.mean[name] - mean:+.{DIGITS}f}"
            cells.append(Cell(text))
        rows.append([*_texts(one.dataset, one.method, selected(one), one.paper), *cells])
    note = "The paper's values, and how far ours are above (+) or below (-) them."
    header = ("data", "method", "selection", "paper's row", *HEADINGS)
    return Table("Comparison with the paper", note, header, rows)


def _ranking(found: list[Summary]) -> Table:
    by_method, most = ranks(found), dict[tuple[str, str], Summary]()
    for one in sorted(found, key=lambda one: one.settings):
        most[one.selection, one.method] = one  # grids may be smaller where there are few samples
    order = sorted(
        by_method, key=lambda key: (SELECTIONS.index(key[0]), np.mean(by_method[key]["nmi"]))
    )
    rows = [
        [
            *_texts(selected(most[selection, method]), method),
            *_texts(str(len(by_method[selection, method]["nmi"]))),
            *_texts(*(f"{np.mean(by_method[selection, method][s]):.2f}" for s in PAPER_SCORES)),
        ]
        for selection, method in order
    ]
    note = (
        "Mean rank over the data sets (1 is best), among the methods of the same selection; those "
        "with nothing to tune rank among the tuned. A method without a result is last; means over "
        "different data sets cannot be compared."
    )
    return Table("Ranks", note, ("selection", "method", "data sets", *HEADINGS), rows)


def _equal_budgets(rows: list[Row]) -> Table:
    found = budgets(rows)
    if all(len(one.curve) == 1 for one in found):
        return Table("", "", (), [])
    lines = []
    for one in found:
        n = len(one.curve)
        cells = [f"{one.after(m):.{DIGITS}f}" for m in (*BUDGETS, n)]
        words = one.selection + f" ({n})" * (n > 1)
        lines.append(_texts(one.dataset, one.method, words, *cells))
    note = (
        "The best NMI to expect after so many settings of the grid, tried at random without "
        "repetition: computed exactly from all settings, each with its NMI with the first seed (0 "
        "if it failed). After all of them it is the best, as is any later column; a method without "
        "a grid has its mean everywhere."
    )
    heads = (*(f"after {m}" for m in BUDGETS), "after all")
    header = ("data", "method", "selection", *heads)
    return Table("Equal budgets", note, header, lines)


def _settings(found: list[Summary]) -> Table:
    rows = [
        _texts(one.dataset, one.method, selected(one), _setting(one), str(one.settings or ""))
        for one in found
    ]
    note = "Parameters that were set or chosen (all others at their defaults), and settings tried."
    header = ("data", "method", "selection", "setting", "tried")
    return Table("Settings", note, header, rows)


def _failures(rows: list[Row], found: list[Summary]) -> Table:
    tried = {(one.dataset, one.method, one.selection): selected(one) for one in found}
    counts = Counter(
        (*(row[name] for name in ("dataset", "method")),
         tried[row["dataset"], row["method"], row["selection"]],
         *(row[name] for name in ("stage", "status", "reason")))
        for row in rows if row["status"] != "ok"
    )  # fmt: skip
    lines = [[*_texts(*key[:5], str(n), key[5])] for key, n in sorted(counts.items())]
    header = ("data", "method", "selection", "stage", "status", "jobs", "reason")
    return Table("Failed jobs", "Jobs without a result.", header, lines)


def selected(one: Summary) -> str:
    """How the setting was selected: if it was tuned, with the number of settings tried.

    Examples
    --------
    >>> selected(Summary("p", "NGs", {"name": "ngs"}, "GRMSC", "GRMSC", "tuned", settings=1134))
    'tuned (1134)'
    """
    return f"tuned ({one.settings})" if one.settings else one.selection


def _texts(*texts: str) -> list[Cell]:
    return [Cell(text) for text in texts]


def _mean_std(mean: float | None, std: float | None) -> str:
    if mean is None:
        return NONE
    deviation = "" if std is None or math.isnan(std) else f"({std:.{DIGITS}f})"
    return f"{mean:.{DIGITS}f}{deviation}"


def _failed(one: Summary) -> str:
    parts = [(one.failed_runs, "run"), (one.failed_settings, "setting")]
    return ", ".join(f"{n} {word}{'s' * (n > 1)}" for n, word in parts if n) or "0"


def _setting(one: Summary) -> str:
    if one.params is None:
        pending = one.settings > one.failed_settings
        return "no final run yet" if pending else "no setting gave a result"
    return ", ".join(f"{name}={value}" for name, value in one.params.items()) or "default"


# --- formats ---


def _pages(rows: list[Row], heading: str, write: Callable[[Table], str]) -> str:
    """One page per protocol in the store, and per order of the samples."""
    parts = []
    for title, own in split(rows).items():
        parts.append(heading.format(title))
        parts += map(write, tables(own))
    return "\n".join(parts)


def _markdown(table: Table) -> str:
    def line(cells: Iterable[Cell]) -> str:
        texts = [re.sub(r"\s+", " ", cell.text).replace("|", "\\|") for cell in cells]
        bold = [cell.bold for cell in cells]
        return f"| {' | '.join(f'**{t}**' if b else t for t, b in zip(texts, bold, strict=True))} |"

    head = [line(_texts(*table.header)), "|" + "---|" * len(table.header)]
    return "\n".join([f"## {table.title}\n", f"{table.note}\n", *head, *map(line, table.rows), ""])


def _latex(table: Table) -> str:
    def line(cells: Iterable[Cell]) -> str:
        texts = [(_escape(cell.text), cell.bold) for cell in cells]
        return " & ".join(rf"\textbf{{{t}}}" if bold else t for t, bold in texts) + r" \\"

    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_escape(table.title)}. {_escape(table.note)}}}",
            rf"\begin{{tabular}}{{{'l' * len(table.header)}}}",
            r"\hline",
            line(_texts(*table.header)),
            r"\hline",
            *map(line, table.rows),
            r"\hline",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _escape(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {sign: f"\\{sign}" for sign in "&%$#_{}"}
    return "".join(special.get(letter, letter) for letter in re.sub(r"\s+", " ", text))


def _csv(found: list[Summary]) -> str:
    buffer = io.StringIO()
    lines = [_csv_line(one) for one in found]
    writer = csv.DictWriter(buffer, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue()


def _csv_line(one: Summary) -> dict[str, Any]:
    """Everything known about a summary, in columns; unknown values are empty."""
    plain = ("protocol", "dataset", "method", "selection", "order", "runs", "failed_runs",
             "settings", "failed_settings", "not_converged", "superseded", "seconds")  # fmt: skip
    line: dict[str, Any] = {name: getattr(one, name) for name in plain}
    line["setting"] = _setting(one)
    for name in SCORES:
        line[f"{name}_mean"] = one.mean.get(name)
        std = one.std.get(name, math.nan)
        line[f"{name}_std"] = None if math.isnan(std) else std
    for name in PAPER_SCORES:
        line[f"{name}_paper"], line[f"{name}_paper_std"] = one.published.get(name, (None, None))
        both = name in one.published and name in one.mean
        line[f"{name}_difference"] = one.mean[name] - one.published[name][0] if both else None
    return line
