"""Progress of long work: a bar with the time left in a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

Tell = Callable[[int, int, str], Any]


@contextmanager
def progress_bar() -> Iterator["Progress"]:
    """Show bars with the time left on standard error; they disappear when the work is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[words]}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        yield bar


@contextmanager
def telling(what: str, verbose: int = 1) -> Iterator[Tell | None]:
    """Yield ``tell(done, total, text)``, which shows how many steps are done.

    In a terminal this is a bar on standard error, elsewhere one line per step on standard output.
    With ``verbose=0`` it yields None.

    Examples
    --------
    >>> with telling("walk") as tell:
    ...     tell(0, 2, "first step")
    ...     tell(2, 2, "done")
    [walk] 0 of 2: first step
    [walk] 2 of 2, 0 s left: done
    """
    if not verbose:
        yield None
    elif not sys.stderr.isatty():
        clock = _time_left()
        yield lambda done, total, text: print(f"[{what}] {clock(done, total)}: {text}", flush=True)
    else:
        with progress_bar() as bar:
            task, clock = bar.add_task(what, total=None, words=""), _time_left()
            yield lambda done, total, text: bar.update(
                task, completed=done, total=total, words=clock(done, total)
            )


def _time_left() -> Callable[[int, int], str]:
    """Return a function that says how many steps are done and how long the rest will take."""
    started, steps = time.perf_counter(), 0

    def words(done: int, total: int) -> str:
        nonlocal started, steps
        if total != steps:  # new work has started
            started, steps = time.perf_counter(), total
        left = (time.perf_counter() - started) / max(done, 1) * (total - done)
        return f"{done} of {total}" + (f", {left:.0f} s left" if done else "")

    return words
