"""Writing files whole or not at all: one of them, or several together."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a name to write to; when the block ends well the file takes the place of ``path``.

    Nobody sees a part of it, and a failure leaves nothing behind.

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
    """Give a name to write to for every path; when the block ends well all files take their places.

    A failure, in the block or while the files are moved, leaves everything as it was. The names
    have the endings of the paths.

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
    # Beside their places: a move is one step.
    parts = {path: path.with_name(f"{mark}{path.name}") for path in paths}
    kept = {path: path.with_name(f"{mark}old-{path.name}") for path in parts}
    try:
        yield parts
        _move(parts, kept)
    finally:
        for path in (*parts.values(), *kept.values()):
            path.unlink(missing_ok=True)


def _move(parts: dict[Path, Path], kept: dict[Path, Path]) -> None:
    """Move all parts to their places, or put back what was there."""
    for part in parts.values():
        part.stat()  # one that was not written is an error before anything is moved
    *first, last = parts
    old = {path for path in first if path.exists()}
    begun: list[Path] = []
    try:
        for path in first:
            begun.append(path)
            if path in old:
                os.replace(path, kept[path])
            os.replace(parts[path], path)
        os.replace(parts[last], last)  # one step, after which all is done: nothing to keep
    except BaseException:
        if parts[last].exists():  # else all was done, and the interruption came after
            _put_back(begun, old, kept)
        raise


def _put_back(begun: list[Path], old: set[Path], kept: dict[Path, Path]) -> None:
    for path in begun:
        if path not in old:
            path.unlink(missing_ok=True)
        elif kept[path].exists():
            os.replace(kept[path], path)
