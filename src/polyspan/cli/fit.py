"""What `polyspan fit` does: files in; labels, the settings of the run, and a report out.

Everything that can be wrong with what was asked for, or with the files, is found before any work
and is an `InputError`. What is written is written together at the end, all of it or nothing.
"""

import ast
import difflib
import hashlib
import importlib
import json
import os
import platform
import shlex
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from polyspan import METHODS, __version__
from polyspan.cli.files import (
    Targets,
    check_targets,
    plain,
    relative,
    sample_names,
    sha256,
    write_json,
    write_labels,
    write_together,
)
from polyspan.cli.progress import follow, progress_bar
from polyspan.datasets.matching import MatchedViews, check_paths, load_views
from polyspan.inputs.devices import check_device
from polyspan.inputs.params import real
from polyspan.inputs.views import check_views
from polyspan.solvers.loop import watching

if TYPE_CHECKING:
    from rich.progress import Progress

OWN_OPTIONS = {"n_clusters": "--clusters", "random_state": "--seed"}
FORMAT = 1  # of the settings file
ASKED = {"files", "clusters", "method", "set", "seed", "id", "drop", "missing", "header"}
ASKED_LATER = {"budget", "device"}  # settings files of before have no such thing


class InputError(Exception):
    """What was asked for cannot be done, or a file cannot be used: nothing was begun."""


class Fitted(NamedTuple):
    """What `fit_files` found."""

    data: MatchedViews
    labels: np.ndarray
    certainty: np.ndarray | None
    estimator: Any
    settings: dict[str, Any]  # what the settings file holds


def fit_files(
    files: Sequence[str | Path],
    *,
    clusters: int | None = None,
    method: str | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    id: str | Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str = "fail",
    header: bool | None = None,
    budget: float | None = None,
    device: str | None = None,
    out: str | Path = "labels.csv",
    report: str | Path | None = None,
    force: bool = False,
    command: str = "",
    earlier: Mapping[str, Any] | None = None,
) -> Fitted:
    r"""Cluster the samples of several files; print what was done and write the labels.

    Parameters
    ----------
    files : sequence of paths
        One view or several each, see `polyspan.datasets.load_views`, as for `id`, `drop`,
        `missing` and `header`.
    clusters : int, optional
        How many; chosen from the data when None.
    method : str, optional
        A name of `polyspan.METHODS`. Without it, `polyspan.selection.select` chooses the method
        and its parameters, without labels.
    params : dict, optional
        Parameters of the method; the others have their defaults.
    seed : int, default=0
        Seeds all that is random.
    budget : float, optional
        Seconds after which the choice without labels starts no new setting. The labels then depend
        on the speed of the machine.
    device : str, optional
        Where methods that can compute elsewhere do, such as ``"cuda"``.
    out : path, default="labels.csv"
        The labels, .csv or .tsv. The settings go beside it, with the ending .json.
    report : path, optional
        An HTML report.
    force : bool, default=False
        Replace these files if they exist.
    command : str, optional
        The command line, for the settings and the report.
    earlier : dict, optional
        The settings of the run that this one repeats.

    Returns
    -------
    Fitted
        Views, labels, certainty (if known), the fitted estimator and the settings.

    Raises
    ------
    InputError
        Before any work, in one sentence.

    Examples
    --------
    >>> import tempfile
    >>> from polyspan.datasets import make_subspaces
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, view in zip("ab", make_subspaces(60, 3, random_state=0).views):
    ...         np.save(f"{folder}/{name}.npy", view)
    ...     files = [f"{folder}/a.npy", f"{folder}/b.npy"]
    ...     out = f"{folder}/labels.csv"
    ...     found = fit_files(files, clusters=3, method="grmsc", out=out)
    ...     lines = Path(out).read_text().splitlines()
    view ...
    >>> found.labels.shape, lines[0]
    ((60,), 'row,cluster')
    """
    asked: dict[str, Any] = {
        "files": list(files),
        "clusters": "auto" if clusters is None else clusters,
        "method": method,
        "set": dict(params or {}),
        "seed": seed,
        "id": [id] if isinstance(id, str) else list(id),
        "drop": list(drop),
        "missing": missing,
        "header": header,
        "budget": budget,
        "device": device,
    }
    with _asking():
        check_paths([Path(file) for file in files])  # what is read comes before what is written
        targets = check_targets(out, report, files, force=force)
        _check_seed(seed)
        model = _build(method, asked["set"], seed, missing)
        _check_choice(method, clusters, missing, budget)
        _set_device(model, device, asked["set"], clusters)
        choose = _selection(model is None, clusters is None)
        write_report = None if report is None else _report_writer()
        with progress_bar() as bar:
            bar.add_task("reading", total=None, turn="")
            data = load_views(files, id=id, drop=drop, missing=missing, header=header)
            sums = [sha256(Path(file)) for file in files]
        _check_data(data, model, clusters)
    print(_told_views(data), flush=True)
    for note in data.notes:
        _note(note)

    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, progress_bar() as bar:
        warnings.simplefilter("always")
        found = _fit(data, model, choose, clusters, seed, bar, budget, device)
    seconds = time.perf_counter() - started
    told = [one for one in caught if issubclass(one.category, UserWarning | RuntimeWarning)]
    complaints = list(dict.fromkeys(str(one.message) for one in told))
    for complaint in complaints:
        _note(complaint)

    settings = {
        "format": FORMAT,
        "polyspan": __version__,
        "versions": _versions(),
        "command": command,
        "asked": asked | {"files": [relative(file, targets.labels.parent) for file in files]},
        "sha256": sums,
        **_describe(data),
        **_describe_found(found),
        "warnings": complaints,
        "labels": targets.labels.name,
        "labels_sha256": _labels_sum(data, found.labels),
    }
    settings = plain(settings)
    writers: dict[Path, Callable[[Path], object]] = {}
    if write_report is not None and targets.report is not None:
        writers[targets.report] = partial(
            write_report,
            views=data.views,
            view_names=data.view_names,
            sample_ids=sample_names(data),
            estimator=found.estimator,
            labels=found.labels,
            certainty=found.certainty,
            selection=found.selection,
            evidence=found.evidence,
            command=command,
            repeat=_again(targets),
            title=", ".join(data.view_names),
            notes=[*data.notes, *complaints],
        )
    writers[targets.labels] = partial(
        write_labels, data=data, labels=found.labels, certainty=found.certainty
    )
    writers[targets.settings] = partial(write_json, content=settings)
    write_together(writers, force=force)
    print(f"\n{_told_found(found, seconds)}\n\n{_told_files(targets)}")
    if earlier is not None:
        _compare(earlier, settings)
    return Fitted(data, found.labels, found.certainty, found.estimator, settings)


