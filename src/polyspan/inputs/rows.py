"""Check what matrices hold, in memory and in chunks: indices, NaN, zeros, missing samples.

A sample that lacks a view is a row of NaN there; it is never imputed. Rows that no method can use
are reported, once.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from polyspan.runtime.arrays import Array, to_numpy
from polyspan.runtime.messages import first_few, view_title, warn_user


def missing_rows(view: Any) -> Any:
    """Say which samples lack a checked view, as a boolean array, or None if none do.

    Examples
    --------
    >>> missing_rows(np.array([[1.0, 2.0], [np.nan, np.nan]]))
    array([False,  True])
    """
    if sp.issparse(view):
        return None
    xp = array_namespace(view)
    gone = xp.isnan(view[:, 0])
    return gone if bool(xp.any(gone)) else None


def present_rows(view: Any, gone: Any) -> Any:
    """Leave out the rows that `missing_rows` found.

    Examples
    --------
    >>> present_rows(np.eye(3), np.array([False, True, False]))
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    if gone is None:
        return view
    xp = array_namespace(view)
    return xp.take(view, xp.nonzero(~gone)[0], axis=0)


def filled(X: Array) -> Array:
    """Replace rows of NaN in a view by zeros.

    A zero column of X_k contributes nothing to ``X_k Z``: a sample that lacks view k represents no
    other sample there.

    Examples
    --------
    >>> filled(np.array([[1.0, 2.0], [np.nan, np.nan]]))
    array([[1., 2.],
           [0., 0.]])
    """
    gone = missing_rows(X)
    if gone is None:
        return X
    xp = array_namespace(X)
    return xp.where(gone[:, None], xp.zeros_like(X), X)


class Content(NamedTuple):
    """What must be known about one view, or a chunk of it, before any work."""

    bad: np.ndarray  # which rows contain NaN or inf
    gone: np.ndarray  # which rows are all NaN
    zero: np.ndarray  # which rows are all zero
    nan: bool  # whether any bad value is NaN
    constant: bool  # whether all present rows are equal
    first: Any  # the first present row; None for a sparse view
    sparse: bool


def look(view: Any) -> Content:
    """Inspect the rows of one view.

    Examples
    --------
    >>> content = look(np.array([[0.0, 0.0], [np.nan, np.nan], [1.0, np.inf]]))
    >>> content.bad, content.gone, content.constant
    (array([False,  True,  True]), array([False,  True, False]), False)
    """
    if sp.issparse(view):
        return _look_sparse(view)
    xp = array_namespace(view)
    bad = xp.any(~xp.isfinite(view), axis=1)
    gone, nan = xp.zeros_like(bad), False
    if bool(xp.any(bad)):
        nan = bool(xp.any(xp.isnan(view)))
        gone = xp.all(xp.isnan(view), axis=1)
    there = present_rows(view, gone) if nan else view
    return Content(
        to_numpy(bad),
        to_numpy(gone),
        zero=to_numpy(xp.all(view == 0, axis=1)),
        nan=nan,
        constant=bool(xp.all(there == there[:1, :])),
        first=to_numpy(there[0, :]) if there.shape[0] else None,
        sparse=False,
    )


def _look_sparse(view: Any) -> Content:
    n, stored = view.shape[0], np.diff(view.indptr)
    bad = np.isin(np.arange(n), sp.coo_array(view).row[~np.isfinite(view.data)])
    alike = np.all(stored == stored[0])
    constant = bool(alike) and (view.max(axis=0) != view.min(axis=0)).nnz == 0
    nan = bool(np.isnan(view.data).any())
    return Content(bad, np.zeros(n, dtype=bool), stored == 0, nan, constant, None, True)


def joined(parts: Sequence[Content]) -> Content:
    """Combine what is known about the chunks of one view.

    Examples
    --------
    >>> joined([look(np.ones((2, 1))), look(np.zeros((1, 1)))]).constant
    False
    """
    first = parts[0].first
    return parts[0]._replace(
        bad=np.concatenate([part.bad for part in parts]),
        gone=np.concatenate([part.gone for part in parts]),
        zero=np.concatenate([part.zero for part in parts]),
        nan=any(part.nan for part in parts),
        constant=all(part.constant and np.array_equal(part.first, first) for part in parts),
    )


