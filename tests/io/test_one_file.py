import sys
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from polyspan.io import load_file
from polyspan.io.one_file import from_variables

rng = np.random.default_rng(0)
A, B = rng.integers(0, 9, (6, 4)), rng.normal(size=(6, 3))  # two views of six samples
S = sparse.random_array((6, 5), density=0.4, rng=np.random.default_rng(1), format="csc")
y = np.array([[2], [2], [5], [5], [9], [9]])
LABELS = [0, 0, 1, 1, 2, 2]


def cell(*matrices):
    values = np.empty((1, len(matrices)), dtype=object)
    values[0] = matrices
    return values


def assert_views(data, *expected):
    assert len(data.views) == len(expected)
    for view, matrix in zip(data.views, expected, strict=True):
        if sparse.issparse(matrix):
            assert isinstance(view, sparse.csr_array)
            view, matrix = view.toarray(), matrix.toarray()
        assert view.dtype == np.float64
        np.testing.assert_array_equal(view, matrix)


# --- .mat, version 5 ---


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("data", "truth"), ("data", "truelabel"), ("X", "Y"), ("X", "y"), ("X", "gt"),
        ("fea", "gnd"), ("fea", "label"),
    ],
)  # fmt: skip
def test_cell_of_views(tmp_path, name, label):
    scipy.io.savemat(tmp_path / "a.mat", {name: cell(A.T, S, B), label: y})
    data = load_file(tmp_path / "a.mat")
    assert_views(data, A, S, B)
    assert data.labels.tolist() == LABELS
    assert data.n_clusters == 3
    assert data.name == "a"
    assert data.view_names == [f"{name}1", f"{name}2", f"{name}3"]


def test_cells_in_rows_and_columns_are_counted_as_matlab_counts(tmp_path):
    cells = cell(A, B, S, A).reshape(2, 2)  # X{2} is the second of the first column
    scipy.io.savemat(tmp_path / "a.mat", {"X": cells, "y": y})
    assert_views(load_file(tmp_path / "a.mat"), A, S, B, A)


def test_labels_repeated_once_per_view(tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"truelabel": cell(y.T, y.T), "data": cell(A.T, B.T)})
    data = load_file(tmp_path / "a.mat")
    assert_views(data, A, B)
    assert data.labels.tolist() == LABELS


def test_named_variables_in_file_order_without_bystanders(tmp_path):
    variables = {"words": S, "comment": "hello", "sound": B.T, "k": 3, "other": np.ones((7, 8))}
    scipy.io.savemat(tmp_path / "a.mat", {**variables, "truth": y})
    data = load_file(tmp_path / "a.mat")
    assert_views(data, S, B)
    assert data.view_names == ["words", "sound"]


def test_square_view_has_its_samples_in_rows(tmp_path):
    square = rng.normal(size=(6, 6))
    scipy.io.savemat(tmp_path / "a.mat", {"X": cell(square, B.T), "gt": y})
    assert_views(load_file(tmp_path / "a.mat"), square, B)


def test_without_labels_the_common_side_counts(tmp_path):
    scipy.io.savemat(tmp_path / "rows.mat", {"X": cell(A, B)})
    scipy.io.savemat(tmp_path / "columns.mat", {"X": cell(A.T, B.T)})
    scipy.io.savemat(tmp_path / "mixed.mat", {"X": cell(A.T, B)})
    for name in ("rows", "columns"):
        data = load_file(tmp_path / f"{name}.mat")
        assert_views(data, A, B)
        assert data.labels.size == data.n_clusters == 0
    with pytest.raises(ValueError, match=r"mixed\.mat: the views differ in their number of"):
        load_file(tmp_path / "mixed.mat")


def test_choosing_views_and_labels(tmp_path):
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, {"X": cell(A, B), "extra": S, "y": y, "age": y[::-1]})
    data = load_file(file, views=["extra"], labels="age")
    assert_views(data, S)
    assert data.labels.tolist() == LABELS[::-1]
    assert_views(load_file(file, views=["extra", "X"]), S, A, B)
    with pytest.raises(ValueError, match=r"a\.mat has no variable 'Z'; it has 'X', 'extra', 'y', "):
        load_file(file, views=["Z"])
    with pytest.raises(ValueError, match="has no variable 'truth'"):
        load_file(file, labels="truth")


def test_which_variable_is_the_labels(tmp_path):
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, {"X": A, "y": y[::-1], "truth": y})  # the plainer name wins
    assert load_file(file).labels.tolist() == LABELS
    scipy.io.savemat(file, {"X": A, "Y": B, "gt": 6})  # a matrix or a number is not labels
    data = load_file(file)
    assert_views(data, A, B)
    assert data.n_clusters == 0


