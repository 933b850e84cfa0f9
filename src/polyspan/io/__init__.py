"""Every source, file or object, as labelled tables, and one way to align their samples."""

from polyspan.io.dataset import Dataset
from polyspan.io.matched import MatchedViews, load_views
from polyspan.io.one_file import load_file

__all__ = ["Dataset", "MatchedViews", "load_file", "load_views"]
