import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning

from polyspan import GSF
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs.proximity import adaptive_neighbors
from polyspan.methods.gsf import fused_graph, solve_gsf
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run


def noise(n=40, dims=(3, 5), seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for d in dims]


def on_the_simplex(row):
    """Projection by bisection on the level."""
    low, high = row.min() - 1, row.max()
    for _ in range(200):
        level = (low + high) / 2
        low, high = (level, high) if np.maximum(row - level, 0).sum() > 1 else (low, level)
    return np.maximum(row - high, 0)


def lowest(W):
    W = (W + W.T) / 2
    return np.linalg.eigh(np.diag(W.sum(1)) - W)


def literal_graphs(Xs, k):
    """Probabilistic neighbors of the views, row by row, and their product."""
    A = np.ones((len(Xs[0]), len(Xs[0])))
    for X in Xs:
        S = np.zeros(A.shape)
        for i in range(len(X)):
            d = ((X - X[i]) ** 2).sum(1)
            near = [j for j in np.argsort(d) if j != i][: k + 1]
            for j in near[:k]:
                S[i, j] = (d[near[k]] - d[j]) / (k * d[near[k]] - d[near[:k]].sum())
        A *= S
    np.fill_diagonal(A, 0)
    return (A + A.T) / 2


def literal(A, c, k, gamma1, gamma2, iterations):
    """The alternation row by row, and how many iterations it made."""
    n = len(A)
    U = lowest(A)[1][:, :c]
    near, made = [], 0
    for i in range(n):
        d = ((U - U[i]) ** 2).sum(1)
        near.append([j for j in np.argsort(d) if j != i][:k])
    for _ in range(iterations):
        made += 1
        S = np.zeros((n, n))
        for i, j in enumerate(near):
            d = ((U[j] - U[i]) ** 2).sum(1)
            S[i, j] = on_the_simplex(-(d - gamma1 * A[i, j]) / (2 * gamma2))
        values, V = lowest(S)
        if values[:c].sum() > 1e-5:
            gamma2, U = gamma2 / 2, V[:, :c]
        elif values[: c + 1].sum() < 1e-5:
            gamma2 = 2 * gamma2
        else:
            break
    return (S + S.T) / 2, made


def test_the_fused_graph_equals_the_literal_product():
    Xs = noise()
    A = fused_graph([adaptive_neighbors(X, 15) for X in Xs])
    assert np.all(A.sum(axis=1) > 0)
    assert_allclose(A, literal_graphs(Xs, 15), rtol=0, atol=1e-9)  # distances round differently


@pytest.mark.slow
@pytest.mark.parametrize("c", [2, 3, 5])
@pytest.mark.parametrize(("gamma1", "gamma2"), [(1.0, 1.0), (100.0, 1.0), (1.0, 1e-6)])
def test_equals_the_literal_recursion(c, gamma1, gamma2):
    A = literal_graphs(noise(), 15)
    _, last = literal(A, c, 6, gamma1, gamma2, 30)
    for iterations in {1, min(5, last), last}:
        run = Run("GSF", iterations, 1e-5)
        S = solve_gsf(A, c, 6, lam_agreement=gamma1, lam_ridge=gamma2, run=run)
        assert run.n_iter == iterations
        wanted, _ = literal(A, c, 6, gamma1, gamma2, iterations)
        assert_allclose(S, wanted, rtol=0, atol=1e-6)  # eigenvectors, divided by a small gamma2
    run = Run("GSF", 30, 1e-5)
    solve_gsf(A, c, 6, lam_agreement=gamma1, lam_ridge=gamma2, run=run)
    assert run.n_iter == last


def test_the_cases_above_halve_and_double():
    A = literal_graphs(noise(), 15)
    ends = {}
    for gamma2 in (1.0, 1e-6):
        run = Run("GSF", 30, 1e-5)
        solve_gsf(A, 3, 6, lam_ridge=gamma2, run=run)
        ends[gamma2] = run.history
    assert ends[1.0]["eigenvalues"][0] > 1e-5  # too few components: halved
    assert ends[1e-6]["excess"][0] == 1  # too many: doubled


def test_the_estimator_is_made_of_these():
    Xs = noise()
    model = GSF(3, n_neighbors=15, n_candidates=6, scale=None).fit(Xs)
    S = solve_gsf(fused_graph([adaptive_neighbors(X, 15) for X in Xs]), 3, 6)
    assert_array_equal(model.affinity_matrix_, S)
    assert_array_equal(model.labels_, connected_components(sp.csr_array(S), directed=False)[1])
    assert len(set(model.labels_)) == 3
    assert len(model.history_["eigenvalues"]) == model.n_iter_
    assert_allclose(S.sum(), 40, rtol=1e-12)
    given = GSF(3, n_neighbors=30, n_candidates=15, scale=None).fit(Xs).affinity_matrix_
    assert_array_equal(GSF(3, scale=None).fit(Xs).affinity_matrix_, given)  # the defaults


