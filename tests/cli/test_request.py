"""Refusals of fit: exit code 2, one sentence, nothing written, no work."""

import json
from pathlib import Path

import numpy as np
import pytest
from fit_tables import DATA, FILES, GRMSC3, IDS, SHUFFLED, frame, names, read_labels

from polyspan.cli.main import main
from polyspan.cli.request import parse_settings

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no.csv", *GRMSC3], "there is no file no.csv"),
        (["no.csv", *GRMSC3, "--out", "old.csv"], "there is no file no.csv"),
        ([*FILES, "lam1=3"], "there is no file lam1=3: if it is a parameter, use --set lam1=3"),
        ([*FILES, "--method", "grmcs", "--clusters", "3"], "no method is called 'grmcs', did you"),
        (
            [*FILES, *GRMSC3, "--set", "lam=1"],
            "no parameter of GRMSC is called 'lam', did you mean",
        ),
        ([*FILES, *GRMSC3, "--set", "lam1"], "--set needs name=value, such as --set lam1=10; got"),
        (
            [*FILES, *GRMSC3, "--set", "lam1=-1"],
            "GRMSC: lam1 must be a finite number >= 1e-50 and <= 1e+50; got -1",
        ),
        ([*FILES, *GRMSC3, "--set", "n_clusters=4"], "--set n_clusters: use --clusters instead"),
        ([*FILES, *GRMSC3, "--set", "random_state=4"], "--set random_state: use --seed instead"),
        ([*FILES, *GRMSC3, "--set", "views=4"], "no parameter of GRMSC is called 'views'"),
        ([*FILES, "--set", "lam1=1"], "--set needs --method"),
        ([*FILES, "--method", "grmsc", "--clusters", "61"], "--clusters 61: must be from 1 to 60"),
        ([*FILES, "--method", "lrr", "--clusters", "3"], "LRR takes one view; got 2"),
        ([*FILES, *GRMSC3, "--seed", "-1"], "--seed must be from 0 to 2**32 - 1, got -1"),
        (
            [*FILES, *GRMSC3, "--budget", "9"],
            "--budget is for the consensus of many methods",
        ),
        ([*FILES, "--budget", "-1"], "--budget must be a finite number >= 0, got -1.0"),
        ([*FILES, "--budget", "nan"], "--budget must be a finite number >= 0, got nan"),
        (
            [*FILES, "--method", "rmsc", "--missing", "keep"],
            "RMSC needs every view of every sample",
        ),
        ([*FILES, *GRMSC3, "--drop", "y"], "no table has a column 'y' to drop"),
        ([*FILES, *GRMSC3, "--id", "y"], "rna.csv has no column 'y' for --id"),
        ([*FILES, *GRMSC3, "--out", "labels.txt"], "labels.txt: the file name for labels must"),
        ([*FILES, *GRMSC3, "--out", "no/labels.csv"], "there is no folder no: create it first"),
        ([*FILES, *GRMSC3, "--out", "folder.csv"], "folder.csv is a folder: name a file in it"),
        ([*FILES, *GRMSC3, "--out", "rna.csv", "--force"], "rna.csv is one of the input files"),
        (
            [*FILES, *GRMSC3, "--report", "report.pdf"],
            "report.pdf: the file name of the report",
        ),
        ([*FILES, *GRMSC3, "--out", "old.csv"], "old.csv exists: use --force to replace it, or"),
        ([*FILES, *GRMSC3, "--out", "kept.csv"], "kept.json exists: use --force to replace it, or"),
        ([*FILES, *GRMSC3, "--report", "old.html"], "or name another file with --report"),
        (["constant.csv", *GRMSC3], "view 'constant' is constant"),
    ],
)
def test_refused_before_any_work(folder, no_work, capsys, arguments, words):
    Path("folder.csv").mkdir()
    for old in ("old.csv", "kept.json", "old.html"):
        Path(old).write_text("old")
    frame(np.ones((60, 3))).to_csv("constant.csv", index=False)
    before = names(folder)
    assert main(["fit", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("polyspan: ")
    assert words in err
    assert err.count("\n") == 1
    assert names(folder) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name the files to cluster"),
        (
            [*FILES, "--clusters", "three"],
            "--clusters: must be a whole number or auto, got 'three'",
        ),
        ([*FILES, "--clusters", "0"], "must be a whole number or auto, got '0'"),
        ([*FILES, "--missing", "dorp"], "no choice of --missing is called 'dorp', did you mean 'd"),
        ([*FILES, "--wrong"], "unrecognized arguments: --wrong"),
        ([*FILES, "--budget", "long"], "argument --budget: invalid float value: 'long'"),
        (["--repeat", "a.json", "--method", "lrr"], "leave --method out"),
        (["--repeat", "a.json", "--budget", "9"], "leave --budget out"),
        (["--repeat", "a.json", "--device", "cuda"], "leave --device out"),
        (["--repeat", "a.json", *FILES], "takes all settings from a.json: leave files out"),
    ],
)
def test_wrong_usage(no_work, capsys, arguments, words):
    with pytest.raises(SystemExit, match="2"):
        main(["fit", *arguments])
    assert words in capsys.readouterr().err


