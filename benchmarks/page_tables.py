"""The measured tables in the pages of docs, from the rows in benchmarks/results.

A line ``<!-- rows: NAME -->`` stands before every such table. `python benchmarks/results.py` fills
the table after it: the header and the row of dashes stay as they are in the page, and the header
says which columns are shown; the cells come from ``MAKERS[NAME]``, which reads stored runs, or from
``results/tables/NAME.jsonl``, in which a script keeps the table that it printed (`show`).
"""

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
STORES = HERE / "results"
KEPT = STORES / "tables"
MARK = re.compile(r"^ *<!-- rows: ([\w-]+) -->$")
TITLES = {
    "three_sources": "3-Sources", "bbcsport": "BBCSport", "ngs": "NGs", "movies617": "Movies617",
    "prokaryotic": "Prokaryotic", "yale_images": "Yale (images)", "handwritten": "Handwritten",
    "leaves100": "100Leaves", "bbc": "BBC", "msrc_v1": "MSRC-v1", "reuters1200": "Reuters-1200",
    "scene15": "Scene-15", "hdigit": "Hdigit", "snare_cortex": "SNARE-seq cortex",
    "nutrimouse": "nutrimouse, genotype", "nutrimouse_diet": "nutrimouse, diet",
    "nci60": "NCI-60", "breast_tcga": "breast TCGA", "brca_pam50": "BRCA PAM50",
    "citeseq_pbmc": "CITE-seq PBMC",
}  # fmt: skip


# --- what the scripts print and keep ---


def line(cells: Iterable[object]) -> str:
    """A line of a Markdown table."""
    return " ".join(["|", *(f"{cell} |" if cell != "" else "|" for cell in cells)])


def show(
    header: Sequence[str], lines: Iterable[Sequence[object]], name: str = "", whole: bool = False
) -> list[list[str]]:
    """Print a table line by line, and keep it for the pages if it is the whole one.

    Parameters
    ----------
    header : sequence of str
        The names of the columns.
    lines : iterable
        The cells of every line; each is printed when it comes.
    name : str
        The table's name in the pages.
    whole : bool
        Whether it was run on all data and as the page says, so that the page may show it.

    Returns
    -------
    list
        The cells, as text.
    """
    print(f"{line(header)}\n|{'---|' * len(header)}", flush=True)
    done = []
    for cells in lines:
        done.append([str(cell) for cell in cells])
        print(line(done[-1]), flush=True)
    print()
    if whole:
        keep(name, header, done)
    return done


def keep(name: str, header: Sequence[str], lines: Iterable[Sequence[str]]) -> None:
    """Store a table for the pages: every line an object, column -> cell."""
    rows = [dict(zip(header, cells, strict=True)) for cells in lines]
    KEPT.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (KEPT / f"{name}.jsonl").write_text(text, "utf-8")


# --- the pages ---


def pages() -> list[Path]:
    """The pages of docs with such tables."""
    return [path for path in sorted(DOCS.glob("*.md")) if marked(path.read_text("utf-8"))]


def marked(text: str) -> list[str]:
    """The names of the tables in a page."""
    return [found[1] for found in map(MARK.match, text.splitlines()) if found]


def filled(path: Path) -> str:
    """A page with the cells of its tables made anew."""
    return fill(path.read_text("utf-8"))


def fill(text: str) -> str:
    """A text with the cells of its tables made anew."""
    old, new = text.splitlines(), []
    while old:
        new.append(old.pop(0))
        if found := MARK.match(new[-1]):
            head = [old.pop(0), old.pop(0)]
            while old and old[0].lstrip().startswith("|"):
                old.pop(0)
            new += [*head, *body(found[1], head[0])]
    return "\n".join(new) + "\n"


def body(name: str, header: str) -> list[str]:
    """The lines of a table below its header, in the columns that the header names."""
    indent, columns = header[: header.index("|")], columns_of(header)
    rows = rows_for(name)
    if unknown := [one for one in columns if any(one not in row for row in rows)]:
        raise ValueError(f"{name} has no column {unknown[0]!r}, which the header in the page names")
    return [indent + line(row[one] for one in columns) for row in rows]


