"""The work of `polyspan fit`: fit one estimator, which is a method or the consensus of many."""

import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from polyspan.cli.request import Request
from polyspan.progress import progress_bar, showing
from polyspan.runtime.messages import own_warnings

if TYPE_CHECKING:
    from rich.progress import Progress

    from polyspan.datasets import MatchedViews
    from polyspan.solvers.loop import Run


class Found(NamedTuple):
    """The result of `cluster`."""

    estimator: Any  # fitted: has labels_, and certainty_ where it is known
    evidence: Any = None  # for the number of clusters, when it was not given
    seconds: float = 0.0
    complaints: tuple[str, ...] = ()  # the warnings, each once

    @property
    def partial(self) -> bool:
        """Whether the fit was interrupted."""
        from polyspan.runtime.tasks import INTERRUPTED

        return any(row["reason"] == INTERRUPTED for row in getattr(self.estimator, "table_", ()))

    @property
    def labels(self) -> Any:
        """Cluster of every sample."""
        return self.estimator.labels_

    @property
    def certainty(self) -> Any:
        """Certainty of every label, or None."""
        return getattr(self.estimator, "certainty_", None)


def cluster(
    request: Request, data: "MatchedViews", model: Any, keep_partial: bool = False
) -> Found:
    """Cluster the samples; after Ctrl-C by the members that ran, if these are to be kept."""
    from polyspan.runtime.tasks import keeps_partial

    started = time.perf_counter()
    keeps_partial.set(keep_partial)
    with own_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if request.method is None:
            evidence = _fit_consensus(model, data)
        else:
            evidence = _fit_method(request, model, data)
    seconds = time.perf_counter() - started
    told = [one for one in caught if issubclass(one.category, UserWarning | RuntimeWarning)]
    complaints = tuple(dict.fromkeys(str(one.message) for one in told))
    return Found(model, evidence, seconds, complaints)


def _fit_consensus(model: Any, data: "MatchedViews") -> Any:
    """Fit a consensus, which estimates the number of clusters itself."""
    with showing(type(model).__name__):
        model.fit(data)
    return model.evidence_ or None


def _fit_method(request: Request, model: Any, data: "MatchedViews") -> Any:
    """Fit one method; if no number of clusters was given, estimate it from the data."""
    from polyspan import count_clusters, watching

    evidence = None
    with progress_bar() as bar:
        task = bar.add_task(type(model).__name__, total=None, words="")
        if request.clusters == "auto":
            bar.update(task, words="counting clusters")
            where = request.device or model.get_params(deep=False).get("device")
            count, evidence = count_clusters(data, random_state=request.seed, device=where)
            model.set_params(n_clusters=int(count))
        with watching(partial(follow, bar, task)):
            model.fit(data)
    return evidence


def follow(bar: "Progress", task: Any, run: "Run") -> None:
    """Show the solver's iteration, how many its residuals promise, and how long they will take.

    Not rich's own estimate of the time, which starts anew whenever the total changes.
    """
    left = run.iterations_left()
    total = run.n_iter + left
    seconds = (time.perf_counter() - run.started) / run.n_iter * left
    words = f"iteration {run.n_iter} of about {total}, {seconds:.0f} s left"
    bar.update(task, completed=run.n_iter, total=total, words=words)
