"""Compare ways to refine labels on the neighbor links that members agree on (NMI).

    python benchmarks/refining.py                          all data sets of label_free.py, and more
    python benchmarks/refining.py --dataset ngs bbc        some of them
    python benchmarks/refining.py --jobs 16                so many at a time

The members are those for many samples, on every data set, also on small ones, where the default
pool has others; they are fitted once for every seed, on shuffled samples with the number of
classes.

    none        the consensus of the members' own labels
    consensus   its labels are refined (`polyspan.selection.consensus.refined`)
    members     those of every member are refined before they are ranked and vote
    plain       as members, but on the mean of the views' neighbor graphs, whoever agrees

Run on all data sets, it keeps the table for docs/choosing-without-labels.md (page_tables.py).
"""

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from label_free import WANTED, load
from page_tables import TITLES, show
from scale import planted
from threadpoolctl import threadpool_limits

from polyspan import ConsensusClusterer
from polyspan.metrics import clustering_scores
from polyspan.selection import estimator, pool
from polyspan.selection.consensus import agreed_links, consensus, rank_members, refine
from polyspan.selection.evidence import view_modularity

SEEDS = 2
MANY = ("planted", "nuisance")  # 10,000 samples each, as in scale.py
DATA = [*WANTED, *(name for name in ("scene15", "hdigit", "snare_cortex") if name not in WANTED)]
WAYS = ("none", "consensus", "members", "plain")


def data_of(name):
    """Views, classes and their number."""
    if name in MANY:
        return *planted(10_000, float(name == "nuisance")), 10
    data = load(name)
    return data.views, data.labels, data.n_clusters


def scores(name, seed):
    """NMI of every way, for one shuffle."""
    warnings.simplefilter("ignore")
    views, truth, c = data_of(name)
    order = np.random.RandomState(seed).permutation(len(truth))
    with threadpool_limits(1):
        graphs, labels, rows = members([X[order] for X in views], c, seed)
        A = agreed_links(graphs, labels)
        plain = agreed_links(graphs, 0 * labels)  # all ends are together
        first = merged(graphs, labels, rows, c, seed)
        found = {
            "none": first,
            "consensus": refine(A, first, seed),
            "members": merged(graphs, [refine(A, one, seed) for one in labels], rows, c,
                              seed),
            "plain": merged(graphs, [refine(plain, one, seed) for one in labels], rows, c,
                            seed),
        }  # fmt: skip
    return {way: float(clustering_scores(truth[order], one)["nmi"]) for way, one in found.items()}


def members(views, n_clusters, seed):
    """Graphs of the views, labels of the members for many samples, and the rows of their table."""
    kept, before, limit = {}, estimator.refined, pool.EXACT_UP_TO

    def keep(graphs, labels, random_state):
        kept.update(graphs=graphs, labels=labels)
        return labels

    estimator.refined, pool.EXACT_UP_TO = keep, 0
    try:
        model = ConsensusClusterer(n_clusters, random_state=seed).fit(views)
    finally:
        estimator.refined, pool.EXACT_UP_TO = before, limit
    return kept["graphs"], kept["labels"], [row for row in model.table_ if row["status"] == "ok"]


def merged(graphs, labels, rows, n_clusters, seed):
    """The consensus of these labels."""
    labels = np.asarray(labels)
    quality = np.array([view_modularity(graphs, one) for one in labels])
    families, groups = ([row[name] for row in rows] for name in ("family", "group"))
    weights = rank_members(labels, families, groups, quality)[2]
    return consensus(labels, weights, n_clusters, random_state=seed)[0]


def main(argv: list[str] | None = None) -> int:
    """Print a line for every data set, and the mean."""
    parser = argparse.ArgumentParser(description="Ways to refine labels.")
    every = [*DATA, *MANY]
    parser.add_argument("--dataset", nargs="+", choices=every, default=every)
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    args = parser.parse_args(argv)

    def lines():
        work = [(name, seed) for name in args.dataset for seed in range(SEEDS)]
        with ProcessPoolExecutor(args.jobs) as processes:
            run = map if args.jobs == 1 else processes.map
            found, means = run(scores, *zip(*work, strict=True)), []
            for name in args.dataset:
                own = [next(found) for _ in range(SEEDS)]
                means.append([np.mean([one[way] for one in own]) for way in WAYS])
                yield [TITLES.get(name, name), *(f"{mean:.3f}" for mean in means[-1])]
            yield ["mean", *(f"{mean:.3f}" for mean in np.mean(means, axis=0))]

    show(["data", *WAYS], lines(), "refining", args.dataset == every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
