"""Match samples by id or by order: find the row of each sample in each view.

The row is -1 where a view lacks the sample, or has only missing values for it.
"""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from polyspan.io.columns import ROW_NUMBERS, counts_rows, first_repeated
from polyspan.io.parts import Part
from polyspan.runtime.messages import first_few, plural


def without_row_numbers(parts: list[Part]) -> list[Part]:
    """Drop ids that only number the rows in order.

    If every view has an index column and some index is not in order, all ids are kept.
    """

    def counts(part: Part, in_order: bool = False) -> bool:
        if part.ids is None or not ROW_NUMBERS.fullmatch(part.id_name):
            return False
        return counts_rows(part.ids, in_order)

    alike = all(part.ids is not None and ROW_NUMBERS.fullmatch(part.id_name) for part in parts)
    if alike and not all(counts(part, in_order=True) for part in parts):
        return parts
    named = [part for part in parts if part.ids is not None and not counts(part)]
    shuffled = [part for part in parts if counts(part) and not counts(part, in_order=True)]
    if named and shuffled:
        one, other = shuffled[0], named[0]
        raise ValueError(
            f"{one.file} has no ids, only row numbers that are not in order "
            f"({', '.join((one.ids or [])[:3])}, ...), which cannot be matched to the ids of "
            f"{other.file} ({other.id_name!r}): add an id column to {one.file}, or use --id to "
            f"name the columns to match by (--id '' is a column without a name)"
        )
    return [
        part._replace(ids=None, id_name="") if counts(part, in_order=True) else part
        for part in parts
    ]


def rows_by_id(parts: list[Part], names: list[str], keep: bool) -> tuple[list[str], list[Any]]:
    """All samples in the order of the first file, and their rows in each view.

    With ``keep``, samples may lack views, as long as shared samples link all files.

    Examples
    --------
    >>> one = Part("a.csv", "", np.eye(2), ["fox", "bee"])
    >>> other = Part("b.csv", "", np.eye(3), ["bee", "fox", "bat"])
    >>> rows_by_id([one, other], ["a", "b"], keep=False)
    (['fox', 'bee', 'bat'], [array([ 0,  1, -1]), array([1, 0, 2])])
    """
    for part, name in zip(parts, names, strict=True):
        ids = part.ids or []
        if empty := [i for i, one in enumerate(ids, start=1) if not one]:
            raise ValueError(
                f"{part.file}: {len(empty)} samples have no id in column {part.id_name!r} "
                f"(the first is sample {empty[0]}): give every sample an id"
            )
        if len(set(ids)) < len(ids):
            raise ValueError(
                f"the ids of {name} in {part.file}, column {part.id_name!r}, must all be "
                f"different, but {first_repeated(ids)}"
            )
    samples = list(dict.fromkeys(one for part in parts for one in part.ids or []))
    places = []
    for part in parts:
        row = {one: i for i, one in enumerate(part.ids or [])}
        places.append(np.array([row.get(one, -1) for one in samples]))
    there = np.array(places) >= 0
    # When samples may lack views, it is enough that chains of shared samples link all views.
    both = there.astype(float) @ there.T
    linked = connected_components(both, directed=False)[0] == 1 if keep else there.all(0).any()
    if not linked:
        heads = [
            f"{part.file} has {', '.join((part.ids or [])[:3])}"
            for part in {part.file: part for part in parts}.values()
        ]
        columns = set.intersection(*(set(part.columns) for part in parts))
        turned = "; the tables share column names: if those are the samples, use --samples columns"
        what = "the files do not share ids" if keep else "no id is in every file"
        raise ValueError(
            f"{what}: {'; '.join(heads)}: check --id, or --drop the id columns to "
            f"match by order{turned * (len(columns) > 1)}"
        )
    for part, rows in zip(parts, places, strict=True):
        rows[(rows >= 0) & _rows_without_values(part.matrix)[rows]] = -1
    return samples, places


