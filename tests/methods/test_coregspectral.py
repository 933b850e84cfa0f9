import warnings

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from polyspan import CoRegSpectral
from polyspan.clustering.spectral import cluster_rows, spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs.proximity import median_kernel, normalized
from polyspan.methods.coregspectral import solve_coregspectral
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run

VARIANTS = ["pairwise", "centroid"]


@pytest.mark.parametrize(("variant", "nmi"), [("pairwise", 0.60), ("centroid", 0.59)])
def test_reaches_the_known_figures(data_dir, variant, nmi):
    data = load_dataset("three_sources")
    # The authors' program averages single starts of k-means: 20 starts have .64 in both variants.
    model = CoRegSpectral(data.n_clusters, variant=variant, n_init=1, random_state=0)
    model.fit(data.views)
    found = [
        cluster_rows(model.embedding_, data.n_clusters, n_init=1, random_state=seed)
        for seed in range(4)
    ]
    assert np.array_equal(found[0], model.labels_)
    scores = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    assert np.mean(scores) == pytest.approx(nmi, abs=0.03)


def kernels(n=20, dims=(2, 3, 5), seed=0):
    """Normalized kernels of a few views of the same samples."""
    rng = np.random.default_rng(seed)
    return [normalized(median_kernel(rng.normal(size=(n, d)))) for d in dims]


def top(A, c):
    return scipy.linalg.eigh(A)[1][:, -c:]


def literal(Ls, c, lam_agreement, variant, iterations, as_released=False):
    """The recursion on projections, which do not depend on signs or rotations of eigenvectors."""
    m = len(Ls)
    order = [*range(1, m), 0] if as_released and variant == "pairwise" else range(m)
    Ps = [top(L, c) @ top(L, c).T for L in Ls]
    star = top(sum(Ps), c) @ top(sum(Ps), c).T
    for _ in range(iterations):
        for v in order:
            near = star if variant == "centroid" else sum(Ps[w] for w in range(m) if w != v)
            U = top(Ls[v] + lam_agreement * near, c)
            Ps[v] = U @ U.T
        star = top(sum(Ps), c) @ top(sum(Ps), c).T
    return [*Ps, star] if variant == "centroid" else Ps


