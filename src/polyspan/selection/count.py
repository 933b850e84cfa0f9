"""Estimate the number of clusters without labels, from eigengap and stability, with the evidence.

It uses solutions of `GRMSC`, or of `AnchorGRMSC` where there are too many samples for `GRMSC`.
`ConsensusClusterer` counts by the same rule.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, TypedDict

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from polyspan.chunked.workers import Threads
from polyspan.clustering.affinity import affinity_matrix
from polyspan.clustering.spectral import cluster_rows
from polyspan.graphs.proximity import normalized
from polyspan.inputs.devices import check_device
from polyspan.inputs.params import check_params, device_or_none, integer, seed
from polyspan.inputs.rows import missing_rows
from polyspan.inputs.views import Views, check_views
from polyspan.methods.anchor_grmsc.anchors import embed, link_spectrum
from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC
from polyspan.methods.grmsc import GRMSC
from polyspan.progress import Tell
from polyspan.selection.grids import EXACT_UP_TO, anchor_solves, exact_solves, exactly
from polyspan.solvers.arrays import to_numpy
from polyspan.solvers.cache import sharing

N_CANDIDATES = 8  # numbers of clusters whose stability is measured
ANCHORS = 500  # anchors of the solutions whose spectra are used
COUNTED = 20_000  # samples used where there are more


class Evidence(TypedDict, total=False):
    """Everything `count_clusters` measured; empty if the number of clusters was given.

    The lists ``gaps``, ``stability`` and ``scores`` have one number for each of ``candidates``.
    """

    candidates: list[int]
    gaps: list[float]
    stability: list[float]
    scores: list[float]
    votes: dict[str, int]  # the keys are strings, as in JSON
    eigenvalues: list[float]
    settings: list[dict[str, Any]]
    chosen: int


def count_clusters(
    views: Any,
    random_state: int | np.random.RandomState | None = None,
    max_clusters: int | None = None,
    progress: Tell | None = None,
    device: str | None = None,
) -> tuple[int, Evidence]:
    """Estimate the number of clusters from eigengap and stability.

    A graph with c clear clusters has c large eigenvalues and a gap after them. The spectra of the
    sparse affinities of several settings of `GRMSC` are averaged, and the numbers with the
    largest gaps are the candidates. Every setting is clustered into each candidate number, and
    stability is the mean adjusted Rand index between settings: with a wrong number, each setting
    splits or joins clusters differently. The answer is the candidate with the largest product of
    gap and stability.

    With more than 4,000 samples (10,000 with a GPU as ``device``), settings of `AnchorGRMSC` with
    500 anchors are used instead, fitted to at most 20,000 samples drawn at random. Two samples are
    then linked by the anchors they share; the eigenvalues are those of this normalised affinity,
    which are the squared singular values of the links.

    Stability is not measured on subsamples of a solved affinity: the links would stay the same,
    and small pieces would be found again whatever the data. On noise, such a stability grows with
    the number of clusters, while agreement between settings does not
    (``benchmarks/count_rules.py``).

    Parameters
    ----------
    views : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
        The views, as for any method. No sample may lack a view.
    random_state : int, RandomState or None, default=None
        Seeds k-means.
    max_clusters : int, default=None
        Largest number to consider; None is n / 5, and at most 100 where anchors are used.
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
        candidate; stability is 1 where there is only one setting, from about 3,400 samples until
        anchors are used), ``scores`` (gap times stability, divided by the largest: consider all
        candidates near 1), ``votes`` (for each number, how many settings have their largest gap
        there), ``eigenvalues`` (the mean spectrum, largest first), ``settings`` and ``chosen``.

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
        {"random_state": seed, "max_clusters": integer(2, none="n / 5"), "device": device_or_none},
    )
    if device is not None:
        check_device("count_clusters", device)
    number = int(check_random_state(random_state).randint(2**31))
    with sharing():
        return count(
            complete_views("count_clusters", views), number, max_clusters, progress, device
        )


