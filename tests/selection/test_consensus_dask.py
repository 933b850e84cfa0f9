"""The consensus on dask arrays: by chunks, on a cluster of two processes or without one."""

import os
import signal
import threading
from collections import Counter
from importlib import import_module

import numpy as np
import pytest

from polyspan import GRMSC, AnchorGRMSC, ConsensusClusterer, MeanGraph
from polyspan.chunked.workers import Cluster, Threads
from polyspan.clustering.large import SAMPLE
from polyspan.datasets import make_subspaces
from polyspan.graphs.knn import nearest_neighbors
from polyspan.inputs.views import Views
from polyspan.metrics import clustering_scores
from polyspan.selection import consensus
from polyspan.selection.consensus import consensus_of_many, find_rivals
from polyspan.selection.evidence import Graphs, draw_part
from polyspan.selection.placing import Fitted, place
from polyspan.selection.pool import chunked_pool

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

# One worker of pytest-xdist runs them all: the cluster starts once.
pytestmark = pytest.mark.xdist_group("dask")
MODULE = import_module("polyspan.selection.consensus")  # the package has a function of this name
WEIGHTS = np.array([0.4, 0.2, 0.2, 0.1, 0.1, 0.0])


@pytest.fixture(scope="module")
def planted():
    return make_subspaces(900, 3, n_features=[12, 15], noise=0.1, random_state=0)


def lazy(views, rows=400):
    return [da.from_array(X, chunks=(rows, 7)) for X in views]


def noisy_members(n, c, seed=0):
    """Six members, each wrong about other samples; clusters of different sizes, odd names."""
    rng = np.random.default_rng(seed)
    truth = np.minimum(rng.geometric(0.25, n), c) - 1
    rows = [
        np.where(rng.random(n) < wrong, rng.integers(c, size=n), rng.permutation(c)[truth])
        for wrong in (0.1, 0.2, 0.2, 0.3, 0.3, 0.9)
    ]
    return truth, 3 * np.array(rows) - 2


def merged_in(workers, labels, c=5):
    with workers:
        return consensus_of_many(workers, labels, WEIGHTS, c, random_state=0)


def same_clusters(a, b):
    pairs = len(set(zip(a.tolist(), b.tolist(), strict=True)))
    return pairs == len(set(a.tolist())) == len(set(b.tolist()))


# ---- the consensus by chunks -------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [2_000, SAMPLE + 3_000])
def test_by_chunks_it_is_the_same_consensus(n, monkeypatch):
    labels = noisy_members(n, 5)[1]
    wanted, certain = consensus(labels, WEIGHTS, 5, random_state=0)
    found = []
    for rows in (n, 700, 997):
        monkeypatch.setattr(MODULE, "ROWS", rows)
        found += [merged_in(Threads(jobs), labels) for jobs in (1, 2)]
    for merged, certainty in found:
        assert same_clusters(merged, wanted)
        np.testing.assert_array_equal(merged, found[0][0])
        np.testing.assert_allclose(certainty, certain, atol=1e-12)


def test_fewer_samples_than_clusters_of_the_members(monkeypatch):
    monkeypatch.setattr(MODULE, "ROWS", 2)  # no chunk has all clusters
    labels = np.array([[0, 0, 1, 1], [0, 1, 2, 3], [0, 0, 1, 2]])
    with Threads(1) as workers:
        merged, certainty = consensus_of_many(workers, labels, np.ones(3) / 3, 2, random_state=0)
    wanted, certain = consensus(labels, np.ones(3) / 3, 2, random_state=0)
    assert same_clusters(merged, wanted)
    np.testing.assert_allclose(certainty, certain, atol=1e-12)


class Watched(Threads):
    """Threads that know how many numbers they gave back at once."""

    most = 0

    def collect(self, results):
        parts = list(results) if isinstance(results, list) else [results]
        flat = [x for one in parts for x in (one if isinstance(one, list | tuple) else [one])]
        self.most = max(self.most, sum(np.size(x) for x in flat))
        return results


def test_only_labels_and_certainty_of_many_samples_come_back(monkeypatch):
    monkeypatch.setattr(MODULE, "ROWS", 16_384)
    n, c = 150_000, 5
    truth, labels = noisy_members(n, c)
    workers = Watched(1)
    merged, certainty = merged_in(workers, labels, c)
    assert clustering_scores(truth, merged)["acc"] > 0.95
    assert certainty.shape == (n,)
    right = merged == np.array([np.bincount(merged[truth == k]).argmax() for k in range(c)])[truth]
    assert certainty[right].mean() > certainty[~right].mean() + 0.2
    assert workers.most == n  # not n x c, nor n x m


# ---- the estimator -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_default_pool_and_a_part(planted, monkeypatch):
    monkeypatch.setattr("polyspan.selection.evidence.PART", 300)
    monkeypatch.setattr("polyspan.selection.pool.ANCHORS", 30)
    found = ConsensusClusterer(random_state=0).fit(lazy(planted.views))
    assert found.n_clusters_ == 3
    assert clustering_scores(planted.labels, found.labels_)["nmi"] > 0.98
    assert {row["status"] for row in found.table_} == {"ok"}
    assert Counter(row["method"] for row in found.table_) == {"MeanGraph": 4, "AnchorGRMSC": 4}
    assert len({str(row["setting"].get("scale")) for row in found.table_}) == 2
    assert found.member_labels_.shape == (8, 900)
    assert found.certainty_.shape == (900,)
    assert found.alternatives_ == []
    assert found.structure_ == "strong"
    assert "300 of 900 samples were looked at" in found.structure_evidence_["sentence"]
    assert found.evidence_["drawn"].startswith("300 of 900 samples were looked at")
    assert [X.shape[0] for X in found._dictionary] == [300, 300]  # nothing large is kept
    new = found.predict([X[::9] for X in planted.views])
    assert np.mean(new == found.labels_[::9]) > 0.97
    again = ConsensusClusterer(3, random_state=0).fit(lazy(planted.views, 250))
    assert clustering_scores(found.labels_, again.labels_)["nmi"] > 0.98


