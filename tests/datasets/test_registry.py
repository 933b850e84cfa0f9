import csv
import dataclasses
import os
import re
from pathlib import Path

import pytest

from polyspan.datasets import fetch_dataset, list_datasets, load_dataset
from polyspan.datasets.load import BUILT_IN
from polyspan.datasets.registry import (
    UnknownDatasetError,
    cache_dir,
    file_problem,
    find_entry,
    locate,
    read_registry,
    where,
)


def sources(*folders):
    """The rows of SOURCES.csv by file."""
    rows = {}
    for folder in folders:
        with (folder / "SOURCES.csv").open(newline="") as stream:
            rows |= {row["file"]: row for row in csv.DictReader(stream)}
    return rows


def test_registry_says_what_the_sources_say(data_dir, omics_dir):
    rows = sources(data_dir, omics_dir)
    assert len(rows) == 13 + 18
    known = {name: read_registry()[name].files for name in list_datasets()}
    for row in rows.values():
        [file] = [file for file in known[row["name"]] if file.name == row["file"]]
        assert (file.repository, file.commit, file.path, file.sha256) == (
            *(row[key] for key in ("repo", "commit", "path", "sha256")),
        )
        assert file.bytes == int(row["bytes"])
    published = {name: files for name, files in known.items() if name not in converted()}
    assert {file.name for files in published.values() for file in files} == {*rows, "yale_mtv.mat"}
    assert set(published) == {row["name"] for row in rows.values()} | {
        *("digits", "wdbc", "yale_mtv", "nutrimouse_diet"),
    }


def converted():
    """Names of the data sets whose files were converted from published ones."""
    entries = read_registry().items()
    return [name for name, entry in entries if any(not file.commit for file in entry.files)]


def test_converted_files_are_those_of_the_sources(more_dir):
    rows = sources(more_dir)
    assert [f"{name}.npz" for name in converted()] == list(rows)
    for name in converted():
        [file], row = find_entry(name).files, rows[f"{name}.npz"]
        assert (file.repository, file.path, file.sha256) == (
            *(row[key] for key in ("repository", "path", "sha256")),
        )
        data = load_dataset(name)
        assert data.labels.shape == (int(row["samples"]),)
        assert [view.shape[1] for view in data.views] == [int(d) for d in row["features"].split()]
        assert data.n_clusters == int(row["classes"])


def test_converted_files_cannot_be_downloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path))
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path))
    with pytest.raises(OSError, match=r"^orl cannot be downloaded.*ORL\.mat.*POLYSPAN_DATA"):
        fetch_dataset("orl")


def test_every_entry_is_complete():
    for entry in read_registry().values():
        assert entry.title
        assert entry.license
        assert entry.samples > entry.classes > (1 if entry.name != "gbm" else -1)
        if entry.built_in:
            assert entry.name in BUILT_IN
        for file in entry.files:
            assert re.fullmatch("[0-9a-f]{40}", file.commit) or entry.name in converted()
            assert re.fullmatch("[0-9a-f]{64}", file.sha256) or file.git_blob
        assert entry.preparation or len(entry.files) == 1


def test_url_is_built_from_repository_commit_and_path(monkeypatch):
    monkeypatch.delenv("POLYSPAN_MIRROR", raising=False)
    file = find_entry("yale_mtv").files[0]
    tail = "qinghai-zheng/CBF-MSC/0bdccf2ab592e14af8b0d33bd11a2861dcf77fe1/data/yale_mtv.mat"
    assert file.url() == f"https://raw.githubusercontent.com/{tail}"
    monkeypatch.setenv("POLYSPAN_MIRROR", "http://mirror.example/")
    assert file.url() == f"http://mirror.example/{tail}"
    assert file.url("http://other.example") == f"http://other.example/{tail}"


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
    with pytest.raises(TypeError, match=r"name must be the name of a data set, not \['ngs'\]"):
        find_entry(["ngs"])
    with pytest.raises(UnknownDatasetError, match=r"called 'zzzz'\. Known: digits, .*wikipedia$"):
        find_entry("zzzz")


def test_cache_dir(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path / "kept"))
    assert cache_dir() == tmp_path / "kept"
    monkeypatch.delenv("POLYSPAN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_dir().name == "polyspan"
    assert cache_dir() != Path("polyspan")


def test_own_folders_come_before_the_cache(monkeypatch, tmp_path):
    for folder in ("own", "other", "cache"):
        (tmp_path / folder).mkdir()
    folders = ["", str(tmp_path / "own"), str(tmp_path / "other")]
    monkeypatch.setenv("POLYSPAN_DATA", os.pathsep.join(folders))
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ngs.mat").touch()  # an empty name in $POLYSPAN_DATA is not the current folder
    file = find_entry("ngs").files[0]
    assert locate(file) is None
    (tmp_path / "cache" / "ngs.mat").touch()
    assert locate(file) == ("cache", tmp_path / "cache" / "ngs.mat")
    (tmp_path / "other" / "ngs.mat").touch()
    assert locate(file) == ("POLYSPAN_DATA", tmp_path / "other" / "ngs.mat")
    (tmp_path / "own" / "ngs.mat").touch()
    assert locate(file) == ("POLYSPAN_DATA", tmp_path / "own" / "ngs.mat")
    monkeypatch.delenv("POLYSPAN_DATA")
    assert locate(file) == ("cache", tmp_path / "cache" / "ngs.mat")


def test_where_the_files_of_one_data_set_are(monkeypatch, tmp_path):
    for folder in ("own", "cache"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path / "cache"))
    entry = find_entry("gbm")
    assert where(find_entry("digits")) == "built in"
    assert where(entry) == "not here"
    for file in entry.files[1:]:
        (tmp_path / "own" / file.name).touch()
        assert where(entry) == "in part"
    (tmp_path / "cache" / entry.files[0].name).touch()
    assert where(entry) == "both"
    (tmp_path / "own" / entry.files[0].name).touch()
    assert where(entry) == "POLYSPAN_DATA"


def test_file_problem(data_dir, tmp_path):
    file = find_entry("ngs").files[0]
    content = (data_dir / "ngs.mat").read_bytes()
    path = tmp_path / "ngs.mat"
    path.write_bytes(content)
    assert file_problem(path, file) is None
    path.write_bytes(content[:-1])
    assert file_problem(path, file) == "it has 100,118 bytes, expected 100,119"
    path.write_bytes(content[:-1] + b"?")
    assert file_problem(path, file) == "its sha256 is not the published one"


def test_git_blob_hash(data_dir, tmp_path):
    blob = sources(data_dir)["ngs.mat"]["git_blob"]
    ngs = find_entry("ngs").files[0]
    file = dataclasses.replace(ngs, sha256="", bytes=None, git_blob=blob)
    assert file_problem(data_dir / "ngs.mat", file) is None
    wrong = tmp_path / "ngs.mat"
    wrong.write_bytes((data_dir / "ngs.mat").read_bytes() + b"\0")
    assert file_problem(wrong, file) == "its git blob hash is not the published one"
