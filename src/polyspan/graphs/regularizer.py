"""The regulariser of GRMSC: one Laplacian of what the views share and of what each adds."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import scipy.sparse as sp
from array_api_compat import array_namespace, is_numpy_array

from polyspan.graphs import proximity
from polyspan.inputs.precomputed import like
from polyspan.solvers.arrays import Array


class GraphParams(NamedTuple):
    """All parameters of the graphs of GRMSC, see `polyspan.GRMSC`."""

    n_neighbors: int
    alpha: float = 1e-3
    sigma2: str = "own"
    regularizer: str = "both"
    weights: tuple[float, ...] | None = None  # of the views; None is 1 for all


def graph_laplacian(
    Xs: Sequence[Array],
    n_neighbors: int,
    *,
    alpha: float = 1e-3,
    sigma2: str = "own",
    regularizer: str = "both",
    weights: Sequence[float] | None = None,
    given: Sequence[Any] | None = None,
) -> Array:
    """Laplacian L = sum_k L_k of the graphs of all views, samples in rows of every X.

    ``weights`` multiply what a single view says; ``given`` are first-order graphs to take instead.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> L = graph_laplacian([X, X[:, :2]], 3)
    >>> np.allclose(L @ np.ones(9), 0)
    True
    """
    weights = [1.0] * len(Xs) if weights is None else weights
    if given is None:
        firsts = [_compact(*proximity.first_order(X, n_neighbors)) for X in Xs]  # eq. (3)
    else:
        firsts = [(like(Lambda, X), 0.0) for Lambda, X in zip(given, Xs, strict=True)]
    if regularizer == "first_order":
        parts = (w * Lambda for w, (Lambda, _) in zip(weights, firsts, strict=True))
        return proximity.laplacian(_dense(sum(parts)))
    W = _dense(proximity.consistent([Lambda for Lambda, _ in firsts]))  # eq. (4)
    xp = array_namespace(W)
    inside = W != 0
    for w, (Lambda, sigma) in zip(weights, firsts, strict=True):
        Upsilon = proximity.second_order(Lambda, sigma if sigma2 == "first" else None)
        W += w * alpha * xp.where(inside, xp.zeros_like(W), Upsilon)  # eq. (20), summed
    return proximity.laplacian(W)


def _compact(Lambda: Array, sigma: float) -> tuple[Array, float]:
    """Store a NumPy graph of few neighbours as a sparse one: v of them are held at once."""
    return sp.csr_array(Lambda) if is_numpy_array(Lambda) else Lambda, sigma


def _dense(W: Array) -> Array:
    return W.toarray() if sp.issparse(W) else W + 0.0
