"""`polyspan demo`: GRMSC and two baselines on bundled digits."""

import argparse
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polyspan.cli.progress import follow
from polyspan.progress import progress_bar

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from rich.console import Console

    from polyspan.datasets import Dataset

DEFAULT_FIGURE = Path("polyspan-demo.png")
SHOWN = "GRMSC, sparse affinity"  # the row that the figure shows
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
        help="cluster bundled digits and draw a figure",
        description="Cluster handwritten digits, three views of each, with GRMSC (with the paper's "
        "dense affinity\nand with a sparse one) and with two baselines: k-means and spectral "
        "clustering of the\nconcatenated features. Prints their scores and draws what GRMSC found."
        "\n\nThe digits come with scikit-learn; nothing is downloaded. It takes a few seconds.",
        epilog="examples:\n"
        "  polyspan demo\n"
        "  polyspan demo --samples 300 --seed 7 --out digits.svg\n"
        "  polyspan demo --no-figure\n\n"
        'The figure needs matplotlib: pip install "polyspan[plot]". Without it the table is\n'
        "still printed, and the exit code is 1.",
    )
    parser.add_argument(
        "--samples",
        type=int,
        default=600,
        metavar="N",
        help="number of digits, from 20 to 1797 (default: 600)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed for the digits and the methods (default: 0)",
    )
    figure = parser.add_mutually_exclusive_group()
    figure.add_argument(
        "--out",
        metavar="FILE",
        help="file for the figure, .png, .svg or .pdf (default: polyspan-demo.png, which is "
        "replaced if it exists; any other file only with --force)",
    )
    figure.add_argument("--no-figure", action="store_true", help="print only the table")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.set_defaults(run=run, usage_error=parser.error)


def run(args: argparse.Namespace) -> int:
    """Check the numbers given and run the demonstration."""
    if not 20 <= args.samples <= 1797:
        args.usage_error(f"--samples must be from 20 to 1797, got {args.samples}")
    if not 0 <= args.seed < 2**32:
        args.usage_error(f"--seed must be from 0 to 2**32 - 1, got {args.seed}")
    out = None if args.no_figure else args.out or DEFAULT_FIGURE
    run_demo(args.samples, args.seed, out, overwrite=args.force)
    return 0


class Row(NamedTuple):
    """One method of the demonstration, fitted and scored."""

    model: Any
    scores: dict[str, float]
    seconds: float


def run_demo(
    n_samples: int = 600,
    seed: int = 0,
    out: str | Path | None = DEFAULT_FIGURE,
    *,
    overwrite: bool = False,
    console: "Console | None" = None,
) -> dict[str, Row]:
    """Cluster bundled digits with four methods, print their scores and draw a figure.

    Parameters
    ----------
    n_samples : int, default=600
        How many of the 1797 digits to use, the same number of each.
    seed : int, default=0
        Selects the digits and seeds every method.
    out : path or None
        File for the figure (.png, .svg, .pdf); None draws none.
    overwrite : bool, default=False
        Replace ``out`` if it exists; the default file is always replaced.
    console : rich Console, optional
        Where the table goes.

    Returns
    -------
    dict of str to Row
        The methods, by their names in the table.

    Raises
    ------
    ImportError
        matplotlib is missing; raised after the table is printed.

    Examples
    --------
    >>> from polyspan.cli.demo import run_demo
    >>> rows = run_demo(n_samples=100, out=None)
    Dataset('digits': 100 samples, 3 views (pixels 64, fourier 40, gradients 32), 10 clusters)
    ...
    >>> list(rows)
    ['GRMSC', 'GRMSC, sparse affinity', 'ConcatKMeans', 'ConcatSpectral']
    """
    from rich.console import Console

    from polyspan.datasets import load_digits_views
    from polyspan.figures import check_figure_path, save_figure

    console = Console() if console is None else console
    if out is not None:
        out = check_figure_path(out)
        if out.exists() and not overwrite and out != DEFAULT_FIGURE:
            raise FileExistsError(f"{out} exists: use --force to replace it, or name another file")
    data = load_digits_views(n_samples, random_state=seed)
    console.print(repr(data), highlight=False, soft_wrap=True)
    rows = fit_all(data, seed)
    for part in ("", score_table(rows, wide=console.width >= 110), "", explanation(rows)):
        console.print(part, highlight=False)
    if out is not None:
        save_figure(draw(data, rows[SHOWN].model), out)
        console.print(f"\nFigure: {out}", highlight=False, soft_wrap=True)
    return rows


