"""The members of a consensus: which run, how they are fitted, and a row in the table for each."""

import html
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dpstrf
from sklearn.base import clone
from sklearn.utils import get_tags

from polyspan.base import MultiViewClusterer, OnDevice
from polyspan.graphs.knn import present
from polyspan.graphs.self_expression import DIRECTIONS, EXACT_UP_TO, projected
from polyspan.inputs.scaling import Scaling, numpy_views
from polyspan.inputs.views import Views
from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC
from polyspan.methods.baselines import ConcatKMeans, ConcatSpectral
from polyspan.methods.cgd import CGD
from polyspan.methods.fastmice import FastMICE
from polyspan.methods.grmsc import GRMSC
from polyspan.methods.meangraph import MeanGraph
from polyspan.methods.selfgraph import SelfGraph
from polyspan.methods.snf import SNF
from polyspan.progress import Tell
from polyspan.runtime.arrays import gram
from polyspan.runtime.messages import own_warnings, recording, warn_user
from polyspan.runtime.tasks import INTERRUPTED, keeps_partial, run_tasks
from polyspan.selection.evidence import NEIGHBORS

Params = dict[str, Any]
Row = dict[str, Any]  # of the table

RESTARTS = 5  # of k-means: what one restart misses, the other members find
WIDE = 2  # times as many columns as samples
ANCHORS = 100  # of AnchorGRMSC, or five per cluster
LINKS = 10_000_000  # of samples to anchors, beyond which there are two anchors per cluster
COLUMNS = ("members", "ran", "used", "agreement", "seconds")  # of the short table


class Member(NamedTuple):
    """A method with its settings, and the family that it votes with."""

    estimator: MultiViewClusterer
    family: str
    scaling: tuple[Scaling, ...] | None = None  # of the views that it gets; None: those of the user


def member_of(estimator: MultiViewClusterer) -> Member:
    """A member of the family of its class, or of one of its own.

    Examples
    --------
    >>> member_of(GRMSC()).family
    'subspace'
    """
    return Member(estimator, estimator.family or type(estimator).__name__)


# ---- which members run ---------------------------------------------------------------------------


def default_pool(
    n: int,
    scalings: Sequence[tuple[Scaling, ...]],
    device: str | None = None,
    lacking: bool = False,
    thorough: bool = False,
) -> list[Member]:
    """Return the members of a consensus, the cheap ones first.

    Each costs about as much as `MeanGraph`: graphs of neighbors, with two numbers of them, graphs
    of self-expression with three ridges, both added, the graph of all features, and k-means.

    Parameters
    ----------
    n : int
        Number of samples.
    scalings : list of tuples
        One scaling per view in each.
    device : str or None
        Where the members compute that can do so elsewhere.
    lacking : bool
        Whether samples lack views: then only members run that take them.
    thorough : bool
        Whether methods run too that cost O(n^3) per iteration, or many times as much.

    Examples
    --------
    >>> pool = default_pool(60, [("unit",), ("standard+unit",)])
    >>> len(pool), list(dict.fromkeys(member.family for member in pool))
    (20, ['mean graph', 'self graph', 'neighbors and self graph', 'early fusion', 'k-means'])
    """
    k, wide = min(NEIGHBORS, n - 1), min(2 * NEIGHBORS, n - 1)
    methods: list[tuple[str, Callable[..., MultiViewClusterer]]] = [
        ("", partial(MeanGraph, n_neighbors=k)),
        ("", partial(MeanGraph, n_neighbors=wide, weights="self_tuning")),
    ]
    for lam in (0.1, 1.0, 10.0):
        both = partial(SelfGraph, lam=lam, n_neighbors=k)
        methods += [("", partial(SelfGraph, lam=lam)), ("neighbors and self graph", both)]
    methods += [("", partial(ConcatSpectral, n_neighbors=k)), ("", ConcatKMeans)]
    if thorough:
        sparse = partial(GRMSC, affinity="sparse")
        methods += [("", sparse), ("", partial(sparse, lam1=1.0, lam2=10.0))]
        methods += [("", FastMICE), ("", SNF), ("", CGD)]
    members = []
    for family, method in methods:
        for scaling in scalings:
            estimator = method(scale=_short(scaling), n_init=RESTARTS)
            if isinstance(estimator, OnDevice):
                estimator.device = device
            kind = family or estimator.family or type(estimator).__name__
            if not lacking or get_tags(estimator).missing_views:
                # FastMICE draws columns, which mean something only as they are given.
                own = isinstance(estimator, FastMICE)
                members.append(Member(estimator, kind, None if own else scaling))
    return members


