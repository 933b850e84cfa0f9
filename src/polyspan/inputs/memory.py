"""Memory: how much is free, and whether the work will fit, checked before it begins."""

import os
from pathlib import Path


def check_memory(
    owner: str, n: int, itemsize: int, n_square: float, n_linear: float, free: int | None
) -> None:
    """Refuse work whose matrices do not fit in memory, before any of them is allocated.

    ``n_square`` is the number of n x n matrices, ``n_linear`` how many other numbers are stored
    per sample.

    Examples
    --------
    >>> check_memory("GRMSC", 10_000_000, 8, 10, 0, free=2**33)
    Traceback (most recent call last):
    ...
    MemoryError: GRMSC on 10000000 samples needs about 7450581 GiB for its n x n matrices, but ...
    """
    need = (n_square * n + n_linear) * n * itemsize
    if free is None or need <= free:
        return
    square = n_square > 0
    what = "n x n matrices" if square else f"{n_linear:.0f} numbers per sample"
    hint = "fewer features or anchors"
    if square:
        hint = "a method that does not hold n x n matrices, such as AnchorGRMSC"
    raise MemoryError(
        f"{owner} on {n} samples needs about {need / 2**30:.0f} GiB for its {what}, but "
        f"{free / 2**30:.0f} GiB are free: use fewer samples, float32 input, or {hint}."
    )


def available_memory() -> int | None:
    """Bytes this process can still allocate, or None if the system does not report it."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable")]
    except OSError:
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:  # a container may have less memory than its machine
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            found.append(int(limit))
    except (OSError, ValueError):
        pass
    return min(found) if found else None
