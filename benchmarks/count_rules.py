"""Compare the rule of `count_clusters` with other rules for the number of clusters.

    python benchmarks/count_rules.py                          the nine data sets, and pure noise
    python benchmarks/count_rules.py --dataset ngs msrc_v1    some of them
    python benchmarks/count_rules.py --null                   only data without clusters
    python benchmarks/count_rules.py --device cuda            the solves on a GPU

Each rule multiplies an eigengap by a stability, a mean adjusted Rand index, and takes the largest
product.

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
"""

import argparse
import sys
import time
import warnings
from itertools import combinations

import numpy as np
import scipy.linalg
from sklearn.metrics import adjusted_rand_score

from polyspan import sharing
from polyspan.clustering.spectral import cluster_rows
from polyspan.datasets import load_dataset
from polyspan.graphs.proximity import normalized
from polyspan.inputs.views import check_views
from polyspan.selection.count import N_CANDIDATES, exact_affinities, stability_of

NAMES = ("bbcsport", "ngs", "three_sources", "prokaryotic", "msrc_v1", "handwritten",
         "yale_images", "movies617", "leaves100")  # fmt: skip
RULES = ("kept", "draws", "resampled", "mean graph", "votes")
N_DRAWS = 20
SHARE = 0.8


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Rules for the number of clusters.")
    parser.add_argument("--dataset", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    parser.add_argument("--null", action="store_true", help="data without clusters alone")
    parser.add_argument("--device", metavar="D", help="where to solve, such as cuda")
    args = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if not args.null:
        print(f"| data | classes | {' | '.join(RULES)} | seconds |\n|---|{'---:|' * 7}")
        for name in args.dataset:
            started = time.perf_counter()
            data = load_dataset(name)
            found = counts(graphs(data.views, args.device), args.seed)
            cells = [name, data.n_clusters, *found, f"{time.perf_counter() - started:.0f}"]
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
        print()
    print(null(args.seed))
    return 0


def graphs(views, device: str | None = None) -> list[np.ndarray]:
    """The affinities that `count_clusters` uses."""
    with sharing():
        return [W for _, W in exact_affinities(check_views(views), None, device)]


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


def null(seed: int) -> str:
    """Stability on two views of noise."""
    rng = np.random.RandomState(seed)
    Ws = graphs([rng.normal(size=(400, 40)), rng.normal(size=(400, 60))])
    numbers = [2, 3, 5, 10, 20, 40, 60]
    drawn = draws(Ws, numbers, seed)
    tops = [top(W, max(numbers))[1] for W in Ws]
    rows = {
        "between settings": [stability_of(tops, c, seed) for c in numbers],
        "between draws": [agreement(drawn, c) for c in numbers],
        "resampled": [agreement(drawn, c, same=True) for c in numbers],
    }
    lines = [f"| {name} | {' | '.join(f'{x:.3f}' for x in row)} |" for name, row in rows.items()]
    head = f"| noise, clusters | {' | '.join(map(str, numbers))} |\n|---|{'---:|' * len(numbers)}"
    return "\n".join([head, *lines])


def top(W: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of a normalised graph and their eigenvectors, largest first."""
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
