"""What `find_structure` says of noise, of planted clusters, of batches, and of published data.

    python benchmarks/structure.py                  all tables
    python benchmarks/structure.py --table noise    one of noise, planted, batches, datasets

Noise: views that are independent of each other, ten sets of each of four kinds. Planted: the same
kinds with clusters that all views share; the strength is searched for every set, so that
`ConcatSpectral` has an NMI between .7 and .9 when it is given their number. Batches: one view has a
grouping of its own, unrelated to the clusters. With the ten first sets of every kind the tables are
kept for docs/structure.md (page_tables.py).
"""

import argparse
import time
import warnings
from collections import Counter

import numpy as np
from page_tables import TITLES, show
from scipy.stats import norm
from sklearn.metrics import normalized_mutual_info_score

from polyspan import ConcatSpectral
from polyspan.datasets import list_datasets, load_dataset
from polyspan.datasets.registry import find_entry, where
from polyspan.inputs.choice import choose_scaling
from polyspan.inputs.views import check_views
from polyspan.selection.structure import find_structure

SETS = 10  # of every kind
KINDS = ("gaussian", "heavy tails", "counts", "binary")
LOW, HIGH = 0.7, 0.9  # NMI of ConcatSpectral on planted sets
VERDICTS = ("none found", "weak", "strong")
TABLES = ("noise", "planted", "batches", "datasets")
WORDS = {  # of a kind of columns: in the table of noise, and in that of planted clusters
    "gaussian": ("Gaussian, correlated columns", "Gaussian"),
    "heavy tails": (
        "heavy tails (t with 2 or 3 degrees of freedom), correlated",
        "heavy tails",
    ),
    "counts": ("sparse counts, samples and columns of different size", "sparse counts"),
    "binary": ("binary, correlated", "binary"),
}


