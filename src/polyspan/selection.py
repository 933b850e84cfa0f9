"""Clustering without labels and without tuning: many settings, and what they agree on.

Nobody without labels can tell which setting is good, but good settings tend to find the same
clusters and bad ones each their own. So `select` runs a grid of settings and the plain baselines,
scores each by how well its labels agree with those of the others, and clusters the samples once
more by how often the settings put them together, the worst quarter left out.
"""

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from polyspan.base import MultiViewClusterer
from polyspan.consensus import consensus, pairwise_nmi, rank_settings
from polyspan.counting import (
    SCALINGS,
    Progress,
    anchor_solves,
    complete_views,
    count,
    count_clusters,
    exact_solves,
    exactly,
)
from polyspan.devices import check_device
from polyspan.methods.anchorgrmsc import AnchorGRMSC
from polyspan.methods.baselines import ConcatKMeans, ConcatSpectral
from polyspan.methods.grmsc import GRMSC
from polyspan.methods.lmvsc import LMVSC
from polyspan.params import check_params, device_name, integer, real, seed
from polyspan.sharing import sharing
from polyspan.views import Views

__all__ = [
    "Selection",
    "anchor_grid",
    "consensus",
    "count_clusters",
    "default_grid",
    "pairwise_nmi",
    "rank_settings",
    "select",
]

# Samples up to which `ConcatSpectral` runs. Its eigensolver factorises the k-NN graph: seconds
# where there are clusters, but on noise 15 s for 5,000 samples, 100 s for 10,000, and more than
# 250 s for 20,000.
SPECTRAL_UP_TO = 10_000
FEWEST_ANCHORS = 100
LINKS = 10_000_000  # of samples to anchors, for the larger number of anchors
FULL_ANCHOR_GRID_BELOW = 50_000  # samples; with more there are fewer solves


@dataclass
class Selection:
    """What `select` found.

    Attributes
    ----------
    labels : (n,) array
        Consensus: cluster of every sample.
    certainty : (n,) array
        How sure that is, from 0 to 1: the mean share of the chosen settings that put the sample
        with another one of its cluster, less that for the best other cluster.
    best_estimator : estimator
        The setting whose own ``labels_`` are nearest to the consensus, among the settings that
        entered it, fitted. It may be one of the baselines; `ConcatKMeans`, `ConcatSpectral` and
        `LMVSC` have no ``predict``.
    table : list of dict
        One row per setting, in the order they ran: ``method``, ``setting`` (its parameters),
        ``group``, ``agreement`` with the others, ``nearness`` to the consensus (both None when it
        did not run), ``weight`` in the consensus, ``seconds``, ``status`` (``"ok"``,
        ``"failed"`` or ``"not run"``) and ``reason``.
    n_clusters : int
        As given, or as found.
    evidence : dict
        What `count_clusters` saw; empty when the number was given.
    asked : dict
        The arguments of `select` that are not its defaults, less the views and ``progress``.
    """

    labels: np.ndarray
    certainty: np.ndarray
    best_estimator: MultiViewClusterer
    table: list[dict[str, Any]]
    n_clusters: int
    evidence: dict[str, Any]
    asked: dict[str, Any] = field(default_factory=dict)


