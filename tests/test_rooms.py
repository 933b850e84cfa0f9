"""Rules for the layout of the source that import-linter and ruff do not check."""

import ast
from pathlib import Path

import polyspan

SRC = Path(polyspan.__file__).parent
FILES = sorted(SRC.rglob("*.py"))


def test_no_module_imports_private_names_of_another():
    found = []
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("polyspan"):
                names = [a.name for a in node.names if a.name.startswith("_")]
                found += [f"{path.name}: {x}" for x in names if not x.startswith("__")]
    assert found == []


def test_nobody_overrides_fit():
    changed = [
        f"{cls.__name__}.{name}"
        for cls in (*polyspan.METHODS.values(), polyspan.ConsensusClusterer)
        for name in ("fit", "fit_predict", "learned")
        if name in vars(cls)
    ]
    assert changed == []
