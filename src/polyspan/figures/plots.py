"""Every other figure of a fit: map, features, survival, certainty, other clusterings, the run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.ticker import NullLocator
from sklearn.metrics.cluster import contingency_matrix

from polyspan.figures.files import on
from polyspan.figures.matrices import fitting, mark_clusters
from polyspan.figures.palette import (
    EDGE,
    FAINT,
    HEAT,
    INK,
    LINES,
    cluster_colors,
    clusters_of,
    short,
)  # fmt: skip
from polyspan.runtime.messages import plural

if TYPE_CHECKING:
    from polyspan.explain import Survival

RESIDUALS = {"data": "data: X \u2212 XZ \u2212 E", "split": "split: Z \u2212 its low-rank copy"}
MOST_COLUMNS = 720  # of the heatmap; with more samples, neighbors are averaged
MOST_SILHOUETTES = 500  # with more samples, some evenly spaced ones are drawn


def plot_map(points: Any, labels: Any, names: Any = None, ax: Axes | None = None) -> Axes:
    """Draw samples as points, in the colors of their clusters, with the clusters' names.

    Parameters
    ----------
    points : (n, 2) array
        Coordinates, for instance of UMAP or of two principal axes; further columns are not used.
    labels : (n,) array-like
        Cluster of every sample.
    names : sequence of str, optional
        What the clusters are called, in the order of the sorted labels.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_map([[0.0, 1.0], [0.1, 1.1], [5.0, 3.0]], ["a", "a", "b"])
    >>> [name.get_text() for name in ax.texts]
    ['a', 'b']
    """
    points = np.asarray(points, dtype=float)[:, :2]
    codes, names, colors = clusters_of(labels, names)
    ax = on(ax, 5.6, 5.6)
    order = np.random.default_rng(0).permutation(len(points))  # no cluster lies on top
    x, y = points[order].T
    size = 24 if len(x) <= 300 else 12 if len(x) <= 2000 else 4
    shades = np.array(colors)[codes[order]].tolist()
    ax.scatter(x, y, size, shades, linewidths=0, alpha=0.9, rasterized=len(x) > 2000)
    box: dict[str, Any] = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1.2}
    for k, name in enumerate(names if len(names) <= 60 else []):
        x, y = np.median(points[codes == k], axis=0)
        ax.text(x, y, short(name, 14), ha="center", va="center", size=9, weight="bold", bbox=box)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color(EDGE)
    _title(ax, "the samples, colored by cluster")
    return ax


def plot_markers(
    features: Mapping[str, Any], labels: Any, order: Any = None, names: Any = None,
    ax: Axes | None = None,
) -> Axes:  # fmt: skip
    """Draw features sample by sample: how far each is from the feature's mean.

    Parameters
    ----------
    features : mapping of str to (n,) array-like, or pandas.DataFrame
        The rows of the heatmap, by name; NaN is drawn as the mean.
    labels : (n,) array-like
        Cluster of every sample.
    order : (n,) array-like, optional
        The order of the samples inside their clusters, the smallest first, for instance
        ``-model.certainty_``.
    names : sequence of str, optional
        What the clusters are called, in the order of the sorted labels.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_markers({"legs": [2.0, 4, 2, 4]}, ["bird", "beast", "bird", "beast"])
    >>> ax.images[0].get_array().tolist()
    [[1.0, 1.0, -1.0, -1.0]]
    """
    codes, names, colors = clusters_of(labels, names)
    n = len(codes)
    places = np.lexsort((np.zeros(n) if order is None else order, codes))
    X = np.array([np.asarray(features[name], dtype=float) for name in features])[:, places]
    spread = np.nanstd(X, axis=1, keepdims=True)
    X = np.nan_to_num((X - np.nanmean(X, axis=1, keepdims=True)) / np.where(spread > 0, spread, 1))
    starts = np.arange(0, n, -(-n // MOST_COLUMNS))
    X = np.add.reduceat(X, starts, axis=1) / np.diff([*starts, n])
    ax = on(ax, 9.6, 1.0 + 0.165 * len(X))
    shown = LinearSegmentedColormap.from_list("heat", HEAT)
    ax.imshow(X, cmap=shown, vmin=-2.5, vmax=2.5, aspect="auto", interpolation="none")
    sizes = np.bincount(codes) * X.shape[1] / n
    mark_clusters(ax, sizes, colors, "top")
    middles = np.cumsum(sizes) - sizes / 2 - 0.5
    ax.xaxis.tick_top()
    ax.set_xticks(middles, fitting(names, sizes, 10))
    _name_rows(ax, features)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    ax.tick_params(axis="x", pad=9)
    ax.spines[:].set_visible(False)
    key = ax.inset_axes((0, -1.3 / len(X), 0.14, 0.55 / len(X)))
    key.imshow([np.linspace(0, 1, 64)], cmap=shown, aspect="auto", interpolation="none")
    key.axis("off")
    ends = {"right": (-0.05, "\u22122.5 SD"), "left": (1.05, "2.5 SD from the mean")}
    for side, (at, words) in ends.items():
        key.text(at, 0.4, words, transform=key.transAxes, ha=side, va="center", size=9, color=INK)
    _title(ax, "what sets the clusters apart, sample by sample", pad=26)
    return ax


def plot_survival(found: "Survival", unit: str = "time", names: Any = None,
                  ax: Axes | None = None) -> Axes:  # fmt: skip
    """Draw the Kaplan-Meier curves of clusters, with the numbers at risk below.

    Parameters
    ----------
    found : Survival
        From `polyspan.explain.survival`.
    unit : str, default="time"
        What the horizontal axis shows.
    names : sequence of str, optional
        All clusters, in the order of their colors; None is those that have a curve.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from polyspan.explain import survival
    >>> found = survival([0, 0, 0, 1, 1, 1], [1, 2, 3, 10, 11, 12], [1, 1, 1, 1, 1, 0])
    >>> plot_survival(found, "months").get_xlabel()
    'months'
    """
    curves = found.curves
    names = [curve.cluster for curve in curves] if names is None else list(names)
    colors = cluster_colors(len(names))
    ax = on(ax, 6.8, 3.6 + 0.18 * len(curves))
    below: dict[str, Any] = {"textcoords": "offset points", "size": 9, "color": INK}
    below |= {"xycoords": ax.get_xaxis_transform(), "annotation_clip": False}
    ax.annotate("at risk", (0, 0), (-14, -38), ha="right", **below)
    for row, curve in enumerate(curves):
        color, down = colors[names.index(curve.cluster)], -52 - 13 * row
        ax.step(np.r_[0, curve.times], np.r_[1, curve.alive], where="post", color=color, lw=1.8,
                gid=f"title: {curve.cluster}")  # fmt: skip
        ax.annotate(short(curve.cluster, 10), (0, 0), (-14, down), ha="right", **below)
        ax.annotate("\u25a0", (0, 0), (-70, down), ha="right", **below | {"color": color})
        for tick, count in zip(found.ticks, found.at_risk[row], strict=True):
            ax.annotate(str(count), (tick, 0), (0, down), ha="center", **below)
    ax.set_xticks(found.ticks, [f"{tick:,g}" for tick in found.ticks])
    ax.set_yticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_xlim(0, 1.02 * max(float(curve.times[-1]) for curve in curves) or 1)
    ax.set_ylim(0, 1.03)
    ax.set_xlabel(short(unit, 40), color=INK, size=9)
    _plain(ax)
    _title(ax, "survival of the clusters")
    return ax


def plot_silhouettes(values: Any, labels: Any, names: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the silhouette of every sample, by cluster, the largest first.

    Parameters
    ----------
    values : (n,) array-like
        Silhouettes, for instance of `consensus_silhouette` or `sklearn.metrics`.
    labels : (n,) array-like
        Cluster of every sample.
    names : sequence of str, optional
        What the clusters are called, in the order of the sorted labels.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_silhouettes([0.2, 0.9, -0.1], ["a", "a", "b"])
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['a', 'b']
    """
    values = np.asarray(values, dtype=float)
    codes, names, colors = clusters_of(labels, names)
    order = np.lexsort((-values, codes))
    kept = order[np.unique(np.linspace(0, len(order) - 1, MOST_SILHOUETTES).round().astype(int))]
    ax = on(ax, 4.6, 2.4)
    for k, color in enumerate(colors):
        own = np.flatnonzero(codes[kept] == k)
        if len(own):
            edges = np.r_[own, own[-1] + 1]
            ax.stairs(values[kept[own]], edges, baseline=0, fill=True, color=color)
    sizes = np.bincount(codes[kept], minlength=len(names))
    ax.set_xticks(np.cumsum(sizes) - sizes / 2, fitting(names, sizes, 8))
    ax.set_xlim(0, len(kept))
    ax.locator_params(axis="y", nbins=4)
    _plain(ax)
    _title(ax, "silhouettes on the consensus")
    return ax


