import os
from pathlib import Path

import pytest

from polyspan.bench import append_row, read_rows
from polyspan.cli.main import main

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
    few = ["bench", "run", "tiny.toml", "--method", "k-means", "--dataset", "digits", "--jobs", "1"]
    assert main(few) == 0
    assert capsys.readouterr() == ("tiny: 2 jobs, 2 ok; rows in tiny.jsonl.gz\n", "")
    assert main(["bench", "run", "tiny.toml", "--jobs", "1"]) == 1  # the rest, LRR fails
    assert capsys.readouterr() == ("tiny: 8 jobs, 4 ok, 4 failed; rows in tiny.jsonl.gz\n", "")
    assert len(read_rows("tiny.jsonl.gz")) == 8

    assert main(["bench", "report", "tiny.jsonl.gz"]) == 0
    out = capsys.readouterr().out
    assert "| digits (n_samples=50) | LRR | default | - | - |" in out
    assert "| 2 | ValueError: LRR takes one view; got 3:" in out
    assert main(["bench", "report", "tiny.jsonl.gz", "--format", "csv", "--out", "t.csv"]) == 0
    assert capsys.readouterr() == ("", "")
    text = (folder / "t.csv").read_text()
    assert text.startswith("protocol,dataset,method,selection,order,runs,failed_runs")
    assert len(text.splitlines()) == 5
    assert main(["bench", "report", "tiny.jsonl.gz", "--format", "latex"]) == 0
    assert r"\begin{tabular}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "none.toml"], 1, "polyspan: there is no protocol none.toml\n"),
        (
            ["run", "tiny.toml", "--method", "kmeans"],
            2,
            "polyspan: the protocol 'tiny' has no method 'kmeans', did you mean 'k-means'?\n",
        ),
        (
            ["run", "tiny.toml", "--dataset", "ngs"],
            2,
            "polyspan: the protocol 'tiny' has no data set 'ngs'. Known: subspaces (n_samples=30, "
            "noise=0.1), digits (n_samples=50)\n",
        ),
        (
            ["run", "tiny.toml", "--store", "none/s.jsonl"],
            1,
            "polyspan: there is no folder none: create it first\n",
        ),
        (["report", "none.jsonl"], 1, "polyspan: there is no store none.jsonl\n"),
        (
            ["report", "tiny.toml"],
            1,
            "polyspan: tiny.toml is not a store: line 2 is not a row\n",
        ),
    ],
)
def test_errors(folder, capsys, words, code, message):
    assert main(["bench", *words]) == code
    assert capsys.readouterr() == ("", message)
    assert [path.name for path in folder.iterdir()] == ["tiny.toml"]


def test_unknown_data_set_in_a_protocol(folder, capsys):
    (folder / "tiny.toml").write_text(TEXT.replace('"digits"\n', '"digts"\n', 1))
    assert main(["bench", "run", "tiny.toml"]) == 2
    assert capsys.readouterr().err.startswith(
        "polyspan: tiny.toml: no data set is called 'digts', did you mean 'digits'"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bench"], "the following arguments are required: ACTION"),
        (["bench", "rum", "x"], "no action is called 'rum', did you mean 'run'?"),
        (["bench", "run"], "the following arguments are required: PROTOCOL.toml"),
        (["bench", "run", "tiny.toml", "--jobs", "0"], "--jobs must be 1 or more, got 0"),
        (["bench", "report", "s", "--format", "html"], "'html'"),
    ],
)
def test_usage(capsys, words, message):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["bench"], *(["bench", one] for one in ("run", "report", "pack"))]
)
def test_help(capsys, words):
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    out = capsys.readouterr().out
    assert "examples:\n  polyspan bench" in out
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.slow
def test_a_report_replaces_its_file_whole_or_not_at_all(folder, monkeypatch, capsys):
    assert main(["bench", "run", "tiny.toml", "--jobs", "1"]) in (0, 1)
    Path("report.md").write_text("old")
    monkeypatch.setattr(os, "replace", lambda *pair: (_ for _ in ()).throw(OSError("disk full")))
    assert main(["bench", "report", "tiny.jsonl.gz", "--out", "report.md"]) == 1
    assert "disk full" in capsys.readouterr().err
    assert Path("report.md").read_text() == "old"
    assert not [path for path in Path().iterdir() if path.name.startswith(".")]


@pytest.mark.slow
def test_rows_that_are_not_believed_are_said(folder, capsys):
    assert main(["bench", "run", "tiny.toml", "--jobs", "1", "--store", "tiny.jsonl"]) in (0, 1)
    lines = Path("tiny.jsonl").read_text().splitlines(keepends=True)
    changed = lines[0].replace('"seed": 0', '"seed": 9')
    assert changed != lines[0]
    Path("tiny.jsonl").write_text("".join([changed, *lines[1:]]) + "\0" * 7)
    capsys.readouterr()
    assert main(["bench", "report", "tiny.jsonl"]) == 0
    err = capsys.readouterr().err
    assert "polyspan: note: tiny.jsonl has 7 zero bytes" in err
    assert "polyspan: note: tiny.jsonl: line 1 changed after being written" in err
    Path("tiny.jsonl").write_text('{"a": 1}\n')
    assert main(["bench", "report", "tiny.jsonl"]) == 1
    assert "tiny.jsonl: line 1 is not a row of a benchmark" in capsys.readouterr().err


def test_pack(folder, capsys):
    """A store of lines becomes a compressed one; what follows its blocks is compressed too."""
    for k in range(50):
        append_row("old.jsonl", {"seed": k, "protocol": "p"})
    rows, size = read_rows("old.jsonl"), Path("old.jsonl").stat().st_size
    assert main(["bench", "pack", "old.jsonl"]) == 0
    assert not Path("old.jsonl").exists()
    after = Path("old.jsonl.gz").stat().st_size
    words = f"{size / 50:.1f} bytes a row became {after / 50:.1f}"
    assert capsys.readouterr() == (f"old.jsonl.gz: 50 rows, {words}\n", "")
    assert read_rows("old.jsonl.gz") == rows
    append_row("old.jsonl.gz", {"seed": 50, "protocol": "p"})
    assert main(["bench", "pack", "old.jsonl.gz"]) == 0
    assert len(read_rows("old.jsonl.gz")) == 51
    assert Path("old.jsonl.gz").stat().st_size < after + 100
    capsys.readouterr()
    append_row("old.jsonl", {"seed": 9})
    assert main(["bench", "pack", "old.jsonl"]) == 1
    assert (
        "old.jsonl.gz exists already: move it away, or remove old.jsonl" in capsys.readouterr().err
    )
    assert main(["bench", "pack", "none.jsonl"]) == 1
    assert capsys.readouterr().err == "polyspan: there is no store none.jsonl\n"
    assert not Path("none.jsonl").exists()
    assert len(read_rows("old.jsonl")) == 1
    assert main(["bench", "pack", "tiny.toml"]) == 1
    assert "tiny.toml is not a store" in capsys.readouterr().err
