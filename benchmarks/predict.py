"""New samples: fit on 80% of a data set, predict the other 20%, and compare with a fit on all.

    python benchmarks/predict.py                    three data sets, a table in Markdown
    python benchmarks/predict.py bbcsport --splits 10

Both columns are the normalized mutual information with the true classes on the same 20%: of the
predicted labels, and of the labels from a fit on all samples. Every split is random, seeded by its
number. Rows are appended to benchmarks/results/predict.jsonl, from which results.py makes the table
of docs/after-the-fit.md; the data must have been downloaded.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from page_tables import append, show

from polyspan import GRMSC, __version__
from polyspan.datasets import Dataset, load_dataset
from polyspan.metrics import clustering_scores

STORE = Path(__file__).parent / "results" / "predict.jsonl"
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "bbcsport": [{}, {"affinity": "sparse"}],
    "ngs": [{}, {"affinity": "sparse"}],
    "handwritten": [{}, {"affinity": "sparse"}],
}
HEADER = ("data", "setting", "predicted", "fit on all", "difference", "worst split")


def main(argv: list[str] | None = None) -> int:
    """Print the table and store its rows."""
    parser = argparse.ArgumentParser(description="NMI of predicted labels of new samples.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SETTINGS))
    parser.add_argument("--splits", type=int, default=5, metavar="N", help="default: 5")
    parser.add_argument("--device", help="where GRMSC computes, such as cuda")
    parser.add_argument("--store", type=Path, default=STORE, help=f"default: {STORE.name}")
    args = parser.parse_args(argv)
    if unknown := set(args.names) - set(SETTINGS):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(SETTINGS)}")
    data = {name: load_dataset(name) for name in args.names or SETTINGS}  # fails before any work
    show(HEADER, lines(data, args))
    return 0


def lines(data: dict[str, Dataset], args: argparse.Namespace) -> Iterator[list[str]]:
    """Run every setting, store the rows, and yield its line of the table."""
    for name, one in data.items():
        for setting in SETTINGS[name]:
            rows = []
            for row in splits(one, setting, args.splits, args.device):
                rows.append(row | {"setting": setting})
                append(args.store, rows[-1])
            yield cells(one.name, rows)


def splits(
    data: Dataset, setting: dict[str, Any], count: int, device: str | None
) -> Iterator[dict[str, Any]]:
    """Yield one row per random split."""
    n = len(data.labels)
    whole = fit(data, setting, np.arange(n), device).labels_
    for split in range(count):
        order = np.random.default_rng(split).permutation(n)
        old, new = order[: int(0.8 * n)], order[int(0.8 * n) :]
        model = fit(data, setting, old, device)
        start = time.process_time()
        labels = model.predict([X[new] for X in data.views])
        seconds = time.process_time() - start
        nmi = [clustering_scores(data.labels[new], x)["nmi"] for x in (labels, whole[new])]
        yield (
            {"data": data.name, "split": split, "n_fitted": len(old), "n_new": len(new)}
            | {"date": str(date.today()), "polyspan": __version__}
            | ({} if device is None else {"device": device})
            | {"nmi": nmi[0], "nmi_fit_on_all": nmi[1], "predict_cpu_s": seconds}
        )


def fit(data: Dataset, setting: dict[str, Any], rows: np.ndarray, device: str | None) -> GRMSC:
    model = GRMSC(data.n_clusters, random_state=0, device=device, **setting)
    return model.fit([X[rows] for X in data.views])


def cells(name: str, rows: list[dict[str, Any]]) -> list[str]:
    """One line of the table, from the rows of a setting."""
    found, whole = (np.array([row[key] for row in rows]) for key in ("nmi", "nmi_fit_on_all"))
    used = ", ".join(f"{key}={value}" for key, value in rows[0]["setting"].items()) or "defaults"
    both = (f"{found.mean():.3f}", f"{whole.mean():.3f}")
    return [name, used, *both, *(f"{f(found - whole):+.3f}" for f in (np.mean, np.min))]


if __name__ == "__main__":
    sys.exit(main())
