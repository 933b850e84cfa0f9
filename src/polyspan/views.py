"""From whatever a user calls several views to a list of clean (n, d_k) arrays, and their scaling.

Every error is one sentence that names the view and says what to do. Input is never modified.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from polyspan.linalg import to_numpy

SCALES = ("unit", "standard+unit", None)


class Views(NamedTuple):
    """Checked views: arrays of one dtype, namespace and device, and what to call them."""

    arrays: list[Any]
    names: list[str]

    @property
    def n_samples(self) -> int:
        """Number of samples, the same in every view."""
        return int(self.arrays[0].shape[0])

    @property
    def itemsize(self) -> int:
        """Bytes of one number."""
        return 4 if "float32" in str(self.arrays[0].dtype) else 8

    @property
    def widths(self) -> list[float]:
        """Numbers that a sample takes in every view: features, of a sparse view those stored."""
        return [x.nnz / x.shape[0] if sp.issparse(x) else x.shape[1] for x in self.arrays]


def check_views(
    X: Any, views: Sequence[Any] | None = None, estimator: Any = None, *, new: bool = False
) -> Views:
    """Check several views of the same samples and bring them to one form.

    Parameters
    ----------
    X : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
        The views: NumPy or other array-API arrays, DataFrames or scipy.sparse matrices.
    views : sequence of slices or index lists, optional
        Which columns of a single 2-D ``X`` form which view.
    estimator : estimator, optional
        Gets ``n_features_in_`` (and ``feature_names_in_`` for one DataFrame), as scikit-learn
        wants it. When its class has ``_missing_views``, rows of NaN are let through: samples that
        lack the view.
    new : bool, default=False
        Samples for a fitted ``estimator``: it is not changed, and one sample is enough.

    Returns
    -------
    Views
        float32 stays float32 when all views are float32; everything else becomes float64.

    Examples
    --------
    >>> found = check_views({"text": [[1, 2], [3, 4]], "image": np.eye(2)})
    >>> found.names, [view.shape for view in found.arrays]
    (["'text'", "'image'"], [(2, 2), (2, 2)])
    >>> check_views([np.eye(3), np.eye(4)])
    Traceback (most recent call last):
    ...
    ValueError: The views differ in length: view 0 has 3 samples, view 1 has 4 samples; ...
    """
    if isinstance(X, Views):  # checked already, by a method that calls another one
        if estimator is not None:
            estimator.n_features_in_ = sum(view.shape[1] for view in X.arrays)
        return X
    several = _as_several(X)
    if several is not None:
        if views is not None:
            raise ValueError(
                f"views=... cuts one 2-D array into views, but X is already a {type(X).__name__} "
                f"of {len(several)} views: leave views out."
            )
        names = list(several)
        arrays = [_check_one(view, f"view {name}", None) for name, view in several.items()]
        if estimator is not None and not new:
            estimator.n_features_in_ = sum(view.shape[1] for view in arrays)
            vars(estimator).pop("feature_names_in_", None)  # of an earlier fit
    else:
        whole = _check_one(X, "X", estimator, new)
        arrays = [whole] if views is None else _cut(whole, views)
        names = [str(k) for k in range(len(arrays))]
    arrays = _one_dtype(arrays, names)
    _check_content(arrays, names, getattr(estimator, "_missing_views", False), new)
    return Views(arrays, names)


def _as_several(X: Any) -> dict[str, Any] | None:
    """Return the views by name, or None when X is a single 2-D array."""
    if sp.issparse(X):  # dok_array is a dict: ask this first
        return None
    if isinstance(X, Mapping | list | tuple) and len(X) == 0:
        raise ValueError(f"X is an empty {type(X).__name__}: give at least one view.")
    if isinstance(X, Mapping):
        return {repr(name): view for name, view in X.items()}
    if isinstance(X, list | tuple) and any(_dimensions(view) >= 2 for view in X):
        return {str(k): view for k, view in enumerate(X)}
    return None  # a list of lists of numbers is one array, not a list of views


def _dimensions(view: Any) -> int:
    """Count dimensions without converting: lists count their nesting."""
    if hasattr(view, "shape"):
        return len(view.shape)
    if isinstance(view, list | tuple):
        return 1 + (_dimensions(view[0]) if view else 0)
    return 0


def _check_one(view: Any, name: str, estimator: Any, new: bool = False) -> Any:
    """Return one view as a 2-D float array or csr_array; finiteness is checked later."""
    if _dimensions(view) not in (0, 2):  # 0: it does not tell
        raise ValueError(
            f"{name} is {_dimensions(view)}-D: a view is 2-D, with samples in rows and features in "
            "columns; Reshape your data."
        )
    if is_array_api_obj(view) and not is_numpy_array(view):
        return _check_foreign(view, name, estimator, new)
    _check_columns(view, name)
    try:
        kept: dict[str, Any] = {"accept_sparse": "csr", "dtype": "numeric"}
        if estimator is None:
            view = check_array(view, ensure_all_finite=False, input_name=name, **kept)
        else:
            view = validate_data(estimator, view, reset=not new, ensure_all_finite=False, **kept)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {str(error).splitlines()[0]}") from error
    if view.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {view.dtype} values: convert them to numbers.")
    if view.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # a long double too large becomes inf, refused later
            view = view.astype(np.float32 if view.dtype == np.float16 else np.float64)
    return _canonical(view) if sp.issparse(view) else view


def _canonical(view: Any) -> Any:
    """Return a csr_array with every stored number once and no stored zeros; copies if needed."""
    view = sp.csr_array(view)  # shares the data
    if not view.has_canonical_format or np.any(view.data == 0):
        view = view.copy()
        view.sum_duplicates()
        view.eliminate_zeros()
    return view


def _check_columns(view: Any, name: str) -> None:
    """Refuse DataFrame columns that are not numbers, by name."""
    if not hasattr(view, "dtypes") or not hasattr(view, "columns"):
        return
    # Nullable and ordinary number and truth columns have these kinds; text, dates, categories not.
    bad = [
        str(column)
        for column, dtype in zip(view.columns, view.dtypes, strict=True)
        if getattr(dtype, "kind", "O") not in "fiub"
    ]
    if bad:
        shown = ", ".join(repr(column) for column in bad[:5]) + (", ..." if len(bad) > 5 else "")
        raise ValueError(
            f"{name} has {len(bad)} column{'s'[: len(bad) > 1]} that are not numbers ({shown}): "
            "drop or encode them first."
        )


def _check_foreign(view: Any, name: str, estimator: Any, new: bool) -> Any:
    """Check an array of another library (torch, cupy, array-api-strict) where it is."""
    xp = array_namespace(view)
    if 0 in view.shape:
        raise ValueError(f"{name} is empty: its shape is {tuple(view.shape)}.")
    if xp.isdtype(view.dtype, "complex floating"):
        raise ValueError(f"{name}: Complex data not supported; take real and imaginary parts.")
    if view.dtype not in (xp.float32, xp.float64):
        view = xp.astype(view, xp.float64)
    if estimator is not None and not new:
        estimator.n_features_in_ = int(view.shape[1])
    return view


def _cut(whole: Any, views: Any) -> list[Any]:
    """Take the columns of every view out of one array."""
    if not isinstance(views, list | tuple | np.ndarray) or len(views) == 0:
        raise ValueError(
            "views must be a list with one slice or list of column numbers per view, or None; "
            f"got {views!r}."
        )
    d = int(whole.shape[1])
    parts = []
    for k, columns in enumerate(views):
        try:
            index = np.arange(d)[columns if isinstance(columns, slice) else np.asarray(columns)]
        except (IndexError, TypeError, ValueError) as error:
            raise ValueError(
                f"views[{k}]={columns!r} does not select columns of X, which has {d}: "
                "use slices or lists of column numbers."
            ) from error
        if index.ndim != 1 or index.size == 0:
            what = "no column" if index.size == 0 else "columns in the wrong form"
            raise ValueError(
                f"views[{k}]={columns!r} selects {what} of X, which has {d}: use slices or lists "
                "of column numbers."
            )
        if isinstance(columns, slice) or sp.issparse(whole) or is_numpy_array(whole):
            parts.append(whole[:, columns if isinstance(columns, slice) else index])
        else:
            xp = array_namespace(whole)
            parts.append(xp.take(whole, xp.asarray(index, device=device(whole)), axis=1))
    return parts


def _one_dtype(arrays: list[Any], names: list[str]) -> list[Any]:
    """Same number of samples, one namespace and device, float64 unless all are float32."""
    lengths = [int(view.shape[0]) for view in arrays]
    if len(set(lengths)) > 1:
        told = ", ".join(f"view {a} has {b} samples" for a, b in zip(names, lengths, strict=True))
        raise ValueError(f"The views differ in length: {told}; every view needs the same samples.")
    foreign = [view for view in arrays if not (sp.issparse(view) or is_numpy_array(view))]
    if foreign and len(foreign) < len(arrays):
        raise ValueError("The views mix array libraries: convert all of them to one.")
    if foreign:
        xp = array_namespace(*arrays)
        if len({str(device(view)) for view in arrays}) > 1:
            raise ValueError("The views lie on different devices: move all of them to one.")
        wanted = xp.float32 if all(view.dtype == xp.float32 for view in arrays) else xp.float64
        return [xp.astype(view, wanted, copy=False) for view in arrays]
    single = all(view.dtype == np.float32 for view in arrays)
    return [view.astype(np.float32 if single else np.float64, copy=False) for view in arrays]


def _check_content(arrays: list[Any], names: list[str], missing: bool, new: bool) -> None:
    """Refuse what no method can use: NaN, inf, constant views, samples that are zero throughout."""
    zero, absent = [], []
    for view, name in zip(arrays, names, strict=True):
        gone = _check_finite(view, name, missing, new)
        xp = array_namespace(view.data if sp.issparse(view) else view)
        if view.shape[0] < 2 and not new:
            raise ValueError(f"view {name} has 1 sample; clustering needs at least 2.")
        if sp.issparse(view):
            constant = _equal_rows(view)
            zero.append(np.diff(view.indptr) == 0)
        else:
            there = present_rows(view, gone)
            constant = bool(xp.all(there == there[:1, :]))
            zero.append(to_numpy(xp.all(view == 0, axis=1)))
        absent.append(np.zeros(view.shape[0], bool) if gone is None else to_numpy(gone))
        if constant and not new:
            raise ValueError(
                f"view {name} is constant (all {view.shape[0] - absent[-1].sum()} samples are "
                "equal), so it tells nothing about clusters: leave it out."
            )
    nowhere = np.logical_and.reduce(absent)
    if nowhere.any():
        raise ValueError(
            f"{nowhere.sum()} of {len(nowhere)} samples are NaN in every view ({_rows(nowhere)}): "
            "drop them, nothing is known about them."
        )
    lost = np.logical_and.reduce([a | b for a, b in zip(zero, absent, strict=True)])
    # One view alone only warns, as scikit-learn's common checks want it.
    if len(arrays) > 1 and lost.any():
        what = "all zeros or NaN" if np.any(absent) else "all zeros"
        raise ValueError(
            f"{lost.sum()} of {len(lost)} samples are {what} in every view ({_rows(lost)}): "
            "drop them, nothing is known about them."
        )
    told = [
        f"{rows.sum()} in view {name}, {_rows(rows)}"
        for rows, name in zip(zero, names, strict=True)
        if rows.any()
    ]
    if told:
        warnings.warn(
            f"Some of the {len(lost)} samples are all zeros ({'; '.join(told)}): there the view "
            "says nothing about them.",
            UserWarning,
            stacklevel=5,  # check_views, _check and fit lie between
        )


def _check_finite(view: Any, name: str, missing: bool, new: bool) -> Any:
    """Refuse NaN and inf; where samples may lack views return which rows are NaN, or None."""
    values = view.data if sp.issparse(view) else view
    xp = array_namespace(values)
    bad = ~xp.isfinite(values)
    if not bool(xp.any(bad)):
        return None
    what = "NaN" if bool(xp.any(xp.isnan(values))) else "inf (infinite values)"
    if sp.issparse(view):
        lines = np.isin(np.arange(view.shape[0]), sp.coo_array(view).row[bad])
    else:
        lines = to_numpy(xp.any(bad, axis=1))
    where = f"({lines.sum()} of {len(lines)} samples: {_rows(lines)})"
    if not missing:
        raise ValueError(
            f"view {name} contains {what}: drop or impute these values {where} before clustering."
        )
    if sp.issparse(view):
        raise ValueError(
            f"view {name} contains {what}: drop or impute these values {where}; to mark samples "
            "that lack this view by rows of NaN, give it as a dense array."
        )
    gone = xp.all(xp.isnan(view), axis=1)
    partly = to_numpy(xp.any(bad, axis=1) & ~gone)
    if partly.any():
        raise ValueError(
            f"view {name} contains {what} in part of a sample ({_rows(partly)}): drop or impute "
            "these values; only a sample that lacks the view may be NaN, and then all its row."
        )
    if bool(xp.all(gone)) and not new:
        raise ValueError(f"view {name} contains NaN in every sample: leave it out.")
    return gone


def weighted_views(owner: str, views: Views, weights: Any, new: bool = False) -> Views:
    """Leave out the views of weight 0, after checking that there is a weight for each.

    Examples
    --------
    >>> weighted_views("GRMSC", check_views([np.eye(3), np.eye(3)]), [0.0, 2.0]).names
    ['1']
    """
    if weights is None:
        return views
    if len(weights) != len(views.arrays):
        raise ValueError(
            f"{owner}: view_weights has {len(weights)} numbers for {len(views.arrays)} views: give "
            "one for every view."
        )
    used = [k for k, weight in enumerate(weights) if weight > 0]
    if len(used) == len(weights):
        return views
    left = Views([views.arrays[k] for k in used], [views.names[k] for k in used])
    with warnings.catch_warnings():  # they came when all views were checked
        warnings.simplefilter("ignore")
        _check_content(left.arrays, left.names, True, new)
    return left


def missing_rows(view: Any) -> Any:
    """Say which samples lack a checked view, as a boolean array, or None when none does.

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


