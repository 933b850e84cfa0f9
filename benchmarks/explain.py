"""How far the markers of clusters can be trusted, on planted data and on noise.

    python benchmarks/explain.py              # the two figures, a minute
    python benchmarks/explain.py --draws 20

With 100 draws the table is kept for docs/what-the-clusters-are.md (page_tables.py).
"""

import argparse
from collections.abc import Iterator

import numpy as np
from page_tables import show

from polyspan import MeanGraph
from polyspan.explain import markers

DRAWS = 100
HEADER = (
    "clusters from",
    "precision of the first 20 markers, mean and worst",
    "draws of noise without a marker below 0.05",
)


def planted(seed: int, n: int = 90, d: int = 200) -> tuple[list[np.ndarray], np.ndarray]:
    """Two views of noise in which ten features each differ between three clusters."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    views = [rng.standard_normal((n, d)) for _ in range(2)]
    for X in views:
        for j in range(10):
            X[:, j] += 2.0 * (labels == j % 3)
    return views, labels


def noise(seed: int, n: int = 60, d: int = 20) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, d)) for _ in range(2)]


def precision(seed: int, held_out: bool) -> float:
    """Share of the planted features among the first 20 markers, with clusters that were found."""
    views, _ = planted(seed)
    labels = MeanGraph(3, random_state=0).fit_predict(views)
    found = markers(views, labels, held_out_view=held_out)
    return float(np.mean([int(name.removeprefix("column")) <= 10 for name in found.feature[:20]]))


def is_silent(seed: int, held_out: bool) -> bool:
    """Whether noise has no marker below a corrected .05."""
    views = noise(seed)
    labels = MeanGraph(3, random_state=0).fit_predict(views)
    return bool(markers(views, labels, held_out_view=held_out).p_adjusted[0] >= 0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=DRAWS)
    draws = parser.parse_args().draws
    show(HEADER, lines(draws), "explain", draws == DRAWS)


def lines(draws: int) -> Iterator[list[str]]:
    """Yield a line for clusters from all views, and for those from the other views."""
    for words, held_out in (("all views", False), ("the other views", True)):
        found = [precision(seed, held_out) for seed in range(draws)]
        silent = sum(is_silent(seed, held_out) for seed in range(draws))
        yield [words, f"{np.mean(found):.3f}, {min(found):.2f}", f"{silent} of {draws}"]


if __name__ == "__main__":
    main()
