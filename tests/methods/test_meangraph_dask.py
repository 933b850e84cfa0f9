"""MeanGraph on a Dask cluster of two processes."""

import os
import signal
import threading

import numpy as np
import pytest

from polyspan import MeanGraph
from polyspan.datasets import make_subspaces
from polyspan.graphs import neighbors
from polyspan.methods import meangraph
from polyspan.metrics import clustering_scores

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

# One worker of pytest-xdist runs them all: the cluster starts once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("dask")]


@pytest.fixture
def views(monkeypatch):
    """Views of which some samples lack one; 500 of them count as many."""
    for module in (neighbors, meangraph):
        monkeypatch.setattr(module, "EXACT_BELOW", 500)
    monkeypatch.setattr(neighbors, "CELL", 100)
    monkeypatch.setattr("polyspan.base.outcome.LARGE", 500)
    data = make_subspaces(800, 4, n_features=[20, 30], noise=0.05, outliers=0.05)
    gone = np.random.default_rng(0).random(800) < 0.1
    return [np.where(gone[:, None], np.nan, data.views[0]), data.views[1]]


@pytest.mark.parametrize("weights", ["binary", "self_tuning"])
def test_same_labels_as_in_memory(client, views, weights):
    model = MeanGraph(4, weights=weights, random_state=0)
    wanted = model.fit(views).labels_
    found = model.fit([da.from_array(X, chunks=((350, 350, 100), 7)) for X in views])
    assert clustering_scores(wanted, found.labels_)["nmi"] == pytest.approx(1, abs=1e-12)
    assert not hasattr(found, "affinity_matrix_")  # it stays on the workers and is freed


def test_a_lost_worker_changes_nothing(client, views):
    model = MeanGraph(4, random_state=0)
    lazy = [da.from_array(X, chunks=(300, -1)) for X in views]
    wanted = model.fit(lazy).labels_
    client.wait_for_workers(2)
    victim = next(iter(client.run(os.getpid).values()))
    killer = threading.Timer(0.4, os.kill, (victim, signal.SIGKILL))
    killer.start()
    found = model.fit(lazy).labels_
    killer.join()
    np.testing.assert_array_equal(found, wanted)
