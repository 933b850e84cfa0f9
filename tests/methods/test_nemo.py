import numpy as np
import pytest
from late_fusion import clouds, distances, kernel, shares, tied_views, unit
from numpy.testing import assert_allclose

from polyspan import NEMO
from polyspan.datasets import load_dataset
from polyspan.methods.nemo import relative_similarities
from polyspan.metrics import clustering_scores


def literal(X, k, mu):
    """Relative similarities of a view by the definitions."""
    D = distances(unit(X))
    A, nearest = shares(D, k)
    W, R = kernel(D, nearest, mu), np.zeros_like(D)
    for i in range(len(D)):
        for j in range(len(D)):
            R[i, j] = A[i, j] * W[i, j] / sum(A[i, r] * W[i, r] for r in range(len(D)))
    return R


@pytest.mark.parametrize(("k", "mu"), [(3, 0.5), (8, 0.3)])
def test_equals_the_definition(k, mu):
    views = tied_views()
    W = NEMO(2, n_neighbors=k, mu=mu, random_state=0).fit(views).affinity_matrix_.toarray()
    assert_allclose(W, sum(R + R.T for R in (literal(X, k, mu) for X in views)) / 6, atol=1e-10)


def test_the_order_of_the_samples_does_not_matter():
    views, order = tied_views(), np.random.default_rng(1).permutation(40)
    model = NEMO(2, n_neighbors=6, random_state=0)
    W = model.fit(views).affinity_matrix_.toarray()
    shuffled = model.fit([X[order] for X in views]).affinity_matrix_.toarray()
    assert_allclose(shuffled, W[np.ix_(order, order)], atol=1e-10)


def test_every_sample_has_the_same_weight_to_give():
    X = np.random.default_rng(0).normal(size=(40, 3))
    X[0] += 100  # far from all others
    R = relative_similarities(X, 5, 0.5)
    assert_allclose(R.sum(axis=1), 1)
    assert R.nnz == 200
    assert_allclose(relative_similarities(7 * X, 5, 0.5).toarray(), R.toarray(), atol=1e-12)


def test_a_kernel_too_narrow_for_any_link_leaves_zeros():
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert_allclose(relative_similarities(X, 5, 1e-3).toarray(), 0)


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_recovered_with_missing_views(seed):
    views, truth = clouds(seed=seed)
    views[0][:20], views[1][30:50] = np.nan, np.nan
    model = NEMO(3, random_state=0).fit(views)
    assert clustering_scores(truth, model.labels_)["acc"] == 1
    W = model.affinity_matrix_.toarray()
    assert not W[:20, 30:50].any()  # no view in common
    R = relative_similarities(unit(views[1]), 20, 0.5).toarray()
    assert_allclose(W[:20, 50:], ((R + R.T) / 2)[:20, 50:], atol=1e-12)


def test_figures_of_published_data(data_dir):
    data = load_dataset("ngs")
    labels = NEMO(5, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["nmi"] == pytest.approx(0.953, abs=0.01)
