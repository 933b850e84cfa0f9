"""Time, peak memory and NMI from a thousand to a million samples, beside what others would run.

    python benchmarks/scale.py                          # planted subspaces, 10^3 ... 10^6
    python benchmarks/scale.py --n 100000 1000000 --methods AnchorGRMSC
    python benchmarks/scale.py --data hdigit scene15    # real data (set POLYSPAN_DATA)
    python benchmarks/scale.py --peers                  # our default and its peers, on six sets
    python benchmarks/scale.py --peers --n 1000000 --data planted nuisance
    python benchmarks/scale.py --peers --table          # the table of docs/scale.md
    python benchmarks/scale.py --data hdigit --methods GRMSC GRMSC-dense --device cuda
    python benchmarks/scale.py --n 1000000 --methods AnchorGRMSC --device cuda
    python benchmarks/scale.py --data hdigit --methods AnchorGRMSC --anchors 2000 --kept 2 3 5 10
    python benchmarks/scale.py --data hdigit --methods AnchorGRMSC-scaled --smoothing 0 3 10
    python benchmarks/scale.py --dask 1 2 --n 100000    # on Dask, with one and with two workers
    python benchmarks/scale.py --table                  # print the latest stored rows

Planted: 10 subspaces of dimension 3, three views of 50 features, noise of a tenth of a sample's
length, 5% of the samples corrupted in every view, float32. Nuisance: the same, but in the first two
views a second structure of ten groups is added, as long as the first (`make_subspaces`). Samples
are shuffled. With --peers there are five seeds where a fit takes less than a minute of one core,
and one where it takes longer; LMVSC, FPMVS and the methods for one matrix (benchmarks/peers.py;
Leiden needs the extra `bench`) get the views in the scaling that `polyspan.inputs.choice` puts
first for each; what is stored is not run again, unless with --again. Set OMP_NUM_THREADS=1 on a
busy machine: the table has core-seconds. Every fit has its own process; its peak
memory is the most that the process ever held, including the data and the libraries (with Dask: the
sum over the workers and the client). Every row is printed and appended to
benchmarks/results/scale.jsonl; the exponent is that of time in n between the last two sizes. With
--kept or --smoothing the same solution is also clustered with other numbers, untimed.
--iterations cuts a fit short, for a lower bound on its time; such a row says so.
"""

import argparse
import multiprocessing
import os
import resource
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from page_tables import append, read
from page_tables import show as show_table
from peers import PEERS

from polyspan import (
    GRMSC,
    METHODS,
    AnchorGRMSC,
    ConcatSpectral,
    ConsensusClusterer,
    __version__,
    sharing,
)
from polyspan.datasets import load_dataset, make_subspaces
from polyspan.inputs.choice import choose_scaling
from polyspan.inputs.scaling import scale_views
from polyspan.inputs.views import check_views
from polyspan.methods.anchor_grmsc import estimator
from polyspan.metrics import clustering_scores

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "scale.jsonl"
SIZES = [1_000, 10_000, 100_000, 1_000_000]
# Maximum number of samples for each method; beyond it, time or memory get out of hand.
LIMITS = {"AnchorGRMSC": 10**9, "LMVSC": 10**9, "MiniBatchKMeans": 10**9,
          "ConcatSpectral": 20_000, "GRMSC": 2_000, "GRMSC-dense": 2_000,
          "GRMSC-default": 2_000, "AnchorGRMSC-default": 20_000, "consensus": 10**6,
          "AnchorGRMSC-scaled": 10**9, "MeanGraph": 10**9, "FPMVS": 10**9,
          "Leiden": 200_000, "KNNSpectral": 20_000}  # fmt: skip
COMPARED = {"consensus": "polyspan, default", "MeanGraph": "`MeanGraph`",
            "AnchorGRMSC-scaled": "`AnchorGRMSC`", "LMVSC": "`LMVSC`", "FPMVS": "`FPMVS`",
            "MiniBatchKMeans": "mini-batch k-means", "KNNSpectral": "k-NN spectral",
            "Leiden": "Leiden"}  # fmt: skip
