import numpy as np
import pytest
from late_fusion import clouds, distances, shares, tied_views, unit
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from polyspan import CGD
from polyspan.datasets import load_dataset
from polyspan.metrics import clustering_scores


def links(X, k):
    """Normalized neighbor graph of a view, and the graph, by the definitions."""
    D2 = distances(unit(X)) ** 2
    A, _ = shares(np.sqrt(D2), k)
    G = A * np.exp(-((D2 / D2.max()) ** 2) / 0.5**2) + np.eye(len(X))
    W = (G + G.T) / 2
    d = W.sum(axis=1)
    return W / np.sqrt(np.outer(d, d)), W


def roughness(A, W):
    """H of the paper: a sum over pairs of links."""
    d = W.sum(axis=1)
    B = A / np.sqrt(np.outer(d, d))
    total = 0.0
    for i, j in np.argwhere(W):
        for k, m in np.argwhere(W):
            total += W[i, j] * W[k, m] * (B[k, i] - B[m, j]) ** 2
    return total / 2


@pytest.mark.parametrize(("k", "lam"), [(3, 0.3), (8, 1.0)])
def test_equals_the_definition(k, lam):
    views = tied_views()
    Ss = [links(X, k)[0] for X in views]
    A = np.eye(40)
    for _ in range(4):
        A = sum(S @ A @ S for S in Ss) / 3 / (1 + lam) + lam / (1 + lam) * np.eye(40)
    model = CGD(2, n_neighbors=k, lam_identity=lam, n_rounds=4, random_state=0).fit(views)
    assert_allclose(model.affinity_matrix_, A, atol=1e-10)
    assert_allclose(model.weights_, 1 / 3)


def test_adaptive_weights_equal_the_definition():
    views = [X[:24] for X in tied_views()]
    pairs = [links(X, 3) for X in views]
    A, b = np.eye(24), np.full(3, 1 / 3)
    for _ in range(10):
        for _ in range(2):
            A = sum(w * S @ A @ S for w, (S, _) in zip(b, pairs, strict=True)) / 1.3
            A += 0.3 / 1.3 * np.eye(24)
        b = best_weights([np.sum(A * A) - np.sum(A * (S @ A @ S)) for S, _ in pairs])
    model = CGD(2, n_neighbors=3, view_weights="adaptive", n_rounds=2, random_state=0).fit(views)
    assert_allclose(model.weights_, b, atol=1e-6)
    assert_allclose(model.affinity_matrix_, A, atol=1e-6)
    assert np.ptp(b) > 0.003


def best_weights(H):
    """Minimize sum b H + 19/2 |b|^2 over the simplex by a general solver."""
    found = minimize(
        lambda b: b @ H + 19 / 2 * b @ b,
        np.full(len(H), 1 / len(H)),
        jac=lambda b: np.array(H) + 19 * b,
        bounds=[(0, 1)] * len(H),
        constraints={"type": "eq", "fun": lambda b: np.sum(b) - 1},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x


def test_the_short_form_of_the_roughness():
    S, W = links(tied_views()[0][:16], 3)
    A = np.random.default_rng(0).uniform(size=(16, 16))
    A = A + A.T
    assert roughness(A, W) == pytest.approx(np.sum(A * A) - np.sum(A * (S @ A @ S)), rel=1e-12)


def test_many_rounds_reach_the_minimum():
    views = [X[:16] for X in tied_views()]
    pairs = [links(X, 3) for X in views]
    A = CGD(2, n_neighbors=3, n_rounds=150, random_state=0).fit(views).affinity_matrix_

    def objective(A):
        own = 0.3 * np.sum((A - np.eye(16)) ** 2)
        return own + sum(np.sum(A * A) - np.sum(A * (S @ A @ S)) for S, _ in pairs) / 3

    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1):
        for _ in range(20):
            step = rng.normal(size=A.shape)
            assert objective(A) < objective(A + size * (step + step.T))


def test_the_order_of_the_samples_does_not_matter():
    views, order = tied_views(), np.random.default_rng(1).permutation(40)
    for weights in ("fixed", "adaptive"):
        model = CGD(2, n_neighbors=6, view_weights=weights, random_state=0)
        A = model.fit(views).affinity_matrix_
        shuffled = model.fit([X[order] for X in views]).affinity_matrix_
        assert_allclose(shuffled, A[np.ix_(order, order)], atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_recovered(seed):
    views, truth = clouds(seed=seed)
    for weights in ("fixed", "adaptive"):
        labels = CGD(3, view_weights=weights, random_state=0).fit_predict(views)
        assert clustering_scores(truth, labels)["acc"] == 1


def test_figures_of_published_data(data_dir):
    data = load_dataset("ngs")
    labels = CGD(5, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["nmi"] == pytest.approx(0.937, abs=0.01)
    labels = CGD(5, view_weights="adaptive", random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["nmi"] < 0.8  # as the paper has it
