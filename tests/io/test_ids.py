"""Ids of tables: which column they are in, and which they are not in."""

import re
from itertools import product

import numpy as np
import pytest
from cases import case
from two_tables import IDS, ORDER, A, B, assert_matched, frame, rng

from polyspan.io import load_views
from polyspan.io.columns import is_id_name

pytestmark = pytest.mark.usefixtures("folder")


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
        ValueError, match=r"b\.csv has no column 'who' for id; it has 'code', 'x0', 'x1'"
    ):
        load_views(["a.csv", "b.csv"], id="who")
    np.save("c.npy", B)
    with pytest.raises(ValueError, match=r"c\.npy has no ids, so id cannot match it"):
        load_views(["a.csv", "c.npy"], id="who")


def test_pandas_row_numbers_are_no_ids():
    frame(ids=None).to_csv("a.csv")
    frame(B, ids=None).to_csv("b.csv")
    data = load_views(["a.csv", "b.csv"])
    assert_matched(data, "order")
    assert data.ids is None
    frame(B, ids=None).iloc[:5].to_csv("b.csv")  # row numbers in order are not ids
    with pytest.raises(ValueError, match=r"matched by order, .* a has 6, b has 5"):
        load_views(["a.csv", "b.csv"])
    frame(B, ids=None).iloc[ORDER].to_csv("b.csv")  # but these numbers moved with the rows
    assert_matched(load_views(["a.csv", "b.csv"]))
    frame(B, ids=None).to_csv("b.csv", index=False)
    assert_matched(load_views(["a.csv", "b.csv"]), "order")


NUMBERS = [40, 10, 60, 20, 50, 30]


def last(values, ids=NUMBERS, name="patient_id"):
    """A table with its ids in the last column."""
    return frame(values, ids=None).assign(**{name: ids})


def save(table, path, **kept):
    getattr(table, "to_" + path.split(".")[1])(path, **kept)


@pytest.mark.parametrize("name", ["patient_id", "Sample ID", "barcode", "visit_id"])
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
        rf"^b\.{ending} has no ids, only row numbers that are not in order \(3, 0, 5, \.\.\.\), "
        r"which cannot be matched to the ids of a\.csv \('patient_id'\): add an id column to"
    )
    with pytest.raises(ValueError, match=match):
        load_views(["a.csv", f"b.{ending}"])
    if ending == "csv":  # they are the ids if the user says so
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
        "a.csv: column 'patient_id' is used as a feature; if it is the id, use id='patient_id', "
        "otherwise leave it out: drop=['patient_id']"
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
        r"^a\.csv: column 'who' holds text .*: leave it out with drop=\['who'\], or encode it "
        r"as numbers; if 'who' is the id, use id='who'$"
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
        "b.npy has no ids: its rows are taken to be the samples of a.csv, in that order"
    ]
    with pytest.raises(ValueError, match=r"b\.npy has no ids, and those of a\.csv and b\.csv"):
        load_views(["a.csv", "b.csv", "b.npy"])


def test_dropping_the_ids_matches_by_order():
    data = load_views(["a.csv", "b.csv"], drop=["sample"])
    assert data.matched_by == "order"
    np.testing.assert_allclose(data.views[1], B[ORDER], rtol=0, atol=1e-12)


def test_ids_must_differ_and_be_there():
    frame(ids=["s0", "s1", "s2", "s1", "s4", "s5"]).to_csv("a.csv", index=False)
    with pytest.raises(
        ValueError,
        match=r"a\.csv has 1 repeated id in column 'sample' \('s1' is sample 2 and sample 4\)",
    ):
        load_views(["a.csv", "b.csv"])
    frame(ids=["s0", None, "s2", None, "s4", "s5"]).to_csv("a.csv", index=False)
    with pytest.raises(
        ValueError,
        match=r"a\.csv has 2 samples without an id in column 'sample' \(the first",
    ):
        load_views(["a.csv", "b.csv"])


def test_no_id_in_common():
    frame(B, ids=[f"t{i}" for i in range(6)], name="id").to_csv("b.csv", index=False)
    with pytest.raises(
        ValueError,
        match=r"no sample is in every view by its id \(a\.csv has 's0', 's1', 's2', \.\.\.; b\.",
    ):
        load_views(["a.csv", "b.csv"], missing="drop")


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ([f"TCGA-{i:02d}-01A" for i in range(6)], "id_trim='-01A$'"),
        ([f"tcga-{i:02d}" for i in range(6)], "id_trim='case'"),
    ],
)
def test_ids_that_are_spelled_differently_say_how_they_agree(ids, told):
    frame(ids=[f"TCGA-{i:02d}" for i in range(6)]).to_csv("a.csv", index=False)
    frame(B, ids=ids).iloc[ORDER].to_csv("b.csv", index=False)
    with pytest.raises(
        ValueError, match=rf"6 agree with {re.escape(told)}; write the ids in the same"
    ) as error:
        load_views(["a.csv", "b.csv"])
    assert "--drop" not in str(error.value)


def test_a_shared_column_of_different_numbers_is_asked_for():
    """Wherever it stands: it would be a feature, and rows would be matched by order."""
    for name, values, order in (("a.csv", A, range(6)), ("b.csv", B, ORDER)):
        last(values, name="MRN").iloc[list(order)].to_csv(name, index=False)
    with pytest.raises(ValueError, match=r"^column 'MRN' holds the same .* use id='MRN', oth"):
        load_views(["a.csv", "b.csv"])
    assert_matched(load_views(["a.csv", "b.csv"], id="MRN"))
    assert load_views(["a.csv", "b.csv"], drop=["MRN"]).matched_by == "order"


def test_features_of_one_name_are_refused_in_columns_too():
    frame().set_index("sample").T.set_axis(["TP53", "MYC", "TP53"]).to_csv("a.csv", index_label="")
    with pytest.raises(ValueError, match=r"^a\.csv: several features are called 'TP53'"):
        load_views(["a.csv"], samples="columns")


def test_ranks_are_no_ids():
    ranks = [rng.permuted(np.tile(np.arange(1, 7), (3, 1)), axis=1).T for _ in range(2)]
    for name, values in zip(("a.csv", "b.csv"), ranks, strict=True):
        frame(values, ids=None).add_prefix(name[0]).to_csv(name, index=False)
    data = load_views(["a.csv", "b.csv"])
    assert data.matched_by == "order"
    np.testing.assert_array_equal(data.views[1], ranks[1])


def test_tables_with_samples_in_columns():
    for name, values in (("a", A), ("b", B)):
        table = frame(values).set_index("sample").T
        table.index = [f"{name}{j}" for j in range(values.shape[1])]
        table.columns = range(1, 7)  # names that tables may share by chance
        table.to_csv(f"{name}.csv")
    with pytest.raises(ValueError, match="share column names: if those are the samples, use sam"):
        load_views(["a.csv", "b.csv"])
    frame(ids=None).to_csv("a.csv", index=False)
    np.save("b.npy", B.T)
    with pytest.raises(
        ValueError, match=r"one view seems to have them in columns: a is 6 x 3, b is 2 x 6"
    ):
        load_views(["a.csv", "b.npy"])
