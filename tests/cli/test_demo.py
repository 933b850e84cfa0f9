"""The command demo."""

import builtins
import os
import re
import sys
from pathlib import Path

import pytest

from polyspan import figures
from polyspan.cli import demo
from polyspan.cli.main import main
from polyspan.datasets import load_digits_views
from polyspan.metrics import SCORES
from polyspan.solvers.loop import Run

ROWS = ["GRMSC", "GRMSC, sparse affinity", "ConcatKMeans", "ConcatSpectral"]
SMALL = ["demo", "--samples", "60"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, and a terminal of the usual width."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture
def no_work(monkeypatch):
    """Any fit is an error."""

    def refuse(*args):
        raise AssertionError("work was begun")

    monkeypatch.setattr(demo, "fit_all", refuse)


@pytest.fixture
def no_matplotlib(monkeypatch):
    really_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return really_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)


def scores(out):
    """Method -> its numbers, from the printed table."""
    found = {}
    for line in out.splitlines():
        for row in ROWS:
            if match := re.fullmatch(rf"{row}((?: +\d\.\d+)+) +\d+\.\d s *", line):
                found[row] = [float(number) for number in match[1].split()]
    return found


def test_demo_prints_the_table_and_draws(folder, capsys):
    assert main(SMALL) == 0
    out, err = capsys.readouterr()
    table = scores(out)
    assert list(table) == ROWS
    assert all(len(numbers) == 6 for numbers in table.values())
    assert err == ""  # no progress bar without a terminal
    assert "n_neighbors=30, lam1=100.0, lam2=1000.0" in out
    assert "Figure: polyspan-demo.png" in out
    assert max(len(line) for line in out.splitlines() if not line.startswith("Dataset")) <= 80
    assert [path.name for path in folder.iterdir()] == ["polyspan-demo.png"]
    assert (folder / "polyspan-demo.png").read_bytes().startswith(b"\x89PNG")


def test_demo_shows_nine_scores_when_there_is_room(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main([*SMALL, "--no-figure"]) == 0
    assert {len(numbers) for numbers in scores(capsys.readouterr().out).values()} == {9}


def test_demo_prints_what_the_methods_score(folder, capsys):
    rows = demo.run_demo(60, seed=1, out=None)
    printed = scores(capsys.readouterr().out)
    for name, row in rows.items():
        assert printed[name][0] == pytest.approx(row.scores["nmi"], abs=5e-4)
        assert printed[name][3] == pytest.approx(row.scores["avg_entropy"], abs=5e-4)
    assert rows[ROWS[1]].model.affinity == "sparse"
    assert (
        rows[ROWS[0]].model.get_params()
        == type(rows[ROWS[0]].model)(n_clusters=10, random_state=1).get_params()
    )  # nothing is tuned
    assert list(folder.iterdir()) == []


def test_the_best_is_bold_and_entropy_is_best_when_low():
    def row(nmi, entropy):
        others = dict.fromkeys(SCORES, 0.5)
        return demo.Row(None, others | {"nmi": nmi, "avg_entropy": entropy}, 1.0)

    table = demo.score_table({"a": row(0.9, 0.7), "b": row(0.8, 0.2), "c": row(0.9001, 0.3)})
    cells = {column.header: list(column.cells) for column in table.columns}
    assert ["bold" in cell for cell in cells["NMI"]] == [True, False, True]  # a tie as printed
    assert ["bold" in cell for cell in cells["entropy"]] == [False, True, False]


def test_seed_and_samples_matter(capsys):
    outs = []
    for seed in ("1", "1", "2"):
        assert main(["demo", "--samples", "50", "--seed", seed, "--no-figure"]) == 0
        outs.append(scores(capsys.readouterr().out))
    assert outs[0] == outs[1] != outs[2]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_demo_out(folder, ending):
    assert main([*SMALL, "--out", f"mine.{ending}"]) == 0
    assert [path.name for path in folder.iterdir()] == [f"mine.{ending}"]


def test_demo_replaces_its_own_file_but_no_other(folder, capsys):
    for name in ("polyspan-demo.png", "mine.png"):
        Path(name).write_bytes(b"old")
    assert main(SMALL) == 0
    assert Path("polyspan-demo.png").read_bytes() != b"old"
    capsys.readouterr()
    assert main([*SMALL, "--out", "mine.png"]) == 1
    assert capsys.readouterr() == (
        "",
        "polyspan: mine.png exists: use --force to replace it, or name another file\n",
    )
    assert Path("mine.png").read_bytes() == b"old"
    assert main([*SMALL, "--out", "mine.png", "--force"]) == 0
    assert Path("mine.png").read_bytes() != b"old"


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
    assert [path.name for path in folder.iterdir()] == ["folder.png"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_demo_refuses_a_folder_without_permission(folder, no_work, capsys):
    Path("locked").mkdir(mode=0o500)
    assert main([*SMALL, "--out", "locked/figure.png"]) == 1
    assert "the folder locked is not writable" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--samples", "19"], "--samples must be from 20 to 1797, got 19"),
        (["--samples", "1798"], "--samples must be from 20 to 1797, got 1798"),
        (["--samples", "many"], "argument --samples: invalid int value: 'many'"),
        (["--seed", "-1"], "--seed must be from 0 to 2**32 - 1, got -1"),
        (["--out", "a.png", "--no-figure"], "not allowed with argument --out"),
    ],
)
def test_demo_wrong_arguments(no_work, capsys, arguments, words):
    with pytest.raises(SystemExit, match="2"):
        main(["demo", *arguments])
    assert words in capsys.readouterr().err


