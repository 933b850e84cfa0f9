"""Libraries that search nearest neighbors, compared on our data: what finds them, at what cost.

    python benchmarks/neighbors.py --hdigit             # Hdigit and planted 10^5, 1 and 2 threads
    python benchmarks/neighbors.py --n 1000000 --threads 2 --limit 150
    python benchmarks/neighbors.py --ways cells faiss-ivf --n 100000 --k 20

One view of unit length, float32: Hdigit's first (set POLYSPAN_DATA), and the first of the planted
data of scale.py. *recall* is the share of the true neighbors of 500 samples that was found;
*cpu s* sums over the threads;
*peak* is what the process held at most, less what it held before the search; *same* says whether
a second run with the same seed on this many threads, and one on a single thread, found the same
neighbors: yes, or the share of them that is equal. Every search runs in its own process, which is
ended after --limit seconds of CPU time; a library that is not installed is left out. Rows are
appended to benchmarks/results/neighbors.jsonl.
"""

import argparse
import multiprocessing
import os
import resource
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from page_tables import append
from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).resolve().parent / "results" / "neighbors.jsonl"
ASKED = 500  # samples whose neighbors are also found exactly


def exact(X, k, threads):
    from sklearn.neighbors import NearestNeighbors

    with threadpool_limits(threads):
        found = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(X)
        return found.kneighbors(X, return_distance=False)


