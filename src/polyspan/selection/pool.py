"""The members of a consensus: which run, how they are fitted, and a row in the table for each.

These are settings of GRMSC, or of AnchorGRMSC for many samples, and the baselines.
"""

import html
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import device as array_device
from sklearn.base import clone
from sklearn.utils import get_tags

from polyspan.base import MultiViewClusterer, OnDevice
from polyspan.inputs.scaling import Scaling, is_constant, unit
from polyspan.inputs.views import Views
from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC
from polyspan.methods.baselines import ConcatKMeans, ConcatSpectral
from polyspan.methods.cgd import CGD
from polyspan.methods.fastmice import FastMICE
from polyspan.methods.grmsc import GRMSC
from polyspan.methods.lmvsc import LMVSC
from polyspan.methods.meangraph import MeanGraph
from polyspan.methods.nemo import NEMO
from polyspan.methods.snf import SNF
from polyspan.progress import Tell
from polyspan.runtime.cache import held_bytes
from polyspan.runtime.messages import own_warnings, warn_user
from polyspan.selection.evidence import Part, all_of
from polyspan.solvers.loop import OutOfTime, stopping

Params = dict[str, Any]
Row = dict[str, Any]  # of the table

SCALINGS = ("unit", "standard+unit")
SECOND = ((100.0, 1000.0), (1.0, 10.0))  # lam1 and lam2 of GRMSC
FIRST = ((300.0, 100.0), (1.0, 1.0))  # the same without the second order
FULL_GRID_BELOW = 1500  # samples; above, the number of solves falls like 1 / n^2
# Up to this many samples, solutions are exact: for 4,000 one takes three minutes on two cores, for
# 10,000 nine seconds and 11 GiB on a GPU (docs/speed.md).
EXACT_UP_TO = 4_000
EXACT_UP_TO_ON_GPU = 10_000
FEW_STARTS = 5  # of k-means on the features of many samples, where each takes long
ENSEMBLE_ANCHORS = 500  # of FastMICE there: half of its default, in half of the time
FEWEST_ANCHORS = 100
LINKS = 10_000_000  # of samples to anchors, beyond which there are two anchors per cluster
KEPT_BYTES = 2**30  # that fitted members hold together; those beyond are not kept
COLUMNS = ("members", "ran", "used", "agreement", "seconds")  # of the short table


class Member(NamedTuple):
    """A method with its settings, and the family that it votes with."""

    estimator: MultiViewClusterer
    family: str


def member_of(estimator: MultiViewClusterer, family: str = "") -> Member:
    """A member of this family; if none is given, of that of its class, or one of its own.

    Examples
    --------
    >>> member_of(GRMSC()).family, member_of(GRMSC(), "first order").family
    ('subspace', 'first order')
    """
    return Member(estimator, family or estimator.family or type(estimator).__name__)


# ---- which members run ---------------------------------------------------------------------------


def default_members(
    views: Views,
    n_clusters: int,
    device: str | None = None,
    scalings: Sequence[Sequence[Scaling]] = (("unit",), ("standard+unit",)),
    as_given: bool = False,
) -> list[MultiViewClusterer]:
    """Return the estimators of `default_pool` for views in memory.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> members = default_members(check_views([X, X]), 3)
    >>> list(dict.fromkeys(type(one).__name__ for one in members))
    ['ConcatKMeans', 'MeanGraph', 'NEMO', 'ConcatSpectral', 'CGD', 'SNF', 'FastMICE', 'GRMSC']
    """
    kind = "exact" if exactly(views, device) else "many"
    pool = default_pool(all_of(views), n_clusters, scalings, kind, device, as_given)
    return [member.estimator for member in pool]


