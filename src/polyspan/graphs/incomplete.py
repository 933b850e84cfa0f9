"""The graphs of GRMSC when samples lack views.

A view has information only about the samples that have it: its graphs connect only those samples,
and a pair of samples is compared in the views that both of them have.
"""

from collections.abc import Sequence

from array_api_compat import array_namespace, device

from polyspan.graphs import proximity
from polyspan.inputs.rows import missing_rows, present_rows
from polyspan.runtime.arrays import Array, astype


def incomplete_laplacian(
    Xs: Sequence[Array],
    n_neighbors: int,
    *,
    alpha: float = 1e-3,
    second_width: str = "own",
    regularizer: str = "both",
    weights: Sequence[float] | None = None,
) -> Array:
    """Laplacian of GRMSC's graphs when samples lack views; equal to GRMSC's without gaps.

    - First order: view k connects the n_k samples that have it, each with its ``k n_k / n``
      nearest, so that neighbors are as close as in the complete data.
    - Consistent: Omega is the set of pairs that are mutual neighbors in every view that both have
      (at least one); the weight is the product of those c first-order weights to the power v/c, as
      if the other views agreed on average.
    - Complementary: the mean of the second-order weights over the views that both have, times v. A
      pair without a common view has weight zero.

    Parameters are those of `polyspan.methods.grmsc.graph_laplacian`; rows of NaN mark the gaps.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> X[3] = np.nan
    >>> L = incomplete_laplacian([X, np.ones((9, 1)) * np.arange(9)[:, None]], 3)
    >>> np.allclose(L @ np.ones(9), 0)
    True
    """
    v, n = len(Xs), Xs[0].shape[0]
    weights = [1.0] * v if weights is None else weights
    dense = next((X for X in Xs if missing_rows(X) is not None), Xs[0])  # others may be sparse
    xp, where = array_namespace(dense), device(dense)
    zeros = xp.zeros((n, n), dtype=dense.dtype, device=where)
    pairs, agree, logs, shared, second = zeros, zeros, zeros, zeros, zeros
    for X, w in zip(Xs, weights, strict=True):
        gone = missing_rows(X)
        there = present_rows(X, gone)
        gone = xp.zeros(n, dtype=xp.bool, device=where) if gone is None else gone
        count = int(there.shape[0])
        k = min(max(1, round(n_neighbors * count / n)), count - 1)
        Lambda, sigma = proximity.first_order(there, k)
        both = astype(~gone[:, None] & ~gone[None, :], X.dtype)
        first = _spread(Lambda, gone)
        near = first > 0
        pairs, shared = pairs + both, shared + w * both
        agree = agree + astype(near, X.dtype)
        logs = logs + xp.log(xp.where(near, first, xp.ones_like(first)))
        if regularizer == "both":
            first = _spread(
                proximity.second_order(Lambda, sigma if second_width == "first" else None), gone
            )
        second = second + w * first
    second = sum(weights) * second / xp.where(shared > 0, shared, xp.ones_like(shared))
    if regularizer == "first_order":
        return proximity.laplacian(second)
    inside = (pairs > 0) & (agree == pairs)
    product = xp.exp(logs * v / xp.where(pairs > 0, pairs, xp.ones_like(pairs)))
    return proximity.laplacian(xp.where(inside, product, alpha * second))


def _spread(A: Array, gone: Array) -> Array:
    """Expand a matrix over the present samples to all samples, with zeros for the others."""
    xp = array_namespace(A)
    there = astype(~gone, xp.int64)
    edge = xp.zeros((A.shape[0], 1), dtype=A.dtype, device=device(A))
    A = xp.concat([A, edge], axis=1)
    A = xp.concat([A, xp.zeros_like(A[:1, :])], axis=0)
    place = xp.where(gone, A.shape[0] - 1, xp.cumulative_sum(there) - 1)
    return xp.take(xp.take(A, place, axis=0), place, axis=1)