def rows_by_order(
    parts: list[Part], names: list[str], notes: list[str]
) -> tuple[list[str], list[Any]]:
    """Like `rows_by_id`, for views whose rows are the same samples; one view's ids name them all.

    Examples
    --------
    >>> one, other = Part("a.npy", "", np.eye(2)), Part("b.npy", "", np.ones((2, 3)))
    >>> rows_by_order([one, other], ["a", "b"], notes=[])
    (['1', '2'], [array([0, 1]), array([0, 1])])
    """
    lengths = [part.matrix.shape[0] for part in parts]
    named = [part for part in parts if part.ids is not None]
    bare = list(dict.fromkeys(part.file for part in parts if part.ids is None))
    if len(set(lengths)) > 1:
        told = ", ".join(f"{a} has {b}" for a, b in zip(names, lengths, strict=True))
        shapes = [part.matrix.shape for part in parts]
        advice = f"give every file an id column (none was found in {', '.join(bare)})"
        if any(a[0] == b[1] for a in shapes for b in shapes if a[0] != b[0]):
            sizes = ", ".join(f"{a} is {n} x {d}" for a, (n, d) in zip(names, shapes, strict=True))
            advice = f"samples must be in rows, but one view seems to have them in columns: {sizes}"
        raise ValueError(
            f"samples are matched by order, which needs the same number of rows, but {told}: "
            f"{advice}"
        )
    if len({tuple(part.ids or ()) for part in named}) > 1:
        raise ValueError(
            f"{', '.join(bare)} has no ids, and the ids of "
            f"{' and '.join(dict.fromkeys(part.file for part in named))} are not in the same "
            "order: give every file an id column"
        )
    if named:
        notes.append(
            f"{', '.join(bare)} has no id column: its rows are assumed to be the samples of "
            f"{named[0].file}, in that order"
        )
    samples = named[0].ids if named else None
    samples = samples or [str(i) for i in range(1, lengths[0] + 1)]
    places = [
        np.where(_rows_without_values(part.matrix), -1, np.arange(len(samples))) for part in parts
    ]
    return samples, places


def _rows_without_values(matrix: Any) -> Any:
    if sparse.issparse(matrix):  # an entry that is not stored is zero, which is a value
        return np.zeros(matrix.shape[0], dtype=bool)
    return np.isnan(matrix).all(axis=1)


def take_rows(part: Part, rows: Any, samples: list[str]) -> Any:
    """The rows of a view in the order of the samples; NaN where the view lacks the sample."""
    here = rows >= 0
    in_order = np.array_equal(rows, np.arange(part.matrix.shape[0]))
    matrix = part.matrix if in_order else part.matrix[rows[here]]  # a copy only where needed
    values = matrix.data if sparse.issparse(matrix) else matrix
    if not np.isfinite(values).all():
        kept = [samples[i] for i in np.flatnonzero(here)]
        raise ValueError(_not_finite(part, matrix, kept))
    if here.all():
        return matrix
    full = np.full((len(rows), matrix.shape[1]), np.nan)
    full[here] = matrix.toarray() if sparse.issparse(matrix) else matrix
    return full


def _not_finite(part: Part, matrix: Any, samples: list[str]) -> str:
    bad = sparse.coo_array(matrix) if sparse.issparse(matrix) else None
    if bad is None:
        i, j = np.nonzero(~np.isfinite(matrix))
        infinite = np.isinf(matrix[i, j])
    else:
        wrong = ~np.isfinite(bad.data)
        i, j, infinite = bad.row[wrong], bad.col[wrong], np.isinf(bad.data[wrong])
    what = "infinite" if infinite.all() else "missing or infinite" if infinite.any() else "missing"
    where = f"{part.file}:{part.name}" if part.name else part.file

    def column(k: int) -> str:
        return repr(part.columns[k]) if len(part.columns) else f"{k + 1}"

    places = [f"sample {samples[a]} column {column(b)}" for a, b in zip(i[:3], j[:3], strict=True)]
    rows, columns = len(set(i)), len(set(j))
    advice = "replace them"
    if not infinite.any() and bad is None:
        advice = (
            "fill them in with --impute median or --impute knn, which leaves out what lacks more "
            "than --max-missing 0.2 of its values"
        )
    return (
        f"{where}: {plural(len(i), 'value is', 'values are')} {what}, in {plural(rows, 'row')} and "
        f"{plural(columns, 'column')} "
        f"({'; '.join(places)}{'; ...' * (len(i) > 3)}): {advice}, or leave out the rows or "
        "the columns (--drop COLUMN)"
    )


def tell_lacking(lacking: dict[str, list[str]], most: int = 5) -> str:
    """Say which samples lack which view: how many, and the first few."""
    told = [
        f"{plural(len(samples), 'lacks', 'lack')} {view} ({first_few(samples, most)})"
        for view, samples in lacking.items()
    ]
    n = len({one for samples in lacking.values() for one in samples})
    return f"{plural(n, 'sample lacks', 'samples lack')} a view: {'; '.join(told)}"
