"""The files that `polyspan fit` writes: labels, settings, report and model, all or none."""

import csv
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyspan.atomic import check_place, replacing_all
from polyspan.cli.annotated import annotated_source, is_annotated

if TYPE_CHECKING:
    import numpy as np

    from polyspan.datasets import MatchedViews


class Targets(NamedTuple):
    """The files to write."""

    labels: Path
    settings: Path
    report: Path | None
    model: Path | None = None


def check_targets(
    out: str | Path,
    report: str | Path | None = None,
    files: Sequence[str | Path] = (),
    *,
    save: str | Path | None = None,
    force: bool = False,
) -> Targets:
    """Return where labels, settings, report and model go, after checking that all can be written.

    Examples
    --------
    >>> check_targets("labels.txt")
    Traceback (most recent call last):
    ...
    ValueError: labels.txt: the file name for labels must end in .csv or .tsv
    """
    labels = Path(out)
    if is_annotated(labels):
        annotated_source(labels, files)
    else:
        check_labels_name(labels)
    targets = Targets(
        labels,
        labels.with_suffix(".json"),
        None if report is None else Path(report),
        None if save is None else Path(save),
    )
    if targets.model is not None and targets.model.suffix != ".npz":
        raise ValueError(f"{targets.model}: the file name of the model must end in .npz")
    if targets.report is not None and targets.report.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"{targets.report}: the file name of the report must end in .html")
    for path in targets:
        if path is not None:
            check_target(path, files, force)
    return targets


def check_labels_name(labels: Path) -> None:
    """Refuse another ending than those of the tables that are written."""
    if labels.suffix.lower() not in (".csv", ".tsv"):
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
    with replacing_all(writers) as parts:
        for path, write in writers.items():
            try:
                write(parts[path])
            except OSError as error:  # a full disk does not say which file it was
                raise OSError(
                    f"{path} cannot be written: {error.strerror or error}; nothing was written"
                ) from error
        for path in writers:
            check_absent(path, force)  # it may have appeared in the meantime


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
            one = f"'{one}" if safe and _is_formula(one) else one
            rows.writerow([one, int(label), *(values[i] for values in further.values())])


def _is_formula(one: str) -> bool:
    """Whether a spreadsheet takes this id for a formula; a negative number is none."""
    return one.startswith(("=", "+", "-", "@")) and not one[1:].replace(".", "", 1).isdecimal()


def formula_notes(data: "MatchedViews", safe: bool) -> list[str]:
    """What to say of ids that a spreadsheet takes for formulas, unless they are made safe."""
    found = [one for one in sample_names(data) if _is_formula(one)]
    if safe or not found:
        return []
    n = f"{len(found)} id{'s' * (len(found) > 1)} begin{'s' * (len(found) == 1)}"
    return [
        f"{n} with =, +, - or @ ({found[0]}), which spreadsheets take for formulas: --safe-ids "
        "writes a ' in front"
    ]


def write_json(path: Path, content: Any) -> None:
    """Write what `plain` returned."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", "utf-8")


def write_model(path: Path, model: Any) -> None:
    """Save a fitted model."""
    from polyspan import save_model

    save_model(model, path, force=True)  # of the temporary file; the target was checked


def relative(path: str | Path, folder: Path) -> str:
    """The path relative to the settings' folder, so that both can be moved together."""
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        return str(Path(path).absolute())


def sample_names(data: "MatchedViews") -> list[str]:
    """Ids, or row numbers counted from 1."""
    return data.ids or [str(i) for i in range(1, data.views[0].shape[0] + 1)]


def sha256(path: Path) -> str:
    """Checksum of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
