"""What is known of the samples of `polyspan fit`, and published data sets as its views.

What is known is compared with the clusters, in the report; it never reaches the clustering.
"""

from typing import TYPE_CHECKING, Any

from polyspan.cli.request import Outputs
from polyspan.runtime.messages import unknown_name
from polyspan.runtime.optional import require

if TYPE_CHECKING:
    from polyspan.datasets import Dataset, MatchedViews


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


def read_beside(asked: Outputs, data: "MatchedViews", dataset: str | None) -> Any:
    """What the report takes besides, checked before any work: columns, survival, folder."""
    from polyspan.explain import lifetimes, read_known
    from polyspan.report.write import check_folder, date_words

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
    date_words()  # which the environment may have set wrong
    if asked.figures is not None:
        given["figures"] = check_folder(asked.figures, asked.force)
    return given, notes


def _of_dataset(name: str | None) -> tuple[dict[str, Any], list[str]]:
    from polyspan.datasets import load_dataset

    if name is None:
        return {}, []
    return {k: v for k, v in load_dataset(name).extra.items() if k != "id"}, []
