"""Speed of exact GRMSC, compared with the literal algorithm, a baseline, and the flop floor.

    python benchmarks/speed.py                 # the table; about 20 minutes on two cores
    python benchmarks/speed.py --work 3-sources ngs
    python benchmarks/speed.py --growth        # exponent of time in n, 500 to 4,000
    python benchmarks/speed.py --device cuda   # solves on a GPU
    python benchmarks/speed.py --float32       # how far float32 moves Z and the labels
    python benchmarks/speed.py --memory 3000   # peak memory of a fit of 3,000 digits, in n x n
    python benchmarks/speed.py --memory 10000 --iterations 3   # the same, cut short

Data sets are read through ``load_dataset`` (set POLYSPAN_DATA). All times of one table are from one
process and one run. The floor of an iteration is ``4 p n^2 + 4 n^3 + 4 n^2 r`` flops (p rows left
after the reduction over all views, r singular values kept in that iteration) at the rate of an n x
n matrix product, measured in the same run with the same dtype and threads. Every table is printed
and appended to benchmarks/results/speed.jsonl.
"""

import argparse
import os
import platform
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

import literal  # noqa: E402
from page_tables import append  # noqa: E402

from polyspan import GRMSC, ConcatSpectral, __version__  # noqa: E402
from polyspan.clustering.affinity import affinity_matrix  # noqa: E402
from polyspan.clustering.spectral import spectral_clustering  # noqa: E402
from polyspan.datasets import load_dataset  # noqa: E402
from polyspan.inputs.scaling import scale_views  # noqa: E402
from polyspan.inputs.views import check_views  # noqa: E402
from polyspan.methods.grmsc import graph_laplacian, solve_grmsc  # noqa: E402
from polyspan.metrics import clustering_scores  # noqa: E402
from polyspan.runtime.devices import move_arrays  # noqa: E402
from polyspan.solvers import prox  # noqa: E402
from polyspan.solvers.loop import Run  # noqa: E402
from polyspan.solvers.reductions import reduce_rows  # noqa: E402

# name: data set, neighbors, lam1, lam2, orientation, wanted literal / ours, wanted ours / floor
WORK = {
    "3-sources": ("three_sources", 50, 0.1, 1.0, "published", 15, None),
    "ngs": ("ngs", 30, 1.0, 10.0, "published", 6, 3),
    "bbcsport": ("bbcsport", 30, 100.0, 1000.0, "samples", 6, 3),
    "handwritten": ("handwritten", 10, 0.1, 1.0, "samples", 8, 2.5),
}


def dense(views):
    return [X.toarray() if hasattr(X, "toarray") else X for X in views]


def timed(function, *args, **kwargs):
    start = time.perf_counter()
    answer = function(*args, **kwargs)
    return answer, time.perf_counter() - start


def gemm_rate(n, repeats=5):
    """Flops per second of an n x n product."""
    A, B = np.random.default_rng(0).normal(size=(2, n, n))
    return 2 * n**3 / min(timed(np.matmul, A, B)[1] for _ in range(repeats))


class CountingThreshold(prox.SingularThreshold):
    """A singular value threshold that records the rank of every call."""

    ranks: list[int] = []

    def __call__(self, A, t):
        """Threshold, and record the rank."""
        Q = super().__call__(A, t)
        self.ranks.append(self.rank)
        return Q


def ranks_per_iteration(*args, **kwargs):
    plain, prox.SingularThreshold, CountingThreshold.ranks = (
        prox.SingularThreshold,
        CountingThreshold,
        [],
    )
    try:
        solve_grmsc(*args, **kwargs)
    finally:
        prox.SingularThreshold = plain
    return CountingThreshold.ranks


