"""The settings file of a run: what it holds, and how it is read, repeated and compared."""

import csv
import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyspan import __version__
from polyspan.annotation import plain
from polyspan.cli.files import TABLES, WRITTEN, Targets, sample_names, sha256, unsafe
from polyspan.cli.messages import note
from polyspan.cli.options import holds
from polyspan.cli.request import Request

if TYPE_CHECKING:
    from polyspan.cli.work import Found
    from polyspan.datasets import MatchedViews

FORMAT = 1  # of the settings file


def describe_run(
    request: Request,
    data: "MatchedViews",
    found: "Found",
    *,
    sums: Sequence[str],
    targets: Targets,
    command: str,
) -> dict[str, Any]:
    """Everything in the settings file: the request, the data and the result."""
    asked = {about.name: getattr(request, about.name) for about in fields(request)}
    # Relative to the folder of the settings file, so that both can be moved together.
    asked["files"] = [_relative(file, targets.labels.parent) for file in request.files]
    views = zip(data.view_names, data.files, data.rows, data.views, strict=True)
    labels, model = found.labels.tolist(), found.estimator
    nearest = getattr(model, "best_estimator_", None)
    return plain(
        {
            "format": FORMAT,
            "polyspan": __version__,
            "versions": {"python": platform.python_version()}
            | {name: metadata.version(name) for name in ("numpy", "scipy", "scikit-learn")},
            "command": command,
            "asked": asked,
            "sha256": sums,
            "views": {
                name: {"file": Path(file).name, "rows": rows, "features": view.shape[1]}
                for name, file, rows, view in views
            },
            "matched_by": data.matched_by,
            "id_column": data.id_name or None,
            "samples": data.views[0].shape[0],
            "lacking": data.lacking,
            "dropped_samples": data.dropped,
            "n_clusters": len(set(labels)),
            **_describe_model(model),
            "members": getattr(model, "table_", None),
            "scaling": getattr(model, "scaling_", None),
            "structure": getattr(model, "structure_evidence_", None),
            "alternatives": getattr(model, "alternatives_", None),
            "nearest": None if nearest is None else _describe_model(nearest),
            "evidence": found.evidence,
            "warnings": found.complaints,
            "partial": found.partial,
            "labels": targets.labels.name,
            "labels_sha256": _sum_of(sample_names(data), labels),
        }
    )


def _describe_model(model: Any) -> dict[str, Any]:
    return {"method": type(model).__name__.lower(), "parameters": model.get_params(deep=False)}


def _sum_of(names: list[str], labels: list[int]) -> str:
    rows = list(zip(names, labels, strict=True))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _relative(path: str | Path, folder: Path) -> str:
    try:
        return Path(os.path.relpath(path, folder)).as_posix()
    except ValueError:  # on another drive
        return str(Path(path).absolute())


def read_settings(path: Path) -> dict[str, Any]:
    """Read the settings in a file; raise if they are not complete."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    hints = {about.name: about.type for about in fields(Request)}
    try:
        found = json.loads(path.read_text("utf-8"))
        name, asked = Path(found["labels"]), dict(found["asked"])
        words = [*found["sha256"], found["labels_sha256"], found["polyspan"]]
        whole = found["format"] == FORMAT and all(isinstance(word, str) for word in words)
        whole = whole and isinstance(found["sha256"], list)
        # Only a bare name: the settings do not say where to write.
        bare = name.name == found["labels"] and name.suffix.lower() in WRITTEN
        if not (whole and bare and "files" in asked and set(asked) <= set(hints)):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} is not the settings file of a run: use the .json file next to the labels"
        ) from error
    for name, value in asked.items():
        if not holds(hints[name], value):
            raise ValueError(f"{path}: {name!r} cannot be {value!r:.60}: use the file as written")
    if len(found["sha256"]) != len(asked["files"]):
        raise ValueError(f"{path}: 'files' and 'sha256' differ in length: use the file as written")
    return found


def earlier_request(path: Path, settings: Mapping[str, Any]) -> Request:
    """The request behind these settings; prints a note for each file that has changed since."""
    asked = settings["asked"]
    files = [os.path.normpath(path.parent / file) for file in asked["files"]]
    for file, then in zip(files, settings["sha256"], strict=True):
        if not Path(file).is_file():
            raise FileNotFoundError(f"there is no file {file}, which {path} refers to")
        if sha256(Path(file)) != then:
            note(f"{file} has changed since {path} was written")
    if settings["polyspan"] != __version__:
        note(
            f"{path} was written by polyspan {settings['polyspan']}; this is polyspan {__version__}"
        )
    return Request(**asked | {"files": files})


def free_place(labels: Path, force: bool) -> Path:
    """Where to write the labels of a repeated run; nothing is replaced without ``force``."""
    if force:
        return labels
    number = 1
    while True:
        ending = "-again" + f"-{number}" * (number > 1)
        path = labels.with_name(f"{labels.stem}{ending}{labels.suffix}")
        if not path.exists() and not path.with_suffix(".json").exists():
            return path
        number += 1


def is_edited(labels: Path, settings: Mapping[str, Any]) -> bool:
    """Whether a table of labels is there and holds others than those that the run wrote."""
    if not labels.is_file() or labels.suffix.lower() not in TABLES:
        return False
    try:
        with labels.open(newline="", encoding="utf-8") as stream:
            _, *rows = csv.reader(stream, delimiter="\t" if ".tsv" in labels.name.lower() else ",")
        names, marks = [row[0] for row in rows], [int(row[1]) for row in rows]
    except (ValueError, IndexError, csv.Error):
        return True
    safe = [unsafe(name) for name in names]
    return settings["labels_sha256"] not in (_sum_of(names, marks), _sum_of(safe, marks))


def compare(earlier: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Print that the labels are the same as those of the earlier run, or raise."""
    if earlier["labels_sha256"] != settings["labels_sha256"]:
        raise ValueError("repeated, but the labels differ from those of the earlier run")
    if earlier["edited"]:
        raise ValueError(
            f"repeated, and the run gives the same labels, but {earlier['labels']} is not as the "
            "run wrote it"
        )
    print("repeated: all labels are the same as before")
