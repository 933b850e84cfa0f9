import csv
import dataclasses
import re
from pathlib import Path

import pytest

from polyspan.datasets import list_datasets
from polyspan.datasets.load import BUILT_IN
from polyspan.datasets.registry import (
    UnknownDatasetError,
    cache_dir,
    file_problem,
    find_entry,
    locate,
    read_registry,
)


def test_registry_says_what_the_sources_say(data_dir):
    with (data_dir / "SOURCES.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 13
    for row in rows:
        entry = read_registry()[row["name"]]
        assert (entry.file, entry.repository, entry.commit, entry.path, entry.sha256) == (
            *(row[key] for key in ("file", "repo", "commit", "path", "sha256")),
        )
        assert entry.bytes == int(row["bytes"])
    assert set(list_datasets()) == {row["name"] for row in rows} | {"digits", "yale_mtv"}


def test_every_entry_is_complete():
    for entry in read_registry().values():
        assert entry.title
        assert entry.licence
        assert entry.samples > entry.classes > 1
        if entry.built_in:
            assert entry.name in BUILT_IN
        else:
            assert re.fullmatch("[0-9a-f]{40}", entry.commit)
            assert re.fullmatch("[0-9a-f]{64}", entry.sha256) or entry.git_blob


def test_url_is_built_from_repository_commit_and_path(monkeypatch):
    monkeypatch.delenv("POLYSPAN_MIRROR", raising=False)
    entry = find_entry("yale_mtv")
    tail = "qinghai-zheng/CBF-MSC/0bdccf2ab592e14af8b0d33bd11a2861dcf77fe1/data/yale_mtv.mat"
    assert entry.url() == f"https://raw.githubusercontent.com/{tail}"
    monkeypatch.setenv("POLYSPAN_MIRROR", "http://mirror.example/")
    assert entry.url() == f"http://mirror.example/{tail}"
    assert entry.url("http://other.example") == f"http://other.example/{tail}"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        *[("NGs", "ngs"), ("3-sources", "three_sources"), ("three-sources", "three_sources")],
        *[("3Sources", "three_sources"), ("BBC Sport", "bbcsport"), ("MSRC-v1", "msrc_v1")],
        *[("100leaves", "leaves100"), ("Scene-15", "scene15"), ("Reuters-1200", "reuters1200")],
    ],
)
def test_spellings(spelling, name):
    assert find_entry(spelling).name == name


def test_no_spelling_means_two_data_sets():
    spellings = [s for e in read_registry().values() for s in {e.name, *e.aliases}]
    plain = ["".join(c for c in s.lower() if c.isalnum()) for s in spellings]
    assert len(set(plain)) == len(plain)


def test_unknown_name_answers_with_the_close_and_the_known_ones():
    with pytest.raises(
        UnknownDatasetError, match=r"'bbsport', did you mean 'bbcsport'\? Known: digits, three"
    ):
        find_entry("bbsport")
    with pytest.raises(UnknownDatasetError, match=r"called 'zzzz'\. Known: digits, .*yale_mtv$"):
        find_entry("zzzz")


def test_cache_dir(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path / "kept"))
    assert cache_dir() == tmp_path / "kept"
    monkeypatch.delenv("POLYSPAN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir().name == "polyspan"
    assert cache_dir() != Path("polyspan")


def test_own_folder_comes_before_the_cache(monkeypatch, tmp_path):
    for folder in ("own", "cache"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path / "cache"))
    entry = find_entry("ngs")
    assert locate(entry) is None
    (tmp_path / "cache" / "ngs.mat").touch()
    assert locate(entry) == ("cache", tmp_path / "cache" / "ngs.mat")
    (tmp_path / "own" / "ngs.mat").touch()
    assert locate(entry) == ("POLYSPAN_DATA", tmp_path / "own" / "ngs.mat")
    monkeypatch.delenv("POLYSPAN_DATA")
    assert locate(entry) == ("cache", tmp_path / "cache" / "ngs.mat")


def test_file_problem(data_dir, tmp_path):
    entry = find_entry("ngs")
    content = (data_dir / "ngs.mat").read_bytes()
    path = tmp_path / "ngs.mat"
    path.write_bytes(content)
    assert file_problem(path, entry) is None
    path.write_bytes(content[:-1])
    assert file_problem(path, entry) == "it has 100,118 bytes, expected 100,119"
    path.write_bytes(content[:-1] + b"?")
    assert file_problem(path, entry) == "its sha256 is not the published one"


def test_git_blob_hash(data_dir, tmp_path):
    with (data_dir / "SOURCES.csv").open(newline="") as stream:
        blobs = {row["name"]: row["git_blob"] for row in csv.DictReader(stream)}
    entry = dataclasses.replace(find_entry("ngs"), sha256="", bytes=None, git_blob=blobs["ngs"])
    assert file_problem(data_dir / "ngs.mat", entry) is None
    wrong = tmp_path / "ngs.mat"
    wrong.write_bytes((data_dir / "ngs.mat").read_bytes() + b"\0")
    assert file_problem(wrong, entry) == "its git blob hash is not the published one"
