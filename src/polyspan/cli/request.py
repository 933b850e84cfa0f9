"""The request of `polyspan fit`: its options, and the checks before any work.

Anything wrong with the request or the files is raised as an `InputError`.
"""

import argparse
import ast
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from polyspan.cli.options import check_options, option, within
from polyspan.runtime.messages import own_warnings, unknown_name

if TYPE_CHECKING:
    from polyspan.datasets import MatchedViews

OWN_OPTIONS = {"n_clusters": "--clusters", "random_state": "--seed"}
IMPUTE = ("impute", "says what --impute leaves out: use both, or neither")
SHOWN = ("report", "is shown in the report: name one with --report FILE.html")
seed_limits = within(0, 2**32 - 1, "from 0 to 2**32 - 1")


class InputError(Exception):
    """The request cannot be met, or a file cannot be used; no work was started."""


def _clusters(text: str) -> int | str:
    if text.lower() == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number or auto, got {text!r}")
    return int(text)


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


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How files are read. The names and meanings are those of `polyspan.datasets.load_views`."""

    # fmt: off
    id: Sequence[str] = option((),
        "column with the sample ids; repeat the option if the files use different names", "COLUMN")
    id_trim: Sequence[str] = option((),
        "trim ids that files spell differently before they are matched: case ignores capitals, "
        "zeros removes those in front, anything else is a regular expression whose matches are "
        "removed, as in --id-trim='-01A$'; may be repeated", "WHAT")
    drop: Sequence[str] = option((), "leave out a column; may be repeated", "COLUMN")
    missing: Literal["fail", "drop", "keep"] = option("fail",
        "samples that lack a view: stop and name them, drop them, or keep them (without --method, "
        "or with one that can)")
    header: bool | None = option(None,
        "whether text files and sheets start with a row of names (default: detect)")
    samples: Literal["rows", "columns"] | None = option(None,
        "where the samples are: in columns, as is common in genomics, or in rows; without it, "
        "tables that seem to have them in columns are refused")
    keep: Sequence[str] = option((),
        "use a column although its name (label, subtype, ...) says that it holds known classes; "
        "may be repeated", "COLUMN")
    duplicates: Literal["fail", "mean", "first", "drop"] = option("fail",
        "features of one name, such as probes of one gene: stop, use their mean, the first of "
        "them, or none of them")
    impute: Literal["median", "knn", "none"] = option("none",
        "fill in scattered missing values by the column's median or from the five nearest samples")
    max_missing: float = option(0.2,
        "with --impute: leave out columns that lack more than this share of their values; samples "
        "that then still do count as lacking the view, see --missing", "SHARE", needs=IMPUTE)
    obsm: Sequence[str] = option((),
        ".h5ad and .h5mu: this matrix of obsm is a view, instead of X; may be repeated; rna:KEY is "
        "that of one modality", "KEY")
    layers: Sequence[str] = option((),
        ".h5ad and .h5mu: this layer is a view, instead of X, which is the layer X; may be "
        "repeated", "NAME", flag="--layer")
    # fmt: on


def reading(options: Reading) -> dict[str, Any]:
    """How files are read, as arguments of `polyspan.datasets.load_views`."""
    return {about.name: getattr(options, about.name) for about in fields(Reading)}


@dataclass(frozen=True)
class Request(Reading):
    """What is clustered. With how files are read, this is all that decides the labels."""

    # fmt: off
    files: Sequence[str | Path] = option((), "a file with one or more views", "FILE", flag="files")
    clusters: int | Literal["auto"] = option("auto",
        "number of clusters, or auto", "N", parse=_clusters)
    method: str | None = option(None,
        "run one method, such as grmsc; `polyspan info` lists them", "NAME")
    set: Mapping[str, Any] = option(dict,
        "set a parameter of the method; may be repeated", "NAME=VALUE", collect=parse_settings)
    seed: int = option(0, "random seed", "N", check=seed_limits)
    budget: float | None = option(None,
        "stop the members of the consensus in time; the labels then depend on the speed of the "
        "machine (default: run all members)", "SECONDS",
        check=within(0, sys.float_info.max, "a finite number >= 0"))
    device: str | None = option(None,
        "where to compute, such as cuda (a GPU; needs torch), for methods that support it", "D")
    dataset: str | None = option(None,
        "cluster a published data set instead of files (`polyspan data list`); what it knows of "
        "its samples is compared with the clusters in the report", "NAME")
    # fmt: on


@dataclass(frozen=True, kw_only=True)
class Writing:
    """How files are written."""

    force: bool = option(False, "replace output files that exist")
    safe_ids: bool = option(False,
        "write ' before names in tables, also those of the report, that begin with =, +, - or @, "
        "which spreadsheets take for formulas",
    )  # fmt: skip


@dataclass(frozen=True)
class Outputs(Writing):
    """What is written. None of it changes the labels."""

    # fmt: off
    out: str | Path | None = option(None,
        "where to write the labels, .csv or .tsv, or a copy of the .h5ad or .h5mu file with the "
        "labels in it (default: labels.csv)", "FILE")
    report: str | Path | None = option(None, "also write a report", "FILE.html")
    save: str | Path | None = option(None,
        "also save the model, for `polyspan predict`", "MODEL.npz")
    annotate: str | Path | None = option(None,
        "a table of what is known of the samples (subtypes, ages, ...), or .h5ad or .h5mu for its "
        "obs, matched by id: the report compares the clusters with it; it is never used for the "
        "clustering", "FILE", needs=SHOWN)
    survival: str | None = option(None,
        "compare the survival of the clusters (needs lifelines): two columns of --annotate or of "
        "the data set; an event is 1, or dead", "TIME,EVENT", needs=SHOWN)
    figures: str | Path | None = option(None,
        "with --report: also write its figures (.svg, .png, .pdf) and tables (.csv, such as "
        "markers.csv) to this folder", "FOLDER", needs=SHOWN)
    keep_partial: bool = option(False,
        "after Ctrl-C write what the members of the consensus that ran agree on, marked partial in "
        "the settings file; without it nothing is written")
    verbose: bool = option(False,
        "also print the members of the consensus, by family and scaling")
    # fmt: on


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


def check_request(request: Request) -> Any:
    """Return the estimator for a request, or raise if the request cannot be met."""
    check_options(request)
    if request.method is not None and request.budget is not None:
        raise ValueError(
            "--budget is for the consensus of many methods, but --method names one: leave one out"
        )
    model = _build(request)
    _set_device(model, request)
    return model


def _build(request: Request) -> Any:
    """The method that was named, or the consensus of many."""
    from sklearn.utils import get_tags

    from polyspan import METHODS, ConsensusClusterer

    if request.method is None:
        if request.set:
            raise ValueError("--set needs --method: it sets the parameters of one method")
        return ConsensusClusterer(
            request.clusters, budget=request.budget, n_jobs=-1, random_state=request.seed
        )
    cls = METHODS.get(request.method)
    if cls is None:
        raise ValueError(unknown_name("method", request.method, METHODS))
    known = [name for name in cls().get_params(deep=False) if name != "views"]
    for name in request.set:
        if name in OWN_OPTIONS:
            raise ValueError(f"--set {name}: use {OWN_OPTIONS[name]} instead")
        if name not in known:
            others = [name for name in known if name not in OWN_OPTIONS]
            raise ValueError(unknown_name(f"parameter of {cls.__name__}", name, others))
    if request.missing == "keep" and not get_tags(cls()).missing_views:
        able = [name for name, cls in METHODS.items() if get_tags(cls()).missing_views]
        raise ValueError(
            f"--missing keep: {cls.__name__} needs every view of every sample; use "
            f"{', '.join(able)}, or --missing drop"
        )
    cores = {"n_jobs": -1} if "n_jobs" in known else {}
    return cls(**cores | dict(request.set), random_state=request.seed)


def _set_device(model: Any, request: Request) -> None:
    """Set the method's device; counting the clusters can use one even if the method has none."""
    from polyspan.runtime.devices import check_device

    if request.device is None:
        return
    if "device" in request.set:
        raise ValueError("--device and --set device=... mean the same thing: leave one out")
    check_device("--device", request.device)
    if "device" in model.get_params(deep=False):
        model.set_params(device=request.device)
    elif request.clusters != "auto":
        raise ValueError(f"--device: {type(model).__name__} has no device: leave this option out")


def check_data(data: "MatchedViews", model: Any, clusters: int | str) -> None:
    """Refuse data that the estimator cannot handle."""
    n = data.views[0].shape[0]
    if isinstance(clusters, int) and not 1 <= clusters <= n:
        raise ValueError(f"--clusters {clusters}: must be from 1 to {n}, the number of samples")
    with own_warnings():
        warnings.simplefilter("ignore")  # the fit repeats them
        if isinstance(clusters, int):
            model.set_params(n_clusters=clusters)
        elif model.n_clusters != "auto":
            model.set_params(n_clusters=1)  # their number is estimated later
        model.check(data)
