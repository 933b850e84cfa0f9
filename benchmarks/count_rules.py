"""How often the short list of `count_clusters` holds the number of classes, and rejected rules.

    python benchmarks/count_rules.py                          the short list, all data sets
    python benchmarks/count_rules.py --dataset ngs wine       some of them
    python benchmarks/count_rules.py --seconds 300            with a deadline for each
    python benchmarks/count_rules.py --keep FOLDER            keep the evidence, or use it again
    python benchmarks/count_rules.py --rejected               rejected rules, and pure noise
    python benchmarks/count_rules.py --null                   only data without clusters
    python benchmarks/count_rules.py --device cuda            the solves on a GPU

The samples are shuffled with a fixed seed. A number is right within 1, or within 10% of the number
of classes. Beside the list stands one that ignores the data, 3, 6, 10, 15, 30; the last table says
how often the first one, two, ... numbers of each hold the right one.

Each of the rejected rules multiplies an eigengap by a stability, a mean adjusted Rand index, and
takes the largest product.

    kept       gap of the mean spectrum of the settings, times agreement between settings
    draws      the same gap, times agreement between draws: each is one setting's graph, restricted
               to 80% of the samples; two are compared on the samples that both have
    resampled  the same, but only draws of the same setting are compared
    mean graph gap of the mean of the settings' graphs, times agreement between its subgraphs
    votes      mean of the settings' gaps, each divided by its largest, times agreement of draws

The last four were written down before they were run, and no others were tried. The last table shows
the problem with subsampling an existing graph: its links stay the same, so small pieces are found
again whatever the data. On Gaussian noise the agreement between subgraphs grows with the number of
clusters; the agreement between settings does not.

Run on all data sets with seed 0, the list with --seconds 240, the tables are kept for
docs/choosing-without-labels.md (page_tables.py).
"""

import argparse
import json
import sys
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import scipy.linalg
from page_tables import TITLES, show
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from polyspan import count_clusters, sharing
from polyspan.clustering.spectral import cluster_rows
from polyspan.datasets import load_dataset
from polyspan.graphs.proximity import normalized
from polyspan.inputs.views import check_views
from polyspan.selection.count import (
    N_CANDIDATES,
    exact_affinity,
    rule_agreement,
    rule_scores,
    shortlist,
    stability_of,
)
from polyspan.selection.pool import exact_solves

NAMES = ("wine", "nutrimouse", "nutrimouse_diet", "nci60", "breast_tcga", "yale_images",
         "three_sources", "msrc_v1", "brca_pam50", "ngs", "bbcsport", "prokaryotic", "movies617",
         "bbc", "citeseq_pbmc", "reuters1200", "leaves100", "digits", "handwritten", "scene15",
         "hdigit", "snare_cortex")  # fmt: skip
COMPARED = ("bbcsport", "ngs", "three_sources", "prokaryotic", "msrc_v1", "handwritten",
            "yale_images", "movies617", "leaves100")  # fmt: skip
FIXED = (3, 6, 10, 15, 30)
RULES = ("kept", "draws", "resampled", "mean graph", "votes")
SECONDS = 240  # the deadline of the table in the page
N_DRAWS = 20
SHARE = 0.8


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Rules for the number of clusters.")
    parser.add_argument("--dataset", nargs="+", choices=NAMES)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    parser.add_argument("--seconds", type=float, metavar="S", help="deadline for each data set")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="of the evidence")
    parser.add_argument("--rejected", action="store_true", help="rejected rules, and noise")
    parser.add_argument("--null", action="store_true", help="data without clusters alone")
    parser.add_argument("--device", metavar="D", help="where to solve, such as cuda")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if not args.rejected and not args.null:
        show_lists(args.dataset or NAMES, args)
        return 0
    if args.rejected:
        whole = args.dataset is None and args.seed == 0
        header = ["data", "classes", *RULES, "seconds"]
        show(header, rejected(args.dataset or COMPARED, args), "count-rejected", whole)
    numbers, lines = null(args.seed)
    header = ["clusters, on noise", *map(str, numbers)]
    show(header, lines, "count-noise", args.seed == 0)
    return 0


