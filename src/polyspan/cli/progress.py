"""Progress on a terminal: bars with the time left, on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polyspan.solvers.loop import Run

if TYPE_CHECKING:
    from rich.progress import Progress


def follow(bar: "Progress", task: Any, run: Run) -> None:
    """Show the solver's turn, the turns that its residuals promise, and what time they take.

    Not rich's own estimate of the time, which starts anew whenever the total changes.
    """
    left = run.turns_left()
    total = run.n_iter + left
    seconds = (time.perf_counter() - run.started) / run.n_iter * left
    words = f"turn {run.n_iter} of about {total}, {seconds:.0f} s left"
    bar.update(task, completed=run.n_iter, total=total, turn=words)


@contextmanager
def progress_bar() -> Iterator["Progress"]:
    """Bars with the time left, on standard error; they vanish when all is done."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[turn]}"),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        yield bar
