"""The store: an append-only JSON-lines file with one line per job, compressed by `pack`.

A line is written by one call and flushed to disk before the next, and ends in a checksum of its
row. A process that is killed in the middle of a line leaves a torn line behind: it is skipped when
read, and the next row starts on a new line. A power cut may leave zeros, which are skipped too. A
row that was changed after it was written is not believed: it is left out, and its job runs again.

Lines that are there when a run ends become gzip blocks, if the name of the store ends in ``.gz``:
a new file with blocks only replaces the old one, whole. The lines of the next run follow the blocks
as they are. So whatever is killed when, every row is there once, and `gzip -cd` shows the rows of a
run that has ended.
"""

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from polyspan import __version__
from polyspan.atomic import lock, replacing
from polyspan.metrics import SCORES
from polyspan.runtime.messages import warn_user

Row = dict[str, Any]
SUM = "sum"  # the last column of a line, which no row has
BLOCK = 1000  # lines in a gzip block: damage costs no more than one
_GZIP = bytes.fromhex("1f8b080000000000")  # how our blocks begin: without names and times
_CHUNK = 2**16
IDENTITY = ("protocol", "dataset", "method", "selection", "stage", "key")
_NUMBER = (int, float, type(None))
# What the rows of a benchmark have, and of what kind it is.
FIELDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys((*IDENTITY, "paper", "status"), (str,)),
    **dict.fromkeys(("source", "params"), (dict,)),
    **dict.fromkeys((*SCORES, "seconds"), _NUMBER),
    "seed": (int,),
    "converged": (bool, type(None)),
}


def append_row(path: str | Path, row: Mapping[str, Any]) -> None:
    """Append a row to a store, which is created if it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> from polyspan.bench import append_row, read_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     append_row(f"{folder}/store.jsonl", {"method": "GRMSC", "nmi": 0.9})
    ...     read_rows(f"{folder}/store.jsonl")
    [{'method': 'GRMSC', 'nmi': 0.9}]
    """
    line = sealed(row).encode() + b"\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if _is_torn(handle):
            line = b"\n" + line
        if os.write(handle, line) != len(line):
            raise OSError(f"{path}: a row was only partly written: is the disk full?")
        os.fsync(handle)
    finally:
        os.close(handle)


def sealed(row: Mapping[str, Any]) -> str:
    """The line of a row: JSON that ends in a checksum of all else.

    Examples
    --------
    >>> sealed({"nmi": 0.9})
    '{"nmi": 0.9, "sum": "83910c29"}'
    """
    return json.dumps({**row, SUM: _sum(row)}, allow_nan=False)


def _sum(row: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(row).encode()):08x}"