def default_pool(
    part: Part,
    n_clusters: int,
    scalings: Sequence[Sequence[Scaling]],
    kind: str,
    device: str | None = None,
    as_given: bool = False,
) -> list[Member]:
    """Return the members of a consensus, the cheap ones first.

    Each runs in every scaling; GRMSC, AnchorGRMSC and LMVSC in two of them, with unit length for
    every view. Samples that lack a view leave only the members that take them. Of many samples no
    member needs more than time linear in their number, but for the neighbors of up to 20,000
    samples, which are searched exactly.

    Parameters
    ----------
    part : Part
        The samples, or those of them that are in memory.
    n_clusters : int
        Number of clusters, which limits neighborhoods.
    scalings : sequence of scalings
        One per view in each, or one for all views.
    kind : {"exact", "many", "chunked"}
        Whether there are few enough samples for `GRMSC`, or too many, or whether they are in dask
        arrays, which only some members take.
    device : str or None
        Where the members compute that can do so elsewhere.
    as_given : bool
        Whether all members run in these scalings, and no other.

    Examples
    --------
    >>> part = all_of(Views([np.random.default_rng(0).normal(size=(60, 5))], ["0"]))
    >>> pool = default_pool(part, 3, [("unit",), ("standard+unit",)], "chunked")
    >>> [type(member.estimator).__name__ for member in pool[3:5]], len(pool)
    (['MeanGraph', 'AnchorGRMSC'], 8)
    """
    n = part.among
    directions = scalings if as_given else _directions(part.views, scalings)
    scales, lengths = (list(map(_short, several)) for several in (scalings, directions))
    cheap = mean_graphs(n) if kind == "chunked" else cheap_methods(n, kind == "exact")
    members = [member_of(method(scale=scale)) for method in cheap for scale in scales]
    if kind == "exact":
        members += [
            member_of(GRMSC(scale=scale, **solve, **affinity), family)
            for family, solve in pool_solves(n, n_clusters)
            for scale in lengths
            for affinity in affinities(n, n_clusters)
        ]
    else:
        if kind == "many":
            members += [member_of(LMVSC(scale=scale)) for scale in lengths]
        grid = anchor_grid(n, n_clusters)
        anchored = [AnchorGRMSC(scale=scale, **params) for scale in lengths for params in grid]
        members += [member_of(estimator) for estimator in anchored]
    for estimator, _ in members:
        if isinstance(estimator, OnDevice):
            estimator.device = device
    if part.lacking:
        members = [member for member in members if get_tags(member.estimator).missing_views]
    return members


def mean_graphs(n: int) -> list[Callable[..., MultiViewClusterer]]:
    """`MeanGraph` with two numbers of neighbors, by what one calls with a scaling."""
    return [
        partial(MeanGraph, n_neighbors=min(10, n - 1)),
        partial(MeanGraph, n_neighbors=min(20, n - 1), weights="self_tuning"),
    ]


def cheap_methods(n: int, exact: bool) -> list[Callable[..., MultiViewClusterer]]:
    """Methods that need no optimization, by what one calls with a scaling."""
    early = [partial(ConcatSpectral, n_neighbors=min(k, n - 1)) for k in (10, 30)]
    if exact:
        nemo = partial(NEMO, n_neighbors=min(20, n - 1))
        return [ConcatKMeans, *mean_graphs(n), nemo, *early, CGD, SNF, FastMICE]
    plain = partial(ConcatKMeans, n_init=FEW_STARTS)
    return [plain, *mean_graphs(n), early[0], partial(FastMICE, n_anchors=ENSEMBLE_ANCHORS)]


def _directions(views: Views, scalings: Sequence[Sequence[Scaling]]) -> list[tuple[Scaling, ...]]:
    """The first two of these scalings, with unit length also for views that they leave as they are.

    Subspaces through the origin do not see lengths, so a model of them takes directions, also of
    views with few features. A single feature, or one that varies alone, has none to take.
    """

    def direction(view: Any, scaling: Scaling) -> Scaling:
        if view.shape[1] == 1 or (scaling is None and is_constant(unit(view))):
            return scaling
        return {None: "unit", "standard": "standard+unit"}.get(scaling, scaling)

    directions = [tuple(map(direction, views.arrays, scaling)) for scaling in scalings]
    return list(dict.fromkeys(directions))[: len(SCALINGS)]


