"""What to do with samples that tie at the k-th distance: GRMSC by four rules, labels only to score.

    python benchmarks/ties.py [--datasets ngs ...] [--neighbors 30 150]    (minutes; a table)

Density is the share of all pairs that the first-order graph of a view links, the mean over the
views. The rules: the lower row number first, with the samples sorted by class and shuffled; all
tied samples in; all out; and the tied samples share the places that are left, as in
`polyspan.graphs.ties`.
Download the data first: `polyspan data fetch ngs three_sources bbcsport`.
"""

import argparse
from typing import Any

import numpy as np

from polyspan import GRMSC
from polyspan.datasets import load_dataset
from polyspan.graphs.proximity import gaussian, median_distance, squared_distances, stable_ranks
from polyspan.graphs.ties import neighbor_shares, ranked, tie_slack, without_self
from polyspan.inputs.scaling import unit
from polyspan.metrics import clustering_scores

RULES = ("row number", "all in", "all out", "shared")


def first_order(X: Any, k: int, rule: str) -> np.ndarray:
    """First-order graph of a view whose ties are treated by a rule."""
    D2, slack = squared_distances(X, rounded=rule == "row number"), tie_slack(X)
    closer, tied = ranked(without_self(D2), k, slack)
    fits = np.sum(closer | tied, axis=1, keepdims=True) <= k
    near = {
        "row number": lambda: stable_ranks(D2, k)[0],
        "all in": lambda: closer | tied,
        "all out": lambda: closer | (tied & fits),
        "shared": lambda: neighbor_shares(D2, k, slack),
    }[rule]()
    return np.minimum(near, near.T) * gaussian(D2, median_distance(D2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["ngs", "three_sources", "bbcsport"])
    parser.add_argument("--neighbors", nargs="+", type=int, default=[30, 150])
    asked = parser.parse_args()
    print("| data | k | rule | order | density | NMI |\n|---|---|---|---|---|---|")
    for name in asked.datasets:
        data = load_dataset(name)
        orders = {
            "sorted": np.argsort(data.labels, kind="stable"),
            "shuffled": np.random.default_rng(0).permutation(len(data.labels)),
        }
        for k in asked.neighbors:
            for rule in RULES:
                for order, rows in orders.items():
                    if order == "sorted" and rule != "row number":
                        continue  # the same as shuffled
                    views = [view[rows] for view in data.views]
                    graphs = [first_order(unit(view), k, rule) for view in views]
                    model = GRMSC(data.n_clusters, graphs=graphs, random_state=0).fit(views)
                    nmi = clustering_scores(data.labels[rows], model.labels_)["nmi"]
                    density = np.mean([np.mean(graph > 0) for graph in graphs])
                    told = f"{density:.3f} | {nmi:.3f}"
                    print(f"| {name} | {k} | {rule} | {order} | {told} |", flush=True)


if __name__ == "__main__":
    main()
