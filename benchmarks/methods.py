"""Compare every method with its reference figures, and its time with the authors' program.

    python benchmarks/methods.py             all rows: printed one by one, then METHODS.md
    python benchmarks/methods.py lrr gmc     the rows of some methods
    python benchmarks/methods.py gsf --data hdigit    and only those on one data set
    python benchmarks/methods.py --page      METHODS.md from the stored rows, nothing is run;
                                             so does `python benchmarks/results.py`

A figure is the normalized mutual information with the true classes, mean and deviation over ten
seeds. If nothing before k-means is random, one solve serves all seeds. Seconds are for one
whole fit on one thread, the better of two, or the only one if it takes more than a minute. Every
row is appended to benchmarks/results/methods.jsonl, and METHODS.md has the last one that was
measured of each, so that the rows of large data sets can be measured elsewhere. Download the data
first: `polyspan data fetch NAME`.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from polyspan import METHODS, __version__
from polyspan.clustering.spectral import cluster_rows, component_clustering, spectral_clustering
from polyspan.datasets import Dataset, load_dataset
from polyspan.metrics import clustering_scores

HERE = Path(__file__).resolve().parent
STORE = Path("results/methods.jsonl")
SEEDS = range(10)
TITLES = {
    "three_sources": "3-Sources",
    "ngs": "NGs",
    "bbcsport": "BBCSport",
    "prokaryotic": "Prokaryotic",
    "movies617": "Movies617",
    "bbc": "BBC",
    "handwritten": "Handwritten",
    "hdigit": "Hdigit",
    "leaves100": "100Leaves",
    "msrc_v1": "MSRC-v1",
    "reuters1200": "Reuters-1200",
    "scene15": "Scene-15",
    "yale_images": "Yale (images)",
    "breast_tcga": "breast_tcga",
    "nutrimouse": "nutrimouse",
    "nutrimouse_diet": "nutrimouse_diet",
    "nci60": "nci60",
    "brca_pam50": "brca_pam50",
    "citeseq_pbmc": "citeseq_pbmc",
    "snare_cortex": "snare_cortex",
}

LARGE = ["scene15", "hdigit", "snare_cortex"]  # over 4,000 samples
# Further data sets of up to 2,000 samples, for the methods that the paper only cites.
FURTHER = [
    "aloi", "brca_jive", "football", "liver_toxicity", "orl", "pie10", "scgem", "snare_lines",
    "webkb", "wikipedia",
]  # fmt: skip
CITED = ["pssv", "jointgraph", "dssmsc", "glmsc"]


class Reference(NamedTuple):
    """A row: data, setting, and where it is known the reference: NMI, tolerance, seconds."""

    method: str
    data: str
    setting: dict[str, Any]
    nmi: float | None = None
    allowed: float | None = None
    seconds: float | None = None
    view: int | None = None  # for methods of a single view, counted from 1


RAW: dict[str, Any] = {"scale": None}
MLRSSC = {"scale": None, "lam": 1.0, "n_init": 1}
CENTROID = MLRSSC | {"variant": "centroid", "rank_share": 0.1, "lam_agreement": 0.7, "mu0": 100.0,
                     "tol": 1e-3}  # fmt: skip
RELEASED = {"lam_rank": 1.0, "as_released": True}
CORRECTED = {"lam_rank": 1.0, "as_released": "corrected"}
PROGRAM = {"as_released": True}
COREG = {"lam_agreement": 0.01, "n_init": 1}
ROUNDS = PROGRAM | {"max_iter": 10}
OPTIMUM = {"as_released": False, "max_iter": 400}
FILE = {"sample_order": "file"}  # the figures come from files as they are
REFERENCES = [
    Reference("lrr", "bbcsport", {"lam": 1.0} | RAW, 0.6996, 0.02, view=1),
    Reference("lrr", "bbcsport", {"lam": 0.5}, 0.8122, 0.02, 28, view=1),
    Reference("lrr", "three_sources", {"lam": 0.6}, 0.6083, 0.02, 2.2, view=2),
    Reference("lrr", "three_sources", {"lam": 0.8}, 0.5772, 0.02, view=1),
    Reference("rmsc", "three_sources", {"lam": 0.1} | RAW, 0.5092, 0.03, 0.7),
    Reference("rmsc", "three_sources", {"lam": 0.1}, 0.6235, 0.03),
    Reference("rmsc", "ngs", {"lam": 0.005} | RAW, 0.1401, 0.03),
    Reference("rmsc", "ngs", {"lam": 0.1} | RAW, 0.2637, 0.03),
    Reference("rmsc", "ngs", {"lam": 0.5} | RAW, 0.1499, 0.03),
    Reference("rmsc", "ngs", {"lam": 0.005}, 0.7823, 0.03),
    Reference("rmsc", "ngs", {"lam": 0.1}, 0.7944, 0.03, 21),
    Reference("rmsc", "three_sources", {"lam": 0.1} | RAW | PROGRAM, 0.5092, 0.03, 0.7),
    Reference("rmsc", "three_sources", {"lam": 0.1} | PROGRAM, 0.6235, 0.03),
    Reference("rmsc", "ngs", {"lam": 0.005} | RAW | PROGRAM, 0.1401, 0.03),
    Reference("rmsc", "ngs", {"lam": 0.1} | RAW | PROGRAM, 0.2637, 0.03),
    Reference("rmsc", "ngs", {"lam": 0.5} | RAW | PROGRAM, 0.1499, 0.03),
    Reference("rmsc", "ngs", {"lam": 0.005} | PROGRAM, 0.7823, 0.03),
    Reference("rmsc", "ngs", {"lam": 0.1} | PROGRAM, 0.7944, 0.03, 21),
    Reference("amgl", "three_sources", {"n_init": 1, "as_released": True}, 0.5884, 0.05),
    Reference("amgl", "three_sources", {"n_init": 20, "as_released": True}, 0.5908, 0.001, 0.5),
    Reference("amgl", "ngs", {"n_init": 1, "as_released": True}, 0.9017, 0.05),
    Reference("amgl", "ngs", {"n_init": 20, "as_released": True}, 0.9165, 0.001, 12),
    Reference("lmsc", "three_sources", RELEASED, 0.6618, 0.03, 1.7),
    Reference("lmsc", "three_sources", RELEASED | {"lam_rank": 0.5}, 0.04, 0.03),
    Reference("lmsc", "three_sources", CORRECTED, 0.5513, 0.03),
    Reference("lmsc", "three_sources", {"lam_rank": 1.0}, 0.5513, 0.03),
    Reference("lmsc", "ngs", RELEASED, 0.9086, 0.03, 29),
    Reference("lmsc", "ngs", RELEASED | {"lam_rank": 0.5}, 0.27, 0.03),
    Reference("lmsc", "ngs", CORRECTED, 0.8750, 0.03),
    Reference("lmsc", "ngs", {"lam_rank": 1.0}, 0.8750, 0.03),
    Reference(
        "mlrssc", "three_sources",
        MLRSSC | {"rank_share": 0.3, "lam_agreement": 0.3, "mu0": 100.0, "tol": 1e-3},
        0.5888, 0.03, 3,
    ),
    Reference(
        "mlrssc", "three_sources",
        MLRSSC | {"rank_share": 0.3, "lam_agreement": 0.3, "mu0": 100.0, "tol": 1e-3} | PROGRAM,
        0.5888, 0.03, 3,
    ),
    Reference("mlrssc", "three_sources", CENTROID | PROGRAM, 0.5849, 0.03),
    Reference("mlrssc", "three_sources", CENTROID, 0.5849, 0.03),
    Reference(
        "mlrssc", "prokaryotic",
        MLRSSC | {"rank_share": 0.7, "lam_agreement": 0.7, "mu0": 1e3, "tol": 1e-3},
        0.3148, 0.03, 26,
    ),
    Reference(
        "mlrssc", "prokaryotic",
        MLRSSC | {"kernel": "gaussian", "sigma": [10, 5, 1], "rank_share": 0.3,
                  "lam_agreement": 0.5, "mu0": 1e4},
        0.4148, 0.03,
    ),
    Reference("gmc", "three_sources", {}, 0.6216, 0.0001, 2.1),
    Reference("gmc", "bbcsport", {}, 0.7954, 0.0001),
    Reference("gmc", "ngs", {}, 0.9392, 0.0001, 10),
    Reference("gmc", "prokaryotic", {}, 0.1934, 0.0001),
    Reference("gmc", "movies617", {}, 0.2334, 0.0001),
    Reference("coregspectral", "three_sources", COREG | {"variant": "pairwise"}, 0.60, 0.03, 0.8),
    Reference("coregspectral", "three_sources", COREG | {"variant": "centroid"}, 0.59, 0.03, 0.8),
    Reference(
        "coregspectral", "three_sources", COREG | ROUNDS | {"variant": "pairwise"}, 0.60, 0.03, 0.8
    ),
    Reference(
        "coregspectral", "three_sources", COREG | ROUNDS | {"variant": "centroid"}, 0.59, 0.03, 0.8
    ),
    Reference("cotrainspectral", "three_sources", {"n_init": 1}, 0.60, 0.03, 6),
    Reference("mcgc", "three_sources", {"lam_agreement": 0.6, "as_released": True}, 0.7250, 0.05),
    Reference(
        "mcgc", "three_sources", {"lam_agreement": 2.0, "as_released": True}, 0.7699, 0.05, 5
    ),
    Reference("mcgc", "three_sources", {"lam_agreement": 0.6}, 0.7250, 0.05),
    Reference("mcgc", "three_sources", {"lam_agreement": 2.0}, 0.7699, 0.05),
    Reference(
        "ltmsc", "three_sources", {"lam": 0.1, "lam_rank": 0.1, "as_released": True},
        0.7040, 0.03, 6,
    ),
    Reference("ltmsc", "three_sources", {"lam": 0.1, "lam_rank": 0.1}, 0.7040, 0.03),
    Reference("tsvdmsc", "three_sources", {"lam": 0.1, "as_released": True} | FILE, 0.6080, 0.05),
    Reference(
        "tsvdmsc", "three_sources", {"lam": 0.05, "as_released": True} | FILE, 0.5923, 0.05, 7
    ),
    Reference("tsvdmsc", "three_sources", {"lam": 0.1} | FILE, 0.6080, 0.05),
    Reference("tsvdmsc", "three_sources", {"lam": 0.05} | FILE, 0.5923, 0.05),
    Reference("csmsc", "three_sources", {"lam_c": 0.1, "as_released": True}, 0.7261, 0.05),
    Reference("csmsc", "three_sources", {"lam_c": 0.5, "as_released": True}, 0.7188, 0.05, 12),
    *(
        Reference("csmsc", "three_sources", {"lam_c": lam, "as_released": True})
        for lam in (0.01, 0.05, 0.07)
    ),
    Reference("csmsc", "three_sources", {"lam_c": 0.1} | OPTIMUM, 0.7261, 0.05),
    Reference("csmsc", "three_sources", {"lam_c": 0.5} | OPTIMUM, 0.7188, 0.05),
    *(
        Reference("ssc", "three_sources", setting, nmi, 0.03, view=view)
        for setting in (PROGRAM, {})
        for view, nmi in enumerate((0.58, 0.61, 0.70), start=1)
    ),
    *(
        Reference("ssc", data, setting, view=1)
        for data in TITLES
        if data not in ("three_sources", *LARGE)
        for setting in (PROGRAM, {})
    ),
    *(Reference("fpmvs", "three_sources", setting) for setting in (PROGRAM, {})),
    *(Reference("fpmvs", "handwritten", setting) for setting in (PROGRAM, {})),
    Reference("gsf", "three_sources", {}, 0.64, 0.05),
    *(Reference("gsf", data, {}) for data in TITLES if data != "three_sources"),
    *(
        Reference(method, data, {})
        for method in CITED
        for data in (*TITLES, *FURTHER)
        if data not in LARGE
    ),
    *(
        Reference("glmsc", data, {"mapping": "network"})
        for data in (*TITLES, *FURTHER)
        if data not in LARGE
    ),
]  # fmt: skip


def by_affinity(model: Any, seed: int) -> np.ndarray:
    W = model.affinity_matrix_
    return spectral_clustering(W, model.n_clusters, n_init=model.n_init, random_state=seed)


def by_components(model: Any, seed: int) -> np.ndarray:
    W = model.affinity_matrix_
    return component_clustering(W, model.n_clusters, n_init=model.n_init, random_state=seed)


def by_rows(model: Any, seed: int) -> np.ndarray:
    Y = model.embedding_
    return cluster_rows(Y, model.n_clusters, n_init=model.n_init, random_state=seed)


def by_k_means(model: Any, seed: int) -> np.ndarray:
    k_means = KMeans(model.n_clusters, n_init=model.n_init, random_state=seed)
    return k_means.fit_predict(model.embedding_)


# How to get the labels for another seed from a fitted model whose solve does not depend on it.
RELABEL: dict[str, Callable[[Any, int], np.ndarray]] = {
    **dict.fromkeys(
        ["lrr", "rmsc", "mlrssc", "ltmsc", "tsvdmsc", "csmsc", "ssc", "jointgraph"], by_affinity
    ),
    **dict.fromkeys(["gmc", "mcgc", "gsf"], by_components),
    **dict.fromkeys(["coregspectral", "cotrainspectral", "pssv"], by_rows),
    "amgl": by_k_means,
}
HEADER = [
    "method", "data", "setting", "reference", "ours (std)", "difference", "allowed", "within",
    "our s", "their s",
]  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Run, print and store rows; write the page if nothing was left out, or if asked."""
    known = list(dict.fromkeys(reference.method for reference in REFERENCES))
    parser = argparse.ArgumentParser(description="Compare methods with their reference figures.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--data", nargs="+", metavar="NAME", help=", ".join([*TITLES, *FURTHER]))
    parser.add_argument("--page", action="store_true", help="METHODS.md from the stored rows")
    args = parser.parse_args(argv)
    for given, names in ((args.names, known), (args.data or [], [*TITLES, *FURTHER])):
        if unknown := sorted(set(given) - set(names)):
            parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(names)}")
    if args.page:
        write_page()
        return 0
    chosen = [
        one
        for one in REFERENCES
        if one.method in (args.names or known) and (not args.data or one.data in args.data)
    ]
    data = {one.data: load_dataset(one.data) for one in chosen}  # fails before any work
    print("\n".join(line(cells) for cells in (HEADER, ["---"] * len(HEADER))))
    with threadpool_limits(1):
        for one in chosen:
            row = measure(one, data[one.data]) if one.method in METHODS else {}
            print(line(cells_of(one, row)), flush=True)
            store(one, row)
    if not args.names and not args.data:
        write_page()
    return 0


