"""Input that was misread without a word, and calls that ended without a sentence, one test each."""

import csv
import gzip
import json
import os
import re
import sys
import threading
import tracemalloc
import warnings
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.io
import scipy.sparse as sp

from polyspan import (
    FPMVS,
    GRMSC,
    GSF,
    LMSC,
    MLRSSC,
    NEMO,
    AnchorGRMSC,
    ConcatKMeans,
    ConsensusClusterer,
    MeanGraph,
    load_model,
    save_model,
)
from polyspan.cli.files import write_together
from polyspan.cli.main import main
from polyspan.datasets import load_views
from polyspan.explain import lifetimes
from polyspan.explain.associations import associations
from polyspan.io.safety import unpacked_size
from polyspan.metrics import clustering_scores
from polyspan.runtime import messages
from polyspan.runtime.messages import own_warnings

RNG = np.random.default_rng(0)
N = 30
X = RNG.normal(size=(N, 4))
ORDER = RNG.permutation(N)


def table(names="abcd", **first):
    """A table of X with columns in front."""
    return pd.DataFrame(first | dict(zip(names, X.T, strict=True)))


# ---- 10: sparse tables ---------------------------------------------------------------------------


@pytest.mark.slow
def test_10_rows_of_zero_in_a_sparse_table_do_not_end_the_fit():
    rng = np.random.default_rng(0)
    mutations, other = (rng.random((120, 6)) < 0.05).astype(float), rng.normal(size=(120, 10))
    assert (mutations.sum(axis=1) == 0).mean() > 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConsensusClusterer(2, members=[ConcatKMeans(2), ConcatKMeans(3)], random_state=0)
        assert len(model.fit([mutations, other]).labels_) == 120


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


def test_6_ids_of_which_some_agree_say_so_too(tmp_path):
    spelled = [one if i < 3 else f"{one}-01A" for i, one in enumerate(IDS)]
    files = two_files(tmp_path, spelled, IDS)
    with pytest.raises(ValueError, match=r"54 samples lack a view.*30 agree with id_trim='-01A\$'"):
        load_views(files)
    assert load_views(files, id_trim="-01A$").notes[-1].startswith("3 ids are in every view as")


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
@pytest.mark.parametrize(
    "ending",
    ["csv", "xlsx", *(pytest.param(one, marks=pytest.mark.slow) for one in ("h5ad", "s.h5ad"))],
)
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


def test_8_repeated_names_in_another_order_are_refused():
    data = anndata.AnnData(pd.DataFrame(X, columns=list("aabc"), index=IDS))
    model = GRMSC(2, random_state=0).fit({"rna": data})
    assert len(model.predict({"rna": data})) == N
    with pytest.raises(ValueError, match="several features of one name"):
        model.predict({"rna": data[:, [2, 0, 1, 3]].copy()})


def test_8_samples_of_one_name_are_not_merged(tmp_path):
    frame = pd.DataFrame(X[:, :3], columns=["s1", "s1", "s2"])
    frame.to_csv(tmp_path / "x.csv", index_label="gene")
    for source in (tmp_path / "x.csv", frame):
        with pytest.raises(ValueError, match="called 's1': give every sample an id of its own"):
            load_views([source], samples="columns", duplicates="mean")


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


# ---- 2: dates ------------------------------------------------------------------------------------

DAYS = pd.date_range("2020-01-01", periods=N)


@pytest.mark.parametrize("values", [DAYS, DAYS - DAYS[0]], ids=["date", "duration"])
def test_2_dates_are_no_numbers(tmp_path, values):
    frame = table().assign(when=values)
    frame.to_parquet(tmp_path / "x.parquet")
    for source in (tmp_path / "x.parquet", frame, frame.astype({"when": object})):
        with pytest.raises(ValueError, match="column 'when' holds text"):
            load_views([source])
    objects = frame.assign(when=list(values.to_numpy())).astype(object)
    objects["when"] = pd.Series(list(values.to_numpy()), dtype=object)  # as NumPy holds them
    with pytest.raises(ValueError, match="column 'when' holds text"):
        load_views([objects])
    for view in (frame, objects.to_numpy(), frame[["when"]].to_numpy()):
        with pytest.raises((ValueError, TypeError), match="view 0"):
            ConcatKMeans(2, scale=None).fit([view])


