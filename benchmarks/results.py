"""Make every page of results from the rows in benchmarks/results.

    python benchmarks/results.py             # RESULTS.md, METHODS.md, README's figures, tables of docs
    python benchmarks/results.py --figures   # also the figures (1 and 2 need POLYSPAN_DATA)

Everything in the pages follows from rows, in README what stands between the marks, and in the pages
of docs every table after a line ``<!-- rows: NAME -->`` (page_tables.py). `make reproduce` first
runs what is missing. Tables called *-file were run before the samples were shuffled: with samples in
the order of the file, ties given to the lower row number, and settings chosen with one seed. A method
on a data set has new rows in the pages when all of its jobs have been run. The words of the pages are
templates in pages/; here is what stands in their tables. `--figures` also writes docs/images/made-from.json, which has a hash of the numbers that
every picture was drawn from, so that a test can say when a picture is no longer that of the rows.
"""

import argparse
import hashlib
import json
import re
import warnings
from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import numpy as np
import page_tables
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.budgets import budgets
from harness.jobs import STAGES
from harness.protocol import read_protocol
from harness.rows import job_labels
from harness.store import identity, table_rows
from harness.summaries import DIGITS, ORDER_WORDS, Summary, read_paper, rivals, summarize
from harness.tables import report, selected
from polyspan.audit import NEGLIGIBLE, ORDERS
from polyspan.metrics import PAPER_SCORES

HERE = Path(__file__).resolve().parent
CPU = "CPU, one thread"
NEAR = 0.02  # a setting this close to the paper's NMI counts as reproducing its row
STORES = HERE / "results"
PLAIN = "ConcatSpectral()"  # the baseline: what a user would try first
IMAGES = HERE.parent / "docs" / "images"
MADE_FROM = IMAGES / "made-from.json"
PAPER = {"three_sources": 0.01, "bbcsport": 0.01, "movies617": 0.01, "prokaryotic": 0.01}
NGS_WANTED = 0.94
LEVEL = 0.01  # differences of NMI up to this are called level
LADDER = ("LRR_BSV", "MSC_Naive", "GRMSC_Naive", "GRMSC")
LETTERS = {  # how the papers call what the pages show
    "lmsc": {"lam_rank": "lam"},
    "mlrssc": {"rank_share": "beta1", "lam_agreement": "lam3"},
}
TALL = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # the paper's seven values


@cache
def rows_of(name, order="shuffled"):
    """Latest rows of a protocol, in the letters of the papers; none if it has not been run."""
    rows = table_rows(STORES, name, order)
    return [row | {"params": in_letters(row["estimator"], row["params"])} for row in rows]


def protocol_of(name):
    path = HERE / f"{name}.toml"
    return _protocol(path, path.stat().st_mtime_ns)


@cache
def _protocol(path, changed):
    return read_protocol(path)


def in_letters(estimator, params):
    letters = LETTERS.get(estimator, {})
    return {letters.get(name, name): value for name, value in params.items()}


def pair_of(row):
    return row["dataset"], row["method"], row["selection"]


@cache
def complete(name):
    """The shuffled rows of the methods and data sets whose jobs have all been run."""
    protocol, rows = protocol_of(name), rows_of(name)
    known, own = {identity(row) for row in rows}, defaultdict(list)
    for row in rows:
        own[pair_of(row)].append(row)
    kept = []
    for method, source in protocol.pairs():
        done = own.get((source.label, method.name, method.selection), [])
        if done:
            pair = replace(protocol, methods=[method], datasets=[source])
            jobs = [job for stage in STAGES for job in stage(pair, done)]
            if all(identity(job_labels(job)) in known for job in jobs):
                kept += done
    return kept


def found(rows) -> dict[tuple[str, str, str], Summary]:
    return {(one.dataset, one.method, rivals(one)): one for one in summarize(rows)}


def nmi(one, digits=4):
    if one is None or "nmi" not in one.mean:
        return "-"
    return f"{one.mean['nmi']:.{digits}f}"


def table(header, lines):
    text = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join([*text, *(f"| {' | '.join(map(str, line))} |" for line in lines)])


def setting(one):
    names = {"n_neighbors": "k", "orientation": "", "lam1": "lam1", "lam2": "lam2"}
    return ", ".join(
        f"{names.get(name, name)} {value}".strip()
        for name, value in (one.params or {}).items()
        if name != "scale"
    )


def plain(value, digits=4):
    if value is None:
        return "-"
    return f"{value:.{digits}f}" if isinstance(value, float) else value


