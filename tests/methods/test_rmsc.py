import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan import RMSC
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs.proximity import median_kernel
from polyspan.methods.rmsc import random_walk, solve_rmsc, stationary_distribution
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run

# Columns: data, scale, lam, mean NMI of the authors' program; benchmarks/METHODS.md has more.
REACHED = [
    ("three_sources", None, 0.1, 0.5092),
    ("three_sources", "unit", 0.1, 0.6235),
    ("ngs", None, 0.1, 0.2637),
    ("ngs", "unit", 0.1, 0.7944),
]


@pytest.mark.parametrize(
    ("name", "scale", "lam", "nmi", "as_released"),
    # The figures are of the released program; the other variant is compared on a part of them.
    [(*one, True) for one in REACHED] + [(*REACHED[k], False) for k in (0, 3)],
)
def test_reaches_the_known_figures(data_dir, name, scale, lam, nmi, as_released):
    data = load_dataset(name)
    model = RMSC(
        data.n_clusters, scale=scale, lam=lam, as_released=as_released, random_state=0
    ).fit(data.views)
    # Nothing before k-means is random, so one solve serves four seeds.
    found = [
        spectral_clustering(model.affinity_matrix_, data.n_clusters, random_state=seed)
        for seed in range(4)
    ]
    assert np.array_equal(found[0], model.labels_)
    scores = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    # The starts of k-means alone make up to .02: one start has .6223 on 3-Sources, 20 have .6441.
    assert np.mean(scores) == pytest.approx(nmi, abs=0.03)


def walks(n=8, dims=(3, 4, 6), seed=0):
    """Random walks on a few views of the same samples."""
    rng = np.random.default_rng(seed)
    return [random_walk(median_kernel(rng.normal(size=(n, d)))) for d in dims]


def objective(P, Ts, lam):
    return np.linalg.norm(P, "nuc") + lam * sum(np.abs(T - P).sum() for T in Ts)


@pytest.mark.parametrize("lam", [0.05, 0.15, 0.4])
def test_reaches_the_optimum_that_cvxpy_finds(lam):
    cvxpy = pytest.importorskip("cvxpy")
    Ts = walks()
    V = cvxpy.Variable((8, 8), nonneg=True)
    errors = sum(cvxpy.sum(cvxpy.abs(T - V)) for T in Ts)
    best = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.normNuc(V) + lam * errors), [cvxpy.sum(V, axis=1) == 1]
    ).solve(solver=cvxpy.SCS, eps=1e-8, max_iters=100_000)
    run = Run("RMSC", 20_000, 1e-9)
    P = solve_rmsc(Ts, lam=lam, rho=1.01, mu0=1e-2, mu_max=1e8, run=run)
    assert run.converged
    # mu grows by 1% an iteration, which leaves a gap of some 1e-5.
    assert objective(P, Ts, lam) == pytest.approx(best, rel=1e-4)


def released(Ts, lam, iterations, tol=0.0, mu=1e-3, rho=1.9):
    """The steps of the authors' program, row by row, and the size of the residuals in each."""
    sizes = []
    n = len(Ts[0])
    Q, Z = np.zeros((2, n, n))
    Es, Ys = np.zeros((2, len(Ts), n, n))
    for _ in range(iterations):
        M = Q - Z / mu + sum(T - E - Y / mu for T, E, Y in zip(Ts, Es, Ys, strict=True))
        P = np.array([on_the_simplex(row) for row in M / (len(Ts) + 1)])
        U, s, Vt = np.linalg.svd(P + Z / mu)
        Q = (U * np.maximum(s - 1 / mu, 0)) @ Vt
        for v, T in enumerate(Ts):
            B = T - P - Ys[v] / mu
            Es[v] = np.sign(B) * np.maximum(np.abs(B) - lam / mu, 0)
            Ys[v] = Ys[v] + mu * (P + Es[v] - T)
        Z = Z + mu * (P - Q)
        mu *= rho
        sizes.append(max(np.abs(T - P - E).sum(1).max() for T, E in zip(Ts, Es, strict=True)))
        if sizes[-1] < tol:
            break
    return P, sizes


def on_the_simplex(row):
    """Projection by bisection on the level."""
    low, high = row.min() - 1, row.max()
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.maximum(row - level, 0).sum() > 1 else (low, level)
    return np.maximum(row - high, 0)


@pytest.mark.parametrize("lam", [0.05, 0.4])
def test_as_released_equals_the_literal_program(lam):
    Ts = walks()
    _, sizes = released(Ts, lam, 100, 1e-6)
    for iterations in (1, 5, len(sizes)):
        P = solve_rmsc(Ts, lam=lam, as_released=True, run=Run("RMSC", iterations, 0.0))
        # singular values are lowered to an accuracy of 1e-10
        assert_allclose(P, released(Ts, lam, iterations)[0], rtol=0, atol=1e-8)
    run = Run("RMSC", 100, 1e-6)
    solve_rmsc(Ts, lam=lam, as_released=True, run=run)
    assert run.n_iter == len(sizes)
    assert_allclose(run.history["data"], sizes, rtol=0, atol=1e-8)


