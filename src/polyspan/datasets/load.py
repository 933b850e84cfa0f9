"""Load a data set by name and check it against the registry."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import loadmat

from polyspan.datasets.digits import load_digits_views
from polyspan.datasets.nuclei import load_nuclei_views
from polyspan.datasets.published import LOADERS
from polyspan.datasets.registry import Entry, File, file_problem, find_entry, locate
from polyspan.datasets.yale import yale_views
from polyspan.io.dataset import Dataset, contiguous_labels
from polyspan.io.one_file import from_variables, load_file
from polyspan.io.readers import variables_of

BUILT_IN: dict[str, Callable[[], Dataset]] = {
    "digits": load_digits_views,
    "wdbc": load_nuclei_views,
}
COMPUTED: dict[str, Callable[[Any], list[Any]]] = {"yale_images": yale_views}


def load_dataset(name: str) -> Dataset:
    """Load a data set by name.

    Its files are looked for in the folders of ``$POLYSPAN_DATA`` (one, or several separated like
    those in ``$PATH``), then in the user's cache (``$POLYSPAN_CACHE``, or the system's cache
    folder). ``polyspan data fetch NAME`` or `fetch_dataset` downloads them.

    Parameters
    ----------
    name : str
        A name from `list_datasets`. Case, dashes and underscores do not matter, and common
        alternative spellings are known: "3-Sources" is "three_sources".

    Returns
    -------
    Dataset
        Samples in rows, float64; sparse views stay sparse. The values are as published, in the
        file's order, or prepared as ``polyspan data list NAME`` says.

    Raises
    ------
    ValueError
        There is no data set of that name, or a file does not hold the expected data.
    FileNotFoundError
        A file has not been downloaded.
    ImportError
        Files of R need the extra ``polyspan[r]``, yale_images needs ``polyspan[images]``.

    Examples
    --------
    >>> from polyspan.datasets import load_dataset
    >>> data = load_dataset("digits")
    >>> data
    Dataset('digits': 1797 samples, 3 views (pixels 64, fourier 40, gradients 32), 10 clusters)
    >>> data.labels[:5]
    array([0, 1, 2, 3, 4])
    """
    entry = find_entry(name)
    if entry.built_in:
        return BUILT_IN[entry.name]()
    paths = _paths(entry)
    told = ", ".join(map(str, paths))
    try:
        loaded = _read(entry, paths)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"{told} does not hold {entry.name}: {error!r}") from error
    if problem := content_problem(loaded, entry):
        raise ValueError(f"{told} does not hold {entry.name}: {problem}")
    return loaded


def _paths(entry: Entry) -> list[Path]:
    found = {file.name: locate(file) for file in entry.files}
    if absent := [name for name, one in found.items() if one is None]:
        which = f" ({', '.join(absent)})" if len(absent) < len(found) else ""
        raise FileNotFoundError(
            f"{entry.name}{which} is neither in $POLYSPAN_DATA nor in the cache: "
            f"download it with `polyspan data fetch {entry.name}`"
        )
    return [one[1] for one in found.values() if one]


def _read(entry: Entry, paths: list[Path]) -> Dataset:
    if entry.name in LOADERS:
        views, classes, extra, features = LOADERS[entry.name](*paths)
        labels = np.empty(0, np.int64) if classes is None else contiguous_labels(classes)
        n_clusters = int(labels.max(initial=-1)) + 1
        return Dataset(
            entry.name, views, labels, list(entry.views), n_clusters, extra, list(features)
        )
    data = _of_file(paths[0], entry.files[0])
    views = data.views
    if entry.name in COMPUTED:
        try:
            views = COMPUTED[entry.name](views[0])
        except ValueError as error:
            raise ValueError(f"{paths[0]} does not hold {entry.name}: {error}") from error
    return Dataset(entry.name, views, data.labels, list(entry.views), data.n_clusters)


def _of_file(path: Path, file: File) -> Dataset:
    """A published MATLAB file needs no process of its own, as files from anywhere do."""
    if path.suffix != ".mat" or file_problem(path, file):
        return load_file(path)
    return from_variables(path, variables_of(loadmat(path)))


def content_problem(data: Dataset, entry: Entry) -> str | None:
    """How the data differ from the registry, in a few words; None if they do not."""
    expected = [(entry.samples, features) for features in entry.views.values()]
    shapes = [tuple(view.shape) for view in data.views]
    if shapes != expected:
        return f"its views have shapes {shapes}, expected {expected}"
    if data.n_clusters != entry.classes:
        return f"it has {data.n_clusters} classes, expected {entry.classes}"
    return None
