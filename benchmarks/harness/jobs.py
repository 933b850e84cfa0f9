"""The jobs of a protocol: first the grids, then what decides among the best, then all seeds."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harness.plan import Method, Protocol, Source, settings

TUNE_SCORE = "nmi"
TUNE_SEEDS = 3  # whose mean decides ...
TUNE_BEST = 20  # ... among so many settings, the best with the first seed
CHECKED = 20  # one job in so many does not share its solution
_TEXT = json.JSONEncoder(sort_keys=True).encode


@dataclass(frozen=True)
class Job:
    """One fit: a setting of a method, a data set and a seed; ``stage`` is "tune" or "final"."""

    protocol: str
    method: Method
    source: Source
    params: dict[str, Any]
    seed: int
    stage: str
    timeout: float | None
    order: str = "shuffled"

    @cached_property
    def key(self) -> str:
        """Hash of what determines the result: estimator, parameters, data, seed and order.

        Examples
        --------
        >>> method = Method("GRMSC", "grmsc", "default")
        >>> one = Job("a", method, Source("ngs", "NGs"), {"lam1": 1}, 0, "final", None)
        >>> other = Job("b", method, Source("ngs", "News"), {"lam1": 1.0}, 0, "tune", 9.0)
        >>> one.key == other.key
        True
        """
        source = {"name": self.source.name, **self.source.options}
        return key_of(self.method.estimator, self.params, source, self.seed, self.order)

    @property
    def checks(self) -> bool:
        """Whether it solves afresh where others share a solution: one job in twenty, by its key.

        Examples
        --------
        >>> method, source = Method("GRMSC", "grmsc", "default"), Source("ngs", "NGs")
        >>> jobs = [Job("a", method, source, {}, seed, "final", None) for seed in range(1000)]
        >>> 30 < sum(job.checks for job in jobs) < 70
        True
        """
        return int(self.key, 16) % CHECKED == 0


def key_of(
    estimator: str, params: Mapping[str, Any], source: Mapping[str, Any], seed: int, order: str
) -> str:
    """Hash of what determines the result of a job; the source has its name and its options."""
    options = {name: value for name, value in source.items() if name != "name"}
    what = [estimator, params, source["name"], options, seed, order]
    return hashlib.sha256(_TEXT(_plain(what)).encode()).hexdigest()[:16]


def first_jobs(protocol: Protocol, rows: Iterable[Mapping[str, Any]] = ()) -> list[Job]:
    """The jobs that can start at once: all grids, and all seeds where nothing is tuned."""
    jobs = []
    for method, source in protocol.pairs():
        found = settings(method, source)
        if method.grid:
            jobs += _jobs(protocol, method, source, found, "tune", range(1))
        else:
            jobs += _jobs(protocol, method, source, found[:1], "final", range(protocol.seeds))
    return jobs


def deciding_jobs(protocol: Protocol, rows: Iterable[Mapping[str, Any]]) -> list[Job]:
    """The other seeds of tuning, at the best settings of the first one."""
    jobs = []
    for method, source, found, scores in _tuned(protocol, rows):
        first = [round(_mean(score[:1]), 10) for score in scores]
        order = np.argsort(np.negative(first), kind="stable")[:TUNE_BEST]
        best = [found[k] for k in order if first[k] > float("-inf")]
        jobs += _jobs(protocol, method, source, best, "tune", range(1, TUNE_SEEDS))
    return jobs


def final_jobs(protocol: Protocol, rows: Iterable[Mapping[str, Any]]) -> list[Job]:
    """All seeds at the setting with the best mean NMI over the seeds of the tuning stage.

    In a tie, the first in the grid's order wins. A method without a setting that gave a result
    with all these seeds has no final jobs.
    """
    jobs = []
    for method, source, found, scores in _tuned(protocol, rows):
        means = [round(_mean(score), 10) for score in scores]
        k = int(np.argmax(means))
        if means[k] > float("-inf"):
            jobs += _jobs(protocol, method, source, [found[k]], "final", range(protocol.seeds))
    return jobs


STAGES = (first_jobs, deciding_jobs, final_jobs)  # each is given the rows of those before it


def count_jobs(protocol: Protocol) -> int:
    """Number of jobs in all stages, if every setting gives a result."""
    tuned = [settings(*pair) for pair in protocol.pairs() if pair[0].grid]
    deciding = sum(min(TUNE_BEST, len(found)) for found in tuned) * (TUNE_SEEDS - 1)
    return len(first_jobs(protocol)) + deciding + len(tuned) * protocol.seeds


def _jobs(
    protocol: Protocol,
    method: Method,
    source: Source,
    found: list[dict[str, Any]],
    stage: str,
    seeds: range,
) -> list[Job]:
    name, rest = protocol.name, (stage, protocol.timeout, protocol.order)
    return [Job(name, method, source, params, seed, *rest) for params in found for seed in seeds]


def _tuned(
    protocol: Protocol, rows: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Method, Source, list[dict[str, Any]], list[list[float | None]]]]:
    """Methods with a grid and their data, settings, and scores of each setting, by seed."""
    known: dict[tuple[str, str, str], float | None] = {
        (row["method"], row["selection"], row["key"]): row[TUNE_SCORE]
        for row in rows
        if row["protocol"] == protocol.name and row["stage"] == "tune" and row["status"] == "ok"
    }
    for method, source in protocol.pairs():
        if method.grid:
            found = settings(method, source)
            jobs = _jobs(protocol, method, source, found, "tune", range(TUNE_SEEDS))
            scores = [known.get((method.name, method.selection, job.key)) for job in jobs]
            parts = range(0, len(scores), TUNE_SEEDS)
            yield method, source, found, [scores[k : k + TUNE_SEEDS] for k in parts]


def _mean(scores: list[float | None]) -> float:
    """Their mean; minus infinity if one is missing."""
    there = [score for score in scores if score is not None]
    return float(np.mean(there)) if there and len(there) == len(scores) else float("-inf")


def _plain(value: Any) -> Any:
    """Turn 1.0 into 1, also inside nested lists and dictionaries."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
