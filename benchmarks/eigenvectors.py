"""Eigenvectors of large neighbor graphs: solvers, numbers of columns, numbers of neighbors.

    python benchmarks/eigenvectors.py                   # 100,000 planted samples, one thread
    python benchmarks/eigenvectors.py --n 30000

The graph is that of MeanGraph on the planted data of scale.py, in float32, samples shuffled.

*Solvers*, at 20 neighbors: CPU seconds of one thread, and the NMI after k-means on the first 15
vectors. The filter is that of `polyspan.solvers.filtered`, to the residual of
`polyspan.clustering.large` where no rounds are given, the time for its start included, but not that
of the vectors of a graph with 10 neighbors, which a pool of members has anyway; the samples are in
the order that the filter uses, for all solvers. *Columns*: NMI with c, 1.5 c and 2 c
vectors, by the number of neighbors and the weights. With 100,000 samples the tables are kept for
docs/scale.md (page_tables.py).
"""

import argparse
import time
import warnings

import numpy as np
import scipy.sparse as sp
from page_tables import show
from scipy.sparse.linalg import eigsh, lobpcg
from threadpoolctl import threadpool_limits

from polyspan.clustering.large import TOL, first_vectors, graph_order
from polyspan.clustering.spectral import cluster_rows
from polyspan.datasets import make_subspaces
from polyspan.graphs.knn import SEVENTH
from polyspan.graphs.neighbors import approximate_neighbors
from polyspan.inputs.scaling import scale_views
from polyspan.inputs.views import check_views
from polyspan.metrics import clustering_scores
from polyspan.runtime.threads import Threads, bounds
from polyspan.solvers import filtered

C = 10
SAMPLES = 100_000


def planted(n):
    data = make_subspaces(n, C, n_views=3, n_features=50, noise=0.1, outliers=0.05)
    order = np.random.RandomState(0).permutation(n)
    views = [X.astype(np.float32)[order] for X in data.views]
    return scale_views(check_views(views), "unit"), data.labels[order]


def graph(ids, squares, k, weights):
    """Graph of the k nearest of more neighbors, as in MeanGraph."""
    n, s = len(ids), np.sqrt(squares[:, SEVENTH - 1])
    ids, squares = ids[:, :k], squares[:, :k]
    data = np.ones(ids.shape) if weights == "binary" else np.exp(-squares / (s[:, None] * s[ids]))
    return sp.csr_array((data.ravel(), ids.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))


def normalized(found, k, weights):
    total = sum(graph(*one, k, weights) for one in found)
    W = sp.csr_array(total + total.T)
    root = 1 / np.sqrt(W.sum(axis=1))
    N = sp.csr_array(sp.diags_array(root) @ W @ sp.diags_array(root)).astype(np.float32)
    started = time.process_time()
    with Threads(1) as workers:
        Y = first_vectors(workers, W, root, 2 * C, C)
        order = graph_order(workers, Y)  # as in cluster_graph; all solvers gain
    return N[order][:, order], order, (Y[order], time.process_time() - started)


def score(labels, Y):
    return round(clustering_scores(labels, cluster_rows(Y, C, random_state=0))["nmi"], 4)


def by_filter(N, size, rounds, first=None):
    """The filter's vectors after so many rounds, or when they are accurate, and the CPU seconds."""
    spans = bounds(N.shape[0], 16_384)
    started = time.process_time()
    with Threads(1) as workers:
        blocks = [N[a:b] for a, b in spans]
        options = {"tol": 0.0 if rounds else TOL, "rounds": rounds}
        if first is not None:
            options["start"] = [first[0][a:b] for a, b in spans]
        found = filtered.leading_eigenvectors(workers, blocks, spans, size, C, **options)
    took = time.process_time() - started
    return np.concatenate(found[1]), took + (0 if first is None else first[1])


def by_arpack(N, size, tol):
    start = np.random.RandomState(0).uniform(size=N.shape[0]).astype(np.float32)
    started = time.process_time()
    Y = eigsh(N, size, which="LA", v0=start, tol=tol)[1][:, ::-1]
    return Y, time.process_time() - started


def by_lobpcg(N, size, iterations):
    start = np.random.RandomState(0).normal(size=(N.shape[0], size)).astype(np.float32)
    started = time.process_time()
    Y = lobpcg(N, start, largest=True, maxiter=iterations, tol=1e-3)[1]
    return Y, time.process_time() - started


def solvers(found, labels):
    """Yield a line for every solver."""
    N, order, first = normalized(found, 20, "binary")
    labels = labels[order]
    fewer, other, start = normalized(found, 10, "binary")
    known = np.empty_like(start[0])
    known[other] = by_filter(fewer, 20, None, start)[0]
    ways = [("filter, 20 vectors, from those of groups", by_filter, 20, None, first)]
    ways += [
        ("filter, 20 vectors, from those of 10 neighbors", by_filter, 20, None, (known[order], 0))
    ]
    ways += [("filter, 20 vectors, from random ones", by_filter, 20, None)]
    ways += [
        (f"filter, 20 vectors, {rounds} rounds", by_filter, 20, rounds) for rounds in (2, 3, 4)
    ]
    ways += [(f"ARPACK, 15 vectors, tol {tol:g}", by_arpack, 15, tol) for tol in (1e-2, 1e-3)]
    ways += [(f"LOBPCG, 15 vectors, {i} iterations", by_lobpcg, 15, i) for i in (20, 40)]
    for name, way, size, *setting in ways:
        Y, seconds = way(N, size, *setting)
        yield [name, f"{seconds:.1f}", score(labels, Y[:, :15])]


def columns(found, labels):
    """Yield a line for every graph."""
    for weights, k in [("binary", k) for k in (10, 15, 20, 30)] + [("self_tuning", 20)]:
        N, order, _ = normalized(found, k, weights)
        Y, _ = by_filter(N, 2 * C, 4)
        scores = [score(labels[order], Y[:, :size]) for size in (C, C + C // 2, 2 * C)]
        yield [weights.replace("_", "-"), k, *scores]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=SAMPLES)
    parser.add_argument("--solvers", action="store_true", help="only the first table")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    Xs, labels = planted(args.n)
    found = [approximate_neighbors(X, 30) for X in Xs]
    with threadpool_limits(1):
        header, whole = ("solver, 20 neighbors", "cpu s", "NMI, 15 columns"), args.n == SAMPLES
        show(header, solvers(found, labels), "eigen-solvers", whole)
        if not args.solvers:
            header = ("weights", "neighbors", "NMI with 10 columns", "15", "20")
            show(header, columns(found, labels), "eigen-columns", whole)


if __name__ == "__main__":
    main()
