"""The loop around a solver: counts iterations, records residuals, reports and stops."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from polyspan.progress import print_step

Listener = Callable[["Run"], None]
_listener: ContextVar[Listener | None] = ContextVar("polyspan_listener", default=None)


@contextmanager
def watching(listener: Listener) -> Iterator[None]:
    """Call ``listener(run)`` after every iteration of every solver inside the ``with`` block.

    A progress bar can follow a fit this way, without the estimator knowing about it.

    Examples
    --------
    >>> from polyspan import GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> iterations = []
    >>> with watching(lambda run: iterations.append(run.n_iter)):
    ...     model = GRMSC(n_clusters=3).fit(make_subspaces(60, 3, random_state=0).views)
    >>> iterations[-1] == model.n_iter_
    True
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@dataclass
class Run:
    """Iterate until every named residual is below ``tol``, at most ``max_iter`` times.

    Parameters
    ----------
    name : str
        Name of the method, for messages.
    max_iter : int
        Maximum number of iterations.
    tol : float
        The residuals given to `check` must all be below it.
    verbose : int
        0 is silent; otherwise a line is printed every ``verbose`` iterations.

    Attributes
    ----------
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the last iteration met the stopping rule.
    history : dict of str to list of float
        The value of every residual in each iteration, by name.

    Examples
    --------
    >>> run = Run("halving", max_iter=50, tol=1e-3)
    >>> x = 1.0
    >>> for _ in run:
    ...     x /= 2
    ...     run.check(size=x)
    >>> run.n_iter, run.converged, run.history["size"][:2]
    (10, True, [0.5, 0.25])
    """

    name: str
    max_iter: int
    tol: float
    verbose: int = 0
    n_iter: int = 0
    converged: bool = False
    history: dict[str, list[float]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[int]:
        self.started = time.perf_counter()
        while self.n_iter < self.max_iter and not self.converged:
            self.n_iter += 1
            yield self.n_iter
            listener = _listener.get()
            if listener is not None:
                listener(self)

    def record(self) -> dict[str, Any]:
        """Return how the loop went, by the fields of `polyspan.base.Outcome`."""
        complaints: tuple[Warning, ...] = ()
        if not self.converged:
            last = ", ".join(f"{k} {v[-1]:.1e}" for k, v in self.history.items())
            words = (
                f"{self.name} stopped after max_iter={self.max_iter} iterations before it "
                f"converged to tol={self.tol:g} (last residuals: {last}): raise max_iter or tol."
            )
            complaints = (ConvergenceWarning(words),)
        return {"n_iter": self.n_iter, "history": self.history, "complaints": complaints}

    def check(self, **residuals: float) -> None:
        """Record this iteration's residuals; the loop ends when all are below ``tol``."""
        for name, value in residuals.items():
            self.history.setdefault(name, []).append(float(value))
        self.converged = all(value < self.tol for value in residuals.values())
        if self.verbose and (self.n_iter % self.verbose == 0 or self.converged):
            words = "  ".join(f"{name} {value:.2e}" for name, value in residuals.items())
            print_step(self.name, f"iteration {self.n_iter:3d}  {words}  {self.progress()}")

    def iterations_left(self) -> int:
        """Estimate the remaining iterations from how fast the largest residual falls."""
        most = self.max_iter - self.n_iter
        worst = [max(values) for values in zip(*self.history.values(), strict=True)][-6:]
        if self.converged or not worst:
            return 0 if self.converged else most
        if len(worst) < 2 or not 0 < worst[-1] < worst[0]:
            return most
        fall = math.log(worst[0] / worst[-1]) / (len(worst) - 1)
        return max(1, min(most, math.ceil(math.log(worst[-1] / max(self.tol, 1e-300)) / fall)))

    def progress(self) -> str:
        """Seconds spent and an estimate of the seconds left, in words."""
        spent = time.perf_counter() - self.started
        return f"{spent:.1f} s, about {spent / self.n_iter * self.iterations_left():.1f} s left"
