"""Figures of fit results; they need matplotlib (``pip install "polyspan[plot]"``).

Everything is drawn on `matplotlib.figure.Figure` objects: no window opens and pyplot's global state
is not touched, so drawing works on servers and alongside a user's own figures.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from polyspan.atomic import check_place, replacing
from polyspan.runtime.arrays import to_numpy
from polyspan.runtime.optional import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
INK, FAINT, EDGE = "#1b2a41", "#8a94a3", "#c8cfd8"
LINES = ("#1f6fb4", "#d9731a", "#3a8f5c", "#8a5fb0")  # color-blind safe
RESIDUALS = {"data": "data: $X - XZ - E$", "split": "split: $Z$ - its low-rank copy"}


def new_figure(width: float = 4.6, height: float = 4.6) -> "Figure":
    """Create an empty figure, in inches; without matplotlib, the error says what to install.

    Examples
    --------
    >>> new_figure(4, 3).get_size_inches().tolist()
    [4.0, 3.0]
    """
    figure = require("matplotlib.figure", "plot", "a figure").Figure
    return figure(figsize=(width, height), layout="constrained", facecolor="white")


def plot_affinity(affinity: Any, labels: Any, ax: "Axes | None" = None) -> "Axes":
    """Draw an affinity matrix with its samples sorted by cluster.

    Samples of one cluster are adjacent, so a good clustering shows dark blocks on the diagonal
    and little elsewhere. Shades follow the square root of the entries, up to the 99th percentile
    of the non-zero ones, because a few large entries would hide the rest. The diagonal, each
    sample's affinity to itself, is left out.

    Parameters
    ----------
    affinity : (n, n) array or scipy.sparse matrix
        For instance ``model.affinity_matrix_``.
    labels : (n,) array-like
        Cluster of every sample, for instance ``model.labels_``.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from polyspan import GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> from polyspan.figures import plot_affinity
    >>> model = GRMSC(n_clusters=3).fit(make_subspaces(60, 3).views)
    >>> ax = plot_affinity(model.affinity_matrix_, model.labels_)
    >>> ax.get_title("left")
    'affinity, sorted by cluster'
    """
    labels = np.asarray(labels)
    shape = tuple(affinity.shape)
    if labels.ndim != 1 or shape != (len(labels), len(labels)):
        raise ValueError(
            f"the affinity must be n x n for n labels; got shapes {shape} and {labels.shape}."
        )
    W = affinity.toarray() if sp.issparse(affinity) else to_numpy(affinity)
    order = np.argsort(labels, kind="stable")
    W = np.sqrt(W[np.ix_(order, order)])
    np.fill_diagonal(W, 0)
    darkest = float(np.percentile(W[W > 0], 99)) if (W > 0).any() else 1.0
    ax = new_figure().add_subplot() if ax is None else ax
    ax.imshow(W, cmap="Blues", vmin=0, vmax=darkest, interpolation_stage="data")
    ax.spines[:].set_color(EDGE)
    sizes = np.unique(labels, return_counts=True)[1]
    ends = np.cumsum(sizes)
    for start, size in zip(ends - sizes, sizes, strict=True):
        ax.add_patch(_frame((start - 0.5, start - 0.5), size, size, color=LINES[1], width=0.8))
    ax.set_xticks([])
    ax.set_yticks(ends - sizes / 2 - 0.5, [str(k + 1) for k in range(len(sizes))])
    ax.tick_params(length=0, labelsize=8, labelcolor=FAINT)
    _title(ax, "affinity, sorted by cluster")
    return ax


def plot_convergence(
    history: Mapping[str, Sequence[float]], tol: float | None = None, ax: "Axes | None" = None
) -> "Axes":
    """Draw the residuals of every iteration on a logarithmic axis.

    Parameters
    ----------
    history : mapping of str to list of float
        ``model.history_``: one list per residual, one number per iteration.
    tol : float, optional
        Draw a line at the tolerance below which the solver stops.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from polyspan import GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> from polyspan.figures import plot_convergence
    >>> model = GRMSC(n_clusters=3).fit(make_subspaces(60, 3).views)
    >>> ax = plot_convergence(model.history_, tol=model.tol)
    >>> ax.get_yscale(), len(ax.lines)
    ('log', 3)
    """
    if not any(len(values) for values in history.values()):
        raise ValueError("the history has no iterations: fit the model first.")
    ax = new_figure(5.2, 3.6).add_subplot() if ax is None else ax
    for k, (name, values) in enumerate(history.items()):
        iterations = np.arange(1, len(values) + 1)
        shown = np.where(np.asarray(values, float) > 0, values, np.nan)  # no logarithm of zero
        words = RESIDUALS.get(name, name)
        ax.plot(iterations, shown, color=LINES[k % len(LINES)], lw=1.8, label=words)
    if tol:
        ax.axhline(tol, color=FAINT, lw=0.9, ls=(0, (4, 3)))
        ax.annotate(
            f"tol = {tol:g}", (1, tol), (2, 3), textcoords="offset points", color=FAINT, size=8
        )
    ax.set_yscale("log")
    ax.set_xlabel("iteration", color=INK, size=9)
    ax.tick_params(colors=FAINT, labelsize=8, labelcolor=INK)
    ax.grid(axis="y", color="#eceff3", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(EDGE)
    ax.legend(frameon=False, fontsize=8, labelcolor="linecolor", handlelength=1.2)
    _title(ax, "convergence: largest residuals")
    return ax


def plot_image_clusters(
    images: Any, labels: Any, wrong: Any = None, n_shown: int = 12, ax: "Axes | None" = None
) -> "Axes":
    """Draw some images of every cluster, one row per cluster.

    The images shown are evenly spaced over the cluster, in the order of the data; they are not
    hand-picked.

    Parameters
    ----------
    images : (n, height, width) array
        Gray values; 0 is white.
    labels : (n,) array-like
        Cluster of every image.
    wrong : (n,) array-like of bool, optional
        Images to frame.
    n_shown : int, default=12
        Maximum number of images in a row.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from polyspan.datasets import load_digits_views
    >>> from polyspan.figures import plot_image_clusters
    >>> data = load_digits_views(n_samples=100)
    >>> ax = plot_image_clusters(data.views[0].reshape(-1, 8, 8), data.labels, n_shown=5)
    >>> ax.images[0].get_array().shape  # ten rows of five, with margins
    (100, 50)
    """
    images, labels = np.asarray(images), np.asarray(labels)
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise ValueError(
            "images must be (n, height, width) for n labels; got shapes "
            f"{images.shape} and {labels.shape}."
        )
    wrong = np.zeros(len(images), bool) if wrong is None else np.asarray(wrong)
    ax = new_figure().add_subplot() if ax is None else ax
    clusters = np.unique(labels)
    height, width = images.shape[1] + 2, images.shape[2] + 2  # a margin of one pixel
    sheet = np.zeros((len(clusters) * height, n_shown * width))
    for r, cluster in enumerate(clusters):
        members = np.flatnonzero(labels == cluster)
        picks = np.linspace(0, len(members) - 1, min(n_shown, len(members))).round().astype(int)
        for c, i in enumerate(members[picks]):
            top, left = r * height, c * width
            sheet[top + 1 : top + height - 1, left + 1 : left + width - 1] = images[i]
            if wrong[i]:
                ax.add_patch(
                    _frame((left - 0.2, top - 0.2), width - 0.6, height - 0.6, color=LINES[1])
                )
    ax.imshow(sheet, cmap="Greys", vmin=0, vmax=float(images.max()) or 1.0)
    ax.set_xticks([])
    rows = np.arange(len(clusters))
    ax.set_yticks(rows * height + height / 2 - 0.5, [str(r + 1) for r in rows])
    ax.tick_params(length=0, labelsize=8, labelcolor=FAINT)
    ax.spines[:].set_visible(False)
    _title(ax, "clusters found")
    return ax


def save_figure(figure: "Figure", path: str | Path, dpi: int = 120) -> Path:
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
        figure.savefig(part, format=path.suffix[1:].lower(), dpi=dpi)
    return path


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


def _frame(
    corner: tuple[float, float], across: float, down: float, *, color: str, width: float = 1.2
) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(corner, across, down, fill=False, edgecolor=color, linewidth=width)


def _title(ax: "Axes", words: str) -> None:
    ax.set_title(words, loc="left", color=INK, size=10)
