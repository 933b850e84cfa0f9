"""The work of `polyspan fit`: the one method is fitted, or one is chosen without labels."""

import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from polyspan.cli.progress import follow, follow_choice, progress_bar
from polyspan.cli.request import Request

if TYPE_CHECKING:
    import numpy as np
    from rich.progress import Progress

    from polyspan.datasets import MatchedViews


class Found(NamedTuple):
    """What the work found."""

    estimator: Any
    labels: "np.ndarray"
    certainty: "np.ndarray | None"
    selection: Any = None  # what `select` returned
    evidence: Any = None  # for the number of clusters, when it was not given
    seconds: float = 0.0
    complaints: tuple[str, ...] = ()  # the warnings, each once


def cluster(request: Request, data: "MatchedViews", model: Any) -> Found:
    """Cluster the samples by a method, or by a choice of methods when ``model`` is None."""
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, progress_bar() as bar:
        warnings.simplefilter("always")
        if model is None:
            found = _choose(request, data, bar)
        else:
            found = _fit(request, data, model, bar)
    seconds = time.perf_counter() - started
    told = [one for one in caught if issubclass(one.category, UserWarning | RuntimeWarning)]
    complaints = tuple(dict.fromkeys(str(one.message) for one in told))
    return found._replace(seconds=seconds, complaints=complaints)


def _choose(request: Request, data: "MatchedViews", bar: "Progress") -> Found:
    import numpy as np

    from polyspan.selection import select

    found = select(
        data.views,
        "auto" if request.clusters is None else request.clusters,
        budget=request.budget,
        random_state=request.seed,
        progress=follow_choice(bar, "choosing without labels"),
        device=request.device,
    )
    labels, certainty = np.asarray(found.labels), np.asarray(found.certainty)
    evidence = found.evidence if request.clusters is None else None
    return Found(found.best_estimator, labels, certainty, found, evidence)


def _fit(request: Request, data: "MatchedViews", model: Any, bar: "Progress") -> Found:
    from polyspan import watching

    task = bar.add_task(type(model).__name__, total=None, iteration="")
    evidence = None
    if request.clusters is None:
        from polyspan.selection import count_clusters

        bar.update(task, iteration="counting clusters")
        where = request.device or model.get_params(deep=False).get("device")
        count, evidence = count_clusters(data.views, random_state=request.seed, device=where)
        model.set_params(n_clusters=int(count))
    with watching(partial(follow, bar, task)):
        model.fit(dict(zip(data.view_names, data.views, strict=True)))
    return Found(model, model.labels_, getattr(model, "certainty_", None), None, evidence)
