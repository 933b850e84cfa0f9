"""Survival of the clusters: Kaplan-Meier curves and the log-rank test, by lifelines."""

import warnings
from typing import Any, NamedTuple

import numpy as np

from polyspan.explain.given import is_unknown, label_codes
from polyspan.io.columns import as_numbers
from polyspan.runtime.optional import require

EVENTS = {
    "dead": 1, "deceased": 1, "1:deceased": 1, "died": 1, "event": 1, "true": 1, "yes": 1,
    "alive": 0, "living": 0, "0:living": 0, "censored": 0, "false": 0, "no": 0,
}  # fmt: skip


class Curve(NamedTuple):
    """The Kaplan-Meier curve of one cluster."""

    cluster: Any
    n_samples: int
    events: int
    times: np.ndarray  # where the curve steps
    alive: np.ndarray  # share that survives beyond each
    lower: np.ndarray  # 95% confidence limits
    upper: np.ndarray
    median: float  # infinite if more than half survive


class Survival(NamedTuple):
    """The curves of all clusters, numbers at risk, and the log-rank test of their difference."""

    curves: list[Curve]
    ticks: np.ndarray
    at_risk: np.ndarray  # (c, ticks) samples that are still observed at each tick
    statistic: float
    p: float
    n_samples: int  # samples with known time and event

    def columns(self) -> dict[str, Any]:
        """The steps of all curves as the columns of one table."""
        cluster = [one.cluster for one in self.curves for _ in one.times]
        names = ("times", "alive", "lower", "upper")
        steps = [np.concatenate([getattr(one, name) for one in self.curves]) for name in names]
        return {"cluster": cluster} | dict(zip(("time", *names[1:]), steps, strict=True))


def survival(labels: Any, time: Any, event: Any) -> Survival:
    """Compare the survival of the clusters (needs lifelines, the extra ``survival``).

    Parameters
    ----------
    labels : (n,) array-like
        Cluster of every sample.
    time : sequence of numbers
        Until the event or the end of observation; samples without it are left out.
    event : sequence
        1 if the event was seen and 0 if not; 2 and 1, as in R; or words such as dead and alive.

    Examples
    --------
    >>> found = survival([0, 0, 0, 1, 1, 1], [1, 2, 3, 10, 11, 12], [1, 1, 1, 1, 1, 0])
    >>> round(found.p, 3), found.curves[1].alive.round(2)
    (0.025, array([1.  , 0.67, 0.33, 0.33]))
    """
    rows, T, E = lifetimes(time, event, len(labels))
    clusters, codes = label_codes(np.asarray(labels)[rows], len(rows))
    lifelines = require("lifelines", "survival", "survival")
    tests = require("lifelines.statistics", "survival", "survival")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that lifelines uses
        curves = [_curve(lifelines, name, T[codes == k], E[codes == k])
                  for k, name in enumerate(clusters.tolist())]  # fmt: skip
        test = tests.multivariate_logrank_test(T, codes, E)
    ticks = _ticks(float(T.max()))
    at_risk = np.array([[np.sum(T[codes == k] >= t) for t in ticks] for k in range(len(clusters))])
    return Survival(curves, ticks, at_risk, float(test.test_statistic), float(test.p_value), len(T))


def lifetimes(time: Any, event: Any, n: int) -> tuple[list[int], np.ndarray, np.ndarray]:
    """The samples whose survival is known, their times, and whether the event was seen (1, 0).

    Examples
    --------
    >>> rows, T, E = lifetimes([5, None, 7], ["dead", "alive", "alive"], 3)
    >>> rows, T.tolist(), E.tolist()
    ([0, 2], [5.0, 7.0], [1, 0])
    """
    for name, values in (("time", time), ("event", event)):
        if len(values) != n:
            raise ValueError(f"{name} has {len(values)} values, but there are {n} samples.")
    rows = [i for i in range(n) if not (is_unknown(time[i]) or is_unknown(event[i]))]
    T = as_numbers([time[i] for i in rows])
    if T is None or not np.all(T >= 0):
        raise ValueError("the times of survival must be numbers, and none negative.")
    return rows, T, _events([event[i] for i in rows])


def _curve(lifelines: Any, name: Any, T: np.ndarray, E: np.ndarray) -> Curve:
    fitted = lifelines.KaplanMeierFitter().fit(T, E)
    limits = fitted.confidence_interval_.to_numpy()
    times = fitted.survival_function_.index.to_numpy(dtype=float)
    alive = fitted.survival_function_.to_numpy()[:, 0]
    median = float(fitted.median_survival_time_)
    return Curve(name, len(T), int(E.sum()), times, alive, limits[:, 0], limits[:, 1], median)


def _ticks(last: float) -> np.ndarray:
    """Round times from 0 to the last, at most eight."""
    rough = last / 7 or 1.0
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * (1 - 1e-9))
    return np.arange(0, last + 1e-9 * step, step)


def _events(values: list[Any]) -> np.ndarray:
    words = [str(value).strip().lower() for value in values]
    if all(word in EVENTS for word in words):
        return np.array([EVENTS[word] for word in words])
    numbers = as_numbers(values)
    if numbers is not None and set(np.unique(numbers)) <= {0.0, 1.0}:
        return numbers.astype(int)
    if numbers is not None and set(np.unique(numbers)) <= {1.0, 2.0}:
        return numbers.astype(int) - 1
    shown = ", ".join(repr(one) for one in list(dict.fromkeys(words))[:4])
    raise ValueError(
        f"the events of survival must be 0 and 1, or dead and alive; got {shown}: name the columns "
        "as time,event."
    )
