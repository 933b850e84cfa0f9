"""Helpers for tests with many cases."""

from contextlib import contextmanager

from hypothesis import settings


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
