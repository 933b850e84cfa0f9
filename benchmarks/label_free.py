"""`ConsensusClusterer` beside six alternatives on all data sets with classes, and how it chooses.

    python benchmarks/label_free.py                     what is missing in results/label_free.csv
    python benchmarks/label_free.py --data pie10 --seeds 0 1 2 3 4 5 6 7 8 9
    python benchmarks/label_free.py --count             the number of clusters, on the same data
    python benchmarks/label_free.py --rules             every rule that was tried, leave-one-out

Figures are NMI, the number of classes is given, samples are shuffled; means of five seeds, of three
above 1,000 samples. wine is scikit-learn's, columns 0-6 and 7-12; rings are 400 samples with radii
1 and 3 and noise .15, the second view rotated by 1 radian: both are a test only, and had no part in
the choice of a rule.

With ``--rules`` the members of seed 0 are fitted once per data set, and every combination of a
pool, a score and a share is evaluated on their labels. Leave-one-out: for every data set, the
combination that is best in the mean over all others.
"""

import argparse
import csv
import itertools
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from page_tables import show
from sklearn.datasets import load_wine
from sklearn.metrics import normalized_mutual_info_score

from polyspan import (
    SNF,
    ConcatKMeans,
    ConcatSpectral,
    ConsensusClusterer,
    MeanGraph,
    count_clusters,
    sharing,
)
from polyspan.datasets import list_datasets, load_dataset
from polyspan.inputs.choice import two_scalings
from polyspan.inputs.views import check_views
from polyspan.selection import consensus, rank_members
from polyspan.selection.evidence import evidence_graphs, view_modularity
from polyspan.selection.pool import prepared

ROWS = Path(__file__).parent / "results" / "label_free.csv"
# Samples: five seeds up to the first, three beyond; no SNF beyond the second.
FEW, MANY = 1000, 5000
MADE = ("wine", "rings")
BUNDLED = ("digits", "nuclei")  # parts of them are examples
CONSENSUS = "consensus"
ALTERNATIVES = {
    "ConcatSpectral": ConcatSpectral,
    "ConcatSpectral, standard": partial(ConcatSpectral, scale="standard+unit"),
    "MeanGraph": MeanGraph,
    "MeanGraph, standard": partial(MeanGraph, scale="standard+unit"),
    "SNF": SNF,
    "ConcatKMeans": ConcatKMeans,
}
SCORES = {
    "agreement": lambda agreement, Q: agreement,
    "neighbors": lambda agreement, Q: Q[..., 0].mean(axis=1),
    "sum": lambda agreement, Q: np.nanmean(Q, axis=(1, 2)),
    "sum and agreement": lambda agreement, Q: 2 * np.nanmean(Q, axis=(1, 2)) + agreement,
    "squares": lambda agreement, Q: np.nanmean(np.maximum(Q, 0) ** 2, axis=(1, 2)),
    "best view": lambda agreement, Q: np.nanmean(Q, axis=2).max(axis=1),
    "middle view": lambda agreement, Q: np.median(np.nanmean(Q, axis=2), axis=1),
    "better kind": lambda agreement, Q: np.nanmax(np.nanmean(Q, axis=1), axis=1),
}
POOLS: dict[str, Any] = {
    "all": lambda row: True,
    "no self-expression": lambda row: row["method"] != "SelfGraph",
    "without lam=.1": lambda row: row["setting"].get("lam") != 0.1,
    "without lam=10": lambda row: row["setting"].get("lam") != 10.0,
    "without k-means": lambda row: row["family"] != "k-means",
}
FIXED = (2, 4, 7, 12, 25)  # numbers of clusters, the same for all data
SHARES = (0.2, 1 / 3, 0.5, 1.0)
CHOSEN = ("all", "squares", 1 / 3)


def load(name: str) -> tuple[list[Any], np.ndarray]:
    """Views, and classes from 0 on."""
    if name == "wine":
        X, classes = load_wine(return_X_y=True)
        return [X[:, :7], X[:, 7:]], classes
    if name == "rings":
        rng = np.random.default_rng(0)
        classes, angle = np.repeat([0, 1], 200), rng.uniform(0, 2 * np.pi, 400)
        X = np.where(classes == 0, 1.0, 3.0)[:, None] * np.c_[np.cos(angle), np.sin(angle)]
        rotation = np.array([[np.cos(1), -np.sin(1)], [np.sin(1), np.cos(1)]])
        return [Z + 0.15 * rng.normal(size=Z.shape) for Z in (X, X @ rotation)], classes
    data = load_dataset(name)
    if data.labels is None or len(data.labels) == 0:
        raise ValueError(f"{name} has no classes.")
    return data.views, np.unique(np.asarray(data.labels), return_inverse=True)[1]


