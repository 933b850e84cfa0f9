"""Read views and their ids from files: tables, matrices, AnnData and MuData."""

import shlex
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from polyspan.datasets.columns import LABEL_NAMES, as_numbers, is_id_name, quoted
from polyspan.datasets.files import load_file
from polyspan.datasets.ids import (
    Table,
    all_whole,
    as_ids,
    first_repeated,
    id_columns,
    is_like_id,
    may_be_ids,
    numbers_rows,
)
from polyspan.datasets.readers import check_file, read_file
from polyspan.datasets.sizes import check_size
from polyspan.datasets.tables import TABLES
from polyspan.inputs.optional import require
from polyspan.inputs.sparse import check_sparse
from polyspan.solvers.messages import one_line, own_warnings

BIO = (".h5ad", ".h5mu")


class Part(NamedTuple):
    """One view as read from its file."""

    file: str
    name: str  # of the view in the file; "" if it is the only one
    matrix: Any
    ids: list[str] | None = None
    id_name: str = ""
    columns: Sequence[str] = ()
    dropped: Sequence[str] = ()


def read_parts(
    files: Sequence[Path],
    wanted: list[str],
    drop: Sequence[str],
    header: bool | None,
    notes: list[str],
) -> list[Part]:
    """All views of all files, in order; messages for the user are added to the notes."""
    tables = {
        path: _read_table(path, drop, header, notes)
        for path in files
        if check_file(path, BIO) in TABLES
    }
    chosen = id_columns(tables, wanted)
    parts = []
    for path in files:
        if path in tables:
            parts.append(_from_table(path, tables[path], chosen[path], bool(wanted), notes))
        else:
            parts += _read(path, wanted, notes)
    if absent := [name for name in drop if not any(name in part.dropped for part in parts)]:
        raise ValueError(f"no table has a column {quoted(absent)} to drop")
    return parts


def view_names(parts: list[Part]) -> list[str]:
    """The file names without extensions, or the paths as given if two would be the same."""
    stems = {part.file: Path(Path(part.file).name.removesuffix(".gz")).stem for part in parts}
    if len(set(stems.values())) < len(stems):
        stems = {file: file for file in stems}
    return [stems[part.file] + (f":{part.name}" if part.name else "") for part in parts]


def _read(path: Path, wanted: list[str], notes: list[str]) -> list[Part]:
    ending = check_file(path, BIO)
    if ending in BIO:
        return _read_bio(path, ending, wanted)
    data = load_file(path)
    for name, view in zip(data.view_names, data.views, strict=True):
        if 0 in view.shape:
            raise ValueError(f"{path}: {name} is empty, its shape is {view.shape}")
    ids, id_name = None, ""
    if ending == ".npz":
        ids, id_name = _ids_of_npz(path, wanted, data.views[0].shape[0])
    if wanted and ids is None:
        raise ValueError(
            f"{path} has no ids, so --id cannot match it: leave --id out to match by order, or "
            "save it as a table"
        )
    if data.labels.size:
        notes.append(f"{path} also holds labels, which are not used")
    several = len(data.views) > 1
    return [
        Part(str(path), name if several else "", view, ids, id_name)
        for name, view in zip(data.view_names, data.views, strict=True)
    ]


def _ids_of_npz(path: Path, wanted: list[str], n: int) -> tuple[list[str] | None, str]:
    for name, value in read_file(path).items():
        asked = name in wanted if wanted else is_id_name(name)
        if asked and getattr(value, "shape", None) == (n,):
            return as_ids(value.tolist()), name
    return None, ""


def _read_bio(path: Path, ending: str, wanted: list[str]) -> list[Part]:
    package, read = ("anndata", "read_h5ad") if ending == ".h5ad" else ("mudata", "read_h5mu")
    with own_warnings():
        warnings.simplefilter("ignore")  # both warn of future changes that do not concern the user
        module = require(package, "bio", path.name)
    check_size(path, ending)
    try:
        with own_warnings():
            warnings.simplefilter("ignore")
            data = getattr(module, read)(path)
    except Exception as error:  # a damaged file may raise any exception
        raise ValueError(f"{path} cannot be read by {package}: {one_line(error)}") from error
    parts = []
    for name, one in {"": data}.items() if ending == ".h5ad" else data.mod.items():
        here = f"{path}:{name}" if name else str(path)
        if one.X is None or 0 in one.shape:
            raise ValueError(f"{here} has no X, or an empty X: there is nothing to cluster")
        matrix = check_sparse(one.X, here) if sparse.issparse(one.X) else np.asarray(one.X)
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"{here}: X holds {matrix.dtype} values: convert them to numbers")
        column = next((name for name in wanted if name in one.obs), None)
        values = one.obs_names if column is None else one.obs[column]
        ids, id_name = as_ids(list(values)), column or "obs_names"
        parts.append(Part(str(path), name, _floats(matrix), ids, id_name, list(one.var_names)))
    if not parts:
        raise ValueError(f"{path} holds no modality")
    return parts


