import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from polyspan import FPMVS
from polyspan.datasets import load_dataset
from polyspan.methods.fpmvs import solve_fpmvs
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run


def cones(n=120, features=(15, 20), seed=0, noise=0.02):
    """Three subspaces per view, each filled to one side: non-negative coefficients."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    coefficients = rng.uniform(0.2, 1, size=(n, 3))
    views = []
    for d in features:
        bases = rng.normal(size=(3, 3, d)) / d**0.5
        X = np.einsum("nk,nkd->nd", coefficients, bases[truth])
        views.append(X + noise / d**0.5 * rng.normal(size=X.shape))
    return views, truth


def scaled(views):
    return [X / np.linalg.norm(X, axis=1, keepdims=True) for X in views]


def start(c, n, seed=0):
    Z = np.zeros((c, n))
    Z[np.arange(c), np.random.default_rng(seed).choice(n, c, replace=False)] = 1
    return Z


def errors(Xs, Z, A, Ws):
    """|X_v - W_v A Z|_F^2, written as the paper has it; W_v as narrow as its view."""
    return np.array([np.sum((X.T - W @ A @ Z) ** 2) for X, W in zip(Xs, Ws, strict=True)])


def after(Xs, Z, iterations):
    """What the solver has after some iterations."""
    return solve_fpmvs(Xs, Z, run=Run("FPMVS", iterations, 0.0))


def test_the_objective_falls():
    Xs = scaled(cones(noise=0.5)[0])
    Z0 = start(3, 120)
    values = []
    for iterations in range(1, 12):
        Z, A, Ws, gamma = after(Xs, Z0, iterations)
        values.append(np.sum(gamma**2 * errors(Xs, Z, A, Ws)))
        for W in [*Ws, A]:
            assert_allclose(W.T @ W, np.eye(3), atol=1e-12)
        assert_allclose(A, np.eye(3), atol=1e-9)  # any rotation is as good: it stays
        assert np.all(Z >= 0)
        assert_allclose(Z.sum(axis=0), 1, atol=1e-12)
        assert gamma.sum() == pytest.approx(1)
    falls = -np.diff(values) / values[:-1]
    assert np.all(falls > -1e-12)  # a difference of sums of a hundred squares
    assert falls[0] > 1e-3  # it does something
    run = Run("FPMVS", 11, 0.0)
    solve_fpmvs(Xs, Z0, run=run)
    assert run.history["fall"][0] == 1
    assert_allclose(run.history["fall"][1:], falls, atol=1e-11)


def literal(Xs, Z, iterations, as_released):
    """The recursion as printed; the Z step as a quadratic program, column by column."""
    Xs, c = [X.T for X in Xs], len(Z)
    A, gamma = np.eye(c), np.full(len(Xs), 1 / len(Xs))
    free = cp.Variable(c, nonneg=True)

    def procrustes(C):
        U, _, Vt = np.linalg.svd(C, full_matrices=False)
        return U @ Vt

    for _ in range(iterations):
        Ws = [procrustes(X @ Z.T @ A.T) for X in Xs]
        A = procrustes(sum(g**2 * W.T @ X @ Z.T for g, W, X in zip(gamma, Ws, Xs, strict=True)))
        weights = np.ones(len(Xs)) if as_released else gamma**2
        right = sum(w * A.T @ W.T @ X for w, W, X in zip(weights, Ws, Xs, strict=True))
        cost = np.sum(gamma**2) * cp.sum_squares(free)
        Z = np.empty(Z.shape)
        for j, f in enumerate(right.T):
            problem = cp.Problem(cp.Minimize(cost - 2 * f @ free), [cp.sum(free) == 1])
            problem.solve(cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13)
            Z[:, j] = free.value
        errors = [np.sum((X - W @ A @ Z) ** 2) for X, W in zip(Xs, Ws, strict=True)]
        gamma = np.array([1 / e for e in errors])
        gamma /= gamma.sum()
    return Z, gamma


@pytest.mark.parametrize("as_released", [False, True])
def test_equals_the_literal_algorithm(as_released):
    Xs = scaled(cones(n=12, noise=0.5)[0])
    Z0 = start(3, 12)
    run = Run("FPMVS", 200, 1e-5)
    solve_fpmvs(Xs, Z0, as_released=as_released, run=run)
    assert run.converged
    for iterations in (1, 5, min(run.n_iter, 15)):
        Z, _, _, gamma = solve_fpmvs(
            Xs, Z0, as_released=as_released, run=Run("FPMVS", iterations, 0.0)
        )
        wanted = literal(Xs, Z0, iterations, as_released)
        assert_allclose(Z, wanted[0], rtol=0, atol=1e-6)  # the accuracy of the quadratic programs
        assert_allclose(gamma, wanted[1], rtol=0, atol=1e-6)


def test_as_released_is_sparser():
    Xs = scaled(cones(noise=0.5)[0])
    one, two = (solve_fpmvs(Xs, start(3, 120), as_released=x)[0] for x in (False, True))
    assert np.count_nonzero(two > 1e-9) < np.count_nonzero(one > 1e-9)


def fixed_point(views, c=3):
    Xs = scaled(views)
    return Xs, *solve_fpmvs(Xs, start(c, len(Xs[0])), run=Run("FPMVS", 20_000, 1e-14))


def test_every_block_is_optimal_at_a_fixed_point():
    Xs, Z, A, Ws, gamma = fixed_point(cones(n=24, noise=0.5)[0])
    e = errors(Xs, Z, A, Ws)
    best = np.sum(gamma**2 * e)

    # Z, and gamma: convex problems, solved by another program
    free = cp.Variable(Z.shape, nonneg=True)
    cost = sum(
        g**2 * cp.sum_squares(X.T - (W @ A) @ free) for g, X, W in zip(gamma, Xs, Ws, strict=True)
    )
    found = cp.Problem(cp.Minimize(cost), [cp.sum(free, axis=0) == 1]).solve(cp.CLARABEL)
    assert best == pytest.approx(found, rel=1e-6)
    assert_allclose(Z, free.value, atol=1e-4)
    free = cp.Variable(2)
    cost = cp.sum(cp.multiply(e, free**2))
    cp.Problem(cp.Minimize(cost), [cp.sum(free) == 1]).solve(cp.CLARABEL)
    assert_allclose(gamma, free.value, atol=1e-6)

    # W_v and A: no rotation does better; the bound of a Procrustes problem is the nuclear norm
    for X, W in zip(Xs, Ws, strict=True):
        C = X.T @ (A @ Z).T
        assert np.sum(W * C) == pytest.approx(np.linalg.norm(C, "nuc"), rel=1e-9)
    C = sum(g**2 * W.T @ X.T @ Z.T for g, X, W in zip(gamma, Xs, Ws, strict=True))
    assert np.sum(A * C) == pytest.approx(np.linalg.norm(C, "nuc"), rel=1e-9)


@pytest.mark.parametrize("d", [1, 2])
def test_a_view_with_fewer_features_than_clusters_is_padded_with_zeros(d):
    views, _ = cones()
    wide = scaled(views)[0]
    narrow = views[1][:, :d]
    padded = np.hstack([narrow, np.zeros((120, 3 - d))])
    here = solve_fpmvs([wide, narrow], start(3, 120))
    there = solve_fpmvs([wide, padded], start(3, 120))
    assert here[2][1].shape == (d, 3)
    assert_allclose(here[0], there[0], atol=1e-8)
    assert_allclose(here[3], there[3], rtol=1e-8)


def test_copies_of_a_view_change_nothing():
    X = scaled(cones()[0])[0]
    Z, _, _, gamma = solve_fpmvs([X, X], start(3, 120))
    assert_allclose(gamma, 0.5, rtol=1e-9)
    assert_allclose(Z, solve_fpmvs([X], start(3, 120))[0], atol=1e-8)


def test_a_noisy_view_gets_less_weight():
    views, _ = cones()
    noisy = views[1] + np.random.default_rng(1).normal(size=views[1].shape)
    gamma = solve_fpmvs(scaled([views[0], noisy]), start(3, 120))[3]
    assert gamma[0] > 1.5 * gamma[1]


@pytest.mark.parametrize("seed", range(3))
def test_planted_cones_are_recovered(seed):
    views, truth = cones(seed=seed)
    model = FPMVS(3, random_state=0).fit(views)
    assert clustering_scores(truth, model.labels_)["acc"] == 1
    assert model.representation_.shape == (3, 120)
    Z = model.representation_
    V = np.linalg.svd(Z, full_matrices=False)[2].T
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    assert_allclose(model.embedding_ @ model.embedding_.T, V @ V.T, atol=1e-8)


@pytest.mark.parametrize("form", ["sparse", "float32", "torch", "strict"])
def test_other_forms_of_views(form):
    views, _ = cones()
    wanted = FPMVS(3, scale="unit", random_state=0).fit(views)
    if form == "sparse":
        views = [sp.csc_array(X) for X in views]
    elif form == "float32":
        views = [X.astype(np.float32) for X in views]
    else:
        xp = pytest.importorskip("torch" if form == "torch" else "array_api_strict")
        views = [xp.asarray(X) for X in views]
    found = FPMVS(3, scale="unit", random_state=0).fit(views)
    assert np.array_equal(found.labels_, wanted.labels_)
    assert isinstance(found.representation_, np.ndarray)
    if form == "float32":
        assert found.representation_.dtype == found.embedding_.dtype == np.float32
    # both stop near, not at, the same fixed point; float32 may stop some iterations apart
    atol = 1e-2 if form == "float32" else 1e-9
    assert_allclose(found.representation_, wanted.representation_, atol=atol)


def test_memory_is_linear_and_checked(monkeypatch):
    monkeypatch.setattr("polyspan.base.estimator.available_memory", lambda: 2**20)
    FPMVS(3, random_state=0).fit(cones(500)[0])  # 2 MB for a single 500 x 500 matrix
    match = r"^FPMVS on 3000 samples needs about [\d.]+ GiB for its 93 numbers per sample"
    with pytest.raises(MemoryError, match=match):
        FPMVS(3).fit(cones(3000)[0])


def test_real_data(data_dir):
    data = load_dataset("handwritten")
    found = [FPMVS(data.n_clusters, random_state=s).fit_predict(data.views) for s in range(5)]
    nmi = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    # 0.752 (0.006) over ten seeds, each with its own start: two standard deviations.
    assert np.mean(nmi) == pytest.approx(0.752, abs=0.013)


def test_without_standardizing_one_view_takes_all_the_weight(data_dir):
    data = load_dataset("handwritten")
    narrow = [view.shape[1] for view in data.views].index(6)
    weights = {}
    for scale in ("unit", "standard+unit"):
        weights[scale] = FPMVS(10, scale=scale, random_state=0).fit(data.views).weights_
    assert weights["unit"][narrow] > 0.9
    assert weights["standard+unit"].max() < 0.5
