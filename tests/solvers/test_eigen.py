import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.solvers.eigen import lowest_eigenpairs


@pytest.mark.parametrize("gives_up", [False, True])
def test_the_lowest_eigenpairs_whatever_lapack_says(gives_up, monkeypatch):
    def refuse(*args, **options):
        raise np.linalg.LinAlgError("did not converge")

    A = np.random.default_rng(0).normal(size=(7, 7))
    A = A + A.T
    if gives_up:
        monkeypatch.setattr("scipy.linalg.eigh", refuse)
    w, V = lowest_eigenpairs(A, 3)
    assert_allclose(w, np.linalg.eigvalsh(A)[:3], rtol=0, atol=1e-13)
    assert_allclose(A @ V, V * w, rtol=0, atol=1e-13)
