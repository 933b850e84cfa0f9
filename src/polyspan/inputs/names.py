"""A name that is not known, answered by the nearest one that is."""

import difflib
from collections.abc import Iterable


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Say that no such thing exists, which one may have been meant, and which there are.

    Examples
    --------
    >>> unknown_name("method", "grmcs", ["grmsc", "lrr"])
    "no method is called 'grmcs', did you mean 'grmsc'? Known: grmsc, lrr"
    """
    known = list(known)
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f", did you mean {close[0]!r}?" if close else "."
    return f"no {kind} is called {name!r}{hint} Known: {', '.join(known)}"