def plot_certainty(certainty: Any, ax: Axes | None = None) -> Axes:
    """Draw how certain the samples are, as a histogram of values from 0 to 1.

    Parameters
    ----------
    certainty : (n,) array-like
        For instance ``model.certainty_``.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_certainty([0.2, 0.9, 0.92])
    >>> len(ax.patches)
    20
    """
    ax = on(ax, 4.6, 2.3)
    counts, edges = np.histogram(certainty, 20, (0, 1))
    bars = ax.bar(edges[:-1] + 0.025, counts, 0.044, color=LINES[0])
    for bar, left, count in zip(bars, edges[:-1], counts, strict=True):
        samples = plural(int(count), "sample")
        bar.set_gid(f"title: {left:.2f} to {left + 0.05:.2f}: {samples}")
    ax.set_xlim(0, 1)
    ax.set_xlabel("certainty", color=INK, size=9)
    ax.locator_params(axis="y", integer=True, nbins=4)
    ax.yaxis.set_major_formatter("{x:,.0f}")
    _plain(ax)
    _title(ax, "certainty of the samples")
    return ax


def plot_flow(labels: Any, others: Any, names: Any = None, ax: Axes | None = None) -> Axes:
    """Draw who moves: bands from the clusters here (left) to those of another clustering.

    Parameters
    ----------
    labels, others : (n,) array-like
        The two clusterings of the same samples.
    names : sequence of str, optional
        What the clusters on the left are called, in the order of the sorted labels.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_flow([0, 0, 1, 1], [0, 0, 0, 1])
    >>> [name.get_text() for name in ax.texts]
    ['0 (2)', '1 (2)', '0 (3)', '1 (1)']
    """
    codes, names, colors = clusters_of(labels, names)
    there, ends, _ = clusters_of(others)
    counts = contingency_matrix(codes, there)
    gap = 0.02 * len(codes)
    ax = on(ax, 3.2, 3.2)
    sides = []
    for sizes, words, at, out, align, shades in (
        (counts.sum(axis=1), names, 0.0, -0.04, "right", colors),
        (counts.sum(axis=0), ends, 1.0, 1.04, "left", [FAINT] * len(ends)),
    ):
        starts = np.cumsum(sizes) - sizes + gap * np.arange(len(sizes))
        ax.bar([at] * len(sizes), sizes, 0.04, starts, color=shades)
        for name, start, size in zip(words, starts, sizes, strict=True):
            ax.text(out, start + size / 2, f"{short(name, 8)} ({size})", ha=align, va="center",
                    size=9, color=INK)  # fmt: skip
        sides.append(starts)
    left, right = sides
    kinds = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3, Path.CLOSEPOLY]
    for k, j in np.argwhere(counts > 0):
        size, a, b = counts[k, j], left[k], right[j]
        left[k], right[j] = a + size, b + size
        points = [(0.02, a), (0.5, a), (0.5, b), (0.98, b), (0.98, b + size), (0.5, b + size),
                  (0.5, a + size), (0.02, a + size), (0.02, a)]  # fmt: skip
        words = f"title: {names[k]} to {ends[j]}: {plural(int(size), 'sample')}"
        ax.add_patch(PathPatch(Path(points, kinds), fc=colors[k], alpha=0.45, lw=0, gid=words))
    ax.set_xlim(-0.4, 1.4)
    ax.set_ylim(len(codes) + gap * max(counts.shape), 0)
    ax.axis("off")
    _title(ax, "who moves: from here to there")
    return ax


