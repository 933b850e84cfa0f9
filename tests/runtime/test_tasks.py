"""Functions in threads: their order, their errors, and how they are stopped."""

import threading
import time
import warnings

import pytest

from polyspan.runtime.messages import own_warnings, recording, warn_user
from polyspan.runtime.tasks import run_tasks

LONG = 60.0  # seconds: no test waits for them


def wait(seconds=LONG, hook=lambda: None):
    """Be at work in Python for so long."""
    end = time.perf_counter() + seconds
    try:
        while time.perf_counter() < end:
            time.sleep(0.001)
    finally:
        hook()
    return "done"


@pytest.mark.parametrize("n_jobs", [1, 2, 9])
def test_results_are_in_the_order_of_the_calls(n_jobs):
    second = threading.Event()
    steps = []

    def first():
        if n_jobs > 1:
            assert second.wait(LONG)  # it ends after the second
        return 0

    calls = [first, lambda: second.set() or 1, lambda: 2]
    assert run_tasks(calls, n_jobs, finished=lambda: steps.append(1)) == [0, 1, 2]
    assert len(steps) == 3
    assert run_tasks([], n_jobs) == []


def test_an_error_is_raised_and_the_others_are_stopped():
    ended, began = threading.Event(), threading.Event()

    def fail():
        assert began.wait(LONG)
        raise ZeroDivisionError("by nothing")

    with pytest.raises(ZeroDivisionError, match="by nothing"):
        run_tasks([lambda: began.set() or wait(hook=ended.set), fail, wait], n_jobs=2)
    assert ended.is_set()


def test_the_deadline_stops_what_is_at_work():
    ended, third = [], []
    calls = [lambda: 1, lambda: wait(hook=lambda: ended.append(1)), lambda: third.append(1)]
    started = time.perf_counter()
    assert run_tasks(calls, deadline=started + 0.2) == [1, None, None]
    assert (ended, third) == ([1], [])
    assert time.perf_counter() - started < LONG / 2


@pytest.mark.filterwarnings("error")  # of an error in a thread that nobody caught
def test_no_time_at_all():
    for _ in range(20):
        assert run_tasks([wait, wait], n_jobs=2, deadline=0.0) == [None, None]


def test_ctrl_c_stops_them_and_is_raised():
    ended, began = threading.Event(), threading.Event()

    def ctrl_c():
        raise KeyboardInterrupt

    calls = [lambda: began.wait(LONG), lambda: began.set() or wait(hook=ended.set)]
    with pytest.raises(KeyboardInterrupt):
        run_tasks(calls, 2, finished=ctrl_c)
    assert ended.is_set()


def test_what_is_told_is_collected_in_its_own_thread():
    both = threading.Barrier(2)

    def tell(word):
        with recording() as told:
            both.wait(LONG)
            warn_user(word)
            both.wait(LONG)
        return told

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run_tasks([lambda: tell("one"), lambda: tell("two")], 2) == [["one"], ["two"]]
    with recording() as outer:
        warn_user("before")
        assert run_tasks([lambda: tell("one"), lambda: tell("two")], 2) == [["one"], ["two"]]
    assert outer == ["before"]


def test_threads_of_a_block_of_warnings_do_not_wait_for_it():
    both = threading.Barrier(2)

    def inside():
        with own_warnings():
            both.wait(LONG)  # both are inside at once
            warnings.warn("hidden", UserWarning, stacklevel=1)
        return "done"

    with own_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        filters = list(warnings.filters)
        assert run_tasks([inside, inside], 2) == ["done", "done"]
        assert warnings.filters == filters
        with own_warnings():  # and one in the same thread is a block of its own
            warnings.simplefilter("error")
        assert warnings.filters == filters
    assert caught == []


def test_without_such_a_block_they_wait_for_each_other():
    inside, most = [], []

    def enter():
        with own_warnings():
            inside.append(1)
            most.append(len(inside))
            time.sleep(0.01)
            inside.pop()

    run_tasks([enter] * 4, 4)
    assert most == [1] * 4
