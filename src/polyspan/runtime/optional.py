"""Optional packages: imported where they are used, with a clear error when missing."""

import importlib
from typing import Any


def install_hint(extra: str) -> str:
    """How to install the packages of an extra, also of polyspan from a folder.

    Examples
    --------
    >>> install_hint("files")
    'pip install "polyspan[files]"'
    """
    return f'pip install "polyspan[{extra}]"'


def require(module: str, extra: str, purpose: str) -> Any:
    """Import a module, or raise a one-sentence error that names the extra to install.

    Examples
    --------
    >>> require("json", "files", "this example").dumps([1])
    '[1]'
    >>> require("no_such_module", "files", "this example")
    Traceback (most recent call last):
        ...
    ImportError: this example needs no_such_module: pip install "polyspan[files]"
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = {"skimage": "scikit-image"}.get(module.split(".")[0], module.split(".")[0])
        raise ImportError(f"{purpose} needs {package}: {install_hint(extra)}") from error
