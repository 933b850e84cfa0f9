"""Golden results: what every method, `ConsensusClusterer`, `count_clusters` and `predict` gave.

    python tests/golden.py           # compare with tests/golden.json, and say what differs
    python tests/golden.py --write   # update it, after an intended change of results
    python tests/golden.py --write --only rmsc   # the cases of one method, the others stay

A case is a function without arguments that returns something fitted; its record is the labels, the
number of iterations, the score, and a few random projections of the affinity or the representation.
With the versions and processor that wrote the file, labels must be equal and numbers agree to
1e-9 (float32: 1e-4); elsewhere the adjusted Rand index must reach .95 and numbers agree to 1e-4
(another BLAS moves those of LMSC, after hundreds of iterations, by 7e-5).
Cases on published data take every second sample and need POLYSPAN_DATA. `tests/test_golden.py`
runs them all.
"""

import argparse
import json
import platform
import sys
import tempfile
import warnings
from functools import cache, partial
from importlib import metadata
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_info, threadpool_limits

from polyspan import (
    GRMSC,
    METHODS,
    AnchorGRMSC,
    BestSingleView,
    ConsensusClusterer,
    count_clusters,
)
from polyspan.datasets import load_dataset, load_digits_views, make_subspaces
from polyspan.metrics import clustering_scores

FILE = Path(__file__).with_name("golden.json")
PUBLISHED = ("three_sources", "msrc_v1")
SINGLE = ("lrr", "ssc")  # methods of one view
VARIANTS = {  # other ways through the methods than their defaults, on planted data
    "grmsc": [
        {"orientation": "published"},
        {"regularizer": "first_order"},
        {"regularizer": "none"},
        {"affinity": "sparse"},
        {"second_width": "first"},
        {"scale": "standard+unit", "graph_scale": None},
        {"view_weights": [1.0, 0.5, 0.0]},
    ],
    "anchorgrmsc": [{"affinity": "dense"}, {"anchors": "sample"}, {"lam2": 0.0}],
    "amgl": [{"n_neighbors": 9}],
    "cgd": [{"view_weights": "adaptive"}],
    "coregspectral": [{"variant": "centroid"}, {"as_released": True, "max_iter": 5}],
    "csmsc": [{"as_released": False, "max_iter": 300}],
    "fastmice": [{"n_anchors": 40, "scale": None}],
    "fpmvs": [{"as_released": True}],
    "gmc": [{"scale": "unit"}, {"as_released": True}],
    "gsf": [{"n_neighbors": 5, "n_candidates": 4}],
    "lmsc": [{"as_released": True}, {"as_released": "corrected"}],
    "lmvsc": [{"normalize": False}],
    "ltmsc": [{"as_released": True}],
    "mcgc": [{"as_released": True}],
    "meangraph": [{"weights": "self_tuning"}, {"scale": "standard+unit"}],
    "mlrssc": [
        {"variant": "centroid"},
        {"kernel": "gaussian"},
        {"kernel": "gaussian", "as_released": True},
        {"variant": "centroid", "as_released": True, "lam_agreement": 0.7},
    ],
    "mvsc": [{"labels_from": "indicator"}],
    "selfgraph": [{"lam": 0.1, "n_neighbors": 10}],
    "nemo": [{"n_neighbors": 8, "mu": 0.8}],
    "pssv": [{"matrix": "walk"}],
    "rmsc": [{"as_released": True}],
    "snf": [{"n_rounds": 3}],
    "ssc": [{"as_released": True}],
    "tsvdmsc": [{"as_released": True}],
}


@cache
def data(name):
    """Return views, labels and the number of clusters of a data set."""
    if name == "planted":
        found = make_subspaces(120, 4, n_features=[20, 30, 300], noise=0.05, random_state=1)
    elif name == "many":
        found = make_subspaces(900, 5, n_features=[12, 15], noise=0.05, random_state=2)
    elif name == "digits":
        found = load_digits_views(200, random_state=0)
    else:
        found = load_dataset(name)
        return [X[::2] for X in found.views], found.labels[::2], found.n_clusters
    return found.views, found.labels, found.n_clusters


