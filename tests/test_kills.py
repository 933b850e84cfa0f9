"""A kill of a fit; `make kills` does many, and of benchmarks (bench/test_runner.py) and workers."""

import random

import pytest
from kills import fit

pytestmark = pytest.mark.slow


def test_a_killed_fit_leaves_old_files_or_new_ones():
    found = fit(1, random.Random(1))
    assert found["kills"] == 1
    assert (found["lost"], found["half-written"], found["never removed"]) == (0, 0, 0)