def sets(wanted: list[str] | None) -> Iterator[str]:
    """Names of the data sets that have classes and are there."""
    for name in wanted or [*MADE, *(one for one in list_datasets() if one not in BUNDLED)]:
        with suppress(FileNotFoundError, ValueError):
            load(name)
            yield name


def shuffled(name: str, seed: int) -> tuple[list[Any], np.ndarray]:
    """Views and classes in a random order."""
    views, classes = load(name)
    order = np.random.RandomState(seed).permutation(len(classes))
    return [X[order] for X in views], classes[order]


def scored(name: str, seed: int, count: bool, done: set[tuple[str, ...]]) -> Iterator[dict]:
    """A row for the consensus and for every alternative, or for the number of clusters."""
    X, classes = shuffled(name, seed)
    c, n = int(classes.max()) + 1, len(classes)
    row = {"data": name, "seed": seed, "n": n, "classes": c}
    if count:
        if (name, str(seed), "count") not in done:
            evidence = count_clusters(X, random_state=seed)[1]
            numbers = [str(one["n_clusters"]) for one in evidence["shortlist"]]
            yield row | {"method": "count", "nmi": "", "numbers": " ".join(numbers)}
        return
    methods: dict[str, Any] = {CONSENSUS: partial(ConsensusClusterer, n_jobs=-1), **ALTERNATIVES}
    for method, make in methods.items():
        if (name, str(seed), method) not in done and (method != "SNF" or n <= MANY):
            labels = make(c, random_state=seed).fit(X).labels_
            nmi = normalized_mutual_info_score(classes, labels)
            yield row | {"method": method, "nmi": f"{nmi:.4f}", "numbers": ""}


def stored() -> list[dict[str, str]]:
    """Rows of earlier runs."""
    if not ROWS.exists():
        return []
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def run(names: list[str] | None, seeds: list[int] | None, count: bool) -> None:
    """Add the rows that are missing, one after the other."""
    done = {(row["data"], row["seed"], row["method"]) for row in stored()}
    for name in sets(names):
        for seed in seeds or range(5 if len(load(name)[1]) <= FEW else 3):
            for row in scored(name, seed, count, done):
                new = not ROWS.exists()
                with ROWS.open("a", newline="") as file:
                    writer = csv.DictWriter(file, list(row), lineterminator="\n")
                    if new:
                        writer.writeheader()
                    writer.writerow(row)
                print(*row.values(), flush=True)


def try_rules(names: list[str] | None) -> None:
    """Mean NMI of every combination of pool, score and share, and of leave-one-out."""
    found: dict[tuple[str, str, float], list[float]] = {}
    used = [name for name in sets(names) if name not in MADE]
    for name in used:
        X, classes = shuffled(name, 0)
        c = int(classes.max()) + 1
        with sharing():
            model = ConsensusClusterer(c, random_state=0, n_jobs=-1).fit(X)
            views = check_views(X)
            scaled = {scaling: prepared(views, scaling) for scaling in two_scalings(views)}
            _, graphs = evidence_graphs(scaled)
        rows = [row for row in model.table_ if row["status"] == "ok"]
        quality = np.array([view_modularity(graphs, one) for one in model.member_labels_])
        for pool, score, share in itertools.product(POOLS, SCORES, SHARES):
            kept = np.flatnonzero([POOLS[pool](row) for row in rows])
            families, groups = ([rows[i][key] for i in kept] for key in ("family", "group"))
            labels = model.member_labels_[kept]
            weights = rank_members(labels, families, groups, quality[kept], SCORES[score], share)[2]
            merged, _ = consensus(labels, weights, c, random_state=0)
            nmi = normalized_mutual_info_score(classes, merged)
            found.setdefault((pool, score, share), []).append(nmi)
        print(name, round(found[CHOSEN][-1], 3), flush=True)
    N = np.array(list(found.values()))
    means = dict(zip(found, N.mean(axis=1), strict=True))
    left = [N[np.argmax(np.delete(N, j, 1).mean(axis=1)), j] for j in range(N.shape[1])]
    lines = [
        [score, *(f"{means['all', score, share]:.3f}" for share in SHARES)] for score in SCORES
    ]
    lines += [
        [f"squares, {pool}", *(f"{means[pool, 'squares', share]:.3f}" for share in SHARES)]
        for pool in POOLS
        if pool != "all"
    ]
    show(
        ["score", *(f"best {share:.0%}" for share in SHARES)], lines, "label-free-rules", not names
    )
    print(
        f"{len(found)} rules on {len(used)} data sets: chosen {means[CHOSEN]:.3f}, "
        f"leave-one-out {np.mean(left):.3f}, best in hindsight {max(means.values()):.3f}"
    )


