"""LRR as the special case of GRMSC with one view and no graph."""

import numpy as np
import pytest

from polyspan import GRMSC, LRR
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.methods.lrr import solve_lrr
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import watching


def one_view(noise=0.1, outliers=0.1, d=10):
    data = make_subspaces(
        40, 3, n_views=1, n_features=d, subspace_dim=2, noise=noise, outliers=outliers,
        random_state=0,
    )  # fmt: skip
    return data.views[0]


def objective(X, Z, lam):
    """|Z|_* + lam |X - X Z|_{2,1}, samples in the rows of X."""
    errors = np.linalg.norm(X.T - X.T @ Z, axis=0)
    return np.linalg.norm(Z, "nuc") + lam * errors.sum()


@pytest.mark.parametrize("d", [10, 60], ids=["tall", "wide"])
@pytest.mark.parametrize("lam", [0.3, 1.0])
def test_it_is_grmsc_with_one_view_and_no_graph(lam, d):
    slow = {"rho": 1.005, "mu0": 0.1, "mu_max": 1e9, "max_iter": 6000, "tol": 1e-8}
    X = one_view(d=d)
    lrr = LRR(3, lam=lam, random_state=0, **slow).fit(X)
    grmsc = GRMSC(3, lam1=lam, regularizer="none", random_state=0, **slow).fit(X)
    # The two update E at different places of an iteration, so they meet only where both converge to
    # the one optimum, which a penalty that grows slowly (rho near 1) reaches; both stop at 1e-8.
    np.testing.assert_allclose(lrr.representation_, grmsc.representation_, rtol=0, atol=1e-8)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    one, two = (objective(unit, model.representation_, lam) for model in (lrr, grmsc))
    assert one == pytest.approx(two, rel=1e-8)


def test_large_lam_gives_the_shape_interaction_matrix():
    X = one_view(noise=0, outliers=0)  # three planes: rank 6 of 10 features
    # without errors the optimum is V V^T of the thin SVD of X (Liu et al., theorem 4.1)
    Vh = np.linalg.svd(X.T, full_matrices=False)[2][:6]
    Z = solve_lrr(X, lam=1e3)
    # the solver stops at residuals of 1e-6
    np.testing.assert_allclose(Z, Vh.T @ Vh, rtol=0, atol=1e-5)


def test_small_lam_gives_zero():
    # at Z = 0 the nuclear norm outweighs all errors: lam |X^T (unit errors)|_2 < 1
    X = one_view()
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    lam = 0.5 / np.linalg.norm(unit @ unit.T, 2)
    Z = LRR(3, lam=lam, random_state=0).fit(X).representation_
    assert np.abs(Z).max() < 1e-5  # the solver stops at 1e-6


@pytest.mark.parametrize("form", [list, tuple, lambda views: dict(zip("ab", views, strict=True))])
def test_several_views_are_refused(form):
    iterations = []
    match = "^LRR takes one view; got 2: wrap it in BestSingleView, or concatenate the views"
    with watching(iterations.append), pytest.raises(ValueError, match=match):
        LRR(3).fit(form([one_view(), one_view()]))
    with watching(iterations.append), pytest.raises(ValueError, match=match):
        LRR(3, views=[slice(0, 3), slice(3, 9)]).fit(one_view())
    assert not iterations


@pytest.mark.parametrize(
    ("name", "view", "params", "nmi"),
    [
        ("three_sources", 1, {"lam": 0.6}, 0.6083),
        ("three_sources", 0, {"lam": 0.8}, 0.5772),
        # Those of BBCSport are in benchmarks/METHODS.md.
    ],
)
def test_reaches_the_figures_of_the_common_program(data_dir, name, view, params, nmi):
    data = load_dataset(name)
    model = LRR(n_clusters=data.n_clusters, random_state=0, **params).fit(data.views[view])
    # The solve does not depend on the seed, so one serves four runs of k-means.
    found = [
        clustering_scores(
            data.labels,
            spectral_clustering(model.affinity_matrix_, data.n_clusters, random_state=seed),
        )["nmi"]
        for seed in range(4)
    ]
    assert np.mean(found) == pytest.approx(nmi, abs=0.01)
