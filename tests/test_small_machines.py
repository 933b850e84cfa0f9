"""Threads, and numbers that are hard on LAPACK, ARPACK and float32."""

import asyncio
import threading
import time
import warnings
from contextlib import suppress

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from polyspan import GRMSC, METHODS, AnchorGRMSC, ConcatSpectral, sharing
from polyspan.clustering import spectral
from polyspan.clustering.spectral import quiet_kmeans, spectral_eigenvectors
from polyspan.datasets import make_subspaces
from polyspan.runtime.cache import Store


def planted(n=30):
    return make_subspaces(n, 3, n_features=[4, 5], subspace_dim=2, noise=0.05, random_state=0).views


# ---- numbers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mcgc", "amgl", "coregspectral", "ssc"])
def test_lapack_may_give_up_on_some_eigenvectors(name, monkeypatch):
    """It does so now and then for n_clusters near n: «LinAlgError: Internal Error.»"""
    views = planted()[: 1 if name == "ssc" else 2]
    wanted = METHODS[name](3, random_state=0).fit(views).labels_
    eigh = scipy.linalg.eigh

    def refuse(A, *args, subset_by_index=None, **options):
        if subset_by_index is not None:
            raise np.linalg.LinAlgError("Internal Error.")
        return eigh(A, *args, **options)

    monkeypatch.setattr(scipy.linalg, "eigh", refuse)
    assert_array_equal(METHODS[name](3, random_state=0).fit(views).labels_, wanted)


@pytest.mark.parametrize("c", [2, 3])
def test_a_graph_in_many_pieces_has_one_answer(c):
    """With one neighbor, the sample itself, ARPACK starts again from what it draws."""
    views = [np.random.default_rng(0).normal(size=(4, 3))]
    found = {
        tuple(ConcatSpectral(c, n_neighbors=1, n_init=2, random_state=0).fit(views).labels_)
        for _ in range(30)
    }
    assert len(found) == 1


def test_large_graphs_in_many_pieces_have_exact_eigenvectors(monkeypatch):
    W = sp.block_diag([np.ones((s, s)) for s in (3, 5, 2, 4)], format="csr")
    W = sp.csr_array(sp.block_diag([W, sp.csr_array((2, 2))]))  # two samples without any affinity
    monkeypatch.setattr(spectral, "EXACT_BELOW", 5)
    w, Y, _ = spectral_eigenvectors(W, 3)
    assert_array_equal(w, 1)
    pieces = np.repeat([0, 1, 2, 3, 4], [3, 5, 2, 4, 2])
    chosen = [1, 3, 0]  # those with most samples
    sizes = np.array([5, 4, 3])
    np.testing.assert_allclose(Y, (pieces[:, None] == chosen) / np.sqrt(sizes), rtol=1e-14)
    monkeypatch.setattr(spectral, "_piece_eigenvectors", lambda *args: 1 / 0)
    monkeypatch.setattr(spectral, "EXACT_BELOW", 50)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        spectral_eigenvectors(W, 3)


def test_five_pieces_are_asked_for_but_four_have_links(monkeypatch):
    W = sp.csr_array(sp.block_diag([np.ones((4, 4))] * 4 + [np.zeros((4, 4))]))
    monkeypatch.setattr(spectral, "EXACT_BELOW", 5)
    assert spectral._piece_eigenvectors(W, W.sum(axis=1), 5) is None
    assert spectral._piece_eigenvectors(W, W.sum(axis=1), 4).shape == (20, 4)


def test_anchors_of_sparse_views_with_long_indices():
    X = sp.csr_array(np.maximum(planted(80)[0], 0.2))
    long = X.copy()
    long.indices, long.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    short, found = (
        AnchorGRMSC(3, n_anchors=20, random_state=0).fit([one, planted(80)[1]]).labels_
        for one in (X, long)
    )
    assert_array_equal(found, short)


def test_anchors_of_one_feature_in_float32():
    """Most systems have a right-hand side of rounding errors: their residuals must not explode."""
    x = np.abs(np.random.default_rng(0).normal(size=(200, 1))).astype(np.float32)
    with pytest.warns(UserWarning, match="AnchorGRMSC found 1 cluster instead of n_clusters=3"):
        model = AnchorGRMSC(3, scale=None, n_anchors=20, random_state=0).fit([x])
    assert np.isfinite(model.representation_).all()


# ---- views that vanish -------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_a_view_that_is_constant_after_scaling_is_refused(name):
    """One positive column, scaled to unit length, is 1 everywhere."""
    rng = np.random.default_rng(0)
    ages, rest = rng.uniform(20, 60, size=(30, 1)), rng.normal(size=(30, 4))
    views = {"age": ages} if name in ("ssc", "lrr") else {"rest": rest, "age": ages}
    model = METHODS[name](2, random_state=0)
    if "scale" in model.get_params():
        model.set_params(scale="unit")
    if name in ("bestsingleview", "gmc"):
        pytest.skip("no scale of its own, or another one")
    with pytest.raises(ValueError, match=r"view 'age' is constant after scale=\"unit\".*standard"):
        model.fit(views)