def listed(words):
    words = list(words)
    if len(words) < 2:
        return "".join(words) or "none"
    return f"{', '.join(words[:-1])} and {words[-1]}"


def rendered(template, **values):
    """A page from its template, without empty parts."""
    text = ENV.get_template(template).render(**values)
    return re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"


def section(name, *args):
    """A section from the macro in pages/sections.j2 and the function here that have its name."""
    values = SECTIONS[name](*args)
    made = getattr(ENV.get_template("sections.j2").module, name)(**values) if values else ""
    return re.sub(r"\n{3,}", "\n\n", made.strip())


# --- RESULTS.md ---


def results_page():
    shuffled, earlier = complete("paper"), rows_of("paper", "file")
    return rendered(
        "RESULTS.md.j2",
        shuffled=shuffled,
        earlier=earlier,
        everything=rows_of("paper") + earlier,
        label_free=label_free(),
        wide=[("shuffled", complete("wide")), ("file", rows_of("wide", "file"))],
    )


def tables(rows):
    """The tables of one order of the samples."""
    return {"rows": rows}


def with_baseline(rows):
    """The report, with the plain baseline in its comparison with the paper."""
    by, lines, inside, done = found(rows), [], False, set()
    for line in lower(report(rows)).splitlines():
        if line.startswith("#"):
            inside = line.endswith(COMPARISON)
        elif inside and line.startswith("The paper's values"):
            line += (
                " The plain baseline has no row in the paper: it stands beside the paper's GRMSC, "
                "not tuned."
            )
        dataset = line.split(" | ")[0].removeprefix("| ")
        base, ours = (by.get((dataset, name, "default")) for name in ("ConcatSpectral", "GRMSC"))
        if inside and base and ours and ours.published and dataset not in done:
            done.add(dataset)
            cells = [
                f"{mean:.{DIGITS}f}({std:.{DIGITS}f}) {base.mean[name] - mean:+.{DIGITS}f}"
                for name, (mean, std) in ((name, ours.published[name]) for name in PAPER_SCORES)
            ]
            first = (dataset, base.method, selected(base), "none; beside GRMSC")
            lines.append(f"| {' | '.join([*first, *cells])} |")
        lines.append(line)
    return "\n".join(lines)


COMPARISON = " Comparison with the paper"


def pictures(rows, name):
    """Links to the figures of equal budgets, which show shuffled samples."""
    return {"sources": sources(rows)} if rows == complete(name) else None


def so_far(name, rows):
    """How much of a protocol has been run with shuffled samples."""
    pairs = protocol_of(name).pairs()
    wanted = Counter(source.label for _, source in pairs)
    done = Counter(dataset for dataset, _, _ in {pair_of(row) for row in rows})
    words = "; ".join(f"{label} {done[label]} of {n}" for label, n in wanted.items())
    return {"name": name, "missing": done != wanted, "words": words if rows else ""}


def checked(rows):
    """How far the runs that solved afresh are from those that shared the solution."""
    groups = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["stage"] == "final" and row["status"] == "ok":
            groups[pair_of(row), str(row["params"])][row["solve"]].append(row["nmi"])
    gaps = {
        key: np.mean(by["own"]) - np.mean(by["shared"])
        for key, by in groups.items()
        if by["own"] and by["shared"]
    }
    if gaps:
        (dataset, method, _), _ = worst = max(gaps, key=lambda key: abs(gaps[key]))
        outside = [
            [key[0][0], key[0][1], _spread(groups[key]["shared"]), _each(groups[key]["own"])]
            for key in gaps
            if _beyond(groups[key]["own"], groups[key]["shared"])
        ]
        return {
            "number": sum(len(groups[key]["own"]) for key in gaps),
            "mean": np.mean(list(gaps.values())),
            "most": gaps[worst],
            "where": f"{method} on {dataset}",
            "outside": outside,
            "pairs": len(gaps),
        }


def _beyond(own, shared):
    """Whether a run lies outside the range of the others, by more than the last digit shown."""
    last = 0.5 * 10.0**-DIGITS
    return min(own) < min(shared) - last or max(own) > max(shared) + last


def _each(scores):
    return ", ".join(f"{score:.4f}" for score in sorted(scores))


def _spread(scores):
    """All values if there are one or two, otherwise the range."""
    values = sorted({f"{score:.4f}" for score in scores})
    return " or ".join(values) if len(values) < 3 else f"{values[0]} to {values[-1]}"


