"""Clustering without labels and without tuning: many settings, and what they agree on.

Nobody without labels can tell which setting is good, but good settings tend to find the same
clusters and bad ones each their own. So `select` runs a grid of settings and the plain baselines,
scores each by how well its labels agree with those of the others, and clusters the samples once
more by how often the better settings put them together.
"""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from polyspan.affinity import affinity_matrix
from polyspan.base import MultiViewClusterer
from polyspan.devices import check_device
from polyspan.graphs import normalized
from polyspan.methods.baselines import ConcatKMeans, ConcatSpectral
from polyspan.methods.grmsc import GRMSC
from polyspan.params import check_params, device_name, integer, real, seed
from polyspan.sharing import sharing
from polyspan.spectral import cluster_rows, spectral_clustering
from polyspan.views import Views, check_views, missing_rows

Progress = Callable[[int, int, str], Any]

SCALINGS = ("unit", "standard+unit")
FULL_GRID_BELOW = 1500  # samples; with more the number of solves falls like 1 / n^2
N_CANDIDATES = 8  # numbers of clusters that are tried for stability


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
        entered it, fitted. It may be one of the baselines; `ConcatKMeans` and `ConcatSpectral`
        have no ``predict``.
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
    A setting's agreement is the mean normalised mutual information between its labels and those
    of the others, first averaged within groups of like settings so that a large group does not
    outvote a small one. The better half enters the consensus: samples are clustered (spectral
    clustering) by how often these settings put them together.

    Parameters
    ----------
    views : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
        The views, as every method takes them. No sample may lack a view: the baselines need all.
    n_clusters : int or "auto"
        Number of clusters; ``"auto"`` asks `count_clusters`, which never answers 1.
    estimator : class, default=GRMSC
        The method that the grid is of.
    grid : list of dict, default=None
        Parameters of the settings to run, in this order. None is a grid of this module for
        `GRMSC`, smaller for many samples, and the defaults for other methods.
    budget : float, default=None
        Seconds after which no new setting is started; at least one runs. With a budget the result
        depends on the speed of the machine. None runs the whole grid.
    random_state : int, RandomState or None, default=None
        Seeds k-means; one seed serves all settings.
    progress : callable, default=None
        Called as ``progress(done, total, text)`` before every setting and at the end.
    device : str or None, default=None
        Where the methods that have a parameter ``device`` compute, such as ``"cuda"``, see
        `GRMSC`; a setting of ``grid`` may name its own.

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
    found = _complete("select", views)
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
            c, evidence = _count(found, number, None, progress, device)
        else:
            c = int(n_clusters)
        settings = _settings(n, c, estimator, grid, device)
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
        _check_failures(table, estimator)
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
        for solve in _solves(n, (min(30, size), 10, size))
        for affinity in [*affinities, {"affinity": "dense"}]
    ]


def _solves(n: int, neighbors: Sequence[int]) -> list[dict[str, Any]]:
    """Parameters that change the representation; fewer for many samples, a solve is O(n^3)."""
    ks = [min(k, n - 1) for k in dict.fromkeys(neighbors)]
    solves: list[dict[str, Any]] = [
        {"scale": scale, "n_neighbors": k, "lam1": lam1, "lam2": lam2}
        for lam1, lam2 in ((100.0, 1000.0), (1.0, 10.0))
        for k in ks
        for scale in SCALINGS
    ]
    solves += [
        {"scale": scale, "n_neighbors": ks[0], "orientation": "published"} for scale in SCALINGS
    ]
    return solves[: max(1, int(len(solves) * min(1.0, (FULL_GRID_BELOW / n) ** 2)))]


def _settings(
    n: int,
    n_clusters: int,
    estimator: type[MultiViewClusterer],
    grid: Sequence[Mapping[str, Any]] | None,
    device: str | None,
) -> list[MultiViewClusterer]:
    """The baselines, which cost little, then the grid."""
    models: list[MultiViewClusterer] = [
        ConcatSpectral(scale=scale, n_neighbors=min(k, n - 1))
        for k in (10, 15, 30)
        for scale in SCALINGS
    ]
    models += [ConcatKMeans(scale=scale) for scale in SCALINGS]
    if grid is None:
        grid = default_grid(n, n_clusters) if estimator is GRMSC else [{}]
    # Without a device nothing is said: not every method has the parameter.
    where = {} if device is None or not _has_device(estimator) else {"device": device}
    return models + [estimator(**(where | dict(params))) for params in grid]


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


