"""How the iterations of a solver show on a progress bar."""

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

    from polyspan.solvers.loop import Run


def follow(bar: "Progress", task: Any, run: "Run") -> None:
    """Show the solver's iteration, how many its residuals promise, and how long they will take.

    Not rich's own estimate of the time, which starts anew whenever the total changes.
    """
    left = run.iterations_left()
    total = run.n_iter + left
    seconds = (time.perf_counter() - run.started) / run.n_iter * left
    words = f"iteration {run.n_iter} of about {total}, {seconds:.0f} s left"
    bar.update(task, completed=run.n_iter, total=total, words=words)
