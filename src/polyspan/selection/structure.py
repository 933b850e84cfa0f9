"""Is there anything here? Whether views have structure that noise like them does not have.

Two tests together have a level of .01: each has half of it, and within views it is divided by the
number of views. A single view has only the second test, and all of the level.

**Between views.** Each view is clustered by its neighbor graph, into several numbers of clusters.
The statistic of two views is the modularity that the clusters of one have in the graph of the
other, the mean over both directions. Null: the samples of one view are permuted against those of
the other. This leaves every view as it is and takes away only what the views have in common, so the
test is exact whatever the values are. For several pairs, every permutation counts with the largest
of its standardized statistics.

**Within a view.** The statistic is the modularity that a view's clusters have in its own graph, the
mean over the numbers of clusters. Correlated columns alone make a graph modular, and so do skewed
values; so the null keeps both: the normal scores of the columns are replaced by random ones with
the same correlations (samples are mixed by a random rotation), and every column gets its own values
back by rank. What goes is everything that is more than correlation, clusters included. Two details:

- Where values are tied, as in counts, mapping back would weaken correlations, so those of the
  scores are raised by as much before.
- Clusters that are far apart leave gaps in the columns, which would bring them back: gaps are
  closed, but not in counts.

No null fits all noise, least of all with heavy tails. So a view has structure only if its
modularity is more than .02 above that of the null; noise of many kinds stayed within that.
"""

import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypedDict

import numpy as np
import scipy.sparse as sp
from scipy.optimize import isotonic_regression
from scipy.stats import norm, rankdata
from scipy.stats import t as student
from threadpoolctl import threadpool_limits

from polyspan.clustering.spectral import spectral_eigenvectors
from polyspan.graphs.knn import entry_rows, nearest_neighbors
from polyspan.inputs.rows import missing_rows
from polyspan.inputs.scaling import STANDARDIZED, Scaling, scale_view
from polyspan.inputs.views import Views
from polyspan.runtime.messages import view_names, view_title
from polyspan.selection.evidence import NEIGHBORS, clusters_by_rotation, rows_of, tell_drawn

LEVEL = 0.01
STRONG = 0.2  # modularity of one view's clusters in another view
STRONG_ALONE = 0.08  # modularity of a view's clusters beyond that of noise like it
FEWEST = 20  # samples; with fewer nothing is tested
NUMBERS = (2, 3, 4, 6, 9, 13)  # of clusters
SAMPLES = 1000  # used at most
PERMUTATIONS = 499
SAMPLES_WITHIN = 400  # used at most within a view, where graphs are computed many times
COLUMNS = 500  # likewise
SURROGATES = 30
FIRST = 10  # surrogates, after which a view that is like them, or nothing like them, is decided
CLEAR = 1e-4  # p-value within a view that says so
MARGIN = 0.02  # modularity above that of surrogates that heavy tails have without clusters
LONGER = 2.0  # lengths of samples that differ more from the median are clipped
SMALLEST = 1e-5  # p-value within a view: less cannot be known from so few surrogates
LATE = "not tested: the budget was spent"
FEW = f"not tested: fewer than {FEWEST} samples"


class ViewStructure(TypedDict):
    """What one view has, by itself and in common with others."""

    name: str
    role: str  # "takes part", "says nothing", "disagrees", "alone decides" or "not tested"
    sentence: str
    agreement: float | None  # modularity of clusters across the best pair of views with this one
    p_between: float | None  # corrected for the number of pairs
    excess: float | None  # modularity of its clusters in its own graph, less that of the null
    p_within: float | None  # not corrected for the number of views


class Structure(TypedDict):
    """Whether there is structure, and in which views."""

    verdict: str  # "strong", "weak", "none found", or why it was not tested
    sentence: str
    p: float | None  # of both tests, corrected: there is structure if it is at most .01
    agreement: float | None  # the largest that is significant; None if there is none
    excess: float | None  # likewise
    views: list[ViewStructure]


