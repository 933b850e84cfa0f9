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
  (`polyspan.graphs.sparse_laplacian`).
- As long as E = 0 and Q = 0, which lengths and an m x m matrix prove, Y1 and Y2 are known.

Samples are in rows below: Z, D, Y2 are n x m, chunk by chunk.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polyspan.chunked.workers import pick
from polyspan.graphs import sparse_laplacian
from polyspan.methods.anchor_grmsc.anchors import Frame, project
from polyspan.solvers import prox
from polyspan.solvers.eigen import eigh
from polyspan.solvers.loop import Run
from polyspan.solvers.reductions import largest_entry


class Part(NamedTuple):
    """State of the solver for a chunk of samples, in rows."""

    D: np.ndarray  # X - A Z
    Y1: np.ndarray
    Z: np.ndarray
    Y2: np.ndarray
    h: np.ndarray  # E = h Y1' for every view


class Early(NamedTuple):
    """The same while E = 0 and Q = 0: Y1 = m X - A S and Y2 = S, with m the sum of all mu."""

    X: np.ndarray
    C: np.ndarray  # A^T X
    Z: np.ndarray
    S: np.ndarray  # sum of all mu Z


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
        products.append(max(workers.collect(workers.map(pick, done, [1] * len(done)))))
        steps = workers.map(pick, done, [0] * len(done))
        return [[workers.submit(_span, X, span) for X in steps] for span in spans]

    early = workers.map(begin, Xs, frame=there)
    del Xs
    while True:
        found = workers.map(quiet, early, mu=mu, m=m, frame=there)
        longest, largest = workers.collect(workers.submit(loudest, found))
        if longest > lam1 or largest > 1 or next(iterations, None) is None:
            break  # E or Q is no longer zero
        Fs = workers.map(early_forces, early, mu=mu, m=m, frame=there)
        done = workers.map(early_advance, early, z_step(early, Fs), mu=mu, frame=there)
        early = [workers.submit(pick, one, 0) for one in done]
        sizes = workers.collect([workers.submit(pick, one, 1) for one in done])
        m, mu = m + mu, min(rho * mu, mu_max)
        run.check(split=max(s for s, _ in sizes), data=max(d for _, d in sizes))
    parts = workers.map(settle, early, m=m, frame=there)
    del early
    grams = workers.map(_multiplied_gram, parts, mu=mu)
    for _ in iterations:
        threshold = workers.submit(singular_threshold, grams, mu)
        done = workers.map(forces, parts, mu=mu, lam1=lam1, threshold=threshold, **fixed)
        parts = [workers.submit(pick, one, 0) for one in done]
        Fs = [workers.submit(pick, one, 1) for one in done]
        del done
        steps = z_step(parts, Fs)
        del Fs
        now = {"mu": mu, "after": min(rho * mu, mu_max), "tol": run.tol, "threshold": threshold}
        done = workers.map(advance, parts, steps, **now, **fixed)
        parts = [workers.submit(pick, one, 0) for one in done]
        grams = [workers.submit(pick, one, 1) for one in done]
        sizes = workers.collect([workers.submit(pick, one, 2) for one in done])
        run.check(split=max(s for s, _ in sizes), data=max(d for _, d in sizes))
        mu = now["after"]
        del done, steps
    return [workers.submit(pick, part, 2) for part in parts], products


def unsolved(products: list[int]) -> list[Warning]:
    """A warning if systems reached the maximum number of products with the Laplacian."""
    if max(products, default=0) < sparse_laplacian.MAX_PRODUCTS:
        return []
    words = (
        f"Some systems of the Z step did not converge within {max(products)} products with the "
        "Laplacian: raise alpha, which links all samples, or lower lam2."
    )
    return [ConvergenceWarning(words)]


def begin(X: np.ndarray, frame: Frame) -> Early:
    """Start at Z = 0."""
    C = X @ frame.A.T
    return Early(X, C, np.zeros_like(C), np.zeros_like(C))