# ---- 3: masked arrays ----------------------------------------------------------------------------


def masked():
    found = np.ma.masked_array(X.copy(), X > 1)
    found.data[found.mask] = -9999
    return found


def test_3_values_under_a_mask_are_missing():
    data = anndata.AnnData(X.copy(), obsm={"m": masked()}, layers={"m": masked()})
    for source, how in (([masked()], {}), ([data], {"obsm": ["m"]}), ([data], {"layers": ["m"]})):
        with pytest.raises(ValueError, match="values are missing"):
            load_views(source, **how)
    for view in (masked(), list(masked())):
        with pytest.raises(ValueError, match="contains NaN"):
            ConcatKMeans(2).fit([view])
    near = np.ma.masked_greater(np.abs(X @ X.T), 2)
    with pytest.raises(ValueError, match="NaN"):
        GRMSC(2, graphs=[near]).fit([X])


# ---- 4: what files hold --------------------------------------------------------------------------


def test_4_long_ids_are_matched_by_id_or_asked_for(tmp_path):
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    table(nr=np.arange(N) + 10**17).to_csv(files[0], index=False)
    table("efgh", nr=np.arange(N) + 10**17).iloc[ORDER].to_csv(files[1], index=False)
    found = load_views(files)
    np.testing.assert_array_equal(*found.views)
    for file in files:
        frame = pd.read_csv(file)
        frame[[*frame.columns[1:], "nr"]].to_csv(file, index=False)
    with pytest.raises(ValueError, match="column 'nr' holds whole numbers of more than 15 digits"):
        load_views(files)


def test_4_delimiters(tmp_path):
    def read(text, name="x.csv"):
        (tmp_path / name).write_text(text)
        found = load_views([tmp_path / name])
        return found.columns[0], found.views[0].tolist()

    with pytest.raises(ValueError, match="ends in a delimiter"):
        read("id,a,b\ns1,1,2,\ns2,3,4,\ns3,5,6,\n")
    assert read("id;height, cm\ns1;180,5\ns2;170,2\n") == (["height, cm"], [[180.5], [170.2]])
    assert read("id\ta, b\tc\ns1\t1\t2\ns2\t3\t4\n", "x.tsv")[0] == ["a, b", "c"]
    assert read('id,"a;b","c;d"\ns1,1,2\ns2,3,4\n')[0] == ["a;b", "c;d"]


@pytest.mark.parametrize("ending", ["npz", "mat"])
def test_4_a_matrix_that_is_not_used_is_named(tmp_path, ending):
    path = tmp_path / f"x.{ending}"
    content = {"a": X, "age": X[:, :1], "when": DAYS.to_numpy().reshape(N, 1).astype(float)}
    np.savez(path, **content) if ending == "npz" else scipy.io.savemat(path, content)
    found = load_views([path])
    assert len(found.views) == 1
    assert "also holds 'age', 'when', which are not used" in found.notes[0]


def test_4_a_hidden_sheet_is_no_view(tmp_path):
    with pd.ExcelWriter(tmp_path / "x.xlsx") as book:
        table().to_excel(book, sheet_name="a", index=False)
        table("efgh").to_excel(book, sheet_name="b", index=False)
        book.sheets["b"].sheet_state = "hidden"
    found = load_views([tmp_path / "x.xlsx"])
    assert len(found.views) == 1
    assert "'b' is hidden" in found.notes[0]


# ---- 5: a repeated run ---------------------------------------------------------------------------