def chunked_pool(
    n: int, n_clusters: int, scalings: Sequence[tuple[Scaling, ...]], lacking: bool
) -> list[Member]:
    """Return the members for views that are read in chunks.

    Examples
    --------
    >>> [type(member.estimator).__name__ for member in chunked_pool(60, 3, [("unit",)], False)]
    ['MeanGraph', 'MeanGraph', 'AnchorGRMSC', 'AnchorGRMSC']
    """
    m = max(ANCHORS, min(5 * n_clusters, max(2 * n_clusters, LINKS // n)))
    near: dict[str, Any] = {"n_neighbors": min(2 * NEIGHBORS, n - 1), "weights": "self_tuning"}
    methods: list[Callable[..., MultiViewClusterer]] = [
        partial(MeanGraph, n_neighbors=min(NEIGHBORS, n - 1)),
        partial(MeanGraph, **near),
    ]
    if not lacking:
        anchored = partial(AnchorGRMSC, n_anchors=m, dtype="float32")
        methods += [partial(anchored, n_kept=kept) for kept in (3, 10)]
    return [member_of(method(scale=_short(scale))) for method in methods for scale in scalings]


def _short(scaling: Sequence[Scaling]) -> Any:
    """One scaling instead of the same for every view."""
    return scaling[0] if len(set(scaling)) == 1 else list(scaling)


def prepared(views: Views, scaling: tuple[Scaling, ...]) -> Views:
    """Scale the views, once for all members; wide ones get fewer columns with the same products.

    Of more than 5,000 samples these are about the same: the views' leading directions are kept.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(4, 100))
    >>> found = prepared(Views([X], ["0"]), (None,)).arrays[0]
    >>> found.shape, np.allclose(found @ found.T, X @ X.T)
    ((4, 4), True)
    """
    arrays = [reduced(X) for X in numpy_views(views, scaling)]
    return replace(views, arrays=arrays)


def reduced(X: Any) -> Any:
    """Rows with the same inner products, and so distances, in at most n columns: a Cholesky factor.

    Up to 5,000 samples, only views with more than twice as many columns are reduced; of more
    samples the leading directions are kept. A sample that lacks the view stays a row of NaN.

    Examples
    --------
    >>> reduced(np.array([[3.0, 0.0, 4.0, 0.0, 0.0], [3.0, 0.0, 4.0, 0.0, 0.0]]))
    array([[5.],
           [5.]])
    """
    n, d = X.shape
    there, rows = present(X)
    if d <= (DIRECTIONS if n > EXACT_UP_TO else WIDE * n):
        return X
    if n > EXACT_UP_TO:
        Y = projected(rows)[0]
    else:
        L, order, rank, _ = dpstrf(gram(rows.astype(np.float64)), lower=1)
        there, Y = there[order - 1], np.tril(L)[:, :rank]
    found = np.full((n, Y.shape[1]), np.nan, dtype=X.dtype)
    found[there] = Y
    return found


# ---- fits ----------------------------------------------------------------------------------------


class Fits(NamedTuple):
    """What the members found."""

    table: list[Row]  # one for every member
    ran: list[int]  # numbers of those that ran
    labels: np.ndarray  # theirs


def fit_members(
    members: Sequence[Member],
    views: Views,
    by_scaling: dict[tuple[Scaling, ...], Views],
    params: Params,
    *,
    n_jobs: int = 1,
    deadline: float | None = None,
    reason: str = "",
    tell: Tell | None = None,
    others: Sequence[Callable[[], Any]] = (),
) -> tuple[Fits, list[Any]]:
    """Fit a copy of every member, with these parameters changed.

    At the deadline (a time of `time.perf_counter`) those at work are stopped, and the rows of all
    that have not run give ``reason``; one always runs. The same on Ctrl-C, where
    `keeps_partial` is set. If a member fails, its row has the error, and the others go on.
    ``others`` are called beside them; their results come second, None for those that were stopped.
    """
    table = [new_row(member) for member in members]
    labels: list[np.ndarray | None] = [None] * len(members)
    steps = len(members) + len(others)
    done, started = 0, time.perf_counter()

    def fit(number: int) -> None:
        member, row, began = members[number], table[number], time.perf_counter()
        model, X = clone(member.estimator).set_params(**params), views
        if member.scaling is not None:
            model.set_params(scale=None)
            X = by_scaling[member.scaling]
        try:
            with recording() as told:
                labels[number] = model.fit(X).labels_
            found = {"status": "ok", "reason": "; ".join(dict.fromkeys(told))}
        except Exception as error:  # whatever it is, the other members can go on
            found = {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
        row |= found | {"seconds": time.perf_counter() - began}  # at once: it may be stopped

    def finished() -> None:
        nonlocal done
        done += 1
        if tell is not None:
            left = (time.perf_counter() - started) / done * (steps - done)
            tell(done, steps, "members of the consensus", left)

    fits = [partial(fit, number) for number in range(len(members))]
    results: list[Any] = []
    try:
        with own_warnings():  # the threads do not wait for each other's
            # One runs whatever the time is.
            while deadline is not None and fits and all(row["status"] != "ok" for row in table):
                run_tasks([fits.pop(0)], finished=finished)
            calls: list[Callable[[], Any]] = [*others, *fits]
            results = run_tasks(calls, n_jobs, deadline, finished)
    except KeyboardInterrupt:
        if not (keeps_partial.get() and any(row["status"] == "ok" for row in table)):
            raise
        reason, results = INTERRUPTED, [None] * len(others)
    for row in table:
        if row["status"] == "not run":
            row["reason"] = row["reason"] or reason
    _check_failures(table)
    ran = [number for number, row in enumerate(table) if row["status"] == "ok"]
    return Fits(table, ran, np.array([labels[number] for number in ran])), results[: len(others)]


def new_row(member: Member) -> Row:
    """Return the row of the table for a member that has not run yet."""
    values, cls = member.estimator.get_params(deep=False), type(member.estimator)
    plain = cls().get_params(deep=False)
    settable = values.keys() - {"n_clusters", "random_state", "views"}
    scaling = values.get("scale", "")
    if isinstance(scaling, list | tuple):
        scaling = "/".join(map(str, dict.fromkeys(scaling)))
    return {
        "method": cls.__name__,
        "setting": {k: v for k, v in values.items() if k in settable and repr(v) != repr(plain[k])},
        "family": member.family,
        "group": f"{member.family}, {scaling}",  # which members share a vote
        **dict.fromkeys(("agreement", "modularity", "score", "nearness")),
        "weight": 0.0,
        "seconds": 0.0,
        "status": "not run",
        "reason": "",
    }


def member_name(row: Row) -> str:
    """The member as you would type it."""
    return f"{row['method']}({', '.join(f'{k}={v!r}' for k, v in row['setting'].items())})"


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
        rows = [row for row in table if row["method"] == method]
        if all(row["status"] == "failed" for row in rows):
            who = "The only member" if len(rows) == 1 else f"All {len(rows)} members"
            warn_user(
                f"{who} of {method} failed ({rows[0]['reason']}): the labels come only from the "
                "other methods."
            )


# ---- the table in words --------------------------------------------------------------------------


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
    sentences = []
    for status, words in (("failed", "failed"), ("not run", "did not run")):
        rows = [row for row in table if row["status"] == status]
        if not rows:
            continue
        methods = Counter(row["method"] for row in rows)
        who = ", ".join(f"{n} {method}" for method, n in methods.items())
        why = list(dict.fromkeys(row["reason"].removeprefix("stopped: ") for row in rows))
        reason = why[0].rstrip(".") + ", among other reasons" * (len(why) > 1)
        sentences.append(f"{len(rows)} of {len(table)} members {words} ({who}): {reason}.")
    return sentences


def summary(table: Sequence[Row], by: str = "family") -> list[tuple[str, ...]]:
    """Return the table as text with one row per family, or ``"group"``, below `COLUMNS`."""
    lines: list[tuple[str, ...]] = [COLUMNS]
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
    lines = summary(table, by)
    first, *widths = (max(map(len, column)) for column in zip(*lines, strict=True))
    return "\n".join(
        "  ".join([name.ljust(first), *map(str.rjust, values, widths)]) for name, *values in lines
    )


def html_table(table: Sequence[Row]) -> str:
    """The summary for a notebook."""
    head, *body = ([html.escape(value) for value in line] for line in summary(table))
    first = "".join(f"<th>{value}</th>" for value in head)
    rows = "".join(f"<tr>{''.join(f'<td>{value}</td>' for value in line)}</tr>" for line in body)
    return f"<table><thead><tr>{first}</tr></thead><tbody>{rows}</tbody></table>"
