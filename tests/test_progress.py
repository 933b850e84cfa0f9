"""When progress is shown in Python."""

from contextlib import contextmanager

import pytest

from polyspan import progress
from polyspan.progress import following, telling


@pytest.fixture
def bars(monkeypatch):
    """What a bar would show, in a terminal."""
    steps = []

    @contextmanager
    def showing(what):
        with following(lambda *step: steps.append((what, *step))):
            yield

    monkeypatch.setattr(progress, "showing", showing)
    monkeypatch.setattr(progress, "has_eyes", lambda: True)
    return steps


def walk(verbose):
    with telling("walk", verbose) as tell:
        for done in (1, 2):
            if tell is not None:
                tell(done, 2, "on the way")


def test_by_default_a_bar_comes_after_some_seconds(bars, monkeypatch, capsys):
    walk(None)
    assert bars == []
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    walk(None)
    assert bars == [("walk", 1, 2, "on the way"), ("walk", 2, 2, "on the way")]
    assert progress.follower() is None  # the bar has ended with the work
    monkeypatch.setattr(progress, "has_eyes", lambda: False)
    walk(None)
    assert len(bars) == 2
    assert capsys.readouterr().out == ""


def test_0_never_shows_any_and_1_always(bars, monkeypatch, capsys):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    walk(0)
    assert bars == []
    monkeypatch.setattr(progress, "PATIENCE", 1000.0)
    walk(1)
    assert len(bars) == 2
    monkeypatch.setattr(progress, "has_eyes", lambda: False)
    walk(1)
    assert capsys.readouterr().out.splitlines()[1] == "[walk] 2 of 2, 0 s left: on the way"


def test_who_follows_hears_all_and_there_is_no_bar(bars, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    heard = []
    with following(lambda *step: heard.append(step)):
        walk(None)
    assert len(heard) == 2
    assert bars == []
