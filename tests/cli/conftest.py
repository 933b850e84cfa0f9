import pytest
from fit_tables import DATA, SHUFFLED, frame

from polyspan.cli import fit


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two tables, the second in another order."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    frame(DATA.views[0]).to_csv("rna.csv", index=False)
    frame(DATA.views[1]).iloc[SHUFFLED].to_csv("protein.csv", index=False)
    return tmp_path


@pytest.fixture
def no_work(monkeypatch):
    """Any fit is an error."""

    def refuse(*args):
        raise AssertionError("work was begun")

    monkeypatch.setattr(fit, "cluster", refuse)
