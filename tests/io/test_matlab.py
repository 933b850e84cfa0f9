"""The readers of .mat and .mtx agree with SciPy's on good files, and raise on spoiled ones."""

import gzip
import struct
import zlib

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from cases import case
from numpy.testing import assert_array_equal

from polyspan.io import load_file, readers
from polyspan.io.readers import read_file, read_matrix_market

RNG = np.random.default_rng(0)
CELLS = np.empty((1, 2), dtype=object)
CELLS[0, 0], CELLS[0, 1] = np.eye(3), np.ones((3, 2), dtype=np.uint8)
VARIABLES = {
    "x": RNG.normal(size=(4, 3)),
    "single": RNG.normal(size=(2, 2)).astype(np.float32),
    "whole": np.arange(6, dtype=np.int16).reshape(2, 3),
    "cube": RNG.normal(size=(2, 3, 4)),
    "flags": np.array([[True, False]]),
    "empty": np.empty((0, 3)),
    "complex": np.array([[1 + 2j, 3.0]]),
    "sparse": sp.csc_matrix(np.diag([1.0, 0.0, 2.0])[:, :2]),
    "zeros": sp.csc_matrix((3, 2)),
    "names": ["one", "three"],
    "cells": CELLS,
    "struct": {"a": 1.0},
}


@pytest.mark.parametrize("packed", [False, True])
def test_every_kind_of_variable_is_read_as_scipy_reads_it(packed, tmp_path):
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, VARIABLES, do_compression=packed)
    found, wanted = read_file(path), scipy.io.loadmat(path)
    assert list(found) == list(VARIABLES)
    for one, other in zip(found["cells"], wanted["cells"].ravel(), strict=True):
        assert_array_equal(one, other)
    for name in ("sparse", "zeros"):
        assert_array_equal(found[name].toarray(), wanted[name].toarray())
    for name in ("x", "single", "whole", "cube", "flags", "empty", "complex", "names"):
        with case(name):
            assert found[name].shape == wanted[name].shape
            assert_array_equal(found[name], wanted[name])


@pytest.mark.slow
def test_many_cuts_and_flips_are_errors_or_variables(tmp_path):
    """Some of them end SciPy's reader, which runs in a process of its own."""
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {k: VARIABLES[k] for k in ("x", "sparse", "cells", "names")})
    whole = path.read_bytes()
    refused = []
    for at in range(128, len(whole), 83):
        for content in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :]):
            path.write_bytes(content)
            with case(at, len(content)):
                try:
                    read_file(path)
                except ValueError as error:
                    refused.append(str(error))
    assert len(refused) > 5
    assert not any("\n" in told for told in refused)
    assert all("x.mat cannot be read" in told or "damaged sparse" in told for told in refused)


def test_a_file_that_ends_the_reader_is_damaged(tmp_path, monkeypatch):
    scipy.io.savemat(tmp_path / "x.mat", VARIABLES)
    monkeypatch.setattr(readers, "_LOADMAT", "import os; os.kill(os.getpid(), 11)")
    with pytest.raises(ValueError, match=r"x\.mat cannot be read: its structure is damaged"):
        read_file(tmp_path / "x.mat")


def test_a_packed_variable_that_says_too_little_of_itself(tmp_path):
    """With 100 MB of zeros behind it, which are not unpacked."""
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"x": np.eye(2)}, do_compression=False)
    header, matrix = path.read_bytes()[:128], path.read_bytes()[128:]
    body = zlib.compress(matrix + bytes(10**8))
    path.write_bytes(header + struct.pack("<II", 15, len(body)) + body)
    with pytest.raises(ValueError, match=r"x\.mat cannot be read as a MATLAB file: .* corrupted"):
        read_file(path)


A = RNG.normal(size=(4, 4))
MATRICES = {
    "general": A[:, :3],
    "symmetric": A + A.T,
    "skew": A - A.T,
    "whole": np.arange(6).reshape(2, 3),
    "sparse": sp.coo_array(A * (A > 0)),
    "sparse symmetric": sp.coo_array((A + A.T) * (A + A.T > 0)),
    "sparse skew": sp.coo_array((A - A.T) * (np.abs(A - A.T) > 0.5)),
    "sparse whole": sp.coo_array(np.diag([1, 0, 3])),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", MATRICES)
def test_matrix_market_as_scipy_reads_it(name, packed, tmp_path):
    path = tmp_path / "x.mtx"
    scipy.io.mmwrite(path, MATRICES[name])
    wanted = scipy.io.mmread(path)
    if packed:
        content, path = path.read_bytes(), tmp_path / "x.mtx.gz"
        path.write_bytes(gzip.compress(content))
    found = read_matrix_market(path)
    assert sp.issparse(found) == sp.issparse(wanted)
    assert_array_equal(*(one.toarray() if sp.issparse(one) else one for one in (found, wanted)))


HEAD = "%%MatrixMarket matrix coordinate real general\n% words\n\n"
WRONG = {
    "no header": ("1 2 3\n", "its first line is not"),
    "complex": (HEAD.replace("real", "complex") + "1 1 0\n", "that are complex general are not"),
    "no size": (HEAD, "its size is missing"),
    "two sizes": (HEAD + "2 2\n", "its size is missing"),
    "negative": (HEAD + "2 -2 0\n", r"its size is \[2, -2, 0\]"),
    "too few": (HEAD + "2 2 2\n1 1 5\n", "it holds 1 entries where 2 should be"),
    "too many": (HEAD + "2 2 1\n1 1 5\n2 2 5\n", "it holds more than the 1 entries that its"),
    "words": (HEAD + "2 2 2\n1 1 5\n2 two 5\n", "could not convert string to float"),
    "a short row": (HEAD + "2 2 2\n1 1 5\n2 2\n", "could not convert|Expected"),
    "a long row": (HEAD + "2 2 2\n1 1 5\n2 2 5 7\n", "Expected 3 fields in line 2, saw 4"),
    "index 0": (HEAD + "2 2 1\n0 1 5\n", "an index is not from 1 to 2"),
    "index 3": (HEAD + "2 2 1\n1 3 5\n", "an index is not from 1 to 2"),
    "index 1.5": (HEAD + "2 2 1\n1 1.5 5\n", "an index is not from 1 to 2"),
    "not square": (HEAD.replace("general", "symmetric") + "2 3 0\n", r"its size is \[2, 3, 0\]"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_matrix_market_files_that_are_wrong(name, tmp_path):
    text, match = WRONG[name]
    (tmp_path / "x.mtx").write_text(text)
    with pytest.raises(ValueError, match=rf"x\.mtx cannot be read as MatrixMarket: .*({match})"):
        load_file(tmp_path / "x.mtx")