def _sum_rows(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", A, B)


def gram(M: np.ndarray) -> np.ndarray:
    """Gram matrix of the columns of M."""
    M = M.astype(np.float64)  # float32 is too coarse for squares
    return M.T @ M


def quiet(part: Early, mu: float, m: float, frame: Frame) -> tuple[np.ndarray, float]:
    """Evidence for Q = 0 and E = 0: the Gram matrix of mu Z + Y2, and the longest mu D + Y1."""
    X, C, Z, S = part
    T = S + mu * Z
    g = (frame.d - 1).astype(T.dtype)
    a = m + mu
    squares = a * a * _sum_rows(X, X) - 2 * a * _sum_rows(C, T) + _sum_rows(T * g, T)
    return gram(T), float(np.sqrt(max(squares.max(), 0)))


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


def _along(T: np.ndarray, V: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """``T V diag(factors) V^T``, factor by factor.

    The factors differ by the singular values of T, which grow like the square root of n: a single
    matrix ``V diag(factors) V^T`` would lose the small ones in float32.
    """
    turned = T @ V.astype(T.dtype)
    turned *= factors.astype(T.dtype)
    return turned @ V.T.astype(T.dtype)


def early_forces(part: Early, mu: float, m: float, frame: Frame) -> np.ndarray:
    """A^T Y1' - Y2' as long as E = 0 and Q = 0."""
    return (m + mu) * part.C - (part.S + mu * part.Z) * frame.d.astype(part.C.dtype)


def early_advance(
    part: Early, steps: list[np.ndarray], mu: float, frame: Frame
) -> tuple[Early, tuple[float, float]]:
    """Take the Z step; also return the lengths of the longest columns of Z and of X - A Z."""
    X, C, Z, S = part
    Z = Z + np.hstack(steps)
    g = (frame.d - 1).astype(Z.dtype)
    data = _sum_rows(X, X) - 2 * _sum_rows(C, Z) + _sum_rows(Z * g, Z)
    split = np.sqrt(_sum_rows(Z, Z).max())
    return Early(X, C, Z, S + mu * Z), (float(split), float(np.sqrt(max(data.max(), 0))))


def settle(part: Early, m: float, frame: Frame) -> Part:
    """Store explicitly what was known only implicitly."""
    X, _, Z, S = part
    h = np.zeros((len(X), len(frame.spans)), dtype=X.dtype)
    return Part(X - Z @ frame.A, m * X - S @ frame.A, Z, S, h)


def _multiplied_gram(part: Part, mu: float) -> np.ndarray:
    return gram(mu * part.Z + part.Y2)


def forces(
    part: Part, mu: float, lam1: float, threshold: Any, frame: Frame, inplace: bool
) -> tuple[Part, np.ndarray]:
    """E and Q steps: multipliers Y1' and Y2' after them, and A^T Y1' - Y2'."""
    D, Y1, Z, Y2, _ = part if inplace else (part.D, part.Y1.copy(), part.Z, part.Y2.copy(), None)
    Y1 += mu * D
    h = np.empty((len(D), len(frame.spans)), dtype=D.dtype)
    for k, columns in enumerate(frame.spans):
        T = Y1[:, columns]
        lengths = np.sqrt(_sum_rows(T, T))
        h[:, k] = np.clip(lengths / lam1 - 1, 0, None) / mu
        T *= (lam1 / np.maximum(lengths, lam1))[:, None]
    Y2 += mu * Z
    Y2 = _along(Y2, threshold.V, threshold.cut)  # mu Z + Y2 - mu Q
    return Part(D, Y1, Z, Y2, h), Y1 @ frame.A.T - Y2


def advance(
    part: Part,
    steps: list[np.ndarray],
    mu: float,
    after: float,
    threshold: Any,
    tol: float,
    frame: Frame,
    inplace: bool,
) -> tuple[Part, np.ndarray, tuple[float, float]]:
    """Z step and the rest of the multipliers; Gram matrix for the next Q, and the residuals."""
    D, Y1, Z, Y2, h = part if inplace else (*(x.copy() for x in part[:4]), part.h)
    step = np.hstack(steps)
    moved = step @ frame.A
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
    return lambda Z: U.astype(Z.dtype) @ Z


def _features(P: np.ndarray) -> Any:
    """To original features; outside the range of A only the length is known."""
    return lambda R: np.abs(P @ R[:-1]) + np.abs(R[-1:])


def _divide(F: np.ndarray, mu: float, frame: Frame) -> list[np.ndarray]:
    return [F / (mu * frame.d).astype(F.dtype)]


def _columns(part: Any, F: np.ndarray, span: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    return part.Z[:, slice(*span)], F[:, slice(*span)]


def _span(X: np.ndarray, span: tuple[int, int]) -> np.ndarray:
    return X[slice(*span)]


def _solve_block(
    cut: list[Any], shift: np.ndarray, L: sparse_laplacian.Laplacian, weight: float
) -> tuple[np.ndarray, int]:
    Zs, Fs = zip(*cut, strict=True)
    tol = float(np.sqrt(np.finfo(Zs[0].dtype).eps))
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
