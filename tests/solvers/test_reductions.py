import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from numpy.testing import assert_allclose

from polyspan.runtime import arrays
from polyspan.solvers import eigen, reductions


@pytest.mark.parametrize("d", [3, 20, 57])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_reduced_rows_keep_products_and_map_back(d, kind):
    X = np.random.default_rng(0).normal(size=(20, d)) * (np.arange(d) % 3 > 0)  # some empty columns
    R, back = reductions.reduce_rows(kind(X))
    assert R.shape[0] <= min(20, d)
    assert_allclose(R.T @ R, X @ X.T, rtol=0, atol=1e-12)
    full = X.T if kind is np.asarray else X.T[X.any(axis=0)]  # sparse: without empty columns
    assert_allclose(back(R), full, rtol=0, atol=1e-12)
    D = R @ np.random.default_rng(1).normal(size=(20, 20))  # anything in the range of X
    assert_allclose(np.linalg.norm(back(D), axis=0), np.linalg.norm(D, axis=0), rtol=1e-10)


def test_reduced_rows_drop_what_is_dependent():
    X = np.random.default_rng(0).normal(size=(20, 4)) @ np.random.default_rng(1).normal(
        size=(4, 99)
    )
    R, back = reductions.reduce_rows(X)
    assert R.shape == (4, 20)
    assert_allclose(back(R), X.T, rtol=0, atol=1e-10)


@pytest.mark.parametrize("mu", [1e-4, 1.0, 1e6])
def test_z_step_solves_its_equation_for_every_mu(mu):
    rng = np.random.default_rng(0)
    X, W, B = rng.normal(size=(5, 15)), rng.uniform(size=(15, 15)), rng.normal(size=(15, 15))
    G, W = X.T @ X, W + W.T
    L = np.diag(W.sum(axis=1)) - W
    A, M = mu * (G + np.eye(15)), L + L.T

    F, eye = B, np.eye(15)
    B = mu * G - F
    close = {"rtol": 1e-8, "atol": 1e-10 * max(1, 1 / mu)}

    I, d, solve = reductions.factor_z_step(G, L, "samples")
    expected = scipy.linalg.solve_sylvester(A, M, B)
    assert_allclose(eye - I.T @ solve(mu, I @ F), expected, **close)

    I, d, solve = reductions.factor_z_step(G, L, "published")
    assert_allclose(eye - I.T @ solve(mu, I @ F), np.linalg.solve(A + M, B), **close)

    assert_allclose(I @ G @ I.T, np.diag(d[:, 0] - 1), rtol=0, atol=1e-12)

    I, d, solve = reductions.factor_z_step(G, None)
    assert_allclose(eye - I.T @ solve(mu, I @ F), np.linalg.solve(A, B), **close)


def test_order_statistics():
    A = np.random.default_rng(0).integers(0, 9, size=(6, 11)).astype(float)  # with ties
    assert arrays.order_statistics(A.ravel(), [0, 7, 65]) == list(np.sort(A.ravel())[[0, 7, 65]])


def spectrum(values, seed=0):
    n = len(values)
    Q, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))
    return (Q * values) @ Q.T


def test_top_eigenvectors_prove_that_there_are_none():
    top = eigen.TopEigenvectors()
    w, V = top(spectrum(np.linspace(0, 1, 250)), 1.001)
    assert w.shape == (0,)
    assert V.shape == (250, 0)
    assert top.how == "none"


def test_top_eigenvectors_from_a_warm_start():
    values = 0.97 ** np.arange(250)
    C = spectrum(values)
    top = eigen.TopEigenvectors()
    for limit in (0.5, 0.4, 0.3):
        w, V = top(C, limit)
        assert_allclose(w, np.sort(values[values > limit]), rtol=0, atol=1e-12)
        assert_allclose(C @ V, V * w, rtol=0, atol=1e-9)
        assert_allclose(V.T @ V, np.eye(len(w)), rtol=0, atol=1e-12)
    assert top.how == "partial"


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_a_missed_eigenvalue_is_noticed(scale):
    # The memory holds the right vectors of C; then one more large eigenvalue appears in a
    # direction that they do not contain: only the Cholesky certificate can see it.
    values = np.zeros(300)
    values[:3] = 4, 3, 2
    C = scale * spectrum(values)
    top = eigen.TopEigenvectors()
    top(C, scale)
    top(C, scale)
    assert top.how == "partial"
    _, V = np.linalg.eigh(C)
    known = np.hstack([top._V, V[:, -3:]])
    new = np.random.default_rng(1).normal(size=300)
    new -= known @ np.linalg.lstsq(known, new, rcond=None)[0]
    new /= np.linalg.norm(new)
    w, _ = top(C + 2.5 * scale * np.outer(new, new), scale)
    assert top.how == "full"
    assert_allclose(w / scale, [2, 2.5, 3, 4], rtol=0, atol=1e-12)


