"""Worker processes: one per slot, so that each can be killed on its own."""

import os
import signal
import threading
import time
from concurrent.futures import wait
from typing import Any

import joblib
from joblib.externals.loky.process_executor import ProcessPoolExecutor

from polyspan.runtime.devices import check_device


def share_cores(jobs: int | None) -> tuple[int, int]:
    """Number of parallel jobs, and threads per job: their product never exceeds the cores.

    Examples
    --------
    >>> jobs, threads = share_cores(1)
    >>> jobs, threads <= joblib.cpu_count()
    (1, True)
    """
    cores = joblib.cpu_count()
    slots = cores if jobs is None else min(jobs, cores)
    asked = os.environ.get("OMP_NUM_THREADS", "")
    threads = max(1, cores // slots)
    return slots, min(threads, int(asked)) if asked.isdigit() and int(asked) else threads


def start_workers(count: int, device: str | None) -> list[Any]:
    """Pools of one process each, so that each can be killed on its own; ready on return."""
    workers = [
        ProcessPoolExecutor(max_workers=1, initializer=_begin, initargs=(os.getpid(), device))
        for _ in range(count)
    ]
    wait([worker.submit(os.getpid) for worker in workers])
    return workers


def stop_worker(worker: Any) -> None:
    """Stop a worker, whatever it is doing."""
    worker.shutdown(wait=True, kill_workers=True)


def _begin(parent: int, device: str | None) -> None:
    """Set up a worker: load the libraries, leave Ctrl-C to the parent, exit when it does."""
    import sklearn.cluster  # noqa: F401  loads every library that has its own threads

    if device is not None:
        check_device("bench", device)  # starts its driver, which takes seconds

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
