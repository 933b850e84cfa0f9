"""What the order of the samples is worth, where it was decided what to do about it.

    python benchmarks/order.py effect [--datasets ...] [--methods ...]            hours
    python benchmarks/order.py effect --jobs 16 --device cuda                     on a GPU
    python benchmarks/order.py effect --methods LRR --seconds 1500 --retry        what took too long
    python benchmarks/order.py ties [--datasets ngs ...] [--neighbors 30 150]     minutes
    python benchmarks/order.py tensor [--datasets msrc_v1 ...]                    a minute
    python benchmarks/order.py consensus [--datasets msrc_v1 ...]                 20 minutes

``effect``: all methods with their defaults on samples sorted by class and shuffled, ten seeds
each, into results/rows.db; jobs that have a row there are not run again. It is a benchmark
(`harness.protocol`), run once for each order: so methods that are blind to the order share a
solution between the seeds of an order, never between orders. A method whose first seed takes more
than --seconds on a data set is left out there; --retry takes it up again, all seeds at once.
--store writes to another file, so that data sets, methods and orders (--orders) can be run side by
side, and --merge puts their rows together. ``python -m benchmarks export`` writes what git keeps of
them, of which ``python benchmarks/results.py`` makes docs/what-order-is-worth.md.

The others print a table each and, run with the defaults, keep it for docs/order-of-samples.md
(page_tables.py). ``ties``: GRMSC by four rules for samples that tie at the k-th
distance. Density is the share of all pairs that the first-order graph of a view links, the mean
over the views. The rules: the lower row number first, with the samples sorted by class and
shuffled; all tied samples in; all out; and the tied samples share the places that are left, as in
`polyspan.graphs.ties`. ``tensor``: t-SVD-MSC on samples sorted by class, and from the mean
representation of 1, 3, 5 and 15 random orders. ``consensus``: the default pool of
ConsensusClusterer by `polyspan.audit.order_effect`, ten runs in every order. Download the data
first: `polyspan data fetch`.
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from page_tables import show

from harness import Protocol, read_rows, run_protocol
from harness.plan import Method, Source
from harness.store import alone, identity, latest
from polyspan import GRMSC, METHODS, TSVDMSC, ConsensusClusterer
from polyspan.audit import HEADER, ORDERS, OrderEffect, order_effect, table_row
from polyspan.clustering.affinity import affinity_matrix
from polyspan.clustering.spectral import spectral_clustering
from polyspan.datasets import load_dataset
from polyspan.datasets.registry import find_entry
from polyspan.graphs.proximity import gaussian, median_distance, squared_distances, stable_ranks
from polyspan.graphs.ties import neighbor_shares, ranked, tie_slack, without_self
from polyspan.inputs.scaling import unit
from polyspan.metrics import clustering_scores

RULES = ("row number", "all in", "all out", "shared")
TIES = (  # the paper's data sets; of Yale the images
    *(("ngs", 30), ("ngs", 150), ("bbcsport", 30), ("three_sources", 30)),
    *(("movies617", 30), ("prokaryotic", 30), ("yale_images", 30)),
)
TENSORS = ("msrc_v1", "three_sources", "yale_images")
POOLED = ("three_sources", "msrc_v1", "yale_images")
MEANS = (1, 3, 5, 15)  # random orders whose representations are averaged
STORE = Path(__file__).resolve().parent / "results" / "rows.db"
SETS = (  # with up to 2,000 samples, the smallest first
    *("yale_images", "three_sources", "msrc_v1", "ngs", "bbcsport", "prokaryotic", "movies617"),
    *("bbc", "reuters1200", "leaves100", "handwritten"),
)
SEEDS = 10
SINGLE = ("lrr", "ssc")  # take one view: the best of all, without labels
SEES = "TSVDMSC, file"  # what the audit is for


def protocol(names: list[str], seconds: float) -> Protocol:
    """All methods with their defaults, and t-SVD-MSC in the order that it is given."""
    methods = [
        Method(cls.__name__, name, "default")
        for name, cls in METHODS.items()
        if name not in (*SINGLE, "bestsingleview")
    ]
    methods += [
        Method(METHODS[name].__name__, "bestsingleview", "default", {"estimator": name})
        for name in SINGLE
    ]
    methods.append(Method(SEES, "tsvdmsc", "default", {"sample_order": "file"}))
    sources = [Source(find_entry(name).name, name) for name in names]
    return Protocol("order", SEEDS, seconds, methods, sources)


def effect(
    whole: Protocol, orders: list[str], store: Path, *, retry: bool = False, **how: Any
) -> None:
    for source in whole.datasets:
        rest = whole.methods
        for seeds in (SEEDS,) if retry else (1, SEEDS):
            for order in orders:
                one = replace(whole, datasets=[source], methods=rest, seeds=seeds, order=order)
                run_protocol(one, store, retry=retry, **how)
                lost = _lost(store, source, order)
                rest = [method for method in rest if method.name not in lost]
        out = len(whole.methods) - len(rest)
        print(f"{source.label}: {len(rest)} methods, {out} left out", flush=True)


def _lost(store: Path, source: Source, order: str) -> set[str]:
    """Methods whose first seed failed or took too long."""
    return {
        row["method"]
        for row in latest(read_rows(store))
        if (row["protocol"], row["dataset"], row["order"]) == ("order", source.label, order)
        and row["seed"] == 0
        and row["status"] != "ok"
    }


def merge(stores: list[Path], store: Path) -> None:
    """Add the rows of other stores that are not in this one."""
    with alone(store) as (rows, add):
        known = {identity(row) for row in rows if row["status"] == "ok"}
        for other in stores:
            new = [row for row in latest(read_rows(other)) if row["status"] == "ok"]
            add(row for row in new if identity(row) not in known)
            known |= set(map(identity, new))


def effects(rows: list[Any]) -> dict[str, dict[str, OrderEffect]]:
    """Scores of every method on every data set where all seeds of both orders have been run."""
    scores: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in latest(rows):
        if row["status"] == "ok":
            place = scores.setdefault((row["method"], row["dataset"]), defaultdict(list))
            place[{"sorted": ORDERS[0], "shuffled": ORDERS[-1]}[row["order"]]].append(row["nmi"])
    found: dict[str, dict[str, OrderEffect]] = {}
    for (method, dataset), by in scores.items():
        if [len(by[order]) for order in (ORDERS[0], ORDERS[-1])] == [SEEDS, SEEDS]:
            found.setdefault(method, {})[dataset] = OrderEffect(method, by)
    return found


def mean_effect(by: dict[str, OrderEffect]) -> tuple[float, float]:
    """Mean effect over data sets, and its standard error from the spread over the runs."""
    effect = np.mean([one.effect for one in by.values()])
    error = np.sqrt(np.sum([one.error**2 for one in by.values()])) / len(by)
    return float(effect), float(error)


def first_order(X: Any, k: int, rule: str) -> np.ndarray:
    """First-order graph of a view whose ties are treated by a rule."""
    D2, slack = squared_distances(X, rounded=rule == "row number"), tie_slack(X)
    closer, tied = ranked(without_self(D2), k, slack)
    fits = np.sum(closer | tied, axis=1, keepdims=True) <= k
    near = {
        "row number": lambda: stable_ranks(D2, k)[0],
        "all in": lambda: closer | tied,
        "all out": lambda: closer | (tied & fits),
        "shared": lambda: neighbor_shares(D2, k, slack),
    }[rule]()
    return np.minimum(near, near.T) * gaussian(D2, median_distance(D2))


def ties(works: Iterable[tuple[str, int]], runs: int = 1) -> Iterator[list[object]]:
    """Yield the lines of data sets and numbers of neighbors; of several runs, mean (std)."""
    for name, k in works:
        data = load_dataset(name)
        by_class = np.argsort(data.labels, kind="stable")
        shuffled = [np.random.default_rng(run).permutation(len(by_class)) for run in range(runs)]
        orders = {"sorted": [by_class] * runs, "shuffled": shuffled}
        for rule in RULES:
            for order, several in orders.items():
                if order == "sorted" and rule != "row number":
                    continue  # the same as shuffled
                scores, densities = [], []
                for seed, rows in enumerate(several):
                    views = [view[rows] for view in data.views]
                    graphs = [first_order(unit(view), k, rule) for view in views]
                    model = GRMSC(data.n_clusters, graphs=graphs, random_state=seed).fit(views)
                    scores.append(clustering_scores(data.labels[rows], model.labels_)["nmi"])
                    densities.append(np.mean([np.mean(graph > 0) for graph in graphs]))
                nmi = f"{np.mean(scores):.3f}"
                if runs > 1:
                    nmi += f" ({np.std(scores, ddof=1):.3f})"
                yield [name, k, rule, order, f"{np.mean(densities):.3f}", nmi]


def tensor(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines of data sets."""
    for name in names:
        data = load_dataset(name)
        c, rows = data.n_clusters, np.argsort(data.labels, kind="stable")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it says what is measured here
            seen = TSVDMSC(c, sample_order="file", random_state=0)
            labels = seen.fit_predict([view[rows] for view in data.views])
        found = [f"{clustering_scores(data.labels[rows], labels)['nmi']:.3f}"]
        Zs = [TSVDMSC(c, random_state=s).fit(data.views).representation_ for s in range(MEANS[-1])]
        for m in MEANS:
            scores = []
            for first in range(0, MEANS[-1], m):
                W = affinity_matrix(np.mean(Zs[first : first + m], axis=0))
                labels = spectral_clustering(W, c, random_state=first)
                scores.append(clustering_scores(data.labels, labels)["nmi"])
            found.append(f"{np.mean(scores):.3f} ({np.std(scores):.3f})")
        yield [name, *found]


