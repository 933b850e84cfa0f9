import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from polyspan.chunked.chunks import Rows, inspect, make_chunks, standardize
from polyspan.chunked.sources import is_large, open_views
from polyspan.chunked.workers import Threads, bounds
from polyspan.inputs.rows import check_content, joined
from polyspan.inputs.scaling import scale_views
from polyspan.inputs.views import Views, check_views


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(50, 4))


def read(view, a, b):
    """Some rows of a view, as they are."""
    return Rows([view], a, b, None, None, np.float64).read(0)


def write(X, folder: Path, kind):
    """The matrix in a file, or as a lazy array."""
    path = folder / f"view.{kind}"
    if kind == "npy":
        np.save(path, X)
    elif kind == "parquet":
        pd.DataFrame(X, columns=list("abcd")).to_parquet(path, row_group_size=7)
    elif kind == "zarr":
        zarr = pytest.importorskip("zarr")
        zarr.create_array(store=path, data=X, chunks=(9, 2))
    return path


@pytest.mark.parametrize("kind", ["npy", "parquet", "zarr"])
def test_files_are_read_by_rows(X, tmp_path, kind):
    path = write(X, tmp_path, kind)
    for form in (path, str(path)):
        assert is_large([form])
        (view,), names = open_views([form])
        assert tuple(view.shape) == X.shape
        assert names == ["0"]
        for a, b in [(0, 50), (0, 1), (6, 8), (13, 14), (20, 49), (49, 50)]:
            np.testing.assert_array_equal(read(view, a, b), X[a:b])


@pytest.mark.parametrize("kind", ["memmap", "zarr", "dask"])
def test_lazy_arrays_are_read_by_rows(X, tmp_path, kind):
    if kind == "memmap":
        lazy = np.load(write(X, tmp_path, "npy"), mmap_mode="r")
    elif kind == "zarr":
        lazy = pytest.importorskip("zarr").open_array(write(X, tmp_path, "zarr"))
    else:
        lazy = pytest.importorskip("dask.array").from_array(X, chunks=(11, 2))
    assert is_large({"a": lazy})
    assert is_large(lazy)
    views, names = open_views({"a": lazy, "b": X})
    assert names == ["a", "b"]
    for view in views:
        np.testing.assert_array_equal(read(view, 9, 30), X[9:30])


def test_arrays_in_memory_are_not_large(X):
    assert not is_large([X, sp.csr_array(X), pd.DataFrame(X), X.tolist()])
    assert not is_large(X)


def test_parquet_is_read_by_many_threads(X, tmp_path):
    (view,), _ = open_views([write(X, tmp_path, "parquet")])
    starts = list(range(0, 49)) * 20
    with Threads(8) as workers:
        parts = workers.map(lambda a: view[a : a + 2], starts)
    for a, part in zip(starts, parts, strict=True):
        np.testing.assert_array_equal(part, X[a : a + 2])


@pytest.mark.parametrize("index", [np.arange(50)[::-1], [f"s{i}" for i in range(50)]])
@pytest.mark.parametrize("name", [None, "sample"])
def test_the_index_of_pandas_is_no_feature(X, tmp_path, index, name):
    table = pd.DataFrame(X, columns=list("abcd"), index=pd.Index(index, name=name))
    table.to_parquet(tmp_path / "x.parquet", row_group_size=7)
    (view,), _ = open_views([tmp_path / "x.parquet"])
    assert view.shape == (50, 4)
    np.testing.assert_array_equal(read(view, 5, 20), X[5:20])


def test_parquet_can_be_sent_and_cut_by_columns(X, tmp_path, monkeypatch):
    write(X, tmp_path, "parquet")
    monkeypatch.chdir(tmp_path)
    (view,), _ = open_views(["view.parquet"])
    monkeypatch.chdir("/")  # another process may be elsewhere
    sent = pickle.loads(pickle.dumps(view))
    np.testing.assert_array_equal(sent[3:9, 1:3], X[3:9, 1:3])


def test_dask_without_known_sizes_is_named(X):
    dd = pytest.importorskip("dask.dataframe")
    table = dd.from_pandas(pd.DataFrame(X, columns=["a", "b", "chunks", "d"]), npartitions=3)
    advice = r": give the array that the table's to_dask_array\(lengths=True\) returns\.$"
    with pytest.raises(ValueError, match="^view 't' is a dask table" + advice):
        open_views({"x": X, "t": table})
    with pytest.raises(ValueError, match="^view 1 is a dask array with .* unknown size" + advice):
        open_views([X, table.values])
    (view,), _ = open_views([table.to_dask_array(lengths=True)])
    np.testing.assert_array_equal(read(view, 9, 30), X[9:30])


