import json
import os

import pytest

from polyspan import __version__
from polyspan.bench import append_row, read_rows
from polyspan.bench.store import FIELDS, latest

ROWS = [{"method": "Größe", "nmi": 0.1 + 0.2}, {"params": {"scale": None}, "nmi": None}]


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store.jsonl"
    for row in ROWS:
        append_row(path, row)
    return path


def test_rows_come_back_as_they_were(store):
    assert read_rows(store) == ROWS
    lines = [json.loads(line) for line in store.read_text("ascii").splitlines()]
    assert [{k: v for k, v in line.items() if k != "sum"} for line in lines] == ROWS


def test_every_row_is_one_write_forced_to_disk(store, monkeypatch):
    calls = []
    write, fsync = os.write, os.fsync
    monkeypatch.setattr(os, "write", lambda f, b: calls.append(b) or write(f, b))
    monkeypatch.setattr(os, "fsync", lambda f: calls.append("sync") or fsync(f))
    append_row(store, {"a": 1})
    assert calls == [b'{"a": 1, "sum": "fba18e97"}\n', "sync"]


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


def told(path, **options):
    notes = []
    return read_rows(path, tell=notes.append, **options), notes


def test_zeros_that_a_power_cut_leaves(store):
    whole = store.read_bytes()
    for cut in (whole, whole[:-1], whole[:-5]):
        store.write_bytes(cut + bytes(4096))
        kept = ROWS if len(cut) >= len(whole) - 1 else ROWS[:1]
        rows, notes = told(store)
        assert rows == kept
        assert len(notes) == 1
        assert "4096 zero bytes, which a power cut leaves: they are skipped" in notes[0]
        append_row(store, {"next": 1})
        assert told(store)[0] == [*kept, {"next": 1}]
    store.write_bytes(bytes(10))
    assert told(store)[0] == []


def test_a_score_that_was_changed_is_seen(store):
    text = store.read_text()
    assert "0.30000000000000004" in text
    store.write_text(text.replace("0.30000000000000004", "0.9"))
    rows, notes = told(store)
    assert rows == ROWS[1:]
    assert "line 1 changed after being written" in notes[0]
    assert "left out, and the next run repeats" in notes[0]
    with pytest.warns(UserWarning, match="line 1 changed after being written"):
        read_rows(store)


def test_rows_without_a_checksum_are_older(tmp_path):
    (tmp_path / "old.jsonl").write_text('{"nmi": 0.5}\n')
    assert told(tmp_path / "old.jsonl") == ([{"nmi": 0.5}], [])


def complete(**changes):
    kinds = {str: "x", dict: {}, int: 1, bool: True}
    row = {name: kinds[kinds_of[0]] for name, kinds_of in FIELDS.items()}
    return row | {"versions": {"polyspan": __version__}} | changes


def test_a_row_without_its_fields_is_named_by_its_line(store):
    append_row(store, complete())
    with pytest.raises(ValueError, match=r"store\.jsonl: line 1 is not a row .* has no 'protocol'"):
        told(store, fields=FIELDS)
    store.unlink()
    append_row(store, complete())
    assert told(store, fields=FIELDS) == ([complete()], [])
    append_row(store, complete(nmi="high"))
    with pytest.raises(ValueError, match="line 2 is not a row of a benchmark, its 'nmi' is 'high'"):
        told(store, fields=FIELDS)


def test_rows_of_another_version_are_said(store):
    store.unlink()
    append_row(store, complete())
    append_row(store, complete(versions={"polyspan": "0.0.7"}))
    append_row(store, complete(versions=None))
    rows, notes = told(store, fields=FIELDS)
    assert len(rows) == 3
    assert (
        "2 of 3 rows were written by another version of polyspan (0.0.7, unknown; this" in notes[0]
    )


def test_so_deep_that_nobody_can_read_it(store):
    with store.open("a") as stream:
        stream.write('{"a": ' * 100_000 + "\n")
    assert told(store)[0] == ROWS
