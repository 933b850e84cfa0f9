"""The section on a consensus: the table of its members."""

from typing import Any

from polyspan.report.markup import bar, cell, setting, table, user
from polyspan.runtime.messages import plural

COLUMNS = (
    "method", "setting", "family", "agreement", "modularity", "nearness", "weight", "seconds",
    "status", "reason",
)  # fmt: skip


def show_members(members: list[dict[str, Any]]) -> str:
    """The table of the members."""
    if not members:
        return ""
    rows = [[_cell(name, row[name]) for name in COLUMNS] for row in members]
    return (
        f"<p>{plural(len(rows), 'member')} of the consensus: the methods and settings that were "
        "tried without labels, and how well they agree. Click a heading to sort.</p>"
        + table([user(name) for name in COLUMNS], rows, name="Members of the consensus")
    )


def _cell(name: str, value: Any) -> tuple[str, Any]:
    if name == "setting":
        return cell(setting(value))
    if name == "agreement" and value is not None:  # None where the member did not run
        return bar(value, f"{value:.3f}"), value
    return cell(value)
