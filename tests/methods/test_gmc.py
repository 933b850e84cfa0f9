import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from polyspan import GMC
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs.proximity import squared_distances
from polyspan.methods.gmc import _zscore, solve_gmc
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run

METRICS = ("nmi", "acc", "f_score", "avg_entropy", "precision", "rand_index")

# The published rows; the method is deterministic.
PUBLISHED = {
    "three_sources": (0.6216, 0.6923, 0.6047, 1.0375, 0.4844, 0.7556),
    "bbcsport": (0.7954, 0.7390, 0.7207, 0.6450, 0.5728, 0.8204),
    "movies617": (0.2334, 0.1864, 0.1242, 3.3795, 0.0682, 0.3995),
    "ngs": (0.9392, 0.9820, 0.9643, 0.1413, 0.9642, 0.9858),
    "prokaryotic": (0.1934, 0.4955, 0.4607, 1.3169, 0.4467, 0.5611),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_equals_the_published_rows(data_dir, name):
    data = load_dataset(name)
    model = GMC(n_clusters=data.n_clusters).fit(data.views)
    scores = clustering_scores(data.labels, model.labels_)
    assert tuple(round(scores[metric], 4) for metric in METRICS) == PUBLISHED[name]


def on_the_simplex(row):
    """Projection by bisection on the level."""
    low, high = row.min() - 1, row.max()
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.maximum(row - level, 0).sum() > 1 else (low, level)
    return np.maximum(row - high, 0)


def literal(Xs, c, k, lam, iterations):
    """The recursion row by row; ties go by row numbers, and the first in a row is left out."""
    m, n = len(Xs), len(Xs[0])
    # Distances to eleven digits, so that ties are the same ones everywhere.
    D = [squared_distances(X, rounded=True) for X in Xs]
    near = [np.argsort(d, axis=1, kind="stable")[:, 1 : k + 2] for d in D]
    S = np.zeros((m, n, n))
    w = [1 / m] * m

    def s_step(U):
        S[:] = 0
        for v in range(m):
            for i, j in enumerate(near[v]):
                e = D[v][i, j] - 2 * w[v] * U[i, j]
                S[v, i, j[:k]] = np.maximum((e[k] - e[:k]) / (k * e[k] - e[:k].sum()), 0)

    def low(U):
        A = (U + U.T) / 2
        return np.linalg.eigh(np.diag(A.sum(1)) - A)

    s_step(np.zeros((n, n)))
    U = S.mean(0)
    F = low(U)[1][:, :c]
    for _ in range(iterations):
        s_step(U)
        w = [1 / (2 * np.sqrt(((U - S[v]) ** 2).sum())) for v in range(m)]
        U = np.zeros((n, n))
        for i in range(n):
            j = np.flatnonzero(S[:, i].sum(0))
            f = ((F[i] - F[j]) ** 2).sum(1)
            U[i, j] = on_the_simplex(
                np.mean([S[v, i, j] - lam / (2 * m * w[v]) * f for v in range(m)], axis=0)
            )
        values, V = low(U)
        if values[:c].sum() > 1e-10:
            lam, F = 2 * lam, V[:, :c]
        elif values[: c + 1].sum() < 1e-10:
            lam = lam / 2
        else:
            break
    return U, w


def noise(n=40, dims=(3, 5), seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for d in dims]


@pytest.mark.parametrize("iterations", [1, 2, 4, 5, 20])
@pytest.mark.parametrize("lam_components", [0.1, 1.0, 1000.0])  # the last must be halved
def test_equals_the_literal_recursion(iterations, lam_components):
    Xs, c, k = noise(), 3, 6
    wanted, w = literal(Xs, c, k, lam_components, iterations)
    run = Run("GMC", iterations, 1e-10)
    U, found = solve_gmc(Xs, c, k=k, lam_components=lam_components, run=run)
    assert run.converged or iterations <= 5
    assert not run.converged or iterations >= 5
    assert_allclose(U, wanted, rtol=0, atol=1e-8)  # distances and eigenvectors round differently
    assert_allclose(found, w, rtol=1e-8)


def test_as_released_equals_the_rule_of_the_program_on_3_sources(data_dir):
    data = load_dataset("three_sources")
    Xs = [_zscore(X, "") for X in data.views]
    wanted, _ = literal(Xs, 6, 15, 1.0, 20)
    assert_allclose(solve_gmc(Xs, 6, as_released=True)[0], wanted, rtol=0, atol=1e-6)
    one, two = (GMC(6, as_released=released).fit(data.views) for released in (True, False))
    assert_allclose(one.affinity_matrix_, (wanted + wanted.T) / 2, rtol=0, atol=1e-6)
    assert np.abs(two.affinity_matrix_ - one.affinity_matrix_).max() > 0.1
    assert clustering_scores(one.labels_, two.labels_)["ari"] == 1


def test_as_released_equals_the_literal_recursion_where_distances_tie():
    rng = np.random.default_rng(3)
    Xs = [rng.poisson(2.0, (30, d)).astype(float) for d in (5, 6)]
    for iterations in (1, 5, 20):
        wanted, w = literal(Xs, 3, 6, 1.0, iterations)
        run = Run("GMC", iterations, 1e-10)
        U, found = solve_gmc(Xs, 3, k=6, as_released=True, run=run)
        assert_allclose(U, wanted, rtol=0, atol=1e-8)
        assert_allclose(found, w, rtol=1e-8)
    assert np.abs(solve_gmc(Xs, 3, k=6)[0] - U).max() > 1e-2


def test_samples_as_far_as_the_next_one_are_no_neighbors():
    X = np.array([[0.0], [1.0], [-1.0], [5.0], [6.0], [4.0]])
    # Only where all are equally far they share the weight.
    assert_allclose(solve_gmc([X], 2, k=1)[0][0], [0, 0.5, 0.5, 0, 0, 0], rtol=0, atol=1e-12)
    X = np.array([[0.0], [1.0], [3.0], [-3.0]])
    assert_allclose(solve_gmc([X], 1, k=2)[0][0], [0, 1, 0, 0], rtol=0, atol=1e-12)


def test_the_graph_is_a_graph():
    model = GMC(n_clusters=3, scale=None, n_neighbors=6).fit(noise())
    U = solve_gmc(noise(), 3, k=6)[0]
    assert U.min() >= 0
    assert_allclose(U.sum(axis=1), 1, rtol=1e-12)
    assert_array_equal(model.affinity_matrix_, (U + U.T) / 2)
    assert np.count_nonzero(U, axis=1).max() <= 12  # neighbors of two views
    apart = model.labels_[:, None] != model.labels_[None, :]
    assert not model.affinity_matrix_[apart].any()
    assert len(set(model.labels_)) == 3
    # the stopping rule: three eigenvalues are zero, the fourth is not
    L = np.diag(model.affinity_matrix_.sum(0)) - model.affinity_matrix_
    values = np.linalg.eigvalsh(L)
    assert values[2] < 1e-10 < values[3]
    assert model.history_["eigenvalues"][-1] == pytest.approx(values[:3].sum(), abs=1e-13)
    assert len(model.history_["excess"]) == model.n_iter_


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_recovered(seed):
    data = make_subspaces(90, 3, n_features=[20, 30], subspace_dim=2, noise=0.01, random_state=seed)
    labels = GMC(n_clusters=3, n_neighbors=8).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["acc"] == 1


def test_zscore_forgets_offset_and_size_of_every_sample():
    views = noise(dims=(4, 7))
    rng = np.random.default_rng(1)
    moved = [X * rng.uniform(0.1, 9, size=(40, 1)) + rng.normal(size=(40, 1)) for X in views]
    one, two = (GMC(n_clusters=3, n_neighbors=6).fit(X) for X in (views, moved))
    assert_allclose(one.affinity_matrix_, two.affinity_matrix_, rtol=0, atol=1e-8)
    plain = GMC(n_clusters=3, n_neighbors=6, scale=None).fit(views)
    assert np.abs(plain.affinity_matrix_ - one.affinity_matrix_).max() > 0.1


def test_zscore_leaves_one_and_two_features():
    views = noise(dims=(1, 2))
    one, two = (GMC(n_clusters=3, n_neighbors=6, scale=s).fit(views) for s in ("zscore", None))
    assert_array_equal(one.affinity_matrix_, two.affinity_matrix_)


def test_a_constant_sample_and_huge_values():
    views = noise(dims=(4, 7))
    views[0][3] = 0.1
    model = GMC(n_clusters=3, n_neighbors=6).fit(views)
    assert np.isfinite(model.affinity_matrix_).all()
    huge = GMC(n_clusters=3, n_neighbors=6).fit([X * 2.0**1000 for X in views])
    assert_array_equal(huge.affinity_matrix_, model.affinity_matrix_)


def test_too_few_iterations_fall_back_on_spectral_clustering():
    model = GMC(n_clusters=3, n_neighbors=6, max_iter=1, random_state=0)
    match = "1 connected components instead of n_clusters=3"
    with pytest.warns(ConvergenceWarning, match=match) as caught:
        model.fit(noise())
    assert {one.filename for one in caught} == {__file__}  # it points at the call
    assert set(model.labels_) == {0, 1, 2}


def test_more_components_than_clusters_cannot_be_joined():
    X = np.repeat(np.arange(4.0), 10)[:, None] * 100 + np.random.default_rng(0).normal(size=(40, 1))
    with pytest.warns(ConvergenceWarning, match="4 connected components instead of n_clusters=2"):
        model = GMC(n_clusters=2, n_neighbors=3, random_state=0).fit([X, X**3])
    assert set(model.labels_) <= {0, 1}
    assert model.history_["excess"] == [1.0] * 20
