"""One file per paper; METHODS lists all methods, in the order of ``polyspan/__init__.pyi``."""

from importlib import import_module
from typing import Any

import polyspan
from polyspan.base import MultiViewClusterer
from polyspan.runtime.messages import unknown_name


class Methods(dict[str, type[MultiViewClusterer]]):
    """The classes by their names in lower case; the case of a name does not matter.

    Examples
    --------
    >>> METHODS["GRMSC"] is METHODS["grmsc"], "CoRegSpectral" in METHODS, list(METHODS)[0]
    (True, True, 'grmsc')
    """

    def __missing__(self, name: Any) -> type[MultiViewClusterer]:
        if name not in self:
            raise KeyError(unknown_name("method", name, self))
        return self[name.lower()]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name.lower() if isinstance(name, str) else name)

    def get(self, name: Any, default: Any = None) -> Any:
        """Return the class of this name, or ``default``."""
        return super().get(name.lower() if isinstance(name, str) else name, default)


METHODS = Methods(
    (name.lower(), getattr(import_module(home), name))
    for name, home in polyspan.HOMES.items()
    if home.startswith("polyspan.methods.")
)
