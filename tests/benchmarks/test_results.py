"""The committed pages follow from the committed rows."""

import json
import re
import sys
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace

import pytest
from cases import BENCHMARKS, benchmark

from harness import append_rows, export, read_protocol, read_rows
from harness.jobs import STAGES, count_jobs
from harness.rows import empty_row, job_labels
from harness.store import identity
from polyspan.metrics import SCORES

NAMES = ("paper", "open", "wide")
WHOLE = ("RESULTS.md", "METHODS.md", "README.md", "paper-open-points.md", "what-order-is-worth.md")
WITH_TABLES = (
    *("after-the-fit.md", "choosing-without-labels.md", "methods.md", "order-of-samples.md"),
    "paper-claims.md",
    *("scale.md", "speed.md", "structure.md", "what-the-clusters-are.md"),
)
MADE_BY_ROWS = ("RESULTS.md", "paper-open-points.md", "README.md")
# One worker of pytest-xdist runs those that read all rows: they are read once.
together = pytest.mark.xdist_group("results")


@pytest.fixture(scope="module")
def results():
    return benchmark("results")


@pytest.fixture(scope="module")
def pages(results):
    """The text of a page by the name of its file; each is made once."""
    paths = {path.name: path for path in results.PAGES}
    return cache(lambda name: results.PAGES[paths[name]]())


@pytest.mark.slow
@together
@pytest.mark.parametrize("name", [*WHOLE, *WITH_TABLES])
def test_pages_follow_from_the_rows(results, pages, name):
    (path,) = [path for path in results.PAGES if path.name == name]
    assert path.read_text("utf-8") == pages(name), "run python benchmarks/results.py"


def test_no_other_page_is_made(results):
    assert sorted(path.name for path in results.PAGES) == sorted(WHOLE + WITH_TABLES)


@pytest.mark.slow
@together
def test_a_changed_row_changes_the_pages(results, pages, monkeypatch):
    makers = (results.results_page, results.open_page, results.readme)
    plain = [pages(name) for name in MADE_BY_ROWS]

    def changed(*what, read):
        return [row | {"nmi": row["nmi"] / 2} if row["nmi"] else row for row in read(*what)]

    for name in ("rows_of", "complete"):
        monkeypatch.setattr(results, name, cache(partial(changed, read=getattr(results, name))))
    assert all(make() != page for make, page in zip(makers, plain, strict=True))


def test_a_changed_count_changes_the_sentence_in_the_readme(results, monkeypatch):
    right = {"first": [True, False, False, False], "list": [True] * 4, "fixed list": [False] * 4}
    monkeypatch.setitem(sys.modules, "label_free", SimpleNamespace(counted=lambda: right))
    said = "within 1 or 10%, in 100% of the runs; its first number is right in 25%."
    assert results.section("readme_list").endswith(said)


def test_gaps_are_to_the_best_of_the_alternatives(monkeypatch, tmp_path):
    label_free = benchmark("label_free")
    monkeypatch.setattr(label_free, "ROWS", tmp_path / "rows.csv")
    lines = ["data,seed,n,classes,method,nmi,numbers"]
    for method, nmi in {"consensus": 0.8, "SNF": 0.7, "MeanGraph": 0.9}.items():
        lines += [f"a,{seed},9,3,{method},{nmi + seed / 10:.1f}," for seed in (0, 1)]
    lines += ["a,0,9,3,count,,7 2 5"]
    label_free.ROWS.write_text("\n".join(lines) + "\n")
    (row,) = label_free.table()
    assert (row["consensus"], row["sd"], row["SNF"]) == ("0.850", "0.050", "0.750")
    assert row["gap to the best of the six"] == "-0.100"
    assert label_free.counted() == {"first": [False], "list": [True], "fixed list": [True]}


# --- pictures ---

NOT_FROM_ROWS = {  # picture: what draws it
    **dict.fromkeys(("figure1.png", "figure2.png"), "a fit of NGs in results.py --figures"),
    "demo.png": "make figure",
    **{f"report-{name}.png": "polyspan fit --report, by hand"
       for name in ("breast_tcga", "gbm", "nutrimouse", "phone")},
}  # fmt: skip


@together
@pytest.mark.slow  # reads all rows; draws nothing
def test_pictures_are_those_of_the_rows(results, monkeypatch):
    kept = json.loads(results.MADE_FROM.read_text("utf-8"))
    there = {path.name for path in results.IMAGES.glob("*.png")}
    assert set(kept) | set(NOT_FROM_ROWS) == there
    assert results.made_from() == kept, "run python benchmarks/results.py --figures"