def fitted(method, name, **params):
    """Fit a method, with its defaults except for ``params``, to a data set."""
    views, _, c = data(name)
    views = views[:1] if method in SINGLE else views
    return METHODS[method](**({"n_clusters": c, "random_state": 0} | params)).fit(views)


def cases():
    """All cases by name: function, data set, tolerance of numbers."""
    found = {}

    def add(title, name, function, *args, tol=1e-9, **kwargs):
        found[title] = partial(function, *args, **kwargs), name, tol

    for method in METHODS:
        for name in ("planted", "digits", *PUBLISHED):
            add(f"{method} on {name}", name, fitted, method, name)
    for method, several in VARIANTS.items():
        for params in several:
            words = " ".join(f"{key}={value}" for key, value in params.items())
            add(f"{method} {words}", "planted", fitted, method, "planted", **params)
    for name in ("planted", "digits", "three_sources"):
        add(f"consensus on {name}", name, selected, name)
    for name in ("planted", "digits", *PUBLISHED):
        add(f"count_clusters on {name}", name, counted, name)
    add("consensus auto on planted", "planted", selected, "planted", "auto")
    for form in ("npy", "memmap", "parquet", "zarr", "dask", "cluster"):
        for scale in ("unit", "standard+unit") if form in ("npy", "cluster") else ("unit",):
            add(f"anchorgrmsc {form} {scale}", "many", chunked, form, scale)
    add("anchorgrmsc 1 thread", "many", chunked, "array", "unit", n_jobs=1)
    add("anchorgrmsc 2 threads", "many", chunked, "array", "unit", n_jobs=2)
    for method in ("grmsc", "anchorgrmsc", "ltmsc", "lmsc", "mlrssc", "dimsc", "lrr"):
        add(f"predict of {method}", "digits", predicted, method)
    add("predict of grmsc, sparse", "digits", predicted, "grmsc", affinity="sparse")
    add("predict of grmsc, standard", "digits", predicted, "grmsc", scale="standard+unit")
    for name in ("planted", "three_sources"):
        add(f"missing views on {name}", name, incomplete, name)
        add(f"missing views on {name}, first order", name, incomplete, name, "first_order")
        add(f"kernels on {name}", name, kernels, name)
        add(f"graphs on {name}", name, given_graphs, name)
    add("predict with missing views", "digits", predicted, "grmsc", gaps=True)
    add("predict with kernels", "digits", predicted, "grmsc", precomputed="kernel")
    for method in ("grmsc", "lrr", "anchorgrmsc", "lmvsc"):
        add(f"{method} float32", "planted", single_precision, method, tol=1e-4)
    for method in ("meangraph", "selfgraph", "nemo"):
        add(f"missing views of {method}", "three_sources", gaps_of, method, "three_sources")
    add("best view by labels", "planted", oracle)
    return found


def selected(name, c=None):
    """Return a fitted `ConsensusClusterer`."""
    views, _, known = data(name)
    return ConsensusClusterer(known if c is None else c, random_state=0).fit(views)


def counted(name):
    """Return what `count_clusters` finds."""
    return count_clusters(data(name)[0], random_state=0)


def chunked(form, scale, n_jobs=None):
    """Fit AnchorGRMSC to views that are in memory, in files or with Dask."""
    views, _, c = data("many")
    model = AnchorGRMSC(c, n_anchors=40, scale=scale, chunk_size=300, n_jobs=n_jobs, random_state=0)
    if form == "array":
        return model.fit(views)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{k}.npy" for k in range(len(views))]
        for path, view in zip(paths, views, strict=True):
            np.save(path, view)
        if form == "npy":
            return model.fit(paths)
        if form == "memmap":
            return model.fit([np.load(path, mmap_mode="r") for path in paths])
        if form in ("parquet", "zarr"):
            return model.fit([write(form, folder, k, view) for k, view in enumerate(views)])
        import dask.array as da

        arrays = [da.from_array(view, chunks=(300, -1)) for view in views]
        if form == "dask":
            return model.fit(arrays)
        from distributed import Client, LocalCluster

        quiet = {"dashboard_address": None, "processes": False, "threads_per_worker": 1}
        with LocalCluster(n_workers=2, **quiet) as cluster, Client(cluster):
            return model.fit(arrays)


