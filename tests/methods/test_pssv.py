import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan import PSSV
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs.proximity import median_kernel, normalized
from polyspan.methods.pssv import solve_pssv
from polyspan.methods.rmsc import random_walk, solve_rmsc
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run

BOTH = pytest.mark.parametrize("walk", [False, True])


def matrices(walk, n=14, dims=(3, 4, 6), seed=0):
    """Laplacians or random walks of views with two groups of samples."""
    rng = np.random.default_rng(seed)
    groups = 1.5 * (np.arange(n) % 2)[:, None]
    Ks = [median_kernel(rng.normal(size=(n, d)) + groups) for d in dims]
    return [(random_walk if walk else normalized)(K) for K in Ks]


def on_the_simplex(row):
    """Projection by bisection on the level."""
    low, high = row.min() - 1, row.max()
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.maximum(row - level, 0).sum() > 1 else (low, level)
    return np.maximum(row - high, 0)


def literal(Ts, c, lam, walk, iterations, mu=1e-3, rho=1.9):
    """The recursion with plain singular value decompositions."""
    n, m = len(Ts[0]), len(Ts)
    Q, Z = np.zeros((2, n, n))
    Es, Ys = np.zeros((2, m, n, n))
    for _ in range(iterations):
        P = (Q - Z / mu + sum(Ts[v] - Es[v] - Ys[v] / mu for v in range(m))) / (m + 1)
        P = np.array([on_the_simplex(row) for row in P]) if walk else P
        U, s, Vt = np.linalg.svd(P + Z / mu)
        s[c:] = np.maximum(s[c:] - 1 / mu, 0)
        Q = U @ np.diag(s) @ Vt
        for v, T in enumerate(Ts):
            B = T - P - Ys[v] / mu
            Es[v] = np.sign(B) * np.maximum(np.abs(B) - lam / mu, 0)
            Ys[v] = Ys[v] + mu * (P + Es[v] - T)
        Z = Z + mu * (P - Q)
        mu *= rho
    return P


@BOTH
@pytest.mark.parametrize(("n", "lam"), [(14, 0.02), (14, 0.3), (220, 0.05)])
def test_equals_the_literal_algorithm(walk, n, lam):
    Ts = matrices(walk, n)
    run = Run("PSSV", 100, 1e-6)
    solve_pssv(Ts, 2, lam=lam, walk=walk, run=run)
    assert run.converged
    for iterations in (1, 5, run.n_iter):
        P = solve_pssv(Ts, 2, lam=lam, walk=walk, run=Run("PSSV", iterations, 0.0))
        assert_allclose(P, literal(Ts, 2, lam, walk, iterations), rtol=0, atol=1e-8)


@BOTH
def test_no_matrix_with_the_same_leading_vectors_is_better(walk):
    # The sum beyond the c-th is the nuclear norm minus a convex function, whose slope at P is
    # U_c V_c^T: P is stationary if it minimizes the convex problem with that slope instead.
    cvxpy = pytest.importorskip("cvxpy")
    Ts, lam = matrices(walk, 8), 0.15
    run = Run("PSSV", 20_000, 1e-9)
    P = solve_pssv(Ts, 2, lam=lam, walk=walk, rho=1.01, mu0=0.1, mu_max=1e8, run=run)
    assert run.converged
    U, _s, Vt = np.linalg.svd(P)
    slope = U[:, :2] @ Vt[:2]
    V = cvxpy.Variable(P.shape)
    cost = cvxpy.normNuc(V) - cvxpy.sum(cvxpy.multiply(slope, V))
    cost += lam * sum(cvxpy.sum(cvxpy.abs(T - V)) for T in Ts)
    limits = [cvxpy.sum(V, axis=1) == 1, V >= 0] if walk else []
    best = cvxpy.Problem(cvxpy.Minimize(cost), limits).solve(
        solver=cvxpy.SCS, eps=1e-8, max_iters=100_000
    )
    found = np.linalg.norm(P, "nuc") - np.sum(slope * P)
    found += lam * sum(np.abs(T - P).sum() for T in Ts)
    assert found == pytest.approx(best, rel=1e-3)  # mu grows by 1% an iteration
    if not walk:
        plain = solve_pssv(Ts, 0, lam=lam, rho=1.01, mu0=0.1, mu_max=1e8)
        assert np.linalg.svd(P)[1][1] > 1.2 * np.linalg.svd(plain)[1][1]


def test_without_free_singular_values_it_is_rmsc():
    Ts = matrices(walk=True)
    for lam in (0.02, 0.3):
        P = solve_pssv(Ts, 0, lam=lam, walk=True, run=Run("PSSV", 40, 0.0))
        wanted = solve_rmsc(Ts, lam=lam, run=Run("RMSC", 40, 0.0))
        assert_allclose(P, wanted, rtol=0, atol=1e-9)


def test_a_walk_is_a_walk_and_a_laplacian_symmetric():
    views = make_subspaces(45, 3).views
    P = PSSV(3, matrix="walk").fit(views).shared_matrix_
    assert P.min() >= 0
    assert_allclose(P.sum(axis=1), 1, rtol=0, atol=1e-12)  # rounding
    P = PSSV(3).fit(views).shared_matrix_
    assert_allclose(P, P.T, rtol=0, atol=1e-10)


@pytest.mark.parametrize("matrix", ["laplacian", "walk"])
def test_recovers_planted_clusters_with_the_defaults(matrix):
    # Lines instead of planes: a Gaussian kernel sees distances, not subspaces.
    data = make_subspaces(120, 4, subspace_dim=1, noise=0.01, random_state=0)
    views = [X * np.sign(X[:, :1]) for X in data.views]
    labels = PSSV(4, matrix=matrix, random_state=0).fit_predict(views)
    assert clustering_scores(data.labels, labels)["acc"] == 1.0


@pytest.mark.parametrize(("matrix", "nmi"), [("laplacian", 0.618), ("walk", 0.622)])
def test_keeps_its_figures(data_dir, matrix, nmi):
    data = load_dataset("three_sources")
    labels = PSSV(6, matrix=matrix, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["nmi"] == pytest.approx(nmi, abs=0.03)


def test_history_is_the_stopping_rule():
    model = PSSV(3).fit(make_subspaces(45, 3).views)
    assert list(model.history_) == ["data", "split"]
    worst = np.max(list(model.history_.values()), axis=0)
    assert worst[-1] < 1e-6 <= worst[-2]
    assert len(worst) == model.n_iter_


def test_other_array_libraries_find_the_same():
    strict = pytest.importorskip("array_api_strict")
    views = make_subspaces(45, 3).views
    wanted = PSSV(3, random_state=0).fit(views)
    found = PSSV(3, random_state=0).fit([strict.asarray(X) for X in views])
    assert_allclose(np.asarray(found.shared_matrix_), wanted.shared_matrix_, rtol=0, atol=1e-9)
    assert np.array_equal(found.labels_, wanted.labels_)