def columns_of(header: str) -> list[str]:
    """The columns that a header names; the second of one name has a space behind it."""
    cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", header)[1:-1]]
    return [cell + " " * cells[:place].count(cell) for place, cell in enumerate(cells)]


def rows_for(name: str) -> list[dict[str, str]]:
    """The rows of a table: column -> cell."""
    if name in MAKERS:
        return MAKERS[name]()
    return read(KEPT / f"{name}.jsonl")


def read(path: Path) -> list[dict]:
    """The rows of a store."""
    return [json.loads(text) for text in path.read_text("utf-8").splitlines()]


def append(path: Path, *rows: dict) -> None:
    """Append rows to a file of lines."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def last(rows: Iterable[dict], *keys: str) -> list[dict]:
    """The last row of every kind, in the order in which the kinds came first."""
    return list({tuple(row.get(key) for key in keys): row for row in rows}.values())


def renamed(rows: Iterable[dict], **names: str) -> list[dict[str, str]]:
    """Rows with the page's names of some columns, pipes escaped; the cells as text."""
    return [
        {names.get(key, key).replace("|", r"\|"): str(value) for key, value in row.items()}
        for row in rows
    ]


# --- docs/speed.md ---


def speed(title: str, *keys: str) -> list[dict]:
    """The last runs of a table of speed.py."""
    rows = [row for row in read(STORES / "speed.jsonl") if row["title"] == title]
    names = {"work": "data", "wanted": "target", "wanted ": "target ", "ours s": "solver s",
             "solve s": "solver s", "exponent over all n": "exponent"}  # fmt: skip
    if title.startswith("Exact"):
        own = ("ours s", "literal / ours", "symmetric literal / ours", "ours / floor")
        names |= {key: key.replace("ours", "polyspan") for key in own}
    names |= {f"nmi {kind}": f"NMI, {kind} affinity" for kind in ("dense", "sparse")}
    return renamed(last(rows, *keys), **names)


# --- docs/scale.md ---


def scale_rows(**wanted: object) -> list[dict]:
    """Runs of scale.py, without those beside peers; None is for what a run does not have."""
    return [
        row
        for row in read(STORES / "scale.jsonl")
        if all(row.get(key) == value for key, value in ({"peers": None} | wanted).items())
    ]


HERE_CPU = {"cores": 2, "device": None, "cut": None}
OTHERS = [("`LMVSC`", {"method": "LMVSC"}), ("`ConcatSpectral`", {"method": "ConcatSpectral"}),
          ("mini-batch k-means", {"method": "MiniBatchKMeans"})]  # fmt: skip
MANY_ANCHORS = '`AnchorGRMSC(n_anchors=1000, n_kept=3, dtype="float32")`'
ANCHOR_WAYS = {  # the words of the page, and which runs they stand for
    "planted": [
        ("`AnchorGRMSC`", {"method": "AnchorGRMSC"}),
        ("`GRMSC`, sparse affinity", {"method": "GRMSC"}),
        ("the same on Dask, 1 worker of one thread", {"method": "AnchorGRMSC, Dask, 1 workers"}),
        ("the same on Dask, 2 workers of one thread", {"method": "AnchorGRMSC, Dask, 2 workers"}),
        *OTHERS,
    ],
    "hdigit": [
        (MANY_ANCHORS, {"method": "AnchorGRMSC", "m": 1000}),
        ("the same with 2,000 anchors", {"method": "AnchorGRMSC", "m": 2000}),
        ("`AnchorGRMSC()` with its defaults: 100 anchors", {"method": "AnchorGRMSC-default"}),
        ("`GRMSC()` with its defaults (GPU)", {"method": "GRMSC-default"}),
        ("`GRMSC` with the lam1, lam2, k and alpha of `AnchorGRMSC`, dense affinity (GPU)",
         {"method": "GRMSC-dense"}),
        ("the same with sparse affinity (GPU)", {"method": "GRMSC"}),
        *OTHERS,
    ],
    "scene15": [(MANY_ANCHORS, {"method": "AnchorGRMSC", "m": 1000}), *OTHERS],
}  # fmt: skip


