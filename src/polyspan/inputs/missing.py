"""Samples that lack some of the views: rows of NaN there, and nothing is made up for them."""

from collections.abc import Sequence
from typing import Any

import scipy.sparse as sp
from array_api_compat import array_namespace

from polyspan.solvers.arrays import Array, astype


def missing_rows(view: Any) -> Any:
    """Say which samples lack a checked view, as a boolean array, or None when none does.

    Examples
    --------
    >>> import numpy as np
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
    >>> import numpy as np
    >>> present_rows(np.eye(3), np.array([False, True, False]))
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    if gone is None:
        return view
    xp = array_namespace(view)
    return xp.take(view, xp.nonzero(~gone)[0], axis=0)


def filled(X: Array) -> Array:
    """A view with zeros for rows of NaN.

    A zero column of X_k takes no part in ``X_k Z``: a sample that lacks view k describes nobody
    there.

    Examples
    --------
    >>> import numpy as np
    >>> filled(np.array([[1.0, 2.0], [np.nan, np.nan]]))
    array([[1., 2.],
           [0., 0.]])
    """
    gone = missing_rows(X)
    if gone is None:
        return X
    xp = array_namespace(X)
    return xp.where(gone[:, None], xp.zeros_like(X), X)


def error_weights(lam1: float, weights: Sequence[float], Xs: Sequence[Array]) -> list[Any]:
    """Weights of the errors of every view: ``lam1 w_k``, and 0 for samples that lack the view.

    The step of E then takes over all of ``X_k - X_k Z`` there, so that nothing is asked of Z.

    Examples
    --------
    >>> import numpy as np
    >>> error_weights(10.0, [1.0, 2.0], [np.ones((2, 1)), np.array([[1.0], [np.nan]])])
    [10.0, array([20.,  0.])]
    """
    found: list[Any] = []
    for X, w in zip(Xs, weights, strict=True):
        gone, lam = missing_rows(X), float(lam1 * w)
        found.append(lam if gone is None else lam * astype(~gone, X.dtype))
    return found
