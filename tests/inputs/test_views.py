import tracemalloc

import array_api_strict as strict
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cases import case

from polyspan.inputs.scaling import numpy_views, scale_views
from polyspan.inputs.views import Views, check_views
from polyspan.runtime.memory import available_memory, check_memory

FORMATS = ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"]


def data(n=8, d=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


# ---- the forms of input ------------------------------------------------------------------------


@pytest.mark.parametrize("form", [list, tuple], ids=["list", "tuple"])
def test_a_list_or_tuple_is_several_views(form):
    found = check_views(form([data(), data(d=2)]))
    assert found.names == ["0", "1"]
    np.testing.assert_array_equal(found.arrays[1], data(d=2))


def test_a_dict_gives_the_names():
    found = check_views({"text": data(), 3: data(d=1)})
    assert found.names == ["text", "3"]
    assert [view.shape for view in found.arrays] == [(8, 4), (8, 1)]


def test_one_array_is_one_view():
    found = check_views(data())
    assert found.names == ["0"]
    assert found.n_samples == 8


def test_a_list_of_rows_is_one_view():
    assert [view.shape for view in check_views(data().tolist()).arrays] == [(8, 4)]


def test_a_list_of_vectors_may_be_views_or_samples():
    for X in ([np.arange(9.0), np.ones(9)], list(data()), tuple(data())):
        match = f"^X is a {type(X).__name__} of {len(X)} 1-D arrays, .* as x.reshape"
        with pytest.raises(ValueError, match=match):
            check_views(X)
    assert check_views([np.arange(9.0)[:, None], np.eye(9)]).n_samples == 9


def test_a_list_of_nested_lists_is_several_views():
    found = check_views([data().tolist(), data(d=1).tolist()])
    assert [view.shape for view in found.arrays] == [(8, 4), (8, 1)]


def test_dok_is_a_dict_and_still_one_view():
    found = check_views(sp.dok_array(data()))
    assert [view.shape for view in found.arrays] == [(8, 4)]


@pytest.mark.parametrize(
    "cuts",
    [
        [slice(0, 3), slice(3, None)],
        ([0, 1, 2], [3]),
        [np.array([0, 1, 2]), np.array([-1])],
        [range(3), [False, False, False, True]],
    ],
    ids=["slices", "lists", "arrays", "range and mask"],
)
def test_views_cuts_one_array(cuts):
    for make in (np.asarray, sp.csr_array, sp.csr_matrix, pd.DataFrame):
        with case(make.__name__):
            found = check_views(make(data()), cuts)
            parts = [view.toarray() if sp.issparse(view) else view for view in found.arrays]
            np.testing.assert_array_equal(parts[0], data()[:, :3])
            np.testing.assert_array_equal(parts[1], data()[:, 3:])


def test_views_cuts_an_array_of_another_library():
    found = check_views(strict.asarray(data()), [slice(0, 3), [3]])
    np.testing.assert_array_equal(np.from_dlpack(found.arrays[0]), data()[:, :3])
    np.testing.assert_array_equal(np.from_dlpack(found.arrays[1]), data()[:, 3:])


def test_dataframes():
    nullable = pd.DataFrame(
        {"a": pd.array([1, 2, 3], dtype="Int64"), "b": pd.array([True, False, True], "boolean")}
    )
    found = check_views([nullable, pd.DataFrame(data(3))])
    np.testing.assert_array_equal(found.arrays[0], [[1, 1], [2, 0], [3, 1]])


def test_checked_views_pass_as_they_are():
    found = check_views([data(), data(d=2)])
    assert check_views(found) is found


# ---- dtypes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["float32"], "float32"),
        (["float32", "float32"], "float32"),
        (["float32", "float64"], "float64"),
        (["float32", "int8"], "float64"),
        (["int64"], "float64"),
        (["bool"], "float64"),
        (["float16"], "float32"),
        (["longdouble"], "float64"),
    ],
    ids=str,
)
def test_one_dtype(given, wanted):
    views = [(10 * data(seed=k)).astype(dtype) for k, dtype in enumerate(given)]
    views[0][:4, 0] = 0
    found = check_views(views)
    assert {str(view.dtype) for view in found.arrays} == {wanted}
    assert found.itemsize == np.dtype(wanted).itemsize
    for scale in ("unit", "standard+unit", "standard", None):
        assert {str(view.dtype) for view in scale_views(found, scale)} == {wanted}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sparse_keeps_its_dtype(dtype):
    found = check_views(sp.csr_array(data().astype(dtype)))
    assert found.arrays[0].dtype == dtype
    for scale in ("unit", "standard+unit", "standard", None):
        assert scale_views(found, scale)[0].dtype == dtype


