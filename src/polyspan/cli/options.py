"""Options of `polyspan fit` that say how the files are read and the labels written."""

import argparse
from typing import Any

# Names of `load_views`.
READING = (
    "id",
    "drop",
    "keep",
    "missing",
    "header",
    "samples",
    "impute",
    "max_missing",
    "obsm",
    "layers",
)


def add_reading_options(parser: argparse.ArgumentParser, *, new: bool = False) -> None:
    """Declare them; those of ``polyspan predict`` are for ``new`` samples of a fitted model."""
    parser.add_argument(
        "--id",
        action="append",
        metavar="COLUMN",
        help="column with the sample ids; repeat the option if the files use different names",
    )
    parser.add_argument(
        "--drop", action="append", metavar="COLUMN", help="leave out a column; may be repeated"
    )
    parser.add_argument(
        "--missing",
        choices=["fail", "drop", "keep"],
        help="samples that lack a view: stop and name them, drop them, or keep them (default)"
        if new
        else "samples that lack a view: stop and name them (default), drop them, or keep them "
        "(needs --clusters and a --method that can)",
    )
    parser.add_argument(
        "--header",
        choices=["yes", "no"],
        help="whether text files and sheets start with a row of names (default: detect)",
    )
    parser.add_argument(
        "--samples",
        choices=["rows", "columns"],
        help="where the samples are: in columns, as is common in genomics, or in rows; without it, "
        "tables that seem to have them in columns are refused",
    )
    parser.add_argument(
        "--keep",
        action="append",
        metavar="COLUMN",
        help="use a column although its name (label, subtype, ...) says that it holds known "
        "classes; may be repeated",
    )
    parser.add_argument(
        "--impute",
        choices=["median", "none"] if new else ["median", "knn", "none"],
        help="fill in scattered missing values by the medians of the fitted samples (default: none)"
        if new
        else "fill in scattered missing values by the column's median or from the five nearest "
        "samples (default: none)",
    )
    parser.add_argument(
        "--max-missing",
        type=float,
        metavar="SHARE",
        help="with --impute: samples that lack more than this share of a view's values count as "
        "lacking the view (default: 0.2)"
        if new
        else "with --impute: leave out columns that lack more than this share of their values; "
        "samples that then still do count as lacking the view, see --missing (default: 0.2)",
    )
    parser.add_argument(
        "--safe-ids",
        action="store_true",
        help="write ' before ids that begin with =, +, - or @, which spreadsheets take for "
        "formulas",
    )


def reading_choices(args: argparse.Namespace) -> dict[str, Any]:
    """What the arguments say, with the defaults filled in."""
    if args.max_missing is not None and args.impute in (None, "none"):
        args.usage_error("--max-missing says what --impute leaves out: use both, or neither")
    return {
        "id": args.id or [],
        "drop": args.drop or [],
        "missing": args.missing or "fail",
        "header": None if args.header is None else args.header == "yes",
        "samples": args.samples,
        "keep": args.keep or [],
        "impute": args.impute or "none",
        "obsm": args.obsm or [],
        "layers": args.layers or [],
        "max_missing": 0.2 if args.max_missing is None else args.max_missing,
    }
