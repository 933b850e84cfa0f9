"""Figures as files, and as SVG for a page: the same bytes for the same figure."""

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from polyspan.atomic import check_place, replacing
from polyspan.figures.palette import EDGE, FAINT, INK, LINES

FORMATS = (".png", ".svg", ".pdf")
UNDATED: dict[str, Any] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "pdf": dict.fromkeys(("CreationDate", "ModDate")),
}
# Colors that a page with a dark scheme has its own for.
THEME = {INK: "ink", FAINT: "soft", EDGE: "line"} | {c: f"line-{k}" for k, c in enumerate(LINES)}
THEMED = re.compile("|".join(THEME))
# HTML and XML allow no control characters, and UTF-8 no halves of surrogate pairs.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
SPACE = "http://www.w3.org/2000/svg"


def new_figure(width: float = 4.6, height: float = 4.6) -> Figure:
    """Create an empty figure, in inches.

    Examples
    --------
    >>> new_figure(4, 3).get_size_inches().tolist()
    [4.0, 3.0]
    """
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def on(ax: Any, width: float = 4.6, height: float = 4.6) -> Any:
    """The axes given, or those of a new figure."""
    return new_figure(width, height).add_subplot() if ax is None else ax


def save_figure(figure: Figure, path: str | Path, dpi: int = 120) -> Path:
    """Write a figure as .png, .svg or .pdf, completely or not at all.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_figure(new_figure(), f"{folder}/empty.png").name
    'empty.png'
    """
    path = check_figure_path(path)
    with replacing(path) as part:
        write_figure(figure, part, path.suffix[1:].lower(), dpi)
    return path


def write_figure(figure: Figure, path: Path, kind: str, dpi: int) -> None:
    """Write a figure to a file of a kind, such as svg."""
    if kind == "svg":
        path.write_text(svg_text(figure), "utf-8")
        return
    with _drawing():
        figure.savefig(path, format=kind, dpi=dpi, metadata=UNDATED.get(kind))


def check_figure_path(path: str | Path) -> Path:
    """Return the path if a figure can be written there; to be called before the work it shows.

    Examples
    --------
    >>> check_figure_path("figure.bmp")
    Traceback (most recent call last):
    ...
    ValueError: figure.bmp: the file name of a figure must end in .png, .svg or .pdf
    """
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path}: the file name of a figure must end in .png, .svg or .pdf")
    check_place(path)
    return path


@contextmanager
def _drawing(salt: str = "polyspan") -> Iterator[None]:
    """Text as text, names of parts that depend on the figure alone."""
    style = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": salt}
    with mpl.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # of letters that the font lacks
        yield


def clean(text: Any) -> str:
    """Text without characters that no page and no figure can hold."""
    return UNPRINTABLE.sub("\ufffd", str(text))


def svg_text(figure: Any, name: str = "", page: bool = False) -> str:
    """A figure as SVG, without dates, with what its parts are called as titles to point at.

    A part is called by its ``gid``: ``"title: 3 samples"`` shows these words, ``"class: frame"`` is
    a class for a script.

    Parameters
    ----------
    figure : matplotlib Figure
        Its text stays text.
    name : str
        What a screen reader calls it.
    page : bool, default=False
        For an HTML page: no header and no background, and the colors of text and lines follow
        ``--ink``, ``--soft``, ``--line`` and ``--line-0`` to ``--line-3``, where the page has them.

    Examples
    --------
    >>> svg_text(new_figure(1, 1), "nothing", page=True)[:51]
    '<svg viewBox="0 0 72 72" stroke-linejoin="round" ro'
    """
    out = io.StringIO()
    name = clean(name)
    with _drawing(name):
        figure.savefig(out, format="svg", transparent=page, metadata=UNDATED["svg"], dpi=200)
    root = ET.fromstring(clean(out.getvalue()))
    for part in list(root.iter()):
        part.tag = part.tag.partition("}")[2]
        part.text, part.tail = ((words or "").strip() for words in (part.text, part.tail))
        if "d" in part.attrib:  # a hundredth of a point is enough
            part.set("d", re.sub(r"\d+\.\d{3,}", lambda x: f"{float(x[0]):.2f}", part.attrib["d"]))
        for style in part.findall(f"{{{SPACE}}}style"):
            part.remove(style)
        link = part.attrib.pop("{http://www.w3.org/1999/xlink}href", "")
        if link:
            part.set("href", link.replace("\n", ""))
        kind, _, words = part.get("id", "").partition(": ")
        if part.tag == "g" and part.attrib.pop("id", "") and kind == "class":
            part.set("class", words)
        elif kind == "title":
            title = ET.Element("title")
            title.text = words
            part.insert(0, title)
        if page and (look := part.get("style")):
            part.set("style", THEMED.sub(lambda x: f"var(--{THEME[x[0]]}, {x[0]})", look))
    width, height = (float(root.attrib.pop(side)[:-2]) for side in ("width", "height"))
    root.attrib.pop("version")
    root.set("stroke-linejoin", "round")
    if not page:
        root.attrib.update(width=f"{width:g}pt", height=f"{height:g}pt", xmlns=SPACE)
        return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, "unicode")}\n'
    least = 0.72 * width if width > 450 else 0  # wider ones scroll on a phone
    size = f"max-width: {width:g}pt; min-width: {least:.0f}pt"
    root.attrib.update({"role": "img", "aria-label": name, "class": "chart", "style": size})
    return ET.tostring(root, "unicode")
