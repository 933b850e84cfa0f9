"""Which settings run: those of GRMSC, or of AnchorGRMSC for many samples, and the baselines."""

from collections.abc import Sequence
from typing import Any

import scipy.sparse as sp
from array_api_compat import device as array_device

from polyspan.base import MultiViewClusterer
from polyspan.inputs.views import Views
from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC
from polyspan.methods.baselines import ConcatKMeans, ConcatSpectral
from polyspan.methods.grmsc import GRMSC
from polyspan.methods.lmvsc import LMVSC

SCALINGS = ("unit", "standard+unit")
FULL_GRID_BELOW = 1500  # samples; above, the number of solves falls like 1 / n^2
# Up to this many samples, solutions are exact: for 4,000 one takes three minutes on two cores, for
# 10,000 nine seconds and 11 GiB on a GPU (docs/speed.md).
EXACT_UP_TO = 4_000
EXACT_UP_TO_ON_GPU = 10_000
# `ConcatSpectral` runs up to this many samples. Its eigensolver factorises the k-NN graph, which
# takes seconds if there are clusters, but on noise 15 s for 5,000 samples, 100 s for 10,000, and
# more than 250 s for 20,000.
SPECTRAL_UP_TO = 10_000
FEWEST_ANCHORS = 100
LINKS = 10_000_000  # of samples to anchors, for the larger number of anchors
FULL_ANCHOR_GRID_BELOW = 50_000  # samples; above, there are fewer solves


def default_grid(n: int, n_clusters: int) -> list[dict[str, Any]]:
    """Return the settings of `GRMSC` in the pool for n samples, the most different first.

    Neighbourhoods and kept entries are at most as large as a cluster of mean size, because larger
    ones join clusters. One solve gives a representation that is used for several affinities.

    Examples
    --------
    >>> [len(default_grid(n, 5)) for n in (100, 500, 1000, 2000, 5000)]
    [20, 42, 42, 21, 3]
    """
    size = max(10, n // n_clusters)
    affinities: list[dict[str, Any]] = [
        {"affinity": "sparse", "n_kept": kept} for kept in (10, 30) if kept <= size
    ]
    return [
        solve | affinity
        for solve in exact_solves(n, (min(30, size), 10, size))
        for affinity in [*affinities, {"affinity": "dense"}]
    ]


def anchor_grid(n: int, n_clusters: int) -> list[dict[str, Any]]:
    """Return the settings of `AnchorGRMSC` in the pool for many samples, the cheapest first.

    There are two numbers of anchors; the smaller is at least five per cluster where that is
    affordable. The links between samples and the larger number of anchors are at most ten million;
    where that does not leave room for two numbers, there is only the smaller one. Each
    representation is used with two numbers of kept links. Above 50,000 samples there are fewer
    representations, down to one for each scaling, so that the time grows more slowly.

    Examples
    --------
    >>> [len(anchor_grid(n, 10)) for n in (5_000, 50_000, 100_000, 1_000_000)]
    [16, 16, 8, 4]
    >>> sorted({params["n_anchors"] for params in anchor_grid(10_000, 10)})
    [100, 500]
    """
    most = LINKS // n
    few = max(FEWEST_ANCHORS, min(5 * n_clusters, max(2 * n_clusters, most)))
    many = min(5 * few, most)
    solves = anchor_solves([few, many] if many >= 2 * few else [few])
    solves = solves[: max(len(SCALINGS), int(8 * min(1.0, FULL_ANCHOR_GRID_BELOW / n)))]
    return [solve | {"n_kept": kept} for solve in solves for kept in (3, 10)]


def baselines(n: int, n_clusters: int, anchored: bool) -> list[MultiViewClusterer]:
    """Methods that cost little, or that are a usual choice for this many samples."""
    models: list[MultiViewClusterer] = []
    if anchored:
        more = min(n, max(FEWEST_ANCHORS, 2 * n_clusters))
        models += [LMVSC(scale=scale, n_anchors=m) for m in (None, more) for scale in SCALINGS]
    if n <= SPECTRAL_UP_TO:
        models += [
            ConcatSpectral(scale=scale, n_neighbors=min(k, n - 1))
            for k in ((10, 30) if anchored else (10, 15, 30))
            for scale in SCALINGS
        ]
    return models + [ConcatKMeans(scale=scale) for scale in SCALINGS]


def default_members(
    views: Views, n_clusters: int, device: str | None = None
) -> list[MultiViewClusterer]:
    """Return the members of a consensus: the baselines and the grid that suits the samples.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.inputs.views import check_views
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> members = default_members(check_views([X, X]), 3)
    >>> sorted({type(one).__name__ for one in members})
    ['ConcatKMeans', 'ConcatSpectral', 'GRMSC']
    """
    n = views.n_samples
    if exactly(views, device):
        own = [GRMSC(device=device, **params) for params in default_grid(n, n_clusters)]
        return baselines(n, n_clusters, False) + own
    return baselines(n, n_clusters, True) + [
        AnchorGRMSC(**params) for params in anchor_grid(n, n_clusters)
    ]


def exactly(views: Views, device: str | None) -> bool:
    """Whether the samples are few enough for exact solutions on the device that computes them."""
    first = views.arrays[0]
    where = device or ("cpu" if sp.issparse(first) else str(array_device(first)))
    limit = EXACT_UP_TO if "cpu" in where.lower() else EXACT_UP_TO_ON_GPU
    return views.n_samples <= limit and _fits(views, device)


def _fits(views: Views, device: str | None) -> bool:
    try:
        GRMSC(2, device=device, n_neighbors=1).check(views)
    except MemoryError:
        return False
    return True


def anchor_solves(numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Parameters of `AnchorGRMSC` that change the representation, for these numbers of anchors."""
    return [
        {"scale": scale, "n_anchors": m, "lam1": lam1, "lam2": lam2, "dtype": "float32"}
        for m in numbers
        for lam1, lam2 in ((0.1, 1.0), (1.0, 10.0))
        for scale in SCALINGS
    ]


def exact_solves(n: int, neighbors: Sequence[int]) -> list[dict[str, Any]]:
    """Parameters that change the representation; fewer for many samples, as a solve is O(n^3)."""
    ks = [min(k, n - 1) for k in dict.fromkeys(neighbors)]
    solves: list[dict[str, Any]] = [
        {"scale": scale, "n_neighbors": k, "lam1": lam1, "lam2": lam2}
        for lam1, lam2 in ((100.0, 1000.0), (1.0, 10.0))
        for k in ks
        for scale in SCALINGS
    ]
    solves += [
        {"scale": scale, "n_neighbors": ks[0], "orientation": "published"} for scale in SCALINGS
    ]
    return solves[: max(1, int(len(solves) * min(1.0, (FULL_GRID_BELOW / n) ** 2)))]
