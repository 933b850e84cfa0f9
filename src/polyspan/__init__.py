"""polyspan: multi-view subspace clustering.

A name is imported when it is first used: `import polyspan` alone, and the help of the command, cost
next to nothing. The names are in ``__init__.pyi``, for type checkers and for this file.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
HOMES = {  # the module of every name
    alias.name: str(line.module)
    for line in ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8")).body
    if isinstance(line, ast.ImportFrom)
    for alias in line.names
}
__all__ = sorted(HOMES)

_ROOMS = (  # what `import polyspan` alone gives besides
    "atomic",
    "audit",
    "base",
    "chunked",
    "clustering",
    "explain",
    "graphs",
    "inputs",
    "io",
    "methods",
    "persistence",
    "runtime",
    "solvers",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        import_module("polyspan.methods")  # uses them: what is in the rooms is there, too
        return import_module(f"polyspan.{name}")
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(HOMES[name]), name)
    globals()[name] = value  # found without this function from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS})
