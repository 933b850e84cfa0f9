"""What a newcomer does first: mice as R writes them, as R stores them, as AnnData, shuffled, holed.

The commands are those of docs/your-own-data.md.
"""

import csv

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

from polyspan.cli.main import main
from polyspan.datasets import load_dataset
from polyspan.io.readers import read_r

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mice(omics_dir, tmp_path_factory):
    """A folder with nutrimouse in every form, and the clusters of its 40 mice."""
    folder = tmp_path_factory.mktemp("mice")
    found = read_r(omics_dir / "nutrimouse.rda")["nutrimouse"]
    (folder / "nutrimouse.rda").write_bytes((omics_dir / "nutrimouse.rda").read_bytes())
    for name in ("gene", "lipid"):
        values = found[name].to_numpy(float)
        table = pd.DataFrame(values, range(1, 41), found[name].columns)
        as_r_writes(table.T, folder / f"{name}.csv")
        table.to_csv(folder / f"{name}_rows.csv", index_label="mouse")
        shuffled = table.sample(frac=1, random_state=len(name))
        shuffled.to_csv(folder / f"{name}_shuffled.csv", index_label="mouse")
        as_anndata(table, folder / f"{name}.h5ad")
    return folder, labels(folder, "gene.csv", "lipid.csv", "--samples", "columns", *QUICK)


def as_r_writes(table, path):
    """`write.csv`: words in quotes, no name over the names of the rows, NA."""
    table.to_csv(path, index_label="", na_rep="NA", quoting=csv.QUOTE_NONNUMERIC)


def as_anndata(table, path):
    anndata = pytest.importorskip("anndata")
    table = table.set_axis(table.index.astype(str))
    anndata.AnnData(table).write_h5ad(path)


QUICK = ("--method", "grmsc")  # where the question is how the files are read


def labels(folder, *arguments):
    """The cluster of every mouse, by the default of `polyspan fit` if no method is given."""
    files = [one for one in arguments if "." in one]
    options = [one for one in arguments if "." not in one]
    out = folder / "labels.csv"
    paths = [str(folder / one) for one in files]
    number = [] if "--clusters" in options else ["--clusters", "2"]
    assert main(["fit", *paths, *options, *number, "--force", "--out", str(out)]) == 0
    with out.open(newline="", encoding="utf-8") as stream:
        return {row[0]: int(row[1]) for row in list(csv.reader(stream))[1:]}


def test_without_the_option_the_answer_names_it(mice, capsys):
    paths = [str(mice[0] / name) for name in ("gene.csv", "lipid.csv")]
    assert main(["fit", *paths, "--clusters", "2", "--out", str(mice[0] / "no.csv")]) == 2
    assert capsys.readouterr().err.endswith("if those are the samples, use --samples columns\n")


@pytest.mark.parametrize(
    "files",
    [["nutrimouse.rda"], ["gene.h5ad", "lipid.h5ad"], ["gene_rows.csv", "lipid_shuffled.csv"]],
)
def test_the_same_mice_in_another_form(mice, files):
    folder, clean = mice
    assert len(clean) == 40
    assert labels(folder, *files, *QUICK) == clean


def test_all_rows_shuffled(mice):
    """The numbers of clusters follow the order of the first file, the clusters do not."""
    folder, clean = mice
    assert agreement(clean, labels(folder, "gene_shuffled.csv", "lipid_shuffled.csv", *QUICK)) == 1


def test_three_percent_missing(tmp_path):
    """By the default of `polyspan fit`, filled in both ways: 150 tumors."""
    rng, data = np.random.default_rng(0), load_dataset("breast_tcga")
    files, holed = [], []
    for name, X in zip(data.view_names, data.views, strict=True):
        table = pd.DataFrame(X).add_prefix(name)
        holes = table.mask(rng.random(table.shape) < 0.03)
        for kind, one in (("", table), ("holes", holes)):
            one.rename(index="t{}".format).to_csv(tmp_path / f"{name}{kind}.csv", index_label="id")
        files.append(f"{name}.csv")
        holed.append(f"{name}holes.csv")
    clean = labels(tmp_path, *files, "--clusters", "3")
    for how in ("median", "knn"):
        found = labels(tmp_path, *holed, "--clusters", "3", "--impute", how)
        assert agreement(clean, found) >= 0.8, how


def agreement(one, other):
    assert one.keys() == other.keys()
    return adjusted_rand_score(list(one.values()), [other[mouse] for mouse in one])
