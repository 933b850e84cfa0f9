"""The short list of numbers of clusters, how their clusters split, and the graphs behind it."""

import json
import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from polyspan.datasets import make_subspaces
from polyspan.inputs.views import Views, check_views
from polyspan.methods.meangraph import MeanGraph
from polyspan.methods.selfgraph import SelfGraph
from polyspan.selection import count_clusters
from polyspan.selection.count import (
    by_size,
    cluster_vectors,
    embed_graphs,
    labels_for,
    measure,
    measure_numbers,
    nesting,
    numbers_to_try,
    rule_agreement,
    rule_scores,
    shortlist,
    top_eigenvectors,
    view_graphs,
)
from polyspan.selection.evidence import modularity, sample_of

KEYS = {"n_clusters", "rules", "score", "gap", "stability", "modularity", "agreement"}


def blobs(n_each=20, centers=4, views=2, seed=0):
    """Well separated clusters, the same in all views."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(centers), n_each)
    found = []
    for _ in range(views):
        middle = 10 * np.eye(centers, 6)[:, rng.permutation(6)]
        found.append(middle[labels] + rng.normal(size=(len(labels), 6)))
    return found, labels


def numbers(evidence):
    return [row["n_clusters"] for row in evidence["shortlist"]]


# ---- the list ----------------------------------------------------------------------------------


def test_the_list_by_hand():
    found = shortlist({"a": {2: 1.0, 8: 0.5}, "b": {5: 3.0, 2: 1.0}, "c": {30: 0.1}})
    assert [one.n_clusters for one in found] == [30, 2, 5, 8]
    assert [one.rules for one in found] == [["c"], ["a"], ["b"], ["a"]]
    votes = [1, 2 / 3 + 1 / 4, 3 / 4, 1 / 3]  # the rules divide one vote each
    assert [one.score for one in found] == pytest.approx([x / 3 for x in votes])


def test_a_number_of_a_step_that_the_rules_prefer():
    assert [one.n_clusters for one in shortlist({"a": {27: 1.0, 35: 0.2}})] == [27, 35]
    assert numbers_to_try(35)[-4:] == [26, 29, 32, 35]


def test_the_list_is_short_and_covers_what_it_can():
    found = [one.n_clusters for one in shortlist({"a": {c: 1 / c for c in range(2, 60)}})]
    assert len(found) == 5
    covered = [k for c in found for k in (c - 1, c, c + 1)]
    assert set(range(2, 13)) <= set(covered)  # of falling evidence, the smaller numbers
    assert len(set(covered)) == len(covered)  # none twice


def test_votes_beside_a_number_count_half():
    found = shortlist({"a": {5: 0.8, 6: 0.7, 7: 0.6, 15: 1.0}})
    assert found[0].n_clusters == 6
    assert found[0].score == pytest.approx((0.7 + (0.8 + 0.6) / 2) / 3.1)
    assert shortlist({"a": {2: 1.0, 3: 0.4, 4: 0.4}})[0].n_clusters == 2


def test_a_rule_that_likes_many_numbers_decides_little():
    flat = {c: 1.0 - 0.01 * abs(c - 12) for c in range(2, 21)}
    assert shortlist({"flat": flat, "sharp": {4: 1.0, 9: 0.1}})[0].n_clusters == 4


def test_a_rule_counts_by_its_odds():
    rules = {"a": {3: 1.0}, "b": {9: 1.0}, "c": {9: 1.0}}
    assert shortlist(rules)[0].n_clusters == 9
    sure = {"a": 0.9, "b": 0.8, "c": 0.8}  # 9 against 4 + 4
    assert [one.n_clusters for one in shortlist(rules, sure)] == [3, 9]
    assert shortlist(rules, sure)[0].score == pytest.approx(9 / 17)
    assert shortlist(rules, sure | {"a": 0.88})[0].n_clusters == 9
    assert np.isfinite(shortlist(rules, {"a": 1.0, "b": -0.1, "c": 0.0})[0].score)


def test_the_clusterings_behind_a_rule():
    graph = {"numbers": [2, 3, 4], "modularity": [0.5, 0.6, 0.2], "agreement": [0.9, 0.5, 0.1],
             "eigenvalues": [1.0, 0.9, 0.8, 0.7, 0.1]}  # fmt: skip
    found = {"settings": [{"lam1": 1.0}, {"lam1": 2.0}], "graph": graph}
    found |= {"candidates": [7, 3], "stability": [0.3, 0.8], "scores": [0.5, 1.0]}
    rules = rule_scores(found)
    assert {rule: max(scores, key=scores.get) for rule, scores in rules.items()} == {
        "settings": 3, "views": 2, "mean graph": 4
    }  # fmt: skip
    assert rule_agreement(found, rules) == {"settings": 0.8, "views": 0.9, "mean graph": 0.1}
    found["settings"].pop()  # one setting has none to agree with
    assert rule_agreement(found, rules)["settings"] == 0.5


def test_a_rule_without_scores_is_left_out():
    with_empty = shortlist({"a": {2: 1.0, 7: 0.4}, "b": {}})
    assert with_empty == shortlist({"a": {2: 1.0, 7: 0.4}})
    assert [one.score for one in shortlist({"a": {2: -1.0, 3: 0.0}})] == [0.0]


def test_nesting_leaves_out_small_parts():
    small = np.repeat([0, 1], [30, 10])
    large = np.repeat([0, 1, 2, 0], [26, 3, 1, 10])  # 3 of 30 are 10%, 1 of 30 is less
    assert nesting({3: large, 2: small}) == [{"from": 2, "to": 3, "splits": {"0": [0, 1]}}]
    assert nesting({2: small}) == []


# ---- the graphs --------------------------------------------------------------------------------


def test_labels_for_finds_blobs_and_joins_them():
    views, truth = blobs()
    found = labels_for(views, [2, 4, 8])
    assert adjusted_rand_score(truth, found[4]) == 1
    assert [len(np.unique(found[c])) for c in (2, 4, 8)] == [2, 4, 8]
    assert sum(len(parts) for parts in nesting(found)[0]["splits"].values()) >= 3
    sizes = np.bincount(found[8])
    assert sizes.tolist() == sorted(sizes, reverse=True)
    seeded = labels_for(views, [4, 8], ["unit"], seed=1)
    np.testing.assert_array_equal(seeded[8], labels_for(views, [4, 8], ["unit"], seed=1)[8])


def test_labels_for_is_spectral_clustering_of_the_mean_graph():
    views, _ = blobs(centers=3)
    graphs = view_graphs(check_views(views), ["unit"])
    W = MeanGraph(3, random_state=0).fit(views).affinity_matrix_
    assert abs(graphs.mean - W).max() < 1e-12
    with pytest.raises(ValueError, match="scales is empty"):
        view_graphs(check_views(views), [])


def test_labels_do_not_depend_on_the_order():
    views = make_subspaces(120, 4, noise=0.2, random_state=0).views
    order = np.random.RandomState(0).permutation(120)
    some = labels_for(views, [3, 4, 9])
    others = labels_for([X[order] for X in views], [3, 4, 9])
    for c, labels in some.items():
        assert adjusted_rand_score(labels[order], others[c]) == 1


def test_modularity_against_its_definition():
    rng = np.random.default_rng(0)
    A = rng.random((12, 12)) * (rng.random((12, 12)) < 0.4)
    A += A.T
    labels = rng.integers(3, size=12)
    d, m = A.sum(axis=1), A.sum()
    same = labels[:, None] == labels
    expected = np.sum((A - np.outer(d, d) / m)[same]) / m
    assert modularity(sp.csr_array(A), labels) == pytest.approx(expected)


@pytest.mark.parametrize("pieces", [1, 2])
def test_eigenvectors_of_many_samples(pieces, monkeypatch):
    rng = np.random.default_rng(0)
    parts = [sp.csr_array(view_graphs(check_views(rng.normal(size=(60, 3)))).mean)] * pieces
    W = sp.csr_array(sp.block_diag(parts))
    w, V = top_eigenvectors(W, 5)
    monkeypatch.setattr("polyspan.clustering.spectral.EXACT_BELOW", 10)
    other, U = top_eigenvectors(W, 5)
    np.testing.assert_allclose(w, other, atol=1e-10)
    np.testing.assert_allclose(V[:, :pieces] @ V[:, :pieces].T, U[:, :pieces] @ U[:, :pieces].T,
                               atol=1e-8)  # fmt: skip
    assert w[:pieces] == pytest.approx(1)


def test_measures_are_largest_at_the_planted_number():
    views, _ = blobs()
    found = embed_graphs(view_graphs(check_views(views)), 12)
    measured = measure_numbers(found)
    assert list(measured) == list(range(2, 13))
    assert max(measured, key=lambda c: np.prod(measured[c])) == 4
    assert measured[4] == measure(found, 4)
    assert measured[4][1] == 1
    assert list(measure_numbers(found, time.perf_counter())) == [2]  # no time is left


def test_by_size_and_rows_of_zeros():
    assert by_size(np.array([3, 1, 1, 3, 0])).tolist() == [0, 1, 1, 0, 2]
    V = np.vstack([np.repeat(np.eye(2), [3, 5], axis=0), np.zeros((1, 2))])
    labels = cluster_vectors(V)
    assert labels[:8].tolist() == [1] * 3 + [0] * 5


def test_a_part_of_the_samples():
    views = Views([np.arange(10.0)[:, None], sp.csr_array(np.eye(10))], ["0", "1"])
    few = sample_of(views, 4, 3)
    rows = few.arrays[0].ravel().astype(int)
    assert rows.tolist() == sorted(set(rows.tolist()))
    np.testing.assert_array_equal(few.arrays[1].toarray(), np.eye(10)[rows])
    assert sample_of(views, 10, 3) is views


# ---- counting ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_list_of_a_count():
    views, _ = blobs(centers=3)
    number, evidence = count_clusters(views, random_state=0)
    assert number == evidence["chosen"] == numbers(evidence)[0] == 3
    assert 1 <= len(numbers(evidence)) <= 5
    assert all(row.keys() == KEYS for row in evidence["shortlist"])
    assert set(evidence["shortlist"][0]["rules"]) == {"settings", "views", "mean graph"}
    steps = [(step["from"], step["to"]) for step in evidence["nesting"]]
    ascending = sorted(numbers(evidence))
    assert steps == list(pairwise(ascending))
    assert json.loads(json.dumps(evidence)) == evidence
    assert count_clusters(views, random_state=0)[1] == evidence


@pytest.mark.slow
def test_a_count_does_not_depend_on_the_order():
    X = load_wine().data
    views = [X[:, :7], X[:, 7:]]
    order = np.random.RandomState(1).permutation(len(X))
    _, some = count_clusters(views, random_state=0)
    _, others = count_clusters([X[order] for X in views], random_state=0)
    assert numbers(some) == numbers(others)
    assert others["graph"]["modularity"] == pytest.approx(some["graph"]["modularity"])
    assert others["graph"]["agreement"] == pytest.approx(some["graph"]["agreement"])


def test_no_more_than_max_clusters():
    views, _ = blobs()
    _, evidence = count_clusters(views, random_state=0, max_clusters=3)
    assert max(numbers(evidence)) <= 3
    assert evidence["graph"]["numbers"] == [2, 3]


def test_one_view():
    views, _ = blobs(views=1)
    number, evidence = count_clusters(views[0], random_state=0)
    assert number == 4
    assert evidence["shortlist"][0]["agreement"] == 1


@pytest.mark.slow
def test_samples_that_lack_views():
    views, _ = blobs(n_each=25)
    views[0][::9] = np.nan
    views[1][1::9] = np.nan
    number, evidence = count_clusters(views, random_state=0)
    assert number == 4
    assert "scale" in evidence["settings"][0]  # of SelfGraph
    assert np.isfinite(evidence["shortlist"][0]["modularity"])


def test_without_time_the_graphs_answer(monkeypatch):
    views, _ = blobs()
    solved = []
    monkeypatch.setattr("polyspan.SelfGraph.solve", lambda *args: solved.append(args))
    _, evidence = count_clusters(views, random_state=0, deadline=time.perf_counter())
    assert not solved
    assert evidence["settings"] == [{"method": "MeanGraph"}]
    assert evidence["graph"]["numbers"] == [2]
    assert 4 in numbers(evidence)  # by the eigengap


@pytest.mark.slow
def test_solutions_in_time_are_used(monkeypatch):
    views, _ = blobs()
    clock, plain = [0.0], SelfGraph.solve

    def solve(self, views, Xs):
        clock[0] += 1.0
        return plain(self, views, Xs)

    monkeypatch.setattr(SelfGraph, "solve", solve)
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    _, whole = count_clusters(views, random_state=0)
    clock[0] = 0.0
    _, part = count_clusters(views, random_state=0, deadline=1.5)
    assert part["settings"] == whole["settings"][:2]
    assert len(whole["settings"]) == 4


def test_graphs_that_do_not_fit_leave_one_rule(monkeypatch):
    def full(*args):
        raise MemoryError("no room")

    monkeypatch.setattr("polyspan.selection.count.neighbor_graph", full)
    views, _ = blobs()
    number, evidence = count_clusters(views, random_state=0)
    assert number == 4
    assert evidence["nesting"] == []
    assert "graph" not in evidence
    assert evidence["shortlist"][0]["rules"] == ["settings"]
    assert all(row["rules"] in (["settings"], []) for row in evidence["shortlist"])
    assert all(row["modularity"] is None for row in evidence["shortlist"])
    with pytest.raises(ValueError, match="in this time: pass n_clusters"):
        count_clusters(views, deadline=time.perf_counter())
