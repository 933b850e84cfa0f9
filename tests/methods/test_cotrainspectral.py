import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from polyspan import CoTrainSpectral
from polyspan.clustering.spectral import cluster_rows, spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs.proximity import median_kernel
from polyspan.methods.cotrainspectral import solve_cotrainspectral
from polyspan.metrics import clustering_scores


def test_reaches_the_known_figure(data_dir):
    data = load_dataset("three_sources")
    # The authors' program averages single starts of k-means: 20 starts have .638.
    model = CoTrainSpectral(data.n_clusters, n_init=1, random_state=0).fit(data.views)
    found = [
        cluster_rows(model.embedding_, data.n_clusters, n_init=1, random_state=seed)
        for seed in range(4)
    ]
    assert np.array_equal(found[0], model.labels_)
    scores = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    assert np.mean(scores) == pytest.approx(0.60, abs=0.03)


def kernels(n=20, dims=(2, 3, 5), seed=0, width=0.3):
    """Kernels of a few views of the same samples, narrow, so that S can have negative entries."""
    rng = np.random.default_rng(seed)
    return [median_kernel(rng.normal(size=(n, d)), width) for d in dims]


def literal(Ks, c, p, rounds):
    """The rounds as the paper prints them; projections on the c leading vectors."""

    def vectors(S, k):
        root = np.diag(1 / np.sqrt(S.sum(axis=1)))
        return scipy.linalg.eigh(root @ S @ root)[1][:, ::-1][:, :k]

    Ss = Ks
    for _ in range(rounds):
        Us = [vectors(S, p) for S in Ss]
        new = []
        for v, K in enumerate(Ks):
            S = sum(U @ U.T for w, U in enumerate(Us) if w != v) @ K
            new.append(np.maximum((S + S.T) / 2, 0))
        Ss = new
    return [vectors(S, c) @ vectors(S, c).T for S in Ss]


@pytest.mark.parametrize(("c", "p"), [(3, 3), (3, 5), (4, 2)])
@pytest.mark.parametrize("rounds", [1, 4])
def test_equals_the_literal_algorithm(c, p, rounds):
    Ks = kernels()
    Us = solve_cotrainspectral(Ks, c, p, n_rounds=rounds)
    for U, P in zip(Us, literal(Ks, c, p, rounds), strict=True):
        assert U.shape == (20, c)
        assert_allclose(U @ U.T, P, rtol=0, atol=1e-10)  # rounding over small eigenvalue gaps


def test_projected_on_half_as_many_again_by_default():
    views = make_subspaces(45, 3, noise=0.3).views
    found = CoTrainSpectral(3, random_state=0).fit(views).embedding_
    five = CoTrainSpectral(3, n_projected=5, random_state=0).fit(views).embedding_
    three = CoTrainSpectral(3, n_projected=3, random_state=0).fit(views).embedding_
    assert np.array_equal(found, five)
    lengths = np.linalg.norm(found.reshape(45, 2, 3), axis=2)
    assert_allclose(lengths, 1, rtol=0, atol=1e-12)  # rounding
    assert not np.allclose(found @ found.T, three @ three.T, atol=1e-3)


def test_one_view_is_spectral_clustering():
    data = make_subspaces(60, 3, n_views=1, noise=0.3, random_state=0)
    unit = data.views[0] / np.linalg.norm(data.views[0], axis=1, keepdims=True)
    wanted = spectral_clustering(median_kernel(unit), 3, random_state=0)
    labels = CoTrainSpectral(3, random_state=0).fit_predict(data.views)
    assert clustering_scores(wanted, labels)["acc"] == 1


def test_a_view_learns_from_the_other():
    # Four half-lines; the first view confuses clusters 0 and 1, the second 2 and 3.
    data = make_subspaces(120, 4, subspace_dim=1, noise=0.01, random_state=0)
    one, two = (X * np.sign(X[:, :1]) for X in data.views)
    one[data.labels == 1] = np.random.default_rng(0).permutation(one[data.labels == 0])
    two[data.labels == 3] = np.random.default_rng(1).permutation(two[data.labels == 2])
    for single in (one, two):
        labels = CoTrainSpectral(4, random_state=0).fit_predict(single)
        assert clustering_scores(data.labels, labels)["acc"] < 0.9
    labels = CoTrainSpectral(4, random_state=0).fit_predict([one, two])
    assert clustering_scores(data.labels, labels)["acc"] > 0.95


def test_other_array_libraries_find_the_same():
    strict = pytest.importorskip("array_api_strict")
    views = make_subspaces(45, 3).views
    wanted = CoTrainSpectral(3, random_state=0).fit(views)
    found = CoTrainSpectral(3, random_state=0).fit([strict.asarray(X) for X in views])
    one, two = np.asarray(found.embedding_), wanted.embedding_
    assert_allclose(one @ one.T, two @ two.T, rtol=0, atol=1e-8)  # small eigenvalue gaps
    assert clustering_scores(wanted.labels_, found.labels_)["acc"] == 1
