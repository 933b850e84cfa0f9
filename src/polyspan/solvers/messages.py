"""Warnings that point at the user's line of code, however deep in the library they arise."""

import inspect
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

OURS = ("polyspan", "sklearn")
_one_at_a_time = threading.RLock()


@contextmanager
def own_warnings(*, record: bool = False) -> Iterator[Any]:
    """Do `warnings.catch_warnings`, one thread at a time.

    Python has one list of filters for all threads: if two blocks overlapped, the one that ends last
    would put back the filters of the other, which would then stay for good.

    Examples
    --------
    >>> with own_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("some samples are all zeros")
    >>> len(caught)
    1
    """
    with _one_at_a_time, warnings.catch_warnings(record=record) as caught:
        yield caught


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the innermost line that belongs neither to this package nor to scikit-learn.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("some samples are all zeros")
    >>> str(caught[0].message)
    'some samples are all zeros'
    """
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def one_line(error: BaseException) -> str:
    r"""The first line of another library's error, or its name if it has no words.

    Examples
    --------
    >>> one_line(OSError("no more data\nin page 3")), one_line(EOFError())
    ('no more data', 'EOFError')
    """
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__