OURS = ("consensus", "MeanGraph", "AnchorGRMSC-scaled")  # the others are the peers
WORKS = {
    "handwritten": "Handwritten",
    "scene15": "Scene-15",
    "hdigit": "Hdigit",
    "snare_cortex": "SNARE-seq cortex",
    "planted": "planted",
    "nuisance": "nuisance",
}
SOLVERS = ("solve_anchors", "solve_on_device")
SEEDS, SHORT = 5, 60.0  # runs of a fit that takes less than this many core-seconds
PEERS_N = 100_000  # planted samples with --peers
ROUND = 1  # tells the rows of different default pools apart
# What the real data need: more anchors than planted subspaces of dimension 3.
REAL = {"n_anchors": 1000, "n_kept": 3, "dtype": "float32"}


def planted(n, nuisance=0.0):
    data = make_subspaces(n, 10, n_views=3, n_features=50, noise=0.1, outliers=0.05,
                          nuisance=nuisance, dtype="float32")  # fmt: skip
    return data.views, data.labels


def load(work, n, seed):
    """Views and classes, shuffled by the seed."""
    if work in ("planted", "nuisance"):
        views, labels = planted(n, float(work == "nuisance"))
    else:
        data = load_dataset(work)
        views = [X.toarray() if hasattr(X, "toarray") else X for X in data.views]
        labels = data.labels
    order = np.random.RandomState(seed).permutation(len(labels))
    for k, X in enumerate(views):  # one at a time: a copy of all may not fit
        views[k] = X[order]
    return views, labels[order]


def first_scaling(views):
    """The scaling that suits each view best, by its values."""
    return [choose_scaling(X, name).allowed[0] for X, name in check_views(views)]


@contextmanager
def timed_solver():
    """A list of the seconds that the solver of AnchorGRMSC takes, here or on a device."""
    taken, before = [], {name: getattr(estimator, name) for name in SOLVERS}

    def timed(solve):
        def solved(*args, **given):
            started = time.perf_counter()
            found = solve(*args, **given)
            taken.append(time.perf_counter() - started)
            return found

        return solved

    try:
        for name, solve in before.items():
            setattr(estimator, name, timed(solve))
        yield taken
    finally:
        for name, solve in before.items():
            setattr(estimator, name, solve)


def fit(method, views, c, real, device, other, seed):
    """Labels, and what else a row should say; ``other`` overrides our setting."""
    if method in PEERS:
        return PEERS[method](scale_views(check_views(views), first_scaling(views)), c, seed), {}
    if method in ("LMVSC", "FPMVS", "MeanGraph", "AnchorGRMSC-scaled"):
        kind = METHODS[method.removesuffix("-scaled").lower()]
        model = kind(c, scale=first_scaling(views), random_state=seed, **other)
        return model.fit(views).labels_, {}
    if method.startswith("AnchorGRMSC"):
        given = (REAL if real else {"n_anchors": 64}) | other
        given = {} if method == "AnchorGRMSC-default" else given
        given |= {} if device is None else {"device": device}
        with timed_solver() as solver:
            model = AnchorGRMSC(c, random_state=seed, **given).fit(views)
        told = {"m": len(model.anchors_[0]), "iterations": model.n_iter_,
                "products": sum(model.products_),
                "recall": round(min(model.recall_), 3),
                "solver s": round(sum(solver), 1)}  # fmt: skip
        return model.labels_, told | ({"device": device} if device else {})
    if method.startswith("GRMSC"):
        alpha = 1e-3 * min(1, 2000 / len(views[0]))
        given = {"n_neighbors": 10, "lam1": 0.1, "lam2": 1.0, "alpha": alpha, "device": device}
        given["affinity"] = "dense" if method == "GRMSC-dense" else "sparse"
        given = {"device": device} if method == "GRMSC-default" else given
        given |= {name: value for name, value in other.items() if name != "n_anchors"}
        model = GRMSC(c, random_state=seed, **given).fit(views)
        return model.labels_, {"iterations": model.n_iter_} | ({"device": device} if device else {})
    if method == "consensus":
        chosen = ConsensusClusterer(c, random_state=seed, device=device).fit(views)
        return chosen.labels_, {"settings": len(chosen.table_)}
    return ConcatSpectral(c, random_state=seed).fit(views).labels_, {}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(
    method, work, n, seed, device=None, anchors=None, kept=(), iterations=None, smoothing=()
):
    """Measure one row; runs in its own process."""
    warnings.simplefilter("ignore")
    views, labels = load(work, n, seed)
    asked = {"n_anchors": anchors, "max_iter": iterations}
    before, other = peak(), {name: value for name, value in asked.items() if value is not None}
    ours = method, views, len(set(labels)), n is None, device
    with sharing() if kept or smoothing else nullcontext():  # one solution for all
        started, cpu = time.perf_counter(), time.process_time()
        found, told = fit(*ours, other, seed)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        more = {"n_kept": kept if method in ("AnchorGRMSC", "GRMSC") else (),
                "smoothing": smoothing if method.startswith("AnchorGRMSC") else ()}  # fmt: skip
        for name, values in more.items():
            for value in values:
                again = fit(*ours, other | {name: value}, seed)[0]
                score = round(clustering_scores(labels, again)["nmi"], 4)
                told.setdefault(f"by {name.removeprefix('n_')}", {})[str(value)] = score
    told |= {"cut": True} if iterations is not None and told.get("iterations") == iterations else {}
    return {"work": work, "n": len(labels), "method": method, "seed": seed, "s": round(seconds, 1),
            "cpu s": round(cpu, 1), "peak GiB": round(peak(), 2), "data GiB": round(before, 2),
            "nmi": round(clustering_scores(labels, found)["nmi"], 4)} | told  # fmt: skip


