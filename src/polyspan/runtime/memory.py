"""Memory: how much is free, and whether the work will fit, checked before it begins."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePosixPath

# What `available_memory` found at the start of the enclosing `known_memory` block, or nothing.
_known: ContextVar[tuple[int | None] | None] = ContextVar("polyspan_memory", default=None)


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
    what, hint = f"{n_linear:.0f} numbers per sample", "fewer features or anchors"
    if n_square > 0:
        what = "n x n matrices"
        hint = "a method that does not hold n x n matrices, such as AnchorGRMSC"
    hint = f"use fewer samples, float32 input, or {hint}"
    need = (n_square * n + n_linear) * n * itemsize
    check_free(need, free, f"{owner} on {n} samples needs about {{}} GiB for its {what}", hint)


def check_free(need: float, free: int | None, words: str, hint: str) -> None:
    """Refuse work that needs more bytes than are free; ``{}`` in the words is what it needs.

    Examples
    --------
    >>> check_free(2**33, 2**32, "this graph needs {} GiB", "take fewer samples")
    Traceback (most recent call last):
        ...
    MemoryError: this graph needs 8 GiB, but 4 GiB are free: take fewer samples.
    """
    if free is not None and need > free:
        raise MemoryError(f"{words.format(in_gib(need))}, but {in_gib(free)} GiB are free: {hint}.")


def check_reading(path: Path, unpacked: float, copies: float = 2, free: int | None = None) -> None:
    """Refuse a file whose contents do not fit in memory, before they are read.

    ``unpacked`` is the size of the contents in bytes; reading holds them and their conversion.
    ``free`` is what was free before.

    Examples
    --------
    >>> check_reading(Path("genes.npz"), 1e15)
    Traceback (most recent call last):
    ...
    MemoryError: genes.npz holds about 931323 GiB, and reading it takes about 2 times as much, ...
    """
    free = available_memory() if free is None else free
    if free is not None and copies * unpacked > free:
        raise MemoryError(
            f"{path} holds about {in_gib(unpacked)} GiB, and reading it takes about {copies:g} "
            f"times as much, but {in_gib(free)} GiB are free: leave out samples or features, or "
            "use a machine with more memory."
        )


def in_gib(size: float) -> str:
    """A size in GiB, in as few digits as it needs.

    Examples
    --------
    >>> in_gib(3.2e9), in_gib(5e7), in_gib(0)
    ('3', '0.05', '0')
    """
    gib = size / 2**30
    return f"{gib:.0f}" if gib >= 2 or not gib else f"{gib:.1g}"


@contextmanager
def memory_words(what: str) -> Iterator[None]:
    """Give words to a MemoryError that has none; ``what`` is what was being done.

    Examples
    --------
    >>> with memory_words("GRMSC"):
    ...     raise MemoryError
    Traceback (most recent call last):
    ...
    MemoryError: GRMSC ran out of memory: use fewer samples or features, or a machine with more ...
    """
    try:
        yield
    except MemoryError as error:
        if str(error):
            raise
        raise MemoryError(
            f"{what} ran out of memory: use fewer samples or features, or a machine with more "
            "memory."
        ) from error


@contextmanager
def known_memory() -> Iterator[None]:
    """Look at the free memory now, and not again within the ``with`` block.

    Many fits in a row would read a dozen system files each.

    Examples
    --------
    >>> with known_memory():
    ...     available_memory() == available_memory()
    True
    """
    token = _known.set((available_memory(),))
    try:
        yield
    finally:
        _known.reset(token)


def available_memory() -> int | None:
    """Bytes this process can still allocate, or None if the system does not report it.

    The least of what the machine has left, what this process may still map (RLIMIT_AS, which
    ``ulimit -v`` sets), and what its control groups allow less what they use.
    """
    known = _known.get()
    if known is not None:
        return known[0]
    limits = [*_of_machine(), *_of_process(), *_of_groups()]
    return max(0, min(limits)) if limits else None


def _of_machine() -> list[int]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return [int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable")]
    except OSError:
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            return [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    return []


def _of_process() -> list[int]:
    """What the limit of this process leaves; only Linux says how much is mapped already."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return []
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return [limit - pages * resource.getpagesize()]
    except (ImportError, OSError, ValueError):
        return []


def _of_groups(root: Path = Path("/")) -> list[int]:
    """What every control group around this process leaves, version 1 and 2.

    A container often sees its own group as the root, so all folders above are tried too.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    left = []
    mount = root / "sys/fs/cgroup"
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if not kinds:
            tops, names = [mount, mount / "unified"], ("memory.max", "memory.current", "")
        elif "memory" in kinds.split(","):
            tops = [mount / "memory"]
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        else:
            continue
        place = PurePosixPath("/", path.strip())
        for top in tops:
            for folder in (place, *place.parents):
                left += _left_in_group(top / str(folder).strip("/"), *names)
    return left


def _left_in_group(folder: Path, limit: str, usage: str, prefix: str) -> list[int]:
    """The limit less the usage; cached files count as free, the system drops them when needed."""
    try:
        most, used = (int((folder / name).read_text()) for name in (limit, usage))
        lines = (folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # no such group, or "max"
        return []
    stat = dict(line.split(maxsplit=1) for line in lines if " " in line)
    return [most - used + int(stat.get(f"{prefix}inactive_file", 0))]
