"""What can be taken away from a report: every figure as .svg, every table as .csv."""

import csv
import io
from pathlib import Path
from typing import Any

from polyspan.atomic import replacing_all
from polyspan.report.content import Content
from polyspan.report.drawings import alone


def check_folder(folder: str | Path, force: bool = False) -> Path:
    """Return the folder for figures if it can be written to: it is empty, or to be created."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: name a folder for the figures.")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise FileExistsError(
            f"the folder {folder} for the figures is not empty: replace what is in it with force "
            "(--force), or choose another."
        )
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {folder.parent}: create it first.")
    return folder


def write_figures(content: Content, folder: Path) -> list[Path]:
    """Write all figures and tables that a page was built with, or none."""
    texts = {f"{name}.svg": alone(svg) for name, svg in content.figures.items()}
    texts |= {f"{name}.csv": _csv(rows()) for name, rows in content.tables.items()}
    new = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        with replacing_all([folder / name for name in texts]) as parts:
            for path, part in parts.items():
                part.write_text(texts[path.name], "utf-8", newline="\n")
    except BaseException:
        if new:
            folder.rmdir()
        raise
    return [folder / name for name in texts]


def _csv(rows: list[list[Any]]) -> str:
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    for row in rows:
        lines.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in row])
    return out.getvalue()
