"""Read views and their ids from files: tables, matrices, AnnData and MuData."""

import re
import reprlib
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyspan.io.columns import (
    LABEL_NAMES,
    ROW_NUMBERS,
    all_whole,
    as_ids,
    as_numbers,
    counts_rows,
    first_repeated,
    is_id_name,
    is_like_id,
    may_be_ids,
    tell_stand_ins,
)
from polyspan.io.containers import annotated_kind, blocks
from polyspan.io.ids import Table, id_columns, numbers_rows
from polyspan.io.in_memory import held_tables
from polyspan.io.one_file import from_variables
from polyspan.io.orientation import check_labels, check_rows, features_in_rows, is_feature_name
from polyspan.io.readers import (
    BIO,
    R_FILES,
    TABLES,
    SparseTable,
    check_file,
    place,
    read_annotated,
    read_file,
    read_tables,
)
from polyspan.io.safety import check_sparse
from polyspan.io.tables import floats, mean_columns, numbers_of, of_one_name, words_of
from polyspan.io.text import THOUSANDS
from polyspan.runtime.messages import quoted, setting

NONE_HELD: Mapping[Path, Any] = MappingProxyType({})


class Part(NamedTuple):
    """One view as read from its file."""

    file: str
    name: str  # of the view in the file; "" if it is the only one
    matrix: Any
    ids: list[str] | None = None
    id_name: str = ""
    columns: Sequence[str] = ()
    dropped: Sequence[str] = ()


class Reading(NamedTuple):
    """How to read tables; see `load_views`."""

    id: Sequence[str] = ()
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    header: bool | None = None
    samples: str | None = None
    obsm: Sequence[str] = ()
    layers: Sequence[str] = ()
    duplicates: str = "fail"

    @property
    def same_columns(self) -> str:
        """What to do with columns of one name; "" if they are samples."""
        return "" if self.samples == "columns" else self.duplicates


def read_parts(
    files: Sequence[Path], how: Reading, notes: list[str], held: Mapping[Path, Any] = NONE_HELD
) -> list[Part]:
    """All views of all files, in order; messages for the user are added to the notes.

    ``held`` are sources in memory, under the names they have among the files.
    """
    in_memory, indexes = held_tables(held, how.drop, how.id, how.same_columns)
    found: dict[str, tuple[Path, str, Any]] = {}
    for path in files:
        if path in in_memory:
            found[str(path)] = path, "", in_memory[path]
        elif path not in held and check_file(path, BIO) in TABLES:
            for name, table in _read_tables(path, how, notes).items():
                found[place(path, name)] = path, name, table
    tables = {where: one for where, (_, _, one) in found.items() if isinstance(one, Table)}
    across = how.samples == "columns"
    chosen = {} if across else id_columns(tables, list(how.id)) | ({} if how.id else indexes)
    by_file: dict[Path, list[Part]] = {path: [] for path in files}
    for where, (path, name, table) in found.items():
        if not isinstance(table, Table):
            part = _merged(Part(where, "", table.values, table.rows, "", table.columns or ()), how)
            if how.samples is None:
                notes.append(
                    f"{where}: the rows of the sparse matrix are taken to be the samples; if they "
                    f"are features, as in most packages of R, use {setting('samples', 'columns')}"
                )
        elif across:
            part = _turned(where, table, how, notes)
        else:
            part = _from_table(where, table, chosen[where], how, notes)
        check_labels(where, part.columns, how.keep, notes)
        by_file[path].append(part._replace(file=str(path), name=name))
    if how.samples is None:
        read = dict(zip(found, chain(*by_file.values()), strict=True))
        named = {where: part.columns for where, part in read.items() if part.columns}
        check_rows(named, chosen, {where: part.matrix.shape for where, part in read.items()}, notes)
    for path in files:
        if path in held and not by_file[path]:
            by_file[path] = _from_memory(path, held[path], how)
        elif not by_file[path]:
            by_file[path] = _read(path, how, notes)
    parts = [part for path in files for part in by_file[path]]
    _check_named(parts, how)
    return parts


