"""The settings of a run: what they say, and how a run is repeated from them."""

import html
import json
import re
import shlex
from pathlib import Path

import pytest
from fit_tables import DATA, FILES, GRMSC3, IDS, SHUFFLED, frame, names, read_labels

from polyspan import GRMSC, __version__
from polyspan.cli import files
from polyspan.cli.main import main
from polyspan.cli.request import Request

pytestmark = pytest.mark.usefixtures("folder")


def test_settings_say_everything():
    frame(DATA.views[1]).iloc[SHUFFLED[:55]].to_csv("protein.csv", index=False)
    assert main(["fit", *FILES, *GRMSC3, "--missing", "drop", "--set", "lam1=10"]) == 0
    settings = json.loads(Path("labels.json").read_text())
    assert settings["polyspan"] == __version__
    assert settings["command"] == (
        "polyspan fit rna.csv protein.csv --method grmsc --clusters 3 --missing drop --set lam1=10"
    )
    assert settings["asked"]["files"] == FILES
    assert settings["asked"]["set"] == {"lam1": 10}
    assert settings["method"] == "grmsc"
    assert settings["n_clusters"] == 3
    expected = GRMSC(n_clusters=3, lam1=10, random_state=0).get_params()
    assert settings["parameters"] == expected
    assert settings["sha256"] == [files.sha256(Path(file)) for file in FILES]
    assert settings["views"]["rna"] == {"file": "rna.csv", "rows": 60, "features": 12}
    assert settings["views"]["protein"] == {"file": "protein.csv", "rows": 55, "features": 8}
    assert settings["id_column"] == "sample"
    lost = sorted(IDS[i] for i in SHUFFLED[55:])
    assert settings["dropped_samples"] == settings["lacking"]["protein"] == lost
    assert settings["samples"] == 55
    assert len(read_labels()) == 56


def test_repeat(folder, capsys):
    arguments = ["--set", "affinity=sparse", "--seed", "3", "--drop", "x1", "--id", "sample"]
    assert main(["fit", *FILES, *GRMSC3, *arguments]) == 0
    capsys.readouterr()
    assert main(["fit", "--repeat", "labels.json", "--out", "again.csv"]) == 0
    out, err = capsys.readouterr()
    assert "repeated: all labels are the same as before" in out
    assert err == ""
    assert Path("again.csv").read_text() == Path("labels.csv").read_text()
    first, second = (json.loads(Path(f"{name}.json").read_text()) for name in ("labels", "again"))
    for settings in (first, second):
        del settings["command"], settings["labels"]
    assert first == second


def test_repeat_from_another_folder(folder, monkeypatch):
    (folder / "run").mkdir()
    assert main(["fit", *FILES, *GRMSC3, "--out", "run/labels.csv"]) == 0
    assert json.loads(Path("run/labels.json").read_text())["asked"]["files"] == [
        "../rna.csv",
        "../protein.csv",
    ]
    monkeypatch.chdir(folder / "run")
    assert main(["fit", "--repeat", "labels.json", "--out", "again.csv"]) == 0
    assert Path("again.csv").read_text() == Path("labels.csv").read_text()


def test_repeat_says_what_changed(capsys):
    assert main(["fit", *FILES, *GRMSC3]) == 0
    frame(DATA.views[1][::-1]).to_csv("protein.csv", index=False)  # other values, same samples
    capsys.readouterr()
    assert main(["fit", "--repeat", "labels.json", "--out", "again.csv"]) == 1
    out, err = capsys.readouterr()
    assert "polyspan: note: protein.csv has changed since labels.json was written\n" in err
    assert "polyspan: repeated, but the labels differ" in err
    assert "repeated: every label" not in out
    Path("rna.csv").unlink()
    assert main(["fit", "--repeat", "labels.json", "--out", "third.csv"]) == 2
    assert "there is no file rna.csv, which labels.json refers to" in capsys.readouterr().err


