"""Text tables, read row by row: what becomes of ids, words and odd rows, and what it costs."""

import tracemalloc

import numpy as np
import pytest
from two_tables import write

from polyspan.io import load_views, text
from polyspan.io.text import read_csv

pytestmark = pytest.mark.usefixtures("folder")


def test_ids_stay_as_they_are(folder):
    write("x.csv", "a,code,visit_id,w\n007,01,1_0,4\n008,02,1_1,5\n")
    found = read_csv(folder / "x.csv", wanted=["code"])
    assert found["a"] == ["007", "008"]
    assert found["code"] == ["01", "02"]
    assert found["visit_id"] == ["1_0", "1_1"]
    assert found["w"].tolist() == [4, 5]
    assert found.words == {"visit_id"}
    assert found.numbers(["a", "code"]).tolist() == [[7, 1], [8, 2]]


def test_words_that_come_late_are_kept_from_the_start(folder):
    write("x.csv", "id,u,v\n" + "".join(f"s{i},{i},{i}\n" for i in range(40)) + "s40,40,many\n")
    found = read_csv(folder / "x.csv")
    assert found["v"] == [*map(str, range(40)), "many"]
    assert found["u"].tolist() == list(range(41))
    with pytest.raises(ValueError, match=r"x\.csv: column 'v' holds text \('many'\): leave it out"):
        load_views(["x.csv"])


@pytest.mark.parametrize(
    "field", ["", "NA", "na", " NaN ", "N/A", "#N/A", "null", "None", "<NA>", "nan"]
)
def test_every_spelling_of_missing(folder, field):
    write("x.csv", f"id,u,v\nfox,1,{field}\nbee,{field},2\n")
    found = read_csv(folder / "x.csv")
    np.testing.assert_array_equal(found.numbers(["u", "v"]), [[1, np.nan], [np.nan, 2]])
    assert found.words == {"id"}


def test_decimal_commas_and_missing_values(folder):
    rows = "".join(f"s{i};{i},5;NA;-1,5e3\n" for i in range(20))
    write("x.csv", f"id;u;v;w\n{rows}t;7;;3\n")
    found = read_csv(folder / "x.csv").numbers(["u", "v", "w"])
    np.testing.assert_array_equal(found[:, 0], [*(np.arange(20) + 0.5), 7])
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[:, 2], [-1500.0] * 20 + [3])


def test_rows_of_another_length(folder):
    write("x.csv", "id,u,v\nfox,1,2\nbee,1\n")
    with pytest.raises(ValueError, match=r"x\.csv: row 3 has 2 fields, but the first has 3"):
        read_csv(folder / "x.csv")


def test_quotes_and_lines_inside_them(folder):
    write("x.csv", 'id,"a\nb"\n"fox, the red",1\n\n"bee ""x""",2\n')
    found = read_csv(folder / "x.csv")
    assert found["id"] == ["fox, the red", 'bee "x"']
    assert found["a\nb"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("my value\n3\n4\n", ["my value"]),  # one column, not two
        ("u v\n1 2\n3 4\n", ["u", "v"]),
        ('"u" "v"\n"red fox" 1 2\n"bee" 3 4\n', ["", "u", "v"]),  # write.table of R
        ('"u"\n"fox" 1\n"bee" 3\n', ["", "u"]),
        ('"u"\n"fox",1\n"bee",3\n', ["", "u"]),
    ],
)
def test_spaces_as_delimiters(folder, text, names):
    write("x.txt", text)
    assert list(read_csv(folder / "x.txt")) == names


def test_memory_is_a_small_multiple_of_the_file(folder):
    values = np.random.default_rng(0).normal(size=(200, 800))
    lines = (f"s{i}," + ",".join(map(repr, map(float, row))) for i, row in enumerate(values))
    write("x.csv", "id," + ",".join(f"g{j}" for j in range(800)) + "\n" + "\n".join(lines) + "\n")
    size = (folder / "x.csv").stat().st_size
    load_views(["x.csv"])  # imports
    tracemalloc.start()
    data = load_views(["x.csv"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(data.views[0], values)
    assert peak < 1.2 * size  # the numbers are .42 of it, and there is one copy and a half


def test_words_of_very_many_columns_are_not_all_kept(folder, monkeypatch):
    monkeypatch.setattr(text, "SHOWN", 3)
    write("x.csv", "id," + ",".join(f"w{j}" for j in range(9)) + "\nfox" + ",a" * 9 + "\n")
    found = read_csv(folder / "x.csv")
    assert list(found.text) == ["id", "w0", "w1", "w2"]
    assert len(found.words) == 10
    with pytest.raises(ValueError, match="the words of column 'w7' were not kept"):
        found["w7"]
    with pytest.raises(ValueError, match=r"9 columns hold text, 'w0'.*, 'w4'\] \.\.\., or encode"):
        load_views(["x.csv"])
