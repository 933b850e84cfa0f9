import numpy as np
import pytest
from cases import case
from numpy.testing import assert_allclose

from polyspan import DSSMSC
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.methods.dssmsc import solve_dssmsc
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run

WEIGHTS = {"lam": 0.1, "lam_d": 0.02}


def data(n=16, dims=(6, 40), shared=3, own=4, seed=0):
    """Unit samples near a space of dimension 4, and starts of H_s and the H_v."""
    rng = np.random.default_rng(seed)
    H = rng.normal(size=(n, 4))
    Xs = [H @ rng.normal(size=(4, d)) + 0.3 * rng.normal(size=(n, d)) for d in dims]
    start = [rng.uniform(size=(shared, n)), *(rng.uniform(size=(own, n)) for _ in dims)]
    return [X / np.linalg.norm(X, axis=1, keepdims=True) for X in Xs], start


def literal(Xs, start, iterations, lam, lam_d, mu=1e-4, rho=1.5, guard=0.0):
    """The steps of the authors' program, which has a guard of 1e-8, with all features."""
    Xs, n = [X.T for X in Xs], Xs[0].shape[0]
    Hs, *Hv = start
    k, I = len(Hs), np.eye(n)
    Z, Y = np.zeros((2, n, n))
    Zv, Ys, Q = ([np.zeros((n, n)) for _ in Xs] for _ in range(3))
    Ep, Eh, Yp, Yh = ([np.zeros((k + len(H), n)) for H in Hv] for _ in range(4))
    P, sizes = [None for _ in Xs], []
    for _ in range(iterations):
        grams, sides = np.zeros((2, n, n))
        for v, X in enumerate(Xs):
            H = np.vstack([Hs, Hv[v]])
            U, _s, Vt = np.linalg.svd((H + Ep[v] - Yp[v] / mu) @ X.T, full_matrices=False)
            P[v] = U @ Vt
            B = I - Z - Zv[v]
            right = P[v] @ X - Ep[v] + Yp[v] / mu + Eh[v] @ B.T - Yh[v] @ B.T / mu
            Hv[v] = right[k:] @ np.linalg.inv((1 + guard) * I + B @ B.T)
            H = np.vstack([Hs, Hv[v]])
            A = Zv[v] + Ys[v] / mu
            Q[v] = np.sign(A) * np.maximum(np.abs(A) - lam_d / mu, 0) * (1 - I)
            right = H.T @ (H - H @ Z - Eh[v]) + Q[v] + (H.T @ Yh[v] - Ys[v]) / mu
            Zv[v] = np.linalg.inv(H.T @ H + I) @ right
            G = np.vstack([P[v] @ X - H + Yp[v] / mu, H - H @ Z - H @ Zv[v] + Yh[v] / mu])
            E = G * np.maximum(1 - lam / mu / np.linalg.norm(G, axis=0), 0)
            Ep[v], Eh[v] = np.vsplit(E, 2)
            grams += H.T @ H
            sides += H.T @ (H - H @ Zv[v] - Eh[v] + Yh[v] / mu)
        U, s, Vt = np.linalg.svd(Z + Y / mu)
        J = U @ np.diag(np.maximum(s - 1 / mu, 0)) @ Vt
        Z = np.linalg.inv((1 + guard) * I + grams) @ (J - Y / mu + sides)
        right, left = np.zeros_like(Hs), guard * I
        for v, X in enumerate(Xs):
            B = I - Z - Zv[v]
            side = P[v] @ X - Ep[v] + Yp[v] / mu + Eh[v] @ B.T - Yh[v] @ B.T / mu
            right, left = right + side[:k], left + I + B @ B.T
        Hs = right @ np.linalg.inv(left)
        worst = [np.abs(Z - J).sum(1).max()]
        for v, X in enumerate(Xs):
            H = np.vstack([Hs, Hv[v]])
            gaps = P[v] @ X - H - Ep[v], H - H @ Z - H @ Zv[v] - Eh[v], Zv[v] - Q[v]
            Yp[v], Yh[v], Ys[v] = Yp[v] + mu * gaps[0], Yh[v] + mu * gaps[1], Ys[v] + mu * gaps[2]
            worst += [np.abs(gap).sum(1).max() for gap in gaps]
        Y = Y + mu * (Z - J)
        mu = min(rho * mu, 1e6)
        sizes.append(max(worst))
    return Z, Zv, Hs, Hv, P, sizes


@pytest.mark.parametrize("dims", [(6, 40), (10, 12)])  # fewer and more features than H has rows
@pytest.mark.parametrize("weights", [WEIGHTS, {"lam": 1.0, "lam_d": 0.2}])
def test_equals_the_literal_program(dims, weights):
    Xs, start = data(dims=dims)
    run = Run("DSSMSC", 100, 1e-6)
    solve_dssmsc(Xs, start, **weights, run=run)
    assert run.converged
    for iterations in (1, 5, run.n_iter):
        with case(iterations, "iterations"):
            Z, Zs, Hs = solve_dssmsc(Xs, start, **weights, run=Run("DSSMSC", iterations, 0.0))
            *wanted, _, _, sizes = literal(Xs, start, iterations, **weights)
            for one, two in zip((Z, *Zs, Hs), (wanted[0], *wanted[1], wanted[2]), strict=True):
                assert_allclose(one, two, rtol=0, atol=1e-6)
    assert sizes[-1] < 1e-6 <= sizes[-2]


