"""The store: a SQLite database with a row per job, and the compressed tables that git keeps of it.

A row is one transaction, flushed to disk before the next: whatever is killed when, every row that
was written is there, once. The text of a row is JSON that ends in a checksum, and rows are numbered
without gaps, so a row that changed after it was written is not believed, and one that is gone is
missed. If SQLite cannot read a damaged database, the rows are searched for in the bytes of its
file. What is lost is named, and the next run repeats those jobs.

`export` writes a table for every protocol and order of the samples, sorted, the same bytes for the
same rows. Each `BLOCK` lines are compressed on their own and every line ends in a checksum, so that
damage costs no more than the lines that it touches. `rebuild` adds their rows to a database.
"""

import csv
import io
import json
import os
import re
import shutil
import sqlite3
import struct
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from harness.jobs import key_of
from polyspan import __version__
from polyspan.atomic import lock, replacing, replacing_all
from polyspan.metrics import SCORES
from polyspan.runtime.messages import warn_user

Row = dict[str, Any]
Tell = Callable[[str], None]
IDENTITY = ("protocol", "dataset", "method", "selection", "stage", "key")
_identity = itemgetter(*IDENTITY)
_NUMBER = (int, float, type(None))
# What a row has, and of which types it may be. Its key follows from the rest.
COLUMNS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("protocol", "order"), (str,)),
    "ties": (str, type(None)),  # "row": went to the lower row number, in rows of long ago
    **dict.fromkeys(("selection", "estimator", "dataset"), (str,)),
    "source": (dict,),
    **dict.fromkeys(("method", "paper", "stage", "status"), (str,)),
    **dict.fromkeys(("reason", "solve"), (str, type(None))),
    "converged": (bool, type(None)),
    **dict.fromkeys(("versions", "machine", "params"), (dict,)),
    "iterations": (int, type(None)),
    "seed": (int,),
    **dict.fromkeys((*SCORES, "seconds", "cpu_seconds", "shared_seconds"), _NUMBER),
}
BLOCK = 50  # lines that are compressed together
_HEAD = bytes.fromhex("1f8b08000000000002ff")  # of a gzip member without name and time
_BEGIN, _END = b'{"id": ', re.compile(rb', "sum": "[0-9a-f]{8}"\}')
_SCHEMA = (
    "create table if not exists rows (id integer primary key autoincrement, row text not null)"
)


# --- rows ---


def _checked(row: Mapping[str, Any]) -> Row:
    """The columns of a row in their order; a row that lacks one is refused."""
    for name, kinds in COLUMNS.items():
        value: Any = row.get(name)
        if not isinstance(value, kinds):
            raise ValueError(f"this is not a row of a benchmark, its {name!r} is {value!r:.50}")
        if kinds == (str,) and not str(value).isprintable():
            raise ValueError(f"the {name} {value!r:.50} of a row must be printable, and one line")
    return {name: row.get(name) for name in COLUMNS}


def _with_key(row: Row) -> Row:
    names = ("estimator", "params", "source", "seed", "order")
    return row | {"key": key_of(*(row[name] for name in names))}


