"""MeanGraph on many samples: in memory beside LMVSC, and on Dask with data made on the workers.

    python benchmarks/many.py                                   # a million, MeanGraph and LMVSC
    python benchmarks/many.py --n 100000 1000000
    python benchmarks/many.py --dask 2 --n 1000000 --views 3 --features 50
    python benchmarks/many.py --dask 2 --memory 5.5 --n 10000000 --views 2 --features 20

Planted as in scale.py, samples shuffled, float32; both methods run one after the other in one
process, so that their times can be compared on a machine with other work. CPU seconds sum over the
threads; LMVSC has one thread, because threads of BLAS that wait for each other count as well. The
peak is that of the process so far, data included; on Dask the sum over workers and client, and the
row also has the seconds that tasks took, by steps, summed over the workers. With --memory a Dask
worker that comes near to so many GiB writes what it does not need at once to disk.
"""

import argparse
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from page_tables import append
from threadpoolctl import threadpool_limits

from polyspan import LMVSC, MeanGraph
from polyspan.datasets import make_subspaces
from polyspan.metrics import clustering_scores

RESULTS = Path(__file__).resolve().parent / "results" / "many.jsonl"
C, DIM, NOISE, OUTLIERS = 10, 3, 0.1, 0.05
ROWS = 125_000  # made on a worker at a time
# Shares of a worker's memory from which it writes to disk, and waits; it is not stopped.
SPILL = {
    f"distributed.worker.memory.{what}": share
    for what, share in (("target", 0.8), ("spill", 0.85), ("pause", 0.95), ("terminate", False))
}

# Steps of a fit on Dask by their tasks, in the order in which they begin; a step lasts to the next.
STEPS = {"from": "data", "_cells": "order", "_assign": "neighbors", "_sum": "graph",
         "_join": "start", "_dense": "eigenvectors", "_first_columns": "k-means"}  # fmt: skip


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def told(row):
    append(RESULTS, {"date": time.strftime("%Y-%m-%d")} | row)
    print(f"| {' | '.join(map(str, row.values()))} |", flush=True)


def in_memory(n, views, features):
    data = make_subspaces(n, C, n_views=views, n_features=features, noise=NOISE, outliers=OUTLIERS)
    order = np.random.RandomState(0).permutation(n)
    Xs, labels = [X.astype(np.float32)[order] for X in data.views], data.labels[order]
    del data
    for model in (MeanGraph(C, random_state=0), LMVSC(C, random_state=0)):
        name = type(model).__name__
        started, cpu = time.perf_counter(), time.process_time()
        with threadpool_limits(1 if name == "LMVSC" else None):
            model.fit(Xs)
        took = time.perf_counter() - started, time.process_time() - cpu
        nmi = clustering_scores(labels, model.labels_)["nmi"]
        told({"n": n, "way": name, "s": round(took[0], 1), "cpu s": round(took[1], 1),
              "peak GiB": round(peak(), 2), "nmi": round(nmi, 4)})  # fmt: skip


def part(start, n, view, features):
    """Rows of a view and their labels; the same labels and coefficients in every view."""
    rng = np.random.default_rng([start, 0])
    labels, A = rng.integers(0, C, n), rng.standard_normal((n, DIM)) / DIM**0.5
    bases = [np.linalg.qr(np.random.default_rng([c, view, 1]).standard_normal((features, DIM)))[0]
             for c in range(C)]  # fmt: skip
    rng = np.random.default_rng([start, view, 2])
    X = np.einsum("ij,ikj->ik", A, np.array(bases)[labels]).astype(np.float32)
    X += NOISE / features**0.5 * rng.standard_normal(X.shape, dtype=np.float32)
    bad = rng.random(n) < OUTLIERS
    X[bad] = rng.standard_normal((bad.sum(), features)) / features**0.5
    return X, labels


def by_step(tasks):
    """Seconds that tasks computed, in the steps in which they began."""
    found, step, later = dict.fromkeys(STEPS.values(), 0.0), "data", list(STEPS)
    spans = [(span["start"], span["stop"], str(task["key"]).lstrip("('").split("-")[0])
             for task in tasks for span in task["startstops"]
             if span["action"] == "compute"]  # fmt: skip
    for start, stop, name in sorted(spans):
        if name in later:
            step, later = STEPS[name], later[later.index(name) + 1 :]
        found[step] += stop - start
    return {step: round(seconds, 1) for step, seconds in found.items()}


def on_dask(n, views, features, workers, threads, memory):
    import dask
    import dask.array as da
    from dask import delayed
    from distributed import Client, LocalCluster, get_task_stream

    spans = [(a, min(ROWS, n - a)) for a in range(0, n, ROWS)]
    lazy = []
    for view in range(views):
        made = [delayed(part, pure=True)(*span, view, features)[0] for span in spans]
        pieces = [da.from_delayed(one, (size, features), np.float32)
                  for one, (_, size) in zip(made, spans, strict=True)]  # fmt: skip
        lazy.append(da.concatenate(pieces))
    with (
        dask.config.set(SPILL),
        LocalCluster(n_workers=workers, threads_per_worker=threads, dashboard_address=None,
                     memory_limit=int(memory * 2**30)) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        started = time.perf_counter()
        with get_task_stream(client=client) as stream:
            model = MeanGraph(C, random_state=0).fit(lazy)
        seconds = time.perf_counter() - started
        cpu = sum(client.run(time.process_time).values())
        held = [round(one, 2) for one in [*client.run(peak).values(), peak()]]
    labels = np.concatenate([part(*span, 0, features)[1] for span in spans])
    nmi = clustering_scores(labels, model.labels_)["nmi"]
    of = f" of {threads} threads" * (threads > 1)
    told({"n": n, "way": f"MeanGraph, Dask, {workers} workers{of}", "s": round(seconds, 1),
          "cpu s": round(cpu, 1), "peak GiB": f"{sum(held):.2f} ({held})",
          "nmi": round(nmi, 4), "steps": by_step(stream.data)})  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--views", type=int, default=3)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--dask", type=int, metavar="WORKERS")
    parser.add_argument("--threads", type=int, default=1, help="of a Dask worker")
    parser.add_argument("--memory", type=float, default=0, help="GiB of a Dask worker; 0: no limit")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| n | way | s | cpu s | peak GiB | nmi |\n|---|---|---|---|---|---|", flush=True)
    for n in args.n:
        if args.dask:
            on_dask(n, args.views, args.features, args.dask, args.threads, args.memory)
        else:
            in_memory(n, args.views, args.features)


if __name__ == "__main__":
    main()