def test_rivals_of_all_samples_are_found_in_a_part():
    """Two camps of members: each clustering has labels for all samples."""
    left, right = np.repeat([0, 1], 200), np.tile([0, 1], 200)
    labels = np.array([left, left, right, right])
    rows = [{"group": str(i), "score": 1.0} for i in range(4)]
    asked = []

    def merge(votes, weights):
        asked.append(votes.shape)
        return consensus(votes, weights, 2, random_state=0)

    part = np.arange(0, 400, 5)
    near = nearest_neighbors(np.random.default_rng(0).normal(size=(80, 3)), 10).shares
    (rival,) = find_rivals(labels, rows, left, [[Graphs(near, near)]], 2, 0, merge, part)
    assert same_clusters(rival["labels"], right)
    assert asked == [(2, 400), (2, 400)]


def test_bad_values_are_refused_by_name(planted):
    bad = planted.views[0].copy()
    bad[850, 3] = np.nan
    views = dict(zip(["rna", "protein"], lazy([bad, planted.views[1]]), strict=True))
    with pytest.raises(ValueError, match=r"^view 'rna' contains NaN in part of a sample \(row 850"):
        ConsensusClusterer(3, random_state=0).fit(views)


def test_a_member_that_needs_the_views_in_memory_says_so(planted):
    model = ConsensusClusterer(3, members=[GRMSC()], random_state=0)
    with pytest.raises(ValueError, match="failed with ValueError: view 0 is a dask array: call"):
        model.fit(lazy(planted.views))


def test_samples_outside_the_part_may_lack_a_view(planted, monkeypatch):
    monkeypatch.setattr("polyspan.selection.evidence.PART", 50)
    names, whole = ["0", "1"], Views(lazy(planted.views), ["0", "1"])
    part = draw_part(whole, 7)
    assert part.views.n_samples == 50
    assert part.among == 900
    assert not part.lacking
    for X, own in zip(planted.views, part.views.arrays, strict=True):
        np.testing.assert_array_equal(own, X[part.rows])
    gone = planted.views[0].copy()
    gone[np.setdiff1d(np.arange(900), part.rows)[0]] = np.nan
    less = draw_part(Views(lazy([gone, planted.views[1]]), names), 7)
    np.testing.assert_array_equal(less.rows, part.rows)
    assert less.lacking
    scalings = [("unit", "unit"), ("standard+unit", "unit")]
    pool = chunked_pool(less.among, 3, scalings, less.lacking)
    assert [type(member.estimator) for member in pool] == [MeanGraph] * 4


def test_new_samples_have_votes_for_clusters_that_are_not_in_the_part():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    near = nearest_neighbors(X, 5)
    known = Fitted(X, "0", [None], [(near.widths, near.mean_distances)], 1.0)
    found = place([known], [np.array([[1.5]])], np.array([0, 0, 0, 1, 1, 1]), n_clusters=3)
    assert found.votes.shape == (1, 3)
    assert found.votes[0, 2] == 0


# ---- on a cluster: last, because it stays active once it is there --------------------------------


@pytest.mark.slow
def test_a_cluster_and_a_lost_worker_change_nothing(client, monkeypatch):
    monkeypatch.setattr(MODULE, "ROWS", 300)
    labels = noisy_members(6_000, 5)[1]
    wanted, certain = merged_in(Threads(1), labels)
    client.wait_for_workers(2)
    victim = next(iter(client.run(os.getpid).values()))
    for seconds in (None, 0.3):
        if seconds is not None:
            threading.Timer(seconds, os.kill, (victim, signal.SIGKILL)).start()
        merged, certainty = merged_in(Cluster(client), labels)
        np.testing.assert_array_equal(merged, wanted)
        np.testing.assert_allclose(certainty, certain, atol=1e-12)


@pytest.mark.slow
def test_on_a_cluster_as_in_memory(client, planted, monkeypatch):
    monkeypatch.setattr("polyspan.graphs.neighbors.EXACT_BELOW", 500)
    members = [
        *(MeanGraph(n_neighbors=k, scale=s) for k in (10, 20) for s in ("unit", "standard+unit")),
        AnchorGRMSC(n_anchors=30, lam2=0.0),
    ]
    model = ConsensusClusterer(3, members=members, random_state=0)
    wanted = model.fit(planted.views)
    labels, certainty, modularity = wanted.labels_, wanted.certainty_, wanted.modularity_
    found = model.fit(lazy(planted.views))
    assert clustering_scores(labels, found.labels_)["nmi"] > 0.98
    assert abs(found.certainty_.mean() - certainty.mean()) < 0.02
    np.testing.assert_allclose(found.modularity_, modularity, atol=0.01)
    # The nearest member is fitted once, on the workers.
    best = max((row for row in found.table_ if row["weight"]), key=lambda row: row["nearness"])
    place = [row for row in found.table_ if row["status"] == "ok"].index(best)
    np.testing.assert_array_equal(found.best_estimator_.labels_, found.member_labels_[place])
    with pytest.raises(ValueError, match=r"^ConsensusClusterer: device='cuda' is for one machine"):
        ConsensusClusterer(3, device="cuda").fit(lazy(planted.views))
