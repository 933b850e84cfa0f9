import os
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Tests are small: threads of BLAS only wait for each other, up to 20 times as long."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder with the published data sets; tests that need it skip without it, except in CI."""
    folder = os.environ.get("POLYSPAN_DATA")
    if folder and (Path(folder) / "SOURCES.csv").is_file():
        return Path(folder)
    reason = "the published data sets are not here: set POLYSPAN_DATA to their folder"
    if os.environ.get("POLYSPAN_REQUIRE_DATA"):
        pytest.fail(reason)
    pytest.skip(reason)
