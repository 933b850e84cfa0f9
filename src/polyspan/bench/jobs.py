"""The jobs of a protocol: first the grids, then all seeds at the settings chosen from them."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from polyspan.bench.plan import Method, Protocol, Source, settings

TUNE_SEED = 0
TUNE_SCORE = "nmi"


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

    @property
    def key(self) -> str:
        """Hash of what determines the result: estimator, parameters, data and seed.

        Examples
        --------
        >>> method = Method("GRMSC", "grmsc", "default")
        >>> one = Job("a", method, Source("ngs", "NGs"), {"lam1": 1}, 0, "final", None)
        >>> other = Job("b", method, Source("ngs", "News"), {"lam1": 1.0}, 0, "tune", 9.0)
        >>> one.key == other.key
        True
        """
        what = [self.method.estimator, self.params, self.source.name, self.source.options]
        text = json.dumps(_plain([*what, self.seed]), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def first_jobs(protocol: Protocol) -> list[Job]:
    """The jobs that can start at once: all grids, and all seeds where nothing is tuned."""
    jobs = []
    for method, source in protocol.pairs():
        found = settings(method, source)
        if method.grid:
            jobs += [_tuning_job(protocol, method, source, params) for params in found]
        else:
            jobs += _finals(protocol, method, source, found[0])
    return jobs


def final_jobs(protocol: Protocol, rows: Iterable[Mapping[str, Any]]) -> list[Job]:
    """All seeds at the setting with the best NMI among the rows of the tuning stage.

    In a tie, the first in the grid's order wins. A method whose settings all failed has no final
    jobs.
    """
    scores: dict[tuple[str, str, str], float] = {
        (row["method"], row["selection"], row["key"]): row[TUNE_SCORE]
        for row in rows
        if row["protocol"] == protocol.name and row["stage"] == "tune" and row["status"] == "ok"
    }
    jobs = []
    for method, source in protocol.pairs():
        best, best_score = None, float("-inf")
        for params in settings(method, source) if method.grid else []:
            job = _tuning_job(protocol, method, source, params)
            score = round(scores.get((method.name, method.selection, job.key), float("-inf")), 10)
            if score > best_score:
                best, best_score = params, score
        if best is not None:
            jobs += _finals(protocol, method, source, best)
    return jobs


def count_jobs(protocol: Protocol) -> int:
    """Number of jobs in both stages."""
    tuned = sum(bool(method.grid) for method, _ in protocol.pairs())
    return len(first_jobs(protocol)) + tuned * protocol.seeds


def _tuning_job(protocol: Protocol, method: Method, source: Source, params: dict[str, Any]) -> Job:
    return Job(protocol.name, method, source, params, TUNE_SEED, "tune", protocol.timeout)


def _finals(
    protocol: Protocol, method: Method, source: Source, params: dict[str, Any]
) -> list[Job]:
    return [
        Job(protocol.name, method, source, params, seed, "final", protocol.timeout)
        for seed in range(protocol.seeds)
    ]


def _plain(value: Any) -> Any:
    """Turn 1.0 into 1, also inside nested lists and dictionaries."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
