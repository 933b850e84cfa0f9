"""Options of `polyspan fit` for what is known of the samples, and for a published data set.

What is known is compared with the clusters, in the report; it never reaches the clustering.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyspan.runtime.messages import unknown_name
from polyspan.runtime.optional import require

if TYPE_CHECKING:
    from polyspan.datasets import Dataset, MatchedViews


class Beside(NamedTuple):
    """What a report shows besides the clustering, as asked for."""

    annotate: str | Path | None = None
    survival: str | None = None  # two columns, "time,event"
    figures: str | Path | None = None


NOTHING = Beside()


def add_known_options(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    parser.add_argument(
        "--dataset",
        metavar="NAME",
        help="cluster a published data set instead of files (`polyspan data list`); what it knows "
        "of its samples is compared with the clusters in the report",
    )
    parser.add_argument(
        "--annotate",
        metavar="FILE",
        help="a table of what is known of the samples (subtypes, ages, ...), or .h5ad or .h5mu for "
        "its obs, matched by id: the report compares the clusters with it; it is never used for "
        "the clustering",
    )
    parser.add_argument(
        "--survival",
        metavar="TIME,EVENT",
        help="compare the survival of the clusters (needs lifelines): two columns of --annotate or "
        "of the data set; an event is 1, or dead",
    )
    parser.add_argument(
        "--figures",
        metavar="FOLDER",
        help="with --report: also write its figures (.svg, .png, .pdf) and tables (.csv, such as "
        "markers.csv) to this folder",
    )


def beside(args: argparse.Namespace) -> Beside:
    """What the arguments say; a usage error if it is shown nowhere."""
    for name in ("annotate", "survival", "figures"):
        if getattr(args, name) is not None and args.report is None:
            args.usage_error(f"--{name} is shown in the report: name one with --report FILE.html")
    return Beside(args.annotate, args.survival, args.figures)


def read_dataset(name: str) -> "MatchedViews":
    """A published data set as views of a file would be."""
    from polyspan.datasets import load_dataset

    return matched(load_dataset(name))


def matched(data: "Dataset") -> "MatchedViews":
    """A data set as views of a file would be."""
    from polyspan.datasets import MatchedViews

    ids = data.extra.get("id")
    return MatchedViews(
        data.views, data.view_names, [data.name] * len(data.views),
        [view.shape[0] for view in data.views], None if ids is None else [str(x) for x in ids],
        "" if ids is None else "id", "order" if ids is None else "id",
        columns=data.columns,
    )  # fmt: skip


def read_beside(asked: Beside, data: "MatchedViews", dataset: str | None, force: bool) -> Any:
    """What the report takes besides, checked before any work: columns, survival, folder."""
    from polyspan.explain import lifetimes, read_known
    from polyspan.report.downloads import check_folder

    n = data.views[0].shape[0]
    columns, notes = _of_dataset(dataset)
    if asked.annotate is not None:
        found = read_known(asked.annotate, data.ids, n)
        columns, notes = {**columns, **found.columns}, found.notes
    given: dict[str, Any] = {"known": columns, "feature_names": data.columns or None}
    given["title"] = dataset or ", ".join(data.view_names)
    if asked.survival is not None:
        names = tuple(one.strip() for one in asked.survival.split(","))
        if len(names) != 2:
            raise ValueError(
                f"--survival takes two columns, such as time,event; got {asked.survival!r}"
            )
        if not columns:
            raise ValueError("--survival names columns of --annotate: give that file, too")
        for name in names:
            if name not in columns:
                raise ValueError(unknown_name("column for --survival", name, list(columns)))
        try:
            lifetimes(columns[names[0]], columns[names[1]], n)
        except ValueError as error:
            raise ValueError(f"--survival {asked.survival}: {error}") from error
        require("lifelines", "survival", "--survival")
        given["survival"] = names
    if asked.figures is not None:
        given["figures"] = check_folder(asked.figures, force)
    return given, notes


def _of_dataset(name: str | None) -> tuple[dict[str, Any], list[str]]:
    from polyspan.datasets import load_dataset

    if name is None:
        return {}, []
    return {k: v for k, v in load_dataset(name).extra.items() if k != "id"}, []
