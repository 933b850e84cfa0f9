"""Scattered missing values: filled in, reported, and nothing else is touched."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.preprocessing import StandardScaler

from polyspan.inputs import impute
from polyspan.io.filling import fill

rng = np.random.default_rng(0)
WHOLE = rng.normal(size=(30, 8)) * 10.0 ** np.arange(-4, 4)  # columns of very different spread
HOLES = np.where(rng.random(WHOLE.shape) < 0.05, np.nan, WHOLE)
KNOWN = ~np.isnan(HOLES)


def by_neighbors(X):
    scaler = StandardScaler().fit(X)  # leaves NaN out
    return scaler.inverse_transform(KNNImputer().fit_transform(scaler.transform(X)))


@pytest.mark.parametrize(
    ("how", "reference"),
    [("median", SimpleImputer(strategy="median").fit_transform), ("knn", by_neighbors)],
)
def test_as_scikit_learn_does(how, reference):
    before = HOLES.copy()
    (found,), (note,) = impute([HOLES], how, max_missing=1.0)
    np.testing.assert_allclose(found, reference(HOLES), rtol=1e-10)
    np.testing.assert_array_equal(found[KNOWN], WHOLE[KNOWN])  # to the bit
    np.testing.assert_array_equal(HOLES, before)
    n = int((~KNOWN).sum())
    assert note.startswith(f"view 0: {n} of 240 values ({n / 240:.1%}) filled in by the ")


def test_none_and_whole_views_are_as_they_were():
    views, notes = impute({"a": HOLES, "b": WHOLE}, "none")
    assert views["a"] is HOLES
    assert notes == []
    assert impute([WHOLE]).views[0] is WHOLE


def test_the_cut_off_is_for_columns_first():
    X = WHOLE.copy()
    X[:7, 0] = np.nan  # 7 of 30 are over .2
    X[20, :3] = np.nan  # 2 of the 7 columns left
    X[21, 1] = np.nan  # 1 of 7
    X[3, 5] = np.nan  # 2 of 8, but 1 of the 7
    found = fill(X, "median", 0.2)
    assert found.kept.tolist() == [False] + [True] * 7
    assert np.flatnonzero(found.lost).tolist() == [20]
    assert np.isnan(found.matrix[20]).all()
    assert np.isfinite(np.delete(found.matrix, 20, axis=0)).all()
    assert found.matrix[21, 0] == np.median(np.delete(WHOLE[:, 1], [20, 21]))
    assert found.n_filled == 2
    exactly = fill(np.where(np.arange(30)[:, None] < [6, *[0] * 7], np.nan, WHOLE), "median", 0.2)
    assert exactly.kept.all()  # .2 is not more than .2


def test_samples_without_the_view_stay_so_and_do_not_count():
    X = HOLES.copy()
    X[:10] = np.nan
    found = fill(X, "median", 0.3)  # with the 10 rows, all columns would be over it
    assert np.isnan(found.matrix[:10]).all()
    assert np.isfinite(found.matrix[10:]).all()
    assert not found.lost.any()
    assert found.kept.all()


def test_columns_without_any_value_go_whatever_the_cut_off():
    X = WHOLE.copy()
    X[:, 3] = np.nan
    found = fill(X, "knn", 1.0)
    np.testing.assert_array_equal(found.matrix, np.delete(WHOLE, 3, axis=1))


def test_frames_stay_frames():
    table = pd.DataFrame(HOLES, index=[f"s{i}" for i in range(30)], columns=list("abcdefgh"))
    table.iloc[:20, 2] = np.nan
    (found,), (note,) = impute((table,))
    assert list(found.columns) == list("abdefgh")
    assert found.index.equals(table.index)
    assert "1 column left out: more than 20% missing (c)" in note


def test_what_is_refused():
    holed = sparse.csr_array(np.where(KNOWN, 0.0, np.nan))
    with pytest.raises(
        ValueError, match=r"view 'a' is sparse and contains NaN: give it as a dense"
    ):
        impute({"a": holed})
    plain = sparse.csr_array(WHOLE)
    assert impute([plain]).views[0] is plain
    with pytest.raises(ValueError, match=r"impute must be 'median', 'knn' or 'none'; got 'mean'"):
        impute([HOLES], "mean")
    with pytest.raises(ValueError, match="max_missing must be a share from 0 to 1; got 5"):
        impute([HOLES], max_missing=5)
    with pytest.raises(ValueError, match="impute takes a list or a dictionary of 2-D arrays"):
        impute(HOLES)
