"""Starts of k-means for all restarts at once."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans, kmeans_plusplus

from polyspan.clustering import spectral
from polyspan.clustering.spectral import greedy_starts, restarted


@pytest.mark.parametrize("c", [1, 2, 7, 20])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_the_starts_are_those_of_scikit_learn(c, kind):
    X = np.random.RandomState(1).normal(size=(150, 6)).astype(kind)
    rng = np.random.RandomState(2)
    theirs = [kmeans_plusplus(X, c, random_state=rng)[0] for _ in range(5)]
    other = np.random.RandomState(2)
    np.testing.assert_array_equal(greedy_starts(X, c, 5, other), theirs)
    assert rng.randint(1000) == other.randint(1000)  # as many numbers were drawn


def test_a_start_has_no_sample_twice_while_others_are_left():
    X = np.repeat(np.arange(4.0), 25)[:, None]
    for one in greedy_starts(X, 4, 10, np.random.RandomState(0)):
        assert sorted(one[:, 0]) == [0, 1, 2, 3]


@pytest.mark.parametrize("n_rows", [40, 300])
def test_labels_are_those_of_scikit_learn_on_both_sides_of_the_bound(n_rows, monkeypatch):
    monkeypatch.setattr(spectral, "FEW", 100)
    Y = np.random.RandomState(0).normal(size=(n_rows, 4))
    mine = restarted(Y, 6, 8, 3).fit(Y)
    assert callable(mine.init) == (n_rows <= 100)
    theirs = KMeans(6, n_init=8, random_state=3).fit(Y)
    np.testing.assert_array_equal(mine.labels_, theirs.labels_)
    assert mine.inertia_ == theirs.inertia_


def test_sparse_rows_are_left_to_scikit_learn():
    Y = sp.csr_array(np.eye(5))
    assert restarted(Y, 2, 3, 0).fit(Y).labels_.shape == (5,)


def test_a_second_fit_draws_its_starts_anew():
    Y = np.random.RandomState(0).normal(size=(60, 3))
    model = restarted(Y, 4, 3, 5)
    np.testing.assert_array_equal(model.fit(Y).labels_, model.fit(Y).labels_)
