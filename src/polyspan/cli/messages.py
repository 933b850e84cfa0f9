"""Printed text: errors and notes on standard error, and the output of `polyspan fit`."""

import shlex
import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyspan.cli.files import Targets, is_annotated
from polyspan.runtime.messages import first_few, plural, printable

if TYPE_CHECKING:
    import numpy as np

    from polyspan.cli.work import Found
    from polyspan.datasets import MatchedViews


def fail(error: object, code: int) -> int:
    """Print an error; returns the exit code."""
    print(printable(f"polyspan: {error}"), file=sys.stderr)
    return code


def note(words: str) -> None:
    """Print something the user should know although nothing went wrong."""
    print(printable(f"polyspan: note: {words}"), file=sys.stderr)


def say(words: str) -> None:
    """Print a result."""
    print(printable(words), flush=True)


def views_text(data: "MatchedViews") -> str:
    """The views as a small table, and how their samples were matched."""
    rows = [("view", "file", "samples", "features")]
    for name, file, n, view in zip(data.view_names, data.files, data.rows, data.views, strict=True):
        rows.append((name, file, str(n), str(view.shape[1])))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"{a:{widths[0]}}  {b:{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}"
        for a, b, c, d in rows
    ]
    n = data.views[0].shape[0]
    if len(data.views) == 1:
        lines.append(
            f"{n} samples of one view" + f", named by {data.id_name!r}" * bool(data.id_name)
        )
    elif data.matched_by == "id":
        column = "the index" if not data.id_name else f"{data.id_name!r}"
        lines.append(f"{n} samples matched by id ({column})")
    else:
        lines.append(f"{n} samples matched by order: row 1 with row 1, and so on")
    verb = "left out" if data.dropped else "kept without it"
    for view, samples in data.lacking.items():
        what = plural(len(samples), "sample lacks", "samples lack")
        lines.append(f"{what} {view}, {verb}: {first_few(samples, 5)}")
    return "\n".join(lines)


def found_text(found: "Found", width: int = 100, *, verbose: bool = False) -> str:
    """The result: clusters, method or consensus, evidence, sizes, certainty; ``verbose``: members.

    A line is at most ``width`` characters long.
    """
    import numpy as np

    from polyspan.selection.pool import tell_lost, text_table

    names = np.unique(found.labels)
    auto = " (number estimated from the data)" if found.evidence is not None else ""
    head = f"{plural(len(names), 'cluster')}{auto} in {found.seconds:.1f} s: "
    table = getattr(found.estimator, "table_", None)
    if table is None:
        lines = [head + _call(found.estimator)]
    else:
        ran = sum(row["status"] == "ok" for row in table)
        used = sum(row["weight"] > 0 for row in table)
        told = f"consensus of {plural(used, 'member')}, chosen without labels from {ran} that ran"
        see = '; see "members" in the settings file'
        lines = [
            *_structure_lines(found.estimator),
            head + told,
            *(sentence.removesuffix(".") + see for sentence in tell_lost(table)),
            f"nearest to the consensus: {_call(found.estimator.best_estimator_)}",
            *_rival_lines(found.estimator),
        ]
    if found.evidence is not None:
        drawn = found.evidence.get("drawn", "")
        told = count_text(found.evidence) + (f"; {drawn}" if drawn else "")
        lines.append(f"numbers to consider, best first: {told}")
    text = wrapped([*lines, *sizes_lines(found.labels), *certainty_lines(found.certainty)], width)
    return text if table is None or not verbose else f"{text}\n\n{text_table(table, 'group')}"


def sizes_lines(labels: "np.ndarray") -> list[str]:
    """How many samples each cluster has; -1 is none."""
    import numpy as np

    names, sizes = np.unique(labels[labels >= 0], return_counts=True)
    counts = ", ".join(f"{name}: {size}" for name, size in zip(names, sizes, strict=True))
    return [f"samples per cluster  {counts or 'none'}"]


def certainty_lines(certainty: "np.ndarray | None") -> list[str]:
    """How certain the clusters are, where that is known."""
    if certainty is None:
        return []
    few = plural(int((certainty < 0.5).sum()), "sample")
    return [f"certainty {certainty.mean():.2f} on average, below 0.5 for {few}"]


def wrapped(lines: Iterable[str], width: int = 100) -> str:
    """Lines of at most ``width`` characters."""
    return "\n".join("\n".join(textwrap.wrap(line, width)) for line in lines)


def _structure_lines(model: Any) -> list[str]:
    """What to know first: no structure; and how the views were scaled."""
    known = model.structure_evidence_
    first = [f"structure: {known['verdict']} - {known['sentence']}"]
    return first + [f"scaling of {sentence}" for sentence in model.scaling_]


def _rival_lines(model: Any) -> list[str]:
    """Where the members fall into camps."""
    if not (rivals := model.alternatives_):
        return []
    shares = ", ".join(f"{one['share']:.0%}" for one in rivals)
    return [
        f"the members disagree: {plural(len(rivals), 'rival clustering')} with "
        f'{shares} of the votes; see "alternatives" in the settings file'
    ]


def _call(model: Any) -> str:
    """The estimator as you would type it, on one line."""
    return " ".join(repr(model).split())


def count_text(evidence: Mapping[str, Any]) -> str:
    """The short list of numbers of clusters, the chosen one first, and the rules behind each.

    Examples
    --------
    >>> row = {"n_clusters": 3, "rules": ["views", "mean graph"], "score": 0.874}
    >>> count_text({"shortlist": [row, {"n_clusters": 9, "rules": [], "score": 0.02}]})
    '3 (score 0.87 by views and mean graph), 9 (score 0.02)'
    """
    return ", ".join(
        f"{row['n_clusters']} (score {row['score']:.2f}"
        f"{' by ' * bool(row['rules'])}{' and '.join(row['rules'])})"
        for row in evidence["shortlist"]
    )


def files_text(targets: Targets, figures: str | Path | None = None) -> str:
    """The files that were written, and what each contains."""
    again = f"settings; `{targets.repeat_command}` repeats this run"
    what = "copy of the data with the labels in obs" if is_annotated(targets.labels) else "labels"
    rows = [(str(targets.labels), what), (str(targets.settings), again)]
    if targets.report is not None:
        rows.append((str(targets.report), "report; open it in a browser"))
    if targets.model is not None:
        size = targets.model.stat().st_size / 1e6
        predict = shlex.join(["polyspan", "predict", str(targets.model)])
        words = f"model, {size:.1f} MB; `{predict} FILE ...` finds the clusters of new samples"
        rows.append((str(targets.model), words))
    if figures is not None:
        rows.append((str(figures), "figures (.svg, .png, .pdf) and tables (.csv) of the report"))
    width = max(len(path) for path, _ in rows)
    return "\n".join(f"{path:{width}}  {words}" for path, words in rows)
