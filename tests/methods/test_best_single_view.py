import numpy as np
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.metrics import normalized_mutual_info_score

from polyspan import GRMSC, LRR, BestSingleView, ConcatKMeans
from polyspan.base import Representation
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import make_subspaces


def mixed(n_good=2, n_noise=1, n=60):
    """Views of planted subspaces behind views of noise."""
    data = make_subspaces(
        n, 3, n_views=n_good, n_features=12, subspace_dim=2, noise=0.01, random_state=0
    )
    rng = np.random.default_rng(1)
    return [*(rng.normal(size=(n, 5)) for _ in range(n_noise)), *data.views], data.labels


def test_it_is_the_method_on_the_chosen_view():
    views, labels = mixed()
    model = BestSingleView(LRR(3, random_state=0)).fit(views)
    assert model.best_view_ in (1, 2)
    assert model.chosen_by_ == "agreement"
    wanted = LRR(3, random_state=0).fit(views[model.best_view_])
    np.testing.assert_array_equal(model.labels_, wanted.labels_)
    assert model.n_iter_ == wanted.n_iter_
    assert model.best_estimator_ is model.estimators_[model.best_view_]
    assert normalized_mutual_info_score(labels, model.labels_) == pytest.approx(1)


def test_agreement_by_hand():
    views, _ = mixed()
    model = BestSingleView(LRR(3, random_state=0)).fit(views)
    alone = [LRR(3, random_state=0).fit(view) for view in views]
    mean = sum(one.affinity_matrix_ / one.affinity_matrix_.sum() for one in alone)
    joint = spectral_clustering(mean, 3, random_state=0)
    found = [one.labels_ for one in alone]
    wanted = [
        np.mean([normalized_mutual_info_score(found[k], found[j]) for j in range(3) if j != k]
                + [normalized_mutual_info_score(found[k], joint)])
        for k in range(3)
    ]  # fmt: skip
    # the mean of the same numbers in another order, or divided by 3 in another way
    np.testing.assert_allclose(model.scores_, wanted, rtol=1e-12)
    assert model.best_view_ == np.argmax(wanted)


def test_of_two_views_the_joint_clustering_decides():
    views, _ = mixed(1, 1)
    model = BestSingleView(LRR(3, random_state=0)).fit(views)
    assert model.best_view_ == 1
    assert model.scores_[1] > model.scores_[0]


def test_one_view():
    views, _ = mixed(1, 0)
    model = BestSingleView(LRR(3, random_state=0)).fit(views)
    assert (model.best_view_, model.scores_) == (0, [1.0])


def test_oracle_takes_the_labels():
    views, labels = mixed()
    # labels that only the noise view explains
    odd = LRR(3, random_state=0).fit_predict(views[0])
    model = BestSingleView(LRR(3, random_state=0), oracle=True)
    assert model.fit(views, odd).best_view_ == 0
    assert model.chosen_by_ == "labels"
    assert model.scores_[0] == pytest.approx(1)
    model.fit(views, labels)
    alone = [LRR(3, random_state=0).fit_predict(view) for view in views]
    wanted = [normalized_mutual_info_score(labels, one) for one in alone]
    np.testing.assert_allclose(model.scores_, wanted, rtol=1e-12)


def test_labels_are_ignored_without_oracle():
    views, labels = mixed()
    one = BestSingleView(LRR(3, random_state=0)).fit(views)
    two = BestSingleView(LRR(3, random_state=0)).fit(views, labels[::-1])
    assert one.scores_ == two.scores_


def test_oracle_without_labels():
    views, labels = mixed()
    with pytest.raises(ValueError, match=r"^BestSingleView: oracle=True .* pass them as y"):
        BestSingleView(LRR(3), oracle=True).fit(views)
    with pytest.raises(ValueError, match=r"^y has 59 labels for 60 samples"):
        BestSingleView(LRR(3), oracle=True).fit(views, labels[:-1])


def test_own_parameters_go_to_the_method():
    views, _ = mixed(1, 0)
    inner = LRR(2, random_state=1)
    model = BestSingleView(inner, n_clusters=3, random_state=5).fit(views)
    assert model.best_estimator_.get_params()["n_clusters"] == 3
    assert model.best_estimator_.get_params()["random_state"] == 5
    assert (inner.n_clusters, inner.random_state) == (2, 1)
    assert not hasattr(inner, "labels_")
    kept = BestSingleView(inner).fit(views).best_estimator_
    assert (kept.n_clusters, kept.random_state) == (2, 1)


def test_the_default_is_lrr():
    views, _ = mixed(1, 0)
    model = BestSingleView(n_clusters=3, random_state=0).fit(views)
    assert isinstance(model.best_estimator_, LRR)


@pytest.mark.parametrize(
    "inner",
    [
        GRMSC(3, random_state=0),
        GRMSC(3, affinity="sparse", random_state=0),
        ConcatKMeans(3, random_state=0),
        KMeans(3, n_init=3, random_state=0),
        DBSCAN(eps=0.5),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_any_clusterer(inner):
    views, _ = mixed()
    model = BestSingleView(inner).fit(views)
    assert model.labels_.shape == (60,)
    assert len(model.scores_) == len(model.estimators_) == 3


def test_an_affinity_of_zeros_is_no_division_by_zero():
    class Nothing(LRR):
        """Finds nothing."""

        def solve(self, views, Xs):
            return Representation(np.zeros((views.n_samples, views.n_samples)), n_iter=1)

    views, _ = mixed()
    labels = BestSingleView(Nothing(3, random_state=0)).fit_predict(views)
    assert set(labels) <= {0, 1, 2}


def test_errors_of_the_method_name_the_view():
    views, _ = mixed()
    views = {"a": views[0], "b": views[1] * 1e200}
    with pytest.raises(ValueError, match="view 'b' has values of size"):
        BestSingleView(LRR(3, scale=None)).fit(views)


def test_errors_of_the_methods_parameters():
    views, _ = mixed()
    with pytest.raises(
        ValueError, match=r"LRR: lam must be a finite number >= 1e-50 and <= 1e.50; got -1"
    ):
        BestSingleView(LRR(3, lam=-1)).fit(views)
    with pytest.raises(ValueError, match="LRR: n_clusters=61 is more than n_samples=60"):
        BestSingleView(LRR(61)).fit(views)


def test_zero_samples_warn_once_and_by_the_right_name():
    views, _ = mixed()
    views[2] = views[2].copy()
    views[2][7] = 0
    with pytest.warns(UserWarning, match=r"1 in view 2, row 7\)") as caught:
        BestSingleView(LRR(3, random_state=0)).fit(views)
    assert len(caught) == 1


def test_memory_is_that_of_the_method():
    many = np.arange(2_000_000.0)[:, None] + 1
    with pytest.raises(MemoryError, match="BestSingleView on 2000000 samples needs"):
        BestSingleView(LRR()).fit(many)
    for inner in (KMeans(3), ConcatKMeans(3)):  # these hold no n x n matrix
        assert BestSingleView(inner).check(many).n_samples == 2_000_000
