"""Starts of k-means, for all restarts at once."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans

FEW = 2_000  # rows; beyond, scikit-learn takes as long with one restart after the other


def restarted(
    Y: Any, n_clusters: int, n_init: int, random_state: int | np.random.RandomState | None
) -> KMeans:
    """K-means for the rows of Y, not yet fitted, that has its starts from `greedy_starts`.

    With few rows, scikit-learn spends most of its time on calling its functions for the starts.
    The labels are those of its own starts.

    Examples
    --------
    >>> Y = np.repeat(np.eye(3), 4, axis=0)
    >>> restarted(Y, 3, 5, 0).fit(Y).inertia_
    0.0
    """
    if sp.issparse(Y) or len(Y) > FEW:
        return KMeans(n_clusters, n_init=n_init, random_state=random_state)
    starts: list[np.ndarray] = []

    def start(X: np.ndarray, n_clusters: int, random_state: np.random.RandomState) -> np.ndarray:
        if not starts:
            starts.extend(greedy_starts(X, n_clusters, n_init, random_state))
        return starts.pop(0)

    return KMeans(n_clusters, init=start, n_init=n_init, random_state=random_state)


def greedy_starts(X: np.ndarray, c: int, n_starts: int, rng: np.random.RandomState) -> np.ndarray:
    """Draw starts for k-means: an array of ``n_starts`` times c rows of X.

    Greedy k-means++: every further center is the best of 2 + log(c) rows drawn with probability
    proportional to the squared distance to the nearest center so far. Random numbers are drawn in
    scikit-learn's order, so that the same seed gives the same starts.

    D. Arthur, S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA 2007.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [5.0]])
    >>> np.sort(greedy_starts(X, 2, 4, np.random.RandomState(0))[..., 0]).tolist()
    [[0.0, 5.0], [0.0, 5.0], [0.0, 5.0], [0.0, 5.0]]
    """
    n, trials = len(X), 2 + int(np.log(c))
    drawn = rng.uniform(size=(n_starts, 1 + (c - 1) * trials))
    later = drawn[:, 1:].reshape(n_starts, c - 1, trials)
    squares = np.einsum("ij,ij->i", X, X)

    def distances(rows: np.ndarray) -> np.ndarray:
        """Squared, of rows of X to all rows."""
        D = X[rows.ravel()] @ X.T
        D *= -2
        D += squares[rows.ravel(), None]
        D += squares
        return np.maximum(D, 0, out=D).reshape(*rows.shape, n)

    shares = np.full(n, 1 / n).cumsum()
    chosen = np.empty((n_starts, c), dtype=np.intp)
    chosen[:, 0] = np.searchsorted(shares / shares[-1], drawn[:, 0], side="right")
    D = distances(chosen[:, 0])  # to the nearest center of every start
    for k in range(1, c):
        aims = later[:, k - 1] * D.sum(axis=1, keepdims=True)
        sums = np.cumsum(D, axis=1)
        rows = np.array([np.searchsorted(*one) for one in zip(sums, aims, strict=True)])
        rows = np.minimum(rows, n - 1)
        nearer = np.minimum(distances(rows), D[:, None])
        best = np.argmin(nearer.sum(axis=2), axis=1)
        D = nearer[np.arange(n_starts), best]
        chosen[:, k] = rows[np.arange(n_starts), best]
    return X[chosen]
