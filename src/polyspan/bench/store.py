"""The store: a JSON-lines file that only grows, one line for one job.

A line is written by one call and forced to disk before the next job's. A process that is killed in
the middle of a line leaves a torn one behind: it is skipped when read, and what comes next starts
on a line of its own.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def append_row(path: str | Path, row: Mapping[str, Any]) -> None:
    """Append a row to a store, which is made if there is none.

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
            raise OSError(f"{path}: a row could only be written in part, is the disk full?")
        os.fsync(handle)
    finally:
        os.close(handle)


def read_rows(path: str | Path) -> list[Row]:
    """Read all whole rows of a store, in the order in which they were written.

    Parameters
    ----------
    path : path
        The store.

    Returns
    -------
    list of dict
        Torn lines, the remains of a killed process, are left out.

    Raises
    ------
    ValueError
        A line is not what a store holds, nor the beginning of it.
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
            raise ValueError(f"{path} is not a store: line {number} is no row") from error
        if not isinstance(row, dict):
            raise ValueError(f"{path} is not a store: line {number} is no row")
        rows.append(row)
    return rows


def identity(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What makes a row the answer to a job: two rows with the same identity answer the same one."""
    names = ("protocol", "dataset", "method", "selection", "stage", "key")
    return tuple(row[name] for name in names)


def latest(rows: list[Row]) -> list[Row]:
    """Only the last answer to each job (a failed one may have been tried again)."""
    return list({identity(row): row for row in rows}.values())


def _is_torn(handle: int) -> bool:
    """Whether the file ends in the middle of a line."""
    if os.lseek(handle, 0, os.SEEK_END) == 0:
        return False
    os.lseek(handle, -1, os.SEEK_END)
    return os.read(handle, 1) != b"\n"
