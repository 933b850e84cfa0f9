"""Local moves of the members' labels: what they repair, and what they leave alone."""

import numpy as np
import pytest
import scipy.sparse as sp

from polyspan import ConcatKMeans, ConsensusClusterer, MeanGraph
from polyspan.datasets import make_subspaces
from polyspan.metrics import clustering_scores
from polyspan.selection import pool
from polyspan.selection.consensus import agreed_links, refine, refined
from polyspan.selection.evidence import modularity


def blocks(sizes, inside, between, seed=0):
    """A random graph with more links inside its blocks, and the blocks."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.RandomState(seed)
    chance = np.where(truth[:, None] == truth, inside, between)
    upper = np.triu(rng.uniform(size=chance.shape) < chance, 1)
    return sp.csr_array((upper + upper.T).astype(float)), truth


def spoiled(truth, share, seed=0):
    rng = np.random.RandomState(seed)
    wrong = rng.uniform(size=len(truth)) < share
    return np.where(wrong, rng.randint(truth.max() + 1, size=len(truth)), truth)


def test_repairs_single_samples_and_raises_modularity():
    A, truth = blocks([60, 80, 100], 0.3, 0.02)
    start = spoiled(truth, 0.3)
    found = refine(A, start)
    assert (found == truth).mean() > 0.99
    assert modularity(A, found) > modularity(A, start)


def test_no_single_move_would_raise_modularity():
    A, truth = blocks([10, 30, 80], 0.2, 0.12)
    found = refine(A, spoiled(truth, 0.3))
    reached = modularity(A, found)
    for sample in range(len(truth)):
        for cluster in range(3):
            other = found.copy()
            other[sample] = cluster
            assert modularity(A, other) <= reached + 1e-12


def test_a_best_clustering_stays():
    A, truth = blocks([60, 80, 100], 0.3, 0.02)
    np.testing.assert_array_equal(refine(A, truth), truth)


def test_no_cluster_is_lost():
    A, truth = blocks([100, 100], 0.3, 0.01)
    start = truth.copy()
    start[:5] = 2  # all links of these lead to cluster 0
    found = refine(A, start)
    assert set(found) == {0, 1, 2}
    np.testing.assert_array_equal(found[:5], 2)


def test_samples_without_links_stay():
    labels = np.array([0, 1, 1, 0])
    np.testing.assert_array_equal(refine(sp.csr_array((4, 4)), labels), labels)


def test_links_that_few_members_agree_with_count_little():
    A, truth = blocks([100, 100], 0.1, 0.0)
    other, _ = blocks([40] * 5, 0.9, 0.0, seed=1)
    order = np.random.RandomState(2).permutation(200)  # a view that sees other groups
    B = sp.csr_array(other[order][:, order])
    members = np.array([spoiled(truth, 0.2, seed) for seed in range(5)])
    found = refined([[A], [B]], members, 0)
    assert min((row == truth).mean() for row in found) > 0.97
    plain = [refine(sp.csr_array((A + B) / 2), row) for row in members]
    assert max((row == truth).mean() for row in plain) < 0.7


def test_a_link_counts_by_the_share_of_members():
    A = sp.csr_array(np.ones((3, 3)) - np.eye(3))
    links = agreed_links([[A], [2 * A, 4 * A]], np.array([[0, 0, 1], [1, 1, 1], [0, 1, 2]]))
    np.testing.assert_allclose(links.toarray()[0], [0, 2 * 2 / 3, 2 / 3])


def test_consensus_of_many_samples_refines_its_members(monkeypatch):
    views = make_subspaces(300, 6, n_views=2, noise=0.8, random_state=0).views
    members = [ConcatKMeans(), *(MeanGraph(n_neighbors=k) for k in (5, 10, 15, 20))]
    model = ConsensusClusterer(6, random_state=0, members=members).fit(views)
    own, before = model.member_labels_, [row["modularity"] for row in model.table_]
    monkeypatch.setattr(pool, "EXACT_UP_TO", 100)
    model.fit(views)
    assert (model.member_labels_ != own).any(axis=1).all()
    after = [row["modularity"] for row in model.table_]
    assert all(high > low for high, low in zip(after, before, strict=True))


@pytest.mark.slow
def test_same_seed_same_labels(monkeypatch):
    monkeypatch.setattr(pool, "EXACT_UP_TO", 100)
    data = make_subspaces(150, 3, random_state=0)
    first, second = (ConsensusClusterer(3, random_state=0).fit(data.views) for _ in range(2))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert clustering_scores(data.labels, first.labels_)["nmi"] > 0.9
