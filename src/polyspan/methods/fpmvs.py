"""FPMVS-CAG: fast parameter-free multi-view subspace clustering with consensus anchor guidance.

All views share m = c anchors, the columns of A (c x c), and one graph Z (c x n) from samples to
anchors; W_v (d_v x c) maps the anchors to the features of a view::

    min sum_v gamma_v^2 |X_v - W_v A Z|_F^2
    s.t. W_v^T W_v = I, A^T A = I, Z >= 0, columns of Z and gamma sum to 1

Every step solves its part of the problem exactly, so the objective never rises::

    W_v   = U V^T  of the singular value decomposition U S V^T of  X_v Z^T A^T
    A     = U V^T  of that of  sum_v gamma_v^2 W_v^T X_v Z^T
    Z     = columns of  sum_v gamma_v^2 A^T W_v^T X_v / sum_v gamma_v^2  projected on the simplex
    gamma = 1 / |X_v - W_v A Z|_F^2, divided by their sum

The Z step is a projection because the columns of W_v A are orthonormal. A view with fewer features
than clusters has no such W_v: it is treated as if padded with zero features until it has c, and
the same formulas give the other rows of its W_v. The anchors start at c samples drawn at random,
made orthonormal. Labels come from k-means on the right singular vectors of Z, rows scaled to unit
length.

A is square, as in the paper, so W_v A is U V^T of X_v Z^T for any rotation A: the second step
leaves A at the identity, where it starts.

The authors' own program is not readable. A related one of theirs, for the same objective with a
ridge, leaves gamma_v^2 out of one half of its Z step::

    Z     = columns of  sum_v A^T W_v^T X_v / sum_v gamma_v^2  projected on the simplex

which makes Z sparser, as what is projected is larger. ``as_released=True`` does the same; the
objective may then rise.

Mixtures of c orthonormal anchors with weights that sum to 1 are cones: a cluster must lie on one
side of the origin. Subspaces with samples on both sides do not fit this model; see LMVSC.

Reference: S. Wang, X. Liu, X. Zhu, P. Zhang, Y. Zhang, F. Gao, E. Zhu, "Fast parameter-free
multi-view subspace clustering with consensus anchor guidance", IEEE TIP 31, 2022.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from polyspan.base import About, Embedding, InNumPy, Iterative
from polyspan.clustering.spectral import left_singular, unit_rows
from polyspan.inputs.params import fitted, flag, param
from polyspan.inputs.scaling import Scale
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array
from polyspan.solvers import prox
from polyspan.solvers.loop import Run


class FPMVS(Iterative, InNumPy):
    """Anchors and their graph learned together without a parameter (FPMVS-CAG), linear in n.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, and of anchors.
    as_released : bool, default=False
        Take the Z step of a related program of the authors, see the module.
    scale : {"unit", "standard+unit", "standard", None} or one per view, default="standard+unit"
        As in `GRMSC`. Without standardized features, a view whose samples all point in one
        direction gets all the weight.
    max_iter : int, default=200
        Maximum number of iterations.
    tol : float, default=1e-5
        Stop when the relative decrease of the objective is smaller; ``as_released`` its change.
    n_init : int, default=20
        Restarts of k-means; with more than 20,000 samples they see 20,000.
    random_state : int, RandomState or None, default=None
        Seeds the choice of the samples at which the anchors start, and k-means.
    views, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_ : (n,) array
        Cluster of every sample.
    representation_ : (n_clusters, n) array
        Z, every sample as a mixture of the anchors.
    anchors_ : (n_clusters, n_clusters) array
        A, with the anchors in its columns.
    projections_ : list of (d_v, n_clusters) arrays
        W_v, from the anchors to the scaled features of the views.
    weights_ : (V,) array
        Weights gamma_v of the views.
    embedding_ : (n, n_clusters) array
        The singular vectors that were clustered, with rows of unit length.
    n_iter_ : int
        Number of iterations.
    history_ : dict
        Per iteration: ``fall``, the relative decrease of the objective (1 in the first).

    Examples
    --------
    >>> from polyspan import FPMVS
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, random_state=0)
    >>> FPMVS(n_clusters=3, random_state=0).fit_predict(data.views).shape
    (60,)
    """

    about = About(
        paper="Wang et al., TIP 2022, doi:10.1109/TIP.2021.3131941",
        objective="min sum_v gamma_v^2 |X_v - W_v A Z|_F^2, W_v and A orthogonal, columns of Z and "
        "gamma on the simplex",
        needs="no weight to tune; standardized features; clusters on one side of the origin",
        cost="O(n d c) per iteration, about 50 iterations; no n x n matrix",
    )
    draws = True  # its start
    as_released: bool = param(flag, default=False)
    scale: Scale = "standard+unit"
    max_iter: int = 200
    tol: float = 1e-5

    anchors_: np.ndarray = fitted()
    projections_: list[np.ndarray] = fitted()
    weights_: np.ndarray = fitted()
    representation_: np.ndarray = fitted()
    embedding_: np.ndarray = fitted()

    def solve(self, views: Views, Xs: list[Array]) -> Embedding:
        """Return singular vectors of Z, with everything else that was learned."""
        c, n, rng = self.n_clusters, views.n_samples, check_random_state(self.random_state)
        start = np.zeros((c, n), dtype=Xs[0].dtype)
        start[np.arange(c), rng.choice(n, c, replace=False)] = 1
        run = self._run()
        Z, A, Ws, gamma = solve_fpmvs(Xs, start, **self._given("as_released"), run=run)
        learned = {"anchors_": A, "projections_": Ws, "weights_": gamma, "representation_": Z}
        F = unit_rows(left_singular(Z.T, c))
        return Embedding(F, by_direction=False, **run.record(), extras=learned, random_state=rng)

    def footprint(self, views: Views) -> tuple[float, float]:
        """Count numbers per sample: features, and links to the anchors."""
        graphs = self.n_clusters * (len(views.arrays) + 4)
        return 0.0, sum(views.widths) + 2 * max(views.widths) + graphs


def solve_fpmvs(
    Xs: Sequence[Any], Z: np.ndarray, *, as_released: bool = False, run: Run | None = None
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]:
    """Z, A, the W_v and gamma from a start for Z; samples in the rows of the views.

    Examples
    --------
    >>> X = np.repeat(np.eye(2, 3), 4, axis=0)
    >>> Z, A, Ws, gamma = solve_fpmvs([X, 2 * X], X.T[:2, :])
    >>> Z.round(6)
    array([[1., 1., 1., 1., 0., 0., 0., 0.],
           [0., 0., 0., 0., 1., 1., 1., 1.]])
    """
    run = Run("FPMVS", 200, 1e-5) if run is None else run
    m = Z.shape[0]
    squares = np.array([_dot(X, X) for X in Xs])
    Z, A, gamma, before = Z.T, np.eye(m), np.full(len(Xs), 1 / len(Xs)), np.inf
    for _ in run:
        Bs = [X.T @ Z for X in Xs]
        Ws = [_orthogonal(B @ A.T) for B in Bs]
        share = gamma**2 / np.sum(gamma**2)
        A = _orthogonal(sum(s * W.T @ B for s, W, B in zip(share, Ws, Bs, strict=True)))
        Ps = [X @ (W @ A).astype(Z.dtype) for X, W in zip(Xs, Ws, strict=True)]
        weights = np.full(len(Xs), 1 / np.sum(gamma**2)) if as_released else share
        Z = prox.simplex(sum(s * P for s, P in zip(weights.astype(Z.dtype), Ps, strict=True)))
        # |X - W A Z|^2, as W A keeps lengths; rounding must not make it zero or less.
        errors = squares - 2 * np.array([_dot(P, Z) for P in Ps]) + _dot(Z, Z)
        errors = np.maximum(errors, np.finfo(Z.dtype).eps * squares)
        gamma = 1 / errors / np.sum(1 / errors)
        objective = 1 / np.sum(1 / errors)
        fall = 1 - objective / before
        run.check(fall=abs(fall) if as_released else fall)
        before = objective
    return Z.T, A, Ws, gamma


def _orthogonal(C: np.ndarray) -> np.ndarray:
    """Matrix with orthonormal columns (rows, if C is wide) with the largest product with C."""
    U, _, Vt = np.linalg.svd(C.astype(np.float64, copy=False), full_matrices=False)
    return U @ Vt


def _dot(A: Any, B: Any) -> float:
    """Sum of the products of all entries, in float64."""
    if sp.issparse(A):
        return float(np.sum(A.data.astype(np.float64) * B.data))
    return float(np.einsum("ij,ij->", A, B, dtype=np.float64))
