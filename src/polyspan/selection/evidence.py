"""What the views say of a clustering: its modularity on their graphs.

Each view has two kinds: graphs of nearest neighbors, where clusters that are clouds are seen, and
graphs of self-expression, where subspaces are.

Where there are very many samples, a part of them is looked at, and it is said what can be missed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.stats import hypergeom

from polyspan.chunked.chunks import make_chunks
from polyspan.chunked.workers import workers_for
from polyspan.graphs.knn import Near, entry_rows, nearest_neighbors
from polyspan.graphs.self_expression import self_graph
from polyspan.inputs.rows import missing_rows
from polyspan.inputs.scaling import Scaling
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import to_numpy
from polyspan.runtime.threads import take_samples

NEIGHBORS = 10
# Scalings after which lengths do not count. Rings in two columns asked for the distinction: there
# self-expression sees angles, and its modularity is high whatever the clusters are.
DIRECTIONS = ("unit", "standard+unit")
ENOUGH = 11  # samples of a group, each of which then has ten neighbors in it
CHANCE = 0.01  # that a group has fewer in the part
PART = 20_000  # samples of dask arrays that are looked at
CHUNK = 131_072  # samples that are read together
EVERY = slice(None)  # sample


# ---- the samples that are looked at --------------------------------------------------------------


class Part(NamedTuple):
    """Samples that are looked at."""

    views: Views  # in memory
    rows: Any  # their numbers, or a slice if they are all
    among: int  # how many there are
    lacking: bool  # whether any of all samples lacks a view


def draw_part(views: Views, seed: int) -> Part:
    """At most 20,000 samples of dask arrays, in memory; the values of all samples are checked.

    Examples
    --------
    >>> part = draw_part(Views([np.eye(3)], ["0"]), 0)
    >>> part.views.n_samples, part.rows, part.lacking
    (3, array([0, 1, 2]), False)
    """
    n = views.n_samples
    # Not the seed alone: the number of clusters is counted on a part of the part, drawn with it.
    rng = np.random.RandomState([seed, 1])
    rows = np.sort(rng.choice(n, PART, replace=False)) if n > PART else np.arange(n)
    single = all(getattr(view, "dtype", np.float64) == np.float32 for view in views.arrays)
    with workers_for(views.arrays) as workers:
        chunks, spans, _ = make_chunks(
            workers, views, CHUNK, None, np.dtype("f4" if single else "f8"), new=True, missing=True
        )
        lacking = any(workers.collect(workers.map(lacks_views, chunks)))
        arrays = take_samples(workers, chunks, spans, rows)
    return Part(Views(arrays, views.names), rows, n, lacking)


def all_of(views: Views) -> Part:
    """All samples of views in memory.

    Examples
    --------
    >>> all_of(Views([np.eye(3)], ["0"])).rows is EVERY
    True
    """
    return Part(views, EVERY, views.n_samples, lacks_views(views.arrays))


def lacks_views(arrays: Sequence[Any]) -> bool:
    """Whether any sample lacks a view."""
    return any(missing_rows(view) is not None for view in arrays)


def sample_of(views: Views, most: int, seed: int) -> Views:
    """At most this many of the samples, drawn at random.

    Examples
    --------
    >>> sample_of(Views([np.eye(5)], ["0"]), 3, 0).n_samples
    3
    """
    n = views.n_samples
    if n <= most:
        return views
    rows = np.sort(np.random.RandomState(seed).choice(n, most, replace=False))
    return Views(rows_of(views, rows), views.names)


def rows_of(views: Views, rows: np.ndarray) -> list[Any]:
    """Some of the samples, NumPy or sparse, in every view."""
    return [X[rows] if sp.issparse(X) else to_numpy(X)[rows] for X in views.arrays]


def sure_size(n: int, drawn: int) -> int:
    """Size from which a group of n samples has 11 or more among those drawn, with chance .99.

    Their number is hypergeometric: the bound is exact for one group, whatever the data are.

    Examples
    --------
    >>> sure_size(10_000, 1_000), sure_size(1_000_000, 4_000), sure_size(500, 500)
    (196, 5025, 11)
    """
    low, high = ENOUGH, n
    while low < high:
        middle = (low + high) // 2
        if hypergeom.cdf(ENOUGH - 1, n, middle, drawn) <= CHANCE:
            high = middle
        else:
            low = middle + 1
    return low


def tell_drawn(n: int, drawn: int) -> str:
    """Say what a part of the samples can miss; nothing if all were looked at.

    Examples
    --------
    >>> tell_drawn(10_000, 1_000)
    '1,000 of 10,000 samples were looked at: a group of fewer than 196 may be missed'
    >>> tell_drawn(900, 1_000)
    ''
    """
    if n <= drawn:
        return ""
    seen = f"{drawn:,} of {n:,} samples were looked at"
    return f"{seen}: a group of fewer than {sure_size(n, drawn):,} may be missed"


# ---- graphs and modularity -----------------------------------------------------------------------


class Graphs(NamedTuple):
    """Two kinds of graphs of one view in one scaling, symmetric."""

    neighbors: sp.csr_array
    self_expression: sp.csr_array | None  # compares directions: not where lengths count


def evidence_graphs(
    by_scaling: Mapping[tuple[Scaling, ...], Views], device: str | None = None
) -> tuple[list[list[Near]], list[list[Graphs]]]:
    """Nearest neighbors, a list for each view with one entry for each of its scalings.

    And the same lists of graphs. The views are already scaled.

    Examples
    --------
    >>> views = Views([np.random.default_rng(0).normal(size=(30, 4))], ["0"])
    >>> near, graphs = evidence_graphs({(None,): views})
    >>> len(near), graphs[0][0].neighbors.shape, graphs[0][0].self_expression
    (1, (30, 30), None)
    """

    def symmetric(A: sp.csr_array) -> sp.csr_array:
        return sp.csr_array((A + A.T) / 2)

    k = min(NEIGHBORS, next(iter(by_scaling.values())).n_samples - 1)
    nears: list[list[Near]] = []
    graphs: list[list[Graphs]] = []
    for arrays, scales in zip(
        zip(*(views.arrays for views in by_scaling.values()), strict=True),
        zip(*by_scaling, strict=True),
        strict=True,
    ):
        nears.append([nearest_neighbors(X, k, device=device) for X in arrays])
        selves = [
            symmetric(self_graph(X, device=device)) if scale in DIRECTIONS else None
            for X, scale in zip(arrays, scales, strict=True)
        ]
        links = [symmetric(near.shares) for near in nears[-1]]
        graphs.append(list(map(Graphs, links, selves)))
    return nears, graphs


def view_modularity(graphs: Sequence[Sequence[Graphs]], labels: np.ndarray) -> np.ndarray:
    """Modularity on the graphs of every view, the means over its scalings: (views, 2 kinds).

    NaN where a view has no graph of the second kind.

    Examples
    --------
    >>> A, I = sp.csr_array(np.kron(np.eye(2), np.ones((3, 3)))), sp.csr_array(np.eye(6))
    >>> view_modularity([[Graphs(A, I)], [Graphs(A, None)]], np.array([0, 0, 0, 1, 1, 1]))
    array([[0.5, 0.5],
           [0.5, nan]])
    """
    coded = np.unique(labels, return_inverse=True)[1]

    def mean(kind: Sequence[sp.csr_array | None]) -> float:
        values = [modularity(A, coded) for A in kind if A is not None]
        return float(np.mean(values)) if values else np.nan

    return np.array([[mean(kind) for kind in zip(*of_view, strict=True)] for of_view in graphs])


def modularity(S: sp.csr_array, labels: np.ndarray) -> float:
    """Newman's modularity of a clustering on a symmetric graph.

    It is the share of links within clusters, less that expected if the links were random.

    Examples
    --------
    >>> S = sp.csr_array(np.kron(np.eye(2), np.ones((3, 3))))
    >>> modularity(S, np.array([0, 0, 0, 1, 1, 1])), modularity(S, np.zeros(6, dtype=int))
    (0.5, 0.0)
    """
    degrees = np.asarray(S.sum(axis=1)).ravel()
    total = degrees.sum()
    if total <= 0:
        return 0.0
    inside = S.data[labels[entry_rows(S)] == labels[S.indices]].sum()
    return float(inside / total - np.sum((np.bincount(labels, degrees) / total) ** 2))


def clusters_by_rotation(V: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Clusters from c eigenvectors, rotated to be indicators, and c samples that are far apart.

    Nothing is random: a pivoted QR decomposition picks the samples. A. Damle, V. Minden, L. Ying,
    "Simple, direct and efficient multi-way spectral clustering", Information and Inference 8
    (2019).

    Examples
    --------
    >>> clusters_by_rotation(np.repeat(np.eye(2), [1, 3], axis=0) / np.sqrt([1, 3]))[0]
    array([0, 1, 1, 1])
    """
    pivots = scipy.linalg.qr(V.T, mode="r", pivoting=True)[1][: V.shape[1]]
    left, _, right = np.linalg.svd(V[pivots].T)
    return np.argmax(np.abs(V @ (left @ right)), axis=1), pivots
