"""AnchorGRMSC on a Dask cluster of two processes."""

import os
import pickle
import signal
import threading

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from polyspan import AnchorGRMSC
from polyspan.datasets import make_subspaces
from polyspan.graphs import neighbors as search
from polyspan.metrics import clustering_scores
from polyspan.solvers.loop import watching

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

# One worker of pytest-xdist runs them all: the cluster starts once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]
KEPT = {"n_anchors": 24, "chunk_size": 500, "tol": 1e-3, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_subspaces(1200, 4, n_features=[20, 30], noise=0.05, outliers=0.05)


@pytest.fixture(scope="module")
def wanted(data):
    return AnchorGRMSC(4, **KEPT).fit(data.views)


def lazy(views, rows=(500, 500, 200)):
    return [da.from_array(X, chunks=(rows, 7)) for X in views]


def test_same_labels_as_in_memory_and_no_call_carries_much(client, data, wanted, monkeypatch):
    sizes, submit = [], client.submit

    def measured(function, *args, **kwargs):
        sizes.append(len(pickle.dumps((args, kwargs))))
        return submit(function, *args, **kwargs)

    monkeypatch.setattr(client, "submit", measured)
    model = AnchorGRMSC(4, **KEPT).fit(lazy(data.views))
    whole = sum(X.nbytes for X in data.views)
    assert max(sizes) < whole / 10  # anchors in their coordinates; samples never
    assert np.median(sizes) < 2000
    assert_array_equal(model.labels_, wanted.labels_)
    assert clustering_scores(data.labels, model.labels_)["nmi"] > 0.95
    assert model.n_iter_ == wanted.n_iter_
    assert not hasattr(model, "representation_")  # it stays on the workers and is freed
    assert_array_equal(model.predict(data.views), wanted.predict(data.views))


def test_a_file_beside_dask_arrays(client, data, wanted, tmp_path):
    columns = [f"x{i}" for i in range(30)]
    shuffled = pd.Index(np.random.default_rng(0).permutation(1200))  # is stored, but no feature
    table = pd.DataFrame(data.views[1], columns=columns, index=shuffled)
    table.to_parquet(tmp_path / "x.parquet", row_group_size=256)
    model = AnchorGRMSC(4, **KEPT).fit([lazy(data.views)[0], tmp_path / "x.parquet"])
    assert_array_equal(model.labels_, wanted.labels_)


def test_a_killed_worker_does_not_change_the_labels(client, data, wanted):
    killed = []

    def kill(run):
        if run.n_iter == 11 and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with watching(kill):
        model = AnchorGRMSC(4, **KEPT).fit(lazy(data.views))
    assert killed
    assert killed[0] not in client.run(os.getpid).values()  # it is gone
    assert_array_equal(model.labels_, wanted.labels_)


def test_other_chunks_find_the_same_clusters(client, data, wanted):
    model = AnchorGRMSC(4, **KEPT).fit(lazy(data.views, (350, 350, 350, 150)))
    assert clustering_scores(wanted.labels_, model.labels_)["acc"] > 0.999


def test_cells_are_searched_on_the_workers(client, monkeypatch):
    data = make_subspaces(2400, 4, n_features=[20, 30], noise=0.05, outliers=0.05)
    monkeypatch.setattr(search, "EXACT_BELOW", 2000)
    monkeypatch.setattr(search, "CELL", 200)
    here = AnchorGRMSC(4, **KEPT).fit(data.views)
    there = AnchorGRMSC(4, **KEPT).fit(lazy(data.views, (1000, 1000, 400)))
    assert here.recall_[0] < 1
    assert there.recall_ == here.recall_
    assert_array_equal(there.labels_, here.labels_)


def test_bad_rows_are_named(client, data):
    bad = [X.copy() for X in data.views]
    bad[1][[5, 1001], 3] = np.nan
    with pytest.raises(ValueError, match=r"view 1 contains NaN: .*\(2 of 1200 .*: rows 5, 1001\)"):
        AnchorGRMSC(4, **KEPT).fit(lazy(bad))


def test_what_does_not_fit_the_cluster_is_refused(client):
    many = [da.ones((10**10, 30), chunks=(10**7, 30))]
    match = r"AnchorGRMSC on 10000000000 samples .* GiB are on the cluster: lower n_anchors"
    with pytest.raises(MemoryError, match=match):
        AnchorGRMSC(4).fit(many)


def test_a_cluster_without_workers_yet_is_waited_for(data, wanted):
    with (
        distributed.LocalCluster(
            n_workers=0, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster, set_as_default=True),
    ):
        timer = threading.Timer(0.5, cluster.scale, (1,))
        timer.start()
        with pytest.warns(UserWarning, match="The Dask cluster has no workers yet: waiting"):
            model = AnchorGRMSC(4, **KEPT).fit(lazy(data.views))
        timer.join()
    assert_array_equal(model.labels_, wanted.labels_)


def test_a_device_is_refused(client, data):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="device='cpu' is for one machine, not for a Dask cluster"):
        AnchorGRMSC(4, device="cpu").fit(lazy(data.views))
