"""SelfGraph: spectral clustering of the mean of the views' self-expression graphs.

Every sample of view v is written in terms of the others by least squares, in closed form::

    min_C  |X_v - C X_v|_F^2 + l |C|_F^2   s.t.  diag(C) = 0,      l = lam tr(X_v X_v^T) / n
    C_ij = -D_ij / D_ii,   D = (X_v X_v^T + l I)^-1

The rows of S_v are the ten largest ``|C_ij|`` of every sample, divided by their sum. W is their
mean, with ``n_neighbors`` = k also of the graphs A_v of the k nearest neighbors::

    W = 1/V sum_v (B_v + B_v^T) / 2,    B_v = S_v    or    B_v = (S_v + A_v / k) / 2

Of two samples that lack views, the mean is over the views that both have. Equal entries share the
last places: W does not depend on the order of the samples (`polyspan.graphs.self_expression`).

Where samples lie in subspaces, as pictures of a face do, S_v links those of one subspace, also far
ones, which a graph of neighbors does not. It finds there what GRMSC finds, for the price of one
matrix inverse. Where clusters are clouds of points it is worse than neighbors; both together are
good at either.

Reference: C.-Y. Lu, H. Min, Z.-Q. Zhao, L. Zhu, D.-S. Huang, S. Yan, "Robust and efficient subspace
segmentation via least squares regression" (LSR), ECCV 2012. The mean over views is ours.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from polyspan.base import About, Graph, InNumPy, OnDevice, TakesKernels
from polyspan.clustering.extension import extend_labels
from polyspan.graphs.knn import mean_of_graphs, nearest_neighbors, neighbor_graph
from polyspan.graphs.self_expression import DIRECTIONS, EXACT_UP_TO, expressed, self_graph
from polyspan.inputs.params import Neighbors, fitted, param, positive
from polyspan.inputs.scaling import feature_moments, scale_views
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, to_numpy

N_KEPT = 10  # links of a sample in every S_v


class SelfGraph(TakesKernels, InNumPy, OnDevice):
    """Mean of least-squares self-expression graphs, alone or added to those of neighbors.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam : float, default=1.0
        Weight of the squared coefficients, in units of the mean squared length of the samples;
        smaller where clusters are thin and noise is low.
    n_neighbors : int or None, default=None
        Neighbors in the graph that is added for every view; None adds none.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        Scaling of the views. Subspaces go through the origin: without unit length, long samples
        count more.
    n_init : int, default=20
        Restarts of k-means.
    precomputed : {None, "kernel"}, default=None
        As in `GRMSC`.
    device : str or None, default=None
        Where the matrices are inverted and multiplied, such as ``"cuda"`` (needs torch).
    views : list of slices or of column lists, default=None
        Cuts a single 2-D ``X`` into views.
    random_state : int, RandomState or None, default=None
        Seeds k-means; the graph does not depend on it.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    affinity_matrix_ : scipy.sparse matrix
        The mean graph W.

    Notes
    -----
    Among more than 5,000 samples the links of each are sought among its 100 nearest; among more
    than 20,000 these are approximate, and W depends a little on the order of the samples.

    Examples
    --------
    >>> from polyspan import SelfGraph
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> model = SelfGraph(n_clusters=3, random_state=0).fit(data.views)
    >>> bool((model.predict(data.views) == model.labels_).mean() > 0.9)
    True
    """

    about = About(
        paper="Lu et al., ECCV 2012 (LSR); the mean over views is ours",
        objective="normalized cut of the mean of the views' least-squares self-expression graphs",
        needs="lam, scale; n_neighbors where clusters are not subspaces",
        cost="an inverse per view, n x n or d x d; beyond 5,000 samples that of a neighbor graph",
    )
    family = "self graph"
    view_tags = {"missing_views": True}
    solve_counts = False

    lam: float = param(positive, default=1.0)
    n_neighbors: int | None = param(Neighbors(10), default=None)

    affinity_matrix_: sp.csr_array = fitted()
    _moments: list[Any] = fitted()
    _samples: list[Any] = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Graph:
        """Return the mean graph W."""
        graphs: list[Any] = [self_graph(X, self.lam, N_KEPT, self.device) for X in Xs]
        if self.n_neighbors:
            near = [neighbor_graph(X, self.n_neighbors, device=self.device) for X in Xs]
            graphs = [(S + A / self.n_neighbors) / 2 for S, A in zip(graphs, near, strict=True)]
        return Graph(mean_of_graphs(graphs, Xs))

    def predict(self, X: Any) -> np.ndarray:
        """Find the clusters of new samples, without changing the fit.

        A new sample is written in terms of the fitted ones, and linked to its nearest if
        ``n_neighbors`` is given, as they are among each other. Its links place it among their
        eigenvectors (Nystroem's extension), and it gets the nearest cluster there.

        Parameters
        ----------
        X : list, tuple or dict of (m, d_k) arrays, or one (m, d) array
            The new samples, with the same views and features as in ``fit``.

        Returns
        -------
        (m,) array
            Cluster of every new sample.

        Examples
        --------
        >>> from polyspan import SelfGraph
        >>> from polyspan.datasets import make_subspaces
        >>> data = make_subspaces(n_samples=90, n_clusters=3, random_state=0)
        >>> model = SelfGraph(n_clusters=3, random_state=0).fit([X[:60] for X in data.views])
        >>> model.predict([X[60:] for X in data.views]).shape
        (30,)
        """
        check_is_fitted(self, "labels_")
        views = self._check_new(X)
        news = scale_views(views, self._scalings(views), self._moments)
        links: Any = 0
        for known, new in zip(self._samples, news, strict=True):
            B = expressed(known, new, self.lam, N_KEPT)
            if self.n_neighbors:
                near = nearest_neighbors(known, self.n_neighbors, new).shares
                B = (B + near / self.n_neighbors) / 2
            links = links + B
        return extend_labels(
            self.affinity_matrix_, self.labels_, self.n_clusters, links.T.toarray()
        )

    def _kept(self, views: Views, Xs: list[Array]) -> dict[str, Any]:
        """What new samples are scaled by and compared with."""
        moments = feature_moments(views, self._scalings(views))
        return {
            "_moments": [of_view and tuple(map(to_numpy, of_view)) for of_view in moments],
            "_samples": [X.copy() for X in Xs],
        }

    def footprint(self, views: Views) -> tuple[float, float]:
        """Peak memory: the matrices that are inverted, features twice, and the links."""
        n, d = views.n_samples, max(views.widths)
        size = min(n, d) if n <= EXACT_UP_TO else min(d, DIRECTIONS)
        links = (N_KEPT + (self.n_neighbors or 0)) * len(views.arrays)
        return 0.0, 4 * size**2 / n + 2 * sum(views.widths) + 16 * links + 2 * self.n_clusters
