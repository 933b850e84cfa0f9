"""Input that was misread without a word, and calls that ended without a sentence, one test each."""

import re
import warnings

import anndata
import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse as sp

from polyspan import ConcatKMeans, ConsensusClusterer
from polyspan.cli.main import main
from polyspan.datasets import load_views

RNG = np.random.default_rng(0)
N = 30
X = RNG.normal(size=(N, 4))
ORDER = RNG.permutation(N)


def table(names="abcd", **first):
    """A table of X with columns in front."""
    return pd.DataFrame(first | dict(zip(names, X.T, strict=True)))


# ---- 10: sparse tables ---------------------------------------------------------------------------


def test_10_rows_of_zero_in_a_sparse_table_do_not_end_the_fit():
    mutations = (RNG.random((120, 6)) < 0.05).astype(float)
    assert (mutations.sum(axis=1) == 0).mean() > 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConsensusClusterer(members=[ConcatKMeans(2), ConcatKMeans(3)], random_state=0).fit(
            [mutations, RNG.normal(size=(120, 10))]
        )
    assert len(model.labels_) == 120


# ---- 1, 7: ids and numbers that are none ---------------------------------------------------------


def ranks(seed, names):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.permutation(N) + 1 for name in names})


@pytest.mark.parametrize("between", [0, 1])
def test_1_ranks_are_not_ids(tmp_path, between):
    for seed, names in enumerate(("abc", "def")):
        frame = ranks(seed, names)
        for k in range(between):
            frame.insert(1, f"{names}{k}", X[:, k])
        frame.to_csv(tmp_path / f"{names}.csv", index=False)
    found = load_views([tmp_path / "abc.csv", tmp_path / "def.csv"])
    assert found.matched_by == "order"
    assert found.views[0].shape[1] == 3 + between


@pytest.mark.parametrize("name", ["MRN", "nr"])
def test_7_a_column_of_the_same_numbers_in_all_tables_is_a_question(tmp_path, name):
    one, other = table(MRN=np.arange(N) + 100), table("efgh", **{name: ORDER + 100})
    with pytest.raises(ValueError, match=r"holds? the same whole numbers"):
        ConcatKMeans(2).fit([one, other])
    for frame, path in ((one, "one.csv"), (other, "other.csv")):
        frame[[*frame.columns[1:3], frame.columns[0], *frame.columns[3:]]].to_csv(
            tmp_path / path, index=False
        )
    with pytest.raises(ValueError, match=r"holds? the same whole numbers"):
        load_views([tmp_path / "one.csv", tmp_path / "other.csv"])
    found = load_views([tmp_path / "one.csv", tmp_path / "other.csv"], id=["MRN", "nr"])
    assert found.matched_by == "id"


def test_7_long_numbers_are_no_features_in_memory_either():
    one, other = table(nr=np.arange(N) + 10**17), table("efgh", nr=ORDER + 10**17)
    for views in ([one, other], [polars.DataFrame(one), polars.DataFrame(other)]):
        with pytest.raises(ValueError, match="column 'nr' holds whole numbers of more than 15"):
            ConcatKMeans(2).fit(views)


# ---- 6: ids that are spelled differently ---------------------------------------------------------

IDS = [f"TCGA-{i:04d}" for i in range(N)]


def two_files(folder, first, second):
    """The same samples in another order, under ids of their own."""
    table(id=first).to_csv(folder / "one.csv", index=False)
    table("efgh", id=second).iloc[ORDER].to_csv(folder / "two.csv", index=False)
    return [folder / "one.csv", folder / "two.csv"]


@pytest.mark.parametrize(
    ("spelled", "trim"),
    [
        (lambda one: f"{one}-01A", "-01A$"),
        (lambda one: f"X{one}", "^X"),
        (lambda one: f"{one}-{int(one[-2:]) % 7}{one[-1]}", "(?<=.{9}).+"),
        (str.lower, "case"),
        (lambda one: f"00{one}", "zeros"),
        (lambda one: one.replace("-", "."), r"[\W_]"),
    ],
)
def test_6_ids_that_are_spelled_differently_are_trimmed_never_dropped(tmp_path, spelled, trim):
    files = two_files(tmp_path, list(map(spelled, IDS)), IDS)
    with pytest.raises(ValueError, match=re.escape(f"30 agree with id_trim={trim!r}")) as error:
        load_views(files)
    assert "drop" not in str(error.value)
    found = load_views(files, id_trim=[trim])
    np.testing.assert_array_equal(found.views[0], found.views[1])
    assert f"0 ids are in every view as written, 30 with id_trim={trim!r}" in found.notes[-1]