def first_runs(rows):
    """NMI of every setting of the grids with the first seed."""
    return {
        (row["dataset"], row["method"], str(row["params"])): row["nmi"]
        for row in rows
        if row["stage"] == "tune" and row["seed"] == 0
    }


def changed(rows, earlier):
    """What came out differently with shuffled samples, and why."""
    new, old, lines = found(rows), found(earlier), []
    first, before_first = first_runs(rows), first_runs(earlier)
    for key, one in new.items():
        before = old.get(key)
        if before is None or "nmi" not in one.mean or "nmi" not in before.mean:
            continue
        same = one.dataset, one.method, str(before.params)
        lines.append(
            [one.dataset, one.method, selected(one), nmi(before), plain(before_first.get(same)),
             plain(first.get(same)), nmi(one), f"{one.mean['nmi'] - before.mean['nmi']:+.4f}"]
        )  # fmt: skip
    if lines:
        return {"lines": lines, "moved": section("moved", rows, earlier)}


def moved(rows, earlier):
    """Where another setting of GRMSC is chosen now: its scores before and after, and why."""
    new, old = found(rows), found(earlier)
    first, before_first = first_runs(rows), first_runs(earlier)
    lines, changes = [], []
    for dataset in sources(rows):
        key = dataset, "GRMSC", "tuned"
        now, before = new.get(key), old.get(key)
        if now is None or before is None or now.params == before.params:
            continue
        tried = [
            [one.get((dataset, "GRMSC", str(at.params))) for one in (before_first, first)]
            for at in (before, now)
        ]
        finals = [
            row["nmi"]
            for row in rows
            if pair_of(row) == key and row["stage"] == "final" and row["params"] == now.params
        ]
        lines.append(
            [dataset, setting(before), nmi(before), *map(plain, tried[0]),
             setting(now), *map(plain, tried[1]), nmi(now), _spread(finals)]
        )  # fmt: skip
        changes.append(_change(dataset, before, now, tried))
    if lines:
        return {"lines": lines, "changes": changes}


def _change(dataset, before, now, tried):
    """What the rows say about a change of setting."""
    (chosen, shuffled), (passed, _) = tried
    earlier, later = before.mean["nmi"], now.mean["nmi"]
    return {
        "dataset": dataset, "before": before, "now": now,
        "chosen": chosen, "passed": passed, "shuffled": shuffled,
        "lucky": chosen is not None and chosen - earlier > LEVEL,
        "passed_over": passed is not None and chosen is not None and passed < chosen,
        "rises": later - earlier > LEVEL,
        "falls": shuffled is not None and earlier - shuffled > LEVEL,
        "steady": before.std["nmi"] < 10.0**-DIGITS,
        "level": abs(later - earlier) <= LEVEL,
    }  # fmt: skip


def lower(markdown):
    """Drop the title and move headings one level down."""
    lines = [line for line in markdown.splitlines() if not line.startswith("# ")]
    return "\n".join("#" + line if line.startswith("#") else line for line in lines)


def cost(rows):
    clock, cpu, count, machines = (defaultdict(kind) for kind in (float, float, int, set))
    for row in rows:
        device = row["machine"].get("device", CPU)
        clock[device] += ((row["seconds"] or 0.0) - row.get("shared_seconds", 0.0)) / 3600
        cpu[device] += (row["cpu_seconds"] or 0.0) / 3600
        count[device] += 1
        machines[device].add(row["machine"]["processor"])
    lines = [
        [one, "; ".join(sorted(machines[one])), count[one], f"{clock[one]:.2f}", f"{cpu[one]:.2f}"]
        for one in sorted(count)
    ]
    return {"lines": lines, "hours": cpu[CPU] / 2, "card": bool(set(count) - {CPU})}


def reached(rows):
    by, lines = found(rows), []
    for dataset, source in sources(rows).items():
        published = read_paper().get((source, "GRMSC"))
        if not published:
            continue
        paper = published["nmi"][0]
        unit, raw, plain, base = (
            by.get((dataset, method, selection))
            for method, selection in (
                ("GRMSC", "tuned"), ("GRMSC (raw)", "tuned"), ("GRMSC", "default"),
                ("ConcatSpectral", "default"),
            )
        )  # fmt: skip
        if unit is None or "nmi" not in unit.mean:
            continue
        wanted = NGS_WANTED if source == "ngs" else paper - PAPER.get(source, float("nan"))
        best = max((one.mean["nmi"] for one in (unit, raw) if one and "nmi" in one.mean), default=0)
        verdict = "-"
        if wanted == wanted:
            ours = unit.mean["nmi"]
            verdict = "yes" if ours >= wanted else f"no, by {wanted - ours:.4f}"
            if ours < wanted <= best:
                verdict += "; yes on raw features"
        lines.append(
            [dataset, f"{paper:.4f}", nmi(unit), nmi(raw), nmi(plain), nmi(base),
             "-" if wanted != wanted else f"{wanted:.4f}", verdict, setting(unit)]
        )  # fmt: skip
    return {
        "lines": lines,
        "tried": max((one.settings for one in by.values() if one.method == "GRMSC"), default=0),
        "wanted": f"{sum('yes' in line[7] for line in lines)} of "
        f"{sum(line[6] != '-' for line in lines)}",
        "ngs": NGS_WANTED,
    }


