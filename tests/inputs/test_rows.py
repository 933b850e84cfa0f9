"""Sparse matrices with indices that point outside are refused before compiled code sees them."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyspan import METHODS
from polyspan.inputs.views import check_views
from polyspan.io.safety import check_sparse


def damaged(kind, indices=(0, 1), ends=(0, 1, 2, 2)):
    """A 3 x 2 matrix (2 x 3 by columns) with these indices; SciPy's constructors look at little."""
    make = {"csr": sp.csr_array, "csc": sp.csc_array, "matrix": sp.csr_matrix}[kind]
    matrix = make((3, 2) if kind != "csc" else (2, 3))
    matrix.data = np.ones(len(indices))
    matrix.indices, matrix.indptr = np.array(indices), np.array(ends)
    return matrix


CASES = {
    "far": ({"indices": (0, 10**9)}, "must be < 2"),
    "one too far": ({"indices": (0, 2)}, "must be < 2"),
    "negative": ({"indices": (0, -1)}, "must be >= 0"),
    "ends": ({"ends": (0, 10**6, 2, 2)}, "non-decreasing"),
    "start": ({"ends": (1, 1, 2, 2)}, "start with 0"),
    "past the end": ({"ends": (0, 1, 2, 9)}, "Last value of index pointer"),
    "short": ({"ends": (0, 1, 2)}, "index pointer size"),
    "long": ({"indices": (0, 1, 1), "ends": (0, 1, 2, 2)}, None),  # what is past the end is unused
    "good": ({}, None),
}


@pytest.mark.parametrize("kind", ["csr", "csc", "matrix"])
@pytest.mark.parametrize("case", CASES)
def test_every_index_is_checked(kind, case):
    change, match = CASES[case]
    matrix = damaged(kind, **change)
    if match is None:
        assert check_sparse(matrix, "it") is matrix
    else:
        with pytest.raises(ValueError, match=f"^rna is a damaged sparse matrix .*{match}.*again"):
            check_sparse(matrix, "rna")


def test_blocks_and_triplets():
    blocks = sp.bsr_array(np.kron(np.eye(2), np.ones((2, 3))), blocksize=(2, 3))
    assert check_sparse(blocks, "it") is blocks
    blocks.indices = np.array([0, 2], dtype=np.int32)
    with pytest.raises(ValueError, match="must be < 2"):
        check_sparse(blocks, "it")
    triplets = sp.coo_array(np.eye(3))
    assert check_sparse(triplets, "it") is triplets
    triplets.coords = (np.array([0, 1, 3]), np.array([0, 1, 2]))
    with pytest.raises(ValueError, match="index 3 exceeds matrix dimension 3"):
        check_sparse(triplets, "it")
    triplets.coords = (np.array([0, 1]), np.array([0, 1]))
    with pytest.raises(ValueError, match="length"):
        check_sparse(triplets, "it")
    for other in (sp.dia_array(np.eye(3)), sp.lil_array(np.eye(3)), sp.dok_array(np.eye(3))):
        assert check_sparse(other, "it") is other


@pytest.mark.parametrize("kind", ["csr", "csc", "matrix"])
def test_views_in_memory_too(kind):
    with pytest.raises(ValueError, match=r"^view 'rna' is a damaged sparse matrix"):
        check_views({"rna": damaged(kind, indices=(0, 10**9)), "other": np.eye(3)})


def test_graphs_too():
    graph = sp.csr_array(np.ones((6, 6)))
    graph.indices[-1] = 10**9
    model = METHODS["grmsc"](2, graphs=[graph])
    with pytest.raises(ValueError, match="GRMSC: the graph of view 0 is a damaged sparse matrix"):
        model.fit([np.random.default_rng(0).normal(size=(6, 3))])
