"""Warnings that point at the user's line of code, however deep in the library they arise."""

import inspect
import warnings

OURS = ("polyspan", "sklearn")


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
