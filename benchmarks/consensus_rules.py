"""Compare the consensus rule of `ConsensusClusterer` with other rules (NMI).

    python benchmarks/consensus_rules.py                      all data sets of label_free.py
    python benchmarks/consensus_rules.py --dataset ngs bbc    some of them
    python benchmarks/consensus_rules.py --device cuda        the solves on a GPU
    python benchmarks/consensus_rules.py --keep FOLDER        keep the members' labels, or use them

The default pool is fitted once for every seed, on shuffled samples with the number of classes; a
rule says who votes. A member is ranked by its agreement with other families and by the modularity
of its clusters in the views; a family in g scalings has the root of g votes where nothing else is
said.

    third, fifth, half   the best by the sum of both ranks; the first is that of ConsensusClusterer
    product              the best third by agreement times modularity
    agreement            the best third by agreement alone
    modularity           the best third by modularity alone
    scalings             the best third, with one vote for every family in every scaling
    families             the best third, with one vote for every family
    equal                the best third, with one vote for every member
    all                  every member
    one                  the member with the best sum of ranks, alone
    hindsight            the member with the best NMI: what no rule can know

Run on all data sets, it keeps the table for docs/choosing-without-labels.md (page_tables.py).
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from kept import kept_members
from label_free import WANTED, load
from page_tables import show

from polyspan import ConsensusClusterer
from polyspan.metrics import clustering_scores
from polyspan.selection import consensus, estimator

SEEDS = 2
RULES = (
    *("third", "fifth", "half", "product", "agreement", "modularity", "scalings", "families"),
    *("equal", "all", "one"),
)


def main(argv: list[str] | None = None) -> int:
    """Print a line for every data set."""
    parser = argparse.ArgumentParser(description="Rules for the consensus of members.")
    parser.add_argument("--dataset", nargs="+", choices=list(WANTED), default=list(WANTED))
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N")
    parser.add_argument("--device", metavar="D", help="where to solve, such as cuda")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="of the members' labels")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    heads = [*RULES, "hindsight"]

    def lines():
        for name in args.dataset:
            found = [scores(name, s, args.device, args.keep) for s in range(args.seeds)]
            yield [name, *(f"{np.mean([one[rule] for one in found]):.3f}" for rule in heads)]

    whole = args.dataset == list(WANTED) and args.seeds == SEEDS
    header = ["data", f"**{heads[0]}**", *heads[1:]]
    show(header, lines(), "consensus-rules", whole)
    return 0


def scores(name: str, seed: int, device: str | None, keep: Path | None) -> dict[str, float]:
    """NMI of every rule, for one shuffle."""
    data = load(name)
    order = np.random.RandomState(seed).permutation(len(data.labels))
    with kept_members(keep, f"{name}-{seed}"):
        rows, labels = members([X[order] for X in data.views], data.n_clusters, seed, device)
    truth = data.labels[order]

    def nmi(found: np.ndarray) -> float:
        return float(clustering_scores(truth, found)["nmi"])

    found = {}
    for rule, weights in rules(rows).items():
        found[rule] = nmi(consensus(labels, weights, data.n_clusters, random_state=seed)[0])
    return found | {"hindsight": max(map(nmi, labels))}


def members(views, n_clusters, seed, device):
    """Rows and labels of the members that ran."""
    kept = {}
    merge = estimator.merge_members

    def keep(rows, labels, *rest):
        kept.update(rows=rows, labels=labels)
        return merge(rows, labels, *rest)

    estimator.merge_members = keep
    try:
        ConsensusClusterer(n_clusters, random_state=seed, device=device).fit(views)
    finally:
        estimator.merge_members = merge
    return kept["rows"], kept["labels"]


def rules(rows) -> dict[str, np.ndarray]:
    """Weights of the members by every rule."""
    score, agreement, modularity = (
        np.array([row[name] for row in rows]) for name in ("score", "agreement", "modularity")
    )
    families, groups = (
        np.unique([row[name] for row in rows], return_inverse=True)[1]
        for name in ("family", "group")
    )

    def best(values, share, fewest=5):
        count = min(len(values), max(fewest, int(np.ceil(share * len(values)))))
        return values >= np.sort(values)[::-1][count - 1] - 1e-12

    def votes(used, power=0.5):
        weights = np.zeros(len(used))
        for family in np.unique(families[used]):
            own = used & (families == family)
            _, places, sizes = np.unique(groups[own], return_inverse=True, return_counts=True)
            weights[own] = 1 / sizes[places] / len(sizes) ** power
        return weights / weights.sum()

    third = best(score, 1 / 3)
    return {
        "third": votes(third),
        "fifth": votes(best(score, 1 / 5)),
        "half": votes(best(score, 1 / 2)),
        "product": votes(best(agreement * modularity, 1 / 3)),
        "agreement": votes(best(agreement, 1 / 3)),
        "modularity": votes(best(modularity, 1 / 3)),
        "scalings": votes(third, power=0),
        "families": votes(third, power=1),
        "equal": third / third.sum(),
        "all": votes(np.ones(len(rows), dtype=bool)),
        "one": votes(best(score, 0.0, fewest=1)),
    }


if __name__ == "__main__":
    sys.exit(main())
