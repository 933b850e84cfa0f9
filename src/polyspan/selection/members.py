"""The members of a consensus: each is fitted, and has a row in the table."""

import html
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from polyspan.base import MultiViewClusterer
from polyspan.inputs.views import Views
from polyspan.progress import Tell
from polyspan.runtime.messages import own_warnings, warn_user
from polyspan.solvers.loop import OutOfTime, stopping

Row = dict[str, Any]
COLUMNS = ("members", "ran", "used", "agreement", "seconds")  # of the short table


def fit_members(
    members: Sequence[MultiViewClusterer],
    views: Views,
    *,
    deadline: float | None = None,
    reason: str = "",
    tell: Tell | None = None,
    keep: bool = False,
) -> tuple[list[Row], np.ndarray]:
    """Fit every member; returns a row for each, and the labels of those that ran.

    No member is started after the deadline (in terms of `time.perf_counter`), one at work then is
    stopped, and the rows of both give ``reason``; at least one runs. If a member fails, its row has
    the error, and the others go on. Copies are fitted, so that no member keeps an n x n matrix,
    unless ``keep`` says to fit the members themselves.
    """
    table: list[Row] = []
    labels: list[np.ndarray] = []
    for done, model in enumerate(members):
        row = new_row(model)
        table.append(row)
        if labels and deadline is not None and time.perf_counter() > deadline:
            row["reason"] = reason
            continue
        if tell is not None:
            tell(done, len(members), member_name(row), seconds_left(table, members[done:]))
        with stopping(deadline if labels else None):
            found = _fit(model if keep else clone(model), views, row, reason)
        if found is not None:
            labels.append(found)
    if tell is not None:
        tell(len(members), len(members), "done")
    _check_failures(table)
    return table, np.array(labels)


def seconds_left(table: Sequence[Row], members: Sequence[MultiViewClusterer]) -> float | None:
    """How long members will take, by those of the same method that ran; None if none ran.

    A method that has not run yet counts as the mean of the methods that have.

    Examples
    --------
    >>> from polyspan import GRMSC, LRR
    >>> table = [new_row(GRMSC()) | {"status": "ok", "seconds": seconds} for seconds in (2.0, 4.0)]
    >>> seconds_left(table, [GRMSC(), GRMSC(), LRR()])
    9.0
    """
    taken: dict[str, list[float]] = {}
    for row in table:
        if row["status"] == "ok":
            taken.setdefault(row["method"], []).append(row["seconds"])
    if not taken:
        return None
    means = {method: float(np.mean(seconds)) for method, seconds in taken.items()}
    other = float(np.mean(list(means.values())))
    return sum(means.get(type(model).__name__, other) for model in members)


def new_row(model: MultiViewClusterer) -> Row:
    """Return the row of the table for a member that has not run yet."""
    values = model.get_params(deep=False)
    plain = type(model)().get_params(deep=False)
    method = type(model).__name__
    own = values.keys() - {"n_clusters", "random_state", "views"}
    family = model.family or method
    if values.get("regularizer") == "first_order":
        family = "first order"
    scaling = values.get("scale", "")
    if isinstance(scaling, list | tuple):
        scaling = "/".join(str(one) for one in dict.fromkeys(scaling))
    return {
        "method": method,
        "setting": {k: v for k, v in values.items() if k in own and repr(v) != repr(plain[k])},
        "family": family,
        "group": f"{family}, {scaling}",  # which members share a vote
        "agreement": None,
        "modularity": None,
        "score": None,
        "nearness": None,
        "weight": 0.0,
        "seconds": 0.0,
        "status": "not run",
        "reason": "",
    }


def member_name(row: Row) -> str:
    """The member as you would type it."""
    return f"{row['method']}({', '.join(f'{k}={v!r}' for k, v in row['setting'].items())})"


def _fit(model: MultiViewClusterer, views: Views, row: Row, reason: str) -> np.ndarray | None:
    """Fit one member and fill in its row; returns the labels, or None if it failed."""
    started = time.perf_counter()
    try:
        with own_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels = model.fit(views).labels_
        row |= {"status": "ok", "reason": "; ".join(dict.fromkeys(str(w.message) for w in caught))}
    except OutOfTime:
        labels = None
        row |= {"status": "not run", "reason": f"stopped: {reason}"}
    except Exception as error:  # whatever it is, the other members can go on
        labels = None
        row |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    row["seconds"] = time.perf_counter() - started
    return labels


