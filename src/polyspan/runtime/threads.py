"""Work on chunks of rows in the threads of this process; the results do not depend on them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from operator import getitem
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import ThreadpoolController

from polyspan.runtime.arrays import Array

BLOCK = 32  # columns solved together
Span = tuple[int, int]  # first row of a chunk, and the row after its last


@cache
def _pools() -> ThreadpoolController:
    """The libraries with threads of their own; finding them takes longer than some fits."""
    return ThreadpoolController()


class Threads:
    """Process chunks in this process, in ``n_jobs`` threads; 1 is a plain loop.

    None means as many threads as BLAS and OpenMP would use. Inside each of them BLAS and OpenMP
    use one thread, so that results do not depend on the number of threads.

    Examples
    --------
    >>> with Threads(2) as workers:
    ...     workers.collect(workers.map(pow, [1, 2, 3], [2, 2, 2]))
    [1, 4, 9]
    """

    remote = False  # whether chunks are elsewhere

    def __init__(self, n_jobs: int | None = None) -> None:
        if n_jobs is None:
            n_jobs = max((library["num_threads"] for library in _pools().info()), default=1)
        self.n_jobs = n_jobs

    def columns(self, m: int) -> list[Span]:
        """Split m columns into blocks of fixed size, so that nothing depends on the threads."""
        return bounds(m, BLOCK)

    def __enter__(self) -> "Threads":
        limit = partial(_pools().limit, limits=1)
        self._limit = limit()
        # OpenMP's limit is per thread, so every thread sets its own.
        self._pool = ThreadPoolExecutor(self.n_jobs, initializer=limit)
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._limit.restore_original_limits()

    def map(self, function: Callable[..., Any], *lists: Sequence[Any], **fixed: Any) -> list[Any]:
        """Call ``function`` with the first of every list, then with the second, and so on."""
        if self.n_jobs == 1:
            return [function(*args, **fixed) for args in zip(*lists, strict=True)]
        calls = [self._pool.submit(function, *args, **fixed) for args in zip(*lists, strict=True)]
        return [call.result() for call in calls]

    def submit(self, function: Callable[..., Any], *args: Any, **fixed: Any) -> Any:
        """Call ``function`` once."""
        return function(*args, **fixed)

    def share(self, value: Any) -> Any:
        """Make a value available to all calls."""
        return value

    def collect(self, results: Any) -> Any:
        """Return the results of `map` or `submit`."""
        return results


def bounds(n: int, size: int) -> list[Span]:
    """First row and last row (exclusive) of every chunk.

    Examples
    --------
    >>> bounds(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def unzip(workers: Any, results: Sequence[Any], n: int) -> list[list[Any]]:
    """Parts of results that have n each: a list for every part, on the workers that hold them.

    Examples
    --------
    >>> with Threads(1) as workers:
    ...     unzip(workers, workers.map(divmod, [7, 9], [2, 2]), 2)
    [[3, 4], [1, 1]]
    """
    return [[workers.submit(getitem, result, i) for result in results] for i in range(n)]


def stack(parts: Sequence[Array]) -> Array:
    """Rows of several arrays or csr_arrays in one.

    Examples
    --------
    >>> stack([np.eye(2)[:1], np.eye(2)[1:]])
    array([[1., 0.],
           [0., 1.]])
    """
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def whole_view(chunks: Sequence[Any], view: int) -> Array:
    """All samples of one view.

    Examples
    --------
    >>> whole_view([[np.zeros((1, 2))], [np.ones((1, 2))]], 0)
    array([[0., 0.],
           [1., 1.]])
    """
    return stack([chunk[view] for chunk in chunks])


def take(chunk: Any, rows: np.ndarray, view: int | None = None) -> list[Array]:
    """Take some rows of all views of a chunk, or of one, counted from its first row."""
    return [X[rows] for X in (chunk if view is None else [chunk[view]])]


def take_samples(
    workers: Any, chunks: Any, spans: Sequence[Span], wanted: np.ndarray, view: int | None = None
) -> list[Array]:
    """Collect some samples of all views, or of one, in this process and in the requested order.

    Examples
    --------
    >>> X = np.arange(4.0)[:, None]
    >>> with Threads(1) as workers:
    ...     take_samples(workers, [[X[:2]], [X[2:]]], [(0, 2), (2, 4)], np.array([3, 0]))
    [array([[3.],
           [0.]])]
    """
    where = np.argsort(wanted, kind="stable")
    ordered = wanted[where]
    inside = [ordered[(ordered >= a) & (ordered < b)] - a for a, b in spans]
    parts = workers.collect(workers.map(take, chunks, inside, view=view))
    back = np.argsort(where, kind="stable")
    views = zip(*parts, strict=True)
    return [stack([X for X in several if X.shape[0]])[back] for several in views]
