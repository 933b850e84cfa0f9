"""How much a file holds once it is unpacked, told by its headers, before anything is read."""

import bz2
import gzip
import lzma
import math
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polyspan.runtime.memory import available_memory, check_reading

PATIENCE = 20.0  # seconds for the structure of an HDF5 file, which is small
_MAT_COMPRESSED = 15  # type of an element of a MATLAB file that is packed with zlib
_PACKERS: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}


class _DamagedError(ValueError):
    """A file that must not be given to its reader."""


def check_size(path: Path, ending: str) -> None:
    """Refuse a file that does not fit in memory once it is unpacked; see `check_reading`.

    A damaged file passes: its reader says what is wrong.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "zeros.npz")
    ...     np.savez_compressed(path, x=np.zeros((1000, 1000)))
    ...     check_size(path, ".npz")
    ...     path.stat().st_size < 10_000 < unpacked_size(path, ".npz")
    True
    """
    check_reading(path, unpacked_size(path, ending))


def unpacked_size(path: Path, ending: str) -> float:
    """Bytes in a file once it is unpacked, or its own size if its headers cannot be read."""
    try:
        return _SIZES[ending](path)
    except _DamagedError:
        raise
    except Exception:  # no packed format, or a damaged file, which may raise any exception
        return path.stat().st_size


def _of_npz(path: Path) -> int:
    with zipfile.ZipFile(path) as file:
        return sum(entry.file_size for entry in file.infolist())


def _of_mat(path: Path) -> int:
    """Every packed variable of a MATLAB 5 file starts with its unpacked size."""
    with path.open("rb") as file:
        start = file.read(128)
        if start.startswith((b"MATLAB 7.3", b"\x89HDF")):
            return _of_hdf5(path)
        order = "<" if start[126:] == b"IM" else ">"
        total = 0
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            begin = file.tell()
            if kind == _MAT_COMPRESSED:
                head = zlib.decompressobj().decompress(file.read(min(size, 256)), 8)
                total += struct.unpack(f"{order}II", head)[1]
            else:
                total += size
            file.seek(begin + size)
    return total


# The HDF5 library crashes at some damaged files and never returns from others.
_HDF5 = """
import sys, h5py
sizes = []
def count(name, item):
    dict(item.attrs)
    if isinstance(item, h5py.Dataset):
        sizes.append(item.size * max(item.dtype.itemsize, 1))
with h5py.File(sys.argv[1]) as file:
    dict(file.attrs)
    file.visititems(count)
print(sum(sizes))
"""


def _of_hdf5(path: Path) -> int:
    """Ask in a process of its own, which may die or be ended instead of this one."""
    words = [sys.executable, "-c", _HDF5, str(path)]
    try:
        done = subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise _DamagedError(f"{path} cannot be read: its HDF5 structure is damaged") from None
    if done.returncode < 0:  # killed by a signal
        raise _DamagedError(f"{path} cannot be read: its HDF5 structure is damaged")
    return int(done.stdout)


def _of_mtx(path: Path) -> int:
    """Entries are stored as a value and two indices, or as a value only."""
    with gzip.open(path, "rt") if path.suffix.lower() == ".gz" else path.open() as file:
        sparse = "coordinate" in file.readline().lower()
        line = next(line for line in file if line.strip() and not line.startswith("%"))
    numbers = [int(word) for word in line.split()]
    return numbers[2] * 16 if sparse else math.prod(numbers) * 8


def _of_parquet(path: Path) -> int:
    import pyarrow.parquet

    found = pyarrow.parquet.ParquetFile(path).metadata
    packed = sum(found.row_group(i).total_byte_size for i in range(found.num_row_groups))
    return max(packed, 8 * found.num_rows * found.num_columns)


def _of_r(path: Path) -> int:
    """R writes no sizes, so the file is unpacked once, without being kept."""
    with path.open("rb") as file:
        start = file.read(6)
    unpack = next((how for mark, how in _PACKERS.items() if start.startswith(mark)), None)
    if unpack is None:
        return path.stat().st_size
    total, most = 0, available_memory() or math.inf
    with unpack(path) as file:
        while total <= most and (part := file.read(2**20)):
            total += len(part)
    return total


_SIZES: dict[str, Callable[[Path], int]] = {
    ".npz": _of_npz,
    ".xlsx": _of_npz,
    ".mat": _of_mat,
    ".mtx": _of_mtx,
    ".parquet": _of_parquet,
    ".h5ad": _of_hdf5,
    ".h5mu": _of_hdf5,
    ".rds": _of_r,
    ".rda": _of_r,
    ".rdata": _of_r,
}
