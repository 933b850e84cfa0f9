"""`polyspan bench`: compare methods on data sets, and make tables of the results."""

import argparse
import sys
from pathlib import Path
from typing import Any

from polyspan.atomic import replacing
from polyspan.cli.messages import fail, note


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser(
        "bench",
        help="compare methods on data sets, and make tables of the results",
        description="Compare methods: a protocol lists the methods, data sets, parameters and "
        "seeds;\n`run` writes a row for each job to a store, `report` makes tables from the rows.",
        epilog="examples:\n"
        "  polyspan bench run benchmarks/smoke.toml\n"
        "  polyspan bench report smoke.jsonl.gz",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    run = actions.add_parser(
        "run",
        help="run a protocol, or the rest of it",
        description="Run the jobs of a protocol (methods x data sets x parameter grid x seeds), "
        "each in a\nworker process, and append a row for each to the store. Jobs that have a row "
        "are not run\nagain: after an interruption, even a kill -9, the same command continues "
        "where it stopped.\n\nOnly the fit is timed. A job that fails or times out becomes a row "
        "with the reason, and\nthe final exit code is 1. Names, parameters and the presence of "
        "the data are checked\nbefore anything runs.",
        epilog="examples:\n"
        "  polyspan bench run benchmarks/smoke.toml\n"
        "  polyspan bench run benchmarks/paper.toml --dataset ngs --method GRMSC --jobs 2\n\n"
        "The format of a protocol is described at the top of polyspan/bench/protocol.py:\n"
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
        help="number of parallel jobs (default and maximum: one per core); they share the cores "
        "equally",
    )
    run.add_argument(
        "--store",
        metavar="FILE",
        help="file for the rows, compressed at the end if its name ends in .gz (default: the "
        "protocol's file name with .jsonl.gz, in this folder)",
    )
    run.add_argument("--retry", action="store_true", help="rerun the jobs that failed or timed out")
    run.add_argument(
        "--device", metavar="D", help="device for the methods that support one, such as cuda"
    )
    run.set_defaults(run=run_jobs, usage_error=run.error)

    report = actions.add_parser(
        "report",
        help="make tables from a store",
        description="Make tables from a store: mean(std) of the six scores over the seeds with the "
        "best in\nbold, the paper's values and the differences, ranks over data sets, chosen "
        "settings,\nfailed jobs. Methods tuned with the labels, at their defaults, and chosen "
        "without\nlabels are never ranked together.",
        epilog="examples:\n"
        "  polyspan bench report smoke.jsonl.gz\n"
        "  polyspan bench report paper.jsonl.gz --format latex --out tables.tex",
    )
    report.add_argument("store", metavar="STORE")
    report.add_argument(
        "--format",
        choices=["markdown", "latex", "csv"],
        default="markdown",
        help="markdown (default), latex or csv",
    )
    report.add_argument(
        "--out", metavar="FILE", help="write to this file, replacing it (default: print)"
    )
    report.add_argument(
        "--figures",
        metavar="FOLDER",
        help="also draw the NMI of all methods and every grid of lam1 and lam2, as .png files in "
        "this folder",
    )
    report.set_defaults(run=run_report)

    packed = actions.add_parser(
        "pack",
        help="compress stores",
        description="Compress stores: FILE.jsonl becomes FILE.jsonl.gz, and what a killed run left "
        "uncompressed\nin FILE.jsonl.gz is compressed. `gzip -cd` shows the rows.",
        epilog="examples:\n  polyspan bench pack smoke.jsonl",
    )
    packed.add_argument("stores", nargs="+", metavar="STORE")
    packed.set_defaults(run=run_pack)


def run_jobs(args: argparse.Namespace) -> int:
    """Run the jobs of a protocol that have no row yet."""
    if args.jobs is not None and args.jobs < 1:
        args.usage_error(f"--jobs must be 1 or more, got {args.jobs}")
    from polyspan.bench.protocol import UnknownNameError, narrow, read_protocol
    from polyspan.bench.runner import run_protocol

    store = Path(args.store or Path(args.protocol).with_suffix(".jsonl.gz").name)
    try:
        protocol = narrow(read_protocol(args.protocol), args.method, args.dataset)
    except UnknownNameError as error:
        return fail(error, 2)
    try:
        counts = run_protocol(
            protocol, store, jobs=args.jobs, retry=args.retry, device=args.device, tell=note
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; finished jobs are in {store}, and the same command continues from there"
        ) from None
    lost = {"failed": counts["failed"], "timed out": counts["timeout"]}
    words = "".join(f", {number} {word}" for word, number in lost.items() if number)
    print(f"{protocol.name}: {counts.total()} jobs, {counts['ok']} ok{words}; rows in {store}")
    return 1 if any(lost.values()) else 0


def run_report(args: argparse.Namespace) -> int:
    """Print the tables of a store, or write them to a file."""
    from polyspan.bench.store import FIELDS, read_rows
    from polyspan.bench.tables import report

    rows = read_rows(args.store, fields=FIELDS, tell=note)
    text = report(rows, args.format)
    if args.figures:
        from polyspan.bench.figures import save_figures

        for path in save_figures(rows, args.figures):
            print(f"drew {path}", file=sys.stderr)
    if args.out:
        with replacing(Path(args.out)) as part:
            part.write_text(text, "utf-8")
    else:
        print(text, end="")
    return 0


def run_pack(args: argparse.Namespace) -> int:
    """Compress stores."""
    from polyspan.bench.store import alone, pack, read_rows

    for name in args.stores:
        path = Path(name)
        read_rows(path, tell=note)  # fails before anything is changed
        into = path if path.suffix == ".gz" else Path(f"{path}.gz")
        if into != path and into.exists():
            raise FileExistsError(f"{into} exists already: move it away, or remove {path}")
        with alone(path):
            before = path.stat().st_size
            rows = pack(path, None if into == path else into)
            if into != path:
                path.unlink()
        print(f"{into}: {rows} rows, {_each(before, rows)} bytes a row became "
              f"{_each(into.stat().st_size, rows)}")  # fmt: skip
    return 0


def _each(size: int, rows: int) -> str:
    return f"{size / max(rows, 1):.1f}"
