"""Matrices of samples by samples, sorted by cluster: an affinity, and a consensus."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Rectangle
from matplotlib.transforms import offset_copy

from polyspan.figures.files import on
from polyspan.figures.palette import EDGE, FAINT, INK, LINES, SHADES, clusters_of, short
from polyspan.runtime.arrays import to_numpy

MOST_PIXELS = 600  # on each side
MOST_FRAMES = 60  # more would hide the matrix


def plot_affinity(affinity: Any, labels: Any, names: Any = None, ax: Axes | None = None) -> Axes:
    """Draw an affinity matrix with its samples sorted by cluster.

    Samples of one cluster are adjacent, so a good clustering shows dark blocks on the diagonal
    and little elsewhere. Shades follow the square root of the entries, up to the 99th percentile
    of the non-zero ones, because a few large entries would hide the rest. The diagonal, each
    sample's affinity to itself, is left out. With more than 600 samples, one dot is the mean of
    several.

    Parameters
    ----------
    affinity : (n, n) array or scipy.sparse matrix
        For instance ``model.affinity_matrix_``.
    labels : (n,) array-like
        Cluster of every sample, for instance ``model.labels_``.
    names : sequence of str, optional
        What the clusters are called, in the order of the sorted labels.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from polyspan import GRMSC
    >>> from polyspan.datasets import make_subspaces
    >>> from polyspan.figures import plot_affinity
    >>> model = GRMSC(n_clusters=3).fit(make_subspaces(60, 3).views)
    >>> ax = plot_affinity(model.affinity_matrix_, model.labels_)
    >>> ax.get_title("left")
    'affinity, sorted by cluster'
    """
    labels = np.asarray(labels)
    shape = tuple(affinity.shape)
    if labels.ndim != 1 or shape != (len(labels), len(labels)):
        raise ValueError(
            f"the affinity must be n x n for n labels; got shapes {shape} and {labels.shape}."
        )
    W = sp.csr_array(affinity) if sp.issparse(affinity) else to_numpy(affinity)
    order = np.argsort(clusters_of(labels)[0], kind="stable")
    # Single dots of a sparse matrix would be too faint: fewer, larger dots show more.
    shades = np.sqrt(np.maximum(shrink(W, order, MOST_PIXELS // (1 + sp.issparse(W))), 0))
    darkest = float(np.percentile(shades[shades > 0], 99)) if (shades > 0).any() else 1.0
    ax = _sorted(shades, darkest, labels, names, ax)
    ax.set_title("affinity, sorted by cluster", loc="left", color=INK, size=10, pad=14)
    return ax


def plot_consensus(
    votes: Any, labels: Any, weights: Any = None, names: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw how often the members of a consensus put two samples together: dark is always.

    Samples are sorted by cluster and, inside it, by `consensus_silhouette`.

    Parameters
    ----------
    votes : (m, n) array-like
        The clusters of m members, for instance ``model.member_labels_``.
    labels : (n,) array-like
        The clusters to sort by, for instance ``model.labels_``.
    weights : (m,) array-like, optional
        Of the members, with sum 1; None is the same for all.
    names : sequence of str, optional
        What the clusters are called, in the order of the sorted labels.
    ax : matplotlib Axes, optional
        Where to draw; None creates a new figure, which is ``ax.figure``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> ax = plot_consensus([[0, 0, 1, 1], [0, 0, 0, 1]], [0, 0, 1, 1])
    >>> ax.images[0].get_array()[1].round(2).tolist()
    [1.0, 1.0, 0.0, 0.5]
    """
    codes = clusters_of(labels)[0]
    order = np.lexsort((-consensus_silhouette(votes, codes, weights)[0], codes))
    B = member_indicators(votes, weights)
    shares = shrink(B, order, MOST_PIXELS, squared=True)
    if len(shares) == len(order):
        np.fill_diagonal(shares, 1)  # every sample is always with itself
    ax = _sorted(shares, 1.0, labels, names, ax)
    title = "how often the members put two samples together"
    ax.set_title(title, loc="left", color=INK, size=10, pad=14)
    return ax


def member_indicators(votes: Any, weights: Any = None) -> sp.csr_array:
    """Samples x clusters of all members, such that ``B @ B.T`` is how often two are together.

    Examples
    --------
    >>> B = member_indicators([[0, 0, 1], [0, 1, 1]])
    >>> (B @ B.T).toarray().round(3)[1].tolist()
    [0.5, 1.0, 0.5]
    """
    votes = np.asarray(votes)
    weights = np.full(len(votes), 1 / len(votes)) if weights is None else np.asarray(weights)
    parts = []
    for row, weight in zip(votes[weights > 0], weights[weights > 0], strict=True):
        codes = np.unique(row, return_inverse=True)[1]
        places = (np.arange(len(row)), codes)
        parts.append(sp.csr_array((np.full(len(row), np.sqrt(weight)), places)))
    return sp.csr_array(sp.hstack(parts))


