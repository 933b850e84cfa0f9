import gzip
import hashlib
import json
import os

import pytest

from polyspan import __version__
from polyspan.bench import append_row, pack, read_rows
from polyspan.bench import store as stores
from polyspan.bench.store import FIELDS, alone, latest

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


# ---- compressed --------------------------------------------------------------------------------


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """A store of five rows in three blocks."""
    monkeypatch.setattr(stores, "BLOCK", 2)
    path = tmp_path / "store.jsonl.gz"
    for k in range(5):
        append_row(path, {"row": k, "noise": hashlib.sha256(bytes([k])).hexdigest()})
    assert pack(path) == 5
    return path


def numbers(rows):
    return [row["row"] for row in rows]


def test_a_packed_store_has_the_same_lines_and_gzip_reads_it(store):
    lines = store.read_bytes()
    assert pack(store) == 2
    assert store.read_bytes() != lines
    assert gzip.decompress(store.read_bytes()) == lines  # with their checksums
    assert read_rows(store) == ROWS


def test_rows_follow_the_blocks_and_join_them(packed):
    blocks = packed.read_bytes()
    append_row(packed, {"row": 5})
    append_row(packed, {"row": 6})
    assert packed.read_bytes().startswith(blocks)  # what was there is still there
    assert numbers(read_rows(packed)) == [0, 1, 2, 3, 4, 5, 6]
    assert pack(packed) == 7
    assert numbers(read_rows(packed)) == [0, 1, 2, 3, 4, 5, 6]
    inode = packed.stat().st_ino
    assert pack(packed) == 7
    assert packed.stat().st_ino == inode  # nothing to do


def test_every_cut_of_the_lines_behind_the_blocks(packed):
    blocks = packed.read_bytes()
    append_row(packed, {"row": 5})
    whole = packed.read_bytes()
    for end in range(len(blocks), len(whole) + 1):
        packed.write_bytes(whole[:end])
        kept = [0, 1, 2, 3, 4] + [5] * (end >= len(whole) - 1)
        assert numbers(told(packed)[0]) == kept
        append_row(packed, {"row": 6})
        assert numbers(told(packed)[0]) == [*kept, 6]
    packed.write_bytes(blocks + bytes(100))
    rows, notes = told(packed)
    assert numbers(rows) == [0, 1, 2, 3, 4]
    assert "100 zero bytes" in notes[0]
    append_row(packed, {"row": 5})
    assert numbers(told(packed)[0]) == [0, 1, 2, 3, 4, 5]


def test_every_cut_and_every_damage_of_the_blocks(packed):
    """No row is wrong, those of other blocks are there, and what is lost is said."""
    whole = packed.read_bytes()
    starts = [k for k in range(len(whole)) if whole.startswith(stores._GZIP, k)]
    assert len(starts) == 3
    wanted = read_rows(packed)
    append_row(packed, {"row": 5})
    tail = packed.read_bytes()[len(whole) :]
    for place in range(starts[1] + len(stores._GZIP), starts[2]):
        flipped = bytearray(whole + tail)
        flipped[place] ^= 0x55
        packed.write_bytes(bytes(flipped))
        rows, notes = told(packed)
        assert [row for row in rows if row["row"] in (0, 1, 4, 5)] == [
            *wanted[:2],
            wanted[4],
            {"row": 5},
        ]
        assert all(row in [*wanted, {"row": 5}] for row in rows)
        assert len(rows) == 6 or notes
    for end in range(starts[2] + len(stores._GZIP), len(whole)):
        packed.write_bytes(whole[:end])
        rows, notes = told(packed)
        assert rows in (wanted[:4], wanted)
        assert "1 compressed block is damaged" in notes[0]
        assert "the next run repeats their jobs" in notes[0]
        append_row(packed, {"row": 5})
        assert told(packed)[0] in ([*wanted[:4], {"row": 5}], [*wanted, {"row": 5}])


def test_packing_mends_a_damaged_store(packed):
    packed.write_bytes(packed.read_bytes()[:-5])
    rows, notes = told(packed)
    assert notes
    assert pack(packed) == len(rows)
    assert told(packed) == (rows, [])


def test_a_changed_row_is_not_packed(store):
    store.write_text(store.read_text().replace("0.30000000000000004", "0.9"))
    assert pack(store) == 1
    assert read_rows(store) == ROWS[1:]


def test_a_store_that_was_replaced_while_waiting_is_locked_anew(packed, monkeypatch):
    """Another run packs between our opening the file and locking it."""
    append_row(packed, {"row": 5})
    lock, calls = stores.lock, []

    def late(handle):
        calls.append(handle)
        if len(calls) == 1:
            pack(packed)
        return lock(handle)

    monkeypatch.setattr(stores, "lock", late)
    with alone(packed):
        monkeypatch.setattr(stores, "lock", lock)
        with pytest.raises(BlockingIOError, match="another run writes to"), alone(packed):
            pass
    assert len(calls) == 2


def test_a_failure_while_packing_leaves_the_store_as_it_was(packed, monkeypatch):
    append_row(packed, {"row": 5})
    before = packed.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        pack(packed)
    assert packed.read_bytes() == before
    assert [path.name for path in packed.parent.iterdir()] == [packed.name]