class _Found(NamedTuple):
    estimator: Any
    labels: np.ndarray
    certainty: np.ndarray | None
    selection: Any = None  # what `select` returned
    evidence: Any = None  # for the number of clusters, when it was not given


def _fit(
    data: MatchedViews,
    model: Any,
    choose: tuple[Any, Any],
    clusters: int | None,
    seed: int,
    bar: "Progress",
    budget: float | None,
    device: str | None,
) -> _Found:
    """Fit the one method, or choose one; ``choose`` holds `select` and `count_clusters`."""
    select, count_clusters = choose
    if model is None:
        found = select(
            data.views,
            "auto" if clusters is None else clusters,
            budget=budget,
            random_state=seed,
            progress=_teller(bar, "choosing without labels"),
            device=device,
        )
        labels, certainty = np.asarray(found.labels), np.asarray(found.certainty)
        evidence = found.evidence if clusters is None else None
        return _Found(found.best_estimator, labels, certainty, found, evidence)
    task = bar.add_task(type(model).__name__, total=None, turn="")
    evidence = None
    if clusters is None:
        bar.update(task, turn="counting clusters")
        where = device or model.get_params(deep=False).get("device")
        count, evidence = count_clusters(data.views, random_state=seed, device=where)
        model.set_params(n_clusters=int(count))
    with watching(partial(follow, bar, task)):
        model.fit(dict(zip(data.view_names, data.views, strict=True)))
    return _Found(model, model.labels_, getattr(model, "certainty_", None), None, evidence)