def write_page() -> None:
    """Write METHODS.md from the last stored row of every reference."""
    (HERE / "METHODS.md").write_text(stored_page(), "utf-8")
    print(f"wrote {HERE.name}/METHODS.md")


def stored_page() -> str:
    """Return METHODS.md from the last stored row of every reference."""
    stored = last_rows()
    days = sorted(row["date"] for row in stored.values())
    versions = ", ".join(
        f"{name} {' and '.join(sorted({row[key] for row in stored.values()}))}"
        for name, key in (("polyspan", "polyspan"), ("NumPy", "numpy"))
    )
    rows = [cells_of(one, stored.get(key_of(one._asdict()), {})) for one in REFERENCES]
    return page(rows, f"{days[0]} to {days[-1]}", versions)


def key_of(about: dict[str, Any]) -> str:
    """Tell rows apart: method, data, setting and view."""
    parts = {name: about[name] for name in ("method", "data", "setting", "view")}
    return json.dumps(parts, sort_keys=True)


def last_rows() -> dict[str, dict[str, Any]]:
    """Return the stored rows of the references, by `key_of`."""
    wanted = {key_of(one._asdict()) for one in REFERENCES}
    rows = [json.loads(text) for text in (HERE / STORE).read_text("utf-8").splitlines()]
    return {key_of(row): row for row in rows if key_of(row) in wanted and not row["missing"]}


