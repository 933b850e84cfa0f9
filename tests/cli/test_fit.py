"""The command fit: files in, labels and settings out, all of it or nothing."""

import csv
import html
import json
import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.io
from scipy import sparse

from polyspan import GRMSC, METHODS, ConcatSpectral, __version__
from polyspan.cli import files, fit
from polyspan.cli.main import main
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.selection import count_clusters, select

DATA = make_subspaces(60, 3, n_views=2, n_features=[12, 8], noise=0.1, random_state=0)
IDS = [f"s{i:02d}" for i in range(60)]
SHUFFLED = np.random.default_rng(1).permutation(60)
GRMSC3 = ["--method", "grmsc", "--clusters", "3"]
FILES = ["rna.csv", "protein.csv"]


def frame(values, ids=IDS):
    table = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
    table.insert(0, "sample", ids)
    return table


@pytest.fixture(autouse=True)
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

    monkeypatch.setattr(fit, "_fit", refuse)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def read_labels(path="labels.csv"):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.reader(stream))


def column(rows, j=1):
    return [int(row[j]) for row in rows[1:]]


def test_labels_are_those_of_a_direct_fit(folder, capsys):
    assert main(["fit", *FILES, *GRMSC3]) == 0
    out, err = capsys.readouterr()
    rows = read_labels()
    assert rows[0] == ["sample", "cluster"]
    assert [row[0] for row in rows[1:]] == IDS
    direct = GRMSC(n_clusters=3, random_state=0).fit_predict(DATA.views)
    assert column(rows) == direct.tolist()
    assert err == ""  # no progress without a terminal
    assert "60 samples matched by id ('sample')" in out
    assert "3 clusters in " in out
    sizes = np.bincount(direct)
    assert f"samples per cluster  0: {sizes[0]}, 1: {sizes[1]}, 2: {sizes[2]}" in out
    assert names(folder) == ["labels.csv", "labels.json", "protein.csv", "rna.csv"]


def test_parameters_seed_and_out(folder):
    arguments = ["--method", "ConcatSpectral", "--clusters", "4", "--seed", "7"]
    arguments += ["--set", "n_neighbors=5", "--set", "scale=standard+unit", "--out", "mine.tsv"]
    assert main(["fit", *FILES, *arguments]) == 0
    direct = ConcatSpectral(4, n_neighbors=5, scale="standard+unit", random_state=7)
    lines = Path("mine.tsv").read_text().splitlines()
    assert lines[0] == "sample\tcluster"
    assert [int(line.split("\t")[1]) for line in lines[1:]] == direct.fit_predict(
        DATA.views
    ).tolist()
    settings = json.loads(Path("mine.json").read_text())
    assert settings["parameters"]["n_neighbors"] == 5
    assert settings["parameters"]["scale"] == "standard+unit"
    assert settings["asked"]["seed"] == settings["parameters"]["random_state"] == 7
    assert "labels.csv" not in names(folder)


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
    assert settings["sha256"] == [fit.sha256(Path(file)) for file in FILES]
    assert settings["views"]["rna"] == {"file": "rna.csv", "rows": 60, "features": 12}
    assert settings["views"]["protein"] == {"file": "protein.csv", "rows": 55, "features": 8}
    assert settings["id_column"] == "sample"
    lost = sorted(IDS[i] for i in SHUFFLED[55:])
    assert settings["dropped_samples"] == settings["lacking"]["protein"] == lost
    assert settings["samples"] == 55
    assert len(read_labels()) == 56


def test_rows_are_counted_when_there_are_no_ids(capsys):
    for name, view in zip("ab", DATA.views, strict=True):
        np.save(f"{name}.npy", view)
    assert main(["fit", "a.npy", "b.npy", *GRMSC3]) == 0
    assert "matched by order" in capsys.readouterr().out
    rows = read_labels()
    assert rows[0] == ["row", "cluster"]
    assert [row[0] for row in rows[1:]] == [str(i) for i in range(1, 61)]


def test_ids_survive_csv(capsys):
    odd = [f'a, "{i}" \u00fc' for i in range(60)]
    frame(DATA.views[0], odd).rename(columns={"sample": "cluster"}).to_csv("o.csv", index=False)
    assert main(["fit", "o.csv", *GRMSC3, "--id", "cluster"]) == 0
    rows = read_labels()
    assert rows[0] == ["id", "cluster"]  # not two columns of one name
    assert [row[0] for row in rows[1:]] == odd
    assert "60 samples of one view, named by 'cluster'" in capsys.readouterr().out


