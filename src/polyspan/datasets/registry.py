"""The data sets known by name (registry.toml, omics.toml, more.toml) and where their files are."""

import functools
import hashlib
import os
import tomllib
import urllib.parse
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from polyspan.runtime.messages import unknown_name

REGISTRIES = ("registry", "omics", "more")
DOWNLOAD_BASE = "https://raw.githubusercontent.com"


class UnknownDatasetError(ValueError):
    """There is no data set of that name."""


@dataclass(frozen=True)
class File:
    """One published file: where it comes from, and what its bytes must be."""

    name: str
    repository: str
    path: str
    commit: str = ""  # empty if the file was converted from the one at `path`: no download
    bytes: int | None = None
    sha256: str = ""
    git_blob: str = ""

    def url(self, base_url: str | None = None) -> str:
        """The download address, at `base_url`, $POLYSPAN_MIRROR or GitHub."""
        base = base_url or os.environ.get("POLYSPAN_MIRROR") or DOWNLOAD_BASE
        path = urllib.parse.quote(f"{self.repository}/{self.commit}/{self.path}")
        return f"{base.rstrip('/')}/{path}"


@dataclass(frozen=True)
class Entry:
    """One data set of the registry; a built-in data set has no files."""

    name: str
    title: str
    samples: int
    classes: int
    views: dict[str, int]
    license: str
    aliases: tuple[str, ...] = ()
    preparation: str = ""  # what the loader does; empty if the views are as published
    files: tuple[File, ...] = ()

    @property
    def built_in(self) -> bool:
        """Whether the data set needs no file."""
        return not self.files


@functools.cache
def read_registry() -> dict[str, Entry]:
    """All entries by name, in the order of the files."""
    folder = resources.files("polyspan.datasets")
    texts = [folder.joinpath(f"{name}.toml").read_text("utf-8") for name in REGISTRIES]
    tables = [item for text in texts for item in tomllib.loads(text).items()]
    return {name: _entry(name, fields) for name, fields in tables}


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    source = {key: fields.pop(key) for key in ("repository", "commit") if key in fields}
    files = tuple(File(**source, **file) for file in fields.pop("files", ()))
    return Entry(name=name, files=files, **fields)


def list_datasets() -> list[str]:
    """Names that `load_dataset` knows, in the order of the registry.

    Examples
    --------
    >>> from polyspan.datasets import list_datasets
    >>> list_datasets()
    ['digits', 'three_sources', 'bbcsport', ..., 'wikipedia']
    """
    return list(read_registry())


def find_entry(name: str) -> Entry:
    """The entry with that name; case, dashes, underscores and spaces do not matter.

    Examples
    --------
    >>> find_entry("3-Sources").name
    'three_sources'
    >>> find_entry("bbsport")
    Traceback (most recent call last):
        ...
    polyspan.datasets.registry.UnknownDatasetError: no data set is called 'bbsport', did you mean
    'bbcsport'? Known: digits, ...
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of a data set, not {name!r:.60}")
    spellings = {
        spelling: entry
        for entry in read_registry().values()
        for spelling in (entry.name, *entry.aliases)
    }
    for spelling, entry in spellings.items():
        if _plain(spelling) == _plain(name):
            return entry
    names = {spelling: entry.name for spelling, entry in spellings.items()}
    raise UnknownDatasetError(
        unknown_name("data set", name, list_datasets(), spellings=names, most=2, cutoff=0.7)
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def cache_dir() -> Path:
    """Where downloads are kept: $POLYSPAN_CACHE, or the system's cache folder."""
    if folder := os.environ.get("POLYSPAN_CACHE"):
        return Path(folder)
    import pooch

    return Path(pooch.os_cache("polyspan"))


def data_dirs() -> list[Path]:
    """The folders in $POLYSPAN_DATA, separated like those in $PATH."""
    return [Path(one) for one in os.environ.get("POLYSPAN_DATA", "").split(os.pathsep) if one]


def locate(file: File) -> tuple[str, Path] | None:
    """Where the file is: ("POLYSPAN_DATA" or "cache", path), or None if it is in neither."""
    places = [*(("POLYSPAN_DATA", folder) for folder in data_dirs()), ("cache", cache_dir())]
    for place, folder in places:
        if (path := folder / file.name).is_file():
            return place, path
    return None


def where(entry: Entry) -> str:
    """Where the files are: "POLYSPAN_DATA", "cache", "both", or "in part", "not here"; "built in".

    Examples
    --------
    >>> where(find_entry("digits"))
    'built in'
    """
    if entry.built_in:
        return "built in"
    found = [locate(file) for file in entry.files]
    places = {one[0] for one in found if one}
    if None in found:
        return "in part" if places else "not here"
    return "both" if len(places) > 1 else places.pop()


def file_problem(path: Path, file: File) -> str | None:
    """What is wrong with the file's bytes, in a few words; None if they are as published."""
    content = path.read_bytes()
    if file.bytes is not None and len(content) != file.bytes:
        return f"it has {len(content):,} bytes, expected {file.bytes:,}"
    if file.sha256 and hashlib.sha256(content).hexdigest() != file.sha256:
        return "its sha256 is not the published one"
    blob = b"blob %d\0" % len(content) + content
    if file.git_blob and hashlib.sha1(blob).hexdigest() != file.git_blob:
        return "its git blob hash is not the published one"
    return None
