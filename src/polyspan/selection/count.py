"""Estimate the number of clusters without labels: a short list, with the evidence.

One rule uses solutions of `GRMSC`, or of `AnchorGRMSC` where there are too many samples for it;
two use the neighbor graphs of the views (`polyspan.selection.viewgraphs`).
`ConsensusClusterer` counts by the same rules.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from typing import Any, TypedDict

import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from polyspan.chunked.workers import Threads
from polyspan.clustering.affinity import affinity_matrix
from polyspan.clustering.spectral import cluster_rows
from polyspan.graphs.proximity import normalized
from polyspan.inputs.params import check_params, device_or_none, integer, seed
from polyspan.inputs.rows import missing_rows
from polyspan.inputs.views import Views, check_views
from polyspan.methods.anchor_grmsc.anchors import embed, link_spectrum
from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC
from polyspan.methods.grmsc import GRMSC
from polyspan.progress import Tell
from polyspan.runtime.cache import sharing
from polyspan.runtime.devices import check_device
from polyspan.selection.drawn import tell_drawn
from polyspan.selection.grids import anchor_solves, exact_solves, exactly
from polyspan.selection.shortlist import nesting, shortlist
from polyspan.selection.viewgraphs import (
    MOST,
    SEEN,
    Embedded,
    cluster_vectors,
    embed_graphs,
    measure,
    measure_numbers,
    sample_of,
    view_graphs,
)
from polyspan.solvers.eigen import highest_eigenpairs
from polyspan.solvers.loop import OutOfTime, stopping

FEWEST = 4  # samples in a mean cluster, if no limit is given
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
    shortlist: list[dict[str, Any]]
    nesting: list[dict[str, Any]]
    graph: dict[str, list[Any]]
    drawn: str  # what the part of the samples that was looked at can miss; "" if it was all


Spectrum = tuple[dict[str, Any], np.ndarray, np.ndarray]  # setting, eigenvalues, eigenvectors


def count_clusters(
    views: Any,
    random_state: int | np.random.RandomState | None = None,
    max_clusters: int | None = None,
    progress: Tell | None = None,
    device: str | None = None,
    deadline: float | None = None,
) -> tuple[int, Evidence]:
    """Estimate the number of clusters: a short list by three rules; the answer is its first.

    - ``"settings"``: a graph with c clear clusters has c large eigenvalues and a gap after them.
      The spectra of the sparse affinities of several settings of `GRMSC` are averaged, and the
      numbers with the largest gaps are the candidates. Every setting is clustered into each
      candidate number, and stability is the mean adjusted Rand index between settings: with a wrong
      number, each setting splits or joins clusters differently. The score is gap times stability.
    - ``"views"``: the mean of the views' neighbor graphs is clustered into every number, and so is
      the graph of each view. The score is the modularity of the fused clusters on the views' graphs
      times their agreement with the views' own clusters (mean adjusted Rand index).
    - ``"mean graph"``: the score is the eigengap of the mean graph.

    Every rule divides its votes among the numbers by its scores, and counts more the better the
    clusterings that it compares agree. The first of the list has the most votes, with half of those
    for the numbers beside it. The others, four at most, cover the evidence: each has the most of
    what is left when the numbers on the list and those beside them, within 1 or 10%, are struck out
    (`polyspan.selection.shortlist`).
    Several of them may be right: data can have coarse clusters and fine ones within them.

    With more than 4,000 samples (10,000 with a GPU as ``device``), settings of `AnchorGRMSC` with
    500 anchors are used instead, fitted to at most 20,000 samples drawn at random. Two samples are
    then linked by the anchors they share; the eigenvalues are those of this normalized affinity,
    which are the squared singular values of the links.

    Stability is not measured on subsamples of a solved affinity: the links would stay the same,
    and small pieces would be found again whatever the data. On noise, such a stability grows with
    the number of clusters, while agreement between settings does not
    (``benchmarks/count_rules.py``).

    Parameters
    ----------
    views : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
        The views, as for any method. Samples may lack some (rows of NaN); where there are too many
        of them for `GRMSC`, the rule ``"settings"`` is then left out.
    random_state : int, RandomState or None, default=None
        Seeds k-means.
    max_clusters : int, default=None
        Largest number to consider; None is n / 4, and at most 100 where anchors are used.
    progress : callable, default=None
        Called as ``progress(done, total, text)``.
    device : str or None, default=None
        Where to compute, such as ``"cuda"``, see `GRMSC`.
    deadline : float, default=None
        Time of `time.perf_counter` after which no more solutions are computed. The neighbor graphs
        come first, and their smallest numbers of clusters are always measured. The result then
        depends on the speed of the machine.

    Returns
    -------
    n_clusters : int
        At least 2.
    evidence : dict
        ``shortlist``, a dict for every number on the list: ``n_clusters``, the ``rules`` that
        give it at least half of their best score, its ``score`` (its share of the votes),
        ``gap`` and ``stability`` between settings, ``modularity`` and ``agreement`` of the mean
        graph's clusters with the views.
        ``nesting``: which of the mean graph's clusters, numbered by size, split from one number on
        the list to the next larger one (`polyspan.selection.shortlist.nesting`). ``graph``: all
        that was measured on the neighbor graphs. Of the rule ``"settings"``: ``candidates``
        (numbers, the largest gap first), ``gaps`` and ``stability`` (one for each candidate;
        stability is 1 where there is only one setting, from about 3,500 samples until anchors are
        used), ``scores`` (gap times stability, divided by the largest), ``votes`` (for each number,
        how many settings have their largest gap there), ``eigenvalues`` (the mean spectrum, largest
        first) and ``settings``; without any solution, these are of the mean graph. ``chosen`` is
        the answer, and ``drawn`` says what was missed if not all samples were looked at.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> from polyspan.selection import count_clusters
    >>> data = make_subspaces(n_samples=90, n_clusters=3, random_state=0)
    >>> number, evidence = count_clusters(data.views, random_state=0)
    >>> number, [row["n_clusters"] for row in evidence["shortlist"]]
    (3, [3, 9, 12, 16, 6])
    """
    check_params(
        "count_clusters",
        {"random_state": random_state, "max_clusters": max_clusters, "device": device},
        {"random_state": seed, "max_clusters": integer(2, none="n / 4"), "device": device_or_none},
    )
    if device is not None:
        check_device("count_clusters", device)
    number = int(check_random_state(random_state).randint(2**31))
    with sharing():
        found = check_views(views, missing=True)
        return count(found, number, max_clusters, progress, device, deadline)


def count(
    views: Views,
    number: int,
    max_clusters: int | None,
    progress: Tell | None,
    device: str | None,
    deadline: float | None = None,
    among: int | None = None,
) -> tuple[int, Evidence]:
    """Do the work of `count_clusters`; call it inside `sharing`.

    The views may be a part, drawn at random, of ``among`` samples.
    """
    n = views.n_samples
    check_countable(n)
    limit = min(max(2, n // FEWEST) if max_clusters is None else max_clusters, n - 1)
    exact = exactly(views, device)
    if not exact:
        limit = min(limit, ANCHORS // 5 if max_clusters is None else COUNTED - 1)
    graphs = _embedded(views, min(limit, MOST) if max_clusters is None else limit, number)
    measured = {} if graphs is None else measure_numbers(graphs, deadline)
    spectra: Iterator[Spectrum] = iter(())
    if exact:
        spectra = _exact_spectra(views, limit, progress, device)
    elif all(missing_rows(X) is None for X in views.arrays):  # AnchorGRMSC needs every view
        spectra = _anchor_spectra(views, limit, number, progress)
    found = _in_time(spectra, deadline)
    vectors = [V for _, _, V in found or [_mean_graph(graphs)]]
    evidence = _compare_settings(found or [_mean_graph(graphs)], number)
    if graphs is not None:
        evidence["graph"] = {
            "numbers": list(measured),
            "modularity": [a for a, _ in measured.values()],
            "agreement": [b for _, b in measured.values()],
            "eigenvalues": graphs.eigenvalues.tolist(),
            "scales": graphs.graphs.scales,
        }
    rules = rule_scores(evidence)
    proposals = shortlist(rules, rule_agreement(evidence, rules))
    rows: list[dict[str, Any]] = []
    for c, names, score in proposals:
        row = {"n_clusters": c, "rules": names, "score": score}
        row["gap"] = evidence["eigenvalues"][c - 1] - evidence["eigenvalues"][c]
        row["stability"] = stability_of(vectors, c, number)
        row["modularity"], row["agreement"] = None, None
        if graphs is not None:
            row["modularity"], row["agreement"] = measured.get(c) or measure(graphs, c)
        rows.append(row)
    evidence |= {"chosen": proposals[0].n_clusters, "shortlist": rows, "nesting": []}
    evidence["drawn"] = tell_drawn(among or n, min(n, SEEN))
    if graphs is not None:
        labels = {c: cluster_vectors(graphs.vectors[:, :c]) for c, _, _ in proposals}
        evidence["nesting"] = nesting(labels)
    return evidence["chosen"], evidence


def rule_scores(evidence: Evidence) -> dict[str, dict[int, float]]:
    """What every rule says of every number of clusters, for `polyspan.selection.shortlist`.

    Examples
    --------
    >>> graph = {"numbers": [2, 3], "modularity": [0.5, 0.6], "agreement": [1.0, 0.5],
    ...          "eigenvalues": [1.0, 0.75, 0.25]}
    >>> rule_scores(Evidence(settings=[{"method": "MeanGraph"}], graph=graph))
    {'views': {2: 0.5, 3: 0.3}, 'mean graph': {2: 0.5}}
    """
    rules: dict[str, dict[int, float]] = {}
    if "method" not in evidence["settings"][0]:  # else there are only neighbor graphs
        rules["settings"] = dict(zip(evidence["candidates"], evidence["scores"], strict=True))
    if "graph" in evidence:
        graph = evidence["graph"]
        measured = zip(graph["numbers"], graph["modularity"], graph["agreement"], strict=True)
        rules["views"] = {c: max(0.0, a) * max(0.0, b) for c, a, b in measured}
        rules["mean graph"] = dict(enumerate(_gaps(np.array(graph["eigenvalues"])).tolist(), 2))
    return rules


def rule_agreement(evidence: Evidence, rules: dict[str, dict[int, float]]) -> dict[str, float]:
    """How far the clusterings behind a rule agree at its best number: adjusted Rand indices.

    Those of the settings agree with each other, or those of the mean graph with the views. A single
    setting has none to agree with, and even odds.

    Examples
    --------
    >>> graph = {"numbers": [2, 3], "modularity": [0.5, 0.6], "agreement": [0.9, 0.5],
    ...          "eigenvalues": [1.0, 0.75, 0.7, 0.1]}
    >>> evidence = Evidence(settings=[{"method": "MeanGraph"}], graph=graph)
    >>> rule_agreement(evidence, rule_scores(evidence))
    {'views': 0.9, 'mean graph': 0.5}
    """
    found = {}
    for rule, scores in rules.items():
        best = max(scores, key=lambda c: scores[c])
        if rule == "settings":
            measured = dict(zip(evidence["candidates"], evidence["stability"], strict=True))
        else:
            graph = evidence["graph"]
            measured = dict(zip(graph["numbers"], graph["agreement"], strict=True))
        found[rule] = measured[min(measured, key=lambda c: abs(c - best))]
    if len(evidence["settings"]) == 1 and "settings" in found:
        found["settings"] = 0.5
    return found


def _embedded(views: Views, limit: int, number: int) -> Embedded | None:
    """The neighbor graphs of at most `SEEN` samples; None if no scaling of them is possible."""
    try:
        few = sample_of(views, SEEN, number)
        return embed_graphs(view_graphs(few), min(limit, few.n_samples - 1))
    except (MemoryError, ValueError):
        return None


def _mean_graph(graphs: Embedded | None) -> Spectrum:
    """The mean graph in place of solutions, when there are none."""
    if graphs is None:
        raise ValueError("No number of clusters could be estimated in this time: pass n_clusters.")
    return {"method": "MeanGraph"}, graphs.eigenvalues, graphs.vectors


def _in_time(spectra: Iterator[Spectrum], deadline: float | None) -> list[Spectrum]:
    """Those that are found before the deadline."""
    found: list[Spectrum] = []
    if deadline is None or time.perf_counter() < deadline:
        with suppress(OutOfTime), stopping(deadline):
            for one in spectra:
                found.append(one)
    return found


def _compare_settings(found: list[Spectrum], number: int) -> Evidence:
    """Gaps of the mean spectrum, agreement between settings, and their products."""
    spectra, vectors = [w for _, w, _ in found], [V for _, _, V in found]
    mean = np.mean(spectra, axis=0)
    gaps = _gaps(mean)
    candidates = [int(i) + 2 for i in np.argsort(-gaps, kind="stable")[:N_CANDIDATES]]
    stability = [stability_of(vectors, c, number) for c in candidates]
    scores = np.array([gaps[c - 2] * s for c, s in zip(candidates, stability, strict=True)])
    own = [int(np.argmax(_gaps(w))) + 2 for w in spectra]
    return {
        "candidates": candidates,
        "gaps": [float(gaps[c - 2]) for c in candidates],
        "stability": stability,
        "scores": [float(x) for x in scores / (scores.max() if scores.max() > 0 else 1.0)],
        "votes": {str(c): own.count(c) for c in sorted({*own, *candidates})},
        "eigenvalues": [float(x) for x in mean],
        "settings": [params for params, _, _ in found],
    }


def _gaps(w: np.ndarray) -> np.ndarray:
    """Gaps after 2, 3, ... eigenvalues."""
    return w[1:-1] - w[2:]


def check_countable(n: int) -> None:
    """Refuse too few samples to count clusters in."""
    if n < 5:
        raise ValueError(
            f"The number of clusters cannot be estimated from {n} sample{'s' * (n != 1)}: "
            "pass n_clusters."
        )


def _exact_spectra(
    views: Views, limit: int, progress: Tell | None, device: str | None
) -> Iterator[Spectrum]:
    """Settings, ``limit + 1`` eigenvalues and eigenvectors of their graphs, largest first."""
    for params, W in exact_affinities(views, progress, device):
        w, V = highest_eigenpairs(normalized(W), limit + 1)
        yield params, w[::-1], V[:, ::-1]


def _anchor_spectra(
    views: Views, limit: int, number: int, progress: Tell | None
) -> Iterator[Spectrum]:
    """The same for the graphs of `AnchorGRMSC`, on at most `COUNTED` samples."""
    views = sample_of(views, COUNTED, number)
    settings = anchor_solves([min(views.n_samples, max(ANCHORS, 2 * limit))])
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
    solves = exact_solves(n, (30, 10))
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