def test_options_may_stand_between_files():
    assert main(["fit", "rna.csv", *GRMSC3, "protein.csv"]) == 0
    assert json.loads(Path("labels.json").read_text())["asked"]["files"] == FILES


def test_certainty_is_written_where_it_is_known(monkeypatch, capsys):
    class Certain(GRMSC):
        """A method that knows how certain it is."""

        def fit(self, X, y=None):
            super().fit(X)
            self.certainty_ = np.linspace(0.25, 1, len(self.labels_))
            return self

    monkeypatch.setitem(METHODS, "certain", Certain)
    assert main(["fit", *FILES, "--method", "certain", "--clusters", "3"]) == 0
    rows = read_labels()
    assert rows[0] == ["sample", "cluster", "certainty"]
    assert rows[1][2] == "0.2500"
    assert rows[-1][2] == "1.0000"
    assert "certainty 0.62 in the mean, below 0.5 for 20 samples" in capsys.readouterr().out


def test_warnings_become_notes(capsys):
    assert main(["fit", *FILES, *GRMSC3, "--set", "max_iter=1"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("polyspan: note: GRMSC stopped after max_iter=1 turns")
    assert err.count("\n") == 1
    assert "max_iter=1" in json.loads(Path("labels.json").read_text())["warnings"][0]


def test_progress_on_a_terminal(monkeypatch, capsys):
    turns = []
    monkeypatch.setattr(fit, "follow", lambda bar, task, run: turns.append(run.n_iter))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["fit", *FILES, *GRMSC3]) == 0
    assert "GRMSC" in capsys.readouterr().err
    assert turns == list(range(1, len(turns) + 1))
    assert len(turns) > 5


# --- Repeating. ---


def test_repeat(folder, capsys):
    arguments = ["--set", "affinity=sparse", "--seed", "3", "--drop", "x1", "--id", "sample"]
    assert main(["fit", *FILES, *GRMSC3, *arguments]) == 0
    capsys.readouterr()
    assert main(["fit", "--repeat", "labels.json", "--out", "again.csv"]) == 0
    out, err = capsys.readouterr()
    assert "repeated: every label is as it was" in out
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
    assert main(["fit", "--repeat", "labels.json", "--out", "again.csv"]) == 0
    out, err = capsys.readouterr()
    assert "polyspan: note: protein.csv has changed since labels.json was written\n" in err
    assert "note: repeated, but the labels are not the same" in err
    assert "repeated: every label" not in out
    Path("rna.csv").unlink()
    assert main(["fit", "--repeat", "labels.json", "--out", "third.csv"]) == 2
    assert "there is no file rna.csv, which labels.json names" in capsys.readouterr().err


def test_the_command_that_is_printed_repeats_the_run(folder, capsys):
    assert main(["fit", *FILES, *GRMSC3, "--out", "my labels.csv", "--report", "report.html"]) == 0
    printed = re.search(r"`(polyspan fit .*?)` repeats this run", capsys.readouterr().out)[1]
    shown = re.findall(r'id="code-repeat">(.*?)</code>', Path("report.html").read_text("utf-8"))
    assert [html.unescape(words) for words in shown] == [printed]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for name in ("my labels-again.csv", "my labels-again-2.csv"):  # as often as it is pasted
        assert main(shlex.split(printed)[1:]) == 0
        assert "every label is as it was" in capsys.readouterr().out
        assert Path(name).read_bytes() == before["my labels.csv"]
        assert Path(name).with_suffix(".json").is_file()
    assert {name: Path(name).read_bytes() for name in before} == before
    assert len(names(folder)) == len(before) + 4


def test_repeat_does_not_overwrite(capsys):
    assert main(["fit", *FILES, *GRMSC3]) == 0
    before = Path("labels.csv").read_bytes()
    capsys.readouterr()
    assert main(["fit", "--repeat", "labels.json", "--out", "labels.csv"]) == 2
    assert "labels.csv exists: say --force to replace it" in capsys.readouterr().err
    assert main(["fit", "--repeat", "labels.json", "--force"]) == 0
    assert Path("labels.csv").read_bytes() == before


def test_repeat_of_settings_without_budget_and_device(capsys):
    assert main(["fit", *FILES, *GRMSC3]) == 0
    settings = json.loads(Path("labels.json").read_text())
    for name in ("budget", "device"):  # as earlier versions wrote it
        del settings["asked"][name]
    Path("labels.json").write_text(json.dumps(settings))
    assert main(["fit", "--repeat", "labels.json"]) == 0
    assert "every label is as it was" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"format": 1, "asked": {"seed": 0}}', "id,x\na,1\n"]
)
def test_repeat_of_something_else(no_work, capsys, text):
    Path("x.json").write_text(text)
    assert main(["fit", "--repeat", "x.json"]) == 2
    assert "x.json does not hold the settings of a run" in capsys.readouterr().err


