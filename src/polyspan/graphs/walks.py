"""Random walks on a graph of the samples."""

from array_api_compat import array_namespace, device

from polyspan.runtime.arrays import Array, astype

TELEPORT = 1e-8  # share of uniform jumps, which makes the stationary distribution unique


def random_walk(K: Array) -> Array:
    """Divide the rows of a kernel by their sums.

    Examples
    --------
    >>> import numpy as np
    >>> random_walk(np.array([[1.0, 1.0], [1.0, 3.0]]))
    array([[0.5 , 0.5 ],
           [0.25, 0.75]])
    """
    return K / array_namespace(K).sum(K, axis=1, keepdims=True)


def stationary_distribution(P: Array) -> Array:
    """Stationary distribution of a random walk, all entries positive.

    The walk jumps to a random sample once in 1e8 steps, because P may consist of separate pieces.

    Examples
    --------
    >>> import numpy as np
    >>> stationary_distribution(np.array([[0.5, 0.5], [0.25, 0.75]])).round(6)
    array([0.333333, 0.666667])
    """
    walk = astype(P, "float64")
    xp = array_namespace(walk)
    n = walk.shape[0]
    I = xp.eye(n, dtype=walk.dtype, device=device(walk))
    jumps = xp.full((n, 1), TELEPORT / n, dtype=walk.dtype, device=device(walk))
    pi = xp.linalg.solve(I - (1 - TELEPORT) * walk.T, jumps)[:, 0]
    return astype(pi / xp.sum(pi), P.dtype)
