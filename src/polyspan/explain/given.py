"""Views as a fit takes them, with the names of views, features and samples."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.inputs.views import Views, check_views
from polyspan.io.columns import is_missing
from polyspan.runtime.arrays import to_numpy

# What TCGA and GDC write for a missing value.
_CLINICAL = re.compile(r"\[(not (available|applicable|evaluated)|unknown|discrepancy)\]|'?--")


def named_views(X: Any, cut: Any = None) -> Views:
    """Check views; features without names are numbered from 1.

    Parameters
    ----------
    X : as in ``fit``
        Views, as a list or dictionary of arrays and tables, or what knows its views.
    cut : list, optional
        The ``views`` of an estimator that cut a single 2-D array.

    Examples
    --------
    >>> import pandas as pd
    >>> look = pd.DataFrame({"legs": [2.0, 4]}, index=["wren", "fox"])
    >>> found = named_views({"look": look})
    >>> found.columns, ids_of(found), named_views([np.eye(2)]).columns
    ({'look': ['legs']}, ['wren', 'fox'], {'0': ['column1', 'column2']})
    """
    views = check_views(X, cut, missing=True)
    arrays = [X if sp.issparse(X) else to_numpy(X) for X in views.arrays]
    columns = {name: views.columns.get(name) or numbered(int(X.shape[1])) for X, name in views}
    return replace(views, arrays=arrays, columns=columns)


def ids_of(views: Views) -> list[str]:
    """The ids of the samples as text; without ids, they are numbered from 0."""
    return [str(i) for i in (views.samples.ids if views.samples else range(views.n_samples))]


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
    """Whether a value says nothing: None, NaN, or a word for missing, also of clinical tables.

    Examples
    --------
    >>> [is_unknown(value) for value in (None, float("nan"), "", "NA", "[Not Available]", 0)]
    [True, True, True, True, True, False]
    """
    if isinstance(value, str) and _CLINICAL.fullmatch(value.strip().lower()):
        return True
    return is_missing(value) or value != value
