"""Call functions in threads, and stop them at a deadline."""

import ctypes
import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from typing import Any

from threadpoolctl import threadpool_limits

GRACE = 1.0  # seconds that a stopped thread is waited for: it ends when its present step does
INTERRUPTED = "interrupted"  # why a function did not run
keeps_partial = ContextVar("polyspan_keeps_partial", default=False)  # what ran, after Ctrl-C


class OutOfTime(BaseException):
    """What a function was stopped by; not an error that it could handle."""


def run_tasks(
    calls: Sequence[Callable[[], Any]],
    n_jobs: int = 1,
    deadline: float | None = None,
    finished: Callable[[], None] | None = None,
) -> list[Any]:
    """Call all functions, ``n_jobs`` at a time, and return their results in order.

    Every thread uses one core. At the deadline, a time of `time.perf_counter`, or on Ctrl-C the
    functions at work are stopped by `OutOfTime`, as soon as they are back in Python; they and those
    not yet called have the result None. An error of a function is raised here.

    Examples
    --------
    >>> run_tasks([lambda: 1, lambda: 2], n_jobs=2)
    [1, 2]
    >>> import time
    >>> run_tasks([lambda: [time.sleep(0.01) for _ in range(1000)]], deadline=time.perf_counter())
    [None]
    """
    results: list[Any] = [None] * len(calls)
    numbers, done = iter(range(len(calls))), queue.SimpleQueue[BaseException | None]()
    lock = threading.Lock()

    def work() -> None:
        try:
            with threadpool_limits(1):  # OpenMP's limit is per thread
                while (number := _next(numbers, lock)) is not None:
                    results[number] = calls[number]()
                    done.put(None)
        except OutOfTime:
            pass
        except BaseException as error:
            done.put(error)

    threads = [
        threading.Thread(target=copy_context().run, args=(work,), daemon=True)
        for _ in range(min(n_jobs, len(calls)))
    ]
    with threadpool_limits(1):
        try:
            for thread in threads:
                thread.start()
            for _ in calls:
                left = None if deadline is None else max(0.0, deadline - time.perf_counter())
                error = done.get(timeout=left)
                if error is not None:
                    raise error
                if finished is not None:
                    finished()
        except queue.Empty:
            pass
        finally:
            _stop(threads)
    return results


def _next(numbers: Any, lock: threading.Lock) -> int | None:
    with lock:
        return next(numbers, None)


def _stop(threads: Sequence[threading.Thread]) -> None:
    """Raise `OutOfTime` in the threads that are at work."""
    for thread in threads:
        if thread.is_alive() and thread.ident is not None:
            ident, error = ctypes.c_ulong(thread.ident), ctypes.py_object(OutOfTime)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, error)
    end = time.perf_counter() + GRACE
    for thread in threads:
        thread.join(max(0.0, end - time.perf_counter()))
