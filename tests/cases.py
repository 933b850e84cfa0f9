"""What tests of many cases share."""

from contextlib import contextmanager

from hypothesis import settings


def examples(count, **more):
    """Settings of Hypothesis: this many examples, and tenfold in `make test-explore`."""
    return settings(max_examples=count * settings.default.max_examples // 100, **more)


@contextmanager
def case(*words):
    """Whatever fails inside carries these words; pytest shows them below the error."""
    try:
        yield
    except BaseException as error:  # pytest.fail and pytest.raises are not Exceptions
        error.add_note("case: " + " ".join(map(str, words)))
        raise
