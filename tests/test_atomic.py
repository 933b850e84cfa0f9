"""Files are written whole or not at all, one of them or several together."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from polyspan import atomic
from polyspan.atomic import replacing, replacing_all


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def write(parts, but="", error=None):
    for path, part in parts.items():
        if path.name != but:
            part.write_text("new")
    if error is not None:
        raise error


@pytest.mark.parametrize("error", [ValueError("no luck"), KeyboardInterrupt("no luck")])
@pytest.mark.parametrize("old", [{}, {"a": "old"}, {"a": "old", "b": "old"}])
def test_failure_in_the_block_leaves_everything(folder, old, error):
    for name, text in old.items():
        Path(name).write_text(text)
    with pytest.raises(type(error), match="no luck"), replacing_all(map(Path, "ab")) as parts:
        write(parts, error=error)
    assert contents(folder) == old


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt("disk full")])
@pytest.mark.parametrize("old", ["", "a", "b", "c", "abc"])
@pytest.mark.parametrize("broken", "abc")
def test_failure_of_a_move_puts_back_what_was_there(folder, monkeypatch, broken, old, error):
    for name in old:
        Path(name).write_text("old")
    really = os.replace

    def replace(source, target):
        if Path(target).name == broken and "old" not in Path(source).name:
            raise error
        really(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(type(error), match="disk full"), replacing_all(map(Path, "abc")) as parts:
        write(parts)
    assert contents(folder) == dict.fromkeys(old, "old")
    monkeypatch.setattr(os, "replace", really)
    with replacing_all(map(Path, "abc")) as parts:
        write(parts)
    assert contents(folder) == dict.fromkeys("abc", "new")


@pytest.mark.parametrize("old", ["", "ab"])
def test_interrupted_after_the_last_move_all_files_stand(folder, monkeypatch, old):
    for name in old:
        Path(name).write_text("old")
    really = os.replace

    def replace(source, target):
        really(source, target)
        if Path(target).name == "b":
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt), replacing_all(map(Path, "ab")) as parts:
        write(parts)
    assert contents(folder) == dict.fromkeys("ab", "new")


@pytest.mark.parametrize("lost", "ab")
def test_a_file_that_was_not_written_is_an_error(folder, lost):
    Path("a").write_text("old")
    with pytest.raises(FileNotFoundError, match=lost), replacing_all(map(Path, "ab")) as parts:
        write(parts, but=lost)
    assert contents(folder) == {"a": "old"}


def test_one_file_is_never_away(folder, monkeypatch):
    """It is replaced in one step: a reader sees either the old file or the new one."""
    Path("a.csv").write_text("old")
    moves = []
    really = os.replace
    monkeypatch.setattr(os, "replace", lambda *pair: (moves.append(pair), really(*pair)))
    with replacing(Path("a.csv")) as part:
        part.write_text("new")
        assert part.suffix == ".csv"
        assert Path("a.csv").read_text() == "old"
    assert moves == [(part, Path("a.csv"))]
    assert contents(folder) == {"a.csv": "new"}


def test_a_planted_link_is_not_followed(folder, monkeypatch):
    """The name of the temporary file cannot be foreseen, and an existing one is never opened."""
    victim = folder / "victim"
    victim.write_text("mine")
    (folder / f".{os.getpid()}-a").symlink_to(victim)
    names = iter(["0" * 16, "1" * 16])
    monkeypatch.setattr("polyspan.atomic.secrets.token_hex", lambda _: next(names))
    (folder / f".polyspan-{'0' * 16}-a").symlink_to(victim)
    with pytest.raises(FileExistsError, match="polyspan-0000"), replacing(Path("a")) as part:
        part.write_text("new")
    with replacing(Path("a")) as part:
        part.write_text("new")
    assert victim.read_text() == "mine"
    assert Path("a").read_text() == "new"


def test_many_threads_write_one_path(folder):
    def save(i):
        with replacing(Path("a")) as part:
            part.write_text(str(i) * 10_000)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(save, i) for i in range(9)]:
            done.result()
            assert len(set(Path("a").read_text())) == 1
    assert list(contents(folder)) == ["a"]


def test_everything_is_on_the_disk_before_it_is_moved(folder, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda f: (calls.append("sync"), fsync(f)))
    monkeypatch.setattr(os, "replace", lambda *pair: (calls.append("move"), replace(*pair)))
    with replacing_all(map(Path, "ab")) as parts:
        write(parts)
    assert calls == ["sync", "sync", "move", "move", "sync"]  # the last is of the folder


KILLED = """
import os, sys
from pathlib import Path
from polyspan.atomic import replacing_all
really, moves = os.replace, []
def replace(source, target):
    if len(moves) == int(sys.argv[1]):
        os.kill(os.getpid(), 9)
    moves.append(target)
    really(source, target)
os.replace = replace
with replacing_all(map(Path, "abc")) as parts:
    for part in parts.values():
        part.write_text("new")
"""


@pytest.mark.parametrize("old", ["", "abc"])
@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_kill_between_two_moves_leaves_every_file_old_or_new(folder, moves, old):
    for name in old:
        Path(name).write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(moves)])
    assert done.returncode == -9
    found = {name: text for name, text in contents(folder).items() if name in "abc"}
    wanted = dict.fromkeys(old, "old") | dict.fromkeys("abc"[:moves], "new")
    assert found == wanted
    with replacing(Path("d")) as part:  # removes what the other process left
        part.write_text("new")
    assert contents(folder) == wanted | {"d": "new"}


def test_the_files_of_a_living_process_are_no_leftovers(folder):
    with replacing(Path("a")) as part:
        part.write_text("new")
        with replacing(Path("b")) as other:
            other.write_text("new")
        assert part.exists()
    assert contents(folder) == {"a": "new", "b": "new"}


def test_a_writer_that_replaces_too_writes_the_part_itself(folder):
    with replacing_all(map(Path, "ab")) as parts:
        for part in parts.values():
            with replacing(part) as inner:
                assert inner == part
                inner.write_text("new")
    assert contents(folder) == {"a": "new", "b": "new"}


def test_the_permissions_are_those_of_any_new_file(folder):
    Path("plain").write_text("")
    with replacing(Path("a")) as part:
        part.write_text("new")
    assert Path("a").stat().st_mode == Path("plain").stat().st_mode


def test_a_new_file_that_another_call_takes_for_a_leftover_is_left_to_it(folder, monkeypatch):
    """Between the creation of a file and its lock, another call may look at it."""
    pytest.importorskip("fcntl")
    taken, lock = [], atomic.lock

    def late(handle):
        if taken:
            return lock(handle)
        (path,) = folder.iterdir()
        taken.append(path)
        other = os.open(path, os.O_RDONLY)
        assert lock(other)
        found = lock(handle)
        os.close(other)
        return found

    monkeypatch.setattr(atomic, "lock", late)
    with replacing(Path("a.txt")) as part:
        part.write_text("all of it")
        taken[0].unlink(missing_ok=True)  # what the other call does next
    assert contents(folder) == {"a.txt": "all of it"}
