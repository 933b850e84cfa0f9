"""R's files, written here by rdata: what becomes of matrices, data frames, factors and lists."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import rdata
from rdata.conversion.to_r import build_r_object
from rdata.parser import RObjectType
from scipy import sparse

from polyspan.io import load_file, load_views
from polyspan.io.columns import as_numbers
from polyspan.io.readers import read_r, read_tables

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, np.nan]])
FRAME = pd.DataFrame({"x": [1.5, 2.5, 3.5], "n": [1, 2, 3]}, index=["fox", "bee", "bat"])


def write_named(path, values, rows, columns):
    """Write a matrix with dimnames, which rdata has to be told how to do."""

    def convert(one, converter):
        attributes = {"dim": np.array(one.values.shape), "dimnames": one.names}
        return build_r_object(
            RObjectType.REAL,
            value=one.values.ravel(order="F"),
            attributes=converter.convert_to_r_attributes(attributes),
        )

    names = [None if names is None else np.array(names) for names in (rows, columns)]
    one = SimpleNamespace(values=values, names=names)
    rdata.write_rds(path, one, constructor_dict={SimpleNamespace: convert})


def test_matrices_with_and_without_names(tmp_path):
    rdata.write_rds(tmp_path / "a.rds", A)
    [(name, table)] = read_r(tmp_path / "a.rds").items()
    assert name == "a"
    pd.testing.assert_frame_equal(table, pd.DataFrame(A, columns=["column1", "column2", "column3"]))

    write_named(tmp_path / "b.rds", A, ["p", "q"], ["u", "v", "w"])
    table = read_r(tmp_path / "b.rds")["b"]
    pd.testing.assert_frame_equal(table, pd.DataFrame(A, index=["p", "q"], columns=["u", "v", "w"]))

    write_named(tmp_path / "c.rds", A, None, ["u", "v", "w"])
    table = read_r(tmp_path / "c.rds")["c"]
    pd.testing.assert_frame_equal(table, pd.DataFrame(A, columns=["u", "v", "w"]))


def test_data_frames(tmp_path):
    rdata.write_rds(tmp_path / "a.rds", FRAME)
    [table] = read_tables(tmp_path / "a.rds").values()
    assert list(table) == ["", "x", "n"]
    assert table[""].tolist() == ["fox", "bee", "bat"]
    np.testing.assert_array_equal(table[["x", "n"]].to_numpy(float), [[1.5, 1], [2.5, 2], [3.5, 3]])

    plain = FRAME.assign(word=pd.Categorical(["one", "two", "one"]), n=pd.array([1, None, 3]))
    rdata.write_rds(tmp_path / "b.rds", plain.reset_index(drop=True).set_axis(range(1, 4)))
    [table] = read_tables(tmp_path / "b.rds").values()
    assert list(table) == ["x", "n", "word"]
    assert table["word"].tolist() == ["one", "two", "one"]
    np.testing.assert_array_equal(as_numbers(table["n"]), [1, np.nan, 3])


def test_lists_factors_and_vectors(tmp_path):
    content = {"inner": {"m": A, "type": pd.Categorical(["b", "a"])}, "time": np.array([3, 4])}
    rdata.write_rda(tmp_path / "a.rda", content)
    found = read_r(tmp_path / "a.rda")
    assert list(found) == ["inner", "time"]
    np.testing.assert_array_equal(found["inner"]["m"].to_numpy(), A)
    assert found["inner"]["type"].tolist() == ["b", "a"]
    assert found["time"].tolist() == [3, 4]


@pytest.mark.parametrize("kind", ["C", "R", "T"])
def test_sparse_matrices_stay_sparse(tmp_path, monkeypatch, kind):
    """As the package Matrix stores them; rdata cannot write these, so its answer stands in."""
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    matrix = {"C": sparse.csc_array, "R": sparse.csr_array, "T": sparse.coo_array}[kind](dense)
    slots = SimpleNamespace(x=matrix.data, Dim=np.array([2, 3]), Dimnames=[None, ["u", "v", "w"]])
    if kind == "T":
        slots.i, slots.j = matrix.coords
    else:
        slots.p = matrix.indptr
        setattr(slots, "i" if kind == "C" else "j", matrix.indices)

    def read(path, constructor_dict):
        return constructor_dict[f"dg{kind}Matrix"](slots, {"class": [f"dg{kind}Matrix"]})

    monkeypatch.setattr(rdata, "read_rds", read)
    table = read_r(tmp_path / "a.rds")["a"]
    assert sparse.issparse(table.values)
    assert table.values.format == table.T.values.format == "csr"
    np.testing.assert_array_equal(table.values.toarray(), dense)
    assert (table.rows, table.columns) == (None, ["u", "v", "w"])


@pytest.mark.parametrize("ending", ["rds", "rda", "RData"])
def test_damaged_files(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    path.write_bytes(b"half a file")
    with pytest.raises(ValueError, match=rf"a\.{ending} cannot be read as an R file: "):
        read_r(path)
    with pytest.raises(ValueError, match="cannot be read as an R file"):
        load_views([path])


def test_missing_package_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "a.rds").touch()
    monkeypatch.setitem(sys.modules, "rdata", None)
    with pytest.raises(ImportError, match=r'^a\.rds needs rdata: pip install "polyspan\[r\]"$'):
        load_file(tmp_path / "a.rds")


# --- As your own files ---


def test_own_files_are_matched_by_row_names(tmp_path):
    rdata.write_rds(tmp_path / "a.rds", FRAME)
    other = np.arange(6.0).reshape(3, 2)
    write_named(tmp_path / "b.rds", other, ["bat", "bee", "fox"], ["g", "h"])
    data = load_views([tmp_path / "a.rds", tmp_path / "b.rds"])
    assert data.ids == ["fox", "bee", "bat"]
    np.testing.assert_array_equal(data.views[0], FRAME.to_numpy())
    np.testing.assert_array_equal(data.views[1], [[4, 5], [2, 3], [0, 1]])
    assert load_file(tmp_path / "a.rds").views[0].shape == (3, 2)  # without the row names


def test_own_matrix_without_names(tmp_path):
    rdata.write_rda(tmp_path / "a.RData", {"mine": A[:, :2]})
    data = load_views([tmp_path / "a.RData"])
    assert data.ids is None
    np.testing.assert_array_equal(data.views[0], A[:, :2])


def test_own_file_with_several_tables(tmp_path):
    content = {"gene": A[:, :2], "more": {"lipid": A[:, 1:2]}, "diet": np.array([1.0, 2.0])}
    rdata.write_rda(tmp_path / "x.rda", content)
    data = load_views([tmp_path / "x.rda"])
    assert data.view_names == ["x:gene", "x:more.lipid"]
    np.testing.assert_array_equal(data.views[1], A[:, 1:2])
    assert data.notes == [f"{tmp_path / 'x.rda'} also holds diet, which is not used"]
    with pytest.raises(ValueError, match=r"x\.rda must hold one table, dense, but it holds 'gene'"):
        load_file(tmp_path / "x.rda")


def test_own_file_with_one_list(tmp_path):
    rdata.write_rda(tmp_path / "x.rda", {"mice": {"gene": A[:, :2], "lipid": A[:, 1:2]}})
    assert load_views([tmp_path / "x.rda"]).view_names == ["x:gene", "x:lipid"]


def test_own_file_without_tables(tmp_path):
    rdata.write_rda(tmp_path / "x.rda", {"a": np.array([1.0, 2.0])})
    with pytest.raises(ValueError, match=r"x\.rda holds no matrix and no data frame, but a: save"):
        load_views([tmp_path / "x.rda"])


def test_own_file_with_repeated_names(tmp_path):
    write_named(tmp_path / "a.rds", A, ["p", "q"], ["u", "v", "u"])
    with pytest.raises(ValueError, match=r"a\.rds: several columns are called 'u'"):
        load_file(tmp_path / "a.rds")
