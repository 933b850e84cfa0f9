"""Names in error messages: unknown ones, with the closest known, and lists of them."""

import difflib
from collections.abc import Iterable, Mapping


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
    meant = {one.lower(): one for one in known}
    meant |= {spelling.lower(): one for spelling, one in (spellings or {}).items()}
    close = difflib.get_close_matches(str(name).lower(), meant, n=most, cutoff=cutoff)
    guesses = dict.fromkeys(repr(meant[one]) for one in close)
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