def anchors() -> list[dict]:
    """AnchorGRMSC beside other methods, by the number of samples."""
    found = []
    for work, ways in ANCHOR_WAYS.items():
        for n in sorted({row["n"] for row in scale_rows(work=work, method="AnchorGRMSC")}):
            first = True
            for words, wanted in ways:
                on_card = "(GPU)" in words  # cpu time and memory are not those of the solver
                where = {"cores": 16, "device": "cuda"} if on_card else HERE_CPU
                runs = scale_rows(**where | {"work": work, "n": n} | wanted)
                if runs:
                    place = (TITLES.get(work, work), f"{n:,}") if first else ("", "")
                    found.append(anchor_row(place, words, runs[-1], on_card))
                    first = False
    return found


def anchor_row(place: tuple[str, str], words: str, run: dict, on_card: bool) -> dict:
    left_out = ("cpu s", "peak GiB") if on_card else ()
    own = {key: "" if key in left_out else run.get(key, "") for key in ("cpu s", "peak GiB")}
    return {
        "data": place[0],
        "n": place[1],
        "method": words,
        "NMI": "1.0" if run["nmi"] == 1 else f"{run['nmi']:.4f}",
        "s": run["s"],
        "cpu s": own["cpu s"],
        "peak GiB": own["peak GiB"] and f"{own['peak GiB']:.2f}",
        "recall": f"{run['recall']:g}" if "recall" in run else "",
        "iterations": run.get("iterations", ""),
        "products with L": run.get("products", ""),
    }


def on_card() -> list[dict]:
    """A million samples with and without a GPU; the first run was before the search ran there."""
    runs = scale_rows(work="planted", n=1_000_000, method="AnchorGRMSC", cores=16)
    card, cpu = ([run for run in runs if run.get("device") == one] for one in ("cuda", None))
    chosen = {
        '`AnchorGRMSC(device="cuda")`': card[-1],
        "the same, neighbors on the CPU": card[0],
        "`AnchorGRMSC()` on the 16 cores": cpu[-1],
    }
    names = {"solver s": "of them the solver", "nmi": "NMI"}
    rows = renamed(chosen.values(), **names)
    return [
        {"a million planted samples": name} | row for name, row in zip(chosen, rows, strict=True)
    ]


def kept_links() -> list[dict]:
    """NMI on Hdigit by the number of kept links."""
    chosen = {
        "exact": {"method": "GRMSC"},
        "1,000 anchors": {"method": "AnchorGRMSC", "m": 1000},
        "2,000 anchors": {"method": "AnchorGRMSC", "m": 2000},
    }
    found = []
    for name, wanted in chosen.items():
        runs = [run for run in scale_rows(work="hdigit", **wanted) if "by kept" in run]
        scores = {number: f"{nmi:.4f}" for number, nmi in runs[-1]["by kept"].items()}
        found.append({"kept links": name} | dict.fromkeys(("2", "3", "5", "10", "20"), "") | scores)
    return found


def smoothing() -> list[dict]:
    """NMI by the number of steps of smoothing; planted data of 10,000 samples and more."""
    runs = [run for run in scale_rows(method="AnchorGRMSC-scaled") if "by smoothing" in run]
    found = []
    for run in last(runs, "work", "n"):
        if run["work"] != "planted" or run["n"] >= 10_000:
            name = TITLES.get(run["work"], f"{run['work']}, {run['n']:,}")
            scores = {steps: f"{nmi:.3f}" for steps, nmi in run["by smoothing"].items()}
            found.append({"steps": name} | scores)
    return found


