"""Read views from several files and match their samples by an id column, or by order.

`polyspan.io.ids` finds the id column of a table; AnnData and MuData have their obs_names.
`polyspan.io.align` matches the samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyspan.atomic import check_name
from polyspan.io.align import Labels, align, spelling_hint, trimmed
from polyspan.io.filling import check_imputing, describe, fill
from polyspan.io.in_memory import check_keys, name_sources
from polyspan.io.parts import Part, Reading, read_parts, view_names, without_row_numbers
from polyspan.io.readers import BIO, check_file, place
from polyspan.io.tables import DUPLICATES
from polyspan.runtime.messages import first_few, plural, setting


@dataclass(frozen=True, repr=False, eq=False)
class MatchedViews:
    """Views of the same samples in the same order, and how they were matched.

    Attributes
    ----------
    views : list of (n_samples, n_features) arrays or sparse arrays
        One matrix per view, samples in rows, float64.
    view_names : list of str
        The file name without its extension; ``file:view`` where a file holds several.
    files : list of str
        The file of each view, as given.
    rows : list of int
        Number of rows of each view in its file.
    ids : list of str or None
        The ids of the samples; None if no file has ids.
    id_name : str
        Name of the id column in the first file that has one; "" if there is none.
    matched_by : str
        "id" or "order".
    lacking : dict of str to list of str
        For each view that lacks samples, those samples, out of all samples in all files.
    dropped : list of str
        Samples that were left out because they lack a view.
    notes : list of str
        Sentences to show to the user.
    columns : list of list of str
        Names of the features of each view; empty for a view without.
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
    columns: list[list[str]] = field(default_factory=list)

    def __repr__(self) -> str:
        shapes = zip(self.view_names, self.views, strict=True)
        words = ", ".join(f"{name} {view.shape[1]}" for name, view in shapes)
        n = self.views[0].shape[0]
        count = plural(len(self.views), "view")
        return f"MatchedViews({n} samples by {self.matched_by}, {count} ({words}))"


