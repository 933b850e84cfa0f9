"""What a user would try first: k-means and k-NN spectral clustering of the concatenated views.

Every view is scaled by itself, then the features stand side by side. Both hand the work to
scikit-learn; they are here because no comparison is fair without them.
"""

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import SpectralClustering
from sklearn.neighbors import kneighbors_graph

from polyspan.base import COMMON, About, MultiViewClusterer
from polyspan.clustering.spectral import kmeans, quiet_kmeans
from polyspan.inputs.params import Check, integer
from polyspan.inputs.scaling import scale_views
from polyspan.inputs.views import Views
from polyspan.solvers.arrays import to_numpy

_SHARED = {name: COMMON[name] for name in ("n_clusters", "scale", "n_init", "random_state")}


def concatenate(views: Views, scale: str | None) -> Any:
    """Put the scaled views side by side; sparse when any of them is."""
    parts = [x if sp.issparse(x) else to_numpy(x) for x in scale_views(views, scale)]
    if not any(map(sp.issparse, parts)):
        return np.hstack(parts)
    whole = sp.hstack(parts, format="csr")
    if max(whole.nnz, whole.shape[1]) < 2**31:  # k-means takes only short indices
        short = whole.indices.astype(np.int32), whole.indptr.astype(np.int32)
        whole = sp.csr_array((whole.data, *short), shape=whole.shape)
    return whole


class ConcatKMeans(MultiViewClusterer):
    """k-means on the scaled, concatenated views.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    scale : {"unit", "standard+unit", None}, default="unit"
        Scaling of every view before they are put side by side.
    n_init : int, default=20
        Restarts; of more than 20,000 samples they see that many, and the best starts a run on all.
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views.
    random_state : int, RandomState or None, default=None
        Seeds k-means.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    n_iter_ : int
        Turns of the best restart.

    Examples
    --------
    >>> from polyspan import ConcatKMeans
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> ConcatKMeans(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    _about = About(
        paper="baseline",
        objective="min sum_i |x_i - mu_i|^2, mu_i the centre nearest to x_i",
        needs="scale",
        cost="O(n d c) per turn",
    )
    _checks: ClassVar[dict[str, Check]] = _SHARED

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        scale: str | None = "unit",
        n_init: int = 20,
        views: Sequence[Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.scale = scale
        self.n_init = n_init
        self.views = views
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples; ``X`` as in every method, ``y`` is ignored."""
        views = self._check(X)
        whole = concatenate(views, self.scale)
        model = kmeans(whole, self.n_clusters, n_init=self.n_init, random_state=self.random_state)
        self.labels_, self.n_iter_ = model.labels_, model.n_iter_
        return self

    def _n_square(self, views: Views) -> float:
        return 0.0


class ConcatSpectral(MultiViewClusterer):
    """Spectral clustering of the k-NN graph of the scaled, concatenated views.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbours in the graph, the sample itself counted as scikit-learn does; None is
        min(10, n - 1).
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

    _about = About(
        paper="baseline",
        objective="normalised cut of the k-NN graph of all features side by side",
        needs="n_neighbors",
        cost="O(n^2 d) once, sparse eigenvectors",
    )
    _checks: ClassVar[dict[str, Check]] = _SHARED | {
        "n_neighbors": integer(1, none="min(10, n - 1)")
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int | None = None,
        scale: str | None = "unit",
        n_init: int = 20,
        views: Sequence[Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.scale = scale
        self.n_init = n_init
        self.views = views
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster the samples; ``X`` as in every method, ``y`` is ignored."""
        views = self._check(X)
        n = views.n_samples
        k = min(10, n - 1) if self.n_neighbors is None else self.n_neighbors
        near = kneighbors_graph(concatenate(views, self.scale), k, include_self=True)
        self.affinity_matrix_ = (near + near.T) / 2
        if self.n_clusters == n:  # ARPACK wants fewer vectors than samples
            self.labels_ = np.arange(n)
            return self
        model = SpectralClustering(
            self.n_clusters,
            affinity="precomputed",
            n_init=self.n_init,
            random_state=self.random_state,
        )
        with quiet_kmeans(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Graph is not fully connected")
            self.labels_ = model.fit(self.affinity_matrix_).labels_
        return self

    def _n_square(self, views: Views) -> float:
        return 0.0
