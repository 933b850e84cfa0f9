import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from polyspan import GRMSC, AnchorGRMSC
from polyspan.chunked import chunks
from polyspan.chunked.workers import Threads
from polyspan.clustering.affinity import affinity_matrix
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs import neighbors as search
from polyspan.graphs.proximity import first_order
from polyspan.inputs.scaling import scale_views
from polyspan.inputs.views import Views, check_views
from polyspan.methods.anchor_grmsc import estimator as module
from polyspan.methods.anchor_grmsc import laplacian
from polyspan.methods.anchor_grmsc.anchors import (
    Bipartite,
    embed,
    link_spectrum,
    make_frame,
    nearest_center,
    smooth,
)
from polyspan.methods.anchor_grmsc.solver import Part, _along, forces, singular_threshold
from polyspan.methods.grmsc import graph_laplacian
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import watching


def random_views(n=40, dims=(60, 7, 25), seed=0):
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(4, n))
    return [
        (rng.normal(size=(d, 4)) @ basis + 0.3 * rng.normal(size=(d, n))).T for d in dims
    ]  # more, fewer and about as many features as samples


def planted(n=600, seed=0, **more):
    kept = {"n_features": [20, 30], "noise": 0.05, "random_state": seed} | more
    return make_subspaces(n, 3, **kept)


SETTINGS = [(0.1, 1.0), (1.0, 10.0), (100.0, 1000.0)]


# ---- elsewhere than on the CPU ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("lam2", [1.0, 0.0])
@pytest.mark.parametrize("n", [600, 2_500])  # dense and sparse graphs
def test_the_solver_on_a_device_is_the_one_on_the_cpu(n, lam2):
    pytest.importorskip("torch")
    views = planted(n).views
    given = {"n_anchors": 20, "lam2": lam2, "chunk_size": 256, "random_state": 0}
    here, there = (AnchorGRMSC(3, device=d, **given).fit(views) for d in (None, "cpu"))
    assert there.products_ == here.products_
    assert there.history_.keys() == here.history_.keys()
    # Only the order of the sums differs.
    assert_allclose(there.representation_, here.representation_, rtol=0, atol=1e-10)
    assert_array_equal(there.labels_, here.labels_)


