"""The members of a consensus: their families, how long the rest will take, and which are kept."""

import numpy as np
import pytest

from polyspan import GRMSC, ConcatKMeans, ConsensusClusterer, MeanGraph
from polyspan.base import MultiViewClusterer
from polyspan.datasets import make_subspaces
from polyspan.inputs import choice
from polyspan.inputs.views import check_views
from polyspan.runtime import memory
from polyspan.runtime.cache import held_bytes
from polyspan.selection import pool
from polyspan.selection.evidence import all_of
from polyspan.selection.pool import default_pool, fit_members, member_of, new_row, seconds_left


class NoFamily(MultiViewClusterer):
    """A method that no other one is like."""


def row(model, seconds, status="ok"):
    return new_row(member_of(model)) | {"status": status, "seconds": seconds}


def test_the_time_left_is_that_of_like_members():
    table = [row(MeanGraph(), 0.1), row(MeanGraph(), 0.3), row(GRMSC(), 9.0)]
    table.append(row(GRMSC(), 1000.0, "failed"))
    assert seconds_left(table, [MeanGraph()]) == 0.2
    assert seconds_left(table, [GRMSC(lam1=5.0), GRMSC(), MeanGraph()]) == 18.2
    assert seconds_left(table[:2], [GRMSC(), GRMSC()]) == 0.4  # nothing better is known
    assert seconds_left([row(GRMSC(), 3.0, "failed")], [GRMSC()]) is None


def test_a_family_is_that_of_the_class_or_what_the_pool_says():
    views = check_views(make_subspaces(60, 3, random_state=0).views)
    members = default_pool(all_of(views), 3, [("unit", "unit")], "exact")
    families = {member.family for member in members if isinstance(member.estimator, GRMSC)}
    assert families == {"subspace", "first order"}
    assert member_of(GRMSC(regularizer="first_order")).family == "subspace"
    assert member_of(NoFamily()).family == "NoFamily"


# ---- what a fit of a consensus does only once ----------------------------------------------------


MEMBERS = [MeanGraph(), ConcatKMeans(), ConcatKMeans(scale="standard"), MeanGraph(n_neighbors=5)]


def fit_calls(monkeypatch):
    """Count the fits of the members."""
    fits, plain = [], MultiViewClusterer.fit

    def fit(self, X, y=None):
        fits.append(type(self).__name__)
        return plain(self, X, y)

    monkeypatch.setattr(MultiViewClusterer, "fit", fit)
    return fits


@pytest.mark.filterwarnings("ignore:ConsensusClusterer. no certainty is given")
def test_the_winner_is_fitted_again_only_if_it_was_not_kept(monkeypatch):
    views = make_subspaces(90, 3, noise=0.1, random_state=0).views
    fits = fit_calls(monkeypatch)
    model = ConsensusClusterer(3, members=MEMBERS, random_state=0).fit(views)
    assert len(fits) == 1 + len(MEMBERS)
    best, labels = model.best_estimator_, model.labels_
    fits.clear()
    monkeypatch.setattr(pool, "KEPT_BYTES", 0)
    model.fit(views)
    assert len(fits) == 1 + len(MEMBERS) + 1
    assert type(model.best_estimator_) is type(best)
    np.testing.assert_array_equal(model.best_estimator_.labels_, best.labels_)
    np.testing.assert_array_equal(model.labels_, labels)
    assert vars(model.best_estimator_).keys() == vars(best).keys()


def test_members_are_kept_up_to_a_limit():
    views = check_views(make_subspaces(90, 3, random_state=0).views)
    members, params = [member_of(one) for one in MEMBERS], {"n_clusters": 3, "random_state": 0}
    every = fit_members(members, views, params)
    assert all(hasattr(one, "labels_") for one in every.models)
    size = held_bytes([vars(one) for one in every.models[:2]], set(map(id, views.arrays)))
    some = fit_members(members, views, params, limit=size)
    assert [hasattr(one, "labels_") for one in some.models[:2]] == [True, True]
    assert not all(hasattr(one, "labels_") for one in some.models)
    np.testing.assert_array_equal(some.labels, every.labels)
    assert not any(hasattr(one, "labels_") for one in MEMBERS)  # copies were fitted


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
