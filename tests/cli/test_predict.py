"""The commands fit --save and predict: a model in a file, new samples in files, clusters out."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fit_tables import DATA, IDS, column, frame, names, read_labels
from sklearn.base import clone
from sklearn.utils import get_tags

from polyspan import GRMSC, METHODS, ConsensusClusterer, MeanGraph, load_model, save_model
from polyspan.cli import predict
from polyspan.cli.main import main
from polyspan.datasets import load_views

pytestmark = [
    pytest.mark.usefixtures("folder"),
    pytest.mark.filterwarnings("ignore:ConsensusClusterer. no certainty is given"),
]
NAMES = {"rna": [f"g{j}" for j in range(12)], "protein": [f"p{j}" for j in range(8)]}


def table(name, rows=slice(None)):
    view = DATA.views[list(NAMES).index(name)]
    made = pd.DataFrame(view[rows].copy(), columns=NAMES[name])
    made.insert(0, "sample", IDS[rows])
    return made


@pytest.fixture
def fitted(folder):
    """A model of the first fifty samples, and the files of the other ten."""
    for name in NAMES:
        table(name, slice(50)).to_csv(f"{name}.csv", index=False)
        table(name, slice(50, 60)).to_csv(f"new_{name}.csv", index=False)
    data = load_views(["rna.csv", "protein.csv"])
    members = [MeanGraph(), MeanGraph(scale="standard+unit")]
    model = ConsensusClusterer(3, members=members, random_state=0).fit(data)
    save_model(model, "model.npz")
    return model


def new(a=slice(50, 60), b=slice(50, 60)):
    return [
        None if one is None else view[one] for view, one in zip(DATA.views, (a, b), strict=True)
    ]


def numbers(rows, name):
    return [float(row[rows[0].index(name)]) for row in rows[1:]]


# ---- what is written -----------------------------------------------------------------------------


def test_save_and_predict(folder, capsys):
    arguments = ["--clusters", "3", "--budget", "0", "--save", "model.npz"]
    assert main(["fit", "rna.csv", "protein.csv", *arguments]) == 0
    out = capsys.readouterr().out
    size = Path("model.npz").stat().st_size / 1e6
    assert re.search(rf"model\.npz +model, {size:.1f} MB; `polyspan predict model\.npz FILE", out)
    assert main(["predict", "model.npz", "rna.csv", "protein.csv"]) == 0
    rows = read_labels("predicted.csv")
    assert rows[0] == ["sample", "cluster", "certainty", "likeness", "nearest"]
    assert [row[0] for row in rows[1:]] == IDS
    same = np.array(column(rows)) == column(read_labels())
    assert same.mean() > 0.95
    assert names(folder) == [
        "labels.csv", "labels.json", "model.npz", "predicted.csv", "protein.csv", "rna.csv",
    ]  # fmt: skip


def test_the_file_has_what_place_says(fitted, capsys):
    arguments = ["new_rna.csv", "new_protein.csv", "--out", "out.tsv"]
    assert main(["predict", "model.npz", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = [line.split("\t") for line in Path("out.tsv").read_text().splitlines()]
    placed = fitted.place(new())
    assert [row[0] for row in rows[1:]] == IDS[50:]
    assert column(rows) == fitted.predict(new(), abstain=0.01).tolist()
    assert column(rows, 4) == placed.labels.tolist()
    np.testing.assert_allclose(numbers(rows, "certainty"), placed.certainty, atol=5e-5)
    np.testing.assert_allclose(numbers(rows, "likeness"), placed.likeness, atol=5e-5)
    assert "rna      new_rna.csv" in out
    n = np.sum(placed.likeness < 0.01)
    assert f"{n} of 10 samples are unlike all fitted ones and got cluster -1" in out
    assert f"certainty {placed.certainty.mean():.2f} on average" in out


def test_columns_are_matched_by_name_and_others_left_out(fitted, capsys):
    wanted = fitted.place(new()).votes.argmax(axis=1).tolist()
    mixed = table("rna", slice(50, 60))
    mixed = mixed[["sample", *reversed(NAMES["rna"])]].assign(age=1.0, g99=2.0)
    mixed.sample(frac=1, random_state=0).to_csv("new_rna.csv", index=False)
    assert main(["predict", "model.npz", "new_protein.csv", "new_rna.csv"]) == 0
    err = capsys.readouterr().err
    assert "new_rna.csv: 2 columns that the model was not fitted on are left out ('age'" in err
    rows = read_labels("predicted.csv")
    assert [row[0] for row in rows[1:]] == IDS[50:]
    assert column(rows, 4) == wanted


def test_a_view_may_be_left_out_by_name(fitted, capsys):
    wanted = [f"{one:.4f}" for one in fitted.place(new(b=None)).certainty]
    np.save("rna.npy", new()[0])
    np.save("x.npy", new()[0])
    for file in ("rna=x.npy", "rna.npy", "new_rna.csv"):  # named, called so, or by its features
        assert main(["predict", "model.npz", file, "--force"]) == 0
        assert [row[2] for row in read_labels("predicted.csv")[1:]] == wanted


def test_names_come_before_the_order(fitted):
    for name, view in zip(NAMES, new(), strict=True):
        np.save(f"{name}.npy", view)
        np.save(f"new_{name}.npy", view)
    assert main(["predict", "model.npz", "protein.npy", "rna.npy"]) == 0
    assert column(read_labels("predicted.csv"), 4) == fitted.place(new()).labels.tolist()
    assert main(["predict", "model.npz", "new_rna.npy", "new_protein.npy", "--force"]) == 0
    assert column(read_labels("predicted.csv"), 4) == fitted.place(new()).labels.tolist()


def test_some_samples_lack_a_view(fitted, capsys):
    table("protein", slice(53, 60)).to_csv("new_protein.csv", index=False)
    files = ["model.npz", "new_rna.csv", "new_protein.csv"]
    assert main(["predict", *files]) == 0
    assert "3 samples lack protein, kept without it: s50, s51, s52" in capsys.readouterr().out
    found = np.array(numbers(read_labels("predicted.csv"), "certainty"))
    np.testing.assert_allclose(found[:3], fitted.place(new(b=None)).certainty[:3], atol=5e-5)
    np.testing.assert_allclose(found[3:], fitted.place(new()).certainty[3:], atol=5e-5)
    assert main(["predict", *files, "--missing", "drop", "--force"]) == 0
    assert len(read_labels("predicted.csv")) == 8
    assert main(["predict", *files, "--missing", "fail", "--force"]) == 2
    assert "3 lack protein (s50, s51, s52)" in capsys.readouterr().err


def test_samples_unlike_all_get_no_cluster(fitted, capsys):
    model = clone(fitted).set_params(scale="standard")  # unit length does not tell large from small
    model.fit(load_views(["rna.csv", "protein.csv"]))
    save_model(model, "model.npz", force=True)
    odd = table("rna", slice(50, 60))
    odd.loc[3, NAMES["rna"]] += 1e3 * np.arange(12)
    other = table("protein", slice(50, 60))
    other.loc[3, NAMES["protein"]] -= 1e3 * np.arange(8)
    odd.to_csv("new_rna.csv", index=False)
    other.to_csv("new_protein.csv", index=False)
    files = ["model.npz", "new_rna.csv", "new_protein.csv"]
    assert main(["predict", *files]) == 0
    rows = read_labels("predicted.csv")
    n = column(rows).count(-1)
    assert f"{n} of 10 samples are unlike all" in capsys.readouterr().out
    assert n < 4
    assert rows[4][1] == "-1"
    assert rows[4][4] in "012"
    assert float(rows[4][3]) == 0
    assert main(["predict", *files, "--abstain", "0", "--force"]) == 0
    assert min(column(read_labels("predicted.csv"))) == 0


def test_one_new_sample(fitted):
    for name in NAMES:
        table(name, slice(50, 51)).to_csv(f"new_{name}.csv", index=False)
    assert main(["predict", "model.npz", "new_rna.csv", "new_protein.csv"]) == 0
    assert column(read_labels("predicted.csv"), 4) == fitted.place(new()).labels[:1].tolist()


def test_missing_values_are_filled_in_by_the_fitted_medians(fitted, capsys):
    gaps = table("rna", slice(50, 60))
    gaps.loc[2, ["g1", "g5"]] = np.nan
    gaps.loc[4, NAMES["rna"][:6]] = np.nan
    gaps.to_csv("new_rna.csv", index=False)
    files = ["model.npz", "new_rna.csv", "new_protein.csv"]
    assert main(["predict", *files]) == 2
    err = capsys.readouterr().err
    assert "new_rna.csv: 8 values missing (the first in sample s52, column 'g1'): fill in" in err
    assert main(["predict", *files, "--impute", "median"]) == 0
    err = capsys.readouterr().err
    assert "2 missing values filled in by the medians of the fitted samples" in err
    assert "1 sample taken to lack the view: more than 20% missing" in err
    whole = new()
    whole[0] = whole[0].copy()
    whole[0][2, [1, 5]] = np.median(DATA.views[0][:50], axis=0)[[1, 5]]
    whole[0][4] = np.nan
    found = numbers(read_labels("predicted.csv"), "certainty")
    np.testing.assert_allclose(found, fitted.place(whole).certainty, atol=5e-5)


def test_samples_in_columns(fitted):
    for name in NAMES:
        turned = table(name, slice(50, 60)).set_index("sample").T
        turned.to_csv(f"new_{name}.csv", index_label="gene")
    files = ["model.npz", "new_rna.csv", "new_protein.csv", "--samples", "columns"]
    assert main(["predict", *files]) == 0
    rows = read_labels("predicted.csv")
    assert [row[0] for row in rows[1:]] == IDS[50:]
    assert column(rows, 4) == fitted.place(new()).labels.tolist()


def test_a_method_gives_clusters_only(folder, capsys):
    arguments = ["--method", "grmsc", "--clusters", "3", "--save", "model.npz"]
    assert main(["fit", "rna.csv", "protein.csv", *arguments]) == 0
    assert main(["predict", "model.npz", "rna.csv", "protein.csv"]) == 0
    rows = read_labels("predicted.csv")
    assert rows[0] == ["sample", "cluster"]
    direct = GRMSC(3, random_state=0).fit(DATA.views).predict(DATA.views)
    assert column(rows) == direct.tolist()
    capsys.readouterr()
    assert main(["predict", "model.npz", "rna.csv", "--force"]) == 2
    assert "GRMSC was fitted on the view 'protein', which no file has" in capsys.readouterr().err
    files = ["rna.csv", "protein.csv", "--force"]
    assert main(["predict", "model.npz", *files, "--abstain", "0.1"]) == 2
    assert "--abstain is for a consensus, but model.npz holds a GRMSC" in capsys.readouterr().err


def test_models_fitted_on_a_list_have_numbers(folder):
    members = [MeanGraph(), MeanGraph(scale="standard+unit")]
    model = ConsensusClusterer(3, members=members, random_state=0).fit(DATA.views)
    save_model(model, "model.npz")
    frame(DATA.views[1]).to_csv("new.csv", index=False)
    assert main(["predict", "model.npz", "1=new.csv"]) == 0
    labels = model.place([None, DATA.views[1]]).labels
    assert column(read_labels("predicted.csv"), 4) == labels.tolist()


# ---- what is refused, before any work and without a trace ----------------------------------------

TWO = ["new_rna.csv", "new_protein.csv"]
REFUSED = {
    "no model": (["nowhere.npz", *TWO], "there is no file nowhere.npz"),
    "no file": (["model.npz", "nowhere.csv", TWO[1]], "there is no file nowhere.csv"),
    "no file of a view": (["model.npz", "rna=nowhere.csv"], "there is no file nowhere.csv"),
    "not a model": (["new_rna.csv", *TWO], "new_rna.csv is not a model saved by"),
    "one of two": (
        ["model.npz", "new.npy"],
        "new.npy is no view of the model as it is called ('new'); it was fitted on 'rna', "
        "'protein': say which one it is, as in rna=new.npy",
    ),
    "no such view": (["model.npz", f"rma={TWO[0]}"], "('rma'); it was fitted on 'rna', 'protein'"),
    "a view twice": (
        ["model.npz", f"rna={TWO[0]}", f"rna={TWO[1]}"],
        "two files hold new samples of the view 'rna': name one of them",
    ),
    "swapped": (
        ["model.npz", f"protein={TWO[0]}", f"rna={TWO[1]}"],
        "new_rna.csv lacks 8 of the 8 features of the view 'protein' ('p0', 'p1', 'p2' and 5",
    ),
    "wrong order": (
        ["model.npz", "new.npy", "new_rna.npy"],
        "new.npy has 8 features, but the model was fitted on 12 in the view 'rna': give the same",
    ),
    "a file twice": (["model.npz", TWO[0], TWO[0]], "a file is given twice: name every file once"),
    "abstain": (["model.npz", *TWO, "--abstain", "2"], "--abstain must be a finite number >= 0"),
    "out": (["model.npz", *TWO, "--out", "x.txt"], "x.txt: the file name for labels must end in"),
    "over an input": (["model.npz", *TWO, "--out", TWO[0]], "new_rna.csv is one of the input"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why, fitted, folder, capsys):
    arguments, answer = REFUSED[why]
    np.save("new.npy", new()[1])
    np.save("new_rna.npy", new()[0])
    before = names(folder)
    assert main(["predict", *arguments]) == 2
    out, err = capsys.readouterr()
    assert answer in err
    assert err.startswith("polyspan: ")
    assert err.count("\n") == 1
    assert out == ""
    assert names(folder) == before


def test_nothing_is_replaced_without_force(fitted, capsys):
    Path("predicted.csv").write_text("mine")
    assert main(["predict", "model.npz", *TWO]) == 2
    assert "predicted.csv exists: use --force to replace it" in capsys.readouterr().err
    assert Path("predicted.csv").read_text() == "mine"


def test_no_files_are_a_usage_error(fitted, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["predict", "model.npz"])
    assert "name the files of new samples" in capsys.readouterr().err


def test_a_method_that_cannot_predict_is_refused(folder, capsys):
    save_model(MeanGraph(3, random_state=0).fit(DATA.views), "model.npz")
    assert main(["predict", "model.npz", "rna.csv", "protein.csv"]) == 2
    assert "model.npz holds a MeanGraph, which cannot predict: fit a" in capsys.readouterr().err


def test_features_without_names_need_the_right_number(folder, capsys):
    members = [MeanGraph(), MeanGraph(scale="standard+unit")]
    model = ConsensusClusterer(3, members=members, random_state=0).fit(DATA.views)
    save_model(model, "model.npz")
    np.save("a.npy", DATA.views[0][:, :5])
    assert main(["predict", "model.npz", "0=a.npy"]) == 2
    assert "a.npy has 5 features, but the model was fitted on 12" in capsys.readouterr().err


def test_the_model_is_saved_with_the_others_or_not_at_all(folder, capsys, monkeypatch):

    arguments = ["fit", "rna.csv", "protein.csv", "--method", "meangraph", "--clusters", "3"]
    assert main([*arguments, "--save", "model.pkl"]) == 2
    assert "model.pkl: the file name of the model must end in .npz" in capsys.readouterr().err
    Path("model.npz").write_text("mine")
    assert main([*arguments, "--save", "model.npz"]) == 2
    answer = "model.npz exists: use --force to replace it, or name another file with --save"
    assert answer in capsys.readouterr().err
    before = names(folder)

    def full(path, model):
        raise OSError("disk full")

    monkeypatch.setattr("polyspan.cli.files.write_model", full)
    assert main([*arguments, "--save", "model.npz", "--force"]) == 1
    assert "model.npz cannot be written: disk full; nothing was written" in capsys.readouterr().err
    assert names(folder) == before
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert main([*arguments, "--save", "model.npz", "--force"]) == 0
    assert isinstance(load_model("model.npz"), MeanGraph)


def test_a_repeated_run_can_save(folder):
    arguments = ["--method", "grmsc", "--clusters", "3"]
    assert main(["fit", "rna.csv", "protein.csv", *arguments]) == 0
    assert main(["fit", "--repeat", "labels.json", "--save", "model.npz"]) == 0
    assert isinstance(load_model("model.npz"), GRMSC)


def test_a_name_with_an_equal_sign_may_be_a_file(folder):
    assert predict._named("rna=x.csv") == (Path("x.csv"), "rna")
    Path("rna=x.csv").write_text("")
    assert predict._named("rna=x.csv") == (Path("rna=x.csv"), "")


@pytest.mark.parametrize("name", [name for name, cls in METHODS.items() if hasattr(cls, "predict")])
def test_every_method_that_can_predict_does(name, folder):
    one = get_tags(METHODS[name]()).single_view
    files = ["rna.csv"] if one else ["rna.csv", "protein.csv"]
    data = load_views(files)
    model = METHODS[name](3, random_state=0).fit(data)
    save_model(model, "model.npz")
    assert main(["predict", "model.npz", *files]) == 0
    assert column(read_labels("predicted.csv")) == model.predict(data).tolist()
