"""Stored rows come to today's names: once, whole, and with the keys of the jobs they answer."""

import json
from pathlib import Path

import pytest
from cases import benchmark

from polyspan import METHODS
from polyspan.bench import append_row, pack, read_rows
from polyspan.bench.jobs import Job
from polyspan.bench.plan import Method, Source

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def migrate_rows():
    return benchmark("migrate_rows")


def stored(method, estimator, params, selection="tuned", **more):
    """A row of a protocol as it was once written, its key of the parameters it had."""
    chosen = Method(method, estimator, selection)
    job = Job("p", chosen, Source("ngs", "NGs"), params, 0, "tune", None, more.get("order", ""))
    return {
        "protocol": "p", "dataset": "NGs", "source": {"name": "ngs"}, "method": method,
        "paper": method, "selection": selection, "estimator": estimator, "params": params,
        "seed": 0, "stage": "tune", "key": job.key, "nmi": 0.5, **more,
    }  # fmt: skip


FILE = {"order": "file", "ties": "row"}


OLD = [
    stored("MLRSSC", "mlrssc", {"scale": None, "beta1": 0.3, "lam3": 0.5, "mu0": 100.0}),
    stored("inner", "bestsingleview", {"estimator": "ssc", "estimator__alpha": 20}),
    stored("20 turns", "grmsc", {"max_iter": 20}),
    stored("random start", "grmsc", {"init": "random"}),
    stored("untouched", "lrr", {"lam": 0.1}, order="shuffled"),
    stored("AMGL", "amgl", {}),
    stored("GMC", "gmc", {}, "default"),
    {"method": "mvsc", "setting": {"lam1": 0.1, "lam2": 0.2}},
    {"data": "ngs", "setting": {"sigma2": "first"}},
    {"title": "speed", "turns": 30, "solve s": 0.5},
]
NEW = [
    stored(
        "MLRSSC",
        "mlrssc",
        {"scale": None, "rank_share": 0.3, "lam_agreement": 0.5, "mu0": 100},
        **FILE,
    ),
    stored("inner", "bestsingleview", {"estimator": "ssc", "estimator__lam_ratio": 20}, **FILE),
    stored("20 iterations", "grmsc", {"max_iter": 20}, **FILE),
    stored("untouched", "lrr", {"lam": 0.1}, order="shuffled"),
    stored("AMGL", "amgl", {}, "nothing to tune", **FILE),
    stored("GMC", "gmc", {}, "default", **FILE),
    {"method": "mvsc", "setting": {"lam_cut": 0.1, "lam": 0.2}},
    {"data": "ngs", "setting": {"second_width": "first"}},
    {"title": "speed", "iterations": 30, "solve s": 0.5},
]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_rows_come_to_todays_names_once(migrate_rows, tmp_path):
    path = tmp_path / "rows.jsonl"
    write(path, OLD)
    assert migrate_rows.migrate(path) == len(OLD) - 1
    lines = path.read_text().splitlines()
    assert [json.loads(line) for line in lines] == NEW
    assert list(json.loads(lines[-1])) == list(NEW[-1])  # columns keep their places
    assert lines[3] == json.dumps(OLD[4])  # as it was, byte for byte
    before = path.stat()
    assert migrate_rows.migrate(path) == 0
    assert path.stat().st_ino == before.st_ino  # the file was not even written again
    assert [one.name for one in tmp_path.iterdir()] == ["rows.jsonl"]


def test_a_compressed_store_stays_compressed(migrate_rows, tmp_path):
    path = tmp_path / "rows.jsonl.gz"
    for row in OLD:
        append_row(path, row)
    pack(path)
    assert migrate_rows.migrate(path) == len(OLD) - 1
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert read_rows(path) == NEW
    assert migrate_rows.migrate(path) == 0


def test_a_file_that_is_no_store_stays_as_it_is(migrate_rows, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(OLD[0]) + "\n{torn")
    before = path.read_text()
    with pytest.raises(ValueError, match="Expecting property name"):
        migrate_rows.migrate(path)
    assert path.read_text() == before
    assert [one.name for one in tmp_path.iterdir()] == ["rows.jsonl"]


def test_todays_names_are_parameters_and_the_old_ones_are_not(migrate_rows):
    for name, names in migrate_rows.PARAMETERS.items():
        known = METHODS[name]().get_params(deep=False)
        assert set(names.values()) <= set(known), name
        assert not set(names) & set(known), name  # else a second run would rename again


@pytest.mark.slow
def test_the_stored_rows_have_todays_names(migrate_rows):
    for path in sorted((BENCHMARKS / "results").glob("*.jsonl*")):
        for row in read_rows(path):
            assert migrate_rows.migrated(row) == row, f"{path.name}: run migrate_rows.py"
