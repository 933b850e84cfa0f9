"""List, download and check the data sets.

They are those that load_dataset(NAME) knows. A file is looked for in two places:
  $POLYSPAN_DATA    your own folder, or several, separated like those in $PATH;
                    polyspan never writes to it
  the cache         where downloads go: $POLYSPAN_CACHE, or your system's cache folder
Downloads come from the repositories that publish the files, at a fixed commit, and are
checked byte for byte. $POLYSPAN_MIRROR names another server with the same paths.

Some examples:
  polyspan data list
  polyspan data fetch three_sources ngs
  polyspan data fetch --all
  polyspan data check
"""

import argparse
from typing import TYPE_CHECKING, Any

from polyspan.cli.messages import fail
from polyspan.cli.parser import add_command

if TYPE_CHECKING:
    from polyspan.datasets.registry import Entry


def add(subparsers: Any) -> None:
    """Declare the command and its arguments."""
    parser = add_command(subparsers, "data", __doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, run in (("list", run_list), ("fetch", run_fetch), ("check", run_check)):
        action = add_command(actions, name, run.__doc__, run)
        action.add_argument("names", nargs="*", metavar="NAME", help="see `polyspan data list`")
        if name == "fetch":
            action.add_argument("--all", action="store_true", help="all data sets (about 35 MB)")
            action.add_argument(
                "--force", action="store_true", help="download again even if there is a good copy"
            )


def run_list(args: argparse.Namespace) -> int:
    """Show a table of the data sets: sizes, where they are, licenses.

    With names, show all that is known of those: how their values are prepared, where they come
    from, and their licenses.

    Some examples:
      polyspan data list
      polyspan data list gbm citeseq_pbmc
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from polyspan.datasets.registry import find_entry, read_registry, where

    if args.names:
        print("\n\n".join([_in_full(find_entry(name)) for name in args.names]))
        return 0
    entries = read_registry().values()
    licenses = list(dict.fromkeys(entry.license for entry in entries))
    console = Console()
    wide = console.width >= 100  # in 80 columns there is no room for the names of the views
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    views = "views and their features" if wide else "features"
    for heading in ("name", "samples", views, "classes", "where", "license"):
        right = heading in ("samples", "classes", "license")
        words = heading in ("name", "where")
        table.add_column(heading, justify="right" if right else "left", no_wrap=words)
    places = [where(entry) for entry in entries]
    for entry, place in zip(entries, places, strict=True):
        views = ", ".join(f"{name} {n}" if wide else str(n) for name, n in entry.views.items())
        # The notes are sentences: printed below the table, they leave room for the views.
        note = f"({licenses.index(entry.license) + 1})"
        style = "dim" if place in ("in part", "not here") else "green"
        row = (f"[bold]{entry.name}[/]", str(entry.samples), views, str(entry.classes or "none"))
        table.add_row(*row, f"[{style}]{place}[/]", note)
    console.print(table)
    for number, license in enumerate(licenses, start=1):
        console.print(f"({number}) {license}", highlight=False)
    if {"in part", "not here"} & set(places):
        console.print("\nUse `polyspan data fetch NAME` to download a data set.", highlight=False)
    return 0


def _in_full(entry: "Entry") -> str:
    from textwrap import fill

    from polyspan.datasets.registry import where

    views = ", ".join(f"{name} {n}" for name, n in entry.views.items())
    facts = {
        "samples": str(entry.samples),
        "views": views,
        "classes": str(entry.classes or "none"),
        "values": entry.preparation or "as published",
        "license": entry.license,
        "where": where(entry),
    }
    for file in entry.files:
        facts["source"] = f"https://github.com/{file.repository}, commit {file.commit}"
        facts[file.name] = file.path
    width = max(map(len, facts))
    lines = [
        fill(f"{name:<{width}}  {fact}", 96, subsequent_indent=" " * (width + 4))
        for name, fact in facts.items()
    ]
    return "\n  ".join([f"{entry.name}: {entry.title}", *lines])


def run_fetch(args: argparse.Namespace) -> int:
    """Download data sets into the cache.

    Those that are here already and intact are not downloaded again. If one fails, the others are
    still downloaded. If anything goes wrong, no half-written file is left behind.

    Some examples:
      polyspan data fetch ngs bbcsport
      polyspan data fetch --all
    """
    from polyspan.datasets.download import fetch_dataset
    from polyspan.datasets.registry import find_entry, list_datasets

    if bool(args.names) == args.all:
        args.usage_error("name the data sets, or use --all")
    # Check all names first: a typo in the third should not surface after two downloads.
    entries = [find_entry(name) for name in (list_datasets() if args.all else args.names)]
    code = 0
    for entry in entries:
        try:
            paths = fetch_dataset(entry.name, force=args.force)
        except OSError as error:
            code = fail(error, 1)
            continue
        for path in paths:
            print(f"{entry.name}  {path}")
        if entry.built_in and not args.all:
            print(f"{entry.name}  is built in: there is nothing to download")
    return code


def run_check(args: argparse.Namespace) -> int:
    """Check the downloaded files.

    Their bytes, shapes and numbers of classes must be those that were published. Without names,
    check all data sets that are here. The exit code is 1 if anything is wrong.

    Some examples:
      polyspan data check
      polyspan data check ngs bbcsport
    """
    from polyspan.datasets.registry import find_entry, list_datasets, where

    entries = [find_entry(name) for name in args.names or list_datasets()]
    code = 0
    for entry in entries:
        place = where(entry)
        if place == "not here" and not args.names:
            continue
        if problem := _check_problem(entry):
            code = 1
            print(f"{entry.name}  WRONG: {problem}")
        else:
            print(
                f"{entry.name}  ok: {place}, {entry.samples} samples, {len(entry.views)} views, "
                f"{entry.classes or 'no'} classes"
            )
    return code


def _check_problem(entry: "Entry") -> str | None:
    from polyspan.datasets.load import content_problem, load_dataset
    from polyspan.datasets.registry import file_problem, locate

    for file in entry.files:
        if (found := locate(file)) and (problem := file_problem(found[1], file)):
            return f"{found[1]} is not the published file: {problem}"
    try:
        return content_problem(load_dataset(entry.name), entry)
    except (ValueError, OSError, ImportError) as error:
        return str(error)
