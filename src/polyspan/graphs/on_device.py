"""On an accelerator, with torch: nearest neighbours by every distance, and the Laplacian."""

import numpy as np
import scipy.sparse as sp

from polyspan.graphs.sparse_laplacian import Groups, Laplacian
from polyspan.inputs.devices import move_arrays, move_csr

LIMIT = 200_000  # samples up to which comparing all pairs is faster than the search in cells
BLOCK = 2**28  # distances held at a time: 1 GB in float32


def device_neighbors(X: np.ndarray, k: int, device: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and squared distances of the k nearest others of the rows of X, nearest first.

    All are found, up to rounding. Of samples at equal distances, the device decides.

    Parameters
    ----------
    X : (n, d) array
        Samples in rows; the distances are computed in its dtype.
    k : int
        Number of neighbours, below n.
    device : str
        Where to compute, as torch names it.

    Examples
    --------
    >>> import pytest; _ = pytest.importorskip("torch")
    >>> ids, squares = device_neighbors(np.array([[0.0], [1.0], [3.0]]), 1, "cpu")
    >>> ids.ravel(), squares.ravel()
    (array([1, 0, 1]), array([1., 1., 4.]))
    """
    (Y,) = move_arrays([X], device)
    n, lengths = len(Y), (Y * Y).sum(1)
    ids, squares = np.empty((n, k), dtype=np.int64), np.empty((n, k), dtype=X.dtype)
    step = max(1, BLOCK // n)
    for start in range(0, n, step):
        part = Y[start : start + step]
        D2 = lengths - 2 * (part @ Y.T)  # without the own length, equal for all
        D2[range(len(part)), range(start, start + len(part))] = float("inf")
        low, found = D2.topk(k, largest=False)
        low = (low + lengths[start : start + step, None]).clip(min=0)
        ids[start : start + step], squares[start : start + step] = found.cpu(), low.cpu()
    return ids, squares


def move_laplacian(L: Laplacian, device: str) -> Laplacian:
    """Move a Laplacian to a device, with all rows in one block.

    Examples
    --------
    >>> import pytest; torch = pytest.importorskip("torch")
    >>> from polyspan.graphs.sparse_laplacian import assemble, dense_graph, product, sparse_rows
    >>> found = [dense_graph(np.random.default_rng(0).normal(size=(30, 4)), 5)]
    >>> L = assemble([sparse_rows((0, 30), found, 0.1)], found, 0.1)
    >>> there = product(move_laplacian(L, "cpu"), torch.eye(30, dtype=torch.float64))
    >>> np.allclose(product(L, np.eye(30)), there)
    True
    """
    members, V, V_T, w = L.groups
    order = np.arange(len(L.degrees)) if L.order is None else L.order
    U, degrees, order, members, w = move_arrays([L.U, L.degrees, order, members, w], device)
    groups = Groups(members, move_csr(V, device), move_csr(V_T, device), w)
    S = move_csr(sp.vstack(L.S, format="csr"), device)
    return Laplacian([S], U, degrees, order, groups)
