"""Samples of several files that lack a view, and files that cannot be given."""

import numpy as np
import pytest
from two_tables import IDS, A, B, frame, rng

from polyspan.io import load_views

pytestmark = pytest.mark.usefixtures("folder")


def test_missing_fail_and_drop():
    frame(B).iloc[[5, 3, 1]].to_csv("b.csv", index=False)
    frame().iloc[:5].to_csv("a.csv", index=False)
    with pytest.raises(
        ValueError,
        match=r"4 samples lack a view: 1 lacks a \(s5\); 3 lack b \(s0, s2, s4\); use "
        r"missing='drop' to leave them out, which keeps the 2 of 6 samples",
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
        with pytest.raises(ValueError, match=r"^no sample is in every view by its id \(a\.csv has"):
            load_views(files, missing=missing)
    frame(third).iloc[5:].to_csv("c.csv", index=False)  # nothing links it to the others
    with pytest.raises(
        ValueError, match=r"^the views do not share ids \(.*; c\.csv has 's5'\): write"
    ):
        load_views(files, missing="keep")


def test_rows_without_any_value_lack_the_view():
    holes = A.copy()
    holes[2] = np.nan
    frame(holes).to_csv("a.csv", index=False)
    with pytest.raises(ValueError, match=r"1 sample lacks a view: 1 lacks a \(s2\)"):
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


# --- Paths. ---


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], "name at least one file"),
        (["no.csv"], "there is no file no.csv"),
        (["a.xls"], "a.xls is an old or open spreadsheet: save it as .xlsx or as CSV first"),
        (
            ["a.doc"],
            "a.doc is not a supported file: .* in one of .mat, .npz, .*.csv, .*.h5ad, .h5mu",
        ),
        (["a.npy.gz"], "a.npy.gz is not a supported file"),
        (["a.csv", "./a.csv"], "a.csv is given twice"),
        (["a.csv", "lam2=3"], "lam2=3 is not a supported file"),
    ],
)
def test_paths(files, words):
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        load_views(files)


def test_files_of_the_same_name_keep_their_paths(folder):
    (folder / "other").mkdir()
    frame(B).to_csv("other/a.csv", index=False)
    assert load_views(["a.csv", "other/a.csv"]).view_names == ["a.csv", "other/a.csv"]
