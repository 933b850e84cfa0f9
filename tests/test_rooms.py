"""Rules for the layout of the source that import-linter and ruff do not check."""

import ast
from pathlib import Path

import polyspan

SRC = Path(polyspan.__file__).parent
FILES = sorted(SRC.rglob("*.py"))


def lines(path):
    return len(path.read_text("utf-8").splitlines())


def test_no_module_imports_private_names_of_another():
    found = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("polyspan"):
                names = [a.name for a in node.names if a.name.startswith("_")]
                found += [f"{path.name}: {x}" for x in names if not x.startswith("__")]
    assert found == []


def test_no_file_is_long():
    assert {path.name: lines(path) for path in FILES if lines(path) > 400} == {}


def test_a_method_file_is_short_on_average():
    files = [path for path in FILES if path.parent.name == "methods" and path.stem != "__init__"]
    assert sum(map(lines, files)) / len(files) <= 180


def test_nobody_overrides_fit():
    own = [f"{c.__name__}" for c in polyspan.METHODS.values() if "fit" in vars(c)]
    assert own == []
