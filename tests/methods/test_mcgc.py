import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from polyspan import MCGC
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs import proximity
from polyspan.methods import mcgc
from polyspan.methods.mcgc import solve_mcgc, view_graph
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run


@pytest.mark.parametrize(("lam_agreement", "nmi"), [(0.6, 0.7250), (2.0, 0.7699)])
def test_reaches_the_authors_figures(data_dir, lam_agreement, nmi):
    data = load_dataset("three_sources")
    model = MCGC(n_clusters=6, n_neighbors=15, lam_agreement=lam_agreement, as_released=True)
    # Deterministic: all four digits of the reference.
    found = clustering_scores(data.labels, model.fit_predict(data.views))["nmi"]
    assert found == pytest.approx(nmi, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "lam_agreement", "nmi"),
    [("three_sources", 0.6, 0.6273), ("three_sources", 2.0, 0.6375), ("msrc_v1", 0.6, 0.8001)],
)
def test_keeps_its_figures(data_dir, name, lam_agreement, nmi):
    data = load_dataset(name)
    labels = MCGC(n_clusters=data.n_clusters, lam_agreement=lam_agreement).fit_predict(data.views)
    # Deterministic; one sample in another cluster changes the NMI by less than this.
    assert clustering_scores(data.labels, labels)["nmi"] == pytest.approx(nmi, abs=0.02)


def noise(n=40, dims=(3, 5), seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for d in dims]


def on_the_simplex(row):
    """Projection by bisection on the level."""
    low, high = row[np.isfinite(row)].min() - 1, row.max()
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.maximum(row - level, 0).sum() > 1 else (low, level)
    return np.maximum(row - high, 0)


def lowest(W, c):
    return np.linalg.eigh(np.diag(W.sum(1)) - W)


def in_components(rows, F, c, weight, tol=1e-10, most=30):
    """Alternation with the rank rule; ``rows(weight, E)`` gives what is projected."""
    for _ in range(most):
        E = ((F[:, None] - F[None]) ** 2).sum(2)
        S = np.array([on_the_simplex(row) for row in rows(weight, E)])
        S = (S + S.T) / 2
        values, V = lowest(S, c)
        if values[:c].sum() > tol:
            weight, F = 2 * weight, V[:, :c]
        elif values[: c + 1].sum() < tol:
            weight = weight / 2
        else:
            return S, V[:, :c], weight
    raise AssertionError("no c components")


def literal_graph(X, c, k, as_released=False):
    D = ((X[:, None] - X[None]) ** 2).sum(2)
    near = np.sort(D, axis=1)[:, 1 : k + 2]
    alpha = (k * near[:, k] - near[:, :k].sum(1)) / 2
    W = np.zeros(D.shape)
    for i, row in enumerate(D):
        W[i] = np.maximum(near[i, k] - row, 0) / (2 * alpha[i])
        W[i, i] = 0
    others = W > 0  # the k nearest
    W = (W + W.T) / 2
    F = lowest(W, c)[1][:, :c]

    def rows(lam, E):
        return -(D + lam * E) / (2 * alpha[:, None]) - np.diag(np.full(len(D), 1e9))

    def rows_as_released(lam, E):
        return np.where(others, -lam / 2 * E, -1e9)

    if as_released:
        return in_components(rows_as_released, F, c, 1.0, tol=1e-11)[0]
    return in_components(rows, F, c, alpha.mean())[0]


def literal(Ws, c, lam_agreement, lam_components, iterations, as_released=False):
    S = sum(Ws) / len(Ws)
    most = 30
    if as_released:
        Us = [np.linalg.eigh(W)[1][:, -c:] for W in Ws]
        S, most = sum(lam_agreement * U @ U.T for U in Us), 50
    H = lowest(S, c)[1][:, :c]
    for _ in range(iterations):
        A = np.zeros(S.shape)
        for W in Ws:
            U = np.linalg.eigh(W + lam_agreement * S)[1][:, -c:]
            A += lam_agreement * U @ U.T
        S, H, lam_components = in_components(
            lambda g, E, A=A: A - g / 2 * E, H, c, lam_components, most=most
        )
    return S


@pytest.mark.parametrize("c", [2, 3])
@pytest.mark.parametrize("as_released", [False, True])
def test_graph_of_a_view_equals_the_literal_recursion(c, as_released):
    for X in noise():
        found = view_graph(X, c, 6, as_released=as_released)
        assert_allclose(found, literal_graph(X, c, 6, as_released), rtol=0, atol=1e-8)


def test_the_graph_of_a_view_as_released_is_another():
    X = noise()[0]
    one, two = (view_graph(X, 3, 6, as_released=x) for x in (False, True))
    assert np.abs(one - two).max() > 1e-2


@pytest.mark.parametrize("tol", [1e-10, 1e-4])
def test_the_graph_of_a_view_as_released_takes_a_tenth_of_the_tolerance(monkeypatch, tol):
    asked = []
    step = proximity.rank_step
    monkeypatch.setattr(proximity, "rank_step", lambda W, F, t: (asked.append(t), step(W, F, t))[1])
    view_graph(noise()[0], 3, 6, tol, as_released=True)
    assert set(asked) == {tol / 10}