def _check_named(parts: list[Part], how: Reading) -> None:
    """Refuse columns to drop or to keep that no table has."""
    dropped = {name for part in parts for name in part.dropped}
    if absent := [name for name in how.drop if name not in dropped]:
        raise ValueError(f"no table has a column {quoted(absent)} to drop")
    features = {name for part in parts for name in part.columns} if how.keep else set()
    if absent := [name for name in how.keep if name not in features]:
        raise ValueError(f"no table has a column {quoted(absent)} to keep")


def view_names(parts: list[Part], held: Mapping[Path, Any] = NONE_HELD) -> list[str]:
    """The file names without extensions, or the paths as given if two would be the same.

    An AnnData or MuData in memory, alone, needs no name besides those of its matrices.
    """
    if len({part.file for part in parts}) == 1 and any(map(annotated_kind, held.values())):
        return [part.name or "X" for part in parts]
    stems = {part.file: Path(re.sub(r"(?i)\.gz$", "", Path(part.file).name)).stem for part in parts}
    stems |= {str(path): str(path) for path in held}
    if len(set(stems.values())) < len(stems):
        stems = {file: file for file in stems}
    return [stems[part.file] + (f":{part.name}" if part.name else "") for part in parts]


def _from_memory(path: Path, data: Any, how: Reading) -> list[Part]:
    if annotated_kind(data):
        return _annotated(path, data, how)
    return [Part(str(path), "", floats(data.T if how.samples == "columns" else data))]


def _read(path: Path, how: Reading, notes: list[str]) -> list[Part]:
    ending = check_file(path, BIO)
    if ending in BIO:
        return _annotated(path, read_annotated(path), how)
    contents = read_file(path)
    matrices = list(contents) if ending in (".npy", ".mtx") else None
    data = from_variables(path, contents, matrices, samples=how.samples)
    for name, view in zip(data.view_names, data.views, strict=True):
        if 0 in view.shape:
            raise ValueError(f"{path}: {name} is empty, its shape is {view.shape}")
    ids, id_name = None, ""
    if ending == ".npz":
        ids, id_name = _ids_among(contents, list(how.id), data.views[0].shape[0])
    if how.id and ids is None:
        raise ValueError(
            f"{path} has no ids, so {setting('id')} cannot match it: leave it out to match by "
            "order, or save it as a table"
        )
    if data.labels.size:
        notes.append(f"{path} also holds labels, which are not used")
    rest = [
        name
        for name, value in contents.items()
        if getattr(value, "ndim", 0) == 2
        and value.shape != (1, 1)
        and name not in (*data.view_names, id_name)
        and name.lower() not in LABEL_NAMES
    ]
    if rest:
        verb = "are" if len(rest) > 1 else "is"
        notes.append(f"{path} also holds {quoted(rest)}, which {verb} not used")
    several = len(data.views) > 1
    return [
        Part(str(path), name if several else "", view, ids, id_name)
        for name, view in zip(data.view_names, data.views, strict=True)
    ]


def _ids_among(
    contents: Mapping[str, Any], wanted: list[str], n: int
) -> tuple[list[str] | None, str]:
    for name, value in contents.items():
        asked = name in wanted if wanted else is_id_name(name)
        if asked and getattr(value, "shape", None) == (n,):
            return as_ids(value.tolist()), name
    return None, ""


