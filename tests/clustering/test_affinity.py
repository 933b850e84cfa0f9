import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp

from polyspan.clustering.affinity import affinity_matrix


def Z(n=9, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n))


def test_dense():
    np.testing.assert_array_equal(affinity_matrix(Z()), np.abs(Z()) + np.abs(Z()).T)


@pytest.mark.parametrize("n_kept", [1, 3, 8, 9, 10**9])
def test_sparse_keeps_the_largest_of_every_column(n_kept):
    A = np.abs(Z())
    kept = np.zeros_like(A)
    for j in range(9):
        rows = np.argsort(-A[:, j], kind="stable")[:n_kept]
        kept[rows, j] = A[rows, j]
    found = affinity_matrix(Z(), "sparse", n_kept)
    assert isinstance(found, sp.csr_array)
    np.testing.assert_array_equal(found.toarray(), kept + kept.T)


def test_sparse_stores_no_zeros():
    found = affinity_matrix(np.diag([1.0, 2.0, 3.0, 4.0]), "sparse", 3)
    assert found.nnz == 4


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_symmetric_non_negative_and_of_the_same_dtype(kind, dtype):
    given = Z().astype(dtype)
    given.setflags(write=False)
    found = affinity_matrix(given, kind, 2)
    assert found.dtype == dtype
    dense = found.toarray() if kind == "sparse" else found
    np.testing.assert_array_equal(dense, dense.T)
    assert dense.min() >= 0


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_another_library(kind):
    found, wanted = affinity_matrix(strict.asarray(Z()), kind), affinity_matrix(Z(), kind)
    if kind == "sparse":
        np.testing.assert_array_equal(found.toarray(), wanted.toarray())
    else:
        np.testing.assert_array_equal(np.from_dlpack(found), wanted)
