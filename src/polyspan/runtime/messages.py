"""Words for the user: warnings that point at the user's line of code, plurals, lists of names."""

import difflib
import inspect
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any

OURS = ("polyspan", "sklearn")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_one_at_a_time = threading.RLock()
# The thread in whose block this one is: itself, or the one that started it.
_holder: ContextVar[int | None] = ContextVar("polyspan_holder", default=None)
_told: ContextVar[list[str] | None] = ContextVar("polyspan_told", default=None)


def _renew_lock() -> None:
    """Forget who holds the lock: a thread of the parent process, which a fork does not have."""
    global _one_at_a_time
    _one_at_a_time = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


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
    me = threading.get_ident()
    if _holder.get() not in (None, me):
        yield []  # a thread that was started in a block: that has the filters
        return
    with _one_at_a_time:
        token = _holder.set(me)
        try:
            with warnings.catch_warnings(record=record) as caught:
                yield caught
        finally:
            _holder.reset(token)


@contextmanager
def recording() -> Iterator[list[str]]:
    """Collect what `warn_user` says in the block, in this thread only, instead of warning.

    Examples
    --------
    >>> with recording() as told:
    ...     warn_user("some samples are all zeros")
    >>> told
    ['some samples are all zeros']
    """
    told: list[str] = []
    token = _told.set(told)
    try:
        yield told
    finally:
        _told.reset(token)


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
    if (told := _told.get()) is not None:
        told.append(str(message))
        return
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def setting(name: str, *values: object) -> str:
    """How the user sets a parameter to a value, or what its name is.

    In Python, this is an argument; the command spells it as an option, by `spelling`.

    Examples
    --------
    >>> setting("missing", "drop"), setting("drop", ["x", "y"]), setting("impute")
    ("missing='drop'", "drop=['x', 'y']", 'impute')
    """
    return _spelled.get()(name, *values)


def _in_python(name: str, *values: object) -> str:
    return ", ".join(f"{name}={value!r}" for value in values) or name


_spelled = ContextVar("polyspan_spelled", default=_in_python)


@contextmanager
def spelling(words: Callable[..., str]) -> Iterator[None]:
    """Let ``words(name, *values)`` spell what `setting` says in the block.

    Examples
    --------
    >>> with spelling(lambda name, value: f"--{name} {value}"):
    ...     setting("missing", "drop")
    '--missing drop'
    """
    token = _spelled.set(words)
    try:
        yield
    finally:
        _spelled.reset(token)


def one_line(error: BaseException) -> str:
    r"""The first line of another library's error, or its name if it has no words.

    Examples
    --------
    >>> one_line(OSError("no more data\nin page 3")), one_line(EOFError())
    ('no more data', 'EOFError')
    """
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def is_formula(text: object) -> bool:
    """Whether a spreadsheet takes a text for a formula; a negative number is none.

    Examples
    --------
    >>> is_formula("=1+1"), is_formula("-2.5"), is_formula(3)
    (True, False, False)
    """
    if not isinstance(text, str) or not text.startswith(("=", "+", "-", "@")):
        return False
    return not text[1:].replace(".", "", 1).isdecimal()


def printable(text: object) -> str:
    r"""A text without characters that change a terminal, which ids may hold.

    Examples
    --------
    >>> printable("\x1b[31mred")
    '\\x1b[31mred'
    """
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], str(text))


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


def first_few(words: Iterable[str], most: int) -> str:
    """The first words of a list, for a message.

    Examples
    --------
    >>> first_few(["a", "b", "c"], 2), first_few(["a", "b"], 2)
    ('a, b, ...', 'a, b')
    """
    shown = list(islice(words, most + 1))
    return ", ".join(shown[:most]) + ", ..." * (len(shown) > most)


def unknown_name(
    kind: str,
    name: object,
    known: Iterable[str],
    *,
    where: str = "",
    spellings: Mapping[str, str] | None = None,
    most: int = 1,
    cutoff: float = 0.5,
) -> str:
    """Say that a name is unknown, which one may have been meant, and which names exist.

    Parameters
    ----------
    kind : str
        The kind of thing that the name should refer to.
    name : object
        The name as given.
    known : iterable of str
        The known names.
    where : str, optional
        The thing that lacks the name; the known names are then listed only if none is close.
    spellings : mapping of str to str, optional
        Other ways to write known names.
    most : int, default=1
        Maximum number of suggestions.
    cutoff : float, default=0.5
        How close a suggestion must be, from 0 to 1.

    Examples
    --------
    >>> unknown_name("method", "grmcs", ["grmsc", "lrr"])
    "no method is called 'grmcs', did you mean 'grmsc'? Known: grmsc, lrr"
    >>> unknown_name("key", "seed", ["name", "seeds"], where="a protocol")
    "a protocol has no key 'seed', did you mean 'seeds'?"
    """
    known = list(known)
    meant = {word.lower(): word for word in known}
    meant |= {spelling.lower(): word for spelling, word in (spellings or {}).items()}
    close = difflib.get_close_matches(str(name).lower(), meant, n=most, cutoff=cutoff)
    guesses = dict.fromkeys(repr(meant[spelling]) for spelling in close)
    hint = f", did you mean {' or '.join(guesses)}?" if guesses else "."
    everything = f" Known: {', '.join(known)}"
    if where:
        return f"{where} has no {kind} {name!r}{hint}{everything * (not guesses)}"
    return f"no {kind} is called {name!r}{hint}{everything}"


def quoted(names: Iterable[str], most: int = 12) -> str:
    """Names for a message, at most the first ``most`` of them.

    Examples
    --------
    >>> quoted(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    listed = [repr(name) for name in names]
    return ", ".join(listed[:most]) + (f" and {len(listed) - most} more" * (len(listed) > most))