def test_views_that_cannot_be(tmp_path):
    file = tmp_path / "a.mat"
    scipy.io.savemat(file, {"X": cell(A, np.ones((5, 5))), "y": y})
    with pytest.raises(ValueError, match=r"view 'X2' has shape \(5, 5\), but there are 6 labels"):
        load_file(file)
    scipy.io.savemat(file, {"X": "words", "y": y})
    with pytest.raises(
        ValueError, match="no matrices that could be views; its variables: 'X', 'y'"
    ):
        load_file(file)
    with pytest.raises(ValueError, match="not a matrix of numbers: 'X'"):
        load_file(file, views=["X"])
    scipy.io.savemat(file, {"X": A, "truth": B})
    with pytest.raises(ValueError, match=r"the labels have shape \(6, 3\)"):
        load_file(file, labels="truth")
    scipy.io.savemat(file, {"X": A, "y": np.array([1, np.nan, 1, 2, 2, np.nan])})
    with pytest.raises(ValueError, match="2 labels are missing"):
        load_file(file)


@examples(25)
@given(
    n=st.integers(2, 7),
    features=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    flips=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_orientation_follows_the_labels(n, features, flips):
    views = [rng.normal(size=(n, d)) for d in features]
    stored = [
        v.T if flip and v.shape != (n, n) else v for v, flip in zip(views, flips, strict=False)
    ]
    found = from_variables(Path("a.mat"), {"data": stored, "truth": np.arange(n)})
    assert_views(found, *views)


@pytest.mark.parametrize("content", [b"", b"nonsense" * 40, b"MATLAB 7.3 MAT-file but cut off"])
def test_damaged_mat(tmp_path, content):
    (tmp_path / "bad.mat").write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.mat cannot be read as a MATLAB"):
        load_file(tmp_path / "bad.mat")


# --- .mat, version 7.3 (HDF5) ---


def save_v73(path, variables):
    """What MATLAB's save -v7.3 writes: transposed matrices, cells of references, sparse groups."""

    def put(parent, name, value):
        if sparse.issparse(value):
            value = sparse.csc_array(value)
            group = parent.create_group(name)
            group.attrs["MATLAB_class"] = np.bytes_("double")
            group.attrs["MATLAB_sparse"] = np.uint64(value.shape[0])
            group["jc"] = value.indptr.astype(np.uint64)
            if value.nnz:
                group["ir"] = value.indices.astype(np.uint64)
                group["data"] = value.data
        elif isinstance(value, list):
            references = []
            for matrix in value:
                put(refs, str(len(refs)), matrix)
                references.append([refs[str(len(refs) - 1)].ref])
            dataset = parent.create_dataset(name, data=np.array(references, dtype=h5py.ref_dtype))
            dataset.attrs["MATLAB_class"] = np.bytes_("cell")
        elif isinstance(value, str):
            dataset = parent.create_dataset(name, data=np.array([[ord(c)] for c in value], "u2"))
            dataset.attrs["MATLAB_class"] = np.bytes_("char")
        else:
            parent.create_dataset(name, data=value.T).attrs["MATLAB_class"] = np.bytes_("double")

    with h5py.File(path, "w", userblock_size=512) as file:
        refs = file.create_group("#refs#")
        for name, value in variables.items():
            put(file, name, value)
    with path.open("r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64")


def test_v73_cells_dense_and_sparse(tmp_path):
    file = tmp_path / "new.mat"
    save_v73(file, {"X": [A.T, S.T, B], "Y": y, "note": "hello"})
    data = load_file(file)
    assert_views(data, A, S, B)
    assert data.labels.tolist() == LABELS


def test_v73_named_matrices_and_repeated_labels(tmp_path):
    file = tmp_path / "new.mat"
    save_v73(file, {"first": S, "second": B.T, "truelabel": [y.T, y.T]})
    data = load_file(file)
    assert_views(data, S, B)
    assert data.view_names == ["first", "second"]
    assert data.labels.tolist() == LABELS


def test_v73_matrices_are_stored_transposed(tmp_path):
    square = rng.normal(size=(6, 6))
    save_v73(tmp_path / "new.mat", {"X": [square, B], "y": y})
    assert_views(load_file(tmp_path / "new.mat"), square, B)
    save_v73(tmp_path / "new.mat", {"X": [A, B]})
    assert_views(load_file(tmp_path / "new.mat"), A, B)


def test_v73_sparse_matrix_of_zeros(tmp_path):
    empty = sparse.csc_array((6, 5))
    save_v73(tmp_path / "new.mat", {"X": [empty, B], "y": y})
    assert_views(load_file(tmp_path / "new.mat"), empty, B)


def test_v73_reads_as_version_5_does(tmp_path, data_dir):
    raw = scipy.io.loadmat(data_dir / "bbcsport.mat")
    save_v73(tmp_path / "new.mat", {"data": list(raw["data"].ravel()), "truth": raw["truth"]})
    old, new = load_file(data_dir / "bbcsport.mat"), load_file(tmp_path / "new.mat")
    assert_views(new, *old.views)
    np.testing.assert_array_equal(new.labels, old.labels)


@pytest.mark.parametrize(
    ("package", "file"), [("h5py", "new.mat"), ("pyarrow.parquet", "t.parquet")]
)
def test_missing_package_names_the_extra(tmp_path, monkeypatch, package, file):
    save_v73(tmp_path / "new.mat", {"X": [A, B], "y": y})
    pd.DataFrame(B).rename(columns=str).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, package, None)
    name = package.split(".")[0]
    with pytest.raises(ImportError, match=rf'needs {name}: pip install "polyspan\[files\]"'):
        load_file(tmp_path / file)


