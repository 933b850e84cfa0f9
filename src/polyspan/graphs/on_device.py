"""Nearest neighbours on an accelerator: every distance, in blocks of rows, with torch."""

import numpy as np

from polyspan.inputs.devices import move_arrays

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
