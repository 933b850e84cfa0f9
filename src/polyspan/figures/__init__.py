"""Figures of fit results, each drawn once by matplotlib: on axes of yours, in a file, in a report.

Every ``plot_`` function draws on ``ax`` and returns it; without one it makes a figure, which is
``ax.figure``. Everything is drawn on `matplotlib.figure.Figure` objects: no window opens and
pyplot's global state is not touched, so drawing works on servers and alongside your own figures.
"""

from polyspan.figures.files import check_figure_path, new_figure, save_figure, svg_text
from polyspan.figures.matrices import plot_affinity, plot_consensus
from polyspan.figures.palette import EDGE, FAINT, INK, LINES, cluster_colors
from polyspan.figures.plots import (
    plot_agreement,
    plot_certainty,
    plot_convergence,
    plot_count,
    plot_flow,
    plot_image_clusters,
    plot_map,
    plot_markers,
    plot_silhouettes,
    plot_survival,
)  # fmt: skip

__all__ = [
    "EDGE", "FAINT", "INK", "LINES", "check_figure_path", "cluster_colors", "new_figure",
    "plot_affinity", "plot_agreement", "plot_certainty", "plot_consensus", "plot_convergence",
    "plot_count", "plot_flow", "plot_image_clusters", "plot_map", "plot_markers",
    "plot_silhouettes", "plot_survival", "save_figure", "svg_text",
]  # fmt: skip
