"""Turn views in any accepted form into a list of clean (n, d_k) arrays.

Every error is one sentence that names the view and says what to do. Input is never modified.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from polyspan.inputs.rows import check_content, look
from polyspan.inputs.sparse import check_sparse
from polyspan.solvers.messages import own_warnings


class Views(NamedTuple):
    """Checked views: arrays of one dtype, namespace and device, and their names for messages."""

    arrays: list[Any]
    names: list[str]

    @property
    def n_samples(self) -> int:
        """Number of samples, the same in every view."""
        return int(self.arrays[0].shape[0])

    @property
    def itemsize(self) -> int:
        """Bytes per number."""
        return 4 if "float32" in str(self.arrays[0].dtype) else 8

    @property
    def widths(self) -> list[float]:
        """Numbers stored per sample in each view: features, or non-zeros of a sparse view."""
        return [x.nnz / x.shape[0] if sp.issparse(x) else x.shape[1] for x in self.arrays]

    @property
    def singly(self) -> list["Views"]:
        """Every view by itself, under its name."""
        return [Views([view], [name]) for view, name in zip(*self, strict=True)]


def check_views(
    X: Any,
    views: Sequence[Any] | None = None,
    estimator: Any = None,
    *,
    missing: bool = False,
    new: bool = False,
) -> Views:
    """Check several views of the same samples and convert them to one form.

    Parameters
    ----------
    X : list, tuple or dict of (n, d_k) arrays, or one (n, d) array
        The views: NumPy or other array-API arrays, DataFrames or scipy.sparse matrices.
    views : sequence of slices or index lists, optional
        Which columns of a single 2-D ``X`` form which view.
    estimator : estimator, optional
        Gets ``n_features_in_`` (and ``feature_names_in_`` for one DataFrame), as scikit-learn
        requires.
    missing : bool, default=False
        Allow rows of NaN: samples that lack the view.
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
    if isinstance(X, Views):  # already checked, by a method that calls another one
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
            vars(estimator).pop("feature_names_in_", None)  # from an earlier fit
    else:
        whole = _check_one(X, "X", estimator, new)
        arrays = [whole] if views is None else _cut(whole, views)
        names = [str(k) for k in range(len(arrays))]
    arrays = _one_dtype(arrays, names)
    check_content([look(view) for view in arrays], names, missing=missing, new=new)
    return Views(arrays, names)


def _as_several(X: Any) -> dict[str, Any] | None:
    """Return the views by name, or None when X is a single 2-D array."""
    if sp.issparse(X):  # first, because dok_array is a dict
        return None
    if isinstance(X, Mapping | list | tuple) and len(X) == 0:
        raise ValueError(f"X is an empty {type(X).__name__}: give at least one view.")
    if isinstance(X, Mapping):
        return {repr(name): view for name, view in X.items()}
    if isinstance(X, list | tuple) and any(_dimensions(view) >= 2 for view in X):
        return {str(k): view for k, view in enumerate(X)}
    if isinstance(X, list | tuple) and len(X) > 1 and all(_dimensions(view) == 1 for view in X):
        _check_columns_of_views(X)
    return None  # a list of lists of numbers is one array, not a list of views


def _check_columns_of_views(X: Any) -> None:
    """Refuse 1-D arrays, which may be meant as views; lists of numbers are rows."""
    if all(hasattr(view, "shape") for view in X):
        raise ValueError(
            f"X is a {type(X).__name__} of {len(X)} 1-D arrays, which may be views or samples: a "
            "view is 2-D, so give a view of one feature as x.reshape(-1, 1), and samples as one "
            "2-D array."
        )


def _dimensions(view: Any) -> int:
    """Count dimensions without converting; for lists, count the nesting."""
    if hasattr(view, "shape"):
        return len(view.shape)
    if isinstance(view, list | tuple):
        return 1 + (_dimensions(view[0]) if view else 0)
    return 0


def _check_one(view: Any, name: str, estimator: Any, new: bool = False) -> Any:
    """Return one view as a 2-D float array or csr_array; finiteness is checked later."""
    if _dimensions(view) not in (0, 2):  # 0: unknown
        raise ValueError(
            f"{name} is {_dimensions(view)}-D: a view is 2-D, with samples in rows and features in "
            "columns; Reshape your data."
        )
    if type(view).__module__.split(".")[0] == "dask":
        raise TypeError(
            f"{name} is a dask {type(view).__name__}, which only AnchorGRMSC takes: use that, or "
            "give what its compute() returns, if it fits in memory."
        )
    if sp.issparse(view):
        check_sparse(view, name)
    if is_array_api_obj(view) and not is_numpy_array(view):
        return _check_foreign(view, name, estimator, new)
    if hasattr(view, "dtypes") and hasattr(view, "columns"):
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
        with np.errstate(over="ignore"):  # too large a long double becomes inf, refused later
            view = view.astype(np.float32 if view.dtype == np.float16 else np.float64)
    return _canonical(view) if sp.issparse(view) else view


def _canonical(view: Any) -> Any:
    """Return a csr_array without duplicates or stored zeros; copies if needed."""
    view = sp.csr_array(view)  # shares the data
    if not view.has_canonical_format or np.any(view.data == 0):
        view = view.copy()
        view.sum_duplicates()
        view.eliminate_zeros()
    return view


def _check_columns(view: Any, name: str) -> None:
    """Refuse DataFrame columns that are not numbers, by name."""
    # Numbers and booleans, nullable or not, have these kinds; text, dates and categories do not.
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
    """Check an array of another library (torch, cupy, array-api-strict) without moving it."""
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
    """Take the columns of each view from one array."""
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
                f"views[{k}]={columns!r} does not select columns of X, which has {d} columns: "
                "use slices or lists of column numbers."
            ) from error
        if index.ndim != 1 or index.size == 0:
            what = "no columns" if index.size == 0 else "columns in the wrong form"
            raise ValueError(
                f"views[{k}]={columns!r} selects {what} of X, which has {d} columns: use slices "
                "or lists of column numbers."
            )
        if isinstance(columns, slice) or sp.issparse(whole) or is_numpy_array(whole):
            parts.append(whole[:, columns if isinstance(columns, slice) else index])
        else:
            xp = array_namespace(whole)
            parts.append(xp.take(whole, xp.asarray(index, device=device(whole)), axis=1))
    return parts


def _one_dtype(arrays: list[Any], names: list[str]) -> list[Any]:
    """Require equal lengths, one namespace and device; use float64 unless all are float32."""
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
            raise ValueError("The views are on different devices: move all of them to one.")
        wanted = xp.float32 if all(view.dtype == xp.float32 for view in arrays) else xp.float64
        return [xp.astype(view, wanted, copy=False) for view in arrays]
    single = all(view.dtype == np.float32 for view in arrays)
    return [view.astype(np.float32 if single else np.float64, copy=False) for view in arrays]


def weighted_views(owner: str, views: Views, weights: Any, new: bool = False) -> Views:
    """Leave out views of weight 0, after checking that there is one weight per view.

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
            "one per view."
        )
    used = [k for k, weight in enumerate(weights) if weight > 0]
    if len(used) == len(weights):
        return views
    left = Views([views.arrays[k] for k in used], [views.names[k] for k in used])
    with own_warnings():  # already issued when all views were checked
        warnings.simplefilter("ignore")
        check_content([look(view) for view in left.arrays], left.names, missing=True, new=new)
    return left
