"""Which scalings suit counts without many zeros: `ConsensusClusterer` with four lists (NMI).

    python benchmarks/scalings.py               ten minutes on one core

Their columns differ more than tenfold in spread. MSRC-v1 has histograms of image patterns, which
get the first list (`polyspan.inputs.choice`). NCI-60 and breast TCGA are expression values whose
logarithms are undone and rounded, as in tables that nobody prepared; they get the last. The number
of classes is given, samples are shuffled; means of the seeds.
"""

import argparse
import sys
import warnings
from unittest.mock import patch

import numpy as np
from label_free import load
from page_tables import show

from polyspan import ConsensusClusterer
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
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    lines = (
        [name, *(f"{mean_nmi(name, allowed, args.seeds):.3f}" for allowed in LISTS.values())]
        for name in args.dataset
    )
    whole = (args.dataset, args.seeds) == (list(LOGARITHMS), SEEDS)
    show(["data", *LISTS], lines, "scalings-of-counts", whole)
    return 0


def mean_nmi(name: str, allowed: tuple[str, ...], seeds: int) -> float:
    """Mean over the seeds with these scalings for counts that have few zeros."""
    data, choose = load(name), choice._choose  # noqa: SLF001
    views = [np.round(2.0**X) if k in LOGARITHMS[name] else X for k, X in enumerate(data.views)]

    def instead(columns):
        found, reason = choose(columns)
        counts = columns.positive and columns.whole and "differ in spread" in reason
        return (allowed if counts or "as in histograms" in reason else found), reason

    found = []
    for seed in range(seeds):
        rows = np.random.RandomState(seed).permutation(len(data.labels))
        with patch.object(choice, "_choose", instead):
            model = ConsensusClusterer(data.n_clusters, random_state=seed)
            labels = model.fit_predict([X[rows] for X in views])
        found.append(clustering_scores(data.labels[rows], labels)["nmi"])
    return float(np.mean(found))


if __name__ == "__main__":
    sys.exit(main())
