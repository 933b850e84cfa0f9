"""The store: no row is wrong, none is doubled, and as little as can be is lost, and named."""

import gzip
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from cases import BENCHMARKS, case
from stored_rows import made, without_keys

from harness import append_rows, export, read_rows, rebuild, store
from harness.store import alone, latest, read_table, table_rows

ROWS = [made(seed, dataset=name) for name in ("NGs", "Größe") for seed in range(60)]
PLACES = 100


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store, which no test changes."""
    path = tmp_path_factory.mktemp("store") / "rows.db"
    append_rows(path, ROWS)
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.db"


def told(read, path):
    notes = []
    return read(path, tell=notes.append), " ".join(notes)


def test_rows_come_back_as_they_were(whole):
    rows, notes = told(read_rows, whole)
    assert without_keys(rows) == ROWS
    assert list(without_keys(rows)[0]) == list(store.COLUMNS)
    assert len({row["key"] for row in rows}) == 60  # the same job, whatever its table calls it
    assert notes == ""


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"nmi": float("nan")}, "not JSON compliant"),
        ({"nmi": "high"}, "this is not a row of a benchmark, its 'nmi' is 'high'"),
        ({"dataset": None}, "this is not a row of a benchmark, its 'dataset' is None"),
        ({"method": "a\nb"}, r"the method 'a\\nb' of a row must be printable, and one line"),
    ],
)
def test_what_is_no_row_does_not_get_in_nor_what_comes_with_it(path, changes, words):
    with pytest.raises(ValueError, match=words):
        append_rows(path, [made(), made(**changes)])
    assert read_rows(path) == []


def test_latest():
    row = dict.fromkeys(store.IDENTITY, "x") | {"status": "failed"}
    again = row | {"status": "ok"}
    others = [row | {name: "y"} for name in store.IDENTITY]
    assert latest([row, *others, again]) == [again, *others]


def test_rows_of_another_version_are_said(path):
    append_rows(path, [made(), made(1, versions={"polyspan": "0.0.7"}), made(2, versions={})])
    rows, notes = told(read_rows, path)
    assert len(rows) == 3
    assert "2 of 3 rows were written by another version of polyspan (0.0.7, None; this" in notes
    with pytest.warns(UserWarning, match="for comparable rows, name a new store"):
        read_rows(path)


def test_no_store_and_no_table(path):
    with pytest.raises(FileNotFoundError, match=r"there is no store .*rows\.db"):
        read_rows(path)
    with pytest.raises(FileNotFoundError, match=r"there are no tables of rows, \*\.csv\.gz, in"):
        rebuild(path.parent, path)


def test_another_file_is_not_a_store_and_stays_as_it_is(path):
    sqlite3.connect(path).execute("create table bookmarks (name)")
    (path.parent / "words.txt").write_text("a,b\n1,2\n")
    for file in (path, path.parent / "words.txt"):
        before = file.read_bytes()
        with pytest.raises(ValueError, match="is not a store: it has no rows of benchmarks"):
            append_rows(file, ROWS)
        assert file.read_bytes() == before
    with gzip.open(path.parent / "p-file.csv.gz", "w") as file:
        file.write(b"a,b\n")
    with pytest.raises(ValueError, match="is not a table of rows: it has none"):
        rebuild(path.parent, path.parent / "new.db")


# --- kill -9, full disk, two writers ---

WRITER = """
import sys
sys.path[:0] = {paths!r}
from harness.store import alone
from pathlib import Path
from stored_rows import made
with alone(Path({path!r})) as (rows, add):
    for seed in range(len(rows), 10_000):
        add([made(seed)])
        print(seed, flush=True)
