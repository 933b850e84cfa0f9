"""Samples of several files, matched by id or by order; every refusal says what and where."""

import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.io
from cases import case
from scipy import sparse

from polyspan.datasets import load_file, load_views
from polyspan.datasets.files import is_id_name

rng = np.random.default_rng(0)
IDS = [f"s{i}" for i in range(6)]
A, B = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
ORDER = [3, 0, 5, 1, 4, 2]


def frame(values=A, ids=IDS, name="sample"):
    table = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
    if ids is not None:
        table.insert(0, name, ids)
    return table


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().to_csv("a.csv", index=False)
    frame(B).iloc[ORDER].to_csv("b.csv", index=False)
    return tmp_path


def write(name, text):
    with open(name, "w", encoding="utf-8") as stream:
        stream.write(text)


def assert_matched(data, matched_by="id"):
    assert data.matched_by == matched_by
    np.testing.assert_allclose(dense(data.views[0]), A, rtol=0, atol=1e-12)
    np.testing.assert_allclose(dense(data.views[1]), B, rtol=0, atol=1e-12)


def dense(view):
    return view.toarray() if sparse.issparse(view) else view


# --- Formats. ---


def save_bio(path, values, ids):
    import anndata

    table = anndata.AnnData(values, obs=pd.DataFrame({"code": ids[::-1]}, index=ids))
    table.write_h5ad(path)


SAVERS = {
    "b.tsv": lambda path, table: table.to_csv(path, index=False, sep="\t"),
    "b.csv.gz": lambda path, table: table.to_csv(path, index=False),
    "b.tsv.gz": lambda path, table: table.to_csv(path, index=False, sep="\t"),
    "b.parquet": lambda path, table: table.to_parquet(path, index=False),
    "index.parquet": lambda path, table: table.set_index("sample").to_parquet("index.parquet"),
    "unnamed.parquet": lambda path, table: (
        table.set_index("sample").rename_axis(None).to_parquet(path)
    ),
    "unnamed.csv": lambda path, table: table.set_index("sample").to_csv(path, index_label=""),
    "b.npz": lambda path, table: np.savez(
        path, X=table.iloc[:, 1:].to_numpy(float), sample_ids=table["sample"].to_numpy(str)
    ),
    "b.h5ad": lambda path, table: save_bio(
        path, table.iloc[:, 1:].to_numpy(float), list(table["sample"])
    ),
}


@pytest.mark.parametrize("name", SAVERS)
def test_ids_match_across_formats(name):
    if name.endswith("h5ad"):
        pytest.importorskip("anndata")
    SAVERS[name](name, frame(B).iloc[ORDER])
    data = load_views(["a.csv", name])
    assert_matched(data)
    assert data.ids == IDS
    assert data.view_names == ["a", name.split(".")[0]]
    assert data.rows == [6, 6]
    assert data.lacking == {}
    assert data.notes == []


@pytest.mark.parametrize("name", ["b.npy", "b.mtx", "b.mtx.gz", "b.mat", "b.npz"])
def test_matrices_match_by_order(name):
    save = {
        "npy": lambda: np.save(name, B),
        "mtx": lambda: scipy.io.mmwrite("b.mtx", sparse.coo_array(B)),
        "mat": lambda: scipy.io.savemat(name, {"X": B, "comment": "hello"}),
        "npz": lambda: np.savez(name, X=B),
    }[name.split(".")[1]]
    save()
    if name.endswith(".gz"):
        import gzip

        with open("b.mtx", "rb") as plain, gzip.open(name, "wb") as packed:
            packed.write(plain.read())
    frame(ids=None).to_csv("a.csv", index=False)
    data = load_views(["a.csv", name])
    assert_matched(data, "order")
    assert data.ids is None
    assert data.view_names == ["a", "b"]
    assert sparse.issparse(data.views[1]) == ("mtx" in name)


def test_one_column_is_a_view():
    np.save("y.npy", A[:, :1])  # a usual name of labels
    data = load_views(["y.npy"])
    np.testing.assert_array_equal(data.views[0], A[:, :1])
    np.save("flat.npy", A[:, 0])
    with pytest.raises(ValueError, match=r"flat\.npy: not a matrix of numbers: 'flat'"):
        load_views(["flat.npy"])