def _check_failures(table: list[Row]) -> None:
    """Raise when no member ran; warn when all settings of a method failed."""
    failed = [row for row in table if row["status"] == "failed"]
    if failed and not any(row["status"] == "ok" for row in table):
        # Data that every member refuses are refused here too.
        refused = all(row["reason"].startswith("ValueError") for row in failed)
        raise (ValueError if refused else RuntimeError)(
            f"All {len(failed)} members failed; the first, {member_name(failed[0])}, failed with "
            f"{failed[0]['reason']}"
        )
    for method in dict.fromkeys(row["method"] for row in failed):
        own = [row for row in table if row["method"] == method]
        if all(row["status"] == "failed" for row in own):
            who = "The only member" if len(own) == 1 else f"All {len(own)} members"
            warn_user(
                f"{who} of {method} failed ({own[0]['reason']}): the labels come only from the "
                "other methods."
            )


def tell_lost(table: Sequence[Row]) -> list[str]:
    """Say which members failed, and which did not run: how many, and why; a sentence for each.

    Examples
    --------
    >>> rows = [
    ...     {"method": "SNF", "status": "failed", "reason": "ValueError: too few samples"},
    ...     {"method": "GRMSC", "status": "not run", "reason": "the budget of 5 s was spent"},
    ...     {"method": "GRMSC", "status": "not run", "reason": "the budget of 5 s was spent"},
    ...     {"method": "NEMO", "status": "ok", "reason": ""},
    ... ]
    >>> for sentence in tell_lost(rows):
    ...     print(sentence)
    1 of 4 members failed (1 SNF): ValueError: too few samples.
    2 of 4 members did not run (2 GRMSC): the budget of 5 s was spent.
    """
    told = []
    for status, words in (("failed", "failed"), ("not run", "did not run")):
        rows = [row for row in table if row["status"] == status]
        if not rows:
            continue
        methods = Counter(row["method"] for row in rows)
        who = ", ".join(f"{n} {method}" for method, n in methods.items())
        why = list(dict.fromkeys(row["reason"].removeprefix("stopped: ") for row in rows))
        reason = why[0].rstrip(".") + ", among other reasons" * (len(why) > 1)
        told.append(f"{len(rows)} of {len(table)} members {words} ({who}): {reason}.")
    return told


def summary(table: Sequence[Row], by: str = "family") -> list[tuple[str, ...]]:
    """Return the table as text with one row per family, or ``"group"``; `COLUMNS` is its head."""
    lines: list[tuple[str, ...]] = []
    for kind in dict.fromkeys(row[by] for row in table):
        rows = [row for row in table if row[by] == kind]
        ran = [row for row in rows if row["status"] == "ok"]
        agreement = f"{np.mean([row['agreement'] for row in ran]):.2f}" if ran else "-"
        used = sum(row["weight"] > 0 for row in ran)
        seconds = sum(row["seconds"] for row in rows)
        lines.append((kind, f"{len(ran)}/{len(rows)}", str(used), agreement, f"{seconds:.1f}"))
    return lines


def text_table(table: Sequence[Row], by: str = "family") -> str:
    """The summary for a terminal: a line for every family, or with ``"group"`` and scaling.

    Examples
    --------
    >>> row = {"family": "subspace", "group": "subspace, unit", "status": "ok", "agreement": 0.9,
    ...        "weight": 0.5, "seconds": 1.25}
    >>> print(text_table([row, row]))
    members   ran  used  agreement  seconds
    subspace  2/2     2       0.90      2.5
    """
    rows = [COLUMNS, *summary(table, by)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(x.rjust(w) for x, w in zip(row[1:], widths[1:], strict=True)),
            ]
        )
        for row in rows
    )


def html_table(table: Sequence[Row]) -> str:
    """The summary for a notebook."""
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(value)}</td>' for value in row)}</tr>"
        for row in summary(table)
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