def test_6_the_command_says_so_and_repeats_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    two_files(tmp_path, [f"{one}-01A" for one in IDS], IDS)
    fit = ["fit", "one.csv", "two.csv", "--method", "concatkmeans", "--clusters", "2"]
    assert main(fit) == 2
    assert "--id-trim='-01A$'" in capsys.readouterr().err
    assert main([*fit, "--id-trim=-01A$"]) == 0
    assert main(["fit", "--repeat", "labels.json"]) == 0
    assert main([*fit, "--id-trim", "(", "--force"]) == 2
    assert "'(' is no regular expression" in capsys.readouterr().err


def test_6_trimmed_ids_must_still_differ(tmp_path):
    with pytest.raises(ValueError, match="repeated ids"):
        load_views(two_files(tmp_path, IDS, IDS), id_trim=[r"\d+$"])


# ---- 8: features of one name ---------------------------------------------------------------------

GENES = ["TP53", "MYC", "TP53", "EGFR"]
MERGED = {
    "mean": (["TP53", "MYC", "EGFR"], np.c_[(X[:, 0] + X[:, 2]) / 2, X[:, 1], X[:, 3]]),
    "first": (["TP53", "MYC", "EGFR"], X[:, [0, 1, 3]]),
    "drop": (["MYC", "EGFR"], X[:, [1, 3]]),
}


def in_file(folder, ending, turned):
    frame = pd.DataFrame(X, columns=GENES, index=[f"s{i}" for i in range(N)])
    frame = frame.T if turned else frame
    path = folder / f"x.{ending}"
    if ending == "csv":
        frame.to_csv(path, index_label="name")
    elif ending == "xlsx":
        frame.reset_index(names="name").to_excel(path, index=False)
    else:
        data = anndata.AnnData(sp.csr_matrix(frame.to_numpy()) if "s" in ending else frame)
        data.obs_names, data.var_names = frame.index, frame.columns
        data.write_h5ad(path)
    return path


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("ending", ["csv", "xlsx", "h5ad", "s.h5ad"])
@pytest.mark.filterwarnings("ignore::UserWarning:anndata")
def test_8_features_of_one_name_are_refused_or_merged(tmp_path, ending, turned):
    path = in_file(tmp_path, ending, turned)
    samples = "columns" if turned else None
    with pytest.raises(ValueError, match=r"are called 'TP53'.* duplicates='mean'"):
        load_views([path], samples=samples)
    for how, (names, values) in MERGED.items():
        found = load_views([path], samples=samples, duplicates=how)
        assert list(found.columns[0]) == names
        view = found.views[0].toarray() if sp.issparse(found.views[0]) else found.views[0]
        np.testing.assert_allclose(view, values)


def test_8_a_missing_value_does_not_count_in_the_mean():
    frame = pd.DataFrame([[1.0, np.nan, 5], [2, 4, 6], [0, 1, 2]], columns=["a", "a", "b"])
    assert load_views([frame], duplicates="mean").views[0].tolist() == [[1, 5], [3, 6], [0.5, 2]]


def test_8_new_samples_find_their_features_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = in_file(tmp_path, "csv", True)
    pd.read_csv(path).iloc[::-1].to_csv("new.csv", index=False)
    how = ["--samples", "columns", "--duplicates", "mean"]
    fit = ["fit", "x.csv", *how, "--method", "grmsc", "--clusters", "2", "--save", "m.npz"]
    assert main(fit) == 0
    assert main(["predict", "m.npz", "x=new.csv", *how]) == 0
    assert main(["predict", "m.npz", "x.csv", *how, "--out", "same.csv"]) == 0
    new, same = (pd.read_csv(name).cluster for name in ("predicted.csv", "same.csv"))
    assert new.tolist() == same.tolist()