def test_files_with_several_views():
    np.savez("both.npz", look=A, sound=B, names=np.array(IDS))
    data = load_views(["both.npz"])
    assert_matched(data)
    assert data.view_names == ["both:look", "both:sound"]
    assert data.ids == IDS
    scipy.io.savemat("both.mat", {"look": A, "sound": B.T, "gt": [1, 1, 1, 2, 2, 2]})
    data = load_views(["both.mat"])
    assert_matched(data, "order")
    assert data.notes == ["both.mat also holds labels, which are not used"]


def test_mudata_has_a_view_for_each_modality():
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    first = anndata.AnnData(sparse.csr_matrix(A), obs=pd.DataFrame(index=IDS))
    second = anndata.AnnData(B[ORDER][:5], obs=pd.DataFrame(index=[IDS[i] for i in ORDER[:5]]))
    mudata.MuData({"rna": first, "adt": second}).write("cells.h5mu")
    with pytest.raises(ValueError, match=r"1 sample lacks a view: 1 lack cells:adt \(s2\)"):
        load_views(["cells.h5mu"])
    data = load_views(["cells.h5mu"], missing="drop")
    assert data.view_names == ["cells:rna", "cells:adt"]
    assert data.ids == ["s0", "s1", "s3", "s4", "s5"]
    kept = [0, 1, 3, 4, 5]
    assert sparse.issparse(data.views[0])
    np.testing.assert_allclose(dense(data.views[0]), A[kept], rtol=0, atol=1e-12)
    np.testing.assert_allclose(data.views[1], B[kept], rtol=0, atol=1e-12)


def test_an_obs_column_can_be_the_id():
    pytest.importorskip("anndata")
    save_bio("b.h5ad", B[::-1], IDS)  # the column code has the ids in reverse
    data = load_views(["b.h5ad"], id="code")
    assert data.ids == IDS[::-1]
    assert data.id_name == "code"
    frame(name="code").to_csv("a.csv", index=False)
    assert_matched(load_views(["a.csv", "b.h5ad"], id="code"))


@pytest.mark.parametrize(
    ("package", "file", "extra"),
    [("anndata", "x.h5ad", "bio"), ("mudata", "x.h5mu", "bio"), ("pyarrow", "x.parquet", "files")],
)
def test_missing_package_names_the_extra(monkeypatch, package, file, extra):
    write(file, "")
    monkeypatch.setitem(sys.modules, package, None)
    if package == "pyarrow":
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(
        ImportError, match=rf'x\.\w+ needs {package}: pip install "polyspan\[{extra}\]"'
    ):
        load_views([file])


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x.h5ad", "cannot be read by anndata"),
        ("x.h5mu", "cannot be read by mudata"),
        ("x.parquet", "cannot be read as Parquet"),
        ("x.mtx", "cannot be read as MatrixMarket"),
        ("x.npy", "cannot be read as an array"),
        ("x.npz", "cannot be read as arrays"),
        ("x.csv.gz", "cannot be unpacked"),
    ],
)
def test_damaged_files(name, words):
    if name.startswith("x.h5"):
        pytest.importorskip(words.split()[-1])
    write(name, "nonsense")
    with pytest.raises(ValueError, match=rf"{name} {words}"):
        load_views(["a.csv", name])


def test_text_of_another_encoding():
    with open("x.csv", "wb") as stream:
        stream.write("id,a\nm\u00fcller,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"x\.csv is not UTF-8 text: save it as CSV UTF-8"):
        load_views(["x.csv"])


# --- Ids. ---


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("id", True),
        ("ID", True),
        ("Sample ID", True),
        ("sample_id", True),
        ("patient", True),
        ("names", True),
        ("index", True),
        ("barcode", True),
        ("obs_names", True),
        ("width", False),
        ("idea", False),
        ("", False),
        ("s", False),
    ],
)
def test_names_of_ids(name, known):
    assert is_id_name(name) is known


def test_words_that_are_all_different_are_ids():
    frame(name="who").to_csv("a.csv", index=False)
    frame(B, name="person in charge").iloc[ORDER].to_csv("b.csv", index=False)
    data = load_views(["a.csv", "b.csv"])
    assert_matched(data)
    assert data.id_name == "who"