def test_5_a_repeated_run_reads_the_labels_themselves(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table(id=[f"={i}" for i in range(N)]).to_csv("x.csv", index=False)
    assert main(["fit", "x.csv", "--method", "concatkmeans", "--clusters", "2", "--safe-ids"]) == 0
    assert main(["fit", "--repeat", "labels.json", "--safe-ids"]) == 0
    assert "all labels are the same" in capsys.readouterr().out
    lines = (tmp_path / "labels.csv").read_text().splitlines()
    (tmp_path / "labels.csv").write_text("\n".join([*lines[:-1], lines[-1][:-1] + "7"]) + "\n")
    for more in ([], ["--force"]):
        assert main(["fit", "--repeat", "labels.json", *more]) == 1
        assert "labels.csv is not as the run wrote it" in capsys.readouterr().err


def test_5_other_labels_are_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table().to_csv("x.csv", index=False)
    main(["fit", "x.csv", "--method", "concatkmeans", "--clusters", "2"])
    settings = json.loads((tmp_path / "labels.json").read_text())
    (tmp_path / "labels.csv").unlink()
    (tmp_path / "labels.json").write_text(json.dumps(settings | {"labels_sha256": "0" * 64}))
    assert main(["fit", "--repeat", "labels.json"]) == 1
    assert "the labels differ" in capsys.readouterr().err


# ---- 9: what is known of the samples -------------------------------------------------------------


def test_9_samples_unlike_all_others_get_no_cluster_in_python_either():
    blocks = (
        np.repeat(np.eye(3, 4), 20, axis=0) + np.random.default_rng(0).normal(size=(60, 4)) / 20
    )
    model = ConsensusClusterer(3, members=[MeanGraph(), NEMO()], random_state=0)
    model.fit([blocks, blocks[:, ::-1]])
    new = model.predict([1000 + blocks[:5], 1000 + blocks[:5, ::-1]])
    assert new.tolist() == [-1] * 5
    assert (model.predict([blocks, blocks[:, ::-1]], abstain=0) >= 0).all()


def test_9_words_of_clinical_tables_for_missing_values():
    found = associations([0, 1] * 15, {"er": ["[Not Available]", "--", "'--"] * 5 + ["+", "-"] * 7
                                       + ["+"]})  # fmt: skip
    assert found[0].n_samples == 15
    assert found[0].values == ["+", "-"]
    rows = lifetimes([1, "[Not Applicable]", 3], ["dead", "alive", "--"], 3)[0]
    assert rows == [0]


@pytest.mark.parametrize("spelled", [list, lambda days: days.strftime("%d.%m.%Y").tolist()])
def test_9_dates_are_no_classes(spelled):
    found = associations([0, 1] * 15, {"when": spelled(DAYS[:-1].append(DAYS[:1]))})
    assert (found[0].kind, found[0].test) == ("", "dates are not compared")


@pytest.mark.parametrize("gone", [np.nan, None, pd.NA])
def test_9_a_missing_class_is_no_class(gone):
    known = clustering_scores(["a", "a", "b"], [0, 0, 1])
    for true in (["a", "a", "b", gone], pd.Series(["a", "a", "b", gone], dtype="category")):
        assert clustering_scores(true, [0, 0, 1, 1]) == known
    assert clustering_scores(np.ma.masked_equal([0, 0, 1, -9], -9), [0, 0, 1, 1]) == known
    with pytest.raises(ValueError, match="no sample has both"):
        clustering_scores([gone], [0])


def test_9_stand_ins_and_outcomes_are_named(tmp_path):
    frame = table(PAM50=np.arange(N) % 5, OS_time=X[:, 0] ** 2)
    frame.loc[3, "b"] = -9999
    told = " ".join(load_views([frame]).notes)
    for words in ("'PAM50' is used", "'OS_time' is used", "column 'b' holds -9999"):
        assert words in told
    with pytest.warns(UserWarning, match="column 'b' holds -9999"):
        ConcatKMeans(2).fit([frame, X])
    with pytest.warns(UserWarning, match="column 2 holds -9999"):
        ConcatKMeans(2).fit([frame.to_numpy()[:, 1:], X])


# ---- 11: extreme values --------------------------------------------------------------------------


@pytest.mark.parametrize("values", [1 + 1e-16 * X, 1e15 + X, 4e15 + 8 * X])
def test_11_nearly_constant_views_end_in_a_sentence(values):
    for views in ([values, X], [values]):
        with pytest.raises(ValueError, match=r"is constant after.* clusters: leave it out"):
            MeanGraph(2, scale="standard").fit(views)


def test_11_infinity_may_be_an_id():
    frame = table().set_index(pd.Index([np.inf, *range(N - 1)]))
    assert len(ConcatKMeans(2).fit([frame, frame.add_prefix("x")]).labels_) == N


@pytest.mark.parametrize(
    ("model", "params"),
    [
        (LMSC(2), {"mu_max": 1e-300}),
        (LMSC(2), {"mu0": 1e300}),
        (GSF(2), {"lam_ridge": 5e-324}),
        (AnchorGRMSC(2), {"lam2": 1e160}),
        (MLRSSC(2), {"mu_max": 1e-100}),
    ],
)
def test_11_extreme_parameters_are_refused_by_name(model, params):
    with pytest.raises(ValueError, match=f"{next(iter(params))} must be a finite number .* <= 1e"):
        model.set_params(**params).fit([X, X])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_11_labels_are_numbered_through():
    A, B = np.array([[1.0], [1], [1], [1], [1], [0]]), np.array([[1.0, 1], [1, 0]] * 3)
    spread = np.array([[1.0, 1], [0, 1], [1, 0], [0, 1], [0, 1], [1, 0], [1, 1]])
    for model, views in (
        (FPMVS(6, scale=None, max_iter=5, random_state=0), [A, B]),
        (AnchorGRMSC(7, scale="standard", max_iter=5, random_state=0), [spread, spread[:, ::-1]]),
    ):
        labels = model.fit(views).labels_
        assert np.unique(labels).tolist() == list(range(labels.max() + 1))


def rewritten(path, change):
    """The parts of a saved model, changed and written again."""
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    change(parts)
    np.savez(path, **parts)
    return path


def flip(parts):
    name = next(name for name, one in parts.items() if one.dtype.kind == "f" and one.size > 9)
    parts[name] = -parts[name]


def forget(parts):
    text = json.loads(str(parts["polyspan"]))
    text["estimators"][0]["fitted"].popitem()
    parts["polyspan"] = np.array(json.dumps(text))


@pytest.mark.parametrize(
    "change", [flip, forget, lambda parts: parts.pop("array0"), lambda parts: parts.update(a=X)]
)
def test_11_a_model_that_was_changed_is_refused(tmp_path, change):
    path = save_model(GRMSC(2, random_state=0).fit([X, X[:, :2]]), tmp_path / "model.npz")
    with pytest.raises(ValueError, match=r"not a model saved by .* or it is damaged"):
        load_model(rewritten(path, change))


# ---- 13: a few bytes that unpack to many ---------------------------------------------------------


def peak(call):
    """The words of the error of a call, and the memory that it took."""
    tracemalloc.start()
    with pytest.raises((ValueError, MemoryError)) as error:
        call()
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return str(error.value), size


def test_13_one_endless_line(tmp_path, monkeypatch):
    monkeypatch.setattr("polyspan.io.text.LONGEST", 2**16, raising=False)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"id" + b",1" * 10**7))
    told, size = peak(lambda: load_views([tmp_path / "x.csv.gz"]))
    assert "row 1 has more than 65,536 characters" in told
    assert size < 2**22