def consensus(names: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines of data sets."""
    for name in names:
        data = load_dataset(name)
        model = ConsensusClusterer(data.n_clusters)
        found = order_effect(model, data.views, data.labels, n_orders=SEEDS, random_state=0)
        cells = dict(zip(HEADER, table_row(found), strict=True))
        scores = (cells[ORDERS[0]], cells[ORDERS[-1]])
        yield [name, *scores, f"{found.effect:+.3f}", f"{2 * found.error:.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["effect", "ties", "tensor", "consensus"])
    parser.add_argument("--datasets", nargs="+")
    parser.add_argument("--methods", nargs="+", default=[], help="some, such as LMSC; all")
    parser.add_argument("--neighbors", nargs="+", type=int)
    parser.add_argument("--runs", type=int, default=1, help="of ties: orders and seeds")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--device", help="for the methods that can use one, such as cuda")
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--orders", nargs="+", default=["sorted", "shuffled"])
    parser.add_argument("--retry", action="store_true", help="also what took too long")
    parser.add_argument("--merge", nargs="+", type=Path, help="only add the rows of these stores")
    asked = parser.parse_args()
    if asked.merge:
        merge(asked.merge, asked.store)
    elif asked.what == "effect":
        whole = protocol(asked.datasets or list(SETS), asked.seconds)
        wanted = [one for one in whole.methods if one.name in asked.methods or not asked.methods]
        how = {"jobs": asked.jobs, "device": asked.device, "retry": asked.retry}
        effect(replace(whole, methods=wanted), asked.orders, asked.store, **how)
    elif asked.what == "ties":
        names = asked.datasets or dict(TIES)
        works = [(name, k) for name in names for k in asked.neighbors or (30, 150)]
        whole = not (asked.datasets or asked.neighbors) and asked.runs == 1
        header = ("data", "k", "rule", "order", "density", "NMI")
        show(header, ties(TIES if whole else works, asked.runs), "order-ties", whole)
    elif asked.what == "consensus":
        header = ("data", "sorted", "shuffled", "sorted - shuffled", "two standard errors")
        names = asked.datasets or POOLED
        show(header, consensus(names), "order-consensus", not asked.datasets)
    else:
        header = ("data", "sorted", *(f"{m} orders" for m in MEANS))
        names = asked.datasets or TENSORS
        show(header, tensor(names), "order-tensor", not asked.datasets)


if __name__ == "__main__":
    main()
