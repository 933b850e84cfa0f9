"""Run the jobs of a protocol in worker processes and write a row for each to a store."""

import sys
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags
from threadpoolctl import threadpool_limits

from harness.jobs import STAGES, Job, count_jobs
from harness.plan import Protocol, build, load_in_order, load_source
from harness.rows import empty_row, job_labels, lost_row
from harness.store import Row, Tell, alone, identity, latest
from harness.workers import share_cores, start_workers, stop_worker
from polyspan.metrics import SCORES, clustering_scores
from polyspan.runtime.cache import Store, sharing
from polyspan.runtime.devices import card_name, check_device
from polyspan.runtime.messages import own_warnings, warn_user

if TYPE_CHECKING:
    from rich.progress import Progress

Work = Callable[..., Row]
_common = Store(2**28)  # shared by the jobs of a process; loky ends one that grows by 300 MB


def run_protocol(
    protocol: Protocol,
    store: str | Path,
    *,
    jobs: int | None = None,
    retry: bool = False,
    device: str | None = None,
    tell: Tell = warn_user,
) -> Counter[str]:
    """Run the jobs that are not in the store yet, and count how all jobs ended.

    Parameters
    ----------
    protocol : Protocol
        From `read_protocol`.
    store : path
        Database of rows, see `harness.store`. Jobs that have a row there are not run again.
    jobs : int, optional
        Number of jobs to run at the same time; by default one per core, and never more. Each gets
        an equal share of the cores for its threads.
    retry : bool, default=False
        Rerun the jobs that failed or timed out.
    device : str, optional
        Device for the methods that have a parameter ``device``, or whose estimator has one, such
        as "cuda".
    tell : function, optional
        Gets a sentence about rows that are not believed, see `read_rows`.

    Returns
    -------
    Counter
        Number of jobs by status: "ok", "failed", "timeout".

    Raises
    ------
    FileNotFoundError
        A data set has not been downloaded; raised before any work.
    BlockingIOError
        Another run writes to the same store.
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs must be 1 or more; got {jobs}")
    store = Path(store)
    if not store.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {store.parent}: create it first")
    if device is not None:
        check_device("bench", device)
    for source in protocol.datasets:
        load_source(source)
    with alone(store, tell) as (rows, add):
        return _run_rest(protocol, rows, add, *share_cores(jobs), retry, device)


def _run_rest(
    protocol: Protocol,
    rows: list[Row],
    add: Callable[[list[Row]], None],
    slots: int,
    threads: int,
    retry: bool,
    device: str | None,
) -> Counter[str]:
    """Run the jobs that have no row yet.

    One method and one data set after the other, in the order of the protocol, each to its end.
    """
    known = {identity(row): row for row in latest(rows) if row["status"] == "ok" or not retry}
    counts, idle = Counter[str](), list[Any]()
    try:
        with _progress() as bar:
            task = bar.add_task(protocol.name, total=count_jobs(protocol))
            for method, source in protocol.pairs():
                pair, done = replace(protocol, methods=[method], datasets=[source]), list[Row]()
                for stage in STAGES:
                    pending = []
                    for job in stage(pair, done):
                        row = known.get(identity(job_labels(job)))
                        if row is None:
                            pending.append(job)
                        else:
                            done.append(row)
                            bar.advance(task)
                    pending.sort(key=_like_next_to_like)
                    for row in run_jobs(pending, slots, threads, device=device, idle=idle):
                        add([row])
                        done.append(row)
                        bar.advance(task)
                counts.update(row["status"] for row in done)
    finally:
        for worker in idle:
            stop_worker(worker)
    return counts


def _like_next_to_like(job: Job) -> list[str]:
    """Sort jobs so that they share most: the first parameter of a grid changes fastest.

    Grids are written with the weights first, and what is shared does not depend on the weights.
    """
    return [repr(value) for value in reversed(job.params.values())]


def run_job(job: Job, threads: int, device: str | None = None) -> Row:
    """Fit, score and describe one job; only the fit is timed. An exception becomes a failed row.

    Jobs in one worker share what they have in common (`polyspan.runtime.cache`). ``seconds`` is the
    time of a fit on its own: a part reused from an earlier fit counts with the time it took there.
    `harness.protocol` says in which order the samples are, and who shares a solution.
    """
    row = empty_row(job, threads)
    started = started_cpu = None
    try:
        model = build(job.method.estimator, job.params)
        same = getattr(get_tags(model), "one_solution", False)
        row["solve"] = "shared" if same and not job.checks else "own"
        store = Store(0) if same and job.checks else _common
        data = load_in_order(job.source, job.order, job.seed if row["solve"] == "own" else 0)
        model.set_params(n_clusters=data.n_clusters, random_state=job.seed)
        own = {"device", "estimator__device"} & set(model.get_params())
        if device is not None and own:
            model.set_params(**dict.fromkeys(own, device))
            row["machine"]["device"] = card_name(device)
        labels = data.labels if job.params.get("oracle") else None  # no other method may see them
        with (
            threadpool_limits(threads),
            own_warnings(record=True) as caught,
            sharing(store=store),
        ):
            warnings.simplefilter("always")
            store.saved = 0.0
            started, started_cpu = time.perf_counter(), time.process_time()
            model.fit(data.views, labels)
            row["cpu_seconds"] = time.process_time() - started_cpu
            row["seconds"] = time.perf_counter() - started + store.saved
            row["shared_seconds"] = store.saved
        row["converged"] = not any(issubclass(one.category, ConvergenceWarning) for one in caught)
        if (iterations := getattr(model, "n_iter_", None)) is not None:
            row["iterations"] = int(iterations)
        row |= clustering_scores(data.labels, model.labels_)
        row["status"] = "ok"
    except Exception as error:
        if started is not None and started_cpu is not None:
            row["seconds"] = time.perf_counter() - started
            row["cpu_seconds"] = time.process_time() - started_cpu
        row |= dict.fromkeys((*SCORES, "iterations", "converged"))
        row["reason"] = traceback.format_exception_only(error)[-1].strip()
    return row


def run_jobs(
    jobs: Sequence[Job],
    slots: int,
    threads: int,
    work: Work = run_job,
    device: str | None = None,
    idle: list[Any] | None = None,
) -> Iterator[Row]:
    """Yield a row for every job, in the order in which they finish.

    Every slot has its own worker process. If a job times out, its worker is killed and replaced by
    a fresh one; if a worker dies, only its current job is lost. Workers in the list ``idle`` are
    used before new ones are started, and all are there in the end, for the next call.
    """
    waiting, kept = deque(jobs), idle is not None
    idle = [] if idle is None else idle
    idle += start_workers(min(slots, len(waiting)) - len(idle), device)
    running: dict[Future[Row], tuple[Any, Job, float]] = {}
    try:
        while waiting or running:
            while waiting and idle:
                worker, job = idle.pop(), waiting.popleft()
                future = worker.submit(work, job, threads, *([] if device is None else [device]))
                running[future] = worker, job, time.monotonic()
            ends = [start + job.timeout for _, job, start in running.values() if job.timeout]
            patience = max(0.0, min(ends) - time.monotonic()) if ends else None
            finished, _ = wait(running, timeout=patience, return_when=FIRST_COMPLETED)
            for future in finished:
                worker, job, start = running.pop(future)
                error = future.exception()  # not from the fit, whose errors become rows
                if error is None:
                    idle.append(worker)
                    yield future.result()
                    continue
                stop_worker(worker)
                if waiting:
                    idle += start_workers(1, device)
                reason = f"the worker process died: {type(error).__name__}"
                yield lost_row(job, threads, "failed", reason, time.monotonic() - start)
            for future, (worker, job, start) in list(running.items()):
                spent = time.monotonic() - start
                if job.timeout and spent >= job.timeout and not future.done():
                    del running[future]
                    stop_worker(worker)
                    if waiting:
                        idle += start_workers(1, device)
                    reason = f"stopped after {job.timeout:g} s"
                    yield lost_row(job, threads, "timeout", reason, spent)
    finally:
        for worker in [*([] if kept else idle), *(worker for worker, *_ in running.values())]:
            stop_worker(worker)


@contextmanager
def _progress() -> Iterator["Progress"]:
    """A progress bar with the time left, on standard error and only on a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
        # Average the speed over the last minutes: settings take very different times.
        speed_estimate_period=600,
    ) as bar:
        yield bar