def rejected(names, args: argparse.Namespace):
    """Yield the numbers of a data set by every rejected rule."""
    for name in names:
        started = time.perf_counter()
        data = load_dataset(name)
        c = data.n_clusters
        found = [bold(k, c) for k in counts(graphs(data.views, args.device), args.seed)]
        yield [TITLES.get(name, name), c, *found, f"{time.perf_counter() - started:.0f}"]


def shuffled(name: str, seed: int) -> tuple[list, int]:
    """The views of a data set with its samples shuffled, and the number of classes."""
    if name == "wine":
        X = load_wine().data
        views, c = [X[:, :7], X[:, 7:]], 3
    else:
        data = load_dataset(name)
        views, c = data.views, data.n_clusters
    order = np.random.RandomState(seed).permutation(views[0].shape[0])
    return [X[order] for X in views], c


def measured(name: str, args: argparse.Namespace) -> dict:
    """The evidence of a data set with its size, number of classes and seconds, or what was kept."""
    path = None if args.keep is None else args.keep / f"{name}-{args.seed}.json"
    if path is not None and path.exists():
        return json.loads(path.read_text())
    views, c = shuffled(name, args.seed)
    started = time.perf_counter()
    deadline = None if args.seconds is None else started + args.seconds
    _, evidence = count_clusters(
        views, random_state=args.seed, device=args.device, deadline=deadline
    )
    spent = time.perf_counter() - started
    found = {"n": views[0].shape[0], "classes": c, "seconds": spent, "evidence": evidence}
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
    return found


def show_lists(names, args: argparse.Namespace) -> None:
    """Print the short list of every data set, and how often it is right."""
    whole = names is NAMES and args.seed == 0 and args.seconds == SECONDS
    right, fixed, exact = [], [], []

    def lines():
        for name in names:
            one = measured(name, args)
            c, evidence = one["classes"], one["evidence"]
            rules = rule_scores(evidence)
            found = [row.n_clusters for row in shortlist(rules, rule_agreement(evidence, rules))]
            right.append(within(found, c))
            fixed.append(within(FIXED, c))
            exact.append((c in found, c in FIXED))
            solved = [params for params in evidence["settings"] if "method" not in params]
            told = ", ".join(bold(k, c) for k in found)
            cells = [TITLES.get(name, name), f"{one['n']:,}", c, told, len(solved)]
            yield [*cells, f"{one['seconds']:.0f}"]

    header = ["data", "samples", "classes", "short list", "settings", "seconds"]
    show(header, lines(), "count-lists", whole)
    counted = []
    for title, rows in (("short list", right), (f"the fixed list {str(FIXED)[1:-1]}", fixed)):
        first, *others = np.sum(rows, axis=0)
        counted.append([title, f"{first} of {len(rows)}", *others])
    show(["right within the first", *"12345"], counted, "count-right", whole)
    ours, theirs = np.sum(exact, axis=0)
    print(
        f"The exact number is on {ours} of {len(exact)} short lists, {theirs} times on the fixed."
    )


def near(k: int, c: int) -> bool:
    """Whether a number counts as right."""
    return abs(k - c) <= max(1, 0.1 * c)


def bold(k: int, c: int) -> str:
    """A number in bold if it is right."""
    return f"**{k}**" if near(k, c) else str(k)


def within(found, c: int) -> list[bool]:
    """Whether the right number is among the first one, two, ... five."""
    hits = [near(k, c) for k in found]
    return [any(hits[: m + 1]) for m in range(5)]


def graphs(views, device: str | None = None) -> list[np.ndarray]:
    """The affinities that `count_clusters` uses."""
    with sharing():
        checked = check_views(views)
        settings = exact_solves(checked.n_samples)
        return [exact_affinity(checked, setting, device) for setting in settings]


