"""Nearest neighbors of some samples among all: every distance is computed, in blocks of rows."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.graphs.ties import CROWD, lowest_values

BLOCK = 2**23  # distances held at a time: 64 MB


def squared_lengths(X: Any) -> np.ndarray:
    """Squared lengths of the rows of an array or csr_array.

    Examples
    --------
    >>> squared_lengths(np.array([[3.0, 4.0]]))
    array([25.])
    """
    return np.asarray((X.multiply(X) if sp.issparse(X) else X * X).sum(axis=1)).ravel()


def block_neighbors(
    X: Any, lengths: np.ndarray, rows: np.ndarray, k: int, equal: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns, squares and shares of the neighbors of some samples, and their nearest.

    X is float64, ``lengths`` are its squared lengths, ``rows`` are the numbers of these samples (0
    in the answer is the first of them), and squared distances that differ by ``equal`` relative to
    the squared lengths are tied.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [-1.0], [5.0]])
    >>> i, j, squares, shares, low = block_neighbors(X, X[:, 0] ** 2, np.array([0]), 1, 1e-12)
    >>> j, shares
    (array([1, 2]), array([0.5, 0.5]))
    """
    own = lengths[rows]
    D2 = distances(X[rows], X, own, lengths)
    D2[np.arange(len(own)), rows] = np.inf
    return lowest(D2, own, k, equal)


def distances(Q: Any, X: Any, own: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Squared distances of the rows of Q to those of X, from their squared lengths.

    Examples
    --------
    >>> Q, X = np.array([[0.0]]), np.array([[1.0], [3.0]])
    >>> distances(Q, X, squared_lengths(Q), squared_lengths(X))
    array([[1., 9.]])
    """
    G = Q @ X.T
    D2 = G.toarray() if sp.issparse(G) else G
    D2 *= -2
    D2 += own[:, None]
    D2 += lengths
    return D2


def lowest(
    D2: np.ndarray, own: np.ndarray, k: int, equal: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns, squares and shares of the k lowest in every row, and these in order."""
    low = lowest_values(D2, k)
    last = low[:, -1]
    slack = equal * (own + np.maximum(last, 0))
    i, j = np.nonzero(D2 <= (last + slack)[:, None])
    squares = D2[i, j]
    shares, kept = _places(i, squares, last, slack, k)
    noise = 2**7 * np.finfo(np.float64).eps * own  # what rounding leaves between equal samples
    squares[squares <= noise[i]] = 0
    low[low <= noise[:, None]] = 0
    return i[kept], j[kept], squares[kept], shares[kept], low


def _places(
    i: np.ndarray, squares: np.ndarray, last: np.ndarray, slack: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Shares of entries in rows i that are not above the last of k places, and which are kept."""
    closer = squares < (last - slack)[i]
    n_closer = np.bincount(i[closer], minlength=len(last))
    n_tied = np.bincount(i[~closer], minlength=len(last))
    shares = np.where(closer, 1.0, ((k - n_closer) / np.maximum(n_tied, 1))[i])
    return shares, closer | ((n_tied <= CROWD * k) | (n_closer == 0))[i]


def fewer(
    i: np.ndarray, squares: np.ndarray, last: np.ndarray, own: np.ndarray, k: int, equal: float
) -> tuple[np.ndarray, np.ndarray]:
    """Which neighbors are among the k nearest, and their shares, when more than k were found.

    Parameters
    ----------
    i, squares : arrays
        Row and squared distance of every neighbor found.
    last : (n,) array
        Squared distance of the k-th nearest of every sample; inf without any.
    own : (n,) array
        Squared lengths of the samples.
    k : int
        Number of neighbors.
    equal : float
        Squared distances that differ by this, relative to the squared lengths, are tied.

    Examples
    --------
    >>> i, squares = np.zeros(4, int), np.array([4.0, 1.0, 4.0, 9.0])
    >>> fewer(i, squares, np.array([4.0]), np.ones(1), 2, 1e-12)
    (array([0, 1, 2]), array([0.5, 1. , 0.5]))
    """
    slack = equal * (own + np.where(np.isfinite(last), np.maximum(last, 0), 0))
    among = np.flatnonzero(squares <= (last + slack)[i])
    shares, kept = _places(i[among], squares[among], last, slack, k)
    return among[kept], shares[kept]
