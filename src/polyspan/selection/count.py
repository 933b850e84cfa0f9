"""Estimate the number of clusters without labels: a short list, with the evidence.

One rule uses graphs of self-expression, with and without neighbors; two use the neighbor graphs of
the views. `ConsensusClusterer` counts by the same rules.

**The graphs.** Every view has a neighbor graph, the mean over a few scalings, and the mean of these
graphs fuses the views. The mean graph and the graph of each view are clustered into every number
that is tried. Nothing is random but the choice of samples where there are very many, and the order
of the samples does not matter.

**The short list** has the most likely number, and four that cover the evidence. Every rule gives
numbers a score. Numbers come in steps: every one up to 20, then steps of 10%. A number on the list
covers its step and the two beside it, so that it is right within 1, or 10%.

- The first: every rule divides its votes among the numbers in proportion to its scores, so that a
  rule that likes many numbers decides little. The number with the most support is the answer: its
  own votes and half of those beside it, because an answer that is off by one step is worth half.
- The others: now the scores of a rule are divided by its largest, so that what an undecided rule
  holds possible counts too. What the first covers is struck out, and the next number is the one
  with the most support in what is left, and so on. So the list does not crowd around one number,
  and where the evidence is flat it spreads.

A rule counts by how far the clusterings that it compares agree at its best number: with an adjusted
Rand index of a, by the odds a / (1 - a), so that one that is sure is not outvoted by two that are
not. The list is in the order of the votes.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple, TypedDict

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_random_state

from polyspan.clustering.spectral import cluster_rows, graph_eigenvectors, quiet_kmeans, unit_rows
from polyspan.graphs.knn import mean_of_graphs, neighbor_graph
from polyspan.inputs.choice import two_scalings
from polyspan.inputs.params import check_params, device_or_none, integer, seed
from polyspan.inputs.scaling import Scale, Scaling, numpy_views, scaling_per_view
from polyspan.inputs.views import Views, check_views
from polyspan.methods.selfgraph import SelfGraph
from polyspan.runtime.cache import sharing
from polyspan.runtime.devices import check_device
from polyspan.runtime.messages import plural
from polyspan.selection.evidence import (
    NEIGHBORS,
    Part,
    all_of,
    clusters_by_rotation,
    modularity,
    sample_of,
    tell_drawn,
)

FEWEST = 4  # samples in a mean cluster, if no limit is given
N_CANDIDATES = 8  # numbers of clusters whose stability is measured
SEEN = 4_000  # samples that are looked at where there are more
MOST = 150  # clusters in these graphs, if no limit is given
LONGEST = 5  # numbers on the list
BESIDE = 0.5  # what the evidence of the steps beside a number counts
SUREST = 0.98  # agreement from which the odds of a rule grow no further
LEAST = 0.01  # agreement that any rule is credited with
PROPOSED = 0.5  # of its largest score: a rule proposes the numbers that have so much
SHARE = 0.1  # of a cluster that goes to another one: less is not a part of it
ALL_UP_TO = 20  # clusters; above, steps of 10%

Scores = Mapping[int, float]  # by number of clusters


class Spectrum(NamedTuple):
    """The largest eigenvalues of a normalized graph, largest first, and their eigenvectors."""

    setting: dict[str, Any]
    eigenvalues: np.ndarray
    vectors: np.ndarray


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


def count_clusters(
    views: Any,
    random_state: int | np.random.RandomState | None = None,
    max_clusters: int | None = None,
    device: str | None = None,
    deadline: float | None = None,
) -> tuple[int, Evidence]:
    """Estimate the number of clusters: a short list by three rules; the answer is its first.

    - ``"settings"``: a graph with c clear clusters has c large eigenvalues and a gap after them.
      The spectra of several settings of `SelfGraph` are averaged, and the numbers with the largest
      gaps are the candidates. Every setting is clustered into each candidate number, and stability
      is the mean adjusted Rand index between settings: with a wrong number, each setting splits or
      joins clusters differently. The score is gap times stability.
    - ``"views"``: the mean of the views' neighbor graphs is clustered into every number, and so is
      the graph of each view. The score is the modularity of the fused clusters on the views' graphs
      times their agreement with the views' own clusters (mean adjusted Rand index).
    - ``"mean graph"``: the score is the eigengap of the mean graph.

    Every rule divides its votes among the numbers by its scores, and counts more the better the
    clusterings that it compares agree. The first of the list has the most votes, with half of those
    for the numbers beside it. The others, four at most, cover the evidence: each has the most of
    what is left when the numbers on the list and those beside them, within 1 or 10%, are struck out
    (`shortlist`).
    Several of them may be right: data can have coarse clusters and fine ones within them.

    Of more than 4,000 samples so many are looked at, drawn at random.

    Stability is not measured on subsamples of a solved affinity: the links would stay the same,
    and small pieces would be found again whatever the data. On noise, such a stability grows with
    the number of clusters, while agreement between settings does not.

    Parameters
    ----------
    views : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
        The views, as for any method. Samples may lack some (rows of NaN).
    random_state : int, RandomState or None, default=None
        Seeds k-means.
    max_clusters : int, default=None
        Largest number to consider; None is n / 4, and at most 150.
    device : str or None, default=None
        Where to compute, such as ``"cuda"``, see `SelfGraph`.
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
        the list to the next larger one (`nesting`). ``graph``: all
        that was measured on the neighbor graphs. Of the rule ``"settings"``: ``candidates``
        (numbers, the largest gap first), ``gaps`` and ``stability`` (one for each candidate;
        stability is 1 where there is only one setting), ``scores`` (gap times stability, divided by
        the largest), ``votes`` (for each number, how many settings have their largest gap there),
        ``eigenvalues`` (the mean spectrum, largest first) and ``settings``; without any setting,
        these are of the mean graph. ``chosen`` is the answer, and ``drawn`` says what was missed if
        not all samples were looked at.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> from polyspan.selection import count_clusters
    >>> data = make_subspaces(n_samples=90, n_clusters=3, random_state=0)
    >>> number, evidence = count_clusters(data.views, random_state=0)
    >>> number, [row["n_clusters"] for row in evidence["shortlist"]]
    (3, [3, 10, 7, 12, 15])
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
        part = all_of(check_views(views, missing=True))
        return count(part, number, max_clusters, device, deadline)