def _annotated(path: Path, data: Any, how: Reading) -> list[Part]:
    """The views of an AnnData or MuData."""
    parts = []
    for one in blocks(data, how.obsm, how.layers, str(path)):
        here = f"{path}:{one.name}" if one.name else str(path)
        table, matrix = one.table, one.matrix
        if sparse.issparse(matrix):
            check_sparse(matrix, here)
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"{here}: X holds {matrix.dtype} values: convert them to numbers")
        columns = one.columns
        if how.samples == "columns" and columns is not None:
            table, matrix, columns = table.T, matrix.T, list(table.obs_names)
        column = next((name for name in how.id if name in table.obs), None)
        values = table.obs_names if column is None else table.obs[column]
        ids, id_name = as_ids(list(values)), column or "obs_names"
        part = Part(here, one.name, floats(matrix), ids, id_name, columns or ())
        parts.append(_merged(part, how)._replace(file=str(path)))
    return parts


def _read_tables(path: Path, how: Reading, notes: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, table in read_tables(path, how.header, how.id, notes, how.same_columns).items():
        if isinstance(table, SparseTable):
            found[name] = table.T if how.samples == "columns" else table
            continue
        nameless = list(table) == [f"column{j}" for j in range(1, len(table.columns) + 1)]
        if how.header is None and path.suffix.lower() not in R_FILES:
            _note_first_row(path, list(table), nameless, notes)
        dropped = [name for name in how.drop if name in table]
        found[name] = Table(table.drop(columns=dropped), dropped, nameless)
    return found


def _from_table(
    where: str, table: Table, id_name: str | None, how: Reading, notes: list[str]
) -> Part:
    columns = table.columns
    ids = None if id_name is None else as_ids(columns[id_name])
    features = [
        name
        for name in columns
        if name != id_name
        and not (ROW_NUMBERS.fullmatch(name) and numbers_rows(name, columns[name]))
    ]
    if ids == [] or (features and len(columns) == 0):
        raise ValueError(f"{where} holds no samples")
    if not features:
        raise ValueError(f"{where} has no columns besides {quoted(columns)}: it holds no features")
    if words := words_of(columns, features):
        raise ValueError(_text_error(where, columns, words, next(iter(columns)), bool(how.id)))
    matrix = numbers_of(where, columns, features)
    _note_columns(where, matrix, features, ids, notes)
    id_name = "id" if table.nameless else id_name or ""
    return Part(where, "", matrix, ids, id_name, features, table.dropped)


def _turned(where: str, table: Table, how: Reading, notes: list[str]) -> Part:
    """A table with samples in columns: the first column names the features, the others are ids."""
    columns = table.columns
    first, n = next(iter(columns), ""), len(columns)
    naming = next((name for name in how.id if name in columns), None)
    if naming is None and first in columns:
        known = is_id_name(first) or is_feature_name(first) or ROW_NUMBERS.fullmatch(first)
        naming = first if known or words_of(columns, [first]) else None
    samples = [name for name in columns if name != naming]
    if not samples or n == 0:
        raise ValueError(
            f"{where} has no samples in its columns: {quoted(columns) or 'it is empty'}"
        )
    if words := words_of(columns, samples):
        told = f"column {words[0]!r}" if len(words) == 1 else f"columns {quoted(words)}"
        raise ValueError(
            f"{where}: with {setting('samples', 'columns')} every column but {naming!r} is a "
            f"sample, but {told} hold{'s' * (len(words) == 1)} text: leave it out with "
            f"{_drops(words)}"
        )
    if naming is None and n > 2 and may_be_ids(columns[first]):
        notes.append(
            f"{where}: the first column, {first!r}, is used as a sample; if it names the features, "
            f"use {setting('id', first)}"
        )
    features = as_ids(columns[naming]) if naming is not None else [str(i + 1) for i in range(n)]
    left = [i for i, name in enumerate(features) if name not in how.drop]
    dropped = [*table.dropped, *(name for name in how.drop if name in features)]
    matrix = np.ascontiguousarray(numbers_of(where, columns, samples)[left].T)
    ids = None if table.nameless else samples
    part = Part(where, "", matrix, ids, "sample", [features[i] for i in left], dropped)
    return _merged(part, how)


def _merged(part: Part, how: Reading) -> Part:
    """The view with every name of a feature once; see `load_views`."""
    if len(set(part.columns)) == len(part.columns):
        return part
    places = of_one_name(part.file, part.columns, how.duplicates, "features")
    matrix, first = part.matrix, [own[0] for own in places]
    matrix = mean_columns(matrix, places) if how.duplicates == "mean" else matrix[:, first]
    return part._replace(matrix=matrix, columns=[part.columns[j] for j in first])


def _drops(words: Sequence[str], most: int = 5) -> str:
    return setting("drop", words[:most]) + " ..." * (len(words) > most)


def _text_error(path: str, table: Any, words: list[str], first: str, asked: bool) -> str:
    name = words[0]
    found = [value for value in dict.fromkeys(map(str, table[name])) if as_numbers([value]) is None]
    shown = ", ".join(map(reprlib.repr, found[:3])) + ", ..." * (len(found) > 3)
    if all(THOUSANDS.fullmatch(value.strip()) for value in found):
        return (
            f"{path}: column {name!r} has commas in its numbers ({found[0]!r}), which may be "
            "thousands or decimals: write thousands without a comma, and decimals with a point"
        )
    if all(as_numbers([value.replace(",", ".")]) is not None for value in found):
        return (
            f"{path}: column {name!r} has commas in its numbers ({found[0]!r}): write decimals "
            "with a point"
        )
    if name == first and is_feature_name(name) and not asked:
        return str(features_in_rows(path, name))
    several = len(words) > 1
    told = f"{path}: column {name!r} holds text ({shown})"
    if several:
        told = f"{path}: {len(words)} columns hold text, {quoted(words)} ({name!r}: {shown})"
    they = ("them", "encode them as numbers") if several else ("it", "encode it as numbers")
    advice = f"{told}: leave {they[0]} out with {_drops(words)}, or {they[1]}"
    ids = as_ids(table[name])
    if name == first and len(ids) > len(set(ids)) > len(ids) / 2:
        advice += f"; ids would all have to be different, but {first_repeated(ids)}"
    different = [] if asked else [word for word in words[:50] if may_be_ids(table[word])]
    if different:
        advice += f"; if {different[0]!r} is the id, use {setting('id', different[0])}"
    return advice


def _note_first_row(path: Path, names: list[str], nameless: bool, notes: list[str]) -> None:
    if nameless:
        use = setting("header", True)
        notes.append(f"{path}: the first row is read as a sample; if it is names, use {use}")
    elif (
        names[0]
        and not is_id_name(names[0])
        and any(as_numbers([name]) is not None for name in names)
    ):
        use = setting("header", False)
        notes.append(f"{path}: the first row is read as names; if it is a sample, use {use}")


def _note_columns(
    path: str, matrix: Any, names: list[str], ids: list[str] | None, notes: list[str]
) -> None:
    notes += tell_stand_ins(path, matrix, names)
    told = [j for j, name in enumerate(names) if is_like_id(name) and all_whole(matrix[:, j])]
    for name in (names[j] for j in told):
        notes.append(
            f"{path}: column {name!r} is used as a feature; if it is the id, use "
            f"{setting('id', name)}, otherwise leave it out: {setting('drop', [name])}"
        )
    if 0 in told or ids is not None or len(names) == 1:
        return
    if len(matrix) > 2 and may_be_ids(matrix[:, 0]):
        notes.append(
            f"{path}: the first column, {names[0]!r}, holds a different whole number in every row "
            f"and is used as a feature; if it is the id, use {setting('id', names[0])}"
        )


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
            f"{other.file} ({other.id_name!r}): add an id column to {one.file}, or use "
            f"{setting('id')} to name the columns to match by ({setting('id', '')} is a column "
            "without a name)"
        )
    return [
        part._replace(ids=None, id_name="") if counts(part, in_order=True) else part
        for part in parts
    ]
