"""What a row of the store contains: the job, how it ended, versions and machine."""

import platform
import re
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import joblib

from harness.jobs import Job
from harness.store import Row
from polyspan import __version__
from polyspan.metrics import SCORES


def job_labels(job: Job) -> Row:
    """What a row says about its job."""
    return {
        "protocol": job.protocol,
        "dataset": job.source.label,
        "source": {"name": job.source.name, **job.source.options},
        "method": job.method.name,
        "paper": job.method.paper,
        "selection": job.method.selection,
        "estimator": job.method.estimator,
        "params": job.params,
        "seed": job.seed,
        "order": job.order,
        "stage": job.stage,
        "key": job.key,
    }


def empty_row(job: Job, threads: int) -> Row:
    """The row of a job before it has a result."""
    return {
        **job_labels(job),
        "status": "failed",
        "reason": None,
        "solve": None,
        **dict.fromkeys(SCORES),
        "iterations": None,
        "converged": None,
        "seconds": None,
        "cpu_seconds": None,
        "shared_seconds": 0.0,
        "versions": versions(),
        "machine": {**machine(), "threads": threads},
    }


def lost_row(job: Job, threads: int, status: str, reason: str, seconds: float) -> Row:
    """The row of a job whose worker was lost."""
    lost = {"status": status, "reason": reason, "seconds": seconds}
    return empty_row(job, threads) | lost


def versions() -> dict[str, str]:
    """Versions of polyspan, Python and the numerical libraries."""
    packages = ("numpy", "scipy", "scikit-learn")
    return {
        "polyspan": __version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in packages},
    }


def machine() -> dict[str, Any]:
    """System, processor and cores; nothing that identifies the owner."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": joblib.cpu_count(),
    }


@cache
def _processor() -> str:
    """Name of the processor, which Python knows only on some systems."""
    info = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", info.read_text()) if info.is_file() else None
    return found[1] if found else platform.processor()