# --- Refusals: exit code 2, one sentence, nothing written, no work. ---


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no.csv", *GRMSC3], "there is no file no.csv"),
        (["no.csv", *GRMSC3, "--out", "old.csv"], "there is no file no.csv"),
        ([*FILES, "--method", "grmcs", "--clusters", "3"], "no method is called 'grmcs', did you"),
        (
            [*FILES, *GRMSC3, "--set", "lam=1"],
            "no parameter of GRMSC is called 'lam', did you mean",
        ),
        ([*FILES, *GRMSC3, "--set", "lam1"], "--set wants name=value, such as --set lam1=10; got"),
        ([*FILES, *GRMSC3, "--set", "lam1=-1"], "GRMSC: lam1 must be a finite number > 0; got -1"),
        ([*FILES, *GRMSC3, "--set", "n_clusters=4"], "--set n_clusters: say --clusters instead"),
        ([*FILES, *GRMSC3, "--set", "random_state=4"], "--set random_state: say --seed instead"),
        ([*FILES, *GRMSC3, "--set", "views=4"], "no parameter of GRMSC is called 'views'"),
        ([*FILES, "--set", "lam1=1"], "--set needs --method"),
        ([*FILES, "--method", "grmsc", "--clusters", "61"], "--clusters 61: there are 60 samples"),
        ([*FILES, "--method", "lrr", "--clusters", "3"], "LRR takes one view; got 2"),
        ([*FILES, *GRMSC3, "--seed", "-1"], "--seed must be from 0 to 2**32 - 1, got -1"),
        ([*FILES, *GRMSC3, "--budget", "9"], "--budget is for the choice without labels, and --me"),
        ([*FILES, "--budget", "-1"], "--budget must be a finite number >= 0, got -1.0"),
        ([*FILES, "--budget", "nan"], "--budget must be a finite number >= 0, got nan"),
        ([*FILES, "--missing", "keep"], "--missing keep needs --method and --clusters"),
        (
            [*FILES, "--method", "grmsc", "--missing", "keep"],
            "say --method grmsc --clusters N, or --missing drop",
        ),
        ([*FILES, *GRMSC3, "--drop", "y"], "no table has a column 'y' to drop"),
        ([*FILES, *GRMSC3, "--id", "y"], "rna.csv has no column 'y' for --id"),
        ([*FILES, *GRMSC3, "--out", "labels.txt"], "labels.txt: labels are written as .csv or"),
        ([*FILES, *GRMSC3, "--out", "no/labels.csv"], "there is no folder no: make it first"),
        ([*FILES, *GRMSC3, "--out", "folder.csv"], "folder.csv is a folder: name a file in it"),
        ([*FILES, *GRMSC3, "--out", "rna.csv", "--force"], "rna.csv is one of the files to read"),
        ([*FILES, *GRMSC3, "--report", "report.pdf"], "report.pdf: the report is written as .html"),
        ([*FILES, *GRMSC3, "--out", "old.csv"], "old.csv exists: say --force to replace it, or"),
        ([*FILES, *GRMSC3, "--out", "kept.csv"], "kept.json exists: say --force to replace it, or"),
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
        (["--repeat", "a.json", *FILES], "takes everything from a.json: leave files out"),
    ],
)
def test_wrong_usage(no_work, capsys, arguments, words):
    with pytest.raises(SystemExit, match="2"):
        main(["fit", *arguments])
    assert words in capsys.readouterr().err


