"""Two tests of structure: between views, and within a view. `find_structure` says what they mean.

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
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.optimize import isotonic_regression
from scipy.stats import norm, rankdata
from scipy.stats import t as student

from polyspan.clustering.spectral import spectral_eigenvectors
from polyspan.graphs.knn import entry_rows, nearest_neighbors
from polyspan.inputs.rows import missing_rows
from polyspan.inputs.scaling import STANDARDIZED, Scaling, scale_view

FEWEST = 20  # samples; with fewer nothing is tested
NEIGHBORS = 10
NUMBERS = (2, 3, 4, 6, 9, 13)  # of clusters
PERMUTATIONS = 499
SAMPLES = 400  # used at most within a view, where graphs are computed many times
COLUMNS = 500  # likewise
SURROGATES = 30
FIRST = 10  # surrogates, after which a view that is like them, or nothing like them, is decided
CLEAR = 1e-4  # p-value within a view that says so
MARGIN = 0.02  # modularity above that of surrogates that heavy tails have without clusters
LONGER = 2.0  # lengths of samples that differ more from the median are clipped
SMALLEST = 1e-5  # p-value within a view: less cannot be known from so few surrogates


class Clustered(NamedTuple):
    """The neighbor graph of a view, and its clusters for all of `NUMBERS`."""

    i: np.ndarray  # ends of the links
    j: np.ndarray
    weights: np.ndarray  # of the links; they sum to 1
    degrees: np.ndarray
    members: np.ndarray  # (n, clusters): 1 for membership; clusters of all numbers side by side
    starts: np.ndarray  # first cluster of each number


def some(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """All rows, or a random choice of as many as are allowed."""
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _present(X: Any) -> np.ndarray:
    gone = missing_rows(X)
    return np.ones(X.shape[0], dtype=bool) if gone is None else ~gone


def _check_time(deadline: float | None) -> None:
    if deadline is not None and time.perf_counter() > deadline:
        raise TimeoutError


# ---- graphs, clusters, modularity ----------------------------------------------------------------


def clustered(X: Any) -> Clustered:
    """Link every sample to its nearest, and cluster the graph for all of `NUMBERS`."""
    n = X.shape[0]
    A = nearest_neighbors(X, min(NEIGHBORS, n // 5)).shares
    W = sp.csr_array(A + A.T)
    numbers = [c for c in NUMBERS if c <= n // 5]
    V = spectral_eigenvectors(W, numbers[-1])[1]
    members = np.hstack([np.eye(c)[_assigned(V[:, -c:])] for c in numbers])
    weights = W.data / W.data.sum()
    i = entry_rows(W)
    starts = np.cumsum([0, *numbers[:-1]])
    return Clustered(i, W.indices, weights, np.bincount(i, weights, n), members, starts)


def _assigned(V: np.ndarray) -> np.ndarray:
    """Clusters from eigenvectors, without random starts: rotate them to be indicators.

    A. Damle, V. Minden, L. Ying, "Simple, direct and efficient multi-way spectral clustering",
    Information and Inference 8 (2019).
    """
    pivots = scipy.linalg.qr(V.T, pivoting=True, mode="r")[1][: V.shape[1]]
    U, _, Vt = np.linalg.svd(V[pivots].T)
    return np.argmax(np.abs(V @ (U @ Vt)), axis=1)


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
    rows = some(np.flatnonzero(_present(X)), SAMPLES, rng)
    if len(rows) < FEWEST:
        return None, None
    X, scale = _prepared(_columns(X[rows], scale in STANDARDIZED, rng), name, scale)
    if X.shape[1] == 0:  # these samples are all equal
        return None, None
    observed = _own_modularities(scale_view(X, name, scale))
    drawn: list[np.ndarray] = []
    for one in surrogates(X, rng):
        _check_time(deadline)
        drawn.append(_own_modularities(scale_view(one, name, scale)))
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
        middle = np.median(lengths)
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
        found = np.empty_like(X)
        np.put_along_axis(found, np.argsort(Q @ F.T, axis=0), values, axis=0)
        yield found


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
