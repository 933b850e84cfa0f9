"""Compare the consensus rule of `ConsensusClusterer` with other rules that were tried (NMI).

    python benchmarks/consensus_rules.py                      the eleven sets up to 2,000 samples
    python benchmarks/consensus_rules.py --dataset ngs bbc    some of them
    python benchmarks/consensus_rules.py --device cuda        the solves on a GPU

All members of the default pool are fitted, once for every seed; a rule decides how much each
counts.

    half            the better half by agreement, equally
    three quarters  all but the worst quarter, equally: the rule of `ConsensusClusterer`
    all             every setting, equally
    share           every setting, in proportion to its agreement
    above           the better half, in proportion to the agreement above the median
    twice           the better half, and of that the better half by agreement among themselves
    groups          the better half, every group of similar settings with the same weight
    nearest         as half, then the half that is closest to that consensus
    plain           no consensus: `ConcatSpectral` with its defaults

The rules were compared on these same data sets, with the scores known, so the figures of the
chosen rule are slightly optimistic. The table shows means over the seeds.
"""

import argparse
import warnings

import numpy as np
from label_free import WANTED
from sklearn.base import clone

from polyspan import ConcatSpectral, sharing
from polyspan.datasets import load_dataset
from polyspan.inputs.views import check_views
from polyspan.metrics import clustering_scores
from polyspan.selection.consensus import consensus, pairwise_nmi, rank_settings
from polyspan.selection.grids import default_members
from polyspan.selection.members import new_row

RULES = ("half", "three quarters", "all", "share", "above", "twice", "groups", "nearest", "plain")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Rules for the consensus of settings.")
    parser.add_argument("--dataset", nargs="+", choices=list(WANTED), default=list(WANTED))
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="default: 3")
    parser.add_argument("--device", metavar="D", help="where to solve, such as cuda")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    print(f"| data | {' | '.join(RULES)} |\n|---|{'---:|' * len(RULES)}")
    for name in args.dataset:
        found = scores(name, args.seeds, args.device)
        cells = [name, *(f"{found[rule]:.4f}" for rule in RULES)]
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0


def scores(name: str, seeds: int, device: str | None) -> dict[str, float]:
    """Mean NMI of every rule."""
    data = load_dataset(name)
    views, c = check_views(data.views), data.n_clusters
    models = default_members(views, c, device)
    groups = [new_row(model)["group"] for model in models]
    numbers = [int(np.random.RandomState(seed).randint(2**31)) for seed in range(seeds)]
    rows: list[list[np.ndarray]] = [[] for _ in numbers]
    with sharing():
        for model in models:
            for found, number in zip(rows, numbers, strict=True):
                one = clone(model).set_params(n_clusters=c, random_state=number)
                found.append(one.fit(views).labels_)
    merged = []
    for L, number in zip(rows, numbers, strict=True):
        plain = ConcatSpectral(c, random_state=number).fit_predict(data.views)
        merged.append(rules(np.array(L), groups, c, number) | {"plain": plain})
    return {
        rule: float(np.mean([clustering_scores(data.labels, one[rule])["nmi"] for one in merged]))
        for rule in RULES
    }


def rules(L: np.ndarray, groups: list[str], c: int, number: int) -> dict[str, np.ndarray]:
    """Labels by every rule."""

    def merge(weights):
        return consensus(L, weights / weights.sum(), c, random_state=number)[0]

    agreement, kept = rank_settings(L, groups)
    half = best(agreement, 0.5)
    inside = np.flatnonzero(half)
    among, _ = rank_settings(L[inside], [groups[i] for i in inside])
    twice = np.zeros(len(L))
    twice[inside] = best(among, 0.5)
    names = np.array(groups)
    alike = np.array([np.sum(half[names == name]) for name in names])
    first = merge(half)
    return {
        "half": first,
        "three quarters": merge(kept),
        "all": merge(np.ones(len(L))),
        "share": merge(agreement),
        "above": merge(np.clip(agreement - np.median(agreement), 0, None) + 1e-12 * half),
        "twice": merge(twice),
        "groups": merge(half / np.maximum(alike, 1)),
        "nearest": merge(best(pairwise_nmi(np.vstack([first, L]))[0, 1:], 0.5)),
    }


def best(score: np.ndarray, left_out: float) -> np.ndarray:
    return (score >= np.quantile(score, left_out)).astype(float)


if __name__ == "__main__":
    raise SystemExit(main())
