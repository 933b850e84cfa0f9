"""Your own files: matrices (.mat, .npz, .npy, .mtx) and tables (.csv, .xlsx, .parquet, .rda, ...).

A .mat or .npz file holds all views and the labels; any other file is one view with samples in rows,
a table (.csv, .tsv, .txt, .xlsx, .parquet, .rds, .rda) or a bare matrix (.npy, .mtx). Published
.mat files follow no common layout: samples in rows or in columns, views in a cell array or as named
variables, labels under a dozen names. The rules here read them all: the labels are found by their
name and give the number of samples; each view is transposed if needed so that its rows are the
samples.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from polyspan.io.columns import LABEL_NAMES, as_numbers, is_missing
from polyspan.io.dataset import Dataset, contiguous_labels
from polyspan.io.readers import TABLES, SparseTable, check_file, read_file, read_tables
from polyspan.io.tables import floats, numbers_of, words_of
from polyspan.runtime.messages import quoted


def load_file(
    path: str | Path,
    *,
    views: Sequence[str] | None = None,
    labels: str | None = None,
    header: bool | None = None,
    samples: str | None = None,
) -> Dataset:
    """Load views (and labels) from one file of any supported format.

    These are .mat, .npz, .npy, .mtx, .csv, .tsv, .txt, .xlsx, .parquet, .rds and .rda. `load_views`
    reads several files and matches their samples by an id column.

    Parameters
    ----------
    path : str or Path
        The file; its extension gives the format. Text and .mtx may be compressed (.csv.gz).
        MATLAB files of version 7.3 and .parquet need the extra ``polyspan[files]``, R's files
        (.rds, .rda; one matrix or data frame) need ``polyspan[r]``, .xlsx (one sheet) needs
        ``polyspan[excel]``.
    views : sequence of str, optional
        .mat and .npz: the variables that are views, each a matrix or a cell array of matrices.
        By default: the first cell array of matrices, or else every matrix with as many rows or
        columns as there are labels.
        Tables: the columns that make up the one view. By default: all but `labels`.
    labels : str, optional
        The variable or column with the true classes, numbers or words. By default: in .mat and
        .npz the variable with a usual name (truth, gt, gnd, y, label, ...), if there is one;
        in other files none.
    header : bool, optional
        Text and .xlsx: whether the first row holds names. By default: see the notes.
    samples : {"rows", "columns"}, optional
        .mat, .npz, .npy and .mtx: where the samples are. By default: see the notes.

    Returns
    -------
    Dataset
        Samples in rows, float64; sparse matrices stay sparse (CSR). Without labels, `labels` is
        empty and `n_clusters` is 0.

    Notes
    -----
    A square matrix is assumed to have its samples in rows. Without labels, the samples are in rows
    if all views have the same number of rows, otherwise in columns.

    In a text file the delimiter is a comma, a semicolon, a tab or spaces. With semicolons, decimals
    may have a comma. The first row is read as names
    if it contains anything but numbers, unless its numbers are not in ascending order, as in a
    sample that starts with an id; and if it counts (0, 1, 2, ...) and the next row does not. If it
    could be either, `header` must decide. Missing values (empty, NA, NaN, null, ...) become NaN.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from polyspan.datasets import load_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/pets.npz", sound=np.eye(4, 7), look=np.ones((5, 4)), y=[1, 1, 2, 2])
    ...     load_file(f"{folder}/pets.npz")
    Dataset('pets': 4 samples, 2 views (sound 7, look 5), 2 clusters)
    """
    path = Path(path)
    ending = check_file(path)
    if ending in TABLES:
        return _from_table(path, _only_table(path, header, labels), views, labels)
    contents = read_file(path)
    if ending in (".npy", ".mtx"):
        views = list(contents)  # the matrix is the view, even with a single column
    return from_variables(path, contents, views, labels, samples)


def _only_table(path: Path, header: bool | None, labels: str | None) -> Any:
    tables = read_tables(path, header, [labels] if labels else [])
    table = tables.get("")
    if table is None or isinstance(table, SparseTable):
        what = quoted(tables) if table is None else "a sparse matrix"
        raise ValueError(
            f"{path} must hold one table, dense, but it holds {what}: load_views reads several"
        )
    return table.drop(columns=[""], errors="ignore")  # row numbers of pandas


def _from_table(path: Path, table: Any, views: Sequence[str] | None, labels: str | None) -> Dataset:
    wanted = [views] if isinstance(views, str) else views
    names = list(wanted) if wanted is not None else [name for name in table if name != labels]
    _check_present(path, table, [*names, *([labels] if labels else [])], "column")
    if words := words_of(table, names):
        hint = "" if labels else f"; if one holds the labels, pass labels={words[-1]!r}"
        raise ValueError(f"{path}: not numbers in column {quoted(words)}{hint}")
    if not names or len(table) == 0:
        raise ValueError(
            f"{path} holds no samples" if names else f"{path} has no columns for a view"
        )
    classes = _clean_labels(path, table[labels]) if labels else None
    return _dataset(path, [numbers_of(path, table, names)], [path.stem], classes)


def from_variables(
    path: Path,
    variables: Mapping[str, Any],
    views: Sequence[str] | None = None,
    labels: str | None = None,
    samples: str | None = None,
) -> Dataset:
    """Views and labels among the variables of a file, as in `load_file`."""
    wanted = [views] if isinstance(views, str) else views
    _check_present(path, variables, [*(wanted or []), *([labels] if labels else [])], "variable")
    if labels is None:
        usual = [name for name in variables if _is_usual_label(name, variables[name], wanted)]
        labels = min(usual, key=lambda name: LABEL_NAMES.index(name.lower()), default=None)
    classes = _clean_labels(path, _first_of_cell(variables[labels])) if labels else None

    others = {name: value for name, value in variables.items() if name != labels}
    if wanted is not None:
        chosen = {name: others[name] for name in wanted if name in others}
    else:
        chosen = _find_views(others, None if classes is None else len(classes))
    named = [
        (f"{name}{k}" if isinstance(value, list) and len(value) > 1 else name, matrix)
        for name, value in chosen.items()
        for k, matrix in enumerate(value if isinstance(value, list) else [value], start=1)
    ]
    if not named:
        raise ValueError(
            f"{path} has no matrices that could be views; its variables: {quoted(variables)}"
        )
    if bad := [name for name, matrix in named if not _is_matrix(matrix)]:
        raise ValueError(f"{path}: not a matrix of numbers: {quoted(bad)}")
    n = None if classes is None else len(classes)
    oriented = _samples_in_rows(path, named, n, samples)
    return _dataset(path, oriented, [name for name, _ in named], classes)


def _is_usual_label(name: str, value: Any, views: Sequence[str] | None) -> bool:
    if name.lower() not in LABEL_NAMES or name in (views or ()):
        return False
    shape = getattr(_first_of_cell(value), "shape", ())
    return len(shape) > 0 and int(np.prod(shape)) == max(shape) > 1  # a vector


def _first_of_cell(value: Any) -> Any:
    # Some files repeat the labels once per view.
    return value[0] if isinstance(value, list) and value else value


def _is_matrix(value: Any) -> bool:
    if sparse.issparse(value):
        return True
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "biuf"


def _find_views(variables: Mapping[str, Any], n_samples: int | None) -> dict[str, Any]:
    for name, value in variables.items():
        if isinstance(value, list) and value and all(_is_matrix(matrix) for matrix in value):
            return {name: value}
    return {
        name: value
        for name, value in variables.items()
        if _is_matrix(value)
        and (min(value.shape) > 1 if n_samples is None else n_samples in value.shape)
    }


def _samples_in_rows(
    path: Path, named: Sequence[tuple[str, Any]], n_samples: int | None, samples: str | None
) -> list[Any]:
    if samples is not None:
        return [matrix if samples == "rows" else matrix.T for _, matrix in named]
    shapes = [matrix.shape for _, matrix in named]
    if n_samples is None:
        for axis in (0, 1):
            if len({shape[axis] for shape in shapes}) == 1:
                return [matrix if axis == 0 else matrix.T for _, matrix in named]
        raise ValueError(
            f"{path}: the views differ in their number of samples; their shapes are {shapes}"
        )
    for name, matrix in named:
        if n_samples not in matrix.shape:
            raise ValueError(
                f"{path}: view {name!r} has shape {matrix.shape}, but there are {n_samples} labels"
            )
    return [matrix if matrix.shape[0] == n_samples else matrix.T for _, matrix in named]


def _clean_labels(path: Path, values: Any) -> NDArray[np.int64]:
    marks = np.asarray(values.toarray() if sparse.issparse(values) else values)
    if marks.size == 0 or marks.size != max(marks.shape):
        raise ValueError(f"{path}: the labels have shape {marks.shape}, expected one per sample")
    marks = marks.ravel()
    numbers = as_numbers(marks.tolist())
    missing = (
        [is_missing(v) or v != v for v in marks.tolist()] if numbers is None else np.isnan(numbers)
    )
    if np.any(missing):
        raise ValueError(f"{path}: {int(np.sum(missing))} labels are missing")
    return contiguous_labels(marks.astype(str) if numbers is None else numbers)


def _dataset(
    path: Path, views: list[Any], names: list[str], classes: NDArray[np.int64] | None
) -> Dataset:
    labels = np.empty(0, dtype=np.int64) if classes is None else classes
    return Dataset(
        path.stem, list(map(floats, views)), labels, names, int(labels.max(initial=-1)) + 1
    )


def _check_present(path: Path, contents: Any, names: list[str], kind: str) -> None:
    if absent := [name for name in names if name not in contents]:
        raise ValueError(
            f"{path} has no {kind} {quoted(absent)}; it has {quoted(contents) or 'none'}"
        )