def measure_dask(n, workers):
    """A fit on a cluster of processes on this machine."""
    import dask.array as da
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore")
    views, labels = planted(n)
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=0,
                     dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        lazy = [da.from_array(X, chunks=(8192, -1)) for X in views]
        started = time.perf_counter()
        model = AnchorGRMSC(10, n_anchors=64, n_neighbors=10, random_state=0).fit(lazy)
        seconds = time.perf_counter() - started
        held = sum(client.run(peak).values()) + peak()
    return {"work": "planted", "n": n, "method": f"AnchorGRMSC, Dask, {workers} workers",
            "s": round(seconds, 1), "peak GiB": round(held, 2),
            "nmi": round(clustering_scores(labels, model.labels_)["nmi"], 4),
            "iterations": model.n_iter_}  # fmt: skip


def alone(function, *args):
    """Call in a fresh process; a failure becomes a row, too."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(function, *args).result()
        except Exception as error:
            return {"args": repr(args), "error": f"{type(error).__name__}: {error}"}


def rows_of(args):
    if args.dask:
        for n in args.n:
            for workers in args.dask:
                yield alone(measure_dask, n, workers)
        return
    works = [(name, None) for name in args.data] if args.data else [("planted", n) for n in args.n]
    for work, n in works:
        for method in args.methods:
            limit = LIMITS[method] if args.limit is None else args.limit
            if (n or 0) <= limit:
                own = args.anchors if method == "AnchorGRMSC" else [None]
                for anchors in own:
                    yield alone(
                        measure, method, work, n, 0, args.device, anchors, args.kept,
                        args.iterations, args.smoothing,
                    )  # fmt: skip


def peer_rows(args):
    """Rows of our default and its peers that are not stored yet; a failure is tried again."""
    known = {} if args.again else peer_runs(read(RESULTS))
    for work, n in [(one, n if one in ("planted", "nuisance") else None)
                    for one in args.data or WORKS for n in args.n or [PEERS_N]]:  # fmt: skip
        for method in args.methods or COMPARED:
            if (n or 0) > LIMITS[method]:
                continue
            for seed in range(args.seeds):
                row = known.get((work, n, method, seed))
                if row is None:
                    row = alone(measure, method, work, n, seed)
                    yield row | {"peers": ROUND}
                if row.get("cpu s", SHORT) >= SHORT:
                    break


def peer_runs(rows):
    """The latest row of every run with --peers; real data have no n in the key."""
    found = {}
    for row in rows:
        if row.get("peers") == ROUND and "nmi" in row:
            n = row["n"] if row["work"] in ("planted", "nuisance") else None
            found[row["work"], n, row["method"], row["seed"]] = row
    return found


def peer_lines(rows):
    """Mean NMI over the seeds and median core-seconds of every method; a line for each set."""
    runs, lines = peer_runs(rows), []
    works = sorted({key[:2] for key in runs}, key=lambda one: (list(WORKS).index(one[0]), one[1]))
    for work, n in works:
        cells, scores = [], {}
        for method in COMPARED:
            own = [row for key, row in runs.items() if key[:3] == (work, n, method)]
            if own:
                scores[method] = np.mean([row["nmi"] for row in own])
                seconds = np.median([row["cpu s"] for row in own])
                cells.append(f"{scores[method]:.3f} ({seconds:.0f} s{'*' * (len(own) == 1)})")
                size = own[0]["n"]
            else:
                cells.append("")
        best = max((m for m in scores if m not in OURS), key=scores.get, default=None)
        told = "" if best is None else f"{COMPARED[best]} {scores[best]:.3f}"
        lines.append([WORKS[work], f"{size:,}", *cells, told])
    return ["data", "n", *COMPARED.values(), "best peer"], lines


HEAD = ["work", "n", "method", "device", "s", "solver s", "cpu s", "peak GiB", "nmi", "m",
        "recall", "iterations", "products", "by kept", "by smoothing"]  # fmt: skip


def line(row):
    return f"| {' | '.join(str(row.get(name, row.get('error', ''))) for name in HEAD)} |"


def show(rows):
    """Print rows as a Markdown table and append each to the results."""
    stamp = {"date": time.strftime("%Y-%m-%d"), "polyspan": __version__, "cores": os.cpu_count(),
             "threads": os.environ.get("OMP_NUM_THREADS", "all")}  # fmt: skip
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    done = []
    for row in rows:
        print(line(row), flush=True)
        append(RESULTS, stamp | row)
        done.append(row)
    growth(done)


def growth(rows):
    """Print the exponent of time in n between the two largest sizes of every method."""
    for method in dict.fromkeys(row.get("method") for row in rows):
        own = [row for row in rows if row.get("method") == method and row.get("work") == "planted"]
        own = list({row["n"]: row for row in own}.values())  # the last of each size
        if len(own) > 1:
            a, b = sorted(own, key=lambda row: row["n"])[-2:]
            slope = np.log(b["s"] / max(a["s"], 0.1)) / np.log(b["n"] / a["n"])
            print(f"{method}: time grows like n^{slope:.2f} from {a['n']} to {b['n']}")


KEY = ("work", "n", "method", "device", "m", "cut", "peers")


def table():
    """Print the latest row of every work, size and method."""
    rows = {}
    for row in read(RESULTS):
        rows[tuple(row.get(name) for name in KEY)] = row
    found = sorted(rows.values(), key=lambda row: (row["work"] != "planted", row["work"], row["n"]))
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    print("\n".join(map(line, found)) + "\n")
    growth(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, nargs="+", default=[], help="samples of planted data")
    parser.add_argument("--data", nargs="+", default=[])
    parser.add_argument("--methods", nargs="+", choices=list(LIMITS), default=[])
    parser.add_argument("--peers", action="store_true", help="our default and its peers")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of a short fit with --peers")
    parser.add_argument("--again", action="store_true", help="also run what is stored")
    parser.add_argument("--limit", type=int, help="maximum number of samples for every method")
    parser.add_argument("--device", help="where GRMSC and AnchorGRMSC are solved, such as cuda")
    parser.add_argument("--anchors", type=int, nargs="+", default=[None], metavar="M")
    parser.add_argument("--kept", type=int, nargs="+", default=[], metavar="K")
    parser.add_argument("--smoothing", type=int, nargs="+", default=[], metavar="STEPS")
    parser.add_argument("--iterations", type=int, help="stop GRMSC after this many (a lower bound)")
    parser.add_argument("--dask", type=int, nargs="+", metavar="WORKERS")
    parser.add_argument("--table", action="store_true", help="only print what was found before")
    args = parser.parse_args()
    if args.peers:
        show_table(*peer_lines(read(RESULTS))) if args.table else show(peer_rows(args))
        return
    args.n, args.methods = args.n or SIZES, args.methods or list(LIMITS)
    table() if args.table else show(rows_of(args))


if __name__ == "__main__":
    main()
