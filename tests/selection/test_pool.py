"""The members of a consensus: their families, how views are prepared, and how they are fitted."""

import time
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp

from polyspan import (
    GRMSC,
    LRR,
    ConcatKMeans,
    ConcatSpectral,
    ConsensusClusterer,
    MeanGraph,
    SelfGraph,
)
from polyspan.base import MultiViewClusterer
from polyspan.datasets import make_subspaces
from polyspan.inputs import choice
from polyspan.inputs.views import check_views
from polyspan.runtime import memory
from polyspan.runtime.tasks import INTERRUPTED, keeps_partial
from polyspan.selection import pool
from polyspan.selection.pool import (
    chunked_pool,
    default_pool,
    fit_members,
    member_of,
    prepared,
    reduced,
)

UNIT, STANDARD = ("unit", "unit"), ("standard+unit", "unit")
DEFAULT = [
    *("mean graph", "mean graph", "self graph", "neighbors and self graph", "self graph"),
    *("neighbors and self graph", "self graph", "neighbors and self graph"),
    *("early fusion", "k-means"),
]
GIVEN = {"n_clusters": 3, "random_state": 0}


class NoFamily(MultiViewClusterer):
    """A method that no other one is like."""


@pytest.fixture(scope="module")
def planted():
    return make_subspaces(60, 3, noise=0.1, random_state=0)


# ---- which members run ---------------------------------------------------------------------------


def test_the_pool_is_the_same_for_any_number_of_samples():
    for n in (60, 4_001, 10**6):
        members = default_pool(n, [UNIT])
        assert [member.family for member in members] == DEFAULT
    settings = [
        (one.estimator.lam, one.estimator.n_neighbors)
        for one in members
        if isinstance(one.estimator, SelfGraph)
    ]
    assert settings == [(lam, k) for lam in (0.1, 1.0, 10.0) for k in (None, 10)]
    near = [one.estimator.n_neighbors for one in default_pool(12, [UNIT])[:2]]
    assert near == [10, 11]  # of 12 samples


def test_every_method_runs_in_every_scaling():
    members = default_pool(60, [UNIT, STANDARD])
    assert [member.scaling for member in members] == [UNIT, STANDARD] * 10
    assert [member.family for member in members[::2]] == DEFAULT
    # How the table says it: one word if all views have the same.
    assert {str(member.estimator.scale) for member in members} == {"unit", str(list(STANDARD))}


def test_the_thorough_pool_has_more_after_the_cheap_ones():
    members = default_pool(60, [UNIT], thorough=True)
    assert [member.family for member in members[:10]] == DEFAULT
    names = [type(member.estimator).__name__ for member in members[10:]]
    assert names == ["GRMSC", "GRMSC", "FastMICE", "SNF", "CGD"]


def test_samples_that_lack_views_have_members_that_take_them():
    families = [member.family for member in default_pool(60, [UNIT], lacking=True)]
    assert families == DEFAULT[:8]
    more = default_pool(60, [UNIT], lacking=True, thorough=True)[8:]
    assert [type(member.estimator).__name__ for member in more] == ["GRMSC"] * 2


def test_the_device_is_that_of_members_that_have_one():
    members = default_pool(60, [UNIT], device="cuda")
    assert {member.estimator.device for member in members if member.family in DEFAULT[:8]} == {
        "cuda"
    }


def test_a_family_is_that_of_the_class_or_its_name():
    assert member_of(GRMSC()).family == "subspace"
    assert member_of(NoFamily()).family == "NoFamily"


@pytest.mark.parametrize(
    ("n", "clusters", "anchors"),
    [(5_000, 10, 100), (10**6, 10, 100), (10_000, 100, 500), (10**6, 100, 200), (40_000, 100, 250)],
)
def test_anchors_suffice_and_stay_affordable(n, clusters, anchors):
    found = [one.estimator for one in chunked_pool(n, clusters, [("unit",)], False)][2:]
    assert [model.n_anchors for model in found] == [anchors] * 2
    assert [model.n_kept for model in found] == [3, 10]


# ---- how views are prepared ----------------------------------------------------------------------


def test_wide_views_are_reduced_and_have_the_same_products():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 90))
    X[7] = X[3]  # of rank 19
    found = reduced(X)
    assert found.shape == (20, 19)
    np.testing.assert_allclose(found @ found.T, X @ X.T, atol=1e-12)
    lacking = X.copy()
    lacking[5] = np.nan
    found, there = reduced(lacking), np.arange(20) != 5
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), ~there)
    np.testing.assert_allclose(found[there] @ found[there].T, (X @ X.T)[there][:, there])
    sparse = reduced(sp.csr_array(np.where(X > 1, X, 0)))
    assert isinstance(sparse, np.ndarray)
    assert reduced(X.astype(np.float32)).dtype == np.float32
    narrow = rng.normal(size=(20, 40))
    assert reduced(narrow) is narrow


def test_reduced_views_have_the_same_labels(monkeypatch):
    data = make_subspaces(40, 3, n_features=[100, 30], noise=0.3, random_state=0)
    views = check_views(data.views)
    before = [X.copy() for X in views.arrays]
    members = default_pool(40, [UNIT, STANDARD])

    def labels():
        by_scaling = {scaling: prepared(views, scaling) for scaling in (UNIT, STANDARD)}
        widths = [by_scaling[UNIT].arrays[0].shape[1]]
        return fit_members(members, views, by_scaling, GIVEN)[0].labels, widths

    found, widths = labels()
    assert widths == [40]
    monkeypatch.setattr(pool, "WIDE", 1000)
    wanted, widths = labels()
    assert widths == [100]
    np.testing.assert_array_equal(found, wanted)
    for X, same in zip(views.arrays, before, strict=True):
        np.testing.assert_array_equal(X, same)


