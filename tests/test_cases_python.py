"""Mistakes that people make in Python, each with its answer; nothing is silently wrong.

`test_cases_shell.py` has those of the shell.
"""

import json
import warnings
from datetime import UTC, datetime

import anndata as ad
import mudata as md
import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import case as named
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from polyspan import (
    GRMSC,
    AnchorGRMSC,
    ConcatKMeans,
    ConsensusClusterer,
    MeanGraph,
    annotate,
    count_clusters,
    load_model,
    save_model,
)
from polyspan.datasets import load_dataset, load_views, make_subspaces
from polyspan.report import write_report

DATA = make_subspaces(40, 3, n_features=[8, 6], random_state=0)
IDS = [f"m{i}" for i in range(40)]
WHEN = datetime(2026, 1, 1, tzinfo=UTC)
SHUFFLED = np.random.default_rng(0).permutation(40)
A, B = (pd.DataFrame(X, index=IDS).add_prefix("f") for X in DATA.views)
B2 = B.iloc[SHUFFLED]
PARTLY = B.iloc[SHUFFLED[:35]]


def grmsc(**params):
    return GRMSC(3, n_neighbors=5, random_state=0, **params)


def consensus(**params):
    members = [ConcatKMeans(), MeanGraph()]
    return ConsensusClusterer(3, members=members, random_state=0, **params)


