"""Algorithm 1 of the paper, transliterated: no reduction, a full SVD and solve in every iteration.

Slow on purpose. The library is held against it. Samples are columns. Errata as the library
handles them: eq. (23) has - mu X^T E and - Y2, the SVD is U S V^T, and the soft threshold is the
usual one. Everything, graphs included, is written again here.
"""

import numpy as np
import scipy.linalg


def laplacian(Xs, k, alpha, second_width="own"):
    """Sum over the views of the Laplacians of W^(k), eq. (20), by loops and definitions."""
    n = Xs[0].shape[1]
    off = ~np.eye(n, dtype=bool)
    firsts = []
    for X in Xs:
        distance = np.array([np.linalg.norm(X - X[:, [i]], axis=0) for i in range(n)])
        sigma = np.median(distance[np.triu_indices(n, 1)])
        S = np.exp(-(distance**2) / sigma**2)  # eq. (2)
        nearest = np.zeros((n, n))
        for i in range(n):
            others = [j for j in range(n) if j != i]
            last = np.sort(distance[i, others])[k - 1]
            tied = [j for j in others if abs(distance[i, j] - last) < 1e-11]
            closer = [j for j in others if distance[i, j] < last and j not in tied]
            nearest[i, closer] = 1
            if len(tied) <= 3 * k or not closer:  # the paper is silent about ties: they share
                nearest[i, tied] = (k - len(closer)) / len(tied)
        firsts.append((S * np.minimum(nearest, nearest.T), sigma))  # eq. (3)
    common = np.prod([Lambda for Lambda, _ in firsts], axis=0)  # eq. (4)
    total = np.zeros((n, n))
    for Lambda, sigma in firsts:
        distance = np.array([np.linalg.norm(Lambda - Lambda[:, [i]], axis=0) for i in range(n)])
        width = np.median(distance[np.triu_indices(n, 1)]) if second_width == "own" else sigma
        Upsilon = np.exp(-(distance**2) / width**2)  # eq. (6)
        W = np.where(common > 0, common / len(Xs), alpha * Upsilon) * off  # eq. (20)
        total += np.diag(W.sum(axis=1)) - W
    return total


def algorithm_1(
    Xs,
    L,
    lam1,
    lam2,
    orientation,
    Z=None,
    rho=1.9,
    mu=1e-4,
    mu_max=1e6,
    eps=1e-6,
    max_iter=100,
    fast=False,
    symmetric=False,
):
    """Return Z and the number of iterations; a list lam1 has a weight, or one per sample, by view.

    For comparisons of speed: ``fast`` takes gesdd where it succeeds, as NumPy does, and
    ``symmetric`` solves the Sylvester equation by symmetric eigensolvers instead of SciPy's
    general solver.
    """
    n = Xs[0].shape[1]
    eye = np.eye(n)
    Z = np.zeros((n, n)) if Z is None else Z.copy()
    Y1 = [np.zeros_like(X) for X in Xs]
    Y2 = np.zeros((n, n))
    M = lam2 * (L + L.T)
    lams = lam1 if isinstance(lam1, list) else [lam1] * len(Xs)
    iterations = 0
    while iterations < max_iter:
        iterations += 1
        E = []
        for X, Y, lam in zip(Xs, Y1, lams, strict=True):
            T = X - X @ Z + Y / mu  # eq. (14)
            length = np.linalg.norm(T, axis=0)
            E.append(T * np.maximum(1 - lam / mu / np.maximum(length, 1e-300), 0))  # eq. (13)
        U, s, Vt = svd(Z + Y2 / mu, fast)
        Q = (U * np.maximum(s - 1 / mu, 0)) @ Vt  # eq. (17)
        A = mu * (sum(X.T @ X for X in Xs) + eye)
        B = mu * Q - Y2
        for X, e, Y in zip(Xs, E, Y1, strict=True):
            B += X.T @ Y + mu * (X.T @ X) - mu * (X.T @ e)  # eq. (23)
        if orientation == "published":
            Z = np.linalg.inv(A + M) @ B  # eq. (22)
        else:
            Z = sylvester(A, M, B, symmetric)  # the same with the graphs on columns
        for k, (X, e) in enumerate(zip(Xs, E, strict=True)):
            Y1[k] = Y1[k] + mu * (X - X @ Z - e)  # eq. (24)
        Y2 = Y2 + mu * (Z - Q)
        mu = min(rho * mu, mu_max)
        left = [np.abs(X - X @ Z - e).max() for X, e in zip(Xs, E, strict=True)]
        if max(left) < eps and np.abs(Z - Q).max() < eps:
            break
    return Z, iterations


def svd(A, fast):
    """Singular value decomposition; gesdd is faster but gives up on some finite matrices."""
    if fast:
        try:
            return np.linalg.svd(A)
        except np.linalg.LinAlgError:
            pass
    return scipy.linalg.svd(A, lapack_driver="gesvd")


def sylvester(A, M, B, symmetric):
    """Solve A Z + Z M = B; ``symmetric`` uses that A and M are."""
    if not symmetric:
        return scipy.linalg.solve_sylvester(A, M, B)
    a, U = np.linalg.eigh(A)
    m, V = np.linalg.eigh(M)
    return U @ ((U.T @ B @ V) / (a[:, None] + m)) @ V.T
