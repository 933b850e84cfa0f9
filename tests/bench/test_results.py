"""The committed pages follow from the committed rows."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from cases import benchmark

from polyspan.bench import append_row, pack, read_protocol
from polyspan.bench.jobs import STAGES, count_jobs
from polyspan.bench.rows import empty_row, job_labels
from polyspan.bench.store import identity, latest, read_rows
from polyspan.metrics import SCORES

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
NAMES = ("paper", "open", "wide")
WHOLE = ("RESULTS.md", "README.md", "paper-open-points.md", "what-order-is-worth.md")
WITH_TABLES = (
    *("after-the-fit.md", "choosing-without-labels.md", "order-of-samples.md", "scale.md"),
    *("speed.md", "structure.md", "what-the-clusters-are.md"),
)


@pytest.fixture(scope="module")
def results():
    return benchmark("results")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WHOLE, *WITH_TABLES])
def test_pages_follow_from_the_rows(results, name):
    (path,) = [path for path in results.PAGES if path.name == name]
    assert path.read_text("utf-8") == results.page(path), "run python benchmarks/results.py"


def test_no_other_page_is_made(results):
    assert sorted(path.name for path in results.PAGES) == sorted(WHOLE + WITH_TABLES)


@pytest.mark.slow
def test_a_changed_row_changes_the_pages(results, monkeypatch):
    makers = (results.results_page, results.open_page, results.readme)
    plain, read = [make() for make in makers], results.rows_of

    def changed(name, order="shuffled"):
        rows = read(name, order)
        return [row | {"nmi": row["nmi"] / 2} if row["nmi"] else row for row in rows]

    monkeypatch.setattr(results, "rows_of", changed)
    assert all(make() != page for make, page in zip(makers, plain, strict=True))


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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_rows_have_the_keys_of_their_jobs_and_their_order(name):
    """The rows of before in the order of the file; the new ones are jobs of the protocol."""
    key = benchmark("migrate_rows").key
    for order, store in (("file", f"{name}-file-order"), ("shuffled", name)):
        path = BENCHMARKS / "results" / f"{store}.jsonl.gz"
        rows = latest(read_rows(path)) if path.is_file() else []
        assert {row["order"] for row in rows} <= {order}
        assert {row.get("ties") for row in rows} <= ({"row"} if order == "file" else {None})
        assert all(row["key"] == key(row) for row in rows)
        assert path.stat().st_size <= 120 * len(rows) if rows else order == "shuffled"
        if order == "shuffled":
            protocol = read_protocol(BENCHMARKS / f"{name}.toml")
            jobs = [job for stage in STAGES for job in stage(protocol, rows)]
            assert {row["key"] for row in rows} <= {job.key for job in jobs}
            assert len(rows) <= count_jobs(protocol)


TINY = """
name = "tiny"
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
        path = tmp_path / ("paper.jsonl.gz" if order == "shuffled" else "paper-file-order.jsonl.gz")
        rows = read_rows(path) if path.exists() else []
        for method, source in protocol.pairs():
            pair = replace(protocol, methods=[method], datasets=[source], order=order)
            for stage in STAGES:
                for job in stage(pair, rows):
                    if limit is not None and len(rows) >= limit:
                        return
                    made = {"status": "ok", "converged": True, "seconds": 1.0, "cpu_seconds": 1.0}
                    row = empty_row(job, 1) | made | dict.fromkeys(SCORES, nmi)
                    row["nmi"] = nmi + 0.1 * (job.params.get("n_neighbors") == 30)
                    if identity(row) not in {identity(one) for one in rows}:
                        rows.append(row)
                        append_row(path, row)
        pack(path)

    return run


def test_a_part_of_a_run_shows_what_is_complete(results, tiny):
    tiny("file", nmi=0.6)
    assert results.complete("paper") == []
    page = results.so_far("paper", [])
    assert page.startswith("**Not run yet:** `paper.toml` with shuffled samples")
    whole = 4 + 8 + 2
    tiny(limit=whole - 1)
    assert results.complete("paper") == []  # one run is missing
    tiny(limit=whole + 1)
    rows = results.complete("paper")
    assert {results.pair_of(row) for row in rows} == {("3-Sources", "GRMSC", "tuned")}
    assert len(rows) == whole
    assert "3-Sources 1 of 2; NGs 0 of 2" in results.so_far("paper", rows)
    assert {row["order"] for row in results.in_force("paper")} == {"file"}
    earlier = results.rows_of("paper", "file")
    text = results.changed(rows, earlier)
    assert "| 3-Sources | GRMSC | tuned (4) | 0.7000 | 0.6000 | 0.6000 | -0.1000 |" in text
    assert "NGs" not in text
    tiny()
    rows = results.complete("paper")
    assert results.so_far("paper", rows) == (
        "All of `paper.toml` has been run with shuffled samples."
    )
    assert {row["order"] for row in results.in_force("paper")} == {"shuffled"}


def test_the_baseline_and_the_number_tried_are_in_every_table(results, tiny):
    tiny()
    rows = results.complete("paper")
    assert "| 3-Sources | 0.7321 | 0.6000 | - | - | 0.5000 | 0.7221 |" in results.reached(rows)
    assert "GRMSC tuned (4)" in results.reached(rows)
    line = "| NGs | GRMSC | tuned (4) | 0.9547 | 0.6000 | -0.3547 | below | 0.5000 |"
    assert line in results.comparison(rows)


def test_the_checks_are_compared_with_what_is_shared(results):
    row = {"dataset": "NGs", "method": "M", "selection": "default", "stage": "final"}
    row |= {"status": "ok", "params": {}}
    scores = {"shared": [0.5, 0.7], "own": [0.61]}
    rows = [row | {"solve": how, "nmi": nmi} for how, some in scores.items() for nmi in some]
    text = results.checked(rows)
    assert "1 solved afresh" in text
    assert "is +0.0100 in the mean and +0.0100 at most (M on NGs)" in text
    assert results.checked(rows[:2]) == ""


@pytest.mark.slow
def test_every_row_that_says_tuned_says_how_many_were_tried(results):
    page = results.results_page()
    lines = [line for line in page.splitlines() if line.startswith("|") and "tuned" in line]
    said = re.compile(r"tuned \(\d+\)|tuned setting")
    assert len(lines) > 500
    assert [line for line in lines if not said.search(line)] == []
    assert "| nothing to tune |" in page
    for name in ("AMGL", "GMC"):
        assert not re.search(rf"\| {name}[^|]* \| tuned", page)


@pytest.mark.parametrize("name", NAMES)
def test_jobs_of_the_rows_of_before_are_other_jobs(name):
    """A run with shuffled samples takes none of them for its own."""
    protocol = read_protocol(BENCHMARKS / f"{name}.toml")
    rows = read_rows(BENCHMARKS / "results" / f"{name}-file-order.jsonl.gz")
    known = {identity(row) for row in rows}
    first = STAGES[0](protocol)
    assert [job for job in first if identity(job_labels(job)) in known] == []