def test_as_released_takes_the_median_with_the_diagonal():
    Xs = [np.random.default_rng(v).normal(size=(9, d)) for v, d in enumerate((3, 4))]
    Ts = []
    for X in Xs:
        distance = np.linalg.norm(X[:, None] - X[None], axis=2)
        K = np.exp(-(distance**2) / (2 * np.median(distance) ** 2))
        Ts.append(K / K.sum(axis=1, keepdims=True))
    found = RMSC(2, scale=None, as_released=True).fit(Xs).transition_matrix_
    # The kernels differ by rounding, which the threshold of the singular values keeps at 1e-10.
    assert_allclose(found, solve_rmsc(Ts, lam=0.1, as_released=True), rtol=0, atol=1e-8)
    other = RMSC(2, scale=None).fit(Xs).transition_matrix_
    assert np.abs(found - other).max() > 1e-4


def test_as_released_stops_when_the_program_does_on_3_sources(data_dir):
    views = load_dataset("three_sources").views
    made = [RMSC(6, lam=0.05, as_released=x).fit(views).n_iter_ for x in (False, True)]
    assert made == [30, 31]  # the program: 31


def test_the_walk_is_a_walk():
    P = RMSC(3).fit(make_subspaces(45, 3).views).transition_matrix_
    assert P.min() >= 0
    assert_allclose(P.sum(axis=1), 1, rtol=0, atol=1e-12)  # rounding


def test_equal_views_and_costly_errors_give_their_walk():
    T = walks()[0]
    assert_allclose(solve_rmsc([T, T, T], lam=100.0), T, rtol=0, atol=1e-6)  # tol


def test_cheap_errors_give_nearly_rank_one():
    P = solve_rmsc(walks(), lam=0.01, rho=1.05, run=Run("RMSC", 2000, 1e-10))
    norms = [np.linalg.norm(A, "nuc") for A in (P, *walks())]
    assert norms[0] == pytest.approx(1, abs=1e-3)  # 1 is the least that a walk can have
    assert min(norms[1:]) > 1.1


def test_the_order_of_views_does_not_matter():
    Ts = walks()
    a, b = solve_rmsc(Ts, lam=0.1), solve_rmsc(Ts[::-1], lam=0.1)
    assert_allclose(a, b, rtol=0, atol=1e-8)  # sums in another order


def test_stationary_distribution_is_kept_by_the_walk():
    T = walks()[2]
    pi = stationary_distribution(T)
    assert_allclose(pi @ T, pi, rtol=0, atol=1e-8)  # once in 1e8 steps the walk jumps
    assert pi.sum() == pytest.approx(1, abs=1e-14)
    assert pi.min() > 0


def test_stationary_distribution_of_a_walk_in_pieces_is_positive():
    T = np.zeros((6, 6))
    T[:2, :2] = T[2:4, 2:4] = 0.5
    T[4, 0] = T[5, 2] = 1  # nobody comes here
    pi = stationary_distribution(T)
    assert pi.min() > 0
    assert_allclose(pi, [0.25] * 4 + [0, 0], rtol=0, atol=1e-8)


def test_normalized_affinity_is_that_of_the_paper():
    model = RMSC(3).fit(make_subspaces(45, 3).views)
    P, W = model.transition_matrix_, model.affinity_matrix_
    pi = stationary_distribution(P)
    assert_allclose(W.sum(axis=1), pi, rtol=1e-6, atol=0)  # the jumps
    root = np.sqrt(pi)
    symmetric = root[:, None] * P / root
    degrees = np.sqrt(W.sum(axis=1))
    assert_allclose(
        W / degrees[:, None] / degrees, (symmetric + symmetric.T) / 2, rtol=0, atol=1e-6
    )


def test_recovers_planted_clusters_with_the_defaults():
    # Lines instead of planes: a Gaussian kernel sees distances, not subspaces.
    data = make_subspaces(120, 4, subspace_dim=1, noise=0.01, random_state=0)
    views = [X * np.sign(X[:, :1]) for X in data.views]
    labels = RMSC(4, random_state=0).fit_predict(views)
    assert clustering_scores(data.labels, labels)["acc"] == 1.0


def test_history_is_the_stopping_rule():
    model = RMSC(3).fit(make_subspaces(45, 3).views)
    assert list(model.history_) == ["data"]
    values = model.history_["data"]
    assert len(values) == model.n_iter_
    assert values[-1] < 1e-6 <= values[-2]


def test_other_array_libraries_find_the_same():
    strict = pytest.importorskip("array_api_strict")
    views = make_subspaces(45, 3).views
    wanted = RMSC(3, random_state=0).fit(views)
    found = RMSC(3, random_state=0).fit([strict.asarray(X) for X in views])
    assert_allclose(
        np.asarray(found.transition_matrix_), wanted.transition_matrix_, rtol=0, atol=1e-9
    )
    assert np.array_equal(found.labels_, wanted.labels_)


def test_constants_are_the_papers():
    params = RMSC().get_params()
    printed = {"rho": 1.9, "mu0": 1e-3, "tol": 1e-6}
    assert {name: params[name] for name in printed} == printed