def identity(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What ties a row to its job: two rows with the same identity belong to the same job."""
    return _identity(row)


def latest(rows: Iterable[Row]) -> list[Row]:
    """Only the last row of each job (a failed job may have been rerun)."""
    return list({identity(row): row for row in rows}.values())


def _sum(text: str | bytes) -> str:
    return f"{zlib.crc32(text.encode() if isinstance(text, str) else text):08x}"


def _sealed(number: int, row: Row) -> str:
    """The text of a row in the database."""
    text = json.dumps({"id": number, **row}, allow_nan=False)
    return f'{text[:-1]}, "sum": "{_sum(text)}"}}'


def _unsealed(text: Any) -> tuple[int, Row] | None:
    """Number and row of a text from the database; None if it is not as it was written."""
    if not isinstance(text, bytes) or not (end := _END.search(text)):
        return None
    body = text[: end.start()] + b"}"
    if text[end.start() :] != f', "sum": "{_sum(body)}"}}'.encode():
        return None
    row = json.loads(body)
    return row.pop("id"), _with_key(row)


def _content(row: Row) -> str:
    return json.dumps([row[name] for name in COLUMNS])


def _place(row: Row) -> list[Any]:
    """Where a row stands in its table: the rows of a method together, the settings in order."""
    names = ("dataset", "method", "selection", "stage")
    return [*(row[name] for name in names), json.dumps(row["params"]), row["seed"]]


# --- the database ---


@contextmanager
def alone(path: Path, tell: Tell = warn_user) -> Iterator[tuple[list[Row], Callable[..., None]]]:
    """Keep other runs away from a store: yields its rows, and what appends rows to it.

    The store is created if it does not exist, and a damaged one is mended. The system ends this
    with the process, however that ends.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "store.db")
    ...     with alone(path), alone(path):
    ...         pass
    Traceback (most recent call last):
    ...
    BlockingIOError: another run writes to ...store.db: wait for its end, or name another store
    """
    handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if lock(handle) is False:
            raise BlockingIOError(
                f"another run writes to {path}: wait for its end, or name another store"
            )
        rows, lost = _told(path, tell) if path.is_file() else ([], False)
        # SQLite leaves out what follows a damaged place in a log that a killed run left.
        logged = dict(_searched([Path(f"{path}-wal")]))
        if lost:
            _mend(path, rows)
        with closing(_open(path)) as database:
            add = partial(_add, database, path)
            if left_out := [logged[n] for n in sorted(logged) if n > len(rows) and not lost]:
                add(left_out)
            yield rows + left_out, add
    finally:
        os.close(handle)


def append_rows(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows to a store, all or none; it is created if it does not exist."""
    with alone(Path(path)) as (_, add):
        add(rows)


def read_rows(path: str | Path, tell: Tell = warn_user) -> list[Row]:
    """Read all rows of a store, in the order in which they were written.

    Parameters
    ----------
    path : path
        The store.
    tell : function, optional
        Gets a sentence about rows that are lost, or that another version wrote; by default it
        becomes a warning.

    Returns
    -------
    list of dict
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no store {path}")
    return _told(path, tell)[0]


def _told(path: Path, tell: Tell) -> tuple[list[Row], bool]:
    """The rows of a database, and whether it is damaged; what is to be said of them is told."""
    rows, lost = _read(path)
    if lost:
        _tell_lost(path, lost, tell)
    versions = Counter(str(row["versions"].get("polyspan")) for row in rows)
    if others := sorted(versions.keys() - {__version__}):
        tell(
            f"{path}: {sum(versions[name] for name in others)} of {len(rows)} rows were written by "
            f"another version of polyspan ({', '.join(others)}; this is {__version__}): for "
            "comparable rows, name a new store"
        )
    return rows, bool(lost)


def _open(path: str | Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    for words in ("pragma journal_mode = wal", "pragma synchronous = full", _SCHEMA):
        database.execute(words)
    return database


def _add(database: sqlite3.Connection, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows in one transaction, which is on the disk when this returns."""
    ((last,),) = database.execute("select coalesce(max(id), 0) from rows")
    lines = [(k, _sealed(k, _checked(row))) for k, row in enumerate(rows, start=last + 1)]
    try:
        with database:
            database.executemany("insert into rows values (?, ?)", lines)
    except sqlite3.OperationalError as error:
        raise OSError(f"{path}: no row was written, {error}: is the disk full?") from error


