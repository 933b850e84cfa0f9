"""Reader of MATLAB files of version 5 (and 6, 7): matrices, sparse matrices, cells and text.

Every size in the file is checked against what is there, so that a damaged file is an error and
nothing else: compiled readers trust some of these sizes.
"""

import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

_MATRIX, _COMPRESSED = 14, 15  # types of elements
_TYPES = {
    1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
    16: "u1", 17: "u2",
}  # fmt: skip
_CELL, _CHAR, _SPARSE, _NUMBERS = 1, 4, 5, range(6, 16)  # classes of matrices
_DEEPEST = 20  # cells in cells


def is_matlab_5(start: bytes) -> bool:
    """Whether the first 128 bytes of a file are the header of version 5.

    Examples
    --------
    >>> is_matlab_5(b"MATLAB 5.0 MAT-file".ljust(124) + bytes([0, 1]) + b"IM")
    True
    """
    return len(start) == 128 and start[126:] in (b"IM", b"MI")


def read_matlab_5(path: Path) -> dict[str, Any]:
    """The variables of a file by name; None for structs, objects and functions.

    Examples
    --------
    >>> import tempfile
    >>> from scipy.io import savemat
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     savemat(f"{folder}/x.mat", {"x": np.eye(2), "names": ["one", "two"]})
    ...     read_matlab_5(Path(folder, "x.mat"))
    {'x': array([[1., 0.],
           [0., 1.]]), 'names': array(['one', 'two'], dtype='<U3')}
    """
    content = memoryview(path.read_bytes())
    reader = _Reader("<" if bytes(content[126:128]) == b"IM" else ">")
    found: dict[str, Any] = {}
    rest = content[128:]
    while len(rest):
        kind, body, rest = reader.element(rest)
        if kind == _COMPRESSED:
            kind, body, _ = reader.element(reader.unpacked(body))
        if kind == _MATRIX:
            name, value = reader.matrix(body)
            if name:  # hidden variables of MATLAB have none
                found[name] = value
    return found


class _Reader:
    def __init__(self, order: str) -> None:
        self.order = order

    def pair(self, content: Any) -> tuple[int, int]:
        if len(content) < 8:
            raise ValueError("it ends in the middle of an element")
        return struct.unpack(f"{self.order}II", content[:8])

    def element(self, content: Any) -> tuple[int, Any, Any]:
        """Type and body of the first element, and what follows it."""
        kind, size = self.pair(content)
        if kind >> 16:  # a small one: type, size and body in 8 bytes
            kind, size, begin, end = kind & 0xFFFF, kind >> 16, 4, 8
            if size > 4:
                raise ValueError("an element is larger than its place")
        else:
            begin = 8
            end = 8 + size + (0 if kind == _COMPRESSED else -size % 8)
        if begin + size > len(content):
            raise ValueError("it ends in the middle of an element")
        return kind, content[begin : begin + size], content[end:]

    def unpacked(self, body: Any) -> Any:
        unpack = zlib.decompressobj()
        head = unpack.decompress(bytes(body), 8)
        size = self.pair(head)[1]
        return memoryview(head + unpack.decompress(unpack.unconsumed_tail, size + 8))

    def numbers(self, content: Any) -> tuple[np.ndarray, Any]:
        """The first element as a vector of numbers, and what follows it."""
        kind, body, rest = self.element(content)
        if kind not in _TYPES:
            raise ValueError(f"an element has the unknown type {kind}")
        dtype = np.dtype(self.order + _TYPES[kind])
        if len(body) % dtype.itemsize:
            raise ValueError("an element does not hold whole numbers of its type")
        return np.frombuffer(body, dtype).astype(dtype.newbyteorder("=")), rest

    def matrix(self, body: Any, depth: int = 0) -> tuple[str, Any]:
        """Name and value of a matrix."""
        if len(body) == 0:
            return "", np.empty((0, 0))
        flags, rest = self.numbers(body)
        dims, rest = self.numbers(rest)
        if len(flags) != 2 or len(dims) < 2 or dims.min() < 0:
            raise ValueError("a matrix has no shape")
        letters, rest = self.numbers(rest)
        name = bytes(letters.astype(np.uint8)).decode("latin-1")
        kind, shape = int(flags[0]) & 0xFF, tuple(map(int, dims))
        if kind == _CELL:
            return name, self.cell(rest, math.prod(shape), depth)
        if kind == _SPARSE:
            return name, self.sparse(rest, shape)
        if kind == _CHAR or kind in _NUMBERS:
            values, rest = self.numbers(rest)
            if int(flags[0]) & 0x0800:
                values = values + 1j * self.numbers(rest)[0]
            if len(values) != math.prod(shape):
                raise ValueError(f"{name} has {len(values)} values for the shape {shape}")
            values = values.reshape(shape, order="F")
            return name, _text(values) if kind == _CHAR else values
        return name, None

    def cell(self, rest: Any, count: int, depth: int) -> list[Any]:
        if depth == _DEEPEST or count * 8 > len(rest):
            raise ValueError("its cells are not complete")
        found = []
        for _ in range(count):
            _, body, rest = self.element(rest)
            found.append(self.matrix(body, depth + 1)[1])
        return found

    def sparse(self, rest: Any, shape: tuple[int, ...]) -> Any:
        rows, rest = self.numbers(rest)
        ends, rest = self.numbers(rest)
        values, _ = self.numbers(rest)
        if len(ends) == 0 or len(shape) != 2 or not 0 <= ends[-1] <= min(len(rows), len(values)):
            raise ValueError("a sparse matrix is not complete")
        stored = int(ends[-1])
        parts = values[:stored].astype(float), rows[:stored], ends
        return sparse.csc_array(parts, shape=shape)


def _text(codes: np.ndarray) -> np.ndarray:
    """Strings from a matrix of letters, one per row."""
    if codes.ndim != 2 or codes.shape[1] == 0:
        return np.empty(0, dtype=str)
    return np.array(["".join(map(chr, row)) for row in codes.astype(np.uint16)])
