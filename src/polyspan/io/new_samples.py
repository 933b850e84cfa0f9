"""Read files of new samples for a fitted model, in its views and its features.

Nothing is taken from the new samples themselves: missing values are filled in by the medians of the
fitted ones, and columns that the model does not know are left out.
"""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from polyspan.io.filling import check_imputing
from polyspan.io.in_memory import check_keys
from polyspan.io.matched import MatchedViews, check_paths, match_parts, trim_ids
from polyspan.io.parts import Part, Reading, read_parts, view_names, without_row_numbers
from polyspan.io.samples import KnownView
from polyspan.runtime.messages import plural, quoted, setting


def load_new_views(
    files: Mapping[Path, str] | Sequence[Path],
    known: Sequence[KnownView],
    how: Reading,
    *,
    id_trim: Sequence[str] = (),
    missing: str = "keep",
    impute: str = "none",
    max_missing: float = 0.2,
) -> MatchedViews:
    r"""Load new samples from files, with the views and features of a fitted model.

    Parameters
    ----------
    files : mapping of path to str, or sequence of paths
        The files; in a mapping, the name of the view in each, or "" where it is not told. A file
        without a name is the view that is called like it, or the only one whose features it has;
        otherwise the files are the views in their order, if there are as many.
    known : list of KnownView
        What the model was fitted on.
    how : Reading
        How to read tables.
    id_trim : sequence of str, optional
        How to trim ids; see `load_views`.
    missing : {"keep", "drop", "fail"}, default="keep"
        What to do with samples that lack a view; see `load_views`.
    impute : {"none", "median"}, default="none"
        Fill in scattered missing values by the medians of the fitted samples.
    max_missing : float, default=0.2
        With ``impute``: samples that lack more than this share of a view count as lacking it.

    Returns
    -------
    MatchedViews
        ``view_names`` are keys of ``known``, as text. Views that no file has are left out.

    Examples
    --------
    >>> import tempfile
    >>> known = [KnownView("look", 2, ["size", "legs"], None), KnownView("sound", 1, None, None)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "look.csv")
    ...     _ = path.write_text("id,legs,wings,size\nbat,2,2,0.1\nant,6,0,0.01\n")
    ...     data = load_new_views([path], known, Reading())
    >>> data.views[0].tolist(), data.notes[0].split(": ")[1]
    ([[0.1, 2.0], [0.01, 6.0]], "1 column that the model was not fitted on is left out ('wings')")
    """
    check_imputing(impute, max_missing)
    paths, notes = [Path(one) for one in files], list[str]()
    check_paths(paths)
    check_keys(how.obsm, how.layers, paths, {})
    parts = read_parts(paths, how, notes)
    told = dict(files) if isinstance(files, Mapping) else {}
    found = _known_views(parts, {str(path): name for path, name in told.items()}, known)
    parts = parts if how.id or how.samples == "columns" else without_row_numbers(parts)
    parts = trim_ids(parts, id_trim, notes)
    parts = [_like(*one, notes) for one in zip(parts, found, strict=True)]
    if impute == "median":
        parts = [_filled(*one, max_missing, notes) for one in zip(parts, found, strict=True)]
    for part in parts:
        _check_whole(part)
    return match_parts(parts, [str(view.key) for view in found], missing, notes)


def _known_views(
    parts: list[Part], told: Mapping[str, str], known: Sequence[KnownView]
) -> list[KnownView]:
    """The fitted view that each part has the new samples of."""
    by_name = {str(view.key): view for view in known}
    own = view_names(parts)
    names = [
        f"{told[part.file]}:{part.name}".removesuffix(":") if told.get(part.file) else name
        for part, name in zip(parts, own, strict=True)
    ]
    names = [
        name if name in by_name or told.get(part.file) else _by_features(part, name, known)
        for part, name in zip(parts, names, strict=True)
    ]
    if len(parts) == len(known) and not any(told.values()) and not set(names) <= set(by_name):
        return list(known)
    if unknown := [name for name in names if name not in by_name]:
        file = next(part.file for part, name in zip(parts, names, strict=True) if name in unknown)
        told_so = shlex.quote(f"{next(iter(by_name))}={file}")
        raise ValueError(
            f"{file} is no view of the model as it is called ({unknown[0]!r}); it was fitted on "
            f"{quoted(by_name)}: say which one it is, as in {told_so}"
        )
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two files hold new samples of the view {twice[0]!r}: name one of them")
    return [by_name[name] for name in names]


