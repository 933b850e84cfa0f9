"""Downloads: saved under a temporary name, checked, and only then moved into place."""

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import BinaryIO

from polyspan.atomic import replacing_all
from polyspan.datasets.registry import File, cache_dir, file_problem, find_entry, locate
from polyspan.progress import follower, showing

ATTEMPTS = 3  # if the connection fails
PAUSE = 1.0  # seconds before the second attempt; doubled for the third
TIMEOUT = 30.0  # seconds without a response
LARGEST = 2**30  # bytes, of a file whose size is not registered
PATIENCE = 120.0  # seconds for one file, with all attempts,
SLOWEST = 20_000  # and one more for each of so many bytes


def fetch_dataset(
    name: str, *, base_url: str | None = None, force: bool = False, progress: bool = True
) -> list[Path]:
    """Download a data set into the cache, unless it is already on this machine.

    Every file is checked against its published hash, and only when all are good do they get their
    final names: whatever goes wrong, no half-written file is left behind.

    Parameters
    ----------
    name : str
        Name of the data set, see `list_datasets`.
    base_url : str, optional
        Server to use instead of raw.githubusercontent.com (or instead of ``$POLYSPAN_MIRROR``);
        it must use the same paths.
    force : bool, default=False
        Download even if good copies are in ``$POLYSPAN_DATA`` or in the cache.
    progress : bool, default=True
        Show a progress bar on standard error; without a terminal, a line a minute.

    Returns
    -------
    list of Path
        The files; empty for a data set that is built in.

    Raises
    ------
    OSError
        A download failed, or a file differs from the published one.

    Examples
    --------
    >>> from polyspan.datasets import fetch_dataset
    >>> fetch_dataset("digits")  # built in: nothing to download
    []
    """
    entry = find_entry(name)
    paths = {file: path for file in entry.files if (path := _good_copy(file)) and not force}
    wanted = [file for file in entry.files if file not in paths]
    if converted := [file for file in wanted if not file.commit]:
        raise OSError(
            f"{entry.name} cannot be downloaded, because {converted[0].name} was converted from "
            f"{converted[0].path} of {converted[0].repository}: put it into a folder that "
            "$POLYSPAN_DATA names."
        )
    if wanted:
        folder = cache_dir()
        folder.mkdir(parents=True, exist_ok=True)
        paths |= {file: folder / file.name for file in wanted}
        with replacing_all(paths[file] for file in wanted) as parts:
            for file in wanted:
                _fetch_file(entry.name, file, file.url(base_url), parts[paths[file]], progress)
    return [paths[file] for file in entry.files]


def _good_copy(file: File) -> Path | None:
    found = locate(file)
    return found[1] if found and file_problem(found[1], file) is None else None


def _fetch_file(name: str, file: File, url: str, part: Path, progress: bool) -> None:
    try:
        _download(name, file, url, part, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"download of {name} from {url} was interrupted; nothing was kept"
        ) from None
    if problem := file_problem(part, file):
        raise OSError(f"{name} from {url} is not the published file: {problem}")


def _download(name: str, file: File, url: str, part: Path, progress: bool) -> None:
    end = time.monotonic() + PATIENCE + (file.bytes or 0) / SLOWEST
    for attempt in range(1, ATTEMPTS + 1):
        try:
            bar = showing(file.name) if progress else nullcontext()
            with bar, part.open("wb") as stream:
                _before(end, partial(_get, url, _Limited(stream, file)))
            return
        except _RefusedError as error:
            raise OSError(f"could not download {name} from {url}: {error}") from None
        except OSError as error:  # includes all exceptions of requests, which have no errno
            if error.errno is not None:  # a disk error, not a network error
                raise
            status = getattr(getattr(error, "response", None), "status_code", None)
            if attempt == ATTEMPTS or (status is not None and status < 500):
                if status is not None:
                    reason = f"the server answered {status}"
                else:
                    reason = f"the connection failed or was lost ({type(error).__name__})"
                raise OSError(f"could not download {name} from {url}: {reason}") from error
            time.sleep(PAUSE * 2 ** (attempt - 1))


def _get(url: str, out: "_Limited") -> None:
    import pooch

    pooch.HTTPDownloader(timeout=TIMEOUT)(url, out, None)


class _RefusedError(Exception):
    """A download that is ended by us; trying again would not help."""


class _Limited:
    """A file that takes no more than the registered size, and tells how much it has."""

    def __init__(self, stream: BinaryIO, file: File) -> None:
        self.stream, self.size, self.most = stream, 0, file.bytes or LARGEST
        self.tell = follower()  # here: the thread of the download knows of none

    def write(self, content: bytes) -> int:
        self.size += len(content)
        if self.size > self.most:
            raise _RefusedError(f"the server sends more than the {self.most} bytes of the file")
        if self.tell is not None:
            self.tell(self.size // 1000, self.most // 1000, "kB")
        return self.stream.write(content)

    def flush(self) -> None:
        self.stream.flush()


def _before(end: float, work: Callable[[], None]) -> None:
    """Do the work in a thread, and leave it alone after the deadline, whatever it waits for.

    A server that sends a byte now and then would otherwise keep us forever.
    """
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(max(0.0, end - time.monotonic()))
    if thread.is_alive():
        raise _RefusedError("the server is too slow")
    if failed:
        raise failed[0]
