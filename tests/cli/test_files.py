"""The files of a run are written together, and none that exists is replaced unasked."""

import os
from pathlib import Path

import pytest
from fit_tables import FILES, GRMSC3, names, read_labels

from polyspan.cli import files, fit
from polyspan.cli.main import main

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_all_files_or_none(folder, monkeypatch, broken):
    """A move that fails half-way puts back what was there."""
    Path("b").write_text("old")
    writers = {Path(name): lambda path: path.write_text("new") for name in "abc"}
    really = os.replace

    def replace(source, target):
        if Path(target) == Path("abc"[broken]) and "old" not in Path(source).name:
            raise OSError("the disk is full")
        really(source, target)

    monkeypatch.setattr(os, "replace", replace)
    before = names(folder)
    with pytest.raises(OSError, match="the disk is full"):
        files.write_together(writers, force=True)
    assert names(folder) == before
    assert Path("b").read_text() == "old"
    monkeypatch.setattr(os, "replace", really)
    files.write_together(writers, force=True)
    assert names(folder) == sorted([*before, "a", "c"])
    assert Path("b").read_text() == "new"


def test_a_file_that_came_in_between_is_not_replaced(folder, capsys, monkeypatch):
    def meanwhile(*args):
        Path("labels.json").write_text("someone else's")
        return really(*args)

    really = fit.cluster
    monkeypatch.setattr(fit, "cluster", meanwhile)
    assert main(["fit", *FILES, *GRMSC3]) == 1
    assert "labels.json exists" in capsys.readouterr().err
    assert names(folder) == ["labels.json", "protein.csv", "rna.csv"]
    assert Path("labels.json").read_text() == "someone else's"


def test_force_replaces(folder):
    Path("labels.csv").write_text("old")
    assert main(["fit", *FILES, *GRMSC3, "--force"]) == 0
    assert read_labels()[0] == ["sample", "cluster"]
    assert names(folder) == ["labels.csv", "labels.json", "protein.csv", "rna.csv"]
