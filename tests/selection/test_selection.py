import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

from polyspan import GRMSC, LMVSC, LRR, ConcatSpectral
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.metrics import clustering_scores
from polyspan.selection import consensus, count_clusters, pairwise_nmi, rank_settings, select
from polyspan.selection.grids import default_grid

SMALL = [{"n_neighbors": 10}, {"n_neighbors": 10, "affinity": "sparse"}, {"n_neighbors": 20}]


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
    found = select(planted.views, 3, grid=SMALL, random_state=0)
    assert nmi(planted, found.labels) == pytest.approx(1.0)
    assert found.n_clusters == 3
    assert found.evidence == {}
    assert found.certainty.shape == (90,)
    assert found.certainty.min() >= 0
    assert found.certainty.max() <= 1


def test_default_grid_runs_and_serves_few_samples():
    data = make_subspaces(n_samples=24, n_clusters=2, random_state=0)
    found = select(data.views, 2, random_state=0)
    assert {row["status"] for row in found.table} == {"ok"}
    assert nmi(data, found.labels) == pytest.approx(1.0)


def test_rows_say_what_ran(planted):
    found = select(planted.views, 3, grid=SMALL, random_state=0)
    methods = [row["method"] for row in found.table]
    assert methods.count("GRMSC") == 3
    assert {"ConcatSpectral", "ConcatKMeans"} < set(methods)
    assert found.table[-1]["setting"]["n_neighbors"] == 20
    assert sum(row["weight"] for row in found.table) == pytest.approx(1.0)
    assert all(row["seconds"] > 0 for row in found.table)
    json.dumps(found.table)  # plain numbers and text: a report can store it


def test_best_estimator_is_the_row_that_agrees_best(planted):
    found = select(planted.views, 3, grid=SMALL, random_state=0)
    best = max(found.table, key=lambda row: row["nearness"])
    assert best["nearness"] == pytest.approx(
        clustering_scores(found.labels, found.best_estimator.labels_)["nmi"]
    )
    assert type(found.best_estimator).__name__ == best["method"]
    params = found.best_estimator.get_params()
    assert {k: params[k] for k in best["setting"]} == best["setting"]
    again = found.best_estimator.fit_predict(planted.views)
    np.testing.assert_array_equal(again, found.best_estimator.labels_)


def test_best_estimator_is_one_of_those_in_the_consensus(planted, monkeypatch):
    def all_but_the_first(labels, groups):
        weights = np.r_[0.0, np.full(len(labels) - 1, 1 / (len(labels) - 1))]
        return np.ones(len(labels)), weights

    monkeypatch.setattr("polyspan.selection.members.rank_settings", all_but_the_first)
    found = select(planted.views, 3, grid=SMALL, random_state=0)
    assert found.table[0]["nearness"] == max(row["nearness"] for row in found.table)
    params = found.best_estimator.get_params()
    chosen = found.table[1]  # as near as the first
    assert type(found.best_estimator).__name__ == chosen["method"]
    assert {k: params[k] for k in chosen["setting"]} == chosen["setting"]


