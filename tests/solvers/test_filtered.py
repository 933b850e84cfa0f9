import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.runtime.threads import Threads, bounds
from polyspan.solvers import filtered
from polyspan.solvers.filtered import leading_eigenvectors


def graph(n=600, c=4, dtype=np.float64):
    """A normalized graph of c groups with a few links between them."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, c, n)
    near = rng.random((n, n)) < np.where(group[:, None] == group, 0.1, 0.004)
    W = (near | near.T | np.eye(n, dtype=bool)).astype(float)
    root = 1 / np.sqrt(W.sum(axis=1))
    return sp.csr_array(root[:, None] * W * root).astype(dtype)


def solved(N, size=8, wanted=4, rows=250, threads=1, **options):
    spans = bounds(N.shape[0], rows)
    with Threads(threads) as workers:
        blocks = [N[a:b] for a, b in spans]
        w, Ys, residual = leading_eigenvectors(workers, blocks, spans, size, wanted, **options)
    return w, np.concatenate(Ys), residual


def test_finds_the_eigenvectors_of_a_dense_solver():
    N = graph()
    w, Y, residual = solved(N, tol=1e-9)
    true, V = np.linalg.eigh(N.toarray())
    assert residual <= 1e-9
    assert_allclose(w[:4], true[: -4 - 1 : -1], atol=1e-12)  # the error is that squared
    assert_allclose(np.abs(V[:, : -4 - 1 : -1].T @ Y[:, :4]), np.eye(4), atol=1e-7)
    assert_allclose(Y.T @ Y, np.eye(8), atol=1e-8)  # whitened to half of the digits


def test_the_residual_is_that_of_the_wanted_vectors():
    N = graph()
    w, Y, residual = solved(N, tol=1e-3)
    lengths = np.linalg.norm(N @ Y - Y * w, axis=0)
    assert_allclose(residual, lengths[:4].max(), rtol=1e-6)
    assert residual <= 1e-3


def test_a_good_start_is_not_filtered(monkeypatch):
    N = graph()
    w, Y, _ = solved(N, tol=1e-6)
    monkeypatch.delattr(filtered, "_filtered")
    mixed = Y @ np.linalg.qr(np.random.default_rng(0).normal(size=(8, 8)))[0]
    found, _, residual = solved(N, tol=2e-6, start=np.split(mixed, [250, 500]))
    assert_allclose(found, w, atol=1e-12)
    assert residual <= 2e-6


def test_too_few_rounds_are_told_by_the_residual(monkeypatch):
    monkeypatch.setattr(filtered, "ROUNDS", 1)
    monkeypatch.setattr(filtered, "DEGREE", 2)
    assert solved(graph(), tol=1e-6)[2] > 1e-2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_depends_on_the_threads(dtype):
    N = graph(dtype=dtype)
    w, Y, _ = solved(N)
    for threads in (2, 3):
        other = solved(N, threads=threads)
        assert_array_equal(other[0], w)
        assert_array_equal(other[1], Y)
    assert Y.dtype == dtype


def test_nothing_but_rounding_depends_on_the_blocks():
    N = graph()
    Y, other = solved(N)[1], solved(N, rows=37)[1]
    assert_allclose(np.abs(Y[:, :4].T @ other[:, :4]), np.eye(4), atol=1e-9)


def test_float32_is_as_good_as_needed():
    w, _, residual = solved(graph(dtype=np.float32), tol=1e-5)
    assert residual <= 1e-5
    assert_allclose(w[:4], solved(graph(), tol=1e-9)[0][:4], atol=1e-6)


def test_the_filter_is_a_chebyshev_polynomial():
    w, cut = np.linspace(-1, 1, 9), 0.8
    N, Y = sp.csr_array(np.diag(w)), np.ones((9, 1))
    with Threads(1) as workers:
        (found,) = filtered._filtered(workers, [N], [Y], [N @ Y], cut, N.dtype)
    degree = filtered._degree(cut, N.dtype)
    wanted = np.polynomial.Chebyshev.basis(degree)((2 * w - cut + 1) / (cut + 1))
    assert degree > 5
    assert_allclose(found.ravel(), wanted, rtol=1e-9)
    assert np.all(np.abs(found.ravel()[w <= cut]) <= 1 + 1e-9)
    assert 1e8 < wanted[-1] <= 1e10 or degree == filtered.DEGREE
