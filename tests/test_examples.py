"""The examples, which the site runs; one of them without its data."""

import ast
import runpy
import warnings
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the examples draw")
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 6
    assert all(path.name.startswith("plot_") for path in EXAMPLES)  # others are not run by the site


@pytest.mark.slow
def test_the_omics_example_runs_without_its_data(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("POLYSPAN_DATA", raising=False)
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path / "nothing"))
    [path] = [path for path in EXAMPLES if "omics" in path.stem]
    run(path, tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    assert "Taking other data: nutrimouse is neither in $POLYSPAN_DATA nor in the cache" in printed
    assert "Dataset('wdbc': 100 samples" in printed


def run(path, tmp_path, monkeypatch):
    """Run an example: it draws, and leaves no file."""
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    backend = plt.get_backend()
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)  # agg has no window, and says so
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            runpy.run_path(str(path), run_name="__main__")
        assert plt.get_fignums()
    finally:
        plt.close("all")
        plt.switch_backend(backend)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_a_title(path):
    """The gallery shows it, underlined as reStructuredText requires."""
    title, line, *rest = ast.get_docstring(ast.parse(path.read_text("utf-8"))).split("\n")
    assert line == "=" * len(title)
    assert any(rest)
