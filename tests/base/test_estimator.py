import inspect
import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from polyspan import GRMSC, METHODS
from polyspan.base import Labels, MultiViewClusterer, ScaledClusterer, fitted_names
from polyspan.datasets import make_subspaces
from polyspan.inputs.params import fitted, flag, integer, param, real
from polyspan.runtime.cache import sharing

VIEWS = make_subspaces(30, 3, random_state=0).views


class Learning(MultiViewClusterer):
    """Learns one attribute or another, depending on ``other``."""

    other: bool = param(flag, default=False)

    one_: int = fitted()
    two_: int = fitted()

    def solve(self, views, Xs):
        """Return one cluster."""
        return Labels(np.zeros(views.n_samples), extras={"two_" if self.other else "one_": 1})


def test_a_second_fit_leaves_nothing_of_the_first():
    model = Learning().fit(VIEWS)
    model.note_by_the_user = "kept"
    assert set(vars(model.set_params(other=True).fit(VIEWS))) >= {"two_", "note_by_the_user"}
    assert not hasattr(model, "one_")
    assert model.view_names_ == [str(k) for k in range(len(VIEWS))]


class Hiding(Learning):
    """Keeps something for itself."""

    _root: int = fitted()

    def solve(self, views, Xs):
        """Return one cluster."""
        extras = {} if self.other else {"_root": 1}
        return Labels(np.zeros(views.n_samples), extras=extras)


def test_a_second_fit_takes_away_what_the_first_hid():
    model = Hiding().fit(VIEWS)
    model._note_by_the_user = "kept"
    assert model._root == 1
    assert "_root" not in vars(model.set_params(other=True).fit(VIEWS))
    assert model._note_by_the_user == "kept"


@pytest.mark.parametrize("name", METHODS)
def test_attributes_are_declared_and_documented(name):
    views = VIEWS[:1] if get_tags(METHODS[name]()).single_view else VIEWS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = METHODS[name](n_clusters=3, random_state=0).fit(views)
    learned = set(vars(model)) - set(model.get_params(deep=False))
    shown = {attribute for attribute in learned if attribute.endswith("_")}
    assert learned - {"_fitted_on"} <= fitted_names(METHODS[name])
    text = inspect.getdoc(METHODS[name]).split("Attributes\n")[1]
    of_all = fitted_names(MultiViewClusterer) - {"labels_"}
    assert shown - of_all <= set(re.findall(r"\w+_\b", text))


def test_tags_say_what_a_method_takes():
    tags = {name: get_tags(cls()) for name, cls in METHODS.items()}
    assert [name for name in METHODS if tags[name].single_view] == ["lrr", "ssc"]
    assert [name for name in METHODS if tags[name].missing_views] == [
        "grmsc",
        "meangraph",
        "selfgraph",
        "nemo",
    ]
    for one in tags.values():  # and scikit-learn's own are kept
        assert one.estimator_type == "clusterer"
        assert one.input_tags.sparse


class Parent(ScaledClusterer):
    size: int = param(integer(1), default=3)
    weight: float = param(real(0), default=1.0)


class Child(Parent):
    size: int = param(integer(5), default=7)  # another check
    weight: float = 2.0  # only another default


def test_the_nearest_class_checks_a_parameter():
    assert Parent.parameter_checks()["size"](3) is None
    assert Child.parameter_checks()["size"](3) == "a whole number >= 5"
    assert Child.parameter_checks()["weight"](-1.0) == "a finite number >= 0"
    assert (Child().size, Child().weight) == (7, 2.0)


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_lists_and_vectors_may_be_part_of_a_key(kind):
    with sharing() as store:
        for weights in ([1.0, 0.5], kind([1.0, 0.5])):
            GRMSC(3, view_weights=weights, random_state=0, tol=1e-2).fit(VIEWS[:2])
        before = len(store.parts)
        GRMSC(3, view_weights=kind([0.5, 1.0]), random_state=0, tol=1e-2).fit(VIEWS[:2])
    # Two scaled views for all, and factors and a solution for either.
    assert (before, len(store.parts)) == (4, 6)