def scores() -> dict[str, dict[str, dict[int, float]]]:
    """NMI by data set, method and seed."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for row in stored():
        if row["nmi"]:
            of_set = found.setdefault(row["data"], {})
            of_set.setdefault(row["method"], {})[int(row["seed"])] = float(row["nmi"])
    return found


def means() -> dict[str, dict[str, float]]:
    """Mean NMI by data set and method, of the sets that the consensus has run on."""
    every = {
        name: {method: float(np.mean(list(by.values()))) for method, by in methods.items()}
        for name, methods in sorted(scores().items())
    }
    return {name: row for name, row in every.items() if CONSENSUS in row and len(row) > 1}


def gaps(row: dict[str, float]) -> dict[str, float]:
    """How far every method is from the best of the alternatives."""
    best = max(value for method, value in row.items() if method != CONSENSUS)
    return {method: value - best for method, value in row.items()}


def table() -> list[dict[str, str]]:
    """The answer beside the alternatives, for docs/choosing-without-labels.md."""
    found, by_seed = means(), scores()
    lines = []
    for name, row in found.items():
        spread = np.std(list(by_seed[name][CONSENSUS].values()))
        cells = {method: f"{row[method]:.3f}" if method in row else "" for method in ALTERNATIVES}
        gap = gaps(row)[CONSENSUS]
        lines.append(
            {"data": name, CONSENSUS: f"{row[CONSENSUS]:.3f}", "sd": f"{spread:.3f}"}
            | cells
            | {"gap to the best of the six": f"{gap:+.3f}"}
        )
    return lines + summary(found)


def summary(found: dict[str, dict[str, float]]) -> list[dict[str, str]]:
    """Means over the sets that all methods ran on, and the worst gap of each."""
    methods = [CONSENSUS, *ALTERNATIVES]
    whole = [row for row in found.values() if set(methods) <= set(row)]
    if not whole:
        return []
    mean = {method: f"{np.mean([row[method] for row in whole]):.3f}" for method in methods}
    worst = {method: f"{min(gaps(row)[method] for row in whole):+.3f}" for method in methods}
    blank = {"sd": "", "gap to the best of the six": ""}
    return [
        {"data": f"mean of {len(whole)}"} | mean | blank,
        {"data": "largest loss to the best"} | worst | blank,
    ]


def counted() -> dict[str, list[bool]]:
    """Whether the first number, and any of the list, is right within 1 or 10%: all runs."""
    found: dict[str, list[bool]] = {"first": [], "list": [], "fixed list": []}
    for row in stored():
        if row["numbers"]:
            c = int(row["classes"])
            near = [abs(int(k) - c) <= max(1, 0.1 * c) for k in row["numbers"].split()]
            found["first"].append(near[0])
            found["list"].append(any(near))
            found["fixed list"].append(any(abs(k - c) <= max(1, 0.1 * c) for k in FIXED))
    return found


def main() -> None:
    """Add rows or try rules; then print the table."""
    parser = argparse.ArgumentParser(description="The consensus beside others.")
    parser.add_argument("--data", nargs="+", help="names of data sets; default: all that are there")
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--count", action="store_true", help="the number of clusters")
    parser.add_argument("--rules", action="store_true", help="try every rule")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.rules:
        return try_rules(args.data)
    run(args.data, args.seeds, args.count)
    for line in table():
        print(*line.values(), sep="  ")
    for what, right in counted().items():
        print(f"number of clusters, {what}: right in {sum(right)} of {len(right)} runs")


if __name__ == "__main__":
    main()