def count(
    part: Part,
    seed: int,
    max_clusters: int | None = None,
    device: str | None = None,
    deadline: float | None = None,
    scales: Sequence[Sequence[Scaling]] | None = None,
) -> tuple[int, Evidence]:
    """Do the work of `count_clusters` in these scalings; call it inside `sharing`."""
    views, n = part.views, part.views.n_samples
    check_countable(n)
    few = sample_of(views, SEEN, seed)
    if scales is None:
        scales = two_scalings(views)
    most = min(n // FEWEST, MOST) if max_clusters is None else max_clusters
    most = min(max(2, most), few.n_samples - 1)
    graphs = None
    with suppress(MemoryError, ValueError):  # if no scaling is possible
        graphs = embed_graphs(view_graphs(few, scales), most)
    measured = {} if graphs is None else measure_numbers(graphs, deadline)
    spectra = list(_spectra(few, scales, most, device, deadline))
    if not spectra and graphs is None:
        raise ValueError("No number of clusters could be estimated in this time: pass n_clusters.")
    if not spectra and graphs is not None:
        spectra = [graphs.mean]
    vectors = [spectrum.vectors for spectrum in spectra]
    evidence = _compare_settings(spectra, seed)
    if graphs is not None:
        evidence["graph"] = {
            "numbers": list(measured),
            "modularity": [inside for inside, _ in measured.values()],
            "agreement": [agree for _, agree in measured.values()],
            "eigenvalues": graphs.mean.eigenvalues.tolist(),
            "scales": graphs.graphs.scales,
        }
    rules = rule_scores(evidence)
    rows: list[dict[str, Any]] = []
    for c, names, score in shortlist(rules, rule_agreement(evidence, rules)):
        row = {"n_clusters": c, "rules": names, "score": score}
        row["gap"] = evidence["eigenvalues"][c - 1] - evidence["eigenvalues"][c]
        row["stability"] = stability_of(vectors, c, seed)
        in_views = (None, None) if graphs is None else measured.get(c) or measure(graphs, c)
        row["modularity"], row["agreement"] = in_views
        rows.append(row)
    numbers = [row["n_clusters"] for row in rows]
    V = None if graphs is None else graphs.mean.vectors
    labels = {} if V is None else {c: cluster_vectors(V[:, :c]) for c in numbers}
    evidence |= {"chosen": numbers[0], "shortlist": rows, "nesting": nesting(labels)}
    evidence["drawn"] = tell_drawn(part.among, min(n, SEEN))
    return numbers[0], evidence


def check_countable(n: int) -> None:
    """Refuse too few samples to count clusters in."""
    if n < 5:
        raise ValueError(
            f"The number of clusters cannot be estimated from {plural(n, 'sample')}: "
            "pass n_clusters."
        )


# ---- settings of self-expression -----------------------------------------------------------------


def _spectra(
    views: Views,
    scales: Sequence[Sequence[Scaling]],
    most: int,
    device: str | None,
    deadline: float | None,
) -> Iterator[Spectrum]:
    """``most + 1`` eigenvalues of the graph of every setting of `SelfGraph`, if there is time."""
    k = min(NEIGHBORS, views.n_samples - 1)
    for scale, near in product(scales, (None, k)):
        if deadline is not None and time.perf_counter() > deadline:
            return
        model = SelfGraph(2, scale=list(scale), n_neighbors=near, device=device)
        with suppress(MemoryError, ValueError):  # too wide to be dense, or too large unscaled
            outcome = model.solve(views, numpy_views(views, scale))
            w, V = top_eigenvectors(outcome.W, most + 1)
            words = "/".join(map(str, dict.fromkeys(scale)))
            yield Spectrum({"scale": words, "n_neighbors": near}, w, V)


def _compare_settings(spectra: list[Spectrum], seed: int) -> Evidence:
    """Gaps of the mean spectrum, agreement between settings, and their products."""
    mean = np.mean([spectrum.eigenvalues for spectrum in spectra], axis=0)
    gaps = _gaps(mean)
    candidates = [int(i) + 2 for i in np.argsort(-gaps, kind="stable")[:N_CANDIDATES]]
    vectors = [spectrum.vectors for spectrum in spectra]
    stability = [stability_of(vectors, c, seed) for c in candidates]
    scores = np.array([gaps[c - 2] * s for c, s in zip(candidates, stability, strict=True)])
    largest = [int(np.argmax(_gaps(spectrum.eigenvalues))) + 2 for spectrum in spectra]
    return {
        "candidates": candidates,
        "gaps": [float(gaps[c - 2]) for c in candidates],
        "stability": stability,
        "scores": [float(x) for x in scores / (scores.max() if scores.max() > 0 else 1.0)],
        "votes": {str(c): largest.count(c) for c in sorted({*largest, *candidates})},
        "eigenvalues": [float(x) for x in mean],
        "settings": [spectrum.setting for spectrum in spectra],
    }


def _gaps(w: np.ndarray) -> np.ndarray:
    """Gaps after 2, 3, ... eigenvalues."""
    return w[1:-1] - w[2:]


def stability_of(vectors: list[np.ndarray], c: int, seed: int) -> float:
    """Mean adjusted Rand index between the settings' clusterings into c clusters."""
    labels = [cluster_rows(V[:, :c], c, n_init=5, random_state=seed) for V in vectors]
    pairs = [adjusted_rand_score(a, b) for a, b in combinations(labels, 2)]
    return float(np.mean(pairs)) if pairs else 1.0


# ---- graphs of the views -------------------------------------------------------------------------


class ViewGraphs(NamedTuple):
    """Neighbor graphs of the samples that are looked at."""

    mean: sp.csr_array
    views: list[sp.csr_array]  # one for each view; for a single view, one for each scaling
    scales: list[list[Scaling]]  # one scaling for each view


class Embedded(NamedTuple):
    """Graphs with the eigenvectors that they are clustered by."""

    graphs: ViewGraphs
    mean: Spectrum
    rows: list[np.ndarray]  # for every graph of a view, the samples that have the view
    vectors: list[np.ndarray]  # its eigenvectors, for these samples


def labels_for(
    views: Any,
    numbers: Sequence[int],
    scales: Sequence[Scale] | None = None,
    seed: int | None = None,
) -> dict[int, np.ndarray]:
    """Cluster the mean graph of the views into several numbers of clusters.

    The eigenvectors are computed once.

    Parameters
    ----------
    views : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
        The views; samples may lack some.
    numbers : list of int
        Numbers of clusters, 1 or more and below n.
    scales : list, default=None
        The scalings whose graphs are averaged, each for all views or one per view. None is the
        first two that suit the values.
    seed : int, default=None
        Seeds restarts of k-means; None has no restarts and is not random.

    Returns
    -------
    dict of int to (n,) array
        Labels by number of clusters. Clusters are numbered by size, the largest is 0.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=90, n_clusters=3, noise=0.1, random_state=1)
    >>> {c: np.bincount(labels).tolist() for c, labels in labels_for(data.views, [1, 3]).items()}
    {1: [90], 3: [30, 30, 30]}
    """
    checked = views if isinstance(views, Views) else check_views(views, missing=True)
    graphs = view_graphs(checked, scales)
    V = top_eigenvectors(graphs.mean, max(numbers))[1]
    return {c: cluster_vectors(V[:, :c], seed) for c in numbers}


def view_graphs(views: Views, scales: Sequence[Scale] | None = None) -> ViewGraphs:
    """Neighbor graphs of the views, each the mean over the scalings that fit into memory.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, 2.0], [1.0, 0.0], [2.0, 0.1]])
    >>> found = view_graphs(check_views([X, X]), ["unit"])
    >>> len(found.views), found.scales, found.mean.shape
    (2, [['unit', 'unit']], (4, 4))
    """
    if scales is None:
        scales = two_scalings(views)
    k = min(NEIGHBORS, views.n_samples - 1)
    by_scale: list[list[sp.csr_array]] = []
    means, used, failed = [], [], None
    for scale in scales:
        try:
            Xs = numpy_views(views, scale)
            graphs = [neighbor_graph(X, k) for X in Xs]
        except (MemoryError, ValueError) as error:  # too wide to be dense, or too large unscaled
            failed = error
            continue
        by_scale.append([sp.csr_array((A + A.T) / 2) for A in graphs])
        means.append(mean_of_graphs(graphs, Xs))
        used.append(scaling_per_view(scale, len(Xs)))
    if not by_scale:
        raise failed or ValueError("scales is empty: give at least one scaling.")
    several = [sp.csr_array(sum(same) / len(by_scale)) for same in zip(*by_scale, strict=True)]
    parts = several if len(several) > 1 else [graphs[0] for graphs in by_scale]
    return ViewGraphs(sp.csr_array(sum(means) / len(means)), parts, used)


def top_eigenvectors(W: Any, c: int) -> tuple[np.ndarray, np.ndarray]:
    """The c largest eigenvalues of the normalized graph and their eigenvectors, largest first.

    Examples
    --------
    >>> W = sp.csr_array(np.kron(np.eye(2), np.ones((3, 3))))
    >>> top_eigenvectors(W, 3)[0].round(12) + 0.0
    array([1., 1., 0.])
    """
    w, V, _ = graph_eigenvectors(W, c)
    order = np.argsort(-w, kind="stable")
    return w[order], V[:, order]


def embed_graphs(graphs: ViewGraphs, limit: int) -> Embedded:
    """Compute the eigenvectors for up to this many clusters."""
    rows = [np.flatnonzero(np.asarray(S.sum(axis=1)).ravel() > 0) for S in graphs.views]
    w, V = top_eigenvectors(graphs.mean, min(limit + 1, graphs.mean.shape[0]))
    vectors = [
        top_eigenvectors(S[there][:, there], min(limit, len(there)))[1]
        for S, there in zip(graphs.views, rows, strict=True)
    ]
    return Embedded(graphs, Spectrum({"method": "MeanGraph"}, w, V), rows, vectors)


def measure(embedded: Embedded, c: int) -> tuple[float, float]:
    """Modularity and agreement of c clusters of the mean graph, means over the views.

    Modularity is that of the clusters on the graph of a view. Agreement is the adjusted Rand index
    with the clusters of that graph alone; it is 0 by chance for any number of clusters.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=90, n_clusters=3, noise=0.1, random_state=1)
    >>> found = embed_graphs(view_graphs(check_views(data.views)), 6)
    >>> max(range(2, 7), key=lambda c: np.prod(measure(found, c)))
    3
    """
    labels = cluster_vectors(embedded.mean.vectors[:, :c])
    inside = [modularity(S, labels) for S in embedded.graphs.views]
    agree = [
        adjusted_rand_score(labels[there], cluster_vectors(U[:, :c]))
        for there, U in zip(embedded.rows, embedded.vectors, strict=True)
    ]
    return float(np.mean(inside)), float(np.mean(agree))


def measure_numbers(
    embedded: Embedded, deadline: float | None = None
) -> dict[int, tuple[float, float]]:
    """Modularity and agreement of every number to try, small ones first, while there is time."""
    measured = {}
    for c in numbers_to_try(len(embedded.mean.eigenvalues) - 1):
        measured[c] = measure(embedded, c)
        if deadline is not None and time.perf_counter() >= deadline:
            break
    return measured


def cluster_vectors(V: np.ndarray, seed: int | None = None) -> np.ndarray:
    """Cluster the rows of c eigenvectors into c clusters, numbered by size.

    k-means on rows of unit length starts from `clusters_by_rotation`; a seed adds ten random
    restarts.

    Examples
    --------
    >>> V = np.repeat(np.eye(2), [1, 3], axis=0) / np.sqrt([1, 3])
    >>> cluster_vectors(V).tolist()
    [1, 0, 0, 0]
    """
    c, Y = V.shape[1], unit_rows(V)
    first, pivots = clusters_by_rotation(V)
    centers = Y[pivots].copy()
    for j in np.unique(first):
        centers[j] = Y[first == j].mean(axis=0)
    with quiet_kmeans():
        model = KMeans(c, init=centers, n_init=1, max_iter=30).fit(Y)
        if seed is not None:
            restarted = KMeans(c, n_init=10, random_state=seed).fit(Y)
            model = min(model, restarted, key=lambda fitted: fitted.inertia_)
    return by_size(model.labels_)


def by_size(labels: np.ndarray) -> np.ndarray:
    """Number the clusters by size; of two that are equal, the one seen first is first.

    Examples
    --------
    >>> by_size(np.array([5, 2, 2, 7])).tolist()
    [1, 0, 0, 2]
    """
    _, first, inverse, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    places = np.empty(len(sizes), dtype=np.int64)
    places[np.lexsort((first, -sizes))] = np.arange(len(sizes))
    return places[inverse]


# ---- rules and the short list --------------------------------------------------------------------


def rule_scores(evidence: Evidence) -> dict[str, dict[int, float]]:
    """What every rule says of every number of clusters, for `shortlist`.

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
    agreement = {}
    for rule, scores in rules.items():
        best = max(scores, key=lambda c: scores[c])
        if rule == "settings":
            numbers, measured = evidence["candidates"], evidence["stability"]
        else:
            numbers, measured = evidence["graph"]["numbers"], evidence["graph"]["agreement"]
        agreement[rule] = measured[int(np.argmin(np.abs(np.array(numbers) - best)))]
    if len(evidence["settings"]) == 1 and "settings" in agreement:
        agreement["settings"] = 0.5
    return agreement


class Proposal(NamedTuple):
    """A number on the short list."""

    n_clusters: int
    rules: list[str]  # that give it, or a number of the same step, half of their best score
    score: float  # from 0 to 1: its share of the votes, and half of those beside it


def shortlist(
    rules: Mapping[str, Scores], agreement: Mapping[str, float] | None = None
) -> list[Proposal]:
    """Choose at most five numbers of clusters by the scores that several rules give.

    Parameters
    ----------
    rules : dict of str to dict
        For every rule, scores by number of clusters.
    agreement : dict of str to float, default=None
        How far the clusterings of each rule agree, up to 1; None counts all rules alike.

    Returns
    -------
    list of Proposal
        At most five, by their scores.

    Examples
    --------
    >>> rules = {"a": {2: 0.2, 5: 0.8, 6: 0.9, 9: 0.5}, "b": {4: 0.1, 5: 0.6, 30: 0.3}}
    >>> [(c, names, round(score, 2)) for c, names, score in shortlist(rules)]
    [(5, ['a', 'b'], 0.59), (30, ['b'], 0.15), (9, ['a'], 0.1), (2, [], 0.04)]
    >>> [one.n_clusters for one in shortlist(rules, {"a": 0.95, "b": 0.5})]
    [6, 9, 4, 2, 30]
    """
    scaled = {rule: _relative(scores) for rule, scores in rules.items() if scores}
    steps = numbers_to_try(max((c for scores in scaled.values() for c in scores), default=2))
    by_step = {rule: _by_step(scores, steps) for rule, scores in scaled.items()}
    sure = np.array([0.5 if agreement is None else agreement[rule] for rule in by_step])
    sure = np.clip(sure, LEAST, SUREST)
    relative = np.array(list(by_step.values()))
    shares = relative / np.maximum(relative.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    votes = _support(np.average(shares, axis=0, weights=sure / (1 - sure)))
    left = np.average(relative, axis=0, weights=sure / (1 - sure))
    chosen = [int(np.argmax(votes.round(12)))]
    for _ in range(LONGEST - 1):
        left[max(0, chosen[-1] - 1) : chosen[-1] + 2] = 0
        support = _support(left)
        if support.max() <= 0:
            break
        chosen.append(int(np.argmax(support.round(12))))
    proposals = []
    for i in chosen:
        names = [rule for rule, scores in by_step.items() if scores[i] >= PROPOSED]
        proposals.append(Proposal(_best_of_step(scaled, steps, i), names, float(votes[i])))
    return sorted(proposals, key=lambda proposal: -proposal.score)


def _support(evidence: np.ndarray) -> np.ndarray:
    """The evidence for every step, and half of that beside it."""
    return evidence + BESIDE * (np.r_[0, evidence[:-1]] + np.r_[evidence[1:], 0])


def numbers_to_try(limit: int) -> list[int]:
    """Every number from 2 to 20, then steps of 10%.

    Examples
    --------
    >>> numbers_to_try(5), numbers_to_try(30)[18:]
    ([2, 3, 4, 5], [20, 22, 24, 26, 29])
    """
    numbers = [2]
    while numbers[-1] < limit:
        last = numbers[-1]
        numbers.append(last + 1 if last < ALL_UP_TO else max(last + 1, round(1.1 * last)))
    return [c for c in numbers if c <= limit]


def _relative(scores: Scores) -> dict[int, float]:
    """Divide scores by the largest; negative ones are zero."""
    most = max(scores.values())
    return {c: max(0.0, x) / most if most > 0 else 0.0 for c, x in scores.items()}


def _step(steps: list[int], c: int) -> int:
    """Which step a number belongs to: the nearest, of two the smaller."""
    return int(np.argmin(np.abs(np.array(steps) - c)))


def _by_step(scores: Scores, steps: list[int]) -> np.ndarray:
    """The best score of a rule in every step."""
    best = np.zeros(len(steps))
    for c, score in scores.items():
        i = _step(steps, c)
        best[i] = max(best[i], score)
    return best


def _best_of_step(scaled: Mapping[str, Scores], steps: list[int], i: int) -> int:
    """The number of a step that the rules prefer: above 20 a step has several."""
    sums = {steps[i]: 0.0}
    for scores in scaled.values():
        for c, x in scores.items():
            if _step(steps, c) == i:
                sums[c] = sums.get(c, 0.0) + x
    return max(sums, key=lambda c: sums[c])


def nesting(labels: Mapping[int, np.ndarray]) -> list[dict[str, Any]]:
    """Say which clusters split from one number of clusters to the next larger one.

    Parameters
    ----------
    labels : dict of int to (n,) array
        Labels by number of clusters, 0 and up.

    Returns
    -------
    list of dict
        For every pair of neighboring numbers ``from`` and ``to``, and ``splits``: for every
        cluster of the smaller number that splits, as a string, the clusters of the larger one that
        have at least 10% of it, the largest part first.

    Examples
    --------
    >>> two, three = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 2, 1, 1])
    >>> nesting({2: two, 3: three})
    [{'from': 2, 'to': 3, 'splits': {'0': [0, 2]}}]
    """
    nested = []
    for small, large in pairwise(sorted(labels)):
        splits = {}
        for j in range(small):
            parts = np.bincount(labels[large][labels[small] == j], minlength=large)
            order = np.argsort(-parts, kind="stable")
            held = [int(i) for i in order if parts[i] and parts[i] >= SHARE * parts.sum()]
            if len(held) > 1:
                splits[str(j)] = held
        nested.append({"from": small, "to": large, "splits": splits})
    return nested
