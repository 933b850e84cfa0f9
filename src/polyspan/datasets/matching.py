"""Several files, one set of samples: views matched by an id column, or by order.

The id column of a table is the one that ``id`` names; without it the first column, if its name
says so (id, sample, patient_id, name, ...) or if it holds words that are all different; or another
column whose name says so, if its values are all different; or the index that pandas wrote. AnnData
and MuData have their obs_names. If every view has ids the samples are matched by them, otherwise by
order, which needs the same number of rows.
"""

import re
import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from polyspan.datasets.files import (
    LABEL_NAMES,
    TABLES,
    as_numbers,
    check_file,
    is_id_name,
    is_missing,
    load_file,
    quoted,
    read_file,
)
from polyspan.inputs.optional import require

BIO = (".h5ad", ".h5mu")
ROW_NUMBERS = re.compile(r"|index|Unnamed: \d+(\.\d+)*")  # columns that may just count the rows


@dataclass(frozen=True, repr=False, eq=False)
class MatchedViews:
    """Views of the same samples in the same order, and how they came together.

    Attributes
    ----------
    views : list of (n_samples, n_features) arrays or sparse arrays
        One matrix per view, samples in rows, float64.
    view_names : list of str
        The file's name without its ending; ``file:view`` where a file holds several.
    files : list of str
        The file of each view, as given.
    rows : list of int
        Rows of each view in its file.
    ids : list of str or None
        The samples; None when no file has ids.
    id_name : str
        Name of the id column, of the first file that has one; "" when there is none.
    matched_by : str
        "id" or "order".
    lacking : dict of str to list of str
        By view, the samples that it lacks, among all samples of all files; only views that do.
    dropped : list of str
        Samples that were left out because they lack a view.
    notes : list of str
        What a person should know: sentences.
    """

    views: list[Any]
    view_names: list[str]
    files: list[str]
    rows: list[int]
    ids: list[str] | None
    id_name: str
    matched_by: str
    lacking: dict[str, list[str]] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        shapes = zip(self.view_names, self.views, strict=True)
        words = ", ".join(f"{name} {view.shape[1]}" for name, view in shapes)
        n = self.views[0].shape[0]
        return f"MatchedViews({n} samples by {self.matched_by}, {len(self.views)} views ({words}))"


