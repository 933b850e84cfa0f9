"""Samples that lack views: GRMSC with the gaps, compared with GRMSC after mean imputation.

    python benchmarks/missing.py                    two data sets, a table in Markdown
    python benchmarks/missing.py three_sources --seeds 20

10, 30 and 50% of the (sample, view) pairs are removed at random, never the last view of a sample.
GRMSC gets them as rows of NaN; the other column first replaces them by the mean of the view's other
samples. Figures are the mean normalized mutual information over seeds, which choose the gaps. Rows
are appended to benchmarks/results/missing.jsonl, from which results.py makes the table of
docs/after-the-fit.md; the data must have been downloaded.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from page_tables import append, show
from sklearn.exceptions import ConvergenceWarning

from polyspan import GRMSC, __version__
from polyspan.datasets import Dataset, load_dataset
from polyspan.metrics import clustering_scores

STORE = Path(__file__).parent / "results" / "missing.jsonl"
SETTINGS: dict[str, tuple[dict[str, Any], int]] = {  # setting, default number of seeds
    "three_sources": ({}, 10),
    "handwritten": ({"affinity": "sparse", "max_iter": 40}, 1),  # a minute a fit on two cores
}
SHARES = (0.1, 0.3, 0.5)
HEADER = (
    *("data", "setting", "removed", "`GRMSC` on the gaps", "after mean imputation", "complete"),
)


def main(argv: list[str] | None = None) -> int:
    """Print the table and store its rows."""
    parser = argparse.ArgumentParser(description="NMI of GRMSC when samples lack views.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SETTINGS))
    parser.add_argument("--seeds", type=int, metavar="N", help="default: 10, and 1 for handwritten")
    parser.add_argument("--device", help="where GRMSC computes, such as cuda")
    parser.add_argument("--store", type=Path, default=STORE, help=f"default: {STORE.name}")
    args = parser.parse_args(argv)
    if unknown := set(args.names) - set(SETTINGS):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(SETTINGS)}")
    data = {name: load_dataset(name) for name in args.names or SETTINGS}  # fails before any work
    warnings.simplefilter("ignore", ConvergenceWarning)  # n_iter shows it
    show(HEADER, (line for name, one in data.items() for line in lines(name, one, args)))
    return 0


def lines(name: str, data: Dataset, args: argparse.Namespace) -> Iterator[list[str]]:
    """Store the rows of one data set, and yield its lines of the table."""
    setting, seeds = SETTINGS[name]
    device = args.device
    views = [X.toarray() if sp.issparse(X) else np.asarray(X, float) for X in data.views]
    complete = score(data, setting, views, device)[0]
    for share in SHARES:
        rows = []
        for seed in range(args.seeds or seeds):
            gaps = remove(views, share, seed)
            nmi, iterations = score(data, setting, gaps, device)
            filled, _ = score(data, setting, impute(gaps), device)
            row = {"data": data.name, "setting": setting, "removed": share, "seed": seed}
            row |= {} if device is None else {"device": device}
            row |= {"date": str(date.today()), "polyspan": __version__}
            row |= {
                "nmi": nmi,
                "n_iter": iterations,
                "nmi_imputed": filled,
                "nmi_complete": complete,
            }
            append(args.store, row)
            rows.append(row)
        yield cells(data.name, rows)


def cells(name: str, rows: list[dict[str, Any]]) -> list[str]:
    """One line of the table, from the rows of a setting and a share."""
    used = ", ".join(f"{key}={value}" for key, value in rows[0]["setting"].items()) or "defaults"
    means = [np.mean([row[key] for row in rows]) for key in ("nmi", "nmi_imputed", "nmi_complete")]
    return [name, used, f"{rows[0]['removed']:.0%}", *(f"{mean:.3f}" for mean in means)]


def score(
    data: Dataset, setting: dict[str, Any], views: list[np.ndarray], device: str | None
) -> tuple[float, int]:
    model = GRMSC(data.n_clusters, random_state=0, device=device, **setting).fit(views)
    return clustering_scores(data.labels, model.labels_)["nmi"], model.n_iter_


def remove(views: list[np.ndarray], share: float, seed: int) -> list[np.ndarray]:
    """Make rows NaN at random, a share of all (sample, view) pairs; every sample keeps a view."""
    n, v = len(views[0]), len(views)
    gone, left = np.zeros((n, v), bool), round(share * n * v)
    for pair in np.random.default_rng(seed).permutation(n * v):
        i, k = divmod(int(pair), v)
        if left and gone[i].sum() < v - 1:
            gone[i, k], left = True, left - 1
    return [np.where(gone[:, [k]], np.nan, X) for k, X in enumerate(views)]


def impute(views: list[np.ndarray]) -> list[np.ndarray]:
    """Fill rows of NaN with the mean of the view's other samples."""
    return [np.where(np.isnan(X), np.nanmean(X, axis=0), X) for X in views]


if __name__ == "__main__":
    sys.exit(main())