def one_work(name):
    dataset, k, lam1, lam2, orientation, want_literal, want_floor = WORK[name]
    data = load_dataset(dataset)
    views = scale_views(check_views(dense(data.views)), "unit")
    n, c = len(data.labels), data.n_clusters
    L, graph_s = timed(graph_laplacian, views, k)
    kwargs = {"lam1": lam1, "orientation": orientation}

    ranks = ranks_per_iteration(views, lam2 * L, **kwargs)  # also warms up
    rates, ours = [], []
    for _ in range(3):
        rates.append(gemm_rate(n))
        run = Run("GRMSC", 100, 1e-6)
        Z, seconds = timed(solve_grmsc, views, lam2 * L, run=run, **kwargs)
        ours.append(seconds)
    columns = [X.T for X in views]
    (Z0, iterations), literal_s = timed(
        literal.algorithm_1, columns, L, lam1, lam2, orientation, fast=True, symmetric=True
    )
    kind_s = literal_s
    rates.append(gemm_rate(n))
    if orientation == "samples":  # SciPy's Sylvester solver, the obvious implementation
        (Z0, iterations), literal_s = timed(
            literal.algorithm_1, columns, L, lam1, lam2, orientation, fast=True
        )
    assert iterations == run.n_iter, (
        f"{iterations} iterations of the literal algorithm, {run.n_iter} of ours"
    )
    difference = float(np.abs(Z - Z0).max())
    assert difference < 1e-6, f"Z differs by {difference:.1e}"
    labels, spectral_s = timed(spectral_clustering, affinity_matrix(Z), c, random_state=0)
    same = spectral_clustering(affinity_matrix(Z0), c, random_state=0)
    assert clustering_scores(labels, same)["ari"] == 1.0, "the labels differ"

    ranks = [0] * (iterations - len(ranks)) + ranks  # the first iterations need no threshold at all
    p = sum(reduce_rows(X)[0].shape[0] for X in views)
    floor = sum(4 * p * n**2 + 4 * n**3 + 4 * n**2 * r for r in ranks) / np.median(rates)
    baseline, baseline_s = timed(ConcatSpectral(c, random_state=0).fit_predict, data.views)
    return {
        "work": name,
        "n": n,
        "d": sum(X.shape[1] for X in views),
        "p": p,
        "iterations": iterations,
        "largest rank": max(ranks),
        "gflops": round(np.median(rates) / 1e9, 1),
        "literal s": round(literal_s, 2),
        "ours s": round(min(ours), 3),
        "floor s": round(floor, 3),
        "literal / ours": round(literal_s / min(ours), 1),
        "wanted": f">= {want_literal}",
        "symmetric literal s": round(kind_s, 2),
        "symmetric literal / ours": round(kind_s / min(ours), 1),
        "ours / floor": round(min(ours) / floor, 2),
        "wanted ": f"<= {want_floor}" if want_floor else "-",
        "graphs s": round(graph_s, 3),
        "spectral s": round(spectral_s, 3),
        "k-NN spectral s": round(baseline_s, 3),
        "nmi": round(clustering_scores(data.labels, labels)["nmi"], 4),
        "k-NN spectral nmi": round(clustering_scores(data.labels, baseline)["nmi"], 4),
        "max |dZ|": f"{difference:.0e}",
    }


def subset(data, n):
    """Scaled views of n samples of a data set, drawn at random."""
    order = np.random.RandomState(0).permutation(len(data.labels))[:n]
    return scale_views(check_views([X[order] for X in dense(data.views)]), "unit")


def growth():
    sizes = {"handwritten": [500, 1000, 2000], "hdigit": [500, 1000, 2000, 4000]}
    for name, ns in sizes.items():
        data, rows = load_dataset(name), []
        for n in ns:
            views = subset(data, n)
            L, graph_s = timed(graph_laplacian, views, 10)
            seconds = min(
                timed(solve_grmsc, views, L, lam1=0.1)[1] for _ in range(3 if n < 2000 else 1)
            )
            rows.append({"work": f"{name} subset", "n": n, "ours s": round(seconds, 3),
                         "graphs s": round(graph_s, 3)})  # fmt: skip
        slope = np.polyfit(np.log(ns), np.log([row["ours s"] for row in rows]), 1)[0]
        for row in rows:
            yield row | {"exponent over all n": round(float(slope), 2)}


def on_device(device):
    import torch

    card = torch.cuda.get_device_name(device) if "cuda" in device else platform.processor()

    def wait():
        if "cuda" in device:
            torch.cuda.synchronize()

    works = [("handwritten", 2000, 1), ("hdigit", 5000, 4), ("hdigit", 10000, 15)]
    if "cuda" not in device:
        works = [("handwritten", 500, None)]
    for dtype in (np.float64, np.float32):
        for name, n, wanted in works:
            data = load_dataset(name)
            views = move_arrays([X.astype(dtype) for X in subset(data, n)], device)
            # The complementary graph is dense: alpha falls like 1/n from 1e-3 at 2,000.
            alpha = 1e-3 * min(1, 2000 / n)
            for attempt in ("cold", "warm"):  # the first solve also loads the libraries
                wait()
                L, graph_s = timed(
                    lambda v=views, a=alpha: (graph_laplacian(v, 10, alpha=a), wait())[0]
                )
                run = Run("GRMSC", 100, 1e-6)
                Z, seconds = timed(
                    lambda v=views, L=L, r=run: (solve_grmsc(v, L, lam1=0.1, run=r), wait())[0]
                )
                row = {"device": card, "work": name, "n": n, "dtype": dtype.__name__,
                       "attempt": attempt, "iterations": run.n_iter, "graphs s": round(graph_s, 3),
                       "solve s": round(seconds, 3), "wanted": f"< {wanted}"}  # fmt: skip
                if "cuda" in device:
                    row["peak n^2"] = round(
                        torch.cuda.max_memory_allocated() / (n * n * np.dtype(dtype).itemsize), 1
                    )
                    torch.cuda.reset_peak_memory_stats()
            order = np.random.RandomState(0).permutation(len(data.labels))[:n]
            for kind in ("dense", "sparse"):
                labels, spectral_s = timed(
                    lambda Z=Z, kind=kind, c=data.n_clusters: spectral_clustering(
                        affinity_matrix(Z, kind), c, random_state=0
                    )
                )
                row[f"nmi {kind}"] = round(clustering_scores(data.labels[order], labels)["nmi"], 4)
                row[f"spectral {kind} s"] = round(spectral_s, 2)
            del Z, L
            yield row


