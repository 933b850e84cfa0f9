"""Methods that write each sample in terms of the others."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from polyspan.base.kinds import Iterative
from polyspan.clustering.affinity import affinity_matrix
from polyspan.clustering.extension import extend_labels, new_representation
from polyspan.clustering.spectral import spectral_clustering
from polyspan.inputs.params import integer, one_of, param
from polyspan.inputs.rows import filled
from polyspan.inputs.scaling import feature_moments, scale_views
from polyspan.inputs.views import Views
from polyspan.solvers.arrays import Array, to_numpy
from polyspan.solvers.loop import Solution


class RepresentationClusterer(Iterative):
    """Base of methods whose solver finds Z (n x n): column j is sample j in terms of all samples.

    Spectral clustering is run on its affinity, ``|Z| + |Z|^T`` or its largest entries; new samples
    are written in terms of the fitted ones.
    """

    solves_products = True

    affinity: str = param(one_of("dense", "sparse"), default="dense")
    n_kept: int = param(integer(1), default=10)

    def represent(self, X: Any) -> Array:
        """Check the model and solve for Z, without fitting.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        (n, n) array
        """
        views = self.check(X)
        return self._solution(views, self.scaled(views)).Z

    def _cluster(self, found: Solution, views: Views, Xs: list[Array]) -> dict[str, Any]:
        Z, W = found.Z, affinity_matrix(found.Z, self.affinity, self.n_kept)
        labels = spectral_clustering(
            W, self.n_clusters, n_init=self.n_init, random_state=self.random_state
        )
        if getattr(self, "device", None) is not None:  # bring back what was moved there
            Z, W = to_numpy(Z), W if sp.issparse(W) else to_numpy(W)
        found_moments = feature_moments(views, self._scalings(views))
        return {
            "labels_": labels,
            "representation_": Z,
            "affinity_matrix_": W,
            # What new samples are scaled by and compared with.
            "_moments": [one and tuple(map(to_numpy, one)) for one in found_moments],
            "_dictionary": [filled(X.copy() if sp.issparse(X) else to_numpy(X) + 0) for X in Xs],
        }

    def predict(self, X: Any) -> np.ndarray:
        """Find the clusters of new samples, without changing the fit.

        A new sample x gets the column z that it would add to the representation Z if the columns
        of the fitted samples stayed the same; it is then placed in their spectral embedding::

            z = argmin_z  sum_k w_k |x_k - X_k z|^2 + g z^T (Z Z^T)^-1/2 z
            y = sum_i |z_i| / sqrt(d_i)  v_i / lambda

        X_k are the scaled views of the fitted samples (the sum is over the views that x has) and
        w_k the ``view_weights``, or 1 if there are none. The second term is what z adds to the
        nuclear norm of Z, to first order: ``|[Z z]|_* = |Z|_* + z^T (Z Z^T)^-1/2 z / 2``; it keeps
        z within the fitted subspaces. Its weight g is a tenth of the mean squared length of the
        fitted samples. v_i is the row of sample i in the eigenvectors of the normalized affinity,
        lambda their eigenvalues, d_i the degree of i: a fitted sample with these affinities has
        the same y (Nystroem's extension). With ``affinity="sparse"`` only the ``n_kept`` largest
        ``|z_i|`` count. y is scaled to unit length, and the label is that of the nearest mean of
        the fitted clusters.

        Parameters
        ----------
        X : list, tuple or dict of (m, d_k) arrays, or one (m, d) array
            The new samples, with the same views and features as in ``fit``; views in a dictionary
            are matched by name. They are scaled like the fitted ones; the computation is in NumPy.

        Returns
        -------
        (m,) array
            Cluster of every new sample.

        Examples
        --------
        >>> from polyspan import GRMSC
        >>> from polyspan.datasets import make_subspaces
        >>> data = make_subspaces(n_samples=90, n_clusters=3, random_state=0)
        >>> model = GRMSC(n_clusters=3, random_state=0).fit([X[:60] for X in data.views])
        >>> model.predict([X[60:] for X in data.views]).shape
        (30,)
        """
        check_is_fitted(self, "labels_")
        views = self._check_new(X)
        Xs = scale_views(views, self._scalings(views), self._moments)
        Z = new_representation(
            self._dictionary, Xs, to_numpy(self.representation_), self._weights()
        )
        W = self.affinity_matrix_
        return extend_labels(
            W if sp.issparse(W) else to_numpy(W),
            self.labels_,
            self.n_clusters,
            Z,
            n_kept=self.n_kept if self.affinity == "sparse" else None,
        )

    def _weights(self) -> list[float] | None:
        """Weights of the prepared views, or None if they are equal."""
        return None