@pytest.mark.slow
def test_neighbors_of_many_samples_are_searched_on_the_device(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(search, "EXACT_BELOW", 2_000)
    monkeypatch.setattr(search, "PROBES", 1)
    views = planted(2_500).views
    here, there = (
        AnchorGRMSC(3, n_anchors=20, device=d, random_state=0).fit(views) for d in (None, "cpu")
    )
    assert min(here.recall_) < 1
    assert there.recall_ == [1.0, 1.0]
    assert clustering_scores(here.labels_, there.labels_)["nmi"] > 0.9
    monkeypatch.setattr(search, "DEVICE_EXACT", 2_400)
    monkeypatch.setattr(search, "PROBES", 2)
    monkeypatch.setattr(search, "CELL", 200)
    few = AnchorGRMSC(3, n_anchors=20, device="cpu", random_state=0).fit(views)
    assert 0.8 < min(few.recall_) < 1


def test_a_device_with_too_little_memory_is_refused(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(module, "check_device", lambda owner, device: 1_000)
    with pytest.raises(MemoryError, match="but 0 GiB are free on cpu: lower n_anchors"):
        AnchorGRMSC(3, n_anchors=20, device="cpu").fit(planted().views)
    with pytest.raises(ValueError, match="device='nowhere' is not available here"):
        AnchorGRMSC(3, n_anchors=20, device="nowhere").fit(planted().views)


# ---- the mathematics -----------------------------------------------------------------------------


@pytest.mark.parametrize(("lam1", "lam2"), SETTINGS)
def test_with_all_samples_as_anchors_it_is_grmsc(lam1, lam2):
    views = random_views()
    same = {"n_neighbors": 8, "lam1": lam1, "lam2": lam2, "alpha": 1e-3, "tol": 1e-6}
    exact = GRMSC(3, random_state=0, **same).fit(views)
    ours = AnchorGRMSC(3, anchors=np.arange(40), chunk_size=16, random_state=0, **same).fit(views)
    assert ours.n_iter_ == exact.n_iter_
    assert_allclose(ours.representation_, exact.representation_, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("lam1", "lam2"), [(0.1, 1.0), (100.0, 1000.0)])
def test_it_is_grmsc_on_3_sources(data_dir, lam1, lam2):
    views = load_dataset("three_sources").views  # sparse
    same = {"n_neighbors": 30, "lam1": lam1, "lam2": lam2, "alpha": 1e-3, "tol": 1e-6}
    exact = GRMSC(6, random_state=0, **same).fit(views)
    ours = AnchorGRMSC(6, n_anchors=169, chunk_size=50, random_state=0, **same).fit(views)
    assert ours.n_iter_ == exact.n_iter_
    assert_allclose(ours.representation_, exact.representation_, rtol=0, atol=1e-6)
    W = affinity_matrix(ours.representation_)
    assert_array_equal(spectral_clustering(W, 6, random_state=0), exact.labels_)


def literal(Xs, As, L, lam1, lam2, rho=1.9, mu=1e-4, mu_max=1e6, tol=1e-6):
    """The recursion at the top of the module, as it stands there; samples in columns."""
    m, n = As[0].shape[1], Xs[0].shape[1]
    Z, Y2 = np.zeros((m, n)), np.zeros((m, n))
    Y1 = [np.zeros_like(X) for X in Xs]
    G = sum(A.T @ A for A in As)
    iteration = 0
    while iteration < 100:
        iteration += 1
        E = []
        for X, A, Y in zip(Xs, As, Y1, strict=True):
            T = X - A @ Z + Y / mu
            lengths = np.linalg.norm(T, axis=0)
            E.append(T * np.clip(lengths - lam1 / mu, 0, None) / lengths)
        U, s, Vt = np.linalg.svd(Z + Y2 / mu, full_matrices=False)
        Q = U * np.clip(s - 1 / mu, 0, None) @ Vt
        B = mu * Q - Y2
        B = B + sum(A.T @ (Y + mu * (X - e)) for X, A, Y, e in zip(Xs, As, Y1, E, strict=True))
        K = np.kron(np.eye(n), mu * (G + np.eye(m))) + np.kron(lam2 * (L + L.T), np.eye(m))
        Z = np.linalg.solve(K, B.T.ravel()).reshape(n, m).T
        rest = [X - A @ Z - e for X, A, e in zip(Xs, As, E, strict=True)]
        Y1 = [Y + mu * r for Y, r in zip(Y1, rest, strict=True)]
        Y2 = Y2 + mu * (Z - Q)
        mu = min(rho * mu, mu_max)
        if max(np.abs(Z - Q).max(), *(np.abs(r).max() for r in rest)) < tol:
            break
    return Z, iteration


@pytest.mark.parametrize(("lam1", "lam2"), [(0.1, 1.0), (10.0, 0.0), (1.0, 10.0)])
def test_equals_the_literal_recursion_with_few_anchors(lam1, lam2):
    # 5 anchors, 60 and 25 features: most of a sample is out of reach of the anchors
    views = random_views(n=24)
    chosen = np.array([20, 3, 11, 7, 0])
    # tol is a length where samples are out of reach: an iteration more is allowed, so take a small
    # one
    model = AnchorGRMSC(
        3, anchors=chosen, n_neighbors=5, lam1=lam1, lam2=lam2, alpha=0.01, tol=1e-8, chunk_size=10
    ).fit(views)
    Xs = scale_views(check_views(views), "unit")
    L = graph_laplacian(Xs, 5, alpha=0.01)
    Z, iterations = literal([X.T for X in Xs], [X[chosen].T for X in Xs], L, lam1, lam2, tol=1e-8)
    assert abs(model.n_iter_ - iterations) <= 1
    assert_allclose(model.representation_, Z, rtol=0, atol=1e-6)


def test_without_graphs_it_is_grmsc_without_graphs():
    views = random_views()
    exact = GRMSC(3, regularizer="none", lam1=1.0).fit(views)
    ours = AnchorGRMSC(3, n_anchors=40, lam1=1.0, lam2=0.0, tol=1e-6).fit(views)
    assert_allclose(ours.representation_, exact.representation_, rtol=0, atol=1e-6)
    assert sum(ours.products_) == 0


def test_chunks_and_threads_do_not_matter():
    views = planted(150).views
    one = AnchorGRMSC(3, n_anchors=40, n_jobs=1, random_state=0).fit(views)
    two = AnchorGRMSC(3, n_anchors=40, n_jobs=3, random_state=0).fit(views)
    assert_array_equal(one.representation_, two.representation_)  # to the last bit
    three = AnchorGRMSC(3, n_anchors=40, chunk_size=17, random_state=0).fit(views)
    # sums in another order, and systems solved to 1.5e-8
    assert_allclose(three.representation_, one.representation_, rtol=0, atol=1e-6)
    assert_array_equal(three.labels_, one.labels_)


def test_sparse_graphs_learn_what_dense_graphs_learn(monkeypatch):
    views = planted(200).views
    dense = AnchorGRMSC(3, n_anchors=20, random_state=0).fit(views)
    monkeypatch.setattr(laplacian, "DENSE_BELOW", 199)  # neighbor lists; medians of all but one
    sparse = AnchorGRMSC(3, n_anchors=20, random_state=0).fit(views)
    assert_allclose(sparse.representation_, dense.representation_, rtol=0, atol=2e-3)
    assert clustering_scores(dense.labels_, sparse.labels_)["ari"] == 1  # up to names


@pytest.mark.slow
def test_alpha_falls_like_one_over_n():
    assert AnchorGRMSC(3, n_anchors=20).fit(planted(300).views).alpha_ == 1e-3
    assert AnchorGRMSC(3, n_anchors=20, alpha=0.1).fit(planted(300).views).alpha_ == 0.1
    model = AnchorGRMSC(3, n_anchors=10).fit(planted(2500).views)
    assert model.alpha_ == pytest.approx(0.8e-3)


@pytest.mark.parametrize("affinity", ["dense", "sparse"])
@pytest.mark.slow
def test_recovers_planted_subspaces_with_corrupted_samples(affinity):
    data = make_subspaces(1500, 5, n_views=3, n_features=50, noise=0.1, outliers=0.05)
    model = AnchorGRMSC(5, n_anchors=50, affinity=affinity, random_state=0).fit(data.views)
    assert clustering_scores(data.labels, model.labels_)["nmi"] > 0.95


def test_large_singular_values_do_not_drown_float32():
    # Those of Z grow like the square root of n; here they are what a million samples have.
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(n, 6)))[0] for n in (2000, 6))
    values, mu = np.array([300.0, 200.0, 50.0, 10.0, 1e-4, 1e-5]), 1e3
    Z = (left * values) @ right.T
    frame = make_frame([np.eye(6)])
    part = Part(*(np.zeros((2000, 7), "f4"),) * 2, Z.astype("f4"), np.zeros((2000, 6), "f4"), None)
    threshold = singular_threshold([(mu * Z).T @ (mu * Z)], mu)
    after, _ = forces(part, mu, 1.0, threshold, frame, inplace=False)
    wanted = (left * np.minimum(mu * values, 1)) @ right.T
    # float32 knows mu Z, whose rows have a length of 8e3, to 5e-4; Q must not see that
    assert_allclose(after.Y2, wanted, rtol=0, atol=1e-3)
    Q = _along(after.Y2, threshold.V, threshold.rest)
    assert_allclose(Q, (left * np.maximum(values - 1 / mu, 0)) @ right.T, rtol=0, atol=1e-4)