@pytest.mark.parametrize("dtype", [strict.float32, strict.float64, strict.int32], ids=str)
def test_dtypes_of_another_library(dtype):
    wanted = strict.float32 if dtype == strict.float32 else strict.float64
    view = strict.astype(strict.asarray(10 * data()), dtype)
    assert check_views([view]).arrays[0].dtype == wanted
    both = check_views([view, strict.asarray(data())])
    assert {view.dtype for view in both.arrays} == {strict.float64}


# ---- sparse ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("format", FORMATS)
def test_every_sparse_format_stays_sparse(format, kind):
    dense = np.where(data() > 0, data(), 0)
    dense[:, 0] = 1
    found = check_views(getattr(sp, f"{format}_{kind}")(dense)).arrays[0]
    assert isinstance(found, sp.csr_array)
    np.testing.assert_array_equal(found.toarray(), dense)


def test_sparse_scaling_equals_dense():
    dense = np.where(data(20, 6) > 0, data(20, 6), 0) * np.logspace(-200, 200, 20)[:, None]
    dense[3] = 0
    with pytest.warns(UserWarning, match="all zeros"):
        one, two = check_views(dense), check_views(sp.csc_matrix(dense))
    unit = scale_views(two, "unit")[0]
    assert sp.issparse(unit)
    # the same operations in another order of summation: a few ulp
    np.testing.assert_allclose(unit.toarray(), scale_views(one, "unit")[0], rtol=0, atol=1e-15)
    np.testing.assert_allclose(
        scale_views(two, "standard+unit")[0],
        scale_views(one, "standard+unit")[0],
        rtol=0,
        atol=1e-15,
    )