def plot_agreement(scores: Mapping[str, float], ax: Axes | None = None) -> Axes:
    """Draw how well the clusters of every view alone agree with the result.

    Parameters
    ----------
    scores : mapping of str to float
        Normalized mutual information, 0 to 1, by view.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_agreement({"rna": 0.7, "protein": 0.4})
    >>> [name.get_text() for name in ax.texts]
    ['0.700', '0.400']
    """
    ax = on(ax, 4.8, 0.6 + 0.26 * len(scores))
    shares = np.array(list(scores.values()))
    bars = ax.barh(range(len(shares)), shares, 0.55, color=LINES[0])
    ax.bar_label(bars, [f"{share:.3f}" for share in shares], padding=4, size=9, color=INK)
    _name_rows(ax, scores)
    ax.set_xlim(0, 1.1)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_ylim(len(shares) - 0.4, -0.6)
    _plain(ax, "x")
    _title(ax, "NMI of each view alone with the result")
    return ax


def plot_count(
    values: Mapping[int, float], chosen: int | None = None, name: str = "", ax: Axes | None = None
) -> Axes:
    """Draw one kind of evidence for the number of clusters.

    Parameters
    ----------
    values : mapping of int to float
        By number of clusters.
    chosen : int, optional
        The number to mark.
    name : str
        What the values are.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_count({2: 0.1, 3: 0.4}, chosen=3, name="gaps")
    >>> ax.lines[0].get_xydata().tolist()
    [[2.0, 0.1], [3.0, 0.4]]
    """
    ax = on(ax, 4.6, 2.6)
    ax.plot(sorted(values), [values[k] for k in sorted(values)], "o-", color=LINES[0], lw=1.8, ms=4)
    if chosen is not None:
        ax.axvline(chosen, color=FAINT, lw=0.9, ls=(0, (4, 3)))
    ax.set_xlabel("number of clusters", color=INK, size=9)
    ax.locator_params(axis="x", integer=True)
    _plain(ax)
    _title(ax, short(name))
    return ax


