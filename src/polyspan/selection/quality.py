"""What the views say of a clustering: its modularity on their neighbor graphs."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from polyspan.graphs.knn import Near, nearest_neighbors
from polyspan.inputs.scaling import Scaling, numpy_views
from polyspan.inputs.views import Views
from polyspan.selection.viewgraphs import NEIGHBORS, modularity


def scaled_neighbors(views: Views, scalings: Sequence[Sequence[Scaling]]) -> list[list[Near]]:
    """Nearest neighbors, a list for each view with one entry for each of its scalings.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> found = scaled_neighbors(check_views([X, X]), [("unit", "unit"), ("standard", "unit")])
    >>> [len(of_view) for of_view in found]
    [2, 1]
    """
    k = min(NEIGHBORS, views.n_samples - 1)
    scales = scalings_by_view(scalings)
    return [
        [nearest_neighbors(numpy_views(one, scale)[0], k) for scale in own]
        for one, own in zip(views.singly, scales, strict=True)
    ]


def scalings_by_view(scalings: Sequence[Sequence[Scaling]]) -> list[list[Scaling]]:
    """For every view, its different scalings.

    Examples
    --------
    >>> scalings_by_view([("unit", "unit"), ("standard", "unit")])
    [['unit', 'standard'], ['unit']]
    """
    return [list(dict.fromkeys(own)) for own in zip(*scalings, strict=True)]


def symmetric_graphs(near: Sequence[Sequence[Near]]) -> list[list[sp.csr_array]]:
    """Symmetric graphs of neighbors, in the same lists."""
    return [[sp.csr_array((one.shares + one.shares.T) / 2) for one in own] for own in near]


def view_modularity(graphs: Sequence[Sequence[sp.csr_array]], labels: np.ndarray) -> np.ndarray:
    """Modularity on the graphs of every view, the mean over its scalings.

    Examples
    --------
    >>> A = sp.csr_array(np.kron(np.eye(2), np.ones((3, 3))))
    >>> view_modularity([[A], [A, A]], np.array([0, 0, 0, 1, 1, 1]))
    array([0.5, 0.5])
    """
    coded = np.unique(labels, return_inverse=True)[1]
    return np.array([np.mean([modularity(A, coded) for A in of_view]) for of_view in graphs])
