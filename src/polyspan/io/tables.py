"""Tables as pandas holds them: which columns are numbers, and the matrix of some of them."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from polyspan.io.columns import EXACT, all_whole, as_numbers, check_unique, is_kept
from polyspan.runtime.messages import setting


def tidy(frame: Any, where: object, wanted: Collection[str] | None = ()) -> Any:
    """A DataFrame with text as names, and numbers wherever a column holds nothing else.

    Examples
    --------
    >>> import pandas as pd
    >>> tidy(pd.DataFrame({"name": ["fox", "wren"], "legs": ["4", None]}), "pets").legs.tolist()
    [4.0, nan]
    """
    names = list(map(str, frame.columns))
    check_unique(where, names)
    kinds = [dtype.kind for dtype in frame.dtypes]
    frame = frame.copy(deep=False)
    frame.columns, frame.index = names, range(len(frame))
    for j, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind not in "biuf" and not is_kept(j, name, wanted):
            numbers = as_numbers(frame[name])
            frame[name] = frame[name] if numbers is None else numbers
    return frame


def words_of(table: Any, names: Sequence[str]) -> list[str]:
    """The columns that hold anything but numbers."""
    kinds = dict(zip(table.columns, table.dtypes, strict=True))
    maybe = [name for name in names if kinds[name].kind not in "biuf"]
    return [name for name in maybe if as_numbers(table[name]) is None]


def numbers_of(where: object, table: Any, names: Sequence[str]) -> Any:
    """The matrix of some columns, filled by rows so that the table is not held twice."""
    places = table.columns.get_indexer(names)
    kinds = [dtype.kind for dtype in table.dtypes.iloc[places]]
    plain = [j for j, kind in enumerate(kinds) if kind in "biuf"]
    text = [j for j, kind in enumerate(kinds) if kind not in "biuf"]
    matrix = np.empty((len(table), len(names)))
    step = max(1, 2**20 // len(names))
    for start in range(0, len(table), step):
        rows = slice(start, start + step)
        part = table.iloc[rows, places[plain]]
        matrix[rows, plain] = part.to_numpy(dtype=float, na_value=np.nan)
    for j in text:
        matrix[:, j] = as_numbers(table[names[j]])
    for j in (*text, *(j for j, kind in enumerate(kinds) if kind in "iu")):
        if np.abs(matrix[:, j]).max(initial=0) > EXACT and all_whole(matrix[:, j]):
            raise ValueError(
                f"{where}: column {names[j]!r} holds whole numbers of more than 15 digits, which "
                f"lose some as features: if it is the id, use {setting('id', names[j])}, "
                f"otherwise leave it out: {setting('drop', [names[j]])}"
            )
    return matrix


def floats(matrix: Any) -> Any:
    """A matrix as floats by rows; a sparse one as CSR."""
    if sparse.issparse(matrix):
        return sparse.csr_array(matrix, dtype=float)
    return np.ascontiguousarray(matrix, dtype=float)