def test_float32_with_few_clean_samples_converges():
    # With mu from 1e-4 the first systems are too ill-conditioned for float32.
    data = make_subspaces(400, 5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AnchorGRMSC(5, n_anchors=100, dtype="float32", random_state=0).fit(data.views)
    assert clustering_scores(data.labels, model.labels_)["nmi"] == pytest.approx(1.0)


def test_a_group_of_all_samples_does_not_blow_up_float32():
    # One view: the consistent graph ties all samples together, and L is singular in that group.
    X = np.random.RandomState(0).uniform(size=(20, 5)).astype("f4") * 3
    one, two = (AnchorGRMSC(3, random_state=1).fit(X.astype(kind)) for kind in ("f4", "f8"))
    # systems solved to 3.5e-4 in float32
    assert_allclose(one.representation_, two.representation_, rtol=0, atol=2e-3)


# ---- anchors and neighbors ----------------------------------------------------------------------


@pytest.mark.slow
def test_anchors():
    views = planted().views
    unit = scale_views(check_views(views), "unit")
    chosen = np.array([300, 5, 100, 7])
    taken = AnchorGRMSC(3, anchors=chosen).fit(views).anchors_
    for A, X in zip(taken, unit, strict=True):
        assert_array_equal(A, X[chosen])  # in the order given
    sampled = AnchorGRMSC(3, anchors="sample", n_anchors=10, random_state=0).fit(views).anchors_
    rows = [np.flatnonzero((unit[0] == a).all(axis=1))[0] for a in sampled[0]]
    assert len(set(rows)) == 10
    assert_array_equal(sampled[1], unit[1][rows])
    centers = AnchorGRMSC(3, n_anchors=10, random_state=0).fit(views).anchors_
    assert_allclose(np.linalg.norm(centers[0], axis=1), 1)
    raw = AnchorGRMSC(3, n_anchors=10, scale=None, random_state=0).fit(views).anchors_
    for A, X in zip(raw, views, strict=True):  # of the samples' mean length
        assert_allclose(np.linalg.norm(A, axis=1), np.linalg.norm(X, axis=1).mean())


@pytest.mark.parametrize("cells", [False, True])
def test_labels_are_smoothed_over_the_mutual_neighbors_of_the_views(cells, monkeypatch):
    """Against the formula, on dense graphs of GRMSC; with cells, samples are reordered inside."""
    views = planted(300, noise=0.6).views
    order = np.random.default_rng(0).permutation(300)
    views = [X[order] for X in views]
    if cells:  # one cell that holds all, so that the neighbors are still exact
        monkeypatch.setattr(laplacian, "DENSE_BELOW", 299)
        monkeypatch.setattr(search, "EXACT_BELOW", 299)
        monkeypatch.setattr(search, "CELL", 75)
    given = {"n_anchors": 20, "random_state": 0, "n_kept": 4}
    model = AnchorGRMSC(3, smoothing=7, **given).fit(views)
    S = sum(first_order(X, 10)[0] for X in scale_views(check_views(views), "unit"))
    Y = embed(model.representation_.T, Bipartite(*model._bipartite))
    for _ in range(7):
        Y = Y + (S * np.maximum(Y @ Y.T, 0)) @ Y / S.sum(axis=1, keepdims=True).clip(1e-300)
        Y = Y / np.linalg.norm(Y, axis=1, keepdims=True)
    assert_array_equal(model.labels_, nearest_center(Y, model._centers))
    means = [Y[model.labels_ == j].mean(axis=0) for j in range(3)]
    assert_allclose(model._centers, means, atol=1e-6)  # two ways to add up distances
    plain = AnchorGRMSC(3, smoothing=0, **given).fit(views)
    assert_array_equal(plain.representation_, model.representation_)
    assert np.any(plain.labels_ != model.labels_)


def test_a_neighbor_in_another_cluster_does_not_pull():
    Y = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]])
    graph = sp.csr_array(np.array([[0, 0.1, 9, 9], [0.1, 0, 0, 0], [9, 0, 0, 0], [9, 0, 0, 0]]))
    with Threads(1) as workers:
        moved = smooth(workers, [Y[:1], Y[1:]], [(0, 1), (1, len(Y))], graph, 10)
    assert_array_equal(np.concatenate(moved), Y)


