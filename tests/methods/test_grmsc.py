import warnings

import literal
import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan import GRMSC, LRR
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.inputs.scaling import scale_views
from polyspan.inputs.views import check_views
from polyspan.methods.grmsc import graph_laplacian, solve_grmsc
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import largest_entry

# Columns: data, parameters, NMI that a faithful implementation reaches.
REACHED = {
    "ngs": ("ngs", {"n_neighbors": 30, "lam1": 1, "lam2": 10, "orientation": "published"}, 0.934),
    "bbcsport": ("bbcsport", {"n_neighbors": 30, "lam1": 100, "lam2": 1000}, 0.909),
    "prokaryotic": ("prokaryotic", {"n_neighbors": 150, "lam1": 10, "lam2": 100}, 0.554),
    "3-sources": ("three_sources", {"n_neighbors": 30, "lam1": 100, "lam2": 1000}, 0.739),
    "3-sources, no graph": ("three_sources", {"regularizer": "none", "lam1": 0.1}, 0.629),
    "ngs, no graph": ("ngs", {"regularizer": "none", "lam1": 0.1}, 0.911),
}


@pytest.mark.parametrize("case", REACHED)
def test_reaches_the_known_figures(data_dir, case):
    name, params, nmi = REACHED[case]
    data = load_dataset(name)
    # Z does not depend on the seed (zero start), so one solve serves four seeds of k-means.
    model = GRMSC(n_clusters=data.n_clusters, alpha=1e-3, random_state=0, **params)
    model.fit(data.views)
    found = [
        spectral_clustering(model.affinity_matrix_, data.n_clusters, random_state=seed)
        for seed in range(4)
    ]
    assert np.array_equal(found[0], model.labels_)
    scores = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    assert np.mean(scores) == pytest.approx(nmi, abs=0.02)


def random_views(n=40, dims=(60, 7, 25), seed=0):
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(4, n))
    return [
        (rng.normal(size=(d, 4)) @ basis + 0.3 * rng.normal(size=(d, n))).T for d in dims
    ]  # more, fewer and about as many features as samples


def unit(views):
    return scale_views(check_views(views), "unit")


@pytest.mark.parametrize("orientation", ["samples", "published"])
@pytest.mark.parametrize("second_width", ["own", "first"])
@pytest.mark.parametrize(("lam1", "lam2"), [(0.1, 1.0), (1.0, 10.0), (100.0, 1000.0)])
def test_equals_the_literal_algorithm_on_random_data(orientation, second_width, lam1, lam2):
    views = random_views()
    model = GRMSC(
        n_clusters=3,
        n_neighbors=8,
        lam1=lam1,
        lam2=lam2,
        orientation=orientation,
        second_width=second_width,
    ).fit(views)
    Xs = [X.T for X in unit(views)]
    L = literal.laplacian(Xs, 8, 1e-3, second_width)
    Z, iterations = literal.algorithm_1(Xs, L, lam1, lam2, orientation)
    assert model.n_iter_ == iterations
    assert_allclose(model.representation_, Z, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("orientation", "lam1", "lam2"), [("samples", 100.0, 1000.0), ("published", 0.1, 1.0)]
)
def test_equals_the_literal_algorithm_on_3_sources(data_dir, orientation, lam1, lam2):
    views = [X.toarray()[::2] for X in load_dataset("three_sources").views]
    model = GRMSC(n_clusters=6, n_neighbors=30, lam1=lam1, lam2=lam2, orientation=orientation).fit(
        views
    )
    Xs = [X.T for X in unit(views)]
    Z, iterations = literal.algorithm_1(
        Xs, literal.laplacian(Xs, 30, 1e-3), lam1, lam2, orientation
    )
    assert model.n_iter_ == iterations
    assert_allclose(model.representation_, Z, rtol=0, atol=1e-6)


def objective(Z, Xs, L, lam1, orientation):
    graph = np.trace(Z @ L @ Z.T) if orientation == "samples" else np.trace(Z.T @ L @ Z)
    errors = sum(np.linalg.norm(X - X @ Z, axis=0).sum() for X in Xs)
    return np.linalg.norm(Z, "nuc") + lam1 * errors + graph


