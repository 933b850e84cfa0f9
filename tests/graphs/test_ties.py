import numpy as np
import pytest
from numpy.testing import assert_array_equal

from polyspan.graphs import ties


def rows(kind, n):
    rng = np.random.default_rng(0)
    found = {
        "numbers": rng.normal(size=(7, n)),
        "few values": rng.integers(0, 3, (7, n)).astype(float),
        "equal": np.zeros((7, n)),
        "one low group": np.where(np.arange(n) % (n // ties.GROUP) == 3, -1.0, 1.0)[None] + 0.0,
    }[kind]
    found[:, 1] = np.inf
    return found


@pytest.mark.parametrize("kind", ["numbers", "few values", "equal", "one low group"])
@pytest.mark.parametrize(("n", "k"), [(1000, 1), (1000, 15), (1003, 5), (1000, 40), (20, 6)])
def test_lowest_values_are_those_of_a_sort(kind, n, k):
    D = rows(kind, n)
    assert_array_equal(ties.lowest_values(D, k), np.sort(D, axis=1)[:, :k])


def test_lowest_values_next_to_nan():
    D = rows("numbers", 1000)
    D[2, 5], D[4] = np.nan, np.nan
    assert_array_equal(ties.lowest_values(D, 4), np.sort(D, axis=1)[:, :4])


def test_lowest_values_select_from_few(monkeypatch):
    D = rows("numbers", 10_000)
    true, seen, partition = np.sort(D, axis=1)[:, :5], [], np.partition

    def watched(A, *args, **options):
        seen.append(A.shape[1])
        return partition(A, *args, **options)

    monkeypatch.setattr(np, "partition", watched)
    assert_array_equal(ties.lowest_values(D, 5), true)
    assert seen == [10_000 // ties.GROUP]  # one number per group
