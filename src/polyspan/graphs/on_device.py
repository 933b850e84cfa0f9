"""On an accelerator, with torch: the nearest neighbors, and the Laplacian."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from polyspan.graphs.neighbors import PROBES, centers_of
from polyspan.graphs.sparse_laplacian import Groups, Laplacian
from polyspan.runtime.arrays import like, to_numpy
from polyspan.runtime.devices import move_arrays, move_csr
from polyspan.runtime.threads import bounds

LIMIT = 200_000  # samples up to which all pairs are compared
BLOCK = 2**28  # distances held at a time: 1 GB in float32


def device_neighbors(X: np.ndarray, k: int, device: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and squared distances of the k nearest others of the rows of X, nearest first.

    Up to 200,000 samples all are found, up to rounding. Among more, only the nearest cells are
    searched, as in `polyspan.graphs.neighbors`: -1 and inf where fewer were found. Of samples at
    equal distances, the device decides.

    Parameters
    ----------
    X : (n, d) array
        Samples in rows; the distances are computed in its dtype.
    k : int
        Number of neighbors, below n.
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
    found = _all_pairs(Y, lengths, k) if n <= LIMIT else _in_cells(Y, lengths, k, centers_of(X))
    ids, squares = (to_numpy(part) for part in found)
    return np.where(np.isinf(squares), -1, ids), squares


def _all_pairs(Y: Any, lengths: Any, k: int) -> tuple[Any, Any]:
    xp, n = array_namespace(Y), len(Y)
    every, parts = xp.arange(n, device=Y.device), []
    for start, stop in bounds(n, max(1, BLOCK // n)):
        parts.append(_nearest(Y, lengths, every[start:stop], every, k))
    ids, squares = (xp.concat(several) for several in zip(*parts, strict=True))
    return ids, squares


def _nearest(Y: Any, lengths: Any, asks: Any, lives: Any, k: int) -> tuple[Any, Any]:
    """The k nearest of the samples ``lives`` to each of the samples ``asks``, itself left out."""
    D2 = lengths[lives] - 2 * (Y[asks] @ Y[lives].T)  # without the own length, equal for all
    D2[asks[:, None] == lives] = float("inf")
    low, places = D2.topk(min(k, len(lives)), largest=False)
    return lives[places], (low + lengths[asks, None]).clip(min=0)


def _in_cells(Y: Any, lengths: Any, k: int, centers: np.ndarray) -> tuple[Any, Any]:
    """Search the cells whose centers are nearest to a sample, and keep the best of all."""
    xp, n, probes = array_namespace(Y), len(Y), min(PROBES, len(centers))
    C = like(centers, Y)
    own, cells = (C * C).sum(1), []
    for start, stop in bounds(n, max(1, BLOCK // len(C))):
        cells.append((own - 2 * (Y[start:stop] @ C.T)).topk(probes, largest=False)[1])
    whole = xp.concat(cells)
    members, starts = _by_cell(whole[:, 0], len(C))
    searches, firsts = _by_cell(whole.reshape(-1), len(C))
    ids = xp.zeros((n * probes, k), dtype=xp.int64, device=Y.device)
    squares = xp.full((n * probes, k), float("inf"), dtype=Y.dtype, device=Y.device)
    for cell in range(len(C)):
        lives = members[starts[cell] : starts[cell + 1]]
        asked = searches[firsts[cell] : firsts[cell + 1]]
        for start, stop in bounds(len(asked), max(1, BLOCK // max(1, len(lives)))):
            some = asked[start:stop]
            near, low = _nearest(Y, lengths, some // probes, lives, k)
            ids[some, : near.shape[1]], squares[some, : near.shape[1]] = near, low
    ids, squares = ids.reshape(n, -1), squares.reshape(n, -1)
    best, places = squares.topk(k, largest=False)
    return ids.gather(1, places), best


def _by_cell(cells: Any, count: int) -> tuple[Any, list[int]]:
    """Places sorted by their cells, and where each cell begins."""
    sizes = np.bincount(to_numpy(cells), minlength=count)
    return cells.argsort(stable=True), [0, *np.cumsum(sizes).tolist()]


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
