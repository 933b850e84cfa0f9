"""Nearest neighbors of many samples, chunk by chunk: exact, or within the nearest cells.

For many samples, space is divided into cells, the regions around centers. A sample is compared with
all samples of its own cell, then, cell by cell, with those of the few next nearest cells that are
closer than the k-th found so far, which one product of matrices and a comparison tell. Cells are
searched in groups, independently of each other, here or on the workers of a cluster: the work is
linear in n, no worker needs all samples, and the result does not depend on where it is computed.
Among more than a thousand centers those nearest to a sample are searched near the nearest of a few
*roots*, centers of centers. Of samples at equal distances, those of its own cell are found, and
there the lower row numbers; only where every pair is compared do they share the places.

On an accelerator, torch compares all pairs up to 200,000 samples, and searches cells beyond.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from polyspan.graphs.ties import BLOCK, block_neighbors, squared_lengths, tied
from polyspan.runtime.arrays import Array, like, to_numpy
from polyspan.runtime.devices import move_arrays
from polyspan.runtime.threads import Span, Threads, bounds, stack, take_samples, whole_view

EXACT_BELOW = 20_000  # samples up to which every pair is compared
CELL = 1_000  # samples in a cell, on average; more beyond 16 million samples
ROWS = 8192  # samples in a chunk of an array in memory
PROBES = 4  # cells searched for the neighbors of a sample
FLAT = 1_000  # centers up to which each is compared with every sample
AROUND = 6  # times the centers that a root has, searched around it
GROUPS = 32  # of cells, at most
TABLE = 2**18  # products compared at a time, which fit in the cache
DEVICE_EXACT = 200_000  # samples up to which a device compares all pairs
DEVICE_BLOCK = 2**28  # distances held there at a time: 1 GB in float32


class Found(NamedTuple):
    """Nearest neighbors of some samples: their numbers and squared distances, nearest first.

    Where fewer than k were found, the number is -1 and the distance infinite. ``shares`` says how
    much each counts where samples are tied for the last places, which may be more than k then (see
    `polyspan.graphs.ties`); None means that all count fully.
    """

    ids: np.ndarray
    squares: np.ndarray
    shares: np.ndarray | None = None


def neighbors(
    workers: Any,
    chunks: Any,
    spans: Sequence[Span],
    view: int,
    k: int,
    sample: Array,
    seed: int = 0,
) -> tuple[list[Any], list[Any] | None]:
    """Find the k nearest others of every sample in one view.

    Parameters
    ----------
    workers : polyspan.chunked.workers.Threads or Cluster
        Where the work runs.
    chunks, spans : list
        Chunks of all views, and their first and last rows.
    view : int
        Index of the view.
    k : int
        Number of neighbors.
    sample : (s, d) array
        Some samples of this view, used to learn the centers of the cells.
    seed : int, default=0
        For the centers.

    Returns
    -------
    found : list of `Found`
        One for every chunk, kept on the workers.
    cells : list of (rows, probes) arrays, or None
        Nearest cells of the samples, nearest first; None when every pair was compared.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> with Threads(1) as workers:
    ...     found, _ = neighbors(workers, [[X[:2]], [X[2:]]], [(0, 2), (2, 4)], 0, 1, X)
    >>> np.concatenate([part.ids for part in found]).ravel()
    array([1, 0, 1, 2])
    """
    n, firsts = spans[-1][1], [start for start, _ in spans]
    if n <= EXACT_BELOW:
        whole = workers.submit(whole_view, list(chunks), view=view)
        return workers.map(_exact, chunks, firsts, whole=whole, view=view, k=k), None
    centers = cell_centers(sample, n_cells(n), seed)
    tree, probes = workers.share(cell_tree(centers)), min(PROBES, len(centers))
    cells = workers.map(_assign, chunks, view=view, tree=tree, probes=probes)
    return search_cells(workers, chunks, spans, view, k, cells, len(centers), probes), cells


def approximate_neighbors(X: Array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and squared distances of the k nearest others of the rows of X, nearest first.

    -1 and inf where fewer were found. Computed in the threads that BLAS would use; the answer does
    not depend on how many these are.

    Examples
    --------
    >>> ids, squares = approximate_neighbors(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> ids.ravel(), squares.ravel()
    (array([1, 0, 1]), array([1., 1., 4.]))
    """
    n = X.shape[0]
    spans = bounds(n, ROWS)
    with Threads() as workers:
        chunks = [[X[start:stop]] for start, stop in spans]
        found, _ = neighbors(workers, chunks, spans, 0, k, _drawn(X))
    ids, squares = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    return ids, squares


