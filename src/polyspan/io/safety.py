"""What could do harm: a full memory, wrong indices, links to other files, entities in XML.

Sizes are told by headers, before anything is read; what has none is counted while it is unpacked.
"""

import bz2
import copy
import gzip
import io
import json
import lzma
import os
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.progress import follower
from polyspan.runtime.memory import available_memory, check_reading

PATIENCE = 60.0  # seconds for a process that reads a file
_PACKERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}


def opened(path: Path, show: bool = False, copies: float = 3) -> io.BufferedReader:
    """Open a file to read its bytes unpacked; too many for the memory are refused as they come.

    Reading takes about ``copies`` times as much; with ``show``, it tells how far it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "pets.csv.gz")
    ...     _ = path.write_bytes(gzip.compress(b"fox,4"))
    ...     opened(path).read()
    b'fox,4'
    """
    return io.BufferedReader(_Unpacked(path, show, copies), 2**18)


class _Unpacked(io.RawIOBase):
    def __init__(self, path: Path, show: bool, copies: float) -> None:
        self._raw = path.open("rb")
        start = self._raw.peek(6)
        packers = [unpack for mark, unpack in _PACKERS.items() if start.startswith(mark)]
        packers += [gzip.open] * (path.suffix.lower() == ".gz")
        self._file = packers[0](self._raw) if packers else self._raw
        self._path, self._copies, self._free = path, copies, available_memory()
        self._size, self._count, self._time = os.path.getsize(path), 0, 0.0
        self._tell = follower() if show else None
        check_reading(path, self._size, copies, self._free)

    def readable(self) -> bool:
        """It is for reading only."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes, and tell how far this is."""
        if self._tell is not None and time.perf_counter() > self._time:
            self._tell(self._raw.tell() // 10**6, self._size // 10**6, f"MB of {self._path.name}")
            self._time = time.perf_counter() + 0.2
        n = self._file.readinto(buffer)
        self._count += n
        check_reading(self._path, self._count, self._copies, self._free)
        return n

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
        super().close()


def check_size(path: Path, ending: str) -> None:
    """Refuse a file that does not fit in memory once it is unpacked, or that leaves its folder.

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
    check_reading(path, unpacked_size(path, ending), 4 if ending == ".xlsx" else 2)


def unpacked_size(path: Path, ending: str) -> float:
    """Bytes in a file once it is unpacked, or its own size if its headers cannot be read."""
    try:
        return _SIZES[ending](path)
    except (DamagedError, MemoryError):
        raise
    except Exception:  # no packed format, or a damaged file, which may raise any exception
        return path.stat().st_size


class DamagedError(ValueError):
    """A file that must not be given to its reader."""


def in_child(code: str, path: Path, what: str) -> bytes:
    """What a process of its own prints of a file; it may die or be ended instead of this one."""
    try:
        command = [sys.executable, "-P", "-c", code, str(path)]  # -P: no modules of this folder
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        raise DamagedError(f"{path} cannot be read: its {what} is damaged") from None
    if done.returncode < 0:  # killed by a signal
        raise DamagedError(f"{path} cannot be read: its {what} is damaged")
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise ValueError(words.partition(": ")[2] or words)
    return done.stdout


def _of_zip(path: Path) -> int:
    with zipfile.ZipFile(path) as file:
        return sum(entry.file_size for entry in file.infolist())


def _of_mat(path: Path) -> int:
    """Every packed variable of a MATLAB 5 file starts with its unpacked size."""
    if is_hdf5(path):
        return _of_hdf5(path)
    with path.open("rb") as file:
        order, total = "<" if file.read(128)[126:] == b"IM" else ">", 0
        while len(tag := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", tag)
            begin = file.tell()
            packed = kind == 15 and zlib.decompressobj().decompress(file.read(min(size, 256)), 8)
            total += struct.unpack(f"{order}II", packed)[1] if packed else size
            file.seek(begin + size)
    return total


def is_hdf5(path: Path) -> bool:
    """Whether a .mat file is one of version 7.3."""
    with path.open("rb") as stream:
        return stream.read(10).startswith((b"MATLAB 7.3", b"\x89HDF"))


# The HDF5 library crashes at some damaged files and never returns from others.
_HDF5 = """
import h5py, json, sys
size, links = 0, []
def look(name, item):
    global size
    dict(item.attrs)
    if isinstance(item, h5py.Dataset):
        size += item.size * max(item.dtype.itemsize, 1)
        links.extend([name] * bool(item.external or item.is_virtual))
    else:
        outer = [key for key in item if isinstance(item.get(key, getlink=True), h5py.ExternalLink)]
        links.extend(f"{name}/{key}".strip("/") for key in outer)
try:
    file = h5py.File(sys.argv[1])
except OSError:
    sys.exit(print("[0, []]"))
look("", file)
file.visititems(look)
print(json.dumps([size, links]))
"""


def _of_hdf5(path: Path) -> int:
    """Refuses a file that takes data from other files, too."""
    try:
        size, links = json.loads(in_child(_HDF5, path, "HDF5 structure"))
    except DamagedError:
        raise
    except ValueError as error:
        raise DamagedError(f"{path} is damaged: {error}") from error
    if links:
        raise DamagedError(
            f"{path}: {links[0]!r} is a link to another file, which is not followed: save all "
            "data in one file"
        )
    return size


def _of_parquet(path: Path) -> int:
    import pyarrow.parquet

    found = pyarrow.parquet.ParquetFile(path).metadata
    packed = sum(found.row_group(i).total_byte_size for i in range(found.num_row_groups))
    kinds = [found.schema.column(j).physical_type for j in range(found.num_columns)]
    # A value is a number, or a word, of which Python makes lists.
    return max(packed, found.num_rows * sum(32 if "BYTE" in kind else 8 for kind in kinds))


def _of_r(path: Path) -> int:
    """R writes no sizes, so the file is unpacked once, without being kept."""
    with opened(path, copies=2) as file:
        return sum(map(len, iter(lambda: file.read(2**20), b"")))


_SIZES: dict[str, Callable[[Path], int]] = {
    **dict.fromkeys((".npz", ".xlsx"), _of_zip),
    **dict.fromkeys((".h5ad", ".h5mu"), _of_hdf5),
    **dict.fromkeys((".rds", ".rda", ".rdata"), _of_r),
    ".mat": _of_mat,
    ".parquet": _of_parquet,
}


def check_sparse(matrix: Any, name: str) -> Any:
    """Return a sparse matrix, or raise if an index points outside of it.

    The compiled code of SciPy trusts these indices: a damaged file would otherwise read and write
    anywhere in memory. The matrix is not changed.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array
        In any format.
    name : str
        What to call it: a file, a view.

    Examples
    --------
    >>> from scipy import sparse
    >>> check_sparse(sparse.csr_array(([1.0], [7], [0, 1]), shape=(1, 2)), "rna.npz")
    Traceback (most recent call last):
    ...
    ValueError: rna.npz is a damaged sparse matrix (...must be < 2): write it again.
    """
    try:
        if matrix.format in ("csr", "csc", "bsr"):
            _check_ends(matrix)
            copy.copy(matrix).check_format()  # which would cut off what is past the end
        elif matrix.format == "coo":
            sp.coo_array((matrix.data, (matrix.row, matrix.col)), shape=matrix.shape)
    except ValueError as error:
        raise ValueError(f"{name} is a damaged sparse matrix ({error}): write it again.") from error
    return matrix


def _check_ends(matrix: Any) -> None:
    """Refuse what `check_format` of a matrix by rows, by columns or by blocks overlooks."""
    if any(part.dtype.kind != "i" for part in (matrix.indptr, matrix.indices)):
        raise ValueError("its indices are not signed integers")
    if np.any(matrix.indptr[1:] < matrix.indptr[:-1]):  # looked at only where there are entries
        raise ValueError("its index pointer does not ascend")
    if matrix.format == "bsr" and np.any(np.mod(matrix.shape, matrix.blocksize)):
        raise ValueError("its blocks do not fill it")
