"""The committed pages follow from the committed rows."""

from pathlib import Path

import pytest
from cases import benchmark

from polyspan.bench import read_protocol
from polyspan.bench.jobs import count_jobs, final_jobs, first_jobs
from polyspan.bench.rows import job_labels
from polyspan.bench.store import identity, latest, read_rows

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def results():
    return benchmark("results")


@pytest.mark.slow
def test_pages_follow_from_the_rows(results):
    for path, make in results.PAGES.items():
        assert path.read_text("utf-8") == getattr(results, make)(), f"{path.name}: make reproduce"


@pytest.mark.slow
def test_a_changed_row_changes_the_page(results, monkeypatch):
    plain, read = results.results_page(), results.rows_of

    def changed(name):
        rows = read(name)
        if name != "paper":
            return rows
        index = next(i for i, row in enumerate(rows) if row["stage"] == "final" and row["nmi"])
        return [*rows[:index], rows[index] | {"nmi": rows[index]["nmi"] / 2}, *rows[index + 1 :]]

    monkeypatch.setattr(results, "rows_of", changed)
    assert results.results_page() != plain


@pytest.mark.parametrize("name", ["paper", "open", "wide"])
@pytest.mark.slow
def test_rows_are_those_of_the_protocol(results, name):
    protocol = read_protocol(BENCHMARKS / f"{name}.toml")
    rows = results.rows_of(name)
    known = {(job.method.name, job.source.label, job.key) for job in first_jobs(protocol)}
    known |= {(job.method.name, job.source.label, job.key) for job in final_jobs(protocol, rows)}
    assert {(row["method"], row["dataset"], row["key"]) for row in rows} <= known
    assert len(rows) <= count_jobs(protocol)


@pytest.mark.parametrize("name", ["paper", "open", "wide"])
@pytest.mark.slow
def test_a_resumed_benchmark_has_nothing_left_to_run(name):
    protocol = read_protocol(BENCHMARKS / f"{name}.toml")
    rows = latest(read_rows(BENCHMARKS / "results" / f"{name}.jsonl"))
    known = {identity(row) for row in rows}
    jobs = [*first_jobs(protocol), *final_jobs(protocol, rows)]
    assert len(jobs) == count_jobs(protocol)
    assert [job for job in jobs if identity(job_labels(job)) not in known] == []
