"""Fill in scattered missing values; what lacks too many of them is left out, with a report."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from polyspan.io.containers import unmasked
from polyspan.io.samples import is_frame
from polyspan.runtime.messages import first_few, plural, view_title

HOW = ("median", "knn", "none")


class Imputed(NamedTuple):
    """Views without scattered NaN, in the form they were given in, and a sentence for each."""

    views: Any
    notes: list[str]


class Filled(NamedTuple):
    """One view, filled in."""

    matrix: NDArray[np.float64]
    kept: NDArray[np.bool_]  # which columns are left
    lost: NDArray[np.bool_]  # which samples now lack the view
    n_filled: int


def impute(views: Any, how: str = "median", max_missing: float = 0.2) -> Imputed:
    """Fill in scattered NaN in views, feature by feature or from similar samples.

    Parameters
    ----------
    views : list, tuple or dict of (n, d_k) arrays or DataFrames
        The views, with NaN where a value is missing. They are not changed.
    how : {"median", "knn", "none"}, default="median"
        By the median of the feature; by the mean of the five nearest samples that have the value
        (distances over the standardized features that both samples have); or not at all.
    max_missing : float, default=0.2
        Features that lack more than this share of their values are left out. Samples that then
        still lack more than this share of the view count as lacking the view.

    Returns
    -------
    Imputed
        ``views`` in the form they were given in, and ``notes``, one sentence for every view that
        was changed. A sample that lacks the view is a row of NaN, as it was or by ``max_missing``:
        it keeps its place, and its other views. `GRMSC`, `MeanGraph`, `NEMO` and
        `ConsensusClusterer` take such rows; for other methods drop the sample from all views.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.inputs import impute
    >>> look = np.array([[1.0, 5.0, 0.0], [2.0, np.nan, 0.0], [4.0, 7.0, np.nan]])
    >>> views, notes = impute({"look": look}, max_missing=0.4)
    >>> float(views["look"][1, 1]), notes
    (6.0, ["view 'look': 2 of 9 values (22.2%) filled in by the median"])
    """
    check_imputing(how, max_missing)
    if isinstance(views, list | tuple):
        changed, notes = impute(dict(enumerate(views)), how, max_missing)
        return Imputed(list(changed.values()), notes)
    if not isinstance(views, Mapping) or any(getattr(x, "ndim", 0) != 2 for x in views.values()):
        raise ValueError("impute takes a list or a dictionary of 2-D arrays or DataFrames")
    changed, notes = {}, []
    for name, view in views.items():
        changed[name], note = _impute_one(view, view_title(str(name)), how, max_missing)
        notes += [note] * bool(note)
    return Imputed(changed, notes)


def _impute_one(view: Any, title: str, how: str, max_missing: float) -> tuple[Any, str]:
    """One view filled in, and what was done; a view that lacks nothing is returned as it is."""
    if sp.issparse(view):
        if np.isnan(view.data).any():
            raise ValueError(f"{title} is sparse and contains NaN: give it as a dense array")
        return view, ""
    filled = fill(np.asarray(unmasked(view), dtype=float), how, max_missing)
    names = [view.columns, view.index] if is_frame(view) else []
    note = describe(filled, title, how, max_missing, *(list(map(str, axis)) for axis in names))
    if not note:
        return view, ""
    if not is_frame(view):
        return filled.matrix, note
    columns = view.columns[filled.kept]
    return type(view)(filled.matrix, index=view.index, columns=columns), note


def check_imputing(how: str, max_missing: float) -> None:
    """Refuse an unknown way to fill in values, or a share that is none."""
    if how not in HOW:
        raise ValueError(f"impute must be 'median', 'knn' or 'none'; got {how!r}")
    if not 0 <= max_missing <= 1:
        raise ValueError(f"max_missing must be a share from 0 to 1; got {max_missing!r}")


def fill(matrix: NDArray[np.float64], how: str, max_missing: float) -> Filled:
    """Fill in one dense view; samples without any value, or with too few, become rows of NaN.

    Examples
    --------
    >>> fill(np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 6.0]]), "median", 0.5).matrix
    array([[1., 2.],
           [2., 4.],
           [3., 6.]])
    """
    gone = np.isnan(matrix)
    present = ~gone.all(axis=1)
    lost = np.zeros(len(matrix), dtype=bool)
    if how == "none" or not gone[present].any():
        return Filled(matrix, np.ones(matrix.shape[1], dtype=bool), lost, 0)
    share = gone[present].mean(axis=0)
    kept = (share <= max_missing) & (share < 1)
    if kept.any():
        lost[present] = gone[present][:, kept].mean(axis=1) > max_missing
    here = present & ~lost
    # With max_missing near 1, the samples that are left may lack a column.
    kept[kept] = ~gone[here][:, kept].all(axis=0)
    filled = np.full((len(matrix), int(kept.sum())), np.nan)
    part = matrix[here][:, kept]
    if part.size:
        guesses = np.nanmedian(part, axis=0) if how == "median" else _neighbors(part)
        filled[here] = np.where(np.isnan(part), guesses, part)  # what is known stays, to the bit
    return Filled(filled, kept, lost, int(np.isnan(part).sum()))


def _neighbors(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    from sklearn.impute import KNNImputer

    mean, spread = np.nanmean(matrix, axis=0), np.nanstd(matrix, axis=0)
    spread[spread == 0] = 1.0
    return KNNImputer(n_neighbors=5).fit_transform((matrix - mean) / spread) * spread + mean


def describe(
    filled: Filled,
    where: str,
    how: str,
    max_missing: float,
    columns: Sequence[str] | None = None,
    samples: Sequence[str] | None = None,
) -> str:
    """Say in one sentence what `fill` did; "" if nothing was to do."""
    parts = []
    if filled.n_filled:
        size = int((~np.isnan(filled.matrix)).sum())
        way = "the median" if how == "median" else "the five nearest samples"
        share = f"{filled.n_filled / size:.1%}"
        parts.append(f"{filled.n_filled} of {size} values ({share}) filled in by {way}")
    for noun, chosen, names, what in (
        ("column", ~filled.kept, columns, "left out"),
        ("sample", filled.lost, samples, "taken to lack the view"),
    ):
        if chosen.any():
            listed = np.array(names)[chosen] if names else np.flatnonzero(chosen)
            count, shown = plural(int(chosen.sum()), noun), first_few(map(str, listed), 5)
            parts.append(f"{count} {what}: more than {max_missing:.0%} missing ({shown})")
    return f"{where}: {'; '.join(parts)}" if parts else ""
