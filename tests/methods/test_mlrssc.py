import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from polyspan import MLRSSC
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs.proximity import median_kernel
from polyspan.methods.mlrssc import solve_mlrssc
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run

LINEAR = {"rank_share": 0.3, "lam_agreement": 0.3, "mu0": 100.0, "tol": 1e-3}
# Columns: data, parameters, mean NMI of the authors' program; benchmarks/METHODS.md has more.
REACHED = {
    "3-sources, pairwise": ("three_sources", LINEAR, 0.5888),
    "3-sources, centroid": (
        "three_sources",
        LINEAR | {"variant": "centroid", "rank_share": 0.1, "lam_agreement": 0.7},
        0.5849,
    ),
    "prokaryotic, gaussian": (
        "prokaryotic",
        {
            "kernel": "gaussian",
            "sigma": [10, 5, 1],
            "rank_share": 0.3,
            "lam_agreement": 0.5,
            "mu0": 1e4,
        },
        0.4148,
    ),
}


@pytest.mark.parametrize("case", REACHED)
def test_reaches_the_known_figures(data_dir, case):
    name, params, nmi = REACHED[case]
    data = load_dataset(name)
    published = {"scale": None, "lam": 1.0, "n_init": 1, "as_released": True}
    model = MLRSSC(data.n_clusters, random_state=0, **published, **params).fit(data.views)
    # Nothing before k-means is random, so one solve serves four seeds.
    found = [
        spectral_clustering(model.affinity_matrix_, data.n_clusters, n_init=1, random_state=seed)
        for seed in range(4)
    ]
    assert np.array_equal(found[0], model.labels_)
    scores = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    assert np.mean(scores) == pytest.approx(nmi, abs=0.03)


def kernels(n=9, dims=(4, 3, 5), seed=0):
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(n, 3))
    views = [basis @ rng.normal(size=(3, d)) + 0.3 * rng.normal(size=(n, d)) for d in dims]
    return [X @ X.T for X in views]