def test_ids_that_are_numbers_are_the_same_in_every_format():
    frame(ids=[10, 20, 30, 40, 50, 60], name="id").to_csv("a.csv", index=False)
    other = frame(B, ids=[10.0, 20.0, 30.0, 40.0, 50.0, 60.0], name="id").iloc[ORDER]
    other.to_parquet("b.parquet", index=False)
    data = load_views(["a.csv", "b.parquet"])
    assert_matched(data)
    assert data.ids == ["10", "20", "30", "40", "50", "60"]


def test_id_can_be_named_and_may_differ():
    table = frame(name="who")
    table[["x0", "who", "x1", "x2"]].to_csv("a.csv", index=False)
    frame(B, name="code").iloc[ORDER].to_csv("b.csv", index=False)
    assert_matched(load_views(["a.csv", "b.csv"], id=["who", "code"]))
    with pytest.raises(
        ValueError, match=r"b\.csv has no column 'who' for --id; it has 'code', 'x0', 'x1'"
    ):
        load_views(["a.csv", "b.csv"], id="who")
    np.save("c.npy", B)
    with pytest.raises(ValueError, match=r"c\.npy has no ids, so --id cannot match it"):
        load_views(["a.csv", "c.npy"], id="who")


def test_pandas_row_numbers_are_no_ids():
    frame(ids=None).to_csv("a.csv")
    frame(B, ids=None).to_csv("b.csv")
    data = load_views(["a.csv", "b.csv"])
    assert_matched(data, "order")
    assert data.ids is None
    frame(B, ids=None).iloc[:5].to_csv("b.csv")  # counting is no matching
    with pytest.raises(ValueError, match=r"matched by order, .* a has 6, b has 5"):
        load_views(["a.csv", "b.csv"])
    frame(B, ids=None).iloc[ORDER].to_csv("b.csv")  # but these numbers were carried along
    assert_matched(load_views(["a.csv", "b.csv"]))
    frame(B, ids=None).to_csv("b.csv", index=False)
    assert_matched(load_views(["a.csv", "b.csv"]), "order")


NUMBERS = [40, 10, 60, 20, 50, 30]


def last(values, ids=NUMBERS, name="patient_id"):
    """A table with its ids in the last column."""
    return frame(values, ids=None).assign(**{name: ids})


def save(table, path, **kept):
    getattr(table, "to_" + path.split(".")[1])(path, **kept)


@pytest.mark.parametrize("name", ["patient_id", "Sample ID", "barcode", "probe_id"])
@pytest.mark.parametrize("ids", [NUMBERS, IDS], ids=["numbers", "words"])
def test_a_column_named_like_ids_is_the_id_wherever_it_is(name, ids):
    for ending, index in product(["csv", "parquet"], [True, False]):
        with case(ending, "with row numbers" if index else "bare"):
            save(last(A, ids, name), "a.csv", index=index)
            save(last(B, ids, name).iloc[ORDER], f"b.{ending}", index=index)
            data = load_views(["a.csv", f"b.{ending}"])
            assert_matched(data)  # neither ids nor row numbers are features
            assert data.ids == list(map(str, ids))
            assert data.id_name == name
            assert data.notes == []


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_shuffled_row_numbers_are_not_matched_to_ids(ending):
    numbers = [1, 2, 3, 4, 5, 0]  # as row numbers might be
    frame(ids=numbers, name="patient_id").to_csv("a.csv", index=False)
    other = last(B, numbers).iloc[ORDER]
    save(other, f"b.{ending}")
    data = load_views(["a.csv", f"b.{ending}"])
    assert_matched(data)
    assert data.ids == list(map(str, numbers))
    save(other.drop(columns="patient_id"), f"b.{ending}")
    match = (
        rf"^b\.{ending} has no ids but row numbers in another order \(3, 0, 5, \.\.\.\), which "
        r"cannot be matched to the ids of a\.csv \('patient_id'\): write the ids into a column of"
    )
    with pytest.raises(ValueError, match=match):
        load_views(["a.csv", f"b.{ending}"])
    if ending == "csv":  # they are the ids if someone says so
        data = load_views(["a.csv", "b.csv"], id=["patient_id", ""])
        np.testing.assert_allclose(data.views[1], B[numbers], rtol=0, atol=1e-12)


