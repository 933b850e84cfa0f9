"""Data sets: published ones by name, your own files, and generated ones.

How a data set is loaded by name::

    registry -> download -> load (-> files, yale; omics, cells) -> Dataset

How your own files are loaded::

    readers (tables, columns, rfiles) -> files: one file            -> Dataset
                              -> parts (ids) -> alignment, matching -> MatchedViews
"""

from polyspan.datasets.dataset import Dataset
from polyspan.datasets.digits import load_digits_views
from polyspan.datasets.download import fetch_dataset
from polyspan.datasets.files import load_file
from polyspan.datasets.generate import make_subspaces
from polyspan.datasets.load import load_dataset
from polyspan.datasets.matching import MatchedViews, load_views
from polyspan.datasets.nuclei import load_nuclei_views
from polyspan.datasets.registry import list_datasets

__all__ = [
    "Dataset",
    "MatchedViews",
    "fetch_dataset",
    "list_datasets",
    "load_dataset",
    "load_digits_views",
    "load_file",
    "load_nuclei_views",
    "load_views",
    "make_subspaces",
]
