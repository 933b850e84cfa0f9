import json
import re

import pytest
from report.pages import EVIDENCE, Page, merged, report

from polyspan.selection import count_clusters


def count_section(text):
    part = text[text.index('<section id="count"') :]
    return part[: part.index("</section>")]


def test_evidence_is_shown_by_its_names(tmp_path, digits):
    part = count_section(report(tmp_path, *digits, evidence=EVIDENCE))
    cells = re.findall(r"<td[^>]*>(?:<strong>)?([^<]*)", part.partition("<details>")[0])
    none = "\u2013"
    assert [cells[k : k + 6] for k in range(0, len(cells), 6)] == [
        ["8", none, none, none, "1", ""],
        ["9", "0.100", "0.800", "0.250", "0", ""],
        ["10", "0.432", "0.900", "1", "3", "chosen"],
        ["11", "0.200", "0.700", "0.500", "0", ""],
    ]
    names = re.findall(r'data-name="(\w+)"', part)
    assert names == ["gaps", "stability", "scores", "votes", "eigenvalues"]
    points = [figure.count("<use ") for figure in part.split("<figure")[1:]]
    assert points == [3, 3, 3, 4, 19]  # eigenvalues up to 1.5 times the last number
    assert part.count("stroke-dasharray") == 5  # the chosen number


def test_a_number_that_no_setting_proposes_is_still_marked(tmp_path, digits):
    part = count_section(report(tmp_path, *digits, evidence=EVIDENCE | {"chosen": 6}))
    assert Page(part).shown.count("chosen") == 1


def test_whose_evidence_is_shown(tmp_path, digits):
    data, model = digits
    counted = merged(model, evidence_=EVIDENCE | {"gaps": [0.6789, 0.1, 0.2]})
    assert "0.679" in count_section(report(tmp_path, data, counted, "a"))
    part = count_section(report(tmp_path, data, counted, "b", evidence=EVIDENCE))
    assert "0.432" in part
    assert "0.679" not in part
    text = report(tmp_path, data, merged(model), "c")
    assert 'id="count"' not in text
    assert 'id="members"' in text


@pytest.mark.slow
def test_evidence_of_a_count_is_tables_and_charts(tmp_path, digits):
    data, model = digits
    number, evidence = count_clusters(data.views, random_state=0)
    evidence = json.loads(json.dumps(evidence))  # as the settings file has it
    assert number == evidence["chosen"]
    text = report(tmp_path, data, model, evidence=evidence)
    part = count_section(text)
    listed, top, bottom = (Page(table) for table in re.findall(r"<table.*?</table>", part, re.S))
    heads = [text for tag, text in top.texts if tag in ("button", "bdi") and text.strip()]
    assert heads == ["Clusters", "gaps", "stability", "scores", "votes", "Choice"]
    counts = {*evidence["candidates"], *map(int, evidence["votes"]), number}
    rows = [evidence["shortlist"], counts, evidence["settings"]]
    assert part.count("<tr>") == len(rows) + sum(map(len, rows))
    heads = [text for tag, text in listed.texts if tag in ("button", "bdi") and text.strip()]
    assert heads[0] == "Clusters"
    assert "Proposed by" in heads
    assert str(number) in listed.shown
    assert top.shown.count("chosen") == 1
    assert "standard+unit" in bottom.shown
    assert re.findall(r'<figure data-name="(\w+)"', part) == [
        "gaps", "stability", "scores", "votes", "eigenvalues"
    ]  # fmt: skip
    words = Page(part).shown
    assert "[" not in words  # no list as Python prints it
    assert "{" not in words


@pytest.mark.slow
def test_the_short_list_and_its_splits(tmp_path, digits):
    row = {"n_clusters": 10, "rules": ["settings", "views"], "score": 0.81, "gap": 0.4321,
           "stability": 0.9, "modularity": 0.654, "agreement": None}  # fmt: skip
    steps = [
        {"from": 9, "to": 10, "splits": {"0": [0, 3, 4]}},
        {"from": 10, "to": 12, "splits": {}},
    ]
    evidence = EVIDENCE | {"shortlist": [row, row | {"n_clusters": 9}], "nesting": steps}
    words = Page(count_section(report(tmp_path, *digits, evidence=evidence))).shown
    assert "settings, views" in words
    assert "0.654" in words
    assert "9 to 10 clusters: 0 into 0, 3 and 4" in " ".join(words.split())
    assert "10 to 12 clusters: no cluster splits" in " ".join(words.split())
    plain = count_section(report(tmp_path, *digits, "old", evidence=EVIDENCE))  # without a list
    assert "Numbers to consider" not in plain