def cells(X, k, threads):
    from polyspan.chunked.workers import Threads, bounds
    from polyspan.graphs.neighbors import neighbors

    spans = bounds(len(X), 8192)
    few = min(len(X), max(20_000, len(X) // 100))
    some = np.sort(np.random.RandomState(0).choice(len(X), few, replace=False))
    with Threads(threads) as workers:
        chunks = [[X[a:b]] for a, b in spans]
        return np.concatenate(
            [part.ids[:, :k] for part in neighbors(workers, chunks, spans, 0, k, X[some])[0]]
        )


def faiss_ivf(X, k, threads):
    import faiss

    faiss.omp_set_num_threads(threads)
    n, d = X.shape
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(d), d, max(1, n // 1000))
    index.cp.seed, index.cp.niter, index.nprobe = 0, 5, 4
    index.train(X)
    index.add(X)
    return index.search(X, k + 1)[1]


def faiss_hnsw(X, k, threads):
    import faiss

    faiss.omp_set_num_threads(threads)
    index = faiss.IndexHNSWFlat(X.shape[1], 16)
    index.hnsw.efConstruction, index.hnsw.efSearch = 40, 64
    index.add(X)
    return index.search(X, k + 1)[1]


def hnsw(X, k, threads):
    import hnswlib

    index = hnswlib.Index(space="l2", dim=X.shape[1])
    index.init_index(max_elements=len(X), ef_construction=64, M=16, random_seed=0)
    index.set_num_threads(threads)
    index.add_items(X)
    index.set_ef(64)
    return index.knn_query(X, k + 1)[0].astype(np.int64)


def usearch(X, k, threads):
    from usearch.index import Index

    index = Index(ndim=X.shape[1], metric="l2sq", dtype="f32", connectivity=16,
                  expansion_add=64, expansion_search=64)  # fmt: skip
    index.add(np.arange(len(X)), X, threads=threads)
    return index.search(X, k + 1, threads=threads).keys.astype(np.int64)


def pynndescent(X, k, threads):
    from pynndescent import NNDescent

    return NNDescent(X, n_neighbors=k + 1, random_state=0, n_jobs=threads).neighbor_graph[0]


WAYS = {
    "exact": (exact, None),
    "cells": (cells, None),
    "faiss-ivf": (faiss_ivf, "faiss"),
    "faiss-hnsw": (faiss_hnsw, "faiss"),
    "hnswlib": (hnsw, "hnswlib"),
    "usearch": (usearch, "usearch"),
    "pynndescent": (pynndescent, "pynndescent"),
}


def peak():
    """GiB that this process held at most; ru_maxrss would count those of its parent, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def search(way, path, k, threads, limit, answers):
    """Search in this process: neighbors without the sample itself, and what it took."""
    X, function = np.load(path), WAYS[way][0]
    function(X[:2000], k, threads)  # imports, compilation
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit + time.process_time()) + 1,) * 2)
    held, wall, cpu = peak(), time.perf_counter(), time.process_time()
    ids = function(X, k, threads)
    took = {"s": round(time.perf_counter() - wall, 1), "cpu s": round(time.process_time() - cpu, 1),
            "peak GiB": round(peak() - held, 2)}  # fmt: skip
    others = ids != np.arange(len(X))[:, None]
    first = np.argsort(~others, axis=1, kind="stable")[:, :k]
    out = path.with_name(f"{way}.npy")
    np.save(out, np.take_along_axis(ids, first, axis=1).astype(np.int32))
    answers.put(took)


def alone(way, path, k, threads, limit):
    """Search in a fresh process; None if it takes too long, or fails."""
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    one = context.Process(target=search, args=(way, path, k, threads, limit, answers))
    one.start()
    one.join()
    if one.exitcode:
        return None, None
    return answers.get(), np.load(path.with_name(f"{way}.npy"))


def same(a, b):
    share = float(np.mean(a == b))
    return "yes" if share == 1 else round(share, 4)


def planted(n):
    from polyspan.datasets import make_subspaces

    return make_subspaces(n, 10, n_views=3, n_features=50, noise=0.1, outliers=0.05).views[0]


def hdigit():
    from polyspan.datasets import load_dataset

    X = load_dataset("hdigit").views[0]
    order = np.random.RandomState(0).permutation(X.shape[0])
    return (X.toarray() if hasattr(X, "toarray") else X)[order]


def true_neighbors(X, k):
    asked = np.random.RandomState(1).choice(len(X), ASKED, replace=False)
    squares = (X**2).sum(axis=1, dtype=np.float64)
    D2 = squares - 2 * X[asked].astype(np.float64) @ X.T.astype(np.float64)
    D2[np.arange(ASKED), asked] = np.inf
    return asked, np.argpartition(D2, k, axis=1)[:, :k]


HEAD = ["data", "n", "way", "threads", "recall", "s", "cpu s", "peak GiB",
        "same again", "same as 1"]  # fmt: skip


def rows(args, folder):
    works = [("hdigit", hdigit)] * args.hdigit
    works += [("planted", lambda n=n: planted(n)) for n in args.n]
    for data, make in works:
        X = make()
        X = (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32)
        path = Path(folder) / "X.npy"
        np.save(path, X)
        asked, true = true_neighbors(X, args.k)
        for way in args.ways:
            if (WAYS[way][1] and not find_spec(WAYS[way][1])) or (way == "exact" and len(X) > 2e5):
                continue
            one = None
            for threads in args.threads:
                took, ids = alone(way, path, args.k, threads, args.limit)
                row = {"data": data, "n": len(X), "k": args.k, "way": way, "threads": threads}
                if ids is None:
                    yield row | {"s": f"over {args.limit:g} cpu s, or failed"}
                    continue
                share = np.mean(
                    [np.isin(t, i).mean() for t, i in zip(true, ids[asked], strict=True)]
                )
                row |= took | {"recall": round(float(share), 3)}
                if args.again:
                    again = alone(way, path, args.k, threads, args.limit)[1]
                    row["same again"] = "" if again is None else same(ids, again)
                if threads == 1:
                    one = ids
                elif one is not None:
                    row["same as 1"] = same(ids, one)
                yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="*", default=[100_000])
    parser.add_argument("--hdigit", action="store_true", help="Hdigit too")
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--limit", type=float, default=150.0)
    parser.add_argument("--again", action="store_true", help="search twice, for `same again`")
    args = parser.parse_args()
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for row in rows(args, folder):
            print(f"| {' | '.join(str(row.get(name, '')) for name in HEAD)} |", flush=True)
            stamp = {"date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count()}
            append(RESULTS, stamp | row)


if __name__ == "__main__":
    main()
