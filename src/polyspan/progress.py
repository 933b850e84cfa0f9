"""Progress of long work: a bar with the time left in a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

Tell = Callable[..., Any]  # tell(done, total, text), or tell(done, total, text, seconds_left)
MINUTE = 60.0
PATIENCE = 3.0  # seconds without a bar
_follower: ContextVar[Tell | None] = ContextVar("polyspan_follower", default=None)


@contextmanager
def progress_bar() -> Iterator["Progress"]:
    """Show bars with the time left on standard error; they disappear when the work is done.

    Without a terminal there is a line a minute instead.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[words]}"),
    )
    console, seen = Console(stderr=True), has_eyes()
    with Progress(*columns, console=console, transient=True, disable=not seen) as bar:
        if seen:
            yield bar
        else:
            with _line_a_minute(bar):
                yield bar


def has_eyes() -> bool:
    """Whether a bar can be drawn: standard error is a terminal, or shown in a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def _line_a_minute(bar: "Progress") -> Iterator[None]:
    """Print what the bar would show, again and again, until the block ends."""
    done, started = threading.Event(), time.perf_counter()

    def lines() -> None:
        while not done.wait(MINUTE):
            minutes = (time.perf_counter() - started) / 60
            for task in bar.tasks:
                words = f": {task.fields['words']}" if task.fields["words"] else ""
                told = f"[{task.description}] {minutes:.0f} min{words}"
                if sys.stderr is not None:
                    print(told, file=sys.stderr, flush=True)

    thread = threading.Thread(target=lines, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def following(tell: Tell) -> Iterator[None]:
    """Let ``tell(done, total, text)`` hear of all steps in the block, instead of `telling`.

    Examples
    --------
    >>> steps = []
    >>> with following(lambda *step: steps.append(step)), telling("walk", verbose=0) as tell:
    ...     tell(0, 2, "first step")
    >>> steps
    [(0, 2, 'first step')]
    """
    token = _follower.set(tell)
    try:
        yield
    finally:
        _follower.reset(token)


def follower() -> Tell | None:
    """Return who follows the work, or None."""
    return _follower.get()


@contextmanager
def showing(what: str) -> Iterator["Progress"]:
    """Show the steps of the work in the block on a `progress_bar`."""
    with progress_bar() as bar:
        task, clock = bar.add_task(what, total=None, words=""), time_left()

        def tell(done: int, total: int, text: str, left: float | None = None) -> None:
            bar.update(task, completed=done, total=total, words=clock(done, total, text, left))

        with following(tell):
            yield bar


@contextmanager
def telling(what: str, verbose: int | None = 1) -> Iterator[Tell | None]:
    """Yield ``tell(done, total, text)``, which shows how many steps are done.

    In a terminal this is a bar on standard error, elsewhere one line per step on standard output.
    With ``verbose=0`` it yields None; with None there is a bar after three seconds, if one can be
    drawn. Who knows how many seconds are left passes them, too; otherwise all steps are taken to be
    alike.

    Examples
    --------
    >>> with telling("walk") as tell:
    ...     tell(0, 2, "first step")
    ...     tell(1, 2, "second step", 3.0)
    ...     tell(2, 2, "done")
    [walk] 0 of 2: first step
    [walk] 1 of 2, 3 s left: second step
    [walk] 2 of 2, 0 s left: done
    """
    if (outer := _follower.get()) is not None:
        yield outer
    elif verbose == 0 or (verbose is None and not has_eyes()):
        yield None
    elif verbose is None:
        started = time.perf_counter()
        with ExitStack() as stack:

            def late(*step: Any) -> None:
                if _follower.get() is None and time.perf_counter() - started > PATIENCE:
                    stack.enter_context(showing(what))
                if (tell := _follower.get()) is not None:
                    tell(*step)

            yield late
    elif not has_eyes():
        clock = time_left()
        yield lambda *step: print_step(what, clock(*step))
    else:
        with showing(what):
            yield _follower.get()


def print_step(what: str, text: str) -> None:
    """Print a line on a step of the work.

    Examples
    --------
    >>> print_step("walk", "first step")
    [walk] first step
    """
    print(f"[{what}] {text}", flush=True)


def time_left() -> Callable[..., str]:
    """Return a function that says how many steps are done and how long the rest will take."""
    started, steps = time.perf_counter(), 0

    def words(done: int, total: int, text: str, left: float | None = None) -> str:
        nonlocal started, steps
        if total != steps:  # new work has started
            started, steps = time.perf_counter(), total
        if left is None:
            left = (time.perf_counter() - started) / max(done, 1) * (total - done)
        return f"{done} of {total}" + (f", {left:.0f} s left" if done else "") + f": {text}"

    return words
