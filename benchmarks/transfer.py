"""New samples after a consensus: the 70 test samples of breast_tcga, which lack the proteins.

    python benchmarks/transfer.py                   a table in Markdown (minutes)
    python benchmarks/transfer.py --seeds 1

The consensus is fitted on the 150 training samples in three views, without the subtypes. Every
cluster then stands for one subtype: the pairs that are right for most of the training samples. The
test samples have mRNA and miRNA only; `polyspan predict` abstains by default where less than 1% of
the fitted samples are as far from their neighbors. "right" is the share of the test samples with a
cluster that get the one of their subtype; "fitted" is that share for the training samples. For
comparison, the same test samples with one view only, and with the values of each sample in random
order, which makes samples that are unlike all. Figures are means over seeds of the consensus. With
three seeds the table is kept for docs/after-the-fit.md (page_tables.py). The data must have been
downloaded.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from page_tables import show
from scipy.optimize import linear_sum_assignment

from polyspan import ConsensusClusterer
from polyspan.cli.predict import ABSTAIN
from polyspan.datasets.registry import find_entry, locate
from polyspan.io.readers import read_r

VIEWS = ("mrna", "mirna", "protein")
SEEDS = 3
HEADER = ("clusters", "new samples", "with a cluster", "right", "right of all", "fitted")


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Subtypes of new samples after a consensus.")
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help=f"default: {SEEDS}")
    args = parser.parse_args(argv)
    show(HEADER, lines(args.seeds), "transfer", args.seeds == SEEDS)
    return 0


def lines(seeds: int) -> Iterator[list[str]]:
    """Yield the lines of the table."""
    (old, old_truth), (new, truth) = load()
    for n_clusters in (3, "auto"):
        found: dict[str, list[tuple[float, ...]]] = {}
        numbers = set()
        for seed in range(seeds):
            model = fit(old, n_clusters, seed)
            numbers.add(str(model.n_clusters_))
            for told, *figures in measure(model, new, old_truth, truth):
                found.setdefault(told, []).append(tuple(figures))
        asked = "given: 3" if n_clusters == 3 else f"automatic: {', '.join(sorted(numbers))}"
        for told, rows in found.items():
            cells = ["-" if np.isnan(one) else f"{one:.3f}" for one in np.mean(rows, axis=0)]
            yield [asked, told, *cells]


def load() -> list[tuple[dict[str, pd.DataFrame], np.ndarray]]:
    """Views and subtypes of the training samples, and of the test samples."""
    found = locate(find_entry("breast_tcga").files[0])
    if found is None:
        sys.exit("download the data first: polyspan data fetch breast_tcga")
    data = read_r(found[1])["breast.TCGA"]
    return [
        (
            {name: part[name] for name in VIEWS if name in part},
            np.array(part["subtype"], dtype=str),
        )
        for part in (data["data.train"], data["data.test"])
    ]


def fit(views: dict[str, pd.DataFrame], n_clusters: int | str, seed: int) -> ConsensusClusterer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ConsensusClusterer(n_clusters, random_state=seed).fit(views)


def measure(
    model: ConsensusClusterer, new: dict[str, Any], old_truth: np.ndarray, truth: np.ndarray
) -> Iterator[tuple[str, float, float, float, float]]:
    """For every form of the new samples, its words and the figures of a line."""
    names = cluster_names(model.labels_, old_truth)
    fitted = float(np.mean(names[model.labels_] == old_truth))
    forms = {" and ".join(new): new} | {f"{name} only": {name: new[name]} for name in new}
    forms["in random order"] = {name: shuffled(table) for name, table in new.items()}
    for told, views in forms.items():
        labels = model.predict(views, abstain=ABSTAIN)
        kept, right = labels >= 0, names[labels] == truth
        some = float(right[kept].mean()) if kept.any() else np.nan
        yield told, float(kept.mean()), some, float(right[kept].sum() / len(right)), fitted


def cluster_names(labels: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """The class that every cluster stands for, each at most once; "" for a cluster without."""
    classes = np.unique(truth)
    table = np.array([[np.sum((labels == c) & (truth == name)) for name in classes]
                      for c in range(labels.max() + 1)])  # fmt: skip
    clusters, chosen = linear_sum_assignment(-table)
    names = np.full(len(table), "", dtype=classes.dtype)
    names[clusters] = classes[chosen]
    return names


def shuffled(table: pd.DataFrame) -> pd.DataFrame:
    """The values of every sample in random order."""
    values = np.random.default_rng(0).permuted(table.to_numpy(), axis=1)
    return pd.DataFrame(values, index=table.index, columns=table.columns)


if __name__ == "__main__":
    sys.exit(main())
