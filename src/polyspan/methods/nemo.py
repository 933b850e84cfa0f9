"""NEMO: neighborhood based multi-omics clustering, for samples that lack views.

In view v sample i has the neighbors N_i, k of them, at the mean distance m_i. Similarities are
measured by the distances around the two samples, and made relative to the neighborhoods::

    w_ij = exp(-d_ij^2 / (2 (mu eps_ij)^2)),      eps_ij = (m_i + m_j + d_ij) / 3
    R_ij = w_ij / sum_{r in N_i} w_ir   for j in N_i,  0 elsewhere
    W    = mean over the views that both samples have of (R_v + R_v^T) / 2

and W is cut by spectral clustering. A sample that is far from all others has neighbors that weigh
as much as those of others. Nothing is imputed for samples that lack views, and W is sparse.

The paper has a Gaussian density for w, with a mean of squared distances in eps; its program takes
the affinities of the SNF program, with mu = .5, from squared distances in place of d, the sample
itself as one of its k neighbors, and for pairs without a common view the mean of W. Here d is the
distance, as in SNF, N_i has k others, and such pairs have no link. Samples that are equally far
share the last places in N_i (`polyspan.graphs.knn`).

Reference: N. Rappoport, R. Shamir, "NEMO: cancer subtyping by integration of partial multi-omic
data", Bioinformatics 35 (2019).
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.base import About, Graph, InNumPy
from polyspan.graphs.knn import local_kernel, mean_of_graphs, nearest_neighbors
from polyspan.inputs.params import Neighbors, fitted, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array


class NEMO(InNumPy):
    """Mean of relative similarities to neighbors: sparse, takes samples that lack views.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_neighbors : int or None, default=None
        Neighbors in every view; None is min(20, n - 1), in the paper n / n_clusters or n / 6.
        Beyond 20,000 samples they are approximate: W depends a little on the order of the samples.
    mu : float, default=0.5
        Width of the kernel as a multiple of the distances around two samples.
    scale : {"unit", "standard+unit", None}, default="unit"
        Scaling of samples to unit length, after standardizing features if asked. The authors
        standardize features.
    n_init : int, default=20
        Restarts of k-means.
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

    Examples
    --------
    >>> from polyspan import NEMO
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, subspace_dim=2, random_state=0)
    >>> data.views[0][:5] = float("nan")  # samples that lack the first view
    >>> NEMO(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Rappoport and Shamir, Bioinformatics 2019, doi:10.1093/bioinformatics/btz058",
        objective="normalized cut of the mean of w_ij / sum_r w_ir over neighbors j, r of i",
        needs="n_neighbors, scale",
        cost="O(n^2 d) once, sparse eigenvectors; no n x n matrix",
    )
    family = "mean graph"
    view_tags = {"missing_views": True}
    solve_counts = False

    n_neighbors: int | None = param(Neighbors(20), default=None)
    mu: float = param(positive, default=0.5)

    affinity_matrix_: Any = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Graph:
        """Return the mean graph W."""
        k = self._neighbors(views.n_samples)
        return Graph(mean_of_graphs([relative_similarities(X, k, self.mu) for X in Xs], Xs))

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count numbers per sample: features twice, and links with their places."""
        links = self._neighbors(views.n_samples) * len(views.arrays)
        return 0.0, sum(views.widths) + 2 * max(views.widths) + 16 * links + 2 * self.n_clusters


def relative_similarities(X: Array, k: int, mu: float) -> sp.csr_array:
    """Similarities R of one view, samples in rows: row i has the neighbors of i and sums to 1.

    Examples
    --------
    >>> relative_similarities(np.array([[0.0], [1.0], [3.0]]), 2, 0.5).toarray().round(4)
    array([[0.    , 0.8799, 0.1201],
           [0.7523, 0.    , 0.2477],
           [0.2932, 0.7068, 0.    ]])
    """
    near = nearest_neighbors(X, k)
    m, i, j = near.mean_distances, near.rows, near.shares.indices
    R = near.graph(local_kernel(near.squares, m[i] + m[j], mu))
    totals = R.sum(axis=1)
    R.data /= np.where(totals > 0, totals, 1)[i]
    return R