def center_samples(n: int) -> int:
    """Samples from which the centers of cells are learned: 1%, at least 20,000 if there are.

    Examples
    --------
    >>> center_samples(1_000), center_samples(10_000_000)
    (1000, 100000)
    """
    return min(n, max(20_000, n // 100))


def n_cells(n: int) -> int:
    """Number of cells for n samples.

    Examples
    --------
    >>> n_cells(100_000), n_cells(10_000_000), n_cells(100_000_000)
    (100, 10000, 40000)
    """
    return max(1, n // max(CELL, int(n**0.5 / 4)))


def _drawn(X: Array) -> Array:
    """Samples from which centers are learned, with a fixed seed."""
    n = X.shape[0]
    return X[np.sort(np.random.RandomState(0).choice(n, center_samples(n), replace=False))]


def cell_centers(sample: Array, n_cells: int, random_state: int) -> np.ndarray:
    """Centers of cells, from a few iterations of k-means on a sample; near ones have near numbers.

    Examples
    --------
    >>> X = np.array([[0.0], [10.0], [1.0], [11.0]])
    >>> sorted(cell_centers(X, 4, 0)[:2].ravel().tolist()) in ([0.0, 1.0], [10.0, 11.0])
    True
    """
    n_cells = min(n_cells, sample.shape[0])
    model = KMeans(n_cells, init="random", n_init=1, max_iter=5, random_state=random_state)
    centers = model.fit(sample).cluster_centers_
    return centers[np.argsort(_roots(centers).labels_, kind="stable")]


def _roots(centers: np.ndarray) -> KMeans:
    return KMeans(int(len(centers) ** 0.5), n_init=1, random_state=0).fit(centers)


class Tree(NamedTuple):
    """Centers of cells, roots among them, and the numbers of the centers around every root."""

    centers: np.ndarray
    roots: np.ndarray
    around: np.ndarray


def cell_tree(centers: np.ndarray) -> Tree:
    """Roots of many centers; one for up to a thousand.

    Examples
    --------
    >>> cell_tree(np.array([[0.0], [2.0]]))
    Tree(centers=array([[0.],
           [2.]]), roots=array([[1.]]), around=array([[0, 1]]))
    """
    m = len(centers)
    if m <= FLAT:
        return Tree(centers, centers.mean(axis=0, keepdims=True), np.arange(m)[None])
    roots = _roots(centers).cluster_centers_
    return Tree(centers, roots, _nearest(roots, centers, min(m, AROUND * m // len(roots))))


def _nearest(X: Array, centers: np.ndarray, count: int) -> np.ndarray:
    """Numbers of the nearest centers of the rows of X, nearest first."""
    model = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(centers)
    return model.kneighbors(X, return_distance=False)


def nearest_cells(X: Array, tree: Tree, probes: int) -> np.ndarray:
    """Cells whose centers are nearest to the rows of X, nearest first.

    Examples
    --------
    >>> nearest_cells(np.array([[0.5], [1.5]]), cell_tree(np.array([[0.0], [2.0]])), 2)
    array([[0, 1],
           [1, 0]], dtype=int32)
    """
    cells = np.empty((X.shape[0], probes), dtype=np.int32)
    root = _nearest(X, tree.roots, 1)[:, 0]
    for number in np.unique(root):
        rows, near = np.flatnonzero(root == number), tree.around[number]
        cells[rows] = near[_nearest(X[rows], tree.centers[near], probes)]
    return cells


def _exact(chunk: Any, start: int, whole: Array, view: int, k: int) -> Found:
    """Neighbors of the samples of a chunk among all; those tied for the last places share them."""
    n, k = whole.shape[0], min(k, whole.shape[0] - 1)
    numbers = np.arange(start, start + chunk[view].shape[0])
    near = nearest_of(chunk[view], numbers, whole, np.arange(n), k + 1)
    X, equal = whole.astype(np.float64), tied(whole.dtype)
    lengths = squared_lengths(X)
    last, following = near.squares[:, k - 1], near.squares[:, k]
    sure = following - last > 4 * equal * (lengths[numbers] + last)
    i = np.repeat(np.flatnonzero(sure), k)
    pairs: list[tuple[np.ndarray, ...]] = [
        (i, near.ids[sure, :k].ravel(), near.squares[sure, :k].ravel(), np.ones(len(i)))
    ]
    if not sure.all():
        unsure = np.flatnonzero(~sure)
        for some in np.array_split(unsure, -(-unsure.size * n // BLOCK)):
            i, *rest, _ = block_neighbors(X, lengths, numbers[some], k, equal)
            pairs.append((some[i], *rest))
    joined = [np.concatenate(several) for several in zip(*pairs, strict=True)]
    return in_rows(len(numbers), k, joined, whole.dtype)


def in_rows(n: int, k: int, pairs: Sequence[np.ndarray], dtype: Any) -> Found:
    """Neighbors of n samples in rows of equal length, at least k, nearest first.

    The pairs are numbers of samples, numbers of their neighbors, squared distances and shares.

    Examples
    --------
    >>> pairs = np.array([0, 0, 1]), np.array([2, 1, 0]), np.array([4.0, 1.0, 1.0]), np.ones(3)
    >>> in_rows(2, 1, pairs, np.float64).ids
    array([[ 1,  2],
           [ 0, -1]])
    """
    order = np.lexsort((pairs[2], pairs[0]))
    i, j, squares, shares = (part[order] for part in pairs)
    counts = np.bincount(i, minlength=n)
    wide, where = (n, max(k, int(counts.max()))), (i, _places(counts))
    ids, D2, counted = np.full(wide, -1), np.full(wide, np.inf, dtype), np.zeros(wide, dtype)
    ids[where], D2[where], counted[where] = j, squares, shares
    return Found(ids, D2, counted)


def _places(counts: np.ndarray) -> np.ndarray:
    """Places within rows of these lengths: 0, 1, 0, 1, 2 for 2, 3."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1]) - np.repeat(ends - counts, counts)


def graph_rows(ids: np.ndarray, weights: np.ndarray, n: int) -> sp.csr_array:
    """Rows of a graph of n samples with weights of neighbors; -1 where there is none.

    They are sorted, with numbers in 32 bits if that is enough.

    Examples
    --------
    >>> graph_rows(np.array([[2, 0], [1, -1]]), np.array([[3.0, 4.0], [5.0, 0.0]]), 3).toarray()
    array([[4., 0., 3.],
           [0., 5., 0.]])
    """
    there = ids >= 0
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    small = np.int32 if max(n, ends[-1]) < 2**31 else np.int64
    entries = weights[there], ids[there].astype(small), ends.astype(small)
    graph = sp.csr_array(entries, shape=(len(ids), n))
    graph.sort_indices()
    return graph


def _assign(chunk: Any, view: int, tree: Tree, probes: int) -> np.ndarray:
    return nearest_cells(chunk[view], tree, probes)


def recall(
    workers: Any, chunks: Any, spans: Sequence[Span], view: int, k: int, found: Any, queries: Array
) -> float:
    """Measure what fraction of the true neighbors of some samples was found.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0], [7.0]])
    >>> wrong = Found(np.array([[1], [0], [0], [0]]), np.ones((4, 1)))
    >>> with Threads(1) as workers:
    ...     recall(workers, [[X]], [(0, 4)], 0, 1, [wrong], np.arange(4))
    0.5
    """
    (asked,) = take_samples(workers, chunks, spans, queries, view)
    fixed = {"view": view, "k": k, "queries": workers.share(asked), "own": queries}
    true = workers.collect(workers.map(_from_chunk, chunks, [a for a, _ in spans], **fixed))
    ids, squares = (np.concatenate([part[i] for part in true], axis=1) for i in (0, 1))
    best = np.take_along_axis(ids, np.argsort(squares, axis=1, kind="stable")[:, :k], axis=1)
    (got,) = take_samples(workers, found, spans, queries, view=0)
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(best, got, strict=True)]))


def _from_chunk(chunk: Any, first: int, view: int, k: int, queries: Array, own: Array) -> Found:
    X = chunk[view]
    return nearest_of(queries, own, X, np.arange(first, first + X.shape[0]), k)


class Pairs(NamedTuple):
    """Samples that search, ascending, with what they found: one pair in every entry."""

    rows: np.ndarray
    ids: np.ndarray
    squares: np.ndarray


def search_cells(
    workers: Any, chunks: Any, spans: Any, view: int, k: int, cells: Any, n_cells: int, probes: int
) -> list[Any]:
    """The k nearest others of every sample among those in its cells, one `Found` for every chunk.

    Parameters
    ----------
    workers, chunks, spans, view, k
        As in `neighbors`; what is found stays on the workers.
    cells : list of (rows, probes) arrays
        Cells of the samples of every chunk, their own first.
    n_cells, probes : int
        Number of cells, and of those that are searched for a sample.

    Examples
    --------
    >>> X, cells = np.array([[0.0], [1.0], [3.0]]), np.array([[0, 1], [0, 1], [1, 0]])
    >>> with Threads(1) as workers:
    ...     (found,) = search_cells(workers, [[X]], [(0, 3)], 0, 1, [cells], 2, 2)
    >>> found.ids.ravel(), found.squares.ravel()
    (array([1, 0, 1], dtype=int32), array([1., 1., 4.]))
    """
    edges = [round(i) for i in np.linspace(0, n_cells, min(GROUPS, n_cells) + 1)]
    groups, firsts = list(pairwise(edges)), [start for start, _ in spans]

    def searched(known: Sequence[Any], probe: int) -> list[list[Any]]:
        """What the samples of every chunk found in one of their cells, in parts by groups."""
        lists = chunks, cells, firsts, known
        fixed: dict[str, Any] = {"view": view, "probe": probe}

        def here(group: Span) -> list[Pairs]:
            rows = zip(*lists, strict=True)
            return _divided([_members(*row, **fixed, group=group) for row in rows], k, firsts)

        if not workers.remote:
            return [list(parts) for parts in zip(*workers.map(here, groups), strict=True)]
        results = [  # only members of cells are sent, and let go before the next group is made
            workers.submit(_divided, workers.map(_members, *lists, **fixed, group=group), k, firsts)
            for group in groups
        ]
        numbers = range(len(spans))
        return [[workers.submit(_part, result, i) for result in results] for i in numbers]

    nearest: list[Any] = [None] * len(chunks)
    for probe in range(probes):
        nearest = workers.map(_merge, spans, nearest, searched(nearest, probe), k=k)
    return nearest


def _members(
    chunk: Any, cells: np.ndarray, first: int, known: Any, view: int, probe: int, group: Span
) -> tuple[Array, ...]:
    """Rows, numbers and cells of the samples that live in a group of cells, then of those that ask.

    Last is the squared distance up to which neighbors are wanted.
    """
    X, homes, asked = chunk[view], cells[:, 0], cells[:, probe]
    base = np.flatnonzero((homes >= group[0]) & (homes < group[1]))
    rows = np.flatnonzero((asked >= group[0]) & (asked < group[1]))
    limits = np.full(len(rows), np.inf) if known is None else known.squares[rows, -1]
    return X[base], base + first, homes[base], X[rows], rows + first, asked[rows], limits


def _divided(parts: Sequence[Any], k: int, firsts: Sequence[int]) -> list[Pairs]:
    """What is found in a group of cells, for every chunk what its own samples found."""
    pairs = [_narrow(np.empty(0, int), np.empty(0, int), np.empty(0, parts[0][0].dtype))]
    for Q, rows, limits, B, ids in _by_cell(parts):
        free = np.isinf(limits)  # no k-th neighbor is known
        if free.any():
            pairs.append(_pairs(rows[free], nearest_of(Q[free], rows[free], B, ids, k)))
        if not free.all():
            pairs.append(_closer(Q[~free], rows[~free], limits[~free], B, ids))
    joined = _joined(pairs)
    order = np.argsort(joined.rows, kind="stable")
    cuts = np.searchsorted(joined.rows[order], firsts[1:])
    return [Pairs(*p) for p in zip(*(np.split(part[order], cuts) for part in joined), strict=True)]


def _part(parts: Sequence[Pairs], i: int) -> Pairs:
    # A copy, because a part on its own is sent and kept without the whole.
    return Pairs(*(part.copy() for part in parts[i]))


def _by_cell(parts: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Samples that search a cell with their numbers and limits, and those in it with theirs."""
    X, ids, homes, Q, rows, targets, limits = map(stack, zip(*parts, strict=True))
    for cell in np.unique(homes):
        lives, asks = np.flatnonzero(homes == cell), np.flatnonzero(targets == cell)
        yield Q[asks], rows[asks], limits[asks], X[lives], ids[lives]


def _closer(Q: Array, rows: np.ndarray, limits: np.ndarray, B: Array, ids: np.ndarray) -> Pairs:
    """Pairs of samples Q and B whose squared distance is at most the limit of the former.

    ``|q - b|^2 <= limit`` where ``q^T b - |b|^2 / 2 >= (|q|^2 - limit) / 2``, up to rounding; the
    pairs that remain are compared by their differences.
    """
    lengths, others = squared_lengths(Q), squared_lengths(B)
    slack = 100 * np.finfo(lengths.dtype).eps * (lengths + others.max())
    low, half = (lengths - limits - slack) / 2, others / 2
    pairs = []
    for some in (slice(*span) for span in bounds(len(rows), max(1, TABLE // len(ids)))):
        G = Q[some] @ B.T
        G = G.toarray() if sp.issparse(G) else G
        G -= half
        i, j = np.divmod(np.flatnonzero(G >= low[some, None]), len(ids))
        D = Q[some][i].astype(np.float64) - B[j].astype(np.float64)
        squares = squared_lengths(D).astype(limits.dtype)
        kept = squares <= limits[some][i]
        pairs.append(_narrow(rows[some][i[kept]], ids[j[kept]], squares[kept]))
    return _joined(pairs)


def _pairs(rows: np.ndarray, near: Found) -> Pairs:
    i, j = np.nonzero(near.ids >= 0)
    return _narrow(rows[i], near.ids[i, j], near.squares[i, j])


def _narrow(rows: np.ndarray, ids: np.ndarray, squares: np.ndarray) -> Pairs:
    """With numbers in 32 bits, if that is enough."""
    small = np.int32 if max(rows.max(initial=0), ids.max(initial=0)) < 2**31 else np.int64
    return Pairs(rows.astype(small), ids.astype(small), squares)


def _joined(parts: Sequence[Pairs]) -> Pairs:
    return Pairs(*(np.concatenate(several) for several in zip(*parts, strict=True)))


def nearest_of(X: Array, own: np.ndarray, base: Array, ids: np.ndarray, k: int) -> Found:
    """Return the k rows of ``base``, numbered ``ids``, nearest to each row of X, except ``own``.

    Examples
    --------
    >>> B = np.array([[0.0], [1.0], [3.0]])
    >>> nearest_of(B[:1], np.array([7]), B, np.array([7, 8, 9]), 1)
    Found(ids=array([[8]]), squares=array([[1.]]), shares=None)
    """
    asked, wide = min(k + 1, base.shape[0]), len(own)
    model = NearestNeighbors(n_neighbors=asked, algorithm="brute").fit(base)
    distances, rows = model.kneighbors(X)
    numbers, squares = np.full((wide, k + 1), -1), np.full((wide, k + 1), np.inf, dtype=X.dtype)
    numbers[:, :asked], squares[:, :asked] = ids[rows], distances.astype(X.dtype) ** 2
    itself = numbers == own[:, None]
    place = np.where(itself.any(axis=1), itself.argmax(axis=1), k)  # which of all is left out
    others = np.arange(k) + (np.arange(k) >= place[:, None])
    return Found(*(np.take_along_axis(A, others, axis=1) for A in (numbers, squares)))


def _merge(span: Span, known: Found | None, parts: Sequence[Pairs], k: int) -> Found:
    """Keep the best of what is known and found for the samples of one chunk."""
    start, stop = span
    wide, (_, ids, squares) = (stop - start, k), parts[0]
    if known is None:
        known = Found(np.full(wide, -1, ids.dtype), np.full(wide, np.inf, squares.dtype))
    merged = Found(known.ids.copy(), known.squares.copy())
    touched = np.unique(np.concatenate([part.rows for part in parts])) - start
    some = Found(merged.ids[touched], merged.squares[touched])
    rows, ids, squares = _joined([_pairs(touched + start, some), *parts])
    order = np.lexsort((squares, rows))
    counts = np.bincount(rows - start, minlength=stop - start)
    place = _places(counts)
    best = order[place < k]
    where = rows[best] - start, place[place < k]
    merged.ids[where], merged.squares[where] = ids[best], squares[best]
    return merged


def device_neighbors(X: np.ndarray, k: int, device: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers and squared distances of the k nearest others of the rows of X, nearest first.

    Up to 200,000 samples all are found, up to rounding. Among more, only the nearest cells are
    searched: -1 and inf where fewer were found. Of samples at
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
    xp, n, lengths = array_namespace(Y), len(Y), (Y * Y).sum(1)
    cells, count = xp.zeros((n, 1), dtype=xp.int64, device=Y.device), 1  # one of all samples
    if n > DEVICE_EXACT:
        C = like(cell_centers(_drawn(X), n_cells(n), 0), Y)
        center_lengths, count, parts = (C * C).sum(1), len(C), []
        for start, stop in bounds(n, max(1, DEVICE_BLOCK // count)):
            D2 = center_lengths - 2 * (Y[start:stop] @ C.T)
            parts.append(D2.topk(min(PROBES, count), largest=False)[1])
        cells = xp.concat(parts)
    members, starts = _device_order(cells[:, 0], count)
    searches, firsts = _device_order(cells.reshape(-1), count)
    probes = cells.shape[1]
    ids = xp.zeros((n * probes, k), dtype=xp.int64, device=Y.device)
    squares = xp.full((n * probes, k), float("inf"), dtype=Y.dtype, device=Y.device)
    for cell in range(count):
        lives = members[starts[cell] : starts[cell + 1]]
        asked = searches[firsts[cell] : firsts[cell + 1]]
        for start, stop in bounds(len(asked), max(1, DEVICE_BLOCK // max(1, len(lives)))):
            some = asked[start:stop]
            near, low = _device_nearest(Y, lengths, some // probes, lives, k)
            ids[some, : near.shape[1]], squares[some, : near.shape[1]] = near, low
    best, places = squares.reshape(n, -1).topk(k, largest=False)
    low = to_numpy(best)
    return np.where(np.isinf(low), -1, to_numpy(ids.reshape(n, -1).gather(1, places))), low


def _device_nearest(Y: Any, lengths: Any, asks: Any, lives: Any, k: int) -> tuple[Any, Any]:
    """The k nearest of the samples ``lives`` to each of the samples ``asks``, itself left out."""
    D2 = lengths[lives] - 2 * (Y[asks] @ Y[lives].T)  # without the own length, equal for all
    D2[asks[:, None] == lives] = float("inf")
    low, places = D2.topk(min(k, len(lives)), largest=False)
    return lives[places], (low + lengths[asks, None]).clip(min=0)


def _device_order(cells: Any, count: int) -> tuple[Any, list[int]]:
    """Places sorted by their cells, and where each cell begins."""
    sizes = np.bincount(to_numpy(cells), minlength=count)
    return cells.argsort(stable=True), [0, *np.cumsum(sizes).tolist()]
