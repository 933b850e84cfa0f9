"""`python -m benchmarks`: run protocols, make tables of the rows, and what git keeps of them."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from polyspan.atomic import replacing
from polyspan.datasets.registry import UnknownDatasetError

RESULTS = Path(__file__).resolve().parents[1] / "results"
PUBLISHED = RESULTS / "rows.db"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Examples
    --------
    >>> main(["report", "none.db"])
    1
    """
    from harness.protocol import UnknownNameError

    args = _parser().parse_args(argv)
    try:
        code: int = args.run(args)
    except (ValueError, OSError, ImportError, MemoryError) as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2 if isinstance(error, UnknownNameError | UnknownDatasetError) else 1
    except KeyboardInterrupt as error:
        print(f"benchmarks: {error if error.args else 'interrupted'}", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "benchmarks",
        description="Compare methods: a protocol lists the methods, data sets, parameters and "
        "seeds.\n`run` writes a row for each job to a store, `report` makes tables from the rows,\n"
        "`export` and `rebuild` convert the store to the compressed tables in git, and back.",
        epilog="examples:\n"
        "  python -m benchmarks run benchmarks/smoke.toml\n"
        "  python -m benchmarks run benchmarks/paper.toml --dataset ngs --method GRMSC --jobs 2\n"
        "  python -m benchmarks report smoke.db\n"
        "  python -m benchmarks report paper.db --format latex --out tables.tex",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)

    run = actions.add_parser(
        "run",
        help="run a protocol, or the rest of it",
        description="Run the jobs of a protocol, each in a worker process, and write a row for "
        "each to the store. Jobs that have a row are not run again: after an interruption, even a "
        "kill -9, the same command continues. A job that fails or times out becomes a row with the "
        "reason, and the exit code is then 1. Names, parameters and the presence of the data are "
        "checked before anything runs. The format of a protocol is described at the top of "
        "benchmarks/harness/protocol.py.",
    )
    run.add_argument("protocol", metavar="PROTOCOL.toml")
    for name, word in (("--method", "M"), ("--dataset", "D")):
        run.add_argument(
            name, action="append", default=[], metavar=word, help="only this one; may be repeated"
        )
    run.add_argument(
        "--jobs", type=int, metavar="N",
        help="number of parallel jobs, which share the cores equally (default and maximum: one per "
        "core)",
    )  # fmt: skip
    run.add_argument(
        "--store", type=Path, metavar="FILE",
        help="database for the rows (default: the protocol's file name with .db, in this folder)",
    )  # fmt: skip
    run.add_argument("--retry", action="store_true", help="rerun the jobs that failed or timed out")
    run.add_argument(
        "--device", metavar="D", help="device for the methods that support one, such as cuda"
    )
    run.set_defaults(run=_run)

    report = actions.add_parser(
        "report",
        help="make tables from a store",
        description="Make tables from a store: mean(std) of the six scores over the seeds with the "
        "best in bold, the paper's values and the differences, ranks over data sets, chosen "
        "settings, failed jobs. Methods tuned with the labels, at their defaults, and chosen "
        "without labels are never ranked together.",
    )
    report.add_argument("store", metavar="STORE")
    report.add_argument("--format", choices=["markdown", "latex", "csv"], default="markdown")
    report.add_argument(
        "--out", type=Path, metavar="FILE",
        help="write to this file, replacing it (default: print)",
    )  # fmt: skip
    report.add_argument(
        "--figures", metavar="FOLDER",
        help="also draw the NMI of all methods, the equal budgets and every grid of lam1 and lam2",
    )  # fmt: skip
    report.set_defaults(run=_report)

    for name, act, words in (
        ("export", _export, "write a compressed table for each protocol and order of the samples"),
        ("rebuild", _rebuild, "add the rows of the compressed tables to a store, and check each"),
    ):
        action = actions.add_parser(name, help=words)
        action.add_argument("store", nargs="?", default=PUBLISHED, metavar="STORE")
        action.add_argument("--folder", type=Path, default=RESULTS, help="of the tables")
        action.set_defaults(run=act)
    return parser


def _note(words: str) -> None:
    print(f"benchmarks: note: {words}", file=sys.stderr)


def _run(args: argparse.Namespace) -> int:
    """Run the jobs of a protocol that have no row yet."""
    from harness.protocol import narrow, read_protocol
    from harness.runner import run_protocol

    store = args.store or Path(args.protocol).with_suffix(".db").name
    protocol = narrow(read_protocol(args.protocol), args.method, args.dataset)
    try:
        counts = run_protocol(
            protocol, store, jobs=args.jobs, retry=args.retry, device=args.device, tell=_note
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted; finished jobs are in {store}, and the same command continues from there"
        ) from None
    lost = {"failed": counts["failed"], "timed out": counts["timeout"]}
    words = "".join(f", {number} {word}" for word, number in lost.items() if number)
    print(f"{protocol.name}: {counts.total()} jobs, {counts['ok']} ok{words}; rows in {store}")
    return 1 if any(lost.values()) else 0


def _report(args: argparse.Namespace) -> int:
    """Print the tables of a store, or write them to a file."""
    from harness.store import read_rows
    from harness.tables import report

    rows = read_rows(args.store, _note)
    text = report(rows, args.format)
    if args.figures:
        from harness.figures import save_figures

        for path in save_figures(rows, args.figures):
            print(f"drew {path}", file=sys.stderr)
    if args.out:
        with replacing(args.out) as part:
            part.write_text(text, "utf-8")
    else:
        print(text, end="")
    return 0


def _export(args: argparse.Namespace) -> int:
    """Write the tables that git keeps."""
    from harness.store import export

    for path, rows in export(args.store, args.folder).items():
        print(f"{path.name}: {rows} rows, {path.stat().st_size / rows:.1f} bytes a row")
    return 0


def _rebuild(args: argparse.Namespace) -> int:
    """Make the database from the tables that git keeps."""
    from harness.store import rebuild

    rows = rebuild(args.folder, args.store, _note)
    print(f"{args.store}: has all {rows} rows of {args.folder}, each checked")
    return 0
