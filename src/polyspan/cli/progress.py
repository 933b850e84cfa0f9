"""Progress on a terminal: bars with the time left, on standard error."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

    from polyspan.solvers.loop import Run


def follow(bar: "Progress", task: Any, run: "Run") -> None:
    """Show the solver's iteration, how many its residuals promise, and what time they take.

    Not rich's own estimate of the time, which starts anew whenever the total changes.
    """
    left = run.iterations_left()
    total = run.n_iter + left
    seconds = (time.perf_counter() - run.started) / run.n_iter * left
    words = f"iteration {run.n_iter} of about {total}, {seconds:.0f} s left"
    bar.update(task, completed=run.n_iter, total=total, iteration=words)


def follow_choice(bar: "Progress", what: str) -> Callable[..., None]:
    """A function that shows how a selection goes: called with the settings done and all of them."""
    task = bar.add_task(what, total=None, iteration="")
    started = time.perf_counter()

    def tell(done: int, total: int, *rest: object) -> None:
        left = (time.perf_counter() - started) / max(done, 1) * (total - done)
        words = f"{done} of {total}" + (f", {left:.0f} s left" if done else "")
        bar.update(task, completed=done, total=total, iteration=words)

    return tell


@contextmanager
def progress_bar() -> Iterator["Progress"]:
    """Bars with the time left, on standard error; they vanish when all is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[iteration]}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        yield bar