def sources(rows):
    first = {row["dataset"]: row for row in rows}.values()
    return {row["dataset"]: row["source"]["name"] for row in sorted(first, key=_paper_order)}


def _paper_order(row):
    order = list(dict.fromkeys(dataset for dataset, _ in read_paper()))
    name = row["source"]["name"]
    return order.index(name) if name in order else len(order)


def ladder(rows):
    by, lines, heads, confirmed = found(rows), [], [], 0
    for dataset in sources(rows):
        steps = [by.get((dataset, method, "tuned")) for method in LADDER]
        if any(one is None or "nmi" not in one.mean for one in steps):
            continue
        values = [one.mean["nmi"] for one in steps]
        broken = [
            f"{LADDER[i]} is not below {LADDER[i + 1]}"
            for i in range(3)
            if values[i] >= values[i + 1]
        ]
        confirmed += not broken and not dataset.startswith("Yale")  # not the paper's features
        verdict = "refuted: " + ", ".join(broken) if broken else "confirmed"
        base = nmi(by.get((dataset, "ConcatSpectral", "default")))
        lines.append([dataset, *(f"{value:.4f}" for value in values), base, verdict])
        heads = [f"{one.method} ({one.settings})" for one in steps]
    public = sum(not line[0].startswith("Yale") for line in lines)
    return {"lines": lines, "heads": heads, "confirmed": confirmed, "public": public}


def comparison(rows):
    by, lines, counts = found(rows), [], defaultdict(int)
    for one in summarize(rows):
        if rivals(one) != "tuned" or not one.published or "nmi" not in one.mean:
            continue
        base = by.get((one.dataset, "ConcatSpectral", "default"))
        difference = one.mean["nmi"] - one.published["nmi"][0]
        word = "level" if abs(difference) <= LEVEL else "above" if difference > 0 else "below"
        counts[word] += not one.dataset.startswith("Yale")  # not the paper's features
        lines.append(
            [one.dataset, one.method, selected(one), f"{one.published['nmi'][0]:.4f}", nmi(one),
             f"{difference:+.4f}", word, nmi(base)]
        )  # fmt: skip
    words = ", ".join(f"{counts[word]} {word}" for word in ("above", "level", "below"))
    return {"lines": lines, "counts": words, "level": LEVEL}


def paper_rows(rows):
    """The rows of the paper's two tables, the variant of ours that comes nearest, and why not."""
    by, lines, labels = found(rows), [], {name: label for label, name in sources(rows).items()}
    for (source, method), scores in read_paper().items():
        dataset, (paper, std) = labels.get(source), scores["nmi"]
        own = [one for one in by.values() if (one.dataset, one.paper) == (dataset, method)]
        own = [one for one in own if "nmi" in one.mean]
        if not own:
            continue
        one = min(own, key=lambda one: abs(one.mean["nmi"] - paper))
        near = abs(one.mean["nmi"] - paper) <= NEAR
        reason = "" if near else _reason(rows, source, dataset, method, paper)
        lines.append(
            [dataset.split(" (")[0], method, f"{paper:.4f}({std:.4f})",
             f"{one.method}, {selected(one)}", nmi(one), f"{one.mean['nmi'] - paper:+.4f}",
             "yes" if near else "no", reason]
        )  # fmt: skip
    public = [line for line in lines if line[0] != "Yale"]
    return {
        "lines": lines, "within": sum(line[6] == "yes" for line in public), "public": len(public),
        "all": len(read_paper()), "near": NEAR,
    }  # fmt: skip


REASONS = {  # of rows that no setting of the grid comes near
    ("bbcsport", "AMGL"): "k-means there seems to start at random samples, not by k-means++",
    ("prokaryotic", "LRR_BSV"): "no explanation that fits the other rows",
    ("prokaryotic", "RMSC"): "no explanation found: every setting is further away",
    ("bbcsport", "MLRSSC"): "no setting of our grid is better",
}


