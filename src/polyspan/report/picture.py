"""One picture of a clustering: its map, the consensus matrix and the best features."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from polyspan.figures import new_figure
from polyspan.report.raster import INK, draw_svg, size_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDE, TITLE, GAP = 940, 30, 14  # in points, like the figures of the report
TITLES = {
    "map": "the samples, colored by cluster",
    "consensus": "how often the methods put two samples together",
    "features": "what sets the clusters apart, sample by sample",
}


def draw_picture(figures: Mapping[str, str]) -> "Figure":
    """Draw those of these figures that a report has: maps above, features below.

    Examples
    --------
    >>> box = '<rect x="1" y="1" width="9" height="9" fill="#000000"/>'
    >>> figure = draw_picture({"map": f'<svg viewBox="0 0 72 72">{box}</svg>'})
    >>> len(figure.axes)
    1
    """
    rows = [
        [name for name in row if name in figures] for row in (["map", "consensus"], ["features"])
    ]
    side = (WIDE - GAP) / 2
    boxes, down = {}, 0.0  # left, top, width and height by name
    for row in rows:
        for place, name in enumerate(row):
            wide, tall = size_of(figures[name])
            grow = (WIDE if name == "features" else side) / wide
            boxes[name] = (place * (side + GAP), down + TITLE, wide * grow, tall * grow)
        down = max([down, *(top + tall + GAP for _, top, _, tall in boxes.values())])
    figure = new_figure(WIDE / 72, down / 72)
    figure.set_layout_engine("none")
    for name, (left, top, wide, tall) in boxes.items():
        box = (left / WIDE, 1 - (top + tall) / down, wide / WIDE, tall / down)
        draw_svg(figure.add_axes(box), figures[name])
        at = ((left + 2) / WIDE, 1 - (top - 10) / down)
        figure.text(*at, TITLES[name], size=14, color=INK)
    return figure
