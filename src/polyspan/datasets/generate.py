"""Planted data: a union of subspaces seen in several views."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np

from polyspan.inputs.params import check_params, integer, one_of, real
from polyspan.io.dataset import Dataset

SPOILED = 2  # views with the nuisance
CHECKS = dict.fromkeys(("n_samples", "n_clusters", "n_views", "subspace_dim"), integer(1)) | {
    "noise": real(0), "outliers": real(0, 1), "nuisance": real(0),
    "dtype": one_of("float64", "float32"),
}  # fmt: skip


def make_subspaces(
    n_samples: int = 150,
    n_clusters: int = 3,
    n_views: int | None = None,
    n_features: int | Sequence[int] = 30,
    subspace_dim: int = 3,
    noise: float = 0.0,
    outliers: float = 0.0,
    random_state: int | None = 0,
    nuisance: float = 0.0,
    dtype: str = "float64",
) -> Dataset:
    """Samples from a planted union of subspaces, seen in several views.

    Every cluster has its own random subspace in every view. A sample has one vector of
    Gaussian coefficients, and each view maps it into that view's subspace of the sample's cluster:
    the views share both the clusters and the way samples are combinations of each other.

    With ``nuisance``, the first two views have a second structure that the others do not see, such
    as a batch: another partition of the samples into as many groups, drawn independently of the
    clusters, with its own subspaces and coefficients, is added to both.

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
    nuisance : float, default=0.0
        Length of the nuisance part of a sample relative to that of its cluster; needs three views.
        The groups are in ``extra["nuisance"]``.
    dtype : {"float64", "float32"}, default="float64"
        Type of the views. float32 draws and holds half as much: a million samples in three views
        of 50 features take 0.6 GB, and a third of that again while they are made.

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
    values = {"n_samples": n_samples, "n_clusters": n_clusters, "n_views": n_views,
              "subspace_dim": subspace_dim, "noise": noise, "outliers": outliers,
              "nuisance": nuisance, "dtype": dtype}  # fmt: skip
    check_params("make_subspaces", values, CHECKS)
    _check_fit(n_samples, n_clusters, n_views, features, subspace_dim, nuisance)

    rng = np.random.default_rng(random_state)
    labels = np.sort(np.arange(n_samples) % n_clusters)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.dtype(dtype))

    def inside(groups: np.ndarray, coefficients: np.ndarray, d: int) -> np.ndarray:
        X = np.empty((n_samples, d), dtype)
        for c in range(n_clusters):
            basis = np.linalg.qr(normal(d, subspace_dim))[0]
            X[groups == c] = coefficients[groups == c] @ basis.T
        return X

    coefficients = normal(n_samples, subspace_dim) / np.sqrt(subspace_dim, dtype=dtype)
    views, extra = [], {}
    if nuisance > 0:
        groups = extra["nuisance"] = rng.permutation(labels)
        others = normal(n_samples, subspace_dim) * np.dtype(dtype).type(
            nuisance / np.sqrt(subspace_dim)
        )
    for k, d in enumerate(features):
        X = inside(labels, coefficients, d)
        if nuisance > 0 and k < SPOILED:
            X += inside(groups, others, d)
        drawn = normal(*X.shape)
        drawn *= noise / np.sqrt(d)
        X += drawn
        bad = rng.choice(n_samples, size=round(outliers * n_samples), replace=False)
        X[bad] = normal(len(bad), d) / np.sqrt(d)
        views.append(X)
    names = [f"view{k}" for k in range(1, n_views + 1)]
    return Dataset("subspaces", views, labels.astype(np.int64), names, n_clusters, extra)


def _check_fit(
    n_samples: int, n_clusters: int, n_views: int, features: list[int], dim: int, nuisance: float
) -> None:
    """Refuse numbers that do not go together."""
    if n_clusters > n_samples:
        raise ValueError(
            f"n_clusters={n_clusters} is more than n_samples={n_samples}: a cluster would be empty"
        )
    if len(features) != n_views:
        raise ValueError(
            f"n_features has {len(features)} numbers for n_views={n_views}: give one per view"
        )
    if dim > min(features):
        raise ValueError(f"subspace_dim={dim} is more than the {min(features)} features of a view")
    if nuisance > 0 and n_views <= SPOILED:
        raise ValueError(
            f"nuisance={nuisance} is added to two views, and there must be one without it: "
            f"n_views must be at least {SPOILED + 1}, got {n_views}"
        )