def test_missing_keep(capsys, monkeypatch):
    assert main(["fit", *FILES, *GRMSC3[:2], "--clusters", "3", "--missing", "fail"]) == 0
    assert main(["fit", *FILES, "--missing", "keep", "--out", "other.csv"]) == 2
    assert "--missing keep needs --method" in capsys.readouterr().err
    assert main(["fit", *FILES, "--method", "rmsc", "--missing", "keep", "--out", "o.csv"]) == 2
    assert "--missing keep: RMSC needs every view of every sample" in capsys.readouterr().err

    class Incomplete(GRMSC):
        """A method that takes rows of NaN."""

        _missing_views = True

        def _check(self, X):
            return super()._check({name: np.nan_to_num(view) for name, view in X.items()})

    monkeypatch.setitem(METHODS, "incomplete", Incomplete)
    frame(DATA.views[1]).iloc[SHUFFLED[:50]].to_csv("protein.csv", index=False)
    arguments = ["--method", "incomplete", "--clusters", "3", "--missing", "keep", "--force"]
    assert main(["fit", *FILES, *arguments]) == 0
    assert "10 samples lack protein, kept without it: s" in capsys.readouterr().out
    assert [row[0] for row in read_labels()[1:]] == IDS


# --- Failures: exit code 1, nothing written. ---


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("no luck"), 1),
        (MemoryError("no luck"), 1),
        (RuntimeError("no luck"), 1),
        (KeyboardInterrupt("no luck"), 130),
    ],
)
@pytest.mark.parametrize("where", ["fit", "write"])
def test_failure_leaves_nothing(folder, capsys, monkeypatch, error, code, where):
    def fail(*args, **kwargs):
        raise error

    if where == "fit":
        monkeypatch.setattr(GRMSC, "_solve", fail)
    else:
        monkeypatch.setattr(fit, "write_json", fail)
    assert main(["fit", *FILES, *GRMSC3]) == code
    assert capsys.readouterr().err == "polyspan: no luck\n"
    assert names(folder) == ["protein.csv", "rna.csv"]


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_all_files_or_none(folder, monkeypatch, broken):
    """A move that fails half-way puts back what was there."""
    Path("b").write_text("old")
    writers = {Path(name): lambda path: path.write_text("new") for name in "abc"}
    really = files.os.replace

    def replace(source, target):
        if Path(target) == Path("abc"[broken]) and "old" not in Path(source).name:
            raise OSError("the disk is full")
        really(source, target)

    monkeypatch.setattr(files.os, "replace", replace)
    before = names(folder)
    with pytest.raises(OSError, match="the disk is full"):
        files.write_together(writers, force=True)
    assert names(folder) == before
    assert Path("b").read_text() == "old"
    monkeypatch.setattr(files.os, "replace", really)
    files.write_together(writers, force=True)
    assert names(folder) == sorted([*before, "a", "c"])
    assert Path("b").read_text() == "new"


def test_a_file_that_came_in_between_is_not_replaced(folder, capsys, monkeypatch):
    def meanwhile(data, *rest):
        Path("labels.json").write_text("someone else's")
        return really(data, *rest)

    really = fit._fit
    monkeypatch.setattr(fit, "_fit", meanwhile)
    assert main(["fit", *FILES, *GRMSC3]) == 1
    assert "labels.json exists" in capsys.readouterr().err
    assert names(folder) == ["labels.json", "protein.csv", "rna.csv"]
    assert Path("labels.json").read_text() == "someone else's"


def test_force_replaces(folder):
    Path("labels.csv").write_text("old")
    assert main(["fit", *FILES, *GRMSC3, "--force"]) == 0
    assert read_labels()[0] == ["sample", "cluster"]
    assert names(folder) == ["labels.csv", "labels.json", "protein.csv", "rna.csv"]


# --- Real data. ---


@pytest.mark.parametrize(("name", "method"), [("three_sources", "grmsc"), ("bbcsport", "amgl")])
def test_published_data_from_shuffled_files(data_dir, capsys, name, method):
    """The views as three kinds of files, each in another order, give what the arrays give."""
    data = load_dataset(name)
    n = len(data.labels)
    ids = [f"doc{i}" for i in range(n)]
    rng = np.random.default_rng(0)
    files = []
    for k, view in enumerate(data.views):
        order = np.arange(n) if k == 0 else rng.permutation(n)
        values = view.toarray() if sparse.issparse(view) else view
        table = frame(values[order], [ids[i] for i in order])
        files.append(f"view{k}.{['csv', 'parquet', 'tsv'][k % 3]}")
        if k % 3 == 1:
            table.to_parquet(files[-1], index=False)
        else:
            table.to_csv(files[-1], index=False, sep=",\t"[k % 3 == 2])
    c = str(data.n_clusters)
    assert main(["fit", *files, "--method", method, "--clusters", c]) == 0
    assert f"{n} samples matched by id ('sample')" in capsys.readouterr().out
    rows = read_labels()
    assert [row[0] for row in rows[1:]] == ids
    dense = [view.toarray() if sparse.issparse(view) else view for view in data.views]
    direct = METHODS[method](n_clusters=data.n_clusters, random_state=0).fit_predict(dense)
    assert column(rows) == direct.tolist()