def load_views(
    paths: Any,
    *,
    id: str | Sequence[str] = (),
    id_trim: str | Sequence[str] = (),
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    missing: str = "fail",
    header: bool | None = None,
    samples: str | None = None,
    duplicates: str = "fail",
    impute: str = "none",
    max_missing: float = 0.2,
    obsm: Sequence[str] = (),
    layers: Sequence[str] = (),
) -> MatchedViews:
    r"""Load views from several files, or from tables in memory, and match their samples.

    `polyspan fit` reads files this way; its options have the same names.

    Parameters
    ----------
    paths : list of str or Path, or of tables, AnnData or MuData; or a dict of tables
        The sources of the views; one alone need not be in a list. Tables in memory are those of
        pandas, whose index holds the ids unless it is 0, 1, ..., n - 1, polars and pyarrow.
        Of files, tables (.csv, .tsv, .txt, .parquet) and matrices (.npy, .mtx) are one view each.
        Every sheet of .xlsx is a view, and every matrix or data frame in R's .rds and .rda.
        .npz and .mat may hold several, see `load_file`; labels in them are not used. AnnData
        (.h5ad) is one view, its X; MuData (.h5mu) is one view per modality; both need the extra
        ``polyspan[bio]``, and ``obsm`` and ``layers`` choose other matrices of theirs.
    id : str or sequence of str, optional
        Name of the id column, or several names if the files differ. By default, see the notes.
    id_trim : str or sequence of str, optional
        How to trim ids that files spell differently, before they are matched: ``"case"`` ignores
        capitals, ``"zeros"`` removes zeros in front, and any other word is a regular expression
        whose matches are removed, such as ``"-01A$"``. A note says how many ids then agree.
    drop : sequence of str, optional
        Columns to leave out of every table that has them.
    keep : sequence of str, optional
        Columns to use although their names say that they hold known classes (label, subtype,
        diagnosis, ...); without this or ``drop`` they are refused.
    missing : {"fail", "drop", "keep"}, default="fail"
        When samples lack a view: raise an error that says which, leave them out, or keep them with
        rows of NaN. A row without any value counts as missing.
    header : bool, optional
        Text and .xlsx: whether the first row holds names; see `load_file`.
    samples : {"rows", "columns"}, optional
        Where the samples are. With ``"columns"`` the first column of a table names the features,
        unless ``id`` does, and the names of the other columns are the ids. By default they are in
        rows, and tables that seem to have them in columns are refused.
    duplicates : {"fail", "mean", "first", "drop"}, default="fail"
        Features of one name, such as probes of one gene: raise an error, use their mean (of the
        values that are not missing), the first of them, or none of them.
    impute : {"none", "median", "knn"}, default="none"
        Fill in scattered missing values of every file; see `polyspan.inputs.impute`.
    max_missing : float, default=0.2
        With ``impute``: features that lack more than this share of their values are left out;
        samples that then lack more than this share count as lacking the view, see ``missing``.
    obsm, layers : sequence of str, optional
        Keys of AnnData and MuData: if any are named, these matrices are the views, and X is not,
        unless it is named as the layer ``"X"``. In a MuData, ``"rna:counts"`` is a key of one
        modality, and ``"counts"`` that of every modality that has it.

    Returns
    -------
    MatchedViews
        Samples in the order of the first file.

    Notes
    -----
    The id column of a table is its first column if that is called id, sample, sample_id, subject,
    patient, cell, barcode, name, ... or if it holds words that are all different. Otherwise it is
    any column with such a name, or named ``..._id`` in all tables, if its values are words or whole
    numbers and all different; or else the index written by pandas, unless that only numbers
    the rows. Row numbers are never a feature. In .npz it is a vector with such a name. AnnData and
    MuData have obs_names. If every view has ids, samples are matched by id; otherwise by order.

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

    Tables in memory, of which one lacks a sample:

    >>> import pandas as pd
    >>> look = pd.DataFrame({"legs": [2.0, 4, 6]}, index=["wren", "fox", "bee"])
    >>> sound = pd.DataFrame({"pitch": [9.0, 7]}, index=["bee", "wren"])
    >>> load_views({"look": look, "sound": sound}, missing="drop").ids
    ['wren', 'bee']
    """
    if missing not in ("fail", "drop", "keep"):
        raise ValueError(f"missing must be 'fail', 'drop' or 'keep'; got {missing!r}")
    if samples not in (None, "rows", "columns"):
        raise ValueError(f"samples must be 'rows', 'columns' or None; got {samples!r}")
    if duplicates not in DUPLICATES:
        raise ValueError(f"duplicates must be one of {', '.join(DUPLICATES)}; got {duplicates!r}")
    check_imputing(impute, max_missing)
    wanted = [id] if isinstance(id, str) else list(id)
    notes: list[str] = []
    files, held = name_sources(paths)
    if len(held) < len(files) or not files:
        check_paths([path for path in files if path not in held])
    how = Reading(wanted, drop, keep, header, samples, obsm, layers, duplicates)
    check_keys(obsm, layers, files, held)
    parts = read_parts(files, how, notes, held)
    names = view_names(parts, held)
    parts = parts if wanted or samples == "columns" else without_row_numbers(parts)
    parts = trim_ids(parts, [id_trim] if isinstance(id_trim, str) else list(id_trim), notes)
    if impute != "none":
        parts = [
            _filled(*one, impute, max_missing, notes) for one in zip(parts, names, strict=True)
        ]
    sparse = "" if impute == "none" else _too_sparse(max_missing)
    return match_parts(parts, names, missing, notes, sparse)