def peers() -> list[dict]:
    """Our default and what others would run, as `scale.py --peers --table` prints it."""
    import scale

    header, lines = scale.peer_lines(read(STORES / "scale.jsonl"))
    return [dict(zip(header, cells, strict=True)) for cells in lines]


LIBRARIES = {  # name in neighbors.py: the words of the page, wheels, license
    "cells": ("cells (ours; Hdigit: all pairs)", "", ""),
    "exact": ("all pairs (scikit-learn)", "all", "BSD-3"),
    "faiss-ivf": ("faiss-cpu 1.15, inverted lists (4 of n / 1000)", "all", "MIT"),
    "faiss-hnsw": ("faiss-cpu 1.15, HNSW", "all", "MIT"),
    "hnswlib": ("hnswlib 0.8", "none: built from source", "Apache-2.0"),
    "usearch": ("usearch 2.26", "all", "Apache-2.0"),
    "pynndescent": ("pynndescent 0.7 (numba)", "all", "BSD-2"),
}


def neighbors() -> list[dict]:
    """Libraries that search neighbors: one thread, and whether two find the same."""
    by = {
        (row["data"], row["n"], row["way"], row["threads"]): row
        for row in read(STORES / "neighbors.jsonl")
    }
    found = []
    for way, (words, wheels, license) in LIBRARIES.items():
        row = {"way": words, "wheels": wheels, "license": license}
        for data, n, recall, behind in (
            ("planted", 100_000, "planted, 100,000: recall", ""),
            ("hdigit", 10_000, "Hdigit, 10,000: recall", " "),
        ):
            one, two = (by[data, n, way, threads] for threads in (1, 2))
            row[recall] = f"{one['recall']:g}"
            row["cpu s" + behind] = one["cpu s"]
            row["same" + behind] = same(two["same as 1"])
        million = by.get(("planted", 1_000_000, way, 1), {})
        row["planted, 1,000,000: recall"] = f"{million['recall']:g}" if "recall" in million else ""
        row["cpu s  "] = million.get("cpu s", "")
        row["GiB"] = million.get("peak GiB", "")
        found.append(row)
    return found


def same(share: float | str) -> str:
    """Whether neighbors are the same; 1 is a share that was rounded."""
    if isinstance(share, str):
        return share
    return "almost" if share == 1 else f"{share:.1%}"


def whole_fits() -> list[dict]:
    """Fits of MeanGraph and LMVSC on many samples, the last of each."""
    runs = last(read(STORES / "many.jsonl"), "n", "way")
    order = {"MeanGraph": "`MeanGraph`", "LMVSC": "`LMVSC`, one thread",
             "MeanGraph, Dask, 2 workers": "`MeanGraph`, Dask, 2 workers"}  # fmt: skip
    chosen = [run for run in runs if run["way"] in order]
    chosen.sort(key=lambda run: ("Dask" in run["way"], run["n"], list(order).index(run["way"])))
    found, before = [], None
    for run in chosen:
        size = f"{run['n']:,}" + ", two views of 20 features" * ("Dask" in run["way"])
        row = {"samples": "" if size == before else size, "way": order[run["way"]]}
        row |= {"s": run["s"], "cpu s": run["cpu s"], "NMI": run["nmi"]}
        found.append(row | {"peak GiB": str(run["peak GiB"]).split()[0]})
        before = size
    return found


def steps_of_fits() -> list[dict]:
    """Seconds that the tasks of a fit on Dask took, by steps, the last of each size."""
    runs = last(read(STORES / "many.jsonl"), "n", "way")
    chosen = sorted((run for run in runs if "steps" in run), key=lambda run: run["n"])
    return [
        {"samples": f"{run['n']:,}"} | {step: f"{s:.0f}" for step, s in run["steps"].items()}
        for run in chosen
    ]


