import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from polyspan import GRMSC, METHODS, NEMO, AnchorGRMSC, MeanGraph
from polyspan.base import Labels, MultiViewClusterer, Outcome
from polyspan.datasets import make_subspaces
from polyspan.graphs import knn
from polyspan.inputs import scaling
from polyspan.inputs.views import check_views
from polyspan.methods import grmsc
from polyspan.runtime.cache import Store, fingerprint, shared, sharing

VIEWS = make_subspaces(60, 3, random_state=0).views


@pytest.fixture
def calls(monkeypatch):
    """Count what is factored and solved."""
    counts = {"factor_grmsc": 0, "solve_grmsc": 0}
    plain = {name: getattr(grmsc, name) for name in counts}
    for name in counts:

        def counting(*args, name=name, **kwargs):
            counts[name] += 1
            return plain[name](*args, **kwargs)

        monkeypatch.setattr(grmsc, name, counting)
    return counts


GRID = [
    {"lam1": 1.0, "lam2": 10.0},
    {"lam1": 10.0, "lam2": 10.0},
    {"lam1": 10.0, "lam2": 100.0},
    {"lam1": 10.0, "lam2": 100.0, "affinity": "sparse"},
    {"lam1": 10.0, "lam2": 100.0, "n_neighbors": 5},
    {"lam1": 10.0, "lam2": 100.0, "n_neighbors": 5, "orientation": "published"},
    {"lam1": 10.0, "lam2": 100.0, "n_neighbors": 5, "alpha": 0.1},
    {"lam1": 10.0, "lam2": 100.0, "n_neighbors": 5, "second_width": "first"},
    {"lam1": 10.0, "lam2": 100.0, "n_neighbors": 5, "regularizer": "first_order"},
    {"lam1": 10.0, "lam2": 100.0, "n_neighbors": 5, "scale": "standard+unit"},
    {"lam1": 10.0, "lam2": 100.0, "n_neighbors": 5, "graph_scale": "standard+unit"},
    {"lam1": 10.0, "regularizer": "none"},
    {"lam1": 10.0, "lam2": 0.0},
    {"lam1": 10.0, "lam2": 100.0, "mu0": 1e-2},
    {"lam1": 10.0, "lam2": 100.0, "rho": 1.5},
    {"lam1": 10.0, "lam2": 100.0, "tol": 1e-4},
]


@pytest.mark.slow
def test_shared_fits_are_the_same_to_the_bit(calls):
    alone = [GRMSC(3, random_state=0, **params).fit(VIEWS) for params in GRID]
    calls.update(factor_grmsc=0, solve_grmsc=0)
    with sharing():
        together = [GRMSC(3, random_state=0, **params).fit(VIEWS) for params in GRID]
    for a, b in zip(alone, together, strict=True):
        assert_array_equal(a.representation_, b.representation_)
        assert_array_equal(a.labels_, b.labels_)
        assert (a.n_iter_, a.history_) == (b.n_iter_, b.history_)
    # The first four share one factorization, so do the two without a graph, and the last three
    # that of the first; the sparse affinity is solved already.
    assert calls == {"factor_grmsc": 9, "solve_grmsc": 15}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_is_the_same_shared(name):
    views = VIEWS[:1] if get_tags(METHODS[name]()).single_view else VIEWS
    seeds = {"n_clusters": 3, "random_state": 1}, {"n_clusters": 3, "random_state": 0}
    counts = {"n_clusters": 2, "random_state": 0}, {"n_clusters": 5, "random_state": 0}
    makes = [*seeds, *counts, seeds[0]]

    def fits():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return [METHODS[name](**params).fit(views) for params in makes]

    alone = fits()
    with sharing():
        together = fits()
    for a, b in zip(alone, together, strict=True):
        assert_array_equal(a.labels_, b.labels_)
        assert vars(a).keys() == vars(b).keys()
        if hasattr(a, "representation_"):
            assert_array_equal(a.representation_, b.representation_)


def test_a_solution_serves_all_numbers_of_clusters(calls):
    alone = [GRMSC(c, random_state=0).fit(VIEWS) for c in (2, 3, 5)]
    assert calls == {"factor_grmsc": 3, "solve_grmsc": 3}
    with sharing():
        together = [GRMSC(c, random_state=0).fit(VIEWS) for c in (2, 3, 5)]
    assert calls == {"factor_grmsc": 4, "solve_grmsc": 4}
    for a, b in zip(alone, together, strict=True):
        assert_array_equal(a.representation_, b.representation_)
        assert_array_equal(a.labels_, b.labels_)