def test_the_guards_of_the_program_do_not_matter():
    Xs, start = data()
    one, two = (literal(Xs, start, 60, **WEIGHTS, guard=guard)[0] for guard in (0.0, 1e-8))
    assert_allclose(one, two, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_no_block_can_be_improved():
    cvxpy = pytest.importorskip("cvxpy")
    Xs, start = data(n=9, dims=(6, 20))
    weights = {"lam": 1.0, "lam_d": 0.1}
    # The literal algorithm, which the solver equals, also tells the H_v and the P_v.
    Z, Zs, Hs, Hv, P, sizes = literal(Xs, start, 4000, **weights, mu=1e-1, rho=1.003)
    assert sizes[-1] < 1e-6
    Hs_all = [np.vstack([Hs, H]) for H in Hv]
    PX = [A @ X.T for A, X in zip(P, Xs, strict=True)]

    def objective(Z, Zs, Hs_all, norms, total, nuclear, ones):
        parts = [norms(PX[v] - H, H - H @ Z - H @ Zs[v]) for v, H in enumerate(Hs_all)]
        return nuclear(Z) + weights["lam_d"] * total(map(ones, Zs)) + weights["lam"] * total(parts)

    def numpy_norms(A, B):
        return np.linalg.norm(np.vstack([A, B]), axis=0).sum()

    def cvxpy_norms(A, B):
        return cvxpy.sum(cvxpy.norm(cvxpy.vstack([A, B]), 2, axis=0))

    found = objective(
        Z,
        Zs,
        Hs_all,
        numpy_norms,
        sum,
        lambda A: np.linalg.norm(A, "nuc"),
        lambda A: np.abs(A).sum(),
    )
    solver = {"solver": cvxpy.SCS, "eps": 1e-8, "max_iters": 50_000}
    # both kinds of representations, given the latent ones
    V, *Vs = (cvxpy.Variable(Z.shape) for _ in range(3))
    cost = objective(
        V, Vs, Hs_all, cvxpy_norms, sum, cvxpy.normNuc, lambda A: cvxpy.sum(cvxpy.abs(A))
    )
    best = cvxpy.Problem(cvxpy.Minimize(cost), [cvxpy.diag(A) == 0 for A in Vs]).solve(**solver)
    assert found == pytest.approx(best, rel=2e-3)  # mu grows by .3% an iteration
    # the latent representations, given these and the projections
    shared = cvxpy.Variable(Hs.shape)
    own = [cvxpy.vstack([shared, cvxpy.Variable(H.shape)]) for H in Hv]
    cost = objective(
        Z, Zs, own, cvxpy_norms, sum, lambda A: np.linalg.norm(A, "nuc"), lambda A: np.abs(A).sum()
    )
    best = cvxpy.Problem(cvxpy.Minimize(cost)).solve(**solver)
    assert found == pytest.approx(best, rel=2e-3)
    assert min(np.abs(A).max() for A in (Z, *Zs, Hs)) > 0.1  # all parts are in use


def test_keeps_its_figure_with_the_setting_of_the_program(data_dir):
    data = load_dataset("bbcsport")
    labels = DSSMSC(5, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["nmi"] == pytest.approx(0.89, abs=0.03)


def test_parts_and_affinity():
    model = DSSMSC(3, shared_dim=7, random_state=0).fit(make_subspaces(45, 3, noise=0.1).views)
    Z = np.mean([np.abs(model.consistent_ + own) for own in model.specific_], axis=0)
    assert_allclose(model.representation_, Z, rtol=0, atol=1e-14)  # rounding
    assert_allclose(model.affinity_matrix_, Z + Z.T, rtol=0, atol=1e-14)
    assert model.latent_.shape == (45, 7)
    # tol of row sums, in which the copies Q_v have zero diagonals
    assert max(np.abs(np.diag(own)).max() for own in model.specific_) < 1e-3


def test_recovers_planted_subspaces():
    data = make_subspaces(120, 4, noise=0.01, random_state=0)
    labels = DSSMSC(4, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["acc"] == 1.0


def test_the_start_is_random_and_seeded():
    views = make_subspaces(60, 3, noise=0.2).views
    a, b, c = (DSSMSC(3, random_state=seed).fit(views).representation_ for seed in (0, 0, 1))
    assert np.array_equal(a, b)
    assert np.abs(a - c).max() > 1e-4


def test_history_is_the_stopping_rule():
    model = DSSMSC(3, random_state=0).fit(make_subspaces(60, 3, noise=0.05).views)
    assert list(model.history_) == ["data", "latent", "sparse", "low_rank"]
    worst = np.max(list(model.history_.values()), axis=0)
    assert worst[-1] < 1e-3 <= worst[-2]
    assert len(worst) == model.n_iter_


def test_other_array_libraries_find_the_same():
    strict = pytest.importorskip("array_api_strict")
    views = make_subspaces(45, 3).views
    wanted = DSSMSC(3, random_state=0).fit(views)
    found = DSSMSC(3, random_state=0).fit([strict.asarray(X) for X in views])
    assert_allclose(np.asarray(found.representation_), wanted.representation_, rtol=0, atol=1e-7)
    assert np.array_equal(found.labels_, wanted.labels_)


def test_constants_are_those_of_the_program():
    params = DSSMSC().get_params()
    printed = {"rho": 1.5, "mu0": 1e-4, "mu_max": 1e6, "max_iter": 100, "lam": 0.1,
               "lam_d": 0.001, "shared_dim": 30, "specific_dim": 80}  # fmt: skip
    assert {name: params[name] for name in printed} == printed
