"""Files are written whole or not at all, one of them or several together."""

import os
from pathlib import Path

import pytest

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
