"""The public names are loaded when first used, and are all there."""

import pickle
import subprocess
import sys

import pytest

import polyspan
from polyspan.runtime import cache
from polyspan.solvers import loop

HEAVY = {"numpy", "scipy", "sklearn", "pandas", "rich", "matplotlib", "joblib", "threadpoolctl"}


def fresh(code):
    """Run code in a new interpreter; return the lines that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.splitlines()


def test_every_public_name_is_there():
    assert all(getattr(polyspan, name) is not None for name in polyspan.__all__)
    assert set(polyspan.__all__) <= set(dir(polyspan))
    assert polyspan.sharing is cache.sharing
    assert polyspan.watching is loop.watching
    for cls in polyspan.METHODS.values():
        assert getattr(polyspan, cls.__name__) is cls
        assert pickle.loads(pickle.dumps(cls)) is cls


def test_methods_are_found_in_any_case():
    methods = polyspan.METHODS
    for name, cls in methods.items():
        assert name == name.lower() in methods
        for spelling in (cls.__name__, name, name.upper()):
            assert methods[spelling] is methods.get(spelling) is cls
            assert spelling in methods
    assert len(methods) == len(list(methods)) == len(set(methods.values()))
    for name in ("grmcs", "", None, 3):
        assert name not in methods
        assert methods.get(name) is None
        assert methods.get(name, "other") == "other"
    with pytest.raises(KeyError, match="no method is called 'GRMCS', did you mean 'grmsc'"):
        methods["GRMCS"]
    with pytest.raises(KeyError, match="no method is called 3"):
        methods[3]


def test_star_import():
    names = {}
    exec("from polyspan import *", names)
    assert set(polyspan.__all__) <= set(names)


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="module 'polyspan' has no attribute 'GRMCS'"):
        _ = polyspan.GRMCS
    with pytest.raises(ImportError, match="cannot import name 'GRMCS' from 'polyspan'"):
        exec("from polyspan import GRMCS", {})


@pytest.mark.slow
def test_import_alone_loads_nothing_and_gives_everything():
    code = (
        "import sys, polyspan\n"
        f"print(sorted({HEAVY} & {{name.split('.')[0] for name in sys.modules}}))\n"
        "print(polyspan.solvers.loop.watching is polyspan.watching)\n"
        "print(polyspan.base.MultiViewClusterer in polyspan.GRMSC.__mro__)\n"
        "import polyspan.selection\n"
        "print(callable(polyspan.selection.ConsensusClusterer))\n"
    )
    assert fresh(code) == ["[]", "True", "True", "True"]