def load_views(
    paths: Sequence[str | Path],
    *,
    id: str | Sequence[str] = (),
    drop: Sequence[str] = (),
    missing: str = "fail",
    header: bool | None = None,
) -> MatchedViews:
    r"""Load views from several files and match their samples.

    This is how `polyspan fit` reads; the messages name its options, which are called the same here.

    Parameters
    ----------
    paths : sequence of str or Path
        Tables (.csv, .tsv, .parquet) and matrices (.npy, .mtx) are one view each, samples in rows.
        .npz and .mat may hold several, see `load_file`; labels in them are not used. AnnData
        (.h5ad) is one view, its X; MuData (.h5mu) one per modality: extra ``polyspan[bio]``.
    id : str or sequence of str, optional
        Name of the id column, or names where files differ. Without it see the notes.
    drop : sequence of str, optional
        Columns to leave out, of every table that has them.
    missing : {"fail", "drop", "keep"}, default="fail"
        When samples lack a view: raise an error that says which, leave them out, or keep them with
        rows of NaN. A row without any value counts as lacking.
    header : bool, optional
        .csv and .tsv: whether the first row holds names; see `load_file`.

    Returns
    -------
    MatchedViews
        In the order of the first file.

    Notes
    -----
    The id column of a table is its first one if it is called id, sample, sample_id, subject,
    patient, cell, barcode, name, ... or if it holds words that are all different. Otherwise it is
    a column anywhere that is called so, or ``..._id`` in all tables, if its values are all
    different, words or whole numbers; or else the index that pandas wrote, unless that only counts
    the rows. Row numbers are never a feature. In .npz it is a vector of such a name. AnnData and
    MuData have obs_names. If every view has ids they match the samples; otherwise their order does.

    Examples
    --------
    >>> import tempfile
    >>> from polyspan.datasets import load_views
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     look, sound = Path(folder, "look.csv"), Path(folder, "sound.csv")
    ...     _ = look.write_text("id,size,legs\nwren,1,2\nfox,30,4\nbee,0.1,6\n")
    ...     _ = sound.write_text("id,pitch\nbee,9\nwren,7\nbat,20\n")
    ...     data = load_views([look, sound], missing="drop")
    >>> data
    MatchedViews(2 samples by id, 2 views (look 2, sound 1))
    >>> data.ids, data.lacking
    (['wren', 'bee'], {'look': ['bat'], 'sound': ['fox']})
    """
    if missing not in ("fail", "drop", "keep"):
        raise ValueError(f"missing must be 'fail', 'drop' or 'keep'; got {missing!r}")
    wanted = [id] if isinstance(id, str) else list(id)
    notes: list[str] = []
    files = check_paths([Path(path) for path in paths])
    tables = {
        path: _read_table(path, drop, header, notes)
        for path in files
        if check_file(path, BIO) in TABLES
    }
    chosen = _id_columns(tables, wanted)
    parts = []
    for path in files:
        if path in tables:
            parts.append(_from_table(path, tables[path], chosen[path], bool(wanted), notes))
        else:
            parts += _read(path, wanted, notes)
    if absent := [name for name in drop if not any(name in part.dropped for part in parts)]:
        raise ValueError(f"no table has a column {quoted(absent)} to drop")
    names = _view_names(parts)
    parts = parts if wanted else _without_row_numbers(parts)
    if all(part.ids is not None for part in parts):
        samples, places, matched_by = *_by_id(parts, names, missing == "keep"), "id"
    else:
        samples, places, matched_by = *_by_order(parts, names, notes), "order"
    lacking = {
        name: [samples[i] for i in np.flatnonzero(rows < 0)]
        for name, rows in zip(names, places, strict=True)
        if np.any(rows < 0)
    }
    whole = np.logical_and.reduce([rows >= 0 for rows in places])
    dropped = []
    if missing == "fail" and lacking:
        raise ValueError(
            f"{_told(lacking)}; say --missing drop to leave them out, which keeps the "
            f"{whole.sum()} samples of {len(samples)} that have every view"
        )
    if missing == "drop" and lacking:
        if not whole.any():
            raise ValueError(f"no sample has every view: {_told(lacking)}")
        dropped = [samples[i] for i in np.flatnonzero(~whole)]
        samples = [samples[i] for i in np.flatnonzero(whole)]
        places = [rows[whole] for rows in places]
    nowhere = np.logical_and.reduce([rows < 0 for rows in places])
    if nowhere.any():
        first = samples[int(np.flatnonzero(nowhere)[0])]
        raise ValueError(f"{nowhere.sum()} samples have no value in any view ({first}): drop them")
    named = matched_by == "id" or any(part.ids is not None for part in parts)
    views = [_take(part, rows, samples) for part, rows in zip(parts, places, strict=True)]
    id_name = next((part.id_name for part in parts if part.ids is not None), "")
    return MatchedViews(
        views,
        names,
        [part.file for part in parts],
        [part.matrix.shape[0] for part in parts],
        samples if named else None,
        id_name,
        matched_by,
        lacking,
        dropped,
        notes,
    )


class _Part(NamedTuple):
    """One view as it is in its file."""

    file: str
    name: str  # of the view in the file; "" when it is the only one
    matrix: Any
    ids: list[str] | None = None
    id_name: str = ""
    columns: Sequence[str] = ()
    dropped: Sequence[str] = ()


class _Table(NamedTuple):
    """A table as it is in its file, without the columns to drop."""

    columns: dict[str, Sequence[Any]]
    dropped: list[str]
    nameless: bool  # the file has no names of columns


# --- Reading. ---


def check_paths(paths: list[Path]) -> list[Path]:
    """Refuse files that are not there, or whose kind is unknown, or that are named twice."""
    if not paths:
        raise ValueError("name at least one file")
    for path in paths:
        if path.suffix.lower() in (".xlsx", ".xls", ".ods"):
            raise ValueError(f"{path} is a spreadsheet: save its sheet as CSV first")
        if "=" in path.name and not path.exists():
            raise FileNotFoundError(f"there is no file {path}: is it a parameter? --set {path}")
        check_file(path, BIO)
    real = [path.resolve() for path in paths]
    if twice := [str(path) for path, one in zip(paths, real, strict=True) if real.count(one) > 1]:
        raise ValueError(f"{twice[0]} is given twice: name every file once")
    return paths