def test_members_get_the_views_in_their_scaling(planted, monkeypatch):
    """They have the labels of single fits, which scale by themselves."""
    views = check_views(planted.views)
    by_scaling = {scaling: prepared(views, scaling) for scaling in (UNIT, STANDARD)}
    members = default_pool(60, [UNIT, STANDARD])
    found = fit_members(members, views, by_scaling, GIVEN)[0]
    for member, labels in zip(members, found.labels, strict=True):
        alone = member.estimator.set_params(**GIVEN).fit(planted.views)
        np.testing.assert_array_equal(labels, alone.labels_)


# ---- how they are fitted -------------------------------------------------------------------------

MEMBERS = [MeanGraph(), ConcatKMeans(), ConcatKMeans(scale="standard"), MeanGraph(n_neighbors=5)]


def fit(members, data, **options):
    return fit_members([member_of(one) for one in members], check_views(data), {}, GIVEN, **options)


def slow(seconds):
    """A member that is at work for some time."""

    class Slow(ConcatKMeans):
        def fit(self, X, y=None):
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                time.sleep(0.001)
            return super().fit(X, y)

    return Slow()


def test_the_table_and_labels_have_the_order_of_the_members(planted):
    plain, _ = fit(MEMBERS, planted.views)
    late, _ = fit([slow(0.1), *MEMBERS], planted.views, n_jobs=2)  # it ends after the second
    np.testing.assert_array_equal(late.labels[1:], plain.labels)
    assert [row["method"] for row in late.table[1:]] == [row["method"] for row in plain.table]
    assert not any(hasattr(one, "labels_") for one in MEMBERS)  # copies were fitted


def test_at_the_deadline_members_are_stopped_and_say_so(planted):
    members = [ConcatKMeans(), MeanGraph(), slow(60), MeanGraph()]
    deadline = time.perf_counter() + 2
    found, (other,) = fit(
        members, planted.views, deadline=deadline, reason="no time", others=[lambda: "other"]
    )
    assert other == "other"
    assert [row["status"] for row in found.table] == ["ok", "ok", "not run", "not run"]
    assert [row["reason"] for row in found.table[2:]] == ["no time"] * 2
    assert found.ran == [0, 1]
    assert found.labels.shape == (2, 60)


def test_without_time_the_first_runs_and_the_others_do_not(planted):
    beside = partial(time.sleep, 0.2)
    found, (other,) = fit(
        [slow(0.1), *MEMBERS], planted.views, deadline=0.0, n_jobs=2, others=[lambda: beside() or 1]
    )
    assert [row["status"] for row in found.table] == ["ok"] + ["not run"] * 4
    assert other is None
    assert found.labels.shape == (1, 60)


def test_without_time_the_first_that_can_runs(planted):
    found, _ = fit([LRR(), *MEMBERS], planted.views, deadline=0.0)
    assert [row["status"] for row in found.table] == ["failed", "ok"] + ["not run"] * 3


@pytest.mark.parametrize("kept", [False, True])
def test_after_ctrl_c_what_ran_is_kept_if_that_is_wanted(planted, kept):
    def ctrl_c(done, *_):
        if done == 2:
            raise KeyboardInterrupt

    members, options = [MeanGraph(), slow(60)], {"tell": ctrl_c, "others": [lambda: 1]}
    token = keeps_partial.set(kept)
    try:
        if kept:
            found, (other,) = fit(members, planted.views, **options)
            assert [row["reason"] for row in found.table] == ["", INTERRUPTED]
            assert found.ran == [0]
            assert other is None
        else:
            with pytest.raises(KeyboardInterrupt):
                fit(members, planted.views, **options)
    finally:
        keeps_partial.reset(token)


def test_an_error_in_what_runs_beside_the_members_is_raised(planted):
    with pytest.raises(ZeroDivisionError):
        fit(MEMBERS, planted.views, others=[lambda: 1 / 0])


def test_what_a_member_says_is_in_its_row(planted):
    told = [GRMSC(max_iter=2), ConcatKMeans()]
    found, _ = fit(told, planted.views, n_jobs=2)
    assert "GRMSC stopped after max_iter=2" in found.table[0]["reason"]
    assert found.table[1]["reason"] == ""


def test_progress_counts_every_member(planted):
    steps = []
    fit(MEMBERS, planted.views, tell=lambda *step: steps.append(step), others=[lambda: 1])
    assert [(done, total) for done, total, _, _ in steps] == [(k, 5) for k in range(1, 6)]
    assert steps[-1][3] == 0  # seconds left


def test_a_method_that_only_fails_is_told(planted):
    with pytest.warns(UserWarning, match=r"The only member of LRR failed .*LRR takes one view"):
        found, _ = fit([ConcatSpectral(), LRR()], planted.views)
    assert found.ran == [0]
    assert found.table[1]["status"] == "failed"


# ---- what a fit of a consensus does only once ----------------------------------------------------


@pytest.mark.filterwarnings("ignore:ConsensusClusterer. no certainty is given")
def test_memory_is_looked_at_and_scalings_are_chosen_once(monkeypatch):
    views = make_subspaces(60, 3, random_state=0).views
    looks, chosen = [], []
    look = memory._of_machine
    monkeypatch.setattr(memory, "_of_machine", lambda: looks.append(1) or look())
    monkeypatch.setattr(choice, "look_at_columns", counted(choice.look_at_columns, chosen))
    ConsensusClusterer(members=MEMBERS, random_state=0).fit(views)
    assert (len(looks), len(chosen)) == (1, len(views))
    chosen.clear()
    ConsensusClusterer(3, members=MEMBERS, scale="unit", random_state=0).fit(views)
    assert not chosen


def counted(function, calls):
    def called(*args):
        calls.append(args)
        return function(*args)

    return called
