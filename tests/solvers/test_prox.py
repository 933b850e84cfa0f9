import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.solvers import prox


def singular(A, t):
    """One threshold without a memory."""
    return prox.SingularThreshold()(A, t)


PENALTIES = {
    "soft": (prox.soft, lambda B: np.abs(B).sum()),
    "columns": (prox.columns, lambda B: np.linalg.norm(B, axis=0).sum()),
    "singular": (singular, lambda B: np.linalg.norm(B, "nuc")),
}


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("t", [0.1, 1.0, 2.5])
def test_no_perturbation_does_better(name, t):
    step, penalty = PENALTIES[name]
    rng = np.random.default_rng(0)

    def objective(B):
        return t * penalty(B) + ((B - A) ** 2).sum() / 2

    for shape in [(6, 6), (4, 7), (7, 4), (1, 5)]:
        A = rng.normal(size=shape)
        B = step(A, t)
        for size in (1.0, 1e-2, 1e-4):
            for _ in range(20):
                # The objective is 1-strongly convex: it grows at least by half the square.
                change = size * rng.normal(size=shape)
                least = objective(B) + (change**2).sum() / 2
                assert objective(B + change) >= least - 1e-12, f"{shape}, change of size {size}"


@pytest.mark.parametrize("name", PENALTIES)
def test_zero_threshold_is_the_identity_on_a_copy(name):
    A = np.random.default_rng(0).normal(size=(5, 5))
    B = PENALTIES[name][0](A, 0.0)
    assert_allclose(B, A, rtol=0, atol=1e-15)
    assert not np.shares_memory(A, B)


@pytest.mark.parametrize("name", PENALTIES)
def test_large_threshold_is_zero(name):
    A = np.random.default_rng(0).normal(size=(5, 5))
    assert not PENALTIES[name][0](A, 100.0).any()


@pytest.mark.parametrize("name", PENALTIES)
def test_zero_matrix_stays_zero(name):
    assert not PENALTIES[name][0](np.zeros((5, 5)), 0.5).any()


def plain_singular(A, t):
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return (U * np.maximum(s - t, 0)) @ Vt


def slowly_changing(n, decay, seed=0):
    """Matrices and thresholds as in an augmented Lagrangian: t falls, the rank grows."""
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.normal(size=(n, n)))
    V, _ = np.linalg.qr(rng.normal(size=(n, n)))
    s = np.exp(-np.arange(n) / decay)
    for iteration in range(25):
        t = 0.7 * 1.4**-iteration
        wobble = t * 0.02 * rng.normal(size=(n, n)) / np.sqrt(n)
        yield (U * s) @ V.T + wobble, t


@pytest.mark.slow
@pytest.mark.parametrize(("n", "decay"), [(300, 4), (300, 12), (230, 60), (60, 10)])
def test_threshold_with_memory_equals_the_plain_one(n, decay):
    threshold = prox.SingularThreshold()
    ways = set()
    for A, t in slowly_changing(n, decay):
        found = threshold(A, t)
        ways.add(threshold._top.how)
        # Certified to 1e-10 of the largest singular value, which is about 1.
        assert_allclose(found, plain_singular(A, t), rtol=0, atol=2e-10)
        assert threshold.rank == (np.linalg.svd(A, compute_uv=False) > t).sum()
    assert ("partial" in ways) == (n > 200 and decay < 20)
    assert "full" in ways


@pytest.mark.parametrize("t", [1e-4, 0.1, 10.0, 1e4])
def test_singular_values_just_above_the_threshold_are_kept(t):
    A = t * np.diag([2.0, 1.5, 0.5])
    assert_allclose(singular(A, t), t * np.diag([1.0, 0.5, 0.0]), rtol=0, atol=1e-12 * t)


def test_a_jump_is_not_missed():
    # A new, large direction appears that is orthogonal to all that was seen before.
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(400, 400)))
    threshold = prox.SingularThreshold()
    first = 5 * np.outer(Q[0], Q[1]) + 0.1 * np.outer(Q[2], Q[3])
    for _ in range(3):
        threshold(first, 1.0)
    assert threshold._top.how == "partial"
    second = first + 3 * np.outer(Q[4], Q[5])
    assert_allclose(threshold(second, 1.0), plain_singular(second, 1.0), rtol=0, atol=1e-9)
    assert threshold.rank == 2


def test_memory_does_not_mind_another_size():
    threshold = prox.SingularThreshold()
    for n in (300, 250, 20, 300):
        A = np.random.default_rng(n).normal(size=(n, n)) / n**0.5
        assert_allclose(threshold(A, 1.2), plain_singular(A, 1.2), rtol=0, atol=1e-10)


def test_float32_is_thresholded_as_exactly_as_float32_can_be():
    rng = np.random.default_rng(0)
    A = (rng.normal(size=(80, 5)) @ rng.normal(size=(5, 80)) / 80).astype(np.float32)
    A += np.float32(1e-4) * rng.normal(size=A.shape).astype(np.float32)
    found = singular(A, 1e-3)
    assert found.dtype == np.float32
    # Squared in float32, singular values below 1e-4 would be noise.
    assert_allclose(found, plain_singular(A.astype(float), 1e-3), rtol=0, atol=1e-6)


def test_simplex_projection_is_the_nearest_point():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(50, 7)) * np.logspace(-3, 3, 50)[:, None]
    P = prox.simplex(A)
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1, rtol=0, atol=1e-12 * 1e3)  # entries up to 1e3 lose digits
    for _ in range(50):
        other = rng.dirichlet(np.ones(7), size=50)
        # Variational inequality of a projection: (A - P) (other - P) <= 0.
        assert (((A - P) * (other - P)).sum(axis=1) <= 1e-9).all()
    assert_allclose(prox.simplex(P), P, rtol=0, atol=1e-12)