def _complete(owner: str, views: Any) -> Views:
    """Checked views; samples that lack one, which `GRMSC` would take, are refused in words."""
    try:
        return check_views(views)
    except ValueError as error:
        try:
            found = check_views(views, None, GRMSC())
        except ValueError:
            raise error from None
        gone = [name for X, name in zip(*found, strict=True) if missing_rows(X) is not None]
        raise ValueError(
            f"view {gone[0]} contains NaN, samples without this view, and {owner} needs every view "
            "of every sample: leave these samples out, or fit GRMSC with a number of clusters of "
            "your own, which takes them."
        ) from None


def rank_settings(labels: np.ndarray, groups: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Score settings by their agreement with the others, and weigh them for the consensus.

    Parameters
    ----------
    labels : (m, n) array of int
        One row of labels per setting.
    groups : m strings
        Which settings are alike.

    Returns
    -------
    agreement : (m,) array
        Mean over the groups of the mean normalised mutual information with their settings.
    weights : (m,) array
        Equal for the better half, 0 for the others; their sum is 1.

    Examples
    --------
    >>> labels = np.array([[0, 0, 1, 1]] * 3 + [[0, 1, 0, 1]])
    >>> agreement, weights = rank_settings(labels, ["a", "a", "b", "b"])
    >>> agreement.round(2), weights.round(2)
    (array([0.75, 0.75, 0.5 , 0.  ]), array([0.5, 0.5, 0. , 0. ]))
    """
    A = pairwise_nmi(labels)
    m = len(A)
    names = np.array(groups)
    means = []
    for group in dict.fromkeys(groups):
        others = (names == group)[None, :] & ~np.eye(m, dtype=bool)  # not with itself
        counts = others.sum(axis=1)
        means.append(np.where(counts > 0, (A * others).sum(axis=1) / np.maximum(counts, 1), np.nan))
    # A setting alone in its group has no mean there; alone in all, it agrees with itself.
    agreement = np.nanmean(np.array(means), axis=0) if m > 1 else np.ones(1)
    better = agreement >= np.median(agreement)
    return agreement, better / better.sum()


def pairwise_nmi(labels: np.ndarray) -> np.ndarray:
    """Normalised mutual information between all rows of labels.

    Examples
    --------
    >>> pairwise_nmi(np.array([[0, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]])).round(2)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    m, n = labels.shape
    H, starts = _indicators(labels)
    entropies = np.add.reduceat(_plogp(H.sum(axis=0) / n), starts)
    A = np.eye(m)
    for i in range(m - 1):
        end = starts[i + 1]
        joint = sp.coo_array(H[:, starts[i] : end].T @ H[:, end:])
        setting = np.searchsorted(starts[i + 1 :] - end, joint.coords[1], side="right") - 1
        both = np.bincount(setting, weights=_plogp(joint.data / n), minlength=m - i - 1)
        total = entropies[i] + entropies[i + 1 :]
        # One cluster alone has no entropy: two such clusterings are the same.
        A[i, i + 1 :] = np.where(total > 0, 2 * (total - both) / np.where(total > 0, total, 1), 1.0)
    return np.clip(np.maximum(A, A.T), 0.0, 1.0)


def _plogp(p: np.ndarray) -> np.ndarray:
    return -p * np.log(np.where(p > 0, p, 1.0))


def _indicators(labels: np.ndarray) -> tuple[sp.csc_array, np.ndarray]:
    """Samples x clusters of all rows of labels, 1 where the sample is in it; first columns."""
    rows = [np.unique(row, return_inverse=True)[1] for row in labels]
    sizes = [row.max() + 1 for row in rows]
    starts = np.cumsum([0, *sizes[:-1]])
    columns = np.concatenate([row + start for row, start in zip(rows, starts, strict=True)])
    samples = np.tile(np.arange(labels.shape[1]), len(rows))
    shape = labels.shape[1], int(sum(sizes))
    return sp.csc_array((np.ones(len(columns)), (samples, columns)), shape=shape), starts


def consensus(
    labels: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Cluster the samples by the share of settings that put them together.

    Parameters
    ----------
    labels : (m, n) array of int
        One row of labels per setting.
    weights : (m,) array
        Weights of the settings; their sum is 1.
    n_clusters : int
        Number of clusters.
    random_state : int, RandomState or None, default=None
        Seeds k-means.

    Returns
    -------
    merged : (n,) array of int
        The clusters.
    certainty : (n,) array
        Mean share for the others of the sample's cluster, less that for the best other cluster,
        between 0 and 1.

    Examples
    --------
    >>> rows = np.array([[0, 0, 0, 1, 1, 1], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 1, 1]])
    >>> merged, certainty = consensus(rows, np.ones(3) / 3, 2, random_state=0)
    >>> bool(merged[0] == merged[1] == merged[2] != merged[5]), int(certainty.argmin())
    (True, 3)
    """
    used = weights > 0
    H, starts = _indicators(labels[used])
    counts = np.diff([*starts, H.shape[1]])
    B = sp.csr_array(H @ sp.diags_array(np.sqrt(np.repeat(weights[used], counts))))
    n, d = B.shape
    if n <= d:
        merged = spectral_clustering((B @ B.T).toarray(), n_clusters, random_state=random_state)
    else:  # the same eigenvectors from the smaller matrix, and nothing n x n for many samples
        degrees = B @ (B.T @ np.ones(n))
        N = sp.csr_array(sp.diags_array(1 / np.sqrt(degrees)) @ B)
        top = [max(d - n_clusters, 0), d - 1]
        w, V = scipy.linalg.eigh((N.T @ N).toarray(), subset_by_index=top)
        sure = w > d * np.finfo(float).eps
        Y = N @ np.where(sure, V / np.sqrt(np.where(sure, w, 1.0)), 0.0)
        merged = cluster_rows(Y, n_clusters, random_state=random_state)
    return merged, _certainty(B, merged)


def _certainty(B: sp.csr_array, merged: np.ndarray) -> np.ndarray:
    """Own cluster's mean co-association (without the sample itself) less the best other's."""
    names, own = np.unique(merged, return_inverse=True)
    G, _ = _indicators(own[None, :])
    sums, sizes = (B @ (B.T @ G)).toarray(), np.bincount(own)
    rows = np.arange(len(own))
    inside = (sums[rows, own] - 1) / np.maximum(sizes[own] - 1, 1)  # with itself it is always
    if len(names) == 1:
        return np.clip(inside, 0.0, 1.0)
    shares = sums / sizes
    shares[rows, own] = -1
    inside = np.where(sizes[own] > 1, inside, 1.0)  # alone: nobody of its own can contradict
    return np.clip(inside - shares.max(axis=1), 0.0, 1.0)


def count_clusters(
    views: Any,
    random_state: int | np.random.RandomState | None = None,
    max_clusters: int | None = None,
    progress: Progress | None = None,
    device: str | None = None,
) -> tuple[int, dict[str, Any]]:
    """Estimate the number of clusters: eigengap and stability together.

    A graph of c clear clusters has c large eigenvalues and a gap after them. The spectra of the
    sparse affinities of several settings of `GRMSC` are averaged, and the numbers with the
    largest gaps are the candidates. For each of them every setting is clustered, and stability is
    the mean adjusted Rand index between settings: a wrong number is split or joined differently
    by each. The answer is the candidate with the largest product of gap and stability.

    Stability is not that of subsamples of a solved affinity: its links would stay as they are, and
    small pieces would be found again whatever the data. On noise, that grows with the number of
    clusters, and agreement between settings does not (``benchmarks/count_rules.py``).

    Parameters
    ----------
    views : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
        The views, as every method takes them. No sample may lack a view.
    random_state : int, RandomState or None, default=None
        Seeds k-means.
    max_clusters : int, default=None
        Largest number to consider; None is n / 5.
    progress : callable, default=None
        Called as ``progress(done, total, text)``.
    device : str or None, default=None
        Where to compute, such as ``"cuda"``, see `GRMSC`.

    Returns
    -------
    n_clusters : int
        At least 2.
    evidence : dict
        ``candidates`` (numbers, the largest gap first), ``gaps`` and ``stability`` (one for each
        candidate; stability is 1 where there is only one setting, with very many samples),
        ``scores`` (their product as a share of the largest: look at all that are near 1),
        ``votes`` (how many settings have their own largest gap at which number),
        ``eigenvalues`` (the mean spectrum, largest first), ``settings`` and ``chosen``.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> from polyspan.selection import count_clusters
    >>> data = make_subspaces(n_samples=90, n_clusters=3, random_state=0)
    >>> count_clusters(data.views, random_state=0)[0]
    3
    """
    check_params(
        "count_clusters",
        {"random_state": random_state, "max_clusters": max_clusters, "device": device},
        {"random_state": seed, "max_clusters": integer(2, none="n / 5"), "device": device_name},
    )
    if device is not None:
        check_device("count_clusters", device)
    number = int(check_random_state(random_state).randint(2**31))
    with sharing():
        return _count(_complete("count_clusters", views), number, max_clusters, progress, device)


def _count(
    views: Views,
    number: int,
    max_clusters: int | None,
    progress: Progress | None,
    device: str | None,
) -> tuple[int, dict[str, Any]]:
    """The work of `count_clusters`, inside `sharing`."""
    n = views.n_samples
    if n < 5:
        raise ValueError(
            f"The number of clusters cannot be estimated from {n} samples: give n_clusters."
        )
    limit = min(max(2, n // 5) if max_clusters is None else max_clusters, n - 1)
    solves, spectra, vectors = [], [], []
    for params, W in _graphs(views, progress, device):
        w, V = scipy.linalg.eigh(normalized(W), subset_by_index=[n - limit - 1, n - 1])
        solves.append(params)
        spectra.append(w[::-1])
        vectors.append(V[:, ::-1])
    mean = np.mean(spectra, axis=0)
    gaps = mean[1:-1] - mean[2:]  # gaps[i] is that after i + 2 eigenvalues
    candidates = [int(i) + 2 for i in np.argsort(-gaps, kind="stable")[:N_CANDIDATES]]
    stability = [_stability(vectors, c, number) for c in candidates]
    scores = np.array([gaps[c - 2] * s for c, s in zip(candidates, stability, strict=True)])
    chosen = candidates[int(np.argmax(scores))]
    own = [int(np.argmax(w[1:-1] - w[2:])) + 2 for w in spectra]
    return chosen, {
        "candidates": candidates,
        "gaps": [float(gaps[c - 2]) for c in candidates],
        "stability": stability,
        "scores": [float(x) for x in scores / (scores.max() if scores.max() > 0 else 1.0)],
        "votes": {str(c): own.count(c) for c in sorted({*own, *candidates})},
        "eigenvalues": [float(x) for x in mean],
        "settings": solves,
        "chosen": chosen,
    }


def _graphs(
    views: Views, progress: Progress | None, device: str | None
) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Settings of `GRMSC` and their sparse affinities; `select` solves most of them anyway."""
    n = views.n_samples
    solves = [params for params in _solves(n, (30, 10)) if "orientation" not in params]
    for done, params in enumerate(solves):
        if progress is not None:
            progress(done, len(solves), f"number of clusters: GRMSC {params}")
        model = GRMSC(2, **params, device=device)  # the solution is the same for any number
        checked = model._check(views)
        Z = model._solution(checked, model._scaled(checked, model.scale))
        yield params, affinity_matrix(Z, "sparse", 10).toarray()


def _stability(vectors: list[np.ndarray], c: int, number: int) -> float:
    """Mean adjusted Rand index between the settings' clusterings into c clusters."""
    found = [cluster_rows(V[:, :c], c, n_init=5, random_state=number) for V in vectors]
    pairs = [adjusted_rand_score(a, b) for a, b in combinations(found, 2)]
    return float(np.mean(pairs)) if pairs else 1.0