def test_a_changed_number_changes_the_hash(results):
    lines = [["GRMSC", [0.5, 0.25]], ["LRR", [0.125, 1.0]]]
    same = results._hash(lines)
    assert results._hash(lines[::-1]) == same
    assert results._hash([["GRMSC", (0.5 + 1e-12, 0.25)], lines[1]]) == same
    assert results._hash([["GRMSC", [0.5001, 0.25]], lines[1]]) != same
    assert results._hash([["RMSC", [0.5, 0.25]], lines[1]]) != same
    assert results._hash(lines[:1]) != same


@pytest.mark.slow
def test_a_changed_row_changes_the_hashes(results, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "order", SimpleNamespace(effects=lambda rows: {}))
    monkeypatch.setattr(
        results, "rows_of", cache(lambda name, order="shuffled", read=results.rows_of.__wrapped__: (
            read("paper", order))))  # fmt: skip
    monkeypatch.setattr(
        results, "protocol_of", lambda name, read=results.protocol_of: read("paper")
    )
    tiny()
    before = results.made_from()
    assert set(before) == {
        *("budget-ngs.png", "budget-three_sources.png", "figure3.png", "order-effect.png"),
        "scores.png",
    }
    for path in (results.HERE / "rows.db", results.HERE / "paper-shuffled.csv.gz"):
        path.unlink()
    tiny(nmi=0.4)
    after = results.made_from()
    assert [name for name in before if before[name] == after[name]] == ["order-effect.png"]


# --- stores ---


def test_the_page_on_the_order_of_a_file_needs_all_seeds_of_both_orders():
    order = benchmark("order")
    rows = [
        dict.fromkeys(("protocol", "selection", "stage"), "x")
        | {"method": "M", "dataset": "d", "key": f"{name}{seed}", "status": "ok"}
        | {"order": name, "seed": seed, "nmi": score + seed / 1000}
        for name, score in (("sorted", 0.9), ("shuffled", 0.6))
        for seed in range(order.SEEDS)
    ]
    by = order.effects(rows)["M"]
    effect, error = order.mean_effect(by)
    assert effect == pytest.approx(0.3)
    assert error == pytest.approx(by["d"].error)
    twice = order.mean_effect(by | {"e": by["d"]})
    assert twice == pytest.approx((0.3, error / 2**0.5))
    assert order.effects(rows[1:]) == {}
    assert order.effects([*rows[1:], rows[0] | {"status": "timeout"}]) == {}


@pytest.mark.slow
@together
@pytest.mark.parametrize("name", NAMES)
def test_rows_are_of_jobs_of_the_protocol_in_its_order(results, name):
    """The rows of before in the order of the file; the new ones are jobs of the protocol."""
    for order in ("file", "shuffled"):
        rows = results.rows_of(name, order)
        assert {row["ties"] for row in rows} == ({"row"} if order == "file" else {None})
        if order == "shuffled":
            protocol = read_protocol(BENCHMARKS / f"{name}.toml")
            jobs = [job for stage in STAGES for job in stage(protocol, rows)]
            assert {row["key"] for row in rows} <= {job.key for job in jobs}
            assert len(rows) <= count_jobs(protocol)


TINY = """
name = "paper"
seeds = 2
[[dataset]]
name = "three_sources"
label = "3-Sources"
[[dataset]]
name = "ngs"
label = "NGs"
[[method]]
name = "GRMSC"
estimator = "grmsc"
selection = "tuned"
grid = { lam1 = [1.0, 100.0], n_neighbors = [10, 30], lam2 = [1.0], orientation = ["samples"] }
[[method]]
name = "ConcatSpectral"
estimator = "concatspectral"
selection = "default"
"""


