"""SSC: sparse subspace clustering, one view.

Objective, with samples in the columns of X (d x n)::

    min |C|_1 + lam/2 |X - X C|_F^2   s.t.  diag C = 0
    lam = lam_ratio / min_i max_{j != i} |x_i^T x_j|

With lam_ratio > 1 no column of C is zero. ADMM splits off A = C, with zero diagonal in C only, and
repeats::

    A  = (lam X^T X + rho I)^-1 (lam X^T X + rho C - Y)
    C  = A + Y/rho, entries shrunk by 1/rho, zero diagonal
    Y += rho (A - C)

The penalty rho starts at lam_ratio; in the paper it stays there. Here it is adapted every ten
iterations, up to the 200th, so that both residuals, relative to C and Y, have about the same size
(residual balancing), which saves most of the iterations.

Then every column of C is divided by its largest entry, and ``|C| + |C|^T`` is the affinity. The
paper's terms for sparse outlying entries and for affine subspaces are not included.

The public ADMM program, ``as_released=True``, also sets the diagonal of A to zero in every
iteration. A is then no minimizer of its step, and the end no minimizer of the objective but a much
sparser C: 18 entries in a column of the texts of 3-Sources instead of 117, with better scores. The
program keeps rho at lam_ratio, and stops when all entries of A - C are below tol, or after 199
iterations.

Reference: E. Elhamifar, R. Vidal, "Sparse subspace clustering: algorithm, theory, and
applications", IEEE TPAMI 35(11), 2013.
"""

from array_api_compat import array_namespace

from polyspan.base import About, OnDevice, Representation, RepresentationClusterer
from polyspan.inputs.params import flag, param, positive
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import Array, diagonal_mask, gram
from polyspan.solvers import prox
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import orthogonal_rows

RELEASED_ITERATIONS = 199  # the most that the public program makes


class SSC(RepresentationClusterer, OnDevice):
    """Sparse subspace clustering of a single view.

    For several views, wrap it: ``BestSingleView(SSC(...))``.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    lam_ratio : float, default=20.0
        lam, the weight of the errors, as a multiple of the smallest at which no sample stays alone;
        alpha in the paper, which uses 20 on motions and 800 on faces.
    as_released : bool, default=False
        Follow the public program, which solves another problem, see the module.
    tol : float, default=2e-4
        Stop when all entries of ``A - C`` and of the change of C are smaller; ``as_released``
        those of ``A - C`` only.
    max_iter : int, default=2000
        Maximum number of iterations; ``as_released`` makes 199 at most.
    affinity, n_kept, scale, n_init, views, device, random_state, verbose
        As in `GRMSC`.

    Attributes
    ----------
    labels_, affinity_matrix_, n_iter_
        As in `GRMSC`.
    representation_ : (n, n) array
        C, every column divided by its largest absolute entry.
    history_ : dict
        Per iteration: ``split``, the largest entry of ``A - C``, and ``change``, that of the change
        of C (not ``as_released``).

    Examples
    --------
    >>> from polyspan import SSC
    >>> from polyspan.datasets import make_subspaces
    >>> data = make_subspaces(n_samples=60, n_clusters=3, n_views=1, random_state=0)
    >>> SSC(n_clusters=3, random_state=0).fit_predict(data.views[0]).shape
    (60,)
    """

    about = About(
        paper="Elhamifar and Vidal, TPAMI 2013, arXiv:1203.1005",
        objective="min |C|_1 + lam/2 |X - X C|_F^2, diag C = 0",
        needs="lam_ratio, which sets lam; one view; as_released for the public program",
        cost="O(n^3) per iteration, about 300 iterations",
    )
    view_tags = {"single_view": True}
    solve_counts = False

    lam_ratio: float = param(positive, default=20.0)
    as_released: bool = param(flag, default=False)
    max_iter: int = 2000
    tol: float = 2e-4

    def solve(self, views: Views, Xs: list[Array]) -> Representation:
        """Return C, every column divided by its largest absolute entry."""
        run = self._run()
        lam = self.lam_ratio / smallest_maximum(gram(Xs[0]))
        params = self._given("as_released")
        C = solve_ssc(Xs[0], lam=lam, rho=self.lam_ratio, **params, run=run)
        xp = array_namespace(C)
        largest = xp.max(xp.abs(C), axis=0, keepdims=True)
        return Representation(
            C / xp.where(largest > 0, largest, xp.ones_like(largest)), **run.record()
        )


def smallest_maximum(G: Array) -> float:
    """Minimum over the samples of the largest inner product with another; G has all products.

    Samples that are orthogonal to all others do not count; 1 if there are no others.

    Examples
    --------
    >>> import numpy as np
    >>> smallest_maximum(np.array([[1.0, 0.5, 0.0], [0.5, 1.0, -0.2], [0.0, -0.2, 1.0]]))
    0.2
    """
    xp = array_namespace(G)
    G = xp.abs(G)
    largest = xp.max(xp.where(diagonal_mask(G), xp.zeros_like(G), G), axis=1)
    largest = largest[largest > 1e-8 * float(xp.max(G))]
    return float(xp.min(largest)) if largest.shape[0] else 1.0


def solve_ssc(
    X: Array, *, lam: float, rho: float, as_released: bool = False, run: Run | None = None
) -> Array:
    """Sparse representation C of one view, samples in the rows of X; rho is the first penalty.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(9, 4))
    >>> C = solve_ssc(X, lam=1e4, rho=10.0)
    >>> np.allclose(X.T @ C, X.T, atol=0.01), bool(np.all(np.diag(C) == 0))
    (True, True)
    """
    run = Run("SSC", 2000, 2e-4) if run is None else run
    R, s2, _ = orthogonal_rows(X)
    xp = array_namespace(R)

    def factor(rho: float) -> Array:
        return R.T @ (lam / (lam * s2 + rho) * R)  # (lam X^T X + rho I)^-1 lam X^T X

    K = factor(rho)
    diagonal = diagonal_mask(K)
    C = Y = xp.zeros_like(K)
    if as_released:
        run.max_iter = min(run.max_iter, RELEASED_ITERATIONS)
    for iteration in run:
        B = C - Y / rho
        A = B + K - K @ B
        if as_released:
            A = xp.where(diagonal, xp.zeros_like(A), A)
        before = C
        C = prox.soft(A + Y / rho, 1 / rho)
        C = xp.where(diagonal, xp.zeros_like(C), C)
        split, change = A - C, C - before
        Y = Y + rho * split
        if as_released:
            run.check(split=float(xp.max(xp.abs(split))))
            run.converged |= run.n_iter == run.max_iter  # the program ends here: no warning
            continue
        run.check(split=float(xp.max(xp.abs(split))), change=float(xp.max(xp.abs(change))))
        if iteration % 10 == 0 and iteration <= 200:
            ratio = _length(split) * _length(Y) / max(rho * _length(change) * _length(C), 1e-300)
            step = min(max(ratio**0.5, 0.1), 10.0)
            if not 2 / 3 < step < 3 / 2:
                rho *= step
                K = factor(rho)
    return C


def _length(A: Array) -> float:
    return float(array_namespace(A).linalg.vector_norm(A))
