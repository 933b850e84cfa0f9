"""Figures of a benchmark: scores next to the paper's, a grid as a heat map, a method diagram."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from harness.budgets import Budget, budgets
from harness.store import Row, latest
from harness.summaries import Summary, split, summarize
from polyspan.figures import EDGE, FAINT, INK, LINES, new_figure, save_figure
from polyspan.graphs import proximity
from polyspan.runtime.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def save_figures(rows: list[Row], folder: str | Path) -> list[Path]:
    """Draw what the rows of a store allow.

    One figure of all NMI, one of the expected best NMI for every data set where something was
    tuned, one of each lam1 x lam2 grid.

    Examples
    --------
    >>> import tempfile
    >>> from polyspan.metrics import SCORES
    >>> row = {"protocol": "mine", "dataset": "planted", "source": {"name": "subspaces"},
    ...        "method": "GRMSC", "paper": "GRMSC", "selection": "default", "params": {}, "seed": 0,
    ...        "stage": "final", "key": "1", "status": "ok", "reason": None, "converged": True,
    ...        "seconds": 1.0, **dict.fromkeys(SCORES, 0.5)}
    >>> with tempfile.TemporaryDirectory() as place:
    ...     [path.name for path in save_figures([row], place)]
    ['mine-nmi.png']
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: create it first")
    done = []
    for title, own in split(rows).items():
        name = title if title == own[0]["protocol"] else _file_name(title)
        done.append(save_figure(plot_scores(summarize(own)), folder / f"{name}-nmi.png"))
        for dataset in dict.fromkeys(row["dataset"] for row in own):
            if any(row["dataset"] == dataset and row["stage"] == "tune" for row in own):
                curves = _file_name(f"{name}-budgets-{dataset}")
                figure = plot_budgets(budgets(own), dataset).figure
                done.append(save_figure(figure, folder / f"{curves}.png"))  # type: ignore[arg-type]
            for method in dict.fromkeys(row["method"] for row in own):
                if _grid_rows(own, dataset, method):
                    figure = plot_grid(own, dataset, method).figure
                    grid = _file_name(f"{name}-grid-{dataset}-{method}")
                    done.append(save_figure(figure, folder / f"{grid}.png"))  # type: ignore[arg-type]
    return done


