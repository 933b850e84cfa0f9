"""Audits of clustering methods: whether a score is worth what it says.

Samples of most public files are sorted by class. A method that sees the order of the samples sees
the classes there, and its scores fall once the same samples are shuffled. `order_effect` measures
by how much, for the methods of this library and for anything else with ``fit_predict``.
"""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import t
from sklearn.base import clone
from sklearn.utils import check_random_state

from polyspan.figures import FAINT, INK, LINES, new_figure
from polyspan.metrics import clustering_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ORDERS = ("sorted by class", "as given", "shuffled")
NEGLIGIBLE = 0.005  # effects up to this are none
SURE = 0.99  # how sure a verdict is that it is not chance
HEADER = ("method", *ORDERS, "sorted - shuffled", "chance")


class OrderEffect(NamedTuple):
    """Scores of one method in three orders of the same samples; see `order_effect`.

    Examples
    --------
    >>> found = OrderEffect("Mine", {"sorted by class": [0.9, 0.9], "as given": [0.7, 0.7],
    ...                              "shuffled": [0.6, 0.6]})
    >>> round(found.effect, 3), found.verdict
    (0.3, 'Mine sees the order of the samples: NMI 0.900 sorted by class, 0.600 shuffled.')
    """

    name: str
    scores: dict[str, list[float]]  # NMI of every run, by `ORDERS`

    @property
    def effect(self) -> float:
        """Mean score of the samples sorted by class minus that of the shuffled ones."""
        return float(np.mean(self.scores[ORDERS[0]]) - np.mean(self.scores[ORDERS[-1]]))

    @property
    def error(self) -> float:
        """Standard error of the effect, from the spread over the runs."""
        both = (self.scores[ORDERS[0]], self.scores[ORDERS[-1]])
        return float(np.sqrt(sum(np.var(one, ddof=1) / len(one) for one in both)))

    @property
    def chance(self) -> float:
        """What chance exceeds once in a hundred times where there is no effect, by Student's t.

        Two standard errors would be exceeded by one in twelve methods at five runs each.
        """
        free = sum(len(self.scores[order]) - 1 for order in (ORDERS[0], ORDERS[-1]))
        return float(t.ppf((1 + SURE) / 2, free)) * self.error

    @property
    def blind(self) -> bool:
        """Whether the effect is at most .005, or may be chance."""
        return abs(self.effect) <= max(NEGLIGIBLE, self.chance)

    @property
    def verdict(self) -> str:
        """One sentence."""
        means = (float(np.mean(self.scores[order])) for order in (ORDERS[0], ORDERS[-1]))
        told = "NMI {:.3f} sorted by class, {:.3f} shuffled".format(*means)
        if not self.blind:
            return f"{self.name} sees the order of the samples: {told}."
        if abs(self.effect) <= NEGLIGIBLE:
            return f"{self.name} does not see the order of the samples: {told}."
        return (
            f"{self.name} shows no effect of the order beyond the noise: {told}, and chance alone "
            f"may make a difference of {self.chance:.3f}."
        )

    def table(self) -> str:
        """Mean and standard deviation in the three orders, in Markdown."""
        return effect_table([self])

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw all scores, see `plot_effects`."""
        return plot_effects([self], ax)


def order_effect(
    estimator: Any,
    views: Sequence[Any],
    labels: Any,
    n_orders: int = 5,
    random_state: int | np.random.RandomState | None = None,
) -> OrderEffect:
    """Measure what a method gains from the order of the samples.

    The samples are clustered as they are, sorted by class, and shuffled, each ``n_orders`` times
    with other seeds and other orders (sorted: within the classes). The labels sort and score; the
    method never gets them. Warnings of the fits are not shown.

    Parameters
    ----------
    estimator : object with ``fit_predict(views)``
        The method. It is copied for every run, and gets the seed of the run if it has a parameter
        ``random_state``.
    views : list of (n, d_k) arrays, sparse matrices or tables
        The views, samples in rows.
    labels : (n,) array-like
        True class of every sample.
    n_orders : int, default=5
        Runs per order, 2 or more.
    random_state : int, RandomState or None, default=None
        Draws the orders and the seeds.

    Returns
    -------
    OrderEffect
        Its ``verdict`` is one sentence; `OrderEffect.table` and `OrderEffect.plot` show the scores.

    Examples
    --------
    >>> from polyspan import ConcatSpectral
    >>> from polyspan.audit import order_effect
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> found = order_effect(ConcatSpectral(3), data.views, data.labels, n_orders=2, random_state=0)
    >>> found.blind
    True
    """
    labels = _checked(estimator, views, labels, n_orders)
    n, rng = len(labels), check_random_state(random_state)
    scores: dict[str, list[float]] = {order: [] for order in ORDERS}
    for _ in range(n_orders):
        seed, shuffled = rng.randint(2**31), rng.permutation(n)
        by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
        for order, rows in zip(ORDERS, (by_class, np.arange(n), shuffled), strict=True):
            model = clone(estimator, safe=False)
            if "random_state" in getattr(model, "get_params", dict)():
                model.set_params(random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                found = model.fit_predict([_take(view, rows) for view in views])
            scores[order].append(float(clustering_scores(labels[rows], found)["nmi"]))
    return OrderEffect(type(estimator).__name__, scores)


def _checked(estimator: Any, views: Any, labels: Any, n_orders: int) -> np.ndarray:
    """Return the classes as numbers, or say what is wrong with the arguments."""
    if not hasattr(estimator, "fit_predict") or isinstance(estimator, type):
        raise TypeError(
            "order_effect: estimator must be an object with fit_predict, such as "
            f"GRMSC(n_clusters=3); got {estimator!r}."
        )
    if not isinstance(views, list | tuple):
        raise TypeError(
            f"order_effect: views must be a list of views; got {type(views).__name__}: put a "
            "single one in a list."
        )
    if not isinstance(n_orders, int | np.integer) or n_orders < 2:
        raise ValueError(f"order_effect: n_orders must be an integer >= 2; got {n_orders!r}.")
    classes, numbers = np.unique(np.asarray(labels), return_inverse=True)
    for k, view in enumerate(views):
        if view.shape[0] != len(numbers):
            raise ValueError(
                f"order_effect: view {k} has {view.shape[0]} samples, but there are "
                f"{len(numbers)} labels: pass one label per sample."
            )
    if len(classes) < 2:
        raise ValueError("order_effect: labels has one class only: there is nothing to sort by.")
    return numbers


def _take(view: Any, rows: np.ndarray) -> Any:
    return view.iloc[rows] if hasattr(view, "iloc") else view[rows]


def effect_table(effects: Sequence[OrderEffect]) -> str:
    """Scores of several methods in the three orders, mean (standard deviation), in Markdown.

    Examples
    --------
    >>> same = dict.fromkeys(ORDERS, [0.5, 0.7])
    >>> print(effect_table([OrderEffect("Mine", same)]).splitlines()[2])
    | Mine | 0.600 (0.141) | 0.600 (0.141) | 0.600 (0.141) | +0.000 | 1.404 |
    """
    lines = [HEADER, ("---",) * len(HEADER), *(table_row(one) for one in effects)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def table_row(found: OrderEffect) -> tuple[str, ...]:
    """Cells of one method, under `HEADER`.

    Examples
    --------
    >>> table_row(OrderEffect("Mine", dict.fromkeys(ORDERS, [0.5, 0.5])))[3:]
    ('0.500 (0.000)', '+0.000', '0.000')
    """
    means = (f"{np.mean(s):.3f} ({np.std(s, ddof=1):.3f})" for s in found.scores.values())
    return (found.name, *means, f"{found.effect:+.3f}", f"{found.chance:.3f}")


def plot_effects(effects: Sequence[OrderEffect], ax: "Axes | None" = None) -> "Axes":
    """Draw the scores of several methods in the three orders: one row each, every run a dot.

    Parameters
    ----------
    effects : list of OrderEffect
        What `order_effect` returned.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_effects([OrderEffect("Mine", dict.fromkeys(ORDERS, [0.5, 0.7]))])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['Mine']
    """
    if ax is None:
        ax = new_figure(6.4, 1.5 + 0.42 * len(effects)).add_subplot()
    colors = (LINES[1], FAINT, LINES[0])
    for row, found in enumerate(effects):
        means = {}
        for order, color, up in zip(ORDERS, colors, (-0.22, 0.0, 0.22), strict=True):
            scores = found.scores[order]
            means[order] = np.mean(scores)
            height = np.full(len(scores), row + up)
            ax.plot(scores, height, "o", color=color, alpha=0.35, markersize=4, clip_on=False)
            told = order if row == 0 else None
            ax.plot(
                means[order], row + up, "|", color=color, markersize=11, mew=2.5, label=told,
                clip_on=False,
            )  # fmt: skip
        if not found.blind:
            ends = (means[ORDERS[0]], means[ORDERS[-1]])
            ax.plot(ends, (row - 0.22, row + 0.22), color=LINES[1], linewidth=1)
    ax.set_yticks(range(len(effects)), [found.name for found in effects])
    ax.set_ylim(len(effects) - 0.45, -0.55)
    ax.set_xlim(0, 1)
    ax.set_xlabel("NMI; dots: runs, bars: means, line: more than chance between the means")
    ax.xaxis.label.set(color=FAINT, size=8)
    ax.tick_params(length=0, labelsize=9, labelcolor=INK)
    ax.grid(axis="x", color="#e8ebef", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[:].set_visible(False)
    ax.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize=9, handlelength=1
    )
    return ax
