"""What writes the files of `polyspan fit`."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyspan.cli.annotated import annotated_source, is_annotated, write_annotated
from polyspan.cli.files import Targets, sample_names, write_json, write_labels, write_model
from polyspan.cli.messages import repeat_command
from polyspan.cli.work import Found

if TYPE_CHECKING:
    from polyspan.datasets import MatchedViews


def writers_of(
    targets: Targets,
    files: Sequence[str | Path],
    data: "MatchedViews",
    found: Found,
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
            repeat=repeat_command(targets),
            notes=[*data.notes, *found.complaints],
            force=True,  # what exists was checked before the fit
            **more,
        )
    return writers
