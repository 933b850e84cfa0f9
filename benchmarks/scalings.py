"""Which scalings suit counts without many zeros: `ConsensusClusterer` with four lists (NMI).

    python benchmarks/scalings.py               ten minutes on one core
    python benchmarks/scalings.py --plain       only `ConcatSpectral()` on the same data, seconds

Their columns differ more than tenfold in spread. MSRC-v1 has histograms of image patterns, which
get the first list (`polyspan.inputs.choice`). NCI-60 and breast TCGA are expression values whose
logarithms are undone and rounded, as in tables that nobody prepared; they get the last. The number
of classes is given, samples are shuffled; means of the seeds.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
from label_free import load
from page_tables import show

from polyspan import ConcatSpectral, ConsensusClusterer
from polyspan.inputs import choice
from polyspan.metrics import clustering_scores

SEEDS = 5
LISTS = {
    "unit, standard+unit": ("unit", "standard+unit"),  # histograms
    "unit, standard+unit, standard": ("unit", "standard+unit", "standard"),
    "standard+unit, unit, standard": ("standard+unit", "unit", "standard"),
    "standard+unit, standard": ("standard+unit", "standard"),  # different units
}
LOGARITHMS = {"msrc_v1": (), "nci60": (1, 2, 3), "breast_tcga": (0, 1)}  # views to undo


def main(argv: list[str] | None = None) -> int:
    """Print a line for every data set."""
    parser = argparse.ArgumentParser(description="Scalings of counts.")
    parser.add_argument("--dataset", nargs="+", choices=list(LOGARITHMS), default=list(LOGARITHMS))
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"default: {SEEDS}")
    parser.add_argument("--plain", action="store_true", help="only the plain baseline")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    whole = (args.dataset, args.seeds) == (list(LOGARITHMS), SEEDS)
    if not args.plain:
        lines = (
            [name, *(f"{mean_nmi(name, allowed, args.seeds):.3f}" for allowed in LISTS.values())]
            for name in args.dataset
        )
        show(["data", *LISTS], lines, "scalings-of-counts", whole)
    plain = ([name, f"{plain_nmi(name, args.seeds):.3f}"] for name in args.dataset)
    show(["data", "`ConcatSpectral()`"], plain, "scalings-plain", whole)
    return 0


def shuffled(name: str, seeds: int) -> Iterator[tuple[int, list[Any], np.ndarray, int]]:
    """Seed, views with their logarithms undone, classes and their number, in every shuffle."""
    data = load(name)
    views = [np.round(2.0**X) if k in LOGARITHMS[name] else X for k, X in enumerate(data.views)]
    for seed in range(seeds):
        rows = np.random.RandomState(seed).permutation(len(data.labels))
        yield seed, [X[rows] for X in views], data.labels[rows], data.n_clusters


def plain_nmi(name: str, seeds: int) -> float:
    """Mean over the seeds of the plain baseline."""
    return float(
        np.mean([
            clustering_scores(truth, ConcatSpectral(c, random_state=seed).fit_predict(views))["nmi"]
            for seed, views, truth, c in shuffled(name, seeds)
        ])
    )  # fmt: skip


def mean_nmi(name: str, allowed: tuple[str, ...], seeds: int) -> float:
    """Mean over the seeds with these scalings for counts that have few zeros."""
    choose = choice._choose  # noqa: SLF001

    def instead(columns):
        found, reason = choose(columns)
        counts = columns.positive and columns.whole and "differ in spread" in reason
        return (allowed if counts or "as in histograms" in reason else found), reason

    found = []
    for seed, views, truth, n_clusters in shuffled(name, seeds):
        with patch.object(choice, "_choose", instead):
            labels = ConsensusClusterer(n_clusters, random_state=seed).fit_predict(views)
        found.append(clustering_scores(truth, labels)["nmi"])
    return float(np.mean(found))


if __name__ == "__main__":
    sys.exit(main())
