import array_api_strict as strict
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from polyspan.clustering import spectral
from polyspan.clustering.spectral import (
    component_clustering,
    kmeans,
    left_singular,
    spectral_clustering,
    spectral_embedding,
)


def blocks(sizes=(7, 9, 11), link=0.02, seed=0):
    """Weights near 1 inside groups and near `link` between them."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    W = np.random.default_rng(seed).uniform(0.8, 1.2, size=(len(truth), len(truth)))
    W = np.where(truth[:, None] == truth, W, link * W)
    return W + W.T, truth


def naive(W, c):
    """Eigenvectors of the smallest eigenvalues of I - D^-1/2 W D^-1/2, rows to unit length."""
    root = np.diag(W.sum(1) ** -0.5)
    Y = np.linalg.eigh(np.eye(len(W)) - root @ W @ root)[1][:, :c]
    return Y / np.linalg.norm(Y, axis=1, keepdims=True)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csr_matrix, strict.asarray])
def test_embedding(make):
    W, _ = blocks()
    Y, wanted = spectral_embedding(make(W), 3), naive(W, 3)
    # eigenvectors are known up to a rotation: compare inner products
    np.testing.assert_allclose(Y @ Y.T, wanted @ wanted.T, atol=1e-10)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_the_solver_for_many_samples_agrees_with_the_dense_one(make, monkeypatch):
    W, _ = blocks()
    monkeypatch.setattr(spectral, "EXACT_BELOW", 5)
    monkeypatch.delattr(spectral, "highest_eigenpairs")  # it must not be asked
    Y, wanted = spectral_embedding(make(W), 3), naive(W, 3)
    np.testing.assert_allclose(Y @ Y.T, wanted @ wanted.T, atol=1e-10)


def test_the_dense_solver_answers_when_arpack_gives_up(monkeypatch):
    def gives_up(*args, **kwargs):
        raise ArpackNoConvergence("no", np.empty(0), np.empty((0, 0)))

    W, _ = blocks()
    monkeypatch.setattr(spectral, "EXACT_BELOW", 5)
    monkeypatch.setattr(spectral, "eigsh", gives_up)
    Y, wanted = spectral_embedding(sp.csr_array(W), 3), naive(W, 3)
    np.testing.assert_allclose(Y @ Y.T, wanted @ wanted.T, atol=1e-10)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, strict.asarray])
@pytest.mark.parametrize("scale", [1e-290, 1.0, 1e290])
def test_clusters_are_found_at_any_scale(scale, make):
    W, truth = blocks()
    labels = spectral_clustering(make(W * scale), 3, random_state=0)
    assert adjusted_rand_score(truth, labels) == 1


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, strict.asarray])
def test_samples_without_affinity_stay_zero(make):
    W, truth = blocks()
    W[3], W[:, 3] = 0, 0
    Y = spectral_embedding(make(W), 3)
    assert np.all(Y[3] == 0)
    labels = spectral_clustering(make(W), 3, random_state=0)
    others = np.arange(len(W)) != 3
    assert adjusted_rand_score(truth[others], labels[others]) == 1


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_no_affinity_at_all_still_gives_labels(make):
    labels = spectral_clustering(make(np.zeros((6, 6))), 2, random_state=0)
    assert set(labels) <= {0, 1}


@pytest.mark.parametrize("n_clusters", [1, 2, 27])
def test_labels_are_in_range(n_clusters):
    W, _ = blocks()
    labels = spectral_clustering(W, n_clusters, random_state=0)
    assert labels.shape == (27,)
    assert labels.dtype.kind == "i"
    assert set(labels) <= set(range(n_clusters))


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, strict.asarray])
def test_what_is_only_rounding_is_left_out(make):
    # rank 2, so that the third eigenvector could be anything
    side = np.arange(12) % 2
    W = np.where(side[:, None] == side, 1.0, 0.1)
    Y = spectral_embedding(make(W), 3)
    np.testing.assert_allclose(Y @ Y.T, naive(W, 2) @ naive(W, 2).T, atol=1e-13)
    noisy = W + 1e-16 * np.random.default_rng(0).normal(size=(12, 12))
    found = spectral_clustering(noisy + noisy.T, 3, random_state=0)
    assert adjusted_rand_score(side, found) == 1


def test_nearly_equal_eigenvalues():
    # LAPACK's solver for a few eigenvectors may return none of them here
    for size in (1e-16, 1e-12, 1e-9, 1e-6):
        noise = np.random.default_rng(0).uniform(size=(200, 200))
        noise[noise < 0.9] = 0
        W = np.eye(200) + size * (noise + noise.T)
        assert spectral_embedding(W, 3).shape == (200, 3)


def test_fewer_vectors_than_asked_for_are_asked_for_again(monkeypatch):
    W, _ = blocks()
    eigh = scipy.linalg.eigh
    monkeypatch.setattr(
        scipy.linalg, "eigh", lambda A, **kwargs: [x[..., :0] for x in eigh(A, **kwargs)]
    )
    Y, wanted = spectral_embedding(W, 3), naive(W, 3)
    np.testing.assert_allclose(Y @ Y.T, wanted @ wanted.T, atol=1e-10)


def test_same_seed_same_labels():
    W = np.random.default_rng(0).uniform(size=(40, 40))
    one, two = (spectral_clustering(W + W.T, 5, n_init=1, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one, two)


def test_input_is_not_modified():
    W, _ = blocks()
    before = W.copy()
    W.setflags(write=False)
    spectral_clustering(W, 3, random_state=0)
    np.testing.assert_array_equal(W, before)


def test_components():
    W, truth = blocks(link=0.0)
    one_way = np.triu(W)  # a link in one direction is a link
    np.testing.assert_array_equal(component_clustering(one_way, 3), truth)
    order = np.random.default_rng(0).permutation(len(W))
    labels = component_clustering(W[np.ix_(order, order)], 3)
    assert adjusted_rand_score(truth[order], labels) == 1


@pytest.mark.parametrize("n_clusters", [2, 5])
def test_another_number_of_components(n_clusters):
    W, _ = blocks(link=0.0)
    match = f"has 3 connected components instead of n_clusters={n_clusters}"
    with pytest.warns(ConvergenceWarning, match=match):
        labels = component_clustering(W, n_clusters, random_state=0)
    assert set(labels) <= set(range(n_clusters))


def test_weak_links_are_left_to_spectral_clustering():
    W, truth = blocks()
    with pytest.warns(ConvergenceWarning, match="has 1 connected components instead of"):
        labels = component_clustering(W, 3, random_state=0)
    assert adjusted_rand_score(truth, labels) == 1


def test_rows_are_clustered_by_direction():
    directions = np.eye(3)[np.repeat([0, 1, 2], 10)]
    lengths = np.random.default_rng(0).uniform(0.01, 100, size=(30, 1))
    labels = spectral.cluster_rows(strict.asarray(lengths * directions), 3, random_state=0)
    assert adjusted_rand_score(labels, np.repeat([0, 1, 2], 10)) == 1
    assert np.array_equal(spectral.unit_rows(np.zeros((2, 3))), np.zeros((2, 3)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_left_singular_vectors(dtype):
    rng = np.random.default_rng(0)
    n = 2**14 + 100  # more than one block
    Z = (rng.normal(size=(n, 6)) * [9, 7, 5, 3, 2, 1]).astype(dtype)
    U = left_singular(Z, 3)
    assert U.dtype == dtype
    wanted = np.linalg.svd(Z.astype(float), full_matrices=False)[0][:, :3]
    # Each is known up to its sign. Rounding, divided by the gaps between singular values:
    atol = 1e-12 if dtype == np.float64 else 1e-6
    np.testing.assert_allclose(np.abs(np.sum(U * wanted, axis=0)), 1, atol=atol)


def test_left_singular_vectors_that_are_not_there():
    Z = np.outer(np.arange(1.0, 9), [1, 2, 3])
    U = left_singular(Z, 5)  # rank 1, 3 columns, 5 asked for
    assert U.shape == (8, 5)
    np.testing.assert_allclose(np.abs(U[:, 0]), np.arange(1, 9) / 204**0.5, rtol=1e-12)
    assert not U[:, 1:].any()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_kmeans_of_a_sample_and_of_all(make):
    rng = np.random.default_rng(0)
    truth = np.arange(600) % 3
    Y = make(10 * np.eye(3)[truth] + rng.normal(size=(600, 3)))
    for sample in (600, 100):
        model = kmeans(Y, 3, n_init=2, random_state=0, sample=sample)
        assert adjusted_rand_score(truth, model.labels_) == 1
        # the last run is one on all rows: its centers are their means
        means = [Y[model.labels_ == k].mean(axis=0) for k in range(3)]
        np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-12)
        again = kmeans(Y, 3, n_init=2, random_state=0, sample=sample)
        np.testing.assert_array_equal(again.labels_, model.labels_)