def correlated(rng, n, d):
    """Gaussian noise with about d / 5 common factors, so that columns are correlated."""
    factors = max(2, d // 5)
    loadings = rng.normal(size=(factors, d)) / np.sqrt(factors)
    return rng.normal(size=(n, factors)) @ loadings + 0.7 * rng.normal(size=(n, d))


def make_view(rng, kind, n, d, groupings):
    """One view; each (labels, strength) shifts a third of the columns by normal amounts."""
    shifts = np.zeros((n, d))
    for labels, strength in groupings:
        moved = rng.uniform(size=d) < 1 / 3
        shifts += strength * (rng.normal(size=(labels.max() + 1, d)) * moved)[labels]
    if kind == "gaussian":
        return correlated(rng, n, d) + shifts
    if kind == "heavy tails":  # a multivariate t distribution, or mixed columns that are t
        freedom = rng.choice([2, 3])
        if rng.uniform() < 0.5:
            X = correlated(rng, n, d) / np.sqrt(rng.chisquare(freedom, size=(n, 1)) / freedom)
        else:
            mixing = np.eye(d) + rng.normal(size=(d, d)) / np.sqrt(d)
            X = rng.standard_t(freedom, size=(n, d)) @ mixing
        return X + shifts
    if kind == "counts":
        columns = 0.3 * rng.gamma(0.5, 2, size=d)
        rows = rng.gamma(3, 1 / 3, size=(n, 1))
        X = rng.poisson(rows * columns * np.exp(np.minimum(shifts, 8))).astype(float)
        X[X.sum(axis=1) == 0, rng.integers(d)] = 1
        return X
    X = correlated(rng, n, d)
    X /= X.std(axis=0)
    return (X + shifts > norm.ppf(rng.uniform(0.5, 0.95, size=d))).astype(float)


def shape(kind, seed):
    """Samples, columns of each view, clusters and batches of a set."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n, views = int(rng.integers(100, 501)), int(rng.integers(2, 5))
    widths = [int(d) for d in np.exp(rng.uniform(np.log(20), np.log(500), size=views))]
    clusters, batches = (rng.permutation(np.arange(n) % rng.integers(3, 7)) for _ in range(2))
    return n, widths, clusters, batches


def make(kind, seed, groupings, draw=0):
    """All views of a set, with the groupings that each view has."""
    n, widths, _, _ = shape(kind, seed)
    rng = np.random.default_rng([seed, KINDS.index(kind), draw])
    pairs = zip(widths, groupings, strict=True)
    views = [make_view(rng, kind, n, d, one) for d, one in pairs]
    return [X[:, X.std(axis=0) > 0] for X in views]


def search(build, labels):
    """Views of a strength at which `ConcatSpectral` finds the labels with an NMI of .7 to .9."""
    for draw in range(10):
        low, high = 0.0, 6.0
        for _ in range(10):
            strength = (low + high) / 2
            views = build(strength, draw)
            score = concat_nmi(views, labels)
            if LOW <= score <= HIGH:
                return strength, draw, views, score
            low, high = (strength, high) if score < LOW else (low, strength)
    raise RuntimeError("no strength was found")


def noise(kind, seed):
    return make(kind, seed, [[]] * len(shape(kind, seed)[1]))


def planted(kind, seed):
    """Strength, draw, views and NMI of a set with clusters in all views."""
    _, widths, clusters, _ = shape(kind, seed)

    def build(strength, draw):
        return make(kind, seed, [[(clusters, strength)]] * len(widths), draw)

    return search(build, clusters)


def with_batches(kind, seed):
    """Four sets by name: batches in the first view, clear in it alone, with or without clusters."""
    _, widths, clusters, batches = shape(kind, seed)
    rest = len(widths) - 1

    def own(strength, draw):
        return make(kind, seed, [[(batches, strength)]] + [[]] * rest, draw)[:1]

    batch = (batches, search(own, batches)[0])
    strength, draw, _, _ = planted(kind, seed)
    cluster = (clusters, strength)
    return {
        "no clusters, batches in one view": make(kind, seed, [[batch]] + [[]] * rest, draw),
        "clusters in all other views": make(kind, seed, [[batch]] + [[cluster]] * rest, draw),
        "clusters in all views, also in that one": make(
            kind, seed, [[cluster, batch]] + [[cluster]] * rest, draw
        ),
        "no clusters, the same batches in all views": make(
            kind, seed, [[batch]] * (rest + 1), draw
        ),
    }


def concat_nmi(views, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConcatSpectral(int(labels.max()) + 1, scale=scales_of(views), random_state=0)
        return normalized_mutual_info_score(labels, model.fit(views).labels_)


def quiet_check(views):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check_views(views)


def scales_of(views):
    checked = quiet_check(views)
    return [choose_scaling(X, name).allowed[0] for X, name in checked]


def said_of(views):
    """What is said, and how many seconds it took."""
    started = time.perf_counter()
    found = find_structure(quiet_check(views), scales_of(views), seed=0)
    return found, time.perf_counter() - started


# ---- tables --------------------------------------------------------------------------------------


def counted(words):
    """How often every verdict was given."""
    return [sum(word == one for word in words) for one in VERDICTS]


def short(number, digits=2):
    """A number without the zero before its point."""
    return f"{number:.{digits}f}".removeprefix("0")


def noise_lines(seeds):
    for kind in KINDS:
        rows = [said_of(noise(kind, seed)) for seed in seeds]
        verdicts = counted([found["verdict"] for found, _ in rows])
        smallest, longest = min(found["p"] for found, _ in rows), max(s for _, s in rows)
        yield [WORDS[kind][0], *verdicts, short(smallest), f"{longest:.1f}"]


def planted_lines(seeds):
    for kind in KINDS:
        sets = [planted(kind, seed) for seed in seeds]
        rows = [said_of(views) for _, _, views, _ in sets]
        verdicts = counted([found["verdict"] for found, _ in rows])
        spans = [score for *_, score in sets], [found["agreement"] or 0 for found, _ in rows]
        scores, agreements = (f"{short(min(one))} to {short(max(one))}" for one in spans)
        longest = f"{max(s for _, s in rows):.1f}"
        yield [WORDS[kind][1], scores, *verdicts, agreements, longest]


def batches_lines(seeds):
    sets = [with_batches(kind, seed) for kind in KINDS for seed in seeds]
    for name in sets[0]:
        rows = [said_of(one[name])[0] for one in sets]
        roles = Counter(found["views"][0]["role"] for found in rows)
        told = ", ".join(f"{role} {number}" for role, number in roles.most_common())
        yield [name, *counted([found["verdict"] for found in rows]), told]


def datasets_lines():
    for name in list_datasets():
        entry = find_entry(name)
        if entry.samples > 2000 or where(entry) in ("not here", "in part"):
            continue
        data = load_dataset(name)
        found, seconds = said_of(dict(zip(data.view_names, data.views, strict=True)))
        roles = Counter(view["role"] for view in found["views"])
        told = ", ".join(f"{number} {role}" for role, number in roles.most_common())
        figures = ["" if found[x] is None else short(found[x]) for x in ("agreement", "excess")]
        cells = [TITLES.get(name, name), f"{entry.samples:,}", len(data.views), found["verdict"]]
        yield [*cells, *figures, short(seconds, 1), f"{found['p']:.4f}", told]


HEADERS = {
    "noise": ("noise", *VERDICTS, "smallest p", "seconds, at most"),
    "planted": ("planted", "NMI", *VERDICTS, "agreement", "seconds, at most"),
    "batches": ("data", *VERDICTS, "the view with batches"),
    "datasets": ("data", "n", "views", "verdict", "agreement", "excess", "s", "p", "roles"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--sets", type=int, default=SETS, help="of every kind")
    parser.add_argument("--first", type=int, default=0, help="seed of the first set")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.sets)
    whole = seeds == range(SETS)
    lines = {"noise": noise_lines, "planted": planted_lines, "batches": batches_lines}
    for table in args.table:
        if table == "datasets":
            show(HEADERS[table], datasets_lines(), "structure-datasets", whole)
        else:
            show(HEADERS[table], lines[table](seeds), f"structure-{table}", whole)


if __name__ == "__main__":
    main()