def _reason(rows, source, dataset, method, paper):
    """Why none of ours is near the paper's row, in one clause."""
    if source == "yale_images":
        return "other features"
    tried = [
        row
        for row in rows
        if (row["dataset"], row["paper"], row["stage"]) == (dataset, method, "tune")
        and row["nmi"] is not None
        and row["seed"] == 0
    ]
    one = min(tried, key=lambda row: abs(row["nmi"] - paper), default=None)
    if one is None or abs(one["nmi"] - paper) > NEAR:
        return REASONS.get((source, method), "not explained")
    names = {"n_neighbors": "k", "orientation": "", "estimator__lam": "lam"}
    own = {"lam", "lam1", "lam2", "beta1", "lam3", "mu0", *names}
    words = ", ".join(
        f"{names.get(name, name)} {value}".strip()
        for name, value in one["params"].items()
        if name in own
    )
    return f"tuned better; {one['method']} has {one['nmi']:.4f} at {words}"


def baseline(rows):
    by, lines = found(rows), []
    for dataset in sources(rows):
        for selection in ("tuned", "default"):
            plain = by.get((dataset, "ConcatSpectral", selection))
            group = [
                one
                for (data, method, chosen), one in by.items()
                if (data, chosen) == (dataset, selection)
                and not method.startswith("Concat")
                and "nmi" in one.mean
            ]
            if plain is None or "nmi" not in plain.mean or not group:
                continue
            better = [one for one in group if one.mean["nmi"] > plain.mean["nmi"]]
            best = max(group, key=lambda one: one.mean["nmi"])
            lines.append(
                [dataset, selected(plain), nmi(plain), f"{len(group) - len(better)} of {len(group)}",
                 f"{best.method} {nmi(best)}, {selected(best)}", "no" if better else "**yes**"]
            )  # fmt: skip
    return {"lines": lines}


def label_free():
    """The table of benchmarks/label_free.py."""
    import label_free

    lines = label_free.table()
    return table(list(lines[0]), [list(line.values()) for line in lines]) if lines else ""


# --- docs/paper-open-points.md ---


def open_page():
    opened, rows = complete("open"), complete("paper")
    by, paper = found(opened), found(rows)
    datasets = list(sources(opened or rows))
    base = [paper.get((d, "ConcatSpectral", "default")) for d in datasets]

    def effects(choices):
        """The lines of the choices: NMI, and the difference from GRMSC()."""
        usual = [by.get((d, "GRMSC()", "default")) for d in datasets]
        yield ["GRMSC()", *(nmi(one, 3) for one in usual), ""]
        yield [PLAIN, *(nmi(one, 3) for one in base), "for comparison: the plain baseline"]
        for method, words in choices.items():
            changed = [by.get((d, method, "default")) for d in datasets]
            yield [method, *map(_effect, changed, usual), words]

    protocol = [
        [name, *(_mean_std(paper.get((d, name, "tuned"))) for d in datasets)]
        for name, _ in PROTOCOL
    ]
    protocol += [
        [f"*paper: {row}*", *(_published(d, row, rows) for d in datasets)]
        for row in dict.fromkeys(row for _, row in PROTOCOL)
    ]
    protocol.sort(key=lambda line: _protocol_place(line[0]))
    lines, close = nearest(rows)
    return rendered(
        "paper-open-points.md.j2",
        opened_order=order_words(opened),
        paper_order=order_words(rows),
        iterations=_iterations(opened),
        short=[name.split(" (")[0] for name in datasets],
        effects=effects,
        spread=[
            [method, *(_std(by.get((d, method, "default"))) for d in datasets)]
            for method in ("GRMSC()", "one k-means start")
        ],
        protocol=[*protocol, [f"{PLAIN}, default", *map(_mean_std, base)]],
        tuned={method for (_, method, selection), one in paper.items() if selection == "tuned"},
        nearest=lines,
        close=close,
        near=NEAR,
    )


def _effect(one, usual):
    if one is None or "nmi" not in one.mean or usual is None:
        return "-"
    return f"{nmi(one, 3)} ({one.mean['nmi'] - usual.mean['nmi']:+.3f})"


def order_words(rows):
    """In which order the samples were, for a sentence."""
    return " and ".join(sorted({ORDER_WORDS[row["order"]] for row in rows}))


def _iterations(rows):
    """Fewest and most iterations of GRMSC() to convergence."""
    iterations = [
        row["iterations"] for row in rows if row["method"] == "GRMSC()" and row["converged"]
    ]
    return f"{min(iterations)} to {max(iterations)}" if iterations else "more"