def _describe(data: MatchedViews) -> dict[str, Any]:
    """How the views came together, for the settings file."""
    return {
        "views": {
            name: {"file": Path(file).name, "rows": rows, "features": view.shape[1]}
            for name, file, rows, view in zip(
                data.view_names, data.files, data.rows, data.views, strict=True
            )
        },
        "matched_by": data.matched_by,
        "id_column": data.id_name or None,
        "samples": data.views[0].shape[0],
        "lacking": data.lacking,
        "dropped_samples": data.dropped,
    }


def _describe_found(found: _Found) -> dict[str, Any]:
    cls = type(found.estimator)
    return {
        "n_clusters": len(np.unique(found.labels)),
        "method": next((name for name, one in METHODS.items() if one is cls), cls.__name__),
        "parameters": found.estimator.get_params(),
        "selection": None if found.selection is None else found.selection.table,
        "evidence": found.evidence,
    }


def repeat(
    path: str | Path,
    *,
    out: str | Path | None = None,
    report: str | Path | None = None,
    force: bool = False,
    command: str = "",
) -> Fitted:
    """Repeat the run whose settings are in a .json file beside its labels.

    Says which files changed since then, and whether the labels are the same. Without ``out`` the
    labels go beside those of the earlier run, under a name that is free (``labels-again.csv``);
    with ``force`` as well they replace them.
    """
    path = Path(path)
    with _asking():
        earlier = _read_settings(path)
        asked = earlier["asked"]
        files = [os.path.normpath(path.parent / file) for file in asked["files"]]
        for file, then in zip(files, earlier["sha256"], strict=True):
            if not Path(file).is_file():
                raise FileNotFoundError(f"there is no file {file}, which {path} names")
            if sha256(Path(file)) != then:
                _note(f"{file} has changed since {path} was written")
    if earlier["polyspan"] != __version__:
        _note(f"{path} was written by polyspan {earlier['polyspan']}, this is {__version__}")
    return fit_files(
        files,
        clusters=None if asked["clusters"] == "auto" else asked["clusters"],
        method=asked["method"],
        params=asked["set"],
        seed=asked["seed"],
        id=asked["id"],
        drop=asked["drop"],
        missing=asked["missing"],
        header=asked["header"],
        budget=asked.get("budget"),
        device=asked.get("device"),
        out=_place(path.parent / earlier["labels"], force) if out is None else out,
        report=report,
        force=force,
        command=command,
        earlier=earlier,
    )


def _place(labels: Path, force: bool) -> Path:
    """Where the labels of a repeated run go: nothing is replaced unless that was asked for."""
    if force:
        return labels
    number = 1
    while True:
        ending = "-again" + f"-{number}" * (number > 1)
        path = labels.with_name(f"{labels.stem}{ending}{labels.suffix}")
        if not path.exists() and not path.with_suffix(".json").exists():
            return path
        number += 1


