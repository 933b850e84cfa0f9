"""Self-expression graphs: which samples a sample is best written in terms of, by least squares.

The samples x_i of a view, rows of X, are written in terms of each other, without themselves::

    c_i = argmin_c  |x_i - sum_j c_j x_j|^2 + l |c|^2   s.t.  c_i = 0,      l = lam tr(X X^T) / n

Its solution is a column of ``(X X^T + l I)^-1``, up to a factor that makes no difference here (Lu
et al. 2012, LSR)::

    D = (X X^T + l I)^-1,   (c_i)_j = -D_ij / D_ii

and off the diagonal ``H = X (X^T X + l I)^-1 X^T = I - l D`` has the same entries, up to a factor:
with fewer columns than samples H costs less, and its rows are found one block after the other.

Of every sample the ``n_kept`` largest ``|c_ij|`` are links, and their weights sum to 1. Entries
that are equal share the last places (`polyspan.graphs.ties`): the order of the samples does not
matter.

Among more than 5,000 samples the links of each are sought among its 100 nearest: time and memory
are linear in their number, but for the search of the nearest. Views of so many samples are first
projected to their 200 leading directions, if they have more columns.

Reference: C.-Y. Lu, H. Min, Z.-Q. Zhao, L. Zhu, D.-S. Huang, S. Yan, "Robust and efficient subspace
segmentation via least squares regression", ECCV 2012.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, is_numpy_array
from scipy.linalg.lapack import dpotrf, dpotri
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from polyspan.graphs import ties
from polyspan.graphs.knn import entry_rows, nearest_neighbors, present
from polyspan.runtime.arrays import Array, gram, to_numpy
from polyspan.runtime.cache import shared
from polyspan.runtime.devices import move_arrays
from polyspan.runtime.threads import bounds

EXACT_UP_TO = 5_000  # samples
# Of more samples. Chosen for time alone: 10,309 cells x 25,734 peaks in a budget of 60 s.
DIRECTIONS = 200  # that are kept
PASSES = 2  # over the samples, that the directions are made better by
AMONG = 100  # nearest of every sample, that its links are sought among: 50 lost a little on faces
BLOCK = 2**22  # entries of H that are held at a time


def self_graph(
    X: Any, lam: float = 1.0, n_kept: int = 10, device: str | None = None
) -> sp.csr_array:
    """Graph of one view, samples in rows: row i has the samples that sample i is written in.

    Parameters
    ----------
    X : (n, d) NumPy array or csr_array
        Samples in rows; a row of NaN has no links.
    lam : float, default=1.0
        Weight of the squared coefficients, in units of the mean squared length of the samples.
    n_kept : int, default=10
        Links of a sample.
    device : str, default=None
        Where the matrices are inverted and multiplied, as torch names it.

    Returns
    -------
    (n, n) csr_array
        Not symmetric; the sum of a row is 1, or 0 if nothing can express the sample.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> self_graph(X).toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 0., 0.],
           [0., 0., 0., 1.],
           [0., 0., 1., 0.]])
    """
    what = (float(lam), n_kept, device)
    return shared(_self_graph, what, [X], None)


def _self_graph(what: tuple[float, int, str | None], Xs: Sequence[Any]) -> sp.csr_array:
    lam, k, device = what
    there, X = present(Xs[0])
    n, (m, d) = Xs[0].shape[0], X.shape
    k, near = min(k, m - 1), None
    if m > EXACT_UP_TO:
        near = _candidates(X, device)
        (X,), d = projected(X), min(d, DIRECTIONS)
    F, Y = _factors(X, lam, device)
    parts, counts = [], np.zeros(n, dtype=np.int64)
    for start, stop in bounds(m, max(1, BLOCK // (m if near is None else AMONG * d))):
        rows = np.arange(start, stop)
        if near is None:
            H = np.abs(to_numpy(F[start:stop] if Y is None else F[start:stop] @ Y.T))
            H[rows - start, rows] = 0
            i, j, values = _largest(H, k)
        else:
            ids = near[start:stop]
            theirs = to_numpy(Y[ids.ravel()]).reshape(*ids.shape, -1)
            H = np.abs(np.einsum("id,ikd->ik", to_numpy(F[start:stop]), theirs))
            i, places, values = _largest(np.where(ids >= 0, H, 0.0), k)
            j = ids[i, places]
        counts[there[rows]] = np.bincount(i, minlength=len(rows))
        parts.append((there[j], values))
    columns, values = (np.concatenate(several) for several in zip(*parts, strict=True))
    ends = np.append(0, np.cumsum(counts))
    graph = sp.csr_array((values, columns, ends), shape=(n, n))
    graph.eliminate_zeros()
    return normalize(graph, norm="l1")


def expressed(X: Any, new: Any, lam: float, n_kept: int) -> sp.csr_array:
    """Rows of the graph for new samples, which are written in terms of the samples X.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    >>> expressed(X, np.array([[5.0, 0.0]]), 1.0, 1).toarray()
    array([[0., 1., 0., 0.]])
    """
    n, m = X.shape[0], new.shape[0]
    (there, X), (rows, Q) = present(X), present(new)
    if len(there) > EXACT_UP_TO:
        X, Q = projected(X, Q)
    F, Y = _factors(X, lam, None)
    C = np.abs(Q @ F.T if Y is not None else (Q @ X.T) @ F)
    i, j, values = _largest(C, min(n_kept, len(there)))
    return normalize(sp.csr_array((values, (rows[i], there[j])), shape=(m, n)), norm="l1")


def projected(X: Any, *others: Any) -> list[Any]:
    """Views of many columns in the leading directions of the first; others stay as they are.

    What is found does not depend on the order of the rows.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(30, 300))
    >>> [Y.shape for Y in projected(X, X[:2])]
    [(30, 30), (2, 30)]
    """
    if X.shape[1] <= DIRECTIONS:
        return [X, *others]
    V = randomized_svd(X, min(DIRECTIONS, X.shape[0]), n_iter=PASSES, random_state=0)[2].T
    return [np.asarray(Y @ V) for Y in (X, *others)]


def _factors(X: Any, lam: float, device: str | None) -> tuple[Any, Any]:
    """Matrices F and Y with ``H = F Y^T`` off the diagonal, up to a factor; Y is None for I."""
    if device is not None:
        (X,) = move_arrays([X], device)
    m, d = X.shape
    if d >= m:
        return _inverse(gram(X), lam), None
    return X @ _inverse(gram(X.T), lam * d / m), X.toarray() if sp.issparse(X) else X


def _inverse(G: Array, lam: float) -> Array:
    """Inverse of ``G + lam mean(diag G) I``, in float64."""
    xp = array_namespace(G)
    G = xp.asarray(G, dtype=xp.float64)
    ridge = lam * float(xp.linalg.trace(G)) / G.shape[0]
    eye = xp.eye(G.shape[0], dtype=G.dtype, device=G.device)
    if not is_numpy_array(G):
        return xp.linalg.inv(G + (ridge or 1.0) * eye)
    L, _ = dpotrf(G + (ridge or 1.0) * eye, lower=1, overwrite_a=1)
    D, _ = dpotri(L, lower=1, overwrite_c=1)
    return np.tril(D) + np.tril(D, -1).T


def _largest(H: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """Rows, columns and values of the k largest in every row; tied ones are lowered."""
    top = H.max(axis=1)
    i, j, below, shares, _ = ties.lowest(top[:, None] - H, top, k, ties.SOLVED)
    return i, j, (top[i] - below) * shares


def _candidates(X: Any, device: str | None) -> np.ndarray:
    """The 100 nearest of every sample, -1 where there are fewer."""
    found = nearest_neighbors(X, AMONG, device=device).shares
    ids = np.full((X.shape[0], int(np.diff(found.indptr).max())), -1)
    places = np.arange(found.nnz) - np.repeat(found.indptr[:-1], np.diff(found.indptr))
    ids[entry_rows(found), places] = found.indices
    return ids