def test_the_command_that_is_printed_repeats_the_run(folder, capsys):
    assert main(["fit", *FILES, *GRMSC3, "--out", "my labels.csv", "--report", "report.html"]) == 0
    printed = re.search(r"`(polyspan fit .*?)` repeats this run", capsys.readouterr().out)[1]
    shown = re.findall(r'id="code-repeat">(.*?)</code>', Path("report.html").read_text("utf-8"))
    assert [html.unescape(words) for words in shown] == [printed]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in ("my labels-again.csv", "my labels-again-2.csv"):  # as often as it is pasted
        assert main(shlex.split(printed)[1:]) == 0
        assert "all labels are the same as before" in capsys.readouterr().out
        assert Path(name).read_bytes() == before["my labels.csv"]
        assert Path(name).with_suffix(".json").is_file()
    assert {name: Path(name).read_bytes() for name in before} == before
    assert len(names(folder)) == len(before) + 4


def test_repeat_does_not_overwrite(capsys):
    assert main(["fit", *FILES, *GRMSC3]) == 0
    before = Path("labels.csv").read_bytes()
    capsys.readouterr()
    assert main(["fit", "--repeat", "labels.json", "--out", "labels.csv"]) == 2
    assert "labels.csv exists: use --force to replace it" in capsys.readouterr().err
    assert main(["fit", "--repeat", "labels.json", "--force"]) == 0
    assert Path("labels.csv").read_bytes() == before


def test_repeat_of_settings_of_the_first_version(capsys):
    assert main(["fit", *FILES, *GRMSC3]) == 0
    settings = json.loads(Path("labels.json").read_text())
    first = ("files", "clusters", "method", "set", "seed", "id", "drop", "missing", "header")
    settings["asked"] = {name: settings["asked"][name] for name in first}
    Path("labels.json").write_text(json.dumps(settings))
    assert main(["fit", "--repeat", "labels.json"]) == 0
    assert "all labels are the same as before" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"format": 1, "asked": {"seed": 0}}', "id,x\na,1\n"]
)
def test_repeat_of_something_else(no_work, capsys, text):
    Path("x.json").write_text(text)
    assert main(["fit", "--repeat", "x.json"]) == 2
    assert "x.json is not the settings file of a run" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["../labels.csv", "/tmp/labels.csv", "sub/labels.csv", "..", "", "labels.json", 3]
)
def test_repeat_follows_no_path_from_the_settings(no_work, folder, capsys, name):
    """Where to write is told by the command line, never by the file."""
    settings = {
        "format": 1, "polyspan": "0", "labels": name, "labels_sha256": "", "sha256": ["", ""],
        "asked": vars(Request()) | {"files": FILES},
    }  # fmt: skip
    Path("x.json").write_text(json.dumps(settings))
    before = names(folder)
    assert main(["fit", "--repeat", "x.json", "--force"]) == 2
    assert "x.json is not the settings file of a run" in capsys.readouterr().err
    assert names(folder) == before


WRONG = {
    "files": "a.csv", "clusters": True, "method": 3, "set": [], "seed": "x", "id": "name",
    "drop": [1], "missing": None, "header": "no", "dataset": ["ngs"], "budget": "long", "keep": {},
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_settings_of_another_kind_are_named(no_work, capsys, name):
    asked = {"files": FILES, "clusters": 3, "method": None, "set": {}, "seed": 0, "id": [],
             "drop": [], "missing": "fail", "header": None}  # fmt: skip
    settings = {
        "format": 1, "polyspan": "0", "labels": "labels.csv", "labels_sha256": "",
        "sha256": ["", ""], "asked": asked | {name: WRONG[name]},
    }  # fmt: skip
    Path("x.json").write_text(json.dumps(settings))
    assert main(["fit", "--repeat", "x.json"]) == 2
    assert f"x.json: '{name}' cannot be {WRONG[name]!r}: use the file" in capsys.readouterr().err


def test_settings_too_deep_to_read(no_work, capsys):
    Path("x.json").write_text("[" * 100_000)
    assert main(["fit", "--repeat", "x.json"]) == 2
    assert "x.json is not the settings file of a run" in capsys.readouterr().err
