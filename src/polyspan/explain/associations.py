"""Clusters against what is known of the samples: contingency tables, tests, agreement."""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from scipy import stats
from scipy.stats.contingency import crosstab, expected_freq

from polyspan.explain.given import is_unknown, label_codes
from polyspan.io.columns import as_numbers
from polyspan.metrics import clustering_scores

MOST_CLASSES = 5  # different numbers that still count as classes, such as a grade
FEWEST_EXPECTED = 5  # in every cell of a contingency table, for the chi-squared distribution
N_PERMUTATIONS = 9999


_DATE = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?([T ].*)?|\d\d?[-/.]\d\d?[-/.]\d{2,4}([T ].*)?")


class Association(NamedTuple):
    """How one known column relates to the clusters.

    Attributes
    ----------
    column : str
        Its name.
    kind : {"classes", "numbers", ""}
        "" if it was not compared.
    n_samples : int
        Samples for which it is known.
    test : str
        Chi-squared, Fisher, or Kruskal-Wallis; or why it was not compared.
    statistic, p, p_adjusted : float
        The test, and its p-value corrected over the columns (Benjamini and Hochberg); NaN where
        there is none.
    ari, nmi : float
        Agreement of classes with the clusters; NaN for numbers.
    values : list of str
        The classes; for numbers, the quartiles by name.
    table : (c, len(values)) array
        Samples of every cluster in every class; for numbers, the quartiles in every cluster.
    """

    column: str
    kind: str
    n_samples: int
    test: str
    statistic: float
    p: float
    p_adjusted: float
    ari: float
    nmi: float
    values: list[str]
    table: np.ndarray

    def row(self) -> dict[str, Any]:
        """The numbers by name, without the table."""
        return {k: v for k, v in self._asdict().items() if k not in ("values", "table")}


def associations(labels: Any, known: Mapping[str, Any]) -> list[Association]:
    """Test whether clusters and known columns are independent.

    Classes: chi-squared test of the contingency table; where a cell expects fewer than five
    samples, Fisher's exact test of a 2 x 2 table, and 9,999 random permutations of a larger one.
    Numbers: Kruskal-Wallis test. Numbers with at most five different values count as classes.

    Parameters
    ----------
    labels : (n,) array-like
        Cluster of every sample.
    known : mapping of str to sequence of length n
        Columns of numbers or words; None, NaN and "" are unknown. A pandas.DataFrame will do.

    Returns
    -------
    list of Association
        The most telling first; at the end those that cannot be compared, with the reason.

    Examples
    --------
    >>> found = associations([0, 0, 0, 1, 1, 1], {"diet": ["fish"] * 3 + ["corn"] * 3})
    >>> found[0].test, round(found[0].p, 3), found[0].ari, found[0].table.tolist()
    ('Fisher', 0.1, 1.0, [[0, 3], [3, 0]])
    """
    clusters, codes = label_codes(labels, len(np.asarray(labels)))
    found = [_associate(codes, len(clusters), str(k), known[k]) for k in known]
    tested = [one for one in found if one.kind]
    if tested:
        corrected = stats.false_discovery_control([one.p for one in tested]).tolist()
        pairs = zip(tested, corrected, strict=True)
        tested = [one._replace(p_adjusted=p) for one, p in pairs]
    tested.sort(key=lambda one: (one.p, -np.nan_to_num(one.nmi)))
    return tested + [one for one in found if not one.kind]


def _associate(codes: np.ndarray, c: int, name: str, column: Sequence[Any]) -> Association:
    values = list(column)
    if len(values) != len(codes):
        raise ValueError(
            f"{name} has {len(values)} values, but there are {len(codes)} samples: give one each."
        )
    rows = np.array([i for i, one in enumerate(values) if not is_unknown(one)], dtype=int)
    own, values = codes[rows], [values[i] for i in rows]
    numbers = as_numbers(values) if values else None
    nan = float("nan")
    left = Association(name, "", len(rows), "", nan, nan, nan, nan, nan, [], np.zeros((c, 0)))
    words = list(map(as_class, values))
    different = len(set(words))
    if different < 2:
        return left._replace(test="the same for all" if different else "unknown for all")
    if len(np.unique(own)) < 2:
        return left._replace(test="known in one cluster only")
    if numbers is not None and different > MOST_CLASSES:
        groups = [numbers[own == k] for k in range(c)]
        test = stats.kruskal(*(one for one in groups if len(one)))
        cuts = [0.25, 0.5, 0.75]
        quartiles = [np.quantile(one, cuts) if len(one) else [nan] * 3 for one in groups]
        return left._replace(
            kind="numbers", test="Kruskal-Wallis", statistic=float(test.statistic),
            p=float(test.pvalue), values=["lower quartile", "median", "upper quartile"],
            table=np.array(quartiles),
        )  # fmt: skip
    if numbers is None and all(map(_is_date, values)):
        return left._replace(test="dates are not compared")
    if different == len(words):
        return left._replace(test="different for all")
    (_, classes), table = crosstab(own, words, levels=(range(c), None))
    scores = clustering_scores(words, own)
    test_name, statistic, p = _independence(table, own, np.searchsorted(classes, words))
    return left._replace(
        kind="classes", test=test_name, statistic=statistic, p=p, ari=scores["ari"],
        nmi=scores["nmi"], values=classes.tolist(), table=table,
    )  # fmt: skip


def _is_date(value: Any) -> bool:
    return isinstance(value, date | np.datetime64) or (
        isinstance(value, str) and bool(_DATE.fullmatch(value.strip()))
    )


def as_class(value: Any) -> str:
    """A value as a class: 1.0 and 1 are the same."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _independence(
    table: np.ndarray, codes: np.ndarray, classes: np.ndarray
) -> tuple[str, float, float]:
    """The name of the test, its statistic, and its p-value."""
    table = table[table.sum(axis=1) > 0]
    expected = expected_freq(table)
    if expected.min() >= FEWEST_EXPECTED:
        test = stats.chi2_contingency(table, correction=False)
        return "chi-squared", float(test.statistic), float(test.pvalue)
    if table.shape == (2, 2):
        exact = stats.fisher_exact(table)
        return "Fisher", float(exact.statistic), float(exact.pvalue)
    cells = np.unique(codes, return_inverse=True)[1] * table.shape[1]

    def statistic(order: np.ndarray) -> float:
        counts = np.bincount(cells + order.astype(int), minlength=table.size)
        return float((counts.reshape(table.shape) ** 2 / expected).sum() - len(codes))

    found = stats.permutation_test(
        (classes,), statistic, permutation_type="pairings", alternative="greater",
        n_resamples=N_PERMUTATIONS, random_state=0,
    )  # fmt: skip
    return "chi-squared, permuted", float(found.statistic), float(found.pvalue)
