r"""The solver of AnchorGRMSC, chunk by chunk; ``estimator`` has the objective and the recursion.

Everything costs O(n), and no step is an approximation:

- The part of a sample outside the range of A_k never changes; only its length matters. So X_k
  becomes its coordinates in the range of A_k and one more, that length: at most m + 1 rows.
- With ``Y1' = Y1 + mu (X - A Z - E)`` and ``Y2' = Y2 + mu (Z - Q)`` before the Z step, its step D
  solves ``mu (G + I) D + (Z + D) M = A^T Y1' - Y2'``, with G = sum_k A_k^T A_k, M = lam2 (L + L^T),
  and then Y1 = Y1' - mu A D, Y2 = Y2' + mu D. E is a multiple of Y1' column by column and
  ``Q = H Y2'`` with an m x m matrix H: neither is stored.
- ``G = U diag(g) U^T``; for U^T Z the Z step splits into m systems
  ``(mu (g_i + 1) I + M) d_i = b_i``, solved by conjugate gradients
  (`polyspan.methods.anchor_grmsc.sparse_laplacian`).
- As long as E = 0 and Q = 0, which lengths and an m x m matrix prove, Y1 and Y2 are known.

Samples are in rows below: Z, D, Y2 are n x m, chunk by chunk.
"""

from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace
from sklearn.exceptions import ConvergenceWarning

from polyspan.methods.anchor_grmsc import sparse_laplacian
from polyspan.methods.anchor_grmsc.anchors import Frame, project
from polyspan.runtime.arrays import Array, astype, like, sum_products, to_numpy
from polyspan.runtime.devices import move_arrays
from polyspan.runtime.threads import Threads, unzip
from polyspan.solvers import prox
from polyspan.solvers.eigen import eigh
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import largest_entry


class Part(NamedTuple):
    """State of the solver for a chunk of samples, in rows."""

    D: Array  # X - A Z
    Y1: Array
    Z: Array
    Y2: Array
    h: Array  # E = h Y1' for every view


class Early(NamedTuple):
    """The same while E = 0 and Q = 0: Y1 = m X - A S and Y2 = S, with m the sum of all mu."""

    X: Array
    C: Array  # A^T X
    Z: Array
    S: Array  # sum of all mu Z


def solve_anchors(
    workers: Any,
    Xs: list[Any],
    spans: list[Any],
    frame: Frame,
    L: Any,
    *,
    lam1: float,
    lam2: float,
    rho: float,
    mu0: float,
    mu_max: float,
    run: Run,
) -> tuple[list[Any], list[int]]:
    """Chunks of U^T Z, samples in rows, and the number of products with L in every iteration.

    ``Xs`` are chunks of projected samples, ``L`` is the Laplacian on the workers, or None.
    """
    iterations, mu, m, products = iter(run), mu0, 0.0, []
    there = workers.share(frame)
    fixed: dict[str, Any] = {"frame": there, "inplace": not workers.remote}

    def z_step(parts: list[Any], Fs: list[Any]) -> list[Any]:
        """Steps of all chunks, each in pieces of a few columns."""
        columns = workers.columns(len(frame.d))
        if L is None:
            products.append(0)
            return workers.map(_divide, Fs, mu=mu, frame=there)
        pairs = list(zip(parts, Fs, strict=True))
        cut = [[workers.submit(_columns, *pair, span) for pair in pairs] for span in columns]
        shifts = [mu * frame.d[a:b] for a, b in columns]
        done = workers.map(_solve_block, cut, shifts, L=L, weight=2 * lam2)
        steps, counts = unzip(workers, done, 2)
        products.append(max(workers.collect(counts)))
        return [[workers.submit(getitem, X, slice(*span)) for X in steps] for span in spans]

    early = workers.map(begin, Xs, frame=there)
    del Xs
    while True:
        found = workers.map(quiet, early, mu=mu, m=m, frame=there)
        longest, largest = workers.collect(workers.submit(loudest, found))
        if longest > lam1 or largest > 1 or next(iterations, None) is None:
            break  # E or Q is no longer zero
        Fs = workers.map(early_forces, early, mu=mu, m=m, frame=there)
        done = workers.map(early_advance, early, z_step(early, Fs), mu=mu, frame=there)
        early, sizes = unzip(workers, done, 2)
        sizes = workers.collect(sizes)
        m, mu = m + mu, min(rho * mu, mu_max)
        run.check(split=max(s for s, _ in sizes), data=max(d for _, d in sizes))
    parts = workers.map(settle, early, m=m, frame=there)
    del early
    grams = workers.map(_multiplied_gram, parts, mu=mu)
    for _ in iterations:
        threshold = workers.submit(singular_threshold, grams, mu)
        done = workers.map(forces, parts, mu=mu, lam1=lam1, threshold=threshold, **fixed)
        parts, Fs = unzip(workers, done, 2)
        del done
        steps = z_step(parts, Fs)
        del Fs
        now = {"mu": mu, "after": min(rho * mu, mu_max), "tol": run.tol, "threshold": threshold}
        done = workers.map(advance, parts, steps, **now, **fixed)
        parts, grams, sizes = unzip(workers, done, 3)
        sizes = workers.collect(sizes)
        run.check(split=max(s for s, _ in sizes), data=max(d for _, d in sizes))
        mu = now["after"]
        del done, steps
    return workers.map(getattr, parts, ["Z"] * len(parts)), products