def select(
    views: Any,
    n_clusters: int | str,
    estimator: type[MultiViewClusterer] = GRMSC,
    grid: Sequence[Mapping[str, Any]] | None = None,
    budget: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    progress: Progress | None = None,
    device: str | None = None,
) -> Selection:
    """Cluster by what many settings agree on; no labels, no tuning.

    The settings are those of ``grid`` and the plain baselines (`ConcatSpectral`, `ConcatKMeans`).
    With more than 4,000 samples (10,000 with a GPU as ``device``), where `GRMSC` takes too long,
    they are those of `AnchorGRMSC`, the same model at a cost that is linear in the number of
    samples, and `LMVSC` is one more baseline. `ConcatSpectral` runs up to 10,000 samples.
    A setting's agreement is the mean normalised mutual information between its labels and those
    of the others, first averaged within groups of like settings so that a large group does not
    outvote a small one. The quarter that agrees least is left out; samples are clustered (spectral
    clustering) by how often the other settings put them together.

    Parameters
    ----------
    views : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
        The views, as every method takes them. No sample may lack a view: the baselines need all.
    n_clusters : int or "auto"
        Number of clusters; ``"auto"`` asks `count_clusters`, which never answers 1.
    estimator : class, default=GRMSC
        The method that the grid is of.
    grid : list of dict, default=None
        Parameters of the settings to run, in this order. None is `default_grid` for `GRMSC`, or
        `anchor_grid` for many samples, and the defaults for other methods. With a grid, or
        another method, that method runs whatever the number of samples.
    budget : float, default=None
        Seconds after which no new setting is started; at least one runs. With a budget the result
        depends on the speed of the machine. None runs the whole grid.
    random_state : int, RandomState or None, default=None
        Seeds k-means; one seed serves all settings.
    progress : callable, default=None
        Called as ``progress(done, total, text)`` before every setting and at the end.
    device : str or None, default=None
        Where the methods that have a parameter ``device`` compute, such as ``"cuda"``, see
        `GRMSC`; a setting of ``grid`` may name its own. `AnchorGRMSC` and the baselines have none.

    Returns
    -------
    Selection
        ``labels``, ``certainty``, ``best_estimator``, ``table``, ``n_clusters``, ``evidence`` and
        ``asked``.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> from polyspan.selection import select
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> found = select(data.views, 3, grid=[{"lam1": 1.0}, {"lam1": 100.0}], random_state=0)
    >>> found.labels.shape, len(found.table)
    ((60,), 10)
    """
    _check_arguments(n_clusters, estimator, grid, budget, random_state, progress, device)
    found = complete_views("select", views)
    n = found.n_samples
    if not isinstance(n_clusters, str) and n_clusters > n:
        raise ValueError(
            f"select: n_clusters={n_clusters} is more than n_samples={n}: ask for fewer clusters."
        )
    started = time.perf_counter()
    number = int(check_random_state(random_state).randint(2**31))
    evidence: dict[str, Any] = {}
    with sharing():
        if isinstance(n_clusters, str):
            c, evidence = count(found, number, None, progress, device)
        else:
            c = int(n_clusters)
        own, params = estimator, grid
        if estimator is GRMSC and grid is None and not exactly(found, device):
            own, params = AnchorGRMSC, anchor_grid(n, c)
        settings = _baselines(n, c, own is not estimator) + _settings(n, c, own, params, device)
        table: list[dict[str, Any]] = []
        rows: list[np.ndarray] = []
        for model in settings:
            done = len(table)
            row = _row(model)
            table.append(row)
            if rows and budget is not None and time.perf_counter() - started > budget:
                row |= {"status": "not run", "reason": f"the budget of {budget:g} s was spent"}
                continue
            if progress is not None:
                progress(done, len(settings), _name(row))
            model.set_params(n_clusters=c, random_state=number)
            result = _fit(model, found, row)
            if result is not None:
                rows.append(result)
        _check_failures(table, own)
        ran = [row for row in table if row["status"] == "ok"]
        labels = np.array(rows)
        agreement, weights = rank_settings(labels, [row["group"] for row in ran])
        for row, score, weight in zip(ran, agreement, weights, strict=True):
            row |= {"agreement": float(score), "weight": float(weight)}
        merged, certainty = consensus(labels, weights, c, random_state=number)
        nearness = pairwise_nmi(np.vstack([merged, labels]))[0, 1:]
        for row, score in zip(ran, nearness, strict=True):
            row["nearness"] = float(score)
        chosen = ran[int(np.argmax(np.where(weights > 0, nearness, -1)))]
        best = clone(settings[next(i for i, row in enumerate(table) if row is chosen)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the row has them
            best.fit(found)
    if progress is not None:
        progress(len(settings), len(settings), "done")
    asked: dict[str, Any] = {"n_clusters": n_clusters}
    asked |= {} if estimator is GRMSC else {"estimator": estimator}
    others = {"grid": grid, "budget": budget, "random_state": random_state, "device": device}
    asked |= {name: value for name, value in others.items() if value is not None}
    return Selection(merged, certainty, best, table, c, evidence, asked)


def default_grid(n: int, n_clusters: int) -> list[dict[str, Any]]:
    """Return the settings of `GRMSC` that `select` runs for n samples, the most different first.

    Neighbourhoods and kept entries are at most as large as a cluster of mean size: larger ones
    join clusters. Every representation serves several affinities for one solve.

    Examples
    --------
    >>> [len(default_grid(n, 5)) for n in (100, 500, 1000, 2000, 5000)]
    [20, 42, 42, 21, 3]
    """
    size = max(10, n // n_clusters)
    affinities: list[dict[str, Any]] = [
        {"affinity": "sparse", "n_kept": kept} for kept in (10, 30) if kept <= size
    ]
    return [
        solve | affinity
        for solve in exact_solves(n, (min(30, size), 10, size))
        for affinity in [*affinities, {"affinity": "dense"}]
    ]


def anchor_grid(n: int, n_clusters: int) -> list[dict[str, Any]]:
    """Return the settings of `AnchorGRMSC` that `select` runs for many samples, the cheapest first.

    Two numbers of anchors, the smaller of at least five for a cluster where that is affordable:
    the links of all samples to the anchors are ten million at most, or to the smaller number.
    Every representation serves two numbers of kept links. Beyond 50,000 samples there are fewer
    representations, so that the time grows less, down to one for each scaling.

    Examples
    --------
    >>> [len(anchor_grid(n, 10)) for n in (5_000, 50_000, 100_000, 1_000_000)]
    [16, 16, 8, 4]
    >>> sorted({params["n_anchors"] for params in anchor_grid(10_000, 10)})
    [100, 500]
    """
    most = LINKS // n
    few = max(FEWEST_ANCHORS, min(5 * n_clusters, max(2 * n_clusters, most)))
    many = min(5 * few, most)
    solves = anchor_solves([few, many] if many >= 2 * few else [few])
    solves = solves[: max(len(SCALINGS), int(8 * min(1.0, FULL_ANCHOR_GRID_BELOW / n)))]
    return [solve | {"n_kept": kept} for solve in solves for kept in (3, 10)]


def _baselines(n: int, n_clusters: int, anchored: bool) -> list[MultiViewClusterer]:
    """What costs little, and what a user with so many samples would try instead."""
    models: list[MultiViewClusterer] = []
    if anchored:
        more = min(n, max(FEWEST_ANCHORS, 2 * n_clusters))
        models += [LMVSC(scale=scale, n_anchors=m) for m in (None, more) for scale in SCALINGS]
    if n <= SPECTRAL_UP_TO:
        models += [
            ConcatSpectral(scale=scale, n_neighbors=min(k, n - 1))
            for k in ((10, 30) if anchored else (10, 15, 30))
            for scale in SCALINGS
        ]
    return models + [ConcatKMeans(scale=scale) for scale in SCALINGS]


def _settings(
    n: int,
    n_clusters: int,
    estimator: type[MultiViewClusterer],
    grid: Sequence[Mapping[str, Any]] | None,
    device: str | None,
) -> list[MultiViewClusterer]:
    """The grid."""
    if grid is None:
        grid = default_grid(n, n_clusters) if estimator is GRMSC else [{}]
    # Without a device nothing is said: not every method has the parameter.
    where = {} if device is None or not _has_device(estimator) else {"device": device}
    return [estimator(**(where | dict(params))) for params in grid]


def _has_device(estimator: type[MultiViewClusterer]) -> bool:
    return "device" in estimator().get_params(deep=False)


def _row(model: MultiViewClusterer) -> dict[str, Any]:
    """Row of the table for a setting that has not run yet."""
    values = model.get_params(deep=False)
    plain = type(model)().get_params(deep=False)
    method = type(model).__name__
    # Settings are alike when they share the method, the scaling and the kind of affinity.
    kind = [str(values[name]) for name in ("affinity", "scale") if name in values]
    return {
        "method": method,
        "setting": {k: v for k, v in values.items() if repr(v) != repr(plain[k])},
        "group": " ".join([method, *kind]),
        "agreement": None,
        "nearness": None,
        "weight": 0.0,
        "seconds": 0.0,
        "status": "not run",
        "reason": "",
    }


def _name(row: dict[str, Any]) -> str:
    """The setting as one would type it."""
    return f"{row['method']}({', '.join(f'{k}={v!r}' for k, v in row['setting'].items())})"


def _fit(model: MultiViewClusterer, views: Views, row: dict[str, Any]) -> np.ndarray | None:
    """Fit one setting and fill its row; the labels, or None when it failed."""
    started = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            labels = clone(model).fit(views).labels_  # the model itself keeps no n x n matrix
        row |= {"status": "ok", "reason": "; ".join(dict.fromkeys(str(w.message) for w in caught))}
    except Exception as error:  # whatever it is, the other settings can go on
        labels = None
        row |= {"status": "failed", "reason": f"{type(error).__name__}: {error}"}
    row["seconds"] = time.perf_counter() - started
    return labels


def _check_failures(table: list[dict[str, Any]], estimator: type[MultiViewClusterer]) -> None:
    """Raise when nothing is left, warn when the method itself has nothing to say."""
    failed = [row for row in table if row["status"] == "failed"]
    if failed and not any(row["status"] == "ok" for row in table):
        raise RuntimeError(
            f"All {len(failed)} settings failed; the first, {_name(failed[0])}, with "
            f"{failed[0]['reason']}"
        )
    own = [row for row in table if row["method"] == estimator.__name__]
    if own and all(row["status"] == "failed" for row in own):
        warnings.warn(
            f"All {len(own)} settings of {estimator.__name__} failed ({own[0]['reason']}): the "
            "labels come from the baselines alone.",
            UserWarning,
            stacklevel=3,
        )


def _check_arguments(
    n_clusters: Any,
    estimator: Any,
    grid: Any,
    budget: Any,
    random_state: Any,
    progress: Any,
    device: Any,
) -> None:
    """Refuse what cannot work before any work is done."""
    whole = integer(1)(n_clusters)
    if whole is not None and not (isinstance(n_clusters, str) and n_clusters == "auto"):
        raise ValueError(f'select: n_clusters must be {whole}, or "auto"; got {n_clusters!r}.')
    if not (isinstance(estimator, type) and issubclass(estimator, MultiViewClusterer)):
        raise ValueError(
            "select: estimator must be a class of polyspan such as GRMSC (not an instance); got "
            f"{estimator!r}."
        )
    values = {"budget": budget, "random_state": random_state, "device": device}
    checks = {"random_state": seed, "device": device_name}
    check_params("select", values, checks | ({} if budget is None else {"budget": real(0)}))
    if device is not None:
        check_device("select", device)
    if progress is not None and not callable(progress):
        raise ValueError(f"select: progress must be a function or None; got {progress!r}.")
    if grid is None:
        return
    if isinstance(grid, str | Mapping) or not isinstance(grid, Iterable) or len(list(grid)) == 0:
        raise ValueError(
            f"select: grid must be a list of dictionaries of parameters, not empty; got {grid!r}."
        )
    known = set(estimator().get_params(deep=False)) - {"n_clusters", "random_state", "views"}
    for i, params in enumerate(grid):
        if not isinstance(params, Mapping):
            raise ValueError(
                f"select: grid[{i}] must be a dictionary of parameters; got {params!r}."
            )
        if unknown := sorted(set(params) - known, key=str):
            raise ValueError(
                f"select: grid[{i}] has {unknown[0]!r}, which a grid of {estimator.__name__} "
                f"cannot set: use {', '.join(sorted(known))}."
            )
