"""The best score to expect after m settings is what all draws of m settings give."""

from itertools import combinations

import numpy as np
import pytest

from harness.budgets import budgets, expected_best
from harness.tables import report
from polyspan.metrics import SCORES


def test_it_is_the_mean_of_the_best_over_all_draws():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 8):
        scores = rng.integers(4, size=n) / 4  # with ties
        every = [np.mean([max(draw) for draw in combinations(scores, m)]) for m in range(1, n + 1)]
        assert expected_best(scores) == pytest.approx(every, abs=1e-14)


def test_a_large_grid_does_not_overflow():
    scores = np.linspace(0, 1, 1134)
    curve = expected_best(scores)
    m = np.arange(1, 1135)
    # the best of m of 0, 1, ..., n - 1 is m (n + 1) / (m + 1) - 1 on average
    assert curve == pytest.approx((m * 1135 / (m + 1) - 1) / 1133, abs=1e-12)


def row(method="GRMSC", nmi=0.5, **fields):
    values = {
        "protocol": "p", "dataset": "NGs", "source": {"name": "ngs"}, "method": method,
        "paper": method, "selection": "tuned", "params": {}, "seed": 0, "order": "shuffled",
        "stage": "tune", "status": "ok", "reason": None, "converged": True, "seconds": 1.0,
        **dict.fromkeys(SCORES, 0.25), "nmi": nmi,
    } | fields  # fmt: skip
    return {"key": repr(sorted(values.items(), key=str)), **values}


ROWS = [
    *(row(nmi=nmi, params={"lam1": k}) for k, nmi in enumerate([0.2, 0.9, 0.4])),
    row(nmi=0.99, params={"lam1": 1}, seed=1),  # further seeds are at some settings only
    row(nmi=None, params={"lam1": 3}, status="failed", reason="x"),
    row(nmi=0.8, params={"lam1": 1}, stage="final"),
    row("plain", 0.6, selection="default", stage="final"),
    row("plain", 0.8, selection="default", stage="final", seed=1),
    row("GMC", 0.3, selection="nothing to tune", stage="final"),
    row("lost", None, selection="default", stage="final", status="failed", reason="x"),
]


def test_every_setting_counts_once_and_a_failed_one_nothing():
    found = {one.method: one for one in budgets(ROWS)}
    assert set(found) == {"GRMSC", "plain", "GMC"}
    assert found["GRMSC"].curve == pytest.approx(expected_best([0.2, 0.9, 0.4, 0.0]))
    assert found["plain"].curve == pytest.approx([0.7])
    assert found["GRMSC"].after(4) == found["GRMSC"].after(100) == 0.9


def test_the_table():
    text = report(ROWS).split("## Equal budgets\n")[1]
    mean, best = f"{1.5 / 4:.4f}", "0.9000"
    assert f"| NGs | GRMSC | tuned (4) | {mean} | {best} | {best} | {best} |" in text
    assert "| NGs | plain | default | 0.7000 | 0.7000 | 0.7000 | 0.7000 |" in text
    assert "Equal budgets" not in report(ROWS[6:])  # nothing was tuned
    assert "| tuned (4) | GRMSC | 1 |" in report(ROWS)  # ranks
