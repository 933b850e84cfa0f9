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


def allows(words: str, none: str | None = None) -> Callable[[Callable[[Any], bool]], Check]:
    """Make a check of a function that says whether a value is right; ``words`` say what is.

    With ``none``, None is right too, and means that.
    """
    words += f", or None for {none}" if none else ""

    def make(is_right: Callable[[Any], bool]) -> Check:
        return lambda value: None if (none and value is None) or is_right(value) else words

    return make


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def one_of(*options: Any) -> Check:
    """Check that a value is one of a few options."""
    # Comparing an array with == would return an array.
    among = allows(" or ".join(map(repr, options)))
    return among(lambda value: isinstance(value, str | None) and value in options)


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

    @allows(words + f" and <= {high:g}" * (high < np.inf), none)
    def check(value: Any) -> bool:
        if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            return False
        try:
            number = float(value)
        except OverflowError:  # an integer too large for a float
            return False
        above = number > low if open_low else number >= low
        return above and number <= high and bool(np.isfinite(number))

    return check


def integer(low: int, *, none: str | None = None) -> Check:
    """Check that a value is a whole number of at least ``low`` (or None, which means ``none``)."""
    enough = allows(f"a whole number >= {low}", none)
    return enough(lambda value: _is_whole(value) and value >= low)


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


@allows("True or False")
def flag(value: Any) -> bool:
    """Check that a value is True or False."""
    return isinstance(value, bool | np.bool_)


@allows("a clusterer such as LRR(n_clusters=3), or None")
def clusterer(value: Any) -> bool:
    """Check that a value is an unfitted or fitted estimator (None is the default one)."""
    has = [hasattr(value, name) for name in ("fit", "get_params", "set_params")]
    return value is None or (all(has) and not isinstance(value, type))


@allows("None, or a list with a finite number >= 0 for every view, not all of them 0")
def weights_per_view(value: Any) -> bool:
    """Check that a value is None or a list of view weights, at least one of them positive."""
    if not isinstance(value, list | tuple | np.ndarray) or len(np.shape(value)) != 1:
        return value is None
    return all(real(0)(weight) is None for weight in value) and any(w > 0 for w in value)


@allows("None, or a list or dictionary with an n x n array or sparse matrix for every view")
def matrices(value: Any) -> bool:
    """Check that a value is None or one matrix per view; their contents are checked later."""
    if not isinstance(value, list | tuple | Mapping):
        return value is None
    several = value.values() if isinstance(value, Mapping) else value
    return len(value) > 0 and all(len(getattr(x, "shape", ())) == 2 for x in several)


@allows("None, a whole number from 0 to 2**32 - 1, or a numpy RandomState")
def seed(value: Any) -> bool:
    """Check that a value can seed the random number generator."""
    fits = _is_whole(value) and 0 <= value < 2**32
    return fits or isinstance(value, np.random.RandomState | None)


@allows("None or a name such as 'cuda'")
def device_or_none(value: Any) -> bool:
    """Check that a value is the name of a device, or None."""
    return isinstance(value, str | None)


@allows("a whole number other than 0", "1 or what a joblib context says")
def jobs(value: Any) -> bool:
    """Check a number of threads, as scikit-learn has it: -1 is all cores.

    Examples
    --------
    >>> jobs(-1), jobs(0)
    (None, 'a whole number other than 0, or None for 1 or what a joblib context says')
    """
    return _is_whole(value) and value != 0


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
