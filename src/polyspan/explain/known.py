"""What is known of the samples besides the views: read from a file, matched by id.

None of it is seen by the clustering.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from polyspan.explain.given import is_unknown
from polyspan.io.columns import as_ids, as_numbers, first_repeated
from polyspan.io.readers import (
    BIO,
    TABLES,
    SparseTable,
    check_file,
    read_annotated,
    read_tables,
)


class Known(NamedTuple):
    """Columns of values, one per sample; None where nothing is known."""

    columns: dict[str, np.ndarray]
    notes: list[str]


def read_known(path: str | Path, ids: Sequence[str] | None, n_samples: int) -> Known:
    r"""Read what is known of the samples, and match it by id, or by order if there are no ids.

    Parameters
    ----------
    path : path
        A table (.csv, .tsv, .txt, .parquet, .xlsx, .rds), or the obs of an .h5ad or .h5mu file. The
        ids may stand in any column: it is the one that shares most values with ``ids``.
    ids : sequence of str or None
        The samples that were clustered.
    n_samples : int
        Their number.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "clinical.csv")
    ...     _ = path.write_text("patient,diet\nb,fish\na,corn\n")
    ...     found = read_known(path, ["a", "b", "c"], 3)
    >>> found.columns
    {'diet': array(['corn', 'fish', None], dtype=object)}
    >>> found.notes[0].partition(" ")[2]
    'lacks 1 of 3 samples (c)'
    """
    path = Path(path)
    columns = _obs(path) if check_file(path, BIO) in BIO else _table(path)
    if not columns:
        raise ValueError(f"{path} has no columns")
    return match_known(columns, ids, n_samples, str(path))


def match_known(
    columns: Mapping[str, Sequence[Any]], ids: Sequence[str] | None, n_samples: int, where: str
) -> Known:
    """Put columns in the order of the samples, by the column of ids among them.

    Examples
    --------
    >>> match_known({"id": ["b", "a"], "age": [7, 8]}, ["a", "b"], 2, "pets").columns
    {'age': array([8.0, 7.0], dtype=object)}
    """
    rows = len(next(iter(columns.values())))
    if ids is None:
        if rows != n_samples:
            raise ValueError(
                f"{where} has {rows} rows, but there are {n_samples} samples without ids: give "
                "every file a column of ids, or the same rows in the same order"
            )
        told = f"{where} is matched by order, because the samples have no ids"
        found = {name: _objects(values, range(rows)) for name, values in columns.items()}
        return Known(found, [told])
    wanted = set(ids)
    texts = {name: as_ids(values) for name, values in columns.items()}
    shared = {name: len(wanted & set(own)) for name, own in texts.items()}
    column = max(shared, key=lambda name: shared[name])
    if shared[column] == 0:
        first = next(iter(texts))
        raise ValueError(
            f"{where} has none of the samples: no column holds ids such as {ids[0]!r} (its column "
            f"{first!r} begins with {texts[first][0]!r}): give it a column with the ids of the "
            "samples"
        )
    own = texts[column]
    used = [one for one in own if one in wanted]
    if len(set(used)) < len(used):
        raise ValueError(f"{where}: the ids in {column!r} must differ, but {first_repeated(used)}")
    place = {one: i for i, one in enumerate(own)}
    at = [place.get(one, -1) for one in ids]
    lost = [one for one, i in zip(ids, at, strict=True) if i < 0]
    notes = []
    if lost:
        shown = ", ".join(lost[:3]) + ", ..." * (len(lost) > 3)
        notes.append(f"{where} lacks {len(lost)} of {len(ids)} samples ({shown})")
    found = {name: _objects(one, at) for name, one in columns.items() if name != column}
    return Known(found, notes)


def _objects(values: Sequence[Any], rows: Sequence[int]) -> np.ndarray:
    """The values in these rows: numbers where all are numbers, None where there is none."""
    taken = [values[row] if row >= 0 else None for row in rows]
    found = np.array([None] * len(rows), dtype=object)
    known = [i for i, value in enumerate(taken) if not is_unknown(value)]
    numbers = as_numbers([taken[i] for i in known])
    for place, i in enumerate(known):
        found[i] = taken[i] if numbers is None else float(numbers[place])
    return found


def _table(path: Path) -> dict[str, Sequence[Any]]:
    if check_file(path, BIO) not in TABLES:
        raise ValueError(f"{path}: annotations are read from a table such as .csv, or from .h5ad")
    found = read_tables(path, wanted=None).values()
    tables = [table for table in found if not isinstance(table, SparseTable)]
    if len(tables) != 1:
        raise ValueError(
            f"{path} holds {len(tables)} tables: save the one with the annotations by itself"
        )
    return {name: tables[0][name].tolist() for name in tables[0]}


def _obs(path: Path) -> dict[str, Sequence[Any]]:
    data = read_annotated(path)
    names = list(map(str, data.obs.columns))
    columns: dict[str, Sequence[Any]] = {"obs_names": list(map(str, data.obs_names))}
    return columns | {name: data.obs[name].tolist() for name in names}
