"""Kernels and graphs instead of features, and weights of views."""

import literal
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import get_tags

from polyspan import GRMSC
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.graphs.proximity import first_order
from polyspan.inputs.scaling import scale_views
from polyspan.inputs.views import check_views
from polyspan.methods.grmsc import graph_laplacian
from polyspan.solvers.loop import watching


def planted(n=45, noise=0.2):
    data = make_subspaces(n, 3, n_features=[6, 60, 9], subspace_dim=2, noise=noise, random_state=0)
    return data.views


def unit(views):
    return scale_views(check_views(views), "unit")


def kernels(Xs):
    return [X @ X.T for X in Xs]


def refused(model, views, match):
    iterations = []
    with watching(iterations.append), pytest.raises(ValueError, match=match) as caught:
        model.fit(views)
    assert not iterations
    assert "\n" not in str(caught.value)


# ---- kernels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"lam1": 0.1, "lam2": 1.0, "orientation": "published"}, {"scale": None}]
)
def test_the_linear_kernel_is_the_plain_fit(options):
    Xs = unit(planted())
    plain = GRMSC(3, random_state=0, **options).fit(Xs)
    kernel = GRMSC(3, precomputed="kernel", random_state=0, **options).fit(kernels(Xs))
    assert kernel.n_iter_ == plain.n_iter_
    assert_allclose(kernel.representation_, plain.representation_, rtol=0, atol=1e-8)
    assert_array_equal(kernel.labels_, plain.labels_)


def test_the_linear_kernel_is_the_plain_fit_on_3_sources(data_dir):
    Xs = [X.toarray() for X in unit(load_dataset("three_sources").views)]
    plain = GRMSC(6, random_state=0).fit(Xs)
    kernel = GRMSC(6, precomputed="kernel", random_state=0).fit(kernels(Xs))
    assert_allclose(kernel.representation_, plain.representation_, rtol=0, atol=1e-8)


def test_unit_scaling_of_a_kernel_is_that_of_its_features():
    views = [X * np.arange(1, 46)[:, None] for X in planted()]
    plain = GRMSC(3, random_state=0).fit(views)
    kernel = GRMSC(3, precomputed="kernel", random_state=0).fit(kernels(views))
    assert_allclose(kernel.representation_, plain.representation_, rtol=0, atol=1e-8)
    given = GRMSC(3, precomputed="kernel", random_state=0).fit(
        list(map(sp.csr_array, kernels(views)))
    )
    assert_allclose(given.representation_, plain.representation_, rtol=0, atol=1e-8)


def test_new_samples_by_kernels():
    old, new = [X[:30] for X in planted()], [X[30:] for X in planted()]
    plain = GRMSC(3, random_state=0).fit(old)
    kernel = GRMSC(3, precomputed="kernel", random_state=0).fit(kernels(old))
    cross = [b @ a.T for a, b in zip(old, new, strict=True)]
    # A new sample is scaled by the length of its part in the span of the fitted ones, which is
    # the whole sample up to noise if there are fewer features than samples.
    assert np.mean(kernel.predict(cross) == plain.predict(new)) > 0.9
    with pytest.raises(ValueError, match=r"^GRMSC.predict: view 0 has 15 feat.* fitted on 30"):
        kernel.predict([b @ b.T for b in new])


def test_a_kernel_without_features():
    D = [np.linalg.norm(X[:, None] - X[None], axis=2) for X in planted(noise=0.01)]
    model = GRMSC(3, precomputed="kernel", random_state=0).fit([np.exp(-(d**2)) for d in D])
    assert len(set(model.labels_)) == 3
    assert get_tags(model).input_tags.pairwise
    assert not get_tags(GRMSC()).input_tags.pairwise


def changed(k, change):
    found = kernels(planted())
    found[k] = change(found[k])
    return found


def lopsided(K):
    K = K.copy()
    K[0, 1] += 1.0
    return K