def write(form, folder, k, view):
    """Write a view as Parquet or Zarr."""
    path = Path(folder) / f"{k}.{form}"
    if form == "parquet":
        import pandas as pd

        columns = [f"f{j}" for j in range(view.shape[1])]
        pd.DataFrame(view, columns=columns).to_parquet(path, row_group_size=250)
    else:
        import zarr

        zarr.save_array(path, view)
    return path


def gapped(views, share=0.25):
    """Views in which a share of the samples is missing, each sample in at most one of them."""
    views = [X.toarray() if sp.issparse(X) else np.array(X, dtype=float) for X in views]
    n = len(views[0])
    order = np.random.default_rng(3).permutation(n)[: int(share * n)]
    for k, view in enumerate(views):
        view[order[k :: len(views)]] = np.nan
    return views


def incomplete(name, regularizer="both"):
    """Fit GRMSC to views that some samples lack."""
    views, _, c = data(name)
    return GRMSC(c, regularizer=regularizer, random_state=0).fit(gapped(views))


def gaps_of(method, name):
    """Fit another method to views that some samples lack."""
    views, _, c = data(name)
    return METHODS[method](c, random_state=0).fit(gapped(views))


def gram(X, Y):
    """Inner products of the rows of two views, dense."""
    K = X @ Y.T
    return K.toarray() if sp.issparse(K) else K


def kernels(name):
    """Fit GRMSC to the inner products of the views."""
    views, _, c = data(name)
    return GRMSC(c, precomputed="kernel", random_state=0).fit([gram(X, X) for X in views])


def given_graphs(name):
    """Fit GRMSC with graphs that are given."""
    views, _, c = data(name)
    found = []
    for X in views:
        K = gram(X, X)
        root = np.sqrt(np.diag(K))
        S = np.abs(K) / np.outer(root, root)
        found.append(np.where(S > np.quantile(S, 0.9), S, 0.0))
    return GRMSC(c, graphs=found, random_state=0).fit(views)


def predicted(method, gaps=False, **params):
    """Predict the last 60 digits from a fit to the first 140."""
    views, _, c = data("digits")
    views = views[:1] if method in SINGLE else views
    views = gapped(views) if gaps else views
    old, new = [X[:140] for X in views], [X[140:] for X in views]
    model = METHODS[method](n_clusters=c, random_state=0, **params)
    if params.get("precomputed"):
        model.fit([gram(X, X) for X in old])
        return model.predict([gram(X, Y) for X, Y in zip(new, old, strict=True)])
    return model.fit(old).predict(new)


def single_precision(method):
    """Fit float32 views."""
    views, _, c = data("planted")
    views = [X.astype(np.float32) for X in (views[:1] if method in SINGLE else views)]
    return METHODS[method](n_clusters=c, random_state=0).fit(views)


def oracle():
    """Fit BestSingleView with the labels."""
    views, labels, c = data("planted")
    return BestSingleView(n_clusters=c, oracle=True, random_state=0).fit(views, labels)


def projections(A):
    """Return five numbers u^T A v / |A|, with fixed random unit vectors u and v, and |A|."""
    A = A.toarray() if sp.issparse(A) else np.asarray(A)
    A = np.asarray(A, dtype=np.float64)
    rng = np.random.default_rng(0)
    size = float(np.linalg.norm(A))
    numbers = []
    for _ in range(5):
        u, v = rng.normal(size=A.shape[0]), rng.normal(size=A.shape[1])
        numbers.append(float(u @ A @ v) / (np.linalg.norm(u) * np.linalg.norm(v) * (size or 1)))
    return [*numbers, size]


