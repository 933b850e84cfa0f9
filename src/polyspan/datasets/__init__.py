"""Data sets: published ones by name, and generated ones.

How a data set is loaded by name::

    registry -> download -> load (-> io, published, yale) -> Dataset

`load_file` and `load_views`, for your own files and tables, are in `polyspan.io`.
"""

from polyspan.datasets.digits import load_digits_views
from polyspan.datasets.download import fetch_dataset
from polyspan.datasets.generate import make_subspaces
from polyspan.datasets.load import load_dataset
from polyspan.datasets.nuclei import load_nuclei_views
from polyspan.datasets.registry import list_datasets
from polyspan.io import Dataset, MatchedViews, load_file, load_views

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
