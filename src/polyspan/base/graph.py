"""Methods that learn a graph of the samples."""

from typing import Any, ClassVar

import scipy.sparse as sp

from polyspan.base.kinds import ScaledClusterer
from polyspan.clustering.large import LARGE, cluster_graph
from polyspan.clustering.spectral import component_clustering, spectral_clustering
from polyspan.inputs.views import Views
from polyspan.solvers.arrays import Array
from polyspan.solvers.loop import Solution


class GraphClusterer(ScaledClusterer):
    """Base of methods whose solver finds a graph W, symmetric and non-negative.

    If the method gives W ``n_clusters`` connected components (``components``), these are the
    clusters; otherwise the labels come from normalized spectral clustering, of sparse graphs with
    more than 20,000 samples as in `polyspan.clustering.large`.
    """

    components: ClassVar[bool] = False

    def _cluster(self, found: Solution, views: Views, Xs: list[Array]) -> dict[str, Any]:
        cut = component_clustering if self.components else spectral_clustering
        if not self.components and sp.issparse(found.Z) and found.Z.shape[0] > LARGE:
            cut = cluster_graph
        labels = cut(found.Z, self.n_clusters, n_init=self.n_init, random_state=self.random_state)
        return {"labels_": labels, "affinity_matrix_": found.Z}
