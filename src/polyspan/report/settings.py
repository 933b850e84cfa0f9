"""What the page shows of a choice without labels: the table of settings."""

from typing import Any

import numpy as np

from polyspan.report.content import Content
from polyspan.report.parts import bar, number, plural, setting, table, user


def show_settings(c: Content) -> str:
    """The settings that were tried without labels."""
    rows = getattr(c.selection, "table", None)
    if rows is None or len(rows) == 0:
        return ""
    rows = rows.to_dict("records") if hasattr(rows, "to_dict") else [dict(row) for row in rows]
    heads = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[cell(name, row.get(name)) for name in heads] for row in rows]
    return (
        f"<p>{plural(len(rows), 'setting')} that were tried without labels, and how they "
        "scored. A heading sorts.</p>"
        + table([user(name) for name in heads], cells, name="Settings that were tried")
    )


def cell(name: Any, value: Any) -> tuple[str, Any]:
    """A cell of a table of unknown content."""
    if value is None:
        return "\u2013", None
    if isinstance(value, bool | np.bool_):
        return ("yes", "1") if value else ("no", "0")
    if isinstance(value, int | float | np.integer | np.floating):
        value = float(value)
        if str(name) in ("agreement", "score") and 0 <= value <= 1:
            return bar(value, f"{value:.3f}"), value
        return number(value), value
    text = value if isinstance(value, str) else setting(value)
    return user(text), text
