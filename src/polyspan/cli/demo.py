"""`polyspan demo`: the consensus on tumors that come with scikit-learn, and its report.

Why these data: the demonstration shall show the main job, need no download and no permission, and
the choice of scaling shall matter, as it does in most tables. Of the data that come with
scikit-learn, the digits are all of one kind, and plain spectral clustering is the better choice
there; wine has no views of its own; the breast tumors have three. Multi-omics data would be
nearer to what polyspan is for, but those that are small come with R packages under the GPL, which
must not be bundled here: ``polyspan data fetch nutrimouse`` downloads them.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyspan.cli.known import matched
from polyspan.cli.messages import found_text
from polyspan.cli.request import Request
from polyspan.cli.work import Found, cluster

if TYPE_CHECKING:
    from rich.console import Console

    from polyspan.datasets import Dataset

DEFAULT_PICTURE = Path("polyspan-demo.png")
CONSENSUS = "ConsensusClusterer"  # the row of the table whose report is written
ABOUT = (
    "Breast tumors: ten measures of the cell nuclei in a biopsy, as mean, standard error and "
    "worst. The diagnosis is only used for the scores."
)
HEADINGS = {
    "nmi": "NMI",
    "acc": "ACC",
    "f_score": "F",
    "avg_entropy": "entropy",
    "precision": "precision",
    "rand_index": "Rand",
    "recall": "recall",
    "purity": "purity",
    "ari": "ARI",
}


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "demo",
        help="cluster bundled data, and see the report",
        description="Cluster breast tumors, three views of each, by the consensus of many "
        "methods: no labels,\nno tuning. Prints the verdict, and scores beside plain methods; "
        "writes the report and\na picture of it, and opens the report in your browser.\n\n"
        "The data come with scikit-learn; nothing is downloaded. It takes about 20 seconds.",
        epilog="examples:\n"
        "  polyspan demo\n"
        "  polyspan demo --samples 569 --seed 7 --out tumors.svg\n"
        "  polyspan demo --no-files\n\n"
        "The browser is opened only from a terminal on a screen; --no-open leaves it closed.",
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=400,
        metavar="N",
        help="number of tumors, from 40 to 569 (default: 400; all take twice as long)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed for the tumors and the methods (default: 0)",
    )
    files = parser.add_mutually_exclusive_group()
    files.add_argument(
        "--out",
        metavar="FILE",
        help="file for the picture, .png, .svg or .pdf; the report is written beside it, as .html "
        "(default: polyspan-demo.png, which is replaced if it exists; others only with --force)",
    )
    files.add_argument("--no-files", action="store_true", help="print only, write no files")
    parser.add_argument("--no-open", action="store_true", help="do not open the report")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.set_defaults(run=run, usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Check the numbers given and run the demonstration."""
    if not 40 <= args.samples <= 569:
        args.usage_error(f"--samples must be from 40 to 569, got {args.samples}")
    if not 0 <= args.seed < 2**32:
        args.usage_error(f"--seed must be from 0 to 2**32 - 1, got {args.seed}")
    out = None if args.no_files else args.out or DEFAULT_PICTURE
    run_demo(args.samples, args.seed, out, overwrite=args.force, show=not args.no_open)
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
    console: "Console | None" = None,
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
    console : rich Console, optional
        Where the text goes.

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

    console = Console() if console is None else console
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
        table.add_column(HEADINGS[name], justify="right", no_wrap=True)
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