def _equal_rows(view: Any) -> bool:
    """Whether all rows of a canonical csr_array are equal."""
    n, stored = view.shape[0], np.diff(view.indptr)
    if np.any(stored != stored[0]):
        return False
    parts = (view.indices.reshape(n, -1), view.data.reshape(n, -1)) if view.nnz else ()
    return all(bool(np.all(part == part[:1])) for part in parts)


def _rows(chosen: np.ndarray) -> str:
    """Say which rows a boolean array chooses: the first five."""
    found = np.flatnonzero(chosen)
    shown = ", ".join(map(str, found[:5])) + (", ..." if found.size > 5 else "")
    return f"row{'s'[: found.size > 1]} {shown}"


Moments = tuple[Any, Any, Any]


def scale_views(
    views: Views, scale: str | None, moments: Sequence[Moments] | None = None
) -> list[Any]:
    """Scale every view: samples to unit length, after standardising features if asked.

    Parameters
    ----------
    views : Views
        Checked views.
    scale : {"unit", "standard+unit", None}
        ``"unit"`` divides each sample by its Euclidean length (zero samples stay zero);
        ``"standard+unit"`` first gives each feature mean 0 and variance 1, which makes a sparse
        view dense; None leaves the values as they are. Rows of NaN stay.
    moments : list, optional
        What `feature_moments` said of the samples by which to standardise; default: these.

    Examples
    --------
    >>> scale_views(check_views(np.array([[3.0, 4.0], [0.0, 1e300]])), "unit")[0]
    array([[0.6, 0.8],
           [0. , 1. ]])
    """
    scaled = []
    for k, (view, name) in enumerate(zip(*views, strict=True)):
        if scale is None:
            _check_size(view, name)
            scaled.append(view)
            continue
        if scale == "standard+unit":
            view = _dense(view, name)
            view = _standard(view, _moments(view) if moments is None else moments[k])
        scaled.append(_unit(view))
    return scaled


