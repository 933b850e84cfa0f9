"""Check the rows of views for missing samples, zeros and NaN, in memory and in chunks.

A sample that lacks a view is a row of NaN there; it is never imputed. Rows that no method can use
are reported, once.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from polyspan.runtime.arrays import Array, to_numpy
from polyspan.runtime.messages import view_title, warn_user


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
    first: np.ndarray | None  # the first present row; None for a sparse view
    sparse: bool


def look(view: Any) -> Content:
    """Inspect the rows of one view.

    Examples
    --------
    >>> found = look(np.array([[0.0, 0.0], [np.nan, np.nan], [1.0, np.inf]]))
    >>> found.bad, found.gone, found.constant
    (array([False,  True,  True]), array([False,  True, False]), False)
    """
    if sp.issparse(view):
        return _look_sparse(view)
    xp = array_namespace(view)
    wrong = ~xp.isfinite(view)
    bad, gone, nan = xp.any(wrong, axis=1), None, False
    if bool(xp.any(bad)):
        nan = bool(xp.any(xp.isnan(view)))
        gone = xp.all(xp.isnan(view), axis=1)
    there = view if gone is None else present_rows(view, gone)
    constant = bool(xp.all(there == there[:1, :]))
    none = np.zeros(view.shape[0], dtype=bool)
    return Content(
        to_numpy(bad),
        none if gone is None else to_numpy(gone),
        to_numpy(xp.all(view == 0, axis=1)),
        nan,
        constant,
        to_numpy(there[0, :]) if there.shape[0] else None,
        False,
    )


def _look_sparse(view: Any) -> Content:
    n, stored = view.shape[0], np.diff(view.indptr)
    wrong = ~np.isfinite(view.data)
    bad = np.isin(np.arange(n), sp.coo_array(view).row[wrong])
    constant = bool(np.all(stored == stored[0]))
    if constant and view.nnz:
        parts = view.indices.reshape(n, -1), view.data.reshape(n, -1)
        constant = all(bool(np.all(part == part[:1])) for part in parts)
    nan = bool(np.isnan(view.data).any())
    return Content(bad, np.zeros(n, dtype=bool), stored == 0, nan, constant, None, True)


def joined(parts: Sequence[Content]) -> Content:
    """Combine what is known about the chunks of one view.

    Examples
    --------
    >>> joined([look(np.ones((2, 1))), look(np.zeros((1, 1)))]).constant
    False
    """
    first: Any = parts[0].first
    firsts: list[Any] = [part.first for part in parts]
    same = all(part.constant for part in parts) and all(np.array_equal(x, first) for x in firsts)
    bad, gone, zero = (
        np.concatenate(rows) for rows in zip(*(part[:3] for part in parts), strict=True)
    )
    return Content(bad, gone, zero, any(part.nan for part in parts), same, first, parts[0].sparse)


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
    for one, name in zip(contents, names, strict=True):
        if one.bad.any():
            _check_finite(one, name, missing, new)
        n = len(one.bad)
        if n < 2 and not new:
            raise ValueError(f"{view_title(name)} has 1 sample; clustering needs at least 2.")
        if one.constant and not new:
            raise ValueError(
                f"{view_title(name)} is constant (all {n - one.gone.sum()} samples are equal), so "
                "it says nothing about clusters: leave it out."
            )
    nowhere = np.logical_and.reduce([one.gone for one in contents])
    if nowhere.any():
        raise ValueError(
            f"{nowhere.sum()} of {len(nowhere)} samples are NaN in every view "
            f"({rows_in_words(nowhere)}): drop them, because nothing is known about them."
        )
    lost = np.logical_and.reduce([one.zero | one.gone for one in contents])
    # A single view only warns, as scikit-learn's common checks require.
    if len(contents) > 1 and lost.any():
        what = "all zeros or NaN" if any(one.gone.any() for one in contents) else "all zeros"
        raise ValueError(
            f"{lost.sum()} of {len(lost)} samples are {what} in every view "
            f"({rows_in_words(lost)}): drop them, because nothing is known about them."
        )
    told = [
        f"{one.zero.sum()} in {view_title(name)}, {rows_in_words(one.zero)}"
        for one, name in zip(contents, names, strict=True)
        if one.zero.any()
    ]
    if told:
        warn_user(
            f"Some of the {len(lost)} samples are all zeros ({'; '.join(told)}): such a view says "
            "nothing about these samples."
        )


def _check_finite(one: Content, name: str, missing: bool, new: bool) -> None:
    """Refuse NaN and inf, except rows that are all NaN if samples may lack views."""
    what = "NaN" if one.nan else "inf (infinite values)"
    where = f"({one.bad.sum()} of {len(one.bad)} samples: {rows_in_words(one.bad)})"
    hint = ", for example by polyspan.inputs.impute" * one.nan
    if not missing:
        raise ValueError(
            f"{view_title(name)} contains {what}: drop or impute these values {where} before "
            f"clustering{hint}."
        )
    if one.sparse:
        raise ValueError(
            f"{view_title(name)} contains {what}: drop or impute these values {where}; to mark "
            "samples that lack this view with rows of NaN, give it as a dense array."
        )
    partly = one.bad & ~one.gone
    if partly.any():
        raise ValueError(
            f"{view_title(name)} contains {what} in part of a sample ({rows_in_words(partly)}): "
            f"drop or impute these values{hint}; NaN may only mark a sample that lacks the view, "
            "and must then fill its row."
        )
    if one.gone.all() and not new:
        raise ValueError(f"{view_title(name)} contains NaN in every sample: leave it out.")


def rows_in_words(chosen: np.ndarray) -> str:
    """Name the rows that a boolean array selects, at most the first five.

    Examples
    --------
    >>> rows_in_words(np.array([False, True, True]))
    'rows 1, 2'
    """
    found = np.flatnonzero(chosen)
    shown = ", ".join(map(str, found[:5])) + (", ..." if found.size > 5 else "")
    return f"row{'s'[: found.size > 1]} {shown}"
