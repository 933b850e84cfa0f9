"""Selection and count with so many samples that not all are looked at, or links are approximate."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from polyspan import AnchorGRMSC
from polyspan.datasets import make_subspaces
from polyspan.inputs.choice import choose_scaling, scalings_for, two_scalings
from polyspan.inputs.views import check_views
from polyspan.metrics import clustering_scores
from polyspan.runtime.cache import sharing
from polyspan.selection import ConsensusClusterer, count_clusters


@pytest.fixture(scope="module")
def planted():
    return make_subspaces(360, 4, n_features=[40, 50], noise=0.3, random_state=0)


@pytest.fixture
def few_are_many(monkeypatch):
    """More than 200 samples count as many."""
    monkeypatch.setattr("polyspan.graphs.self_expression.EXACT_UP_TO", 200)
    monkeypatch.setattr("polyspan.selection.pool.EXACT_UP_TO", 200)
    monkeypatch.setattr("polyspan.selection.count.SEEN", 200)


def nmi(data, labels):
    return clustering_scores(data.labels, labels)["nmi"]


@pytest.mark.slow
def test_the_same_members_cluster_many_samples(planted, few_are_many):
    found = ConsensusClusterer(4, random_state=0).fit(planted.views)
    assert nmi(planted, found.labels_) > 0.98
    assert {row["status"] for row in found.table_} == {"ok"}
    few = ConsensusClusterer(4, random_state=0).fit([X[:100] for X in planted.views])
    settings = [(row["method"], row["setting"]) for row in found.table_]
    assert settings == [(row["method"], row["setting"]) for row in few.table_]


def test_of_the_scalings_that_suit_there_are_the_best_and_one_other():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 8))
    views = check_views([X * np.geomspace(1, 20, 8), X[:, ::-1]])
    suit = scalings_for(views)
    assert len(suit) > 2
    best = tuple(choose_scaling(X, name).allowed[0] for X, name in views)
    assert two_scalings(views) == [best, next(one for one in suit if one != best)]


@pytest.mark.slow
def test_more_clusters_than_samples_that_are_looked_at(planted, monkeypatch):
    monkeypatch.setattr("polyspan.selection.count.SEEN", 100)
    found, evidence = count_clusters(planted.views, random_state=0, max_clusters=150)
    assert 2 <= found <= 100
    assert len(evidence["eigenvalues"]) == 100
    assert count_clusters(planted.views, random_state=0, max_clusters=150)[1] == evidence
    json.dumps(evidence)


@pytest.mark.slow
def test_counting_leaves_out_a_scaling_that_does_not_fit(planted, monkeypatch):
    views = [sp.csr_array(X) for X in planted.views]
    monkeypatch.setattr(
        "polyspan.inputs.scaling.available_memory", lambda: 2**16
    )  # to make them dense
    found, evidence = count_clusters(views, random_state=0)
    assert found == 4
    assert {params["scale"] for params in evidence["settings"]} == {"unit"}


@pytest.mark.slow
def test_sparse_views(planted, few_are_many):
    views = [sp.csr_array(X.astype(np.float32)) for X in planted.views]
    found = ConsensusClusterer(4, random_state=0).fit(views)
    assert {row["status"] for row in found.table_} == {"ok"}
    assert nmi(planted, found.labels_) > 0.98
    assert count_clusters(views, random_state=0)[0] == 4


def test_samples_may_lack_a_view(planted, few_are_many):
    views = [X.copy() for X in planted.views]
    views[1][3] = np.nan
    found = ConsensusClusterer(4, random_state=0).fit(views)
    assert {row["method"] for row in found.table_} == {"MeanGraph", "SelfGraph"}
    assert nmi(planted, found.labels_) > 0.98


@pytest.mark.slow
def test_a_shared_solution_is_the_same(planted):
    views = [X[:300] for X in planted.views]
    kept = [
        AnchorGRMSC(4, n_anchors=40, n_kept=k, n_init=2, random_state=3) for k in (2, 6)
    ]  # fmt: skip
    alone = [model.fit(views) for model in kept]
    with sharing() as store:
        AnchorGRMSC(2, n_anchors=40, n_init=1, random_state=3).fit(views)  # another number
        before = len(store.parts)
        for one in alone:
            other = AnchorGRMSC(**one.get_params()).fit(views)
            np.testing.assert_array_equal(other.labels_, one.labels_)
            np.testing.assert_array_equal(other._centers, one._centers)
            np.testing.assert_array_equal(other.representation_, one.representation_)
            assert other.history_ == one.history_
            assert other.recall_ == one.recall_
            new = [X[:9] for X in views]
            np.testing.assert_array_equal(other.predict(new), one.predict(new))
        assert len(store.parts) == before == 1
        for changed in ({"n_anchors": 30}, {"random_state": 4}, {"lam1": 2.0}):
            AnchorGRMSC(**(alone[0].get_params() | changed)).fit(views)
        assert len(store.parts) == 4
        AnchorGRMSC(4, random_state=np.random.RandomState(0)).fit(views)  # not to be repeated
        AnchorGRMSC(4, anchors=np.arange(20), random_state=0).fit(views)
        assert len(store.parts) == 4