def parse_settings(items: Sequence[str]) -> dict[str, Any]:
    """Parameters from name=value, the values as Python writes them, or words.

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
            raise InputError(f"--set wants name=value, such as --set lam1=10; got {item!r}")
        try:
            found[name.strip()] = words.get(text.strip().lower(), ast.literal_eval(text.strip()))
        except (ValueError, SyntaxError):
            found[name.strip()] = words.get(text.strip().lower(), text.strip())
    return found


# --- Before the work. ---


@contextmanager
def _asking() -> Iterator[None]:
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        raise InputError(str(error)) from error


def _check_seed(seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise ValueError(f"--seed must be from 0 to 2**32 - 1, got {seed}")


def _check_choice(
    method: str | None, clusters: int | None, missing: str, budget: float | None
) -> None:
    """Refuse what a choice without labels cannot do, or what only it can."""
    if missing == "keep" and (method is None or clusters is None):
        raise ValueError(
            "--missing keep needs --method and --clusters, since nothing can be chosen without "
            "labels where views are missing: say --method grmsc --clusters N, or --missing drop"
        )
    if budget is None:
        return
    if method is not None:
        raise ValueError(
            "--budget is for the choice without labels, and --method leaves none: leave one out"
        )
    if wrong := real(0)(budget):
        raise ValueError(f"--budget must be {wrong}, got {budget!r}")


def _set_device(
    model: Any, device: str | None, params: dict[str, Any], clusters: int | None
) -> None:
    """Give the method its device; the count of clusters can use one without it."""
    if device is None:
        return
    if "device" in params:
        raise ValueError("--device and --set device=... are the same: leave one out")
    check_device("--device", device)
    if model is None:
        return
    if "device" in model.get_params(deep=False):
        model.set_params(device=device)
    elif clusters is not None:
        raise ValueError(f"--device: {type(model).__name__} has no device, leave it out")


def _build(method: str | None, params: dict[str, Any], seed: int, missing: str) -> Any:
    """The estimator, or None when no method was named."""
    if method is None:
        if params:
            raise ValueError("--set needs --method: it sets the parameters of one method")
        return None
    cls = METHODS.get(method.lower())
    if cls is None:
        raise ValueError(_unknown("method", method, list(METHODS)))
    known = [name for name in cls().get_params(deep=False) if name != "views"]
    for name in params:
        if name in OWN_OPTIONS:
            raise ValueError(f"--set {name}: say {OWN_OPTIONS[name]} instead")
        if name not in known:
            others = [one for one in known if one not in OWN_OPTIONS]
            raise ValueError(_unknown(f"parameter of {cls.__name__}", name, others))
    if missing == "keep" and not cls.takes_missing_views:
        raise ValueError(
            f"--missing keep: {cls.__name__} needs every view of every sample; {_keepers()}"
        )
    return cls(**params, random_state=seed)


def _check_data(data: MatchedViews, model: Any, clusters: int | None) -> None:
    views, n = dict(zip(data.view_names, data.views, strict=True)), data.views[0].shape[0]
    if clusters is not None and not 1 <= clusters <= n:
        raise ValueError(f"--clusters {clusters}: there are {n} samples")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit repeats them
        if model is None:
            check_views(views)
        else:
            model.set_params(n_clusters=1 if clusters is None else clusters).check(views)


def _keepers() -> str:
    found = [name for name, cls in METHODS.items() if cls.takes_missing_views]
    if not found:
        return "no method of this version does without; say --missing drop"
    return f"{', '.join(found)} can do without; or say --missing drop"


def _unknown(kind: str, name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f", did you mean {close[0]!r}?" if close else "."
    return f"no {kind} is called {name!r}{hint} Known: {', '.join(known)}"


def _selection(choose: bool, count: bool) -> tuple[Any, Any]:
    """`select` and `count_clusters`, where they are needed."""
    if not choose and not count:
        return None, None
    try:
        module = importlib.import_module("polyspan.selection")
    except ModuleNotFoundError as error:
        if error.name != "polyspan.selection":
            raise
        what = "the choice of a method" if choose else "the number of clusters"
        raise ImportError(
            f"{what} without labels is not part of this version: say --method NAME and --clusters N"
        ) from error
    return module.select, module.count_clusters


def _report_writer() -> Any:
    try:
        return importlib.import_module("polyspan.report").write_report
    except ModuleNotFoundError as error:
        if error.name != "polyspan.report":
            raise
        raise ImportError("this version has no report: leave --report out") from error


def _read_settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        found = json.loads(path.read_text("utf-8"))
        keys = {"sha256", "labels", "labels_sha256", "polyspan"}
        complete = keys <= set(found) and ASKED <= set(found["asked"]) <= ASKED | ASKED_LATER
        if found["format"] != FORMAT or not complete:
            raise ValueError
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} does not hold the settings of a run: name the .json file beside the labels"
        ) from error
    return found


# --- After the work. ---


def _labels_sum(data: MatchedViews, labels: np.ndarray) -> str:
    rows = list(zip(sample_names(data), labels.tolist(), strict=True))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _versions() -> dict[str, str]:
    found = {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"python": platform.python_version(), **found}


# --- What is printed. ---


def _note(words: str) -> None:
    print(f"polyspan: note: {words}", file=sys.stderr)


def _teller(bar: "Progress", what: str) -> Callable[..., None]:
    """Follow a selection: called with the settings done and all of them."""
    task = bar.add_task(what, total=None, turn="")
    started = time.perf_counter()

    def tell(done: int, total: int, *rest: object) -> None:
        left = (time.perf_counter() - started) / max(done, 1) * (total - done)
        words = f"{done} of {total}" + (f", {left:.0f} s left" if done else "")
        bar.update(task, completed=done, total=total, turn=words)

    return tell


def _told_views(data: MatchedViews) -> str:
    """The views as a small table, and how their samples were matched."""
    rows = [("view", "file", "samples", "features")]
    for name, file, n, view in zip(data.view_names, data.files, data.rows, data.views, strict=True):
        rows.append((name, file, str(n), str(view.shape[1])))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        f"{a:{widths[0]}}  {b:{widths[1]}}  {c:>{widths[2]}}  {d:>{widths[3]}}"
        for a, b, c, d in rows
    ]
    n = data.views[0].shape[0]
    if len(data.views) == 1:
        lines.append(
            f"{n} samples of one view" + (f", named by {data.id_name!r}" * bool(data.id_name))
        )
    elif data.matched_by == "id":
        column = "the index" if not data.id_name else f"{data.id_name!r}"
        lines.append(f"{n} samples matched by id ({column})")
    else:
        lines.append(f"{n} samples matched by order: row 1 with row 1, and so on")
    verb = "left out" if data.dropped else "kept without it"
    for view, samples in data.lacking.items():
        shown = ", ".join(samples[:5]) + ", ..." * (len(samples) > 5)
        what = "sample lacks" if len(samples) == 1 else "samples lack"
        lines.append(f"{len(samples)} {what} {view}, {verb}: {shown}")
    return "\n".join(lines)


def _told_found(found: _Found, seconds: float) -> str:
    names, sizes = np.unique(found.labels, return_counts=True)
    auto = " (their number was chosen from the data)" if found.evidence is not None else ""
    head = f"{len(names)} clusters{auto} in {seconds:.1f} s: "
    model = " ".join(repr(found.estimator).split())  # it may have several lines
    if found.selection is None:
        lines = [head + model]
    else:
        table = found.selection.table
        ran = sum(row["status"] == "ok" for row in table)
        used = sum(row["weight"] > 0 for row in table)
        settings = f"{used} setting" + "s" * (used != 1)
        lines = [f"{head}consensus of {settings}, chosen without labels from {ran} that ran"]
        if lost := len(table) - ran:
            lines.append(f'{lost} more did not run or failed: "selection" in the settings says why')
        lines.append(f"nearest to the consensus: {model}")
    if found.evidence is not None:
        lines.append(f"evidence for their number: {_told_count(found.evidence)}")
    counts = ", ".join(f"{name}: {size}" for name, size in zip(names, sizes, strict=True))
    lines.append(f"samples per cluster  {counts}")
    if found.certainty is not None:
        mean, low = np.mean(found.certainty), int(np.sum(found.certainty < 0.5))
        lines.append(f"certainty {mean:.2f} in the mean, below 0.5 for {low} samples")
    return "\n".join("\n".join(textwrap.wrap(line, 100)) for line in lines)


def _told_count(evidence: Mapping[str, Any], most: int = 3) -> str:
    """The best candidates for the number of clusters, the chosen one first."""
    names = "candidates", "gaps", "stability", "scores"
    rows = sorted(zip(*(evidence[name] for name in names), strict=True), key=lambda row: -row[3])
    return ", ".join(
        f"{c} (gap {gap:.3f}, stability {stability:.2f}, score {score:.2f})"
        for c, gap, stability, score in rows[:most]
    )


def _told_files(targets: Targets) -> str:
    again = f"settings; `{_again(targets)}` repeats this run"
    rows = [(str(targets.labels), "labels"), (str(targets.settings), again)]
    if targets.report is not None:
        rows.append((str(targets.report), "report; open it in a browser"))
    width = max(len(path) for path, _ in rows)
    return "\n".join(f"{path:{width}}  {words}" for path, words in rows)


def _again(targets: Targets) -> str:
    """The command that repeats the run; it finds a free name for the labels itself."""
    return shlex.join(["polyspan", "fit", "--repeat", str(targets.settings)])


def _compare(earlier: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    if earlier["labels_sha256"] == settings["labels_sha256"]:
        print("repeated: every label is as it was")
    else:
        _note("repeated, but the labels are not the same as those of the earlier run")
