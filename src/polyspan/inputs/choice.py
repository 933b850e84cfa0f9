"""Which scalings suit a view, decided from its values alone, and why.

Nobody should have to know that word counts want unit length and that blood values in different
units want to be standardized; the values show it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.inputs.rows import missing_rows, present_rows
from polyspan.inputs.scaling import SCALES, STANDARDIZED, Scaling, moments_of
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import to_numpy
from polyspan.runtime.messages import plural, view_title

FEW = 5  # columns; with fewer, unit length takes away too much
MANY = 50  # columns; a table of measurements in different units seldom has so many
MIXED = 10.0  # spreads that differ by a larger factor are in different units
DIFFERENT = 100.0  # by a larger one, columns of small spread would count for nothing
ALIKE = 2.0  # spreads that differ by a smaller factor are all the same
ZEROS = 1 / 3  # of all values are many
DECADES = 1e3  # counts that differ by a larger factor need logarithms
EVEN = 0.1  # of their mean is a small spread of totals
FAR = 3.0  # spreads between the mean of a column and zero
TINY = np.finfo(np.float64).tiny  # instead of a spread that underflows
COUNTS: tuple[Scaling, ...] = ("unit", "standard+unit")  # what suits them
COMPARED = 50  # columns, the first ones, whose correlations are looked at


class ScalingChoice(NamedTuple):
    """The scalings that suit a view, the best first, and the reason in one sentence."""

    allowed: tuple[Scaling, ...]
    sentence: str


class Columns(NamedTuple):
    """What the columns of a view look like; those that are constant are only counted."""

    values: Any  # NumPy or sparse array
    n_constant: int
    size: np.ndarray  # largest absolute value of each column
    spread: np.ndarray  # standard deviation
    offset: np.ndarray  # distance of the mean from zero, in spreads
    positive: bool  # whether no value is negative
    whole: bool  # whether all values are whole numbers
    zeros: bool  # whether many values are zeros


def choose_scaling(X: Any, name: str) -> ScalingChoice:
    """Choose the scalings that suit one view.

    Parameters
    ----------
    X : (n, d) array or sparse array
        A checked view; rows of NaN, samples that lack the view, are left out.
    name : str
        What to call it in the sentence, as in `polyspan.inputs.views.Views`.

    Returns
    -------
    ScalingChoice
        ``allowed``, scalings for ``scale`` with the best first, and ``sentence``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> lipids = rng.lognormal(size=(50, 8)) * [0.1, 0.1, 0.2, 0.5, 1, 2, 5, 10]
    >>> choice = choose_scaling(lipids, "lipid")
    >>> choice.allowed
    ('standard+unit', 'standard')
    >>> print(choice.sentence)
    view 'lipid': columns differ in spread by a factor of 130, so they are standardized first
    """
    columns = look_at_columns(X)
    allowed, reason = _choose(columns)
    if _span_decades(columns):
        reason += "; the values span decades, so consider log1p"
    if n := columns.n_constant:
        constant = plural(n, "constant column carries", "constant columns carry")
        reason += f"; {constant} no information and {'is' if n == 1 else 'are'} ignored"
    return ScalingChoice(allowed, f"{view_title(name)}: {reason}")


def scalings_for(
    views: Views, choices: Sequence[ScalingChoice] | None = None
) -> list[tuple[Scaling, ...]]:
    """Distinct scalings of all views, one per view in each tuple, that are worth a vote.

    Each of `SCALES` is tried for all views; a view that it does not suit gets its own best one.
    ``choices`` are those of `choose_scaling`, if it was called already.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> rng = np.random.default_rng(0)
    >>> points, words = rng.normal(size=(60, 2)), rng.poisson(0.2, size=(60, 30))
    >>> scalings_for(check_views([points, words]))
    [(None, 'unit'), (None, 'standard+unit')]
    """
    if choices is None:
        choices = [choose_scaling(view, name) for view, name in views]
    allowed = [choice.allowed for choice in choices]
    per_view = [tuple(scale if scale in fits else fits[0] for fits in allowed) for scale in SCALES]
    return list(dict.fromkeys(per_view))


def two_scalings(
    views: Views, choices: Sequence[ScalingChoice] | None = None
) -> list[tuple[Scaling, ...]]:
    """The best scaling of every view, and one other of `scalings_for`, if there is any.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> X = np.random.default_rng(0).normal(size=(60, 30))
    >>> two_scalings(check_views([X]))
    [('unit',), ('standard+unit',)]
    """
    if choices is None:
        choices = [choose_scaling(view, name) for view, name in views]
    best = tuple(choice.allowed[0] for choice in choices)
    return list(dict.fromkeys([best, *scalings_for(views, choices)]))[:2]


def look_at_columns(X: Any) -> Columns:
    """Take the statistics that decide, over all samples that have the view.

    Examples
    --------
    >>> found = look_at_columns(np.array([[0.0, 1.0, 7.0], [0.0, 3.0, 7.0]]))
    >>> found.n_constant, found.spread, found.offset, found.whole
    (2, array([1.]), array([2.]), True)
    """
    if sp.issparse(X):
        return _look_at_sparse(sp.csr_array(X))
    X = to_numpy(X)
    X = present_rows(X, missing_rows(X))
    size, mean, spread = (x.ravel().astype(np.float64) for x in moments_of(X))
    vary = spread > 10 * np.finfo(X.dtype).eps  # the spread of a constant column is rounding error
    X, size, offset = X[:, vary], size[vary], np.abs(mean[vary]) / spread[vary]
    positive, whole = bool(np.all(X >= 0)), _whole(X)
    spread = np.maximum(size * spread[vary], TINY)
    zeros = bool(positive and len(size)) and _many_zeros(X, spread, whole)
    return Columns(X, int(np.sum(~vary)), size, spread, offset, positive, whole, zeros)


def _look_at_sparse(X: sp.csr_array) -> Columns:
    """Take the statistics of a sparse view."""
    high, low = (np.asarray(x.toarray()).ravel() for x in (X.max(axis=0), X.min(axis=0)))
    vary = high > low
    n_constant = int(np.sum(~vary))
    if vary.sum() < FEW:  # zeros are no reason then, and it is small
        few = look_at_columns(X[:, np.flatnonzero(vary) if vary.any() else [0]].toarray())
        return few._replace(n_constant=n_constant)
    X = X[:, np.flatnonzero(vary)]
    n, d = X.shape
    size = np.maximum(np.abs(high), np.abs(low))[vary].astype(np.float64)
    parts = X.data / size[X.indices]  # squares of very large numbers would overflow
    mean, squares = (np.bincount(X.indices, x, d) / n for x in (parts, parts**2))
    spread = np.sqrt(np.maximum(squares - mean**2, np.finfo(np.float64).eps))
    offset, spread = np.abs(mean) / spread, np.maximum(size * spread, TINY)
    positive = bool(np.all(X.data >= 0))
    return Columns(X, n_constant, size, spread, offset, positive, _whole(X.data), True)


def _many_zeros(X: np.ndarray, spread: np.ndarray, whole: bool) -> bool:
    """Whether many values are zeros, also in the columns that vary most.

    If zeros are only in the others, this is a table of yes-no questions and a few measurements.
    """
    zeros = np.mean(X == 0, axis=0)
    if float(zeros.mean()) < ZEROS:
        return False
    variance = (spread / spread.max()) ** 2
    return float(zeros @ variance / variance.sum()) >= 0.1 or (whole and len(zeros) >= MANY)


def _choose(c: Columns) -> tuple[tuple[Scaling, ...], str]:
    """Scalings and the reason for them."""
    d, factor = len(c.spread), _factor(c.spread)
    differ = f"columns differ in spread by a factor of {_words(factor)}"
    unit_length = "so samples are scaled to unit length"
    if _components(c):
        return (None, "unit")[: 2 if d >= FEW else 1], (
            "columns are centered, uncorrelated and of falling spread, as principal components, "
            "so their spreads are kept"
        )
    if d < FEW:
        return _few(d, factor, differ)
    if c.zeros:
        return COUNTS, f"many values are zeros, as in counts, {unit_length}"
    if MIXED < factor <= DIFFERENT and _histograms(c):
        why = "values are counts with the same total in every sample, as in histograms"
        return COUNTS, f"{why}, {unit_length}"
    if factor > MIXED and (same := _one_unit(c)):
        return SCALES, f"{differ}, but {same}, {unit_length} as they are"
    if factor > MIXED:
        return STANDARDIZED, f"{differ}, so they are standardized first"
    if _one_rules(c.spread):
        why = "one column varies more than all others together"
        return STANDARDIZED, f"{why}, so they are standardized first"
    if float(np.median(c.offset)) > FAR:
        return ("standard+unit", "unit", "standard", None), (
            "values are far from zero compared with their spread, as expression values are, so "
            "columns are standardized first"
        )
    differ = f"columns differ in spread by a factor of only {_words(factor)}"
    return SCALES, f"{differ}, {unit_length} as they are"


def _few(d: int, factor: float, differ: str) -> tuple[tuple[Scaling, ...], str]:
    """For few columns: unit length would take away most of what they say."""
    only = f"only {plural(d, 'column varies', 'columns vary')}, too few for unit length"
    if factor > MIXED:
        return ("standard",), f"{only}, and {differ}, so they are standardized"
    allowed: tuple[Scaling, ...] = (None,) if factor <= ALIKE else (None, "standard")
    return allowed, f"{only}, so values stay as they are"


def _components(c: Columns) -> bool:
    """Whether the columns look like principal components, perhaps of more samples than these."""
    n, d = c.values.shape
    if sp.issparse(c.values) or d < 2 or _factor(c.spread) < ALIKE:
        return False
    centered = float(np.quantile(c.offset, 0.95)) < 0.1 + 3 / np.sqrt(n)
    ranks = np.argsort(np.argsort(-c.spread))
    if not centered or float(np.corrcoef(ranks, np.arange(d))[0, 1]) < 0.95:
        return False
    first = min(d, COMPARED)
    R = np.corrcoef(c.values[:, :first] / c.size[:first], rowvar=False) - np.eye(first)
    return float(np.sqrt(np.sum(R**2) / (first * (first - 1)))) < 2 / np.sqrt(n)


def _histograms(c: Columns) -> bool:
    """Whether samples are counts of equally many things, of which some are rarer than others.

    Rare things vary as much as frequent ones, in proportion to their mean. Counts of genes have
    other totals.
    """
    if not (c.positive and c.whole and len(c.size) >= MANY and _factor(c.offset) < MIXED / 2):
        return False
    totals = c.values.sum(axis=1)
    return bool(totals.std() < EVEN * totals.mean())


def _one_unit(c: Columns) -> str:
    """Why columns of different spread are in one unit nevertheless; empty when they are not."""
    if c.positive and float(c.size.max()) <= 1 and float(np.median(c.size)) > 0.5:
        return "all values are between 0 and 1"
    if len(c.size) >= MANY and _factor(c.spread * np.hypot(c.offset, 1)) < MIXED / 2:
        return "all of them lie in one range"
    return ""


def _one_rules(spread: np.ndarray) -> bool:
    """Whether one column has most of the variance, and a spread far from the usual one."""
    variance = (spread / spread.max()) ** 2
    return bool(variance.sum() < 2 and spread.max() / MIXED > np.median(spread))


def _span_decades(c: Columns) -> bool:
    """Whether values are counts or the like, some of them thousands of times larger."""
    if not c.positive or len(c.size) < FEW or c.size.max() / DECADES <= c.size.min():
        return False
    skewed = np.mean(c.offset < 1) > 0.5
    return bool(c.zeros or skewed or (c.whole and len(c.size) >= MANY))


def _factor(x: np.ndarray) -> float:
    """The 95% over the 5% quantile of positive numbers."""
    if not x.size:
        return 1.0
    low, high = np.quantile(np.log10(x), [0.05, 0.95])
    return float(10 ** min(high - low, 300.0))


def _words(factor: float) -> str:
    """A factor with two digits."""
    if factor >= 1e6:
        return "more than a million"
    rounded = float(f"{factor:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def _whole(x: np.ndarray) -> bool:
    """Whether all are whole numbers, and not only for want of digits."""
    return bool(np.all(x == np.round(x)) and np.all(np.abs(x) < 1 / np.finfo(x.dtype).eps))
