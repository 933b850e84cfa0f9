"""New samples after a consensus: clusters, certainty, likeness and views that they lack."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cases import benchmark, case
from late_fusion import tied_views
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from polyspan import NEMO, ConsensusClusterer, MeanGraph, load_model, save_model
from polyspan.datasets import load_views, make_subspaces
from polyspan.graphs import ties
from polyspan.graphs.knn import nearest_neighbors
from polyspan.selection.placing import Fitted, place

pytestmark = pytest.mark.filterwarnings("ignore:ConsensusClusterer. no certainty is given")

MEMBERS = [MeanGraph(), NEMO(), MeanGraph(scale="standard+unit")]


def drawn(n=200, seed=0):
    """Three groups, seen in three views; in the third one only a little."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    centers = np.random.default_rng(9).normal(size=(3, 3, 6)) * [[[1.2]], [[1.0]], [[0.2]]]
    return labels, [own[labels] + rng.normal(size=(n, 6)) for own in centers]


@pytest.fixture(scope="module")
def fitted():
    return ConsensusClusterer(3, members=MEMBERS, random_state=0).fit(drawn()[1])


def matched(model, truth):
    """The cluster that most of each true group are in."""
    return np.array([np.bincount(model.labels_[truth == c]).argmax() for c in range(3)])


# ---- what the formulas say -----------------------------------------------------------------------


def known(X, scale=None, weight=1.0, k=10):
    near = nearest_neighbors(X, k)
    return Fitted(X, "0", [scale], [(near.widths, near.mean_distances)], weight)


def literal(X, x, labels, k=10):
    """Votes, and standardized mean distance, of one sample in one view, by the docstring."""
    D = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    others = np.sort(D, axis=1)[:, 1:]
    s, m = others[:, 6], others[:, :k].mean(axis=1)
    d = np.sqrt(((X - x) ** 2).sum(axis=1))
    near = np.argsort(d)[:k]
    votes = np.zeros(labels.max() + 1)
    for j in near:
        votes[labels[j]] += np.exp(-(d[j] ** 2) / (np.sort(d)[6] * s[j]))
    far = (d[near].mean() - m.mean()) / m.std()
    return votes / votes.sum(), far, (m - m.mean()) / m.std()


def test_votes_and_likeness_are_the_formulas():
    labels, (A, B, _) = drawn(60)
    new = [view[:7] for view in drawn(20, seed=1)[1][:2]]
    found = place([known(A, weight=0.5), known(B, weight=0.2)], new, labels)
    for i in range(7):
        va, fa, oa = literal(A, new[0][i], labels)
        vb, fb, ob = literal(B, new[1][i], labels)
        votes = (0.5 * va + 0.2 * vb) / 0.7
        assert_allclose(found.votes[i], votes, rtol=1e-9)
        assert found.labels[i] == votes.argmax()
        assert_allclose(found.certainty[i], np.diff(np.sort(votes)[-2:])[0], rtol=1e-9, atol=1e-12)
        as_far = (0.5 * oa + 0.2 * ob) / 0.7 >= (0.5 * fa + 0.2 * fb) / 0.7
        assert_allclose(found.likeness[i], as_far.mean(), atol=1e-12)


def test_scalings_of_a_view_vote_alike():
    labels, (A, *_) = drawn(60)
    new = drawn(9, seed=1)[1][0]
    unit = nearest_neighbors(A / np.linalg.norm(A, axis=1, keepdims=True), 10)
    both = Fitted(
        A, "0", [None, "unit"], [known(A).near[0], (unit.widths, unit.mean_distances)], 1.0
    )
    one = both._replace(scales=["unit"], near=both.near[1:])
    alone = [place([x], [new], labels).votes for x in (known(A), one)]
    assert_allclose(place([both], [new], labels).votes, np.mean(alone, axis=0), rtol=1e-12)


