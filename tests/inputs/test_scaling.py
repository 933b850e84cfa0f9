"""Scalings, one for all views or one for each."""

import tracemalloc

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from polyspan import GMC, GRMSC, LRR, METHODS, AnchorGRMSC, BestSingleView
from polyspan.chunked.chunks import make_chunks
from polyspan.chunked.workers import Threads
from polyspan.datasets import make_subspaces
from polyspan.inputs.scaling import SCALES, feature_moments, scale_views
from polyspan.inputs.views import Views, check_views
from polyspan.runtime.cache import sharing

SEVERAL = [name for name, cls in METHODS.items() if not get_tags(cls()).single_view]
SCALED = [name for name in SEVERAL if "scale" in METHODS[name].parameter_checks()]
MIXED = [("unit", "standard"), ["standard", None], ("standard+unit", "unit")]


def planted(n=60):
    """Two views of three planes, their columns in different units and away from zero."""
    views = make_subspaces(n, 3, n_features=[6, 8], subspace_dim=2, random_state=0).views
    return [X * np.geomspace(0.5, 5, X.shape[1]) + 1 for X in views]


def scaled(views, scale):
    return scale_views(check_views(views), scale)


# ---- one scaling -------------------------------------------------------------------------------


def test_standard_gives_columns_mean_0_and_variance_1():
    X = planted()[0]
    X[:, 2] = 7.0
    found = scaled(X, "standard")[0]
    assert_allclose(found.mean(axis=0), 0, atol=1e-14)
    assert_allclose(found.std(axis=0), [1, 1, 0, 1, 1, 1], atol=1e-14)


def test_standard_and_then_unit_is_both():
    assert_array_equal(
        scaled(scaled(planted(), "standard"), "unit")[1], scaled(planted(), "standard+unit")[1]
    )


def test_standard_of_other_forms():
    X = planted()[0]
    wanted = scaled(X, "standard")[0]
    sparse = scaled(sp.csr_array(X), "standard")[0]
    assert isinstance(sparse, np.ndarray)
    assert_array_equal(sparse, wanted)
    assert_allclose(np.from_dlpack(scaled(strict.asarray(X), "standard")[0]), wanted, atol=1e-12)
    gaps = Views([np.r_[X, np.full((2, 6), np.nan)]], ["0"])
    assert_allclose(scale_views(gaps, "standard")[0][:-2], wanted, atol=1e-12)


def test_standard_survives_any_size():
    X = planted()[0]
    for size in (1e-300, 1e300):
        assert_allclose(scaled(X * size, "standard")[0], scaled(X, "standard")[0], atol=1e-10)


def test_standard_makes_no_wide_sparse_view_dense():
    wide = sp.random_array((200, 2**40), density=2.0**-38, format="coo", rng=0)
    with (
        pytest.warns(UserWarning, match="all zeros"),
        pytest.raises(MemoryError, match=r'^scale="standard" makes the sparse view 0 dense, .*GiB'),
    ):
        scaled([wide], "standard")


@pytest.mark.parametrize("name", ["scale", "graph_scale"])
@pytest.mark.parametrize("value", ["standard", ("unit", "standard")])
def test_kernels_cannot_be_standardized(name, value):
    model = GRMSC(3, precomputed="kernel", **{name: value})
    with pytest.raises(ValueError, match=rf'^GRMSC: {name}="standard" standardizes features'):
        model.fit([X @ X.T for X in planted()])


# ---- one for each view -------------------------------------------------------------------------


def test_every_view_gets_its_own():
    for one in SCALES:
        for two in SCALES:
            found = scaled(planted(), (one, two))
            assert_array_equal(found[0], scaled(planted(), one)[0])
            assert_array_equal(found[1], scaled(planted(), two)[1])


def test_only_views_that_are_standardized_have_moments():
    found = feature_moments(check_views(planted()), ["unit", "standard"])
    assert found[0] is None
    assert_array_equal(found[1], feature_moments(check_views(planted()))[1])


def test_only_views_that_are_standardized_become_dense():
    wide = sp.random_array((60, 2_000_000), density=1e-5, format="csr", rng=0)
    tracemalloc.start()
    try:
        model = GRMSC(3, scale=("unit", "standard"), max_iter=2, random_state=0)
        with pytest.warns(ConvergenceWarning):
            model.fit([wide, planted()[1]]).predict([wide, planted()[1]])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**27  # 128 MiB; a dense copy takes 960 MB


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_method_scales_each_view_in_its_own_way(name):
    few = {"max_iter": 5} if "max_iter" in METHODS[name].parameter_checks() else {}
    if name == "anchorgrmsc":
        few = {}  # after five iterations its graph may be in more than three parts: no clear labels
    # FastMICE scales to unit length again, in the features that a member has.
    for scale in ["standard", *MIXED] if name != "fastmice" else ["standard"]:
        model = METHODS[name](3, random_state=0, scale=scale, **few).fit(planted())
        plain = METHODS[name](3, random_state=0, scale=None, **few).fit(scaled(planted(), scale))
        assert_array_equal(model.labels_, plain.labels_)
        if hasattr(model, "representation_"):
            assert_allclose(model.representation_, plain.representation_, rtol=0, atol=1e-8)
        assert clone(model).get_params()["scale"] == scale


@pytest.mark.parametrize("name", SEVERAL)
def test_the_number_of_scalings_is_checked(name):
    cls = METHODS[name]
    for scale, words in [(("unit",), "1 scaling"), ([None, "unit", None], "3 scalings")]:
        model = cls(LRR(3, scale=scale)) if cls is BestSingleView else cls(3, scale=scale)
        match = rf"^{cls.__name__}: scale has {words} for 2 views: give one for each view, or one"
        with pytest.raises(ValueError, match=match):
            model.fit(planted())


