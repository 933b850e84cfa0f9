"""Views of every format as they are in their files; every refusal says what and where."""

import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.io
from scipy import sparse
from two_tables import IDS, ORDER, A, B, assert_matched, dense, frame, write

from polyspan.io import load_views

pytestmark = pytest.mark.usefixtures("folder")


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
    with pytest.raises(ValueError, match=r"1 sample lacks a view: 1 lacks cells:adt \(s2\)"):
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
        ("x.csv.gz", "cannot be read or decompressed"),
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


# --- Contents of tables. ---


def test_text_columns():
    table = frame()
    table["tissue"] = ["liver", "lung", "liver", "skin", "bone", "lung"]
    table.to_csv("a.csv", index=False)
    with pytest.raises(
        ValueError,
        match=r"a\.csv: column 'tissue' holds text \('liver', 'lung', 'skin', \.\.\.\): leave it "
        r"out with drop=\['tissue'\], or encode it as numbers",
    ):
        load_views(["a.csv", "b.csv"])
    table["body site"] = pd.Categorical(["x", "y", "x", "y", "x", "y"])
    table.to_parquet("a.parquet", index=False)
    with pytest.raises(
        ValueError,
        match=r"a\.parquet: 2 columns hold text, 'tissue', 'body site' .* with drop="
        r"\['tissue', 'body site'\], or encode them",
    ):
        load_views(["a.parquet", "b.csv"])
    assert_matched(load_views(["a.parquet", "b.csv"], drop=["tissue", "body site"]))
    with pytest.raises(ValueError, match="no table has a column 'tisue' to drop"):
        load_views(["a.parquet", "b.csv"], drop=["tisue", "tissue", "body site"])


def test_words_that_repeat_are_no_ids():
    frame(ids=["s0", "s1", "s2", "s1", "s4", "s5"], name="who").to_csv("a.csv", index=False)
    with pytest.raises(ValueError, match=r"'who' holds text .* ids would all have to be different"):
        load_views(["a.csv", "b.csv"])


def test_words_that_python_reads_as_numbers():
    ids = [f"{i}_1" for i in range(6)]
    frame(ids=ids, name="who").to_csv("a.csv", index=False)
    assert load_views(["a.csv"]).ids == ids


def test_decimal_commas():
    frame().to_csv("a.csv", index=False, sep=";", decimal=",")
    assert_matched(load_views(["a.csv", "b.csv"]))
    frame().to_csv("a.tsv", index=False, sep="\t", decimal=",")  # may be thousands
    with pytest.raises(ValueError, match=r"a\.tsv: column 'x0' has commas in its numbers"):
        load_views(["a.tsv"])


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


def test_a_note_on_a_column_that_may_be_the_id():
    frame(ids=[11, 7, 3, 20, 5, 8], name="nr").to_csv("a.csv", index=False)
    [number] = load_views(["a.csv"]).notes
    assert "the first column, 'nr'" in number
    assert number.endswith("use id='nr'")
    assert load_views(["a.csv"], id="nr").notes == []


def test_dates_and_times_are_no_numbers():
    when = pd.Timestamp("2024-05-01") + pd.to_timedelta(range(6), "D")
    for column in (when, when - when[0]):
        frame().assign(when=column).to_parquet("a.parquet", index=False)
        with pytest.raises(ValueError, match=r"a\.parquet: column 'when' holds text \('"):
            load_views(["a.parquet"])
        assert load_views(["a.parquet"], drop=["when"]).views[0].shape == (6, 3)


def test_a_hidden_sheet_is_no_view():
    with pd.ExcelWriter("a.xlsx") as book:
        frame().to_excel(book, sheet_name="look", index=False)
        frame(B).to_excel(book, sheet_name="old", index=False)
        book.book["old"].sheet_state = "hidden"
    data = load_views(["a.xlsx"])
    assert data.view_names == ["a"]
    assert data.notes == ["a.xlsx: the sheet 'old' is hidden and not used"]


def test_a_repeated_string_of_parquet_is_held_once():
    """155 kB in the file would be gigabytes as text."""
    words = pd.Series(["x" * 10**6] * 2000).astype("category")
    pd.DataFrame({"id": range(2000), "word": words}).to_parquet("a.parquet", index=False)
    tracemalloc.start()
    with pytest.raises(ValueError, match="column 'word' holds text"):
        load_views(["a.parquet"])
    assert tracemalloc.get_traced_memory()[1] < 10**8
    tracemalloc.stop()
