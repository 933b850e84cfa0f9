import numpy as np
import pytest
import scipy.sparse as sp

from polyspan.chunked import graph as module
from polyspan.chunked.graph import drawn_samples, near_together
from polyspan.chunked.workers import Threads, bounds
from polyspan.graphs import neighbors


@pytest.fixture
def groups(monkeypatch):
    """Two views of 400 samples in 8 far groups, shuffled, and the group of each."""
    monkeypatch.setattr(neighbors, "CELL", 25)
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(8), 50))
    return [np.eye(8)[labels] + 0.01 * rng.normal(size=(400, 8)), rng.normal(size=(400, 3))], labels


def moved(views, size):
    spans = bounds(400, size)
    chunks = [[X[a:b] for X in views] for a, b in spans]
    with Threads(1) as workers:
        found = near_together(workers, chunks, spans)
    assert not chunks  # their memory is needed
    return found


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_near_samples_lie_together_with_all_their_views(groups, form):
    views, labels = groups
    chunks, spans, order = moved([form(views[0]), views[1]], 60)
    np.testing.assert_array_equal(np.sort(order), np.arange(400))
    assert [spans[0][0], spans[-1][1]] == [0, 400]
    for (a, b), chunk in zip(spans, chunks, strict=True):
        first = chunk[0].toarray() if sp.issparse(chunk[0]) else chunk[0]
        np.testing.assert_array_equal(first, views[0][order[a:b]])
        np.testing.assert_array_equal(chunk[1], views[1][order[a:b]])
    # A group is left and another entered 7 times at least; some are in several cells.
    assert np.sum(np.diff(labels[order]) != 0) < 30 < np.sum(np.diff(labels) != 0)


def test_chunks_are_as_long_as_before_but_not_too_many(groups, monkeypatch):
    _, spans, _ = moved(groups[0], 100)
    assert len(spans) == 4
    monkeypatch.setattr(module, "CHUNKS", 2)
    assert len(moved(groups[0], 10)[1]) == 2


def test_samples_that_lack_the_first_view_stay(groups):
    views, _ = groups
    gone = np.arange(400) % 3 == 0
    chunks, _, order = moved([np.where(gone[:, None], np.nan, views[0]), views[1]], 60)
    np.testing.assert_array_equal(np.sort(order), np.arange(400))
    found = np.concatenate([chunk[0] for chunk in chunks])
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), gone[order])
    np.testing.assert_array_equal(np.concatenate([chunk[1] for chunk in chunks]), views[1][order])


def test_drawn_samples_do_not_depend_on_the_chunks(monkeypatch):
    monkeypatch.setattr(neighbors, "center_samples", lambda n: 20)
    X = np.arange(100.0)[:, None]
    with Threads(1) as workers:
        found = [
            drawn_samples(workers, [[X[a:b]] for a, b in bounds(100, size)], bounds(100, size), 0)
            for size in (100, 7)
        ]
    assert len(np.unique(found[0])) == 20
    np.testing.assert_array_equal(*found)


def test_a_first_view_that_hardly_any_sample_has_leaves_the_order(groups):
    views, _ = groups
    spans = bounds(400, 60)
    chunks = [[np.full_like(views[0][a:b], np.nan), views[1][a:b]] for a, b in spans]
    with Threads(1) as workers:
        found, after, order = near_together(workers, chunks, spans)
    np.testing.assert_array_equal(order, np.arange(400))
    np.testing.assert_array_equal(np.concatenate([one[1] for one in found]), views[1])
    assert after == spans