def _by_features(part: Part, name: str, known: Sequence[KnownView]) -> str:
    """The only view whose features a file has, all of them; otherwise the name it has."""
    own = set(part.columns)
    found = [str(view.key) for view in known if view.columns and own.issuperset(view.columns)]
    return found[0] if len(found) == 1 else name


def _like(part: Part, view: KnownView, notes: list[str]) -> Part:
    """One view with the features of the fit, in their order."""
    if view.columns is None or not len(part.columns):
        if part.matrix.shape[1] != view.width:
            raise ValueError(
                f"{part.file} has {part.matrix.shape[1]} features, but the model was fitted on "
                f"{view.width} in the view {str(view.key)!r}: give the same ones in the same order"
            )
        return part
    place = {name: j for j, name in enumerate(part.columns)}
    if gone := [name for name in view.columns if name not in place]:
        raise ValueError(
            f"{part.file} lacks {len(gone)} of the {view.width} features of the view "
            f"{str(view.key)!r} ({quoted(gone, 3)}): give the same ones as to the fit"
        )
    known = set(view.columns)
    if extra := [name for name in part.columns if name not in known]:
        unknown = "that the model was not fitted on"
        count = plural(len(extra), f"column {unknown} is", f"columns {unknown} are")
        notes.append(f"{part.file}: {count} left out ({quoted(extra, 3)})")
    if list(part.columns) == view.columns:
        return part
    matrix = part.matrix[:, [place[name] for name in view.columns]]
    return part._replace(matrix=matrix, columns=view.columns)


def _filled(part: Part, view: KnownView, max_missing: float, notes: list[str]) -> Part:
    """Missing values filled in by the medians of the fitted samples."""
    if sparse.issparse(part.matrix) or not np.isnan(part.matrix).any():
        return part
    if view.medians is None:
        raise ValueError(
            f"{part.file}: {setting('impute')} needs the medians of the fitted samples, which the "
            f"model lacks for the view {str(view.key)!r}: fill in the missing values yourself"
        )
    gone = np.isnan(part.matrix)
    lost = gone.mean(axis=1) > max_missing
    matrix = np.where(gone & ~lost[:, None], view.medians, part.matrix)
    matrix[lost] = np.nan
    if n := int(gone[~lost].sum()):
        notes.append(
            f"{part.file}: {plural(n, 'missing value')} filled in by the medians of the fitted "
            "samples"
        )
    if n := int((lost & ~gone.all(axis=1)).sum()):
        notes.append(
            f"{part.file}: {plural(n, 'sample')} taken to lack the view: more than "
            f"{max_missing:.0%} missing"
        )
    return part._replace(matrix=matrix)


def _check_whole(part: Part) -> None:
    """Refuse scattered missing values; whole rows are samples that lack the view."""
    if sparse.issparse(part.matrix):
        return
    gone = np.isnan(part.matrix)
    gone[gone.all(axis=1)] = False
    if gone.any():
        i, j = (int(one[0]) for one in np.nonzero(gone))
        sample = part.ids[i] if part.ids else i + 1
        column: Any = repr(part.columns[j]) if len(part.columns) else j + 1
        raise ValueError(
            f"{part.file}: {plural(int(gone.sum()), 'value')} missing (the first in sample "
            f"{sample}, column {column}): fill in by the medians of the fitted samples with "
            f"{setting('impute', 'median')}"
        )
