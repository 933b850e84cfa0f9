"""Helpers for tests with many cases, and for tests of scripts."""

import importlib.util
from contextlib import contextmanager
from pathlib import Path

from hypothesis import settings

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


def examples(count, **more):
    """Hypothesis settings with this many examples, ten times as many in `make test-explore`."""
    return settings(max_examples=count * settings.default.max_examples // 100, **more)


@contextmanager
def case(*words):
    """Add these words to any failure inside the block; pytest shows them below the error."""
    try:
        yield
    except BaseException as error:  # failures of pytest.fail and pytest.raises are not Exceptions
        error.add_note("case: " + " ".join(map(str, words)))
        raise


def benchmark(name):
    """A script of the folder benchmarks, as a module."""
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
