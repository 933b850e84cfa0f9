"""Call functions in threads, and stop them at a deadline."""

import ctypes
import queue
import threading
import time
from collections import deque
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
    waiting, busy = deque(range(len(calls))), set[int]()  # numbers of calls; threads with one
    done, lock = queue.SimpleQueue[BaseException | None](), threading.Lock()

    def work() -> None:
        me = threading.get_ident()
        try:
            with threadpool_limits(1, "openmp"):  # OpenMP's limit is per thread
                while True:
                    with lock:
                        if not waiting or (deadline and time.perf_counter() > deadline):
                            return
                        number = waiting.popleft()
                        busy.add(me)
                    results[number] = calls[number]()
                    with lock:
                        busy.discard(me)
                    done.put(None)
        except OutOfTime:
            pass
        except BaseException as error:
            with lock:
                busy.discard(me)
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
            with lock:
                waiting.clear()
                for ident in busy:
                    _stop(ident)
            end = time.perf_counter() + GRACE
            for thread in threads:
                if thread.ident is not None:
                    thread.join(max(0.0, end - time.perf_counter()))
    return results


def _stop(ident: int) -> None:
    """Raise `OutOfTime` in this thread."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(OutOfTime))
