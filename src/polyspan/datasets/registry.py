"""The data sets known by name (registry.toml) and where their files are."""

import functools
import hashlib
import os
import tomllib
import urllib.parse
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from polyspan.inputs.names import unknown_name

DOWNLOAD_BASE = "https://raw.githubusercontent.com"


class UnknownDatasetError(ValueError):
    """There is no data set of that name."""


@dataclass(frozen=True)
class Entry:
    """One data set of registry.toml; `file` is empty for a built-in data set."""

    name: str
    title: str
    aliases: list[str]
    samples: int
    classes: int
    views: dict[str, int]
    licence: str
    file: str = ""
    repository: str = ""
    commit: str = ""
    path: str = ""
    bytes: int | None = None
    sha256: str = ""
    git_blob: str = ""

    @property
    def built_in(self) -> bool:
        """Whether the data set needs no file."""
        return not self.file

    def url(self, base_url: str | None = None) -> str:
        """The download address, at `base_url`, $POLYSPAN_MIRROR or GitHub."""
        base = base_url or os.environ.get("POLYSPAN_MIRROR") or DOWNLOAD_BASE
        path = urllib.parse.quote(f"{self.repository}/{self.commit}/{self.path}")
        return f"{base.rstrip('/')}/{path}"


@functools.cache
def read_registry() -> dict[str, Entry]:
    """All entries by name, in the order of registry.toml."""
    text = resources.files("polyspan.datasets").joinpath("registry.toml").read_text("utf-8")
    return {name: Entry(name=name, **fields) for name, fields in tomllib.loads(text).items()}


def list_datasets() -> list[str]:
    """Names that `load_dataset` knows, in the order of the registry.

    Examples
    --------
    >>> from polyspan.datasets import list_datasets
    >>> list_datasets()
    ['digits', 'three_sources', 'bbcsport', ..., 'yale_mtv']
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


def locate(entry: Entry) -> tuple[str, Path] | None:
    """Where the file is: ("POLYSPAN_DATA" or "cache", path), or None if it is in neither."""
    places = [("cache", cache_dir())]
    if folder := os.environ.get("POLYSPAN_DATA"):
        places.insert(0, ("POLYSPAN_DATA", Path(folder)))
    for place, folder_path in places:
        if (path := folder_path / entry.file).is_file():
            return place, path
    return None


def file_problem(path: Path, entry: Entry) -> str | None:
    """What is wrong with the file's bytes, in a few words; None if they are as published."""
    content = path.read_bytes()
    if entry.bytes is not None and len(content) != entry.bytes:
        return f"it has {len(content):,} bytes, expected {entry.bytes:,}"
    if entry.sha256 and hashlib.sha256(content).hexdigest() != entry.sha256:
        return "its sha256 is not the published one"
    blob = b"blob %d\0" % len(content) + content
    if entry.git_blob and hashlib.sha1(blob).hexdigest() != entry.git_blob:
        return "its git blob hash is not the published one"
    return None
