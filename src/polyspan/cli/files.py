"""The files that `polyspan fit` writes: labels, settings, report and model, all or none."""

import csv
import hashlib
import json
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyspan.annotation import annotate
from polyspan.atomic import check_place, replacing_all
from polyspan.cli.request import Outputs
from polyspan.runtime.messages import is_formula, own_warnings

if TYPE_CHECKING:
    import numpy as np

    from polyspan.cli.work import Found
    from polyspan.datasets import MatchedViews

TABLES, ANNOTATED = (".csv", ".tsv"), (".h5ad", ".h5mu")
WRITTEN = (*TABLES, *ANNOTATED)  # endings of the labels


class Targets(NamedTuple):
    """The files to write."""

    labels: Path
    settings: Path
    report: Path | None
    model: Path | None

    @property
    def repeat_command(self) -> str:
        """The command that repeats the run; it chooses a free name for the labels."""
        return shlex.join(["polyspan", "fit", "--repeat", str(self.settings)])


def check_targets(outputs: Outputs, files: Sequence[str | Path] = ()) -> Targets:
    """Return where labels, settings, report and model go, after checking that all can be written.

    Examples
    --------
    >>> check_targets(Outputs(out="labels.txt"))
    Traceback (most recent call last):
    ...
    ValueError: labels.txt: the file name for labels must end in .csv or .tsv
    """
    labels = Path(outputs.out or "labels.csv")
    if is_annotated(labels):
        annotated_source(labels, files)
    else:
        check_labels_name(labels)
    report, model = (Path(name) if name else None for name in (outputs.report, outputs.save))
    if model and model.suffix != ".npz":
        raise ValueError(f"{model}: the file name of the model must end in .npz")
    if report and report.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{report}: the file name of the report must end in .html")
    targets = Targets(labels, labels.with_suffix(".json"), report, model)
    for path in filter(None, targets):
        check_target(path, files, outputs.force)
    return targets


def check_labels_name(labels: Path) -> None:
    """Refuse another ending than those of the tables that are written."""
    if labels.suffix.lower() not in TABLES:
        raise ValueError(f"{labels}: the file name for labels must end in .csv or .tsv")


def check_target(path: Path, files: Sequence[str | Path], force: bool) -> None:
    """Refuse a file that cannot be written, or that is one of those that are read."""
    check_place(path)
    if path.resolve() in {Path(file).resolve() for file in files}:
        raise ValueError(f"{path} is one of the input files: name another file with --out")
    check_absent(path, force)


def check_absent(path: Path, force: bool) -> None:
    """Refuse to replace a file, unless forced."""
    if path.exists() and not force:
        options = {".html": "--report", ".htm": "--report", ".npz": "--save"}
        option = options.get(path.suffix.lower(), "--out")
        raise FileExistsError(
            f"{path} exists: use --force to replace it, or name another file with {option}"
        )


def is_annotated(path: Path) -> bool:
    """Whether the labels go into a copy of an AnnData or MuData file."""
    return path.suffix.lower() in ANNOTATED


def annotated_source(labels: Path, files: Sequence[str | Path]) -> Path:
    """The input file whose copy gets the labels.

    Examples
    --------
    >>> annotated_source(Path("out.h5ad"), ["rna.csv", "cells.h5ad"]).name
    'cells.h5ad'
    """
    found = [Path(file) for file in files if Path(file).suffix.lower() == labels.suffix.lower()]
    if len(found) != 1:
        raise ValueError(
            f"{labels}: labels are written into a copy of the one {labels.suffix} file that is "
            f"read, but {len(found) or 'none'} of the files {'are' if found else 'is'} one: end "
            "the name in .csv"
        )
    return found[0]


def write_together(writers: Mapping[Path, Callable[[Path], object]], *, force: bool) -> None:
    """Write all files or none: first to temporary files, which are then all moved into place.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_together({Path(folder, "a"): lambda path: path.write_text("1")}, force=False)
    ...     [path.name for path in Path(folder).iterdir()]
    ['a']
    """
    with replacing_all(writers, partial(check_absent, force=force)) as parts:
        for path, write in writers.items():
            try:
                write(parts[path])
            except OSError as error:  # a full disk does not say which file it was
                raise OSError(
                    f"{path} cannot be written: {error.strerror or error}; nothing was written"
                ) from error


