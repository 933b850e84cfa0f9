import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan import GLMSC
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.methods.glmsc import latent_step, solve_linear, solve_networks, start_latent
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run

WEIGHTS = {"lam_self": 2.0, "lam_rank": 0.3}


def views(n=14, dims=(5, 30), seed=0):
    """Unit samples near a space of dimension 4, in views of fewer and of more features."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, 4))
    Xs = [H @ rng.normal(size=(4, d)) + 0.3 * rng.normal(size=(n, d)) for d in dims]
    return [X / np.linalg.norm(X, axis=1, keepdims=True) for X in Xs]


def starts(Xs, K=6, width=7, seed=1):
    rng, n = np.random.default_rng(seed), len(Xs[0])
    return rng.normal(size=(K, n)), [rng.normal(size=(width, K)) for _ in Xs]


def best_z(H, lam_self, lam_rank):
    _, s, Vt = np.linalg.svd(H, full_matrices=False)
    return Vt.T @ np.diag(np.maximum(0, 1 - lam_rank / (lam_self * s**2))) @ Vt


def about_z(H, Z, lam_self, lam_rank):
    return lam_self / 2 * np.sum((H - H @ Z) ** 2) + lam_rank * np.linalg.norm(Z, "nuc")


@pytest.mark.parametrize("weights", [WEIGHTS, {"lam_self": 0.5, "lam_rank": 2.0}])
def test_z_is_the_optimum_that_cvxpy_finds(weights):
    cvxpy = pytest.importorskip("cvxpy")
    H = start_latent(np.hstack(views()).T, 6)
    V, z = latent_step(H, **weights)
    found = (V * z) @ V.T
    Z = cvxpy.Variable((14, 14))
    lam_self, lam_rank = weights.values()
    cost = lam_self / 2 * cvxpy.sum_squares(H - H @ Z) + lam_rank * cvxpy.normNuc(Z)
    best = cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver=cvxpy.SCS, eps=1e-9)
    assert about_z(H, found, **weights) == pytest.approx(best, rel=1e-6)
    assert_allclose(found, best_z(H, **weights), rtol=0, atol=1e-10)
    assert_allclose(found, Z.value, rtol=0, atol=1e-4)


def literal_linear(X, K, iterations, lam_self, lam_rank):
    """The recursion with all features and inverses, and the objective after every iteration."""
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    P, H, costs = U[:, :K], np.diag(s[:K]) @ Vt[:K], []
    I = np.eye(X.shape[1])
    for _ in range(iterations):
        Z = best_z(H, lam_self, lam_rank)
        H = P.T @ X @ np.linalg.inv(I + lam_self * (I - Z) @ (I - Z).T)
        U, _s, Vt = np.linalg.svd(X @ H.T, full_matrices=False)
        P = U @ Vt
        costs.append(np.sum((X - P @ H) ** 2) / 2 + about_z(H, Z, lam_self, lam_rank))
    return best_z(H, lam_self, lam_rank), H, costs


@pytest.mark.parametrize("weights", [{"lam_self": 1.0, "lam_rank": x} for x in (0.4, 0.6)])
def test_linear_equals_the_literal_algorithm(weights):
    X, K = np.hstack(views()), 6
    run = Run("GLMSC", 300, 1e-12)
    solve_linear(X, K, **weights, run=run)
    assert run.converged
    assert run.n_iter > 5
    for iterations in (1, 5, run.n_iter):
        run = Run("GLMSC", iterations, -1.0)
        Z, H = solve_linear(X, K, **weights, run=run)
        wanted, latent, costs = literal_linear(X.T, K, iterations, **weights)
        assert_allclose(Z, wanted, rtol=0, atol=1e-8)
        assert_allclose(H.T @ H, latent.T @ latent, rtol=0, atol=1e-8)  # signs of rows
    falls = -np.diff(costs) / costs[1:]
    assert_allclose(run.history["fall"][1:], falls, rtol=0, atol=1e-9)
    assert np.all(falls > -1e-12)


def test_linear_cannot_be_improved_nearby():
    X, (lam_self, lam_rank) = np.hstack(views()).T, WEIGHTS.values()
    Z, H = solve_linear(X.T, 6, **WEIGHTS, run=Run("GLMSC", 2000, 1e-14))

    def cost(H, Z):
        U, _s, Vt = np.linalg.svd(X @ H.T, full_matrices=False)
        return np.sum((X - U @ Vt @ H) ** 2) / 2 + about_z(H, Z, lam_self, lam_rank)

    best, rng = cost(H, Z), np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            near = cost(H + size * rng.normal(size=H.shape), Z + size * rng.normal(size=Z.shape))
            assert near > best - 1e-12


def literal_networks(Xs, H, Bs, iterations, lam_self, lam_rank, decay):
    """The recursion with gradients by hand, and the objective after every iteration."""
    Xs, lengths, costs = [X.T for X in Xs], [1.0, 1.0], []

    def smooth(H, Bs, As, Z):
        fits = sum(
            np.sum((X - A @ np.tanh(B @ H)) ** 2) for X, A, B in zip(Xs, As, Bs, strict=True)
        )
        sizes = sum(np.sum(W**2) for W in (*As, *Bs))
        return (fits + lam_self * np.sum((H - H @ Z) ** 2) + decay * sizes) / 2

    def stepped(cost, x, g, t):
        size = sum(np.sum(part**2) for part in g)
        while cost([a - t * b for a, b in zip(x, g, strict=True)]) > cost(x) - t / 2 * size:
            t /= 2
        return [a - t * b for a, b in zip(x, g, strict=True)], 2 * t

    for _ in range(iterations):
        Z = best_z(H, lam_self, lam_rank)
        Ts = [np.tanh(B @ H) for B in Bs]
        eye = decay * np.eye(len(Bs[0]))
        As = [X @ T.T @ np.linalg.inv(T @ T.T + eye) for X, T in zip(Xs, Ts, strict=True)]
        gap = H - H @ Z
        back = [(A.T @ (A @ T - X)) * (1 - T**2) for X, A, T in zip(Xs, As, Ts, strict=True)]
        g = lam_self * (gap - gap @ Z.T) + sum(B.T @ D for B, D in zip(Bs, back, strict=True))
        (H,), lengths[0] = stepped(
            lambda x, Bs=Bs, As=As, Z=Z: smooth(x[0], Bs, As, Z), [H], [g], lengths[0]
        )
        Ts = [np.tanh(B @ H) for B in Bs]
        g = [
            (A.T @ (A @ T - X)) * (1 - T**2) @ H.T + decay * B
            for X, A, T, B in zip(Xs, As, Ts, Bs, strict=True)
        ]
        Bs, lengths[1] = stepped(
            lambda x, H=H, As=As, Z=Z: smooth(H, x, As, Z), list(Bs), g, lengths[1]
        )
        costs.append(smooth(H, Bs, As, Z) + lam_rank * np.linalg.norm(Z, "nuc"))
    return best_z(H, lam_self, lam_rank), H, costs


def test_networks_equal_the_literal_algorithm():
    pytest.importorskip("torch")
    Xs = views()
    start = starts(Xs)
    run = Run("GLMSC", 500, 1e-3)
    solve_networks(Xs, *start, **WEIGHTS, decay=0.1, run=run)
    assert run.converged
    for iterations in (1, 5, run.n_iter):
        found = solve_networks(Xs, *start, **WEIGHTS, decay=0.1, run=Run("GLMSC", iterations, -1.0))
        *wanted, costs = literal_networks(Xs, *start, iterations, **WEIGHTS, decay=0.1)
        for one, two in zip(found, wanted, strict=True):
            assert_allclose(one, two, rtol=0, atol=1e-6)
    falls = -np.diff(costs) / costs[1:]
    assert_allclose(run.history["fall"][1:], falls, rtol=0, atol=1e-9)
    assert np.all(falls > -1e-12)  # the objective falls in every iteration


@pytest.mark.parametrize("mapping", ["linear", "network"])
def test_recovers_planted_subspaces_with_the_defaults(mapping):
    if mapping == "network":
        pytest.importorskip("torch")
    data = make_subspaces(120, 4, noise=0.01, random_state=0)
    model = GLMSC(4, mapping=mapping, random_state=0).fit(data.views)
    assert clustering_scores(data.labels, model.labels_)["acc"] == 1.0
    assert model.latent_.shape == (120, min(100, 120, sum(X.shape[1] for X in data.views)))


def test_keeps_its_figure(data_dir):
    data = load_dataset("yale_images")
    labels = GLMSC(15, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["nmi"] == pytest.approx(0.81, abs=0.04)


def test_only_networks_are_random():
    pytest.importorskip("torch")
    Xs = make_subspaces(45, 3, noise=0.2).views
    for mapping, same in (("linear", True), ("network", False)):
        a, b, c = (
            GLMSC(3, mapping=mapping, random_state=seed).fit(Xs).representation_
            for seed in (0, 0, 1)
        )
        assert np.array_equal(a, b)
        assert np.array_equal(a, c) == same


def test_networks_without_torch_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"needs torch: pip install \"polyspan\[torch\]\""):
        GLMSC(3, mapping="network").fit(make_subspaces(45, 3).views)
    GLMSC(3).fit(make_subspaces(45, 3).views)