def test_demo_without_matplotlib(folder, no_matplotlib, capsys):
    assert main(SMALL) == 1
    out, err = capsys.readouterr()
    assert list(scores(out)) == ROWS
    assert err == 'polyspan: a figure needs matplotlib: pip install "polyspan[plot]"\n'
    assert main([*SMALL, "--no-figure"]) == 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("error", [OSError("the disk is full"), KeyboardInterrupt()])
def test_nothing_half_written_stays(folder, capsys, monkeypatch, error):
    from matplotlib.figure import Figure

    def break_off(self, path, **options):
        Path(path).write_bytes(b"half")
        raise error

    monkeypatch.setattr(Figure, "savefig", break_off)
    Path("polyspan-demo.png").write_bytes(b"old")
    assert main(SMALL) in (1, 130)
    assert [path.name for path in folder.iterdir()] == ["polyspan-demo.png"]
    assert Path("polyspan-demo.png").read_bytes() == b"old"
    assert capsys.readouterr().err.startswith("polyspan: ")


def test_progress_follows_the_iterations(monkeypatch):
    seen = []
    monkeypatch.setattr(demo, "follow", lambda bar, task, run: seen.append((task, run.n_iter)))
    rows = demo.fit_all(load_digits_views(60), 0)
    iterations = [n for task, n in seen if task == 0]
    assert iterations == list(range(1, rows["GRMSC"].model.n_iter_ + 1))
    assert {task for task, _ in seen} == {0, 1}


def test_the_bar_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    run = Run("solver", max_iter=50, tol=3e-7)
    with demo.progress_bar() as bar:
        task = bar.add_task("solver", total=None, words="")
        for iteration in run:
            run.check(size=10.0**-iteration)
            demo.follow(bar, task, run)
            if iteration == 3:
                assert (
                    bar.tasks[0].total == 7
                )  # a tenth per iteration: 1e-7 comes four iterations on
                bar.refresh()
    assert "iteration 3 of about 7, 0 s left" in capsys.readouterr().err


def test_the_figure_shows_what_was_found():
    data = load_digits_views(60)
    row = demo.fit_all(data, 0)[demo.SHOWN]
    figure = demo.draw(data, row.model)
    digits, affinity, convergence = figure.axes
    assert digits.images[0].get_array().shape[0] == 10 * 10  # ten clusters
    assert affinity.images[0].get_array().shape == (60, 60)
    assert len(convergence.lines[0].get_xdata()) == row.model.n_iter_
    assert figures.FORMATS[0] == demo.DEFAULT_FIGURE.suffix
