from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan import JointGraph
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.methods.jointgraph import diverse_weights, redundancy, solve_joint_graph
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run

WEIGHTS = {"lam": 0.3, "lam_v": 0.5, "lam_cut": 0.4}


def views(n=12, dims=(5, 30, 4), seed=0):
    """Unit samples of two subspaces, in views of fewer and of more features than samples."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, 4)) * np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], n // 2, axis=0)
    Xs = [H @ rng.normal(size=(4, d)) + 0.2 * rng.normal(size=(n, d)) for d in dims]
    return [X / np.linalg.norm(X, axis=1, keepdims=True) for X in Xs]


def best_weights(Q):
    """Minimize w^T Q w over w >= 0 with mean 1, by all sets of weights that are not zero."""
    m, found = len(Q), []
    for size in range(1, m + 1):
        for some in map(list, combinations(range(m), size)):
            w = np.zeros(m)
            w[some] = np.linalg.solve(Q[np.ix_(some, some)], np.ones(size))
            w *= m / w.sum()
            if w.min() >= 0:
                found.append((w @ Q @ w, tuple(w)))
    return np.array(min(found)[1])


def centered_cosines(Xs):
    Gs = [(X - X.mean(0)) @ (X - X.mean(0)).T for X in Xs]
    return np.array(
        [[np.sum(G * H) / np.linalg.norm(G) / np.linalg.norm(H) for H in Gs] for G in Gs]
    )


def low(Z, c):
    W = (np.abs(Z) + np.abs(Z).T) / 2
    return np.linalg.eigh(np.diag(W.sum(1)) - W)


def literal(Xs, c, iterations, lam, lam_v, lam_cut, mu=1e-2, rho=1.5):
    """The recursion view by view: all features, plain SVDs and inverses."""
    n, m = len(Xs[0]), len(Xs)
    R, Xs = centered_cosines(Xs), [X.T for X in Xs]
    Z, Y1, Y2 = np.zeros((3, n, n))
    Ys, Es = ([np.zeros_like(X) for X in Xs] for _ in range(2))
    w, F = np.ones(m), np.zeros((n, c))
    for _ in range(iterations):
        for v, X in enumerate(Xs):
            T = X - X @ Z + Ys[v] / mu
            Es[v] = T * np.maximum(1 - lam * w[v] ** 2 / mu / np.linalg.norm(T, axis=0), 0)
        U, s, Vt = np.linalg.svd(Z + Y1 / mu)
        J = U @ np.diag(np.maximum(s - 1 / mu, 0)) @ Vt
        A = Z + Y2 / mu
        apart = ((F[:, None] - F[None]) ** 2).sum(2)
        C = np.sign(A) * np.maximum(np.abs(A) - lam_cut * apart / mu, 0)
        right = sum(X.T @ (X - E + Y / mu) for X, E, Y in zip(Xs, Es, Ys, strict=True))
        left = np.linalg.inv(sum(X.T @ X for X in Xs) + 2 * np.eye(n))
        Z = left @ (right + J + C - (Y1 + Y2) / mu)
        errors = [np.linalg.norm(E, axis=0).sum() for E in Es]
        w = best_weights(np.diag(lam * np.array(errors)) + lam_v * R)
        values, V = low(Z, c)
        F = F if values[: c + 1].sum() < 1e-6 else V[:, :c]
        for v, X in enumerate(Xs):
            Ys[v] = Ys[v] + mu * (X - X @ Z - Es[v])
        Y1, Y2 = Y1 + mu * (Z - J), Y2 + mu * (Z - C)
        mu *= rho
    return Z, w


@pytest.mark.parametrize("params", [WEIGHTS, {"lam": 1.0, "lam_v": 5.0, "lam_cut": 0.05}])
def test_equals_the_literal_algorithm(params):
    Xs = views()
    run = Run("JointGraph", 100, 1e-6)
    solve_joint_graph(Xs, 2, **params, run=run)
    assert run.converged
    for iterations in (1, 5, run.n_iter):
        run = Run("JointGraph", iterations, 1e-6)
        Z, w, _ = solve_joint_graph(Xs, 2, **params, run=run)
        wanted = literal(Xs, 2, iterations, **params)
        assert_allclose(Z, wanted[0], rtol=0, atol=1e-6)
        assert_allclose(w, wanted[1], rtol=0, atol=1e-6)


def test_no_block_can_be_improved():
    cvxpy = pytest.importorskip("cvxpy")
    Xs = views(10)
    run = Run("JointGraph", 20_000, 1e-9)
    Z, w, F = solve_joint_graph(Xs, 2, **WEIGHTS, rho=1.005, mu0=0.1, mu_max=1e9, run=run)
    assert run.converged
    lam, lam_v, lam_cut = WEIGHTS.values()
    # Z, given the weights and F
    apart = ((F[:, None] - F[None]) ** 2).sum(2)
    V = cvxpy.Variable(Z.shape)
    cost = cvxpy.normNuc(V) + lam_cut * cvxpy.sum(cvxpy.multiply(apart, cvxpy.abs(V)))
    for X, weight in zip(Xs, w, strict=True):
        cost += lam * weight**2 * cvxpy.sum(cvxpy.norm(X.T - X.T @ V, 2, axis=0))
    best = cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver=cvxpy.SCS, eps=1e-8, max_iters=50_000)
    errors = np.array([np.linalg.norm(X.T - X.T @ Z, axis=0).sum() for X in Xs])
    found = np.linalg.norm(Z, "nuc") + lam_cut * np.sum(apart * np.abs(Z)) + lam * w**2 @ errors
    assert found == pytest.approx(best, rel=1e-3)  # mu grows by 0.5% an iteration
    assert np.linalg.matrix_rank(Z, tol=1e-3) < 10
    # the weights and F, given Z
    wanted = best_weights(np.diag(lam * errors) + lam_v * centered_cosines(Xs))
    assert_allclose(w, wanted, rtol=0, atol=1e-4)
    values, _ = low(Z, 2)
    assert lam_cut * np.sum(apart * np.abs(Z)) / 2 == pytest.approx(
        lam_cut * values[:2].sum(), abs=1e-4
    )


def test_weights_are_the_best_ones():
    rng = np.random.default_rng(0)
    for m in (1, 2, 5):
        for _ in range(5):
            A = np.abs(rng.normal(size=(m, 2 * m)))
            errors, R = rng.uniform(size=m), A @ A.T
            w = diverse_weights(errors, R)
            assert_allclose(w, best_weights(np.diag(errors) + R), rtol=0, atol=1e-8)
    assert np.array_equal(diverse_weights(np.zeros(2), np.zeros((2, 2))), [1, 1])


def test_equal_views_share_the_weight_of_one():
    X, other = views(dims=(6, 6))
    R = redundancy([X.T, X.T, other.T])
    assert_allclose(R, centered_cosines([X, X, other]), rtol=0, atol=1e-12)
    w = diverse_weights(np.full(3, 1e-6), R)
    assert w[0] == pytest.approx(w[1], abs=1e-4)
    assert w[0] + w[1] == pytest.approx(w[2], abs=0.01)
    plain = diverse_weights(np.ones(3), 0 * R)
    assert_allclose(plain, 1, rtol=0, atol=1e-9)


def test_the_rank_term_leaves_components():
    Xs = views(20)
    weights = WEIGHTS | {"lam": 0.1}
    ends = [
        low(solve_joint_graph(Xs, 2, **weights | {"lam_cut": t})[0], 2)[0][:2].sum()
        for t in (0.0, 1.0, 100.0)
    ]
    assert ends[2] < 1e-4 < 0.05 < ends[1] < ends[0] / 3


def test_recovers_planted_subspaces():
    data = make_subspaces(120, 4, noise=0.01, random_state=0)
    model = JointGraph(4, lam=1.0, random_state=0).fit(data.views)
    assert clustering_scores(data.labels, model.labels_)["acc"] == 1.0
    assert model.weights_.mean() == pytest.approx(1)


def test_keeps_its_figure(data_dir):
    data = load_dataset("three_sources")
    labels = JointGraph(6, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["nmi"] == pytest.approx(0.535, abs=0.05)


def test_history_is_the_stopping_rule():
    model = JointGraph(3).fit(make_subspaces(45, 3, noise=0.05).views)
    assert list(model.history_) == ["data", "low_rank", "sparse"]
    worst = np.max(list(model.history_.values()), axis=0)
    assert worst[-1] < 1e-6 <= worst[-2]
    assert len(worst) == model.n_iter_
