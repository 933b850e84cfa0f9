import tracemalloc

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from late_fusion import clouds, unit
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from polyspan import FastMICE
from polyspan.datasets import load_dataset
from polyspan.methods import fastmice
from polyspan.methods.fastmice import anchors, group_links, links, transfer_cut
from polyspan.metrics import clustering_scores


def literal_links(X, A, k):
    """Links of samples to anchors by loops."""
    near = [sorted((np.linalg.norm(x - a), j) for j, a in enumerate(A))[:k] for x in X]
    s = np.mean([d for row in near for d, _ in row])
    B = np.zeros((len(X), len(A)))
    for i, row in enumerate(near):
        for d, j in row:
            B[i, j] = np.exp(-(d**2) / (2 * s**2))
        B[i] /= np.linalg.norm(B[i])
    return B


def literal_cut(B, c):
    """Transfer cut by dense matrices."""
    Dx, Wy = np.diag(1 / B.sum(axis=1)), B.T @ np.diag(1 / B.sum(axis=1)) @ B
    root = np.diag(Wy.sum(axis=1) ** -0.5)
    Y = np.linalg.eigh(root @ Wy @ root)[1][:, -c:]
    return Dx @ B @ root @ Y


def literal(views, c, n_members, m, k, seed):
    """The whole method, with the draws in the same order."""
    rng, members = np.random.RandomState(seed), []
    for _ in range(n_members):
        g = rng.randint(1, len(views) + 1)
        parts = []
        for v in rng.choice(len(views), g, replace=False):
            d = views[v].shape[1]
            some = rng.choice(d, int(np.ceil(rng.uniform(0.2, 0.8) * d)), replace=False)
            X = unit(unit(views[v])[:, np.sort(some)])
            few = X[np.sort(rng.choice(len(X), min(len(X), 10 * -(-m // g)), replace=False))]
            model = KMeans(-(-m // g), init="random", n_init=1, max_iter=5, random_state=draw(rng))
            parts.append(literal_links(X, model.fit(few).cluster_centers_, -(-k // g)))
        B, count = np.hstack(parts), rng.randint(c, 2 * c + 1)
        U = unit(literal_cut(B[:, B.any(axis=0)], count))
        members.append(KMeans(count, n_init=1, max_iter=5, random_state=draw(rng)).fit_predict(U))
    B = np.hstack([np.eye(labels.max() + 1)[labels] for labels in members])
    return np.array(members).T, literal_cut(B, c)


def draw(rng):
    return rng.randint(2**31)


@pytest.mark.parametrize("seed", range(3))
def test_equals_the_definition(seed):
    views, _ = clouds()
    model = FastMICE(3, n_members=6, n_anchors=25, n_neighbors=5, random_state=seed).fit(views)
    members, U = literal(views, 3, 6, 25, 5, seed)
    for one, two in zip(model.members_.T, members.T, strict=True):
        assert adjusted_rand_score(one, two) == 1  # eigenvectors may differ in sign
    assert_allclose(model.embedding_ @ model.embedding_.T, U @ U.T, atol=1e-10)
    assert {3, 4, 5, 6} >= set(model.members_.max(axis=0) + 1)
    assert len(set(model.members_.max(axis=0))) > 1


def test_links():
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(30, 4)), rng.normal(size=(9, 4))
    for form in (np.asarray, sp.csr_array):
        assert_allclose(links(form(X), form(A), 3).toarray(), literal_links(X, A, 3), atol=1e-10)
    far = links(np.vstack([X, [[1e3] * 4]]), A, 3).toarray()
    assert_allclose(np.linalg.norm(far, axis=1), 1)  # also where all similarities are 0
    same = links(np.ones((4, 2)), np.ones((3, 2)), 2)
    assert_allclose(same.toarray(), 3**-0.5)  # three anchors share two places


def test_blocks_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    X, A = rng.normal(size=(30, 4)), rng.normal(size=(9, 4))
    wanted = links(X, A, 3).toarray()
    monkeypatch.setattr(fastmice, "BLOCK", 40)
    assert_allclose(links(X, A, 3).toarray(), wanted, atol=1e-14)


def test_the_cut_is_that_of_the_whole_bipartite_graph():
    B = np.random.default_rng(0).uniform(size=(12, 5))
    W = np.block([[np.zeros((12, 12)), B], [B.T, np.zeros((5, 5))]])
    D = np.diag(W.sum(axis=1))
    F = scipy.linalg.eigh(D - W, D)[1][:12, :3]  # the samples' part
    U = transfer_cut(sp.csr_array(B), 3)[:, ::-1]
    for f, u in zip(F.T, U.T, strict=True):  # equal up to a factor
        assert abs(f @ u) == pytest.approx(np.linalg.norm(f) * np.linalg.norm(u), rel=1e-10)


def test_fewer_anchors_than_clusters():
    U = transfer_cut(sp.csr_array(np.ones((6, 2))), 4)
    assert U.shape == (6, 4)
    views, _ = clouds(n=30)
    labels = FastMICE(8, n_anchors=2, n_members=3, random_state=0).fit_predict(views)
    assert labels.shape == (30,)


def test_anchors():
    X = np.random.default_rng(0).normal(size=(50, 3))
    rng = np.random.RandomState(0)
    assert anchors(X, 50, rng) is X
    assert anchors(X, 7, rng).shape == (7, 3)
    wide = sp.random_array((40, 5_000_000), density=1e-5, format="csr", rng=0)
    tracemalloc.start()
    try:
        found = anchors(wide, 20, rng)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
    assert sp.issparse(found)
    assert found.shape == (20, 5_000_000)


def test_angles_do_not_see_the_length_of_samples():
    views, _ = clouds()
    longer = [X * np.linspace(1, 9, 90)[:, None] for X in views]
    for by_angle in (True, False):
        one, two = (
            group_links(Xs, 90, 4, np.random.RandomState(0), [by_angle] * len(Xs)).toarray()
            for Xs in (views, longer)
        )
        assert np.allclose(one, two) == by_angle


def test_a_group_has_random_views_and_features(monkeypatch):
    views = [np.random.default_rng(0).uniform(size=(20, d)) for d in (10, 100, 1000)]
    groups, widths = [], []

    def noted(X, m, rng):
        widths.append(X.shape[1])
        return anchors(X, m, rng)

    monkeypatch.setattr(fastmice, "anchors", noted)
    for seed in range(40):
        widths.clear()
        B = group_links(views, 12, 3, np.random.RandomState(seed), [True] * len(views))
        assert B.shape == (20, 12)
        assert_array_equal(np.diff(B.indptr), len(widths) * -(-3 // len(widths)))
        groups.append(tuple(sorted(len(str(d - 1)) for d in widths)))  # digits: 1, 2 and 3
        assert all(2 <= d <= 8 or 20 <= d <= 80 or 200 <= d <= 800 for d in widths)
    assert set(groups) == {(1,), (2,), (3,), (1, 2), (1, 3), (2, 3), (1, 2, 3)}


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_recovered_in_any_order(seed):
    views, truth = clouds(seed=seed)
    order = np.random.default_rng(seed).permutation(90)
    for rows in (np.arange(90), order):
        labels = FastMICE(3, random_state=seed).fit_predict([X[rows] for X in views])
        assert clustering_scores(truth[rows], labels)["acc"] > 0.97


def test_the_seed_is_all_that_is_random():
    views, _ = clouds()
    one, two, other = (FastMICE(3, random_state=s).fit(views).members_ for s in (0, 0, 1))
    assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@pytest.mark.slow
def test_no_matrix_is_n_by_n():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=8000)
    views = [(rng.normal(size=(3, d))[truth] + rng.normal(size=(8000, d)) / 4) for d in (4, 6)]
    tracemalloc.start()
    try:
        model = FastMICE(3, n_members=3, n_anchors=200, random_state=0).fit(views)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert clustering_scores(truth, model.labels_)["nmi"] > 0.5
    assert peak < 2**28  # 256 MiB; an n x n matrix has 488 MiB


def test_figures_of_published_data(data_dir):
    data = load_dataset("msrc_v1")
    found = [FastMICE(7, random_state=s).fit_predict(data.views) for s in range(3)]
    nmi = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    assert np.mean(nmi) == pytest.approx(0.73, abs=0.05)