def test_same_seed_same_result(planted):
    views = [
        view + 0.5 * np.random.RandomState(1).normal(size=view.shape) for view in planted.views
    ]
    one, two = (select(views, 3, grid=SMALL, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.certainty, two.certainty)
    assert [row["agreement"] for row in one.table] == [row["agreement"] for row in two.table]


def test_a_setting_that_fails_is_a_row(planted):
    grid = [{"n_neighbors": 10}, {"n_neighbors": 10, "affinity": "sparse"}, {"n_neighbors": 90}]
    found = select(planted.views, 3, grid=grid, random_state=0)
    row = found.table[-1]
    assert row["status"] == "failed"
    assert "n_neighbors=90 must be below n_samples=90" in row["reason"]
    assert row["agreement"] is None
    assert row["weight"] == 0
    assert nmi(planted, found.labels) == pytest.approx(1.0)


def test_a_method_that_only_fails_is_told(planted):
    with pytest.warns(UserWarning, match=r"All 1 settings of LRR failed .*LRR takes one view"):
        found = select(planted.views, 3, estimator=LRR, random_state=0)
    assert found.table[-1]["status"] == "failed"
    assert {row["status"] for row in found.table[:-1]} == {"ok"}


def test_all_failing_is_an_error(planted, monkeypatch):
    def broken(self, X, y=None):
        raise ArithmeticError("no luck")

    for name in ("ConcatSpectral", "ConcatKMeans", "GRMSC"):
        monkeypatch.setattr(f"polyspan.{name}.fit", broken)
    with pytest.raises(RuntimeError, match=r"All 9 settings failed; .*ArithmeticError: no luck"):
        select(planted.views, 3, grid=SMALL[:1], random_state=0)


def test_no_new_setting_after_the_budget(planted):
    found = select(planted.views, 3, grid=SMALL, budget=0, random_state=0)
    statuses = [row["status"] for row in found.table]
    assert statuses == ["ok"] + ["not run"] * (len(statuses) - 1)
    assert "budget of 0 s" in found.table[-1]["reason"]
    np.testing.assert_array_equal(found.labels.shape, (90,))


def test_progress_is_reported(planted):
    seen = []
    select(planted.views, 3, grid=SMALL, random_state=0, progress=lambda *args: seen.append(args))
    total = seen[0][1]
    assert [done for done, _, _ in seen] == list(range(total + 1))
    assert any("GRMSC(n_neighbors=10" in text for _, _, text in seen)


def test_input_is_not_changed(planted):
    views = [view.copy() for view in planted.views]
    select(views, 3, grid=SMALL[:1], random_state=0)
    for view, before in zip(views, planted.views, strict=True):
        np.testing.assert_array_equal(view, before)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_clusters": 0}, r'n_clusters must be a whole number >= 1, or "auto"; got 0'),
        ({"n_clusters": "many"}, r'or "auto"; got \'many\''),
        ({"n_clusters": 91}, "n_clusters=91 is more than n_samples=90"),
        ({"estimator": GRMSC()}, "estimator must be a class"),
        ({"grid": []}, "grid must be a list of dictionaries of parameters, not empty"),
        ({"grid": {"lam1": 1.0}}, "grid must be a list"),
        ({"grid": [3]}, r"grid\[0\] must be a dictionary"),
        ({"grid": [{}, {"lambda": 1.0}]}, r"grid\[1\] has 'lambda', which a grid of GRMSC"),
        ({"grid": [{"n_clusters": 4}]}, r"grid\[0\] has 'n_clusters'"),
        ({"budget": -1}, "budget must be a finite number >= 0; got -1"),
        ({"random_state": "x"}, "random_state must be"),
        ({"progress": 3}, "progress must be a function"),
        ({"device": 3}, "select: device must be None or a name such as 'cuda'; got 3"),
    ],
)
def test_bad_arguments(planted, changed, message):
    with pytest.raises(ValueError, match=message):
        select(**({"views": planted.views, "n_clusters": 3} | changed))


def test_bad_views_are_named():
    with pytest.raises(ValueError, match="view 1 contains NaN"):
        select([np.eye(4), np.full((4, 2), np.nan)], 2)


def test_missing_views_are_refused_in_words(planted):
    views = {"rna": planted.views[0], "protein": planted.views[1].copy()}
    views["protein"][3] = np.nan
    for call in (lambda: select(views, 3), lambda: count_clusters(views)):
        with pytest.raises(ValueError, match=r"view 'protein' contains NaN.* needs every view of"):
            call()
    views["protein"][4, 0] = np.nan  # a single value is a gap in the data, not a missing view
    with pytest.raises(ValueError, match=r"drop or impute these values .* before clustering"):
        select(views, 3)


