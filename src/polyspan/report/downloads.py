"""What can be taken away from a report: figures as .svg, .png and .pdf, tables as .csv."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyspan.atomic import replacing_all
from polyspan.explain.markers import csv_text
from polyspan.figures import new_figure
from polyspan.figures.files import FORMATS, write_figure
from polyspan.report.content import Content
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


def write_figures(content: Content, folder: Path) -> None:
    """Write all figures and tables that a page was built with, or none."""
    new = not folder.exists()
    folder.mkdir(exist_ok=True)
    tables = {folder / f"{name}.csv": columns for name, columns in content.tables.items()}
    figures = {folder / f"{name}{kind}": figure for name, figure in content.figures.items()
               for kind in FORMATS}  # fmt: skip
    try:
        with replacing_all([*tables, *figures]) as parts:
            for path, columns in tables.items():
                parts[path].write_text(csv_text(columns), "utf-8", newline="")
            for path, figure in figures.items():
                write_figure(figure, parts[path], path.suffix[1:], dpi=200)
    except BaseException:
        if new:
            folder.rmdir()
        raise


def draw_picture(drawings: Mapping[str, Any]) -> Any:
    """Map and consensus matrix above, features below: those that a report has, in one figure.

    Examples
    --------
    >>> from polyspan.figures import plot_certainty
    >>> len(draw_picture({"map": lambda ax: plot_certainty([0.5], ax)}).axes)
    1
    """
    rows = [[name if name in drawings else "." for name in ("map", "consensus")]]
    rows += [["features"] * 2] * ("features" in drawings)
    figure = new_figure(13, 6.4 * len(rows))
    axes: dict[str, Any] = figure.subplot_mosaic(rows)
    for name, ax in axes.items():
        drawings[name](ax=ax)
    return figure
