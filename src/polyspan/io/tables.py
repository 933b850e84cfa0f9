"""Tables as pandas holds them: which columns are numbers, and the matrix of some of them."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from polyspan.io.columns import EXACT, all_whole, as_numbers, is_kept
from polyspan.runtime.messages import quoted, setting

DUPLICATES = ("fail", "mean", "first", "drop")


def of_one_name(where: object, names: Sequence[str], how: str, what: str) -> list[list[int]]:
    """The places of every name; of names that are there several times as ``how`` says.

    An empty ``how`` is for names of samples, which are refused.

    Examples
    --------
    >>> names = ["TP53", "MYC", "TP53"]
    >>> [of_one_name("rna.csv", names, how, "columns") for how in ("mean", "first", "drop")]
    [[[0, 2], [1]], [[0], [1]], [[1]]]
    """
    places: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        places.setdefault(name, []).append(j)
    if len(places) < len(names) and how in ("fail", ""):
        several = quoted(sorted(name for name, own in places.items() if own[1:]))
        advice = "give every sample an id of its own"
        if how:
            mean = setting("duplicates", "mean")
            advice = f"use {mean} if they are one feature, or first or drop"
        raise ValueError(f"{where}: several {what} are called {several}: {advice}")
    if how == "first":
        return [own[:1] for own in places.values()]
    return [own for own in places.values() if how != "drop" or len(own) == 1]


def with_names(frame: Any, names: Sequence[str], where: object, how: str) -> Any:
    """A DataFrame with these names, each once; see `of_one_name`."""
    places = of_one_name(where, names, how, "columns")
    columns, frame = frame, frame.iloc[:, [own[0] for own in places]]
    frame.columns = [names[own[0]] for own in places]
    for k, own in ((k, own) for k, own in enumerate(places) if own[1:]):
        numbers = [x for j in own if (x := as_numbers(columns.iloc[:, j])) is not None]
        if len(numbers) < len(own):
            raise ValueError(
                f"{where}: columns called {frame.columns[k]!r} hold text, which has no mean: use "
                f"{setting('duplicates', 'first')} or drop"
            )
        frame.isetitem(k, mean_columns(np.transpose(numbers), [list(range(len(own)))])[:, 0])
    return frame


def mean_columns(matrix: Any, places: Sequence[Sequence[int]]) -> Any:
    """The means of groups of columns of a matrix, of the values that are not missing."""
    if len(places) == matrix.shape[1]:
        return matrix
    rows, columns = np.concatenate(places), np.repeat(range(len(places)), list(map(len, places)))
    member = sparse.csr_array(
        (np.ones(len(rows)), (rows, columns)), shape=(matrix.shape[1], len(places))
    )
    if sparse.issparse(matrix):
        return sparse.csr_array(matrix @ (member / member.sum(axis=0)))
    gone = np.isnan(matrix)
    with np.errstate(invalid="ignore"):  # none is there
        return (np.where(gone, 0, matrix) @ member) / (~gone @ member)


def tidy(
    frame: Any, where: object, wanted: Collection[str] | None = (), duplicates: str = "fail"
) -> Any:
    """A DataFrame with text as names, and numbers wherever a column holds nothing else.

    Examples
    --------
    >>> import pandas as pd
    >>> tidy(pd.DataFrame({"name": ["fox", "wren"], "legs": ["4", None]}), "pets").legs.tolist()
    [4.0, nan]
    """
    frame = with_names(frame, list(map(str, frame.columns)), where, duplicates)
    frame.index = range(len(frame))
    names, kinds = list(frame.columns), [dtype.kind for dtype in frame.dtypes]
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