def measure(one: Reference, data: Dataset) -> dict[str, Any]:
    """Fit twice, timed, and label with all seeds; once if a fit takes more than a minute."""
    X = data.views if one.view is None else data.views[one.view - 1]

    def fit(seed: int) -> Any:
        return METHODS[one.method](data.n_clusters, random_state=seed, **one.setting).fit(X)

    seconds, cpu = [], []
    while len(seconds) < 2 and sum(seconds) < 60:
        start, cpu_start = time.perf_counter(), time.process_time()
        model = fit(SEEDS[0])
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - cpu_start)
    if one.method in RELABEL:
        found = [RELABEL[one.method](model, seed) for seed in SEEDS]
    else:
        found = [model.labels_, *(fit(seed).labels_ for seed in SEEDS[1:])]
    assert np.array_equal(found[0], model.labels_), f"{one.method}: other labels from one solve"
    nmi = [clustering_scores(data.labels, labels)["nmi"] for labels in found]
    return {
        "nmi": round(float(np.mean(nmi)), 4),
        "std": round(float(np.std(nmi)), 4),
        "our s": round(min(seconds), 3),
        "our cpu s": round(min(cpu), 3),  # less than "our s" if something else was running
    }


def cells_of(one: Reference, row: dict[str, Any]) -> list[str]:
    """Return a row of the table; it says so if the method does not exist."""
    name = METHODS[one.method].__name__ if one.method in METHODS else one.method
    words = [] if one.view is None else [f"view {one.view}"]
    words += [
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value!r}"
        for key, value in one.setting.items()
    ]
    # Some are known only to two digits, some not at all.
    known = "" if one.nmi is None else f"{one.nmi:.4f}".removesuffix("00")
    start = [f"`{name}`", TITLES.get(one.data, one.data), ", ".join(words) or "defaults", known]
    theirs = "" if one.seconds is None else f"{one.seconds:g}"
    allowed = "" if one.allowed is None else f"{one.allowed:g}"
    if not row:
        why = "not run" if one.method in METHODS else "not in METHODS"
        return [*start, why, "", allowed, "", "", theirs]
    ours = f"{row['nmi']:.4f} ({row['std']:.4f})"
    spent = f"{row['our cpu s']:.2f}"
    if one.nmi is None or one.allowed is None:
        return [*start, ours, "", "", "", spent, theirs]
    difference = round(row["nmi"] - one.nmi, 4)
    within = "yes" if abs(difference) <= one.allowed else "**no**"
    return [*start, ours, f"{difference:+.4f}", allowed, within, spent, theirs]


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def store(one: Reference, row: dict[str, Any]) -> None:
    path = HERE / STORE
    path.parent.mkdir(exist_ok=True)
    stamp = {"date": time.strftime("%Y-%m-%d"), "polyspan": __version__, "numpy": np.__version__}
    about = one._asdict()
    about["reference"], about["their s"] = about.pop("nmi"), about.pop("seconds")
    with path.open("a") as file:
        file.write(json.dumps(stamp | about | {"missing": not row} | row) + "\n")


