import json
import re
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from cases import case
from joblib import parallel_config
from sklearn.base import clone
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

from polyspan import (
    GRMSC,
    ConcatKMeans,
    ConcatSpectral,
    ConsensusClusterer,
    MeanGraph,
    SelfGraph,
)
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.metrics import clustering_scores
from polyspan.selection import (
    consensus,
    count_clusters,
    find_camps,
    pairwise_nmi,
    rank_members,
)
from polyspan.selection.consensus import find_rivals, score_of
from polyspan.selection.evidence import Graphs, view_modularity
from polyspan.selection.structure import LATE

MODULE = import_module("polyspan.selection.consensus")  # the package has a function of this name
OWN = [GRMSC(n_neighbors=10), GRMSC(n_neighbors=10, affinity="sparse"), GRMSC(n_neighbors=20)]
PLAIN = [
    *(ConcatSpectral(scale=s, n_neighbors=k) for k in (10, 30) for s in ("unit", "standard+unit")),
    *(ConcatKMeans(scale=s) for s in ("unit", "standard+unit")),
    *(MeanGraph(scale=s) for s in ("unit", "standard+unit")),
]
SMALL = [*PLAIN, *OWN]


@pytest.fixture(scope="module")
def planted():
    return make_subspaces(n_samples=90, n_clusters=3, noise=0.1, random_state=0)


def nmi(data, labels):
    return clustering_scores(data.labels, labels)["nmi"]


def noisy(truth, share, seed):
    """The truth with a share of the labels drawn at random."""
    rng = np.random.RandomState(seed)
    wrong = rng.uniform(size=truth.size) < share
    return np.where(wrong, rng.randint(truth.max() + 1, size=truth.size), truth)


def test_planted_clusters_are_found(planted):
    found = ConsensusClusterer(3, members=SMALL, random_state=0).fit(planted.views)
    assert nmi(planted, found.labels_) == pytest.approx(1.0)
    assert found.n_clusters_ == 3
    assert found.evidence_ == {}
    assert found.certainty_.shape == (90,)
    assert found.certainty_.min() >= 0
    assert found.certainty_.max() <= 1


def test_the_default_pool_serves_few_samples():
    data = make_subspaces(n_samples=24, n_clusters=2, random_state=0)
    found = ConsensusClusterer(2, random_state=0).fit(data.views)
    assert {row["status"] for row in found.table_} == {"ok"}
    assert nmi(data, found.labels_) == pytest.approx(1.0)
    # Ten neighbors of 24 samples see no subspaces: those members are left out.
    used = {row["family"] for row in found.table_ if row["weight"]}
    assert used == {"self graph", "neighbors and self graph"}


def test_rows_say_what_ran(planted):
    found = ConsensusClusterer(3, members=SMALL, random_state=0).fit(planted.views)
    methods = [row["method"] for row in found.table_]
    assert methods.count("GRMSC") == 3
    assert {"ConcatSpectral", "ConcatKMeans"} < set(methods)
    assert found.table_[-1]["setting"]["n_neighbors"] == 20
    assert sum(row["weight"] for row in found.table_) == pytest.approx(1.0)
    assert all(row["seconds"] > 0 for row in found.table_)
    json.dumps(found.table_)  # plain numbers and text: a report can store it


def test_best_estimator_is_the_row_that_agrees_best(planted):
    found = ConsensusClusterer(3, members=SMALL, random_state=0).fit(planted.views)
    best = max(found.table_, key=lambda row: row["nearness"])
    assert best["nearness"] == pytest.approx(
        clustering_scores(found.labels_, found.best_estimator_.labels_)["nmi"]
    )
    assert type(found.best_estimator_).__name__ == best["method"]
    params = found.best_estimator_.get_params()
    assert {k: params[k] for k in best["setting"]} == best["setting"]
    again = found.best_estimator_.fit_predict(planted.views)
    np.testing.assert_array_equal(again, found.best_estimator_.labels_)


def test_best_estimator_is_one_of_those_in_the_consensus(planted, monkeypatch):
    def all_but_the_first(labels, *rest):
        weights = np.r_[0.0, np.full(len(labels) - 1, 1 / (len(labels) - 1))]
        return np.ones(len(labels)), np.ones(len(labels)), weights

    monkeypatch.setattr(MODULE, "rank_members", all_but_the_first)
    found = ConsensusClusterer(3, members=SMALL, random_state=0).fit(planted.views)
    assert found.table_[0]["nearness"] == max(row["nearness"] for row in found.table_)
    params = found.best_estimator_.get_params()
    chosen = found.table_[1]  # as near as the first
    assert type(found.best_estimator_).__name__ == chosen["method"]
    assert {k: params[k] for k in chosen["setting"]} == chosen["setting"]