@pytest.mark.parametrize("orientation", ["samples", "published"])
def test_reaches_the_optimum_that_cvxpy_finds(orientation):
    cvxpy = pytest.importorskip("cvxpy")
    views = unit(random_views(n=9, dims=(5, 4)))
    Xs = [X.T for X in views]
    L = 0.3 * graph_laplacian(views, 3, alpha=0.1)
    lam1 = 0.7
    root = np.linalg.cholesky(L + 1e-12 * np.eye(9))  # Tr(Z L Z^T) = |Z root|_F^2
    V = cvxpy.Variable((9, 9))
    graph = cvxpy.sum_squares(V @ root if orientation == "samples" else root.T @ V)
    errors = sum(cvxpy.sum(cvxpy.norm(X - X @ V, 2, axis=0)) for X in Xs)
    best = cvxpy.Problem(cvxpy.Minimize(cvxpy.normNuc(V) + lam1 * errors + graph)).solve(
        solver=cvxpy.SCS, eps=1e-8, max_iters=100_000
    )
    run = Run("GRMSC", 20_000, 1e-8)
    Z = solve_grmsc(
        views, L, lam1=lam1, orientation=orientation, rho=1.01, mu0=1e-2, mu_max=1e8, run=run
    )
    assert run.converged
    # SCS is asked for 1e-8; our mu grows by 1% an iteration, which leaves a gap of some 1e-5.
    assert objective(Z, Xs, L, lam1, orientation) == pytest.approx(best, rel=1e-4)
    assert objective(V.value, Xs, L, lam1, orientation) == pytest.approx(best, rel=1e-5)


def test_no_perturbation_of_the_optimum_does_better():
    views = unit(random_views(n=12, dims=(6, 5)))
    Xs = [X.T for X in views]
    L = 0.2 * graph_laplacian(views, 3)
    Z = solve_grmsc(views, L, lam1=0.5, rho=1.01, mu0=1e-2, mu_max=1e8, run=Run("", 9999, 1e-9))
    best = objective(Z, Xs, L, 0.5, "samples")
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(20):
            other = Z + size * rng.normal(size=Z.shape)
            assert objective(other, Xs, L, 0.5, "samples") > best


def test_lam2_zero_is_no_regularizer():
    views = random_views()
    a = GRMSC(n_clusters=3, lam1=1.0, lam2=0.0).fit(views).representation_
    b = GRMSC(n_clusters=3, lam1=1.0, regularizer="none").fit(views).representation_
    assert np.array_equal(a, b)


def test_orientations_are_equal_without_graphs():
    views = unit(random_views())
    zero = np.zeros((40, 40))
    a, b = (solve_grmsc(views, zero, lam1=1.0, orientation=o) for o in ("samples", "published"))
    assert_allclose(a, b, rtol=0, atol=1e-10)  # rounding only
    assert_allclose(a, solve_grmsc(views, None, lam1=1.0), rtol=0, atol=1e-10)


def test_orientations_differ_with_graphs():
    views = random_views()
    a, b = (
        GRMSC(n_clusters=3, orientation=o).fit(views).representation_
        for o in ("samples", "published")
    )
    assert np.abs(a - b).max() > 1e-3


def test_one_view_without_graphs_is_lrr():
    X = random_views()[0]
    slow = {"rho": 1.02, "mu0": 1e-2, "mu_max": 1e8, "max_iter": 5000, "tol": 1e-9}
    a = GRMSC(n_clusters=3, regularizer="none", lam1=0.5, **slow).fit(X).representation_
    b = LRR(n_clusters=3, lam=0.5, **slow).fit(X).representation_
    # The same convex problem, its steps in another order: equal as far as mu grew slowly.
    assert_allclose(a, b, rtol=0, atol=1e-3)