@pytest.mark.parametrize("as_released", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("iterations", [1, 5, 10])
def test_equals_the_literal_algorithm(variant, iterations, as_released):
    Ls = kernels()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run = Run("", iterations, 0.0)
        own = {"lam_agreement": 0.1, "variant": variant, "as_released": as_released}
        Us = solve_coregspectral(Ls, 3, **own, run=run)
    wanted = literal(Ls, 3, 0.1, variant, iterations, as_released)
    for U, P in zip(Us, wanted, strict=True):
        assert_allclose(U @ U.T, P, rtol=0, atol=1e-10)  # rounding over small eigenvalue gaps


@pytest.mark.parametrize("variant", VARIANTS)
def test_as_released_makes_all_iterations_without_a_warning(variant):
    views = make_subspaces(30, 3, random_state=0).views
    model = CoRegSpectral(3, variant=variant, as_released=True, max_iter=10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(views)
    assert model.n_iter_ == 10
    # The median of all n^2 distances, those of a sample to itself included.
    Ls = []
    for X in views:
        X = X / np.linalg.norm(X, axis=1, keepdims=True)
        distance = np.linalg.norm(X[:, None] - X[None], axis=2)
        K = np.exp(-(distance**2) / (2 * np.median(distance) ** 2))
        Ls.append(K / np.sqrt(np.outer(K.sum(axis=1), K.sum(axis=1))))
    Ps = literal(Ls, 3, 0.01, variant, 10, as_released=True)
    units = [P / np.sqrt(np.outer(np.diag(P), np.diag(P))) for P in Ps]
    # Inner products of rows scaled to unit length. Rounding over small eigenvalue gaps.
    wanted = units[-1] if variant == "centroid" else sum(units)
    if variant == "pairwise":
        found = model.embedding_ @ model.embedding_.T
        assert_allclose(found, wanted, rtol=0, atol=1e-8)
    else:
        U = model.embedding_ / np.linalg.norm(model.embedding_, axis=1, keepdims=True)
        assert_allclose(U @ U.T, wanted, rtol=0, atol=1e-8)


def test_the_first_view_comes_last_as_released():
    run = {"lam_agreement": 0.5, "variant": "pairwise"}
    one, two = (
        solve_coregspectral(kernels(), 3, **run, as_released=x, run=Run("", 1, 0.0))[0]
        for x in (False, True)
    )
    assert np.abs(one @ one.T - two @ two.T).max() > 1e-3


def objective(Ls, Us, lam_agreement, variant):
    own = sum(np.trace(U.T @ L @ U) for L, U in zip(Ls, Us[: len(Ls)], strict=True))
    if variant == "centroid":
        return own + lam_agreement * sum(np.linalg.norm(U.T @ Us[-1]) ** 2 for U in Us[:-1])
    both = sum(np.linalg.norm(U.T @ V) ** 2 for U in Us for V in Us if V is not U)
    return own + lam_agreement * both / 2


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_objective_rises_and_the_history_says_by_how_much(variant):
    Ls = kernels()
    values = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for iterations in range(1, 8):
            run = Run("", iterations, 0.0)
            Us = solve_coregspectral(Ls, 3, lam_agreement=0.2, variant=variant, run=run)
            values.append(objective(Ls, Us, 0.2, variant))
    rises = np.array(values[1:]) / values[:-1] - 1
    assert rises.min() > -1e-14  # rounding
    assert rises[0] > 1e-6
    assert_allclose(run.history["rise"][1:], rises, rtol=0, atol=1e-13)  # rounding
    assert run.history["rise"][0] > 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_embedding_is_the_best_for_the_others_at_the_end(variant):
    Ls = kernels()
    lam_agreement = 0.2
    Us = solve_coregspectral(
        Ls, 3, lam_agreement=lam_agreement, variant=variant, run=Run("", 5000, 1e-15)
    )
    best = objective(Ls, Us, lam_agreement, variant)
    rng = np.random.default_rng(0)
    for k, U in enumerate(Us):
        assert_allclose(U.T @ U, np.eye(3), rtol=0, atol=1e-12)  # rounding
        for _ in range(20):
            other = np.linalg.qr(U + 0.01 * rng.normal(size=U.shape))[0]
            tried = [*Us[:k], other, *Us[k + 1 :]]
            assert objective(Ls, tried, lam_agreement, variant) < best


def test_strong_agreement_makes_the_embeddings_one():
    for variant in VARIANTS:
        Us = solve_coregspectral(
            kernels(), 3, lam_agreement=1e3, variant=variant, run=Run("", 2000, 1e-8)
        )
        Ps = [U @ U.T for U in Us]
        # what is left of the differences is of the order 1 / lam_agreement
        assert max(np.abs(P - Ps[0]).max() for P in Ps) < 1e-2


def test_one_view_is_spectral_clustering():
    data = make_subspaces(60, 3, n_views=1, noise=0.3, random_state=0)
    unit = data.views[0] / np.linalg.norm(data.views[0], axis=1, keepdims=True)
    wanted = spectral_clustering(median_kernel(unit), 3, random_state=0)
    for variant in VARIANTS:
        labels = CoRegSpectral(3, variant=variant, random_state=0).fit_predict(data.views)
        assert clustering_scores(wanted, labels)["acc"] == 1


def test_no_weight_is_spectral_clustering_of_every_view():
    Ls = kernels()
    for L, U in zip(
        Ls, solve_coregspectral(Ls, 3, lam_agreement=0.0, variant="pairwise"), strict=True
    ):
        assert_allclose(U @ U.T, top(L, 3) @ top(L, 3).T, rtol=0, atol=1e-10)  # rounding


@pytest.mark.parametrize("variant", VARIANTS)
def test_recovers_planted_clusters_with_the_defaults(variant):
    # Half-lines instead of planes: a Gaussian kernel sees distances, not subspaces.
    data = make_subspaces(120, 4, subspace_dim=1, noise=0.01, random_state=0)
    views = [X * np.sign(X[:, :1]) for X in data.views]
    model = CoRegSpectral(4, variant=variant, random_state=0).fit(views)
    assert clustering_scores(data.labels, model.labels_)["acc"] == 1.0
    assert model.embedding_.shape == (120, 4 if variant == "centroid" else 8)
    if variant == "pairwise":
        lengths = np.linalg.norm(model.embedding_.reshape(120, 2, 4), axis=2)
        assert_allclose(lengths, 1, rtol=0, atol=1e-12)  # rounding


def test_other_array_libraries_find_the_same():
    strict = pytest.importorskip("array_api_strict")
    views = make_subspaces(45, 3).views
    for variant in VARIANTS:
        wanted = CoRegSpectral(3, variant=variant, random_state=0).fit(views)
        found = CoRegSpectral(3, variant=variant, random_state=0)
        found.fit([strict.asarray(X) for X in views])
        one, two = np.asarray(found.embedding_), wanted.embedding_
        assert_allclose(one @ one.T, two @ two.T, rtol=0, atol=1e-8)  # small eigenvalue gaps
        assert clustering_scores(wanted.labels_, found.labels_)["acc"] == 1
