"""Clustering without labels: which settings run, what they agree on, and how many clusters."""

from polyspan.selection.consensus import consensus, pairwise_nmi, rank_settings
from polyspan.selection.count import count_clusters
from polyspan.selection.grids import anchor_grid, default_grid
from polyspan.selection.members import Selection, select

__all__ = [
    "Selection",
    "anchor_grid",
    "consensus",
    "count_clusters",
    "default_grid",
    "pairwise_nmi",
    "rank_settings",
    "select",
]