def iterations(k):
    """A loop of exactly k iterations."""
    return Run("MLRSSC", k, 0.0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("variant", ["pairwise", "centroid"])
@pytest.mark.parametrize(("rank_share", "lam_agreement"), [(0.3, 0.1), (0.8, 2.0)])
def test_reaches_the_optimum_that_cvxpy_finds(variant, rank_share, lam_agreement):
    cvxpy = pytest.importorskip("cvxpy")
    Ks = kernels()
    m, n = len(Ks), 9
    Vs = [cvxpy.Variable((n, n)) for _ in Ks]
    mean = sum(Vs) / m
    cost = 0.0
    for K, V in zip(Ks, Vs, strict=True):
        w, U = np.linalg.eigh(K)
        root = np.sqrt(np.clip(w, 0, None))[:, None] * U.T  # root^T root = K
        cost += cvxpy.sum_squares(root - root @ V) / 2
        cost += rank_share * cvxpy.normNuc(V) + (1 - rank_share) * cvxpy.sum(cvxpy.abs(V))
        if variant == "centroid":
            cost += lam_agreement * cvxpy.sum_squares(V - mean)
    if variant == "pairwise":
        pairs = [(a, b) for a in range(m) for b in range(a)]
        cost += lam_agreement * sum(cvxpy.sum_squares(Vs[a] - Vs[b]) for a, b in pairs)
    zero = [cvxpy.diag(V) == 0 for V in Vs]
    cvxpy.Problem(cvxpy.Minimize(cost), zero).solve(solver=cvxpy.SCS, eps=1e-9, max_iters=200_000)
    # Both find the same solution, which says more than the same objective.
    run = Run("MLRSSC", 20_000, 1e-9)
    weights = {"rank_share": rank_share, "lam_agreement": lam_agreement}
    C = solve_mlrssc(Ks, variant=variant, **weights, mu0=1.0, rho=1.002, mu_max=1e6, run=run)
    assert_allclose(C, mean.value, rtol=0, atol=1e-4)


def literal(Ks, variant, rank_share, l3, iterations, as_released, mu=100.0, rho=1.5, mu_max=1e6):
    """The recursion view by view, with inverses; the centroid of the program if ``as_released``."""
    m, n = len(Ks), len(Ks[0])
    C1, C2, C3, L2, L3, L4, A = np.zeros((7, m, n, n))
    center, changes = np.zeros((n, n)), []
    for _ in range(iterations):
        before, old = C2.copy(), A.copy()
        for v, K in enumerate(Ks):
            right = K + mu * (C1[v] + C2[v] + C3[v]) - L2[v] - L3[v] - L4[v]
            A[v] = np.linalg.inv(K + 3 * mu * np.eye(n)) @ right
            B = A[v] + L2[v] / mu
            C2[v] = np.sign(B) * np.maximum(np.abs(B) - (1 - rank_share) / mu, 0)
            np.fill_diagonal(C2[v], 0)
            U, s, Vt = np.linalg.svd(A[v] + L3[v] / mu)
            C1[v] = (U * np.maximum(s - rank_share / mu, 0)) @ Vt
            if variant == "pairwise":
                others = sum(before[w] for w in range(m) if w != v)
                C3[v] = (2 * l3 * others + mu * A[v] + L4[v]) / (2 * l3 * (m - 1) + mu)
            else:
                C3[v] = (2 * l3 * center + mu * A[v] + L4[v]) / (2 * l3 + mu)
            L2[v] += mu * (A[v] - C2[v])
            L3[v] += mu * (A[v] - C1[v])
            L4[v] += mu * (A[v] - C3[v])
        if as_released and variant == "centroid":
            for v in range(m):
                center = center + l3 * C2[v]
            center = center / (m * l3)
        else:
            center = C2.mean(axis=0)
        changes.append(np.abs(A - old).max())
        mu = min(rho * mu, mu_max)
    return center, changes


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("as_released", [False, True])
@pytest.mark.parametrize("variant", ["pairwise", "centroid"])
@pytest.mark.parametrize(("rank_share", "lam_agreement"), [(0.3, 0.7), (0.8, 2.0)])
def test_equals_the_literal_algorithm(variant, rank_share, lam_agreement, as_released):
    Ks = kernels()
    fixed = {"rank_share": rank_share, "lam_agreement": lam_agreement, "as_released": as_released}
    run = Run("MLRSSC", 100, 1e-5)
    solve_mlrssc(Ks, variant=variant, **fixed, run=run)  # all: as many as its stopping rule takes
    assert run.converged
    for k in (1, 5, run.n_iter):
        C = solve_mlrssc(Ks, variant=variant, **fixed, run=iterations(k))
        wanted, changes = literal(Ks, variant, rank_share, lam_agreement, k, as_released)
        # singular values are lowered to an accuracy of 1e-10
        assert_allclose(C, wanted, rtol=0, atol=1e-8)
    if as_released:
        assert_allclose(run.history["change"], changes, rtol=0, atol=1e-8)
        assert changes[-1] < 1e-5
    else:
        assert "change" not in run.history


def test_as_released_takes_the_median_with_the_diagonal():
    Xs = [np.random.default_rng(v).normal(size=(9, d)) for v, d in enumerate((3, 4))]
    Ks = []
    for X in Xs:
        distance = np.linalg.norm(X[:, None] - X[None], axis=2)
        Ks.append(100 * np.exp(-(distance**2) / (2 * np.median(distance) ** 2)))
    fixed = {"kernel": "gaussian", "scale": None}
    found = MLRSSC(2, as_released=True, **fixed).fit(Xs).representation_
    wanted = solve_mlrssc(Ks, rank_share=0.3, lam_agreement=0.3, as_released=True)
    assert_allclose(found, wanted, rtol=0, atol=1e-8)
    assert np.abs(found - MLRSSC(2, **fixed).fit(Xs).representation_).max() > 1e-4


def test_the_centroid_of_the_program_grows_with_little_agreement():
    fixed = {"variant": "centroid", "rank_share": 0.3, "as_released": True, "mu0": 1.0}
    ends = [
        np.abs(solve_mlrssc(kernels(), lam_agreement=t, **fixed, run=iterations(60))).max()
        for t in (0.3, 0.7)  # 3 views: .9 and 2.1 times the weight
    ]
    assert ends[0] > 10 * ends[1]


def test_the_centroid_of_the_program_needs_agreement():
    model = MLRSSC(3, variant="centroid", as_released=True, lam_agreement=0.0)
    with pytest.raises(ValueError, match="divides the centroid by lam_agreement, which is 0"):
        model.fit(make_subspaces(45, 3).views)


def test_without_agreement_every_view_is_alone():
    Ks = kernels()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fixed = {"rank_share": 0.3, "lam_agreement": 0.0, "mu0": 1.0}
        together = solve_mlrssc(Ks, **fixed, run=iterations(15))
        alone = [solve_mlrssc([K], **fixed, run=iterations(15)) for K in Ks]
    assert_allclose(together, sum(alone) / 3, rtol=0, atol=1e-12)  # rounding


def test_one_view_needs_no_agreement():
    K = kernels()[0]
    a, b = (solve_mlrssc([K], rank_share=0.3, lam_agreement=t, mu0=1.0) for t in (0.0, 5.0))
    assert_allclose(a, b, rtol=0, atol=1e-12)


def test_variants_are_equal_for_two_equal_views():
    K = kernels()[0]
    a, b = (
        solve_mlrssc([K, K], variant=v, rank_share=0.3, lam_agreement=0.5, mu0=1.0)
        for v in ("pairwise", "centroid")
    )
    assert_allclose(a, b, rtol=0, atol=1e-12)


def test_variants_differ():
    a, b = (
        solve_mlrssc(kernels(), variant=v, rank_share=0.3, lam_agreement=0.5, mu0=1.0)
        for v in ("pairwise", "centroid")
    )
    assert np.abs(a - b).max() > 1e-3


def test_the_order_of_views_does_not_matter():
    Ks = kernels()
    a, b = (solve_mlrssc(K, rank_share=0.3, lam_agreement=0.5, mu0=1.0) for K in (Ks, Ks[::-1]))
    assert_allclose(a, b, rtol=0, atol=1e-12)


def test_no_sample_represents_itself():
    C = MLRSSC(3).fit(make_subspaces(45, 3).views).representation_
    assert np.array_equal(np.diag(C), np.zeros(45))


def test_lam_weighs_like_the_size_of_the_features():
    views = make_subspaces(45, 3).views
    a = MLRSSC(3, scale=None, lam=16.0).fit(views).representation_
    b = MLRSSC(3, scale=None, lam=1.0).fit([4 * X for X in views]).representation_
    assert_allclose(a, b, rtol=0, atol=1e-12)


def test_gaussian_kernel_has_its_width_in_medians():
    views = make_subspaces(45, 3, n_features=[6, 9]).views
    params = {"kernel": "gaussian", "scale": None, "lam": 50.0}
    found = MLRSSC(3, sigma=[2.0, 0.5], **params).fit(views).representation_
    Ks = [50 * median_kernel(views[0], 2.0), 50 * median_kernel(views[1], 0.5)]
    assert np.array_equal(found, solve_mlrssc(Ks, rank_share=0.3, lam_agreement=0.3))
    one, list_of_one, other = (
        MLRSSC(3, sigma=sigma, **params).fit(views).representation_
        for sigma in (2.0, (2.0, 2.0), 1.0)
    )
    assert np.array_equal(one, list_of_one)
    assert np.abs(one - other).max() > 1e-4


def test_sigma_has_one_number_per_view():
    with pytest.raises(ValueError, match=r"sigma has 3 numbers for 2 views: pass one per view"):
        MLRSSC(3, sigma=[1.0, 1.0, 1.0]).fit(make_subspaces(45, 3).views)


@pytest.mark.parametrize("variant", ["pairwise", "centroid"])
def test_recovers_planted_subspaces_with_the_defaults(variant):
    data = make_subspaces(120, 4, noise=0.01, random_state=0)
    labels = MLRSSC(4, variant=variant, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["acc"] == 1.0


def test_history_holds_the_three_gaps():
    model = MLRSSC(3).fit(make_subspaces(60, 3).views)
    assert set(model.history_) == {"low_rank", "sparse", "agreement"}
    last, before = ([values[k] for values in model.history_.values()] for k in (-1, -2))
    assert max(last) < 1e-5 <= max(before)


def test_other_array_libraries_find_the_same():
    strict = pytest.importorskip("array_api_strict")
    views = make_subspaces(45, 3).views
    wanted = MLRSSC(3, random_state=0).fit(views)
    found = MLRSSC(3, random_state=0).fit([strict.asarray(X) for X in views])
    assert_allclose(np.asarray(found.representation_), wanted.representation_, rtol=0, atol=1e-9)
    assert np.array_equal(found.labels_, wanted.labels_)


def test_constants_are_the_papers():
    params = MLRSSC().get_params()
    printed = {"mu0": 100.0, "rho": 1.5, "mu_max": 1e6}
    assert {name: params[name] for name in printed} == printed