def nearest(rows):
    """Tuning rows that come closest to what the paper prints, and how many come close."""
    lines, close = [], defaultdict(list)
    for name in ("LRR_BSV", "RMSC"):
        for dataset, source in sources(rows).items():
            published = read_paper().get((source, name))
            if not published or dataset.startswith("Yale"):  # not the paper's features
                continue
            cells = []
            for method in (f"{name} (raw)", name):
                tried = [
                    row
                    for row in rows
                    if (row["dataset"], row["method"], row["stage"]) == (dataset, method, "tune")
                    and row["nmi"] is not None
                    and row["seed"] == 0
                ]
                if not tried:
                    cells.append("-")
                    continue
                one = min(tried, key=lambda row: abs(row["nmi"] - published["nmi"][0]))
                lam = next(v for k, v in one["params"].items() if k.endswith("lam"))
                cells.append(f"{one['nmi']:.4f} (lam {lam:g})")
                close[method].append(abs(one["nmi"] - published["nmi"][0]) <= NEAR)
            lines.append([name, dataset, f"{published['nmi'][0]:.4f}", *cells])
    words = "; ".join(f"{m} on {sum(hits)} of {len(hits)} data sets" for m, hits in close.items())
    return lines, words


PROTOCOL = (
    ("LRR_BSV", "LRR_BSV"), ("LRR_BSV (raw)", "LRR_BSV"), ("RMSC", "RMSC"), ("RMSC (raw)", "RMSC"),
    ("LMSC", "LMSC"), ("LMSC (raw)", "LMSC"), ("LMSC (as released)", "LMSC"), ("AMGL", "AMGL"),
    ("AMGL (one start)", "AMGL"),
)  # fmt: skip


def _protocol_place(name):
    plain = name.strip("*").removeprefix("paper: ").split(" (")[0]
    order = list(dict.fromkeys(row for _, row in PROTOCOL))
    return order.index(plain), name.startswith("*"), name


def _published(dataset, method, rows):
    found = read_paper().get((sources(rows).get(dataset), method))
    return "-" if not found else f"{found['nmi'][0]:.3f}({found['nmi'][1]:.3f})"


def _mean_std(one):
    if one is None or "nmi" not in one.mean:
        return "-"
    return f"{nmi(one, 3)}({_std(one)})"


def _std(one):
    return "-" if one is None or "nmi" not in one.std else f"{one.std['nmi']:.3f}"


# --- README ---

README_SETS = ("NGs", "BBCSport", "Prokaryotic", "3-Sources", "Movies617")
README_RUNS = (("GRMSC", "tuned"), ("GRMSC", "default"), ("ConcatSpectral", "default"),
               ("ConcatKMeans", "default"))  # fmt: skip


def readme():
    """README with the parts between the marks made anew."""
    text = (HERE.parent / "README.md").read_text("utf-8")
    parts = {"label-free": "label_free", "short-list": "list", "grmsc": "grmsc"}
    for mark, part in parts.items():
        begin, end = f"<!-- {mark}: made by benchmarks/results.py -->", f"<!-- end of {mark} -->"
        head, rest = text.split(begin)
        text = f"{head}{begin}\n{section(f'readme_{part}')}\n{end}{rest.split(end)[1]}"
    return text


def readme_list():
    """How often the short list holds the number of classes."""
    import label_free

    return {
        key.replace(" ", "_"): f"{np.mean(right):.0%}"
        for key, right in label_free.counted().items()
    }


def readme_grmsc():
    """GRMSC beside the paper and the baselines, and what is to be said of it."""
    by = found(complete("paper"))
    lines, above, below, lost, naive = [], [], [], [], []
    for dataset in README_SETS:
        tuned, usual, base, _ = runs = [by[dataset, *run] for run in README_RUNS]
        simpler, paper = by[dataset, "GRMSC_Naive", "tuned"], tuned.published["nmi"][0]
        best = max(nmi(one, 3) for one in runs)
        cells = [f"**{cell}**" if cell == best else cell for cell in (nmi(one, 3) for one in runs)]
        (above if tuned.mean["nmi"] >= paper else below).append(dataset)
        if simpler.mean["nmi"] > tuned.mean["nmi"]:
            naive.append(f"{dataset} ({nmi(simpler, 3)})")
        if usual.mean["nmi"] < base.mean["nmi"]:
            lost.append(f"{dataset} ({nmi(usual, 3)} against {nmi(base, 3)})")
        used = [tuned.params[name] for name in ("n_neighbors", "lam1", "lam2", "orientation")]
        words = ", ".join(value if isinstance(value, str) else f"{value:g}" for value in used)
        lines.append([dataset, f"{paper:.4f}", *cells, f"{words} ({tuned.settings} tried)"])
    left_out = [
        dataset.split(" (")[0]
        for dataset in sources(rows_of("paper"))
        if "not the paper's features" in dataset
    ]
    return {"lines": lines, "above": above, "below": below, "lost": lost, "naive": naive,
            "left_out": left_out}  # fmt: skip


