"""Tables: whether the first row holds names."""

import pytest
from two_tables import A, B, assert_matched, frame, write

from polyspan.io import load_file, load_views

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2\n", True),
        (",0,1\nfox,5,6\n", True),  # DataFrame.to_csv
        ("0,1,2\n5,6,1\n", True),  # the same, index=False
        ("id,0.5,0.1\nfox,5,6\n", True),
        ("who,0,1,2\nfox,5,6,7\n", True),
        ("land,1990,1991,1992\nchad,5,6,7\n", True),
        ("x,y,3\n1,2,3\n", True),
        ("0.5,0.1,0.3\n5,6,7\n", False),
        ("1,2,3\n4,5,6\n", False),
        ("1,2\n7,6\n", False),
        ("fox,0.5,0.1,0.7\nbee,5,6,7\n", False),
        ("fox,1,1\nbee,5,6\n", False),
        ("7\n8\n", False),
    ],
)
def test_first_row(text, names):
    write("x.csv", text)
    data = load_views(["x.csv"])
    assert data.rows == [text.count("\n") - names]
    first = text.split("\n")[0]
    told = not names or (first[0] not in ",i" and any(map(str.isdigit, first)))
    assert [note.split("; ")[0] for note in data.notes] == [
        f"x.csv: the first row is read as {'names' if names else 'a sample'}"
    ] * told


@pytest.mark.parametrize("text", ["fox,0.5,0.7\nbee,5,6\n", "400,402.5,405,407\n4,2,7,1\n"])
def test_a_first_row_that_could_be_both(text):
    write("x.csv", text)
    with pytest.raises(ValueError, match=r"x\.csv: the first row \(.*\) may be names or a sample"):
        load_views(["x.csv"])
    assert load_views(["x.csv"], header=True).rows == [1]
    assert load_views(["x.csv"], header=False).rows == [2]
    if not text.startswith("fox"):
        assert load_file("x.csv", header=False).views[0].shape == (2, 4)


def test_tables_of_r():
    write("x.tsv", "x0\tx1\nfox\t1\t2\nbee\t3\tNA\n")  # no name over the row names
    with pytest.raises(ValueError, match="sample bee column 'x1'"):
        load_views(["x.tsv"])
    assert load_views(["x.tsv"], drop=["x1"]).ids == ["fox", "bee"]


def test_row_numbers_of_r_count_from_one():
    for name, values in (("a.csv", A), ("b.csv", B)):
        frame(values, ids=None).set_axis(range(1, 7)).to_csv(name)
    data = load_views(["a.csv", "b.csv"])
    assert_matched(data, "order")
    assert data.ids is None