def test_ids_of_other_names_beat_row_numbers():
    last(A).to_csv("a.csv")
    last(B, name="subject").iloc[ORDER].to_csv("b.csv")
    data = load_views(["a.csv", "b.csv"])
    assert_matched(data)
    assert data.id_name == "patient_id"


def test_a_shared_id_beats_a_first_column():
    frame(ids=[1, 2, 3, 4, 5, 6]).assign(patient_id=[6, 5, 4, 3, 2, 1]).to_csv("a.csv", index=False)
    frame(B, ids=[6, 5, 4, 3, 2, 1], name="patient_id").iloc[ORDER].to_csv("b.csv", index=False)
    data = load_views(["a.csv", "b.csv"])
    assert data.id_name == "patient_id"
    np.testing.assert_allclose(data.views[1], B, rtol=0, atol=1e-12)


@pytest.mark.parametrize("column", ["", "Unnamed: 0", "index"])
@pytest.mark.parametrize("id", [(), "code"])
def test_row_numbers_are_no_features(column, id):
    name = id or "id"
    table = last(B, name=name).iloc[ORDER]
    table.insert(0, column, ORDER)
    last(A, name=name).to_csv("a.csv", index=False)
    table.to_csv("b.csv", index=False)
    assert_matched(load_views(["a.csv", "b.csv"], id=id))
    table.assign(**{"Unnamed: 0.1": range(6)}).to_csv("b.csv", index=False)
    assert_matched(load_views(["a.csv", "b.csv"], id=id))
    table.drop(columns=column).to_parquet("b.parquet")  # the index is stored without a name
    assert_matched(load_views(["a.csv", "b.parquet"], id=id))


def test_row_numbers_match_where_not_all_files_have_ids():
    last(A).iloc[[0, 2, 5]].to_csv("a.csv")
    frame(B, ids=None).iloc[[5, 0, 2]].to_csv("b.csv")
    data = load_views(["a.csv", "b.csv"])
    assert data.ids == ["0", "2", "5"]
    np.testing.assert_allclose(data.views[1], B[[0, 2, 5]], rtol=0, atol=1e-12)
    assert data.notes == [
        "a.csv: column 'patient_id' is used as a feature; if it is the id, say --id patient_id, "
        "otherwise leave it out: --drop patient_id"
    ]


def test_columns_named_like_ids_that_cannot_be():
    for ids in ([0.5, 1, 2, 3, 4, 5], [1, 1, 2, 3, 4, 5], [np.nan, 1, 2, 3, 4, 5], [np.inf] * 6):
        last(A, ids, "case").to_parquet("a.parquet", index=False)
        if np.isfinite(ids).all():
            assert load_views(["a.parquet"]).views[0].shape == (6, 4)
        else:
            with pytest.raises(ValueError, match=r"values? (is|are) (missing|infinite)"):
                load_views(["a.parquet"])


def test_words_in_another_column_may_be_the_id():
    last(A, IDS, "who").to_csv("a.csv", index=False)
    last(B, IDS, "who").iloc[ORDER].to_csv("b.csv", index=False)
    match = (
        r"^a\.csv: column 'who' holds text .*: leave it out with --drop who, or encode it as "
        r"numbers; if 'who' is the id, say --id who$"
    )
    with pytest.raises(ValueError, match=match):
        load_views(["a.csv", "b.csv"])
    assert_matched(load_views(["a.csv", "b.csv"], id="who"))


def test_ids_of_one_file_name_the_samples_of_all():
    np.save("b.npy", B)
    data = load_views(["a.csv", "b.npy"])
    assert_matched(data, "order")
    assert data.ids == IDS
    assert data.notes == [
        "b.npy has no id column: its rows are taken to be the samples of a.csv, in that order"
    ]
    with pytest.raises(ValueError, match=r"b\.npy has no ids, and the ids of a\.csv and b\.csv"):
        load_views(["a.csv", "b.csv", "b.npy"])


def test_dropping_the_ids_matches_by_order():
    data = load_views(["a.csv", "b.csv"], drop=["sample"])
    assert data.matched_by == "order"
    np.testing.assert_allclose(data.views[1], B[ORDER], rtol=0, atol=1e-12)