def test_wrong_files(X, tmp_path):
    with pytest.raises(ValueError, match=r"^view 1: cannot read a.csv; .* end in .npy, .parquet"):
        open_views([write(X, tmp_path, "npy"), "a.csv"])
    with pytest.raises(FileNotFoundError, match=r"^view 0: there is no file .*gone.npy"):
        open_views([tmp_path / "gone.npy"])
    pd.DataFrame({"a": [1.0, 2], "name": ["x", "y"]}).to_parquet(tmp_path / "text.parquet")
    with pytest.raises(ValueError, match=r"columns that are not numbers \(name\)"):
        open_views([tmp_path / "text.parquet"])
    np.save(tmp_path / "words.npy", np.array([["a"], ["b"]]))
    with pytest.raises(ValueError, match=r"^view 'w' holds <U1 values"):
        open_views({"w": tmp_path / "words.npy"})
    np.save(tmp_path / "flat.npy", np.ones(5))
    with pytest.raises(ValueError, match=r"^view 0 has the shape \(5,\)"):
        open_views([tmp_path / "flat.npy"])
    np.save(tmp_path / "short.npy", X[:49])
    with pytest.raises(ValueError, match="view 0 has 50 samples, view 1 has 49 samples"):
        open_views([write(X, tmp_path, "npy"), tmp_path / "short.npy"])


def look(views, size=7):
    n = len(views[0])
    seen = [inspect([X[a:b] for X in views]) for a, b in bounds(n, size)]
    return [joined([part.content for part in parts]) for parts in zip(*seen, strict=True)]


def test_bad_rows_are_named(X):
    X = X.copy()
    X[[3, 48]] = np.nan
    where = r"\(2 of 50 samples: rows 3, 48\)"
    with pytest.raises(ValueError, match="^view 'b' contains NaN: drop or impute .*" + where):
        check_content(look([np.eye(50), X]), ["a", "b"])
    X[[3, 48]] = np.inf
    with pytest.raises(ValueError, match="^view 'b' contains inf .*: drop or impute .*" + where):
        check_content(look([np.eye(50), X]), ["a", "b"])


def test_constant_views_and_lost_samples(X):
    check_content(look([X, np.eye(50)]), ["a", "b"])
    with pytest.raises(ValueError, match=r"^view 'b' is constant \(all 50 samples are equal\)"):
        check_content(look([X, np.ones((50, 2))]), ["a", "b"])
    steps = np.repeat(np.arange(2.0), [7, 43])[:, None]  # constant within every chunk, not as whole
    check_content(look([steps + 1]), ["a"])
    X = X.copy()
    X[9] = 0
    with pytest.warns(UserWarning, match=r"all zeros \(1 in view 'a', row 9\)"):
        check_content(look([X, X + 1]), ["a", "b"])
    with pytest.raises(ValueError, match=r"^1 of 50 samples are all zeros in every view \(row 9\)"):
        check_content(look([X, X]), ["a", "b"])
    check_content(look([np.ones((9, 2))]), ["a"], new=True)
    with pytest.raises(ValueError, match=r"^1 of 50 samples are all zeros in every view \(row 9\)"):
        check_content(look([X, X]), ["a", "b"], new=True)


@pytest.mark.parametrize("scale", ["unit", "standard+unit", "standard", None])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_chunks_are_scaled_as_the_whole(X, form, scale):
    X = np.where(np.abs(X) > 0.3, X, 0) * [1, 10, 100, 0.1] + [1.0, 0.0, 0.0, 0.0]
    views = [form(X), form(np.hstack([X[:, :2] ** 2, np.ones((50, 1))]))]
    wanted = scale_views(check_views(views), scale)
    spans = bounds(50, 8)
    scaling = standardize([inspect([v[a:b] for v in views]) for a, b in spans])
    for a, b in spans:
        for part, whole in zip(Rows(views, a, b, scale, scaling, np.float64), wanted, strict=True):
            part, whole = (x.toarray() if sp.issparse(x) else x for x in (part, whole))
            np.testing.assert_allclose(part, whole[a:b], rtol=0, atol=1e-12)


def test_the_last_chunk_ends_where_the_rows_end():
    assert bounds(20, 8) == [(0, 8), (8, 16), (16, 20)]
    with Threads(1) as workers:
        views = Views([np.eye(20)], ["0"])
        chunks, spans, _ = make_chunks(workers, views, 8, "unit", np.float64, True)
    assert [len(chunk[0]) for chunk in chunks] == [b - a for a, b in spans] == [8, 8, 4]


def test_threads_keep_the_order_and_pass_errors_on():
    with Threads(4) as workers:
        assert workers.map(lambda x: x * x, range(100)) == [x * x for x in range(100)]
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            workers.map(lambda x: 1 / x, [1, 0])


@pytest.mark.parametrize("factor", [1e160, 1e300, 1e-170])
def test_very_large_and_small_numbers_are_standardized(factor):
    X = np.random.default_rng(0).normal(size=(50, 3))
    [(size, mean, spread)] = standardize([inspect([factor * X[:20]]), inspect([factor * X[20:]])])
    # ratios of sums of 50 numbers
    np.testing.assert_allclose(size / factor * mean, X.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(size / factor * spread, X.std(axis=0), rtol=1e-13)
