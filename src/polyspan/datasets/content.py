"""What the loader of a published data set returns."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import ArrayLike, NDArray


class Content(NamedTuple):
    """What the loader of one published data set returns: views and extra as in `Dataset`."""

    views: list[Any]
    classes: ArrayLike | None  # numbers or words; None when they are not known
    extra: dict[str, NDArray[Any]]
    columns: Sequence[list[str]] = ()