def counts(Ws: list[np.ndarray], seed: int) -> list[int]:
    """The number of clusters by every rule."""
    limit = max(2, len(Ws[0]) // 5)
    tops = [top(W, limit + 1) for W in Ws]
    spectra = np.array([w for w, _ in tops])
    gaps = after(spectra.mean(axis=0))
    own = after(spectra)
    votes = (own / own.max(axis=1, keepdims=True)).mean(axis=0)
    mean = np.mean([normalized(W) for W in Ws], axis=0)
    joint = after(top(mean, limit + 1)[0])
    some, others, few = candidates(gaps), candidates(votes), candidates(joint)
    drawn = draws(Ws, sorted({*some, *others}), seed)
    between = {c: stability_of([V for _, V in tops], c, seed) for c in some}
    return [
        best(gaps, between),
        best(gaps, {c: agreement(drawn, c) for c in some}),
        best(gaps, {c: agreement(drawn, c, same=True) for c in some}),
        best(joint, {c: agreement(draws([mean], [c], seed), c) for c in few}),
        best(votes, {c: agreement(drawn, c) for c in others}),
    ]


def null(seed: int) -> tuple[list[int], list[list[str]]]:
    """Stability on two views of noise: numbers of clusters, and a line for every rule."""
    rng = np.random.RandomState(seed)
    Ws = graphs([rng.normal(size=(400, 40)), rng.normal(size=(400, 60))])
    numbers = [2, 3, 5, 10, 20, 40, 60]
    drawn = draws(Ws, numbers, seed)
    tops = [top(W, max(numbers))[1] for W in Ws]
    rows = {
        "between settings (kept)": [stability_of(tops, c, seed) for c in numbers],
        "draws": [agreement(drawn, c) for c in numbers],
        "resampled": [agreement(drawn, c, same=True) for c in numbers],
    }
    return numbers, [[name, *(f"{x:.3f}" for x in row)] for name, row in rows.items()]


def top(W: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a normalized graph and their eigenvectors, largest first."""
    n = len(W)
    w, V = scipy.linalg.eigh(normalized(W), subset_by_index=[n - k, n - 1])
    return w[::-1], V[:, ::-1]


def after(w: np.ndarray) -> np.ndarray:
    """Gaps after 2, 3, ... eigenvalues."""
    return w[..., 1:-1] - w[..., 2:]


def candidates(gaps: np.ndarray) -> list[int]:
    return [int(i) + 2 for i in np.argsort(-gaps, kind="stable")[:N_CANDIDATES]]


def best(gaps: np.ndarray, stability: dict[int, float]) -> int:
    return max(stability, key=lambda c: gaps[c - 2] * stability[c])


def draws(Ws: list[np.ndarray], numbers: list[int], seed: int) -> list[tuple[int, dict]]:
    """(setting, {number: labels, -1 for those left out}) of graphs of a share of the samples."""
    n = len(Ws[0])
    rng = np.random.RandomState(seed)
    found = []
    for b in range(N_DRAWS):
        kept = np.sort(rng.choice(n, int(SHARE * n), replace=False))
        _, V = top(Ws[b % len(Ws)][np.ix_(kept, kept)], max(numbers))
        labels = {c: np.full(n, -1) for c in numbers}
        for c, row in labels.items():
            row[kept] = cluster_rows(V[:, :c], c, n_init=5, random_state=seed)
        found.append((b % len(Ws), labels))
    return found


def agreement(drawn: list[tuple[int, dict]], c: int, same: bool = False) -> float:
    scores = []
    for (s, a), (t, b) in combinations(drawn, 2):
        if s == t or not same:
            both = (a[c] >= 0) & (b[c] >= 0)
            scores.append(adjusted_rand_score(a[c][both], b[c][both]))
    return float(np.mean(scores))


if __name__ == "__main__":
    sys.exit(main())