def trim_ids(parts: list[Part], trims: Sequence[str], notes: list[str]) -> list[Part]:
    """The views with their ids trimmed; a note says how many agree before and after."""
    if not trims:
        return parts
    if all(part.ids is None for part in parts):
        raise ValueError(f"{setting('id_trim')} trims ids, but none were found: leave it out")
    after = [
        part if part.ids is None else part._replace(ids=trimmed(part.ids, trims)) for part in parts
    ]
    counts = [
        len(set.intersection(*(set(part.ids or ()) for part in views))) for views in (parts, after)
    ]
    notes.append(
        f"{counts[0]} ids are in every view as written, {counts[1]} with "
        f"{setting('id_trim', *trims)}"
    )
    return after


def match_parts(
    parts: list[Part], names: list[str], missing: str, notes: list[str], also: str = ""
) -> MatchedViews:
    """Match the samples of views that are read; ``missing`` as in `load_views`.

    ``also`` says in an error who else is taken to lack a view.
    """
    titles = [place(Path(part.file), part.name) for part in parts]
    columns = set.intersection(*(set(part.columns) for part in parts))
    use = setting("samples", "columns")
    turned = f"; the tables share column names: if those are the samples, use {use}"
    found = align(
        {
            title: Labels(part.ids, f"column {part.id_name!r}")
            for title, part in zip(titles, parts, strict=True)
        },
        f"write the ids in the same way, or name their columns with {setting('id')}"
        + turned * (len(columns) > 1),
        chains=missing == "keep",
    )
    if found.rows is None:
        _check_lengths(parts, names)
        notes += [found.note] * bool(found.note)
    n = parts[0].matrix.shape[0]
    every = found.samples or [str(i) for i in range(1, n + 1)]
    places = [
        np.where(rows >= 0, np.where(_rows_without_values(part.matrix)[rows], -1, rows), -1)
        for part, rows in zip(parts, found.rows or [np.arange(n)] * len(parts), strict=True)
    ]
    matched_by = "order" if found.rows is None else "id"
    lacking = {
        name: [every[i] for i in np.flatnonzero(rows < 0)]
        for name, rows in zip(names, places, strict=True)
        if np.any(rows < 0)
    }
    if missing == "fail" and lacking and matched_by == "id":
        hint = spelling_hint([part.ids or [] for part in parts]).removesuffix("; ")
        also += f"; {hint}" * bool(hint)
    kept = _kept(every, places, lacking, missing, also)
    dropped = [every[i] for i in np.flatnonzero(~kept)]
    every = [every[i] for i in np.flatnonzero(kept)]
    places = [rows[kept] for rows in places]
    nowhere = np.logical_and.reduce([rows < 0 for rows in places])
    if nowhere.any():
        first = every[int(np.flatnonzero(nowhere)[0])]
        raise ValueError(f"{nowhere.sum()} samples have no value in any view ({first}): drop them")
    named = matched_by == "id" or any(part.ids is not None for part in parts)
    views = [_take_rows(part, rows, every) for part, rows in zip(parts, places, strict=True)]
    id_name = next((part.id_name for part in parts if part.ids is not None), "")
    return MatchedViews(
        views,
        names,
        [part.file for part in parts],
        [part.matrix.shape[0] for part in parts],
        every if named else None,
        id_name,
        matched_by,
        lacking,
        dropped,
        notes,
        [list(part.columns) for part in parts],
    )


def _check_lengths(parts: list[Part], names: list[str]) -> None:
    """Refuse views of different lengths, whose rows cannot be the same samples."""
    shapes = [part.matrix.shape for part in parts]
    if len({n for n, _ in shapes}) == 1:
        return
    bare = ", ".join(dict.fromkeys(part.file for part in parts if part.ids is None))
    told = ", ".join(f"{name} has {n}" for name, (n, _) in zip(names, shapes, strict=True))
    advice = f"give every file an id column (none was found in {bare})"
    if any(a[0] == b[1] for a in shapes for b in shapes if a[0] != b[0]):
        sizes = ", ".join(f"{a} is {n} x {d}" for a, (n, d) in zip(names, shapes, strict=True))
        advice = f"samples must be in rows, but one view seems to have them in columns: {sizes}"
    raise ValueError(
        f"samples are matched by order, which needs the same number of rows, but {told}: {advice}"
    )