def test_a_sample_without_common_neighbors_has_the_power_of_the_mean():
    rng = np.random.default_rng(0)
    Ss = list(rng.uniform(size=(3, 6, 6)) * (1 - np.eye(6)))
    Ss[0][2, :3], Ss[1][2, 3:] = 0, 0  # row 2: nothing in common
    for S in Ss:
        S[:, 2] = 0  # and nobody else says so
    A = fused_graph(Ss)
    mean = sum(Ss) / 3
    others = np.arange(6) != 2
    assert_allclose(A[2], mean[2] ** 3 / 2, rtol=1e-12)
    assert_allclose(A[:, 2], A[2], rtol=0, atol=0)
    product = Ss[0] * Ss[1] * Ss[2]
    assert_allclose(A[np.ix_(others, others)], ((product + product.T) / 2)[np.ix_(others, others)])
    same = np.repeat(Ss[:1], 3, axis=0)
    assert np.prod(same, axis=0) == pytest.approx(np.mean(same, axis=0) ** 3)  # where views agree


def with_ties():
    """Views of three groups with duplicates and binary features, and no common neighbors."""
    rng = np.random.default_rng(1)
    one = np.repeat(rng.normal(size=(3, 4)), 15, axis=0) + 0.3 * rng.normal(size=(45, 4))
    two = (np.repeat(rng.normal(size=(3, 9)), 15, axis=0) > 0) ^ (rng.uniform(size=(45, 9)) < 0.1)
    one[5], one[20] = one[4], one[21]
    views = [one, 1.0 + two]
    views[1][5], views[1][20] = views[1][4], views[1][21]
    return views


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [4, 10])
def test_blind_to_the_order_of_the_samples(seed, k):
    views = with_ties()
    order = np.random.default_rng(seed).permutation(45)
    one, two = (
        GSF(3, n_neighbors=k, n_candidates=6, random_state=0).fit(Xs)
        for Xs in (views, [X[order] for X in views])
    )
    wanted = one.affinity_matrix_[np.ix_(order, order)]
    assert_allclose(two.affinity_matrix_, wanted, rtol=0, atol=1e-6)  # rounding of eigenvectors
    assert clustering_scores(one.labels_[order], two.labels_)["acc"] == 1


def test_more_pieces_than_clusters_do_not_depend_on_the_order():
    A = np.kron(np.diag([1.0, 2.0, 3.0, 4.0]), np.ones((4, 4)) - np.eye(4))  # four pieces
    order = np.random.default_rng(0).permutation(16)
    one = solve_gsf(A, 2, 6, run=Run("", 3, 1e-5))
    two = solve_gsf(A[np.ix_(order, order)], 2, 6, run=Run("", 3, 1e-5))
    assert_allclose(two, one[np.ix_(order, order)], rtol=0, atol=1e-9)  # rounding of eigenvectors


@pytest.mark.parametrize("seed", range(3))
def test_planted_clusters_are_recovered(seed):
    data = make_subspaces(90, 3, n_features=[20, 30], subspace_dim=2, noise=0.01, random_state=seed)
    labels = GSF(3, n_neighbors=8, n_candidates=5).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["acc"] == 1


@pytest.mark.parametrize(
    ("name", "nmi"), [("three_sources", 0.572), ("msrc_v1", 0.789), ("yale_images", 0.736)]
)
def test_keeps_its_figures(data_dir, name, nmi):
    data = load_dataset(name)
    labels = GSF(data.n_clusters).fit_predict(data.views)
    # Deterministic; one sample in another cluster changes the NMI by less than this.
    assert clustering_scores(data.labels, labels)["nmi"] == pytest.approx(nmi, abs=0.02)


def test_too_few_iterations_fall_back_on_spectral_clustering():
    model = GSF(3, n_neighbors=15, lam_ridge=1e3, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="1 connected components instead of n_clusters=3"):
        model.fit(noise())
    assert set(model.labels_) == {0, 1, 2}


def test_too_many_candidates_are_refused():
    with pytest.raises(ValueError, match=r"^GSF: n_candidates=40 must be below n_samples=40"):
        GSF(3, n_candidates=40).fit(noise())
