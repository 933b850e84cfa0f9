"""What others would run on many samples: methods for one matrix, given the views side by side.

They are told the number of clusters and get the views scaled and, if a view is wide, reduced to its
first 50 principal components, as single-cell programs do. `scale.py` runs them.
"""

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import MiniBatchKMeans, SpectralClustering
from sklearn.decomposition import PCA

from polyspan.graphs.knn import nearest_neighbors

COMPONENTS = 50  # of a view
NEIGHBORS = 15  # of the graph that Leiden divides, scanpy's default
ROUNDS = 30  # of the bisection


def side_by_side(Xs: list[np.ndarray], seed: int) -> np.ndarray:
    """The scaled views in one matrix, wide ones as principal components."""
    return np.hstack([
        PCA(COMPONENTS, random_state=seed).fit_transform(X) if X.shape[1] > COMPONENTS else X
        for X in Xs
    ])  # fmt: skip


def minibatch(Xs: list[np.ndarray], c: int, seed: int) -> np.ndarray:
    model = MiniBatchKMeans(c, batch_size=8192, n_init=20, random_state=seed)
    return model.fit(np.hstack(Xs)).labels_


def knn_spectral(Xs: list[np.ndarray], c: int, seed: int) -> np.ndarray:
    """Spectral clustering of scikit-learn on its 10-NN graph."""
    model = SpectralClustering(
        c, affinity="nearest_neighbors", n_neighbors=10, n_init=20, random_state=seed
    )
    return model.fit(side_by_side(Xs, seed)).labels_


def leiden(Xs: list[np.ndarray], c: int, seed: int) -> np.ndarray:
    """Leiden's communities of the 15-NN graph; the resolution is bisected to c communities."""
    A = nearest_neighbors(side_by_side(Xs, seed), NEIGHBORS).shares
    return bisected(sp.triu(sp.csr_array((A + A.T) / 2), format="coo"), c, seed)


def bisected(links: sp.coo_array, c: int, seed: int) -> np.ndarray:
    """Communities of a graph, as near to c as thirty resolutions allow."""
    import random

    import igraph

    igraph.set_random_number_generator(random.Random(seed))
    graph = igraph.Graph(links.shape[0], np.c_[links.row, links.col])
    low, high, best = 1e-3, 1e2, None
    for _ in range(ROUNDS):
        middle = float(np.sqrt(low * high))
        found = graph.community_leiden(
            "modularity", weights=links.data, resolution=middle, n_iterations=2
        )
        labels = np.array(found.membership)
        count = labels.max() + 1
        if best is None or abs(count - c) < abs(best.max() + 1 - c):
            best = labels
        if count == c:
            break
        low, high = (middle, high) if count < c else (low, middle)
    return best


PEERS = {"MiniBatchKMeans": minibatch, "KNNSpectral": knn_spectral, "Leiden": leiden}