@pytest.mark.slow
def test_cells_are_used_for_many_samples_and_recall_is_reported(monkeypatch):
    data = planted(900)
    exact = AnchorGRMSC(3, n_anchors=20, random_state=0).fit(data.views)
    assert exact.recall_ == [1.0, 1.0]
    monkeypatch.setattr(laplacian, "DENSE_BELOW", 500)
    monkeypatch.setattr(search, "EXACT_BELOW", 800)
    monkeypatch.setattr(search, "CELL", 100)
    found = AnchorGRMSC(3, n_anchors=20, random_state=0).fit(data.views)
    assert all(0.8 < r < 1 for r in found.recall_)
    assert clustering_scores(exact.labels_, found.labels_)["nmi"] > 0.9
    monkeypatch.setattr(search, "PROBES", 1)
    monkeypatch.setattr(search, "CELL", 10)
    with pytest.warns(
        UserWarning, match=r"Only \d+% of the neighbors in view 0 were found"
    ) as all_:
        AnchorGRMSC(3, n_anchors=20, random_state=0).fit(data.views)
    assert all_[0].filename == __file__  # it points at the call


def test_dtypes():
    views = planted(200).views
    single = [X.astype(np.float32) for X in views]
    few = {"n_anchors": 20, "random_state": 0}
    assert AnchorGRMSC(3, **few).fit(views).representation_.dtype == np.float64
    assert AnchorGRMSC(3, **few).fit(single).representation_.dtype == np.float32
    asked = AnchorGRMSC(3, dtype="float32", **few).fit(views)
    assert asked.representation_.dtype == np.float32
    double = AnchorGRMSC(3, dtype="float64", **few).fit(single)
    assert double.representation_.dtype == np.float64
    # float32 has 7 digits and systems are solved to 3e-4 there
    assert_allclose(asked.representation_, double.representation_, rtol=0, atol=5e-3)
    many = np.broadcast_to(np.zeros(1), (20_001, 2))
    assert AnchorGRMSC()._numbers(Views([many], ["0"])) == np.float32
    assert AnchorGRMSC()._numbers(Views([many[:-1]], ["0"])) == np.float64