def test_published_data_as_matrix_market_and_mat(data_dir):
    """Sparse views stay sparse; the .mat file itself gives the same."""
    data = load_dataset("three_sources")
    for k, view in enumerate(data.views):
        scipy.io.mmwrite(f"view{k}.mtx", sparse.coo_array(view))
    direct = GRMSC(n_clusters=6, random_state=0).fit_predict(
        [sparse.csr_array(view) for view in data.views]
    )
    arguments = ["--method", "grmsc", "--clusters", "6"]
    files = [f"view{k}.mtx" for k in range(len(data.views))]
    assert main(["fit", *files, *arguments]) == 0
    assert column(read_labels()) == direct.tolist()
    assert main(["fit", str(data_dir / "three_sources.mat"), *arguments, "--out", "m.csv"]) == 0
    assert column(read_labels("m.csv")) == data_labels(data)


def data_labels(data):
    return GRMSC(n_clusters=data.n_clusters, random_state=0).fit_predict(data.views).tolist()


# --- What the documentation shows. ---


def test_the_tutorial_shows_what_is_printed(folder, capsys):
    """Its code runs, its commands do what they say; only times may differ."""
    page = (Path(__file__).parents[2] / "docs/your-own-data.md").read_text("utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page, flags=re.M | re.S)
    first, last = (code for kind, code in blocks if kind == "python")
    for name in FILES:
        Path(name).unlink()
    exec(compile(first, "your-own-data.md", "exec"), {})
    plain = [text for kind, text in blocks if not kind]
    shown = {
        command: text for command, text in pairwise(plain) if command.startswith("polyspan fit")
    }
    refused, fitted = shown
    assert main([*shlex.split(refused)[1:], *GRMSC3]) == 2
    assert capsys.readouterr().err == shown[refused]
    assert main(shlex.split(fitted)[1:]) == 0
    times = re.compile(r"in \d+\.\d s")
    assert times.sub("", capsys.readouterr().out) == times.sub("", shown[fitted])
    assert main(shlex.split(plain[-1])[1:]) == 0
    assert "repeated: every label is as it was" in capsys.readouterr().out
    names = {}
    exec(compile(last, "your-own-data.md", "exec"), names)
    assert names["labels"].tolist() == column(read_labels())


# --- With the choice without labels, and the report. ---


@pytest.mark.slow
def test_choice_without_labels(capsys):
    assert main(["fit", *FILES, "--clusters", "3", "--report", "report.html"]) == 0
    found = select(DATA.views, 3, random_state=0)
    rows = read_labels()
    assert rows[0] == ["sample", "cluster", "certainty"]
    assert column(rows) == found.labels.tolist()
    settings = json.loads(Path("labels.json").read_text())
    assert len(settings["selection"]) == len(found.table)
    assert settings["asked"]["method"] is None
    used = sum(row["weight"] > 0 for row in found.table)
    assert 1 < used < len(found.table)
    told = " ".join(capsys.readouterr().out.split())
    assert (
        f"s: consensus of {used} settings, chosen without labels from {len(found.table)} that ran "
        f"nearest to the consensus: {type(found.best_estimator).__name__}("
    ) in told
    page = html.unescape(Path("report.html").read_text("utf-8"))
    assert f"put into 3 clusters by the <strong>consensus of {used} settings</strong>" in page
    assert "labels = select(views, 3, random_state=0).labels" in page
    assert "fit_predict" not in page
    assert "Certainty is the share of the settings in the consensus" in page
    assert main(["fit", "--repeat", "labels.json", "--out", "again.csv"]) == 0
    assert "every label is as it was" in capsys.readouterr().out


def test_budget_of_the_choice(capsys):
    assert main(["fit", *FILES, "--clusters", "3", "--budget", "0"]) == 0
    assert (
        "consensus of 1 setting, chosen without labels from 1 that ran" in capsys.readouterr().out
    )
    settings = json.loads(Path("labels.json").read_text())
    statuses = [row["status"] for row in settings["selection"]]
    assert statuses == ["ok"] + ["not run"] * (len(statuses) - 1)
    assert settings["asked"]["budget"] == 0
    assert main(["fit", "--repeat", "labels.json"]) == 0
    again = json.loads(Path("labels-again.json").read_text())
    assert again["asked"] == settings["asked"]
    assert "every label is as it was" in capsys.readouterr().out


@pytest.mark.slow
def test_device_of_one_method_and_of_the_choice(monkeypatch, capsys):
    pytest.importorskip("torch")
    seen = []
    really = GRMSC._solve

    def solve(self, views, Xs):
        seen.append(self.device)
        return really(self, views, Xs)

    monkeypatch.setattr(GRMSC, "_solve", solve)
    assert main(["fit", *FILES, *GRMSC3, "--device", "cpu"]) == 0
    assert seen == ["cpu"]
    assert json.loads(Path("labels.json").read_text())["asked"]["device"] == "cpu"
    assert main(["fit", "--repeat", "labels.json"]) == 0
    assert seen == ["cpu", "cpu"]
    assert main(["fit", *FILES, "--method", "amgl", "--device", "cpu", "--out", "a.csv"]) == 0
    assert len(seen) > 2  # AMGL has no device, the count of its clusters has
    assert main(["fit", *FILES, "--budget", "0", "--device", "cpu", "--out", "c.csv"]) == 0
    assert set(seen) == {"cpu"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*GRMSC3, "--device", "cuda:99"], "--device: device='cuda:99' is not available here"),
        (["--device", "cuda:99"], "--device: device='cuda:99' is not available here"),
        ([*GRMSC3, "--device", "cpu", "--set", "device=cpu"], "are the same: leave one out"),
        (
            ["--method", "concatkmeans", "--clusters", "3", "--device", "cpu"],
            "--device: ConcatKMeans has no device, leave it out",
        ),
    ],
)
def test_wrong_devices(no_work, capsys, folder, arguments, words):
    pytest.importorskip("torch")
    assert main(["fit", *FILES, *arguments]) == 2
    assert words in capsys.readouterr().err
    assert names(folder) == ["protein.csv", "rna.csv"]