def find_structure(
    views: Views,
    scales: Sequence[Scaling],
    seed: int,
    deadline: float | None = None,
    among: int | None = None,
) -> Structure:
    """Test whether views have structure that noise like them does not have.

    Parameters
    ----------
    views : Views
        Checked views; rows of NaN are samples that lack the view. Two views are compared on the
        samples they have in common.
    scales : list of {"unit", "standard+unit", "standard", None}
        Scaling of each view, as `polyspan.inputs.choice.choose_scaling` gives it.
    seed : int
        Seeds the permutations, the surrogates, and the choice of samples where there are more than
        1,000 (400 within a view).
    deadline : float, default=None
        Time, as of `time.perf_counter`, at which the test is given up.
    among : int, default=None
        How many samples there are, if the views are a part of them that was drawn at random.

    Returns
    -------
    Structure
        Plain values that can be written as JSON. ``verdict`` is «none found» if neither test
        rejects its null at a level of .01 together. Else it is «strong» or «weak»: by the
        agreement of views, .2 or more being strong, or if no views agree by the excess of a view,
        .08 or more being strong.

    Notes
    -----
    Structure need not be clusters: a gradient that two views share is found too.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> from polyspan.inputs.views import check_views
    >>> data = make_subspaces(n_samples=60, n_clusters=3, noise=0.1, random_state=0)
    >>> found = find_structure(check_views(data.views), ["unit", "unit"], seed=0)
    >>> found["verdict"], [view["role"] for view in found["views"]]
    ('strong', ['takes part', 'takes part'])
    >>> noise = np.random.default_rng(0).normal(size=(2, 60, 20))
    >>> find_structure(check_views(list(noise)), ["unit", "unit"], seed=0)["verdict"]
    'none found'
    """
    rng, names = np.random.default_rng(seed), views.names
    if views.n_samples < FEWEST:
        return untested(names, FEW)
    rows = some(np.arange(views.n_samples), SAMPLES, rng)
    arrays = rows_of(views, rows)
    try:
        with threadpool_limits(1):  # the matrices are small
            agreement, p_between = between(arrays, names, scales, rng, deadline)
            alone = [
                within(X, name, scale, rng, deadline)
                for X, name, scale in zip(arrays, names, scales, strict=True)
            ]
    except TimeoutError:
        return untested(names, LATE)
    structure = _judged(names, agreement, p_between, alone)
    if missed := tell_drawn(among or views.n_samples, len(rows)):
        structure["sentence"] += f"; {missed}"
    return structure


def untested(names: Sequence[str], why: str) -> Structure:
    """What is said where nothing was tested.

    Examples
    --------
    >>> untested(["rna"], LATE)["verdict"]
    'not tested: the budget was spent'
    """
    nothing: Any = dict.fromkeys(("agreement", "p_between", "excess", "p_within"))
    views: Any = [
        {"name": name, "role": "not tested", "sentence": f"{view_title(name)}: {why}"} | nothing
        for name in names
    ]
    return Structure(verdict=why, sentence=why, p=None, agreement=None, excess=None, views=views)


def _judged(
    names: Sequence[str],
    agreement: np.ndarray,
    p_between: np.ndarray,
    alone: Sequence[tuple[float | None, float | None]],
) -> Structure:
    """Put both tests together, for every view and for all of them."""
    V = len(names)
    tests = 2 if V > 1 else 1  # that share the level
    shares = tests * p_between <= LEVEL
    stands = [p is not None and tests * V * p <= LEVEL for _, p in alone]
    views: list[ViewStructure] = []
    ps = [1.0]
    for v, (name, (excess, p_within)) in enumerate(zip(names, alone, strict=True)):
        pairs = np.flatnonzero(~np.isnan(p_between[v]))
        partners = [other for other, shared in zip(names, shares[v], strict=True) if shared]
        others = bool(shares.any()) or any(stands[:v] + stands[v + 1 :])
        role, words = "not tested", f"was {FEW}"
        if len(pairs) or p_within is not None:
            role, words = _role(partners, stands[v], others, V)
        p_pairs = float(p_between[v, pairs].min()) if len(pairs) else None
        views.append(
            {
                "name": name,
                "role": role,
                "sentence": f"{view_title(name)} {words}",
                "agreement": float(agreement[v, pairs].max()) if len(pairs) else None,
                "p_between": p_pairs,
                "excess": excess,
                "p_within": p_within,
            }
        )
        ps += [] if p_pairs is None else [tests * p_pairs]
        ps += [] if p_within is None else [tests * V * p_within]
    if len(ps) == 1:
        return untested(names, FEW)
    best = float(agreement[shares].max()) if shares.any() else None
    most = max((float(alone[v][0] or 0) for v in range(V) if stands[v]), default=None)
    verdict, sentence = _verdict(best, most, min(ps))
    return Structure(
        verdict=verdict, sentence=sentence, p=min(ps), agreement=best, excess=most, views=views
    )


