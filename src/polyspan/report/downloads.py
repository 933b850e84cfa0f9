"""What can be taken away from a report: figures as .svg and .png, tables as .csv."""

import csv
import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from polyspan.atomic import replacing_all
from polyspan.report.content import Content
from polyspan.report.drawings import alone
from polyspan.report.raster import to_png
from polyspan.runtime.messages import setting


def check_folder(folder: str | Path, force: bool = False) -> Path:
    """Return the folder for figures if it can be written to: it is empty, or to be created."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: name a folder for the figures.")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise FileExistsError(
            f"the folder {folder} for the figures is not empty: replace what is in it with "
            f"{setting('force', True)}, or choose another."
        )
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {folder.parent}: create it first.")
    return folder


def write_figures(content: Content, folder: Path) -> list[Path]:
    """Write all figures and tables that a page was built with, or none; .png needs matplotlib."""
    files = {f"{name}.svg": alone(svg).encode() for name, svg in content.figures.items()}
    if find_spec("matplotlib"):
        files |= {f"{name}.png": to_png(svg) for name, svg in content.figures.items()}
    files |= {f"{name}.csv": _csv(rows()).encode() for name, rows in content.tables.items()}
    new = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        with replacing_all([folder / name for name in files]) as parts:
            for path, part in parts.items():
                part.write_bytes(files[path.name])
    except BaseException:
        if new:
            folder.rmdir()
        raise
    return [folder / name for name in files]


def _csv(rows: list[list[Any]]) -> str:
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    for row in rows:
        lines.writerow([f"{x:.6g}" if isinstance(x, float) else x for x in row])
    return out.getvalue()
