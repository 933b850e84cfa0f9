import numpy as np
import pytest
from late_fusion import clouds, distances, kernel, shares, tied_views, unit
from numpy.testing import assert_allclose

from polyspan import SNF
from polyspan.datasets import load_dataset
from polyspan.methods.snf import similarities
from polyspan.metrics import clustering_scores


def normalize(W):
    """Half of the weight of a row on the diagonal, then symmetric: the program's step."""
    n = len(W)
    P = np.zeros_like(W)
    for i in range(n):
        for j in range(n):
            P[i, j] = 0.5 if i == j else W[i, j] / (2 * sum(W[i, r] for r in range(n) if r != i))
    return (P + P.T) / 2


def literal(views, k, mu, rounds):
    """Similarity network fusion by the definitions, with dense products."""
    Ps, Ss = [], []
    for X in views:
        D = distances(unit(X))
        A, nearest = shares(D, k)
        Ps.append(normalize(kernel(D, nearest, mu)))
        local = (A + np.eye(len(D))) * Ps[-1]
        Ss.append(local / local.sum(axis=1, keepdims=True))
    for _ in range(rounds):
        after = []
        for v in range(len(views)):
            others = [P for u, P in enumerate(Ps) if u != v] or [Ps[v]]
            after.append(normalize(Ss[v] @ (sum(others) / len(others)) @ Ss[v].T))
        Ps = after
    return normalize(sum(Ps) / len(Ps))


@pytest.mark.slow
@pytest.mark.parametrize(("k", "mu", "rounds"), [(3, 0.5, 1), (3, 0.5, 7), (8, 0.3, 3)])
def test_equals_the_definition(k, mu, rounds):
    views = tied_views()
    model = SNF(2, n_neighbors=k, mu=mu, n_rounds=rounds, random_state=0)
    for some in (views, views[:2], views[:1]):
        W = model.fit(some).affinity_matrix_
        assert_allclose(W, literal(some, k, mu, rounds), atol=1e-10)


def test_the_order_of_the_samples_does_not_matter():
    views, order = tied_views(), np.random.default_rng(1).permutation(40)
    model = SNF(2, n_neighbors=6, random_state=0)
    W = model.fit(views).affinity_matrix_
    shuffled = model.fit([X[order] for X in views]).affinity_matrix_
    assert_allclose(shuffled, W[np.ix_(order, order)], atol=1e-10)


def test_the_unit_of_the_features_does_not_matter():
    X = np.random.default_rng(0).normal(size=(40, 3))
    P, S = similarities(X, 5, 0.5)
    again = similarities(1000 * X, 5, 0.5)
    assert_allclose(again[0], P, atol=1e-12)
    assert_allclose(again[1].toarray(), S.toarray(), atol=1e-12)


def test_a_kernel_too_narrow_for_any_pair_leaves_the_diagonal():
    X = np.random.default_rng(0).normal(size=(20, 3))
    P, S = similarities(X, 5, 1e-3)
    assert_allclose(P, np.eye(20) / 2)
    assert_allclose(S.toarray(), np.eye(20))


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_recovered(seed):
    views, truth = clouds(seed=seed)
    labels = SNF(3, random_state=0).fit_predict(views)
    assert clustering_scores(truth, labels)["acc"] == 1


def test_figures_of_published_data(data_dir):
    data = load_dataset("ngs")
    labels = SNF(5, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["nmi"] == pytest.approx(0.96, abs=0.01)