def test_ids_must_differ_and_be_there():
    frame(ids=["s0", "s1", "s2", "s1", "s4", "s5"]).to_csv("a.csv", index=False)
    with pytest.raises(
        ValueError,
        match=r"ids of a in a\.csv, column 'sample', must be all different, but 's1' is sample 2 "
        r"and sample 4",
    ):
        load_views(["a.csv", "b.csv"])
    frame(ids=["s0", None, "s2", None, "s4", "s5"]).to_csv("a.csv", index=False)
    with pytest.raises(ValueError, match=r"a\.csv: 2 samples have no id .* first is sample 2"):
        load_views(["a.csv", "b.csv"])


def test_no_id_in_common():
    frame(B, ids=[f"t{i}" for i in range(6)], name="id").to_csv("b.csv", index=False)
    with pytest.raises(
        ValueError, match=r"no id is in every file: a\.csv has s0, s1, s2; b\.csv has t0, t1, t2"
    ):
        load_views(["a.csv", "b.csv"], missing="drop")


def test_tables_with_samples_in_columns():
    for name, values in (("a", A), ("b", B)):
        table = frame(values).set_index("sample").T
        table.index = [f"{name}{j}" for j in range(values.shape[1])]
        table.to_csv(f"{name}.csv", index_label="gene")
    with pytest.raises(ValueError, match="share column names: if those are the samples, turn"):
        load_views(["a.csv", "b.csv"])
    frame(ids=None).to_csv("a.csv", index=False)
    np.save("b.npy", B.T)
    with pytest.raises(
        ValueError, match=r"one seems to have them in columns: a is 6 x 3, b is 2 x 6"
    ):
        load_views(["a.csv", "b.npy"])


# --- Samples that lack a view. ---


