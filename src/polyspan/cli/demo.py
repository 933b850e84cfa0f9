"""Cluster bundled data, and see the report.

Clusters breast tumors, three views of each, by the consensus of many methods: no labels, no
tuning. Prints the verdict, and scores beside plain methods; writes the report and a picture of
it, and opens the report in your browser.

The data come with scikit-learn; nothing is downloaded. It takes some seconds.

Some examples:
  polyspan demo
  polyspan demo --samples 569 --seed 7 --out tumors.svg
  polyspan demo --no-files

The browser is opened only from a terminal on a screen; --no-open leaves it closed.
"""

# Why these data: the demonstration shall show the main job, need no download and no permission, and
# the choice of scaling shall matter, as it does in most tables. Of the data that come with
# scikit-learn, the digits are all of one kind, and plain spectral clustering is the better choice
# there; wine has no views of its own; the breast tumors have three. Multi-omics data would be
# nearer to what polyspan is for, but those that are small come with R packages under the GPL, which
# must not be bundled here: `polyspan data fetch nutrimouse` downloads them.

import argparse
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyspan.cli.known import matched
from polyspan.cli.messages import found_text
from polyspan.cli.options import add_options, check_options, option, read_options, within
from polyspan.cli.parser import add_command
from polyspan.cli.request import Request, seed_limits
from polyspan.cli.work import Found, cluster

if TYPE_CHECKING:
    from polyspan.datasets import Dataset

DEFAULT_PICTURE = Path("polyspan-demo.png")
CONSENSUS = "ConsensusClusterer"  # the row of the table whose report is written
ABOUT = (
    "Breast tumors: ten measures of the cell nuclei in a biopsy, as mean, standard error and "
    "worst. The diagnosis is only used for the scores."
)
HEADINGS = {"f_score": "F", "avg_entropy": "entropy", "rand_index": "Rand"}  # others: their names


@dataclass(frozen=True)
class Shown:
    """What is shown."""

    samples: int = option(
        400,
        "number of tumors, from 40 to 569; all take twice as long",
        "N",
        check=within(40, 569, "from 40 to 569"),
    )
    seed: int = option(0, "seed for the tumors and the methods", "N", check=seed_limits)
    out: str | None = option(
        None,
        "file for the picture, .png, .svg or .pdf; the report is written beside it, as .html "
        "(default: polyspan-demo.png, which is replaced if it exists; others only with --force)",
        "FILE",
    )
    no_files: bool = option(False, "print only, write no files")
    no_open: bool = option(False, "do not open the report")
    force: bool = option(False, "replace files that exist")


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    add_options(add_command(subparsers, "demo", __doc__, run), Shown)


def run(args: argparse.Namespace) -> int:
    """Check the options and run the demonstration."""
    asked = read_options(Shown, args)
    try:
        check_options(asked)
    except ValueError as error:
        args.usage_error(str(error))
    if asked.no_files and asked.out:
        args.usage_error("argument --no-files: not allowed with argument --out")
    out = None if asked.no_files else asked.out or DEFAULT_PICTURE
    run_demo(asked.samples, asked.seed, out, overwrite=asked.force, show=not asked.no_open)
    return 0


class Row(NamedTuple):
    """One method of the demonstration, fitted and scored."""

    model: Any
    scores: dict[str, float]
    seconds: float


def run_demo(
    n_samples: int = 400,
    seed: int = 0,
    out: str | Path | None = DEFAULT_PICTURE,
    *,
    overwrite: bool = False,
    show: bool = False,
) -> dict[str, Row]:
    """Cluster bundled data by consensus, print the verdict and the scores, write the report.

    Parameters
    ----------
    n_samples : int, default=400
        How many of the 569 tumors to use.
    seed : int, default=0
        Selects the tumors and seeds every method.
    out : path or None
        File for the picture (.png, .svg, .pdf); the report is beside it, as .html. None writes
        neither.
    overwrite : bool, default=False
        Replace files that exist; the default ones are always replaced.
    show : bool, default=False
        Open the report in a browser, where there is a screen.

    Returns
    -------
    dict of str to Row
        The methods, by their names in the table.

    Examples
    --------
    >>> from polyspan.cli.demo import run_demo
    >>> rows = run_demo(n_samples=60, out=None)
    Dataset('wdbc': 60 samples, 3 views (mean 10, error 10, worst 10), 2 clusters)
    ...
    >>> list(rows)
    ['ConsensusClusterer', 'ConcatSpectral', 'ConcatSpectral, standard', 'ConcatKMeans']
    """
    from rich.console import Console
    from rich.text import Text

    from polyspan.datasets import load_nuclei_views

    console = Console()
    if out is not None:
        out = _check_places(Path(out), overwrite)
    data = load_nuclei_views(n_samples, random_state=seed)
    console.print(repr(data), highlight=False, soft_wrap=True)
    console.print(ABOUT, highlight=False)
    found, rows = fit_all(data, seed)
    table = score_table(rows, wide=console.width >= 110)
    verdict = found_text(found, width=min(console.width, 100))
    for part in ("", Text(verdict), "", table, "", explanation()):
        console.print(part, highlight=False)
    if out is not None:
        report = _write(out, data, found, f"polyspan demo --samples {n_samples} --seed {seed}")
        console.print(f"\nReport: {report}\nPicture: {out}", highlight=False, soft_wrap=True)
        if show and has_screen():
            import webbrowser

            webbrowser.open(report.absolute().as_uri())
    return rows