"""


def writer(path, limit=None):
    paths = [str(BENCHMARKS), str(BENCHMARKS.parent / "tests")]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER.format(paths=paths, path=str(path))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))),
    )


@pytest.mark.slow
def test_what_was_written_survives_kill_9(path):
    written = -1
    for count in (1, 7, 300):
        process = writer(path)
        for _ in range(count):
            written = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        written = int((process.communicate()[0].split() or [written])[-1])
        rows, notes = told(read_rows, path)
        assert [row["seed"] for row in rows] in (
            list(range(written + 1)),
            list(range(written + 2)),  # written, but not yet printed
        )
        assert notes == ""
        written = len(rows) - 1


@pytest.mark.slow
def test_a_full_disk_loses_nothing(path):
    process = writer(path, limit=400_000)
    out, err = process.communicate()
    assert re.search(r"OSError: .*rows\.db: no row was written, .*: is the disk full\?", err)
    rows, notes = told(read_rows, path)
    assert [row["seed"] for row in rows] == list(range(int(out.split()[-1]) + 1))
    assert notes == ""
    append_rows(path, [made(len(rows))])
    assert len(read_rows(path)) == len(rows) + 1


def test_one_writer_at_a_time_and_readers_beside_it(path):
    with alone(path) as (rows, add):
        assert rows == []
        add(ROWS[:3])
        assert without_keys(read_rows(path)) == ROWS[:3]
        with pytest.raises(BlockingIOError, match="another run writes to"), alone(path):
            pass
        add(ROWS[3:5])
    append_rows(path, ROWS[5:6])
    assert without_keys(read_rows(path)) == ROWS[:6]


def test_a_row_is_on_the_disk_when_it_is_written(path):
    """Full synchronization of a log that is written ahead."""
    with alone(path) as (_, add):
        add(ROWS[:1])
        database = add.args[0]
        assert database.execute("pragma journal_mode").fetchone() == ("wal",)
        assert database.execute("pragma synchronous").fetchone() == (2,)
        assert Path(f"{path}-wal").stat().st_size > 0


# --- damage ---


def places(size):
    return random.Random(0).sample(range(size), PLACES)


def flipped(data, place):
    changed = bytearray(data)
    changed[place] ^= 0x55
    return bytes(changed)


def spans(data):
    """Where the rows are in the bytes of a database, by their number."""
    return {
        int(found[1]): found.span()
        for found in re.finditer(rb'\{"id": (\d+), .*?"sum": "\w{8}"\}', data)
    }


def check_damage(path, data, untouched):
    """Untouched rows are there, nobody is wrong, loss is said, and the store is mended."""
    path.write_bytes(data)
    rows, notes = told(read_rows, path)
    kept = without_keys(rows)
    assert all(row in ROWS for row in kept)
    assert [row for row in ROWS if row in kept] == kept  # in their order, and once
    assert all(ROWS[number - 1] in kept for number in untouched)
    lost = len(ROWS) - len(kept)
    if lost:
        assert re.search(r"rows\.db is damaged\. Lost: (row|whatever was written after)", notes)
        assert "The next run repeats the jobs that have no row" in notes
    if notes:
        with alone(path, tell=lambda words: None) as (mended, add):
            assert without_keys(mended) == kept
            add(row for row in ROWS if row not in kept)
        assert Path(f"{path}.damaged").read_bytes() == data
        after, notes = told(read_rows, path)
        assert sorted(map(str, without_keys(after))) == sorted(map(str, ROWS))
        assert notes == ""
        for file in path.parent.iterdir():
            file.unlink()
    return lost


@pytest.mark.slow
def test_one_changed_byte_costs_at_most_the_row_that_it_touches(whole, path):
    data = whole.read_bytes()
    at = spans(data)
    assert len(at) == len(ROWS)
    lost = []
    for place in places(len(data)):
        with case("byte", place):
            untouched = [k for k, (start, end) in at.items() if not start <= place < end]
            lost.append(check_damage(path, flipped(data, place), untouched))
    assert max(lost) == 1
    for place in range(100):  # the head of the file
        with case("byte", place):
            check_damage(path, flipped(data, place), at)


@pytest.mark.slow
def test_a_cut_database_keeps_the_rows_before_the_cut(whole, path):
    data = whole.read_bytes()
    at = spans(data)
    for place in places(len(data)):
        with case("cut at", place):
            untouched = [number for number, (_, end) in at.items() if end <= place]
            if untouched:
                check_damage(path, data[:place], untouched)
            else:
                path.write_bytes(data[:place])
                with pytest.raises(ValueError, match="is not a store"):
                    read_rows(path)


def test_a_database_that_looks_empty_is_searched(whole, path):
    data = bytearray(whole.read_bytes())
    data[103:105] = bytes(2)  # the number of tables
    assert check_damage(path, bytes(data), spans(whole.read_bytes())) == 0
    path.touch()
    assert told(read_rows, path) == ([], "")


def test_a_name_that_is_no_text_costs_no_row(whole, path):
    """SQLite names it in its own words, which Python cannot read then."""
    data = whole.read_bytes().replace(b"tablerowsrows", b"table\xc0owsrows")
    path.write_bytes(data.replace(b"CREATE TABLE rows", b"CREATE TABLX rows"))
    assert len(read_rows(path, tell=lambda _: None)) == len(read_rows(whole))


def test_the_lost_row_is_named(whole, path):
    data = whole.read_bytes()
    start, end = spans(data)[3]
    _, notes = told(read_rows, whole)
    path.write_bytes(flipped(data, (start + end) // 2))
    _, notes = told(read_rows, path)
    wanted = 'Lost: row 3, after p, shuffled, NGs, GRMSC, tuned, tune, {"lam1": 0.1, "k": null}, 1'
    assert wanted in notes


def test_a_log_that_a_kill_left_is_searched_too(path):
    """SQLite leaves out what follows a damaged place in its log, without a word."""
    with alone(path) as (_, add):
        for row in ROWS[:5]:
            add([row])
        files = {Path(f"{path}{end}"): Path(f"{path}{end}").read_bytes() for end in ("", "-wal")}
    log = files[Path(f"{path}-wal")]
    files[Path(f"{path}-wal")] = flipped(log, log.index(b'{"id": 2'))
    for file, data in files.items():
        file.write_bytes(data)
    assert len(read_rows(path)) < 5
    with alone(path) as (rows, _):
        assert without_keys(rows) == ROWS[:5]
    assert without_keys(read_rows(path)) == ROWS[:5]


# --- what git keeps ---


@pytest.fixture(scope="module")
def table(whole, tmp_path_factory):
    """The only table of the store."""
    folder = tmp_path_factory.mktemp("tables")
    assert export(whole, folder) == {folder / "p-shuffled.csv.gz": len(ROWS)}
    return folder / "p-shuffled.csv.gz"


def test_a_table_is_a_csv_that_others_read(table):
    frame = pd.read_csv(table, comment="#", float_precision="round_trip")
    assert list(frame) == ["number", *store.COLUMNS, "sum"]
    assert sorted(frame["nmi"]) == sorted(row["nmi"] for row in ROWS)
    assert list(frame["dataset"]) == sorted(row["dataset"] for row in ROWS)


def test_the_same_rows_make_the_same_bytes(whole, table, path):
    rebuild(table.parent, path)
    other = path.parent / "again"
    other.mkdir()
    export(path, other)
    assert (other / table.name).read_bytes() == table.read_bytes()
    assert table.read_bytes()[4:8] == bytes(4)  # no time


def test_rebuilding_adds_what_is_missing_and_checks_every_row(table, path, monkeypatch):
    append_rows(path, [*ROWS[7:20], made(99)])
    for _ in range(2):
        assert rebuild(table.parent, path) == len(ROWS)
        rows = without_keys(read_rows(path))
        assert len(rows) == len(ROWS) + 1
        assert all(row in rows for row in ROWS)
    new = path.with_name("new.db")
    wrong = [row | {"nmi": 0.5} for row in read_table(table)]
    monkeypatch.setattr(store, "_told", lambda path, tell: (wrong, False))
    with pytest.raises(OSError, match=r"new\.db: 120 rows were not written as they are in"):
        rebuild(table.parent, new)


def test_retried_jobs_keep_their_order(path):
    failed, ok = made(status="failed", nmi=None), made()
    append_rows(path, [failed, made(1), ok])
    export(path, path.parent)
    assert without_keys(table_rows(path.parent, "p", "shuffled")) == [ok, made(1)]
    assert table_rows(path.parent, "q", "shuffled") == []


def test_a_table_is_not_replaced_by_one_with_fewer_rows(table, path):
    (path.parent / table.name).write_bytes(table.read_bytes())
    append_rows(path, ROWS[:100])
    with pytest.raises(ValueError, match=r"p-shuffled\.csv\.gz has 20 rows that .*rows\.db lacks"):
        export(path, path.parent)
    assert (path.parent / table.name).read_bytes() == table.read_bytes()


def blocks(data):
    """Where the members of a table begin, and its end."""
    return [found.start() for found in re.finditer(re.escape(store._HEAD), data)] + [len(data)]


def check_table(file, data, count):
    """At most so many rows are lost, none is wrong, and the loss is named."""
    file.write_bytes(data)
    rows, notes = told(read_table, file)
    assert [row for row in ROWS if row in rows] == rows
    lost = len(ROWS) - len(rows)
    assert lost <= count
    if lost:
        counts = re.findall(r"(\d+) of the \d+ rows from \w+, GRMSC, tuned, tune, \{", notes)
        assert sum(map(int, counts)) == lost
    return lost


@pytest.mark.slow
def test_one_changed_byte_costs_at_most_the_rows_compressed_with_it(table, tmp_path):
    data, file = table.read_bytes(), tmp_path / table.name
    lost = []
    for place in places(len(data)):
        with case("byte", place):
            if place < blocks(data)[1]:  # in the list of blocks: no row, but perhaps no names
                continue
            lost.append(check_table(file, flipped(data, place), store.BLOCK))
    assert 0 < max(lost) <= store.BLOCK
    for start in blocks(data)[:-1]:  # a damaged head costs nothing
        for place in range(start, start + len(store._HEAD)):
            assert check_table(file, flipped(data, place), 0) == 0


@pytest.mark.slow
def test_a_cut_table_keeps_the_blocks_before_the_cut(table, tmp_path):
    data, file = table.read_bytes(), tmp_path / table.name
    starts = blocks(data)
    for place in [starts[1], *places(len(data))]:
        with case("cut at", place):
            after = sum(end > place for end in starts[2:])
            if place >= starts[1]:  # behind the list of blocks
                check_table(file, data[:place], after * store.BLOCK)


@pytest.mark.slow
def test_a_damaged_list_of_blocks_costs_no_row(table, tmp_path):
    data, file = table.read_bytes(), tmp_path / table.name
    for place in range(len(store._HEAD), blocks(data)[1]):
        file.write_bytes(flipped(data, place))
        assert told(read_table, file)[0] == ROWS


def test_the_published_tables_are_small():
    """In a repository every copy has them."""
    files = [file for file in (BENCHMARKS / "results").rglob("*") if file.is_file()]
    kept = [file.stat().st_size for file in files if not file.name.startswith("rows.db")]
    assert sum(kept) <= 7_000_000