def test_missing_fail_and_drop():
    frame(B).iloc[[5, 3, 1]].to_csv("b.csv", index=False)
    frame().iloc[:5].to_csv("a.csv", index=False)
    with pytest.raises(
        ValueError,
        match=r"4 samples lack a view: 1 lack a \(s5\); 3 lack b \(s0, s2, s4\); say --missing "
        r"drop to leave them out, which keeps the 2 samples of 6",
    ):
        load_views(["a.csv", "b.csv"])
    data = load_views(["a.csv", "b.csv"], missing="drop")
    assert data.ids == ["s1", "s3"]
    assert data.lacking == {"a": ["s5"], "b": ["s0", "s2", "s4"]}
    assert data.dropped == ["s0", "s2", "s4", "s5"]
    np.testing.assert_allclose(data.views[0], A[[1, 3]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(data.views[1], B[[1, 3]], rtol=0, atol=1e-12)


def test_missing_keep_has_rows_of_nan():
    frame(B).iloc[[5, 3, 1]].to_csv("b.csv", index=False)
    frame().iloc[:5].to_csv("a.csv", index=False)
    data = load_views(["a.csv", "b.csv"], missing="keep")
    assert data.ids == IDS
    assert data.dropped == []
    first, second = A.copy(), B.copy()
    first[5] = second[[0, 2, 4]] = np.nan
    np.testing.assert_allclose(data.views[0], first, rtol=0, atol=1e-12)
    np.testing.assert_allclose(data.views[1], second, rtol=0, atol=1e-12)


def test_missing_keep_needs_no_sample_with_all_views():
    third = rng.normal(size=(6, 2))
    frame().iloc[:3].to_csv("a.csv", index=False)
    frame(B).iloc[2:5].to_csv("b.csv", index=False)
    frame(third).iloc[4:].to_csv("c.csv", index=False)
    files = ["a.csv", "b.csv", "c.csv"]
    data = load_views(files, missing="keep")
    assert data.ids == IDS
    assert [np.isnan(view[:, 0]).tolist() for view in data.views] == [
        [i not in rows for i in range(6)] for rows in ((0, 1, 2), (2, 3, 4), (4, 5))
    ]
    for missing in ("fail", "drop"):
        with pytest.raises(ValueError, match=r"^no id is in every file: a\.csv has s0, s1, s2; b"):
            load_views(files, missing=missing)
    frame(third).iloc[5:].to_csv("c.csv", index=False)  # nothing links it to the others
    with pytest.raises(
        ValueError, match=r"^the files do not share ids: .*; c\.csv has s5: check --id, or --drop"
    ):
        load_views(files, missing="keep")


def test_rows_without_any_value_lack_the_view():
    holes = A.copy()
    holes[2] = np.nan
    frame(holes).to_csv("a.csv", index=False)
    with pytest.raises(ValueError, match=r"1 sample lacks a view: 1 lack a \(s2\)"):
        load_views(["a.csv", "b.csv"])
    assert load_views(["a.csv", "b.csv"], missing="drop").dropped == ["s2"]
    frame(holes, ids=None).to_csv("a.csv", index=False)
    frame(B, ids=None).to_csv("b.csv", index=False)
    data = load_views(["a.csv", "b.csv"], missing="drop")
    assert data.dropped == ["3"]  # rows are counted from 1
    assert data.views[1].shape == (5, 2)


def test_missing_keep_wants_something_of_every_sample():
    holes = A.copy()
    holes[2] = np.nan
    frame(holes).to_csv("a.csv", index=False)
    frame(B).drop(index=2).to_csv("b.csv", index=False)
    with pytest.raises(ValueError, match=r"1 samples have no value in any view \(s2\): drop them"):
        load_views(["a.csv", "b.csv"], missing="keep")


def test_wrong_missing():
    with pytest.raises(ValueError, match="missing must be 'fail', 'drop' or 'keep'; got 'no'"):
        load_views(["a.csv"], missing="no")


# --- Contents of tables. ---


def test_text_columns():
    table = frame()
    table["tissue"] = ["liver", "lung", "liver", "skin", "bone", "lung"]
    table.to_csv("a.csv", index=False)
    with pytest.raises(
        ValueError,
        match=r"a\.csv: column 'tissue' holds text \('liver', 'lung', 'skin', \.\.\.\): leave it "
        r"out with --drop tissue, or encode it as numbers",
    ):
        load_views(["a.csv", "b.csv"])
    table["body site"] = pd.Categorical(["x", "y", "x", "y", "x", "y"])
    table.to_parquet("a.parquet", index=False)
    with pytest.raises(
        ValueError,
        match=r"a\.parquet: 2 columns hold text, 'tissue', 'body site' .* --drop tissue --drop "
        r"'body site', or encode them",
    ):
        load_views(["a.parquet", "b.csv"])
    assert_matched(load_views(["a.parquet", "b.csv"], drop=["tissue", "body site"]))
    with pytest.raises(ValueError, match="no table has a column 'tisue' to drop"):
        load_views(["a.parquet", "b.csv"], drop=["tisue", "tissue", "body site"])


def test_words_that_repeat_are_no_ids():
    frame(ids=["s0", "s1", "s2", "s1", "s4", "s5"], name="who").to_csv("a.csv", index=False)
    with pytest.raises(ValueError, match=r"'who' holds text .* as ids they would have to be all"):
        load_views(["a.csv", "b.csv"])


def test_words_that_python_reads_as_numbers():
    ids = [f"{i}_1" for i in range(6)]
    frame(ids=ids, name="who").to_csv("a.csv", index=False)
    assert load_views(["a.csv"]).ids == ids


def test_decimal_commas():
    frame().to_csv("a.csv", index=False, sep=";", decimal=",")
    with pytest.raises(ValueError, match=r"a\.csv: column 'x0' has commas in its numbers"):
        load_views(["a.csv"])


def test_missing_values_say_where():
    holes = A.copy()
    holes[1, 2] = holes[4, 2] = np.nan
    frame(holes).to_csv("a.csv", index=False, na_rep="NA")  # as R writes it
    with pytest.raises(
        ValueError,
        match=r"a\.csv: 2 values are missing, in 2 rows and 1 column \(sample s1 column 'x2'; "
        r"sample s4 column 'x2'\): fill them in",
    ):
        load_views(["a.csv", "b.csv"])
    assert load_views(["a.csv", "b.csv"], drop=["x2"]).views[0].shape == (6, 2)
    holes[1, 2] = np.inf
    np.save("a.npy", holes)
    with pytest.raises(ValueError, match=r"a\.npy: 2 values are missing or infinite, .*sample 2 c"):
        load_views(["a.npy"])
    scipy.io.mmwrite("a.mtx", sparse.coo_array(np.where(np.isnan(holes), 0, holes)))
    with pytest.raises(ValueError, match=r"a\.mtx: 1 value is infinite, .*\(sample 2 column 3\)"):
        load_views(["a.mtx"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "x.csv is empty"),
        ("id,a\n", "x.csv holds no samples"),
        ("id\nfox\nbee\n", "x.csv has no columns besides 'id'"),
    ],
)
def test_tables_without_contents(text, words):
    write("x.csv", text)
    with pytest.raises(ValueError, match=words):
        load_views(["x.csv", "a.csv"])


def test_constant_columns_are_fine():
    table = frame()
    table["one"] = 1
    table.to_csv("a.csv", index=False)
    assert load_views(["a.csv", "b.csv"]).views[0].shape == (6, 4)


def test_notes_on_columns_that_may_not_be_features():
    table = frame(ids=[11, 7, 3, 20, 5, 8], name="nr")
    table["label"] = [0, 0, 0, 1, 1, 1]
    table.to_csv("a.csv", index=False)
    label, number = load_views(["a.csv"]).notes
    assert "column 'label' is used like any other" in label
    assert "--drop label" in label
    assert "the first column, 'nr'" in number
    assert number.endswith("say --id nr")
    assert load_views(["a.csv"], id="nr", drop=["label"]).notes == []


# --- The first row. ---


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n", True),
        (",0,1\nfox,5,6\n", True),  # DataFrame.to_csv
        ("0,1,2\n5,6,1\n", True),  # the same, index=False
        ("id,0.5,0.1\nfox,5,6\n", True),
        ("who,0,1,2\nfox,5,6,7\n", True),
        ("land,1990,1991,1992\nchad,5,6,7\n", True),
        ("x,y,3\n1,2,3\n", True),
        ("0.5,0.1,0.3\n5,6,7\n", False),
        ("1,2,3\n4,5,6\n", False),
        ("1,2\n7,6\n", False),
        ("fox,0.5,0.1,0.7\nbee,5,6,7\n", False),
        ("fox,1,1\nbee,5,6\n", False),
        ("7\n8\n", False),
    ],
)
def test_first_row(text, names):
    write("x.csv", text)
    data = load_views(["x.csv"])
    assert data.rows == [text.count("\n") - names]
    first = text.split("\n")[0]
    told = not names or (first[0] not in ",i" and any(map(str.isdigit, first)))
    assert [note.split("; ")[0] for note in data.notes] == [
        f"x.csv: the first row is taken for {'names' if names else 'a sample'}"
    ] * told