def test_13_more_entries_than_the_header_says(tmp_path):
    head = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n"
    (tmp_path / "x.mtx.gz").write_bytes(gzip.compress(head + b"1 1 1\n" * 10**6))
    load_views([write_mtx(tmp_path / "y.mtx")])  # imports
    told, size = peak(lambda: load_views([tmp_path / "x.mtx.gz"]))
    assert "holds more than the 1 entries that its header names" in told
    assert size < 2**22


def write_mtx(path):
    scipy.io.mmwrite(path, X)
    return path


@pytest.mark.parametrize("kind", [pa.binary(), pa.list_(pa.string()), pa.string()])
def test_13_a_column_with_one_value_repeated(tmp_path, kind):
    value = {"binary": b"z" * 10**5, "string": "z" * 10**5}.get(str(kind), ["z" * 10**5])
    n = 500
    content = {"a": pa.array([value] * n, kind), "b": pa.array(np.zeros(n))}
    pq.write_table(pa.table(content), tmp_path / "x.parquet", compression="zstd")
    told, size = peak(lambda: load_views([tmp_path / "x.parquet"]))
    assert len(told) < 500
    assert size < 10 * 10**6  # the values alone take five times as much
    assert unpacked_size(tmp_path / "x.parquet", ".parquet") >= 40 * n


