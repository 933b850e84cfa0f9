"""Turn views in any accepted form into a list of clean (n, d_k) arrays.

Every error is one sentence that names the view and says what to do. Input is never modified.
"""

import copy
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace, device, is_array_api_obj, is_numpy_array
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import validate_data

from polyspan.inputs.rows import check_content, look
from polyspan.io.columns import as_ids, is_date, tell_stand_ins
from polyspan.io.containers import (
    check_tables,
    column_names,
    dimensions,
    is_other_table,
    numbers_of,
    open_views,
    refuse_lazy,
    unmasked,
)
from polyspan.io.ids import shared_numbers, tell_shared
from polyspan.io.orientation import check_columns, check_shared
from polyspan.io.safety import check_sparse
from polyspan.io.samples import (
    Samples,
    View,
    is_frame,
    match_columns,
    match_kernel,
    match_rows,
    samples_of,
)
from polyspan.runtime.messages import own_warnings, plural, view_title, warn_user

TURN = (
    "use fit(load_views(X, samples='columns')) if they are, and samples='rows' if not "
    "(load_views is in polyspan.datasets)."
)


@dataclass(frozen=True)
class Views:
    """Checked views: arrays of one dtype, namespace and device, and all that is known of them."""

    arrays: list[Any]
    names: list[str]
    samples: Samples | None = None  # ids of the rows; None if they have none
    columns: Mapping[str, list[str]] = field(default_factory=dict)  # by view; only known names
    feature_names: np.ndarray | None = None  # of one table, as scikit-learn wants them
    n_features: int | None = None  # of the array that was cut into views; None is their sum
    y: Any = None  # true labels, which only an oracle looks at
    # What a method made of them:
    given: "Views | None" = None  # as they were before
    used: Sequence[int] | None = None  # which of the given views are left; None is all
    kernel_maps: list[np.ndarray] | None = None  # from kernels to features, for new samples
    graphs: list[Any] | None = None  # precomputed graphs of the views

    def __iter__(self) -> Iterator[tuple[Any, str]]:
        """Every view with its name."""
        return zip(self.arrays, self.names, strict=True)

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
        return [Views([view], [name]) for view, name in self]

    def remembered(self) -> dict[str, Any]:
        """What a fitted estimator remembers of its input, by the names of its attributes.

        Examples
        --------
        >>> check_views({"rna": np.eye(3), "protein": np.eye(3)}).remembered()
        {'view_names_': ['rna', 'protein'], '_view_widths': [3, 3], 'n_features_in_': 6}
        """
        views = self if self.given is None else self.given
        widths = [int(view.shape[1]) for view in views.arrays]
        known = {
            "view_names_": views.names,
            "_view_widths": widths,
            "n_features_in_": sum(widths) if views.n_features is None else views.n_features,
            "sample_ids_": views.samples and views.samples.ids,
            "_id_name": views.samples and views.samples.name,
            "_view_columns": dict(views.columns) or None,
            "feature_names_in_": views.feature_names,
            "_kernel_maps": self.kernel_maps,
        }
        return {name: value for name, value in known.items() if value is not None}


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
        The views: NumPy or other array-API arrays, scipy.sparse matrices, or tables of pandas,
        polars or pyarrow. Or an AnnData (its X), a MuData (X of every modality), or what
        `load_views` and `load_dataset` return. Rows are matched by id where every view has ids
        (a pandas index, obs_names), in the order of the first view; otherwise by order.
    views : sequence of slices or index lists, optional
        Which columns of a single 2-D ``X`` form which view.
    estimator : estimator, optional
        For whom: its name is in messages, and its tags say whether the views are kernels. It is
        not changed.
    missing : bool, default=False
        Allow rows of NaN: samples that lack the view.
    new : bool, default=False
        Samples for a fitted ``estimator``: they must have its features, and one is enough.

    Returns
    -------
    Views
        float32 stays float32 when all views are float32; everything else becomes float64.

    Examples
    --------
    >>> found = check_views({"text": [[1, 2], [3, 4]], "image": np.eye(2)})
    >>> found.names, [view.shape for view in found.arrays]
    (['text', 'image'], [(2, 2), (2, 2)])
    >>> check_views([np.eye(3), np.eye(4)])
    Traceback (most recent call last):
    ...
    ValueError: The views differ in length: view 0 has 3 samples, view 1 has 4 samples; ...
    """
    if isinstance(X, Views):  # already checked, by a method that calls another one
        for view, name in X:
            refuse_lazy(view, view_title(name))
        return X
    several, order = open_views(X)
    if several is None:
        checked = _check_whole(X, views, estimator, new)
    elif views is None:
        checked = _check_several(several, order, estimator, new)
    else:
        raise ValueError(
            f"views=... cuts one 2-D array into views, but X is already a {type(X).__name__} of "
            f"{plural(len(several), 'view')}: leave views out."
        )
    arrays = _one_dtype(checked.arrays, checked.names)
    check_content([look(view) for view in arrays], checked.names, missing=missing, new=new)
    return replace(checked, arrays=arrays)


def _check_whole(X: Any, views: Sequence[Any] | None, estimator: Any, new: bool) -> Views:
    """Check one 2-D array, and cut it into views if it is to be."""
    # scikit-learn writes what it sees of the features to the estimator, here to a copy of it.
    seen = copy.copy(estimator)
    whole = _check_one(X, "X", seen, new)
    arrays = [whole] if views is None else _cut(whole, views)
    columns = None if _takes_kernels(estimator) or views is not None else column_names(X)
    return Views(
        arrays,
        [str(k) for k in range(len(arrays))],
        samples_of(X.index) if is_frame(X) else None,
        {"0": columns} if columns else {},
        getattr(seen, "feature_names_in_", None),
        int(whole.shape[1]),
    )


def _check_several(
    views: dict[str, View], order: Sequence[str] | None, estimator: Any, new: bool
) -> Views:
    """Check views one by one; match their rows, and columns where tables name them.

    Columns of new samples are put in the order of the fit, those of kernels in that of their rows.
    """
    tables, samples = match_rows(views, order)
    arrays = [_check_one(table, view_title(name), None) for name, table in tables.items()]
    columns = {name: known for name, table in tables.items() if (known := column_names(table))}
    if _takes_kernels(estimator) and not new:
        arrays = [match_kernel(*pair) for pair in zip(arrays, tables.values(), strict=True)]
        columns = {name: as_ids(tables[name].index) for name in columns if is_frame(tables[name])}
        return Views(arrays, list(views), samples, columns)
    named = {view_title(name): known for name, known in columns.items()}
    columns = {name: view.columns for name, view in views.items() if view.columns} | columns
    if new:
        wanted = getattr(estimator, "_view_columns", {})
        arrays = [
            match_columns(array, name, columns.get(name), wanted.get(name))
            for name, array in zip(views, arrays, strict=True)
        ]
    else:
        check_shared(named, TURN)
        if len(named) == len(views) and not any(map(sp.issparse, arrays)):
            tables = {
                title: dict(zip(own, array.T, strict=True))
                for (title, own), array in zip(named.items(), arrays, strict=True)
            }
            if same := shared_numbers(tables):
                raise ValueError(
                    f"{tell_shared(list(dict.fromkeys(same.values())))} in every view: if these "
                    "are the ids, use them as the index (set_index of pandas), otherwise drop them."
                )
        told = check_columns(named)
        for title, array in zip(map(view_title, views), arrays, strict=True):
            if isinstance(array, np.ndarray):
                told += tell_stand_ins(title, array, named.get(title, ()))
        for sentence in told:
            warn_user(sentence)
    return Views(arrays, list(views), samples, columns)


def _takes_kernels(estimator: Any) -> bool:
    return estimator is not None and get_tags(estimator).input_tags.pairwise


def check_y(y: Any) -> None:
    """Refuse a second matrix where scikit-learn has the labels: it is a view.

    Examples
    --------
    >>> check_y([0, 1, 1])
    >>> check_y(np.eye(3))
    Traceback (most recent call last):
    ...
    ValueError: y has more than one column, so it is a view: pass all views as one list, ...
    """
    if dimensions(y) > 2 or (dimensions(y) == 2 and np.shape(y)[1] > 1):
        raise ValueError(
            "y has more than one column, so it is a view: pass all views as one list, fit([A, B])."
        )


def _check_one(view: Any, name: str, estimator: Any, new: bool = False) -> Any:
    """Return one view as a 2-D float array or csr_array; finiteness is checked later."""
    check_tables(view, name)
    view = unmasked(view)
    if not any(hasattr(view, has) for has in ("shape", "__array__", "__len__", "__float__")):
        raise ValueError(
            f"{name} is a {type(view).__name__}: give a 2-D array or table, with samples in rows."
        )
    if dimensions(view) not in (0, 2):  # 0: unknown
        raise ValueError(
            f"{name} is {dimensions(view)}-D: a view is 2-D, with samples in rows and features in "
            "columns; Reshape your data."
        )
    if sp.issparse(view):
        check_sparse(view, name)
    if is_array_api_obj(view) and not is_numpy_array(view):
        return _check_foreign(view, name)
    if isinstance(view, np.ndarray) and view.dtype == object and any(map(is_date, view.flat)):
        raise ValueError(f"{name} holds dates or durations: convert them to numbers.")
    try:
        wanted: dict[str, Any] = {"accept_sparse": "csr", "ensure_all_finite": False}
        if is_frame(view) or is_other_table(view):
            wanted["order"] = "C"  # tables are stored by column: sums would round differently
        if estimator is None:
            view = check_array(numbers_of(view), input_name=name, **wanted)
        else:
            view = validate_data(estimator, view, reset=not new, **wanted)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {str(error).splitlines()[0]}") from error
    if view.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {view.dtype} values: convert them to numbers.")
    if view.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # too large a long double becomes inf, refused later
            view = view.astype(np.float32 if view.dtype == np.float16 else np.float64)
    if sp.issparse(view):  # without duplicates and stored zeros
        view = sp.csr_array(view)  # shares the data
        if not view.has_canonical_format or np.any(view.data == 0):
            view = view.copy()
            view.sum_duplicates()
            view.eliminate_zeros()
    return view


def _check_foreign(view: Any, name: str) -> Any:
    """Check an array of another library (torch, cupy, array-api-strict) without moving it."""
    if 0 in view.shape:
        raise ValueError(f"{name} is empty: its shape is {tuple(view.shape)}.")
    if array_namespace(view).isdtype(view.dtype, "complex floating"):
        raise ValueError(f"{name}: Complex data not supported; take real and imaginary parts.")
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
        except (IndexError, TypeError, ValueError):
            index = np.arange(0)
        if index.ndim != 1 or not index.size:
            raise ValueError(
                f"views[{k}]={columns!r} does not select columns of X, which has {d} columns: use "
                "slices or lists of column numbers."
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
        raise different_lengths(names, lengths)
    foreign = [view for view in arrays if not (sp.issparse(view) or is_numpy_array(view))]
    if foreign and len(foreign) < len(arrays):
        raise ValueError("The views mix array libraries: convert all of them to one.")
    xp = array_namespace(*foreign) if foreign else np
    if len({str(device(view)) for view in foreign}) > 1:
        raise ValueError("The views are on different devices: move all of them to one.")
    dtype = xp.float32 if all(view.dtype == xp.float32 for view in arrays) else xp.float64
    if foreign:
        return [xp.astype(view, dtype, copy=False) for view in arrays]
    return [view.astype(dtype, copy=False) for view in arrays]


def different_lengths(names: Sequence[str], lengths: Sequence[int]) -> ValueError:
    """The error for views that do not have the same number of samples."""
    pairs = zip(names, lengths, strict=True)
    shown = ", ".join(f"{view_title(name)} has {plural(n, 'sample')}" for name, n in pairs)
    return ValueError(f"The views differ in length: {shown}; every view needs the same samples.")


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
            f"{owner}: view_weights has {plural(len(weights), 'number')} for "
            f"{plural(len(views.arrays), 'view')}: give one per view."
        )
    used = [k for k, weight in enumerate(weights) if weight > 0]
    if len(used) == len(weights):
        return views
    left = replace(
        views,
        arrays=[views.arrays[k] for k in used],
        names=[views.names[k] for k in used],
        given=views,
        used=used,
    )
    with own_warnings():  # already issued when all views were checked
        warnings.simplefilter("ignore")
        check_content([look(view) for view in left.arrays], left.names, missing=True, new=new)
    return left