@pytest.mark.slow
def test_same_seed_same_result(planted):
    views = [
        view + 0.5 * np.random.RandomState(1).normal(size=view.shape) for view in planted.views
    ]
    one, two = (ConsensusClusterer(3, members=SMALL, random_state=7).fit(views) for _ in range(2))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.certainty_, two.certainty_)
    assert [row["agreement"] for row in one.table_] == [row["agreement"] for row in two.table_]


def test_a_setting_that_fails_is_a_row(planted):
    members = [*SMALL[:-1], GRMSC(n_neighbors=90)]
    found = ConsensusClusterer(3, members=members, random_state=0).fit(planted.views)
    row = found.table_[-1]
    assert row["status"] == "failed"
    assert "n_neighbors=90 must be below n_samples=90" in row["reason"]
    assert row["agreement"] is None
    assert row["weight"] == 0
    assert nmi(planted, found.labels_) == pytest.approx(1.0)


def test_all_failing_is_an_error(planted, monkeypatch):
    def broken(self, X, y=None):
        raise ArithmeticError("no luck")

    for name in ("ConcatSpectral", "ConcatKMeans", "MeanGraph", "GRMSC"):
        monkeypatch.setattr(f"polyspan.{name}.fit", broken)
    with pytest.raises(RuntimeError, match=r"All 9 members failed; .*ArithmeticError: no luck"):
        ConsensusClusterer(3, members=SMALL[:-2], random_state=0).fit(planted.views)


@pytest.mark.slow
def test_progress_is_reported(planted, capsys, monkeypatch):
    model = ConsensusClusterer(3, members=SMALL, random_state=0, verbose=1).fit(planted.views)
    lines = capsys.readouterr().out.splitlines()
    steps = len(SMALL) + 1  # and the test of structure
    assert [line.split(",")[0] for line in lines] == [
        f"[ConsensusClusterer] {done} of {steps}" for done in range(1, steps + 1)
    ]
    assert lines[-1].endswith(f"{steps} of {steps}, 0 s left: members of the consensus")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    again = ConsensusClusterer(3, members=SMALL, random_state=0, verbose=1).fit(planted.views)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(r"ConsensusClusterer .* of 12, \d+ s left", shown.err)
    np.testing.assert_array_equal(again.labels_, model.labels_)


def test_input_is_not_changed(planted):
    views = [view.copy() for view in planted.views]
    ConsensusClusterer(3, members=SMALL[:-2], random_state=0).fit(views)
    for view, before in zip(views, planted.views, strict=True):
        np.testing.assert_array_equal(view, before)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_clusters": 0}, r'n_clusters must be a whole number >= 1, or "auto"; got 0'),
        ({"n_clusters": "many"}, r'or "auto"; got \'many\''),
        ({"n_clusters": 91}, "n_clusters=91 is more than n_samples=90"),
        ({"members": []}, "members must be None, 'thorough', or a list of polyspan's estimators"),
        ({"members": GRMSC()}, "members must be None, 'thorough', or a list"),
        ({"members": [GRMSC]}, "members must be None, 'thorough', or a list"),
        ({"members": [{"lam1": 1.0}]}, "members must be None, 'thorough', or a list"),
        ({"budget": -1}, "budget must be a finite number >= 0, or None for no limit; got -1"),
        ({"random_state": "x"}, "random_state must be"),
        ({"device": 3}, "ConsensusClusterer: device must be None or a name such as 'cuda'; got 3"),
        ({"verbose": -1}, "verbose must be a whole number >= 0"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0, or None .*; got 0"),
        ({"members": "all"}, "members must be None, 'thorough', or a list of .*; got 'all'"),
    ],
)
def test_bad_arguments(planted, changed, message):
    with pytest.raises(ValueError, match=message):
        ConsensusClusterer(**({"n_clusters": 3} | changed)).fit(planted.views)


def test_bad_views_are_named():
    with pytest.raises(ValueError, match="view 1 contains NaN"):
        ConsensusClusterer(2).fit([np.eye(4), np.full((4, 2), np.nan)])


