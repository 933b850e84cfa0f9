"""Equal budgets: the best score to expect after so many settings, tried at random.

Best scores of methods that were tuned over grids of different sizes cannot be compared: whoever
tries more finds more. Here all methods may try the same number of settings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.jobs import TUNE_SCORE
from harness.store import Row, latest
from harness.summaries import summarize

BUDGETS = (1, 10, 100)  # in tables


@dataclass(frozen=True)
class Budget:
    """A method on a data set, and the best score to expect after 1, 2, ... settings.

    Examples
    --------
    >>> one = Budget("NGs", "GRMSC", "tuned", np.array([0.5, 0.75, 0.8]))
    >>> one.after(2), one.after(100)  # there are three settings
    (0.75, 0.8)
    """

    dataset: str
    method: str
    selection: str
    curve: np.ndarray

    def after(self, m: int) -> float:
        """The best score to expect after m settings; after all, if there are fewer."""
        return float(self.curve[min(m, len(self.curve)) - 1])


def expected_best(scores: Sequence[float]) -> np.ndarray:
    """Mean of the best of m scores drawn without replacement, for m = 1, 2, ..., all.

    The i-th of n sorted scores is the best of m in C(i - 1, m - 1) of the C(n, m) draws.

    Parameters
    ----------
    scores : sequence of float

    Returns
    -------
    (n,) array
        It starts with the mean of the scores and ends with the best.

    Examples
    --------
    >>> expected_best([0.0, 0.5, 1.0]).round(3).tolist()
    [0.5, 0.833, 1.0]
    """
    v = np.sort(np.asarray(scores, dtype=float))[::-1]
    n = len(v)
    i = np.arange(n, 0, -1)  # the place of each score from below
    found = np.empty(n)
    for m in range(1, n + 1):
        shares = np.ones(n)  # of the draws in which a score is the best: m / n for the first ...
        shares[1:] = np.clip(i[:-1] - m, 0, None) / np.maximum(i[:-1] - 1, 1)  # ... then as C(i, m)
        found[m - 1] = m / n * float(np.cumprod(shares) @ v)
    return found


def budgets(rows: list[Row]) -> list[Budget]:
    """The curves of all methods in the rows of one protocol and one order of the samples.

    A setting has the NMI that it got with the first seed, and 0 if it failed. A method that tried
    no settings has its mean over the runs.
    """
    tried: dict[tuple[str, str, str], list[float]] = {}
    for row in latest(rows):
        if row["stage"] == "tune" and row["seed"] == 0:
            key = row["dataset"], row["method"], row["selection"]
            tried.setdefault(key, []).append(row[TUNE_SCORE] or 0.0)
    found = []
    for one in summarize(rows):
        key = one.dataset, one.method, one.selection
        scores = tried.get(key) or [one.mean[name] for name in (TUNE_SCORE,) if name in one.mean]
        if scores:
            found.append(Budget(*key, expected_best(scores)))
    return found
