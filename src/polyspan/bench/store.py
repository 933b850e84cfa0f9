"""The store: an append-only JSON-lines file with one line per job.

A line is written by one call and flushed to disk before the next. A process that is killed in the
middle of a line leaves a torn line behind: it is skipped when read, and the next row starts on a
new line.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]


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
    line = json.dumps(row, allow_nan=False).encode() + b"\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        if _is_torn(handle):
            line = b"\n" + line
        if os.write(handle, line) != len(line):
            raise OSError(f"{path}: a row was only partly written: is the disk full?")
        os.fsync(handle)
    finally:
        os.close(handle)


def read_rows(path: str | Path) -> list[Row]:
    """Read all complete rows of a store, in the order in which they were written.

    Parameters
    ----------
    path : path
        The store.

    Returns
    -------
    list of dict
        Torn lines, left by a killed process, are skipped.

    Raises
    ------
    ValueError
        A line is neither a row nor the beginning of one.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no store {path}")
    rows = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            if line.startswith(b"{"):
                continue  # torn
            raise ValueError(f"{path} is not a store: line {number} is not a row") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path} is not a store: line {number} is not a row")
        rows.append(row)
    return rows


def identity(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What ties a row to its job: two rows with the same identity belong to the same job."""
    names = ("protocol", "dataset", "method", "selection", "stage", "key")
    return tuple(row[name] for name in names)


def latest(rows: list[Row]) -> list[Row]:
    """Only the last row of each job (a failed job may have been rerun)."""
    return list({identity(row): row for row in rows}.values())


def _is_torn(handle: int) -> bool:
    """Whether the file ends in the middle of a line."""
    if os.lseek(handle, 0, os.SEEK_END) == 0:
        return False
    os.lseek(handle, -1, os.SEEK_END)
    return os.read(handle, 1) != b"\n"