# ---- new samples ---------------------------------------------------------------------------------


def test_predict_finds_the_clusters_of_new_samples():
    data = planted(900)
    old, new = np.arange(900) % 3 > 0, np.arange(900) % 3 == 0
    model = AnchorGRMSC(3, n_anchors=40, random_state=0).fit([X[old] for X in data.views])
    labels = model.predict([X[new] for X in data.views])
    both = np.concatenate([model.labels_, labels])
    true = np.concatenate([data.labels[old], data.labels[new]])
    assert clustering_scores(true, both)["acc"] > 0.99
    again = model.predict([X[old] for X in data.views])
    assert np.mean(again == model.labels_) > 0.99
    one = model.predict([X[new][:1] for X in data.views])
    assert_array_equal(one, labels[:1])


def test_predict_does_not_depend_on_the_company():
    data = planted(300)
    model = AnchorGRMSC(3, n_anchors=30, random_state=0).fit(data.views)
    whole = model.predict(data.views)
    assert_array_equal(whole[7:19], model.predict([X[7:19] for X in data.views]))
    model.chunk_size = 11
    assert_array_equal(whole, model.predict(data.views))
    sparse = model.predict([sp.csr_array(X) for X in data.views])
    assert_array_equal(whole, sparse)


def test_predict_solves_its_problem():
    data = planted(300)
    model = AnchorGRMSC(3, n_anchors=15, lam1=0.5, random_state=0).fit(data.views)
    Xs = [X[:6] for X in scale_views(check_views(data.views), "unit")]
    Z = module.represent(Xs, module.Frame(*model._frame), model._root, 0.5)
    w, V = np.linalg.eigh(model.representation_ @ model.representation_.T)
    metric = (V / np.sqrt(w)) @ V.T  # Psi^-1

    def objective(Z):
        errors = [X - Z @ A for X, A in zip(Xs, model.anchors_, strict=True)]
        size = sum(np.linalg.norm(E, axis=1) for E in errors)
        return np.einsum("ij,jk,ik->i", Z, metric, Z) / 2 + 0.5 * size

    best = objective(Z)
    rng = np.random.default_rng(0)
    directions = V * w**0.25  # where the metric lets z move
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(20):
            other = Z + size * rng.normal(size=Z.shape) @ directions.T
            assert np.all(objective(other) > best - 1e-6)


def test_predict_standardizes_as_the_fit_did():
    data = planted(300)
    views = [X * 10 + 5 for X in data.views]
    model = AnchorGRMSC(3, n_anchors=30, scale="standard+unit", random_state=0).fit(views)
    assert np.mean(model.predict(views) == model.labels_) > 0.98
    few = model.predict([X[:20] for X in views])  # whose own means are others
    assert np.mean(few == model.labels_[:20]) > 0.9


def test_predict_names_what_is_wrong():
    data = planted(60)
    model = AnchorGRMSC(3, n_anchors=20, random_state=0).fit(data.views)
    with pytest.raises(ValueError, match=r"predict: view 0 has 30 features, .* fitted on 20"):
        model.predict(data.views[::-1])
    with pytest.raises(ValueError, match=r"predict: got 1 view, but the model was fitted on 2"):
        model.predict(data.views[:1])
    with pytest.raises(ValueError, match=r"^The views differ in length"):
        model.predict([data.views[0], data.views[1][:5]])
    bad = [X.copy() for X in data.views]
    bad[1][17, 3] = np.nan
    with pytest.raises(ValueError, match=r"^view 1 contains NaN: .*\(1 of 60 samples: row 17\)"):
        model.predict(bad)
    for part in bad:
        part[17] = 0
    match = r"^1 of 60 samples are all zeros in every view \(row 17\): drop them"
    with pytest.raises(ValueError, match=match):
        model.predict(bad)


