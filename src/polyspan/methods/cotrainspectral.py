"""CoTrainSpectral: co-training of spectral clusterings.

Every view v has a Gaussian kernel K_v (width the median distance) and U_v, the top eigenvectors of
its normalized kernel. In each round, the kernels of all views are projected on the embeddings of
the other views at once::

    S_v = sym((sum_{w != v} U_w U_w^T) K_v),  sym(A) = (A + A^T) / 2
    U_v = the top eigenvectors of D^-1/2 S_v D^-1/2

where U_v has ``n_projected`` columns, 1.5 c by default. (The paper projects on c; the authors later
found more to be better.) After the last round, k-means runs on the c leading columns of the U_v,
rows scaled to unit length, side by side; the paper uses the best view, if it is known, or this.
Negative entries of S_v, which the paper does not mention, count as zero. There is no objective, and
the rounds need not converge: their number is a parameter. With a single view there is nothing to
learn from, and this is spectral clustering.

Reference: A. Kumar, H. Daume III, "A co-training approach for multi-view spectral clustering",
ICML 2011.
"""

import math
from collections.abc import Sequence

from array_api_compat import array_namespace

from polyspan.base import About, Embedding, ScaledClusterer
from polyspan.clustering.spectral import unit_rows
from polyspan.graphs.proximity import median_kernel, normalized
from polyspan.inputs.params import fitted, integer, param
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array
from polyspan.solvers.eigen import lowest_eigenpairs


class CoTrainSpectral(ScaledClusterer):
    """Co-training of spectral clusterings: every view learns from the embeddings of the others.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_projected : int or None, default=None
        Eigenvectors on which the kernels of the other views are projected, at most n; None is
        1.5 ``n_clusters``, rounded up.
    n_rounds : int, default=5
        Rounds of co-training.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        As in `GRMSC`.
    n_init, views, random_state
        As in `GRMSC`.

    Attributes
    ----------
    labels_
        As in `GRMSC`.
    embedding_ : (n, n_views * n_clusters) array
        The embedding that was clustered, after scaling its rows to unit length.

    Examples
    --------
    >>> from polyspan import CoTrainSpectral
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> CoTrainSpectral(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Kumar and Daume, ICML 2011",
        objective="none: U_v is top eigenvectors of sym((sum_{w != v} U_w U_w^T) K_v), in rounds",
        needs="n_rounds, n_projected",
        cost="O(m n^3) per round, 5 rounds",
    )

    n_projected: int | None = param(integer(1, none="1.5 n_clusters"), default=None)
    n_rounds: int = param(integer(1), default=5)

    embedding_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Embedding:
        """Return the U_v of the last round side by side."""
        c, p = self.n_clusters, self.n_projected
        p = min(math.ceil(1.5 * c) if p is None else p, views.n_samples)
        Us = solve_cotrainspectral([median_kernel(X) for X in Xs], c, p, n_rounds=self.n_rounds)
        return Embedding(array_namespace(*Us).concat([unit_rows(U) for U in Us], axis=1))

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: three per view."""
        return 8.0 + 3 * len(views.arrays), 0.0


def solve_cotrainspectral(
    Ks: Sequence[Array], c: int, n_projected: int, *, n_rounds: int = 5
) -> list[Array]:
    """Embeddings (n x c) of all views after co-training their kernels Ks.

    Examples
    --------
    >>> import numpy as np
    >>> K = np.kron(np.eye(2), np.ones((3, 3)))
    >>> Us = solve_cotrainspectral([K, K], 2, 2)
    >>> all(np.allclose(U @ U.T, K / 3) for U in Us)
    True
    """
    xp = array_namespace(*Ks)
    Us = [_top(K, max(c, n_projected)) for K in Ks]
    for _ in range(n_rounds if len(Ks) > 1 else 0):
        Ps = [U[:, :n_projected] @ U[:, :n_projected].T for U in Us]
        Ss = [(sum(Ps) - P) @ K for P, K in zip(Ps, Ks, strict=True)]
        Us = [_top(xp.clip((S + S.T) / 2, min=0.0), max(c, n_projected)) for S in Ss]
    return [U[:, :c] for U in Us]


def _top(W: Array, p: int) -> Array:
    """Eigenvectors of the p largest eigenvalues of the normalized weights, largest first."""
    return lowest_eigenpairs(-normalized(W), p)[1]
