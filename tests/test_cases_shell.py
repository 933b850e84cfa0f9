"""Tables as people have them: every case with its answer, from the shell and by `load_views`.

A case is right or refused in one sentence, and nothing is silent: what was left out, filled in or
assumed is in the notes.
"""

import gzip
import os
import pickle
import signal
import sys
import time
import zipfile
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import openpyxl
import pandas as pd
import pytest
import rdata
import scipy.io
from scipy import sparse

import polyspan.progress
from polyspan.cli import fit
from polyspan.cli.main import main
from polyspan.cli.options import in_shell
from polyspan.cli.request import Request
from polyspan.io import load_views
from polyspan.runtime.messages import spelling
from polyspan.selection.pool import tell_lost

rng = np.random.default_rng(0)
N = 12
IDS = [f"pat{i:02d}" for i in range(N)]
TRUTH = np.arange(N) % 2
A = rng.normal(size=(N, 5)) + 6 * TRUTH[:, None]
B = rng.normal(size=(N, 4)) - 6 * TRUTH[:, None]
GENES = ["TP53", "BRCA1", "MYC", "EGFR", "KRAS"]
LIPIDS = ["C14.0", "C16.0", "C18.0", "C20.1"]
typed = partial(in_shell, Request)
METHOD = ["--method", "meangraph", "--clusters", "2", "--set", "n_neighbors=3"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def genes(ids=IDS):
    return pd.DataFrame(A, index=pd.Index(ids, name="sample"), columns=GENES)


def lipids(ids=IDS):
    return pd.DataFrame(B, index=pd.Index(ids, name="sample"), columns=LIPIDS)


def holes(table, *places):
    table = table.copy()
    for row, column in places:
        table.iloc[row, column] = np.nan
    return table


def shell(files, *options):
    return main(["fit", *files, *METHOD, *options, "--force"])


def found_ids():
    lines = Path("labels.csv").read_text("utf-8").splitlines()[1:]
    return [line.split(",")[0] for line in lines]


def refused(capsys, files, words, options=(), **choices):
    """Both answer with the same sentence, each in its own words; nothing is written."""
    before, errors = sorted(os.listdir()), (ValueError, OSError, MemoryError)
    with pytest.raises(errors, match=r"^(?!.* --[a-z]).*$"):
        load_views(files, **choices)
    with spelling(typed), pytest.raises(errors, match=words) as error:
        load_views(files, **choices)
    assert shell(files, *options) == 2
    err = capsys.readouterr().err
    assert err == f"polyspan: {error.value}\n"
    assert err.count("\n") == 1
    assert sorted(os.listdir()) == before


def accepted(capsys, files, options=(), notes=(), ids=IDS, **choices):
    """Both read the same samples, with exactly these notes; returns what `load_views` found."""
    assert not any(" --" in note for note in load_views(files, **choices).notes)
    with spelling(typed):
        data = load_views(files, **choices)
    assert data.notes == list(notes)
    capsys.readouterr()
    assert shell(files, *options) == 0
    assert capsys.readouterr().err == "".join(f"polyspan: note: {one}\n" for one in notes)
    assert found_ids() == ids
    return data


def assert_both(data, first=A, second=B):
    for view, expected in zip(data.views, (first, second), strict=True):
        view = view.toarray() if sparse.issparse(view) else view
        np.testing.assert_allclose(view, expected, rtol=1e-12)


# --- Samples in columns ---


def test_genes_are_no_samples(capsys):
    for name in ("rna.csv", "cnv.csv"):
        genes().T.to_csv(name, index_label="")
    files = ["rna.csv", "cnv.csv"]
    words = (
        r"rna\.csv and cnv\.csv share 12 of 12 column names \('pat00', 'pat01' and 10 more\), as "
        r"if the columns were the samples: use --samples columns if .*, or --samples rows if not"
    )
    refused(capsys, files, words)
    data = accepted(capsys, files, ["--samples", "columns"], samples="columns")
    assert_both(data, A, A)
    accepted(capsys, files, ["--samples", "rows"], ids=GENES, samples="rows")


@pytest.mark.parametrize("name", ["gene", "Gene Symbol", "probe_id", "feature", "ensembl_gene_id"])
def test_an_id_column_that_names_features(capsys, name):
    genes().T.to_csv("rna.csv", index_label=name)
    refused(capsys, ["rna.csv"], f"rna.csv: the column '{name}' names features, .*--samples col")
    data = accepted(capsys, ["rna.csv"], ["--samples", "columns"], samples="columns")
    np.testing.assert_allclose(data.views[0], A, rtol=1e-12)


def test_feature_names_that_tables_may_share_are_fine(capsys):
    for name, values in (("a.csv", A), ("b.csv", B)):
        table = pd.DataFrame(values, index=IDS).add_prefix("V")
        table.to_csv(name, index_label="sample")
    assert_both(accepted(capsys, ["a.csv", "b.csv"]))


def test_many_more_rows_than_columns_are_a_note(capsys):
    for name in ("a.csv", "b.csv"):
        table = pd.DataFrame(rng.normal(size=(500, 3)), columns=["w", "height", name])
        table.to_csv(name, index=False)
    note = (
        "every table has many more rows than columns; rows are taken to be the samples: if they "
        "are features, use --samples columns"
    )
    ids = [str(i) for i in range(1, 501)]
    accepted(capsys, ["a.csv", "b.csv"], notes=[note], ids=ids)
    load = load_views(["a.csv", "b.csv"], samples="rows")
    assert load.notes == []


def save_turned(name, table):
    """Write a table with its samples in columns, in any format."""
    ending = name.split(".", 1)[1]
    turned, values = table.T, table.to_numpy().T.copy()
    if ending == "h5ad":
        import anndata

        obs, var = (pd.DataFrame(index=list(x)) for x in (turned.index, turned.columns))
        anndata.AnnData(values, obs=obs, var=var).write_h5ad(name)
    elif ending in ("rds", "rda"):
        frame = turned.rename_axis(None).rename_axis(None, axis=1)
        rdata.write_rds(name, frame) if ending == "rds" else rdata.write_rda(name, {"x": frame})
    else:
        {
            "csv": lambda: turned.to_csv(name, index_label="gene"),
            "tsv": lambda: turned.to_csv(name, index_label="gene", sep="\t"),
            "txt": lambda: turned.to_csv(name, index_label="gene", sep=" "),
            "csv.gz": lambda: turned.to_csv(name, index_label=""),
            "parquet": lambda: turned.to_parquet(name),
            "xlsx": lambda: turned.to_excel(name, index_label="gene"),
            "npy": lambda: np.save(name, values),
            "npz": lambda: np.savez(name, X=values, sample=np.array(IDS)),
            "mat": lambda: scipy.io.savemat(name, {"X": values}),
            "mtx": lambda: scipy.io.mmwrite(name, sparse.coo_array(values)),
        }[ending]()


BARE = ("npy", "mat", "mtx")  # without ids


@pytest.mark.parametrize(
    "ending",
    ["csv", "tsv", "txt", "csv.gz", "parquet", "xlsx", "rds", "rda", "h5ad", "npz", *BARE],
)
def test_samples_in_columns_in_every_format(capsys, ending):
    files = [f"a.{ending}", f"b.{ending}"]
    for name, table in zip(files, (genes(), lipids()), strict=True):
        save_turned(name, table)
    ids = [str(i) for i in range(1, N + 1)] if ending in BARE else IDS
    data = accepted(capsys, files, ["--samples", "columns"], ids=ids, samples="columns")
    assert_both(data)
    assert data.matched_by == ("order" if ending in BARE else "id")


def test_a_column_of_words_beside_the_samples(capsys):
    table = genes().T
    table.insert(0, "chromosome", list("abcde"))
    table.to_csv("rna.csv", index_label="gene")
    words = "every column but 'gene' is a sample, but column 'chromosome' holds text: .*--drop chr"
    refused(capsys, ["rna.csv"], words, ["--samples", "columns"], samples="columns")
    options = ["--samples", "columns", "--drop", "chromosome", "--drop", "MYC"]
    data = accepted(capsys, ["rna.csv"], options, samples="columns", drop=["chromosome", "MYC"])
    np.testing.assert_allclose(data.views[0], A[:, [0, 1, 3, 4]], rtol=1e-12)


# --- Headers and columns that are no features ---


def test_a_header_that_counts_is_not_a_sample(capsys):
    pd.DataFrame(np.sort(A, axis=1)).to_csv("a.csv", index=False)  # every sample ascends, too
    note = "a.csv: the first row is read as names; if it is a sample, use --header no"
    ids = [str(i) for i in range(1, N + 1)]
    data = accepted(capsys, ["a.csv"], notes=[note], ids=ids)
    assert data.views[0].shape == (N, 5)


@pytest.mark.parametrize("text", ["0,1\n5,6\n1,2\n", "0,1\n1,0\n0,1\n", "0,1,2\n4,5,6\n1,1,1\n"])
def test_a_header_that_may_be_a_sample_is_asked_for(capsys, text):
    with open("a.csv", "w", encoding="utf-8") as stream:
        stream.write(text)
    refused(
        capsys, ["a.csv"], r"a\.csv: the first row \(0, 1.*\) may be names or a sample: use --h"
    )
    assert load_views(["a.csv"], header=False).rows == [3]


@pytest.mark.parametrize(
    "name", ["subtype", "Diagnosis", "group", "class", "label", "target", "cluster", "cell_type"]
)
def test_known_classes_are_refused_until_somebody_says(capsys, name):
    genes().assign(**{name: TRUTH}).to_csv("a.csv")
    words = f"a.csv: column '{name}' may hold known classes, .* --drop {name}, or .* --keep {name}"
    refused(capsys, ["a.csv"], words)
    data = accepted(capsys, ["a.csv"], ["--drop", name], drop=[name])
    np.testing.assert_allclose(data.views[0], A, rtol=1e-12)
    kept = accepted(capsys, ["a.csv"], ["--keep", name], keep=[name])
    assert kept.views[0].shape == (N, 6)


def test_a_column_to_keep_must_be_there(capsys):
    genes().to_csv("a.csv")
    words = "no table has a column 'grup' to keep"
    refused(capsys, ["a.csv"], words, ["--keep", "grup"], keep=["grup"])


@pytest.mark.parametrize("name", ["batch", "age"])
def test_batch_and_age_are_noted(capsys, name):
    genes().assign(**{name: np.arange(N) % 3}).to_csv("a.csv")
    note = (
        f"a.csv: column '{name}' is used as a feature; if the clusters should not follow it, leave "
        f"it out: --drop {name}"
    )
    accepted(capsys, ["a.csv"], notes=[note])
    accepted(capsys, ["a.csv"], ["--drop", name], drop=[name])
    accepted(capsys, ["a.csv"], ["--keep", name], keep=[name])


def test_whole_numbers_that_are_the_same_in_all_tables_are_ids(capsys):
    mice = [str(i) for i in rng.permutation(N) + 1]
    genes(mice).to_csv("a.csv", index_label="mouse")
    for name in ("mouse", "animal"):
        lipids(mice).iloc[::-1].to_csv("b.csv", index_label=name)
        assert_both(accepted(capsys, ["a.csv", "b.csv"], ids=mice))
    lipids(mice).iloc[::-1].to_csv("b.csv", index_label="")  # perhaps just row numbers
    words = (
        r"b\.csv has no ids, only row numbers that are not in order .*add an id column to b\.csv"
    )
    refused(capsys, ["a.csv", "b.csv"], words)


# --- Missing values ---


def test_scattered_missing_values(capsys):
    holes(genes(), (1, 2), (4, 2), (7, 0)).to_csv("a.csv", na_rep="NA")
    lipids().to_csv("b.csv")
    words = (
        r"a\.csv: 3 values are missing, .*: fill them in with --impute median or --impute knn, "
        r"which leaves out what lacks more than --max-missing 0\.2 of its values"
    )
    refused(capsys, ["a.csv", "b.csv"], words)
    refused(capsys, ["a.csv", "b.csv"], words, ["--impute", "none"], impute="none")
    note = "view a: 3 of 60 values (5.0%) filled in by the {}"
    for how, way in (("median", "median"), ("knn", "five nearest samples")):
        options = ["--impute", how]
        told = [note.format(way)]
        data = accepted(capsys, ["a.csv", "b.csv"], options, told, impute=how)
        known = ~np.isnan(holes(genes(), (1, 2), (4, 2), (7, 0)).to_numpy())
        np.testing.assert_allclose(data.views[0][known], A[known], rtol=1e-12)
        assert np.isfinite(data.views[0]).all()
    assert_both(data, data.views[0])


def test_columns_and_samples_that_lack_too_much(capsys):
    table = holes(genes(), (0, 4), (1, 4), (2, 4), (9, 0), (9, 1))
    table.to_csv("a.csv")
    lipids().to_csv("b.csv")
    files, options = ["a.csv", "b.csv"], ["--impute", "median"]
    words = r"1 sample lacks a view: 1 lacks a \(pat09\); with --impute, that is also who"
    refused(capsys, files, words, options, impute="median")
    note = (
        "view a: 1 column left out: more than 20% missing (KRAS); 1 sample taken to lack the view: "
        "more than 20% missing (pat09)"
    )
    left = [one for one in IDS if one != "pat09"]
    options += ["--missing", "drop"]
    data = accepted(capsys, files, options, [note], left, impute="median", missing="drop")
    rows = [i for i in range(N) if i != 9]
    assert_both(data, A[rows, :4], B[rows])
    options[-1] = "keep"
    data = accepted(capsys, files, options, [note], impute="median", missing="keep")
    assert np.isnan(data.views[0][9]).all()
    note = "view a: 5 of 60 values (8.3%) filled in by the median"
    options = ["--impute", "median", "--max-missing", "0.5"]
    accepted(capsys, files, options, [note], impute="median", max_missing=0.5)


def test_what_impute_cannot_mean(capsys):
    genes().to_csv("a.csv")
    with pytest.raises(ValueError, match="impute must be 'median', 'knn' or 'none'; got 'mean'"):
        load_views(["a.csv"], impute="mean")
    words = "max_missing must be a share from 0 to 1; got 20"
    options = ["--impute", "knn", "--max-missing", "20"]
    refused(capsys, ["a.csv"], words, options, impute="knn", max_missing=20.0)
    with pytest.raises(SystemExit, match="2"):
        shell(["a.csv"], "--max-missing", "0.1")
    assert "--max-missing says what --impute leaves out: use both" in capsys.readouterr().err
    table = holes(genes(), *((2 * i + j % 2, j) for i in range(6) for j in range(5)))
    table.to_csv("a.csv")
    words = r"a\.csv: every column lacks more than 20% of its values: raise --max-missing"
    refused(capsys, ["a.csv"], words, ["--impute", "median"], impute="median")


# --- Formats ---


FORMATS = {
    "a.txt": {"sep": "\t"},
    "spaces.txt": {"sep": " "},
    "spaces.csv": {"sep": " "},
    "german.csv": {"sep": ";", "decimal": ","},
    "semicolon.csv": {"sep": ";"},
    "A.CSV.GZ": {"compression": "gzip"},
    "A.TXT": {"sep": "\t"},
}


@pytest.mark.parametrize("name", FORMATS)
def test_text_in_other_forms(capsys, name):
    genes().to_csv(name, **FORMATS[name])
    lipids().to_csv("b.csv")
    data = accepted(capsys, [name, "b.csv"])
    assert_both(data)
    assert data.view_names[0] == name.split(".")[0]


def test_columns_padded_with_spaces(capsys):
    with open("a.txt", "w", encoding="utf-8") as stream:
        stream.write(genes().reset_index().to_string(index=False))
    data = accepted(capsys, ["a.txt"])
    np.testing.assert_allclose(data.views[0], A, atol=1e-5)  # to_string rounds


def test_points_and_commas_in_one_file(capsys):
    with open("a.csv", "w", encoding="utf-8") as stream:
        stream.write("id;u;v\nfox;1,5;2\nbee;1.234;3\nbat;2;7,25\n")
    words = r"a\.csv has numbers with a point \('1\.234'\) and with a comma \('1,5'\): write all"
    refused(capsys, ["a.csv"], words)


def test_commas_that_may_be_thousands(capsys):
    Path("a.csv").write_text("id;u;v\nfox;1,500;2\nbee;12,345;3\nbat;2;7\n", "utf-8")
    refused(capsys, ["a.csv"], r"a\.csv: '1,500' may be a decimal or a thousand: write decimals")
    Path("a.csv").write_text("id;u;v\nfox;1,500;2\nbee;12,34;3\nbat;2;7\n", "utf-8")
    data = load_views(["a.csv"])
    assert data.views[0].tolist() == [[1.5, 2], [12.34, 3], [2, 7]]


def test_matrix_market_in_capitals(capsys):
    scipy.io.mmwrite("a.mtx", sparse.coo_array(A))
    with open("a.mtx", "rb") as plain, gzip.open("A.MTX.GZ", "wb") as packed:
        packed.write(plain.read())
    data = accepted(capsys, ["A.MTX.GZ"], ids=[str(i) for i in range(1, N + 1)])
    assert data.view_names == ["A"]


def test_workbooks(capsys):
    genes().to_excel("a.xlsx")
    lipids().iloc[::-1].to_excel("b.xlsx")
    assert_both(accepted(capsys, ["a.xlsx", "b.xlsx"]))
    with pd.ExcelWriter("both.xlsx") as book:
        genes().to_excel(book, sheet_name="rna")
        lipids().iloc[::-1].to_excel(book, sheet_name="lipid")
        pd.DataFrame().to_excel(book, sheet_name="empty")
    data = accepted(capsys, ["both.xlsx"])
    assert_both(data)
    assert data.view_names == ["both:rna", "both:lipid"]
    holes(genes(), (1, 2)).to_excel("a.xlsx")
    refused(capsys, ["a.xlsx"], r"a\.xlsx: 1 value is missing, .*sample pat01 column 'MYC'")


def test_workbooks_that_are_none(capsys, monkeypatch):
    openpyxl.Workbook().save("empty.xlsx")
    refused(capsys, ["empty.xlsx"], r"empty\.xlsx is empty")
    with open("a.xlsx", "wb") as stream:
        stream.write(b"half a file")
    refused(capsys, ["a.xlsx"], r"a\.xlsx cannot be read as an Excel file: ")
    refused(capsys, ["a.ods"], r"a\.ods is an old or open spreadsheet: save it as \.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r'a\.xlsx needs openpyxl: pip install "polyspan\[excel'):
        load_views(["a.xlsx"])


def test_r_files_with_several_tables(capsys):
    plain = [table().rename_axis(None) for table in (genes, lipids)]
    rdata.write_rda("mice.rda", {"mice": {"gene": plain[0], "lipid": plain[1][::-1], "n": 3.0}})
    note = "mice.rda also holds n, which is not used"
    data = accepted(capsys, ["mice.rda"], notes=[note])
    assert_both(data)
    assert data.view_names == ["mice:gene", "mice:lipid"]


def test_sparse_matrices_of_r(capsys, monkeypatch):
    """rdata cannot write these, so its answer stands in."""
    counts = sparse.csc_array(np.where(A.T > 0, A.T, 0))
    slots = SimpleNamespace(
        x=counts.data, i=counts.indices, p=counts.indptr, Dim=counts.shape, Dimnames=[GENES, IDS]
    )

    def read(path, constructor_dict):
        return constructor_dict["dgCMatrix"](slots, {"class": ["dgCMatrix"]})

    monkeypatch.setattr(rdata, "read_rds", read)
    open("a.rds", "wb").close()
    data = accepted(capsys, ["a.rds"], ["--samples", "columns"], samples="columns")
    assert sparse.issparse(data.views[0])
    np.testing.assert_allclose(data.views[0].toarray(), counts.toarray().T)
    assert load_views(["a.rds"], samples="rows").notes == []
    found = load_views(["a.rds"])
    assert found.ids == GENES
    assert found.notes == [
        "a.rds: the rows of the sparse matrix are taken to be the samples; if they are features, "
        "as in most packages of R, use samples='columns'"
    ]


def test_a_run_with_these_options_is_repeated(capsys):
    holes(genes(), (1, 2)).assign(group=TRUTH).T.to_csv("a.csv", index_label="gene")
    options = ["--samples", "columns", "--keep", "group", "--impute", "knn", "--max-missing", ".3"]
    assert shell(["a.csv"], *options) == 0
    assert main(["fit", "--repeat", "labels.json"]) == 0
    assert "repeated: all labels are the same as before" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["fit", "--repeat", "labels.json", "--max-missing", ".1"])
    assert "takes all settings from labels.json: leave --max-missing out" in capsys.readouterr().err


# --- Files that cannot be read or written ---


def test_a_file_without_permission(capsys, monkeypatch):
    genes().to_csv("a.csv.gz")
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.W_OK)  # root may read all
    refused(capsys, ["a.csv.gz"], r"a\.csv\.gz cannot be read: you have no permission to read it")


def test_a_full_disk_names_the_file(capsys, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    genes().to_csv("a.csv")
    monkeypatch.setattr("polyspan.cli.files.write_json", full)
    assert shell(["a.csv"]) == 1
    expected = "polyspan: labels.json cannot be written: No space left on device; nothing was writ"
    assert capsys.readouterr().err.startswith(expected)
    assert os.listdir() == ["a.csv"]


def test_ids_that_spreadsheets_take_for_formulas(capsys):
    ids = ["=1+1", "+a", "-b", "@c", "-5", "+7.5", *IDS[6:]]
    genes(ids).to_csv("a.csv")
    assert shell(["a.csv"]) == 0
    assert capsys.readouterr().err == (
        "polyspan: note: 4 ids begin with =, +, - or @ (=1+1), which spreadsheets take for "
        "formulas: --safe-ids writes a ' in front\n"
    )
    assert found_ids() == ids
    assert shell(["a.csv"], "--safe-ids") == 0
    assert capsys.readouterr().err == ""
    assert found_ids() == ["'=1+1", "'+a", "'-b", "'@c", *ids[4:]]


# --- Files that could do harm ---


class Harm:
    """Would write a file if it were unpickled."""

    def __reduce__(self):
        return open, ("harm", "w")


def test_nothing_is_unpickled(capsys):
    array = np.empty((2, 2), dtype=object)
    array[:] = Harm()
    np.save("a.npy", array, allow_pickle=True)
    refused(capsys, ["a.npy"], r"a\.npy cannot be read as an array: Object arrays cannot be loaded")
    np.savez("a.npz", array)
    refused(capsys, ["a.npz"], r"a\.npz cannot be read as arrays: Object arrays cannot be loaded")
    for name in ("a.csv", "a.xlsx", "a.rds", "a.parquet", "a.mat", "a.h5ad"):
        with open(name, "wb") as stream:
            pickle.dump(Harm(), stream)
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            load_views([name])
    assert not os.path.exists("harm")


def external_link(file):
    file["X"] = h5py.ExternalLink("other.h5", "secret")


def external_storage(file):
    file.create_dataset("X", (4, 3), "f8", external=[("raw.bin", 0, h5py.h5f.UNLIMITED)])


def virtual(file):
    layout = h5py.VirtualLayout((4, 3), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "secret", (4, 3))
    file.create_virtual_dataset("deep/X", layout)


@pytest.mark.parametrize("make", [external_link, external_storage, virtual])
@pytest.mark.parametrize("name", ["a.mat", "a.h5ad", "a.h5mu"])
def test_links_to_other_files_are_not_followed(capsys, name, make):
    with h5py.File("other.h5", "w") as file:
        file["secret"] = np.ones((4, 3))
    with open("raw.bin", "wb") as stream:
        stream.write(bytes(96))
    with h5py.File(name, "w") as file:
        make(file)
    refused(capsys, [name], rf"{name}: '(deep/)?X' is a link to another file, which is not follow")


def test_workbooks_with_entities(capsys):
    genes().to_excel("plain.xlsx")
    head = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    with zipfile.ZipFile("plain.xlsx") as plain, zipfile.ZipFile("a.xlsx", "w") as bad:
        for name in plain.namelist():
            content = plain.read(name).decode()
            if name.endswith("sheet1.xml"):
                content = head + content.split("?>", 1)[-1]
            bad.writestr(name, content)
    refused(capsys, ["a.xlsx"], r"a\.xlsx declares XML entities, which no spreadsheet needs")


def test_files_larger_than_the_memory(capsys, monkeypatch):
    table = pd.DataFrame(rng.normal(size=(300, 50))).add_prefix("w")
    table.to_csv("a.csv", index=False)
    table.to_csv("a.csv.gz", index=False)
    table.to_excel("a.xlsx", index=False)
    for module in ("runtime.memory", "io.safety"):
        monkeypatch.setattr(f"polyspan.{module}.available_memory", lambda: 50_000)
    words = r" holds about \S+ GiB, and reading it takes about \d times as much, but 5e-05 GiB are"
    for name in ("a.csv", "a.csv.gz", "a.xlsx"):
        refused(capsys, [name], name + words)


# --- Long work ---


def test_sigterm_ends_like_an_interruption(capsys, monkeypatch):
    def killed(*args):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    before = signal.getsignal(signal.SIGTERM)
    genes().to_csv("a.csv")
    monkeypatch.setattr(fit, "cluster", killed)
    assert shell(["a.csv"]) == 143
    assert capsys.readouterr().err == "polyspan: terminated\n"
    assert os.listdir() == ["a.csv"]
    assert signal.getsignal(signal.SIGTERM) is before


def test_sigterm_while_writing_leaves_the_old_files(capsys, monkeypatch):
    genes().to_csv("a.csv")
    assert shell(["a.csv"]) == 0
    Path("labels.csv").write_text("mine", "utf-8")

    def killed(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    monkeypatch.setattr("polyspan.cli.files.write_json", killed)
    assert shell(["a.csv"]) == 143
    assert Path("labels.csv").read_text("utf-8") == "mine"
    assert sorted(os.listdir()) == ["a.csv", "labels.csv", "labels.json"]


def test_members_that_failed_and_that_did_not_run_are_two_sentences():
    rows = [
        {"method": "SNF", "status": "failed", "reason": "ValueError: no luck"},
        {"method": "CGD", "status": "failed", "reason": "MemoryError: too large"},
        {"method": "GRMSC", "status": "not run", "reason": "stopped: the budget was spent"},
        {"method": "GRMSC", "status": "ok", "reason": ""},
    ]
    assert tell_lost(rows) == [
        "2 of 4 members failed (1 SNF, 1 CGD): ValueError: no luck, among other reasons.",
        "1 of 4 members did not run (1 GRMSC): the budget was spent.",
    ]
    assert tell_lost(rows[-1:]) == []


def test_a_line_a_minute_without_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(polyspan.progress, "MINUTE", 0.05)
    with polyspan.progress.showing("reading"):
        polyspan.progress.follower()(3, 12, "MB of a.csv", 9.0)
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert 1 <= len(lines) <= 6
    assert set(lines) == {"[reading] 0 min: 3 of 12, 9 s left: MB of a.csv"}
    time.sleep(0.1)
    assert capsys.readouterr().err == ""  # it ends with the work


def test_reading_tells_how_far_it_is(monkeypatch):
    steps = []
    genes().to_csv("a.csv")
    with polyspan.progress.following(lambda *step: steps.append(step)):
        load_views(["a.csv"])
    assert steps == [(0, 0, "MB of a.csv")]
