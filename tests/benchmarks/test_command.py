"""`python -m benchmarks`: what it prints, writes and refuses."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cases import BENCHMARKS
from stored_rows import made

from harness import append_rows, read_rows
from harness.command import main

TEXT = """
name = "tiny"
seeds = 2

[[dataset]]
name = "subspaces"
n_samples = 30
noise = 0.1

[[dataset]]
name = "digits"
n_samples = 50

[[method]]
name = "k-means"
estimator = "concatkmeans"
selection = "default"

[[method]]
name = "LRR"
estimator = "lrr"
selection = "default"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a protocol to work in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.toml").write_text(TEXT)
    return tmp_path


@pytest.mark.slow
def test_run_and_report(folder, capsys):
    few = ["run", "tiny.toml", "--method", "k-means", "--dataset", "digits", "--jobs", "1"]
    assert main(few) == 0
    assert capsys.readouterr() == ("tiny: 2 jobs, 2 ok; rows in tiny.db\n", "")
    assert main(["run", "tiny.toml", "--jobs", "1"]) == 1  # the rest, LRR fails
    assert capsys.readouterr() == ("tiny: 8 jobs, 4 ok, 4 failed; rows in tiny.db\n", "")
    assert len(read_rows("tiny.db")) == 8

    assert main(["report", "tiny.db"]) == 0
    out = capsys.readouterr().out
    assert "| digits (n_samples=50) | LRR | default | - | - |" in out
    assert "| 2 | ValueError: LRR takes one view; got 3:" in out
    assert main(["report", "tiny.db", "--format", "csv", "--out", "t.csv"]) == 0
    assert capsys.readouterr() == ("", "")
    text = (folder / "t.csv").read_text()
    assert text.startswith("protocol,dataset,method,selection,order,runs,failed_runs")
    assert len(text.splitlines()) == 5
    assert main(["report", "tiny.db", "--format", "latex"]) == 0
    assert r"\begin{tabular}" in capsys.readouterr().out


def test_the_package_is_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "report", "none.db"],
        cwd=BENCHMARKS.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "benchmarks: there is no store none.db\n")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "none.toml"], 1, "benchmarks: there is no protocol none.toml\n"),
        (
            ["run", "tiny.toml", "--method", "kmeans"],
            2,
            "benchmarks: the protocol 'tiny' has no method 'kmeans', did you mean 'k-means'?\n",
        ),
        (
            ["run", "tiny.toml", "--dataset", "ngs"],
            2,
            "benchmarks: the protocol 'tiny' has no data set 'ngs'. Known: subspaces "
            "(n_samples=30, noise=0.1), digits (n_samples=50)\n",
        ),
        (
            ["run", "tiny.toml", "--store", "none/s.db"],
            1,
            "benchmarks: there is no folder none: create it first\n",
        ),
        (["run", "tiny.toml", "--jobs", "0"], 1, "benchmarks: jobs must be 1 or more; got 0\n"),
        (["report", "none.db"], 1, "benchmarks: there is no store none.db\n"),
        (
            ["report", "tiny.toml"],
            1,
            "benchmarks: tiny.toml is not a store: it has no rows of benchmarks\n",
        ),
        (["export", "none.db"], 1, "benchmarks: there is no store none.db\n"),
        (
            ["rebuild", "new.db", "--folder", "."],
            1,
            "benchmarks: there are no tables of rows, *.csv.gz, in .\n",
        ),
    ],
)
def test_errors(folder, capsys, words, code, message):
    assert main(words) == code
    assert capsys.readouterr() == ("", message)
    assert [path.name for path in folder.iterdir()] == ["tiny.toml"]


def test_unknown_data_set_in_a_protocol(folder, capsys):
    (folder / "tiny.toml").write_text(TEXT.replace('"digits"\n', '"digts"\n', 1))
    assert main(["run", "tiny.toml"]) == 2
    assert capsys.readouterr().err.startswith(
        "benchmarks: tiny.toml: no data set is called 'digts', did you mean 'digits'"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: ACTION"),
        (["rum", "x"], "invalid choice: 'rum'"),
        (["run"], "the following arguments are required: PROTOCOL.toml"),
        (["report", "s", "--format", "html"], "'html'"),
    ],
)
def test_usage(capsys, words, message):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert message in capsys.readouterr().err


def test_a_report_replaces_its_file_whole_or_not_at_all(monkeypatch, capsys):
    append_rows("tiny.db", [made(stage="final")])
    Path("report.md").write_text("old")
    monkeypatch.setattr(os, "replace", lambda *pair: (_ for _ in ()).throw(OSError("disk full")))
    assert main(["report", "tiny.db", "--out", "report.md"]) == 1
    assert "disk full" in capsys.readouterr().err
    assert Path("report.md").read_text() == "old"
    assert not [path for path in Path().iterdir() if path.name.startswith(".")]


def test_rows_that_are_lost_are_said(capsys):
    append_rows("tiny.db", [made(seed, stage="final") for seed in range(3)])
    with sqlite3.connect("tiny.db") as database:
        database.execute("update rows set row = replace(row, '\"seed\": 1,', '\"seed\": 9,')")
    database.close()
    assert main(["report", "tiny.db"]) == 0
    out, err = capsys.readouterr()
    assert "benchmarks: note: tiny.db is damaged. Lost: row 2, after p, shuffled, NGs" in err
    assert "| 2 | 0 | 0 |" in out  # two runs


def test_export_and_rebuild(capsys):
    append_rows("tiny.db", [made(seed) for seed in range(50)])
    assert main(["export", "tiny.db", "--folder", "."]) == 0
    size = Path("p-shuffled.csv.gz").stat().st_size / 50
    assert capsys.readouterr().out == f"p-shuffled.csv.gz: 50 rows, {size:.1f} bytes a row\n"
    assert main(["rebuild", "new.db", "--folder", "."]) == 0
    assert capsys.readouterr().out == "new.db: has all 50 rows of ., each checked\n"
    assert read_rows("new.db") == read_rows("tiny.db")
