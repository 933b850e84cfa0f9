"""A kill of each kind; `make kills` does many."""

import random

import pytest
from kills import bench, fit

pytestmark = pytest.mark.slow


def test_a_killed_benchmark_loses_and_doubles_nothing():
    found = bench(1, random.Random(1))
    assert found["kills"] == 1
    assert found["rows"] > 0
    assert (found["lost"], found["doubled"], found["half-written"]) == (0, 0, 0)


def test_a_killed_fit_leaves_old_files_or_new_ones():
    found = fit(1, random.Random(1))
    assert found["kills"] == 1
    assert (found["lost"], found["half-written"], found["never removed"]) == (0, 0, 0)
