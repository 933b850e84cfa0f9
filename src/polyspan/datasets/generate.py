"""Planted data: a union of subspaces seen in several views."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from polyspan.datasets.dataset import Dataset


def make_subspaces(
    n_samples: int = 150,
    n_clusters: int = 3,
    n_views: int | None = None,
    n_features: int | Sequence[int] = 30,
    subspace_dim: int = 3,
    noise: float = 0.0,
    outliers: float = 0.0,
    random_state: int | None = 0,
) -> Dataset:
    """Samples from a planted union of subspaces, seen in several views.

    Every cluster has its own random subspace in every view. A sample has one vector of
    Gaussian coefficients, and each view maps it into that view's subspace of the sample's cluster:
    the views share both the clusters and the way samples are combinations of each other.

    Parameters
    ----------
    n_samples : int, default=150
        Number of samples; cluster sizes differ by at most one.
    n_clusters : int, default=3
        Number of clusters.
    n_views : int, optional
        Number of views. By default the length of `n_features`, or 2 if that is one number.
    n_features : int or sequence of int, default=30
        Number of features: one for all views, or one per view.
    subspace_dim : int, default=3
        Dimension of every subspace.
    noise : float, default=0.0
        Size of the Gaussian noise relative to a sample: 0.1 adds noise of about a tenth of a
        sample's length.
    outliers : float, default=0.0
        Fraction of the samples, drawn anew in each view, that are replaced in that view by a
        random vector of the usual length.
    random_state : int or None, default=0
        Seed of the random numbers; None uses a new one each time.

    Returns
    -------
    Dataset
        Samples are ordered by cluster, so that an affinity matrix shows its blocks.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=90, n_clusters=3, n_features=[20, 40], subspace_dim=4)
    >>> [view.shape for view in data.views]
    [(90, 20), (90, 40)]
    >>> import numpy as np
    >>> int(np.linalg.matrix_rank(data.views[1][data.labels == 0]))
    4
    """
    if isinstance(n_features, Integral):
        features = [int(n_features)] * (2 if n_views is None else n_views)
    else:
        features = [int(d) for d in n_features]  # type: ignore[union-attr]
    n_views = len(features) if n_views is None else n_views
    _check_arguments(n_samples, n_clusters, n_views, features, subspace_dim, noise, outliers)

    rng = np.random.default_rng(random_state)
    labels = np.sort(np.arange(n_samples) % n_clusters)
    coefficients = rng.standard_normal((n_samples, subspace_dim)) / np.sqrt(subspace_dim)
    views = []
    for d in features:
        X = np.empty((n_samples, d))
        for c in range(n_clusters):
            basis = np.linalg.qr(rng.standard_normal((d, subspace_dim)))[0]
            X[labels == c] = coefficients[labels == c] @ basis.T
        X += noise / np.sqrt(d) * rng.standard_normal(X.shape)
        bad = rng.choice(n_samples, size=round(outliers * n_samples), replace=False)
        X[bad] = rng.standard_normal((len(bad), d)) / np.sqrt(d)
        views.append(X)
    names = [f"view{k}" for k in range(1, n_views + 1)]
    return Dataset("subspaces", views, labels.astype(np.int64), names, n_clusters)


def _check_arguments(
    n_samples: int,
    n_clusters: int,
    n_views: int,
    features: list[int],
    subspace_dim: int,
    noise: float,
    outliers: float,
) -> None:
    counts = {"n_clusters": n_clusters, "n_views": n_views, "subspace_dim": subspace_dim}
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if n_clusters > n_samples:
        raise ValueError(
            f"n_clusters={n_clusters} is more than n_samples={n_samples}: a cluster would be empty"
        )
    if len(features) != n_views:
        raise ValueError(
            f"n_features has {len(features)} numbers for n_views={n_views}: give one per view"
        )
    if subspace_dim > min(features):
        raise ValueError(
            f"subspace_dim={subspace_dim} is more than the {min(features)} features of a view"
        )
    if not noise >= 0:
        raise ValueError(f"noise must be 0 or more, got {noise}")
    if not 0 <= outliers <= 1:
        raise ValueError(f"outliers must be a fraction from 0 to 1, got {outliers}")
