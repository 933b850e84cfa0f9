"""CoRegSpectral: co-regularized multi-view spectral clustering, pairwise and with a centroid.

With L_v = D^-1/2 K_v D^-1/2 of the Gaussian kernel K_v of view v (width the median distance) and
U_v orthonormal (n x c)::

    max sum_v tr(U_v^T L_v U_v) + lam_agreement sum_{v<w} tr(U_v U_v^T U_w U_w^T)        pairwise
    max sum_v tr(U_v^T L_v U_v) + lam_agreement sum_v     tr(U_v U_v^T U* U*^T)          centroid

It starts without agreement; each iteration updates one U at a time, optimal given the others::

    U_v = the c top eigenvectors of L_v + lam_agreement sum_{w != v} U_w U_w^T           pairwise
    U_v = the c top eigenvectors of L_v + lam_agreement U* U*^T                          centroid
    U*  = the c top eigenvectors of sum_v U_v U_v^T

The objective never falls. k-means runs on the rows of U*, scaled to unit length, or on those of the
U_v, each scaled to unit length, side by side. (For the pairwise U_v the paper uses that of the best
view, if it is known, or all side by side. It allows one weight per view; here all are equal.)

The authors' program, ``as_released=True``, takes the median over all n^2 distances, those of the
samples to themselves included; in the pairwise variant it updates the first view after all others;
and it makes as many iterations as it is told, 5 to 10 in the paper, without a stopping rule.

Reference: A. Kumar, P. Rai, H. Daume III, "Co-regularized multi-view spectral clustering", NIPS
2011.
"""

from collections.abc import Sequence

from array_api_compat import array_namespace

from polyspan.base import About, Embedding, Iterative, OnDevice
from polyspan.clustering.spectral import unit_rows
from polyspan.graphs.proximity import median_kernel, normalized
from polyspan.inputs.params import fitted, flag, one_of, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array
from polyspan.solvers.eigen import lowest_eigenpairs
from polyspan.solvers.loop import Run


class CoRegSpectral(Iterative, OnDevice):
    """Co-regularized multi-view spectral clustering: the embeddings of the views are made to agree.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    variant : {"pairwise", "centroid"}, default="pairwise"
        Make the embeddings of the views agree with each other, or with a common one.
    lam_agreement : float, default=0.01
        Weight of the agreement, lam in the paper, which uses 0.01 to 0.05.
    as_released : bool, default=False
        Take the width of the kernels and the order of the views of the authors' program, and make
        all ``max_iter`` iterations, see the module.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="unit"
        As in `GRMSC`.
    max_iter : int, default=200
        Maximum number of iterations; the paper uses 5 to 10.
    tol : float, default=1e-6
        Stop when the relative increase of the objective is smaller.
    n_init, views, device, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, n_iter_
        As in `GRMSC`.
    embedding_ : (n, n_clusters) array, or (n, n_views * n_clusters) when pairwise
        The embedding that was clustered, after scaling its rows to unit length.
    history_ : dict
        Per iteration: ``rise``, the relative increase of the objective.

    Examples
    --------
    >>> from polyspan import CoRegSpectral
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> CoRegSpectral(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Kumar et al., NIPS 2011",
        objective="max sum_v tr(U_v^T L_v U_v) + lam_agreement sum_{v<w} tr(U_v U_v^T U_w U_w^T)",
        needs="lam_agreement, variant",
        cost="O(m n^3) per iteration, about 5 iterations",
    )

    variant: str = param(one_of("pairwise", "centroid"), default="pairwise")
    lam_agreement: float = param(positive, default=0.01)
    as_released: bool = param(flag, default=False)
    max_iter: int = 200

    embedding_: Array = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Embedding:
        """Return U*, or the U_v side by side."""
        run = self._run()
        Ls = [normalized(median_kernel(X, diagonal=self.as_released)) for X in Xs]
        params = self._given("lam_agreement", "variant", "as_released")
        Us = solve_coregspectral(Ls, self.n_clusters, **params, run=run)
        if self.variant == "centroid":
            return Embedding(Us[-1], **run.record())
        return Embedding(
            array_namespace(*Us).concat([unit_rows(U) for U in Us], axis=1), **run.record()
        )

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count n x n matrices: two per view."""
        return 8.0 + 2 * len(views.arrays), 0.0


def solve_coregspectral(
    Ls: Sequence[Array],
    c: int,
    *,
    lam_agreement: float,
    variant: str,
    as_released: bool = False,
    run: Run | None = None,
) -> list[Array]:
    """Embeddings U_v of normalized kernels Ls, and U* after them with ``variant="centroid"``.

    Examples
    --------
    >>> import numpy as np
    >>> L = np.kron(np.eye(2), np.ones((3, 3))) / 3
    >>> Us = solve_coregspectral([L, L], 2, lam_agreement=0.1, variant="centroid")
    >>> all(np.allclose(U @ U.T, L) for U in Us)
    True
    """
    run = Run("CoRegSpectral", 200, 1e-6) if run is None else run
    m = len(Ls)
    Us = [_top(L, c) for L in Ls]
    if variant == "centroid":
        Us.append(_top(sum(U @ U.T for U in Us), c))
    before = _objective(Ls, Us, lam_agreement)
    order = list(enumerate(Ls))
    if as_released and variant == "pairwise":
        order = order[1:] + order[:1]
    for _ in run:
        for v, L in order:
            others = Us[m:] if variant == "centroid" else Us[:v] + Us[v + 1 :]
            Us[v] = _top(sum((lam_agreement * (U @ U.T) for U in others), start=L), c)
        if variant == "centroid":
            Us[m] = _top(sum(U @ U.T for U in Us[:m]), c)
        now = _objective(Ls, Us, lam_agreement)
        run.check(rise=now / before - 1)
        if as_released:
            run.converged = run.n_iter == run.max_iter  # the program makes them all: no warning
        before = now
    return Us


def _top(A: Array, c: int) -> Array:
    """Eigenvectors of the c largest eigenvalues."""
    return lowest_eigenpairs(-A, c)[1]


def _objective(Ls: Sequence[Array], Us: Sequence[Array], weight: float) -> float:
    """The objective; U*, if there is one, comes after the U_v."""
    xp = array_namespace(*Ls)
    m = len(Ls)
    cuts = sum(float(xp.sum(U * (L @ U))) for L, U in zip(Ls, Us[:m], strict=True))
    pairs = (
        [(U, Us[m]) for U in Us[:m]]
        if len(Us) > m
        else [(U, V) for v, V in enumerate(Us) for U in Us[:v]]
    )
    return cuts + weight * sum(float(xp.sum((U.T @ V) ** 2)) for U, V in pairs)
