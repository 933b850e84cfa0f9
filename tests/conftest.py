import os
from pathlib import Path

import pytest


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