def quiet(model, X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


PLAIN = grmsc().fit_predict(DATA.views)

# ---- refused, in one sentence --------------------------------------------------------------------

REFUSED = {
    "tables overlap in part": (
        lambda: grmsc().fit([A, PARTLY]),
        r"^Only 35 of 40 samples are in every view by their ids: view 1 lacks 5 \('m\d+', 'm\d+', "
        r"'m\d+', \.\.\.\); fit\(load_views\(X, missing='drop'\)\) drops the others, and "
        r"missing='keep' keeps them",
    ),
    "a subset of default indexes": (
        lambda: grmsc().fit([A.reset_index(drop=True), B.reset_index(drop=True).iloc[5:]]),
        "^Only 35 of 40 samples are in every view .*view 1 lacks 5 .'0', '1', '2', ...",
    ),
    "ids share nothing": (
        lambda: grmsc().fit([A, B.rename(index=lambda one: f"p{one}")]),
        "^no sample is in every view by its id .view 0 has 'm0', 'm1', 'm2', ...; "
        "view 1 has 'pm0', .*: 40 agree with id_trim='.p'; "
        "give all tables the same ids in their index",
    ),
    "ids in a column": (
        lambda: grmsc().fit([numbered(A), numbered(B).iloc[SHUFFLED]]),
        "^column 'sample_id' holds the same whole numbers, all different, in every view: if these "
        "are the ids, use them as the index .set_index of pandas., otherwise drop them",
    ),
    "ids in a column of polars": (
        lambda: grmsc().fit([pl.from_pandas(numbered(one)) for one in (A, B2)]),
        "^column 'sample_id' holds the same whole numbers, all different, in every view",
    ),
    "values under a mask": (
        lambda: grmsc().fit([np.ma.masked_less(DATA.views[0], -1), B]),
        "^view 0 contains NaN",
    ),
    "dates in a table": (
        lambda: load_views([A.assign(visit=pd.Timestamp("2024-05-01")), B]),
        "^table 1: column 'visit' holds text .'2024-05-01 00:00:00'.: leave it out",
    ),
    "times in a table": (
        lambda: load_views([A.assign(stay=pd.Timedelta(days=3)), B]),
        "^table 1: column 'stay' holds text .'3 days 00:00:00'.",
    ),
    "ids are doubled": (
        lambda: grmsc().fit({"rna": A, "protein": B.rename(index={"m3": "m2"})}),
        "^view 'protein' has 1 repeated id in its index .'m2' is sample 3 and sample 4.: give",
    ),
    "ids are empty": (
        lambda: grmsc().fit([A.rename(index={"m3": None}), B]),
        "^view 0 has 1 sample without an id in its index .the first is sample 4.: give every",
    ),
    "an array beside tables in different orders": (
        lambda: grmsc().fit([A, B2, DATA.views[0]]),
        "^view 2 has no ids, and those of view 0 and view 1 are not the same in the same order",
    ),
    "genes in rows": (
        lambda: grmsc().fit([A.T, B.T]),
        "^Only 6 of 8 samples are in every view",
    ),
    "the same genes in rows": (
        lambda: grmsc().fit([A.T, A.T + 1]),
        r"^view 0 and view 1 share 40 of 40 column names \('m0', 'm1' and 38 more\), as if the "
        r"columns were the samples: use fit\(load_views\(X, samples='columns'\)\) if they are",
    ),
    "the same genes in rows, by load_views": (
        lambda: load_views([A.T, A.T + 1]),
        "^table 1 and table 2 share 40 of 40 column names .*use samples='columns' if",
    ),
    "known classes in a table": (
        lambda: load_views([A.assign(subtype=DATA.labels), B]),
        "^table 1: column 'subtype' may hold known classes",
    ),
    "known classes in a table that is fitted": (
        lambda: grmsc().fit([A.assign(subtype=DATA.labels), B]),
        r"^view 0: column 'subtype' may hold known classes, .*: drop from the table, or use like "
        r"any other with fit\(load_views\(X, keep=\['subtype'\]\)\)",
    ),
    "a second view as y": (
        lambda: grmsc().fit(A, B),
        r"^y has more than one column, so it is a view: pass all views as one list, fit\(\[A, B\]",
    ),
    "a second view as y of fit_predict": (
        lambda: consensus().fit_predict(DATA.views[0], DATA.views[1]),
        r"^y has more than one column, .* fit\(\[A, B\]\)\.$",
    ),
    "a list of views as y": (
        lambda: AnchorGRMSC(3).fit(DATA.views[0], DATA.views[1:]),
        "^y has more than one column",
    ),
    "a file name": (
        lambda: grmsc().fit("rna.csv"),
        r"^X names a file \('rna.csv'\), which fit does not read: use fit\(load_views\(\['rna.csv'",
    ),
    "file names": (
        lambda: consensus().fit(["rna.csv", "protein.csv"]),
        "^X names files .'rna.csv', 'protein.csv'., which fit does not read: use fit.load_views",
    ),
    "file names in a dict": (
        lambda: grmsc().fit({"rna": "rna.csv", "protein": DATA.views[1]}),
        "^X names a file .'rna.csv'., which fit does not read",
    ),
    "a csv file of AnchorGRMSC": (
        lambda: AnchorGRMSC(3).fit(["rna.csv", "protein.csv"]),
        "^view 0: cannot read rna.csv; .*load_views of polyspan.datasets reads others",
    ),
    "a number of clusters that is auto": (
        lambda: GRMSC("auto").fit(DATA.views),
        r"^GRMSC: n_clusters must be a whole number >= 1 \(ConsensusClusterer\(n_clusters='auto'\) "
        r"estimates it\); got 'auto'\.$",
    ),
    "one column of text": (
        lambda: grmsc().fit([A.assign(town="Ulm"), B]),
        "^view 0 has 1 column that is not numbers .'town'.: drop or encode it first",
    ),
    "columns of text in polars": (
        lambda: grmsc().fit([pl.DataFrame({"a": ["x"] * 40, "b": ["y"] * 40}), B]),
        "^view 0 has 2 columns that are not numbers .'a', 'b'.: drop or encode them first",
    ),
    "a lazy table": (
        lambda: grmsc().fit([pl.LazyFrame(DATA.views[0])]),
        "^view 0 is a LazyFrame: call its collect",
    ),
    "nothing": (
        lambda: grmsc().fit(None),
        "^X is a NoneType: give a 2-D array or table, with samples in rows",
    ),
    "a generator": (
        lambda: grmsc().fit(X for X in DATA.views),
        "^X is a generator: give a 2-D array or table",
    ),
    "a MuData in a list": (
        lambda: grmsc().fit([mudata(), A]),
        "^X holds a MuData, which has several views itself",
    ),
    "views=... of a MuData": (
        lambda: grmsc(views=[slice(0, 3)]).fit(mudata()),
        "^views=... cuts one 2-D array into views, but X is already a MuData of 2 views",
    ),
    "an AnnData without X": (
        lambda: grmsc().fit(ad.AnnData(obs=pd.DataFrame(index=IDS))),
        "^the AnnData has no X, or an empty X: .*obsm or layers name other matrices",
    ),
    "new samples in part": (
        lambda: grmsc().fit([A, B]).predict([A[:9], B[:8]]),
        "^Only 8 of 9 samples are in every view",
    ),
    "new features": (
        lambda: grmsc().fit([A, B]).predict([A, B.rename(columns={"f1": "g", "f2": "h"})]),
        "^view 1 lacks 2 features of the fit .'f1', 'f2'.: pass the same features",
    ),
    "a graph of other samples": (
        lambda: grmsc(graphs=[graph(IDS), graph([f"p{one}" for one in IDS])]).fit([A, B]),
        "^GRMSC: the graph of view 1 has 0 of the 40 samples in its index",
    ),
    "an unknown key": (
        lambda: load_views(cells(A), obsm=["X_pca"]),
        "^AnnData 1 has no obsm key 'X_pca', nor any other",
    ),
    "an unknown layer": (
        lambda: load_views(mudata(), layers=["rna:count"]),
        "^MuData 1 has no layer 'rna:count'",
    ),
    "keys without AnnData": (
        lambda: load_views([A, B], obsm=["X_pca"]),
        "^obsm names matrices of AnnData .* and none is given: leave it out",
    ),
    "a key instead of a list": (
        lambda: load_views(cells(A), layers="X"),
        r"^layers must be a list of keys, such as \['X'\]; got 'X'",
    ),
    "load_views of a number": (
        lambda: load_views(3),
        "^load_views takes a list of files, tables, AnnData or MuData; got int",
    ),
    "load_views of words": (
        lambda: load_views([np.array([["a"]]), A]),
        "^table 1 must be a file, a table, an AnnData, a MuData or a 2-D array of numbers",
    ),
    "load_views of a dict of files": (
        lambda: load_views({"rna": "rna.csv"}),
        "^load_views names files by themselves: give 'rna.csv' in a list",
    ),
    "load_views of a file that is not there": (
        lambda: load_views("rna.csv"),
        "^there is no file rna.csv",
    ),
    "load_views of tables that overlap": (
        lambda: load_views([A, PARTLY]),
        "^5 samples lack a view: 5 lack table 2 .*missing='drop'",
    ),
    "columns of one name": (
        lambda: load_views([A.rename(columns={"f1": "f0"}), B]),
        "^table 1: several columns are called 'f0'",
    ),
    "annotate a table": (
        lambda: annotate(A, grmsc().fit([A, B])),
        "^annotate takes an AnnData or a MuData; got DataFrame",
    ),
    "annotate other samples": (
        lambda: annotate(cells(A.rename(index=lambda one: f"p{one}")), grmsc().fit([A, B])),
        "^the model and the data have no sample in common .the model has 'm0', the data 'pm0'",
    ),
    "annotate more samples, without ids": (
        lambda: annotate(cells(A), grmsc().fit([X[:30] for X in DATA.views])),
        "^the model has 30 samples without ids, and the data 40",
    ),
}


def numbered(frame):
    """A table with numbers of the samples in a column."""
    return frame.reset_index(drop=True).assign(sample_id=range(100, 140))


def cells(frame):
    return ad.AnnData(frame.to_numpy(), obs=pd.DataFrame(index=frame.index))


def mudata(*frames):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of changes in the next version of mudata
        pairs = zip(("rna", "protein"), frames or (A, B2), strict=True)
        return md.MuData({name: cells(one) for name, one in pairs})


def graph(ids, order=None):
    """A graph of all pairs, closer pairs with more weight, as a table."""
    W = np.exp(-np.abs(np.subtract.outer(DATA.labels, DATA.labels)))
    found = pd.DataFrame(W, index=ids, columns=ids)
    return found if order is None else found.iloc[order, order]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    call, wrong = REFUSED[name]
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=wrong) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_known_classes_can_be_kept():
    with_class = [A.assign(subtype=DATA.labels), B]
    found = grmsc().fit(load_views(with_class, keep=["subtype"]))
    assert found.n_features_in_ == A.shape[1] + B.shape[1] + 1