def _read(path: Path) -> tuple[list[Row], list[str]]:
    """The rows of a database, and words for each place where some are lost."""
    texts, wanted, empty = [], 0, False
    error: Exception | None = None
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            database.text_factory = bytes
            empty = database.execute("select 1 from sqlite_master").fetchone() is None
            if not empty:
                ((wanted,),) = database.execute("select coalesce(max(seq), 0) from sqlite_sequence")
                texts = [text for (text,) in database.execute("select row from rows")]
    except (sqlite3.DatabaseError, UnicodeDecodeError) as problem:  # of a message with damage in it
        if getattr(problem, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_CANT")):
            raise OSError(f"{path} cannot be read: {problem}") from problem
        error = problem
    wanted = wanted if isinstance(wanted, int) else 0
    found = dict(filter(None, map(_unsealed, texts)))
    whole = error is None and not empty and len(texts) == wanted
    if whole and sorted(found) == list(range(1, wanted + 1)):
        return [found[number] for number in sorted(found)], []
    found = dict(_searched(path.parent.glob(f"{path.name}*"))) | found
    if not found and empty:
        return [], []  # of a run that was killed at once
    if not found:
        raise ValueError(f"{path} is not a store: it has no rows of benchmarks")
    lost = []
    numbers = sorted(found)
    for before, after in zip([0, *numbers], [*numbers, max(wanted, numbers[-1]) + 1], strict=True):
        if after - before > 1:
            words = f"row{'s' * (after - before > 2)} {before + 1}"
            words += f" to {after - 1}" * (after - before > 2)
            lost.append(words + (f", after {_name(found[before])}" if before else ""))
    if error is not None and wanted == 0:
        lost.append(f"whatever was written after {_name(found[numbers[-1]])}")
    return [found[number] for number in numbers], lost or ["no row, but the file is damaged"]


def _searched(files: Iterable[Path]) -> Iterator[tuple[int, Row]]:
    """The rows in the bytes of a database, of its log, and of its copies from earlier damage."""
    for file in sorted(filter(Path.is_file, files), reverse=True):
        for piece in file.read_bytes().split(_BEGIN)[1:]:
            if end := _END.search(piece):
                found = _unsealed(_BEGIN + piece[: end.end()])
                if found is not None:
                    yield found


def _mend(path: Path, rows: list[Row]) -> None:
    """Replace a damaged database by a whole one; the damaged files are kept beside it."""
    with replacing(path) as part:
        with closing(_open(part)) as database:
            _add(database, part, rows)
        for end in ("", "-wal"):
            if (file := Path(f"{path}{end}")).exists():
                shutil.copy2(file, f"{path}.damaged{end}")
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)


def _name(row: Row) -> str:
    return ", ".join((row["protocol"], row["order"], *map(str, _place(row)))) + " (seed)"


def _tell_lost(path: Path, lost: list[str], tell: Tell) -> None:
    shown = "; ".join(lost[:20]) + "; ..." * (len(lost) > 20)
    tell(f"{path} is damaged. Lost: {shown}. The next run repeats the jobs that have no row")


# --- what git keeps ---


def export(store: str | Path, folder: str | Path) -> dict[Path, int]:
    """Write the rows of a store to a compressed table for each protocol and order of the samples.

    Returns
    -------
    dict
        Number of rows by path. A file with rows that the store lacks is not replaced.
    """
    tables: dict[Path, list[Row]] = {}
    for row in read_rows(store, tell=lambda _: None):
        path = Path(folder, f"{row['protocol']}-{row['order']}.csv.gz")
        tables.setdefault(path, []).append(row)
    for path, rows in tables.items():
        there = read_table(path, tell=lambda _: None) if path.exists() else []
        if gone := len(set(map(_content, there)) - set(map(_content, rows))):
            raise ValueError(
                f"{path} has {gone} rows that {store} lacks: add them with `python -m benchmarks "
                "rebuild` first"
            )
    with replacing_all(tables) as parts:
        for path, part in parts.items():
            part.write_bytes(_packed(tables[path]))
    return {path: len(rows) for path, rows in tables.items()}


def _packed(rows: list[Row]) -> bytes:
    """A table: its header and a list of its blocks, then the blocks, each compressed on its own."""
    ordered = sorted(enumerate(rows, start=1), key=lambda pair: (_place(pair[1]), pair[0]))
    blocks = [ordered[k : k + BLOCK] for k in range(0, len(ordered), BLOCK)]
    head = ",".join(["number", *COLUMNS, "sum"]) + "\n"
    index = [_line([f"# {len(block)}", json.dumps(_place(block[0][1]))]) for block in blocks]
    texts = ["".join([head, *index])]
    for block in blocks:
        texts.append("".join(_line([number, *map(_cell, COLUMNS, map(row.get, COLUMNS))])
                             for number, row in block))  # fmt: skip
    return b"".join(map(_compressed, texts))


