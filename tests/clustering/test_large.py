import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from polyspan.clustering import large
from polyspan.clustering.large import cluster_graph
from polyspan.metrics import clustering_scores
from polyspan.runtime.threads import Threads


@pytest.fixture(autouse=True)
def small_graphs_have_groups(monkeypatch):
    monkeypatch.setattr(large, "DENSE", 40)


def ring_graph(per=400, c=5, cross=30, seed=0):
    """Groups that are long rings: inside each, smooth functions have eigenvalues close to 1."""
    n, rng = per * c, np.random.default_rng(seed)
    labels = np.repeat(np.arange(c), per)
    place = np.arange(n) % per
    rows = np.repeat(np.arange(n), 6)
    columns = labels[rows] * per + (place[rows] + np.tile([1, 2, 3, -1, -2, -3], n)) % per
    i, j = rng.integers(0, n, (2, cross))
    ones = np.ones(len(rows) + cross)
    W = sp.csr_array((ones, (np.append(rows, i), np.append(columns, j))), shape=(n, n))
    order = rng.permutation(n)
    return sp.csr_array((W + W.T)[order][:, order]), labels[order]


def blobs_graph(sizes, cross=0.002, inside=0.2, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    chance = np.where(labels[:, None] == labels, inside, cross)
    W = np.triu(rng.random(chance.shape) < chance, 1)
    return sp.csr_array((W | W.T).astype(float)), labels


def test_finds_planted_groups():
    W, labels = blobs_graph([200, 300, 100])
    found = cluster_graph(W, 3, random_state=0)
    assert clustering_scores(labels, found)["nmi"] == 1
    assert found.dtype == np.int32


@pytest.mark.parametrize("threads", [2, 3])
def test_nothing_depends_on_the_threads(threads, monkeypatch):
    W, _ = blobs_graph([200, 300, 100], cross=0.05)
    monkeypatch.setattr(large, "ROWS", 100)
    one = cluster_graph(W, 3, random_state=0)
    monkeypatch.setattr(large, "Threads", lambda: Threads(threads))
    assert_array_equal(cluster_graph(W, 3, random_state=0), one)


def test_small_pieces_take_no_part():
    W, labels = blobs_graph([200, 300, 100])
    pieces = sp.csr_array(np.kron(np.eye(8), np.ones((3, 3)) - np.eye(3)))
    W = sp.block_array([[W, None], [None, pieces]], format="csr")
    found = cluster_graph(W, 3, random_state=0)
    assert clustering_scores(labels, found[:600])["nmi"] == 1


def test_k_means_goes_on_over_all_rows():
    Y = np.repeat(np.array([[0.0], [1.0], [5.0]], dtype=np.float32), [5, 5, 3], axis=0)
    with Threads(1) as workers:
        found = large.lloyd(workers, [Y[:7], Y[7:]], np.array([[0.0], [0.5]]))
    assert_array_equal(found, [0] * 10 + [1] * 3)  # at first the rows at 1 are nearer to 0.5


def test_an_inaccurate_answer_is_told(monkeypatch):
    monkeypatch.setattr("polyspan.solvers.filtered.ROUNDS", 1)
    monkeypatch.setattr("polyspan.solvers.filtered.DEGREE", 1)
    with pytest.warns(UserWarning, match="only accurate to .* more neighbors"):
        cluster_graph(ring_graph()[0], 5, random_state=0)


def test_linked_samples_are_put_together(monkeypatch):
    monkeypatch.setattr(large, "CELLS", 5)
    shuffled = np.random.default_rng(0).permutation(1000)
    W = blobs_graph([200] * 5)[0][shuffled][:, shuffled]
    with Threads(1) as workers:
        Y = large.first_vectors(workers, W, W.sum(axis=1) ** -0.5, 5, 5)
        order = large.graph_order(workers, Y)
    assert_array_equal(np.sort(order), np.arange(1000))
    i, j = W.nonzero()
    rank = np.argsort(order)
    assert np.median(np.abs(rank[i] - rank[j])) < 80  # in the shuffled order 292


def test_first_vectors_are_smooth():
    W, _ = blobs_graph([200, 300, 100])
    root = W.sum(axis=1) ** -0.5
    N = sp.csr_array(root[:, None] * W.toarray() * root)
    with Threads(1) as workers:
        Q, _ = np.linalg.qr(large.first_vectors(workers, W, root, 6, 3))
    _, V = np.linalg.eigh(N.toarray())
    found = np.linalg.svd(V[:, -3:].T @ Q)[1]  # cosines of the angles to the true vectors
    assert found.min() > 0.9  # of random vectors 0.08


def test_clusters_that_lead_no_group_are_found(monkeypatch):
    monkeypatch.setattr(large, "SHARE", 80)  # six samples lead a group
    monkeypatch.setattr(
        large, "_leaders", lambda n, m: np.where(np.arange(n) < m, np.arange(n), -1)
    )
    W, labels = blobs_graph([200, 300, 20], cross=0, inside=0.5)
    found = cluster_graph(W, 3, random_state=0)
    assert clustering_scores(labels, found)["nmi"] == 1


def test_the_clustering_with_most_links_inside_is_taken():
    W, labels = blobs_graph([200, 300, 100])
    root = 1 / np.sqrt(W.sum(axis=1))
    N = sp.csr_array(root[:, None] * W.toarray() * root)
    merged = np.where(labels == 2, 1, labels) + (np.arange(600) < 100)  # one merged, one split
    spans = [(0, 350), (350, 600)]
    with Threads(1) as workers:
        scores = [large._inside(workers, [N[:350], N[350:]], spans, x, 3) for x in (labels, merged)]
    one_by_one = [N[labels == c][:, labels == c].sum() / np.sum(labels == c) for c in range(3)]
    np.testing.assert_allclose(scores[0], sum(one_by_one))
    assert scores[0] > scores[1] + 0.3
