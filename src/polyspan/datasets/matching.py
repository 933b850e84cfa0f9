"""Several files, one set of samples: views matched by an id column, or by order.

The id column of a table is the one that ``id`` names; without it the first column, if its name
says so (id, sample, patient_id, name, ...) or if it holds words that are all different; or the
index that pandas wrote. AnnData and MuData have their obs_names. If every view has ids the samples
are matched by them, otherwise by order, which needs the same number of rows.
"""

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

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
from polyspan.datasets.optional import require

BIO = (".h5ad", ".h5mu")
ROW_NUMBERS = ("", "index")  # names of a first column that may just count the rows


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
    patient, cell, barcode, name, ... or if it holds words that are all different; or the index that
    pandas wrote, unless that only counts the rows. In .npz it is a vector of such a name. AnnData
    and MuData have obs_names. If every view has ids they match the samples; otherwise their order
    does.

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
    parts = [part for path in files for part in _read(path, wanted, drop, header, notes)]
    if absent := [name for name in drop if not any(name in part.dropped for part in parts)]:
        raise ValueError(f"no table has a column {quoted(absent)} to drop")
    names = _view_names(parts)
    parts = _without_row_numbers(parts)
    if all(part.ids is not None for part in parts):
        samples, places, matched_by = *_by_id(parts, names), "id"
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


def _read(
    path: Path, wanted: list[str], drop: Sequence[str], header: bool | None, notes: list[str]
) -> list[_Part]:
    ending = check_file(path, BIO)
    if ending in TABLES:
        return [_read_table(path, wanted, drop, header, notes)]
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


def _read_table(
    path: Path, wanted: list[str], drop: Sequence[str], header: bool | None, notes: list[str]
) -> _Part:
    columns = read_file(path, header)
    nameless = list(columns) == [f"column{j}" for j in range(1, len(columns) + 1)]
    if header is None:
        _note_first_row(path, list(columns), nameless, notes)
    dropped = [name for name in drop if name in columns]
    columns = {name: column for name, column in columns.items() if name not in dropped}
    id_name = _id_column(path, columns, wanted)
    ids = None if id_name is None else _as_ids(columns[id_name])
    features = {name: column for name, column in columns.items() if name != id_name}
    if ids == [] or (features and len(next(iter(features.values()))) == 0):
        raise ValueError(f"{path} holds no samples")
    if not features:
        raise ValueError(f"{path} has no columns besides {quoted(columns)}: it holds no features")
    numbers = {name: as_numbers(column) for name, column in features.items()}
    if words := [name for name, column in numbers.items() if column is None]:
        raise ValueError(_text_error(path, features, words, next(iter(columns))))
    matrix = np.column_stack([column for column in numbers.values() if column is not None])
    _note_columns(path, matrix, list(features), ids, notes)
    id_name = "id" if nameless else id_name or ""
    return _Part(str(path), "", matrix, ids, id_name, list(features), dropped)


def _id_column(path: Path, columns: dict[str, Sequence[Any]], wanted: list[str]) -> str | None:
    if wanted:
        for name in wanted:
            if name in columns:
                return name
        raise ValueError(
            f"{path} has no column {quoted(wanted)} for --id; it has {quoted(columns)}"
        )
    first = next(iter(columns), None)
    if first is None:
        return None
    if first in ROW_NUMBERS or is_id_name(first):
        return first
    words = _as_ids(columns[first])
    return first if as_numbers(columns[first]) is None and len(set(words)) == len(words) else None


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
    path: Path, features: dict[str, Sequence[Any]], words: list[str], first: str
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
    if name == first and len(set(ids)) > len(ids) / 2:
        advice += f"; as ids they would have to be all different, but {_twice(ids)}"
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
    column = matrix[:, 0]
    whole = np.all(column == np.floor(column))  # False where NaN
    if ids is None and len(names) > 1 and whole and len(np.unique(column)) == len(column) > 2:
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

    def counts(part: _Part) -> bool:
        n = part.matrix.shape[0]
        starts = (map(str, range(k, n + k)) for k in (0, 1))
        return part.id_name in ROW_NUMBERS and any(part.ids == list(start) for start in starts)

    alike = all(part.ids is not None and part.id_name in ROW_NUMBERS for part in parts)
    if alike and not all(counts(part) for part in parts):
        return parts
    return [part._replace(ids=None, id_name="") if counts(part) else part for part in parts]


def _by_id(parts: list[_Part], names: list[str]) -> tuple[list[str], list[Any]]:
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
        empty_rows = _rows_without_values(part.matrix)
        rows = np.array([row.get(one, -1) for one in samples])
        rows[(rows >= 0) & empty_rows[rows]] = -1
        places.append(rows)
    shared = set.intersection(*(set(part.ids or []) for part in parts))
    if not shared:
        heads = [
            f"{part.file} has {', '.join((part.ids or [])[:3])}"
            for part in {part.file: part for part in parts}.values()
        ]
        columns = set.intersection(*(set(part.columns) for part in parts))
        turned = "; the tables share column names: if those are the samples, turn the tables"
        raise ValueError(
            f"no id is in every file: {'; '.join(heads)}: check --id, or --drop the id columns to "
            f"match by order{turned * (len(columns) > 1)}"
        )
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