def _short(scaling: Sequence[Scaling]) -> Any:
    """One scaling instead of the same for every view."""
    return scaling[0] if len(set(scaling)) == 1 else tuple(scaling)


def exactly(views: Views, device: str | None) -> bool:
    """Whether the samples are few enough for exact solutions on the device that computes them."""
    first = views.arrays[0]
    where = device or ("cpu" if sp.issparse(first) else str(array_device(first)))
    limit = EXACT_UP_TO if "cpu" in where.lower() else EXACT_UP_TO_ON_GPU
    return views.n_samples <= limit and _fits(views, device)


def _fits(views: Views, device: str | None) -> bool:
    try:
        GRMSC(2, device=device, n_neighbors=1).check(views)
    except MemoryError:
        return False
    return True


# ---- settings of GRMSC and AnchorGRMSC -----------------------------------------------------------


def affinities(n: int, n_clusters: int) -> list[Params]:
    """Affinities of every representation of `GRMSC`: kept entries are at most a mean cluster's.

    Examples
    --------
    >>> [len(affinities(n, 5)) for n in (40, 100, 500)]
    [2, 2, 3]
    """
    size = max(10, n // n_clusters)
    sparse = [{"affinity": "sparse", "n_kept": kept} for kept in (10, 30) if kept <= size]
    return [*sparse, {"affinity": "dense"}]


def pool_solves(n: int, n_clusters: int) -> list[tuple[str, Params]]:
    """Family, and parameters of `GRMSC` that change the representation; fewer for many samples.

    These are the settings that vote: the orientation as printed in the paper, and ten neighbors
    where clusters are larger, were rarely in the best third.

    Examples
    --------
    >>> [(p["n_neighbors"], p["lam1"]) for _, p in pool_solves(500, 5)]
    [(30, 100.0), (30, 300.0), (30, 1.0), (100, 100.0), (100, 1.0)]
    >>> [len(pool_solves(n, 10)) for n in (200, 2_000, 4_000)]
    [4, 3, 1]
    """
    wide = min(max(10, n // n_clusters), n - 1)  # a mean cluster
    near = min(30, wide)
    settings = [(near, *SECOND[0]), *((wide, *pair) for pair in SECOND)]
    second: list[tuple[str, Params]] = [
        ("", {"n_neighbors": k, "lam1": lam1, "lam2": lam2})
        for k, lam1, lam2 in dict.fromkeys(settings)
    ]
    plain = {"n_neighbors": near, "regularizer": "first_order"}
    first = [("first order", plain | {"lam1": lam1, "lam2": lam2}) for lam1, lam2 in FIRST]
    return affordable(n, second[:1] + first + second[1:])


def exact_solves(n: int) -> list[Params]:
    """Parameters of `GRMSC` that change the representation, in both scalings, for counting."""
    solves: list[Params] = [
        {"scale": scale, "n_neighbors": k, "lam1": lam1, "lam2": lam2}
        for lam1, lam2 in SECOND
        for k in dict.fromkeys((min(30, n - 1), min(10, n - 1)))
        for scale in SCALINGS
    ]
    return affordable(n, solves)


def affordable(n: int, solves: list[Any]) -> list[Any]:
    """The first of these solves; fewer for many samples, as each is O(n^3)."""
    return solves[: max(1, round(len(solves) * min(1.0, (FULL_GRID_BELOW / n) ** 2)))]


def anchor_grid(n: int, n_clusters: int) -> list[Params]:
    """Return the settings of `AnchorGRMSC` in the pool for many samples.

    There are five anchors per cluster, 100 at least; two where the links between samples and
    anchors would be more than ten million. The representation is used with two numbers of kept
    links.

    Examples
    --------
    >>> anchor_grid(10_000, 10)
    [{'n_anchors': 100, 'dtype': 'float32', 'n_kept': 3},
     {'n_anchors': 100, 'dtype': 'float32', 'n_kept': 10}]
    """
    m = max(FEWEST_ANCHORS, min(5 * n_clusters, max(2 * n_clusters, LINKS // n)))
    return [{"n_anchors": m, "dtype": "float32", "n_kept": kept} for kept in (3, 10)]


def anchor_solves(n_anchors: int) -> list[Params]:
    """Parameters of `AnchorGRMSC` that change the representation, for counting."""
    return [
        {"scale": scale, "n_anchors": n_anchors, "lam1": lam1, "lam2": lam2, "dtype": "float32"}
        for lam1, lam2 in ((0.1, 1.0), (1.0, 10.0))
        for scale in SCALINGS
    ]


# ---- fits ----------------------------------------------------------------------------------------


class Fits(NamedTuple):
    """What the members found."""

    table: list[Row]  # one for every member
    ran: list[Row]  # of those that ran
    labels: np.ndarray  # likewise
    models: list[MultiViewClusterer]  # likewise; not fitted where too much memory would be held


def fit_members(
    members: Sequence[Member],
    views: Views,
    params: Params,
    deadline: float | None = None,
    reason: str = "",
    tell: Tell | None = None,
    limit: float = KEPT_BYTES,
) -> Fits:
    """Fit a copy of every member, with these parameters changed.

    No member is started after the deadline (in terms of `time.perf_counter`), one at work then is
    stopped, and the rows of both give ``reason``; at least one runs. If a member fails, its row has
    the error, and the others go on. The fitted copies are kept as long as all their arrays together
    have at most ``limit`` bytes.
    """
    table: list[Row] = []
    labels: list[np.ndarray] = []
    models: list[MultiViewClusterer] = []
    held, known = 0, set[int]()
    held_bytes(views, known)  # these are there anyway
    estimators = [member.estimator for member in members]
    for done, member in enumerate(members):
        row = new_row(member)
        table.append(row)
        if labels and deadline is not None and time.perf_counter() > deadline:
            row["reason"] = reason
            continue
        if tell is not None:
            tell(done, len(members), member_name(row), seconds_left(table, estimators[done:]))
        model = clone(member.estimator).set_params(**params)
        with stopping(deadline if labels else None):
            _fit(model, views, row, reason)
        if row["status"] == "ok":
            labels.append(model.labels_)
            known_then = set(known)
            held_then = held + held_bytes(vars(model), known_then)
            if held_then <= limit:
                held, known = held_then, known_then
            else:
                model = clone(model)
            models.append(model)
    if tell is not None:
        tell(len(members), len(members), "done")
    _check_failures(table)
    ran = [row for row in table if row["status"] == "ok"]
    return Fits(table, ran, np.array(labels), models)


def seconds_left(table: Sequence[Row], estimators: Sequence[MultiViewClusterer]) -> float | None:
    """How long members will take, by those of the same method that ran; None if none ran.

    A method that has not run yet counts as the mean of the methods that have.

    Examples
    --------
    >>> from polyspan import GRMSC, LRR
    >>> row = new_row(member_of(GRMSC()))
    >>> table = [row | {"status": "ok", "seconds": seconds} for seconds in (2.0, 4.0)]
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
    return sum(means.get(type(estimator).__name__, other) for estimator in estimators)


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


def _fit(model: MultiViewClusterer, views: Views, row: Row, reason: str) -> None:
    """Fit one member and fill in its row."""
    started = time.perf_counter()
    try:
        with own_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(views)
        row |= {"status": "ok", "reason": "; ".join(dict.fromkeys(str(w.message) for w in caught))}
    except OutOfTime:
        row["reason"] = f"stopped: {reason}"
    except Exception as error:  # whatever it is, the other members can go on
        row |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    row["seconds"] = time.perf_counter() - started


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
