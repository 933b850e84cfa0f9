"""The tables of methods are what docs/make_methods.py writes."""

import importlib.util
import re
from pathlib import Path

import pytest

from polyspan import METHODS
from polyspan.base import About

ROOT = Path(__file__).parent.parent


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def make_methods():
    return load(ROOT / "docs/make_methods.py")


@pytest.fixture(scope="module")
def bench():
    return load(ROOT / "benchmarks/methods.py")


def test_a_method_says_what_it_is():
    for name, cls in METHODS.items():
        assert "about" in vars(cls), f"give {name} an about of its own: see CONTRIBUTING"
        assert isinstance(cls.about, About), name
        for field, value in cls.about._asdict().items():
            assert value == value.strip() != "", f"{name}: {field}"
            assert "\n" not in value, f"{name}: {field}"
            assert "`" not in value, f"{name}: {field}"


def test_the_page_is_up_to_date(make_methods):
    assert make_methods.PAGE.read_text("utf-8") == make_methods.page(), "run `make methods`"


def cells(line):
    return re.split(r"(?<!\\)\|", line)[1:-1]


def test_every_row_has_all_cells(make_methods):
    for text, n_cells in [(make_methods.long_table(), 5), (make_methods.short_table(), 3)]:
        rows = [cells(line) for line in text.splitlines() if line.startswith("|")]
        assert len(rows) == len(METHODS) + 2
        assert {len(row) for row in rows} == {n_cells}
        assert all(cell.strip() for row in rows for cell in row)


def test_a_citation_becomes_a_link(make_methods):
    assert make_methods.cited("Liu et al., TPAMI 2013, arXiv:1010.2955") == (
        "[Liu et al., TPAMI 2013](https://arxiv.org/abs/1010.2955)"
    )
    assert make_methods.cited("A, B 2020, doi:10.1/x").endswith("(https://doi.org/10.1/x)")
    assert make_methods.cited("Xia et al., AAAI 2014") == "Xia et al., AAAI 2014"


# ---- benchmarks/METHODS.md -----------------------------------------------------------------------


def test_every_reference_has_its_row(bench):
    page = (ROOT / "benchmarks/METHODS.md").read_text("utf-8")
    rows = [cells(line)[:4] for line in page.splitlines() if line.startswith("| `")]
    wanted = [cells(bench.line(bench.cells_of(one, {})))[:4] for one in bench.REFERENCES]
    assert rows == wanted, "run `make bench-methods`"


def test_a_row_says_when_it_misses(bench):
    one = bench.Reference("gmc", "ngs", {"lam_components": 2.0}, 0.9, 0.02, 10)
    row = {"nmi": 0.8799, "std": 0.0, "our cpu s": 1.0}
    start = ["`GMC`", "NGs", "lam_components=2", "0.90"]
    missed = [*start, "0.8799 (0.0000)", "-0.0201", "0.02", "**no**"]
    assert bench.cells_of(one, row) == [*missed, "1.00", "10"]
    assert bench.cells_of(one, row | {"nmi": 0.88})[7] == "yes"
    page = bench.page([bench.cells_of(one, row), bench.cells_of(one, {})], "today", "v")
    assert "0 of 1 rows with a reference are within the allowed difference." in page
    assert "Outside: `GMC` (NGs, lam_components=2)." in page
    assert "Not run: `GMC` (NGs, lam_components=2)." in page


def test_a_method_that_is_not_there_has_a_row(bench):
    one = bench.Reference("nonesuch", "three_sources", {}, 0.64, 0.05)
    assert "not in METHODS" in bench.cells_of(one, {})


def test_a_row_without_a_reference_has_only_our_figure(bench):
    one = bench.Reference("gsf", "ngs", {})
    row = {"nmi": 0.5, "std": 0.01, "our cpu s": 1.0}
    cells = ["`GSF`", "NGs", "defaults", "", "0.5000 (0.0100)", "", "", "", "1.00", ""]
    assert bench.cells_of(one, row) == cells
    assert "0 of 0 rows with a reference" in bench.page([cells], "today", "v")


def test_the_page_has_the_last_stored_rows(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "HERE", tmp_path)
    one = bench.Reference("gsf", "ngs", {})
    monkeypatch.setattr(bench, "REFERENCES", [one, bench.Reference("gsf", "bbc", {})])
    for nmi in (0.4, 0.5):
        bench.store(one, {"nmi": nmi, "std": 0.0, "our cpu s": 1.0})
    bench.store(bench.Reference("gsf", "ngs", {"n_neighbors": 9}), {"nmi": 0.9})
    assert bench.main(["--page"]) == 0
    page = (tmp_path / "METHODS.md").read_text("utf-8")
    rows = [cells(line)[4].strip() for line in page.splitlines() if line.startswith("| `GSF")]
    assert rows == ["0.5000 (0.0000)", "not run"]


def test_unknown_methods_are_refused(bench, capsys):
    with pytest.raises(SystemExit, match="2"):
        bench.main(["gms"])
    assert "unknown: gms; known: lrr, rmsc" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        bench.main(["gsf", "--data", "ng"])
    assert "unknown: ng; known: three_sources, ngs" in capsys.readouterr().err


def test_a_row_is_measured(bench, data_dir, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "HERE", tmp_path)
    assert bench.main(["cotrainspectral"]) == 0
    row = cells(capsys.readouterr().out.splitlines()[-1])
    assert float(row[4].split()[0]) == pytest.approx(0.60, abs=0.03)
    assert row[7].strip() == "yes"
    assert [path.name for path in tmp_path.rglob("*.*")] == ["methods.jsonl"]  # part: no page