def consensus_silhouette(
    votes: Any, labels: Any, weights: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """The silhouette of every sample, and its second choice, without any n x n matrix.

    The distance of two samples is the share of the members that separate them; the second choice
    is the position of the nearest other cluster.

    Examples
    --------
    >>> values, second = consensus_silhouette([[0, 0, 1, 1], [0, 0, 0, 1]], [0, 0, 1, 1])
    >>> values.round(2).tolist(), second.tolist()
    ([1.0, 1.0, 0.0, 0.5], [1, 1, 0, 0])
    """
    codes, B = clusters_of(labels)[0], member_indicators(votes, weights)
    n, rows, sizes = len(codes), np.arange(len(codes)), np.bincount(codes)
    G = sp.csr_array((np.ones(n), (rows, codes)))
    sums = (B @ (B.T @ G)).toarray()
    inside = (sums[rows, codes] - 1) / np.maximum(sizes[codes] - 1, 1)  # 1: with itself
    others = sums / sizes
    others[rows, codes] = -1
    second = others.argmax(axis=1)
    a, b = 1 - inside, 1 - others[rows, second]
    values = (b - a) / np.maximum(np.maximum(a, b), np.finfo(float).tiny)
    return np.where(sizes[codes] > 1, np.clip(values, -1, 1), 0.0), second


def shrink(W: Any, order: np.ndarray, most: int, squared: bool = False) -> np.ndarray:
    """Sort a matrix and average it over equal blocks, without its diagonal.

    The last block may be smaller than the others.

    Parameters
    ----------
    W : (n, n) array or sparse matrix
        With ``squared``, B of a matrix ``B @ B.T`` that is not formed.
    order : (n,) array of int
        The sorted samples.
    most : int
        Number of blocks at most.
    squared : bool, default=False
        What ``W`` is.

    Examples
    --------
    >>> shrink(np.arange(16.0).reshape(4, 4), np.array([0, 1, 2, 3]), most=2)
    array([[ 2.5,  4.5],
           [10.5, 12.5]])
    """
    n = len(order)
    blocks = np.arange(n) // -(-n // most)
    kind = W.dtype if W.dtype.kind == "f" else float  # another would copy a large matrix
    P = sp.csr_array((np.ones(n, kind), (blocks, order)))
    right = (P @ W).T if squared else P.T
    sums = P @ W @ right
    sums = (sums.toarray() if sp.issparse(sums) else sums).astype(float)
    diagonal = (W * W).sum(axis=1) if squared else W.diagonal()
    sizes = np.bincount(blocks)
    sums -= np.diag(P @ np.asarray(diagonal))
    return sums / np.maximum(np.outer(sizes, sizes) - np.diag(sizes), 1)


def _sorted(shades: np.ndarray, darkest: float, labels: Any, names: Any, ax: Any) -> Axes:
    """A sorted matrix with its clusters framed and named."""
    codes, names, colors = clusters_of(labels, names)
    ax = on(ax, 5.6, 5.6)
    colormap = LinearSegmentedColormap.from_list("shades", SHADES)
    ax.imshow(shades, cmap=colormap, vmin=0, vmax=darkest, interpolation="none")
    sizes = np.bincount(codes) * len(shades) / len(codes)
    ends = np.cumsum(sizes) - 0.5
    look: dict[str, Any] = {"fill": False, "ec": LINES[1], "lw": 0.8, "gid": "class: frame"}
    for start, size in zip(ends - sizes, sizes, strict=True):
        if len(sizes) <= MOST_FRAMES:
            ax.add_patch(Rectangle((start, start), size, size, **look))
    mark_clusters(ax, sizes, colors, "top")
    mark_clusters(ax, sizes, colors, "left")
    ax.spines[:].set_color(EDGE)
    ax.set_xticks([])
    ax.set_yticks(ends - sizes / 2, fitting(names, sizes, 8))
    ax.tick_params(length=0, pad=13, labelsize=9, labelcolor=FAINT)
    return ax


def fitting(names: list[str], sizes: np.ndarray, most: int) -> list[str]:
    """Names of the clusters, of which those without room are left out."""
    wide = sizes > 0.03 * sizes.sum()
    return [short(name, most) if room else "" for name, room in zip(names, wide, strict=True)]


def mark_clusters(ax: Any, sizes: np.ndarray, colors: list[str], side: str) -> None:
    """The clusters as colored pieces along the top or the left of the axes."""
    ends = np.cumsum(sizes) - 0.5
    pieces = np.stack([np.stack([ends - sizes, ends], axis=1), np.zeros((len(sizes), 2))], axis=2)
    along = offset_copy(ax.get_yaxis_transform(), ax.figure, x=-6, units="points")
    pieces = pieces[:, :, ::-1]
    if side == "top":
        along = offset_copy(ax.get_xaxis_transform(), ax.figure, y=6, units="points")
        pieces = pieces[:, :, ::-1] + [0, 1]
    strip = LineCollection(list(pieces), colors=colors, lw=7, transform=along, clip_on=False)
    ax.add_collection(strip, autolim=False)