def test_missing_keep(capsys):
    assert main(["fit", *FILES, *GRMSC3[:2], "--clusters", "3", "--missing", "fail"]) == 0
    assert main(["fit", *FILES, "--method", "rmsc", "--missing", "keep", "--out", "o.csv"]) == 2
    assert "--missing keep: RMSC needs every view of every sample" in capsys.readouterr().err

    frame(DATA.views[1]).iloc[SHUFFLED[:50]].to_csv("protein.csv", index=False)
    assert main(["fit", *FILES, *GRMSC3, "--missing", "keep", "--force"]) == 0
    assert "10 samples lack protein, kept without it: s" in capsys.readouterr().out
    assert [row[0] for row in read_labels()[1:]] == IDS
    assert main(["fit", *FILES, "--missing", "keep", "--clusters", "3", "--force"]) == 0
    assert "10 samples lack protein, kept without it: s" in capsys.readouterr().out
    assert len({row[1] for row in read_labels()[1:]}) == 3
    settings = json.loads(Path("labels.json").read_text())
    assert {row["method"] for row in settings["members"]} == {"MeanGraph", "SelfGraph"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*GRMSC3, "--device", "cuda:99"], "--device: device='cuda:99' is not available here"),
        (["--device", "cuda:99"], "--device: device='cuda:99' is not available here"),
        ([*GRMSC3, "--device", "cpu", "--set", "device=cpu"], "mean the same thing: leave one out"),
        (
            ["--method", "concatkmeans", "--clusters", "3", "--device", "cpu"],
            "--device: ConcatKMeans has no device: leave this option out",
        ),
    ],
)
def test_wrong_devices(no_work, capsys, folder, arguments, words):
    pytest.importorskip("torch")
    assert main(["fit", *FILES, *arguments]) == 2
    assert words in capsys.readouterr().err
    assert names(folder) == ["protein.csv", "rna.csv"]


def test_words_of_settings():
    asked = ["a=none", "b=None", "c=TRUE", "d=false", "e=1e2", "f=[1, 2]", "g=sparse", "h='none'"]
    wanted = [None, None, True, False, 100.0, [1, 2], "sparse", "none"]
    assert parse_settings(asked) == dict(zip("abcdefgh", wanted, strict=True))


def no_memory(*args, **kwargs):
    raise MemoryError


def test_a_memory_error_has_words(folder, monkeypatch, capsys):
    """Python's own has none."""
    monkeypatch.setattr("polyspan.datasets.load_views", no_memory)
    assert main(["fit", *FILES]) == 2
    words = "polyspan: there is not enough memory: use fewer samples or features"
    assert capsys.readouterr().err.startswith(words)
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    monkeypatch.setattr("polyspan.cli.fit.cluster", no_memory)
    assert main(["fit", *FILES]) == 1
    assert capsys.readouterr().err.startswith(words)
    monkeypatch.setattr("polyspan.cli.info.run", no_memory)
    assert main(["info"]) == 1
    assert capsys.readouterr().err.startswith(words)
