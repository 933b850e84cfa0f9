"""Write the table of data sets in docs/data-sets.md from the registry.

    python docs/make_data_sets.py    (make methods)

The rest of the page is kept as it is.
"""

from pathlib import Path

from polyspan.datasets.registry import Entry, read_registry

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "data-sets.md"
START = "<!-- Written by `make methods` from registry.toml, down to the end of the table. -->\n"
END = "<!-- End of the table. -->\n"
HEAD = "| name | content | samples | views and their features | classes | license |\n"


def row(entry: Entry) -> str:
    """Return the row of one data set."""
    views = ", ".join(f"{name} {features}" for name, features in entry.views.items())
    cells = [f"`{entry.name}`", entry.title, f"{entry.samples:,}", views]
    cells += [str(entry.classes or "none"), entry.license]
    return f"| {' | '.join(cells)} |\n"


def table() -> str:
    """Return the table, in the order of the registry."""
    return HEAD + "|---|---|---:|---|---:|---|\n" + "".join(map(row, read_registry().values()))


def page() -> str:
    """Return docs/data-sets.md with the table of today."""
    before, rest = PAGE.read_text("utf-8").split(START)
    return before + START + "\n" + table() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