def test_eigh_has_a_second_driver(monkeypatch):
    def refuse(A):
        raise np.linalg.LinAlgError("did not converge")

    C = spectrum(np.arange(5.0))
    monkeypatch.setattr(np.linalg, "eigh", refuse)
    monkeypatch.setattr("array_api_compat.numpy.linalg.eigh", refuse)
    w, V = eigen.eigh(C)
    assert_allclose((V * w) @ V.T, C, rtol=0, atol=1e-12)


@pytest.mark.parametrize("d", [3, 20, 57])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_orthogonal_rows_keep_products_and_map_back(d, kind):
    X = np.random.default_rng(0).normal(size=(20, d))
    R, s2, back = reductions.orthogonal_rows(kind(X))
    assert_allclose(R @ R.T, np.diag(s2[:, 0]), rtol=0, atol=1e-11)  # rounding
    assert_allclose(R.T @ R, X @ X.T, rtol=0, atol=1e-11)
    assert_allclose(back(R), X.T, rtol=0, atol=1e-11)
    for p in (0.1, 3.0):
        inverse = np.linalg.inv(X @ X.T + p * np.eye(20))
        assert_allclose(R.T / (s2.T + p) @ R, inverse @ X @ X.T, rtol=0, atol=1e-11)


def test_largest_sum_is_that_of_the_original_rows_when_it_decides():
    rng = np.random.default_rng(0)
    iteration = np.linalg.qr(rng.normal(size=(9, 4)))[0]
    A = rng.normal(size=(4, 6))
    wanted = np.abs(iteration @ A).sum(axis=1).max()
    for tol in (0.999 * wanted, 1.001 * wanted):
        assert reductions.largest_sum(A, 9, tol, lambda B: iteration @ B) == pytest.approx(
            wanted, rel=1e-12
        )
    # Where the bounds say it all, nothing is mapped back.
    bound = np.linalg.norm(A) * 6**0.5
    for tol in (0.0, 1e-3 * wanted, 1e3 * wanted):
        found = reductions.largest_sum(A, 9, tol, pytest.fail)
        assert found == pytest.approx(bound, rel=1e-12)
        assert (found < tol) == (wanted < tol)


def test_largest_sum_of_blocks_of_columns():
    rng = np.random.default_rng(0)
    rows = 2**19  # two columns at a time
    A = rng.normal(size=(1, 5))
    pattern = np.zeros((rows, 1))
    pattern[7] = 1.0  # of length 1, so that lengths are kept
    wanted = np.abs(A).sum()
    found = reductions.largest_sum(A, rows, 0.999 * wanted, lambda B: pattern @ B)
    assert found == pytest.approx(wanted, rel=1e-12)


def test_stack_views_measures_every_view_in_its_own_features():
    rng = np.random.default_rng(0)
    Xs = [rng.normal(size=(6, d)) for d in (3, 20, 400)]
    R, s2, rows, worst = reductions.stack_views(Xs)
    assert_allclose(s2[:, 0], np.sum(R**2, axis=1), rtol=1e-12)
    for k, X in zip(rows, Xs, strict=True):
        assert_allclose(R[k].T @ R[k], X @ X.T, rtol=0, atol=1e-11)
    for measure, norm in (
        (reductions.largest_entry, lambda X: np.abs(X).max()),
        (reductions.largest_sum, lambda X: np.abs(X).sum(axis=0).max()),
    ):
        wanted = max(norm(X) for X in Xs)
        assert worst(R, 0.999 * wanted, measure) == pytest.approx(wanted, rel=1e-12)