def _role(partners: list[str], alone: bool, others: bool, n_views: int) -> tuple[str, str]:
    """What a view does, in a word or two and in a sentence that begins with its name."""
    if partners:
        noun = "view" if len(partners) == 1 else "views"
        words = f"takes part: it shares structure with {noun} {view_names(partners)}"
        return "takes part", words
    if not alone:
        shared = ", alone or with another view" if n_views > 1 else ""
        return "says nothing", f"says nothing that noise would not say{shared}"
    if others:
        return "disagrees", (
            "disagrees with the others: it has structure of its own, which no other view shares"
        )
    rest = ": nothing was found in the others" if n_views > 1 else ": it is the only one"
    return "alone decides", f"alone decides{rest}"


def _verdict(agreement: float | None, excess: float | None, p: float) -> tuple[str, str]:
    """Strong, weak or none found, and the figures behind it."""
    if agreement is None and excess is None:
        return "none found", f"no structure was found that noise would not have (p = {p:.2g})"
    if agreement is not None:
        figure, limit = agreement, STRONG
        words = f"clusters of one view have a modularity of {agreement:.2f} in another"
    else:
        figure, limit = float(excess or 0), STRONG_ALONE
        words = f"clusters of one view have a modularity in it that is {figure:.2f} above noise"
    verdict = "strong" if figure >= limit else "weak"
    return verdict, f"{words} ({limit:g} or more is strong; p = {p:.2g})"


# ---- graphs, clusters, modularity ----------------------------------------------------------------


class Clustered(NamedTuple):
    """The neighbor graph of a view, and its clusters for all of `NUMBERS`."""

    i: np.ndarray  # ends of the links
    j: np.ndarray
    weights: np.ndarray  # of the links; they sum to 1
    degrees: np.ndarray
    members: np.ndarray  # (n, clusters): 1 for membership; clusters of all numbers side by side
    starts: np.ndarray  # first cluster of each number


