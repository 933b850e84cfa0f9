"""Files written to do harm: wrong indices, and a few bytes that unpack to more than memory."""

import gzip
import struct
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from polyspan.io import load_file, load_views, safety
from polyspan.io.readers import _sparse_matrix
from polyspan.io.safety import unpacked_size

WRONG = {
    "indices": (np.ones(2), np.array([0, 10**9]), np.array([0, 1, 2])),
    "ends": (np.ones(2), np.array([0, 1]), np.array([0, 10**6, 2])),
}


def npz(path, how):
    data, indices, ends = WRONG[how]
    np.savez(path, format=b"csc", shape=(2, 2), data=data, indices=indices, indptr=ends)


def mat(path, how):
    scipy.io.savemat(path, {"x": sp.csc_matrix(np.eye(2))})  # SciPy would crash at wrong ones
    good, bad = {
        "indices": (struct.pack("<4i", 5, 8, 0, 1), struct.pack("<4i", 5, 8, 0, 10**9)),
        "ends": (struct.pack("<5i", 5, 12, 0, 1, 2), struct.pack("<5i", 5, 12, 0, 10**6, 2)),
    }[how]
    content = path.read_bytes()
    assert content.count(good) == 1
    path.write_bytes(content.replace(good, bad))


def mat73(path, how):
    data, indices, ends = WRONG[how]
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("x")
        group.attrs["MATLAB_sparse"] = np.uint64(2)
        for name, values in (("data", data), ("ir", indices), ("jc", ends)):
            group[name] = values
    with open(path, "r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(128))


def h5ad(path, how):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(sp.csc_matrix(np.eye(2))).write_h5ad(path)
    data, indices, ends = WRONG[how]
    with h5py.File(path, "r+") as file:
        for name, values in (("data", data), ("indices", indices), ("indptr", ends)):
            del file["X"][name]
            file["X"][name] = values


FILES = {"x.npz": npz, "x.mat": mat, "y.mat": mat73, "x.h5ad": h5ad}


@pytest.mark.parametrize("how", WRONG)
@pytest.mark.parametrize("name", FILES)
def test_wrong_indices_are_refused_not_followed(name, how, tmp_path):
    path = tmp_path / name
    FILES[name](path, how)
    with pytest.raises(ValueError, match="damaged sparse matrix") as caught:
        load_views([path]) if name.endswith("h5ad") else load_file(path, views=["x"])
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("how", WRONG)
def test_sparse_matrices_of_r(how):
    data, indices, ends = WRONG[how]
    slots = SimpleNamespace(x=data, i=indices, p=ends, Dim=[2, 2], Dimnames=[None, None])
    with pytest.raises(ValueError, match="damaged sparse matrix"):
        _sparse_matrix(slots, {"class": ["dgCMatrix"]})


def big_npz(path):
    np.savez_compressed(path, x=np.zeros((1000, 1000)))


def big_mat(path):
    scipy.io.savemat(path, {"x": np.zeros((1000, 1000))}, do_compression=True)


def big_mat73(path):
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("x", data=np.zeros((1000, 1000)), compression="gzip")
    with open(path, "r+b") as stream:
        stream.write(b"MATLAB 7.3 MAT-file".ljust(128))


def big_mtx(path):
    with gzip.open(path, "wt") as stream:
        stream.write("%%MatrixMarket matrix array real general\n% zeros\n1000 1000\n")
        stream.write("0\n" * 10**6)


def big_h5ad(path):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(np.zeros((1000, 1000))).write_h5ad(path, compression="gzip")


def big_parquet(path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    table = pyarrow.table({f"c{j}": np.zeros(10_000) for j in range(100)})
    parquet.write_table(table, path)


def big_rds(path):
    with gzip.open(path, "wb") as stream:
        stream.write(bytes(8 * 10**6))


BIG = {
    "x.npz": big_npz, "x.mat": big_mat, "y.mat": big_mat73, "x.mtx.gz": big_mtx,
    "x.h5ad": big_h5ad, "x.parquet": big_parquet, "x.rds": big_rds,
}  # fmt: skip


@pytest.mark.parametrize("name", BIG)
def test_what_a_packed_file_holds_is_known_before_it_is_read(name, tmp_path, monkeypatch):
    path = tmp_path / name
    BIG[name](path)
    ending = "." + name.removesuffix(".gz").split(".")[1]
    assert path.stat().st_size < 10**6
    if ending != ".mtx":  # which is read while it is unpacked
        # 8 MB, with headers of a few kB in some formats
        assert 8 * 10**6 <= unpacked_size(path, ending) < 8.1 * 10**6
    monkeypatch.setattr("polyspan.runtime.memory.available_memory", lambda: 15 * 10**6)
    match = r"x?y?\..* holds about 0.007 GiB, and reading it takes about 2 times .* are free"
    with pytest.raises(MemoryError, match=match):
        load_views([path])


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"MATLAB 5.0", bytes(200), b"\x1f\x8b\x00"]
)
@pytest.mark.parametrize("name", BIG)
def test_a_damaged_file_still_gets_its_reader_s_words(name, content, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match=r"cannot be read|is empty|no matrices|not a matrix"
    ) as one:
        load_views([path])
    assert str(path) in str(one.value)


@pytest.mark.parametrize("name", ["x.h5ad", "y.mat"])
@pytest.mark.parametrize(
    "code", ["import time; time.sleep(60)", "import os; os.kill(os.getpid(), 11)"]
)
def test_hdf5_is_asked_in_a_process_that_may_die(name, code, tmp_path, monkeypatch):
    """The HDF5 library crashes at some damaged files and never returns from others."""
    path = tmp_path / name
    BIG[name](path)
    monkeypatch.setattr(safety, "_HDF5", code)
    monkeypatch.setattr(safety, "PATIENCE", 0.5)
    with pytest.raises(ValueError, match="cannot be read: its HDF5 structure is damaged"):
        load_views([path])


def test_modules_beside_the_data_are_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("pickle.py", "h5py.py", "json.py"):
        (tmp_path / name).write_text("open('harm', 'w')")
    scipy.io.savemat("x.mat", {"x": np.eye(3)})
    big_h5ad("x.h5ad")
    assert load_file("x.mat").views[0].shape == (3, 3)
    assert load_views(["x.h5ad"]).views[0].shape == (1000, 1000)
    assert not (tmp_path / "harm").exists()


def test_a_damaged_group_is_told_in_a_sentence(tmp_path):
    path = tmp_path / "cells.mat"
    with h5py.File(path, "w") as file:
        file["X"] = np.eye(3)
    path.write_bytes(path.read_bytes().replace(b"SNOD", b"XXXX"))  # the table of names
    with pytest.raises(ValueError, match=r"cells\.mat is damaged: .*bad symbol table"):
        load_file(path)
