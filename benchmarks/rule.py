"""How the consensus chooses among its members: the rules that were tried, and the answer beside six
alternatives, on all data sets with classes (NMI, the number of clusters given, samples shuffled).

    python benchmarks/rule.py                        what is missing in benchmarks/results/rule.csv
    python benchmarks/rule.py --rules                every rule that was tried, and leave-one-out
    python benchmarks/rule.py --data pie10 --seeds 0 1

With ``--rules`` the members of the first seed are fitted once, and every combination of a pool, a
score and a share is evaluated on their labels. Leave-one-out: for every data set, the combination
that is best in the mean over all others. The table in docs/choosing-without-labels.md is written
anew each time.
"""

import argparse
import csv
import itertools
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from polyspan import SNF, ConcatKMeans, ConcatSpectral, ConsensusClusterer, MeanGraph, sharing
from polyspan.datasets import list_datasets, load_dataset
from polyspan.inputs.choice import two_scalings
from polyspan.inputs.views import check_views
from polyspan.selection import consensus as merging
from polyspan.selection.evidence import evidence_graphs, view_modularity
from polyspan.selection.pool import prepared

ROWS = Path(__file__).parent / "results" / "rule.csv"
PAGE = Path(__file__).parents[1] / "docs" / "choosing-without-labels.md"
FEW, MANY = (
    1000,
    5000,
)  # samples: five seeds up to the first, three beyond; no SNF beyond the second
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
    "self-expression": lambda agreement, Q: Q[..., 1].mean(axis=1),
    "sum": lambda agreement, Q: Q.mean(axis=(1, 2)),
    "sum and agreement": lambda agreement, Q: 2 * Q.mean(axis=(1, 2)) + agreement,
    "squares": lambda agreement, Q: np.mean(np.maximum(Q, 0) ** 2, axis=(1, 2)),
    "best view": lambda agreement, Q: Q.mean(axis=2).max(axis=1),
    "middle view": lambda agreement, Q: np.median(Q.mean(axis=2), axis=1),
    "better kind": lambda agreement, Q: Q.mean(axis=1).max(axis=1),
}
POOLS: dict[str, Any] = {
    "all": lambda row: True,
    "no self-expression": lambda row: row["method"] != "SelfGraph",
    "without lam=.1": lambda row: row["setting"].get("lam") != 0.1,
    "without lam=10": lambda row: row["setting"].get("lam") != 10.0,
    "without k-means": lambda row: row["family"] != "k-means",
}
SHARES = (0.2, 1 / 3, 0.5, 1.0)
CHOSEN = ("all", "squares", 1 / 3)


def sets(wanted: list[str] | None) -> Iterator[str]:
    """Names of the data sets that have classes and are there."""
    for name in wanted or list_datasets():
        try:
            if load_dataset(name).labels is not None:
                yield name
        except (FileNotFoundError, ValueError):
            continue


def shuffled(name: str, seed: int) -> tuple[list[Any], np.ndarray]:
    """Views and classes in a random order."""
    data = load_dataset(name)
    classes = np.unique(np.asarray(data.labels), return_inverse=True)[1]
    order = np.random.RandomState(seed).permutation(len(classes))
    return [X[order] for X in data.views], classes[order]


def scored(name: str, seed: int, done: set[tuple[str, str, str]]) -> Iterator[dict[str, Any]]:
    """A row for the consensus and for every alternative."""
    X, classes = shuffled(name, seed)
    c, n = int(classes.max()) + 1, len(classes)
    methods: dict[str, Any] = {"consensus": partial(ConsensusClusterer, n_jobs=-1), **ALTERNATIVES}
    if n > MANY:
        del methods["SNF"]
    for method, make in methods.items():
        if (name, str(seed), method) not in done:
            labels = make(c, random_state=seed).fit(X).labels_
            nmi = normalized_mutual_info_score(classes, labels)
            yield {"data": name, "seed": seed, "n": n, "method": method, "nmi": round(nmi, 4)}


def stored() -> list[dict[str, str]]:
    """Rows of earlier runs."""
    if not ROWS.exists():
        return []
    with ROWS.open(newline="") as file:
        return list(csv.DictReader(file))


