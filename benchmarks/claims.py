"""What sentences and single figures of the paper come to, for docs/paper-claims.md.

    python benchmarks/claims.py               all tables, a few minutes (needs the data)
    python benchmarks/claims.py weights       one of them: weights, iterations, starts, untuned, lrr

``weights``, ``iterations`` and ``untuned`` read the stored runs of paper.toml; ``starts`` and
``lrr`` are run. A run of all tables keeps them in results/tables, from which `python
benchmarks/results.py` fills the page.
"""

import argparse
import warnings
from collections import defaultdict

import numpy as np
import page_tables
import results
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from harness.summaries import read_paper
from polyspan import AMGL, LRR
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import load_dataset
from polyspan.metrics import clustering_scores

LAMS = (0.001, 0.01, 0.1, 0.3, 1.0)
SCALINGS = {
    "raw": lambda X: X,
    "unit length": lambda X: X / np.linalg.norm(X, axis=1, keepdims=True),
    "features centered": lambda X: X - X.mean(axis=0),
    "features standardized": lambda X: (
        (X - X.mean(axis=0)) / np.where(X.std(axis=0), X.std(axis=0), 1)
    ),
}


def nmi(labels, found):
    return clustering_scores(labels, found)["nmi"]


def paper(dataset, method):
    mean, std = read_paper()[dataset, method]["nmi"]
    return f"{mean:.3f} ({std:.3f})"


def tuning(method):
    """The first run of every setting of the paper's grid, by data set; samples are shuffled."""
    found = defaultdict(list)
    for row in results.complete("paper"):
        wanted = row["method"] == method and row["stage"] == "tune" and row["seed"] == 0
        lams = {row["params"][name] for name in ("lam1", "lam2") if name in row["params"]}
        if wanted and row["status"] == "ok" and lams <= set(results.TALL):
            found[row["dataset"]].append(row)
    return found


def weights():
    """Good results for lam1 >= 1 and lam2 <= 1, and with the two swapped."""
    by = tuning("GRMSC")
    for dataset, rows in by.items():
        cells = []
        for high, low in (("lam1", "lam2"), ("lam2", "lam1")):
            some = [row for row in rows if row["params"][high] >= 1 and row["params"][low] <= 1]
            cells += [len(some), f"{np.median([row['nmi'] for row in some]):.3f}"]
        yield [dataset.split(" (")[0], *cells]


def iterations():
    """How many settings converge within 20 iterations."""
    for method in ("GRMSC", "GRMSC (raw)"):
        for dataset, rows in tuning(method).items():
            numbers = [row["iterations"] for row in rows]
            within = [row["converged"] and row["iterations"] <= 20 for row in rows]
            share = f"{100 * np.mean(within):.1f}%"
            yield [
                method,
                dataset.split(" (")[0],
                len(rows),
                share,
                min(numbers),
                np.median(numbers),
            ]


def starts():
    """AMGL on BBCSport, k-means started once, at random samples and by k-means++."""
    data = load_dataset("bbcsport")
    yield ["the paper", paper("bbcsport", "AMGL")]
    model = AMGL(data.n_clusters, as_released=True, random_state=0).fit(data.views)
    for init, words in (("random", "random samples"), ("k-means++", "k-means++")):
        scores = []
        for seed in range(30):
            k_means = KMeans(data.n_clusters, init=init, n_init=1, random_state=seed)
            scores.append(nmi(data.labels, k_means.fit_predict(model.embedding_)))
        yield [words, f"{np.mean(scores):.3f} ({np.std(scores):.3f})"]


def untuned():
    """LRR_BSV on BBCSport, raw features, at every lam."""
    for row in sorted(
        tuning("LRR_BSV (raw)")["BBCSport"], key=lambda row: row["params"]["estimator__lam"]
    ):
        yield [f"{row['params']['estimator__lam']:g}", f"{row['nmi']:.4f}"]
    yield ["the paper", f"{read_paper()['bbcsport', 'LRR_BSV']['nmi'][0]:.4f}"]


def lrr():
    """LRR of every view of Prokaryotic: the best lam, by scaling, view and affinity."""
    data = load_dataset("prokaryotic")
    yield ["the paper", "", f"{read_paper()['prokaryotic', 'LRR_BSV']['nmi'][0]:.3f}", ""]
    for scaling, scaled in SCALINGS.items():
        for name, X in zip(data.view_names, data.views, strict=True):
            X = scaled(X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float))
            best = defaultdict(lambda: (-1.0, 0.0))
            for lam in LAMS:
                Z = LRR(data.n_clusters, lam=lam, scale=None, random_state=0).fit(X).representation_
                for kind, W in (("plain", np.abs(Z) + np.abs(Z).T), ("angles", angles(Z))):
                    labels = spectral_clustering(W, data.n_clusters, random_state=0)
                    best[kind] = max(best[kind], (nmi(data.labels, labels), lam))
            yield [scaling, name, *(f"{value:.3f} (lam {lam:g})" for value, lam in best.values())]


def angles(Z):
    """The affinity of the LRR program for motions: angles between rows of U S^1/2, to a power."""
    U, s, _ = np.linalg.svd(Z)
    U = U[:, s > 1e-4 * s[0]] * np.sqrt(s[s > 1e-4 * s[0]])
    length = np.linalg.norm(U, axis=1, keepdims=True)
    U = U / np.where(length > 0, length, 1)
    return (U @ U.T) ** 4


TABLES = {
    "weights": (
        weights,
        ["data", "settings as printed", "median NMI", "settings swapped", "median NMI "],
    ),
    "iterations": (iterations, ["method", "data", "settings", "within 20", "fewest", "median"]),
    "starts": (starts, ["start of k-means", "NMI of AMGL on BBCSport"]),
    "untuned": (untuned, ["lam", "NMI of LRR_BSV (raw) on BBCSport"]),
    "lrr": (lrr, ["features", "view", "NMI", "NMI, angles"]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TABLES))
    given = parser.parse_args().names
    if unknown := set(given) - set(TABLES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(TABLES)}")
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in given or TABLES:
            made, header = TABLES[name]
            page_tables.show(header, made(), f"claims-{name}", whole=not given)


if __name__ == "__main__":
    main()
