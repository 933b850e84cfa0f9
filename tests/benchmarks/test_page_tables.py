"""The measured tables in docs: which there are, where their cells come from, who keeps them."""

import re
import sys
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from cases import benchmark, case

DECIMAL = re.compile(r"(?<![\w.])\d*\.\d+(?![\w.])|\(\d+ s\*?\)")
BY_OTHERS = {"methods.md", "data-sets.md"}  # written by `make methods`
WITHOUT_ROWS = {  # page and header, and why
    ("scale.md", "| what | arithmetic | seconds |"): "an estimate on paper, nothing was measured",
}


@pytest.fixture(scope="module")
def pt():
    """The module as the scripts import it."""
    benchmark("results")
    return sys.modules["page_tables"]


def tables(text):
    """(the line before, lines) of every table of a page, without code blocks."""
    lines = re.sub(r"```.*?```", "", text, flags=re.S).splitlines()
    found = []
    for before, line in zip(["", *lines], lines, strict=False):
        if line.lstrip().startswith("|"):
            if not before.lstrip().startswith("|"):
                found.append((before, []))
            found[-1][1].append(line)
    return found


PROSE = {  # page: decimals in its sentences, none of them a measurement that rows could hold
    "README.md": {
        "3.11": "Python", "7.3": "MATLAB", "0.84": "tests/test_readme.py", "0.85": "the same",
        "0.67": "the same", "0.68": "the same", "0.48": "the same",
    },
    "choosing-without-labels.md": {".99": "a chance"},
    "first-clustering.md": {"3.11": "Python", "0.84": "as in README"},
    "inputs-and-outputs.md": {"7.0": "an id"},
    "order-of-samples.md": {".005": "a limit"},
    "reproduce-the-paper.md": {"2004.03106": "arXiv"},
    "scale.md": {
        "0.001": "a parameter", "0.1": "how sets are drawn", "1.5": "how columns are chosen",
        "3.11": "Python", "3.13": "Python", "3.14": "Python",
    },
    "speed.md": {"0.1": "a parameter", "0.75": "bytes of a matrix, computed"},
    "structure.md": {
        ".01": "the level", ".2": "a limit", ".02": "a limit", ".08": "a limit",
        ".7": "how sets are drawn", ".9": "how sets are drawn",
    },
    "your-own-data.md": {"0.80": "tests/test_newcomer.py", "0.2": "a default"},
}  # fmt: skip
SENTENCE_DECIMAL = re.compile(r"(?<![\w.])\d*\.\d+(?!\w|\.\d)")


