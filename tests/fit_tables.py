"""Two tables of the same samples for the tests of `polyspan fit`, and what it writes."""

import csv

import numpy as np
import pandas as pd

from polyspan.datasets import make_subspaces

DATA = make_subspaces(60, 3, n_views=2, n_features=[12, 8], noise=0.1, random_state=0)
IDS = [f"s{i:02d}" for i in range(60)]
SHUFFLED = np.random.default_rng(1).permutation(60)
GRMSC3 = ["--method", "grmsc", "--clusters", "3"]
FILES = ["rna.csv", "protein.csv"]


def frame(values, ids=IDS):
    table = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
    table.insert(0, "sample", ids)
    return table


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def read_labels(path="labels.csv"):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def column(rows, j=1):
    return [int(row[j]) for row in rows[1:]]
