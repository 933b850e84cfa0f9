import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from polyspan import LMVSC
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.methods.lmvsc import solve_lmvsc
from polyspan.metrics import clustering_scores


def problem(n=7, m=5, d=4, seed=0):
    """Samples and anchors far from the origin, so that taking off a mean matters."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 3, rng.normal(size=(m, d)) + 3


def objective(X, A, Z, lam_ridge):
    return np.sum((X - Z @ A) ** 2) + lam_ridge * np.sum(Z**2)


@pytest.mark.parametrize("lam_ridge", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("m", [1, 2, 5, 12])
def test_z_solves_its_quadratic_programs(m, lam_ridge):
    X, A = problem(m=m)
    Z, *_ = solve_lmvsc(X, A, lam_ridge=lam_ridge, tol=1e-8)
    assert np.all(Z >= 0)
    assert_allclose(Z.sum(axis=1), 1, atol=1e-14)
    wanted = cp.Variable(Z.shape, nonneg=True)
    cost = cp.sum_squares(X - wanted @ A) + lam_ridge * cp.sum_squares(wanted)
    best = cp.Problem(cp.Minimize(cost), [cp.sum(wanted, axis=1) == 1]).solve(cp.CLARABEL)
    # The distance of 1e-8 enters the objective squared; the rest is the oracle's tolerance.
    assert objective(X, A, Z, lam_ridge) == pytest.approx(best, rel=1e-7)
    assert_allclose(Z, wanted.value, atol=1e-4)  # where it is flat the oracle's Z is less sure


@pytest.mark.parametrize("lam_ridge", [1e-3, 0.1, 1.0])
def test_the_distance_is_what_tol_promises(lam_ridge):
    X, A = problem(n=50, m=20, seed=1)
    exact, *_ = solve_lmvsc(X, A, lam_ridge=lam_ridge, tol=1e-11, max_iter=100_000)
    # Optimality: the gradient is the same on the anchors used and nowhere smaller.
    G = 2 * (exact @ A - X) @ A.T + 2 * lam_ridge * exact
    gap = np.sum(G * exact, axis=1) - G.min(axis=1)
    assert gap.max() < 1e-8
    iterations = []
    for tol in (1e-1, 1e-3, 1e-6):
        Z, most, _ = solve_lmvsc(X, A, lam_ridge=lam_ridge, tol=tol, max_iter=100_000)
        assert np.linalg.norm(Z - exact, axis=1).max() <= tol
        iterations.append(most)
    assert iterations == sorted(set(iterations))  # more digits, more iterations


def test_blocks_change_nothing(monkeypatch):
    X, A = problem(n=40, m=6)
    whole, *_ = solve_lmvsc(X, A, lam_ridge=0.1, tol=1e-10)
    monkeypatch.setitem(solve_lmvsc.__globals__, "BLOCK", 7)
    assert_allclose(solve_lmvsc(X, A, lam_ridge=0.1, tol=1e-10)[0], whole, atol=2e-10)


def test_too_few_iterations_warn():
    X, A = problem(n=30, m=10)
    assert solve_lmvsc(X, A, lam_ridge=1e-3, max_iter=3)[1:] > (3, 1e-4)
    with pytest.warns(
        ConvergenceWarning, match=r"LMVSC stopped after max_iter=3 iterations .* above"
    ):
        model = LMVSC(3, lam_ridge=1e-3, max_iter=3, random_state=0).fit(planted().views)
    assert model.n_iter_ == 3


def planted(n=120, seed=0):
    return make_subspaces(n, 3, n_features=[15, 20], subspace_dim=3, noise=0.02, random_state=seed)


@pytest.mark.parametrize("seed", range(3))
def test_planted_subspaces_are_recovered(seed):
    data = planted(seed=seed)
    labels = LMVSC(3, random_state=0).fit_predict(data.views)
    assert clustering_scores(data.labels, labels)["acc"] == 1


@pytest.mark.parametrize("normalize", [True, False])
def test_the_embedding_is_that_of_the_graph_of_the_samples(normalize):
    model = LMVSC(3, n_anchors=20, normalize=normalize, random_state=0).fit(planted().views)
    Z = model.representation_
    assert Z.shape == (40, 120)
    assert_allclose(Z.sum(axis=0), 2**0.5, rtol=1e-12)  # 1 / sqrt(2) in each of two views
    Sigma = np.diag(1 / Z.sum(axis=1)) if normalize else np.eye(40)
    S = Z.T @ Sigma @ Z
    if normalize:
        assert_allclose(S.sum(axis=1), 2**0.5, rtol=1e-12)
    w, V = np.linalg.eigh(S)
    V = V[:, -3:]
    assert w[-3] - w[-4] > 1e-3  # so that the space is well defined
    assert_allclose(model.embedding_ @ model.embedding_.T, V @ V.T, atol=1e-9)


def test_anchors_are_centers_of_the_scaled_views():
    data = planted()
    model = LMVSC(3, n_anchors=10, random_state=0).fit(data.views)
    X = data.views[0] / np.linalg.norm(data.views[0], axis=1, keepdims=True)
    A = model.anchors_[0]
    near = np.argmin(((X[:, None] - A) ** 2).sum(axis=2), axis=1)
    assert_allclose(A, [X[near == k].mean(axis=0) for k in range(10)], atol=1e-12)
    Z, *_ = solve_lmvsc(X, A, lam_ridge=model.lam_ridge)
    assert_allclose(model.representation_[:10], Z.T / 2**0.5, atol=1e-12)


def test_every_sample_an_anchor():
    data = planted(60)
    model = LMVSC(3, n_anchors=60, random_state=0).fit(data.views)
    assert model.representation_.shape == (120, 60)
    assert clustering_scores(data.labels, model.labels_)["acc"] == 1


@pytest.mark.parametrize("form", ["sparse", "float32", "torch", "strict"])
def test_other_forms_of_views(form):
    data = planted()
    wanted = LMVSC(3, n_anchors=20, random_state=0).fit(data.views)
    if form == "sparse":
        views = [sp.csc_array(X) for X in data.views]
    elif form == "float32":
        views = [X.astype(np.float32) for X in data.views]
    else:
        xp = pytest.importorskip("torch" if form == "torch" else "array_api_strict")
        views = [xp.asarray(X) for X in data.views]
    found = LMVSC(3, n_anchors=20, random_state=0).fit(views)
    assert np.array_equal(found.labels_, wanted.labels_)
    assert isinstance(found.representation_, np.ndarray)
    if form == "float32":
        assert found.representation_.dtype == found.embedding_.dtype == np.float32
    # float32 rounds samples and anchors, and lam_ridge = 0.01 multiplies that by some 100
    atol = 1e-4 if form == "float32" else 1e-9
    assert_allclose(found.representation_, wanted.representation_, atol=atol)


def test_many_samples_are_represented_by_some(monkeypatch):
    data = planted(300)
    monkeypatch.setitem(solve_lmvsc.__globals__, "SAMPLE", 100)
    model = LMVSC(3, n_anchors=20, random_state=0).fit(data.views)
    assert clustering_scores(data.labels, model.labels_)["acc"] == 1
    # Centers of 100 of the samples are not those of all.
    monkeypatch.undo()
    other = LMVSC(3, n_anchors=20, random_state=0).fit(data.views)
    assert not np.allclose(np.sort(other.anchors_[0], axis=0), np.sort(model.anchors_[0], axis=0))


@pytest.mark.parametrize(("m", "match"), [(121, "more than n_samples=120"), (2, "n_clusters=3")])
def test_wrong_number_of_anchors(m, match):
    with pytest.raises(ValueError, match=f"^LMVSC: n_anchors={m} is .*{match}: choose"):
        LMVSC(3, n_anchors=m).fit(planted().views)


def test_memory_is_linear_and_checked(monkeypatch):
    monkeypatch.setattr("polyspan.base.estimator.available_memory", lambda: 3 * 2**19)
    LMVSC(3, random_state=0).fit(planted(500).views)  # 2 MB for a single 500 x 500 matrix
    match = r"^LMVSC on 2000 samples needs about [\d.]+ GiB for its 2\d\d numbers .*anchors"
    with pytest.raises(MemoryError, match=match):
        LMVSC(3).fit(planted(2000).views)


def test_real_data(data_dir):
    data = load_dataset("handwritten")
    found = [LMVSC(data.n_clusters, random_state=s).fit_predict(data.views) for s in range(3)]
    nmi = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    # 0.814 (0.011) over ten seeds, each with its own anchors: two standard deviations
    assert np.mean(nmi) == pytest.approx(0.814, abs=0.022)
