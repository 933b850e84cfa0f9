"""What the views say of a clustering: Newman's modularity on their neighbour graphs."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from polyspan.graphs.knn import nearest_neighbors
from polyspan.inputs.scaling import Scaling, numpy_views
from polyspan.inputs.views import Views

NEIGHBORS = 10


def view_graphs(views: Views, scalings: Sequence[Sequence[Scaling]]) -> list[list[sp.csr_array]]:
    """Symmetric 10-NN graphs, a list for each view with one graph for each of its scalings.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> graphs = view_graphs(check_views([X, X]), [("unit", "unit"), ("standard", "unit")])
    >>> [len(of_view) for of_view in graphs]
    [2, 1]
    """
    k = min(NEIGHBORS, views.n_samples - 1)
    found = []
    for v, one in enumerate(views.singly):
        graphs = []
        for scale in dict.fromkeys(scaling[v] for scaling in scalings):
            A = nearest_neighbors(numpy_views(one, scale)[0], k).shares
            graphs.append(sp.csr_array((A + A.T) / 2))
        found.append(graphs)
    return found


def modularity(A: sp.csr_array, labels: np.ndarray) -> float:
    """Share of the links inside clusters, less that expected by chance from the degrees.

    Examples
    --------
    >>> A = sp.csr_array(np.kron(np.eye(2), np.ones((3, 3))))
    >>> modularity(A, np.array([0, 0, 0, 1, 1, 1])), modularity(A, np.zeros(6, dtype=int))
    (0.5, 0.0)
    """
    degrees = np.asarray(A.sum(axis=1)).ravel()
    total = degrees.sum()
    if total <= 0:
        return 0.0
    coded = np.unique(labels, return_inverse=True)[1]
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    inside = float(A.data[coded[rows] == coded[A.indices]].sum())
    shares = np.bincount(coded, weights=degrees) / total
    return inside / float(total) - float(np.sum(shares**2))


def view_modularity(graphs: Sequence[Sequence[sp.csr_array]], labels: np.ndarray) -> np.ndarray:
    """Modularity on the graphs of every view, the mean over its scalings."""
    return np.array([np.mean([modularity(A, labels) for A in of_view]) for of_view in graphs])