def float32():
    norm = np.linalg.norm
    for name, (dataset, k, lam1, lam2, orientation, *_) in WORK.items():
        data = load_dataset(dataset)
        views = dense(data.views)
        model = GRMSC(data.n_clusters, n_neighbors=k, lam1=lam1, lam2=lam2,
                      orientation=orientation, random_state=0)  # fmt: skip
        double, double_s = timed(lambda m=model, v=views: (m.fit(v).representation_, m.labels_))
        single, single_s = timed(
            lambda m=model, v=views: (
                m.fit([X.astype(np.float32) for X in v]).representation_,
                m.labels_,
            )
        )
        yield {
            "work": name,
            "max |Z|": float(f"{np.abs(double[0]).max():.2g}"),
            "max |dZ|": f"{np.abs(double[0] - single[0]).max():.0e}",
            "|dZ|_F / |Z|_F": f"{norm(double[0] - single[0]) / norm(double[0]):.0e}",
            "NMI between the labels": round(clustering_scores(double[1], single[1])["nmi"], 4),
            "float64 s": round(double_s, 2),
            "float32 s": round(single_s, 2),
        }


def memory(n, iterations=None):
    """Peak resident memory of a whole fit, minus what was there before it.

    With ``iterations`` the fit is cut short, and mu starts where the threshold has work to do.
    """
    data = load_dataset("hdigit")
    order = np.random.RandomState(0).permutation(len(data.labels))[:n]
    views = [np.ascontiguousarray(X[order], dtype=np.float64) for X in data.views]
    del data
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    cut = {} if iterations is None else {"max_iter": iterations, "mu0": 10.0}
    model = GRMSC(10, n_neighbors=10, lam1=0.1, lam2=1.0, alpha=1e-3 * min(1, 2000 / n), **cut)
    _, seconds = timed(model.fit, views)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    yield {
        "n": n,
        "n^2 float64 GiB": round(8 * n * n / 2**30, 3),
        "peak GiB": round(peak / 2**30, 2),
        "peak n^2": round(peak / (8 * n * n), 1),
        "estimate n^2": round(model.footprint(check_views(views))[0], 1),
        "iterations": model.n_iter_,
        "fit s": round(seconds, 1),
    }


def show(rows, title):
    """Print rows as a Markdown table, one by one, then append them to the results."""
    done = []
    for row in rows:
        if not done:
            print(f"\n## {title}\n\n| {' | '.join(row)} |\n|{'---|' * len(row)}")
        print(f"| {' | '.join(str(value) for value in row.values())} |", flush=True)
        done.append(row)
    stamp = {"title": title, "date": time.strftime("%Y-%m-%d"), "polyspan": __version__,
             "numpy": np.__version__, "cores": os.cpu_count()}  # fmt: skip
    append(HERE / "results" / "speed.jsonl", *(stamp | row for row in done))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", nargs="+", choices=list(WORK), default=list(WORK))
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--memory", type=int, metavar="N")
    parser.add_argument("--iterations", type=int, metavar="T")
    parser.add_argument("--device")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.device:
        show(on_device(args.device), f"Solve on {args.device}")
    elif args.memory:
        show(memory(args.memory, args.iterations), "Peak memory")
    elif args.growth:
        show(growth(), "Growth with n")
    elif args.float32:
        show(float32(), "float32 beside float64")
    else:
        show((one_work(name) for name in args.work), "Exact GRMSC against the literal algorithm")


if __name__ == "__main__":
    main()
