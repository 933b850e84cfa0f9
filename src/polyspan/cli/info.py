"""Versions, machine, data folders and methods.

Prints what a bug report should contain: versions, optional packages, threads, memory, data
folders, and the available methods.

Some examples:
  polyspan info
"""

import argparse
import os
import platform
import re
from importlib import metadata
from typing import Any

from polyspan import __version__
from polyspan.cli.parser import add_command
from polyspan.runtime.optional import install_hint

NOT_FOR_USERS = ("test", "lint", "docs")  # extras for developing polyspan itself


def add(subparsers: Any) -> None:
    """Declare the command."""
    add_command(subparsers, "info", __doc__, run)


def run(args: argparse.Namespace) -> int:
    """Print what `describe` returns."""
    for heading, pairs in describe().items():
        print(heading)
        width = max(len(name) for name, _ in pairs)
        for name, value in pairs:
            print(f"  {name:{width}}  {value}")
    return 0


def describe() -> dict[str, list[tuple[str, str]]]:
    """Everything a bug report should contain: pairs of name and value, by heading.

    Examples
    --------
    >>> from polyspan.cli.info import describe
    >>> list(describe())
    ['versions', 'optional packages', 'machine', 'data', 'methods']
    >>> dict(describe()["methods"])["lrr"]
    'Low-rank representation of a single view, with an l2,1 error.'
    """
    from polyspan import METHODS

    needed, optional = dependencies()
    return {
        "versions": [
            ("polyspan", __version__),
            ("Python", platform.python_version()),
            *((name, _version(name) or "missing") for name in needed),
        ],
        "optional packages": [
            (name, _version(name) or f"not installed: {install_hint(extra)}")
            for name, extra in optional.items()
        ],
        "machine": _machine(),
        "data": _data(),
        "methods": [
            (name, (cls.__doc__ or "").strip().split("\n")[0]) for name, cls in METHODS.items()
        ],
    }


def dependencies() -> tuple[list[str], dict[str, str]]:
    """The required packages, and the optional ones with the extra that installs each.

    Examples
    --------
    >>> needed, optional = dependencies()
    >>> "numpy" in needed, optional["torch"]
    (True, 'torch')
    """
    needed: list[str] = []
    optional: dict[str, str] = {}
    for line in metadata.requires("polyspan") or []:
        name = re.match(r"[\w.-]+", line)[0]  # type: ignore[index]
        extra = re.search(r"extra == ['\"]([\w-]+)", line)
        if extra is None:
            needed.append(name)
        elif name != "polyspan" and extra[1] not in NOT_FOR_USERS:
            optional.setdefault(name, extra[1])
    return needed, optional


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _machine() -> list[tuple[str, str]]:
    import sklearn.cluster  # noqa: F401  loads every library that has its own threads
    from threadpoolctl import threadpool_info

    from polyspan.runtime.memory import available_memory

    pools = [
        (
            "BLAS" if pool["user_api"] == "blas" else "OpenMP",
            f"{pool['internal_api']} {pool['version'] or ''}".rstrip()
            + f", {pool['num_threads']} threads",
        )
        for pool in threadpool_info()
    ]
    free = available_memory()
    return [
        ("system", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        ("CPUs", str(os.cpu_count())),
        ("memory", f"{free / 2**30:.1f} GiB free" if free is not None else "unknown"),
        *dict.fromkeys(pools),  # numpy and scipy may each bring one
    ]


def _data() -> list[tuple[str, str]]:
    from polyspan.datasets.registry import cache_dir, read_registry, where

    entries = read_registry().values()
    here = sum(where(entry) not in ("in part", "not here") for entry in entries)
    return [
        ("$POLYSPAN_DATA", os.environ.get("POLYSPAN_DATA") or "not set"),
        ("cache", str(cache_dir())),
        ("data sets", f"{here} of {len(entries)} are here; see `polyspan data list`"),
    ]
