"""Input that was misread without a word, and calls that ended without a sentence, one test each."""

import warnings

import numpy as np
import pandas as pd
import polars
import pytest

from polyspan import ConcatKMeans, ConsensusClusterer
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