@pytest.mark.parametrize("lam_agreement", [0.6, 2.0])
def test_as_released_equals_the_literal_program(lam_agreement):
    Ws = [view_graph(X, 3, 6, as_released=True) for X in noise()]
    for iterations in (1, 2, 5):  # 5 are all that the program makes
        run = Run("MCGC", iterations, 1e-10)
        S = solve_mcgc(Ws, 3, lam_agreement=lam_agreement, as_released=True, run=run)
        assert run.n_iter == iterations
        assert run.converged
        wanted = literal(Ws, 3, lam_agreement, 1.0, iterations, as_released=True)
        # eigenvectors of nearly equal eigenvalues round differently
        assert_allclose(S, wanted, rtol=0, atol=1e-8)


def test_as_released_makes_all_iterations_though_the_components_stay():
    model = MCGC(n_clusters=3, n_neighbors=6, scale=None, as_released=True).fit(noise())
    assert model.n_iter_ == 5
    assert 0 in model.history_["moved"][:-1]  # the default would have stopped there
    assert MCGC(n_clusters=3, n_neighbors=6, scale=None).fit(noise()).n_iter_ < 5


def test_as_released_has_50_steps_to_reach_the_components():
    Ws = [view_graph(X, 3, 6, as_released=True) for X in noise()]
    # The weight starts so low that it must be doubled more than 30 times.
    small = {"lam_agreement": 2.0, "lam_components": 2.0**-38}
    one, two = (
        solve_mcgc(Ws, 3, **small, as_released=x, run=Run("MCGC", 1, 1e-10)) for x in (False, True)
    )
    n_pieces = [connected_components(sp.csr_array(S), directed=False)[0] for S in (one, two)]
    assert n_pieces[0] != 3
    assert n_pieces[1] == 3


@pytest.mark.parametrize("lam_components", [0.1, 1.0])
@pytest.mark.parametrize("lam_agreement", [0.6, 2.0])
def test_equals_the_literal_recursion(lam_agreement, lam_components):
    Ws = [view_graph(X, 3, 6) for X in noise()]
    run = Run("MCGC", 5, 1e-10)
    S = solve_mcgc(Ws, 3, lam_agreement=lam_agreement, lam_components=lam_components, run=run)
    assert run.history["moved"][-1] == 0
    # eigenvectors of nearly equal eigenvalues round differently
    assert_allclose(S, literal(Ws, 3, lam_agreement, lam_components, run.n_iter), rtol=0, atol=1e-8)


def test_without_rank_term_the_view_graph_would_be_the_probabilistic_neighbors():
    X = np.concatenate([noise(20, (2,))[0] + 50 * k for k in range(3)])  # three components at once
    S = proximity.adaptive_neighbors(X, 5)
    assert connected_components(sp.csr_array(S + S.T))[0] == 3
    # F is constant on components, so that the rank term sees none of the links
    assert_allclose(view_graph(X, 3, 5), (S + S.T) / 2, rtol=0, atol=1e-8)


def test_the_graph_is_a_graph():
    model = MCGC(n_clusters=3, scale=None, n_neighbors=6).fit(noise())
    S = model.affinity_matrix_
    assert S.min() >= 0
    assert_array_equal(S, S.T)
    assert S.sum() == pytest.approx(40, rel=1e-12)
    assert not S[model.labels_[:, None] != model.labels_[None, :]].any()
    values = np.linalg.eigvalsh(np.diag(S.sum(1)) - S)
    assert values[2] < 1e-10 < values[3]
    assert model.history_["eigenvalues"][-1] == pytest.approx(values[:3].sum(), abs=1e-13)
    assert len(model.history_["moved"]) == model.n_iter_ >= 2
    assert model.history_["moved"][0] == 1  # there were no components to stay in


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_recovered(seed):
    data = make_subspaces(90, 3, n_features=[20, 30], subspace_dim=2, noise=0.01, random_state=seed)
    labels = MCGC(n_clusters=3, n_neighbors=5).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["acc"] == 1


def test_views_that_agree_are_the_consensus():
    W = np.kron(np.eye(4), np.ones((5, 5)) / 5)
    assert_allclose(solve_mcgc([W, W, W], 4, lam_agreement=1.0), W, atol=1e-12)


def test_as_many_clusters_as_samples():
    model = MCGC(n_clusters=9, random_state=0).fit(noise(9))
    assert_array_equal(model.labels_, np.arange(9))
    assert_allclose(model.affinity_matrix_, np.eye(9), atol=1e-12)


def test_too_few_iterations_fall_back_on_spectral_clustering(monkeypatch):
    monkeypatch.setattr(mcgc, "RANK_ITERATIONS", 1)
    model = MCGC(n_clusters=3, n_neighbors=6, lam_components=1e-3, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="1 connected components instead of n_clusters=3"):
        model.fit(noise())
    assert set(model.labels_) == {0, 1, 2}
