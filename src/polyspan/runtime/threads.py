"""Work on chunks of rows in the threads of this process; the results do not depend on them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import threadpool_info, threadpool_limits

BLOCK = 32  # columns solved together


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
            n_jobs = max((library["num_threads"] for library in threadpool_info()), default=1)
        self.n_jobs = n_jobs

    def columns(self, m: int) -> list[tuple[int, int]]:
        """Split m columns into blocks of fixed size, so that nothing depends on the threads."""
        return bounds(m, BLOCK)

    def __enter__(self) -> "Threads":
        self._limit = threadpool_limits(1)
        # OpenMP's limit is per thread, so every thread sets its own.
        self._pool = ThreadPoolExecutor(self.n_jobs, initializer=threadpool_limits, initargs=(1,))
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        self._limit.restore_original_limits()

    def map(self, function: Callable[..., Any], *lists: Sequence[Any], **fixed: Any) -> list[Any]:
        """Call ``function`` with the first of every list, then with the second, and so on."""
        if self.n_jobs == 1:
            return [function(*one, **fixed) for one in zip(*lists, strict=True)]
        calls = [self._pool.submit(function, *a, **fixed) for a in zip(*lists, strict=True)]
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


def bounds(n: int, size: int) -> list[tuple[int, int]]:
    """First row and last row (exclusive) of every chunk.

    Examples
    --------
    >>> bounds(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, n)) for start in range(0, n, size)]


def pick(results: Sequence[Any], i: int) -> Any:
    """Return one of several results, on the worker that holds them.

    Examples
    --------
    >>> pick(["a", "b"], 1)
    'b'
    """
    return results[i]