def test_13_short_fields_take_more_memory_than_their_text(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("a,b,c\n" + "1,2,3\n" * 10**4)
    monkeypatch.setattr("polyspan.io.safety.available_memory", lambda: 4 * 6 * 10**4)
    with pytest.raises(MemoryError, match="reading it takes about 1"):
        load_views([tmp_path / "x.csv"])


# ---- 15: two writers -----------------------------------------------------------------------------


def test_15_of_two_writers_at_the_same_instant_one_wins(tmp_path):
    paths = [tmp_path / "labels.csv", tmp_path / "labels.json"]
    ready, ends = threading.Barrier(2), []

    def write(who, force):
        def one(path):
            path.write_text(who)
            ready.wait(timeout=10)  # after all checks before the work

        try:
            write_together(dict.fromkeys(paths, one), force=force)
            ends.append("written")
        except FileExistsError:
            ends.append("refused")

    for force, both in ((False, ["refused", "written"]), (True, ["written", "written"])):
        ends.clear()
        writers = [threading.Thread(target=write, args=(who, force)) for who in "ab"]
        [one.start() for one in writers]
        [one.join() for one in writers]
        assert sorted(ends) == both
        assert paths[0].read_text() == paths[1].read_text()


def test_15_a_model_is_not_replaced_by_another_of_the_same_instant(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    savez = np.savez

    def other_first(file, **parts):
        path.write_text("of another process")
        savez(file, **parts)

    monkeypatch.setattr(np, "savez", other_first)
    with pytest.raises(FileExistsError, match="exists"):
        save_model(MeanGraph(2).fit([X]), path)
    assert path.read_text() == "of another process"


def test_15_permissions_stay(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("secret")
    path.chmod(0o600)
    write_together({path: lambda part: part.write_text("new")}, force=True)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


# ---- 16: spreadsheets and terminals --------------------------------------------------------------


@pytest.mark.slow
def test_16_formulas_and_escapes_of_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = ["=cmd()", "\x1b[31mred", *(f"s{i}" for i in range(N - 2))]
    table(["=a", "+b", "c", "d"], id=names).to_csv("x.csv", index=False)
    table(id=names, group=np.where(X[:, 0] > 0, "=x", "y")).to_csv("known.csv", index=False)
    fit = ["fit", "x.csv", "--method", "concatkmeans", "--clusters", "2", "--report", "r.html"]
    assert main([*fit, "--annotate", "known.csv", "--figures", "f", "--safe-ids"]) == 0
    for file in [tmp_path / "labels.csv", *(tmp_path / "f").glob("*.csv")]:
        fields = [field for row in csv.reader(file.open(newline="")) for field in row]
        assert not [one for one in fields if one[:1] in ("=", "+", "@")], file
    assert "'=a" in (tmp_path / "f/markers.csv").read_text()
    assert '"safe":true' in (tmp_path / "r.html").read_text()
    pd.read_csv("x.csv").drop(index=1).add_prefix("x").to_csv("y.csv", index=False)
    assert main(["fit", "x.csv", "y.csv"]) == 2
    assert main(["fit", "x.csv", "y.csv", *fit[2:6], "--missing", "drop", "--force"]) == 0
    told = "".join(capsys.readouterr())
    assert "\\x1b[31mred" in told
    assert "\x1b" not in told


# ---- 17: messages that mislead -------------------------------------------------------------------


def test_17_messages(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def told(text, **how):
        Path("x.csv").write_text(text)
        with pytest.raises(ValueError) as error:  # noqa: PT011
            load_views(["x.csv"], **how)
        return str(error.value)

    assert "write thousands without a comma" in told('id,a\ns1,"21,453"\ns2,"1,453"\n')
    genes = told("gene,s1,s2\nA,1,2\nA,2,3\nB,1,5\nC,5,1\n")
    assert "samples='columns'" in genes
    assert "drop" not in genes
    Path("x.csv").write_text("id,a\ns1,True\ns2,False\n")
    assert load_views(["x.csv"]).views[0].tolist() == [[1], [0]]
    for X_ in (pd.DataFrame(X, columns=list("aabc")), [pd.DataFrame(X, columns=list("aabc"))]):
        with pytest.raises(ValueError, match="several columns are called 'a'"):
            ConcatKMeans(2).fit(X_)
    with pytest.raises(SystemExit, match="2"):
        main(["fit", "x.csv", "--k", "3"])
    assert "unrecognized arguments: --k" in capsys.readouterr().err


def test_17_known_may_be_one_column():
    model = ConcatKMeans(2, random_state=0).fit([X])
    known = pd.Series(np.where(X[:, 0] > 0, "a", "b"), name="group")
    assert [one.column for one in model.explain([X], known=known).known] == ["group"]
    frame = table().set_index(pd.Index([f"s{i}" for i in range(N)]))
    known.index = frame.index
    found = ConcatKMeans(2, random_state=0).fit([frame]).explain([frame], known=known.iloc[ORDER])
    assert found.known[0].n_samples == N


# ---- 12: processes -------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_12_a_fork_does_not_wait_for_a_thread_that_it_lacks():
    held, done = threading.Event(), threading.Event()

    def hold():
        with own_warnings():
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        free = messages._one_at_a_time.acquire(timeout=2)
        os._exit(0 if free else 1)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert status == 0


# ---- 14: streams, names and settings -------------------------------------------------------------


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_14_closed_streams(tmp_path, monkeypatch, closed):
    monkeypatch.chdir(tmp_path)
    table(id=IDS).to_csv("x.csv", index=False)
    monkeypatch.setattr(sys, closed, None)  # as Python sets them
    assert main(["fit", "x.csv", "--method", "grmsc", "--clusters", "2"]) == 0
    assert main(["fit", "nothing.csv"]) == 2
    assert ConsensusClusterer(members=[ConcatKMeans(2), ConcatKMeans(3)], verbose=1).fit([X])


def test_14_a_name_that_is_no_text_is_refused_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table(id=IDS).to_csv("x.csv", index=False)
    odd = "caf\udce9.csv"
    table(id=IDS).to_csv(odd, index=False)
    for words in ([odd], ["x.csv", "--out", odd]):
        assert main(["fit", *words, "--clusters", "2", "--method", "concatkmeans"]) == 2
        told = capsys.readouterr()
        assert "caf\\udce9.csv' is not UTF-8: rename it" in told.err
        assert not told.out


def test_14_the_date_of_a_report_is_read_first(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table(id=IDS).to_csv("x.csv", index=False)
    for wrong in ("abc", "1e9", str(10**20)):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        assert main(["fit", "x.csv", "--clusters", "2", "--report", "r.html"]) == 2
        assert f"SOURCE_DATE_EPOCH={wrong!r} is no" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [{"sha256": None}, {"sha256": []}, {"sha256": [3]},
                                   {"labels_sha256": 3}, {"asked": {"files": []}}])  # fmt: skip
def test_14_settings_that_are_not_whole_are_named(tmp_path, monkeypatch, capsys, wrong):
    monkeypatch.chdir(tmp_path)
    table(id=IDS).to_csv("x.csv", index=False)
    main(["fit", "x.csv", "--method", "concatkmeans", "--clusters", "2"])
    settings = json.loads(Path("labels.json").read_text())
    Path("labels.json").write_text(json.dumps(settings | wrong))
    assert main(["fit", "--repeat", "labels.json"]) == 2
    told = capsys.readouterr().err
    assert re.search("labels.json(: 'files' and| is not the settings file of a run)", told)