def readme_label_free():
    """How far the consensus and the alternatives are from the best of them, over all data sets."""
    import label_free

    found = label_free.means()
    methods = [label_free.CONSENSUS, *label_free.ALTERNATIVES]
    whole = [row for row in found.values() if set(methods) <= set(row)]
    gaps = [label_free.gaps(row) for row in whole]
    lines = [
        [method, f"{np.mean([row[method] for row in whole]):.3f}",
         f"{np.mean([gap[method] for gap in gaps]):+.3f}",
         f"{min(gap[method] for gap in gaps):+.3f}"]
        for method in methods
    ]  # fmt: skip
    return {"lines": lines, "sets": len(whole)}


# --- docs/what-order-is-worth.md ---


def order_rows():
    """Of both orders; the latest of every job."""
    return [*rows_of("order", "sorted"), *rows_of("order")]


def order_page():
    """What every method gains when the samples are sorted by class."""
    import order as benchmark

    rows = order_rows()
    effects, lines, bad = benchmark.effects(rows), [], []
    for method in sorted(effects, key=lambda name: (name == benchmark.SEES, name.lower())):
        by = effects[method]
        mean, error = benchmark.mean_effect(by)
        blind = abs(mean) <= max(NEGLIGIBLE, 2 * error)
        if not blind and method != benchmark.SEES:
            bad.append(method)
        both = [
            np.mean([one.scores[order] for one in by.values()]) for order in (ORDERS[0], ORDERS[-1])
        ]
        largest = max(by, key=lambda name: abs(by[name].effect))
        lines.append(
            [method, len(by), *(f"{one:.3f}" for one in both), f"{mean:+.4f}",
             f"{2 * error:.4f}", "yes" if blind else "**no**",
             f"{by[largest].effect:+.3f} ({largest})"]
        )  # fmt: skip
    names = [name for name in benchmark.SETS if any(name in by for by in effects.values())]
    absent = [name for name in benchmark.SETS if name not in names]
    slow = {(row["method"], row["dataset"]) for row in rows if row["status"] != "ok"}
    cards = {row["dataset"] for row in rows if row["machine"].get("device")}
    wanted = {row["method"] for row in rows}
    begun = {(a, b) for a in wanted for b in names if b not in effects.get(a, ())} - slow

    def told(pairs):
        lost = defaultdict(list)
        for method, name in sorted(pairs):
            lost[method].append(name)
        return "; ".join(f"{method} on {listed(lost[method])}" for method in lost)

    return rendered(
        "what-order-is-worth.md.j2",
        seeds=benchmark.SEEDS,
        names=names,
        negligible=NEGLIGIBLE,
        sees=benchmark.SEES,
        lines=lines,
        bad=bad,
        cards=[name for name in names if name in cards],
        slow=told(slow),
        begun=told(begun),
        absent=absent,
    )


def plot_order():
    """The effects as dots: one row per method, one dot per data set."""
    import order as benchmark

    from polyspan.figures import FAINT, INK, LINES, new_figure

    effects = benchmark.effects(order_rows())
    means = {method: benchmark.mean_effect(by)[0] for method, by in effects.items()}
    order = sorted(effects, key=lambda name: abs(means[name]))
    figure = new_figure(6.4, 1.0 + 0.22 * len(order))
    ax = figure.add_subplot()
    for y, method in enumerate(order):
        gains = [one.effect for one in effects[method].values()]
        color = LINES[1] if method == benchmark.SEES else LINES[0]
        ax.plot(gains, [y] * len(gains), "o", ms=4, color=color, alpha=0.45)
        ax.plot(means[method], y, "|", ms=11, mew=2.2, color=color)
    ax.axvline(0, color=FAINT, lw=0.8, zorder=0)
    ax.set_yticks(range(len(order)), order)
    ax.set_xlabel("NMI sorted by class minus NMI shuffled; dots: data sets, bars: means",
                  size=8, color=FAINT)  # fmt: skip
    ax.tick_params(length=0, labelsize=8, labelcolor=INK)
    ax.grid(axis="x", color="#e8ebef", lw=0.8)
    ax.set_axisbelow(True)
    ax.spines[:].set_visible(False)
    return figure