def plot_scores(summaries: Sequence[Summary]) -> "Figure":
    """NMI of every method, one panel per data set; a ring is the paper's value."""
    found = [one for one in summaries if "nmi" in one.mean]
    if not found:
        raise ValueError("no run was successful: there is nothing to draw")
    datasets = list(dict.fromkeys(one.dataset for one in found))
    names = list(dict.fromkeys((one.selection, one.method) for one in found))
    colors = dict(zip(("tuned", "nothing to tune", "default", "label-free"), LINES, strict=False))
    names.sort(key=lambda name: list(colors).index(name[0]))
    place = {name: -k for k, name in enumerate(names)}
    figure = new_figure(2.2 + 1.75 * len(datasets), 1.1 + 0.22 * len(names))
    axes = figure.subplots(1, len(datasets), sharey=True, squeeze=False)[0]
    for ax, dataset in zip(axes, datasets, strict=True):
        for one in (one for one in found if one.dataset == dataset):
            y = place[one.selection, one.method]
            if one.published:
                ring = {"ms": 8, "mfc": "none", "mec": FAINT, "mew": 1, "clip_on": False}
                ax.plot(one.published["nmi"][0], y, "o", **ring)
            ax.plot(one.mean["nmi"], y, "o", ms=4.5, color=colors[one.selection], clip_on=False)
        best = max(one.mean["nmi"] for one in found if one.dataset == dataset)
        ax.axvline(best, color=EDGE, lw=0.8, zorder=0)
        ax.set_title(dataset.split(" (")[0], size=9, color=INK)
        ax.grid(axis="y", color="#eceff3", lw=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.spines["bottom"].set_color(EDGE)
        ax.margins(y=0.6 / len(names))
        ax.tick_params(length=0, labelsize=8, colors=FAINT)
    axes[0].set_yticks(list(place.values()), [method for _, method in place], color=INK)
    for tick, (selection, _) in zip(axes[0].get_yticklabels(), place, strict=True):
        tick.set_color(colors[selection])
    figure.supxlabel("NMI", size=9, color=INK)
    marks = [ax.plot([], [], "o", ms=4.5, color=color)[0] for color in colors.values()]
    marks.append(ax.plot([], [], "o", ms=8, mfc="none", mec=FAINT)[0])
    shown = [name in {selection for selection, _ in names} for name in colors] + [True]
    words = [*colors, "the paper"]
    figure.legend(
        [mark for mark, there in zip(marks, shown, strict=True) if there],
        [word for word, there in zip(words, shown, strict=True) if there],
        loc="outside upper right", ncols=4, frameon=False, fontsize=8, labelcolor=INK,
    )  # fmt: skip
    return figure


def plot_grid(
    rows: list[Row],
    dataset: str,
    method: str = "GRMSC",
    *,
    values: Sequence[float] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """NMI over the grid of lam1 and lam2, with all else as in the best setting of the grid.

    Parameters
    ----------
    rows : list of dict
        Rows of one protocol.
    dataset, method : str
        Their names in the rows.
    values : sequence of float, optional
        Show only these values of lam1 and lam2.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes
    """
    tried = _grid_rows(rows, dataset, method)
    if values is not None:
        inside = [row["params"]["lam1"] in values and row["params"]["lam2"] in values
                  for row in tried]  # fmt: skip
        tried = [row for row, kept in zip(tried, inside, strict=True) if kept]
    if not tried:
        raise ValueError(f"no grid of lam1 and lam2 was run for {method} on {dataset}")
    best = max(tried, key=lambda row: row["nmi"])["params"]
    rest = {name: value for name, value in best.items() if name not in ("lam1", "lam2")}
    plane = {
        (row["params"]["lam1"], row["params"]["lam2"]): row["nmi"]
        for row in tried
        if all(row["params"][name] == value for name, value in rest.items())
    }
    ys, xs = (sorted({pair[side] for pair in plane}) for side in (0, 1))
    scores = np.array([[plane.get((y, x), np.nan) for x in xs] for y in ys])
    ax = new_figure(1.6 + 0.55 * len(xs), 1.2 + 0.42 * len(ys)).add_subplot() if ax is None else ax
    ax.imshow(scores, cmap="Blues", origin="lower", aspect="auto")
    low, high = np.nanmin(scores), np.nanmax(scores)
    for (i, j), score in np.ndenumerate(scores):
        dark = score > low + 0.6 * (high - low)
        words = "" if np.isnan(score) else f"{score:.2f}".lstrip("0")
        ax.text(j, i, words, ha="center", va="center", size=8, color="white" if dark else INK)
    ax.set_xticks(range(len(xs)), [f"{x:g}" for x in xs])
    ax.set_yticks(range(len(ys)), [f"{y:g}" for y in ys])
    ax.tick_params(length=0, labelsize=8, labelcolor=INK)
    ax.spines[:].set_visible(False)
    ax.set_xlabel("lam2", size=9, color=INK)
    ax.set_ylabel("lam1", size=9, color=INK)
    words = ", ".join(f"{name}={value}" for name, value in rest.items())
    _title(ax, f"NMI of {method} on {dataset}\n{words}")
    return ax


def plot_budgets(found: Sequence[Budget], dataset: str, *, ax: "Axes | None" = None) -> "Axes":
    """The best NMI to expect after so many settings, tried at random: one line per method.

    Methods without settings to try are dots at 1. The legend is in the order of the best.

    Parameters
    ----------
    found : sequence of Budget
        From `harness.budgets.budgets`.
    dataset : str
        Its name in the rows.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from harness.budgets import Budget
    >>> ax = plot_budgets([Budget("NGs", "GRMSC", "tuned", np.array([0.5, 0.8]))], "NGs")
    >>> ax.get_legend_handles_labels()[1]
    ['GRMSC (2)']
    """
    own = sorted((one for one in found if one.dataset == dataset), key=lambda one: -one.curve[-1])
    if not own:
        raise ValueError(f"no run was successful on {dataset}: there is nothing to draw")
    ax = new_figure(6.4, 1.4 + 0.19 * len(own)).add_subplot() if ax is None else ax
    lines, dots = count(), count()
    for one in own:
        n = len(one.curve)
        k = next(lines if n > 1 else dots)
        words = f" ({n})" if one.selection == "tuned" else f", {one.selection}"
        color, style = LINES[k % len(LINES)], k // len(LINES) % 4
        if n > 1:
            (drawn,) = ax.plot(range(1, n + 1), one.curve, ("-", "--", ":", "-.")[style], lw=1.6)
        else:
            (drawn,) = ax.plot(1, one.curve[0], "osD^"[style], ms=4.5, clip_on=False)
        drawn.set(color=color, label=one.method + words)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("settings tried", size=9, color=INK)
    ax.set_ylabel("expected best NMI", size=9, color=INK)
    ax.grid(color="#eceff3", lw=0.8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(length=0, labelsize=8, colors=FAINT)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False, fontsize=7.5,
              labelcolor=INK)  # fmt: skip
    _title(ax, dataset)
    return ax


def plot_method(
    Xs: Sequence[Array], labels: Any, Z: Array, n_neighbors: int, names: Sequence[str] = ()
) -> "Figure":
    """The method as a diagram of a real run, samples sorted by cluster.

    It shows the first-order graphs of the views, what they share (consistent), the second-order
    graphs, and Z.

    Parameters
    ----------
    Xs : sequence of (n, d_k) arrays
        The scaled views.
    labels : (n,) array-like
        The clusters found.
    Z : (n, n) array
        The representation found.
    n_neighbors : int
        Number of neighbors in the graphs.
    names : sequence of str, optional
        Names of the views.
    """
    order = np.argsort(labels, kind="stable")
    firsts = [np.asarray(proximity.first_order(X, n_neighbors)[0]) for X in Xs]
    seconds = [proximity.second_order(Lambda) for Lambda in firsts]
    common = proximity.consistent([sp.csr_array(Lambda) for Lambda in firsts]).toarray()
    v = len(Xs)
    figure = new_figure(10.5, 2.1 * v + 0.4)
    grid = figure.add_gridspec(2 * v, 4, width_ratios=[1, 1, 1, 2])
    middle = slice(v - 1, v + 1)
    for k in range(v):
        at = slice(2 * k, 2 * k + 2)
        name = names[k] if names else f"view {k + 1}"
        _matrix(figure.add_subplot(grid[at, 0]), firsts[k], order, rf"$\Lambda$ of {name}")
        _matrix(figure.add_subplot(grid[at, 2]), seconds[k], order, rf"$\Upsilon$ of {name}")
    both = figure.add_subplot(grid[middle, 1])
    _matrix(both, common, order, r"$\Lambda^*$ of all views")
    large = figure.add_subplot(grid[:, 3])
    _matrix(large, np.abs(Z) + np.abs(Z).T, order, r"$|Z| + |Z|^T$")
    words = ("First order: mutual neighbors", "Consistent: in every view",
             "Second order: similar neighborhoods", "Representation")  # fmt: skip
    for ax, text in zip((*figure.axes[:1], both, figure.axes[1], large), words, strict=True):
        _title(ax, f"{text}\n{ax.get_title('left')}")
    for ax in (both, large):
        ax.annotate("", (-0.02, 0.5), (-0.14 if ax is both else -0.05, 0.5), "axes fraction",
                    arrowprops={"arrowstyle": "-|>", "color": FAINT})  # fmt: skip
    return figure


def _matrix(ax: "Axes", A: Array, order: np.ndarray, title: str) -> None:
    """Draw a non-negative matrix with its samples in order; sparse matrices are drawn as dots."""
    A = np.asarray(A)[np.ix_(order, order)].copy()
    np.fill_diagonal(A, 0)
    n, filled = len(A), np.count_nonzero(A)
    if filled < 0.1 * n * n:
        ax.spy(A, markersize=float(np.clip(0.05 * n / filled**0.5, 0.3, 1.6)), color=LINES[0])
    else:
        low, high = np.percentile(A[~np.eye(n, dtype=bool)], [1, 99])
        np.fill_diagonal(A, low)
        shades = np.sqrt(np.clip((A - low) / ((high - low) or 1.0), 0, 1))
        ax.imshow(shades, cmap="Blues", interpolation_stage="data")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color(EDGE)
    _title(ax, title)


def _title(ax: "Axes", words: str) -> None:
    ax.set_title(words, size=9, color=INK, loc="left")


def _grid_rows(rows: list[Row], dataset: str, method: str) -> list[Row]:
    """Rows of the tuning stage that vary both lam1 and lam2."""
    found = [
        row
        for row in latest(rows)
        if (row["dataset"], row["method"], row["stage"], row["status"])
        == (dataset, method, "tune", "ok")
        and {"lam1", "lam2"} <= row["params"].keys()
        and row["seed"] == 0  # the others are at some settings only
    ]
    both = all(len({row["params"][name] for row in found}) > 1 for name in ("lam1", "lam2"))
    return found if both else []


def _file_name(words: str) -> str:
    """Replace everything but letters and digits by dashes."""
    plain = "".join(letter.lower() if letter.isalnum() else "-" for letter in words)
    return "-".join(part for part in plain.split("-") if part)
