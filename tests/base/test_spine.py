import numpy as np
import pytest

from polyspan import GRMSC
from polyspan.base import MultiViewClusterer, ScaledClusterer
from polyspan.datasets import make_subspaces
from polyspan.inputs.params import flag, integer, param, real
from polyspan.solvers.cache import sharing
from polyspan.solvers.loop import Solution

VIEWS = make_subspaces(30, 3, random_state=0).views


class Learning(MultiViewClusterer):
    """Learns one attribute or another, depending on ``other``."""

    other: bool = param(flag, default=False)

    def solve(self, views, Xs):
        """Return one cluster."""
        return Solution(np.zeros(views.n_samples), extras={"two_" if self.other else "one_": 1})


def test_a_second_fit_leaves_nothing_of_the_first():
    model = Learning().fit(VIEWS)
    model.note_by_the_user = "kept"
    assert set(vars(model.set_params(other=True).fit(VIEWS))) >= {"two_", "note_by_the_user"}
    assert not hasattr(model, "one_")
    assert model.view_names_ == [str(k) for k in range(len(VIEWS))]


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
    assert (before, len(store.parts)) == (2, 4)  # factors and a solution for either