@pytest.mark.slow
def test_samples_may_lack_views(planted):
    views = {"rna": planted.views[0], "protein": planted.views[1].copy()}
    views["protein"][:20] = np.nan
    found = ConsensusClusterer(3, random_state=0).fit(views)
    assert {row["method"] for row in found.table_} == {"MeanGraph", "SelfGraph"}
    assert {row["status"] for row in found.table_} == {"ok"}
    assert nmi(planted, found.labels_) > 0.9
    views["protein"][30, 0] = np.nan  # a single value is a gap in the data, not a missing view
    with pytest.raises(ValueError, match=r"in part of a sample \(row 30\): drop or impute"):
        ConsensusClusterer(3).fit(views)


def test_pairwise_nmi_is_that_of_scikit_learn():
    labels = np.random.RandomState(0).randint(4, size=(6, 50))
    labels[5] = 2  # one cluster alone
    expected = [[normalized_mutual_info_score(a, b) for b in labels] for a in labels]
    np.testing.assert_allclose(pairwise_nmi(labels), expected, atol=1e-12)  # sums in another order


def test_what_the_views_say_ranks_members():
    """A clustering that is clear in one view is worth more than one that is so-so in all."""
    clear, so_so, against = [0.8, 0.0], [0.45, 0.45], [0.45, -0.9]
    Q = np.array([clear, so_so, against])[:, None, :]  # one view
    _, scores, _ = rank_members(np.zeros((3, 4), int), ["a"] * 3, ["a"] * 3, Q)
    np.testing.assert_allclose(scores, [0.32, 0.2025, 0.10125])
    both = np.array([clear, so_so, against])[:, :, None]  # two views
    np.testing.assert_allclose(score_of(np.ones(3), both), scores)


def test_bad_members_are_outvoted():
    truth = np.repeat([0, 1, 2], 30)
    rng = np.random.RandomState(0)
    bad = [rng.randint(3, size=90) for _ in range(10)]
    labels = np.array([noisy(truth, 0.1, s) for s in range(5)] + bad)
    families = [f"family {i % 5}" for i in range(15)]
    A = sp.csr_array((truth[:, None] == truth).astype(float))
    Q = np.array([view_modularity([[Graphs(A, A)]], row) for row in labels])
    agreement, scores, weights = rank_members(labels, families, families, Q)
    assert agreement[:5].min() > agreement[5:].max()
    assert scores[:5].min() > scores[5:].max()
    np.testing.assert_allclose(weights, np.r_[np.full(5, 0.2), np.zeros(10)], atol=1e-15)
    merged, certainty = consensus(labels, weights, 3, random_state=0)
    assert clustering_scores(truth, merged)["nmi"] > 0.95
    assert certainty.mean() > 0.5


def test_agreement_is_that_with_the_other_families():
    labels = np.random.RandomState(0).randint(3, size=(5, 40))
    families = ["a", "a", "a", "b", "c"]
    A = pairwise_nmi(labels)
    wanted = [
        np.mean([A[0, 3], A[0, 4]]),
        np.mean([A[1, 3], A[1, 4]]),
        np.mean([A[2, 3], A[2, 4]]),
        np.mean([A[3, :3].mean(), A[3, 4]]),
        np.mean([A[4, :3].mean(), A[4, 3]]),
    ]
    agreement, _, weights = rank_members(labels, families, families, np.ones((5, 1, 2)))
    np.testing.assert_allclose(agreement, wanted, atol=1e-14)
    np.testing.assert_allclose(weights, [1 / 9] * 3 + [1 / 3] * 2)  # one vote each
    alone, _, _ = rank_members(labels, ["a"] * 5, families, np.ones((5, 1, 2)))
    np.testing.assert_allclose(alone, (A.sum(axis=1) - 1) / 4, atol=1e-14)


def test_a_family_in_four_scalings_has_two_votes():
    labels = np.tile(np.repeat([0, 1], 10), (6, 1))
    families, groups = ["a"] * 5 + ["b"], ["a, 1", "a, 2", "a, 3", "a, 4", "a, 4", "b, 1"]
    _, _, weights = rank_members(labels, families, groups, np.ones((6, 1, 2)))
    np.testing.assert_allclose(weights, np.array([2, 2, 2, 1, 1, 4]) / 12)  # root of four votes