def test_the_number_of_scalings_is_checked_in_chunks_too(tmp_path):
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path, X in zip(paths, planted(), strict=True):
        np.save(path, X)
    with pytest.raises(ValueError, match=r"^AnchorGRMSC: scale has 3 scalings for 2 views: give"):
        AnchorGRMSC(3, scale=["unit"] * 3).fit(paths)


def test_gmc_keeps_its_own_scaling():
    views = planted()
    alone = [GMC(3).scaled(check_views([X]))[0] for X in views]
    found = GMC(3, scale=("zscore", "standard")).scaled(check_views(views))
    assert_array_equal(found[0], alone[0])
    assert_array_equal(found[1], scaled(views, "standard")[1])
    for one, two in zip(GMC(3).scaled(check_views(views)), alone, strict=True):
        assert_array_equal(one, two)


def test_the_best_single_view_scales_each_in_its_own_way():
    views, scale = planted(), ("standard", None)
    model = BestSingleView(LRR(3, scale=scale, random_state=0)).fit(views)
    for X, one, found in zip(views, scale, model.estimators_, strict=True):
        assert found.scale == one
        assert_array_equal(found.labels_, LRR(3, scale=one, random_state=0).fit(X).labels_)


def test_graphs_may_be_scaled_in_their_own_way():
    views, common = planted(), {"n_clusters": 3, "random_state": 0}
    mixed = GRMSC(scale=("unit", "standard"), graph_scale=("same", "unit"), **common).fit(views)
    plain = GRMSC(scale=("unit", "standard"), graph_scale="unit", **common).fit(views)
    assert_array_equal(mixed.representation_, plain.representation_)
    other = GRMSC(scale=("unit", "standard"), graph_scale="same", **common).fit(views)
    assert not np.allclose(mixed.representation_, other.representation_)
    with pytest.raises(ValueError, match=r"^GRMSC: graph_scale has 1 scaling for 2 views"):
        GRMSC(graph_scale=["unit"], **common).fit(views)


def test_a_view_without_weight_needs_its_scaling_all_the_same():
    views, common = planted(), {"n_clusters": 3, "random_state": 0}
    for graph_scale in ("same", (None, "same", "unit")):
        model = GRMSC(
            scale=("unit", None, "standard"), graph_scale=graph_scale, view_weights=[1, 0, 1],
            **common,
        )  # fmt: skip
        model.fit([views[0], views[0] ** 2, views[1]])
        two = graph_scale if isinstance(graph_scale, str) else graph_scale[::2]
        plain = GRMSC(scale=("unit", "standard"), graph_scale=two, **common).fit(views)
        assert_array_equal(model.representation_, plain.representation_)
        assert_array_equal(model.predict([views[0], views[0] ** 2, views[1]]), plain.predict(views))


# ---- new samples, chunks and shared solutions --------------------------------------------------


@pytest.mark.parametrize("cls", [GRMSC, AnchorGRMSC])
@pytest.mark.parametrize("scale", ["standard", *MIXED])
def test_new_samples_are_scaled_as_the_fitted_ones(cls, scale):
    old, new = [X[:60] for X in planted(90)], [X[60:] for X in planted(90)]
    moments = feature_moments(check_views(old), scale)
    model = cls(3, scale=scale, random_state=0).fit(old)
    plain = cls(3, scale=None, random_state=0).fit(scaled(old, scale))
    wanted = plain.predict(scale_views(check_views(new), scale, moments))
    assert_array_equal(model.predict(new), wanted)
    assert_array_equal(
        [model.predict([X[i : i + 1] for X in new])[0] for i in range(9)], wanted[:9]
    )


@pytest.mark.parametrize("scale", MIXED)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_chunks_are_scaled_as_the_whole(form, scale):
    views = [form(X) for X in planted()]
    wanted = scaled(views, scale)
    with Threads(1) as workers:
        chunks, spans, moments = make_chunks(
            workers, Views(views, ["0", "1"]), 8, scale, np.float64, True
        )
    assert [one is not None for one in moments] == [str(one)[:8] == "standard" for one in scale]
    for chunk, (a, b) in zip(chunks, spans, strict=True):
        for part, whole in zip(chunk, wanted, strict=True):
            part, whole = (x.toarray() if sp.issparse(x) else x for x in (part, whole))
            assert_allclose(part, whole[a:b], rtol=0, atol=1e-12)


@pytest.mark.parametrize("scale", ["standard", ["unit", "standard"]])
def test_files_give_the_same_labels(tmp_path, scale):
    views, paths = planted(), [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path, X in zip(paths, views, strict=True):
        np.save(path, X)
    model = AnchorGRMSC(3, n_anchors=20, chunk_size=16, scale=scale, random_state=0)
    wanted = clone(model).fit(views)
    model.fit(paths)
    assert_array_equal(model.representation_, wanted.representation_)
    assert_array_equal(model.predict(paths), wanted.predict(views))


@pytest.mark.parametrize("cls", [GRMSC, AnchorGRMSC])
def test_shared_solutions_know_the_scaling(cls):
    scales = ["unit", ["unit", "standard"], ("unit", "standard"), ("standard", "unit"), "standard"]
    models = [cls(3, scale=scale, random_state=0) for scale in scales]
    alone = [clone(model).fit(planted()).representation_ for model in models]
    with sharing() as store:
        together = [model.fit(planted()).representation_ for model in models]
    assert store.saved > 0  # of the list and the tuple
    for a, b in zip(alone, together, strict=True):
        assert_array_equal(a, b)
    assert len({a.tobytes() for a in together}) == 4
