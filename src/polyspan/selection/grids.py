"""Which settings run: those of GRMSC, or of AnchorGRMSC for many samples, and the baselines."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import scipy.sparse as sp
from array_api_compat import device as array_device
from sklearn.utils import get_tags

from polyspan.base import MultiViewClusterer, OnDevice
from polyspan.inputs.rows import missing_rows
from polyspan.inputs.scaling import Scaling, is_constant, unit
from polyspan.inputs.views import Views
from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC
from polyspan.methods.baselines import ConcatKMeans, ConcatSpectral
from polyspan.methods.cgd import CGD
from polyspan.methods.fastmice import FastMICE
from polyspan.methods.grmsc import GRMSC
from polyspan.methods.lmvsc import LMVSC
from polyspan.methods.meangraph import MeanGraph
from polyspan.methods.nemo import NEMO
from polyspan.methods.snf import SNF

SCALINGS = ("unit", "standard+unit")
SECOND = ((100.0, 1000.0), (1.0, 10.0))  # lam1 and lam2 of GRMSC
FIRST = ((300.0, 100.0), (1.0, 1.0))  # the same without the second order
FULL_GRID_BELOW = 1500  # samples; above, the number of solves falls like 1 / n^2
# Up to this many samples, solutions are exact: for 4,000 one takes three minutes on two cores, for
# 10,000 nine seconds and 11 GiB on a GPU (docs/speed.md).
EXACT_UP_TO = 4_000
EXACT_UP_TO_ON_GPU = 10_000
MANY_SCALINGS = 2  # vote where there are more samples than that: the best, and one other
FEW_STARTS = 5  # of k-means on the features of many samples, where each takes long
ENSEMBLE_ANCHORS = 500  # of FastMICE there: half of its default, in half of the time
FEWEST_ANCHORS = 100
LINKS = 10_000_000  # of samples to anchors, beyond which there are two anchors per cluster


def affinities(n: int, n_clusters: int) -> list[dict[str, Any]]:
    """Affinities of every representation of `GRMSC`: kept entries are at most a mean cluster's.

    Examples
    --------
    >>> [len(affinities(n, 5)) for n in (40, 100, 500)]
    [2, 2, 3]
    """
    size = max(10, n // n_clusters)
    sparse: list[dict[str, Any]] = [
        {"affinity": "sparse", "n_kept": kept} for kept in (10, 30) if kept <= size
    ]
    return [*sparse, {"affinity": "dense"}]


def anchor_grid(n: int, n_clusters: int) -> list[dict[str, Any]]:
    """Return the settings of `AnchorGRMSC` in the pool for many samples.

    There are five anchors per cluster, 100 at least; two where the links between samples and
    anchors would be more than ten million. The representation is used with two numbers of kept
    links.

    Examples
    --------
    >>> anchor_grid(10_000, 10)
    [{'n_anchors': 100, 'dtype': 'float32', 'n_kept': 3},
     {'n_anchors': 100, 'dtype': 'float32', 'n_kept': 10}]
    """
    m = max(FEWEST_ANCHORS, min(5 * n_clusters, max(2 * n_clusters, LINKS // n)))
    return [{"n_anchors": m, "dtype": "float32", "n_kept": kept} for kept in (3, 10)]


def default_members(
    views: Views,
    n_clusters: int,
    device: str | None = None,
    scalings: Sequence[Sequence[Scaling]] = (("unit",), ("standard+unit",)),
    as_given: bool = False,
) -> list[MultiViewClusterer]:
    """Return the members of a consensus, the cheap ones first.

    Each runs in every scaling; GRMSC, AnchorGRMSC and LMVSC in two of them, with unit length for
    every view. Samples that lack a view leave only the members that take them. Of many samples no
    member needs more than time linear in their number, but for the neighbors of up to 20,000
    samples, which are searched exactly.

    Parameters
    ----------
    views : Views
        Checked views.
    n_clusters : int
        Number of clusters, which limits neighborhoods.
    device : str or None
        Where the members compute that can do so elsewhere.
    scalings : sequence of scalings
        One per view in each, or one for all views.
    as_given : bool
        Whether all members run in these scalings, and no other.

    Examples
    --------
    >>> from polyspan.inputs.views import check_views
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> members = default_members(check_views([X, X]), 3)
    >>> list(dict.fromkeys(type(one).__name__ for one in members))
    ['ConcatKMeans', 'MeanGraph', 'NEMO', 'ConcatSpectral', 'CGD', 'SNF', 'FastMICE', 'GRMSC']
    """
    n, exact = views.n_samples, exactly(views, device)
    lengths = scalings if as_given else _directions(views, scalings)
    scales, lengths = ([_short(own) for own in some] for some in (scalings, lengths))
    members = [one(scale=s) for one in cheap_members(n, exact) for s in scales]
    if exact:
        members += [
            GRMSC(scale=s, **solve, **affinity)
            for solve in pool_solves(n, n_clusters)
            for s in lengths
            for affinity in affinities(n, n_clusters)
        ]
    else:
        members += [LMVSC(scale=s) for s in lengths]
        grid = anchor_grid(n, n_clusters)
        members += [AnchorGRMSC(scale=s, **params) for s in lengths for params in grid]
    for one in members:
        if isinstance(one, OnDevice):
            one.device = device
    if any(missing_rows(view) is not None for view in views.arrays):
        return [one for one in members if get_tags(one).missing_views]
    return members


def chunked_members(
    part: Views,
    n: int,
    n_clusters: int,
    scalings: Sequence[Sequence[Scaling]],
    *,
    device: str | None = None,
    as_given: bool = False,
    lacking: bool = False,
) -> list[MultiViewClusterer]:
    """Return the members of a consensus on dask arrays: those for many samples that take them.

    Parameters
    ----------
    part : Views
        Some of the samples, in memory.
    n : int
        How many there are.
    n_clusters, scalings, device, as_given
        As in `default_members`.
    lacking : bool
        Whether samples lack views, which only `MeanGraph` takes.

    Examples
    --------
    >>> import numpy as np
    >>> part = Views([np.random.default_rng(0).normal(size=(60, 5))], ["0"])
    >>> members = chunked_members(part, 10**6, 3, [("unit",), ("standard+unit",)])
    >>> [type(one).__name__ for one in members[3:5]], len(members)
    (['MeanGraph', 'AnchorGRMSC'], 8)
    """
    lengths = scalings if as_given else _directions(part, scalings)
    grid = [] if lacking else anchor_grid(n, n_clusters)
    members = [one(scale=_short(s)) for one in mean_graphs(n) for s in scalings]
    members += [AnchorGRMSC(scale=_short(s), **params) for s in lengths for params in grid]
    for one in members:
        if isinstance(one, OnDevice):
            one.device = device
    return members


def mean_graphs(n: int) -> list[Callable[..., MultiViewClusterer]]:
    """`MeanGraph` with two numbers of neighbors, by what one calls with a scaling."""
    return [
        partial(MeanGraph, n_neighbors=min(10, n - 1)),
        partial(MeanGraph, n_neighbors=min(20, n - 1), weights="self_tuning"),
    ]


def cheap_members(n: int, exact: bool) -> list[Callable[..., MultiViewClusterer]]:
    """Members that need no optimization, by what one calls with a scaling."""
    means, more = mean_graphs(n), min(20, n - 1)
    early = [partial(ConcatSpectral, n_neighbors=min(k, n - 1)) for k in (10, 30)]
    if exact:
        return [ConcatKMeans, *means, partial(NEMO, n_neighbors=more), *early, CGD, SNF, FastMICE]
    plain = partial(ConcatKMeans, n_init=FEW_STARTS)
    return [plain, *means, early[0], partial(FastMICE, n_anchors=ENSEMBLE_ANCHORS)]


def _directions(views: Views, scalings: Sequence[Sequence[Scaling]]) -> list[tuple[Scaling, ...]]:
    """The first two of these scalings, with unit length also for views that they leave as they are.

    Subspaces through the origin do not see lengths, so a model of them takes directions, also of
    views with few features. A single feature, or one that varies alone, has none to take.
    """

    def direction(view: Any, scaling: Scaling) -> Scaling:
        if view.shape[1] == 1 or (scaling is None and is_constant(unit(view))):
            return scaling
        return {None: "unit", "standard": "standard+unit"}.get(scaling, scaling)

    found = [tuple(map(direction, views.arrays, own)) for own in scalings]
    return list(dict.fromkeys(found))[: len(SCALINGS)]


def _short(scaling: Sequence[Scaling]) -> Any:
    """One scaling instead of the same for every view."""
    return scaling[0] if len(set(scaling)) == 1 else tuple(scaling)


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


def pool_solves(n: int, n_clusters: int) -> list[dict[str, Any]]:
    """Parameters of `GRMSC` in the pool that change the representation; fewer for many samples.

    These are the settings that vote: the orientation as printed in the paper, and ten neighbors
    where clusters are larger, were rarely in the best third.

    Examples
    --------
    >>> [(p["n_neighbors"], p["lam1"]) for p in pool_solves(500, 5)]
    [(30, 100.0), (30, 300.0), (30, 1.0), (100, 100.0), (100, 1.0)]
    >>> [len(pool_solves(n, 10)) for n in (200, 2_000, 4_000)]
    [4, 3, 1]
    """
    wide = min(max(10, n // n_clusters), n - 1)  # a mean cluster
    near = min(30, wide)
    second = [(near, *SECOND[0]), *((wide, *pair) for pair in SECOND)]
    solves: list[dict[str, Any]] = [
        {"n_neighbors": k, "lam1": lam1, "lam2": lam2} for k, lam1, lam2 in dict.fromkeys(second)
    ]
    first = [
        {"n_neighbors": near, "lam1": lam1, "lam2": lam2, "regularizer": "first_order"}
        for lam1, lam2 in FIRST
    ]
    return affordable(n, solves[:1] + first + solves[1:])


def exact_solves(n: int, neighbors: Sequence[int]) -> list[dict[str, Any]]:
    """Parameters of `GRMSC` that change the representation, in both scalings, for counting."""
    solves: list[dict[str, Any]] = [
        {"scale": scale, "n_neighbors": k, "lam1": lam1, "lam2": lam2}
        for lam1, lam2 in SECOND
        for k in dict.fromkeys(min(k, n - 1) for k in neighbors)
        for scale in SCALINGS
    ]
    return affordable(n, solves)


def affordable(n: int, solves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first of these solves; fewer for many samples, as each is O(n^3)."""
    return solves[: max(1, round(len(solves) * min(1.0, (FULL_GRID_BELOW / n) ** 2)))]
