"""AnnData and MuData at the command line: which matrices are views, and labels in a copy."""

import warnings

import anndata as ad
import mudata as md
import numpy as np
import pandas as pd
import pytest

from polyspan import GRMSC
from polyspan.cli.main import main
from polyspan.datasets import make_subspaces

DATA = make_subspaces(40, 3, n_features=[8, 6], random_state=0)
IDS = [f"m{i}" for i in range(40)]
METHOD = ["--method", "grmsc", "--clusters", "3", "--set", "n_neighbors=5"]
LABELS = [str(one) for one in GRMSC(3, n_neighbors=5, random_state=0).fit_predict(DATA.views)]


def cells(X, ids=IDS):
    return ad.AnnData(X, obs=pd.DataFrame(index=ids))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with cells.h5ad, whose X is noise, and both.h5mu."""
    monkeypatch.chdir(tmp_path)
    one = cells(np.random.default_rng(0).normal(size=(40, 8)))
    one.layers["counts"] = DATA.views[0]
    one.obsm["protein"] = DATA.views[1]
    one.write_h5ad("cells.h5ad")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of changes in the next version of mudata
        parts = {"rna": cells(DATA.views[0]), "protein": cells(DATA.views[1][::-1], IDS[::-1])}
        md.MuData(parts).write("both.h5mu")
    return tmp_path


def read(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ad.read_h5ad(path) if path.endswith("h5ad") else md.read_h5mu(path)


KEYS = ["--layer", "counts", "--obsm", "protein"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "options", "out"),
    [("cells.h5ad", KEYS, "out.h5ad"), ("both.h5mu", [], "out.h5mu")],
    ids=["h5ad", "h5mu"],
)
def test_labels_in_a_copy(folder, source, options, out, capsys):
    before = (folder / source).read_bytes()
    assert main(["fit", source, *options, *METHOD, "--out", out]) == 0
    assert "copy of the data with the labels in obs" in capsys.readouterr().out
    found = read(out)
    assert list(found.obs_names) == IDS
    assert found.obs["polyspan"].tolist() == LABELS
    assert found.uns["polyspan"]["method"] == "GRMSC"
    assert (folder / source).read_bytes() == before
    assert main(["fit", "--repeat", "out.json"]) == 0  # with the same keys
    assert "repeated: all labels are the same as before" in capsys.readouterr().out
    again = read(out.replace("out", "out-again"))
    assert again.obs["polyspan"].tolist() == LABELS


@pytest.mark.slow
def test_samples_that_were_dropped_have_no_label(folder):
    frame = pd.DataFrame(DATA.views[1], index=pd.Index(IDS, name="id")).add_prefix("p").iloc[5:]
    frame.to_csv("protein.csv")
    files = ["cells.h5ad", "protein.csv", "--layer", "counts", "--missing", "drop"]
    assert main(["fit", *files, *METHOD, "--out", "out.h5ad"]) == 0
    found = read("out.h5ad").obs["polyspan"]
    assert found.isna().tolist() == [True] * 5 + [False] * 35


WRONG = {
    "two files": (
        ["cells.h5ad", "more.h5ad", "--out", "out.h5ad"],
        "out.h5ad: labels are written into a copy of the one .h5ad file that is read, but 2 of the "
        "files are one: end the name in .csv",
    ),
    "no such file": (
        ["both.h5mu", "--out", "out.h5ad"],
        "but none of the files is one: end the name in .csv",
    ),
    "the input": (["cells.h5ad", "--out", "cells.h5ad"], "cells.h5ad is one of the input files"),
    "an unknown key": (
        ["cells.h5ad", "--obsm", "proteins"],
        "cells.h5ad has no obsm key 'proteins', did you mean 'protein'?",
    ),
    "an unknown layer": (
        ["both.h5mu", "--layer", "rna:counts"],
        "both.h5mu has no layer 'rna:counts', did you mean",
    ),
    "keys of a table": (
        ["x.csv", "--layer", "counts"],
        "--layer names matrices of AnnData (.h5ad) or MuData (.h5mu), and none is given",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_refused(folder, case, capsys):
    (folder / "more.h5ad").write_bytes((folder / "cells.h5ad").read_bytes())
    pd.DataFrame({"id": IDS, "a": range(40)}).to_csv("x.csv", index=False)
    before = sorted(folder.iterdir())
    arguments, told = WRONG[case]
    assert main(["fit", *arguments, *METHOD]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert sorted(folder.iterdir()) == before


def test_a_failure_while_writing_leaves_nothing(folder, monkeypatch, capsys):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ad.AnnData, "write", full)
    before = sorted(folder.iterdir())
    assert main(["fit", "cells.h5ad", *KEYS, *METHOD, "--out", "out.h5ad"]) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before
