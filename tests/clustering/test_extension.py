"""New samples: `predict`, the mathematics behind it, and what it refuses."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import get_tags

from polyspan import GRMSC, METHODS
from polyspan.base import RepresentationClusterer
from polyspan.clustering.extension import RIDGE, extend_labels, new_representation
from polyspan.clustering.spectral import spectral_embedding
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.metrics import clustering_scores

PREDICTS = [name for name, cls in METHODS.items() if issubclass(cls, RepresentationClusterer)]


def halves(n=120, noise=0.05, seed=0, **params):
    """Two views of three planes: samples to fit on, new ones, and the labels of both."""
    data = make_subspaces(
        n, 3, n_features=[9, 14], subspace_dim=2, noise=noise, random_state=seed, **params
    )
    order = np.random.default_rng(0).permutation(n)
    old, new = order[: n // 2], order[n // 2 :]
    return (
        [X[old] for X in data.views],
        [X[new] for X in data.views],
        data.labels[old],
        data.labels[new],
    )


# ---- what it finds -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bbcsport", "ngs"])
def test_new_samples_are_clustered_as_by_a_fit_on_all(data_dir, name):
    data = load_dataset(name)
    n = len(data.labels)
    whole = GRMSC(data.n_clusters, random_state=0).fit_predict(data.views)
    differences = []
    for seed in range(2 if name == "ngs" else 1):
        order = np.random.default_rng(seed).permutation(n)
        old, new = order[: int(0.8 * n)], order[int(0.8 * n) :]
        model = GRMSC(data.n_clusters, random_state=0).fit([X[old] for X in data.views])
        found = model.predict([X[new] for X in data.views])
        scores = [clustering_scores(data.labels[new], x[:])["nmi"] for x in (found, whole[new])]
        differences.append(scores[0] - scores[1])
        # And the fitted samples get their own labels back, but for one or two on the border.
        again = model.predict([X[old] for X in data.views])
        assert np.mean(again == model.labels_) > 0.98
    assert np.mean(differences) > -0.05


@pytest.mark.parametrize("name", PREDICTS)
def test_every_method_with_a_representation_predicts(name):
    old, new, _, labels = halves(noise=0.01)
    if get_tags(METHODS[name]()).single_view:
        old, new = old[:1], new[:1]
    model = METHODS[name](3, random_state=0).fit(old)
    assert clustering_scores(labels, model.predict(new))["acc"] > 0.9
    assert model.predict(new).dtype == model.labels_.dtype


def test_the_others_have_no_predict():
    for name in set(METHODS) - {*PREDICTS, "anchorgrmsc", "selfgraph"}:  # which have their own
        assert not hasattr(METHODS[name](), "predict"), name


@pytest.mark.parametrize("affinity", ["dense", "sparse"])
@pytest.mark.parametrize("scale", ["unit", "standard+unit", "standard", None])
def test_scales_and_affinities(scale, affinity):
    old, new, _, labels = halves(noise=0.01)
    model = GRMSC(3, scale=scale, affinity=affinity, random_state=0).fit(old)
    assert clustering_scores(labels, model.predict(new))["acc"] > 0.95  # 1.0 for most


def test_samples_are_predicted_one_by_one_as_together():
    old, new, *_ = halves(noise=0.5)
    model = GRMSC(3, scale="standard+unit", random_state=0).fit(old)
    together = model.predict(new)
    singly = [model.predict([X[i : i + 1] for X in new])[0] for i in range(len(together))]
    assert_array_equal(singly, together)  # the moments are those of the fit, not of the new


def test_predict_changes_nothing():
    old, new, *_ = halves()
    model = GRMSC(3, random_state=0).fit(old)
    before = {key: np.array(getattr(model, key)) for key in ("labels_", "representation_")}
    kept, copies = vars(model).copy(), [X.copy() for X in new]
    model.predict(new)
    assert all(vars(model)[key] is value for key, value in kept.items())
    for key, value in before.items():
        assert_array_equal(getattr(model, key), value)
    for X, copy in zip(new, copies, strict=True):
        assert_array_equal(X, copy)


@pytest.mark.parametrize("scale", ["unit", None])
def test_the_model_does_not_depend_on_the_users_arrays_later(scale):
    old, new, *_ = halves()
    model = GRMSC(3, scale=scale, random_state=0).fit(old)
    wanted = model.predict(new)
    for X in old:
        X[:] = 0.0
    assert_array_equal(model.predict(new), wanted)


def test_forms_of_input():
    old, new, *_ = halves()
    wanted = GRMSC(3, random_state=0).fit(old).predict(new)
    cuts = [slice(0, 9), slice(9, 23)]
    named = GRMSC(3, random_state=0).fit(dict(zip("ab", old, strict=True)))
    assert_array_equal(named.predict({"b": new[1], "a": new[0]}), wanted)  # by name, not by place
    assert_array_equal(named.predict(new), wanted)
    frames = GRMSC(3, random_state=0).fit([pd.DataFrame(X) for X in old])
    assert_array_equal(frames.predict([pd.DataFrame(X) for X in new]), wanted)
    sparse = GRMSC(3, random_state=0).fit([sp.csr_array(X) for X in old])
    assert_array_equal(sparse.predict([sp.coo_matrix(X) for X in new]), wanted)
    assert_array_equal(sparse.predict(new), wanted)
    cut = GRMSC(3, views=cuts, random_state=0).fit(np.hstack(old))
    assert_array_equal(cut.predict(np.hstack(new)), wanted)
    pipe = make_pipeline(MinMaxScaler(), GRMSC(3, views=cuts, random_state=0)).fit(np.hstack(old))
    assert pipe.predict(np.hstack(new)).shape == wanted.shape


def test_other_libraries():
    strict = pytest.importorskip("array_api_strict")
    old, new, *_ = halves()
    wanted = GRMSC(3, random_state=0).fit(old).predict(new)
    model = GRMSC(3, random_state=0).fit([strict.asarray(X) for X in old])
    assert_array_equal(model.predict([strict.asarray(X) for X in new]), wanted)
    assert_array_equal(model.predict(new), wanted)


def test_new_samples_may_lack_views():
    old, new, _, labels = halves(noise=0.01)
    model = GRMSC(3, random_state=0).fit(old)
    gaps = [X.copy() for X in new]
    gaps[0][::3], gaps[1][1::3] = np.nan, np.nan
    assert clustering_scores(labels, model.predict(gaps))["acc"] > 0.9
    assert_array_equal(model.predict(gaps)[2::3], model.predict(new)[2::3])
    nothing = [np.full_like(new[0], np.nan), new[1]]
    assert clustering_scores(labels, model.predict(nothing))["acc"] > 0.9


# ---- the mathematics ---------------------------------------------------------------------------


def test_the_representation_solves_its_problem():
    rng = np.random.default_rng(0)
    Xs = [rng.normal(size=(12, d)) for d in (5, 20)]
    new = [rng.normal(size=(3, d)) for d in (5, 20)]
    new[0][1] = np.nan
    weights = [0.5, 2.0]
    Z = rng.normal(size=(12, 12))
    found = new_representation(Xs, new, Z, weights)
    U, s, _ = np.linalg.svd(Z)
    root = U / np.sqrt(s) @ U.T  # its square is (Z Z^T)^-1/2
    for j in range(3):
        used = [k for k in range(2) if not np.isnan(new[k][j]).any()]
        g = RIDGE * sum(weights[k] * (Xs[k] ** 2).sum() for k in used) / 12
        rows = [np.sqrt(weights[k]) * Xs[k].T for k in used] + [np.sqrt(g) * root]
        goal = [np.sqrt(weights[k]) * new[k][j] for k in used] + [np.zeros(12)]
        wanted = np.linalg.lstsq(np.vstack(rows), np.concatenate(goal), rcond=None)[0]
        assert_allclose(found[:, j], wanted, rtol=0, atol=1e-9)


def test_the_low_rank_term_is_the_growth_of_the_nuclear_norm():
    rng = np.random.default_rng(0)
    Z, z = rng.normal(size=(8, 8)), 1e-3 * rng.normal(size=(8, 1))
    U, s, _ = np.linalg.svd(Z)
    growth = np.linalg.norm(np.hstack([Z, z]), "nuc") - s.sum()
    term = float((z.T @ (U / s) @ U.T @ z).item()) / 2
    assert growth == pytest.approx(term, rel=1e-3)  # the next order is 1e-6 of it over s^2


def test_a_representation_of_low_rank_keeps_new_samples_in_its_range():
    rng = np.random.default_rng(0)
    V = np.linalg.qr(rng.normal(size=(12, 3)))[0]
    z = new_representation([rng.normal(size=(12, 5))], [rng.normal(size=(2, 5))], V @ V.T)
    assert_allclose(V @ (V.T @ z), z, rtol=0, atol=1e-12)


def test_a_fitted_sample_is_embedded_where_it_is():
    # The column of W itself as the affinities of a "new" sample: Nystroem's extension is exact,
    # so that the nearest mean of unit rows is found without knowing which sample it was.
    rng = np.random.default_rng(0)
    W = np.abs(rng.normal(size=(30, 30)))
    W = W + W.T
    labels = rng.integers(0, 3, size=30)
    Y = spectral_embedding(W, 3)
    centers = np.array([Y[labels == c].mean(axis=0) for c in range(3)])
    wanted = np.linalg.norm(Y[:, None] - centers, axis=2).argmin(axis=1)
    assert_array_equal(extend_labels(W, labels, 3, W), wanted)
    assert_array_equal(extend_labels(sp.csr_array(W), labels, 3, -W), wanted)


def test_only_the_largest_entries_count_when_sparse():
    W = np.kron(np.eye(2), np.ones((5, 5)))
    labels = np.repeat([0, 1], 5)
    z = np.array([0.9, 0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5, 0.5])[:, None]
    assert extend_labels(W, labels, 2, z) == [1]
    assert extend_labels(W, labels, 2, z, n_kept=1) == [0]


def test_a_representation_of_nothing():
    X = np.eye(4)
    assert_array_equal(new_representation([X], [X[:2]], np.zeros((4, 4))), np.zeros((4, 2)))
    assert extend_labels(np.zeros((4, 4)), np.array([0, 0, 2, 2]), 3, np.zeros((4, 1)))[0] in (0, 2)


def test_empty_clusters_are_never_predicted():
    view = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 6)
    model = GRMSC(5, random_state=0).fit([view, view])
    assert set(model.predict([view, view])) <= set(model.labels_)


# ---- errors ------------------------------------------------------------------------------------


def test_not_fitted():
    with pytest.raises(NotFittedError, match="This GRMSC instance is not fitted yet"):
        GRMSC(3).predict(halves()[1])


def spoil(X, value, row=slice(None), column=slice(None)):
    X = X.copy()
    X[row, column] = value
    return X


WRONG = {
    "one view": (
        lambda X: X[:1],
        r"^GRMSC.predict: got 1 view, but .* fitted on 2: pass the same",
    ),
    "three views": (lambda X: [*X, X[0]], r"^GRMSC.predict: got 3 views, but .* fitted on 2"),
    "features": (lambda X: [X[0], X[1][:, 1:]], "^GRMSC.predict: view 1 has 13 features, .* on 14"),
    "swapped": (lambda X: X[::-1], "^GRMSC.predict: view 0 has 14 features, .* on 9"),
    "lengths": (lambda X: [X[0], X[1][1:]], "^The views differ in length: view 0 has 60"),
    "NaN": (lambda X: [X[0], spoil(X[1], np.nan, 3, 2)], r"^view 1 contains NaN .* \(row 3\)"),
    "inf": (lambda X: [spoil(X[0], np.inf, 3, 2), X[1]], r"^view 0 contains inf .* \(row 3\)"),
    "nowhere": (
        lambda X: [spoil(x, np.nan, 4) for x in X],
        r"^1 of 60 .* NaN in every .*\(row 4\)",
    ),
    "zeros": (lambda X: [spoil(x, 0.0, 4) for x in X], r"^1 of 60 samples are all zeros in every"),
    "empty": (lambda X: [], "^X is an empty list"),
    "text": (lambda X: [X[0], np.full((60, 14), "x")], "^view 1: could not convert|^view 1: dtype"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_views(case):
    spoilt, match = WRONG[case]
    old, new, *_ = halves()
    model = GRMSC(3, random_state=0).fit(old)
    with pytest.raises(ValueError, match=match) as caught:
        model.predict(spoilt(new))
    assert "\n" not in str(caught.value)


def test_wrong_names():
    old, new, *_ = halves()
    model = GRMSC(3, random_state=0).fit(dict(zip("ab", old, strict=True)))
    match = r"^GRMSC.predict got the views 'a', 'c', but the model was fitted on 'a', 'b': pass"
    with pytest.raises(ValueError, match=match):
        model.predict(dict(zip("ac", new, strict=True)))
    with pytest.raises(
        ValueError, match=r"^GRMSC.predict: view 'b' has 3 features, .* fitted on 14"
    ):
        model.predict({"a": new[0], "b": new[1][:, :3]})


def test_other_methods_take_no_gaps():
    old, new, *_ = halves()
    model = METHODS["lmsc"](3, random_state=0).fit(old)
    with pytest.raises(ValueError, match=r"^view 0 contains NaN: drop or impute"):
        model.predict([spoil(new[0], np.nan, 0), new[1]])