def _floats(matrix: Any) -> Any:
    if sparse.issparse(matrix):
        return sparse.csr_array(matrix, dtype=float)
    return np.ascontiguousarray(matrix, dtype=float)


def _read_table(path: Path, drop: Sequence[str], header: bool | None, notes: list[str]) -> Table:
    columns = read_file(path, header)
    nameless = list(columns) == [f"column{j}" for j in range(1, len(columns) + 1)]
    if header is None:
        _note_first_row(path, list(columns), nameless, notes)
    dropped = [name for name in drop if name in columns]
    columns = {name: column for name, column in columns.items() if name not in dropped}
    return Table(columns, dropped, nameless)


def _from_table(
    path: Path, table: Table, id_name: str | None, asked: bool, notes: list[str]
) -> Part:
    columns = table.columns
    ids = None if id_name is None else as_ids(columns[id_name])
    features = {
        name: column
        for name, column in columns.items()
        if name != id_name and not numbers_rows(name, column)
    }
    if ids == [] or (features and len(next(iter(features.values()))) == 0):
        raise ValueError(f"{path} holds no samples")
    if not features:
        raise ValueError(f"{path} has no columns besides {quoted(columns)}: it holds no features")
    numbers = {name: as_numbers(column) for name, column in features.items()}
    if words := [name for name, column in numbers.items() if column is None]:
        raise ValueError(_text_error(path, features, words, next(iter(columns)), asked))
    matrix = np.column_stack([column for column in numbers.values() if column is not None])
    _note_columns(path, matrix, list(features), ids, notes)
    id_name = "id" if table.nameless else id_name or ""
    return Part(str(path), "", matrix, ids, id_name, list(features), table.dropped)


def _text_error(
    path: Path, features: dict[str, Sequence[Any]], words: list[str], first: str, asked: bool
) -> str:
    name = words[0]
    found = list(dict.fromkeys(str(v) for v in features[name] if as_numbers([v]) is None))
    shown = ", ".join(repr(value) for value in found[:3]) + ", ..." * (len(found) > 3)
    if all(as_numbers([value.replace(",", ".")]) is not None for value in found):
        return (
            f"{path}: column {name!r} has commas in its numbers ({found[0]!r}): write decimals "
            "with a point"
        )
    told = f"{path}: column {name!r} holds text ({shown})"
    if len(words) > 1:
        told = f"{path}: {len(words)} columns hold text, {quoted(words)} ({name!r}: {shown})"
    flags = " ".join(f"--drop {shlex.quote(word)}" for word in words[:5]) + " ..." * (
        len(words) > 5
    )
    advice = f"{told}: leave it out with {flags}, or encode it as numbers"
    if len(words) > 1:
        advice = f"{told}: leave them out with {flags}, or encode them as numbers"
    ids = as_ids(features[name])
    if name == first and len(ids) > len(set(ids)) > len(ids) / 2:
        advice += f"; ids would all have to be different, but {first_repeated(ids)}"
    different = [word for word in words if not asked and may_be_ids(features[word])]
    if different:
        advice += f"; if {different[0]!r} is the id, use --id {shlex.quote(different[0])}"
    return advice


def _note_first_row(path: Path, names: list[str], nameless: bool, notes: list[str]) -> None:
    if nameless:
        notes.append(f"{path}: the first row is read as a sample; if it is names, use --header yes")
    elif (
        names[0]
        and not is_id_name(names[0])
        and any(as_numbers([name]) is not None for name in names)
    ):
        notes.append(f"{path}: the first row is read as names; if it is a sample, use --header no")


def _note_columns(
    path: Path, matrix: Any, names: list[str], ids: list[str] | None, notes: list[str]
) -> None:
    for name in names:
        if name.lower() in LABEL_NAMES and name.lower() != "y":
            notes.append(
                f"{path}: column {name!r} is used like any other; if it holds known classes, leave "
                f"it out: --drop {shlex.quote(name)}"
            )
    told = [j for j, name in enumerate(names) if is_like_id(name) and all_whole(matrix[:, j])]
    for name in (names[j] for j in told):
        notes.append(
            f"{path}: column {name!r} is used as a feature; if it is the id, use --id "
            f"{shlex.quote(name)}, otherwise leave it out: --drop {shlex.quote(name)}"
        )
    if 0 in told or ids is not None or len(names) == 1:
        return
    if len(matrix) > 2 and may_be_ids(matrix[:, 0]):
        notes.append(
            f"{path}: the first column, {names[0]!r}, holds a different whole number in every row "
            f"and is used as a feature; if it is the id, use --id {shlex.quote(names[0])}"
        )