def test_the_best_third_enter_and_those_that_differ_by_rounding_with_them():
    labels = np.tile(np.repeat([0, 1], 10), (18, 1))
    families = [f"{i}" for i in range(18)]
    quality = np.linspace(0.1, 1.0, 18)[:, None, None] * np.ones((1, 2))
    _, _, weights = rank_members(labels, families, families, quality)
    np.testing.assert_allclose(weights, np.r_[np.zeros(12), np.full(6, 1 / 6)])
    _, _, weights = rank_members(labels[:9], families[:9], families[:9], quality[:9])
    np.testing.assert_allclose(weights, np.r_[np.zeros(4), np.full(5, 1 / 5)])  # five at least
    quality[:] = 0.5
    quality[:9] += 1e-15
    _, _, weights = rank_members(labels, families, families, quality)
    np.testing.assert_allclose(weights, 1 / 18)


def test_members_that_all_agree_have_equal_weights():
    labels = np.tile(np.repeat([0, 1], 10), (3, 1))
    agreement, _, weights = rank_members(
        labels, ["a", "b", "c"], ["a", "b", "c"], np.ones((3, 1, 2))
    )
    np.testing.assert_allclose(agreement, 1)
    np.testing.assert_allclose(weights, 1 / 3)


def test_a_large_family_does_not_outvote_the_others():
    truth = np.repeat([0, 1, 2], 30)
    other = np.tile([0, 1, 2], 30)  # a second, unrelated clustering
    labels = np.array(
        [noisy(other, 0.1, s) for s in range(6)] + [noisy(truth, 0.1, 9 + s) for s in range(3)]
    )
    families = ["many"] * 6 + ["b", "c", "d"]
    agreement, _, _ = rank_members(labels, families, families, np.ones((9, 1, 2)))
    assert agreement[6:].min() > agreement[:6].max()


def test_both_ways_to_the_embedding_are_the_same():
    truth = np.repeat([0, 1, 2], 20)
    rows = np.array([noisy(truth, 0.2, s) for s in range(8)])  # 24 columns for 60 samples
    one, sure = consensus(rows, np.full(8, 1 / 8), 3, random_state=0)
    # The same settings three times are 72 columns, and the same shares.
    two, same = consensus(np.tile(rows, (3, 1)), np.full(24, 1 / 24), 3, random_state=0)
    assert clustering_scores(truth, one)["nmi"] == pytest.approx(1.0)
    assert clustering_scores(one, two)["nmi"] == pytest.approx(1.0)
    np.testing.assert_allclose(sure, same, atol=1e-12)  # sums in another order


def test_samples_are_linked_by_the_weights_of_the_settings_that_join_them():
    """The normalized co-association, by its definition and from the clusters of all settings."""
    labels = np.random.RandomState(0).randint(3, size=(4, 20)) * 2 - 1
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    W = sum(w * (row[:, None] == row) for w, row in zip(weights, labels, strict=True))
    columns = MODULE.Columns(MODULE._names(labels), np.sqrt(weights))
    B = MODULE._indicators(labels, columns)
    np.testing.assert_allclose((B @ B.T).toarray(), W, atol=1e-15)
    N = MODULE._normalized(B, MODULE._column_sums(B))
    degrees = W.sum(axis=1)
    np.testing.assert_allclose((N @ N.T).toarray(), W / np.sqrt(np.outer(degrees, degrees)))


def test_certainty_is_the_share_of_settings():
    rows = np.array([[0, 0, 0, 1, 1, 1]] * 3 + [[0, 0, 1, 1, 1, 1]])
    merged, certainty = consensus(rows, np.full(4, 0.25), 2, random_state=0)
    assert merged[2] == merged[0]
    # Sample 2 is with 0 and 1 in 3 of 4 settings, with the others in 1 of 4.
    assert certainty[2] == pytest.approx(0.5)
    # Sample 0: with 1 always, with 2 in 3 of 4, with the others never.
    assert certainty[0] == pytest.approx(0.875)


@pytest.mark.slow
def test_corrupted_samples_are_less_certain(planted):
    rng = np.random.RandomState(3)
    views = [view.copy() for view in planted.views]
    for view in views:
        view[:8] = rng.normal(scale=view.std(), size=(8, view.shape[1]))
    found = ConsensusClusterer(3, random_state=0).fit(views)
    assert found.certainty_[:8].mean() < found.certainty_[8:].mean() - 0.25  # .42 and .75


@pytest.mark.slow
def test_count_finds_planted_clusters():
    for c in (3, 5):
        data = make_subspaces(n_samples=30 * c, n_clusters=c, noise=0.1, random_state=1)
        number, evidence = count_clusters(data.views, random_state=0)
        assert number == evidence["chosen"] == c
        assert c in evidence["candidates"]
        json.dumps(evidence)


