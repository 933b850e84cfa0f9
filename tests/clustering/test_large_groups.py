"""Graphs of groups, from which the eigenvectors of large graphs start."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from polyspan.clustering import large
from polyspan.clustering.large import coarse_vectors, normalized_rows
from polyspan.runtime.threads import Threads, bounds


def planted(n=1200, c=3, per=12, seed=0):
    """Random links, most of them inside the clusters, with weights between 0.5 and 1.5."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, c, n)
    places = [np.flatnonzero(labels == one) for one in range(c)]
    i = np.repeat(np.arange(n), per)
    j = np.array([rng.choice(places[labels[a]]) for a in i])
    j = np.where(rng.random(len(j)) < 0.05, rng.integers(0, n, len(j)), j)
    W = sp.csr_array((rng.uniform(0.5, 1.5, len(i)), (i, j)), shape=(n, n))
    return sp.csr_array(W + W.T), labels


def cut(W, size):
    spans = bounds(W.shape[0], size)
    return [W[a:b] for a, b in spans], spans


def angles(V, Y):
    """Cosines of the angles between two subspaces."""
    return np.linalg.svd(np.linalg.qr(V)[0].T @ np.linalg.qr(Y)[0])[1]


@pytest.mark.parametrize("rows", [1200, 170])
def test_vectors_are_close_to_the_eigenvectors(monkeypatch, rows):
    monkeypatch.setattr(large, "DENSE", 40)  # groups of groups
    W, _ = planted()
    with Threads(1) as workers:
        blocks, spans = cut(W, rows)
        Ns, root = normalized_rows(workers, blocks, spans)
        Y = np.concatenate(coarse_vectors(workers, Ns, spans, root, 3, 3))
    _, V = np.linalg.eigh(sp.vstack(Ns).toarray())
    assert angles(V[:, -3:], Y).min() > 0.95  # groups of eight are not pure; of random ones 0.05
    side = 1 / root
    assert_allclose(angles(side[:, None], Y)[0], 1, atol=1e-6)  # the first one is exact


def test_a_small_graph_is_solved_exactly():
    W, _ = planted(300)
    with Threads(1) as workers:
        Ns, root = normalized_rows(workers, *cut(W, 100))
        Y = np.concatenate(coarse_vectors(workers, Ns, bounds(300, 100), root, 5, 3))
    w = np.linalg.eigvalsh(sp.vstack(Ns).toarray())
    assert_allclose(np.sum(Y * (sp.vstack(Ns) @ Y), axis=0), w[:-6:-1], atol=1e-12)


def test_links_between_groups_are_sums():
    W, _ = planted(200)
    groups = np.random.default_rng(1).integers(0, 20, 200)
    P = np.eye(20)[groups]
    with Threads(1) as workers:
        blocks, spans = cut(W, 90)
        Ns, root = normalized_rows(workers, blocks, spans)
        cuts = bounds(20, 8)
        fixed = {"groups": groups, "root": root, "m": 20, "cuts": cuts}
        parts = workers.map(large._links, Ns, spans, **fixed)
    rows = [large._total([p[i] for p in parts], span, 20) for i, span in enumerate(cuts)]
    # The sides are in float32.
    assert_allclose(sp.vstack(rows).toarray(), P.T @ W @ P, rtol=1e-5)


def test_samples_join_the_group_they_are_most_linked_to():
    W = sp.csr_array(
        np.array(
            [
                [0.0, 0.0, 1.0, 2.0, 0.0, 0.0],
                [0.0, 0.0, 3.0, 1.0, 0.0, 0.0],
                [1.0, 3.0, 0.0, 0.0, 5.0, 0.0],
                [2.0, 1.0, 0.0, 0.0, 0.0, 0.0],
                [0.0, 0.0, 5.0, 0.0, 0.0, 0.0],
                [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            ]
        )
    )
    groups = np.array([0, 1, -1, -1, -1, -1])
    groups = large._join(W, (0, 6), groups, 2, False)
    assert_array_equal(groups, [0, 1, 1, 0, -1, -1])  # 4 knows only 2, which had no group
    assert_array_equal(large._join(W, (0, 6), groups, 2, True), [0, 1, 1, 0, 1, 1])


def test_those_that_are_left_are_divided_among_the_groups():
    W = sp.csr_array((40, 80))
    groups = large._join(W, (40, 80), np.full(80, -1), 10, True)
    assert_array_equal(np.bincount(groups), np.full(10, 4))


def test_samples_that_are_left_out_stay_out(monkeypatch):
    monkeypatch.setattr(large, "DENSE", 40)
    W, _ = planted(600)
    with Threads(1) as workers:
        blocks, spans = cut(W, 600)
        Ns, root = normalized_rows(workers, blocks, spans)
        root[:50] = 0
        Ns = [large.scaled_rows(W, slice(None), root)]
        (Y,) = coarse_vectors(workers, Ns, spans, root, 3, 3)
    assert_array_equal(Y[:50], 0)
    assert np.all(np.abs(Y[50:]).max(axis=1) > 0)


def test_few_groups_for_many_vectors_are_no_start(monkeypatch):
    monkeypatch.setattr(large, "DENSE", 40)
    W, _ = planted(300)
    with Threads(1) as workers:
        Ns, root = normalized_rows(workers, *cut(W, 300))
        assert coarse_vectors(workers, Ns, [(0, 300)], root, 20, 10) is None