def solve_on_device(
    device: str, Xs: list[np.ndarray], spans: list[Any], frame: Frame, L: Any, **fixed: Any
) -> tuple[list[np.ndarray], list[int]]:
    """`solve_anchors` on an accelerator, with all samples in one chunk; Z comes back in NumPy."""
    n = spans[-1][1]
    there = None if L is None else sparse_laplacian.move_laplacian(L, device)
    with Threads(1) as alone:
        X = move_arrays([np.concatenate(Xs)], device)
        (Z,), products = solve_anchors(alone, X, [(0, n)], frame, there, **fixed)
    Z = to_numpy(Z)
    return [Z[slice(*span)] for span in spans], products


def unsolved(products: list[int]) -> list[Warning]:
    """A warning if systems reached the maximum number of products with the Laplacian."""
    if max(products, default=0) < sparse_laplacian.MAX_PRODUCTS:
        return []
    words = (
        f"Some systems of the Z step did not converge within {max(products)} products with the "
        "Laplacian: raise alpha, which links all samples, or lower lam2."
    )
    return [ConvergenceWarning(words)]


def begin(X: Array, frame: Frame) -> Early:
    """Start at Z = 0."""
    C = X @ like(frame.A, X).T
    zeros = array_namespace(C).zeros_like
    return Early(X, C, zeros(C), zeros(C))


def gram(M: Array) -> np.ndarray:
    """Gram matrix of the columns of M."""
    M = astype(M, "float64")  # float32 is too coarse for squares
    return to_numpy(M.T @ M)


def quiet(part: Early, mu: float, m: float, frame: Frame) -> tuple[np.ndarray, float]:
    """Evidence for Q = 0 and E = 0: the Gram matrix of mu Z + Y2, and the longest mu D + Y1."""
    X, C, Z, S = part
    T = S + mu * Z
    a = m + mu
    squares = a * a * _row_sums(X, X) - 2 * a * _row_sums(C, T)
    squares += _row_sums(T * like(frame.d - 1, T), T)
    return gram(T), max(float(squares.max()), 0.0) ** 0.5


def loudest(found: list[tuple[np.ndarray, float]]) -> tuple[float, float]:
    """Length of the longest column, and the largest eigenvalue of the sum of Gram matrices."""
    return max(length for _, length in found), float(eigh(sum(gram for gram, _ in found))[0][-1])


class Threshold(NamedTuple):
    """``mu Z + Y2 = T``: Y2' has the singular values of T cut at 1, mu Q has the rest."""

    V: np.ndarray  # right singular vectors, T's samples being in rows
    cut: np.ndarray  # from T to Y2'
    rest: np.ndarray  # from Y2' to Q


def singular_threshold(grams: list[np.ndarray], mu: float) -> Threshold:
    """Compute the threshold from the Gram matrix of mu Z + Y2."""
    w, V = eigh(sum(grams))
    tau = np.sqrt(np.clip(w, 1, None))  # singular values; those up to 1 vanish
    return Threshold(V, 1 / tau, (tau - 1) / mu)


def _along(T: Array, V: np.ndarray, factors: np.ndarray) -> Array:
    """``T V diag(factors) V^T``, factor by factor.

    The factors differ by the singular values of T, which grow like the square root of n: a single
    matrix ``V diag(factors) V^T`` would lose the small ones in float32.
    """
    V = like(V, T)
    turned = T @ V
    turned *= like(factors, T)
    return turned @ V.T


def early_forces(part: Early, mu: float, m: float, frame: Frame) -> Array:
    """A^T Y1' - Y2' as long as E = 0 and Q = 0."""
    return (m + mu) * part.C - (part.S + mu * part.Z) * like(frame.d, part.C)


def early_advance(
    part: Early, steps: list[Array], mu: float, frame: Frame
) -> tuple[Early, tuple[float, float]]:
    """Take the Z step; also return the lengths of the longest columns of Z and of X - A Z."""
    X, C, Z, S = part
    Z = Z + array_namespace(Z).concat(steps, axis=1)
    data = _row_sums(X, X) - 2 * _row_sums(C, Z) + _row_sums(Z * like(frame.d - 1, Z), Z)
    split = float(_row_sums(Z, Z).max()) ** 0.5
    return Early(X, C, Z, S + mu * Z), (split, max(float(data.max()), 0.0) ** 0.5)


def settle(part: Early, m: float, frame: Frame) -> Part:
    """Store explicitly what was known only implicitly."""
    X, _, Z, S = part
    A = like(frame.A, X)
    h = array_namespace(X).zeros_like(X[:, : len(frame.spans)])
    return Part(X - Z @ A, m * X - S @ A, Z, S, h)


def _row_sums(A: Array, B: Array) -> Array:
    return sum_products(A, B, 1)


