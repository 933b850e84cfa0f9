"""Odd shapes, ties, duplicates and extreme values: labels in range, or an error that says why."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from cases import examples
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from polyspan import GRMSC, LRR, METHODS, ConcatKMeans, ConcatSpectral
from polyspan.inputs.choice import scalings_for
from polyspan.inputs.scaling import SCALES, scale_views
from polyspan.inputs.views import check_views

pytestmark = pytest.mark.slow
unhurried = {"suppress_health_check": list(HealthCheck)}
steady = examples(30, **unhurried)
# What an error must name: a view, X, or the parameter to change.
NAMED = r"^(view |X |X:|The views|\d+ of \d+ samples|\w+: (n_clusters|n_neighbors)=)"


@st.composite
def one_view(draw, n, values):
    """A view of n samples, drawn with ties, duplicated rows, any dtype and perhaps sparse."""
    d = draw(st.integers(1, 5))
    distinct = draw(st.integers(2, n))
    X = draw(arrays(np.float64, (distinct, d), elements=values))
    rows = draw(st.lists(st.integers(0, distinct - 1), min_size=n, max_size=n))
    X = X[rows]
    dtype = draw(st.sampled_from(["float64", "float32", "int64"]))
    if dtype == "int64":
        X = np.clip(X, -1e6, 1e6)
    if dtype == "float32":
        X = np.clip(X, -3e38, 3e38)
    X = X.astype(dtype)
    return sp.csr_array(X) if draw(st.booleans()) else X


@st.composite
def some_views(draw, values, most_views=3):
    n = draw(st.integers(2, 12))
    count = draw(st.integers(1, most_views))
    return [draw(one_view(n, values)) for _ in range(count)]


tied = st.integers(-2, 2).map(float)  # few values: ties, zero samples, constant views
smooth = st.floats(-10, 10)
moderate = tied | smooth
wide = st.builds(lambda digits, power: digits * 10.0**power, st.floats(-9, 9), st.integers(-12, 12))
extreme = st.builds(
    lambda sign, digits, power: sign * digits * 10.0**power,
    st.sampled_from([-1, 0, 1]),
    st.floats(1, 9),
    st.integers(-300, 300),
)

MODELS = {
    "grmsc": st.builds(
        GRMSC,
        n_neighbors=st.none() | st.integers(1, 12),
        lam1=st.sampled_from([1e-3, 1.0, 100.0]),
        lam2=st.sampled_from([0.0, 1.0, 1e5]),
        alpha=st.sampled_from([0.0, 1e-3, 1.0]),
        orientation=st.sampled_from(["samples", "published"]),
        regularizer=st.sampled_from(["both", "first_order", "none"]),
        second_width=st.sampled_from(["own", "first"]),
        affinity=st.sampled_from(["dense", "sparse"]),
        scale=st.sampled_from(["unit", "standard+unit", "standard", None]),
        graph_scale=st.sampled_from(["same", "unit", "standard+unit", "standard", None]),
        max_iter=st.sampled_from([1, 3, 30]),
    ),
    "lrr": st.builds(
        LRR,
        lam=st.sampled_from([1e-3, 0.5, 100.0]),
        affinity=st.sampled_from(["dense", "sparse"]),
        scale=st.sampled_from(["unit", "standard+unit", "standard", None]),
        max_iter=st.sampled_from([1, 3, 30]),
    ),
    "concatkmeans": st.builds(
        ConcatKMeans, scale=st.sampled_from(["unit", "standard+unit", "standard", None])
    ),
    "concatspectral": st.builds(
        ConcatSpectral,
        n_neighbors=st.none() | st.integers(1, 12),
        scale=st.sampled_from(["unit", "standard+unit", "standard", None]),
    ),
}


def fit_or_say_why(model, views):
    """Fit; the labels are in range, or the error names what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="Some of the .* samples are all zeros")
        try:
            labels = model.fit_predict(views)
        except ValueError as error:
            if not re.match(NAMED, str(error)):
                raise
            return
    assert labels.shape == (views[0].shape[0],)
    assert labels.dtype.kind == "i"
    assert labels.min() >= 0
    assert labels.max() < model.n_clusters