def test_an_age_is_noted():
    with pytest.warns(UserWarning, match=r"^view 1: column 'Age' is used as a feature; .* drop it"):
        grmsc().fit([A, B.assign(Age=np.arange(40.0))])


# ---- taken, and right ----------------------------------------------------------------------------

RIGHT = {
    "tables in different orders": lambda: [A, B2],
    "tables in different orders, by name": lambda: {"rna": A, "protein": B2},
    "default indexes, shuffled": lambda: [
        A.reset_index(drop=True),
        B.reset_index(drop=True).iloc[SHUFFLED],
    ],
    "numbers and text as ids": lambda: [
        A.set_axis(range(7, 47)),
        B.set_axis([str(i) for i in range(7, 47)]).iloc[SHUFFLED],
    ],
    "several levels of an index": lambda: [
        A.set_axis(pd.MultiIndex.from_product([["a", "b"], range(20)])),
        B.set_axis(pd.MultiIndex.from_product([["a", "b"], range(20)])).iloc[SHUFFLED],
    ],
    "default indexes": lambda: [A.reset_index(drop=True), B.reset_index(drop=True)],
    "a data set": lambda: DATA,
    "tables by load_views": lambda: load_views([A, B2]),
    "polars with an id column": lambda: load_views(
        [pl.from_pandas(one.reset_index(names="id")) for one in (A, B2)]
    ),
    "a MuData": mudata,
    "a list of AnnData": lambda: [cells(A), cells(B2)],
    "samples in columns": lambda: load_views([A.T, B2.T], samples="columns"),
    "keys of an AnnData": lambda: load_views(keyed(), obsm=["protein"], layers=["X"]),
}


