import os
from pathlib import Path

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# A normal run draws the same examples every time, `make test-explore` more and new ones.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=100)
settings.register_profile(
    "explore", derandomize=False, deadline=None, max_examples=1000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Processes that tests start have one thread, too: more of them wait for each other.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

SLOW_EXAMPLES = [
    "polyspan.cli.demo.run_demo",
    "polyspan.graphs.neighbors.device_neighbors",
    "polyspan.methods.anchor_grmsc.sparse_laplacian.move_laplacian",
    "polyspan.runtime.devices.check_device",
    "polyspan.runtime.devices.move_csr",
    "polyspan.selection.count.count_clusters",
    "polyspan.selection.estimator.ConsensusClusterer",
    "polyspan.selection.placing.Placing.place",
    "polyspan.selection.placing.Placing.predict",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark tests that use the published data, and slow examples in docstrings."""
    for item in items:
        if item.name in SLOW_EXAMPLES:
            item.add_marker("slow")
        if {"data_dir", "omics_dir", "more_dir"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("data")


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Use one BLAS thread: on small tests more threads only wait, up to 20 times as long."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder with the published .mat files; without it tests are skipped, or fail in CI."""
    return folder_with("ngs.mat")


@pytest.fixture(scope="session")
def omics_dir() -> Path:
    """Folder with the published multi-omics files; without it tests are skipped, or fail in CI."""
    from polyspan.datasets.published import LOADERS
    from polyspan.datasets.registry import find_entry

    return folder_with(*(file.name for name in LOADERS for file in find_entry(name).files))


@pytest.fixture(scope="session")
def more_dir() -> Path:
    """Folder with the data sets of other kinds; without it tests are skipped, or fail in CI."""
    return folder_with("aloi.npz", "wikipedia.npz")


def folder_with(*names: str) -> Path:
    absent = list(names)
    for folder in filter(None, os.environ.get("POLYSPAN_DATA", "").split(os.pathsep)):
        lacking = [name for name in names if not (Path(folder) / name).is_file()]
        if not lacking:
            return Path(folder)
        absent = min(absent, lacking, key=len)
    reason = f"the published data sets are not here: POLYSPAN_DATA lacks {', '.join(absent[:3])}"
    if os.environ.get("POLYSPAN_REQUIRE_DATA"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cluster():
    """A Dask cluster of two workers; it replaces those that a test kills."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    """A client of the cluster, for the tests of one module; without it, fits stay in memory."""
    from distributed import Client

    with Client(cluster) as client:
        client.wait_for_workers(2)
        yield client