def check_content(
    contents: Sequence[Content], names: Sequence[str], *, missing: bool = False, new: bool = False
) -> None:
    """Refuse what no method can use: NaN, inf, constant views, samples that are all zero.

    Parameters
    ----------
    contents : list of Content
        What `look` found in each view.
    names : list of str
        What to call the views.
    missing : bool, default=False
        Allow rows that are all NaN: samples that lack the view.
    new : bool, default=False
        Samples for a fitted model: there may be only one, and they may all be equal.

    Examples
    --------
    >>> check_content([look(np.array([[1.0], [np.nan], [3.0]]))], ["text"])
    Traceback (most recent call last):
    ...
    ValueError: view 'text' contains NaN: drop or impute these values (1 of 3 samples: row 1) ...
    """
    zeros = []
    for content, title in zip(contents, map(view_title, names), strict=True):
        if content.bad.any():
            _check_finite(content, title, missing, new)
        n = len(content.bad)
        if n < 2 and not new:
            raise ValueError(f"{title} has 1 sample; clustering needs at least 2.")
        if content.constant and not new:
            raise ValueError(
                f"{title} is constant (all {n - content.gone.sum()} samples are equal), so it says "
                "nothing about clusters: leave it out."
            )
        if content.zero.any():
            zeros.append(f"{content.zero.sum()} in {title}, {rows_in_words(content.zero)}")
    nowhere = np.logical_and.reduce([content.gone for content in contents])
    _check_known(nowhere, "NaN")
    lost = np.logical_and.reduce([content.zero | content.gone for content in contents])
    if len(contents) > 1:  # a single view only warns, as scikit-learn's common checks require
        gaps = any(content.gone.any() for content in contents)
        _check_known(lost, "all zeros or NaN" if gaps else "all zeros")
    if zeros:
        warn_user(
            f"Some of the {len(lost)} samples are all zeros ({'; '.join(zeros)}): such a view says "
            "nothing about these samples."
        )


def _check_known(lost: np.ndarray, what: str) -> None:
    """Refuse samples of which no view says anything."""
    if lost.any():
        raise ValueError(
            f"{lost.sum()} of {len(lost)} samples are {what} in every view "
            f"({rows_in_words(lost)}): drop them, because nothing is known about them."
        )


def _check_finite(content: Content, title: str, missing: bool, new: bool) -> None:
    """Refuse NaN and inf, except rows that are all NaN if samples may lack views."""
    bad = content.bad
    contains = f"{title} contains {'NaN' if content.nan else 'inf (infinite values)'}"
    where = f"({bad.sum()} of {len(bad)} samples: {rows_in_words(bad)})"
    drop = f"{contains}: drop or impute these values {where}"
    hint = ", for example by polyspan.inputs.impute" * content.nan
    if not missing:
        raise ValueError(f"{drop} before clustering{hint}.")
    if content.sparse:
        raise ValueError(
            f"{drop}; to mark samples that lack this view with rows of NaN, give it as a dense "
            "array."
        )
    partly = bad & ~content.gone
    if partly.any():
        raise ValueError(
            f"{contains} in part of a sample ({rows_in_words(partly)}): drop or impute these "
            f"values{hint}; NaN may only mark a sample that lacks the view, and must then fill its "
            "row."
        )
    if content.gone.all() and not new:
        raise ValueError(f"{contains} in every sample: leave it out.")


def rows_in_words(chosen: np.ndarray) -> str:
    """Name the rows that a boolean array selects, at most the first five.

    Examples
    --------
    >>> rows_in_words(np.array([False, True, True]))
    'rows 1, 2'
    """
    rows = np.flatnonzero(chosen)
    return f"{'rows' if rows.size > 1 else 'row'} {first_few(map(str, rows), 5)}"