def test_repeated_and_stored_zero_entries_count_as_their_sum():
    odd = sp.csr_array((np.array([1.0, 2.0, 0.0, 4.0]), [1, 1, 0, 0], [0, 2, 3, 4]), shape=(3, 2))
    before = odd.data.copy(), odd.indices.copy(), odd.indptr.copy()
    with pytest.warns(UserWarning, match=r"1 in view 0, row 1\)"):
        found = check_views(odd)
    np.testing.assert_array_equal(found.arrays[0].toarray(), [[0, 3], [0, 0], [4, 0]])
    np.testing.assert_allclose(
        scale_views(found, "unit")[0].toarray(), [[0, 1], [0, 0], [1, 0]], rtol=1e-15
    )
    for old, new in zip(before, (odd.data, odd.indices, odd.indptr), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_wide_sparse_view_is_never_made_dense():
    wide = sp.random_array((200, 5_000_000), density=1e-5, format="csr", rng=0)
    tracemalloc.start()
    try:
        scale_views(check_views([wide]), "unit")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**25  # 32 MiB; a dense copy takes 8 GB


def test_standardizing_a_wide_sparse_view_is_refused():
    wide = sp.random_array((200, 2**40), density=2.0**-38, format="coo", rng=0)
    with (
        pytest.warns(UserWarning, match="all zeros"),
        pytest.raises(
            MemoryError, match=r'scale="standard\+unit" makes the sparse view 0 dense, .*GiB'
        ),
    ):
        scale_views(check_views([wide]), "standard+unit")


# ---- nothing is modified -----------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["unit", "standard+unit", "standard", None])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_input_is_not_modified(scale, dtype):
    view = (10 * data()).astype(dtype)
    view.setflags(write=False)
    before = view.copy()
    for given in (view, [view, view], {"a": view}, pd.DataFrame(view), sp.csr_array(view)):
        scale_views(check_views(given), scale)
    np.testing.assert_array_equal(view, before)


# ---- errors: one sentence that names the view --------------------------------------------------


def with_value(value):
    view = data()
    view[2, 1] = value
    return view


BAD = {
    "no views": ([], "^X is an empty list: give at least one view"),
    "no views, tuple": ((), "^X is an empty tuple: give at least one view"),
    "no views, dict": ({}, "^X is an empty dict: give at least one view"),
    "lengths": (
        [data(8), data(7)],
        "^The views differ in length: view 0 has 8 samples, view 1 has 7 samples; every view",
    ),
    "lengths, names": ({"a": data(8), "b": data(7)}, "view 'a' has 8 samples, view 'b' has 7"),
    "NaN": (
        [data(), with_value(np.nan)],
        r"^view 1 contains NaN: drop or impute these values \(1 of 8 samples: row 2\) before clus",
    ),
    "NaN, named": ({"t": data(), "i": with_value(np.nan)}, "^view 'i' contains NaN"),
    "NaN, one array": (with_value(np.nan), "^view 0 contains NaN"),
    "inf": ([data(), with_value(np.inf)], r"^view 1 contains inf \(infinite values\)"),
    "-inf": ([with_value(-np.inf), data()], r"^view 0 contains inf .*8 samples: row 2\)"),
    "NaN, sparse": (
        [data(), sp.csr_array(with_value(np.nan))],
        r"^view 1 contains NaN: .*\(1 of 8 samples: row 2\)",
    ),
    "NaN, many rows": (
        np.where(np.arange(8)[:, None] > 0, np.nan, data()),
        r"^view 0 contains NaN: .*\(7 of 8 samples: rows 1, 2, 3, 4, 5, \.\.\.\)",
    ),
    "NaN, nullable": (
        [pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64")})],
        "^view 0 contains NaN",
    ),
    "NaN, other library": (
        strict.asarray(with_value(np.nan)),
        r"^view 0 contains NaN: .*\(1 of 8 samples: row 2\)",
    ),
    "long double": (with_value(1).astype(np.longdouble) * 10.0**300 * 10.0**300, "view 0 .* inf"),
    "constant": ([data(), np.ones((8, 3))], r"^view 1 is constant \(all 8 samples are equal\)"),
    "constant, sparse": ([data(), sp.csr_array(np.ones((8, 3)))], "^view 1 is constant"),
    "all zero": ([data(), np.zeros((8, 3))], "^view 1 is constant"),
    "all zero, sparse": ([data(), sp.csr_array((8, 3))], "^view 1 is constant"),
    "constant, other library": (strict.ones((8, 3)), "^view 0 is constant"),
    "no columns": ([data(), np.empty((8, 0))], r"^view 1: Found array with 0 feature\(s\)"),
    "no rows": ([np.empty((0, 3)), data()], r"^view 0: Found array with 0 sample\(s\)"),
    "no columns, sparse": ([data(), sp.csr_array((8, 0))], r"^view 1: Found array with 0 feature"),
    "no columns, other library": ([strict.ones((8, 0))], r"^view 0 is empty: .*\(8, 0\)"),
    "one sample": ([data(1), data(1)], "^view 0 has 1 sample; clustering needs at least 2"),
    "1-D": ([data(), data()[:, 0]], "^view 1 is 1-D: a view is 2-D, with samples in rows"),
    "1-D alone": (data()[:, 0], "^X is 1-D: a view is 2-D"),
    "1-D in a dict": ({"a": [1.0, 2.0]}, "^view 'a' is 1-D"),
    "1-D sparse": ([data(), sp.coo_array(np.ones(8))], "^view 1 is 1-D"),
    "1-D other library": (strict.ones(8), "^X is 1-D"),
    "3-D": (np.ones((8, 3, 2)), "^X is 3-D: a view is 2-D"),
    "3-D in a list": ([data(), np.ones((8, 3, 2))], "^view 1 is 3-D"),
    "ragged": ([data(), [[1, 2], [3]]], "^view 1: .*inhomogeneous"),
    "nothing": ([data(), None], "^view 1 is a NoneType: give a 2-D array or table"),
    "complex": (data() * 1j, "^X: Complex data not supported"),
    "complex in a list": ([data(), data() * 1j], "^view 1: Complex data not supported"),
    "complex, other library": (
        [strict.asarray(data() * 1j)],
        "^view 0: Complex data not supported; take real and imaginary parts",
    ),
    "text column": (
        [data(2), pd.DataFrame({"a": [1, 2], "town": ["x", "y"]})],
        r"^view 1 has 1 column that is not numbers \('town'\): drop or encode",
    ),
    "dates and categories": (
        pd.DataFrame({"day": pd.to_datetime(["2020-01-01"] * 2), "c": pd.Categorical([1, 2])}),
        r"^X has 2 columns that are not numbers \('day', 'c'\)",
    ),
    "six text columns": (
        pd.DataFrame({f"t{k}": ["x", "y"] for k in range(6)}),
        r"6 columns .*\('t0', 't1', 't2', 't3', 't4', \.\.\.\)",
    ),
    "objects": (
        [data(2), np.array([[1, "a"], [2, "b"]], dtype=object)],
        "^view 1: could not convert string to float: 'a'",
    ),
    "objects alone": (np.array([[1, "a"], [2, "b"]], dtype=object), "^X: could not convert"),
    "text": (np.array([["1", "a"], ["2", "b"]]), "^X: .*arrays of bytes/strings"),
    "times": (np.array([["2020", "2021"]] * 2, dtype="datetime64[Y]"), "^X holds datetime64"),
    "a huge number": (np.array([[10**400], [1]], dtype=object), "^X: int too large"),
    "two libraries": ([strict.asarray(data()), data()], "^The views mix array libraries"),
    "lost samples": (
        [np.vstack([np.zeros((2, 4)), data()]), np.vstack([np.zeros((2, 2)), data(d=2)])],
        r"^2 of 10 samples are all zeros in every view \(rows 0, 1\): drop them",
    ),
    "lost samples, sparse": (
        [sp.csr_array(np.diag([0.0, 1, 2])), np.diag([0.0, 1, 2])],
        r"^1 of 3 samples are all zeros in every view \(row 0\)",
    ),
    "many lost samples": (
        [np.vstack([np.zeros((9, 4)), data()])] * 2,
        r"^9 of 17 samples .*\(rows 0, 1, 2, 3, 4, \.\.\.\)",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_errors(case):
    X, match = BAD[case]
    with pytest.raises(ValueError, match=match) as caught:
        check_views(X)
    assert "\n" not in str(caught.value)


def test_an_object_that_is_no_number_is_a_type_error():
    X = np.array([[1, {}], [2, 3]], dtype=object)
    with pytest.raises(TypeError, match=r"^view 0: float\(\) argument must be"):
        check_views([X])


def test_two_devices_are_refused():
    devices = strict.__array_namespace_info__().devices()
    views = [strict.asarray(data(), device=device) for device in devices[:2]]
    with pytest.raises(ValueError, match=r"^The views are on different devices"):
        check_views(views)


@pytest.mark.parametrize(
    ("views", "match"),
    [
        (5, "^views must be a list with one slice .* per view, or None; got 5"),
        (slice(0, 2), "^views must be a list .* got slice"),
        ("ab", "^views must be a list .* got 'ab'"),
        ({"a": slice(0, 2)}, "^views must be a list"),
        ([], "^views must be a list"),
        ([slice(0, 2), [3, 4]], r"^views\[1\]=\[3, 4\] does not select columns of X, which has 4"),
        ([[0], ["a"]], r"^views\[1\]=\['a'\] does not select"),
        ([[0.5]], r"^views\[0\]=\[0.5\] does not select"),
        ([None], r"^views\[0\]=None does not select"),
        ([[True, False]], r"^views\[0\]=\[True, False\] does not select"),
        ([[[0, 1], [2]]], r"^views\[0\]=.* does not select"),
        ([slice(0, 2), []], r"^views\[1\]=\[\] "),
        ([slice(0, 2), slice(4, 9)], r"^views\[1\]=slice\(4, 9, None\) does not select columns"),
        ([slice(0, 2), 3], r"^views\[1\]=3 does not select columns"),
        ([[[0, 1], [2, 3]]], r"^views\[0\]=\[\[0, 1\], \[2, 3\]\] does not select columns"),
    ],
    ids=str,
)
def test_bad_cuts(views, match):
    for make in (np.asarray, sp.csr_matrix, strict.asarray):
        with case(make.__module__), pytest.raises(ValueError, match=match):
            check_views(make(data()), views)


@pytest.mark.parametrize("form", [list, tuple])
def test_cuts_of_several_views_are_refused(form):
    match = f"^views=... cuts one 2-D array .* already a {form.__name__} of 2 views: leave views"
    with pytest.raises(ValueError, match=match):
        check_views(form([data(), data()]), [slice(0, 2)])


# ---- samples that are zero in some views -------------------------------------------------------


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_zero_samples_in_one_view_warn(make):
    empty = data()
    empty[[2, 5]] = 0
    match = r"^Some of the 8 samples are all zeros \(2 in view 1, rows 2, 5\): such a view says"
    with pytest.warns(UserWarning, match=match):
        check_views([make(data()), make(empty)])


def test_zero_samples_in_two_views_warn_once():
    one, two = data(), data()
    one[0], two[1:7] = 0, 0
    match = r"\(1 in view 'a', row 0; 6 in view 'b', rows 1, 2, 3, 4, 5, \.\.\.\)"
    with pytest.warns(UserWarning, match=match) as caught:
        check_views({"a": one, "b": two})
    assert len(caught) == 1


def test_zero_samples_of_a_single_view_warn():
    # scikit-learn's own checks fit such rows, so this is no error
    with pytest.warns(UserWarning, match=r"1 in view 0, row 0\)"):
        check_views(np.diag([0.0, 1.0, 2.0]))


# ---- scaling -----------------------------------------------------------------------------------


def test_unit():
    view = data() * np.logspace(-300, 300, 8)[:, None]
    scaled = scale_views(check_views(view), "unit")[0]
    # each of max, division, sum and root rounds once or twice
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1, rtol=1e-15)
    np.testing.assert_allclose(
        scaled, data() / np.linalg.norm(data(), axis=1, keepdims=True), rtol=1e-14
    )


def test_standard():
    view = np.column_stack([data(50, 2) * [1e-200, 1e200] + [3e-200, -5e200], np.full(50, 0.1)])
    scaled = scale_views(check_views(view), "standard+unit")[0]
    plain = (data(50, 2) - data(50, 2).mean(0)) / data(50, 2).std(0)
    plain /= np.linalg.norm(plain, axis=1, keepdims=True)
    # the shift by 3 or 5 loses a digit
    np.testing.assert_allclose(scaled[:, :2], plain, rtol=0, atol=1e-13)
    assert np.all(scaled[:, 2] == 0)  # a constant feature says nothing, nor does its rounding


def test_none_leaves_values():
    np.testing.assert_array_equal(scale_views(check_views(data()), None)[0], data())


def test_scaling_in_another_library():
    for scale in ("unit", "standard+unit", "standard", None):
        ours = scale_views(check_views(data()), scale)[0]
        theirs = scale_views(check_views(strict.asarray(data())), scale)[0]
        np.testing.assert_allclose(np.from_dlpack(theirs), ours, rtol=0, atol=1e-15)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("size", "dtype"), [(1e-200, "float64"), (1e200, "float64"), (1e-20, "f4"), (1e20, "f4")]
)
def test_unscaled_values_whose_squares_overflow_are_refused(size, dtype, make):
    views = check_views([data().astype(dtype), make((data() * size).astype(dtype))])
    with pytest.raises(ValueError, match=r'^view 1 has values of size .*use scale="unit"'):
        scale_views(views, None)


# ---- memory ------------------------------------------------------------------------------------


def test_memory():
    free = available_memory()
    assert free is None or free > 2**20
    check_memory("GRMSC", 10, 8, 10, 0, free)
    with pytest.raises(
        MemoryError,
        match=r"^GRMSC on 50000000 samples needs about .* GiB are free: .* such as AnchorGRMSC\.$",
    ):
        check_memory("GRMSC", 50_000_000, 8, 10, 0, free)


def test_memory_of_methods_without_square_matrices():
    check_memory("LMVSC", 10**6, 8, 0, 100, 2**30)
    match = (
        r"^LMVSC on 1000000 samples needs about 7 GiB for its 1000 numbers per sample, but 1 GiB"
    )
    with pytest.raises(MemoryError, match=match):
        check_memory("LMVSC", 10**6, 8, 0, 1000, 2**30)


def test_numpy_views_are_in_the_order_of_rows():
    strict = pytest.importorskip("array_api_strict")
    for X in (np.asfortranarray(data()), strict.asarray(data())):
        found = numpy_views(check_views([X]), None)[0]
        assert isinstance(found, np.ndarray)
        assert found.flags.c_contiguous
        np.testing.assert_array_equal(found, data())


def test_widths():
    views = check_views([data(8, 4), sp.csr_array(np.eye(8, 100))])
    assert views.widths == [4, 1]


def test_views_know_their_size():
    assert Views([data(5)], ["0"]).n_samples == 5


def test_a_dask_array_is_refused_in_a_sentence():
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match=r"^view 'rna' is a dask array: call its compute\(\) "):
        check_views({"rna": da.zeros((5, 3)), "b": np.eye(5)})
    with pytest.raises(ValueError, match=r"^X is a dask array: .* give AnchorGRMSC a list"):
        check_views(da.zeros((5, 3)))