@pytest.mark.parametrize("values", [tied, moderate, wide], ids=["ties", "any", "wide"])
@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
@steady
def test_labels_or_a_named_error(name, values, data):
    views = data.draw(some_views(values, 1 if name == "lrr" else 3))
    model = data.draw(MODELS[name])
    n = views[0].shape[0]
    model.set_params(n_clusters=data.draw(st.integers(1, n + 1)), n_init=2, random_state=0)
    fit_or_say_why(model, views)


@pytest.mark.parametrize("name", MODELS)
@given(data=st.data())
@steady
def test_labels_or_a_named_error_at_any_scale(name, data):
    views = data.draw(some_views(extreme, 1 if name == "lrr" else 2))
    model = data.draw(MODELS[name])
    n = views[0].shape[0]
    model.set_params(n_clusters=data.draw(st.integers(1, n + 1)), n_init=2, random_state=0)
    fit_or_say_why(model, views)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in MODELS])
@given(views=some_views(moderate), clusters=st.integers(1, 13))
@examples(12, **unhurried)
def test_labels_or_a_named_error_of_the_other_methods(name, views, clusters):
    model = METHODS[name](n_clusters=clusters, random_state=0)
    fit_or_say_why(model, views[:1] if get_tags(model).single_view else views)


@given(
    views=some_views(extreme), scale=st.sampled_from(["unit", "standard+unit", "standard", None])
)
@examples(100, **unhurried)
@example(views=[np.array([[1e300, -1e300], [1e-300, 1e-300]])], scale="unit")
@example(views=[np.array([[1e300, -1e300], [1e-300, 1e-300]])], scale="standard+unit")
@example(views=[np.array([[5e-324, 0.0], [0.0, 5e-324]])], scale="unit")
@example(views=[np.array([[1.7e308, 1.7e308], [-1.7e308, 1.7e308]])], scale="standard+unit")
@example(views=[sp.csr_array([[1.7e308, 1.7e308], [-1.7e308, 5e-324]])], scale="unit")
def test_scaling_is_finite_or_says_why(views, scale):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Some of the .* samples are all zeros")
        try:
            checked = check_views(views)
            scaled = scale_views(checked, scale)
        except ValueError as error:
            if not re.match(NAMED, str(error)):
                raise
            return
    for view, before in zip(scaled, checked.arrays, strict=True):
        assert view.dtype == before.dtype
        dense = view.toarray() if sp.issparse(view) else view
        assert np.all(np.isfinite(dense))
        if scale is None:
            continue
        if scale == "standard":
            assert np.all(np.abs(dense) <= 2 * len(dense) ** 0.5)
            continue
        lengths = np.linalg.norm(dense.astype(np.float64), axis=1)
        near = 10 * np.finfo(view.dtype).eps
        assert np.all((lengths == 0) | (np.abs(lengths - 1) < near))
        if scale == "unit":
            full = before.toarray() if sp.issparse(before) else before
            np.testing.assert_array_equal(lengths > 0, np.any(full != 0, axis=1))


@given(views=some_views(extreme))
@examples(100, **unhurried)
@example(views=[np.array([[1.7e308, 5e-324], [-1.7e308, 0.0]])])
@example(views=[sp.csr_array([[1.7e308, 5e-324], [-1.7e308, 0.0]])])
def test_a_scaling_is_chosen_for_any_view(views):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Some of the .* samples are all zeros")
        try:
            checked = check_views(views)
        except ValueError:
            return
        warnings.simplefilter("error")
        for combination in scalings_for(checked):
            assert len(combination) == len(checked.arrays)
            assert set(combination) <= set(SCALES)
