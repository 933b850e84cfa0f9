"""Neighbors and late fusion by loops and definitions, and data with many ties.

Slow on purpose: the library is held against it. Samples are rows.
"""

import numpy as np


def tied_views(n=40, seed=0):
    """Three views full of equal distances: counts, binary features, and pairs of equal samples."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    counts = rng.poisson(0.4 + truth[:, None] * (np.arange(12) < 6), size=(n, 12)).astype(float)
    binary = (rng.uniform(size=(n, 5)) < 0.3 + 0.4 * truth[:, None]).astype(float)
    counts[:, 0] += 1
    binary[:, 0] = 1
    twice = np.repeat(rng.normal(size=(n // 2, 4)), 2, axis=0)
    return [counts, binary, twice]


def clouds(n=90, seed=0):
    """Two views of three clouds of samples, and their labels."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    views = []
    for d in (6, 9):
        centers = 2 * np.linalg.qr(rng.normal(size=(d, d)))[0][:3]
        views.append(centers[truth] + rng.normal(size=(n, d)) / 4)
    return views, truth


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def distances(X):
    """All distances, from differences; rounding of equal ones is removed."""
    D = np.array([[np.linalg.norm(x - y) for y in X] for x in X])
    return np.where(D < 1e-8, 0, D)


def shares(D, k):
    """Share of every pair (i, j) as a neighbor, and the distances of the k nearest."""
    n = len(D)
    A, nearest = np.zeros((n, n)), np.zeros((n, k))
    for i in range(n):
        others = [j for j in range(n) if j != i]
        nearest[i] = sorted(D[i, j] for j in others)[:k]
        last = nearest[i, -1]
        closer = [j for j in others if D[i, j] < last - 1e-9]
        tied = [j for j in others if abs(D[i, j] - last) <= 1e-9]
        A[i, closer] = 1
        if len(tied) <= 3 * k or not closer:
            A[i, tied] = (k - len(closer)) / len(tied)
    return A, nearest


def kernel(D, nearest, mu):
    """exp(-d^2 / (2 (mu eps)^2)) with eps = (m_i + m_j + d) / 3."""
    n, m = len(D), nearest.mean(axis=1)
    W = np.ones((n, n))
    for i in range(n):
        for j in range(n):
            eps = (m[i] + m[j] + D[i, j]) / 3
            if eps > 0:
                W[i, j] = np.exp(-(D[i, j] ** 2) / (2 * (mu * eps) ** 2))
    return W
