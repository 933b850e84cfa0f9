"""Checks of constructor parameters: one sentence that names the parameter and what to do.

A method lists its parameters in a plain dictionary, ``name -> check``; a check returns what is
allowed, in words, when the value is wrong, and ``None`` when it is right.
"""

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

Check = Callable[[Any], str | None]


def one_of(*options: Any) -> Check:
    """Check that a value is one of a few options."""
    words = " or ".join(repr(option) for option in options)

    def check(value: Any) -> str | None:
        # An array compared with == would answer with an array.
        known = isinstance(value, str | type(None)) and value in options
        return None if known else words

    return check


def real(low: float, high: float = np.inf, *, open_low: bool = False) -> Check:
    """Check that a value is a finite number between two bounds."""
    words = f"a number {'>' if open_low else '>='} {low:g}"
    if high < np.inf:
        words += f" and <= {high:g}"

    def check(value: Any) -> str | None:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            return words
        number = float(value)
        above = number > low if open_low else number >= low
        return None if above and number <= high and np.isfinite(number) else words

    return check


def integer(low: int, *, none: str | None = None) -> Check:
    """Check that a value is a whole number of at least ``low`` (or None, which means ``none``)."""
    words = f"a whole number >= {low}" + (f", or None for {none}" if none else "")

    def check(value: Any) -> str | None:
        if value is None and none:
            return None
        whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
        return None if whole and int(value) >= low else words

    return check


def flag(value: Any) -> str | None:
    """Check that a value is True or False."""
    return None if isinstance(value, bool | np.bool_) else "True or False"


def seed(value: Any) -> str | None:
    """Check that a value can seed the random numbers."""
    whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    fits = whole and 0 <= int(value) < 2**32
    if value is None or fits or isinstance(value, np.random.RandomState):
        return None
    return "None, a whole number from 0 to 2**32 - 1, or a numpy RandomState"


def check_params(owner: str, values: Mapping[str, Any], checks: Mapping[str, Check]) -> None:
    """Raise a ``ValueError`` for the first parameter that is not as its check wants it.

    Examples
    --------
    >>> check_params("GRMSC", {"lam1": -1.0}, {"lam1": real(0)})
    Traceback (most recent call last):
    ...
    ValueError: GRMSC: lam1 must be a number >= 0; got -1.0.
    """
    for name, check in checks.items():
        words = check(values[name])
        if words is not None:
            raise ValueError(f"{owner}: {name} must be {words}; got {values[name]!r}.")
