import csv
import random
import re

import pytest

from harness.summaries import ranks, read_paper, summarize
from harness.tables import report
from polyspan.metrics import PAPER_SCORES, SCORES


def row(method="GRMSC", seed=0, nmi=0.5, *, entropy=1.0, **fields):
    """A row of the store; the key is whatever decides the result."""
    values = {
        "protocol": "p",
        "dataset": "NGs",
        "source": {"name": "ngs"},
        "method": method,
        "paper": method,
        "selection": "default",
        "params": {},
        "seed": seed,
        "stage": "final",
        "status": "ok",
        "reason": None,
        "converged": True,
        "seconds": 1.0,
        **dict.fromkeys(SCORES, 0.25),
        "nmi": nmi,
        "avg_entropy": entropy,
    } | fields
    if values["status"] != "ok":
        values |= dict.fromkeys((*SCORES, "converged"))
    return {"key": str((values["dataset"], values["params"], seed)), **values}


def cells(text, title):
    """The body of a Markdown table under a heading."""
    part = text.split(f"## {title}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_mean_and_deviation():
    text = report([row(seed=0, nmi=0.5), row(seed=1, nmi=0.7), row(seed=2, nmi=0.9)])
    (line,) = cells(text, "Results")
    assert line[:5] == ["NGs", "GRMSC", "default", "**0.7000(0.2000)**", "**0.2500(0.0000)**"]
    assert line[9:] == ["3", "0", "0", "1.00"]
    (line,) = cells(report([row(nmi=0.5)]), "Results")
    assert line[3] == "**0.5000**"  # one run has no deviation


def test_the_best_is_bold_and_entropy_is_best_when_low():
    text = report([row("a", nmi=0.9, entropy=2.0), row("b", nmi=0.8), row("c", nmi=0.90001)])
    table = {line[1]: line for line in cells(text, "Results")}
    assert [table[m][3].startswith("**") for m in "abc"] == [True, False, True]  # a tie as printed
    assert [table[m][6].startswith("**") for m in "abc"] == [False, True, True]


def test_selections_are_never_ranked_together():
    rows = [
        row("a", nmi=0.6),
        row("b", nmi=0.5),
        row("a", nmi=0.9, selection="tuned"),
        row("b", nmi=0.8, selection="tuned"),
        row("c", nmi=0.7, selection="label-free"),
    ]
    text = report(rows)
    bold = {(line[1], line[2]) for line in cells(text, "Results") if line[3].startswith("**")}
    assert bold == {("a", "default"), ("a", "tuned"), ("c", "label-free")}
    places = {(line[0], line[1]): float(line[3]) for line in cells(text, "Ranks")}
    assert places == {
        ("default", "a"): 1,
        ("default", "b"): 2,
        ("tuned", "a"): 1,
        ("tuned", "b"): 2,
        ("label-free", "c"): 1,
    }


def test_what_has_nothing_to_tune_is_compared_with_what_was_tuned():
    rows = [
        row("a", nmi=0.6, selection="tuned"),
        row("GMC", nmi=0.7, selection="nothing to tune"),
        row("b", nmi=0.5, selection="tuned"),
        row("a", nmi=0.8),
    ]
    text = report(rows)
    bold = {(line[1], line[2]) for line in cells(text, "Results") if line[3].startswith("**")}
    assert bold == {("GMC", "nothing to tune"), ("a", "default")}
    places = {(line[0], line[1]): float(line[3]) for line in cells(text, "Ranks")}
    assert places == {
        ("default", "a"): 1,
        ("tuned", "a"): 2,
        ("tuned", "b"): 3,
        ("nothing to tune", "GMC"): 1,
    }


def test_runs_in_different_orders_are_not_mixed():
    rows = [row(nmi=0.9, order="file", key="1"), row(nmi=0.5, order="shuffled", key="2")]
    (one, two) = summarize(rows)
    assert {one.order: one.mean["nmi"], two.order: two.mean["nmi"]} == {
        "file": 0.9,
        "shuffled": 0.5,
    }
    text = report(rows)
    assert re.findall(r"^# (.*)", text, flags=re.M) == [
        "p, samples in the order of the file",
        "p, samples shuffled",
    ]
    assert "Samples are in the order of the file. Mean" in text
    assert "Samples are shuffled. Mean" in text
    assert text.count("**0.9000**") == text.count("**0.5000**") == 1
    orders = [line["order"] for line in csv.DictReader(report(rows, "csv").splitlines())]
    assert orders == ["file", "shuffled"]


def test_ranks_over_data_sets():
    rows = [
        row("a", nmi=0.6, entropy=0.1),
        row("b", nmi=0.6, entropy=0.2),
        row("c", nmi=0.7, entropy=0.3),
        row("a", nmi=0.9, dataset="Q"),
        row("b", status="failed", reason="x", dataset="Q"),
        row("c", nmi=0.5, dataset="Q"),
    ]
    found = ranks(summarize(rows))  # NGs, then Q
    assert found["default", "a"]["nmi"] == [2.5, 1]
    assert found["default", "b"]["nmi"] == [2.5, 3]  # without a result: last
    assert found["default", "c"]["nmi"] == [1, 2]
    assert [found["default", m]["avg_entropy"][0] for m in "abc"] == [1, 2, 3]
    lines = {line[1]: line[2:4] for line in cells(report(rows), "Ranks")}
    assert lines == {"a": ["2", "1.75"], "b": ["2", "2.75"], "c": ["2", "1.50"]}


def test_failed_jobs_are_counted_and_explained():
    tune = {"selection": "tuned", "stage": "tune"}
    rows = [
        row(selection="tuned", seed=0, nmi=0.5),
        row(selection="tuned", seed=1, status="timeout", reason="stopped after 9 s"),
        row(**tune, params={"lam1": 1.0}),
        row(**tune, params={"lam1": 2.0}, status="failed", reason="ValueError: a|b"),
        row(**tune, params={"lam1": 3.0}, status="failed", reason="ValueError: a|b"),
        row("lost", **tune, status="failed", reason="dead"),
    ]
    text = report(rows)
    table = {line[1]: line for line in cells(text, "Results")}
    assert table["GRMSC"][9:11] == ["1", "1 run, 2 settings"]
    assert table["lost"][3:11] == ["-"] * 6 + ["0", "1 setting"]
    assert "| NGs | GRMSC | tuned (3) | tune | failed | 2 | ValueError: a\\|b |" in text
    assert "| NGs | GRMSC | tuned (3) | final | timeout | 1 | stopped after 9 s |" in text
    lines = {line["method"]: line for line in csv.DictReader(report(rows, "csv").splitlines())}
    assert (lines["GRMSC"]["failed_runs"], lines["GRMSC"]["failed_settings"]) == ("1", "2")
    assert lines["lost"]["nmi_mean"] == ""
    assert "Failed jobs" not in report(rows[:1])


def test_not_converged_is_counted():
    (line,) = cells(report([row(seed=0), row(seed=1, converged=False)]), "Results")
    assert line[11] == "1"


def test_the_last_answer_to_a_job_counts():
    rows = [row(status="failed", reason="x"), row(nmi=0.7)]
    (line,) = cells(report(rows), "Results")
    assert line[3] == "**0.7000**"
    assert line[9:11] == ["1", "0"]


def test_runs_at_two_settings_are_not_mixed():
    old = [row(seed=s, nmi=0.1, params={"lam1": 1.0}) for s in (0, 1)]
    text = report([*old, row(nmi=0.9, params={"lam1": 2.0})])
    (line,) = cells(text, "Results")
    assert line[3] == "**0.9000**"
    assert "2 runs at settings that are no longer the chosen ones" in text
    assert "no longer" not in report(old)


def test_chosen_settings_are_printed():
    params = {"lam1": 100.0, "scale": None}
    rows = [row(selection="tuned", params=params), row("plain")]
    tuning = [row(selection="tuned", stage="tune", params={"lam1": x}, seed=seed)
              for x, seed in ((1.0, 0), (100.0, 0), (100.0, 1), (100.0, 2))]  # fmt: skip
    lines = cells(report(rows + tuning), "Settings")
    assert ["NGs", "GRMSC", "tuned (2)", "lam1=100.0, scale=None", "2"] in lines
    assert ["NGs", "plain", "default", "default", ""] in lines


def test_the_paper_beside_ours():
    rows = [
        row(nmi=0.9447, entropy=0.2052, selection="tuned"),
        row("RMSC (raw)", nmi=0.2, paper="RMSC"),
        row("mine"),
        row(source={"name": "ngs", "n_samples": 50}, dataset="part"),
        row("AMGL", status="failed", reason="x"),
    ]
    lines = {line[1]: line for line in cells(report(rows), "Comparison with the paper")}
    assert set(lines) == {"GRMSC", "RMSC (raw)", "AMGL"}
    assert lines["GRMSC"][:5] == ["NGs", "GRMSC", "tuned", "GRMSC", "0.9547(0.0000) -0.0100"]
    assert lines["GRMSC"][7] == "0.1052(0.0000) +0.1000"
    assert lines["RMSC (raw)"][3:5] == ["RMSC", "0.1580(0.0099) +0.0420"]
    assert lines["AMGL"][4] == "0.8987(0.0464)"
    flat = {line["method"]: line for line in csv.DictReader(report(rows[:3], "csv").splitlines())}
    assert float(flat["GRMSC"]["nmi_difference"]) == pytest.approx(-0.01)
    assert float(flat["GRMSC"]["nmi_paper"]) == 0.9547
    assert flat["mine"]["nmi_paper"] == flat["mine"]["nmi_difference"] == ""
    assert "Comparison with the paper" not in report([row("mine")])


def test_the_figures_of_the_paper():
    paper = read_paper()
    methods = {"LRR_BSV", "MSC_Naive", "GRMSC_Naive", "GRMSC", "RMSC", "AMGL", "LMSC", "MLRSSC",
               "GMC"}  # fmt: skip
    datasets = {"three_sources", "bbcsport", "movies617", "ngs", "prokaryotic", "yale_images"}
    assert set(paper) == {(dataset, method) for dataset in datasets for method in methods}
    assert paper["three_sources", "LRR_BSV"] == dict(
        zip(
            PAPER_SCORES,
            [(0.6348, 0.0078), (0.6783, 0.0136), (0.6158, 0.0185), (0.7958, 0.0150),
             (0.6736, 0.0148), (0.8356, 0.0070)],
            strict=True,
        )
    )  # fmt: skip
    assert paper["movies617", "GMC"]["rand_index"] == (0.3995, 0.0)
    assert paper["yale_images", "AMGL"]["precision"] == (0.3378, 0.0431)
    assert paper["prokaryotic", "MLRSSC"]["avg_entropy"] == (1.0837, 0.0012)
    for dataset in datasets:  # as the paper's bold type says
        assert max(methods, key=lambda m: paper[dataset, m]["nmi"][0]) == "GRMSC"
        assert min(methods, key=lambda m: paper[dataset, m]["avg_entropy"][0]) == "GRMSC"


def test_the_order_is_the_papers_whatever_the_order_of_the_rows():
    names = ["zeta", "GRMSC", "alpha", "AMGL", "LRR_BSV"]
    rows = [
        row(name, seed, nmi=seed / 7, dataset=label, source={"name": source})
        for name in names
        for seed in range(3)
        for label, source in (("Own", "own"), ("NGs", "ngs"), ("3-Sources", "three_sources"))
    ]
    first = report(rows)
    order = [(line[0], line[1]) for line in cells(first, "Results")]
    methods = ["LRR_BSV", "AMGL", "GRMSC", "alpha", "zeta"]
    assert order == [(d, m) for d in ("3-Sources", "NGs", "Own") for m in methods]
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        for kind in ("markdown", "latex", "csv"):
            assert report(rows, kind) == report(rows[::-1], kind)
        assert report(rows) == first


def test_every_protocol_has_its_own_tables():
    text = report([row(nmi=0.1), row(nmi=0.9, protocol="q")])
    assert re.findall(r"^# (.*)", text, flags=re.M) == ["p", "q"]
    assert text.count("**0.1000**") == text.count("**0.9000**") == 1


def test_latex():
    text = report([row("MSC_Naive", params={"a_b": "50%"}), row("worse", nmi=0.1)], "latex")
    assert r"NGs & MSC\_Naive & default & \textbf{0.5000} &" in text
    assert r"worse & default & 0.1000 &" in text
    assert r"a\_b=50\%" in text
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 4
    for table in re.findall(r"\\begin\{tabular\}\{(l+)\}(.*?)\\end", text, flags=re.S):
        lines = [line for line in table[1].splitlines() if line.endswith(r"\\")]
        assert {line.count(" & ") + 1 for line in lines} == {len(table[0])}


def test_wrong_asks():
    with pytest.raises(ValueError, match="format must be 'markdown' or 'latex' or 'csv'; got 'x'"):
        report([row()], "x")
    with pytest.raises(ValueError, match="the store has no rows"):
        report([])