# --- figures ---


def draw_figures():
    from harness.figures import plot_budgets, plot_grid, plot_method, plot_scores
    from polyspan import GRMSC
    from polyspan.datasets import load_dataset
    from polyspan.figures import plot_convergence, save_figure
    from polyspan.inputs.scaling import scale_views
    from polyspan.inputs.views import check_views

    data, rows = load_dataset("ngs"), complete("paper")
    model = GRMSC(data.n_clusters, random_state=0).fit(data.views)
    views = scale_views(check_views(data.views), "unit")
    drawn = {
        "figure1": plot_method(views, model.labels_, model.representation_, 30, data.view_names),
        "figure2": plot_convergence(model.history_, model.tol).figure,
        "figure3": plot_grid(rows, "NGs", values=TALL).figure,
        "scores": plot_scores(summarize(rows)),
        "order-effect": plot_order(),
    }
    for own in (rows, complete("wide")):
        curves = budgets(own)
        for dataset, source in sources(own).items():
            drawn[f"budget-{source}"] = plot_budgets(curves, dataset).figure
    for name, figure in drawn.items():
        print("drew", save_figure(figure, IMAGES / f"{name}.png", dpi=100).name)
    MADE_FROM.write_text(json.dumps(made_from(), indent=1) + "\n", "utf-8")


def made_from():
    """Picture -> hash of the numbers in it, for the pictures that are drawn from rows."""
    import order as benchmark

    rows, effects = complete("paper"), benchmark.effects(order_rows())
    numbers = {
        "figure3": [
            [row["params"], row["seed"], row["nmi"]]
            for row in rows
            if (row["dataset"], row["method"], row["stage"]) == ("NGs", "GRMSC", "tune")
            and {row["params"]["lam1"], row["params"]["lam2"]} <= set(TALL)
        ],
        "scores": [
            [one.dataset, one.selection, one.method, one.mean.get("nmi"), one.published.get("nmi")]
            for one in summarize(rows)
        ],
        "order-effect": [
            [method, name, one.effect] for method, by in effects.items() for name, one in by.items()
        ],
    }
    for own in (rows, complete("wide")):
        curves = budgets(own)
        for dataset, source in sources(own).items():
            numbers[f"budget-{source}"] = [
                [one.method, one.selection, one.curve.tolist()]
                for one in curves
                if one.dataset == dataset
            ]
    return {f"{name}.png": _hash(numbers[name]) for name in sorted(numbers)}


def _hash(numbers):
    """Of numbers to six digits, in any order of the lines."""
    lines = sorted(json.dumps(_rounded(one), sort_keys=True) for one in numbers)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _rounded(value):
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return round(value, 6) if isinstance(value, float) else value


# --- all pages ---


def methods_page():
    """Every method beside its reference, from the rows of benchmarks/methods.py."""
    import methods

    return methods.stored_page()


DOCS = HERE.parent / "docs"
PAGES = {
    HERE / "RESULTS.md": results_page,
    HERE / "METHODS.md": methods_page,
    DOCS / "paper-open-points.md": open_page,
    DOCS / "what-order-is-worth.md": order_page,
    HERE.parent / "README.md": readme,
    **{path: partial(page_tables.filled, path) for path in page_tables.pages()},  # only the tables
}
SECTIONS = {
    made.__name__: made
    for made in (so_far, cost, checked, tables, reached, ladder, comparison, paper_rows, baseline, pictures,
                 changed, moved, readme_list, readme_grmsc, readme_label_free)
}  # fmt: skip
ENV = Environment(
    loader=FileSystemLoader(HERE / "pages"), trim_blocks=True, lstrip_blocks=True,
    undefined=StrictUndefined,
)  # fmt: skip
ENV.globals |= {"section": section, "table": table, "nmi": nmi, "PLAIN": PLAIN,
                "with_baseline": with_baseline}  # fmt: skip
ENV.globals["report"] = lambda rows: lower(report(rows)).strip()
ENV.filters |= {"listed": listed, "deeper": lambda text: re.sub("^#", "##", text, flags=re.M)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figures", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for path, made in PAGES.items():
        path.write_text(made(), "utf-8")
        print("wrote", path.relative_to(HERE.parent))
    if args.figures:
        draw_figures()


if __name__ == "__main__":
    main()