def prose(text):
    """The sentences of a page: no code, no tables, no links, nothing that results.py makes."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    text = re.sub(r"<!-- ([\w-]+): made by.*?<!-- end of \1 -->", "", text, flags=re.S)
    text = re.sub(r"`[^`\n]*`|\]\([^)]*\)", "", text)
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("|"))


def test_no_sentence_has_a_measured_number(pt):
    """It would be right only until the next run: point to the table, or let results.py write it."""
    whole = {path.name for path in benchmark("results").PAGES} - {p.name for p in pt.pages()}
    found = {}
    for path in [*pt.DOCS.glob("*.md"), pt.DOCS.parent / "README.md"]:
        if path.name not in whole - {"README.md"}:
            numbers = set(SENTENCE_DECIMAL.findall(prose(path.read_text("utf-8"))))
            found |= {path.name: numbers} if numbers else {}
    assert found == {name: set(numbers) for name, numbers in PROSE.items()}


def test_sentences_are_told_from_the_rest():
    page = "An NMI of 0.93. `x = 0.5` [a](b0.6)\n| 0.7 |\n```\n0.8\n```\n"
    page += "<!-- grmsc: made by benchmarks/results.py -->\n0.9\n<!-- end of grmsc -->\nv0.1.0 .4\n"
    assert SENTENCE_DECIMAL.findall(prose(page)) == ["0.93", ".4"]


@pytest.mark.parametrize("cell", ["0.93", ".93", "0.961 (889 s)", "12.5", "(0 s*)", "+0.01"])
def test_decimals_are_seen(cell):
    assert DECIMAL.search(f"| x | {cell} |")
    assert not DECIMAL.search("| version 0.8.1 | 12 | x.93 | 3 s | 10,000 |")


def test_every_table_with_measurements_has_rows(pt):
    made = {path.name for path in benchmark("results").PAGES}
    whole, used = made - {path.name for path in pt.pages()}, set()
    for path in sorted(pt.DOCS.glob("*.md")):
        if path.name in whole | BY_OTHERS:
            continue
        for before, lines in tables(path.read_text("utf-8")):
            if pt.MARK.match(before) or sum(bool(DECIMAL.search(one)) for one in lines[2:]) < 2:
                continue
            place = path.name, lines[0]
            used.add(place)
            with case(path.name, lines[0]):
                assert place in WITHOUT_ROWS, "put <!-- rows: NAME --> before it"
    assert used == set(WITHOUT_ROWS)


def test_every_mark_has_a_table_and_every_kept_table_a_mark(pt):
    names = []
    for path in pt.pages():
        text = path.read_text("utf-8")
        found = [pt.MARK.match(before)[1] for before, _ in tables(text) if pt.MARK.match(before)]
        assert found == pt.marked(text), path.name
        names += found
    kept = [path.stem for path in pt.KEPT.iterdir()]
    assert sorted(names) == sorted([*kept, *pt.MAKERS])  # so each is in one page, once


def test_a_changed_cell_changes_the_page(pt, tmp_path, monkeypatch):
    page = pt.DOCS / "structure.md"
    for path in pt.KEPT.iterdir():
        (tmp_path / path.name).write_text(path.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(pt, "KEPT", tmp_path)
    rows = pt.read(tmp_path / "structure-noise.jsonl")
    rows[1]["smallest p"] = "changed"
    pt.keep("structure-noise", list(rows[0]), [row.values() for row in rows])
    old, new = page.read_text("utf-8").splitlines(), pt.filled(page).splitlines()
    (line,) = [b for a, b in zip(old, new, strict=True) if a != b]
    assert line == pt.line([*list(rows[1].values())[:4], "changed"])
    pt.keep("structure-noise", list(rows[0]), [row.values() for row in [*rows, rows[0]]])
    assert len(pt.filled(page).splitlines()) == len(old) + 1


def test_a_changed_run_changes_every_table(pt, monkeypatch):
    """Numbers of all stored runs, made larger; what tells runs apart stays."""
    from polyspan.selection import evidence

    monkeypatch.setattr(pt, "plain_nmi", lambda *args: "0.5")  # label_free has its own table
    names = pt.MAKERS.keys() - {"label-free"}
    plain, read = {name: pt.rows_for(name) for name in names}, pt.read
    same = {"n", "k", "m", "seed", "split", "removed", "threads", "cores", "rule", "iterations"}

    def larger(value):
        if isinstance(value, dict):
            return {key: larger(one) for key, one in value.items()}
        return value + 1.5 if isinstance(value, float) else value

    def changed(path):
        return [
            {key: value if key in same else larger(value) for key, value in row.items()}
            for row in read(path)
        ]

    monkeypatch.setattr(pt, "read", changed)
    monkeypatch.setattr(evidence, "ENOUGH", 12)
    for name, rows in plain.items():
        with case(name):
            assert pt.rows_for(name) != rows
            assert len(pt.rows_for(name)) == len(rows)


@pytest.mark.parametrize("name", ["predict", "missing"])
def test_the_plain_baseline_is_that_of_the_label_free_runs(pt, name, monkeypatch):
    label_free = benchmark("label_free")
    monkeypatch.setitem(sys.modules, "label_free", label_free)

    def rows(nmi):
        runs = {"ConcatSpectral": {seed: nmi * (seed < 2) for seed in range(5)}}
        monkeypatch.setattr(label_free, "scores", lambda: defaultdict(lambda: runs))
        return pt.rows_for(name)

    before, after = rows(0.5), rows(1.0)
    assert {row[pt.PLAIN] for row in after} <= {"0.400", "1.000"}  # of all five, or of the first
    assert before != after
    rest = [[{k: v for k, v in row.items() if k != pt.PLAIN} for row in some]
            for some in (before, after)]  # fmt: skip
    assert rest[0] == rest[1]


def test_lines_have_the_columns_of_the_header(pt, tmp_path, monkeypatch):
    monkeypatch.setattr(pt, "KEPT", tmp_path)
    pt.keep("some", ["a", "b", "b ", "c"], [["1", "2", "3", ""], ["x | y", "", "4", "5"]])
    assert pt.body("some", "  | c | b | b |") == ["  | | 2 | 3 |", "  | 5 | | 4 |"]
    assert pt.columns_of(r"| a \| b | c |") == [r"a \| b", "c"]
    with pytest.raises(ValueError, match="some has no column 'd', which the header in the page"):
        pt.body("some", "| a | d |")
    page = tmp_path / "page.md"
    page.write_text("Before.\n\n<!-- rows: some -->\n| a |\n|---:|\n| 0 |\n\nAfter: | 0 |\n")
    assert pt.filled(page) == (
        "Before.\n\n<!-- rows: some -->\n| a |\n|---:|\n| 1 |\n| x | y |\n\nAfter: | 0 |\n"
    )


# --- run as the page says, a script keeps its table, with the columns of the page ---


def fake_explain(script, patch):
    patch(script, "precision", lambda seed, held_out: 1.0)
    patch(script, "is_silent", lambda seed, held_out: held_out)


def fake_transfer(script, patch):
    patch(script, "load", lambda: [({}, None), ({}, None)])
    patch(script, "fit", lambda views, n_clusters, seed: SimpleNamespace(n_clusters_=2))
    patch(script, "measure", lambda *args: iter([("mrna", 0.9, np.nan, 0.8, 0.7)]))


def fake_order(script, patch):
    rest = ("shared", "sorted", "1", "1")
    patch(script, "ties", lambda works, runs: ([*one, *rest] for one in works))
    patch(script, "consensus", lambda names: ([one, *"1234"] for one in names))
    patch(script, "tensor", lambda names: ([one, "1", *map(str, script.MEANS)] for one in names))


def fake_eigenvectors(script, patch):
    Y = np.zeros((3, 20))
    patch(script, "planted", lambda n: ([Y], np.arange(3)))
    patch(script, "approximate_neighbors", lambda X, k: None)
    patch(script, "normalized", lambda found, k, weights: (None, np.arange(3), (Y, 1.0)))
    for name in ("by_filter", "by_arpack", "by_lobpcg"):
        patch(script, name, lambda *args: (Y, 2.0))
    patch(script, "score", lambda labels, Y: 0.5)


def fake_claims(script, patch):
    fakes = {
        name: (lambda header=header: [["1"] * len(header)], header)
        for name, (_, header) in script.TABLES.items()
    }
    patch(script, "TABLES", fakes)


def fake_optimum(script, patch):
    names = ("GRMSC", "LRR")
    made = [script.Problem(name, "x", None, None, 9, 1e-6, {"rho": 1.02}) for name in names]
    patch(script, "problems", lambda: made)
    patch(script, "solved", lambda one, penalty, max_iter: (1 + 0.1 / max_iter, max_iter))


def fake_structure(script, patch):
    found = {"verdict": "weak", "p": 0.125, "agreement": 0.25, "excess": None}
    patch(script, "said_of", lambda views: (found | {"views": [{"role": "takes part"}]}, 0.7))
    patch(script, "noise", lambda kind, seed: [])
    patch(script, "planted", lambda kind, seed: (1.0, 0, [], 0.75))
    patch(script, "with_batches", lambda kind, seed: {"no clusters": []})
    patch(script, "list_datasets", lambda: ["digits"])


RUNS = [  # script, how its measuring is replaced, arguments; what is kept; other arguments
    ("explain", fake_explain, [], {"explain"}, ["--draws", "3"]),
    ("transfer", fake_transfer, [], {"transfer"}, ["--seeds", "1"]),
    ("order", fake_order, ["ties"], {"order-ties"}, ["ties", "--neighbors", "30"]),
    ("order", fake_order, ["ties"], {"order-ties"}, ["ties", "--runs", "2"]),
    ("order", fake_order, ["consensus"], {"order-consensus"}, ["consensus", "--datasets", "ngs"]),
    ("order", fake_order, ["tensor"], {"order-tensor"}, ["tensor", "--datasets", "ngs"]),
    ("eigenvectors", fake_eigenvectors, [], {"eigen-solvers", "eigen-columns"}, ["--n", "30000"]),
    ("optimum", fake_optimum, [], {"optimum"}, ["--method", "LRR"]),
    ("structure", fake_structure, [],
     {f"structure-{one}" for one in ("noise", "planted", "batches", "datasets")}, ["--sets", "2"]),
    ("claims", fake_claims, [],
     {f"claims-{one}" for one in ("weights", "iterations", "starts", "untuned", "lrr")}, ["lrr"]),
]  # fmt: skip


@pytest.mark.slow  # imports the scripts
@pytest.mark.parametrize(("name", "fake", "args", "kept", "others"), RUNS)
def test_a_whole_run_keeps_the_table(
    pt, name, fake, args, kept, others, tmp_path, monkeypatch, capsys
):
    script = benchmark(name)
    fake(script, monkeypatch.setattr)
    monkeypatch.setattr(pt, "KEPT", tmp_path)
    monkeypatch.setattr(sys, "argv", [name, *others])
    script.main()
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sys, "argv", [name, *args])
    script.main()
    assert {path.stem for path in tmp_path.iterdir()} == kept
    assert capsys.readouterr().out.startswith("| ")
    headers = {
        pt.MARK.match(before)[1]: lines[0]
        for page in pt.pages()
        for before, lines in tables(page.read_text("utf-8"))
        if pt.MARK.match(before)
    }
    for one in kept:
        with case(one):
            assert len(pt.body(one, headers[one])) == len(pt.read(tmp_path / f"{one}.jsonl")) > 0


def test_every_kept_table_has_its_script(pt):
    assert {path.stem for path in pt.KEPT.iterdir()} == set().union(*(run[3] for run in RUNS))