@pytest.mark.slow
def test_auto_uses_the_count(planted):
    found = ConsensusClusterer(members=SMALL, random_state=0).fit(planted.views)
    assert found.n_clusters_ == 3
    assert found.evidence_["chosen"] == 3
    assert nmi(planted, found.labels_) == pytest.approx(1.0)


@pytest.mark.slow
def test_the_device_reaches_every_solve(planted, monkeypatch):
    pytest.importorskip("torch")
    solved = []
    plain = SelfGraph.solve

    def solve(self, views, Xs):
        solved.append(self.device)
        return plain(self, views, Xs)

    monkeypatch.setattr(SelfGraph, "solve", solve)
    count, _ = count_clusters(planted.views, random_state=0, device="cpu")
    found = ConsensusClusterer(random_state=0, device="cpu").fit(planted.views)
    assert set(solved) == {"cpu"}
    assert count == found.n_clusters_ == 3
    assert nmi(planted, found.labels_) == pytest.approx(1.0)
    assert [row["setting"].get("device") for row in found.table_[:2]] == ["cpu", "cpu"]
    assert {row["status"] for row in found.table_} == {"ok"}


def test_a_device_that_is_not_there(planted):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="ConsensusClusterer: device='cuda:99' is not available"):
        ConsensusClusterer(3, device="cuda:99").fit(planted.views)
    with pytest.raises(ValueError, match="count_clusters: device='cuda:99' is not available here"):
        count_clusters(planted.views, device="cuda:99")
    with pytest.raises(ValueError, match="count_clusters: device must be None or a name"):
        count_clusters(planted.views, device=3)


@pytest.mark.slow
def test_evidence_has_a_line_for_every_candidate(planted):
    number, evidence = count_clusters(planted.views, random_state=0)
    gaps = -np.diff(evidence["eigenvalues"])
    for c, gap in zip(evidence["candidates"], evidence["gaps"], strict=True):
        assert gap == pytest.approx(gaps[c - 1], abs=1e-12)  # after c eigenvalues
    scores = np.multiply(evidence["gaps"], evidence["stability"])
    assert evidence["shortlist"][0]["n_clusters"] == evidence["chosen"] == number
    np.testing.assert_allclose(evidence["scores"], scores / scores.max(), rtol=1e-12)
    assert sum(evidence["votes"].values()) == len(evidence["settings"])


def test_count_refuses_too_few_samples():
    with pytest.raises(ValueError, match="cannot be estimated from 4 samples: pass n_clusters"):
        ConsensusClusterer().fit(np.eye(4))