def read_rows(
    path: str | Path,
    *,
    fields: Mapping[str, tuple[type, ...]] | None = None,
    tell: Callable[[str], None] = warn_user,
) -> list[Row]:
    """Read all complete rows of a store, in the order in which they were written.

    Parameters
    ----------
    path : path
        The store.
    fields : dict, optional
        What every row must have, and of which types it may be; `FIELDS` for a benchmark.
    tell : function, optional
        Gets a sentence about rows that are left out, or that another version wrote; by default it
        becomes a warning.

    Returns
    -------
    list of dict
        Torn lines, left by a killed process, are skipped.

    Raises
    ------
    ValueError
        A line is neither a row nor the beginning of one, or its row lacks a field.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no store {path}")
    rows: list[Row] = []
    for number, _, row in _believed(path, tell):
        _check_fields(path, number, row, fields or {})
        rows.append(row)
    if fields is not None:
        _tell_versions(path, rows, tell)
    return rows


def _believed(path: Path, tell: Callable[[str], None]) -> Iterator[tuple[int, bytes, Row]]:
    """Number, line and row of whatever is whole and as it was written."""
    text, _ = _unpacked(path, tell)
    changed, zeros = list[int](), 0
    for number, line in enumerate(text.split(b"\n"), start=1):
        zeros += line.count(b"\0")
        line = line.strip(b"\0").strip()
        if not line:
            continue
        row = _row(path, number, line)
        if row is None:
            continue
        if row.pop(SUM, None) not in (None, _sum(row)):
            changed.append(number)
            continue
        yield number, line, row
    if zeros:
        tell(f"{path} has {zeros} zero bytes, which a power cut leaves: they are skipped")
    if changed:
        shown = ", ".join(map(str, changed[:5])) + ", ..." * (len(changed) > 5)
        tell(
            f"{path}: line{'s' * (len(changed) > 1)} {shown} changed after being written, and "
            "not by polyspan: they are left out, and the next run repeats their jobs"
        )


def _unpacked(path: Path, tell: Callable[[str], None]) -> tuple[bytes, bool]:
    """The lines of a store, and whether all of them are in undamaged blocks."""
    data, at, parts, damaged = path.read_bytes(), 0, list[bytes](), 0
    while data.startswith(_GZIP, at):
        block, here, found = zlib.decompressobj(wbits=31), at, list[bytes]()
        try:
            while not block.eof and here < len(data):
                found.append(block.decompress(data[here : here + _CHUNK]))
                here += _CHUNK
        except zlib.error:
            pass
        if block.eof:
            at = min(here, len(data)) - len(block.unused_data)
            parts += found
        else:  # rows that came out of it may be right: their checksums tell
            damaged += 1
            lines = b"".join(found).split(b"\n")
            sealed = [line for line in lines if line.startswith(b"{") and b'"sum": "' in line]
            parts.append(b"\n".join([*sealed, b""]))
            after = [data.find(sign, at + 1) for sign in (_GZIP, b"\n{")]
            at = min((place for place in after if place > 0), default=len(data))
    if damaged:
        tell(
            f"{path}: {damaged} compressed block{'s are' if damaged > 1 else ' is'} damaged: rows "
            "in it that cannot be read are left out, and the next run repeats their jobs"
        )
    return b"".join([*parts, data[at:]]), at == len(data) and not damaged


def pack(path: str | Path, into: str | Path | None = None) -> int:
    """Compress a store; the file is replaced whole, unless there is nothing to compress.

    Parameters
    ----------
    path : path
        The store.
    into : path, optional
        Where to write; default: the store itself.

    Returns
    -------
    int
        Number of rows. Lines that `read_rows` skips are not among them, and gone.

    Examples
    --------
    >>> import tempfile
    >>> from polyspan.bench import append_row, read_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "store.jsonl.gz")
    ...     for seed in range(100):
    ...         append_row(path, {"method": "GRMSC", "seed": seed})
    ...     before = path.stat().st_size
    ...     pack(path), before > 4 * path.stat().st_size, len(read_rows(path))
    (100, True, 100)
    """
    path, quiet = Path(path), lambda _: None
    lines = [line for _, line, _ in _believed(path, quiet)]
    if into is None and _unpacked(path, quiet)[1]:
        return len(lines)
    parts = [lines[k : k + BLOCK] for k in range(0, len(lines), BLOCK)]
    blocks = [gzip.compress(b"\n".join([*part, b""]), mtime=0) for part in parts]
    with replacing(path if into is None else Path(into)) as part:
        part.write_bytes(b"".join(blocks))
    return len(lines)


def _row(path: Path, number: int, line: bytes) -> Row | None:
    """The row of a line, or None if it is torn."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        if line.startswith(b"{"):
            return None
        raise ValueError(f"{path} is not a store: line {number} is not a row") from error
    if not isinstance(row, dict):
        raise ValueError(f"{path} is not a store: line {number} is not a row")
    return row


def _check_fields(
    path: Path, number: int, row: Row, fields: Mapping[str, tuple[type, ...]]
) -> None:
    for name, kinds in fields.items():
        if name not in row:
            raise ValueError(
                f"{path}: line {number} is not a row of a benchmark, it has no {name!r}: remove "
                "the line, and the next run repeats its job"
            )
        if not isinstance(row[name], kinds):
            raise ValueError(
                f"{path}: line {number} is not a row of a benchmark, its {name!r} is "
                f"{row[name]!r:.50}: remove the line, and the next run repeats its job"
            )


def _tell_versions(path: Path, rows: list[Row], tell: Callable[[str], None]) -> None:
    found = [row.get("versions") for row in rows]
    names = [str(one.get("polyspan")) if isinstance(one, dict) else "unknown" for one in found]
    if others := [name for name in names if name != __version__]:
        tell(
            f"{path}: {len(others)} of {len(rows)} rows were written by another version of "
            f"polyspan ({', '.join(sorted(set(others)))}; this is {__version__}): for comparable "
            "rows, name a new store"
        )


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keep other runs away from a store, which is created if it does not exist.

    The system ends this with the process, however that ends.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "store.jsonl")
    ...     with alone(path), alone(path):
    ...         pass
    Traceback (most recent call last):
    ...
    BlockingIOError: another run writes to ...store.jsonl: wait for its end, or name another store
    """
    while True:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if lock(handle) is False:
                raise BlockingIOError(
                    f"another run writes to {path}: wait for its end, or name another store"
                )
            # Otherwise a run that just ended has replaced the file by a compressed one.
            if path.exists() and os.path.samestat(os.fstat(handle), path.stat()):
                yield
                return
        finally:
            os.close(handle)


def identity(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What ties a row to its job: two rows with the same identity belong to the same job."""
    return tuple(row[name] for name in IDENTITY)


def latest(rows: list[Row]) -> list[Row]:
    """Only the last row of each job (a failed job may have been rerun)."""
    return list({identity(row): row for row in rows}.values())


def _is_torn(handle: int) -> bool:
    """Whether the file ends in the middle of a line."""
    if os.lseek(handle, 0, os.SEEK_END) == 0:
        return False
    os.lseek(handle, -1, os.SEEK_END)
    return os.read(handle, 1) != b"\n"
