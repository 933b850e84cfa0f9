"""Text tables: what becomes of ids, words, decimals and odd rows, and what it costs."""

import gzip
import tracemalloc

import numpy as np
import pytest
from two_tables import write

from polyspan.io import load_file, load_views, text
from polyspan.io.text import read_text

pytestmark = pytest.mark.usefixtures("folder")


def test_ids_stay_as_they_are(folder):
    write("x.csv", "a,code,visit_id,w\n007,01,1_0,4\n008,02,1_1,5\n")
    found = read_text(folder / "x.csv", wanted=["code"])
    assert found["a"].tolist() == ["007", "008"]
    assert found["code"].tolist() == ["01", "02"]
    assert found["visit_id"].tolist() == ["1_0", "1_1"]
    assert found["w"].tolist() == [4, 5]
    np.testing.assert_array_equal(load_file("x.csv", views=["a", "w"]).views[0], [[7, 4], [8, 5]])


def test_words_that_come_late_are_kept_from_the_start(folder, monkeypatch):
    monkeypatch.setattr("pandas._libs.parsers.DEFAULT_BUFFER_HEURISTIC", 2**3)  # in small chunks
    write("x.csv", "id,u,v\n" + "".join(f"s{i},{i},0{i}\n" for i in range(40)) + "s40,40,many\n")
    found = read_text(folder / "x.csv")
    assert found["v"].tolist() == [*(f"0{i}" for i in range(40)), "many"]
    assert found["u"].tolist() == list(range(41))
    with pytest.raises(ValueError, match=r"x\.csv: column 'v' holds text \('many'\): leave it out"):
        load_views(["x.csv"])


@pytest.mark.parametrize(
    "field", ["", "NA", "na", " NaN ", "N/A", "#N/A", "null", "None", "<NA>", "nan"]
)
def test_every_spelling_of_missing(folder, field):
    write("x.csv", f"id,u,v\nfox,1,{field}\nbee,{field},2\n")
    found = load_file("x.csv", views=["u", "v"]).views[0]
    np.testing.assert_array_equal(found, [[1, np.nan], [np.nan, 2]])


def test_decimal_commas_and_missing_values(folder):
    rows = "".join(f"s{i};{i},5;NA;-1,5e3\n" for i in range(20))
    write("x.csv", f"id;u;v;w\n{rows}t;7;;3\n")
    found = load_file("x.csv", views=["u", "v", "w"]).views[0]
    np.testing.assert_array_equal(found[:, 0], [*(np.arange(20) + 0.5), 7])
    assert np.isnan(found[:, 1]).all()
    np.testing.assert_array_equal(found[:, 2], [-1500.0] * 20 + [3])


def test_decimal_commas_without_ids_and_late(folder):
    rows = "".join(f"{i};{i}\n" for i in range(20_000))  # more than is looked at before
    write("x.csv", f"u;v\n{rows}1,5;2,25\n")
    assert load_file("x.csv").views[0][-1].tolist() == [1.5, 2.25]
    write("x.csv", f"u;v\n1.5;2\n{rows}1,5;2,25\n")
    with pytest.raises(ValueError, match=r"numbers with a point \('1\.5'\) and with a comma \('1,"):
        load_file("x.csv")
    write("x.csv", f"u;v\n2;1.5\n{rows}1;2,25\n3,5;1\n")
    with pytest.raises(ValueError, match=r"numbers with a point \('1\.5'\) and with a comma"):
        load_file("x.csv")


@pytest.mark.parametrize("rows", ["fox,1,2\nbee,1\n", "fox,1,2\nbee,1,\nbat,1\n"])
def test_rows_of_another_length(folder, rows):
    write("x.csv", f"id,u,v\n{rows}")
    match = rf"x\.csv: row {rows.count(chr(10)) + 1} has 2 fields, but the first has 3"
    with pytest.raises(ValueError, match=match):
        read_text(folder / "x.csv")
    write("x.csv", "id,u,v\nfox,1,2\nbee,1,2,3\n")
    with pytest.raises(ValueError, match=r"x\.csv: row 3 has 4 fields, but the first has 3"):
        read_text(folder / "x.csv")


