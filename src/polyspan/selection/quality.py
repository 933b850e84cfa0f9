"""What the views say of a clustering: its modularity on their neighbour graphs."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from polyspan.graphs.knn import nearest_neighbors
from polyspan.inputs.scaling import Scaling, numpy_views
from polyspan.inputs.views import Views
from polyspan.selection.viewgraphs import NEIGHBORS, modularity


def scaled_graphs(views: Views, scalings: Sequence[Sequence[Scaling]]) -> list[list[sp.csr_array]]:
    """Symmetric k-NN graphs, a list for each view with one graph for each of its scalings.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> graphs = scaled_graphs(check_views([X, X]), [("unit", "unit"), ("standard", "unit")])
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