def test_predict_names_what_is_wrong_in_files(tmp_path):
    data = planted(60)
    model = AnchorGRMSC(3, n_anchors=20, random_state=0).fit(data.views)
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    bad = [X.copy() for X in data.views]
    bad[1][17, 3] = np.nan
    for path, X in zip(paths, bad, strict=True):
        np.save(path, X)
    with pytest.raises(ValueError, match=r"^view 1 contains NaN: .*\(1 of 60 samples: row 17\)"):
        model.predict(paths)
    match = "predict: view 0 has 30 features, but the model was fitted on 20"
    with pytest.raises(ValueError, match=match):
        model.predict(paths[::-1])
    for path, X in zip(paths, bad, strict=True):
        X[17] = 0
        np.save(path, X)
    with pytest.raises(
        ValueError, match=r"^1 of 60 samples are all zeros in every view \(row 17\)"
    ):
        model.predict(paths)


@pytest.mark.parametrize("kind", ["memory", "files"])
@pytest.mark.parametrize("fitted_on", ["memory", "files"])
def test_predict_matches_views_by_name(tmp_path, fitted_on, kind):
    data = planted(150, n_features=20)  # so that sizes do not identify the views
    memory = dict(zip("ab", data.views, strict=True))
    files = {name: tmp_path / f"{name}.npy" for name in "ab"}
    for name, X in memory.items():
        np.save(files[name], X)
    given = {"memory": memory, "files": files}
    model = AnchorGRMSC(3, n_anchors=20, random_state=0).fit(given[fitted_on])
    X = given[kind]
    wanted = model.predict(X)
    assert_array_equal(model.predict({"b": X["b"], "a": X["a"]}), wanted)
    assert_array_equal(model.predict([X["a"], X["b"]]), wanted)
    assert np.any(model.predict([X["b"], X["a"]]) != wanted)
    match = r"predict got the views 'a', 'c', but the model was fitted on 'a', 'b': pass views with"
    with pytest.raises(ValueError, match=match):
        model.predict({"a": X["a"], "c": X["b"]})
    with pytest.raises(ValueError, match=r"AnchorGRMSC\.predict"):
        model.predict({"a": X["a"]})


# ---- files and lazy arrays -----------------------------------------------------------------------


@pytest.mark.parametrize("scale", ["unit", "standard+unit"])
@pytest.mark.parametrize("kind", ["npy", "memmap", "parquet", "zarr", "zarr array", "dask"])
@pytest.mark.slow
def test_views_in_files_give_the_same_labels(tmp_path, kind, scale):
    data = planted(300)
    paths = [tmp_path / f"{k}.{kind.split()[0].replace('memmap', 'npy')}" for k in range(2)]
    for path, X in zip(paths, data.views, strict=True):
        if path.suffix == ".npy":
            np.save(path, X)
        elif path.suffix == ".parquet":
            frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
            frame.to_parquet(path, row_group_size=64)
        elif path.suffix == ".zarr":
            pytest.importorskip("zarr").create_array(store=path, data=X, chunks=(50, 10))
    views = list(paths)
    if kind == "memmap":
        views = [np.load(path, mmap_mode="r") for path in paths]
    elif kind == "zarr array":
        views = [pytest.importorskip("zarr").open_array(path) for path in paths]
    elif kind == "dask":
        da = pytest.importorskip("dask.array")
        views = [da.from_array(X, chunks=(70, 9)) for X in data.views]
    kept = {"n_anchors": 30, "chunk_size": 100, "scale": scale, "random_state": 0}
    wanted = AnchorGRMSC(3, **kept).fit(data.views)
    model = AnchorGRMSC(3, **kept).fit(views)
    assert_array_equal(model.representation_, wanted.representation_)
    assert_array_equal(model.labels_, wanted.labels_)
    assert_array_equal(model.predict(views), wanted.predict(data.views))
    assert model.n_features_in_ == 50