def from_two_starts(**params):
    """Z from zero, and from a random start as in the paper."""
    views = unit(random_views())
    n, L = len(views[0]), graph_laplacian(views, 8)
    start = np.random.default_rng(3).uniform(size=(n, n))
    return [solve_grmsc(views, L, Z=Z, **params) for Z in (None, start)]


def test_start_does_not_matter_for_lam1_from_1_on():
    a, b = from_two_starts(lam1=1.0, lam2=10.0)
    assert_allclose(a, b, rtol=0, atol=1e-9)


def test_start_is_used():
    a, b = from_two_starts(lam1=0.1, lam2=1.0, mu0=0.1)
    assert np.abs(a - b).max() > 1e-6


def test_first_order_takes_the_graphs_as_they_are():
    views = unit(random_views())
    L = graph_laplacian(views, 8, regularizer="first_order")
    one_by_one = sum(graph_laplacian([X], 8, alpha=0.0) for X in views)  # alone, all is consistent
    assert_allclose(L, one_by_one, rtol=0, atol=1e-13)


def test_graph_scale_changes_the_graphs_only():
    views = [X * np.arange(1, 41)[:, None] for X in random_views()]  # lengths differ
    same = GRMSC(n_clusters=3).fit(views).representation_
    named = GRMSC(n_clusters=3, graph_scale="unit").fit(views).representation_
    raw = GRMSC(n_clusters=3, graph_scale=None, max_iter=300).fit(views).representation_
    assert np.array_equal(same, named)
    assert np.abs(same - raw).max() > 1e-4
    no_graph = [
        GRMSC(n_clusters=3, regularizer="none", graph_scale=s).fit(views).representation_
        for s in ("same", None)
    ]
    assert np.array_equal(*no_graph)


def test_history_holds_both_residuals_and_ends_below_tol():
    model = GRMSC(n_clusters=3, tol=1e-6).fit(random_views())
    assert set(model.history_) == {"data", "split"}
    for values in model.history_.values():
        assert len(values) == model.n_iter_
        assert values[-1] < 1e-6
    assert max(values[-2] for values in model.history_.values()) >= 1e-6


def test_says_when_it_did_not_converge():
    with pytest.warns(
        UserWarning, match=r"GRMSC stopped after max_iter=3 iterations.*raise max_iter"
    ):
        model = GRMSC(n_clusters=3, max_iter=3).fit(random_views())
    assert model.n_iter_ == 3


def test_every_constant_of_algorithm_1_is_a_parameter_with_the_papers_value():
    params = GRMSC().get_params()
    printed = {"rho": 1.9, "mu0": 1e-4, "mu_max": 1e6, "tol": 1e-6, "alpha": 1e-3}
    assert {name: params[name] for name in printed} == printed


def test_recovers_planted_subspaces_with_the_defaults():
    data = make_subspaces(n_samples=120, n_clusters=4, noise=0.01, random_state=0)
    labels = GRMSC(n_clusters=4, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["acc"] == 1.0


def test_sparse_affinity_keeps_few_entries_per_column():
    model = GRMSC(n_clusters=3, affinity="sparse", n_kept=4).fit(random_views())
    assert model.affinity_matrix_.nnz <= 2 * 4 * 40
    assert abs(model.affinity_matrix_ - model.affinity_matrix_.T).max() == 0


def test_verbose_prints_iterations_with_time_left(capsys):
    GRMSC(n_clusters=3, verbose=1).fit(random_views())
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith("[GRMSC] iteration   1  split ")
    assert "s left" in first
    assert last.endswith("about 0.0 s left")


def test_stopping_rule_is_on_entries_of_the_original_features():
    # Longest column .5, largest entry .1: the decision at tol .2 needs the original coordinates.
    back = np.full((25, 1), 0.2)
    reduced = np.array([[0.5]])
    assert largest_entry(reduced, 25, 0.2, lambda A: back @ A) == pytest.approx(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert largest_entry(reduced, 25, 0.6, pytest.fail) == 0.5
        assert largest_entry(reduced, 25, 0.09, pytest.fail) == 0.5