def _filled(part: Part, name: str, how: str, max_missing: float, notes: list[str]) -> Part:
    """A view with its scattered missing values filled in; sparse ones have none to fill in."""
    if sparse.issparse(part.matrix):
        return part
    found = fill(part.matrix, how, max_missing)
    if not found.kept.any():
        raise ValueError(
            f"{part.file}: every column lacks more than {max_missing:.0%} of its values: raise "
            f"{setting('max_missing')}, or leave the file out"
        )
    samples = part.ids or [str(i) for i in range(1, part.matrix.shape[0] + 1)]
    columns = list(part.columns) or [str(j) for j in range(1, part.matrix.shape[1] + 1)]
    told = describe(found, f"view {name}", how, max_missing, columns, samples)
    notes += [told] * bool(told)
    left = [columns[j] for j in np.flatnonzero(found.kept)] if part.columns else ()
    return part._replace(matrix=found.matrix, columns=left)


def _kept(
    samples: list[str], places: list[Any], lacking: dict[str, list[str]], missing: str, why: str
) -> Any:
    """Which samples to keep if some lack a view; an error if ``missing`` does not allow it."""
    whole = np.logical_and.reduce([rows >= 0 for rows in places])
    if missing == "fail" and lacking:
        raise ValueError(
            f"{_tell_lacking(lacking)}{why}; use {setting('missing', 'drop')} to leave them out, "
            f"which keeps the {whole.sum()} of {len(samples)} samples that have every view, or "
            f"{setting('missing', 'keep')}"
        )
    if missing == "drop" and lacking and not whole.any():
        raise ValueError(f"no sample has every view: {_tell_lacking(lacking)}")
    return whole if missing == "drop" else np.full(len(samples), True)


def _too_sparse(max_missing: float) -> str:
    filled = setting("impute")
    return f"; with {filled}, that is also who lacks more than {max_missing:.0%} of its values"


def check_paths(paths: list[Path]) -> list[Path]:
    """Refuse files that do not exist, have an unknown format, or are given twice."""
    if not paths:
        raise ValueError("name at least one file")
    for path in paths:
        check_name(path)
        check_file(path, BIO)
    real = [path.resolve() for path in paths]
    if twice := [str(path) for path, one in zip(paths, real, strict=True) if real.count(one) > 1]:
        raise ValueError(f"{twice[0]} is given twice: name every file once")
    return paths


def _rows_without_values(matrix: Any) -> Any:
    if sparse.issparse(matrix):  # an entry that is not stored is zero, which is a value
        return np.zeros(matrix.shape[0], dtype=bool)
    return np.isnan(matrix).all(axis=1)


def _take_rows(part: Part, rows: Any, samples: list[str]) -> Any:
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
            f"fill them in with {setting('impute', 'median')} or {setting('impute', 'knn')}, which "
            f"leaves out what lacks more than {setting('max_missing', 0.2)} of its values"
        )
    return (
        f"{where}: {plural(len(i), 'value is', 'values are')} {what}, in {plural(rows, 'row')} and "
        f"{plural(columns, 'column')} "
        f"({'; '.join(places)}{'; ...' * (len(i) > 3)}): {advice}, or leave out the rows or "
        f"the columns ({setting('drop', ['COLUMN'])})"
    )


def _tell_lacking(lacking: dict[str, list[str]], most: int = 5) -> str:
    """Say which samples lack which view: how many, and the first few."""
    told = [
        f"{plural(len(samples), 'lacks', 'lack')} {view} ({first_few(samples, most)})"
        for view, samples in lacking.items()
    ]
    n = len({one for samples in lacking.values() for one in samples})
    return f"{plural(n, 'sample lacks', 'samples lack')} a view: {'; '.join(told)}"
