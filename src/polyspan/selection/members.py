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
from polyspan.inputs.devices import check_device
from polyspan.inputs.params import check_params, device_or_none, integer, real, seed
from polyspan.inputs.views import Views
from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC
from polyspan.methods.grmsc import GRMSC
from polyspan.selection.consensus import consensus, pairwise_nmi, rank_settings
from polyspan.selection.count import Evidence, Progress, complete_views, count
from polyspan.selection.grids import (
    anchor_grid,
    baselines,
    exactly,
    grid_settings,
)
from polyspan.solvers.cache import sharing
from polyspan.solvers.messages import warn_user


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
    evidence: Evidence
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
    evidence: Evidence = {}
    with sharing():
        if isinstance(n_clusters, str):
            c, evidence = count(found, number, None, progress, device)
        else:
            c = int(n_clusters)
        own, params = estimator, grid
        if estimator is GRMSC and grid is None and not exactly(found, device):
            own, params = AnchorGRMSC, anchor_grid(n, c)
        settings = baselines(n, c, own is not estimator) + grid_settings(n, c, own, params, device)
        table: list[dict[str, Any]] = []
        rows: list[np.ndarray] = []
        for model in settings:
            done = len(table)
            row = new_row(model)
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


def new_row(model: MultiViewClusterer) -> dict[str, Any]:
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
        warn_user(
            f"All {len(own)} settings of {estimator.__name__} failed ({own[0]['reason']}): the "
            "labels come from the baselines alone.",
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
    checks = {"random_state": seed, "device": device_or_none}
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