@pytest.fixture
def tiny(results, tmp_path, monkeypatch):
    """A protocol whose rows are made up: a function that appends those of some jobs."""
    (tmp_path / "paper.toml").write_text(TINY)
    monkeypatch.setattr(results, "HERE", tmp_path)
    monkeypatch.setattr(results, "STORES", tmp_path)
    protocol = read_protocol(tmp_path / "paper.toml")

    def run(order="shuffled", limit=None, nmi=0.5):
        store = tmp_path / "rows.db"
        rows = [row for row in read_rows(store) if row["order"] == order] if store.exists() else []
        made = {"status": "ok", "converged": True, "seconds": 1.0, "cpu_seconds": 1.0}
        for method, source in protocol.pairs():
            pair = replace(protocol, methods=[method], datasets=[source], order=order)
            for stage in STAGES:
                for job in stage(pair, rows):
                    row = empty_row(job, 1) | made | dict.fromkeys(SCORES, nmi)
                    row["nmi"] = nmi + 0.1 * (job.params.get("n_neighbors") == 30)
                    new = identity(row) not in {identity(one) for one in rows}
                    if new and (limit is None or len(rows) < limit):
                        rows.append(row)
                        append_rows(store, [row])
        export(store, tmp_path)
        results.rows_of.cache_clear()
        results.complete.cache_clear()

    monkeypatch.setattr(results, "complete", cache(results.complete.__wrapped__))
    monkeypatch.setattr(results, "rows_of", cache(results.rows_of.__wrapped__))
    return run


def test_a_part_of_a_run_shows_what_is_complete(results, tiny):
    tiny("file", nmi=0.6)
    assert results.complete("paper") == []
    page = results.section("so_far", "paper", [])
    assert page.startswith("**Not run yet:** `paper.toml` with shuffled samples")
    whole = 4 + 8 + 2
    tiny(limit=whole - 1)
    assert results.complete("paper") == []  # one run is missing
    tiny(limit=whole + 1)
    rows = results.complete("paper")
    assert {results.pair_of(row) for row in rows} == {("3-Sources", "GRMSC", "tuned")}
    assert len(rows) == whole
    assert "3-Sources 1 of 2; NGs 0 of 2" in results.section("so_far", "paper", rows)
    earlier = results.rows_of("paper", "file")
    text = results.section("changed", rows, earlier)
    assert "| 3-Sources | GRMSC | tuned (4) | 0.7000 | 0.7000 | 0.6000 | 0.6000 | -0.1000 |" in text
    assert "NGs" not in text
    tiny()
    rows = results.complete("paper")
    assert results.section("so_far", "paper", rows) == (
        "All of `paper.toml` has been run with shuffled samples."
    )


def test_the_baseline_and_the_number_tried_are_in_every_table(results, tiny):
    tiny()
    rows = results.complete("paper")
    assert "| 3-Sources | 0.7321 | 0.6000 | - | - | 0.5000 | 0.7221 |" in results.section(
        "reached", rows
    )
    assert "GRMSC tuned (4)" in results.section("reached", rows)
    line = "| NGs | GRMSC | tuned (4) | 0.9547 | 0.6000 | -0.3547 | below | 0.5000 |"
    assert line in results.section("comparison", rows)


def test_the_checks_are_compared_with_what_is_shared(results):
    row = {"dataset": "NGs", "method": "M", "selection": "default", "stage": "final"}
    row |= {"status": "ok", "params": {}}
    scores = {"shared": [0.5, 0.7], "own": [0.61]}
    rows = [row | {"solve": how, "nmi": nmi} for how, some in scores.items() for nmi in some]
    text = results.section("checked", rows)
    assert "1 solved afresh" in text
    assert "is +0.0100 in the mean and +0.0100 at most (M on NGs)" in text
    assert "No fresh run lies outside the range of the shared ones." in text
    assert results.section("checked", rows[:2]) == ""
    outside = [*rows, row | {"solve": "own", "nmi": 0.72}]
    assert results.section("checked", outside).endswith(
        "On 1 of 1 pairs of a method and a data set, a fresh run lies outside the range of the "
        "shared ones (NMI):\n\n| data | method | shared runs | runs solved afresh |\n"
        "|---|---|---|---|\n"
        "| NGs | M | 0.5000 or 0.7000 | 0.6100, 0.7200 |"
    )
    below = [*rows, row | {"solve": "shared", "nmi": 0.61}, row | {"solve": "own", "nmi": 0.4998}]
    assert "| NGs | M | 0.5000 to 0.7000 | 0.4998, 0.6100 |" in results.section("checked", below)