def test_a_view_that_says_nothing_does_not_vote():
    labels, (A, B, _) = drawn(60)
    new = [view[:9] for view in drawn(20, seed=1)[1][:2]]
    alone = place([known(A)], new[:1], labels)
    for weight in (0.0, -0.1):
        found = place([known(A), known(B, weight=weight)], new, labels)
        assert_allclose(found.votes, alone.votes, rtol=1e-12)
        assert_allclose(found.likeness, alone.likeness, atol=1e-12)
    neither = place([known(A, weight=0.0), known(B, weight=-0.1)], new, labels)
    equal = place([known(A), known(B)], new, labels)
    assert_allclose(neither.votes, equal.votes, rtol=1e-12)


def test_likeness_is_over_the_views_that_a_sample_has():
    labels, (A, B, _) = drawn(60)
    new = drawn(20, seed=1)[1][0]
    found = place([known(A), known(B)], [new, None], labels)
    alone = place([known(A)], [new], labels)
    assert_allclose(found.likeness, alone.likeness, atol=1e-12)
    assert_allclose(found.votes, alone.votes, rtol=1e-12)


def test_small_groups_can_win():
    """Four samples close together, among the ten nearest of a fifth."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 2)), [20.0, 0.0] + 0.1 * rng.normal(size=(4, 2))])
    found = place([known(X)], [np.array([[20.0, 0.0]])], np.repeat([0, 1], [40, 4]))
    assert found.labels.tolist() == [1]
    assert found.certainty[0] > 0.9


def test_the_order_of_the_fitted_samples_does_not_matter_even_with_ties():
    order = np.random.default_rng(0).permutation(40)
    for X in tied_views():
        labels = np.random.default_rng(1).integers(3, size=len(X))
        there = place([known(X)], [X[:9] + 0.0], labels)
        other = place([known(X[order])], [X[:9] + 0.0], labels[order])
        assert_allclose(other.votes, there.votes, atol=1e-12)
        assert_allclose(other.likeness, there.likeness, atol=1e-12)


def test_duplicates_and_a_sample_very_far_have_finite_votes():
    X = np.repeat(np.eye(3), 12, axis=0)
    labels = np.repeat([0, 1, 2], 12)
    found = place([known(X)], [np.array([[0.0, 1.0, 0.0], [1e6, 0.0, 0.0]])], labels)
    assert found.labels.tolist() == [1, 0]
    assert_allclose(found.votes.sum(axis=1), 1.0, rtol=1e-12)
    assert found.likeness.tolist() == [1.0, 0.0]


def test_one_cluster_is_certain():
    labels, (A, *_) = drawn(30)
    found = place([known(A)], [A[:2]], 0 * labels)
    assert_array_equal(found.certainty, [1.0, 1.0])


# ---- of a fitted consensus -----------------------------------------------------------------------


def test_new_samples_get_the_cluster_of_their_group(fitted):
    truth, new = drawn(300, seed=1)
    labels, certainty = fitted.predict(new, abstain=0, return_certainty=True)
    right = labels == matched(fitted, drawn()[0])[truth]
    assert right.mean() > 0.93
    assert certainty[right].mean() > certainty[~right].mean() + 0.2
    assert certainty.min() >= 0
    assert certainty.max() <= 1
    assert_array_equal(fitted.predict(new, abstain=0), labels)


def test_fitted_samples_get_their_own_labels(fitted):
    assert np.mean(fitted.predict(drawn()[1]) == fitted.labels_) > 0.97


def test_samples_like_the_fitted_ones_seldom_abstain(fitted):
    likeness = fitted.place(drawn(1000, seed=1)[1]).likeness
    # Uniform if the new samples are drawn as the fitted ones; 200 of these give a spread of .022.
    for level in (0.05, 0.1, 0.5):
        assert np.mean(likeness < level) == pytest.approx(level, abs=0.07)
    assert np.mean(fitted.predict(drawn(1000, seed=1)[1], abstain=0.01) == -1) < 0.03


def test_samples_unlike_all_abstain():
    # Unit length does not tell how far from zero a sample is.
    model = ConsensusClusterer(3, members=MEMBERS, scale="standard", random_state=0)
    model.fit(drawn()[1])
    new = drawn(20, seed=1)[1]
    new[0][:5] += 40.0
    new[1][:5] -= 40.0
    labels = model.predict(new)
    assert labels[:5].tolist() == [-1] * 5
    assert np.mean(labels[5:] >= 0) > 0.9
    assert model.predict(new, abstain=0).min() >= 0


def test_samples_are_placed_one_by_one(fitted):
    new = drawn(12, seed=1)[1]
    new[0][3] = np.nan
    whole = fitted.place(new)
    for i in range(12):
        one = fitted.place([view[i : i + 1] for view in new])
        for name in ("votes", "likeness", "certainty"):
            assert_allclose(getattr(one, name)[0], getattr(whole, name)[i], atol=1e-10)


def test_blocks_do_not_matter(fitted, monkeypatch):
    new = drawn(30, seed=1)[1]
    whole = fitted.place(new)
    monkeypatch.setattr(ties, "BLOCK", 500)  # two samples at a time
    assert_allclose(fitted.place(new).votes, whole.votes, atol=1e-10)


@pytest.mark.slow
def test_new_samples_are_scaled_by_the_fitted_means_and_spreads():
    shift, size = 100 * np.arange(6), 10.0 ** np.arange(6)
    old, new = ([size * view + shift for view in drawn(n, s)[1]] for n, s in ((200, 0), (40, 1)))
    plain = ConsensusClusterer(3, members=MEMBERS, scale="standard", random_state=0)
    plain.fit(drawn()[1])
    moved = ConsensusClusterer(3, members=MEMBERS, scale="standard", random_state=0).fit(old)
    moved.labels_ = plain.labels_
    moved.modularity_ = plain.modularity_
    few = [view[:1] for view in new]  # alone, its own mean would be itself
    wanted = plain.place([view[:1] for view in drawn(40, 1)[1]])
    assert_allclose(moved.place(few).votes, wanted.votes, rtol=1e-6)
    assert_allclose(moved.place(few).likeness, wanted.likeness)


def test_a_later_change_of_the_views_changes_nothing():
    old = drawn(60)[1]
    model = ConsensusClusterer(3, members=MEMBERS, random_state=0).fit(old)
    before = model.place(drawn(9, 1)[1])
    old[0][:] = 0
    assert_array_equal(model.place(drawn(9, 1)[1]).votes, before.votes)


# ---- views that are lacking ----------------------------------------------------------------------


def test_all_ways_to_lack_a_view_are_the_same(fitted):
    a, b, c = drawn(30, seed=1)[1]
    gone = np.full_like(b, np.nan)
    wanted = fitted.place([a, None, c])
    for new in ([a, gone, c], (a, None, c), {0: a, 2: c}, {2: c, 1: None, 0: a}):
        assert_allclose(fitted.place(new).votes, wanted.votes, rtol=1e-12)
        assert_allclose(fitted.place(new).likeness, wanted.likeness, atol=1e-12)
    truth = drawn(30, seed=1)[0]
    assert np.mean(wanted.labels == matched(fitted, drawn()[0])[truth]) > 0.9


def test_some_rows_lack_a_view(fitted):
    a, b, c = drawn(30, seed=1)[1]
    gaps = b.copy()
    gaps[::2] = np.nan
    found, without, complete = (fitted.place([a, x, c]) for x in (gaps, None, b))
    assert_allclose(found.votes[::2], without.votes[::2], rtol=1e-12)
    assert_allclose(found.votes[1::2], complete.votes[1::2], rtol=1e-12)
    assert_allclose(found.likeness[::2], without.likeness[::2], atol=1e-12)
    assert_allclose(found.likeness[1::2], complete.likeness[1::2], atol=1e-12)


def test_fitted_samples_that_lack_a_view_vote_in_the_others():
    truth, views = drawn()
    views[0][:50] = np.nan
    model = ConsensusClusterer(3, members=MEMBERS[:2], random_state=0).fit(views)
    group, new = drawn(100, seed=1)
    for given in (new, [new[0], None, None], [None, new[1], None]):
        found = model.place(given)
        assert np.mean(found.labels == matched(model, truth)[group]) > 0.85
        assert 0.3 < found.likeness.mean() < 0.7


def test_views_by_name_and_columns_by_name():
    a, b, _ = drawn()[1]
    tables = {
        "rna": pd.DataFrame(a, columns=list("abcdef")),
        "protein": pd.DataFrame(b, columns=list("uvwxyz")),
    }
    model = ConsensusClusterer(3, members=MEMBERS, random_state=0).fit(tables)
    few = {name: table[:5] for name, table in tables.items()}
    wanted = model.place(few).votes
    mixed = {"protein": few["protein"][list("zyxwvu")], "rna": few["rna"]}
    assert_allclose(model.place(mixed).votes, wanted, rtol=1e-12)
    assert_allclose(model.place([few["rna"], few["protein"]]).votes, wanted, rtol=1e-12)
    alone = model.place({"protein": mixed["protein"]}).votes
    assert_allclose(model.place([None, few["protein"]]).votes, alone, rtol=1e-12)
    with pytest.raises(ValueError, match=r"view 'protein' lacks 1 feature of the fit \('z'\)"):
        model.predict({"protein": few["protein"].rename(columns={"z": "q"})})


def test_what_new_samples_must_have(fitted):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    table.iloc[:9] = np.nan
    views = {"rna": table, ("odd", 2): sp.csr_array(rng.poisson(1.0, (40, 5)).astype(float))}
    model = ConsensusClusterer(2, members=MEMBERS[:2], random_state=0).fit(views)
    first, second = model.known_views()
    assert first[:3] == ("rna", 2, ["a", "b"])
    assert_allclose(first.medians, np.median(table[9:], axis=0))
    assert second == ("('odd', 2)", 5, None, None)
    assert [view.key for view in fitted.known_views()] == ["0", "1", "2"]
    plain = MeanGraph(2, random_state=0).fit(views)
    assert [view.medians for view in plain.known_views()] == [None, None]


def test_features_of_annotated_data_and_files_are_matched_by_name():
    anndata = pytest.importorskip("anndata")
    a = drawn(60)[1][0]
    data = anndata.AnnData(a, var=pd.DataFrame(index=list("abcdef")))
    model = ConsensusClusterer(3, members=MEMBERS, random_state=0).fit(data)
    wanted = model.place(data[:9]).votes
    assert_allclose(model.place(data[:9, list("fedcba")]).votes, wanted, rtol=1e-12)
    rows = pd.DataFrame(a, columns=list("abcdef"))
    read = load_views({"X": rows})
    assert read.columns == [list("abcdef")]
    model = ConsensusClusterer(3, members=MEMBERS, random_state=0).fit(read)
    mixed = load_views({"X": rows[:9][list("fedcba")]})
    assert_allclose(model.place(mixed).votes, wanted, rtol=1e-12)


def test_sparse_views_and_new_samples_of_the_other_kind():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=80)
    counts = rng.poisson(np.where(labels[:, None] == np.arange(12) % 2, 3.0, 0.3))
    counts[:, 0] += 1
    dense = counts.astype(float)
    new = dense[:9]
    models = [
        ConsensusClusterer(2, members=MEMBERS[:2], scale="unit", random_state=0).fit([X, dense])
        for X in (dense, sp.csr_array(dense))
    ]
    wanted = models[0].place([new, new])
    for model in models:
        for form in (np.asarray, sp.csr_array, sp.dok_array):
            with case(type(model._dictionary[0]).__name__, form.__name__):
                assert_allclose(model.place([form(new), new]).votes, wanted.votes, rtol=1e-9)
    alone = ConsensusClusterer(2, members=MEMBERS[:2], random_state=0).fit(dense)
    assert_array_equal(alone.predict(sp.dok_array(new)), alone.predict(new))  # it is a dict
    gaps = new.copy()
    gaps[4] = np.nan
    assert_allclose(models[1].place([gaps, new]).votes[:4], wanted.votes[:4], rtol=1e-9)


@pytest.mark.slow
def test_new_samples_of_published_data(omics_dir):
    """Those of breast_tcga lack the proteins; the bars are .80 and .80."""
    script = benchmark("transfer")
    (old, old_truth), (new, truth) = script.load()
    assert "protein" not in new
    model = script.fit(old, 3, 0)
    found = {told: figures for told, *figures in script.measure(model, new, old_truth, truth)}
    share, right, *_ = found["mrna and mirna"]
    assert share > 0.95
    assert right > 0.9
    assert found["in random order"][0] == 0
    assert np.mean(model.predict(old) == model.labels_) > 0.97


# ---- files, and what is refused ------------------------------------------------------------------


def test_a_saved_consensus_places_alike(fitted, tmp_path):
    again = load_model(save_model(fitted, tmp_path / "model.npz"))
    for one, other in zip(again.place(drawn(9, 1)[1]), fitted.place(drawn(9, 1)[1]), strict=True):
        assert_array_equal(one, other)


@pytest.mark.slow
def test_default_members_can_be_saved_and_predict(tmp_path):
    data = make_subspaces(60, 3, noise=0.1, random_state=0)
    model = ConsensusClusterer(3, random_state=0).fit(data.views)
    again = load_model(save_model(model, tmp_path / "model.npz"))
    assert_array_equal(again.predict(data.views), model.predict(data.views))


REFUSED = {
    "too few": (lambda a, b, c: [a, b], r"predict: got 2 views, but the model was fitted on 3 \(0"),
    "too few with None": (lambda a, b, c: [a, None], r"got 2 views, .*: give None for a view that"),
    "all None": (lambda a, b, c: [None, None, None], "every view is None: give at least one"),
    "no name": (lambda a, b, c: {}, "every view is None: give at least one"),
    "another name": (lambda a, b, c: {"x": a}, r"got 1 view, but the model was fitted on 3"),
    "widths": (lambda a, b, c: [a, None, c[:, :4]], "view 2 has 4 features, but the model was"),
    "nothing known": (
        lambda a, b, c: [np.full_like(a, np.nan), None, None],
        "samples are NaN in every view",
    ),
    "partly": (
        lambda a, b, c: [np.where(a > 2, np.nan, a), b, c],
        "view 0 contains NaN in part of a sample",
    ),
    "lengths": (lambda a, b, c: [a, b[:3], None], "The views differ in length"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_refused(why, fitted):
    change, match = REFUSED[why]
    with pytest.raises(ValueError, match=match) as caught:
        fitted.predict(change(*drawn(30, seed=1)[1]))
    assert "\n" not in str(caught.value)


def test_refused_before_any_work(fitted):
    for wrong in (-0.1, 1.5, "no", None):
        match = "abstain must be a finite number >= 0 and <= 1; got"
        with pytest.raises(ValueError, match=match):
            fitted.predict("no views", abstain=wrong)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        ConsensusClusterer(3).predict(drawn(9)[1])


def test_models_of_earlier_versions_say_so(tmp_path):
    model = ConsensusClusterer(3, members=MEMBERS, random_state=0).fit(drawn(60)[1])
    for name in ("_near", "_dictionary", "_view_scales"):
        delattr(model, name)
    again = load_model(save_model(model, tmp_path / "model.npz"))
    with pytest.raises(ValueError, match="that could not predict after a consensus: fit it again"):
        again.predict(drawn(9)[1])
