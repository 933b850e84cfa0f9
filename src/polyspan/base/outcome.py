"""What a method finds: a representation, a graph, an embedding or labels.

Each knows how it becomes labels, and the other attributes of a fitted estimator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from polyspan.clustering.affinity import affinity_matrix
from polyspan.clustering.large import LARGE, cluster_graph
from polyspan.clustering.spectral import kmeans, settled, spectral_clustering, unit_rows
from polyspan.runtime.arrays import Array, to_numpy


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How the solver's loop went, and what else it learned; the main result is in a subclass."""

    n_iter: int | None = None
    history: dict[str, list[float]] | None = None
    complaints: tuple[Warning, ...] = ()  # warnings for the user
    extras: Mapping[str, Any] = field(default_factory=dict)  # by names of fitted attributes
    random_state: Any = None  # the random state after the solver's draws

    def learned(self, model: Any) -> dict[str, Any]:
        """Return the fitted attributes of a model by name, ``labels_`` among them."""
        loop = {"n_iter_": self.n_iter, "history_": self.history}
        learned = {name: value for name, value in loop.items() if value is not None}
        return learned | dict(self.extras) | self.clusters(model)

    def clusters(self, model: Any) -> dict[str, Any]:
        """Return the labels, and what they were found from."""
        raise NotImplementedError


@dataclass(frozen=True)
class Labels(Outcome):
    """The clusters themselves."""

    labels: np.ndarray

    def clusters(self, model: Any) -> dict[str, Any]:
        """Return the labels."""
        return {"labels_": self.labels}


def cut_graph(W: Array, n_clusters: int, **options: Any) -> np.ndarray:
    """Spectral clustering; of large sparse graphs as in `polyspan.clustering.large`.

    Examples
    --------
    >>> sorted(np.bincount(cut_graph(np.kron(np.eye(2), np.ones((3, 3))), 2, random_state=0)))
    [np.int64(3), np.int64(3)]
    """
    large = sp.issparse(W) and W.shape[0] > LARGE
    return (cluster_graph if large else spectral_clustering)(W, n_clusters, **options)


@dataclass(frozen=True)
class Graph(Outcome):
    """A graph W of the samples, symmetric and non-negative, and how it is cut into clusters."""

    W: Array
    cut: Callable[..., np.ndarray] = cut_graph

    def clusters(self, model: Any) -> dict[str, Any]:
        """Cut the graph."""
        return {"labels_": self.cut(self.W, **_kmeans(model)), "affinity_matrix_": self.W}


@dataclass(frozen=True)
class Embedding(Outcome):
    """Coordinates Y (n x p) for k-means; by the direction of the rows, unless their length counts.

    With more than 20,000 samples, the restarts of k-means see only 20,000 of them.
    """

    Y: Array
    by_direction: bool = True

    def clusters(self, model: Any) -> dict[str, Any]:
        """Cluster the rows."""
        Y, options = to_numpy(self.Y), _kmeans(model)
        if self.random_state is not None:
            options["random_state"] = self.random_state
        rows = settled(unit_rows(Y)) if self.by_direction else Y
        return {
            "labels_": kmeans(rows, **options).labels_,
            "embedding_": model.brought_back(self.Y),
        }


@dataclass(frozen=True)
class Representation(Outcome):
    """Z (n x n): column j is sample j in terms of all samples."""

    Z: Array

    def clusters(self, model: Any) -> dict[str, Any]:
        """Cluster the affinity ``|Z| + |Z|^T``, or its largest entries."""
        W = affinity_matrix(self.Z, model.affinity, model.n_kept)
        labels = spectral_clustering(W, **_kmeans(model))
        Z, W = model.brought_back(self.Z), W if sp.issparse(W) else model.brought_back(W)
        return {"labels_": labels, "representation_": Z, "affinity_matrix_": W}


def _kmeans(model: Any) -> dict[str, Any]:
    names = ("n_clusters", "n_init", "random_state")
    return {name: getattr(model, name) for name in names}