def count(
    views: Views,
    number: int,
    max_clusters: int | None,
    progress: Tell | None,
    device: str | None,
) -> tuple[int, Evidence]:
    """Do the work of `count_clusters`; call it inside `sharing`."""
    n = views.n_samples
    check_countable(n)
    limit = min(max(2, n // 5) if max_clusters is None else max_clusters, n - 1)
    if exactly(views, device):
        found = list(_exact_spectra(views, limit, progress, device))
    else:
        limit = min(limit, ANCHORS // 5 if max_clusters is None else COUNTED - 1)
        found = list(_anchor_spectra(views, limit, number, progress))
    solves = [params for params, _, _ in found]
    spectra, vectors = [w for _, w, _ in found], [V for _, _, V in found]
    mean = np.mean(spectra, axis=0)
    gaps = mean[1:-1] - mean[2:]  # gaps[i] is the gap after i + 2 eigenvalues
    candidates = [int(i) + 2 for i in np.argsort(-gaps, kind="stable")[:N_CANDIDATES]]
    stability = [stability_of(vectors, c, number) for c in candidates]
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


def check_countable(n: int) -> None:
    """Refuse too few samples to count clusters in."""
    if n < 5:
        raise ValueError(
            f"The number of clusters cannot be estimated from {n} sample{'s' * (n != 1)}: "
            "pass n_clusters."
        )


def _exact_spectra(
    views: Views, limit: int, progress: Tell | None, device: str | None
) -> Iterator[tuple[dict[str, Any], np.ndarray, np.ndarray]]:
    """Settings, ``limit + 1`` eigenvalues and eigenvectors of their graphs, largest first."""
    n = views.n_samples
    for params, W in exact_affinities(views, progress, device):
        w, V = scipy.linalg.eigh(normalized(W), subset_by_index=[n - limit - 1, n - 1])
        yield params, w[::-1], V[:, ::-1]


def _anchor_spectra(
    views: Views, limit: int, number: int, progress: Tell | None
) -> Iterator[tuple[dict[str, Any], np.ndarray, np.ndarray]]:
    """The same for the graphs of `AnchorGRMSC`, on at most `COUNTED` samples."""
    n = views.n_samples
    if n > COUNTED:
        rows = np.sort(np.random.RandomState(number).choice(n, COUNTED, replace=False))
        few = [X[rows] if sp.issparse(X) else to_numpy(X)[rows] for X in views.arrays]
        views = Views(few, views.names)
    settings = anchor_solves([min(n, COUNTED, max(ANCHORS, 2 * limit))])
    for done, params in enumerate(settings):
        if progress is not None:
            progress(done, len(settings), f"number of clusters: AnchorGRMSC {params}")
        model = AnchorGRMSC(2, **params, random_state=number)
        try:
            model.fit(views)
        except MemoryError:
            if params["scale"] == "unit":
                raise
            continue  # this scaling makes wide sparse views dense, the other does not
        with Threads(model.n_jobs) as workers:
            Zs = [model.representation_.T]
            w, graph = link_spectrum(workers, Zs, limit + 1, model.n_kept)
            yield params, w[::-1], embed(Zs[0], graph)[:, ::-1]


def exact_affinities(
    views: Views, progress: Tell | None, device: str | None
) -> Iterator[tuple[dict[str, Any], np.ndarray]]:
    """Settings of `GRMSC` and their sparse affinities; a consensus needs most of these anyway."""
    n = views.n_samples
    solves = [params for params in exact_solves(n, (30, 10)) if "orientation" not in params]
    for done, params in enumerate(solves):
        if progress is not None:
            progress(done, len(solves), f"number of clusters: GRMSC {params}")
        model = GRMSC(2, **params, device=device)  # the solution is the same for any number
        try:
            Z = model.represent(views)
        except MemoryError:
            if params["scale"] == "unit":
                raise
            continue  # this scaling makes wide sparse views dense, the other does not
        yield params, affinity_matrix(Z, "sparse", 10).toarray()


def stability_of(vectors: list[np.ndarray], c: int, number: int) -> float:
    """Mean adjusted Rand index between the settings' clusterings into c clusters."""
    found = [cluster_rows(V[:, :c], c, n_init=5, random_state=number) for V in vectors]
    pairs = [adjusted_rand_score(a, b) for a, b in combinations(found, 2)]
    return float(np.mean(pairs)) if pairs else 1.0


def complete_views(owner: str, X: Any, columns: Any = None, estimator: Any = None) -> Views:
    """Check the views; samples that lack one, which `GRMSC` could handle, are an error."""
    try:
        return check_views(X, columns, estimator)
    except ValueError as error:
        try:
            found = check_views(X, columns, missing=True)
        except ValueError:
            raise error from None
        gone = [name for X, name in zip(*found, strict=True) if missing_rows(X) is not None]
        other = ", or fit GRMSC, which can handle them, with a number of clusters you choose"
        raise ValueError(
            f"view {gone[0]} contains NaN (samples that lack this view), but {owner} needs every "
            "view of every sample: leave these samples out"
            f"{other if found[0][0].shape[0] <= EXACT_UP_TO else ''}."
        ) from None
