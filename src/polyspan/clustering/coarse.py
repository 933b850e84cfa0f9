"""A good start for the eigenvectors of a large graph: those of a smaller graph, of groups.

Every eighth sample leads a group, and the others join the group to which their links are strongest.
The links between groups are again a graph,

    W_c = P^T W P,  P_ig = 1 if sample i is in group g,

and its smoothest functions, repeated for all samples of a group, are close to those of W. Its own
eigenvectors are found in the same way, from groups of groups, down to a graph that is small enough
for a dense solver. So much of the work is done on small graphs, and fewer rounds of the filter
(`polyspan.solvers.filtered`) are left for the large one (`benchmarks/eigenvectors.py`). All is done
by blocks of rows, in threads or on machines.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.runtime.arrays import inverse_root
from polyspan.runtime.threads import bounds, pick
from polyspan.solvers.eigen import highest_eigenpairs
from polyspan.solvers.filtered import leading_eigenvectors

Span = tuple[int, int]
SHARE = 8  # samples in a group, on average
DENSE = 2_000  # samples for which the dense solver is fastest
JOINS = 3  # rounds in which samples join the groups of those they are linked to
ROUNDS = 8  # of the filter on a graph of groups, at most
TOL = 2e-3  # residual there; more accurate ones hardly make a better start


def coarse_vectors(
    workers: Any,
    blocks: Sequence[Any],
    spans: Sequence[Span],
    root: Any,
    size: int,
    wanted: int,
    order: Any = None,
) -> list[Any] | None:
    """Vectors close to the leading eigenvectors of N, by rows; None if the graph is too small.

    Parameters
    ----------
    workers : Threads or Cluster
        Where the work runs, and where the vectors stay.
    blocks, spans : list
        Rows of ``N = D^-1/2 W D^-1/2`` and their first and last numbers.
    root : (n,) array
        Diagonal of ``D^-1/2``; 0 for samples that are left out.
    size, wanted : int
        As in `polyspan.solvers.filtered.leading_eigenvectors`.
    order : (n,) array, optional
        Numbers of the samples in the rows, if they are not in order: the same samples lead then.

    Examples
    --------
    >>> from polyspan.runtime.threads import Threads
    >>> N = sp.csr_array(np.kron(np.eye(2), np.full((5, 5), 0.2)))
    >>> with Threads(1) as workers:
    ...     (Y,) = coarse_vectors(workers, [N], [(0, 10)], np.full(10, 5**-0.5), 2, 2)
    >>> np.allclose(N @ Y, Y)
    True
    """
    n = spans[-1][1]
    if n <= DENSE:
        whole = workers.submit(_dense, list(blocks), size)
        return workers.map(_rows, spans, whole=whole)
    m = n // SHARE
    if m < 2 * size:
        return None
    led = workers.submit(_leaders, n, m, order)
    groups, numbers = (workers.submit(pick, led, i) for i in range(2))
    for i in range(JOINS):
        groups = workers.submit(
            _stack, workers.map(_join, blocks, spans, groups=groups, m=m, last=i == JOINS - 1)
        )
    own = bounds(m, -(-m // max(1, len(blocks) // SHARE)))
    sent = workers.map(_links, blocks, spans, groups=groups, root=root, m=m, own=own)
    links = [
        workers.submit(_total, [workers.submit(pick, parts, i) for parts in sent], span, m)
        for i, span in enumerate(own)
    ]
    del sent
    Ns, inner = normalized_rows(workers, links, own)
    start = coarse_vectors(workers, Ns, own, inner, size, wanted, numbers)
    _, Us, _ = leading_eigenvectors(workers, Ns, own, size, wanted, TOL, start, ROUNDS)
    whole = workers.submit(_stack, Us)
    return workers.map(_spread, spans, groups=groups, root=root, inner=inner, whole=whole)


def normalized_rows(
    workers: Any, blocks: list[Any], spans: Sequence[Span]
) -> tuple[list[Any], Any]:
    """Rows of ``D^-1/2 W D^-1/2`` from those of W, and the diagonal of ``D^-1/2``: D are degrees.

    The list of the rows of W is emptied.

    Examples
    --------
    >>> from polyspan.runtime.threads import Threads
    >>> W = sp.csr_array([[0.0, 3.0, 1.0], [3.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    >>> with Threads(1) as workers:
    ...     rows, root = normalized_rows(workers, [W[:2], W[2:]], [(0, 2), (2, 3)])
    >>> sp.vstack(rows).toarray().round(4), root.round(4)
    (array([[0.   , 0.866, 0.5  ],
           [0.866, 0.   , 0.   ],
           [0.5  , 0.   , 0.   ]]), array([0.5   , 0.5774, 1.    ]))
    """
    root = workers.submit(_roots, workers.map(_degrees, blocks))
    found = workers.map(_normalized, blocks, spans, root=root)
    blocks.clear()  # their memory is needed
    return found, root


def scaled_rows(block: sp.csr_array, own: np.ndarray, root: np.ndarray) -> sp.csr_array:
    """Rows of W times the inverse roots of the degrees of the rows and of all columns.

    Examples
    --------
    >>> scaled_rows(sp.csr_array([[0.0, 8.0]]), np.array([0.5]), np.array([0.5, 0.25])).toarray()
    array([[0., 1.]])
    """
    data = block.data * np.repeat(own, np.diff(block.indptr)) * root[block.indices]
    return sp.csr_array((data.astype(block.dtype), block.indices, block.indptr), shape=block.shape)


def _degrees(rows: sp.csr_array) -> np.ndarray:
    return np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel()


def _roots(parts: Sequence[np.ndarray]) -> np.ndarray:
    return inverse_root(np.concatenate(parts))


def _normalized(rows: sp.csr_array, span: Span, root: np.ndarray) -> sp.csr_array:
    return scaled_rows(rows, root[span[0] : span[1]], root)


def _dense(blocks: Sequence[sp.csr_array], size: int) -> np.ndarray:
    """Leading eigenvectors of a small graph, the largest first."""
    N = sp.vstack(blocks).toarray().astype(np.float64)
    return highest_eigenpairs((N + N.T) / 2, size)[1][:, ::-1].astype(blocks[0].dtype)


def _rows(span: Span, whole: np.ndarray) -> np.ndarray:
    return whole[span[0] : span[1]]


def _stack(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts)


def _leaders(n: int, m: int, order: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Groups of n samples, of which only the m that lead have one yet; the others have -1.

    Groups are numbered by the rows of their leaders, so that near groups have near numbers; the
    second array has the numbers that they would have with the samples in order.
    """
    rows, numbers = np.sort(np.random.RandomState(0).choice(n, m, replace=False)), None
    if order is not None:
        rows = np.argsort(order)[rows]
        numbers = np.argsort(rows)
        rows = rows[numbers]
    groups = np.full(n, -1, dtype=np.int32 if n < 2**31 else np.int64)
    groups[rows] = np.arange(m)
    return groups, numbers


def _join(block: sp.csr_array, span: Span, groups: np.ndarray, m: int, last: bool) -> np.ndarray:
    """Groups of the samples of a block: those without join the one they are most linked to.

    Any group is as good as another for those that are ``last`` without.
    """
    own = groups[span[0] : span[1]].copy()
    free = np.flatnonzero(own < 0)
    rows = block[free]
    theirs = groups[rows.indices]
    known = theirs >= 0
    i = np.repeat(np.arange(len(free)), np.diff(rows.indptr))
    sums = sp.csr_array((rows.data[known], (i[known], theirs[known])), shape=(len(free), m))
    i = np.repeat(np.arange(len(free)), np.diff(sums.indptr))
    order = np.lexsort((-sums.data, i))
    some, first = np.unique(i[order], return_index=True)
    own[free[some]] = sums.indices[order[first]]
    if last:
        left = np.flatnonzero(own < 0)
        own[left] = (left + span[0]) % m
    return own


def _links(
    block: sp.csr_array,
    span: Span,
    groups: np.ndarray,
    root: np.ndarray,
    m: int,
    own: Sequence[Span],
) -> list[sp.csr_array]:
    """Links between groups that come from a block of samples, by rows: parts of ``P^T W P``."""
    side = np.divide(1, root, out=np.zeros(len(root), dtype=np.float32), where=root > 0)
    W = scaled_rows(block, side[span[0] : span[1]], side)
    i = np.repeat(groups[span[0] : span[1]], np.diff(W.indptr))
    found = sp.csr_array((W.data, (i, groups[W.indices])), shape=(m, m))
    return [found[start:stop] for start, stop in own]


def _total(parts: Sequence[sp.csr_array], span: Span, m: int) -> sp.csr_array:
    """Sum of some rows over the blocks they come from."""
    i = np.concatenate([np.repeat(np.arange(len(p.indptr) - 1), np.diff(p.indptr)) for p in parts])
    j, data = (np.concatenate([getattr(p, name) for p in parts]) for name in ("indices", "data"))
    return sp.csr_array((data, (i, j)), shape=(span[1] - span[0], m))


def _spread(
    span: Span, groups: np.ndarray, root: np.ndarray, inner: np.ndarray, whole: np.ndarray
) -> np.ndarray:
    """Vectors of some samples from those of the groups: ``D^1/2 P D_c^-1/2 U``."""
    own, groups = root[span[0] : span[1]], groups[span[0] : span[1]]
    side = np.divide(1, own, out=np.zeros(len(own)), where=own > 0)
    return (side * inner[groups]).astype(whole.dtype)[:, None] * whole[groups]
