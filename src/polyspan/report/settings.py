"""What the page shows of a choice without labels: the table of settings."""

from typing import Any

from polyspan.report.parts import bar, cell, plural, setting, table, user
from polyspan.selection import Selection

COLUMNS = (
    "method", "setting", "group", "agreement", "nearness", "weight", "seconds", "status", "reason",
)  # fmt: skip


def show_settings(selection: Selection | None) -> str:
    """The settings that were tried without labels."""
    if selection is None:
        return ""
    rows = [[_cell(name, row[name]) for name in COLUMNS] for row in selection.table]
    return (
        f"<p>{plural(len(rows), 'setting')} that were tried without labels, and how they "
        "scored. A heading sorts.</p>"
        + table([user(name) for name in COLUMNS], rows, name="Settings that were tried")
    )


def _cell(name: str, value: Any) -> tuple[str, Any]:
    if name == "setting":
        return cell(setting(value))
    if name == "agreement" and value is not None:  # None where the setting did not run
        return bar(value, f"{value:.3f}"), value
    return cell(value)
