import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin

import polyspan
from polyspan import GRMSC, TSVDMSC
from polyspan.audit import ORDERS, OrderEffect, effect_table, order_effect, plot_effects
from polyspan.datasets import load_dataset, make_subspaces

DATA = make_subspaces(60, 3, subspace_dim=2, noise=0.05, random_state=0)


class Peeking(ClusterMixin, BaseEstimator):
    """Clusters are thirds of the file."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y=None):
        n = X[0].shape[0]
        self.labels_ = np.arange(n) * 3 // n
        return self


class Plain:
    """No scikit-learn, no parameters; remembers what it was given."""

    seen = []

    def fit_predict(self, views):
        self.seen.append(views)
        return (views[0][:, 0] > 0).astype(int)


def test_a_method_that_goes_by_the_order_is_found():
    found = order_effect(Peeking(), DATA.views, DATA.labels, random_state=0)
    assert found.scores["sorted by class"] == [pytest.approx(1)] * 5
    assert np.mean(found.scores["shuffled"]) < 0.2
    assert found.effect > 0.8
    assert not found.blind
    assert found.verdict.startswith("Peeking sees the order of the samples: NMI 1.000 sorted by ")
    assert found.verdict.count(".") == 3  # two numbers, one sentence


def test_a_method_that_does_not_is_not():
    found = order_effect(GRMSC(3), DATA.views, DATA.labels, n_orders=3, random_state=0)
    assert found.name == "GRMSC"
    assert found.blind
    assert abs(found.effect) < 0.005
    assert found.verdict.startswith("GRMSC does not see the order of the samples: NMI ")


def test_anything_with_fit_predict_on_a_list_of_views():
    Plain.seen.clear()
    views = [DATA.views[0], pd.DataFrame(DATA.views[1]), sp.csr_array(DATA.views[0])]
    found = order_effect(Plain(), views, DATA.labels, n_orders=2, random_state=0)
    assert found.blind
    assert found.name == "Plain"
    assert len(Plain.seen) == 6
    for one, two, three in Plain.seen:  # the same samples in all views
        rows = [int(np.flatnonzero((DATA.views[0] == row).all(axis=1))[0]) for row in one]
        np.testing.assert_array_equal(two.to_numpy(), DATA.views[1][rows])
        np.testing.assert_array_equal(three.toarray(), one)
    by_class, given, shuffled = (Plain.seen[k][0] for k in range(3))
    np.testing.assert_array_equal(given, DATA.views[0])
    order = [int(np.flatnonzero((DATA.views[0] == row).all(axis=1))[0]) for row in by_class]
    assert np.all(np.diff(DATA.labels[order]) >= 0)
    assert not np.array_equal(by_class, Plain.seen[3][0])  # within the classes it is shuffled
    assert not np.array_equal(shuffled, Plain.seen[5][0])


class Seeds(Peeking):
    """Remembers its seeds."""

    seen = []

    def fit(self, X, y=None):
        self.seen.append(self.random_state)
        return super().fit(X)


def test_seeds_differ_between_runs_and_not_between_orders():
    Seeds.seen.clear()
    model = Seeds(random_state=1)
    one = order_effect(model, DATA.views, DATA.labels, n_orders=3, random_state=0)
    seeds = np.reshape(Seeds.seen, (3, 3))
    assert np.all(seeds == seeds[:, :1])
    assert len(set(seeds[:, 0])) == 3
    assert model.random_state == 1
    assert not hasattr(model, "labels_")
    assert one == order_effect(model, DATA.views, DATA.labels, n_orders=3, random_state=0)
    assert one != order_effect(model, DATA.views, DATA.labels, n_orders=3, random_state=1)


def effect(by_class, shuffled):
    return OrderEffect("Mine", {ORDERS[0]: by_class, ORDERS[1]: shuffled, ORDERS[2]: shuffled})


def test_the_standard_error_is_that_of_a_difference_of_means():
    found = effect([0.5, 0.7, 0.9], [0.4, 0.5, 0.6])
    assert found.effect == pytest.approx(0.2)
    assert found.error == pytest.approx(np.sqrt((0.04 + 0.01) / 3))
    assert found.chance == pytest.approx(4.6041 * found.error, rel=1e-4)  # of Student's table


def test_verdicts():
    assert not effect([0.51, 0.51], [0.5, 0.5]).blind
    assert effect([0.5049, 0.5049], [0.5, 0.5]).blind  # negligible, however sure
    assert not effect([0.5, 0.5], [0.6, 0.6]).blind  # sorted is worse: it sees it all the same
    noise = effect([0.3, 0.9], [0.2, 0.8])
    assert noise.blind
    assert noise.verdict.startswith("Mine shows no effect of the order beyond the noise: NMI 0.600")


def test_chance_is_rarely_called_an_effect():
    rng = np.random.default_rng(0)
    draws = rng.normal(0.5, 0.1, size=(2000, 2, 5))
    wrong = np.mean([not effect(*map(list, one)).blind for one in draws])
    assert wrong < 0.02  # one in a hundred is meant; its standard error here is .002


def test_the_table_has_a_row_per_method():
    rows = effect_table([effect([0.5, 0.7], [0.4, 0.4]), effect([1.0, 1.0], [0.0, 0.0])])
    header, _, one, two = rows.splitlines()
    assert header.startswith("| method | sorted by class | as given | shuffled | sorted - shuffled")
    assert one.startswith("| Mine | 0.600 (0.141) | 0.400 (0.000) | 0.400 (0.000) | +0.200 |")
    assert two.endswith("| +1.000 | 0.000 |")


def test_the_plot_has_all_scores_and_marks_those_that_see_the_order():
    ax = plot_effects([effect([0.9, 0.9], [0.5, 0.5]), effect([0.5, 0.7], [0.5, 0.7])])
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in dots[:3]] == [[0.9, 0.9], [0.5, 0.5], [0.5, 0.5]]
    links = [line for line in ax.lines if line.get_marker() == "None"]
    assert [list(map(float, line.get_xdata())) for line in links] == [[0.9, 0.5]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(ORDERS)
    assert effect([0.5, 0.7], [0.5, 0.7]).plot(ax) is ax


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        ({"estimator": GRMSC}, TypeError, "estimator must be an object with fit_predict"),
        ({"estimator": "grmsc"}, TypeError, "estimator must be an object with fit_predict"),
        ({"views": DATA.views[0]}, TypeError, "views must be a list of views; got ndarray"),
        ({"labels": DATA.labels[1:]}, ValueError, "view 0 has 60 samples, but there are 59 labels"),
        ({"labels": np.zeros(60)}, ValueError, "labels has one class only"),
        ({"n_orders": 1}, ValueError, "n_orders must be an integer >= 2; got 1"),
        ({"n_orders": 2.5}, ValueError, "n_orders must be an integer >= 2; got 2.5"),
    ],
)
def test_bad_arguments(change, error, told):
    given = {"estimator": GRMSC(3), "views": DATA.views, "labels": DATA.labels} | change
    with pytest.raises(error, match=f"^order_effect: {told}"):
        order_effect(**given)


def test_importing_polyspan_is_enough():
    assert polyspan.audit.order_effect is order_effect


@pytest.mark.slow
def test_what_the_audit_is_for(data_dir):
    data = load_dataset("msrc_v1")
    model = TSVDMSC(7, sample_order="file", n_init=5)
    found = order_effect(model, data.views, data.labels, n_orders=2, random_state=0)
    assert found.effect > 0.2
    assert not found.blind