@pytest.mark.slow
def test_number_of_clusters_from_the_data(capsys):
    assert main(["fit", *FILES, "--method", "grmsc", "--report", "report.html"]) == 0
    count, evidence = count_clusters(DATA.views, random_state=0)
    assert len(set(column(read_labels()))) == count
    shown = " ".join(capsys.readouterr().out.split())
    assert "their number was chosen from the data" in shown
    at = evidence["candidates"].index(count)
    gap, stability = evidence["gaps"][at], evidence["stability"][at]
    assert (
        f"for their number: {count} (gap {gap:.3f}, stability {stability:.2f}, score 1.00)" in shown
    )
    assert "Evidence for the number of clusters" in Path("report.html").read_text("utf-8")
    assert json.loads(Path("labels.json").read_text())["evidence"]


def test_without_the_choice(monkeypatch, no_work, capsys, folder):
    monkeypatch.setitem(sys.modules, "polyspan.selection", None)
    assert main(["fit", *FILES]) == 2
    assert "without labels is not part of this version: say --method" in capsys.readouterr().err
    assert main(["fit", *FILES, "--method", "grmsc"]) == 2
    assert "the number of clusters without labels is not part" in capsys.readouterr().err
    assert names(folder) == ["protein.csv", "rna.csv"]


def test_report(folder, capsys):
    pytest.importorskip("polyspan.report", reason="the report is not here yet")
    assert main(["fit", *FILES, *GRMSC3, "--report", "report.html"]) == 0
    text = Path("report.html").read_text("utf-8")
    assert text.lstrip().lower().startswith("<!doctype html>")
    assert "polyspan fit rna.csv protein.csv --method grmsc" in text
    assert "report.html" in capsys.readouterr().out
    assert names(folder) == ["labels.csv", "labels.json", "protein.csv", "report.html", "rna.csv"]


def test_without_the_report(monkeypatch, no_work, capsys):
    monkeypatch.setitem(sys.modules, "polyspan.report", None)
    assert main(["fit", *FILES, *GRMSC3, "--report", "report.html"]) == 2
    assert "this version has no report: leave --report out" in capsys.readouterr().err