def _cell(name: str, value: Any) -> str:
    if COLUMNS[name] == (str,):
        return str(value)
    return "" if value is None else json.dumps(value)


def _line(cells: list[Any]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="").writerow(cells)
    return f"{buffer.getvalue()},{_sum(buffer.getvalue())}\n"


def _compressed(text: str) -> bytes:
    """A gzip member, the same bytes for the same text; gzip.compress writes the system's name."""
    data, deflate = text.encode(), zlib.compressobj(9, zlib.DEFLATED, -15)
    ends = struct.pack("<II", zlib.crc32(data), len(data))
    return _HEAD + deflate.compress(data) + deflate.flush() + ends


def read_table(path: Path, tell: Tell = warn_user) -> list[Row]:
    """The rows of an exported table without their keys, in the order in which they were written.

    Whatever is damaged is left out and told.
    """
    found: list[tuple[int, Row]] = []
    index: list[tuple[list[Any], int]] = []
    for text in _decompressed(path.read_bytes()):
        for line in text.decode(errors="replace").split("\n"):
            body, _, seal = line.rpartition(",")
            if seal != _sum(body):
                continue
            (cells,) = csv.reader([body])
            if cells[0].startswith("# "):
                index.append((json.loads(cells[1]), int(cells[0][2:])))
            else:
                values = json.loads(f"[{','.join(map(_json, COLUMNS, cells[1:]))}]")
                found.append((int(cells[0]), dict(zip(COLUMNS, values, strict=True))))
    if not found and not index:
        raise ValueError(f"{path} is not a table of rows: it has none")
    firsts = [first for first, _ in index]
    there = Counter(bisect_right(firsts, _place(row)) - 1 for _, row in found)
    lost = [
        f"{count - there[k]} of the {count} rows from {', '.join(map(str, first))} (seed) on"
        for k, (first, count) in enumerate(index)
        if there[k] < count
    ] + ["the list of its blocks"] * (not index)
    if lost:
        _tell_lost(path, lost, tell)
    return [row for _, row in sorted(found, key=lambda pair: pair[0])]


def _json(name: str, cell: str) -> str:
    return json.dumps(cell) if COLUMNS[name] == (str,) else cell or "null"


def _decompressed(data: bytes) -> Iterator[bytes]:
    """What can be decompressed of every gzip member, also of one with a damaged head."""
    first, *pieces = data.split(_HEAD)
    for piece in (first[len(_HEAD) :], *pieces):
        while piece:
            inflate, parts, at = zlib.decompressobj(-15), list[bytes](), 0
            try:
                while not inflate.eof and at < len(piece):
                    parts.append(inflate.decompress(piece[at : at + 64]))
                    at += 64
            except zlib.error:
                pass
            yield b"".join(parts)
            rest = inflate.unused_data + piece[at:] if inflate.eof else b""
            piece = rest[8 + len(_HEAD) :]  # behind its checksum, the next has a damaged head


def rebuild(folder: str | Path, store: str | Path, tell: Tell = warn_user) -> int:
    """Add the rows of all exported tables to a store, and check that each is there.

    Returns
    -------
    int
        Number of rows in the tables.
    """
    paths = sorted(Path(folder).glob("*.csv.gz"))
    if not paths:
        raise FileNotFoundError(f"there are no tables of rows, *.csv.gz, in {folder}")
    rows = [row for path in paths for row in read_table(path, tell)]
    with alone(Path(store), tell) as (known, add):
        there = set(map(_content, known))
        add(row for row in rows if _content(row) not in there)
    there = set(map(_content, read_rows(store, tell=lambda _: None)))
    if lacking := sum(_content(row) not in there for row in rows):
        raise OSError(f"{store}: {lacking} rows were not written as they are in {folder}")
    return len(rows)


def table_rows(folder: Path, protocol: str, order: str) -> list[Row]:
    """The latest rows of all jobs in an exported table; none if there is no such table."""
    path = folder / f"{protocol}-{order}.csv.gz"
    return latest(map(_with_key, read_table(path))) if path.is_file() else []
