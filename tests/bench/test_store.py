import json
import os

import pytest

from polyspan.bench import append_row, read_rows
from polyspan.bench.store import latest

ROWS = [{"method": "Größe", "nmi": 0.1 + 0.2}, {"params": {"scale": None}, "nmi": None}]


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store.jsonl"
    for row in ROWS:
        append_row(path, row)
    return path


def test_rows_come_back_as_they_were(store):
    assert read_rows(store) == ROWS
    assert [json.loads(line) for line in store.read_text("ascii").splitlines()] == ROWS


def test_every_row_is_one_write_forced_to_disk(store, monkeypatch):
    calls = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda f, b: calls.append(b) or write(f, b))
    monkeypatch.setattr(os, "fsync", lambda f: calls.append("sync") or fsync(f))
    append_row(store, {"a": 1})
    assert calls == [b'{"a": 1}\n', "sync"]


def test_a_row_written_in_part_is_an_error(store, monkeypatch):
    monkeypatch.setattr(os, "write", lambda f, b: len(b) - 1)
    with pytest.raises(OSError, match="was only partly written"):
        append_row(store, {"a": 1})


def test_every_cut_of_the_last_line(store):
    whole = store.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole) + 1):
        store.write_bytes(whole[:end])
        complete = end >= len(whole) - 1  # only the line break is missing
        kept = ROWS if complete else ROWS[:1]
        assert read_rows(store) == kept
        append_row(store, {"next": 1})
        assert read_rows(store) == [*kept, {"next": 1}]
        append_row(store, {"next": 2})
        assert read_rows(store) == [*kept, {"next": 1}, {"next": 2}]


@pytest.mark.parametrize(("text", "line"), [("a,b\n1,2\n", 1), ('{"a": 1}\n[3]\n', 2)])
def test_another_file_is_not_a_store(tmp_path, text, line):
    (tmp_path / "other").write_text(text)
    with pytest.raises(ValueError, match=f"other is not a store: line {line} is not a row"):
        read_rows(tmp_path / "other")


def test_no_store(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no store .*none\.jsonl"):
        read_rows(tmp_path / "none.jsonl")


def test_nan_does_not_get_in(store):
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_row(store, {"nmi": float("nan")})
    assert read_rows(store) == ROWS


def test_latest():
    names = ("protocol", "dataset", "method", "selection", "stage", "key")
    row = dict.fromkeys(names, "x") | {"status": "failed"}
    again = row | {"status": "ok"}
    others = [row | {name: "y"} for name in names]
    assert latest([row, *others, again]) == [again, *others]