def keyed():
    found = cells(A)
    found.obsm["protein"] = B  # a table
    return found


@pytest.mark.parametrize("name", RIGHT)
def test_right(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # and nothing to warn of
        found = grmsc().fit(RIGHT[name]())
    np.testing.assert_array_equal(found.labels_, PLAIN)


def test_another_order_gives_other_labels():
    """Otherwise no test above could fail."""
    wrong = [DATA.views[0], DATA.views[1][SHUFFLED]]
    assert np.mean(grmsc().fit_predict(wrong) != PLAIN) > 0.2


def test_by_order_where_only_some_have_ids_is_told():
    told = r"^view 1 has no ids: its rows are taken to be the samples of view 0, in that order\.$"
    for other in (DATA.views[1], B.reset_index(drop=True), pl.from_pandas(B)):
        with named(type(other).__name__), pytest.warns(UserWarning, match=told):
            np.testing.assert_array_equal(grmsc().fit_predict([A, other]), PLAIN)


def test_a_mudata_gives_the_order_of_its_samples():
    both = mudata()
    both.mod["rna"] = cells(A.iloc[::-1])  # another order than that of the whole
    assert list(both.obs_names) == IDS
    found = grmsc().fit(both)
    assert found.sample_ids_.tolist() == IDS
    np.testing.assert_array_equal(found.labels_, PLAIN)


@pytest.mark.parametrize("missing", ["drop", "keep"])
def test_the_advice_for_tables_that_overlap_works(missing):
    found = grmsc().fit(load_views([A, PARTLY], missing=missing)).labels_frame()
    kept = [one for one in IDS if missing == "keep" or one in PARTLY.index]
    assert found.iloc[:, 0].tolist() == kept


def test_y_of_one_column_is_ignored():
    for y in (DATA.labels, DATA.labels[:, None], pd.Series(DATA.labels), list(DATA.labels)):
        np.testing.assert_array_equal(grmsc().fit([A, B], y).labels_, PLAIN)


def test_new_samples_are_matched_like_those_of_the_fit():
    model = grmsc().fit({"rna": A, "protein": B})
    wanted = model.predict({"rna": A[:9], "protein": B[:9]})
    turned = B[:9].iloc[::-1, ::-1]  # other orders of samples and features
    np.testing.assert_array_equal(model.predict({"rna": A[:9], "protein": turned}), wanted)
    np.testing.assert_array_equal(model.predict({"protein": turned, "rna": A[:9]}), wanted[::-1])


def test_kernels_and_graphs_are_matched_in_rows_and_columns():
    K = [X @ X.T for X in DATA.views]
    wanted = grmsc(precomputed="kernel").fit(K)
    one, other = (pd.DataFrame(one, index=IDS, columns=IDS) for one in K)
    model = grmsc(precomputed="kernel").fit([one, other.iloc[SHUFFLED, SHUFFLED]])
    np.testing.assert_array_equal(model.affinity_matrix_, wanted.affinity_matrix_)
    new = [one.iloc[:5], other.iloc[:5, SHUFFLED]]
    np.testing.assert_array_equal(model.predict(new), wanted.predict([k[:5] for k in K]))

    wanted = grmsc(graphs=[graph(IDS).to_numpy()] * 2).fit(DATA.views)
    model = grmsc(graphs=[graph(IDS), graph(IDS, SHUFFLED)]).fit([A, B2])
    np.testing.assert_array_equal(model.affinity_matrix_, wanted.affinity_matrix_)


def test_files_in_chunks_with_ids_in_another_order_are_refused(tmp_path):
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, frame in zip(paths, (A, B2), strict=True):
        frame.to_parquet(path)
    wrong = r"^view 1 has other ids in its index than view 0, or in another order \(row 0: 'm\d+' "
    with pytest.raises(ValueError, match=wrong):
        AnchorGRMSC(3, n_anchors=10).fit(paths)
    B.to_parquet(paths[1])
    assert AnchorGRMSC(3, n_anchors=10, random_state=0).fit(paths).labels_.shape == (40,)
    with pytest.raises(ValueError, match=r"^view 1 is a DataFrame in memory beside"):
        AnchorGRMSC(3, n_anchors=10).fit([paths[0], B2])


def test_a_pipeline_keeps_the_ids():
    both = pd.concat([A, B.add_prefix("p")], axis=1)
    model = grmsc(views=[slice(0, 8), slice(8, 14)])
    steps = make_pipeline(StandardScaler().set_output(transform="pandas"), model).fit(both)
    assert steps[-1].labels_frame()["sample"].tolist() == IDS


# ---- what comes out ------------------------------------------------------------------------------


def test_scattered_missing_values_of_tables_are_filled_in():
    holes = B2.mask(np.random.default_rng(0).random(B2.shape) < 0.03)
    found = grmsc().fit(load_views([A, holes], impute="median", max_missing=0.5))
    assert found.labels_.shape == (40,)
    with pytest.raises(ValueError, match=r"^view 1 contains NaN"):
        grmsc().fit([A, holes])


def test_labels_frame():
    found = grmsc().fit([A.rename_axis("mouse"), B2]).labels_frame()
    assert list(found) == ["mouse", "cluster"]
    assert found["mouse"].tolist() == IDS
    np.testing.assert_array_equal(found["cluster"], PLAIN)
    numbered = grmsc().fit(DATA.views).labels_frame()
    assert numbered["sample"].tolist() == list(range(40))


def test_labels_frame_has_the_certainty_of_a_consensus():
    members = [GRMSC(lam1=x, n_neighbors=5) for x in (1.0, 10.0, 100.0)]
    members += [ConcatKMeans(), MeanGraph(), *(MeanGraph(n_neighbors=k) for k in (5, 6, 7, 8, 9))]
    members += [ConcatKMeans(n_init=k) for k in range(2, 20)]
    model = ConsensusClusterer(3, members=members, random_state=0).fit([A, B2])
    assert list(model.labels_frame()) == ["sample", "cluster", "certainty"]
    np.testing.assert_array_equal(model.labels_frame()["certainty"], model.certainty_)


def test_ids_are_those_of_the_last_fit_and_are_saved(tmp_path):
    model = grmsc().fit([A.rename_axis("mouse"), B2])
    again = load_model(save_model(model, tmp_path / "model.npz"))
    pd.testing.assert_frame_equal(again.labels_frame(), model.labels_frame())
    assert not hasattr(model.fit(DATA.views), "sample_ids_")
    assert grmsc().fit([A.set_axis(range(7, 47)), B.set_axis(range(7, 47))]).sample_ids_[0] == 7


@pytest.mark.parametrize("kind", ["h5ad", "h5mu"])
def test_annotate_writes_by_id(kind, tmp_path):
    data = cells(A) if kind == "h5ad" else mudata()
    model = quiet(consensus(), load_views([A.iloc[SHUFFLED[:30]], B2], missing="drop"))
    with pytest.warns(UserWarning, match="^10 of 40 samples were not clustered .*first is 'm"):
        annotate(data, model, key="mine")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.write(tmp_path / f"out.{kind}")
        read = ad.read_h5ad if kind == "h5ad" else md.read_h5mu
        again = read(tmp_path / f"out.{kind}")
    wanted = {IDS[i]: str(label) for i, label in zip(SHUFFLED[:30], model.labels_, strict=True)}
    found = again.obs["mine"].dropna()
    assert found.to_dict() == wanted
    told = again.uns["mine"]
    assert told["method"] == "ConsensusClusterer"
    assert told["parameters"]["n_clusters"] == 3
    assert len(json.loads(told["evidence"])["table"]) == 2
    assert "mine_certainty" not in again.obs  # a consensus of two has none


def test_annotate_replaces_an_earlier_certainty():
    data = cells(A)
    model = grmsc().fit(data)
    model.certainty_ = np.linspace(0, 1, 40)
    annotate(data, model)
    np.testing.assert_array_equal(data.obs["polyspan_certainty"], model.certainty_)
    del model.certainty_
    annotate(data, model)
    assert "polyspan_certainty" not in data.obs
    assert data.obs["polyspan"].tolist() == [str(one) for one in model.labels_]


# ---- a budget of nothing -------------------------------------------------------------------------


def test_a_budget_of_nothing_gives_no_certainty_and_says_who_did_not_run():
    told = (
        r"no certainty is given, because the consensus has 1 member of 1 family, .* "
        r"19 of 20 members did not run \(3 MeanGraph, 12 SelfGraph, .*\): the budget of 0 s was"
    )
    with pytest.warns(UserWarning, match=told):
        model = ConsensusClusterer(3, budget=0, random_state=0).fit([A, B2])
    assert model.certainty_ is None
    assert "19 of 20 members did not run" in str(model)
    assert "<p>19 of 20 members did not run" in model._repr_mimebundle_()["text/html"]


def test_members_that_fail_and_members_that_do_not_run_are_two_sentences():
    broken = GRMSC(n_neighbors=99)
    members = [broken, ConcatKMeans(), MeanGraph()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConsensusClusterer(3, members=members, budget=0, random_state=0).fit([A, B2])
    lines = str(model).splitlines()
    first = next(i for i, line in enumerate(lines) if "samples (" in line) + 1
    failed = "1 of 3 members failed (1 GRMSC): ValueError: GRMSC: n_neighbors=99 must be below"
    assert lines[first].startswith(failed)
    assert (
        lines[first + 1] == "1 of 3 members did not run (1 MeanGraph): the budget of 0 s was spent."
    )


@pytest.mark.slow
def test_count_clusters_matches_too():
    one, _ = count_clusters([A, B2], random_state=0)
    assert one == count_clusters(DATA.views, random_state=0)[0]
    with pytest.raises(ValueError, match=r"^Only 35 of 40 samples are in every view"):
        count_clusters([A, PARTLY])


@pytest.mark.slow
def test_a_report_matches_tables_too(tmp_path):
    model = grmsc().fit([A, B2])
    rest = {"view_names": ["a", "b"], "sample_ids": IDS, "estimator": model, "date": WHEN}
    one = write_report(tmp_path / "one.html", views=[A, B2], **rest)
    names = [list(A), list(B2)]  # tables know them
    other = write_report(tmp_path / "other.html", views=DATA.views, feature_names=names, **rest)
    assert one.read_text("utf-8") == other.read_text("utf-8")


def test_nutrimouse_with_shuffled_rows(omics_dir):
    data = load_dataset("nutrimouse")
    ids = data.extra["id"]
    order = np.random.default_rng(1).permutation(len(ids))
    one, other = (pd.DataFrame(X, index=ids) for X in data.views)
    wanted = GRMSC(2, random_state=0).fit_predict(data)
    found = GRMSC(2, random_state=0).fit([one, other.iloc[order]])
    np.testing.assert_array_equal(found.labels_, wanted)
    assert found.labels_frame()["sample"].tolist() == ids.tolist()
    by_order = [one.to_numpy(), other.iloc[order].to_numpy()]  # what is wrong, and must differ
    assert np.any(GRMSC(2, random_state=0).fit_predict(by_order) != wanted)
