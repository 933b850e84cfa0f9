"""Nothing changes by accident: every method gives what it gave before, see golden.py."""

import json

import golden
import pytest

STORED = json.loads(golden.FILE.read_text())
STRICT = STORED["machine"] == golden.machine()


def test_every_case_is_stored():
    assert set(STORED["cases"]) == set(golden.cases())


@pytest.mark.parametrize("title", golden.cases())
def test_as_it_was(title, request):
    _, name, tol = golden.cases()[title]
    if name in golden.PUBLISHED:
        request.getfixturevalue("data_dir")
    found = golden.run_case(title)
    assert golden.differences(found, STORED["cases"][title], tol, STRICT) == []