def test_quotes_and_lines_inside_them(folder):
    write("x.csv", 'id,"a\nb"\n"fox, the red",1\n\n"bee ""x""",2\n')
    found = read_text(folder / "x.csv")
    assert found["id"].tolist() == ["fox, the red", 'bee "x"']
    assert found["a\nb"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("my value\n3\n4\n", ["my value"]),  # one column, not two
        ("u v\n1 2\n3 4\n", ["u", "v"]),
        ('"u" "v"\n"red fox" 1 2\n"bee" 3 4\n', ["", "u", "v"]),  # write.table of R
        ('"u"\n"fox" 1\n"bee" 3\n', ["", "u"]),
        ('"u"\n"fox",1\n"bee",3\n', ["", "u"]),
        ("id;height, cm\ns1;180,5\ns2;170,25\n", ["id", "height, cm"]),
        ("id\tgene a, b\tgene c, d\ns1\t1\t2\ns2\t3\t4\n", ["id", "gene a, b", "gene c, d"]),
        ('"id","a; b; c","d; e"\n"s1",1,2\n', ["id", "a; b; c", "d; e"]),
    ],
)
def test_delimiters(folder, content, names):
    write("x.txt", content)
    assert list(read_text(folder / "x.txt")) == names


def test_delimiters_at_the_ends_of_rows_do_not_shift_names(folder):
    write("x.csv", "id,u,v\nfox,1,2,\nbee,3,4,\n")
    with pytest.raises(ValueError, match=r"x\.csv: row 2 ends in a delimiter .*: remove the delim"):
        load_views(["x.csv"])


def test_thousands_are_no_decimals(folder):
    write("x.csv", 'id,u\nfox,"21,453"\nbee,"1,453,200"\n')
    with pytest.raises(
        ValueError, match=r"'u' has commas in its numbers \('21,453'\), which may be"
    ):
        load_views(["x.csv"])


def test_true_and_false_are_numbers(folder):
    write("x.csv", "id,smoker,u\nfox,True,2\nbee,False,3\nbat,True,1\n")
    assert load_views(["x.csv"]).views[0].tolist() == [[1, 2], [0, 3], [1, 1]]


def test_long_numbers_keep_all_digits_as_ids(folder):
    first = 123456789012345678
    for name, order in (("x.csv", (0, 1, 2)), ("y.csv", (2, 0, 1))):
        rows = "".join(f"{first + i},{i}.5\n" for i in order)
        write(name, f"nr,{name[0]}\n{rows}")
    data = load_views(["x.csv", "y.csv"])
    assert data.ids == [str(first + i) for i in range(3)]
    assert [view.ravel().tolist() for view in data.views] == [[0.5, 1.5, 2.5]] * 2
    with pytest.raises(ValueError, match="column 'nr' holds whole numbers of more than 15 digits"):
        load_views(["x.csv"])


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
    assert peak < 2 * size  # the numbers are .42 of it; benchmarks/reading.py measures the process


def test_large_files_are_read_to_fifteen_digits(folder, monkeypatch):
    monkeypatch.setattr(text, "EXACT", 0)
    words = [f"{x:.14e}" for x in np.random.default_rng(0).lognormal(0, 9, 500)]
    write("x.csv", "u\n" + "\n".join(words) + "\n")
    assert load_file("x.csv").views[0].ravel().tolist() == list(map(float, words))


def test_a_packed_line_that_does_not_fit_is_refused_while_it_is_unpacked(folder, monkeypatch):
    (folder / "x.csv.gz").write_bytes(gzip.compress(b"7" * 10**7))
    assert (folder / "x.csv.gz").stat().st_size < 20_000
    monkeypatch.setattr("polyspan.io.safety.available_memory", lambda: 3 * 10**6)
    with pytest.raises(MemoryError, match=r"x\.csv\.gz holds about 0\.0009 GiB, and reading it"):
        load_views(["x.csv.gz"])