def plot_convergence(
    history: Mapping[str, Sequence[float]], tol: float | None = None, ax: Axes | None = None
) -> Axes:
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
    ax = on(ax, 5.2, 3.6)
    for k, (name, values) in enumerate(history.items()):
        iterations = np.arange(1, len(values) + 1)
        shown = np.where(np.asarray(values, float) > 0, values, np.nan)  # no logarithm of zero
        words = RESIDUALS.get(name, name)
        ax.plot(iterations, shown, color=LINES[k % len(LINES)], lw=1.8, label=words)
    if tol:
        ax.axhline(tol, color=FAINT, lw=0.9, ls=(0, (4, 3)))
        ax.text(1, tol, f"tol = {tol:g}", va="bottom", color=FAINT, size=8)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(lambda value, _: f"1e{np.log10(value):.0f}".replace("-", "\u2212"))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("iteration", color=INK, size=9)
    _plain(ax)
    ax.legend(frameon=False, fontsize=8, labelcolor="linecolor", handlelength=1.2)
    _title(ax, "convergence: largest residuals")
    return ax


def plot_image_clusters(
    images: Any, labels: Any, wrong: Any = None, n_shown: int = 12, ax: Axes | None = None
) -> Axes:
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
    ax = on(ax)
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
                corner = (left - 0.2, top - 0.2)
                ax.add_patch(
                    Rectangle(corner, width - 0.6, height - 0.6, fill=False, ec=LINES[1], lw=1.2)
                )
    ax.imshow(sheet, cmap="Greys", vmin=0, vmax=float(images.max()) or 1.0)
    ax.set_xticks([])
    rows = np.arange(len(clusters))
    ax.set_yticks(rows * height + height / 2 - 0.5, [str(r + 1) for r in rows])
    ax.tick_params(length=0, labelsize=8, labelcolor=FAINT)
    ax.spines[:].set_visible(False)
    _title(ax, "clusters found")
    return ax


def _name_rows(ax: Any, names: Iterable[str]) -> None:
    """Names beside the rows, shortened; pointing at one tells all of it."""
    names = list(names)
    ax.set_yticks(range(len(names)), list(map(short, names)))
    for tick, name in zip(ax.get_yticklabels(), names, strict=True):
        tick.set_gid(f"title: {name}")


def _plain(ax: Any, lines: str = "y") -> None:
    """Axes of a chart: pale lines across, none around."""
    ax.tick_params(length=0, pad=6, labelsize=9, labelcolor=INK)
    ax.grid(axis=lines, color=EDGE, lw=0.7, alpha=0.7)
    ax.set_axisbelow(True)
    ax.spines[:].set_visible(False)


def _title(ax: Any, words: str, pad: float | None = None) -> None:
    ax.set_title(words, loc="left", color=INK, size=10, pad=pad)
