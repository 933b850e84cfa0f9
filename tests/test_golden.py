"""Nothing changes by accident: every method gives what it gave before, see golden.py."""

import json

import golden
import pytest

STORED = json.loads(golden.FILE.read_text())
STRICT = STORED["machine"] == golden.machine()


def test_every_case_is_stored():
    """Only a new method, of which nothing is stored, may wait for `golden.py --write`."""
    assert set(STORED["cases"]) <= set(golden.cases())
    known = {title.split()[0] for title in STORED["cases"]}
    waiting = set(golden.cases()) - set(STORED["cases"])
    assert [title for title in waiting if title.split()[0] in known] == []


def marked(title):
    """A case with its marks; the quick ones are on planted data."""
    name = golden.cases()[title][1]
    marks = [pytest.mark.data] if name in golden.PUBLISHED else []
    if name in ("many", "digits") or title.startswith(("consensus", "count_clusters")):
        marks.append(pytest.mark.slow)
    return pytest.param(title, marks=marks)


@pytest.mark.parametrize("title", [marked(title) for title in STORED["cases"]])
def test_as_it_was(title, request):
    _, name, tol = golden.cases()[title]
    if title in ("lmvsc on planted", "lmvsc normalize=False") and not STRICT:
        pytest.skip("the k-means of its anchors ends elsewhere on other processors")
    if name in golden.PUBLISHED:
        request.getfixturevalue("data_dir")
    found = golden.run_case(title)
    assert golden.differences(found, STORED["cases"][title], tol, STRICT) == []