def test_a_method_shares_between_numbers_of_clusters_only_if_it_says_so():
    solved = []

    class Counting(MultiViewClusterer):
        """A method whose solution depends on the number of clusters, without declaring anything."""

        def solve(self, views, Xs):
            solved.append(self.n_clusters)
            return Labels(np.arange(views.n_samples) % self.n_clusters)

    class Promising(Counting):
        solve_counts = False

    views = check_views(VIEWS)
    with sharing():
        found = [Counting(c).fit(views).labels_.max() + 1 for c in (2, 3, 2)]
    assert (found, solved) == ([2, 3, 2], [2, 3])
    with sharing():
        found = [Promising(c).fit(views).labels_.max() + 1 for c in (2, 3)]
    # n_clusters is not part of the description, so solve sees its default.
    assert (found, solved) == ([8, 8], [2, 3, 8])


def test_a_block_inside_another_goes_on_with_it(calls):
    with sharing() as outer:
        with sharing(limit=1) as inner:
            GRMSC(3).fit(VIEWS)
        GRMSC(3).fit(VIEWS)
    assert inner is outer
    assert calls["solve_grmsc"] == 1
    with sharing() as later:
        assert later is not outer


def test_other_data_are_other_data(calls):
    with sharing():
        for factor in (1.0, -1.0):
            GRMSC(3).fit([factor * VIEWS[0], VIEWS[1]])
        GRMSC(3).fit(VIEWS[::-1])
    assert calls == {"factor_grmsc": 3, "solve_grmsc": 3}


def test_names_of_views_and_graphs_are_not_mixed_up(calls):
    graphs = [np.ones((60, 60)) - np.eye(60)] * len(VIEWS)
    with sharing():
        GRMSC(3).fit(VIEWS)
        named = GRMSC(3).fit({f"view {k}": X for k, X in enumerate(VIEWS)})
        assert named.view_names_ == [f"view {k}" for k in range(len(VIEWS))]
        assert calls["solve_grmsc"] == 1
        weighted = GRMSC(3, view_weights=[1.0, 0.5]).fit(VIEWS[:2])
        plain = GRMSC(3).fit(VIEWS[:2])
        assert np.abs(weighted.representation_ - plain.representation_).max() > 1e-4
        given = [GRMSC(3, graphs=[scale * W for W in graphs]).fit(VIEWS) for scale in (1.0, 0.5)]
    assert np.abs(given[0].representation_ - given[1].representation_).max() > 1e-6


def test_nothing_is_shared_outside(calls):
    for _ in range(2):
        GRMSC(3).fit(VIEWS)
    assert calls == {"factor_grmsc": 2, "solve_grmsc": 2}


def test_a_model_that_is_fitted_again_shares_all_it_sets():
    # A small number is one object wherever it is set, so that setting it again changes nothing.
    data = make_subspaces(60, 3, random_state=0)
    with sharing():
        one = GRMSC(3, n_neighbors=5, tol=1e-2).fit(data.views)
        other = GRMSC(3, n_neighbors=5).fit(data.views)
        iterations = other.n_iter_
        assert other.set_params(n_neighbors=6).fit(data.views).n_iter_ == iterations != one.n_iter_
        one.set_params(n_neighbors=6, tol=1e-6).fit(data.views)
    assert one.n_iter_ == len(one.history_["data"]) == iterations


