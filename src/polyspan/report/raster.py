"""The figures of a report as PNG, drawn by matplotlib (the extra ``plot``).

Only what `polyspan.report.drawings` and `polyspan.report.charts` draw is understood: rectangles,
circles, paths of absolute M, L, H, V, C and Z, text, and pictures.
"""

import base64
import io
import re
import warnings
import xml.etree.ElementTree as ET
from typing import Any

from polyspan.figures import new_figure

INK = "#3a4554"
LINES = ("#0b62a8", "#c65a00", "#00795a", "#a04a86", "#5b6470", "#6a4fb3")
FILLS = {"column": "#0b62a8"}
STROKES = {"grid": "#dfe4ea", "mark": "#566273", "frame": "#d95f02"}


def to_png(svg: str, dpi: int = 200) -> bytes:
    """A figure of the report as a PNG file; its units are points.

    Examples
    --------
    >>> box = '<rect x="1" y="1" width="9" height="9" fill="#000000"/>'
    >>> to_png(f'<svg viewBox="0 0 72 36">{box}</svg>')[1:4]
    b'PNG'
    """
    width, height = size_of(svg)
    figure = new_figure(width / 72, height / 72)
    figure.set_layout_engine("none")
    draw_svg(figure.add_axes((0, 0, 1, 1)), svg)
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have
        figure.savefig(out, format="png", dpi=dpi)
    return out.getvalue()


def size_of(svg: str) -> tuple[float, float]:
    """Width and height of a figure of the report.

    Examples
    --------
    >>> size_of('<svg viewBox="0 0 72 36"></svg>')
    (72.0, 36.0)
    """
    width, height = ET.fromstring(svg).attrib["viewBox"].split()[2:]
    return float(width), float(height)


def draw_svg(axes: Any, svg: str) -> None:
    """Draw a figure of the report so that it fills the axes; a unit should be about a point."""
    width, height = size_of(svg)
    root = ET.fromstring(svg)
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    for one in root:
        _draw(axes, one)
    if dots := [one.attrib for one in root if one.tag == "circle"]:
        _dots(axes, dots)


def _dots(axes: Any, dots: list[dict[str, str]]) -> None:
    """All circles at once: there may be thousands."""
    xs, ys, rs = ([float(at[name]) for at in dots] for name in ("cx", "cy", "r"))
    axes.scatter(xs, ys, s=[(2 * r) ** 2 for r in rs], c=[_fill(at) for at in dots], linewidths=0)


def _draw(axes: Any, one: ET.Element) -> None:
    at = one.attrib
    if one.tag == "g":  # the strip down the side of a matrix: translated, then turned right
        right, down = map(float, re.findall(r"translate\((\S+) (\S+)\)", at["transform"])[0])
        for inside in one:
            x, y, width, height = (float(inside.attrib[k]) for k in ("x", "y", "width", "height"))
            box = {"x": right - y - height, "y": down + x, "width": height, "height": width}
            inside.attrib.update({k: str(v) for k, v in box.items()})
            _draw(axes, inside)
    elif one.tag == "rect":
        _rectangle(axes, at)
    elif one.tag == "path":
        _path(axes, at)
    elif one.tag == "text":
        words = (one.text or "") + "".join(inside.tail or "" for inside in one)
        side = {"start": "left", "middle": "center", "end": "right"}[at["text-anchor"]]
        place = float(at["x"]), float(at["y"])
        axes.text(*place, words, size=13, color=INK, ha=side, va="baseline", parse_math=False)
    elif one.tag == "image":
        from matplotlib.image import imread

        data = io.BytesIO(base64.b64decode(at["href"].partition(",")[2]))
        x, y, width, height = (float(at[k]) for k in ("x", "y", "width", "height"))
        extent = (x, x + width, y + height, y)
        axes.imshow(imread(data), extent=extent, aspect="auto", interpolation="nearest", zorder=0.5)


def _rectangle(axes: Any, at: dict[str, str]) -> None:
    from matplotlib.patches import Rectangle

    x, y, width, height = (float(at[k]) for k in ("x", "y", "width", "height"))
    framed = at.get("class") in STROKES
    axes.add_patch(
        Rectangle(
            (x, y), width, height, facecolor="none" if framed else _fill(at),
            edgecolor=STROKES[at["class"]] if framed else "none", linewidth=1.2 * framed,
        )
    )  # fmt: skip


def _path(axes: Any, at: dict[str, str]) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    points: list[tuple[float, float]] = []
    codes: list[int] = []
    for letter, numbers in re.findall(r"([MLHVCZ])([^MLHVCZ]*)", at["d"]):
        values = [float(x) for x in re.findall(r"-?[\d.]+", numbers)]
        if letter == "Z":
            points.append(points[0])
            codes.append(int(Path.CLOSEPOLY))
            continue
        if letter == "H":
            values = [values[0], points[-1][1]]
        elif letter == "V":
            values = [points[-1][0], values[0]]
        pairs = list(zip(values[::2], values[1::2], strict=True))
        kind = {"M": Path.MOVETO, "C": Path.CURVE4}.get(letter, Path.LINETO)
        points += pairs
        codes += [int(kind)] * len(pairs)
    classes = at.get("class", "").split()
    stroke = at.get("stroke") or next((STROKES[k] for k in classes if k in STROKES), None)
    stroke = stroke or next((LINES[int(k[1])] for k in classes if re.fullmatch(r"s\d", k)), None)
    filled = "fill" in at and at["fill"] != "none"
    wide = 1.0 if classes and classes[0] in STROKES else 2.0
    axes.add_patch(
        PathPatch(
            Path(points, codes), facecolor=at["fill"] if filled else "none",
            edgecolor=stroke or "none", linewidth=wide, alpha=float(at.get("fill-opacity", 1)),
        )
    )  # fmt: skip


def _fill(at: dict[str, str]) -> str:
    return at.get("fill") or FILLS.get(at.get("class", ""), INK)
