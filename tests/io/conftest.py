import pytest
from two_tables import ORDER, B, frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a.csv and, in another order, b.csv."""
    monkeypatch.chdir(tmp_path)
    frame().to_csv("a.csv", index=False)
    frame(B).iloc[ORDER].to_csv("b.csv", index=False)
    return tmp_path