def test_selection_says_how_it_was_asked(planted):
    found = select(planted.views, 3, grid=SMALL[:1], random_state=0, progress=lambda *args: None)
    assert found.asked == {"n_clusters": 3, "grid": SMALL[:1], "random_state": 0}
    other = select(planted.views, 3, estimator=LMVSC, budget=1e6)
    assert other.asked == {"n_clusters": 3, "estimator": LMVSC, "budget": 1e6}


def test_pairwise_nmi_is_that_of_scikit_learn():
    labels = np.random.RandomState(0).randint(4, size=(6, 50))
    labels[5] = 2  # one cluster alone
    expected = [[normalized_mutual_info_score(a, b) for b in labels] for a in labels]
    np.testing.assert_allclose(pairwise_nmi(labels), expected, atol=1e-12)  # sums in another order


def test_bad_settings_are_outvoted():
    truth = np.repeat([0, 1, 2], 30)
    rng = np.random.RandomState(0)
    bad = [rng.randint(3, size=90) for _ in range(4)]
    labels = np.array([noisy(truth, 0.1, s) for s in range(4)] + bad)
    agreement, weights = rank_settings(labels, ["a", "a", "b", "b"] * 2)
    assert agreement[:4].min() > agreement[4:].max()
    worst = np.isin(np.arange(8), np.argsort(agreement)[:2])  # a quarter
    np.testing.assert_allclose(weights, np.where(worst, 0, 1 / 6), atol=1e-15)
    merged, certainty = consensus(labels, weights, 3, random_state=0)
    assert clustering_scores(truth, merged)["nmi"] > 0.95
    assert certainty.mean() > 0.5


def test_agreement_is_the_mean_over_groups_of_the_others():
    labels = np.random.RandomState(0).randint(3, size=(5, 40))
    groups = ["a", "a", "a", "b", "c"]
    A = pairwise_nmi(labels)
    wanted = [
        np.mean([A[0, [1, 2]].mean(), A[0, 3], A[0, 4]]),
        np.mean([A[1, [0, 2]].mean(), A[1, 3], A[1, 4]]),
        np.mean([A[2, [0, 1]].mean(), A[2, 3], A[2, 4]]),
        np.mean([A[3, :3].mean(), A[3, 4]]),  # alone in its group
        np.mean([A[4, :3].mean(), A[4, 3]]),
    ]
    agreement, weights = rank_settings(labels, groups)
    np.testing.assert_allclose(agreement, wanted, atol=1e-14)
    # A quarter of five is one: the second worst, at the limit, stays.
    np.testing.assert_allclose(weights, np.where(agreement == agreement.min(), 0, 0.25))


def test_settings_that_all_agree_have_equal_weights():
    labels = np.tile(np.repeat([0, 1], 10), (3, 1))
    agreement, weights = rank_settings(labels, ["a", "a", "b"])
    np.testing.assert_allclose(agreement, 1)
    np.testing.assert_allclose(weights, 1 / 3)


def test_a_large_group_does_not_outvote_the_others():
    truth = np.repeat([0, 1, 2], 30)
    other = np.tile([0, 1, 2], 30)  # a second, unrelated clustering
    labels = np.array(
        [noisy(other, 0.1, s) for s in range(6)] + [noisy(truth, 0.1, 9 + s) for s in range(3)]
    )
    agreement, _ = rank_settings(labels, ["many"] * 6 + ["b", "c", "d"])
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


def test_certainty_is_the_share_of_settings():
    rows = np.array([[0, 0, 0, 1, 1, 1]] * 3 + [[0, 0, 1, 1, 1, 1]])
    merged, certainty = consensus(rows, np.full(4, 0.25), 2, random_state=0)
    assert merged[2] == merged[0]
    # Sample 2 is with 0 and 1 in 3 of 4 settings, with the others in 1 of 4.
    assert certainty[2] == pytest.approx(0.5)
    # Sample 0: with 1 always, with 2 in 3 of 4, with the others never.
    assert certainty[0] == pytest.approx(0.875)


