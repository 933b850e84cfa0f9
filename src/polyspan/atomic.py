"""Write files completely or not at all: one file, or several together."""

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows: leftovers of killed processes stay there
    fcntl = None  # type: ignore[assignment]

Check = Callable[[Path], object]
_OURS = re.compile(r"\.polyspan-[0-9a-f]{16}-.+")


@contextmanager
def replacing(path: Path, check: Check | None = None) -> Iterator[Path]:
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
    if _OURS.fullmatch(path.name):  # inside a block: the file is moved with the others, later
        yield path
        return
    with replacing_all([path], check) as parts:
        yield parts[path]


@contextmanager
def replacing_all(paths: Iterable[Path], check: Check | None = None) -> Iterator[dict[Path, Path]]:
    """Yield a temporary path for every path; if the block succeeds, all files are moved into place.

    A failure, in the block or while the files are moved, leaves everything as it was. A process
    that is killed leaves every file either old or new; its temporary files are removed by the next
    call for the same folder. The temporary paths are new, have names that nobody can foresee, and
    keep the file extensions. Of several calls for the same folder, one moves its files at a time:
    ``check(path)``, if it is given, may then refuse what has come in the meantime. A file that is
    replaced keeps its permissions.

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
    paths = list(paths)
    for folder in {path.parent for path in paths}:
        _remove_leftovers(folder)
    parts: dict[Path, Path] = {}
    kept: dict[Path, Path] = {}
    handles: list[int] = []  # while one is open, its file is not a leftover
    try:
        for path in paths:
            parts[path] = _temporary(path, handles)
        yield parts
        for part in parts.values():
            _flush(part)  # fails before anything is moved if one was not written
        for folder in sorted({path.parent.resolve() for path in paths}):
            _wait_for(folder, handles)
        if check is not None:
            for path in paths:
                check(path)
        _move(parts, kept, handles)
        for folder in {path.parent for path in paths}:
            _flush_folder(folder)
    finally:
        for path in (*parts.values(), *kept.values()):
            path.unlink(missing_ok=True)
        for handle in handles:
            os.close(handle)


def _hidden(path: Path, word: str = "") -> Path:
    """A name in the same folder, so that a move is atomic; long names lose their beginning."""
    return path.with_name(f".polyspan-{secrets.token_hex(8)}-{word}{path.name[-100:]}")


def _temporary(path: Path, handles: list[int]) -> Path:
    """Create an empty file for ``path`` and keep it open and locked; nothing planted is followed.

    Unlike tempfile.mkstemp, this leaves the permissions to the user's umask.
    """
    while True:
        part = _hidden(path)
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        handles.append(handle)
        with suppress(OSError):  # it is not there yet
            os.chmod(part, path.stat().st_mode & 0o777)
        # Before it is locked, another call may take it for a leftover: it holds the lock, or has
        # removed the file already.
        if lock(handle) is not False and part.exists():
            os.utime(part, ns=(0, 0))  # whoever writes to it changes this
            return part
        part.unlink(missing_ok=True)


def lock(handle: int) -> bool | None:
    """Lock an open file without waiting: True, False if another holds it, None if nobody can.

    The lock ends when the file is closed, or with the process.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as one, open(one.name) as other:
    ...     lock(one.fileno()), lock(other.fileno())
    (True, False)
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _wait_for(folder: Path, handles: list[int]) -> None:
    """Lock a folder, where the system can, until its handle is closed."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        handles.append(handle)
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)


def _remove_leftovers(folder: Path) -> None:
    """Remove temporary files whose process is gone: the system has released their locks."""
    with suppress(OSError):
        for path in folder.iterdir():
            if not _OURS.fullmatch(path.name) or path.is_symlink():
                continue
            with suppress(OSError):
                handle = os.open(path, os.O_RDONLY)
                try:
                    if lock(handle):
                        path.unlink(missing_ok=True)
                finally:
                    os.close(handle)


def _flush(part: Path) -> None:
    """Force a file to the disk; raises if nobody has written it."""
    if part.stat().st_mtime_ns == 0:
        raise FileNotFoundError(f"{part} was not written")
    handle = os.open(part, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _flush_folder(folder: Path) -> None:
    """Force the new names in a folder to the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _move(parts: dict[Path, Path], kept: dict[Path, Path], handles: list[int]) -> None:
    """Move all parts into place, or put back what was there; no file is away in between."""
    *first, last = parts
    begun: list[Path] = []
    try:
        for path in first:
            if path.exists():
                _keep(path, kept, handles)
        for path in first:
            begun.append(path)
            os.replace(parts[path], path)
        os.replace(parts[last], last)  # the last step is atomic: no backup needed
    except BaseException:
        if parts[last].exists():  # otherwise all was done before the interruption
            for path in begun:
                if path in kept:
                    os.replace(kept[path], path)
                else:
                    path.unlink(missing_ok=True)
        raise


def _keep(path: Path, kept: dict[Path, Path], handles: list[int]) -> None:
    """Give the old file a second name, or copy it where the file system has no links."""
    second = _hidden(path, "old-")
    kept[path] = second
    try:
        os.link(path, second)
    except OSError:
        shutil.copy2(path, second)
    handle = os.open(second, os.O_RDONLY)
    handles.append(handle)
    lock(handle)


def check_place(path: Path) -> None:
    """Refuse a path where no file can be written.

    Examples
    --------
    >>> check_place(Path("nowhere", "labels.csv"))
    Traceback (most recent call last):
    ...
    FileNotFoundError: there is no folder nowhere: create it first
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent}: create it first")
    check_name(path)
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"the folder {path.parent} is not writable: name another one")


def check_name(path: Path) -> None:
    r"""Refuse a name that is not UTF-8, which neither reports nor settings can hold.

    Examples
    --------
    >>> check_name(Path("caf\udce9.csv"))
    Traceback (most recent call last):
    ...
    ValueError: the name 'caf\udce9.csv' is not UTF-8: rename it
    """
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"the name {str(path)!r} is not UTF-8: rename it") from None
