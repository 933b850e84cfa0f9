"""Every example runs, draws and leaves nothing behind; a warning is a failure."""

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


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.slow
def test_example_runs(path, tmp_path, monkeypatch, capsys):
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
    printed = capsys.readouterr().out
    assert printed
    assert "nan" not in printed.lower()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_has_a_title(path):
    """The gallery shows it, underlined as reStructuredText requires."""
    title, line, *rest = ast.get_docstring(ast.parse(path.read_text("utf-8"))).split("\n")
    assert line == "=" * len(title)
    assert any(rest)