# --- .npz ---


def test_npz(tmp_path):
    np.savez(tmp_path / "a.npz", look=A, sound=B.T, labels=np.array(["x", "x", "y", "y", "z", "z"]))
    data = load_file(str(tmp_path / "a.npz"))
    assert_views(data, A, B)
    assert data.view_names == ["look", "sound"]
    assert data.labels.tolist() == LABELS


def test_sparse_npz_is_one_view(tmp_path):
    counts = sparse.csc_array(A)  # whole numbers
    sparse.save_npz(tmp_path / "words.npz", counts)
    data = load_file(tmp_path / "words.npz")
    assert_views(data, counts)
    assert data.view_names == ["words"]


def test_npz_never_unpickles(tmp_path):
    np.savez(tmp_path / "a.npz", X=cell(A, B))
    with pytest.raises(ValueError, match=r"a\.npz cannot be read as arrays: .*allow_pickle"):
        load_file(tmp_path / "a.npz")


# --- tables ---

TABLE = pd.DataFrame({"a": [1, 2, 3], "b": [0.5, None, 1.5], "kind": ["cat", "dog", "cat"]})


@pytest.fixture(params=["csv", "csv with index", "parquet", "parquet with index"])
def table(request, tmp_path):
    path = tmp_path / f"pets.{request.param.split()[0]}"
    frame = TABLE.set_axis([7, 8, 9]) if "index" in request.param else TABLE
    if path.suffix == ".csv":
        frame.to_csv(path, index="index" in request.param)
    else:
        frame.to_parquet(path, index="index" in request.param)
    return path


def test_table_with_words_as_labels(table):
    data = load_file(table, labels="kind")
    assert_views(data, np.array([[1, 0.5], [2, np.nan], [3, 1.5]]))
    assert data.labels.tolist() == [0, 1, 0]
    assert data.view_names == ["pets"]


def test_table_columns_can_be_chosen(table):
    data = load_file(table, views=["b"])
    assert_views(data, np.array([[0.5], [np.nan], [1.5]]))
    assert data.labels.size == 0


def test_table_with_words_says_which_columns(table):
    with pytest.raises(
        ValueError,
        match=r"pets\.\w+: not numbers in column 'kind'; if one holds .* pass labels='kind'",
    ):
        load_file(table)
    with pytest.raises(ValueError, match=r"has no column 'species'; it has 'a', 'b', 'kind'"):
        load_file(table, labels="species")


def test_missing_table_label(tmp_path):
    (tmp_path / "a.csv").write_text("a,kind\n1,cat\n2,\n")
    with pytest.raises(ValueError, match="1 labels are missing"):
        load_file(tmp_path / "a.csv", labels="kind")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("x,y\n1,2\n3,4", [[1, 2], [3, 4]]),
        ("x;y\r\n1;2\r\n3;4\r\n", [[1, 2], [3, 4]]),
        ("1\t2\n3\t-4e-1\n\n", [[1, 2], [3, -0.4]]),
        ("\ufeff1,2\n3,4\n", [[1, 2], [3, 4]]),  # as Excel saves it
        (",0,1\n0,5,6\n1,7,8\n", [[5, 6], [7, 8]]),  # as DataFrame(array).to_csv saves it
    ],
)
def test_csv_of_numbers(tmp_path, text, expected):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8", newline="")
    assert_views(load_file(tmp_path / "a.csv"), np.array(expected))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("a,b\n", "holds no samples"),
        ("1,2\n3\n", "row 2 has 1 fields, but the first has 2"),
        ("a,a\n1,2\n", "several columns are called 'a'"),
    ],
)
def test_csv_that_is_no_table(tmp_path, text, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"a\.csv.*{message}"):
        load_file(tmp_path / "a.csv")


def test_numeric_labels_of_a_csv_sort_as_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,10\n1,9\n1,10\n")
    assert load_file(tmp_path / "a.csv", labels="y").labels.tolist() == [1, 0, 1]


def test_damaged_parquet(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(ValueError, match=r"a\.parquet cannot be read as Parquet"):
        load_file(tmp_path / "a.parquet")


def test_other_endings_and_absent_files(tmp_path):
    with pytest.raises(ValueError, match=r"a\.docx is not a supported file: .* \.mat, \.npz"):
        load_file(tmp_path / "a.docx")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*a\.mat"):
        load_file(tmp_path / "a.mat")