def numpy_views(views: Views, scale: str | None) -> list[Any]:
    """Scale the views as `scale_views`, for methods that work in NumPy only.

    Dense views become NumPy arrays in the order of rows, sparse ones csr_arrays with the short
    indices that k-means wants.

    Examples
    --------
    >>> X = sp.csr_array(np.eye(2))
    >>> X.indices = X.indices.astype(np.int64)
    >>> numpy_views(check_views(X), "unit")[0].indices.dtype
    dtype('int32')
    """
    found = []
    for view in scale_views(views, scale):
        if not sp.issparse(view):
            view = np.ascontiguousarray(to_numpy(view))
        elif max(view.nnz, view.shape[1]) < 2**31:
            short = view.indices.astype(np.int32), view.indptr.astype(np.int32)
            view = sp.csr_array((view.data, *short), shape=view.shape)
        found.append(view)
    return found


def feature_moments(views: Views) -> list[Moments]:
    """Size, mean and spread of the features of every view, to standardise new samples by.

    Examples
    --------
    >>> seen = check_views(np.array([[0.0, 1.0], [4.0, 3.0]]))
    >>> scale_views(check_views(np.array([[4.0, 4.0], [0.0, 2.0]])), "standard+unit",
    ...             feature_moments(seen))[0]
    array([[ 0.4472136 ,  0.89442719],
           [-1.        ,  0.        ]])
    """
    return [_moments(_dense(view, name)) for view, name in zip(*views, strict=True)]


