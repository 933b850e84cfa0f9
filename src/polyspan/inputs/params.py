"""Parameters of estimators: their defaults and checks, with a one-sentence error for each.

A method declares a parameter as a field: ``lam: float = param(positive, default=0.5)``. A check
returns what is allowed, in words, when the value is wrong, and ``None`` when it is valid.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

Check = Callable[[Any], str | None]


def param(check: Check | None, *, default: Any, kw_only: bool = True, after: bool = False) -> Any:
    """Declare a parameter of an estimator: the check for its value, and its default.

    ``after`` says that it does not change what `solve` finds, only how that is used.
    """
    return field(default=default, kw_only=kw_only, metadata={"check": check, "after": after})


def fitted(*, init: Literal[False] = False) -> Any:
    """Declare an attribute that a fit sets."""
    return field(init=init)


def one_of(*options: Any) -> Check:
    """Check that a value is one of a few options."""
    words = " or ".join(repr(option) for option in options)

    def check(value: Any) -> str | None:
        # Comparing an array with == would return an array.
        known = isinstance(value, str | type(None)) and value in options
        return None if known else words

    return check


class PerView:
    """Check that a value is one of a few options, or a list of them with one for every view.

    Examples
    --------
    >>> PerView("unit", None)(["unit", "length"])
    "'unit' or None, or a list with one of these for every view"
    """

    def __init__(self, *options: Any) -> None:
        self._option = one_of(*options)

    def __call__(self, value: Any) -> str | None:
        """Return what is allowed, or None if the value is valid."""
        several = value if isinstance(value, list | tuple) and value else [value]
        if all(self._option(x) is None for x in several):
            return None
        return f"{self._option(...)}, or a list with one of these for every view"


def real(
    low: float, high: float = np.inf, *, open_low: bool = False, none: str | None = None
) -> Check:
    """Check that a value is a finite number between two bounds (or None, which means ``none``)."""
    words = f"a finite number {'>' if open_low else '>='} {low:g}"
    if high < np.inf:
        words += f" and <= {high:g}"
    if none:
        words += f", or None for {none}"

    def check(value: Any) -> str | None:
        if value is None and none:
            return None
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            return words
        try:
            number = float(value)
        except OverflowError:  # an integer too large for a float
            return words
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


positive = real(0, open_low=True)


def clusters(value: Any) -> str | None:
    """Check a number of clusters; ``"auto"`` is only known elsewhere.

    Examples
    --------
    >>> clusters("auto")
    "a whole number >= 1 (ConsensusClusterer(n_clusters='auto') estimates it)"
    """
    words = integer(1)(value)
    automatic = isinstance(value, str) and value == "auto"
    return f"{words} (ConsensusClusterer(n_clusters='auto') estimates it)" if automatic else words


class Neighbors:
    """Check a number of neighbors: a whole number, or None for ``min(usual, n - 1)``.

    Examples
    --------
    >>> Neighbors(30)(0)
    'a whole number >= 1, or None for min(30, n - 1)'
    """

    def __init__(self, usual: int) -> None:
        self.usual = usual

    def __call__(self, value: Any) -> str | None:
        """Return what is allowed, or None if the value is valid."""
        return integer(1, none=f"min({self.usual}, n - 1)")(value)


def flag(value: Any) -> str | None:
    """Check that a value is True or False."""
    return None if isinstance(value, bool | np.bool_) else "True or False"


def clusterer(value: Any) -> str | None:
    """Check that a value is an unfitted or fitted estimator (None is the default one)."""
    needed = ("fit", "get_params", "set_params")
    usable = not isinstance(value, type) and all(hasattr(value, name) for name in needed)
    return None if value is None or usable else "a clusterer such as LRR(n_clusters=3), or None"


def weights_per_view(value: Any) -> str | None:
    """Check that a value is None or a list of view weights, at least one of them positive."""
    words = "None, or a list with a finite number >= 0 for every view, not all of them 0"
    if value is None:
        return None
    if not isinstance(value, list | tuple | np.ndarray) or len(np.shape(value)) != 1:
        return words
    right = len(value) > 0 and all(real(0)(weight) is None for weight in value)
    return None if right and any(weight > 0 for weight in value) else words


def matrices(value: Any) -> str | None:
    """Check that a value is None or one matrix per view; their contents are checked later."""
    several = value.values() if isinstance(value, Mapping) else value
    if value is None or (
        isinstance(value, list | tuple | Mapping)
        and len(value) > 0
        and all(len(getattr(one, "shape", ())) == 2 for one in several)
    ):
        return None
    return "None, or a list or dictionary with an n x n array or sparse matrix for every view"


def seed(value: Any) -> str | None:
    """Check that a value can seed the random number generator."""
    whole = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    fits = whole and 0 <= int(value) < 2**32
    if value is None or fits or isinstance(value, np.random.RandomState):
        return None
    return "None, a whole number from 0 to 2**32 - 1, or a numpy RandomState"


def device_or_none(value: Any) -> str | None:
    """Check that a value is the name of a device, or None."""
    return None if value is None or isinstance(value, str) else "None or a name such as 'cuda'"


def check_params(owner: str, values: Mapping[str, Any], checks: Mapping[str, Check]) -> None:
    """Raise a ``ValueError`` for the first parameter that fails its check.

    Examples
    --------
    >>> check_params("GRMSC", {"lam1": -1.0}, {"lam1": real(0)})
    Traceback (most recent call last):
    ...
    ValueError: GRMSC: lam1 must be a finite number >= 0; got -1.0.
    """
    for name, check in checks.items():
        words = check(values[name])
        if words is not None:
            shown = " ".join(repr(values[name]).split())  # arrays may have several lines
            raise ValueError(f"{owner}: {name} must be {words}; got {shown}.")