def _check_places(out: Path, overwrite: bool) -> Path:
    """Return the file for the picture if it, and the report beside it, can be written."""
    from polyspan.figures import check_figure_path

    check_figure_path(out)
    for path in (out, out.with_suffix(".html")):
        if path.exists() and not overwrite and out != DEFAULT_PICTURE:
            raise FileExistsError(f"{path} exists: use --force to replace it, or name another file")
    return out


def fit_all(data: "Dataset", seed: int) -> tuple[Found, dict[str, Row]]:
    """Fit and score the consensus and three plain methods; a progress bar follows on a terminal."""
    from threadpoolctl import threadpool_limits

    from polyspan import ConcatKMeans, ConcatSpectral, ConsensusClusterer
    from polyspan.metrics import clustering_scores

    common: dict[str, Any] = {"n_clusters": data.n_clusters, "random_state": seed}
    plain = {
        "ConcatSpectral": ConcatSpectral(**common),
        "ConcatSpectral, standard": ConcatSpectral(**common, scale="standard"),
        "ConcatKMeans": ConcatKMeans(**common),
    }
    # One thread: two were ten times slower when a core was busy, and gain little when it is free.
    with threadpool_limits(1):
        request = Request(files=[], clusters=data.n_clusters, seed=seed, dataset=data.name)
        found = cluster(request, matched(data), ConsensusClusterer(**common))
        scores = clustering_scores(data.labels, found.labels)
        rows = {CONSENSUS: Row(found.estimator, scores, found.seconds)}
        for name, model in plain.items():
            started = time.perf_counter()
            scores = clustering_scores(data.labels, model.fit(data.views).labels_)
            rows[name] = Row(model, scores, time.perf_counter() - started)
    return found, rows


def score_table(rows: Mapping[str, Row], wide: bool = False) -> Any:
    """The scores as a table with the best of each in bold; all nine if there is room."""
    from rich import box
    from rich.table import Table

    from polyspan.metrics import PAPER_SCORES, SCORES

    names = SCORES if wide else PAPER_SCORES
    best = {}
    for name in names:
        choose = min if name == "avg_entropy" else max  # entropy: lower is better
        best[name] = choose(round(row.scores[name], 3) for row in rows.values())
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for name in names:
        heading = HEADINGS.get(name, name.upper() if len(name) == 3 else name)
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    for method, row in rows.items():
        scores = [round(row.scores[name], 3) for name in names]
        cells = [
            f"[bold green]{score:.3f}[/]" if score == best[name] else f"{score:.3f}"
            for name, score in zip(names, scores, strict=True)
        ]
        table.add_row(method, *cells, f"{row.seconds:.{int(row.seconds < 10)}f} s")
    return table


def explanation() -> str:
    """How to read the table, in a few lines."""
    return (
        "Scores against the diagnosis; bold is best. Higher is better, except for entropy (bits of "
        "class not determined by the cluster). Times are for one thread.\n"
        "The number of clusters was given, as to all methods; nothing was tuned. The consensus "
        "chose the scaling of every view from its values. Plain ConcatSpectral is as good once it "
        "is told to standardize the features (scale='standard'), and far quicker; without that it "
        "is not. This is one seed, so small differences mean little."
    )


def _write(out: Path, data: "Dataset", found: Found, command: str) -> Path:
    """Write the report and the picture; returns the report."""
    from polyspan.report import write_report

    return write_report(
        out.with_suffix(".html"),
        views=data.views,
        view_names=data.view_names,
        sample_ids=range(1, len(data.labels) + 1),
        estimator=found.estimator,
        feature_names=data.columns,
        known=data.extra,
        title="Breast tumors, by their cell nuclei",
        notes=found.complaints,
        command=command,
        picture=out,
        force=True,  # what exists was checked before the fit
    )


def has_screen() -> bool:
    """Whether a browser would open where the user sees it: a terminal, on this machine's screen."""
    if not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ or "CI" in os.environ:
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