def growth_of_fits() -> list[dict]:
    """How the time grows in the last runs of 100,000 and a million samples, one after the other."""
    runs, found = read(STORES / "many.jsonl"), []
    wanted = [(n, way) for n in (100_000, 1_000_000) for way in ("MeanGraph", "LMVSC")]
    for first in range(len(runs) - 3):
        few, _, many, peer = part = runs[first : first + 4]
        if [(run["n"], run["way"]) for run in part] == wanted:
            row = {"run": many["date"], "NMI": many["nmi"], "NMI of `LMVSC`": peer["nmi"]}
            row["time of `LMVSC`"] = f"{many['s'] / peer['s']:.2f}"
            row["n^x, s"], row["n^x, cpu s"] = (
                f"{math.log10(many[key] / few[key]):.2f}" for key in ("s", "cpu s")
            )
            row["share of two cores"] = f"{many['cpu s'] / many['s'] / 2:.0%}"
            found.append(row)
    return found[-3:]


# --- docs/after-the-fit.md ---


PLAIN = "`ConcatSpectral()`"


def plain_nmi(name: str, seeds: Iterable[int] | None = None) -> str:
    """NMI of the plain baseline on all samples, from label_free.py: mean of all or some seeds."""
    import label_free

    runs = label_free.scores()[name]["ConcatSpectral"]
    found = [nmi for seed, nmi in runs.items() if seeds is None or seed in seeds]
    return f"{sum(found) / len(found):.3f}"


def predicted() -> list[dict]:
    """Predicted labels of new samples: the last run of every split."""
    import predict

    return _by_setting(predict, last(_with_text(read(predict.STORE)), "data", "text", "split"))


def missing_views() -> list[dict]:
    """Samples that lack views: the last run of every choice of gaps."""
    import missing

    runs = last(_with_text(read(missing.STORE)), "data", "text", "removed", "seed")
    return _by_setting(missing, runs, "removed")


def _with_text(rows: list[dict]) -> list[dict]:
    """Rows with their setting as text, because a dictionary is no key."""
    return [row | {"text": json.dumps(row["setting"])} for row in rows]


def _by_setting(script, runs: list[dict], *keys: str) -> list[dict]:
    """Rows of a table with a line for every data set and setting, by the script's `cells`."""
    groups: dict[tuple, list[dict]] = {}
    for run in runs:
        groups.setdefault(tuple(run[key] for key in ("data", "text", *keys)), []).append(run)
    found = []
    for own in groups.values():
        cells = script.cells(TITLES[own[0]["data"]], own)
        found.append(dict(zip(script.HEADER, cells, strict=True)))
        found[-1][PLAIN] = plain_nmi(own[0]["data"])
    return found


# --- docs/choosing-without-labels.md ---


def group_sizes() -> list[dict]:
    """How small a group may be missed: computed, not measured."""
    from polyspan.selection.evidence import sure_size

    heads = {"size named with the number of clusters (4,000 looked at)": 4000,
             "with the structure (1,000)": 1000, "of 400, within a view": 400}  # fmt: skip
    return [
        {"samples": f"{n:,}"} | {head: f"{sure_size(n, some):,}" for head, some in heads.items()}
        for n in (10_000, 100_000, 1_000_000)
    ]


def label_free_table() -> list[dict]:
    """The consensus beside others."""
    import label_free

    return label_free.table()


MAKERS = {
    "speed-growth": lambda: speed("Growth with n", "work", "n"),
    "speed-gpu": lambda: speed("Solve on cuda", "device", "work", "n", "dtype"),
    "speed-memory": lambda: speed("Peak memory", "n"),
    "speed-float32": lambda: speed("float32 beside float64", "work"),
    "speed-literal": lambda: speed("Exact GRMSC against the literal algorithm", "work"),
    "scale-anchors": anchors,
    "scale-gpu": on_card,
    "scale-kept": kept_links,
    "scale-smoothing": smoothing,
    "scale-peers": peers,
    "neighbors": neighbors,
    "many-growth": growth_of_fits,
    "many": whole_fits,
    "many-steps": steps_of_fits,
    "predict": predicted,
    "missing": missing_views,
    "drawn": group_sizes,
    "label-free": label_free_table,
}
