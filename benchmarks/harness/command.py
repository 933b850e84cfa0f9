"""`python -m benchmarks`: run protocols, make tables of the rows, and what git keeps of them."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
    for act, words in (
        (_run, "run the jobs of a protocol that have no row yet; after an interruption, even a "
         "kill -9, the same command continues; the exit code is 1 if a job failed or timed out"),
        (_report, "make tables from a store: mean(std) of the six scores, the paper's values and "
         "the differences, ranks, equal budgets, chosen settings, failed jobs"),
        (_export, "write the tables that git keeps: one for each protocol and order of samples"),
        (_rebuild, "add the rows of the tables that git keeps to a store, and check each"),
    ):  # fmt: skip
        action = actions.add_parser(act.__name__[1:], help=words.split(";")[0].split(":")[0],
                                    description=words[0].upper() + words[1:] + ".")  # fmt: skip
        action.set_defaults(run=act)
        for name, options in OPTIONS[act.__name__[1:]].items():
            action.add_argument(name, **options)
    return parser


_TABLES: dict[str, dict[str, Any]] = {
    "store": {"nargs": "?", "default": PUBLISHED, "metavar": "STORE"},
    "--folder": {"type": Path, "default": RESULTS, "help": "of the tables"},
}
_SOME: dict[str, Any] = {"action": "append", "default": [], "help": "only this; may be repeated"}
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "run": {
        "protocol": {"metavar": "PROTOCOL.toml", "help": "see benchmarks/harness/protocol.py"},
        "--method": _SOME | {"metavar": "M"},
        "--dataset": _SOME | {"metavar": "D"},
        "--jobs": {"type": int, "metavar": "N", "help": "parallel jobs, which share the cores "
                   "equally (default and maximum: one per core)"},
        "--store": {"type": Path, "metavar": "FILE", "help": "database for the rows (default: the "
                    "protocol's file name with .db, in this folder)"},
        "--retry": {"action": "store_true", "help": "rerun the jobs that failed or timed out"},
        "--device": {"metavar": "D", "help": "for the methods that support one, such as cuda"},
    },
    "report": {
        "store": {"metavar": "STORE"},
        "--format": {"choices": ["markdown", "latex", "csv"], "default": "markdown"},
        "--out": {"type": Path, "metavar": "FILE", "help": "write to this file, replacing it"},
        "--figures": {"metavar": "FOLDER", "help": "also draw the NMI of all methods, the equal "
                      "budgets and every grid of lam1 and lam2"},
    },
    "export": _TABLES,
    "rebuild": _TABLES,
}  # fmt: skip


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
