"""The same code on NumPy, torch and array-api-strict, the latter on its second (fake) device."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from polyspan import METHODS
from polyspan.datasets import make_subspaces
from polyspan.graphs import proximity
from polyspan.runtime.arrays import order_statistics, to_numpy
from polyspan.solvers import prox


def strict(x):
    xp = pytest.importorskip("array_api_strict")
    return xp.asarray(x, device=xp.Device("device1"))


def torch(x):
    library = pytest.importorskip("torch", reason="torch is not installed")
    library.set_num_threads(1)  # small arrays: threads would only wait for each other
    return library.asarray(x)


LIBRARIES = pytest.mark.parametrize("library", [strict, torch])


@pytest.fixture(scope="module")
def data():
    # More than 200 samples, so that the partial threshold runs too.
    return make_subspaces(n_samples=230, n_clusters=3, n_features=20, noise=0.05, random_state=0)


CASES = {
    "grmsc": {},
    "grmsc published": {"orientation": "published", "second_width": "first"},
    "grmsc standard": {"scale": "standard+unit", "graph_scale": "unit"},
    "grmsc first order": {"regularizer": "first_order"},
    "lrr": {},
    "bestsingleview": {},
    "concatkmeans": {},
    "concatspectral": {},
}


@pytest.mark.slow
@LIBRARIES
@pytest.mark.parametrize("case", CASES)
def test_all_libraries_agree(data, library, case):
    views = data.views[:1] if case == "lrr" else data.views
    model = METHODS[case.split()[0]](n_clusters=3, random_state=0, **CASES[case])
    plain = model.fit(views).labels_
    Z = getattr(model, "representation_", None)
    found = model.fit([library(X) for X in views])
    assert isinstance(found.labels_, np.ndarray)
    assert np.array_equal(found.labels_, plain)
    if Z is not None:
        assert type(found.representation_) is type(library(Z))
        # Other kernels round differently; thirty iterations leave 1e-12 of it.
        assert_allclose(to_numpy(found.representation_), Z, rtol=0, atol=1e-10)


@LIBRARIES
def test_results_stay_on_the_device_of_the_views(data, library):
    views = [library(X) for X in data.views]
    model = METHODS["grmsc"](n_clusters=3, random_state=0).fit(views)
    assert model.representation_.device == views[0].device
    assert model.affinity_matrix_.device == views[0].device


@LIBRARIES
def test_float32_stays_float32(data, library):
    views = [library(X.astype(np.float32)) for X in data.views]
    model = METHODS["grmsc"](n_clusters=3, random_state=0).fit(views)
    assert model.representation_.dtype == views[0].dtype
    double = METHODS["grmsc"](n_clusters=3, random_state=0).fit(data.views)
    # float32 has 7 digits, and M = lam2 (L + L^T) a condition number of some 1,000.
    assert_allclose(to_numpy(model.representation_), double.representation_, rtol=0, atol=1e-4)


@LIBRARIES
def test_input_is_not_modified(data, library):
    views = [library(X) for X in data.views]
    METHODS["grmsc"](n_clusters=3).fit(views)
    for X, before in zip(views, data.views, strict=True):
        assert np.array_equal(to_numpy(X), before)


@LIBRARIES
def test_order_statistics_of_many_ties(library):
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=100_000), np.full(70_000, 0.25), np.zeros(5)])
    ranks = [0, 1, 40_000, 99_000, 120_000, 170_004]
    found = order_statistics(library(values), ranks)
    assert found == list(np.sort(values)[ranks])
    X = rng.integers(0, 3, size=(11, 4)).astype(float)  # many ties
    D2 = proximity.squared_distances(X)
    for k in (1, 4, 10):
        found = to_numpy(proximity.mutual_neighbors(library(D2), k))
        assert np.array_equal(found, proximity.mutual_neighbors(D2, k))


@LIBRARIES
def test_order_statistics_right_behind_a_cut(library):
    # The first cut is 65535.5: as many values are below it as below the one that is asked for.
    values = np.random.default_rng(0).permutation(2.0**17 - 1 - np.arange(2**17))
    ranks = [2**16 - 1, 2**16, 2**16 + 1]
    assert order_statistics(library(values), ranks) == ranks


@LIBRARIES
def test_graphs_agree_with_ties_and_duplicates(library):
    X = np.repeat(np.random.default_rng(0).integers(0, 3, size=(20, 4)), 3, axis=0).astype(float)
    here, there = proximity.first_order(X, 5), proximity.first_order(library(X), 5)
    assert there[1] == pytest.approx(here[1], rel=1e-14)
    assert_allclose(to_numpy(there[0]), here[0], rtol=0, atol=1e-13)
    assert_allclose(
        to_numpy(proximity.second_order(there[0])),
        proximity.second_order(here[0]),
        rtol=0,
        atol=1e-12,
    )


@LIBRARIES
@pytest.mark.parametrize("step", [prox.soft, prox.columns, prox.SingularThreshold()])
def test_closed_forms_agree(library, step):
    A = np.random.default_rng(0).normal(size=(30, 20))
    assert_allclose(to_numpy(step(library(A), 0.7)), step(A, 0.7), rtol=0, atol=1e-12)
    P = to_numpy(prox.simplex(library(A)))
    assert_allclose(P, prox.simplex(A), rtol=0, atol=1e-14)


def test_device_moves_numpy_there_and_results_back(data):
    pytest.importorskip("torch", reason="torch is not installed")
    here = METHODS["grmsc"](n_clusters=3, random_state=0).fit(data.views)
    mixed = [sp.csr_array(data.views[0]), *data.views[1:]]
    for views in (data.views, mixed):
        there = METHODS["grmsc"](n_clusters=3, random_state=0, device="cpu").fit(views)
        assert isinstance(there.representation_, np.ndarray)
        assert isinstance(there.affinity_matrix_, np.ndarray)
        assert np.array_equal(there.labels_, here.labels_)
        assert_allclose(there.representation_, here.representation_, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "learned"),
    [("lmsc", "latent_"), ("mlrssc", "representation_"), ("coregspectral", "embedding_")],
)
def test_what_was_learned_on_a_device_comes_back(name, learned):
    pytest.importorskip("torch", reason="torch is not installed")
    views = make_subspaces(n_samples=60, n_clusters=3, random_state=0).views
    here, there = (
        METHODS[name](n_clusters=3, random_state=0, device=d).fit(views) for d in (None, "cpu")
    )
    assert np.array_equal(there.labels_, here.labels_)
    assert isinstance(getattr(there, learned), np.ndarray)
    products = [getattr(model, learned) @ getattr(model, learned).T for model in (here, there)]
    # Signs are free; sixty steps of LMSC make rounding errors grow to 1e-10.
    assert_allclose(*products, rtol=0, atol=1e-8)


def test_device_that_is_not_there(data):
    pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(ValueError, match=r"GRMSC: device='cuda:77' is not available here \(.*None"):
        METHODS["grmsc"](device="cuda:77").fit(data.views)
    with pytest.raises(ValueError, match="device must be None or a name such as 'cuda'; got 3"):
        METHODS["grmsc"](device=3).fit(data.views)


def test_device_without_torch(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # makes `import torch` fail
    with pytest.raises(ImportError, match=r"device='cuda' needs torch: pip install \"polyspan"):
        METHODS["grmsc"](device="cuda").fit(data.views)


def test_libraries_are_not_mixed(data):
    with pytest.raises(ValueError, match="mix array libraries"):
        METHODS["grmsc"]().fit([data.views[0], torch(data.views[1])])