def record(found, name):
    """The record of a case: labels, numbers, iterations and score."""
    row = {}
    if isinstance(found, tuple):  # count_clusters
        count, evidence = found
        numbers = [*evidence["scores"], *evidence["gaps"], *evidence["eigenvalues"][:10]]
        return {"count": count, "candidates": evidence["candidates"], "numbers": numbers}
    if isinstance(found, np.ndarray):  # predict
        return {"labels": shorter(found)}
    if isinstance(found, ConsensusClusterer):
        labels, best = found.labels_, found.best_estimator_
        row["members"] = [[r["method"], r["status"], r["weight"] > 0] for r in found.table_]
        row["best"] = type(best).__name__
        row["numbers"] = [float(r["agreement"]) for r in found.table_]
        row["numbers"] += [float(np.mean(found.certainty_)), float(np.min(found.certainty_))]
    else:
        labels, best = found.labels_, found
        row["n_iter"] = int(getattr(best, "n_iter_", 0))
        row["numbers"] = []
        for kind in ("affinity_matrix_", "representation_"):
            if getattr(best, kind, None) is not None:
                row["numbers"] += projections(getattr(best, kind))
        if hasattr(best, "embedding_"):  # up to a rotation
            Y = np.asarray(best.embedding_)
            row["numbers"] += projections(Y @ Y.T)
        for values in getattr(best, "history_", {}).values():
            row["numbers"] += [float(values[0]), float(values[len(values) // 2])]
    row["labels"] = shorter(labels)
    truth = data(name)[1]
    scores = clustering_scores(truth, labels)
    row["scores"] = {key: float(scores[key]) for key in ("nmi", "acc", "f_score")}
    return row


def shorter(labels):
    """Labels as one string."""
    return " ".join(map(str, np.asarray(labels).tolist()))


def run_case(title):
    """Run one case in one thread of BLAS and return what is kept of it."""
    function, name, _ = cases()[title]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return record(function(), name)


def machine():
    """Versions and processor, on which the last digits depend."""
    packages = ("numpy", "scipy", "scikit-learn")
    # Of numpy and scipy: other packages bring their own, and may be loaded or not.
    pools = [
        one
        for one in threadpool_info()
        if {"numpy.libs", "scipy.libs"} & set(Path(one["filepath"]).parts)
    ]
    blas = sorted({str(one.get("architecture")) for one in pools})
    return {
        "python": platform.python_version(),
        **{one: metadata.version(one) for one in packages},
        "processor": processor(),
        "blas": [one for one in blas if one != "None"],
    }


def processor():
    """Name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def differences(found, wanted, tol, strict):
    """What differs between two records, in words; ``strict`` on the machine of the file."""
    told = []
    if "labels" in wanted:
        a, b = (np.array(row["labels"].split(), dtype=int) for row in (found, wanted))
        if strict and not np.array_equal(a, b):
            told.append(f"{np.sum(a != b)} of {len(a)} labels differ")
        if not strict and adjusted_rand_score(a, b) < 0.95:
            told.append(f"adjusted Rand index {adjusted_rand_score(a, b):.3f} below .95")
    exact = {"count", "n_iter", "best", "members", "candidates"} & set(wanted)
    for key in sorted(exact if strict else exact & {"count"}):
        if found[key] != wanted[key]:
            told.append(f"{key} is {found[key]}, was {wanted[key]}")
    a, b = (np.array(row.get("numbers", []), dtype=float) for row in (found, wanted))
    limit = tol if strict else max(tol, 1e-4)
    if a.shape != b.shape:
        told.append(f"{len(a)} numbers, there were {len(b)}")
    elif a.size:
        gap = np.abs(a - b) / np.maximum(1, np.abs(b))
        if not np.max(gap) <= limit:
            told.append(f"numbers differ by {np.max(gap):.1e}, allowed {limit:g}")
    return told


def main():
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--write", action="store_true", help="write golden.json anew, or these cases of it"
    )
    parser.add_argument("--only", default="", help="cases whose name contains this")
    args = parser.parse_args()
    found = {title: run_case(title) for title in cases() if args.only in title}
    stored = json.loads(FILE.read_text())
    strict, bad = stored["machine"] == machine(), 0
    if args.write:
        if args.only and not strict:
            parser.error("--write --only needs the versions and processor of the other cases")
        rows = (stored["cases"] if args.only else {}) | found
        rows = {title: rows[title] for title in cases() if title in rows}
        FILE.write_text(json.dumps({"machine": machine(), "cases": rows}, indent=1) + "\n")
        print(f"{len(found)} cases written to {FILE.name}")
        return 0
    for title, row in found.items():
        told = differences(row, stored["cases"][title], cases()[title][2], strict)
        bad += bool(told)
        for one in told:
            print(f"{title}: {one}")
    where = "same versions and processor" if strict else "other versions or processor"
    print(f"{len(found) - bad} of {len(found)} cases as they were ({where})")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