def _multiplied_gram(part: Part, mu: float) -> np.ndarray:
    return gram(mu * part.Z + part.Y2)


def forces(
    part: Part, mu: float, lam1: float, threshold: Any, frame: Frame, inplace: bool
) -> tuple[Part, Array]:
    """E and Q steps: multipliers Y1' and Y2' after them, and A^T Y1' - Y2'."""
    D, Y1, Z, Y2, _ = part if inplace else (part.D, part.Y1.copy(), part.Z, part.Y2.copy(), None)
    xp = array_namespace(D)
    Y1 += mu * D
    h = xp.empty_like(D[:, : len(frame.spans)])
    for k, columns in enumerate(frame.spans):
        T = Y1[:, columns]
        lengths = xp.sqrt(_row_sums(T, T))
        h[:, k] = xp.clip(lengths / lam1 - 1, min=0.0) / mu
        T *= (lam1 / xp.clip(lengths, min=lam1))[:, None]
    Y2 += mu * Z
    Y2 = _along(Y2, threshold.V, threshold.cut)  # mu Z + Y2 - mu Q
    return Part(D, Y1, Z, Y2, h), Y1 @ like(frame.A, Y1).T - Y2


def advance(
    part: Part,
    steps: list[Array],
    mu: float,
    after: float,
    threshold: Any,
    tol: float,
    frame: Frame,
    inplace: bool,
) -> tuple[Part, np.ndarray, tuple[float, float]]:
    """Z step and the rest of the multipliers; Gram matrix for the next Q, and the residuals."""
    D, Y1, Z, Y2, h = part if inplace else (*(x.copy() for x in part[:4]), part.h)
    step = array_namespace(Z).concat(steps, axis=1)
    moved = step @ like(frame.A, step)
    D -= moved
    Z += step
    Q = _along(Y2, threshold.V, threshold.rest)
    split = largest_entry((Z - Q).T, Z.shape[1], tol, _rotation(frame.U))
    data = []
    for k, (columns, P) in enumerate(zip(frame.spans, frame.bases, strict=True)):
        rest = D[:, columns] - h[:, k : k + 1] * Y1[:, columns]
        data.append(largest_entry(rest.T, P.shape[0], tol, _features(P)))
    moved *= mu
    Y1 -= moved
    step *= mu
    Y2 += step
    part = Part(D, Y1, Z, Y2, h)
    return part, _multiplied_gram(part, after), (split, max(data))


def _rotation(U: np.ndarray) -> Any:
    return lambda Z: like(U, Z) @ Z


def _features(P: np.ndarray) -> Any:
    """To original features; outside the range of A only the length is known."""
    return lambda R: abs(like(P, R) @ R[:-1]) + abs(R[-1:])


def _divide(F: Array, mu: float, frame: Frame) -> list[Array]:
    return [F / like(mu * frame.d, F)]


def _columns(part: Any, F: Array, span: tuple[int, int]) -> tuple[Array, Array]:
    return part.Z[:, slice(*span)], F[:, slice(*span)]


def _solve_block(
    cut: list[Any], shift: np.ndarray, L: sparse_laplacian.Laplacian, weight: float
) -> tuple[Array, int]:
    Zs, Fs = zip(*cut, strict=True)
    tol = float(array_namespace(*Zs).finfo(Zs[0].dtype).eps) ** 0.5
    return sparse_laplacian.solve(L, Zs, Fs, weight, shift, tol)


def represent(chunk: Any, frame: Frame, root: np.ndarray, lam1: float) -> np.ndarray:
    """Z of new samples, in rows: ``min_y |y|^2 / 2 + lam1 sum_k |x_k - y K_k|``, K = Psi^{1/2} A.

    Uses an augmented Lagrangian with a fixed mu, whose y step has one matrix for all samples. Each
    sample stops when it has converged, so that no sample depends on the others.
    """
    X = project(chunk, frame).astype(np.float64)
    K = root @ frame.A
    size = np.sqrt(np.mean(np.sum(frame.A**2, axis=1)))  # length of an anchor
    mu = 10 * lam1 / size if size > 0 else lam1
    g, V = eigh(K @ K.T)
    step = K.T @ (V / (1 + mu * g)) @ V.T
    found = np.zeros((len(X), len(K)))
    left = np.arange(len(X))  # those that have not converged
    E, Y, y = np.zeros_like(X), np.zeros_like(X), found
    for _ in range(2000):
        last = y
        y = (mu * (X - E) + Y) @ step
        D = X - y @ K
        E = D + Y / mu
        for columns in frame.spans:
            E[:, columns] *= prox.column_factors(E[:, columns].T, lam1 / mu)[:, None]
        Y += mu * (D - E)
        found[left] = y
        moved = np.linalg.norm(y - last, axis=1) > 1e-6 * np.linalg.norm(y, axis=1)
        active = moved | (np.linalg.norm(D - E, axis=1) > 1e-6 * size)
        left, X, E, Y, y = (A[active] for A in (left, X, E, Y, y))
        if len(left) == 0:
            break
    return found @ root @ frame.U.T