def fit_all(data: "Dataset", seed: int) -> dict[str, Row]:
    """Fit and score the four methods; a progress bar follows them on a terminal."""
    from threadpoolctl import threadpool_limits

    from polyspan import GRMSC, ConcatKMeans, ConcatSpectral, watching
    from polyspan.metrics import clustering_scores

    common: dict[str, Any] = {"n_clusters": data.n_clusters, "random_state": seed}
    models = {
        "GRMSC": GRMSC(**common),
        SHOWN: GRMSC(**common, affinity="sparse"),
        "ConcatKMeans": ConcatKMeans(**common),
        "ConcatSpectral": ConcatSpectral(**common),
    }
    rows = {}
    # One thread: two were ten times slower when a core was busy, and gain little when it is free.
    with threadpool_limits(1), progress_bar() as bar:
        for name, model in models.items():
            task = bar.add_task(name, total=None, words="")
            started = time.perf_counter()
            with watching(partial(follow, bar, task)):
                model.fit(data.views)
            seconds = time.perf_counter() - started
            rows[name] = Row(model, clustering_scores(data.labels, model.labels_), seconds)
            bar.update(task, total=1, completed=1, words="done")
    return rows


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
        table.add_row(method, *cells, f"{row.seconds:.1f} s")
    return table


def explanation(rows: Mapping[str, Row]) -> str:
    """What was run and how to read the table, in a few lines."""
    model = rows["GRMSC"].model
    k = min(30, len(model.labels_) - 1)  # the meaning of n_neighbors=None
    names = ("lam1", "lam2", "alpha", "orientation", "regularizer", "affinity", "scale")
    settings = ", ".join(f"{name}={getattr(model, name)!r}" for name in names)
    return (
        "Bold is best. Higher is better, except for entropy (bits of class not determined by the "
        "cluster), where lower is better. Times are for one thread.\n"
        "All settings are defaults; nothing was tuned to these data. This is one seed, so small "
        "differences mean little.\n"
        f"GRMSC: n_neighbors={k}, {settings}; {model.n_iter_} iterations.\n"
        f"GRMSC, sparse affinity: the same, with affinity='sparse', which keeps the "
        f"{model.n_kept} largest entries in each column of |Z|."
    )


def draw(data: "Dataset", model: Any) -> "Figure":
    """The figure: digits by cluster, the affinity sorted by cluster, and the convergence."""
    from polyspan.figures import new_figure, plot_affinity, plot_convergence, plot_image_clusters

    figure = new_figure(12.6, 4.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.2, 1.0, 1.0])
    images = data.views[0].reshape(-1, 8, 8)
    minority = not_of_the_majority(data.labels, model.labels_)
    plot_image_clusters(images, model.labels_, wrong=minority, ax=left)
    left.set_title("clusters found (framed: not the cluster's majority)", loc="left", size=10)
    plot_affinity(model.affinity_matrix_, model.labels_, ax=middle)
    plot_convergence(model.history_, tol=model.tol, ax=right)
    right.set_box_aspect(0.95)
    for ax in (left, middle, right):
        ax.set_anchor("N")  # aligns the titles
    return figure


def not_of_the_majority(labels: "np.ndarray", clusters: "np.ndarray") -> "np.ndarray":
    """Whether each sample's class differs from the most frequent one in its cluster.

    Examples
    --------
    >>> import numpy as np
    >>> not_of_the_majority(np.array([3, 3, 5, 5]), np.array([0, 0, 0, 1]))
    array([False, False,  True, False])
    """
    import numpy as np

    majority = {c: np.bincount(labels[clusters == c]).argmax() for c in np.unique(clusters)}
    return labels != np.array([majority[c] for c in clusters])