def holed(K):
    K = K.copy()
    K[2] = np.nan
    return K


WRONG_KERNELS = {
    "square": (changed(1, lambda K: K[:, :44]), "^GRMSC: view 1 is 45 x 44, .* 45 x 45"),
    "symmetric": (changed(2, lopsided), "^GRMSC: view 2 is not symmetric"),
    "negative": (changed(0, lambda K: K - 0.5 * np.eye(45)), "^GRMSC: view 0 has the negative eig"),
    "gap": (changed(1, holed), "^GRMSC: view 1 contains NaN, but a kernel must be complete"),
}


@pytest.mark.parametrize("case", WRONG_KERNELS)
def test_wrong_kernels(case):
    views, match = WRONG_KERNELS[case]
    refused(GRMSC(3, precomputed="kernel"), views, match)


@pytest.mark.parametrize("name", ["scale", "graph_scale"])
def test_kernels_cannot_be_standardized(name):
    model = GRMSC(3, precomputed="kernel", **{name: "standard+unit"})
    refused(model, kernels(planted()), rf'^GRMSC: {name}="standard\+unit" standardizes features')


# ---- graphs ------------------------------------------------------------------------------------


def firsts(views, k=30):
    return [first_order(X, k)[0] for X in unit(views)]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_matrix, pd.DataFrame])
@pytest.mark.parametrize("regularizer", ["both", "first_order"])
def test_given_graphs_replace_those_of_the_features(form, regularizer):
    views = planted()
    given = [form(Lambda + 7 * np.eye(45)) for Lambda in firsts(views)]  # the diagonal is dropped
    plain = GRMSC(3, regularizer=regularizer, random_state=0).fit(views)
    model = GRMSC(3, regularizer=regularizer, graphs=given, random_state=0).fit(views)
    assert_allclose(model.representation_, plain.representation_, rtol=0, atol=1e-10)
    other = GRMSC(3, regularizer=regularizer, graphs=[form(x) for x in firsts(views, 5)])
    assert np.abs(other.fit(views).representation_ - plain.representation_).max() > 1e-4


def test_graphs_by_name_and_beside_kernels_gaps_and_weights():
    views = planted()
    given = firsts(views)
    wanted = GRMSC(3, graphs=given, random_state=0).fit(views).representation_
    named = GRMSC(3, graphs=dict(zip("cba", given[::-1], strict=True)), random_state=0)
    found = named.fit(dict(zip("abc", views, strict=True))).representation_
    assert_array_equal(found, wanted)
    kernel = GRMSC(3, graphs=given, precomputed="kernel", random_state=0).fit(kernels(views))
    assert_allclose(kernel.representation_, wanted, rtol=0, atol=1e-8)
    fewer = GRMSC(3, graphs=given[:2], random_state=0).fit(views[:2]).representation_
    weighted = GRMSC(3, graphs=given, view_weights=[1, 1, 0], random_state=0).fit(views)
    assert_array_equal(weighted.representation_, fewer)
    views[0] = np.where(np.arange(45)[:, None] < 5, np.nan, views[0])
    assert np.isfinite(GRMSC(3, graphs=given).fit(views).representation_).all()


def test_graphs_for_other_libraries():
    strict = pytest.importorskip("array_api_strict")
    views = planted()
    wanted = GRMSC(3, graphs=firsts(views)).fit(views).representation_
    found = GRMSC(3, graphs=firsts(views)).fit([strict.asarray(X) for X in views]).representation_
    assert_allclose(np.asarray(found), wanted, rtol=0, atol=1e-8)