@pytest.mark.parametrize("text", ["fox,0.5,0.7\nbee,5,6\n", "400,402.5,405,407\n4,2,7,1\n"])
def test_a_first_row_that_could_be_both(text):
    write("x.csv", text)
    with pytest.raises(ValueError, match=r"x\.csv: the first row \(.*\) may be names or a sample"):
        load_views(["x.csv"])
    assert load_views(["x.csv"], header=True).rows == [1]
    assert load_views(["x.csv"], header=False).rows == [2]
    if not text.startswith("fox"):
        assert load_file("x.csv", header=False).views[0].shape == (2, 4)


def test_tables_of_r():
    write("x.tsv", "x0\tx1\nfox\t1\t2\nbee\t3\tNA\n")  # no name over the row names
    with pytest.raises(ValueError, match="sample bee column 'x1'"):
        load_views(["x.tsv"])
    assert load_views(["x.tsv"], drop=["x1"]).ids == ["fox", "bee"]


# --- Paths. ---


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], "name at least one file"),
        (["no.csv"], "there is no file no.csv"),
        (["a.xlsx"], "a.xlsx is a spreadsheet: save its sheet as CSV first"),
        (["a.doc"], "a.doc is none of .mat, .npz, .csv, .*.h5ad, .h5mu"),
        (["a.npy.gz"], "a.npy.gz is none of"),
        (["a.csv", "./a.csv"], "a.csv is given twice"),
        (["a.csv", "lam2=3"], "there is no file lam2=3: is it a parameter[?] --set lam2=3"),
    ],
)
def test_paths(files, words):
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        load_views(files)


def test_files_of_the_same_name_keep_their_paths(folder):
    (folder / "other").mkdir()
    frame(B).to_csv("other/a.csv", index=False)
    assert load_views(["a.csv", "other/a.csv"]).view_names == ["a.csv", "other/a.csv"]
