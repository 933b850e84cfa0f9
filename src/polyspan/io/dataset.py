"""Views of the same samples, and their classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polyspan.runtime.messages import plural


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """Several descriptions (views) of the same samples, and their true classes.

    Attributes
    ----------
    name : str
        Name of the data set.
    views : list of (n_samples, n_features) arrays or sparse arrays
        One matrix per view, samples in rows, float64.
    labels : (n_samples,) array of int
        True classes 0, 1, ..., n_clusters - 1. Empty when the classes are not known.
    view_names : list of str
        One name per view.
    n_clusters : int
        Number of classes; 0 when the classes are not known.
    extra : dict of str to (n_samples,) array
        What else is known of the samples: ids, names of classes, survival. Often empty.
    columns : list of list of str
        Names of the features of each view; empty when they are not known.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, n_views=2, n_features=20)
    >>> data
    Dataset('subspaces': 60 samples, 2 views (view1 20, view2 20), 3 clusters)
    >>> data.views[0].shape, data.labels.shape
    ((60, 20), (60,))
    """

    name: str
    views: list[Any]
    labels: NDArray[np.int64]
    view_names: list[str]
    n_clusters: int
    extra: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    columns: list[list[str]] = field(default_factory=list)

    def __repr__(self) -> str:
        shapes = [view.shape for view in self.views]
        views = ", ".join(f"{v} {s[1]}" for v, s in zip(self.view_names, shapes, strict=True))
        count = f"{plural(len(shapes), 'view')} ({views})"
        classes = f"{self.n_clusters} clusters" if self.n_clusters else "no labels"
        return f"Dataset({self.name!r}: {shapes[0][0]} samples, {count}, {classes})"


def contiguous_labels(values: ArrayLike) -> NDArray[np.int64]:
    """Convert class labels of any kind (numbers, words) to integers 0, 1, ... in sorted order.

    Examples
    --------
    >>> contiguous_labels(["fox", "cat", "fox"])
    array([1, 0, 1])
    """
    return np.unique(np.asarray(values).ravel(), return_inverse=True)[1].astype(np.int64)