def test_what_does_not_fit_in_memory_is_read_again(tmp_path, monkeypatch):
    data = planted(300)
    paths = [tmp_path / f"{k}.npy" for k in range(2)]
    for path, X in zip(paths, data.views, strict=True):
        np.save(path, X)
    kept = {"n_anchors": 30, "chunk_size": 100, "random_state": 0}
    wanted = AnchorGRMSC(3, **kept).fit(data.views)
    seen = []
    monkeypatch.setattr(chunks, "available_memory", lambda: 300 * 50 * 8)  # barely the data
    monkeypatch.setattr(module, "check_room", lambda *args: None)
    monkeypatch.setattr(module, "project", lambda c, frame: seen.append(c) or project(c, frame))
    model = AnchorGRMSC(3, **kept).fit(paths)
    assert all(isinstance(chunk, module.Rows) for chunk in seen)
    assert_array_equal(model.labels_, wanted.labels_)


project = module.project


# ---- errors, before any work ---------------------------------------------------------------------


def fails(model, X, kind, match):
    iterations = []
    with watching(iterations.append), pytest.raises(kind, match=match) as caught:
        model.fit(X)
    assert not iterations
    assert "\n" not in str(caught.value)
    assert not hasattr(model, "labels_")


def test_a_chunk_with_nan_is_named(tmp_path):
    X = planted(300).views[0]
    X[[120, 280]] = np.nan
    np.save(tmp_path / "x.npy", X)
    match = r"^view 'text' contains NaN: drop or impute .*\(2 of 300 samples: rows 120, 280\)"
    model = AnchorGRMSC(3, chunk_size=50)
    fails(model, {"text": tmp_path / "x.npy"}, ValueError, match)


def test_files_and_columns_of_views(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(9))
    model = AnchorGRMSC(3, views=[slice(0, 2), slice(2, 9)])
    fails(model, tmp_path / "x.npy", ValueError, r"^views=... cuts one 2-D array in memory")
    np.save(tmp_path / "one.npy", np.eye(9)[:1])
    fails(AnchorGRMSC(1), [tmp_path / "one.npy"], ValueError, "^view 0 has 1 sample; clustering")
    match = "^AnchorGRMSC: n_clusters=10 is more than n_samples=9"
    fails(AnchorGRMSC(10), [tmp_path / "x.npy"], ValueError, match)
    match = r"^AnchorGRMSC: lam1 must be .*; got -1\."
    fails(AnchorGRMSC(3, lam1=-1), [tmp_path / "x.npy"], ValueError, match)


def test_anchors_that_cannot_be():
    views = planted(60).views
    match = "^AnchorGRMSC: n_anchors=2 is fewer than n_clusters=3"
    fails(AnchorGRMSC(3, n_anchors=2), views, ValueError, match)
    match = "^AnchorGRMSC: anchors names sample 60, but there are 60 samples, from 0 to 59"
    fails(AnchorGRMSC(3, anchors=[1, 2, 60]), views, ValueError, match)
    for wrong in ("knn", [1, 1], [-1, 2], [0.5], np.eye(2), []):
        match = "^AnchorGRMSC: anchors must be 'kmeans' or 'sample' or a 1-D array"
        fails(AnchorGRMSC(1, anchors=wrong), views, ValueError, match)


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(module, "available_memory", lambda: 2**30)
    many = Views([np.broadcast_to(np.arange(50.0), (4_000_000, 50))] * 3, ["0", "1", "2"])
    with pytest.raises(MemoryError, match=r"4000000 samples with 100 anchors needs about \d+ GiB"):
        module.check_room(many, 100, 10, 4, None)
    module.check_room(Views([many.arrays[0][:10_000]], ["0"]), 100, 10, 8, None)


def test_says_when_it_did_not_converge():
    with pytest.warns(UserWarning, match=r"AnchorGRMSC stopped after max_iter=3 iterations"):
        model = AnchorGRMSC(3, max_iter=3).fit(random_views())
    assert model.n_iter_ == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert AnchorGRMSC(3).fit(random_views()).n_iter_ > 3


def test_eigenvalues_are_those_of_the_affinity_of_samples():
    """Samples linked by the anchors that they share: normalized, it has the same spectrum."""
    Z = np.random.default_rng(0).normal(size=(60, 12))
    B = np.where(np.abs(Z) >= np.sort(np.abs(Z), axis=1)[:, [-3]], np.abs(Z), 0)
    W = B / B.sum(axis=0) @ B.T
    root = np.sqrt(W.sum(axis=1))
    wanted = np.linalg.eigvalsh(W / np.outer(root, root))[-9:]
    with Threads(1) as workers:
        found, _ = link_spectrum(workers, [Z[:25], Z[25:]], 9, 3)
    assert_allclose(found, wanted, atol=1e-12)  # singular values of another matrix