def grmsc_rows(order, setting, first, finals):
    """Rows of GRMSC on NGs: one run in the grid, if there is one, and the final ones."""
    row = dict.fromkeys(("protocol", "reason", "solve"), "x")
    row |= {"dataset": "NGs", "source": {"name": "ngs"}, "method": "GRMSC", "selection": "tuned"}
    row |= {"params": {"lam1": setting}, "order": order, "status": "ok", "converged": True}
    row |= {"paper": None, "seconds": 1.0} | dict.fromkeys(SCORES, 0.5)
    runs = [("tune", 0, first)] if first else []
    runs += [("final", seed, nmi) for seed, nmi in enumerate(finals)]
    return [
        row | {"stage": stage, "seed": seed, "nmi": nmi, "key": f"{setting}{stage}{seed}"}
        for stage, seed, nmi in runs
    ]


@pytest.mark.parametrize(
    ("earlier", "now", "passed", "shuffled", "said"),
    [
        ([0.9, 0.7], [0.85, 0.95], 0.75, 0.8,
         "and was lucky: 0.9000, where the mean of its 2 runs is 0.8000. The present setting had "
         "0.7500 with that seed and was passed over; the mean of its 2 shuffled runs is 0.9000. So "
         "the score rises with another setting."),
        ([0.9, 0.7], [0.8, 0.8], None, None,
         "and was lucky: 0.9000, where the mean of its 2 runs is 0.8000."),
        ([0.95, 0.95], [0.94, 0.94], 0.93, 0.91,
         "the earlier setting has 0.9500 in the order of the file and 0.9100 shuffled. All 2 runs "
         "in the order of the file have the same score, so a lucky k-means did not choose it"),
        ([0.95, 0.94], [0.94, 0.94], 0.93, 0.91, "and 0.9100 shuffled."),
        ([0.95, 0.95], [0.945, 0.945], 0.93, 0.945, "the two scores are level."),
        ([0.95, 0.95], [0.9, 0.9], None, None, "the rows do not tell why."),
    ],
)  # fmt: skip
def test_a_change_of_setting_is_explained(results, earlier, now, passed, shuffled, said):
    before = grmsc_rows("file", 1.0, earlier[0], earlier) + grmsc_rows("file", 2.0, passed, [])
    after = grmsc_rows("shuffled", 2.0, now[0], now) + grmsc_rows("shuffled", 1.0, shuffled, [])
    words = results.section("moved", after, before)
    assert f"| NGs | lam1 1.0 | {sum(earlier) / 2:.4f} | {earlier[0]:.4f} |" in words
    assert said in words
    assert ("lucky: " in words) == ("lucky: " in said)
    assert ("All 2 runs" in words) == ("All 2 runs" in said)
    assert ("rises" in words) == ("rises" in said)
    assert results.section("moved", after, grmsc_rows("file", 2.0, 0.9, [0.9, 0.9])) == ""


def test_the_baseline_is_in_the_comparison_with_the_paper(results, tiny):
    tiny()
    rows = results.complete("paper")
    tuned = [row for row in rows if (row["method"], row["stage"]) == ("GRMSC", "final")]
    rows += [row | {"selection": "default"} for row in tuned]  # `published` is that of GRMSC()
    lines = results.with_baseline(rows).splitlines()
    (at,) = [i for i, one in enumerate(lines) if "| none; beside GRMSC |" in one and "NGs" in one]
    assert lines[at].startswith(
        "| NGs | ConcatSpectral | default | none; beside GRMSC | 0.9547(0.0000) -0.4547 |"
    )
    assert lines[at + 1].startswith("| NGs | GRMSC | default | GRMSC | 0.9547(0.0000) -0.3547 |")
    (words,) = [one for one in lines if one.startswith("The paper's values, and")]
    assert "beside the paper's GRMSC, not tuned." in words


@pytest.mark.slow
@together
def test_every_row_that_says_tuned_says_how_many_were_tried(pages):
    page = pages("RESULTS.md")
    lines = [line for line in page.splitlines() if line.startswith("|") and "tuned" in line]
    said = re.compile(r"tuned \(\d+\)|tuned setting")
    assert len(lines) > 500
    assert [line for line in lines if not said.search(line)] == []
    assert "| nothing to tune |" in page
    for name in ("AMGL", "GMC"):
        assert not re.search(rf"\| {name}[^|]* \| tuned", page)


@pytest.mark.slow
@together
@pytest.mark.parametrize("name", NAMES)
def test_jobs_of_the_rows_of_before_are_other_jobs(results, name):
    """A run with shuffled samples takes none of them for its own."""
    protocol = read_protocol(BENCHMARKS / f"{name}.toml")
    known = {identity(row) for row in results.rows_of(name, "file")}
    first = STAGES[0](protocol)
    assert [job for job in first if identity(job_labels(job)) in known] == []