def test_a_shared_solution_warns_again():
    with sharing():
        for _ in range(2):
            with pytest.warns(ConvergenceWarning, match="max_iter=3"):
                model = GRMSC(3, max_iter=3).fit(VIEWS)
            assert model.n_iter_ == 3
    with sharing(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            GRMSC(3).fit(VIEWS)


def test_fingerprint_sees_content_kind_and_shape():
    X = np.arange(6.0)
    same = fingerprint([X.reshape(2, 3)])
    assert fingerprint([np.asfortranarray(X.reshape(2, 3))]) == same
    others = [
        [X.reshape(3, 2)],
        [X.reshape(2, 3).astype("f4")],
        [X.reshape(2, 3) + 1e-15],
        [sp.csr_array(X.reshape(2, 3))],
        [X.reshape(2, 3)] * 2,
    ]
    assert len({same, *map(fingerprint, others)}) == 6
    assert fingerprint([[1, 2]]) is None


def test_the_least_recently_used_part_goes_first():
    store = Store(2)
    for name in ("a", "b", "a", "c"):
        store.get(name, lambda name=name: name, 1)
    assert list(store.parts) == ["a", "c"]
    store.get("large", lambda: "large", 3)  # more than everything
    assert list(store.parts) == ["a", "c"]


def double(what, arrays):
    """A part that says with what it was made."""
    return what, 2 * arrays[0]


def triple(what, arrays):
    return what, 3 * arrays[0]


def test_function_description_and_content_are_the_key():
    with sharing() as store:
        X = np.arange(3.0)
        one = shared(double, ("k", 3), [X], 1)
        assert shared(double, ("k", 3), [X.copy()], 1) is one
        X[0] = 7.0  # the same array, other content
        others = [
            shared(double, ("k", 3), [X], 1),
            shared(double, ("k", 4), [X], 1),
            shared(triple, ("k", 4), [X], 1),
        ]
        assert [what for what, _ in others] == [("k", 3), ("k", 4), ("k", 4)]
        assert [found[0] for _, found in others] == [14.0, 14.0, 21.0]
        assert len(store.parts) == 4
    assert shared(double, ("k", 3), [X], 1, instead=lambda: "quicker") == "quicker"  # nobody shares


def test_data_that_are_not_known_are_not_shared():
    xp = pytest.importorskip("array_api_strict")
    with sharing() as store:
        found = [shared(double, "k", [xp.asarray([x])], 1)[1] for x in (1.0, 2.0)]
    assert [float(x[0]) for x in found] == [2.0, 4.0]
    assert not store.parts


def test_saved_counts_what_nested_parts_had_cost(monkeypatch):
    clock = iter([0.0, 1.0, 5.0, 7.0])  # inner starts, ends; outer starts, ends
    monkeypatch.setattr("polyspan.runtime.cache.time.perf_counter", lambda: next(clock))
    store = Store(9)
    store.get("inner", lambda: 1, 1)
    store.get("outer", lambda: store.get("inner", lambda: 1, 1), 1)
    assert store.saved == 1.0
    store.get("outer", lambda: 1, 1)
    assert store.saved == 1.0 + 3.0  # 2 of its own and 1 of the inner part


def test_a_sparse_solution_counts_what_it_holds():
    views = make_subspaces(400, 3, random_state=0).views
    with sharing(limit=400 * 400 * 8) as store:  # one dense matrix of all samples
        for k in (5, 10, 15):
            MeanGraph(3, n_neighbors=k, random_state=0).fit(views)
    made = [value for value, _, _ in store.parts.values() if isinstance(value, Outcome)]
    assert len(made) == 3
    assert store.size < 400 * 400 * 8


def test_a_view_is_scaled_once_for_all_fits(monkeypatch):
    scaled, plain = [], scaling.scale_view
    monkeypatch.setattr(scaling, "scale_view", lambda *given: scaled.append(given) or plain(*given))
    with sharing():
        labels = [method(3, random_state=0).fit(VIEWS).labels_ for method in (MeanGraph, NEMO)]
    assert len(scaled) == len(VIEWS)
    alone = [method(3, random_state=0).fit(VIEWS).labels_ for method in (MeanGraph, NEMO)]
    assert_array_equal(labels, alone)


def test_large_views_are_not_kept_scaled(monkeypatch):
    monkeypatch.setattr(scaling, "SHARED_UP_TO", 0)
    with sharing() as store:
        scaling.scale_views(check_views(VIEWS), "unit")
    assert not store.parts


def test_anchors_use_the_neighbors_that_another_method_found(monkeypatch):
    views, searched = make_subspaces(2_100, 3, random_state=0).views, []
    plain = knn._among
    monkeypatch.setattr(knn, "_among", lambda *given: searched.append(given) or plain(*given))
    with sharing():
        MeanGraph(3, random_state=0).fit(views)
        assert len(searched) == len(views)
        AnchorGRMSC(3, n_anchors=20, dtype="float32", random_state=0).fit(views)
    assert len(searched) == len(views)
