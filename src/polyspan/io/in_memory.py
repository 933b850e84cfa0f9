"""Sources in memory for `load_views`: tables, arrays, AnnData and MuData, beside files."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals
import numpy as np
from scipy import sparse

from polyspan.io.columns import check_unique
from polyspan.io.containers import annotated_kind, is_other_table, unmasked
from polyspan.io.ids import Table
from polyspan.io.samples import is_frame
from polyspan.io.tables import tidy
from polyspan.runtime.messages import setting


def name_sources(given: Any) -> tuple[list[Path], dict[Path, Any]]:
    """All sources as paths, and what those are that are in memory: by key, or ``table 1``, ...

    Examples
    --------
    >>> name_sources({"rna": np.eye(2)})[1]
    {...Path('rna'): array([[1., 0.],
           [0., 1.]])}
    """
    one = isinstance(given, str | Path | np.ndarray) or sparse.issparse(given)
    if one or annotated_kind(given) or _is_table(given):
        given = [given]
    elif not isinstance(given, Mapping | Iterable):
        raise ValueError(
            "load_views takes a list of files, tables, AnnData or MuData; got "
            f"{type(given).__name__}"
        )
    if isinstance(given, Mapping):
        if files := [one for one in given.values() if isinstance(one, str | Path)]:
            raise ValueError(
                f"load_views names files by themselves: give {str(files[0])!r} in a list"
            )
        named = {Path(str(key)): one for key, one in given.items()}
        if len(named) < len(given):
            raise ValueError(f"two names of the sources are the same: {', '.join(map(str, given))}")
        return list(named), {path: _checked(one, path) for path, one in named.items()}
    paths, held = [], {}
    for k, one in enumerate(given, start=1):
        if isinstance(one, str | Path):
            paths.append(Path(one))
            continue
        path = Path(f"{annotated_kind(one) or 'table'} {k}")
        held[path] = _checked(one, path)
        paths.append(path)
    return paths, held


def _is_table(one: Any) -> bool:
    return is_frame(one) or is_other_table(one)


def _checked(one: Any, path: Path) -> Any:
    """A source in memory; an error if it is none that is known."""
    if annotated_kind(one) or _is_table(one):
        return one
    if not sparse.issparse(one):
        one = np.asarray(unmasked(one))
    if one.ndim != 2 or one.dtype.kind not in "biuf" or 0 in one.shape:
        raise ValueError(
            f"{path} must be a file, a table, an AnnData, a MuData or a 2-D array of numbers; got "
            f"{type(one).__name__} of shape {one.shape} and type {one.dtype}"
        )
    return one


def check_keys(
    obsm: Sequence[str], layers: Sequence[str], files: Sequence[Path], held: Mapping[Path, Any]
) -> None:
    """Refuse keys of AnnData and MuData where there is neither."""
    there = [path.suffix.lower() in (".h5ad", ".h5mu") for path in files if path not in held]
    if (obsm or layers) and not any(there) and not any(map(annotated_kind, held.values())):
        name = setting("obsm" if obsm else "layers")
        raise ValueError(
            f"{name} names matrices of AnnData (.h5ad) or MuData (.h5mu), and none is given: leave "
            "it out"
        )


def held_tables(
    held: Mapping[Path, Any],
    drop: Sequence[str],
    wanted: Sequence[str] = (),
    duplicates: str = "fail",
) -> tuple[dict[Path, Table], dict[str, str | None]]:
    """The tables among the sources in memory, and the name of the index for those with ids.

    Examples
    --------
    >>> import pandas as pd
    >>> pets = pd.DataFrame({"legs": [2, 4]}, index=["wren", "fox"])
    >>> tables, indexes = held_tables({Path("pets"): pets}, drop=[])
    >>> list(tables[Path("pets")].columns), indexes
    (['sample', 'legs'], {'pets': 'sample'})
    """
    tables: dict[Path, Table] = {}
    indexes: dict[str, str | None] = {}
    for path, source in held.items():
        if not _is_table(source):
            continue
        frame = tidy(as_frame(source, path), path, wanted, duplicates)
        if is_frame(source) and (name := _index_name(source.index, frame)) is not None:
            frame.insert(0, name, source.index.tolist())
            if name not in (*drop, "index"):
                indexes[str(path)] = name
        dropped = [name for name in drop if name in frame]
        tables[path] = Table(frame.drop(columns=dropped), dropped, False)
    return tables, indexes


def _index_name(index: Any, columns: Any) -> str | None:
    """What to call an index among the columns: numbers without a name may only count the rows."""
    if index.name is None and index.dtype.kind in "iu":
        return None if "index" in columns else "index"
    name = "sample" if index.name is None else str(index.name)
    return next(x for x in (name, "sample", "sample_id", "obs_names") if x not in columns)


def as_frame(table: Any, where: object) -> Any:
    """A polars or pyarrow table as a DataFrame; one of pandas as it is."""
    import pandas as pd

    if is_frame(table):
        return table
    frame = narwhals.from_native(table, eager_only=True)
    check_unique(where, frame.columns)
    columns = {column.name: column.to_numpy() for column in frame.iter_columns()}
    return pd.DataFrame(columns, copy=False)
