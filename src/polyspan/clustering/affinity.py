"""From a self-representation Z to a symmetric, non-negative affinity."""

import numpy as np
import scipy.sparse as sp
from array_api_compat import array_namespace

from polyspan.graphs.ties import largest_entries
from polyspan.runtime.arrays import Array, to_numpy


def affinity_matrix(Z: Array, kind: str = "dense", n_kept: int = 10) -> Array:
    """Affinity ``|Z| + |Z|^T``, from all entries or only the largest in each column.

    Parameters
    ----------
    Z : (n, n) array
        Representation; column j represents sample j by the others.
    kind : {"dense", "sparse"}
        ``"dense"`` uses all entries, as in the papers. ``"sparse"`` keeps the ``n_kept`` largest
        entries of each column of ``|Z|`` before symmetrizing, which drops noise. Entries tied for
        the last of these places are lowered to their share of it (`polyspan.graphs.ties`).
    n_kept : int
        Entries kept per column (at most n).

    Returns
    -------
    (n, n) array, or scipy.sparse.csr_array when ``kind="sparse"``

    Examples
    --------
    >>> Z = np.array([[0.0, -2.0], [1.0, 0.5]])
    >>> affinity_matrix(Z)
    array([[0., 3.],
           [3., 1.]])
    >>> affinity_matrix(Z, "sparse", 1).toarray()
    array([[0., 3.],
           [3., 0.]])
    """
    if kind == "dense":
        A = array_namespace(Z).abs(Z)
        return A + A.T
    kept = sp.csr_array(largest_entries(np.abs(to_numpy(Z)).T, n_kept))
    return sp.csr_array(kept + kept.T)