def test_wrong_graphs():
    views = planted()
    given = firsts(views)
    for graphs, match in [
        (given[:2], "^GRMSC: got 2 graphs for 3 views: give one graph per view"),
        (
            [*given[:2], given[2][:, :44]],
            "^GRMSC: the graph of view 2 is 45 x 44: it must be 45",
        ),
        ([lopsided(given[0]), *given[1:]], "^GRMSC: the graph of view 0 is not symmetric"),
        ([given[0], -given[1], given[2]], "^GRMSC: the graph of view 1 has weights that are neg"),
        ([holed(given[0]), *given[1:]], "^GRMSC: the graph of view 0 has weights .* NaN"),
        ([0 * given[0], *given[1:]], "^GRMSC: the graph of view 0 has no edges"),
        (dict(zip("abc", given, strict=True)), "^GRMSC: graphs has the names 'a', 'b', 'c', but"),
    ]:
        refused(GRMSC(3, graphs=graphs), views, match)
    first = GRMSC(3, graphs=given, second_width="first")
    refused(first, views, '^GRMSC: second_width="first" takes the width')


# ---- weights -----------------------------------------------------------------------------------


def test_weights_of_one_change_nothing():
    views = planted()
    wanted = GRMSC(3, random_state=0).fit(views).representation_
    for ones in ([1, 1, 1], (1.0, 1.0, 1.0), np.ones(3)):
        assert_array_equal(GRMSC(3, view_weights=ones).fit(views).representation_, wanted)


@pytest.mark.parametrize("regularizer", ["both", "first_order", "none"])
def test_a_weight_of_zero_leaves_the_view_out(regularizer):
    views = planted()
    options = {"regularizer": regularizer, "lam1": 1.0, "lam2": 10.0, "random_state": 0}
    one = GRMSC(3, view_weights=[2.0, 0.0, 0.5], **options).fit(views)
    two = GRMSC(3, view_weights=[2.0, 0.5], **options).fit([views[0], views[2]])
    assert_array_equal(one.representation_, two.representation_)
    new = [X[:7] for X in planted(noise=0.5)]
    assert_array_equal(one.predict(new), two.predict([new[0], new[2]]))
    new[1] = np.full_like(new[1], np.nan)  # it is not looked at
    assert_array_equal(one.predict(new), two.predict([new[0], new[2]]))


def test_weights_multiply_the_errors_and_what_a_view_adds():
    views = planted()
    w = [2.0, 0.25, 1.0]
    Xs = unit(views)
    model = GRMSC(3, view_weights=w, lam1=1.0, lam2=10.0, n_neighbors=8).fit(views)
    alone = [graph_laplacian(Xs, 8, alpha=1e-3, weights=np.eye(3)[k]) for k in range(3)]
    common = graph_laplacian(Xs, 8, alpha=0.0)
    L = common + sum(x * (one - common) for x, one in zip(w, alone, strict=True))
    assert_allclose(graph_laplacian(Xs, 8, weights=w), L, rtol=0, atol=1e-14)
    Z, iterations = literal.algorithm_1([X.T for X in Xs], L, [1.0 * x for x in w], 10.0, "samples")
    assert model.n_iter_ == iterations
    assert_allclose(model.representation_, Z, rtol=0, atol=1e-6)  # as without weights
    plain = GRMSC(3, lam1=1.0, lam2=10.0, n_neighbors=8).fit(views).representation_
    assert np.abs(plain - Z).max() > 1e-3


def test_equal_weights_without_graphs_are_another_lam1():
    views = planted()
    one = GRMSC(3, regularizer="none", lam1=0.1, view_weights=[3.0] * 3).fit(views)
    two = GRMSC(3, regularizer="none", lam1=0.1 * 3.0).fit(views)
    assert_array_equal(one.representation_, two.representation_)


def test_wrong_weights():
    views = planted()
    refused(GRMSC(3, view_weights=[1.0, 2.0]), views, "^GRMSC: view_weights has 2 numbers for 3 vi")
    views[0] = np.where(np.arange(45)[:, None] == 5, np.nan, views[0])
    match = r"^1 of 45 samples are NaN in every view \(row 5\)"
    refused(GRMSC(3, view_weights=[1.0, 0.0, 0.0]), views, match)