def page(rows: list[list[str]], days: str, versions: str) -> str:
    """Return METHODS.md: the meaning of the columns, the table, and a summary."""
    missed = [f"{row[0]} ({row[1]}, {row[2]})" for row in rows if row[7] == "**no**"]
    open_rows = [f"{row[0]} ({row[1]}, {row[2]})" for row in rows if row[4] == "not run"]
    within = sum(row[7] == "yes" for row in rows)
    compared = within + len(missed)
    aligned = ["---", "---", "---", "---:", "---:", "---:", "---:", "---", "---:", "---:"]
    return f"""\
# Methods compared with their references

Measured by `python benchmarks/methods.py` (`make bench-methods`), written by `python benchmarks/results.py` from its rows in `benchmarks/results/methods.jsonl`: {versions},
one thread. The rows were measured from {days}; of rows measured again the last counts. No row is left out; one that says «not run» is still to be measured.

- *reference* is the mean normalized mutual information of the authors' own program (LRR: the one in common use), run under GNU Octave on the same files.
  For GMC it is the figure printed in the GRMSC paper, which the program also gives where it was run.
  For SSC it is the public ADMM program; for GSF the best of the settings that were tried, where ours are the defaults. Rows without a reference are our own figures, for data on which no program was run; SSC has none above 4,000 samples, where one fit takes an hour or more.
- *ours* is the mean over ten seeds, with the standard deviation in brackets; *difference* is ours minus the reference.
- *allowed* is the tolerance in our tests if they include the figure, otherwise a similar one fixed before the run; the starts of k-means alone change a mean by up to 0.02.
- *our s* is the processor time of one whole fit on one thread, the better of two (the only one above a minute); *their s* is one run of the authors' program on one thread under Octave, where it was timed.
  The languages differ and the runs were on different days, so the ratio is only rough.
- Settings not listed are the defaults. `scale=None` means unscaled features. `n_init=1`: the authors average over single starts of k-means;
  ours start with k-means++ and vary less.
- `as_released=True` follows the authors' program where it differs from their paper; otherwise the mathematics of the paper is followed.
  LMSC has two references, for the program and for the program with its sign corrected (`as_released='corrected'`). The others have one for the program only: their rows without
  `as_released` show how much the difference matters. FPMVS as released follows a related program. CSMSC is the one method whose default is the program.
- PSSV, JointGraph, DSSMSC and GLMSC are cited by the GRMSC paper, not compared with. Only DSSMSC has a public program; its setting for BBCSport is our default, and it was not run. Their figures here are ours on every data set of up to
  2,000 samples; those that are not run take long, as every seed of DSSMSC and of networks needs its own fit, and are still to be measured.
- CSMSC, LMSC (both rows) and TSVDMSC as released: constants, order of steps and stopping rules are taken from the authors' programs (CSMSC: their repository; LMSC and TSVDMSC: copies in
  repositories of others). Before this version, CSMSC's `rho` and `mu0`, TSVDMSC's variant and LMSC's stopping rule had been fitted to the figures here. The choice that CSMSC follows the program
  by default was made with its figures known. LTMSC, MCGC, MLRSSC and SSC as released follow the public sources of their programs, too. What the three papers themselves print was not available: TSVDMSC's `mu0` without `as_released`, 1e-5, is second-hand.

{line(HEADER)}
{line(aligned)}
{chr(10).join(line(row) for row in rows)}

{within} of {compared} rows with a reference are within the allowed difference. Outside: {"; ".join(missed) or "none"}.

Not run: {"; ".join(open_rows) or "none"}.
"""  # noqa: E501


if __name__ == "__main__":
    sys.exit(main())
