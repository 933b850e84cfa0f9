"""Scaling of views: samples to unit length, features to mean 0 and variance 1, or both."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from polyspan.inputs.rows import look, missing_rows, present_rows
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import to_numpy
from polyspan.runtime.cache import held_bytes, shared
from polyspan.runtime.memory import available_memory, check_free
from polyspan.runtime.messages import plural, view_title

Scaling = str | None
Scale = Scaling | Sequence[Scaling]  # for all views, or one for each
Moments = tuple[Any, Any, Any]

SCALES: tuple[Scaling, ...] = ("unit", "standard+unit", "standard", None)
STANDARDIZED = ("standard+unit", "standard")
SHARED_UP_TO = 2**27  # bytes of a view that is kept scaled for other fits


def scale_views(
    views: Views,
    scale: Scale,
    moments: Sequence[Moments | None] | None = None,
) -> list[Any]:
    """Scale every view, all in the same way or each in its own.

    Parameters
    ----------
    views : Views
        Checked views.
    scale : {"unit", "standard+unit", "standard", None} or one per view
        ``"unit"`` divides each sample by its Euclidean length (zero samples stay zero);
        ``"standard"`` gives each feature mean 0 and variance 1, which makes a sparse view dense;
        ``"standard+unit"`` does this and then the other; None leaves the values as they are. Rows
        of NaN stay NaN.
    moments : list, optional
        Result of `feature_moments` for the samples to standardize by; default: these samples.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> scale_views(check_views(np.array([[3.0, 4.0], [0.0, 1e300]])), "unit")[0]
    array([[0.6, 0.8],
           [0. , 1. ]])
    """
    known = [None] * len(views.arrays) if moments is None else moments
    scales = scaling_per_view(scale, len(views.arrays))
    each = zip(views, scales, known, strict=True)
    return [_scaled(view, name, how, moments) for (view, name), how, moments in each]


def _scaled(view: Any, name: str, scale: Scaling, moments: Moments | None) -> Any:
    """Scale one view, once for all fits on the same data inside `polyspan.runtime.cache.sharing`.

    Views that are large would push what took longer to compute out of the store.
    """
    kept = sp.issparse(view) or isinstance(view, np.ndarray)
    if scale is None or moments is not None or not kept or held_bytes(view) > SHARED_UP_TO:
        return scale_view(view, name, scale, moments)
    return shared(lambda what, arrays: scale_view(arrays[0], *what), (name, scale), [view], None)


def scale_view(view: Any, name: str, scale: Scaling, moments: Moments | None = None) -> Any:
    """Scale one view, by these moments of its features or by its own."""
    if scale is None:
        largest, limits = _largest(view)
        low, high = float(limits.smallest_normal) ** (1 / 3), float(limits.max) ** (1 / 3)
        if largest and not low <= largest <= high:  # squares, needed later, would not be exact
            raise _rescale(view, name, "whose products leave the range of")
        return view
    if scale in STANDARDIZED:
        view = _dense(view, name, scale)
        view = standard(view, moments_of(view) if moments is None else moments)
    return view if scale == "standard" else unit(view)


def check_varied(Xs: Sequence[Any], names: Sequence[str], scale: Scale) -> None:
    """Refuse views whose samples are all equal once they are scaled.

    Examples
    --------
    >>> check_varied([unit(np.array([[1.0], [2.0]]))], ["age"], "unit")
    Traceback (most recent call last):
    ...
    ValueError: view 'age' is constant after scale="unit" (n_features=1), so it says nothing about
    clusters: use scale="standard" for it, or leave it out.
    """
    if len(Xs) != len(names):  # the method has joined or cut its views
        return
    for X, name, scaling in zip(Xs, names, scaling_per_view(scale, len(names)), strict=True):
        if scaling is not None and is_constant(X):
            raise constant_view(name, scaling, X.shape[1])


def constant_view(name: str, scale: str, d: int) -> ValueError:
    """The error for a view whose d features say nothing once they are scaled."""
    other = 'use scale="standard" for it, or ' * (scale != "standard")
    return ValueError(
        f'{view_title(name)} is constant after scale="{scale}" (n_features={d}), so it says '
        f"nothing about clusters: {other}leave it out."
    )


def is_constant(X: Any) -> bool:
    """Whether all present rows of a view are equal but for rounding.

    Examples
    --------
    >>> is_constant(np.array([[0.1 + 0.2, 1.0], [0.3, 1.0]])), is_constant(np.eye(2))
    (True, False)
    """
    if sp.issparse(X):
        return look(X).constant
    X = present_rows(X, missing_rows(X))
    xp = array_namespace(X)
    if X.shape[0] < 2:
        return False
    noise = 100 * float(xp.finfo(X.dtype).eps)
    # The second row tells most views apart without a look at the others.
    for rows in (X[1:2, :], X):
        if float(xp.max(xp.abs(rows - X[:1, :]))) > noise * float(xp.max(xp.abs(X[:1, :]))):
            return False
    return True


def scaling_per_view(
    scale: Scale, n_views: int, owner: str = "", name: str = "scale"
) -> list[Scaling]:
    """One scaling for each view, or an error if the number of scalings is another.

    Examples
    --------
    >>> scaling_per_view("unit", 2)
    ['unit', 'unit']
    >>> scaling_per_view(("unit", None, "unit"), 2, "GRMSC")
    Traceback (most recent call last):
    ...
    ValueError: GRMSC: scale has 3 scalings for 2 views: give one for each view, or one for all.
    """
    if not isinstance(scale, list | tuple):
        return [scale] * n_views  # type: ignore[list-item]
    if len(scale) != n_views:
        raise ValueError(
            f"{owner}{': ' if owner else ''}{name} has {plural(len(scale), 'scaling')} for "
            f"{plural(n_views, 'view')}: give one for each view, or one for all."
        )
    return list(scale)


def numpy_views(views: Views, scale: Scale) -> list[Any]:
    """Scale the views like `scale_views`, for methods that work in NumPy only.

    Dense views become row-major NumPy arrays, sparse ones csr_arrays with the 32-bit indices that
    k-means needs.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> X = sp.csr_array(np.eye(2))
    >>> X.indices = X.indices.astype(np.int64)
    >>> numpy_views(check_views(X), "unit")[0].indices.dtype
    dtype('int32')
    """
    return [
        short_indices(view) if sp.issparse(view) else np.ascontiguousarray(to_numpy(view))
        for view in scale_views(views, scale)
    ]


def short_indices(view: Any) -> Any:
    """Return a csr_array with 32-bit indices, which k-means needs, if 32 bits are enough."""
    if max(view.nnz, view.shape[1]) >= 2**31:
        return view
    short = view.indices.astype(np.int32), view.indptr.astype(np.int32)
    return sp.csr_array((view.data, *short), shape=view.shape)


def feature_moments(views: Views, scale: Scale = "standard+unit") -> list[Moments | None]:
    """Size, mean and spread of the features of every view, for standardizing new samples.

    None for a view whose scaling does not standardize.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> seen = check_views(np.array([[0.0, 1.0], [4.0, 3.0]]))
    >>> scale_views(check_views(np.array([[4.0, 4.0], [0.0, 2.0]])), "standard+unit",
    ...             feature_moments(seen))[0]
    array([[ 0.4472136 ,  0.89442719],
           [-1.        ,  0.        ]])
    """
    scales = scaling_per_view(scale, len(views.arrays))
    return [
        moments_of(_dense(view, name, scaling)) if scaling in STANDARDIZED else None
        for (view, name), scaling in zip(views, scales, strict=True)
    ]


def _dense(view: Any, name: str, scale: Scaling) -> Any:
    """Return a view as a dense array."""
    if not sp.issparse(view):
        return view
    check_dense(view, name, scale)
    return view.toarray()


def check_dense(view: Any, name: str, scale: Scaling = "standard+unit") -> None:
    """Refuse to make a sparse view dense if it and the copies made by scaling do not fit."""
    words = f'scale="{scale}" makes the sparse {view_title(name)} dense, which needs about {{}} GiB'
    need = 4 * view.shape[0] * view.shape[1] * view.dtype.itemsize
    check_free(need, available_memory(), words, 'use scale="unit"')


def check_products(views: Views, scale: Scale = None) -> None:
    """Refuse unscaled values so large that the I in X^T X + I is lost to rounding.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> check_products(check_views(np.array([[3.0, 4.0], [0.0, 1e20]])))
    Traceback (most recent call last):
    ...
    ValueError: view 0 has values of size 1.0e+20, too large to solve for a representation in ...
    """
    scales = scaling_per_view(scale, len(views.arrays))
    for (view, name), scaling in zip(views, scales, strict=True):
        if scaling is None:
            largest, limits = _largest(view)
            if largest > float(limits.eps) ** -0.75:
                raise _rescale(view, name, "too large to solve for a representation in")


def _largest(view: Any) -> tuple[float, Any]:
    """Largest absolute value of a view, and the limits of its dtype."""
    values = view.data if sp.issparse(view) else present_rows(view, missing_rows(view))
    xp = array_namespace(values)
    largest = float(xp.max(xp.abs(values))) if 0 not in values.shape else 0.0
    return largest, xp.finfo(values.dtype)


def _rescale(view: Any, name: str, why: str) -> ValueError:
    return ValueError(
        f"{view_title(name)} has values of size {_largest(view)[0]:.1e}, {why} {view.dtype}: "
        'rescale it, or use scale="unit".'
    )


def unit(view: Any) -> Any:
    """Divide rows by their length; first by their largest entry, so that nothing overflows."""
    if sp.issparse(view):
        rows = np.repeat(np.arange(view.shape[0]), np.diff(view.indptr))
        size = np.asarray(abs(view).max(axis=1).todense()).ravel()
        data = view.data / np.where(size > 0, size, 1).astype(view.dtype)[rows]
        length = np.sqrt(np.bincount(rows, weights=data * data, minlength=view.shape[0]))
        data = data / np.where(length > 0, length, 1).astype(view.dtype)[rows]
        return sp.csr_array((data, view.indices, view.indptr), shape=view.shape)
    xp = array_namespace(view)
    size = xp.max(xp.abs(view), axis=1, keepdims=True)
    view = view / xp.where(size > 0, size, xp.ones_like(size))
    length = xp.sqrt(xp.sum(view * view, axis=1, keepdims=True))
    return view / xp.where(length > 0, length, xp.ones_like(length))


def moments_of(view: Any) -> Moments:
    """Largest absolute value of every column, and mean and spread of the column divided by it."""
    xp = array_namespace(view)
    view = present_rows(view, missing_rows(view))
    size = xp.max(xp.abs(view), axis=0, keepdims=True)
    size = xp.where(size > 0, size, xp.ones_like(size))
    view = view / size
    mean = xp.mean(view, axis=0, keepdims=True)
    return size, mean, xp.std(view - mean, axis=0, keepdims=True)


def standard(view: Any, moments: Moments) -> Any:
    """Give columns mean 0 and variance 1; constant columns become 0."""
    xp = array_namespace(view)
    size, mean, spread = moments
    view = view / size - mean
    noise = 10 * xp.finfo(view.dtype).eps  # the spread of a constant column is rounding error
    return xp.where(spread > noise, view / xp.where(spread > noise, spread, 1.0), 0.0 * view)