def run(names: list[str] | None, seeds: list[int]) -> None:
    """Score what is missing, one row after the other."""
    done = {(row["data"], row["seed"], row["method"]) for row in stored()}
    for name in sets(names):
        n = len(load_dataset(name).labels)
        for seed in seeds[: 5 if n <= FEW else 3]:
            for row in scored(name, seed, done):
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
    used = list(sets(names))
    for name in used:
        X, classes = shuffled(name, 0)
        c = int(classes.max()) + 1
        with sharing():
            model = ConsensusClusterer(c, random_state=0, n_jobs=-1).fit(X)
            views = check_views(X)
            graphs = evidence_graphs([prepared(views, scaling) for scaling in two_scalings(views)])[
                1
            ]
        rows = [row for row in model.table_ if row["status"] == "ok"]
        quality = np.array([view_modularity(graphs, one) for one in model.member_labels_])
        for pool, score, share in itertools.product(POOLS, SCORES, SHARES):
            kept = np.flatnonzero([POOLS[pool](row) for row in rows])
            families, groups = ([rows[i][key] for i in kept] for key in ("family", "group"))
            labels = model.member_labels_[kept]
            before = merging.SHARE, merging.score_of
            merging.SHARE, merging.score_of = share, SCORES[score]
            weights = merging.rank_members(labels, families, groups, quality[kept])[2]
            merging.SHARE, merging.score_of = before
            merged, _ = merging.consensus(labels, weights, c, random_state=0)
            nmi = normalized_mutual_info_score(classes, merged)
            found.setdefault((pool, score, share), []).append(nmi)
        print(name, round(found[CHOSEN][-1], 3), flush=True)
    N = np.array(list(found.values()))
    order = np.argsort(-N.mean(axis=1))
    for i in order:
        pool, score, share = list(found)[i]
        print(f"{N[i].mean():.3f}  {pool}, {score}, {share:.2f}")
    left = [N[np.argmax(np.delete(N, j, 1).mean(axis=1)), j] for j in range(N.shape[1])]
    print(
        f"{len(found)} rules on {len(used)} data sets: chosen {np.mean(found[CHOSEN]):.3f}, "
        f"leave-one-out {np.mean(left):.3f}, best in hindsight {N.mean(axis=1).max():.3f}"
    )


def table() -> str:
    """The answer beside the alternatives, means over the seeds, as Markdown."""
    means: dict[str, dict[str, list[float]]] = {}
    sizes = {}
    for row in stored():
        means.setdefault(row["data"], {}).setdefault(row["method"], []).append(float(row["nmi"]))
        sizes[row["data"]] = row["n"]
    head = ["data", "samples", "consensus", "sd", *ALTERNATIVES, "gap to the best"]
    lines = [head, ["---", *["--:"] * (len(head) - 1)]]
    gaps = {}
    for name in sorted(means):
        values = means[name]
        others = {a: np.mean(values[a]) for a in ALTERNATIVES if a in values}
        if "consensus" not in values or not others:
            continue
        gaps[name] = float(np.mean(values["consensus"]) - max(others.values()))
        shown = [f"{others[a]:.3f}" if a in others else "" for a in ALTERNATIVES]
        own = [f"{np.mean(values['consensus']):.3f}", f"{np.std(values['consensus']):.3f}"]
        lines.append([name, sizes[name], *own, *shown, f"{gaps[name]:+.3f}"])
    columns = ["consensus", *ALTERNATIVES]
    complete = [v for v in means.values() if all(c in v for c in columns)]
    mean = [f"{np.mean([np.mean(v[c]) for v in complete]):.3f}" for c in columns]
    lines.append([f"mean of {len(complete)}", "", mean[0], "", *mean[1:], ""])
    worst = {c: min(np.mean(v[c]) - max(np.mean(v[a]) for a in columns) for v in complete)
             for c in columns}  # fmt: skip
    losses = [f"{worst[c]:+.3f}" for c in columns]
    lines.append(["worst loss", "", losses[0], "", *losses[1:], ""])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    """Run, or try rules; then write the table."""
    parser = argparse.ArgumentParser(description="The rule of the consensus.")
    parser.add_argument("--data", nargs="+", help="names of data sets; default: all that are there")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--rules", action="store_true", help="try every rule")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.rules:
        try_rules(args.data)
        return
    run(args.data, args.seeds)
    text = PAGE.read_text("utf-8")
    start, end = text.index("<!-- rule -->"), text.index("<!-- /rule -->")
    PAGE.write_text(f"{text[:start]}<!-- rule -->\n\n{table()}\n\n{text[end:]}", "utf-8")
    print(table())


if __name__ == "__main__":
    main()
