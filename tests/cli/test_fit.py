"""The command fit: files in, labels and settings out, all of it or nothing."""

import html
import json
import re
import shlex
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.io
from fit_tables import DATA, FILES, GRMSC3, IDS, column, frame, names, read_labels
from scipy import sparse

from polyspan import (
    GRMSC,
    METHODS,
    ConcatSpectral,
    ConsensusClusterer,
    SelfGraph,
    count_clusters,
)
from polyspan.cli import files, work
from polyspan.cli.main import main
from polyspan.datasets import load_dataset

pytestmark = pytest.mark.usefixtures("folder")


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


def test_one_scaling_per_view(folder):
    arguments = ["--method", "ConcatSpectral", "--clusters", "3"]
    assert main(["fit", *FILES, *arguments, "--set", "scale=('unit', 'standard')"]) == 0
    direct = ConcatSpectral(3, scale=("unit", "standard"), random_state=0)
    assert column(read_labels()) == direct.fit_predict(DATA.views).tolist()
    settings = json.loads(Path("labels.json").read_text())
    assert settings["parameters"]["scale"] == ["unit", "standard"]


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
    assert "certainty 0.62 on average, below 0.5 for 20 samples" in capsys.readouterr().out


def test_warnings_become_notes(capsys):
    assert main(["fit", *FILES, *GRMSC3, "--set", "max_iter=1"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("polyspan: note: GRMSC stopped after max_iter=1 iterations")
    assert err.count("\n") == 1
    assert "max_iter=1" in json.loads(Path("labels.json").read_text())["warnings"][0]


def test_progress_on_a_terminal(monkeypatch, capsys):
    iterations = []
    monkeypatch.setattr(work, "follow", lambda bar, task, run: iterations.append(run.n_iter))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert main(["fit", *FILES, *GRMSC3]) == 0
    assert "GRMSC" in capsys.readouterr().err
    assert iterations == list(range(1, len(iterations) + 1))
    assert len(iterations) > 5


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
        monkeypatch.setattr(GRMSC, "solve", fail)
    else:
        monkeypatch.setattr(files, "write_json", fail)
    assert main(["fit", *FILES, *GRMSC3]) == code
    assert capsys.readouterr().err == "polyspan: no luck\n"
    assert names(folder) == ["protein.csv", "rna.csv"]


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
    first, last, filled = (code for kind, code in blocks if kind == "python")
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
    assert "repeated: all labels are the same as before" in capsys.readouterr().out
    names = {}
    exec(compile(last, "your-own-data.md", "exec"), names)
    assert names["labels"].tolist() == column(read_labels())
    exec(compile(filled, "your-own-data.md", "exec"), names)
    assert [note.split(":")[0] for note in names["notes"]] == ["view 0", "view 1"]


# --- With the choice without labels, and the report. ---


@pytest.mark.slow
def test_choice_without_labels(capsys):
    assert main(["fit", *FILES, "--clusters", "3", "--report", "report.html"]) == 0
    found = ConsensusClusterer(3, random_state=0).fit(DATA.views)
    rows = read_labels()
    assert rows[0] == ["sample", "cluster", "certainty"]
    assert column(rows) == found.labels_.tolist()
    settings = json.loads(Path("labels.json").read_text())
    assert len(settings["members"]) == len(found.table_)
    assert settings["asked"]["method"] is None
    used = sum(row["weight"] > 0 for row in found.table_)
    assert 1 < used < len(found.table_)
    told = " ".join(capsys.readouterr().out.split())
    assert (
        f"s: consensus of {used} members, chosen without labels from {len(found.table_)} that ran "
        f"nearest to the consensus: {type(found.best_estimator_).__name__}("
    ) in told
    page = html.unescape(Path("report.html").read_text("utf-8"))
    assert f"put into 3 clusters by the <strong>consensus of {used} members</strong>" in page
    call = "ConsensusClusterer(n_clusters=3, n_jobs=-1, random_state=0).fit_predict(views)"
    assert f"from polyspan import ConsensusClusterer\n\nlabels = {call}" in page
    assert "Certainty is the share of the members in the consensus" in page
    assert main(["fit", "--repeat", "labels.json", "--out", "again.csv"]) == 0
    assert "all labels are the same as before" in capsys.readouterr().out


def test_budget_of_the_choice(capsys):
    asked = ["fit", *FILES, "--clusters", "3", "--budget", "0"]
    assert main(asked) == 0
    told = capsys.readouterr().out
    assert "consensus of 1 member, chosen without labels from 1 that ran" in told
    assert "agreement  seconds" not in told
    assert main([*asked, "--force", "--verbose"]) == 0
    told = capsys.readouterr().out
    assert "members" in told
    assert re.search(r"^self graph, unit +0/\d+ +0 +- +0.0$", told, flags=re.M)  # by scaling, too
    settings = json.loads(Path("labels.json").read_text())
    statuses = [row["status"] for row in settings["members"]]
    assert statuses == ["ok"] + ["not run"] * (len(statuses) - 1)
    assert settings["asked"]["budget"] == 0
    assert main(["fit", "--repeat", "labels.json"]) == 0
    again = json.loads(Path("labels-again.json").read_text())
    assert again["asked"] == settings["asked"]
    assert "all labels are the same as before" in capsys.readouterr().out


@pytest.mark.slow
def test_device_of_one_method_and_of_the_choice(monkeypatch, capsys):
    pytest.importorskip("torch")
    seen = []
    really = GRMSC.solve

    def solve(self, views, Xs):
        seen.append(self.device)
        return really(self, views, Xs)

    monkeypatch.setattr(GRMSC, "solve", solve)
    assert main(["fit", *FILES, *GRMSC3, "--device", "cpu"]) == 0
    assert seen == ["cpu"]
    assert json.loads(Path("labels.json").read_text())["asked"]["device"] == "cpu"
    assert main(["fit", "--repeat", "labels.json"]) == 0
    assert seen == ["cpu", "cpu"]
    seen.clear()
    plain = SelfGraph.solve

    def count(self, views, Xs):
        seen.append(self.device)
        return plain(self, views, Xs)

    monkeypatch.setattr(SelfGraph, "solve", count)
    assert main(["fit", *FILES, "--method", "amgl", "--device", "cpu", "--out", "a.csv"]) == 0
    assert seen  # AMGL has no device, the count of its clusters has
    assert main(["fit", *FILES, "--device", "cpu", "--clusters", "3", "--out", "c.csv"]) == 0
    assert set(seen) == {"cpu"}


@pytest.mark.slow
def test_number_of_clusters_from_the_data(capsys):
    assert main(["fit", *FILES, "--method", "grmsc", "--report", "report.html"]) == 0
    count, evidence = count_clusters(DATA.views, random_state=0)
    assert len(set(column(read_labels()))) == count
    shown = " ".join(capsys.readouterr().out.split())
    assert "number estimated from the data" in shown
    first, *others = evidence["shortlist"]
    assert f"numbers to consider, best first: {count} (score {first['score']:.2f} by " in shown
    assert all(f", {row['n_clusters']} (score {row['score']:.2f} by" in shown for row in others)
    assert "Evidence for the number of clusters" in Path("report.html").read_text("utf-8")
    assert json.loads(Path("labels.json").read_text())["evidence"]


def test_report(folder, capsys):
    assert main(["fit", *FILES, *GRMSC3, "--report", "report.html"]) == 0
    text = Path("report.html").read_text("utf-8")
    assert text.lstrip().lower().startswith("<!doctype html>")
    assert "polyspan fit rna.csv protein.csv --method grmsc" in text
    assert "report.html" in capsys.readouterr().out
    assert names(folder) == ["labels.csv", "labels.json", "protein.csv", "report.html", "rna.csv"]
