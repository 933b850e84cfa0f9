"""The command info."""

import re

from polyspan import METHODS, __version__
from polyspan.cli import info
from polyspan.cli.main import main


def test_info(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path))
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    lines = {line.split()[0]: line for line in out.splitlines()}
    for name in ("Python", "numpy", "scipy", "scikit-learn", "array-api-compat", "CPUs", "BLAS"):
        assert re.search(r"\d", lines[name])
    assert lines["polyspan"].split() == ["polyspan", __version__]
    assert str(tmp_path) in lines["$POLYSPAN_DATA"]
    assert "GiB free" in lines["memory"]
    for name, method in METHODS.items():
        assert lines[name].endswith(method.__doc__.splitlines()[0])


def test_info_says_which_extra_gives_what(monkeypatch):
    monkeypatch.setattr(info, "_version", lambda name: None)
    optional = dict(info.describe()["optional packages"])
    assert optional["torch"] == 'not installed: pip install "polyspan[torch]"'
    assert "pytest" not in optional
    assert "polyspan" not in optional
