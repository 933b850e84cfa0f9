"""The request of `polyspan fit`, and its checks.

Anything wrong with the request or the files is found before any work is done, and raised as an
`InputError`.
"""

import ast
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyspan.runtime.messages import own_warnings, unknown_name

if TYPE_CHECKING:
    from polyspan.datasets import MatchedViews

OWN_OPTIONS = {"n_clusters": "--clusters", "random_state": "--seed"}


class InputError(Exception):
    """The request cannot be met, or a file cannot be used; no work was started."""


@dataclass(frozen=True)
class Request:
    """Everything that decides the labels; `polyspan.cli.fit.fit_files` explains each field."""

    files: Sequence[str | Path]
    clusters: int | None = None
    method: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    id: Sequence[str] = ()
    drop: Sequence[str] = ()
    missing: str = "fail"
    header: bool | None = None
    samples: str | None = None
    keep: Sequence[str] = ()
    impute: str = "none"
    max_missing: float = 0.2
    budget: float | None = None
    device: str | None = None
    obsm: Sequence[str] = ()
    layers: Sequence[str] = ()
    dataset: str | None = None


@contextmanager
def asking() -> Iterator[None]:
    """Raise any error in the block as an `InputError`."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        raise InputError(in_words(error)) from error


def in_words(error: BaseException) -> str:
    """The message of an error, which is never empty.

    Examples
    --------
    >>> in_words(MemoryError())
    'there is not enough memory: use fewer samples or features, or a machine with more memory'
    >>> in_words(ZeroDivisionError())
    'ZeroDivisionError'
    """
    if isinstance(error, MemoryError) and not str(error).strip():
        return (
            "there is not enough memory: use fewer samples or features, or a machine with more "
            "memory"
        )
    return str(error).strip() or type(error).__name__


def parse_settings(items: Sequence[str]) -> dict[str, Any]:
    """Read parameters from name=value; values are Python literals or words.

    Examples
    --------
    >>> parse_settings(["lam1=1e2", "affinity=sparse", "n_neighbors=none"])
    {'lam1': 100.0, 'affinity': 'sparse', 'n_neighbors': None}
    """
    words = {"true": True, "false": False, "none": None}
    found: dict[str, Any] = {}
    for item in items:
        name, sign, text = item.partition("=")
        if not sign or not name.strip():
            raise InputError(f"--set needs name=value, such as --set lam1=10; got {item!r}")
        try:
            found[name.strip()] = words.get(text.strip().lower(), ast.literal_eval(text.strip()))
        except (ValueError, SyntaxError):
            found[name.strip()] = words.get(text.strip().lower(), text.strip())
    return found


def check_request(request: Request) -> Any:
    """Return the estimator for a request, or raise if the request cannot be met."""
    if not 0 <= request.seed < 2**32:
        raise ValueError(f"--seed must be from 0 to 2**32 - 1, got {request.seed}")
    model = _build(request)
    _check_consensus(request)
    _set_device(model, request)
    return model


def _build(request: Request) -> Any:
    """The method that was named, or the consensus of many."""
    from sklearn.utils import get_tags

    from polyspan import METHODS, ConsensusClusterer

    if request.method is None:
        if request.params:
            raise ValueError("--set needs --method: it sets the parameters of one method")
        count = "auto" if request.clusters is None else request.clusters
        return ConsensusClusterer(count, budget=request.budget, random_state=request.seed)
    cls = METHODS.get(request.method)
    if cls is None:
        raise ValueError(unknown_name("method", request.method, METHODS))
    known = [name for name in cls().get_params(deep=False) if name != "views"]
    for name in request.params:
        if name in OWN_OPTIONS:
            raise ValueError(f"--set {name}: use {OWN_OPTIONS[name]} instead")
        if name not in known:
            others = [one for one in known if one not in OWN_OPTIONS]
            raise ValueError(unknown_name(f"parameter of {cls.__name__}", name, others))
    if request.missing == "keep" and not get_tags(cls()).missing_views:
        raise ValueError(
            f"--missing keep: {cls.__name__} needs every view of every sample; {_keepers()}"
        )
    return cls(**request.params, random_state=request.seed)


def _keepers() -> str:
    from sklearn.utils import get_tags

    from polyspan import METHODS

    found = [name for name, cls in METHODS.items() if get_tags(cls()).missing_views]
    if not found:
        return "no method in this version can handle missing views; use --missing drop"
    return f"use {', '.join(found)}, or --missing drop"


def _check_consensus(request: Request) -> None:
    """Refuse options that a consensus does not have, or that only a consensus has."""
    from polyspan.inputs.params import real

    if request.budget is None:
        return
    if request.method is not None:
        raise ValueError(
            "--budget is for the consensus of many methods, but --method names one: leave one out"
        )
    if wrong := real(0)(request.budget):
        raise ValueError(f"--budget must be {wrong}, got {request.budget!r}")


def _set_device(model: Any, request: Request) -> None:
    """Set the method's device; counting the clusters can use one even if the method has none."""
    from polyspan.runtime.devices import check_device

    if request.device is None:
        return
    if "device" in request.params:
        raise ValueError("--device and --set device=... mean the same thing: leave one out")
    check_device("--device", request.device)
    if "device" in model.get_params(deep=False):
        model.set_params(device=request.device)
    elif request.clusters is not None:
        raise ValueError(f"--device: {type(model).__name__} has no device: leave this option out")


def check_data(data: "MatchedViews", model: Any, clusters: int | None) -> None:
    """Refuse data that the estimator cannot handle."""
    n = data.views[0].shape[0]
    if clusters is not None and not 1 <= clusters <= n:
        raise ValueError(f"--clusters {clusters}: must be from 1 to {n}, the number of samples")
    with own_warnings():
        warnings.simplefilter("ignore")  # the fit repeats them
        if clusters is None and model.n_clusters != "auto":
            model.set_params(n_clusters=1)  # their number is estimated later
        elif clusters is not None:
            model.set_params(n_clusters=clusters)
        model.check(data)
