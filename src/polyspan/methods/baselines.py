"""Baselines to try first: k-means and k-NN spectral clustering of the concatenated views.

Each view is scaled separately, then the features are put side by side. Both use scikit-learn; they
are included because no comparison is fair without them.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components
from sklearn.cluster import SpectralClustering

from polyspan.base import About, Graph, Labels, ScaledClusterer
from polyspan.clustering.spectral import kmeans, quiet_kmeans, spectral_clustering
from polyspan.graphs.knn import nearest_neighbors
from polyspan.inputs.params import Neighbors, fitted, param
from polyspan.inputs.scaling import short_indices
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, to_numpy
from polyspan.runtime.messages import own_warnings

# scikit-learn factorizes the graph: 100 s for 10,000 samples of noise. Lanczos iterations do not.
FACTORIZED_UP_TO = 4_000


def side_by_side(Xs: Sequence[Array]) -> Any:
    """Put scaled views side by side, in NumPy; the result is sparse if any of them is."""
    parts = [X if sp.issparse(X) else to_numpy(X) for X in Xs]
    if not any(map(sp.issparse, parts)):
        return np.hstack(parts)
    return short_indices(sp.hstack(parts, format="csr"))


class ConcatKMeans(ScaledClusterer):
    """k-means on the scaled, concatenated views.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        Scaling of every view before they are put side by side.
    n_init : int, default=20
        Restarts; with more than 20,000 samples they see 20,000, and the best starts a run on all.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views.
    random_state : int, RandomState or None, default=None
        Seeds k-means.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    n_iter_ : int
        Iterations of the best restart.

    Examples
    --------
    >>> from polyspan import ConcatKMeans
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> ConcatKMeans(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="baseline",
        objective="min sum_i |x_i - mu_i|^2, mu_i the center nearest to x_i",
        needs="scale",
        cost="O(n d c) per iteration",
    )
    family = "k-means"
    draws = True  # its starts

    n_iter_: int = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Labels:
        """Return the labels."""
        whole = side_by_side(Xs)
        model = kmeans(whole, self.n_clusters, n_init=self.n_init, random_state=self.random_state)
        return Labels(model.labels_, n_iter=model.n_iter_)

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count nothing: it needs no more memory than the features."""
        return 0.0, 0.0


class ConcatSpectral(ScaledClusterer):
    """Spectral clustering of the k-NN graph of the scaled, concatenated views.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors in the graph, including the sample itself as in scikit-learn; None is
        min(10, n - 1). Samples tied for the last place share it. Beyond 20,000 samples they are
        approximate: labels depend a little on the order of the samples.
    scale, n_init, views, random_state
        As in `ConcatKMeans`.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    affinity_matrix_ : scipy.sparse matrix
        The k-NN graph.

    Examples
    --------
    >>> from polyspan import ConcatSpectral
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> ConcatSpectral(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="baseline",
        objective="normalized cut of the k-NN graph of all features side by side",
        needs="n_neighbors",
        cost="O(n^2 d) once, sparse eigenvectors",
    )
    family = "early fusion"

    n_neighbors: int | None = param(Neighbors(10), default=None)

    affinity_matrix_: Any = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Graph:
        """Return the k-NN graph."""
        k = self._neighbors(views.n_samples)
        near = sp.eye_array(views.n_samples, format="csr")
        if k > 1:
            near = near + nearest_neighbors(side_by_side(Xs), k - 1).shares
        return Graph(short_indices(sp.csr_array((near + near.T) / 2)), cut_like_scikit_learn)

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count nothing: the graph is sparse."""
        return 0.0, 0.0


def cut_like_scikit_learn(W: sp.csr_array, n_clusters: int, **options: Any) -> np.ndarray:
    """Labels by scikit-learn's spectral clustering, or by ours where its solver is slow or random.

    Examples
    --------
    >>> W = sp.csr_array(np.kron(np.eye(2), np.ones((3, 3))) + 0.1)
    >>> sorted(np.bincount(cut_like_scikit_learn(W, 2, n_init=5, random_state=0)).tolist())
    [3, 3]
    """
    n = W.shape[0]
    if n_clusters == n:  # ARPACK needs fewer vectors than samples
        return np.arange(n)
    # ARPACK returns arbitrary vectors, other ones each time, of a graph in that many pieces.
    if n > FACTORIZED_UP_TO or connected_components(W)[0] >= n_clusters:
        return spectral_clustering(W, n_clusters, **options)
    model = SpectralClustering(n_clusters, affinity="precomputed", **options)
    with quiet_kmeans(), own_warnings():
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        return model.fit(W).labels_