@pytest.mark.parametrize("n", [5, 6, 7])
def test_count_of_very_few_samples(n):
    rng = np.random.default_rng(0)
    views = [np.repeat(np.eye(2), [n // 2, n - n // 2], axis=0) + 0.01 * rng.normal(size=(n, 2))]
    found = ConsensusClusterer(random_state=0).fit(views)
    assert found.n_clusters_ == 2
    assert found.labels_.tolist() == (found.labels_[0] ^ (np.arange(n) >= n // 2)).tolist()


def test_count_refuses_bad_limits(planted):
    with pytest.raises(ValueError, match="max_clusters must be a whole number >= 2"):
        count_clusters(planted.views, max_clusters=1)


def test_scalings_of_the_pool():
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(60, 2)), rng.poisson(0.3, size=(60, 30)).astype(float)]
    found = ConsensusClusterer(2, random_state=0, budget=0).fit(views)
    assert [row["setting"].get("scale", "unit") for row in found.table_[:2]] == [
        [None, "unit"],
        [None, "standard+unit"],
    ]
    assert "too few for unit length" in found.scaling_[0]
    assert "many values are zeros" in found.scaling_[1]
    given = ConsensusClusterer(2, scale="standard", random_state=0, budget=0).fit(views)
    assert {row["setting"]["scale"] for row in given.table_} == {"standard"}
    assert given.scaling_[0] == "view 0: 'standard', as given"
    with pytest.raises(ValueError, match=r"scale must be 'auto' or .*; got 'large'"):
        ConsensusClusterer(2, scale="large").fit(views)


def test_few_members_or_one_family_have_no_certainty(planted):
    with pytest.warns(UserWarning, match="no certainty is given, .* has 3 members of 1 family"):
        found = ConsensusClusterer(3, members=OWN, random_state=0).fit(planted.views)
    assert found.certainty_ is None
    assert "certainty" not in str(found)


def test_one_camp_is_the_common_case(planted):
    found = ConsensusClusterer(3, members=SMALL[-5:], random_state=0).fit(planted.views)
    assert found.alternatives_ == []


def test_rivals_are_found():
    """Two unrelated clusterings, each found by three groups: the other one is a rival."""
    left, right = np.repeat([0, 1], 40), np.tile([0, 1], 40)
    labels = np.array([left] * 6 + [right] * 6)
    names = [f"group {i // 2}" for i in range(12)]
    rows = [{"group": name, "score": 0.5} for name in names]
    links = [sp.csr_array((y[:, None] == y).astype(float)) for y in (left, right)]
    graphs = [[Graphs(A, A)] for A in links]
    (rival,) = find_rivals(labels, rows, left, graphs, 2, seed=0)
    assert clustering_scores(right, rival["labels"])["nmi"] == pytest.approx(1.0)
    assert rival["members"] == list(range(6, 12))
    assert rival["share"] == 0.5
    assert rival["similarity"] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(rival["modularity"], [0.0, 0.5], atol=1e-12)
    np.testing.assert_allclose(rival["certainty"], 1.0)
    assert [one.tolist() for one in find_camps(labels[::2])] == [[0, 1, 2], [3, 4, 5]]
    assert find_rivals(labels[:6], rows[:6], left, graphs, 2, seed=0) == []


def test_structure_is_told(planted):
    found = ConsensusClusterer(3, members=SMALL[-5:], random_state=0).fit(planted.views)
    assert found.structure_ in ("strong", "weak")
    noise = np.random.default_rng(1).normal(size=(2, 90, 12))
    found = ConsensusClusterer(3, members=SMALL[-5:], random_state=0).fit(list(noise))
    assert found.structure_ == "none found"
    assert [one["role"] for one in found.structure_evidence_["views"]] == ["says nothing"] * 2


@pytest.mark.slow
def test_labels_by_number(planted):
    found = ConsensusClusterer(members=SMALL[-5:], random_state=0).fit(planted.views)
    numbers = [row["n_clusters"] for row in found.evidence_["shortlist"]]
    assert numbers[0] == found.n_clusters_
    assert set(found.labels_by_k_) == set(numbers)
    np.testing.assert_array_equal(found.labels_by_k_[found.n_clusters_], found.labels_)
    for c in numbers:
        assert len(np.unique(found.labels_by_k_[c])) == c


def test_published_data_without_labels(data_dir):
    data = load_dataset("yale_images")
    plain = ConcatSpectral(15, random_state=0).fit_predict(data.views)
    members = list(PLAIN)
    members += [GRMSC(lam1=1.0, lam2=10.0, n_neighbors=10, affinity=a) for a in ("dense", "sparse")]
    found = ConsensusClusterer(15, members=members, random_state=0).fit(data.views)
    assert nmi(data, found.labels_) > nmi(data, plain)


# ---- two kinds of evidence -----------------------------------------------------------------------


def two_scores(views, c, scale):
    members = [MeanGraph(scale=scale), SelfGraph(scale=scale)]
    found = ConsensusClusterer(c, members=members, scale=scale, random_state=0).fit(views)
    # Where lengths count there are no graphs of self-expression.
    assert all((row["self_expression"] is None) == (scale is None) for row in found.view_weights_)
    return found.member_labels_, [row["score"] for row in found.table_]


@pytest.mark.filterwarnings("ignore:ConsensusClusterer. no certainty is given")
def test_the_right_member_has_the_higher_score_in_subspaces_and_in_clouds():
    rng, truth = np.random.default_rng(0), np.repeat(np.arange(4), 30)
    bases = [np.linalg.qr(rng.normal(size=(8, 3)))[0] for _ in range(8)]
    points = rng.normal(size=(240, 1, 3)) @ np.repeat(bases, 30, axis=0).transpose(0, 2, 1)
    (near, own), scores = two_scores(np.split(points[:, 0], 2), 4, "unit")
    assert clustering_scores(truth, own)["nmi"] == pytest.approx(1.0)
    assert clustering_scores(truth, near)["nmi"] < 0.7
    assert scores[1] > 1.5 * scores[0]
    # Clouds on a line through the origin: one subspace.
    truth = truth[:90]
    views = [(4 * truth + 8)[:, None] + rng.normal(size=(90, 6)) for _ in range(2)]
    (near, own), scores = two_scores(views, 3, None)
    assert clustering_scores(truth, near)["nmi"] == pytest.approx(1.0)
    assert clustering_scores(truth, own)["nmi"] < 0.3
    assert scores[0] > 1.5 * scores[1]


def test_a_view_of_noise_has_no_weight(planted):
    noise = np.random.default_rng(1).normal(size=(90, 30))
    found = ConsensusClusterer(3, random_state=0).fit({"a": planted.views[0], "noise": noise})
    good, bad = found.view_weights_
    assert [good["view"], bad["view"]] == ["a", "noise"]
    assert bad["weight"] < 0.1
    assert good["weight"] + bad["weight"] == pytest.approx(1.0)
    assert nmi(planted, found.labels_) > 0.95
    alone = ConsensusClusterer(3, random_state=0).fit([planted.views[0]])
    assert alone.view_weights_[0]["weight"] == 1.0
    assert clustering_scores(alone.labels_, found.labels_)["nmi"] > 0.9
    assert found.modularity_ == [good["neighbors"], bad["neighbors"]]
    json.dumps(found.view_weights_)


# ---- threads and time ----------------------------------------------------------------------------


def same_fit(one, two):
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.certainty_, two.certainty_)
    np.testing.assert_array_equal(one.member_labels_, two.member_labels_)
    assert one.structure_evidence_ == two.structure_evidence_


@pytest.mark.slow
def test_labels_do_not_depend_on_the_threads(planted):
    rng = np.random.RandomState(1)
    views = [view + 0.5 * rng.normal(size=view.shape) for view in planted.views]
    one, two, all_cores = (
        ConsensusClusterer(3, random_state=0, n_jobs=n_jobs).fit(views) for n_jobs in (None, 2, -1)
    )
    same_fit(one, two)
    same_fit(one, all_cores)
    with parallel_config(n_jobs=2):
        same_fit(one, ConsensusClusterer(3, random_state=0).fit(views))


@pytest.mark.filterwarnings("ignore:ConsensusClusterer. no certainty is given")
def test_a_budget_of_nothing_gives_the_answer_of_one_member(planted):
    found = ConsensusClusterer(3, budget=0, random_state=0, n_jobs=2).fit(planted.views)
    statuses = [row["status"] for row in found.table_]
    assert statuses == ["ok"] + ["not run"] * 19
    assert {row["reason"] for row in found.table_[1:]} == {"the budget of 0 s was spent"}
    assert clustering_scores(found.member_labels_[0], found.labels_)["acc"] == 1.0
    assert not hasattr(found.best_estimator_, "labels_")  # no time is left to fit it again
    assert found.structure_ == LATE


def test_a_test_of_structure_that_fails_does_not_end_the_fit(planted, monkeypatch):
    def broken(*args):
        raise ArithmeticError("no luck")

    module = import_module("polyspan.selection.estimator")
    monkeypatch.setattr(module, "find_structure", broken)
    found = ConsensusClusterer(3, members=SMALL, random_state=0).fit(planted.views)
    assert found.structure_ == "not tested: ArithmeticError: no luck"


@pytest.mark.slow
def test_the_thorough_pool_runs(planted):
    found = ConsensusClusterer(3, members="thorough", random_state=0).fit(planted.views)
    assert {"GRMSC", "FastMICE", "SNF", "CGD"} < {row["method"] for row in found.table_}
    assert {row["status"] for row in found.table_} == {"ok"}
    assert nmi(planted, found.labels_) == pytest.approx(1.0)


# --- An estimator like any other. ---


CHEAP = [ConcatKMeans(n_init=2), ConcatSpectral(n_neighbors=2), GRMSC(n_neighbors=2)]


@pytest.mark.slow
def test_common_checks():
    """All of scikit-learn's; the failed ones are named with their error."""
    model = ConsensusClusterer(3, members=CHEAP, random_state=0)
    done = check_estimator(model, on_skip=None, on_fail=None)
    assert len(done) > 40
    failed = [one for one in done if one["status"] not in ("passed", "skipped")]
    assert not failed, "\n".join(f"{one['check_name']}: {one['exception']!r}" for one in failed)
    assert {one["check_name"] for one in done if one["status"] == "skipped"} <= {
        "check_array_api_input"  # it needs SCIPY_ARRAY_API
    }


SHAPES = {  # checks whose data reach the members; all checks run with cheap members above
    *("check_fit2d_1sample", "check_fit2d_1feature", "check_clustering", "check_dict_unchanged"),
    *("check_estimators_dtypes", "check_estimators_nan_inf", "check_estimators_fit_returns_self"),
}


@pytest.mark.slow
def test_common_checks_with_the_default_members():
    checked = set()
    for model, check in estimator_checks_generator(ConsensusClusterer()):
        if check.func.__name__ in SHAPES:
            with case(check.func.__name__):
                check(model)
            checked.add(check.func.__name__)
    assert checked == SHAPES


@pytest.mark.slow
def test_in_a_pipeline_and_a_search(planted):
    X = np.hstack(planted.views)
    widths = np.cumsum([0, *(view.shape[1] for view in planted.views)])
    columns = [slice(a, b) for a, b in pairwise(widths)]
    model = ConsensusClusterer(3, members=SMALL[-3:], views=columns, random_state=0)
    pipe = make_pipeline(StandardScaler(), model)
    assert nmi(planted, pipe.fit_predict(X)) == pytest.approx(1.0)
    scaled = StandardScaler().fit_transform(X)
    alone = clone(model).set_params(views=None).fit([scaled[:, one] for one in columns])
    np.testing.assert_array_equal(pipe[-1].labels_, alone.labels_)
    np.testing.assert_array_equal(pipe[-1].certainty_, alone.certainty_)
    everything = np.arange(90)
    search = GridSearchCV(
        model,
        {"n_clusters": [2, 3]},
        scoring=lambda fitted, X, y: clustering_scores(y, fitted.labels_)["nmi"],
        cv=[(everything, everything)],
    )
    assert search.fit(X, planted.labels).best_params_ == {"n_clusters": 3}


@pytest.mark.slow
def test_clone_and_a_second_fit(planted):
    model = ConsensusClusterer(members=SMALL[-3:], random_state=0).fit(planted.views)
    assert model.evidence_["chosen"] == 3
    copy = clone(model)
    assert not hasattr(copy, "labels_")
    assert copy.members is not model.members
    assert not hasattr(model.members[0], "labels_")  # those that were given stay as they were
    assert model.members[0].n_clusters == 8
    np.testing.assert_array_equal(copy.fit(planted.views).labels_, model.labels_)
    model.set_params(n_clusters=2).fit(planted.views)
    assert model.n_clusters_ == 2
    assert model.evidence_ == {}
    assert model.view_names_ == ["0", "1"]


def test_views_by_name(planted):
    named = dict(zip(("rna", "protein"), planted.views, strict=True))
    model = ConsensusClusterer(3, members=SMALL[-3:], random_state=0).fit(named)
    assert model.view_names_ == ["rna", "protein"]


def test_how_it_shows(planted):
    model = ConsensusClusterer(3, members=SMALL, random_state=0)
    assert str(model) == repr(model)
    html = model._repr_mimebundle_()["text/html"]
    assert "<td>subspace</td>" not in html
    model.fit(planted.views)
    shown = str(model)
    assert shown.startswith(repr(model))
    sure = f"{np.mean(model.certainty_):.2f}"
    assert f"3 clusters in 90 samples (30, 30, 30), certainty {sure} on average" in shown
    families = list(dict.fromkeys(row["family"] for row in model.table_))
    rows = [line.split() for line in shown.splitlines()[-len(families) - 1 :]]
    assert rows[0] == ["members", "ran", "used", "agreement", "seconds"]
    own = [row for row in model.table_ if row["family"] == "early fusion"]
    used = str(sum(row["weight"] > 0 for row in own))
    agreement = f"{np.mean([row['agreement'] for row in own]):.2f}"
    place = 1 + families.index("early fusion")
    assert rows[place][:-1] == ["early", "fusion", f"{len(own)}/{len(own)}", used, agreement]
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == shown
    assert "<td>subspace</td><td>3/3</td>" in bundle["text/html"]
    groups = list(dict.fromkeys(row["group"] for row in model.table_))
    assert len(groups) > len(families)
    lines = str(model.set_params(verbose=1)).splitlines()[-len(groups) :]
    assert all(line.startswith(one) for line, one in zip(lines, groups, strict=True))


@pytest.mark.slow
def test_the_page_runs_as_shown(capsys):
    pytest.importorskip("torch")
    page = (Path(__file__).parents[2] / "docs/choosing-without-labels.md").read_text("utf-8")
    known = {"views": make_subspaces(n_samples=60, n_clusters=5, random_state=0).views}
    shown = set()
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S):
        exec(compile(block.replace('"cuda"', '"cpu"'), "choosing-without-labels.md", "exec"), known)
        params = known["model"].get_params(deep=False)
        shown |= {k for k, v in params.items() if v != getattr(ConsensusClusterer, k)}
    assert shown >= {"n_clusters", "members", "budget", "n_jobs", "device"}
    assert known["model"].n_clusters_ > 1
    assert "samples are uncertain" in capsys.readouterr().out
