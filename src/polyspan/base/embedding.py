"""Methods that embed the samples."""

from typing import Any, ClassVar

from polyspan.base.kinds import ScaledClusterer
from polyspan.clustering.spectral import kmeans, settled, unit_rows
from polyspan.inputs.views import Views
from polyspan.solvers.arrays import Array, to_numpy
from polyspan.solvers.loop import Solution


class EmbeddingClusterer(ScaledClusterer):
    """Base of methods whose solver finds coordinates Y (n x p), which k-means clusters.

    Rows are first scaled to unit length, unless the method sets ``by_direction`` to False. With
    more than 20,000 samples, the restarts of k-means see only 20,000 of them.
    """

    by_direction: ClassVar[bool] = True

    def _cluster(self, found: Solution, views: Views, Xs: list[Array]) -> dict[str, Any]:
        Y = to_numpy(found.Z)
        seed = self.random_state if found.random_state is None else found.random_state
        model = kmeans(
            settled(unit_rows(Y)) if self.by_direction else Y,
            self.n_clusters,
            n_init=self.n_init,
            random_state=seed,
        )
        back = getattr(self, "device", None) is not None  # bring back what was moved there
        return {"labels_": model.labels_, "embedding_": Y if back else found.Z}