def _read(path: Path, wanted: list[str], notes: list[str]) -> list[_Part]:
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
        _Part(str(path), name if several else "", view, ids, id_name)
        for name, view in zip(data.view_names, data.views, strict=True)
    ]


def _ids_of_npz(path: Path, wanted: list[str], n: int) -> tuple[list[str] | None, str]:
    for name, value in read_file(path).items():
        asked = name in wanted if wanted else is_id_name(name)
        if asked and getattr(value, "shape", None) == (n,):
            return _as_ids(value.tolist()), name
    return None, ""


def _read_bio(path: Path, ending: str, wanted: list[str]) -> list[_Part]:
    package, read = ("anndata", "read_h5ad") if ending == ".h5ad" else ("mudata", "read_h5mu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both warn of their own future, which is not the user's
        module = require(package, "bio", path.name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data = getattr(module, read)(path)
    except Exception as error:  # a damaged file fails anywhere below, with any exception
        first = str(error).strip().split("\n")[0]
        raise ValueError(f"{path} cannot be read by {package}: {first}") from error
    parts = []
    for name, one in {"": data}.items() if ending == ".h5ad" else data.mod.items():
        here = f"{path}:{name}" if name else str(path)
        if one.X is None or 0 in one.shape:
            raise ValueError(f"{here} has no X, or an empty one: there is nothing to cluster")
        matrix = one.X if sparse.issparse(one.X) else np.asarray(one.X)
        if matrix.dtype.kind not in "biuf":
            raise ValueError(f"{here}: X holds {matrix.dtype} values: convert them to numbers")
        column = next((name for name in wanted if name in one.obs), None)
        values = one.obs_names if column is None else one.obs[column]
        ids, id_name = _as_ids(list(values)), column or "obs_names"
        parts.append(_Part(str(path), name, _floats(matrix), ids, id_name, list(one.var_names)))
    if not parts:
        raise ValueError(f"{path} holds no modality")
    return parts


def _read_table(path: Path, drop: Sequence[str], header: bool | None, notes: list[str]) -> _Table:
    columns = read_file(path, header)
    nameless = list(columns) == [f"column{j}" for j in range(1, len(columns) + 1)]
    if header is None:
        _note_first_row(path, list(columns), nameless, notes)
    dropped = [name for name in drop if name in columns]
    columns = {name: column for name, column in columns.items() if name not in dropped}
    return _Table(columns, dropped, nameless)


def _from_table(
    path: Path, table: _Table, id_name: str | None, asked: bool, notes: list[str]
) -> _Part:
    columns = table.columns
    ids = None if id_name is None else _as_ids(columns[id_name])
    features = {
        name: column
        for name, column in columns.items()
        if name != id_name and not _numbers_rows(name, column)
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
    return _Part(str(path), "", matrix, ids, id_name, list(features), table.dropped)


def _id_columns(tables: dict[Path, _Table], wanted: list[str]) -> dict[Path, str | None]:
    """The id column of every table, None where there is none; see the notes of `load_views`."""
    if wanted:
        return {path: _wanted_column(path, table, wanted) for path, table in tables.items()}
    first = {path: _first_column(table) for path, table in tables.items()}
    if None not in first.values() and len(set(first.values())) == 1:
        return first
    if (shared := _shared_column(list(tables.values()))) is not None:
        return dict.fromkeys(tables, shared)
    named = {
        path: _named_column(table) if first[path] is None else first[path]
        for path, table in tables.items()
    }
    rows = {path: _row_numbers(table) for path, table in tables.items()}
    if None in named.values() and None not in rows.values():
        # Not all have ids, but all have the row numbers of a table from which they may be taken.
        numbers = [_as_ids(tables[path].columns[name or ""]) for path, name in rows.items()]
        if not all(_counts(ids, in_order=True) for ids in numbers):
            return rows
    return {path: rows[path] if named[path] is None else named[path] for path in tables}


def _wanted_column(path: Path, table: _Table, wanted: list[str]) -> str:
    for name in wanted:
        if name in table.columns:
            return name
    raise ValueError(
        f"{path} has no column {quoted(wanted)} for --id; it has {quoted(table.columns)}"
    )


def _first_column(table: _Table) -> str | None:
    """The first column if its name says that it holds ids, or its words."""
    first = next(iter(table.columns), None)
    if first is None:
        return None
    if is_id_name(first) and not ROW_NUMBERS.fullmatch(first):
        return first
    words = as_numbers(table.columns[first]) is None
    return first if words and _all_different(table.columns[first]) else None


def _shared_column(tables: list[_Table]) -> str | None:
    """A column that all tables have, whose name says that it holds ids and whose values may be."""
    if not tables:
        return None
    names = [
        name
        for name in tables[0].columns
        if all(name in table.columns for table in tables) and not ROW_NUMBERS.fullmatch(name)
    ]
    known = sorted(filter(_is_like_id, names), key=is_id_name, reverse=True)
    for name in known:
        if all(_may_be_ids(table.columns[name]) for table in tables):
            return name
    return None


def _named_column(table: _Table) -> str | None:
    """A column of this table alone whose name says that it holds ids and whose values may be."""
    for name, column in table.columns.items():
        if is_id_name(name) and not ROW_NUMBERS.fullmatch(name) and _may_be_ids(column):
            return name
    return None


def _row_numbers(table: _Table) -> str | None:
    """The first column, if by its name it is the index that pandas wrote."""
    first = next(iter(table.columns), None)
    return first if first is not None and ROW_NUMBERS.fullmatch(first) else None


def _is_like_id(name: str) -> bool:
    return is_id_name(name) or name.lower().endswith("_id")


def _all_different(column: Sequence[Any]) -> bool:
    words = _as_ids(column)
    return len(set(words)) == len(words)


def _may_be_ids(column: Sequence[Any]) -> bool:
    """Whether a column holds words or whole numbers that are all there and all different."""
    numbers = as_numbers(column)
    if numbers is None:
        return _all_different(column) and not any(is_missing(value) for value in column)
    return _whole(numbers) and len(np.unique(numbers)) == len(numbers)


def _whole(numbers: Any) -> bool:
    return bool(np.all(np.isfinite(numbers)) and np.all(numbers == np.floor(numbers)))


def _numbers_rows(name: str, column: Sequence[Any]) -> bool:
    """Whether a column is the index of pandas, perhaps of rows that were chosen or shuffled."""
    if not ROW_NUMBERS.fullmatch(name) or as_numbers(column) is None:
        return False
    return _counts(_as_ids(column)) if name == "index" else _may_be_ids(column)


def _counts(ids: list[str], in_order: bool = False) -> bool:
    """Whether ids are the numbers from 0 or from 1 on, in any order or in theirs."""
    found = [list(map(str, range(k, len(ids) + k))) for k in (0, 1)]
    return ids in found if in_order else set(ids) in map(set, found)


def _as_ids(values: Sequence[Any]) -> list[str]:
    """Ids as words: 7, 7.0 and "7" are the same; what is missing is empty."""

    def word(value: Any) -> str:
        if is_missing(value):
            return ""
        if isinstance(value, float | np.floating):
            if np.isnan(value):
                return ""
            return str(int(value)) if value == int(value) else str(value)
        return (value.decode() if isinstance(value, bytes) else str(value)).strip()

    return [word(value) for value in values]


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
    ids = _as_ids(features[name])
    if name == first and len(ids) > len(set(ids)) > len(ids) / 2:
        advice += f"; as ids they would have to be all different, but {_twice(ids)}"
    different = [word for word in words if not asked and _may_be_ids(features[word])]
    if different:
        advice += f"; if {different[0]!r} is the id, say --id {shlex.quote(different[0])}"
    return advice


def _note_first_row(path: Path, names: list[str], nameless: bool, notes: list[str]) -> None:
    if nameless:
        notes.append(f"{path}: the first row is taken for a sample; if it is names: --header yes")
    elif (
        names[0]
        and not is_id_name(names[0])
        and any(as_numbers([name]) is not None for name in names)
    ):
        notes.append(f"{path}: the first row is taken for names; if it is a sample: --header no")


def _note_columns(
    path: Path, matrix: Any, names: list[str], ids: list[str] | None, notes: list[str]
) -> None:
    for name in names:
        if name.lower() in LABEL_NAMES and name.lower() != "y":
            notes.append(
                f"{path}: column {name!r} is used like any other; if it holds known classes, leave "
                f"it out: --drop {shlex.quote(name)}"
            )
    told = [j for j, name in enumerate(names) if _is_like_id(name) and _whole(matrix[:, j])]
    for name in (names[j] for j in told):
        notes.append(
            f"{path}: column {name!r} is used as a feature; if it is the id, say --id "
            f"{shlex.quote(name)}, otherwise leave it out: --drop {shlex.quote(name)}"
        )
    if 0 in told or ids is not None or len(names) == 1:
        return
    if len(matrix) > 2 and _may_be_ids(matrix[:, 0]):
        notes.append(
            f"{path}: the first column, {names[0]!r}, holds a different whole number in every row "
            f"and is used as a feature; if it is the id, say --id {shlex.quote(names[0])}"
        )


def _floats(matrix: Any) -> Any:
    if sparse.issparse(matrix):
        return sparse.csr_array(matrix, dtype=float)
    return np.ascontiguousarray(matrix, dtype=float)


def _view_names(parts: list[_Part]) -> list[str]:
    """The files' names without endings, or as given where two would be the same."""
    stems = {part.file: Path(Path(part.file).name.removesuffix(".gz")).stem for part in parts}
    if len(set(stems.values())) < len(stems):
        stems = {file: file for file in stems}
    return [stems[part.file] + (f":{part.name}" if part.name else "") for part in parts]


# --- Matching: for every view the row of each sample, -1 where there is none. ---


def _without_row_numbers(parts: list[_Part]) -> list[_Part]:
    """Forget the ids that only count the rows, unless all ids are of that kind and some do not."""

    def counts(part: _Part, in_order: bool = False) -> bool:
        if part.ids is None or not ROW_NUMBERS.fullmatch(part.id_name):
            return False
        return _counts(part.ids, in_order)

    alike = all(part.ids is not None and ROW_NUMBERS.fullmatch(part.id_name) for part in parts)
    if alike and not all(counts(part, in_order=True) for part in parts):
        return parts
    named = [part for part in parts if part.ids is not None and not counts(part)]
    shuffled = [part for part in parts if counts(part) and not counts(part, in_order=True)]
    if named and shuffled:
        one, other = shuffled[0], named[0]
        raise ValueError(
            f"{one.file} has no ids but row numbers in another order "
            f"({', '.join((one.ids or [])[:3])}, ...), which cannot be matched to the ids of "
            f"{other.file} ({other.id_name!r}): write the ids into a column of {one.file}, or say "
            f"with --id by which columns to match (--id '' is one without a name)"
        )
    return [
        part._replace(ids=None, id_name="") if counts(part, in_order=True) else part
        for part in parts
    ]


def _by_id(parts: list[_Part], names: list[str], keep: bool) -> tuple[list[str], list[Any]]:
    for part, name in zip(parts, names, strict=True):
        ids = part.ids or []
        if empty := [i for i, one in enumerate(ids, start=1) if not one]:
            raise ValueError(
                f"{part.file}: {len(empty)} samples have no id in column {part.id_name!r} "
                f"(the first is sample {empty[0]}): give every sample an id"
            )
        if len(set(ids)) < len(ids):
            raise ValueError(
                f"the ids of {name} in {part.file}, column {part.id_name!r}, must be all "
                f"different, but {_twice(ids)}"
            )
    samples = list(dict.fromkeys(one for part in parts for one in part.ids or []))
    places = []
    for part in parts:
        row = {one: i for i, one in enumerate(part.ids or [])}
        places.append(np.array([row.get(one, -1) for one in samples]))
    there = np.array(places) >= 0
    # To keep samples that lack views it is enough that chains of shared samples link all views.
    both = there.astype(float) @ there.T
    linked = connected_components(both, directed=False)[0] == 1 if keep else there.all(0).any()
    if not linked:
        heads = [
            f"{part.file} has {', '.join((part.ids or [])[:3])}"
            for part in {part.file: part for part in parts}.values()
        ]
        columns = set.intersection(*(set(part.columns) for part in parts))
        turned = "; the tables share column names: if those are the samples, turn the tables"
        what = "the files do not share ids" if keep else "no id is in every file"
        raise ValueError(
            f"{what}: {'; '.join(heads)}: check --id, or --drop the id columns to "
            f"match by order{turned * (len(columns) > 1)}"
        )
    for part, rows in zip(parts, places, strict=True):
        rows[(rows >= 0) & _rows_without_values(part.matrix)[rows]] = -1
    return samples, places


def _by_order(
    parts: list[_Part], names: list[str], notes: list[str]
) -> tuple[list[str], list[Any]]:
    lengths = [part.matrix.shape[0] for part in parts]
    named = [part for part in parts if part.ids is not None]
    bare = list(dict.fromkeys(part.file for part in parts if part.ids is None))
    if len(set(lengths)) > 1:
        told = ", ".join(f"{a} has {b}" for a, b in zip(names, lengths, strict=True))
        shapes = [part.matrix.shape for part in parts]
        advice = f"give every file an id column (none was recognised in {', '.join(bare)})"
        if any(a[0] == b[1] for a in shapes for b in shapes if a[0] != b[0]):
            sizes = ", ".join(f"{a} is {n} x {d}" for a, (n, d) in zip(names, shapes, strict=True))
            advice = f"samples must be in rows, and one seems to have them in columns: {sizes}"
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
            f"{', '.join(bare)} has no id column: its rows are taken to be the samples of "
            f"{named[0].file}, in that order"
        )
    samples = named[0].ids if named else None
    samples = samples or [str(i) for i in range(1, lengths[0] + 1)]
    places = [
        np.where(_rows_without_values(part.matrix), -1, np.arange(len(samples))) for part in parts
    ]
    return samples, places


def _rows_without_values(matrix: Any) -> Any:
    if sparse.issparse(matrix):  # what is not stored is a zero, a value
        return np.zeros(matrix.shape[0], dtype=bool)
    return np.isnan(matrix).all(axis=1)


def _take(part: _Part, rows: Any, samples: list[str]) -> Any:
    """The rows of a view in the order of the samples; NaN where the view lacks the sample."""
    here = rows >= 0
    matrix = part.matrix[rows[here]]
    values = matrix.data if sparse.issparse(matrix) else matrix
    if not np.isfinite(values).all():
        kept = [samples[i] for i in np.flatnonzero(here)]
        raise ValueError(_not_finite(part, matrix, kept))
    if here.all():
        return matrix
    full = np.full((len(rows), matrix.shape[1]), np.nan)
    full[here] = matrix.toarray() if sparse.issparse(matrix) else matrix
    return full


def _not_finite(part: _Part, matrix: Any, samples: list[str]) -> str:
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
    return (
        f"{where}: {len(i)} value{'s' * (len(i) > 1)} {'are' if len(i) > 1 else 'is'} {what}, in "
        f"{rows} row{'s' * (rows > 1)} and {columns} column{'s' * (columns > 1)} "
        f"({'; '.join(places)}{'; ...' * (len(i) > 3)}): fill them in, or leave the rows or the "
        "columns (--drop COLUMN) out"
    )


def _twice(ids: list[str]) -> str:
    first: dict[str, int] = {}
    for i, one in enumerate(ids, start=1):
        if one in first:
            return f"{one!r} is sample {first[one]} and sample {i}"
        first[one] = i
    return "they are"


def _told(lacking: dict[str, list[str]], most: int = 5) -> str:
    """Say which samples lack which view: how many, and the first."""
    told = [
        f"{len(samples)} lack {view} ({', '.join(samples[:most])}{', ...' * (len(samples) > most)})"
        for view, samples in lacking.items()
    ]
    n = len({one for samples in lacking.values() for one in samples})
    return f"{n} sample{'s' * (n > 1)} lack{'s' * (n == 1)} a view: {'; '.join(told)}"
