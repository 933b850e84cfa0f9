"""Words for the user: warnings that point at the user's line of code, plurals, names of views."""

import inspect
import threading
import warnings
from collections.abc import Iterable, Iterator
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


def plural(count: int, noun: str, several: str = "") -> str:
    """A number with its noun, in the singular or the plural.

    Examples
    --------
    >>> plural(1, "view"), plural(20000, "sample"), plural(2, "family", "families")
    ('1 view', '20,000 samples', '2 families')
    """
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def view_title(name: str) -> str:
    """How messages call a view: by its number, or by its name in quotes.

    Examples
    --------
    >>> view_title("0"), view_title("rna")
    ('view 0', "view 'rna'")
    """
    return f"view {view_names([name])}"


def view_names(names: Iterable[str]) -> str:
    """Names of views for a message; numbers are not in quotes.

    Examples
    --------
    >>> view_names(["rna", "protein"]), view_names(["0", "1"])
    ("'rna', 'protein'", '0, 1')
    """
    return ", ".join(name if name.isdecimal() else repr(name) for name in names)