def clustered(X: Any) -> Clustered:
    """Link every sample to its nearest, and cluster the graph for all of `NUMBERS`."""
    n = X.shape[0]
    A = nearest_neighbors(X, min(NEIGHBORS, n // 5)).shares
    W = sp.csr_array(A + A.T)
    numbers = [c for c in NUMBERS if c <= n // 5]
    V = spectral_eigenvectors(W, numbers[-1])[1]
    members = np.hstack([np.eye(c)[clusters_by_rotation(V[:, -c:])[0]] for c in numbers])
    weights = W.data / W.data.sum()
    i = entry_rows(W)
    starts = np.cumsum([0, *numbers[:-1]])
    return Clustered(i, W.indices, weights, np.bincount(i, weights, n), members, starts)


def modularities(graph: Clustered, of: Clustered) -> np.ndarray:
    """Modularity of the clusters of a view in the graph of a view, one for each number."""
    same = graph.weights @ (of.members[graph.i] * of.members[graph.j])
    return np.add.reduceat(same - (graph.degrees @ of.members) ** 2, of.starts)


def _permuted(graph: Clustered, of: Clustered, orders: np.ndarray) -> np.ndarray:
    """Mean of `modularities` after permuting the clustered samples, for every order."""
    upper = graph.i < graph.j
    i, j, weights = graph.i[upper], graph.j[upper], 2 * graph.weights[upper]
    n = len(of.members)
    together = (of.members @ of.members.T).ravel()  # how many numbers join two samples
    D = np.zeros(orders.shape)
    np.put_along_axis(D, orders, graph.degrees[None, :], axis=1)
    same = np.array([together.take(order[i] * n + order[j]) @ weights for order in orders])
    return (same - np.sum((D @ of.members) ** 2, axis=1)) / len(of.starts)


def some(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """All rows, or a random choice of as many as are allowed."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _present(X: Any) -> np.ndarray:
    gone = missing_rows(X)
    return np.ones(X.shape[0], dtype=bool) if gone is None else ~gone


def _check_time(deadline: float | None) -> None:
    if deadline is not None and time.perf_counter() > deadline:
        raise TimeoutError


# ---- between views -------------------------------------------------------------------------------


def between(
    arrays: list[Any],
    names: Sequence[str],
    scales: Sequence[Scaling],
    rng: np.random.Generator,
    deadline: float | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Agreement and corrected p-value of every pair of views; NaN where nothing was tested.

    The agreement is the modularity for the number of clusters where it is largest. Raises
    TimeoutError after the deadline.
    """
    V = len(arrays)
    present = [_present(X) for X in arrays]
    known: dict[tuple[int, bytes], Clustered] = {}
    z, null, agreement = {}, {}, np.full((V, V), np.nan)
    for a, b in combinations(range(V), 2):
        common = present[a] & present[b]
        if common.sum() < FEWEST:
            continue
        for v in (a, b):
            _check_time(deadline)
            if (v, common.tobytes()) not in known:
                X = scale_view(arrays[v][common], names[v], scales[v])
                known[v, common.tobytes()] = clustered(X)
        A, B = (known[v, common.tobytes()] for v in (a, b))
        crossed = (modularities(A, B) + modularities(B, A)) / 2
        agreement[a, b] = agreement[b, a] = crossed.max()
        _check_time(deadline)
        orders = np.argsort(rng.uniform(size=(PERMUTATIONS, int(common.sum()))), axis=1)
        back = np.argsort(orders, axis=1)
        drawn = (_permuted(A, B, orders) + _permuted(B, A, back)) / 2
        spread = max(float(drawn.std()), np.finfo(float).eps)
        z[a, b] = (crossed.mean() - drawn.mean()) / spread
        null[a, b] = (drawn - drawn.mean()) / spread
    p = np.full((V, V), np.nan)
    if z:
        largest = np.max(list(null.values()), axis=0)
        for (a, b), value in z.items():
            p[a, b] = p[b, a] = (1 + np.sum(largest >= value)) / (1 + PERMUTATIONS)
    return agreement, p


# ---- within a view -------------------------------------------------------------------------------


def within(
    X: Any, name: str, scale: Scaling, rng: np.random.Generator, deadline: float | None
) -> tuple[float | None, float | None]:
    """Modularity of a view's clusters beyond that of its surrogates, and the p-value.

    The former is for the number of clusters where it is largest; the p-value is of the mean over
    all numbers. None, None if too few samples have the view. Raises TimeoutError after the
    deadline.
    """
    _check_time(deadline)
    rows = some(np.flatnonzero(_present(X)), SAMPLES_WITHIN, rng)
    if len(rows) < FEWEST:
        return None, None
    X, scale = _prepared(_columns(X[rows], scale in STANDARDIZED, rng), name, scale)
    if X.shape[1] == 0:  # these samples are all equal
        return None, None
    observed = _own_modularities(scale_view(X, name, scale))
    drawn: list[np.ndarray] = []
    for surrogate in surrogates(X, rng):
        _check_time(deadline)
        drawn.append(_own_modularities(scale_view(surrogate, name, scale)))
        if len(drawn) in (FIRST, SURROGATES):
            # One more draw of a normal distribution whose mean and spread were estimated.
            excess = observed - np.mean(drawn, axis=0)
            spread = float(np.std(np.mean(drawn, axis=1), ddof=1)) * np.sqrt(1 + 1 / len(drawn))
            above = (float(excess.mean()) - MARGIN) / max(spread, 1e-6)
            p = max(float(student.sf(above, len(drawn) - 1)), SMALLEST)
            if len(drawn) == SURROGATES or not CLEAR < p < 0.1:
                break
    return float(excess.max()), p


def _columns(X: Any, standardized: bool, rng: np.random.Generator) -> np.ndarray:
    """A dense copy without constant columns; of many, those that vary most, or some at random."""
    squares = X.multiply(X) if sp.issparse(X) else X**2
    size = np.asarray(squares.mean(axis=0)).ravel()
    variance = size - np.asarray(X.mean(axis=0)).ravel() ** 2
    vary = np.flatnonzero(variance > 1e-10 * size)
    if standardized:
        kept = some(vary, COLUMNS, rng)
    else:
        kept = np.sort(vary[np.argsort(-variance[vary], kind="stable")[:COLUMNS]])
    X = X[:, kept]
    return (X.toarray() if sp.issparse(X) else X).astype(np.float64)


def _prepared(X: np.ndarray, name: str, scale: Scaling) -> tuple[np.ndarray, Scaling]:
    """Standardize if asked, and make lengths alike if they do not count; returns what is left.

    Samples of very different lengths would make columns heavy-tailed, and so the surrogates.
    """
    if scale in STANDARDIZED:
        X, scale = scale_view(X, name, "standard"), None if scale == "standard" else "unit"
    if scale == "unit":
        lengths = np.linalg.norm(X, axis=1, keepdims=True)
        middle = np.median(lengths[lengths > 0])  # rows of zeros have no direction to scale
        wanted = np.clip(lengths, middle / LONGER, middle * LONGER)
        X = X * np.where(lengths > 0, wanted / np.where(lengths > 0, lengths, 1), 1)
    return X, scale


def _own_modularities(X: np.ndarray) -> np.ndarray:
    graph = clustered(X)
    return modularities(graph, graph)


def surrogates(X: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Noise with the values of every column, without gaps, and the correlations of their scores.

    Examples
    --------
    >>> X = np.array([[0.0, 1.0], [0.0, 0.0], [2.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> one = next(surrogates(X, np.random.default_rng(0)))
    >>> np.sort(one, axis=0).T
    array([[0., 0., 0., 0., 2.],
           [0., 0., 0., 0., 1.]])
    """
    n = X.shape[0]
    Z = norm.ppf((rankdata(X, axis=0) - 0.5) / n)
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    scores = norm.ppf((np.arange(n) + 0.5) / n)
    # How much of a correlation is left after mapping back, to first order; 1 without ties.
    kept = scores / scores.std() @ np.sort(Z, axis=0) / n
    R = (Z / kept).T @ (Z / kept) / n
    np.fill_diagonal(R, 1.0)
    w, U = np.linalg.eigh(R)
    sure = w > 1e-10 * w[-1]  # at most n - 1
    F = U[:, sure] * np.sqrt(w[sure])
    F /= np.linalg.norm(F, axis=1, keepdims=True)
    values = np.apply_along_axis(single_peaked, 0, np.sort(X, axis=0), scores)
    while True:
        G = rng.normal(size=(n, F.shape[1]))
        Q = np.linalg.qr(G - G.mean(axis=0))[0]  # uncorrelated: the correlations are exact
        surrogate = np.empty_like(X)
        np.put_along_axis(surrogate, np.argsort(Q @ F.T, axis=0), values, axis=0)
        yield surrogate


def single_peaked(values: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Close the gaps in the sorted values of a column: clusters can leave them.

    As a function of normal scores, values are to rise faster and faster away from the median, as
    they do if there is one peak and no gap. Mean and standard deviation stay. Where fewer than half
    of the values differ, as in counts, all stay.

    Examples
    --------
    >>> scores = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    >>> single_peaked(np.array([-9.0, -8.0, 0.0, 8.0, 9.0]), scores).round(1)
    array([-10.8,  -5.4,   0. ,   5.4,  10.8])
    """
    if 2 * len(np.unique(values)) < len(values):
        return values
    middle = len(values) // 2
    slopes, steps = np.diff(values) / np.diff(scores), np.diff(scores)
    for part, increasing in ((slice(0, middle), False), (slice(middle, None), True)):
        slopes[part] = isotonic_regression(
            slopes[part], weights=steps[part], increasing=increasing
        ).x
    closed = np.concatenate([[0.0], np.cumsum(slopes * steps)])
    closed -= closed.mean()
    return values.mean() + closed * (values.std() / closed.std())