def _dense(view: Any, name: str) -> Any:
    """Return a view as a dense array."""
    if sp.issparse(view):
        _check_dense(view, name)
        return view.toarray()
    return view


def _check_dense(view: Any, name: str) -> None:
    """Refuse to make a sparse view dense that does not fit, with the copies that scaling makes."""
    need, free = 4 * view.shape[0] * view.shape[1] * view.dtype.itemsize, available_memory()
    if free is not None and need > free:
        raise MemoryError(
            f'scale="standard+unit" makes the sparse view {name} dense, which needs about '
            f'{need / 2**30:.0f} GiB, but {free / 2**30:.0f} GiB are free: use scale="unit".'
        )


def check_products(views: Views) -> None:
    """Refuse unscaled values beside whose products X^T X the I of X^T X + I is only rounding.

    Examples
    --------
    >>> check_products(check_views(np.array([[3.0, 4.0], [0.0, 1e20]])))
    Traceback (most recent call last):
    ...
    ValueError: view 0 has values of size 1.0e+20, too large to solve for a representation in ...
    """
    for view, name in zip(*views, strict=True):
        largest, limits = _largest(view)
        if largest > float(limits.eps) ** -0.75:
            raise ValueError(
                f"view {name} has values of size {largest:.1e}, too large to solve for a "
                f'representation in {view.dtype}: rescale it, or use scale="unit".'
            )


