"""Leading eigenvectors of a large sparse symmetric matrix, by rows that may lie on many machines.

Subspace iteration with a Chebyshev filter: a block of vectors is multiplied by a polynomial of N
that is at most 1 in size on ``[-1, a]`` and grows fast above, and Rayleigh-Ritz finds the best
vectors in its span; a is the smallest Ritz value of the round before. All that is done with N are
products with a block of some 20 vectors, row block by row block, in threads or on machines. ARPACK
does less work for vectors that are as good for clustering, but in one place and one thread
(`benchmarks/eigenvectors.py`).
"""

from collections.abc import Sequence
from operator import matmul
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.runtime.arrays import Array
from polyspan.runtime.threads import Span
from polyspan.solvers.eigen import eigh

DEGREE = 30  # of the polynomial, at most
GROWTH = {"float32": 1e4, "float64": 1e10}  # at 1; more would drown what grows least in rounding
ROUNDS = 10  # at most
FIRST = 0.9  # where the first polynomial begins to grow


def leading_eigenvectors(
    workers: Any,
    blocks: Sequence[Any],
    spans: Sequence[Span],
    size: int,
    wanted: int,
    tol: float = 1e-3,
    start: list[Any] | None = None,
    rounds: int | None = None,
) -> tuple[np.ndarray, list[Any], float]:
    """Largest eigenvalues of N, descending, the vectors by rows, and the worst residual.

    Parameters
    ----------
    workers : Threads or Cluster
        Where the work runs.
    blocks : list of (rows, n) csr_array
        Rows of a symmetric matrix whose eigenvalues lie in [-1, 1]; float32 is enough.
    spans : list of (first row, row after the last)
        Of the blocks.
    size : int
        Number of vectors.
    wanted : int
        Of them, how many must be accurate; the others help them to become so.
    tol : float, default=1e-3
        Stop when no ``|N y - w y|`` of a wanted vector y, of length 1, is larger.
    start : list of (rows, size) arrays, optional
        The first vectors, by rows; random ones by default. The list is emptied.
    rounds : int, optional
        Stop after so many, ten by default.

    Returns
    -------
    w : (size,) array
    vectors : list of (rows, size) arrays
        They stay on the workers.
    residual : float
        The largest of the wanted vectors; above ``tol`` if the rounds were not enough.

    Examples
    --------
    >>> from polyspan.runtime.threads import Threads
    >>> N = sp.csr_array(np.diag([1.0, 0.2, 0.9, 0.5, 0.1, 0.3]))
    >>> with Threads(1) as workers:
    ...     w, Ys, residual = leading_eigenvectors(workers, [N[:4], N[4:]], [(0, 4), (4, 6)], 3, 2)
    >>> w.round(2), np.abs(np.concatenate(Ys)[:, :2]).round(2).T
    (array([1. , 0.9, 0.5]), array([[1., 0., 0., 0., 0., 0.],
           [0., 0., 1., 0., 0., 0.]]))
    """
    cut, residual = FIRST, np.inf
    dtype = workers.collect(workers.submit(getattr, blocks[0], "dtype"))
    Ys = workers.map(random_rows, spans, size=size, dtype=dtype) if start is None else start
    NYs = _product(workers, blocks, Ys)
    w = np.zeros(size)
    for i in range(ROUNDS if rounds is None else rounds):
        if i > 0 or start is None:  # what a given start is good for is seen before it is filtered
            Ys = _filtered(workers, blocks, Ys, NYs, cut, dtype)
        P = _whitening(sum(workers.collect(workers.map(_gram, Ys, Ys))))
        Ys = workers.map(_turned, Ys, by=P)
        NYs = _product(workers, blocks, Ys)
        w, S = eigh(sum(workers.collect(workers.map(_gram, Ys, NYs))))
        w, S = w[::-1], S[:, ::-1]
        Ys, NYs = (workers.map(_turned, parts, by=S) for parts in (Ys, NYs))
        squares = sum(workers.collect(workers.map(_residuals, Ys, NYs, w=w)))
        cut, residual = float(w[-1]), float(np.sqrt(np.max(squares[:wanted])))
        if residual <= tol:
            break
    return w, Ys, residual


def random_rows(span: Span, size: int, dtype: Any) -> np.ndarray:
    """Random rows that depend on their numbers only, not on how they are divided.

    Examples
    --------
    >>> whole = random_rows((0, 5), 2, np.float32)
    >>> bool((random_rows((3, 5), 2, np.float32) == whole[3:]).all())
    True
    """
    numbers = np.random.PCG64(0)
    numbers.advance(span[0] * size)
    rows = np.random.Generator(numbers).random((span[1] - span[0], size)) - 0.5
    return rows.astype(dtype)


def _product(workers: Any, blocks: Sequence[Any], parts: Sequence[Any]) -> list[Any]:
    whole = workers.submit(np.concatenate, list(parts))
    return workers.map(matmul, blocks, [whole] * len(blocks))


def _filtered(
    workers: Any, blocks: Sequence[Any], Ys: list[Any], NYs: list[Any], cut: float, dtype: Any
) -> list[Any]:
    """Chebyshev polynomial of N on Y that stays in [-1, 1] on [-1, cut], from Y and N Y."""
    fixed = {"center": (cut - 1) / 2, "half": (cut + 1) / 2}
    before, now = list(Ys), workers.map(_first, Ys, NYs, **fixed)
    for used in (Ys, NYs):
        used.clear()  # their memory is needed
    for _ in range(_degree(cut, dtype) - 1):
        whole = workers.submit(np.concatenate, list(now))
        before, now = now, workers.map(_next, blocks, now, before, whole=whole, **fixed)
    return now


def _degree(cut: float, dtype: Any) -> int:
    """Degree up to which the polynomial grows from 1 at ``cut`` to no more than `GROWTH` at 1."""
    rate = np.arccosh(1 + 2 * max(1 - cut, 1e-9) / (cut + 1))
    return int(np.clip(np.log(2 * GROWTH[dtype.name]) / rate, 2, DEGREE))


def _first(Y: np.ndarray, NY: np.ndarray, center: float, half: float) -> np.ndarray:
    return (NY - Y.dtype.type(center) * Y) / Y.dtype.type(half)


def _next(
    block: sp.csr_array, now: Array, before: Array, whole: Array, center: float, half: float
) -> Array:
    following = block @ whole
    following -= now.dtype.type(center) * now
    following *= now.dtype.type(2 / half)
    following -= before
    return following


def _gram(Y: np.ndarray, Z: np.ndarray) -> np.ndarray:
    return Y.T.astype(np.float64) @ Z.astype(np.float64)


def _whitening(G: np.ndarray) -> np.ndarray:
    """P with ``P^T G P = I``; directions that are only rounding error become short."""
    size = np.sqrt(np.diag(G))
    g, P = eigh(G / size[:, None] / size)
    return P / np.sqrt(np.maximum(g, 1e-12 * g[-1])) / size[:, None]


def _turned(Y: np.ndarray, by: np.ndarray) -> np.ndarray:
    return Y @ by.astype(Y.dtype)


def _residuals(Y: np.ndarray, NY: np.ndarray, w: np.ndarray) -> np.ndarray:
    R = NY - Y * w.astype(Y.dtype)
    return np.einsum("ij,ij->j", R, R).astype(np.float64)
