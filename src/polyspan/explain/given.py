"""Views as a fit takes them, with the names of views, features and samples."""

import ast
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from polyspan.inputs.containers import annotated_kind, blocks, open_views
from polyspan.inputs.ids import is_missing
from polyspan.inputs.samples import Samples, is_frame, match_rows, samples_of
from polyspan.inputs.tables import column_names
from polyspan.inputs.views import Views, check_views
from polyspan.solvers.arrays import to_numpy


class Given(NamedTuple):
    """Checked views and their names."""

    views: Views
    view_names: list[str]
    feature_names: list[list[str]]  # of every view
    ids: list[str]
    has_ids: bool = True  # otherwise the samples are numbered from 0


def open_given(X: Any, cut: Any = None) -> Given:
    """Check views and find the names of their features; without names they are numbered from 1.

    Parameters
    ----------
    X : as in ``fit``
        Views, as a list or dictionary of arrays and tables, or what knows its views.
    cut : list, optional
        The ``views`` of an estimator that cut a single 2-D array.

    Examples
    --------
    >>> import pandas as pd
    >>> found = open_given({"look": pd.DataFrame({"legs": [2.0, 4]}, index=["wren", "fox"])})
    >>> found.view_names, found.feature_names, found.ids
    (['look'], [['legs']], ['wren', 'fox'])
    """
    views = check_views(X, cut, missing=True)
    arrays = [one if sp.issparse(one) else to_numpy(one) for one in views.arrays]
    views = views._replace(arrays=arrays)
    opened, order = open_views(X)
    values, samples = match_rows(opened, order) if opened is not None else ({"0": X}, _samples(X))
    known = _known(X, values) if cut is None else [[]] * len(views.arrays)
    names = [known[k] or numbered(int(view.shape[1])) for k, view in enumerate(views.arrays)]
    ids = range(views.n_samples) if samples is None else samples.ids
    bare = [_bare(one) for one in views.names]
    return Given(views, bare, names, [str(one) for one in ids], samples is not None)


def _samples(X: Any) -> Samples | None:
    return samples_of(X.index, X.index.name) if is_frame(X) else None


def _known(X: Any, values: dict[str, Any]) -> list[list[str]]:
    """The names of the features of every view; empty where there are none."""
    if annotated_kind(X):
        return [list(map(str, one.columns or [])) for one in blocks(X)]
    if hasattr(X, "view_names") and getattr(X, "columns", None):  # a Dataset or MatchedViews
        return [list(map(str, one)) for one in X.columns]
    given = list(X.values()) if isinstance(X, dict) else X if isinstance(X, list | tuple) else []
    cells = {k: blocks(one)[0].columns for k, one in enumerate(given) if annotated_kind(one)}
    found = [cells.get(k) or column_names(one) or [] for k, one in enumerate(values.values())]
    return [list(map(str, one)) for one in found]


def _bare(name: str) -> str:
    """The name of a view without the quotes that messages put around it."""
    return ast.literal_eval(name) if name[:1] in ("'", '"') else name


def numbered(n_features: int) -> list[str]:
    """Names for features that have none, as the readers of files give them.

    Examples
    --------
    >>> numbered(2)
    ['column1', 'column2']
    """
    return [f"column{j}" for j in range(1, n_features + 1)]


def label_codes(labels: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The clusters, sorted, and the place of every sample's among them.

    Examples
    --------
    >>> label_codes(["b", "a", "b"], 3)
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    marks = np.asarray(labels)
    if marks.shape != (n,):
        raise ValueError(
            f"labels has shape {marks.shape}, but there are {n} samples: give one label per sample."
        )
    clusters, codes = np.unique(marks, return_inverse=True)
    if len(clusters) < 2:
        raise ValueError("labels has one cluster: it takes two to compare them.")
    return clusters, codes


def is_unknown(value: Any) -> bool:
    """Whether a value says nothing: None, NaN, or a word for missing.

    Examples
    --------
    >>> [is_unknown(value) for value in (None, float("nan"), "", "NA", 0)]
    [True, True, True, True, False]
    """
    return is_missing(value) or value != value