def _largest(view: Any) -> tuple[float, Any]:
    """Largest absolute value of a view, and the limits of its dtype."""
    values = view.data if sp.issparse(view) else present_rows(view, missing_rows(view))
    xp = array_namespace(values)
    largest = float(xp.max(xp.abs(values))) if 0 not in values.shape else 0.0
    return largest, xp.finfo(values.dtype)


def _check_size(view: Any, name: str) -> None:
    """Unscaled values are squared later: refuse those that would over- or underflow."""
    largest, limits = _largest(view)
    low, high = float(limits.smallest_normal) ** (1 / 3), float(limits.max) ** (1 / 3)
    if largest and not low <= largest <= high:
        raise ValueError(
            f"view {name} has values of size {largest:.1e}, whose products leave the range of "
            f'{view.dtype}: rescale it, or use scale="unit".'
        )


def _unit(view: Any) -> Any:
    """Divide rows by their length; by their largest entry first, so that nothing overflows."""
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


def _moments(view: Any) -> Moments:
    """Largest size of every column, and mean and spread of the column divided by it."""
    xp = array_namespace(view)
    view = present_rows(view, missing_rows(view))
    size = xp.max(xp.abs(view), axis=0, keepdims=True)
    size = xp.where(size > 0, size, xp.ones_like(size))
    view = view / size
    mean = xp.mean(view, axis=0, keepdims=True)
    return size, mean, xp.std(view - mean, axis=0, keepdims=True)


def _standard(view: Any, moments: Moments) -> Any:
    """Give columns mean 0 and variance 1; constant columns become 0."""
    xp = array_namespace(view)
    size, mean, spread = moments
    view = view / size - mean
    noise = 10 * xp.finfo(view.dtype).eps  # a constant column has a spread of rounding errors
    return xp.where(spread > noise, view / xp.where(spread > noise, spread, 1.0), 0.0 * view)


def check_memory(
    owner: str, n: int, itemsize: int, n_square: float, free: int | None, n_linear: float = 0.0
) -> None:
    """Refuse work whose matrices do not fit, before any of them is made.

    ``n_square`` is their number when they are n x n, ``n_linear`` how many numbers beside them a
    sample takes.

    Examples
    --------
    >>> check_memory("GRMSC", 10_000_000, 8, 10, free=2**33)
    Traceback (most recent call last):
    ...
    MemoryError: GRMSC on 10000000 samples needs about 7450581 GiB for its n x n matrices, but ...
    """
    need = (n_square * n + n_linear) * n * itemsize
    if free is None or need <= free:
        return
    square = n_square > 0
    what = "n x n matrices" if square else f"{n_linear:.0f} numbers per sample"
    hint = "fewer features or anchors"
    if square:
        hint = "a method that does not hold n x n matrices, such as AnchorGRMSC"
    raise MemoryError(
        f"{owner} on {n} samples needs about {need / 2**30:.0f} GiB for its {what}, but "
        f"{free / 2**30:.0f} GiB are free: use fewer samples, float32 input, or {hint}."
    )


def available_memory() -> int | None:
    """Bytes this process can still get, or None where the system does not tell."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [int(x.split()[1]) * 1024 for x in lines if x.startswith("MemAvailable")]
    except OSError:
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    try:  # a container may have less than its machine
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            found.append(int(limit))
    except (OSError, ValueError):
        pass
    return min(found) if found else None