def test_corrupted_samples_are_less_certain(planted):
    rng = np.random.RandomState(3)
    views = [view.copy() for view in planted.views]
    for view in views:
        view[:8] = rng.normal(scale=view.std(), size=(8, view.shape[1]))
    found = select(views, 3, random_state=0)
    assert found.certainty[:8].mean() < found.certainty[8:].mean() - 0.5  # .25 and .93


@pytest.mark.slow
def test_count_finds_planted_clusters():
    for c in (3, 5):
        data = make_subspaces(n_samples=30 * c, n_clusters=c, noise=0.1, random_state=1)
        number, evidence = count_clusters(data.views, random_state=0)
        assert number == evidence["chosen"] == c
        assert c in evidence["candidates"]
        json.dumps(evidence)


def test_auto_uses_the_count(planted):
    found = select(planted.views, "auto", grid=SMALL, random_state=0)
    assert found.n_clusters == 3
    assert found.evidence["chosen"] == 3
    assert nmi(planted, found.labels) == pytest.approx(1.0)


@pytest.mark.slow
def test_auto_and_the_grid_share_solutions(planted, monkeypatch):
    solved = []
    plain = GRMSC.solve

    def solve(self, views, Xs):
        solved.append((self.n_clusters, self.lam1, self.n_neighbors))
        return plain(self, views, Xs)

    monkeypatch.setattr(GRMSC, "solve", solve)
    count_clusters(planted.views, random_state=0)
    alone = len(solved)
    grid = [{"n_neighbors": 10, "affinity": affinity} for affinity in ("dense", "sparse")]
    found = select(planted.views, "auto", grid=grid, random_state=0)
    assert len(solved) == 2 * alone  # the grid asks for nothing new, whatever the number
    assert {row["status"] for row in found.table} == {"ok"}


@pytest.mark.slow
def test_the_device_reaches_every_solve(planted, monkeypatch):
    pytest.importorskip("torch")
    solved = []
    plain = GRMSC.solve

    def solve(self, views, Xs):
        solved.append((self.device, type(Xs[0]).__module__))
        return plain(self, views, Xs)

    monkeypatch.setattr(GRMSC, "solve", solve)
    count, _ = count_clusters(planted.views, random_state=0, device="cpu")
    alone = len(solved)
    grid = [{"n_neighbors": 10, "affinity": affinity} for affinity in ("dense", "sparse")]
    found = select(planted.views, "auto", grid=grid, random_state=0, device="cpu")
    assert set(solved) == {("cpu", "torch")}
    assert len(solved) == 2 * alone  # count and grid share solves there as well
    assert count == found.n_clusters == 3
    assert nmi(planted, found.labels) == pytest.approx(1.0)
    assert [row["setting"]["device"] for row in found.table[-2:]] == ["cpu", "cpu"]
    assert {row["status"] for row in found.table} == {"ok"}


def test_a_method_without_a_device_computes_here(planted):
    pytest.importorskip("torch")
    found = select(planted.views, 3, estimator=LMVSC, random_state=0, device="cpu")
    assert found.table[-1]["method"] == "LMVSC"
    assert {row["status"] for row in found.table} == {"ok"}


def test_a_device_that_is_not_there(planted):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="select: device='cuda:99' is not available here"):
        select(planted.views, 3, device="cuda:99")
    with pytest.raises(ValueError, match="count_clusters: device='cuda:99' is not available here"):
        count_clusters(planted.views, device="cuda:99")
    with pytest.raises(ValueError, match="count_clusters: device must be None or a name"):
        count_clusters(planted.views, device=3)