def test_proportional_samples_are_constant_too():
    views = [np.outer(np.arange(1.0, 30.0), [0.3, 0.7, 0.2])]
    with pytest.raises(ValueError, match=r"view 0 is constant after .* \(n_features=3\)"):
        GRMSC(2).fit(views)
    with pytest.raises(ValueError, match=r"view 0 is constant after .* \(n_features=3\)"):
        AnchorGRMSC(2, n_anchors=5).fit(views)
    GRMSC(2, scale="standard", random_state=0).fit(views)


@pytest.mark.parametrize("form", ["files", "dask", "float32 files"])
def test_a_view_that_vanishes_is_refused_in_chunks(form, tmp_path):
    """In memory it always was; in chunks all labels came out as 0."""
    rng = np.random.default_rng(0)
    ages, rest = np.outer(rng.uniform(20, 60, 41), [0.3, 0.7]), rng.normal(size=(41, 4))
    dtype = np.float32 if form.startswith("float32") else np.float64
    views = {"rest": rest.astype(dtype), "age": ages.astype(dtype)}
    if form == "dask":
        da = pytest.importorskip("dask.array")
        lazy = {name: da.from_array(X, chunks=(20, -1)) for name, X in views.items()}
    else:
        lazy = {name: tmp_path / f"{name}.npy" for name in views}
        for name, X in views.items():
            np.save(lazy[name], X)
    model = AnchorGRMSC(2, n_anchors=5, chunk_size=20, scale="unit", random_state=0)
    with pytest.raises(ValueError, match=r"view 'age' is constant after scale=\"unit\""):
        model.fit(lazy)
    views["age"][40] = [0.7, 0.3]  # the last chunk has one row, of another direction
    if form == "dask":
        lazy["age"] = da.from_array(views["age"], chunks=(20, -1))
    else:
        np.save(lazy["age"], views["age"])
    model.fit(lazy)


@pytest.mark.parametrize("name", ["grmsc", "concatkmeans"])
def test_fewer_clusters_than_asked_for_are_said(name):
    X = np.repeat(np.eye(3), 6, axis=0)
    with pytest.warns(UserWarning, match=r"found 3 clusters instead of n_clusters=5: the samples"):
        METHODS[name](5, random_state=0).fit([X, X[:, ::-1].copy()])


# ---- threads -----------------------------------------------------------------------------------


def test_threads_leave_no_filter_behind():
    before = list(warnings.filters)
    inside = threading.Barrier(2, timeout=0.2)

    def overlap(first):
        time.sleep(0 if first else 0.05)
        with quiet_kmeans():
            with suppress(threading.BrokenBarrierError):
                inside.wait()  # two blocks at once would meet here
            time.sleep(0.05 if first else 0.15)

    threads = [threading.Thread(target=overlap, args=(first,)) for first in (True, False)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert warnings.filters == before
    with pytest.warns(ConvergenceWarning, match="Number of distinct"):
        warnings.warn("Number of distinct clusters", ConvergenceWarning, stacklevel=1)


def test_a_shared_store_counts_right_in_threads():
    store = Store(1000)

    def make(seconds):
        def work():
            time.sleep(seconds)
            return "made"

        return work

    def many(i):
        for _ in range(50):
            store.get(("own", i % 2), make(0.01), 100)
        return store.get("nested", lambda: store.get(("own", 0), make(0.01), 100), 100)

    async def together():
        await asyncio.gather(*(asyncio.to_thread(many, i) for i in range(8)))

    asyncio.run(together())
    assert store.size == sum(size for _, size, _ in store.parts.values()) == 300
    # What a part took when it was made: its own 10 ms, not what other threads saved meanwhile.
    # (400 reuses of 10 ms are 4 s; a busy machine may make a sleep longer, not 100 times.)
    assert all(seconds < 1 for _, _, seconds in store.parts.values())


def test_sharing_goes_into_threads():
    views = planted(45)

    def fit(lam1):
        return GRMSC(3, lam1=lam1, random_state=0).fit(views).labels_

    async def together():
        return await asyncio.gather(*(asyncio.to_thread(fit, lam) for lam in (1.0, 10.0, 1.0)))

    with sharing() as store:
        fit(5.0)
        found = asyncio.run(together())
    assert store.saved > 0
    assert store.size == sum(size for _, size, _ in store.parts.values())
    for labels, lam in zip(found, (1.0, 10.0, 1.0), strict=True):
        assert_array_equal(labels, fit(lam))
