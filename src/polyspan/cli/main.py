"""The command `polyspan`.

Each command is two functions: `_add_<command>` declares its arguments, `_cmd_<command>` runs it and
returns the exit code. 0: well; 1: something failed; 2: asked for something that does not exist.
What a command needs is imported when it runs: `polyspan --help` stays quick.
"""

import argparse
import difflib
import re
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from polyspan.datasets.registry import Entry

Subparsers = Any  # argparse keeps the type of add_subparsers to itself


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Examples
    --------
    >>> main(["data", "check", "digits"])
    digits  well: built in, 1797 samples, 3 views, 10 classes
    0
    """
    from polyspan.datasets.registry import UnknownDatasetError

    parser = _parser()
    args, rest = parser.parse_known_args(argv)
    # argparse takes files only up to the first option; here they may come after it, too.
    if rest and hasattr(args, "files") and not any(word.startswith("-") for word in rest):
        args.files += rest
    elif rest:
        getattr(args, "usage_error", parser.error)(f"unrecognized arguments: {' '.join(rest)}")
    args.command = shlex.join(["polyspan", *(sys.argv[1:] if argv is None else argv)])
    try:
        return args.run(args)
    except UnknownDatasetError as error:
        return _fail(error, 2)
    except (ValueError, OSError, ImportError) as error:
        return _fail(error, 1)
    except KeyboardInterrupt as error:
        return _fail(error if error.args else "interrupted", 130)


def _parser() -> argparse.ArgumentParser:
    from polyspan import __version__

    parser = _Parser(
        "polyspan",
        description="Multi-view subspace clustering: several descriptions of the same samples in, "
        "one clustering out.",
        epilog="examples:\n"
        "  polyspan demo                  see it work, in under a minute\n"
        "  polyspan fit a.csv b.csv       cluster your own files\n"
        "  polyspan data list             which data sets there are, and which are here\n"
        "  polyspan data fetch ngs        download one\n"
        "  polyspan bench run smoke.toml  compare methods; `bench report` makes the tables\n"
        "  polyspan info                  versions, machine, folders, methods\n\n"
        "`polyspan COMMAND --help` says more about a command.",
    )
    parser.add_argument("--version", action="version", version=f"polyspan {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_demo(subparsers)
    _add_fit(subparsers)
    _add_data(subparsers)
    _add_bench(subparsers)
    _add_info(subparsers)
    return parser


class _Parser(argparse.ArgumentParser):
    """Keeps the line breaks of descriptions and examples; subcommands inherit it."""

    def __init__(self, prog: str | None = None, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(prog, **options)

    def error(self, message: str) -> NoReturn:
        """Answer a wrong name with the known ones, anything else as argparse does."""
        wrong = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if not wrong:
            super().error(message)
        known = re.findall(r"[\w-]+", wrong[2])
        close = difflib.get_close_matches(wrong[1], known, n=1, cutoff=0.5)
        hint = f", did you mean {close[0]!r}?" if close else "."
        option = re.match(r"argument (--[\w-]+)", message)
        kind = "command" if self.prog == "polyspan" else "action"
        kind = f"choice of {option[1]}" if option else kind
        self.exit(
            2, f"{self.prog}: no {kind} is called {wrong[1]!r}{hint} Known: {', '.join(known)}\n"
        )


def _fail(error: object, code: int) -> int:
    print(f"polyspan: {error}", file=sys.stderr)
    return code


# --- demo ---


def _add_demo(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "demo",
        help="cluster bundled digits and draw a figure",
        description="Cluster handwritten digits, three views of each, by GRMSC (with the paper's "
        "dense affinity\nand with a sparse one) and by two baselines: k-means and spectral "
        "clustering of all features\nside by side. Prints their scores and draws what GRMSC found."
        "\n\nThe digits come with scikit-learn; nothing is downloaded. It takes some seconds.",
        epilog="examples:\n"
        "  polyspan demo\n"
        "  polyspan demo --samples 300 --seed 7 --out digits.svg\n"
        "  polyspan demo --no-figure\n\n"
        'The figure needs matplotlib: pip install "polyspan[plot]". Without it the table is\n'
        "printed all the same, and the exit code is 1.",
    )
    parser.add_argument(
        "--samples", type=int, default=600, metavar="N", help="digits, 20 to 1797 (default: 600)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of digits and methods (default: 0)"
    )
    figure = parser.add_mutually_exclusive_group()
    figure.add_argument(
        "--out",
        metavar="FILE",
        help="the figure, .png, .svg or .pdf (default: polyspan-demo.png, which is replaced when "
        "it exists; any other file is not, unless --force)",
    )
    figure.add_argument("--no-figure", action="store_true", help="the table only")
    parser.add_argument("--force", action="store_true", help="replace FILE when it exists")
    parser.set_defaults(run=_cmd_demo, usage_error=parser.error)


def _cmd_demo(args: argparse.Namespace) -> int:
    if not 20 <= args.samples <= 1797:
        args.usage_error(f"--samples must be from 20 to 1797, got {args.samples}")
    if not 0 <= args.seed < 2**32:
        args.usage_error(f"--seed must be from 0 to 2**32 - 1, got {args.seed}")
    from polyspan.cli.demo import DEFAULT_FIGURE, run_demo

    out = None if args.no_figure else args.out or DEFAULT_FIGURE
    run_demo(args.samples, args.seed, out, overwrite=args.force)
    return 0


# --- fit ---


def _add_fit(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "fit",
        help="cluster the samples of your own files",
        usage="polyspan fit FILE [FILE ...] [options]\n"
        "       polyspan fit --repeat labels.json [--out FILE] [--report FILE] [--force]",
        description="Cluster the samples of your own files: one view or several each, samples in "
        "rows.\n\n"
        "  .csv .tsv .parquet      a table; .csv.gz and .tsv.gz, too\n"
        "  .npy .mtx .mtx.gz       a matrix (NumPy, MatrixMarket)\n"
        "  .npz .mat               every matrix is a view\n"
        "  .h5ad .h5mu             AnnData, and MuData: every modality is a view\n\n"
        "Samples are matched by id if every file has ids: the column that --id names, or the "
        "first\ncolumn if it is called id, sample, patient_id, name, ... or holds words that are "
        "all\ndifferent, or the obs_names. Otherwise row 1 belongs to row 1, and so on.\n\n"
        "Without --method the clusters are the consensus of many settings, chosen without labels.",
        epilog="examples:\n"
        "  polyspan fit rna.csv protein.csv --report report.html\n"
        "  polyspan fit rna.csv protein.parquet --clusters 5 --missing drop --out mine.csv\n"
        "  polyspan fit cells.h5mu --clusters 8 --method grmsc --set lam1=10\n"
        "  polyspan fit rna.csv protein.csv --budget 600 --device cuda\n"
        "  polyspan fit --repeat labels.json --out again.csv\n\n"
        "Beside the labels (sample, cluster, certainty where it is known) stands a .json file with "
        "all\nsettings. Exit codes: 0 well, 1 the fit failed, 2 the request or a file is wrong. "
        "If\nanything goes wrong, nothing is written.",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="one view or several each")
    parser.add_argument(
        "--clusters", type=_clusters, metavar="N", help="how many, or auto (default: auto)"
    )
    parser.add_argument("--method", metavar="NAME", help="one of `polyspan info`, such as grmsc")
    parser.add_argument(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        help="a parameter of the method; may be repeated",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of all that is random (default: 0)")
    parser.add_argument(
        "--id", action="append", metavar="COLUMN", help="the id; repeat where files differ"
    )
    parser.add_argument(
        "--drop", action="append", metavar="COLUMN", help="leave it out; may be repeated"
    )
    parser.add_argument(
        "--missing",
        choices=["fail", "drop", "keep"],
        help="samples that lack a view: stop and say which (default), leave them out, or keep them "
        "(needs --clusters, and a --method that can)",
    )
    parser.add_argument(
        "--budget",
        type=float,
        metavar="SECONDS",
        help="start no new setting after so long; without --method. The labels then depend on the "
        "speed of the machine (default: run all)",
    )
    parser.add_argument(
        "--device", metavar="D", help="where methods that can compute elsewhere do, such as cuda"
    )
    parser.add_argument(
        "--header",
        choices=["yes", "no"],
        help="whether the first row of .csv and .tsv holds names (default: look)",
    )
    parser.add_argument(
        "--out", metavar="FILE", help="the labels, .csv or .tsv (default: labels.csv)"
    )
    parser.add_argument("--report", metavar="FILE.html", help="write a report, too")
    parser.add_argument("--force", action="store_true", help="replace these files if they exist")
    parser.add_argument(
        "--repeat",
        metavar="LABELS.json",
        help="repeat the run that wrote these settings, into LABELS-again.csv unless --out says "
        "otherwise, and say whether the labels are the same; --force replaces the files themselves",
    )
    parser.set_defaults(run=_cmd_fit, usage_error=parser.error)


def _clusters(text: str) -> int | str:
    if text.lower() == "auto":
        return "auto"
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number or auto, got {text!r}")
    return int(text)


def _cmd_fit(args: argparse.Namespace) -> int:
    chosen = ["clusters", "method", "set", "seed", "id", "drop", "missing", "header"]
    chosen += ["budget", "device"]
    given = [name for name in chosen if getattr(args, name) is not None]
    if args.repeat and (args.files or given):
        extra = f"--{given[0]}" if given else "files"
        args.usage_error(f"--repeat takes everything from {args.repeat}: leave {extra} out")
    if not args.repeat and not args.files:
        args.usage_error("name the files to cluster")
    from polyspan.cli.fit import InputError, fit_files, parse_settings, repeat

    written = {"report": args.report, "force": args.force, "command": args.command}
    try:
        if args.repeat:
            repeat(args.repeat, out=args.out, **written)
        else:
            fit_files(
                args.files,
                clusters=None if args.clusters == "auto" else args.clusters,
                method=args.method,
                params=parse_settings(args.set or []),
                seed=args.seed or 0,
                id=args.id or [],
                drop=args.drop or [],
                missing=args.missing or "fail",
                header=None if args.header is None else args.header == "yes",
                budget=args.budget,
                device=args.device,
                out=args.out or "labels.csv",
                **written,
            )
    except InputError as error:
        return _fail(error, 2)
    except (MemoryError, RuntimeError, ArithmeticError) as error:
        return _fail(error or type(error).__name__, 1)
    return 0


# --- info ---


def _add_info(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "info",
        help="versions, machine, data folders and methods",
        description="Print what a bug report should contain: versions, optional packages, threads, "
        "memory,\nwhere data are looked for, and the methods there are.",
        epilog="examples:\n  polyspan info",
    )
    parser.set_defaults(run=_cmd_info)


def _cmd_info(args: argparse.Namespace) -> int:
    from polyspan.cli.info import describe

    for heading, pairs in describe().items():
        print(heading)
        width = max(len(name) for name, _ in pairs)
        for name, value in pairs:
            print(f"  {name:{width}}  {value}")
    return 0


# --- bench ---


def _add_bench(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "bench",
        help="compare methods on data sets, and make tables of the results",
        description="Compare methods: a protocol says which methods, data sets, parameters and "
        "seeds;\n`run` makes a row for each job in a store, `report` makes tables from the rows.",
        epilog="examples:\n"
        "  polyspan bench run benchmarks/smoke.toml\n"
        "  polyspan bench report smoke.jsonl",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    run = actions.add_parser(
        "run",
        help="run a protocol, or what is left of it",
        description="Run the jobs of a protocol (methods x data sets x parameter grid x seeds), "
        "each in a\nworker process, and append a row for each to the store. Jobs that have a row "
        "are not run\nagain: after an interruption, even a kill -9, the same command goes on where "
        "it stopped.\n\nOnly the fit is timed. A job that fails or runs out of time is a row with "
        "its reason, and\nthe exit code is 1 at the end. Everything that can be checked before is: "
        "names,\nparameters, and whether the data are here.",
        epilog="examples:\n"
        "  polyspan bench run benchmarks/smoke.toml\n"
        "  polyspan bench run benchmarks/paper.toml --dataset ngs --method GRMSC --jobs 2\n\n"
        "How a protocol is written: the head of polyspan/bench/protocol.py, or\n"
        "`python -c 'import polyspan.bench.protocol as p; print(p.__doc__)'`.",
    )
    run.add_argument("protocol", metavar="PROTOCOL.toml")
    run.add_argument(
        "--method", action="append", default=[], metavar="M", help="only this one; may be repeated"
    )
    run.add_argument(
        "--dataset", action="append", default=[], metavar="D", help="only this one; may be repeated"
    )
    run.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="jobs at the same time (default and most: one per core); the cores are shared among "
        "them",
    )
    run.add_argument(
        "--store",
        metavar="FILE.jsonl",
        help="where the rows go (default: the protocol's file name with .jsonl, in this folder)",
    )
    run.add_argument("--retry", action="store_true", help="run again what failed or timed out")
    run.add_argument(
        "--device", metavar="D", help="where methods that can compute elsewhere do, such as cuda"
    )
    run.set_defaults(run=_cmd_bench_run, usage_error=run.error)

    report = actions.add_parser(
        "report",
        help="make tables of a store",
        description="Make tables of a store: mean(std) of the six scores over the seeds with the "
        "best in bold,\nthe paper's figures and the difference, ranks over data sets, chosen "
        "settings, failed jobs.\nMethods tuned on the labels, at their defaults, and chosen "
        "without labels are never\nranked together.",
        epilog="examples:\n"
        "  polyspan bench report smoke.jsonl\n"
        "  polyspan bench report paper.jsonl --format latex --out tables.tex",
    )
    report.add_argument("store", metavar="STORE.jsonl")
    report.add_argument(
        "--format",
        choices=["markdown", "latex", "csv"],
        default="markdown",
        help="markdown (default), latex or csv",
    )
    report.add_argument(
        "--out", metavar="FILE", help="write there, replacing what it holds (default: print)"
    )
    report.add_argument(
        "--figures",
        metavar="FOLDER",
        help="also draw NMI of all methods and every grid of lam1 and lam2, as .png files there",
    )
    report.set_defaults(run=_cmd_bench_report)


def _cmd_bench_run(args: argparse.Namespace) -> int:
    if args.jobs is not None and args.jobs < 1:
        args.usage_error(f"--jobs must be 1 or more, got {args.jobs}")
    from pathlib import Path

    from polyspan.bench.protocol import UnknownNameError, narrow, read_protocol
    from polyspan.bench.runner import run_protocol

    store = Path(args.store or Path(args.protocol).with_suffix(".jsonl").name)
    try:
        protocol = narrow(read_protocol(args.protocol), args.method, args.dataset)
    except UnknownNameError as error:
        return _fail(error, 2)
    try:
        counts = run_protocol(protocol, store, jobs=args.jobs, retry=args.retry, device=args.device)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; what is done is in {store}, and the same command goes on from there"
        ) from None
    lost = {"failed": counts["failed"], "timed out": counts["timeout"]}
    words = "".join(f", {number} {word}" for word, number in lost.items() if number)
    print(f"{protocol.name}: {counts.total()} jobs, {counts['ok']} well{words}; rows in {store}")
    return 1 if any(lost.values()) else 0


def _cmd_bench_report(args: argparse.Namespace) -> int:
    from pathlib import Path

    from polyspan.bench.store import read_rows
    from polyspan.bench.tables import report

    rows = read_rows(args.store)
    text = report(rows, args.format)
    if args.figures:
        from polyspan.bench.figures import save_figures

        for path in save_figures(rows, args.figures):
            print(f"drew {path}", file=sys.stderr)
    if args.out:
        Path(args.out).write_text(text, "utf-8")
    else:
        print(text, end="")
    return 0


# --- data ---


def _add_data(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "data",
        help="list, download and check the data sets",
        description="List, download and check the data sets that load_dataset(NAME) knows.\n\n"
        "A file is looked for in two places:\n"
        "  $POLYSPAN_DATA    a folder of your own; polyspan never writes to it\n"
        "  the cache         where downloads go: $POLYSPAN_CACHE, or your system's folder for\n"
        "                    caches\n"
        "Downloads come from the repositories that publish the files, at a fixed commit, and are\n"
        "checked byte for byte. $POLYSPAN_MIRROR names another server with the same paths.",
        epilog="examples:\n"
        "  polyspan data list\n"
        "  polyspan data fetch three_sources ngs\n"
        "  polyspan data fetch --all\n"
        "  polyspan data check",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    listing = actions.add_parser(
        "list", help="a table of the data sets: sizes, where they are, licences"
    )
    listing.set_defaults(run=_cmd_data_list)

    fetch = actions.add_parser(
        "fetch",
        help="download data sets into the cache",
        description="Download data sets into the cache. What is here and sound is not downloaded "
        "again.\nIf anything goes wrong, nothing half-written stays behind.",
        epilog="examples:\n  polyspan data fetch ngs bbcsport\n  polyspan data fetch --all",
    )
    fetch.add_argument("names", nargs="*", metavar="NAME", help="see `polyspan data list`")
    fetch.add_argument("--all", action="store_true", help="all data sets (about 20 MB)")
    fetch.add_argument("--force", action="store_true", help="download again what is here")
    fetch.set_defaults(run=_cmd_data_fetch, usage_error=fetch.error)

    check = actions.add_parser(
        "check",
        help="check the files that are here",
        description="Check bytes, shapes and numbers of classes against what was published.\n"
        "Without names, all data sets that are here. The exit code is 1 if something is wrong.",
        epilog="examples:\n  polyspan data check\n  polyspan data check ngs bbcsport",
    )
    check.add_argument("names", nargs="*", metavar="NAME", help="see `polyspan data list`")
    check.set_defaults(run=_cmd_data_check)


def _cmd_data_list(args: argparse.Namespace) -> int:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from polyspan.datasets.registry import read_registry

    entries = read_registry().values()
    licences = list(dict.fromkeys(entry.licence for entry in entries))
    console = Console()
    wide = console.width >= 100  # in 80 columns there is no room for the names of the views
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("samples", justify="right")
    table.add_column("views and their features" if wide else "features")
    table.add_column("classes", justify="right")
    table.add_column("where", no_wrap=True)
    table.add_column("licence", justify="right")
    for entry in entries:
        where = _where(entry)
        views = ", ".join(f"{name} {n}" if wide else str(n) for name, n in entry.views.items())
        # The notes are sentences: written out below, they leave the views room.
        note = f"({licences.index(entry.licence) + 1})"
        style = "dim" if where == "not here" else "green"
        row = (entry.name, str(entry.samples), views, str(entry.classes))
        table.add_row(*row, f"[{style}]{where}[/]", note)
    console.print(table)
    for number, licence in enumerate(licences, start=1):
        console.print(f"({number}) {licence}", highlight=False)
    if any(_where(entry) == "not here" for entry in entries):
        console.print("\n`polyspan data fetch NAME` downloads what is not here.", highlight=False)
    return 0


def _where(entry: "Entry") -> str:
    from polyspan.datasets.registry import locate

    if entry.built_in:
        return "built in"
    found = locate(entry)
    return found[0] if found else "not here"


def _cmd_data_fetch(args: argparse.Namespace) -> int:
    from polyspan.datasets.download import fetch_dataset
    from polyspan.datasets.registry import find_entry, list_datasets

    if bool(args.names) == args.all:
        args.usage_error("name the data sets, or say --all")
    # All names first: a typing error in the third should not surface after two downloads.
    entries = [find_entry(name) for name in (list_datasets() if args.all else args.names)]
    code = 0
    for entry in entries:
        try:
            path = fetch_dataset(entry.name, force=args.force)
        except OSError as error:
            code = _fail(error, 1)
            continue
        if path is not None:
            print(f"{entry.name}  {path}")
        elif not args.all:
            print(f"{entry.name}  is built in: there is nothing to download")
    return code


def _cmd_data_check(args: argparse.Namespace) -> int:
    from polyspan.datasets.registry import find_entry, list_datasets

    entries = [find_entry(name) for name in args.names or list_datasets()]
    code = 0
    for entry in entries:
        where = _where(entry)
        if where == "not here" and not args.names:
            continue
        if problem := _check_problem(entry):
            code = 1
            print(f"{entry.name}  WRONG: {problem}")
        else:
            print(
                f"{entry.name}  well: {where}, {entry.samples} samples, {len(entry.views)} views, "
                f"{entry.classes} classes"
            )
    return code


def _check_problem(entry: "Entry") -> str | None:
    from polyspan.datasets.load import content_problem, load_dataset
    from polyspan.datasets.registry import file_problem, locate

    if not entry.built_in and (found := locate(entry)):
        path = found[1]
        if problem := file_problem(path, entry):
            return f"{path} is not the published file: {problem}"
    try:
        return content_problem(load_dataset(entry.name), entry)
    except (ValueError, OSError, ImportError) as error:
        return str(error)
