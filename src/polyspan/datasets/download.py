"""Downloads: saved under a temporary name, checked, and only then moved into place."""

import sys
import time
from contextlib import nullcontext
from pathlib import Path

from polyspan.atomic import replacing
from polyspan.datasets.registry import Entry, cache_dir, file_problem, find_entry, locate

ATTEMPTS = 3  # if the connection fails
PAUSE = 1.0  # seconds before the second attempt; doubled for the third
TIMEOUT = 30.0  # seconds without a response


def fetch_dataset(
    name: str, *, base_url: str | None = None, force: bool = False, progress: bool = True
) -> Path | None:
    """Download a data set into the cache, unless it is already on this machine.

    The file is checked against its published hash before it gets its final name: whatever goes
    wrong, no half-written file is left behind.

    Parameters
    ----------
    name : str
        Name of the data set, see `list_datasets`.
    base_url : str, optional
        Server to use instead of raw.githubusercontent.com (or instead of ``$POLYSPAN_MIRROR``);
        it must use the same paths.
    force : bool, default=False
        Download even if a good copy is in ``$POLYSPAN_DATA`` or in the cache.
    progress : bool, default=True
        Show a progress bar in a terminal.

    Returns
    -------
    Path or None
        Path of the file; None for a data set that is built in and has no file.

    Raises
    ------
    OSError
        The download failed, or the file differs from the published one.

    Examples
    --------
    >>> from polyspan.datasets import fetch_dataset
    >>> fetch_dataset("digits") is None  # built in: nothing to download
    True
    """
    entry = find_entry(name)
    if entry.built_in:
        return None
    if not force and (found := locate(entry)) and file_problem(found[1], entry) is None:
        return found[1]

    url = entry.url(base_url)
    folder = cache_dir()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / entry.file
    with replacing(target) as part:
        try:
            _download(entry, url, part, progress)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"download of {entry.name} from {url} was interrupted; nothing was kept"
            ) from None
        if problem := file_problem(part, entry):
            raise OSError(f"{entry.name} from {url} is not the published file: {problem}")
    return target


def _download(entry: Entry, url: str, part: Path, progress: bool) -> None:
    import pooch

    for attempt in range(1, ATTEMPTS + 1):
        try:
            with _Bar(entry) if progress and sys.stderr.isatty() else nullcontext(False) as bar:
                pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT)(url, str(part), None)
            return
        except OSError as error:  # includes all exceptions of requests, which have no errno
            if error.errno is not None:  # a disk error, not a network error
                raise
            status = getattr(getattr(error, "response", None), "status_code", None)
            if attempt == ATTEMPTS or (status is not None and status < 500):
                if status is not None:
                    reason = f"the server answered {status}"
                else:
                    reason = f"the connection failed or was lost ({type(error).__name__})"
                raise OSError(f"could not download {entry.name} from {url}: {reason}") from error
            time.sleep(PAUSE * 2 ** (attempt - 1))


class _Bar:
    """The progress bar interface that pooch expects, drawn by rich."""

    def __init__(self, entry: Entry) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        self.progress = Progress(*columns, console=Console(stderr=True))
        self.task = self.progress.add_task(entry.name, total=entry.bytes)
        self.total = 0  # set by pooch from the server's response

    def __enter__(self) -> "_Bar":
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def update(self, n_bytes: int) -> None:
        self.progress.update(self.task, total=self.total or None, advance=n_bytes)

    def reset(self) -> None:
        self.progress.reset(self.task)

    def close(self) -> None:
        pass  # the with statement does it, even after an error
