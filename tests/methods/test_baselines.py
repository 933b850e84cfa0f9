import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.metrics import adjusted_rand_score

from polyspan import ConcatKMeans, ConcatSpectral
from polyspan.inputs.scaling import scale_views
from polyspan.inputs.views import check_views
from polyspan.methods.baselines import side_by_side


def blobs(n=60, seed=0):
    """Three well separated groups, seen in two views of very different size."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    views = [5 * np.eye(3, d)[truth] + 0.5 * rng.normal(size=(n, d)) for d in (4, 7)]
    return [views[0], 1000 * views[1]], truth


@pytest.mark.parametrize("scale", ["unit", "standard+unit", "standard", None])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_every_view_is_scaled_by_itself(make, scale):
    views = check_views([make(view) for view in blobs()[0]])
    whole = side_by_side(scale_views(views, scale))
    dense = whole.toarray() if sp.issparse(whole) else whole
    wanted = scale_views(check_views(blobs()[0]), scale)
    np.testing.assert_allclose(dense, np.hstack(wanted), rtol=1e-14)
    assert sp.issparse(whole) == (make is sp.csr_array and scale in ("unit", None))


def test_one_sparse_view_makes_all_sparse():
    views = check_views([sp.csr_array(blobs()[0][0]), blobs()[0][1]])
    assert sp.issparse(side_by_side(scale_views(views, "unit")))


def test_k_means_is_scikit_learns():
    views, truth = blobs()
    model = ConcatKMeans(3, n_init=5, random_state=7).fit(views)
    whole = np.hstack([view / np.linalg.norm(view, axis=1, keepdims=True) for view in views])
    wanted = KMeans(3, n_init=5, random_state=7).fit(whole)
    np.testing.assert_array_equal(model.labels_, wanted.labels_)
    assert model.n_iter_ == wanted.n_iter_
    assert adjusted_rand_score(truth, model.labels_) == 1


def test_k_means_starts_as_often_as_asked():
    X = np.random.default_rng(0).normal(size=(60, 5))  # no clusters: every start ends elsewhere
    model = ConcatKMeans(8, n_init=1, scale=None, random_state=0).fit([X])
    wanted = KMeans(8, n_init=1, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_, wanted.labels_)
    more = ConcatKMeans(8, scale=None, random_state=0).fit([X])
    assert adjusted_rand_score(more.labels_, wanted.labels_) < 1


@pytest.mark.parametrize("k", [None, 5, 59])
def test_spectral_is_scikit_learns(k):
    views, truth = blobs()
    model = ConcatSpectral(3, n_neighbors=k, n_init=5, random_state=7).fit(views)
    whole = np.hstack([view / np.linalg.norm(view, axis=1, keepdims=True) for view in views])
    wanted = SpectralClustering(
        3, affinity="nearest_neighbors", n_neighbors=k or 10, n_init=5, random_state=7
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        wanted.fit(whole)
    # The same clusters; their numbers differ where the graph falls into them by itself.
    assert adjusted_rand_score(wanted.labels_, model.labels_) == 1
    np.testing.assert_array_equal(
        model.affinity_matrix_.toarray(), wanted.affinity_matrix_.toarray()
    )
    if k != 59:  # then the graph is nearly complete
        assert adjusted_rand_score(truth, model.labels_) == 1


def test_without_scaling_the_larger_view_rules():
    views, truth = blobs()
    noise = np.random.default_rng(1).normal(size=(60, 3)) * 1e6
    scaled = ConcatKMeans(3, random_state=0).fit_predict([*views, noise])
    assert adjusted_rand_score(truth, scaled) == 1
    unscaled = ConcatKMeans(3, scale=None, random_state=0).fit_predict([*views, noise])
    assert adjusted_rand_score(truth, unscaled) < 0.3


def test_as_many_clusters_as_samples_still_has_a_graph():
    model = ConcatSpectral(6, random_state=0).fit(blobs(6)[0])
    assert sorted(model.labels_) == list(range(6))
    assert model.affinity_matrix_.shape == (6, 6)


@pytest.mark.parametrize("cls", [ConcatKMeans, ConcatSpectral])
def test_many_samples_need_no_square_matrix(cls):
    # 2,000,000 samples pass the memory check (2e6 x 2e6 floats would be 32 TB)
    assert cls().check(np.arange(2_000_000.0)[:, None] + 1).n_samples == 2_000_000


def test_many_samples_are_not_left_to_a_factorization(monkeypatch):
    views, truth = blobs()
    noisy = [X + np.random.default_rng(2).normal(size=X.shape) for X in views]
    model = ConcatSpectral(3, n_neighbors=30, random_state=0).fit(noisy)  # in one piece
    monkeypatch.setattr("polyspan.methods.baselines.FACTORIZED_UP_TO", 59)

    def never(*args, **kwargs):
        raise AssertionError("scikit-learn's solver ran")

    monkeypatch.setattr("polyspan.methods.baselines.SpectralClustering", never)
    found = ConcatSpectral(3, n_neighbors=30, random_state=0).fit(noisy)
    assert adjusted_rand_score(found.labels_, model.labels_) > 0.9
    assert adjusted_rand_score(found.labels_, truth) > 0.9
