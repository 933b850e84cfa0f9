"""The command demo."""

import os
import re
import sys
import webbrowser
from pathlib import Path

import pytest

from polyspan.cli import demo, work
from polyspan.cli.main import main
from polyspan.datasets import load_nuclei_views
from polyspan.metrics import SCORES, clustering_scores

ROWS = ["ConsensusClusterer", "ConcatSpectral", "ConcatSpectral, standard", "ConcatKMeans"]
SMALL = ["demo", "--samples", "60"]
FILES = ["polyspan-demo.html", "polyspan-demo.png"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, and a terminal of the usual width; no browser."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def refuse(*args):
        raise AssertionError("a browser was opened")

    monkeypatch.setattr(webbrowser, "open", refuse)
    return tmp_path


@pytest.fixture(scope="module")
def fitted():
    """The fits of `polyspan demo --samples 60`."""
    return demo.fit_all(load_nuclei_views(60), 0)


@pytest.fixture
def ready(fitted, monkeypatch):
    """The fits are done."""
    monkeypatch.setattr(demo, "fit_all", lambda *args: fitted)


@pytest.fixture
def no_work(monkeypatch):
    """Any fit is an error."""

    def refuse(*args):
        raise AssertionError("work was begun")

    monkeypatch.setattr(demo, "fit_all", refuse)


def scores(out):
    """Method -> its numbers, from the printed table."""
    found = {}
    for line in out.splitlines():
        for row in ROWS:
            if match := re.fullmatch(rf"{row}((?: +\d\.\d+)+) +\d[\d.]* s *", line):
                found[row] = [float(number) for number in match[1].split()]
    return found


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.slow
def test_demo_prints_the_verdict_and_the_table_and_writes(folder, capsys):
    assert main(SMALL) == 0
    out, err = capsys.readouterr()
    table = scores(out)
    assert list(table) == ROWS
    assert all(len(numbers) == 6 for numbers in table.values())
    assert err == ""  # no progress bar without a terminal
    told = " ".join(out.split())
    assert "The diagnosis is only used for the scores." in told
    assert "structure: " in told
    assert re.search(r"consensus of \d+ members, chosen without labels from \d+ that ran", told)
    assert "samples per cluster 0: " in told
    assert "certainty 0." in told
    assert out.endswith("\nReport: polyspan-demo.html\nPicture: polyspan-demo.png\n")
    assert max(len(line.rstrip()) for line in out.splitlines()) <= 80
    assert names(folder) == FILES
    assert Path("polyspan-demo.png").read_bytes().startswith(b"\x89PNG")
    page = Path("polyspan-demo.html").read_text("utf-8")
    assert "Breast tumors, by their cell nuclei" in page
    assert "<bdi>concave points</bdi>" in page  # features have names
    assert "polyspan demo --samples 60 --seed 0" in page
    assert "diagnosis" in page


def test_demo_shows_nine_scores_when_there_is_room(ready, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main([*SMALL, "--no-files"]) == 0
    assert {len(numbers) for numbers in scores(capsys.readouterr().out).values()} == {9}


def test_demo_prints_what_the_methods_score(ready, folder, capsys):
    data = load_nuclei_views(60)
    rows = demo.run_demo(60, out=None)
    printed = scores(capsys.readouterr().out)
    for name, row in rows.items():
        expected = clustering_scores(data.labels, row.model.labels_)
        assert printed[name][0] == pytest.approx(expected["nmi"], abs=5e-4)
        assert printed[name][3] == pytest.approx(expected["avg_entropy"], abs=5e-4)
    for name, scale in (("ConcatSpectral, standard", "standard"), ("ConcatSpectral", "unit")):
        assert rows[name].model.scale == scale
    consensus = rows[ROWS[0]].model
    assert consensus.get_params() == type(consensus)(2, random_state=0).get_params()  # untuned
    assert list(folder.iterdir()) == []


def test_the_best_is_bold_and_entropy_is_best_when_low():
    def row(nmi, entropy):
        others = dict.fromkeys(SCORES, 0.5)
        return demo.Row(None, others | {"nmi": nmi, "avg_entropy": entropy}, 1.0)

    table = demo.score_table({"a": row(0.9, 0.7), "b": row(0.8, 0.2), "c": row(0.9001, 0.3)})
    cells = {column.header: list(column.cells) for column in table.columns}
    assert ["bold" in cell for cell in cells["NMI"]] == [True, False, True]  # a tie as printed
    assert ["bold" in cell for cell in cells["entropy"]] == [False, True, False]


def test_seed_and_samples_matter(fitted, monkeypatch):
    asked = []
    monkeypatch.setattr(demo, "fit_all", lambda data, seed: asked.append((data, seed)) or fitted)
    for arguments in (["--seed", "1"], ["--seed", "1"], ["--seed", "2"]):
        assert main(["demo", "--samples", "50", "--no-files", *arguments]) == 0
    assert [seed for _, seed in asked] == [1, 1, 2]
    first, second, third = (data.views[0] for data, _ in asked)
    assert first.shape == (50, 10)
    assert (first == second).all()
    assert not (first == third).all()


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_demo_out(ready, folder, ending):
    assert main([*SMALL, "--out", f"mine.{ending}"]) == 0
    assert names(folder) == sorted(["mine.html", f"mine.{ending}"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mine.png", "mine.html"])
def test_demo_replaces_its_own_files_but_no_other(ready, capsys, name):
    for file in (*FILES, name):
        Path(file).write_bytes(b"old")
    assert main(SMALL) == 0
    assert all(Path(file).read_bytes() != b"old" for file in FILES)
    capsys.readouterr()
    assert main([*SMALL, "--out", "mine.png"]) == 1
    assert capsys.readouterr() == (
        "",
        f"polyspan: {name} exists: use --force to replace it, or name another file\n",
    )
    assert Path(name).read_bytes() == b"old"
    assert main([*SMALL, "--out", "mine.png", "--force"]) == 0
    assert Path(name).read_bytes() != b"old"


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ("missing/figure.png", "there is no folder missing: create it first"),
        ("figure.bmp", "figure.bmp: the file name of a figure must end in .png, .svg or .pdf"),
        ("figure", "figure: the file name of a figure must end in .png, .svg or .pdf"),
        ("folder.png", "folder.png is a folder: name a file in it"),
    ],
)
def test_demo_refuses_before_any_work(folder, no_work, capsys, out, words):
    Path("folder.png").mkdir()
    assert main([*SMALL, "--out", out]) == 1
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert stderr.startswith(f"polyspan: {words}")
    assert stderr.count("\n") == 1
    assert names(folder) == ["folder.png"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_demo_refuses_a_folder_without_permission(folder, no_work, capsys):
    Path("locked").mkdir(mode=0o500)
    assert main([*SMALL, "--out", "locked/figure.png"]) == 1
    assert "the folder locked is not writable" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--samples", "39"], "--samples must be from 40 to 569, got 39"),
        (["--samples", "570"], "--samples must be from 40 to 569, got 570"),
        (["--samples", "many"], "argument --samples: invalid int value: 'many'"),
        (["--seed", "-1"], "--seed must be from 0 to 2**32 - 1, got -1"),
        (["--out", "a.png", "--no-files"], "not allowed with argument --out"),
    ],
)
def test_demo_wrong_arguments(no_work, capsys, arguments, words):
    with pytest.raises(SystemExit, match="2"):
        main(["demo", *arguments])
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("error", [OSError("the disk is full"), KeyboardInterrupt()])
def test_nothing_half_written_stays(ready, folder, capsys, monkeypatch, error):
    from matplotlib.figure import Figure

    whole = Figure.savefig

    def break_off(self, path, **options):
        if options["format"] == "svg":  # for the page
            return whole(self, path, **options)
        Path(path).write_bytes(b"half")
        raise error

    monkeypatch.setattr(Figure, "savefig", break_off)
    for file in FILES:
        Path(file).write_bytes(b"old")
    assert main(SMALL) in (1, 130)
    assert names(folder) == FILES
    assert all(Path(file).read_bytes() == b"old" for file in FILES)
    assert capsys.readouterr().err.startswith("polyspan: ")


@pytest.mark.parametrize(
    ("terminal", "platform", "environment", "opens"),
    [
        (True, "linux", {"DISPLAY": ":0"}, True),
        (True, "linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        (True, "darwin", {}, True),
        (True, "win32", {}, True),
        (True, "linux", {}, False),  # no screen
        (False, "linux", {"DISPLAY": ":0"}, False),  # a script
        (True, "linux", {"DISPLAY": ":0", "SSH_CONNECTION": "1"}, False),  # a screen elsewhere
        (True, "darwin", {"CI": "true"}, False),
    ],
)
def test_a_browser_opens_where_it_is_seen(
    ready, monkeypatch, folder, terminal, platform, environment, opens
):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "CI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setattr(demo.sys, "platform", platform)
    assert demo.has_screen() == opens
    if environment.get("DISPLAY") and opens:
        assert main([*SMALL, "--no-open"]) == 0
        assert opened == []
        assert main(SMALL) == 0
        assert opened == [(folder / "polyspan-demo.html").as_uri()]


def test_progress_is_shown_while_it_works(monkeypatch):
    seen = []

    class Bar:
        def __enter__(self):
            seen.append("shown")

        def __exit__(self, *error):
            seen.append("gone")

    def stop(self, X):
        raise KeyboardInterrupt("here")

    monkeypatch.setattr(work, "showing", lambda what: seen.append(what) or Bar())
    monkeypatch.setattr("polyspan.ConsensusClusterer.fit", stop)

    with pytest.raises(KeyboardInterrupt, match="here"):
        demo.fit_all(load_nuclei_views(60), 0)
    assert seen == ["ConsensusClusterer", "shown", "gone"]


def test_the_views_are_the_columns_of_scikit_learn():
    from sklearn.datasets import load_breast_cancer

    whole, data = load_breast_cancer(), load_nuclei_views()
    for k, view in enumerate(("mean", "error", "worst")):
        assert (data.views[k] == whole.data[:, 10 * k : 10 * k + 10]).all()
        assert data.columns[k][7] == "concave points"
        assert data.view_names[k] == view
    assert (data.labels == whole.target).all()
    assert set(data.extra["diagnosis"][data.labels == 0]) == {"malignant"}
    assert (load_nuclei_views(50).views[0] != load_nuclei_views(50, 1).views[0]).any()
    with pytest.raises(ValueError, match=r"n_samples must be from 2 to 569, got 570"):
        load_nuclei_views(570)