def writers_of(
    targets: Targets,
    files: Sequence[str | Path],
    data: "MatchedViews",
    found: "Found",
    settings: dict[str, Any],
    safe_ids: bool,
    more: Mapping[str, Any],
) -> dict[Path, Callable[[Path], object]]:
    """By file, what writes it."""
    writers: dict[Path, Callable[[Path], object]] = {}
    writers[targets.labels] = partial(
        write_labels, data=data, labels=found.labels, certainty=found.certainty, safe=safe_ids
    )
    if is_annotated(targets.labels):
        source = annotated_source(targets.labels, files)
        writers[targets.labels] = partial(write_annotated, source=source, model=found.estimator)
    if targets.model is not None:
        writers[targets.model] = partial(write_model, model=found.estimator)
    writers[targets.settings] = partial(write_json, content=settings)
    # Last, because it also writes the figures.
    if targets.report is not None:
        from polyspan.report import write_report

        writers[targets.report] = partial(
            write_report,
            views=data.views,
            view_names=data.view_names,
            sample_ids=sample_names(data),
            estimator=found.estimator,
            evidence=found.evidence,
            command=settings["command"],
            repeat=targets.repeat_command,
            notes=[*data.notes, *found.complaints],
            safe_ids=safe_ids,
            force=True,  # what exists was checked before the fit
            **more,
        )
    return writers


def write_labels(
    path: Path,
    data: "MatchedViews",
    labels: "np.ndarray",
    certainty: "np.ndarray | None" = None,
    *,
    more: "Mapping[str, Sequence[str]] | None" = None,
    safe: bool = False,
) -> None:
    """Write one line per sample: its id or row number, its cluster, and how certain that is.

    ``more`` are further columns by their names. With ``safe``, ids that a spreadsheet would take
    for formulas get a ' in front.
    """
    name = data.id_name if data.ids is not None else "row"
    further = dict(more or {})
    if certainty is not None:
        further = {"certainty": [f"{one:.4f}" for one in certainty], **further}
    name = "id" if name in ("", "cluster", "certainty", *further) else name
    header = [name, "cluster", *further]
    with path.open("w", newline="", encoding="utf-8") as stream:
        delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
        rows = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        rows.writerow(header)
        for i, (one, label) in enumerate(zip(sample_names(data), labels, strict=True)):
            one = f"'{one}" if safe and is_formula(one) else one
            rows.writerow([one, int(label), *(values[i] for values in further.values())])


def unsafe(one: str) -> str:
    """An id as it was before `write_labels` made it safe."""
    return one[1:] if one.startswith("'") and is_formula(one[1:]) else one


def formula_notes(data: "MatchedViews", safe: bool) -> list[str]:
    """What to say of ids that a spreadsheet takes for formulas, unless they are made safe."""
    found = [one for one in sample_names(data) if is_formula(one)]
    if safe or not found:
        return []
    n = f"{len(found)} id{'s' * (len(found) > 1)} begin{'s' * (len(found) == 1)}"
    return [
        f"{n} with =, +, - or @ ({found[0]}), which spreadsheets take for formulas: --safe-ids "
        "writes a ' in front"
    ]


def write_annotated(path: Path, source: Path, model: Any) -> None:
    """Write a copy of an AnnData or MuData file with the clusters in ``obs`` and ``uns``."""
    from polyspan.io.readers import read_annotated

    data = read_annotated(source)
    with own_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # the command has named the samples that were dropped
        annotate(data, model)
        written = Path(folder, path.name)
        data.write(written)  # not to the path itself: HDF5 wants a lock on it, which we hold
        shutil.copyfile(written, path)


def write_json(path: Path, content: Any) -> None:
    """Write what `plain` returned."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", "utf-8")


def write_model(path: Path, model: Any) -> None:
    """Save a fitted model."""
    from polyspan import save_model

    save_model(model, path, force=True)  # of the temporary file; the target was checked


def sample_names(data: "MatchedViews") -> list[str]:
    """Ids, or row numbers counted from 1."""
    return data.ids or [str(i) for i in range(1, data.views[0].shape[0] + 1)]


def sha256(path: Path) -> str:
    """Checksum of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
