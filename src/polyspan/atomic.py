"""Write files completely or not at all: one file, or several together."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; if the block succeeds, the file replaces ``path``.

    No partial file is ever visible, and a failure leaves nothing behind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "words.txt")
    ...     with replacing(path) as part:
    ...         _ = part.write_text("all of it")
    ...     path.read_text(), len(list(Path(folder).iterdir()))
    ('all of it', 1)
    """
    with replacing_all([path]) as parts:
        yield parts[path]


@contextmanager
def replacing_all(paths: Iterable[Path]) -> Iterator[dict[Path, Path]]:
    """Yield a temporary path for every path; if the block succeeds, all files are moved into place.

    A failure, in the block or while the files are moved, leaves everything as it was. The temporary
    paths keep the file extensions.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [Path(folder, name) for name in ("a.txt", "b.txt")]
    ...     with replacing_all(paths) as parts:
    ...         for path in paths:
    ...             _ = parts[path].write_text("all of it")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['a.txt', 'b.txt']
    """
    mark = f".{os.getpid()}-"
    # In the same folders, so that a move is atomic.
    parts = {path: path.with_name(f"{mark}{path.name}") for path in paths}
    kept = {path: path.with_name(f"{mark}old-{path.name}") for path in parts}
    try:
        yield parts
        _move(parts, kept)
    finally:
        for path in (*parts.values(), *kept.values()):
            path.unlink(missing_ok=True)


def _move(parts: dict[Path, Path], kept: dict[Path, Path]) -> None:
    """Move all parts into place, or put back what was there."""
    for part in parts.values():
        part.stat()  # fails before anything is moved if one was not written
    *first, last = parts
    old = {path for path in first if path.exists()}
    begun: list[Path] = []
    try:
        for path in first:
            begun.append(path)
            if path in old:
                os.replace(path, kept[path])
            os.replace(parts[path], path)
        os.replace(parts[last], last)  # the last step is atomic: no backup needed
    except BaseException:
        if parts[last].exists():  # otherwise all was done before the interruption
            _put_back(begun, old, kept)
        raise


def _put_back(begun: list[Path], old: set[Path], kept: dict[Path, Path]) -> None:
    for path in begun:
        if path not in old:
            path.unlink(missing_ok=True)
        elif kept[path].exists():
            os.replace(kept[path], path)