@pytest.mark.slow
def test_the_benchmark_passes_the_device_on(planted, monkeypatch):
    path = Path(__file__).parents[2] / "benchmarks" / "label_free.py"
    spec = importlib.util.spec_from_file_location("label_free", path)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    seen = []

    def recorded(function):
        def call(*args, device=None, **options):
            seen.append((function.__name__, device))
            return function(*args, **options)

        return call

    monkeypatch.setattr(benchmark, "load_dataset", lambda name: planted)
    for function in (select, count_clusters):
        monkeypatch.setattr(benchmark, function.__name__, recorded(function))
    row = benchmark.measure("ngs", 0, "cuda")
    assert seen == [("select", "cuda"), ("count_clusters", "cuda")]
    assert row["device"] == "cuda"
    assert row["nmi"] == pytest.approx(1.0)


def test_evidence_has_a_line_for_every_candidate(planted):
    number, evidence = count_clusters(planted.views, random_state=0)
    gaps = -np.diff(evidence["eigenvalues"])
    for c, gap in zip(evidence["candidates"], evidence["gaps"], strict=True):
        assert gap == pytest.approx(gaps[c - 1], abs=1e-12)  # after c eigenvalues
    scores = np.multiply(evidence["gaps"], evidence["stability"])
    assert evidence["candidates"][int(np.argmax(scores))] == number
    np.testing.assert_allclose(evidence["scores"], scores / scores.max(), rtol=1e-12)
    assert sum(evidence["votes"].values()) == len(evidence["settings"])


def test_count_refuses_too_few_samples():
    with pytest.raises(ValueError, match="cannot be estimated from 4 samples: give n_clusters"):
        select(np.eye(4), "auto")


@pytest.mark.parametrize("n", [5, 6, 7])
def test_count_of_very_few_samples(n):
    rng = np.random.default_rng(0)
    views = [np.repeat(np.eye(2), [n // 2, n - n // 2], axis=0) + 0.01 * rng.normal(size=(n, 2))]
    found = select(views, "auto", random_state=0)
    assert found.n_clusters == 2
    assert found.labels.tolist() == (found.labels[0] ^ (np.arange(n) >= n // 2)).tolist()


def test_count_refuses_bad_limits(planted):
    with pytest.raises(ValueError, match="max_clusters must be a whole number >= 2"):
        count_clusters(planted.views, max_clusters=1)


def test_default_grid_shrinks():
    sizes = [len(default_grid(n, 5)) for n in (200, 700, 1400, 2000, 10000)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] >= 1
    full, large = len(default_grid(1500, 5)), len(default_grid(2000, 5))
    assert (full, large) == (42, 21)  # a consensus of three solves would be thin
    assert all(p["n_neighbors"] < 20 for p in default_grid(20, 2))


@pytest.mark.parametrize(("n", "kept"), [(30, {10}), (89, {10}), (90, {10, 30})])
def test_default_grid_keeps_as_many_entries_as_a_cluster_has(n, kept):
    found = {p["n_kept"] for p in default_grid(n, 3) if p["affinity"] == "sparse"}
    assert found == kept


def test_published_data_without_labels(data_dir):
    data = load_dataset("yale_images")
    plain = ConcatSpectral(15, random_state=0).fit_predict(data.views)
    grid = [
        {"lam1": 1.0, "lam2": 10.0, "n_neighbors": 10, "affinity": a} for a in ("dense", "sparse")
    ]
    found = select(data.views, 15, grid=grid, random_state=0)
    assert nmi(data, found.labels) > nmi(data, plain)


@pytest.mark.slow
def test_the_page_runs_as_shown(capsys):
    pytest.importorskip("torch")
    page = (Path(__file__).parents[2] / "docs/choosing-without-labels.md").read_text("utf-8")
    known = {"views": make_subspaces(n_samples=60, n_clusters=5, random_state=0).views}
    shown = set()
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S):
        exec(compile(block.replace('"cuda"', '"cpu"'), "choosing-without-labels.md", "exec"), known)
        shown |= set(known["result"].asked)
    assert shown == {"n_clusters", "estimator", "grid", "budget", "device"}
    assert known["result"].n_clusters > 1
    assert "samples are uncertain" in capsys.readouterr().out
