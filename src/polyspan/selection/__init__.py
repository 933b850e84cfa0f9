"""Clustering without labels: the members of a consensus, their agreement, and how many clusters."""

from polyspan.selection.consensus import consensus, pairwise_nmi, rank_settings
from polyspan.selection.count import count_clusters
from polyspan.selection.estimator import ConsensusClusterer
from polyspan.selection.grids import anchor_grid, default_grid, default_members
from polyspan.selection.viewgraphs import labels_for

__all__ = [
    "ConsensusClusterer",
    "anchor_grid",
    "consensus",
    "count_clusters",
    "default_grid",
    "default_members",
    "labels_for",
    "pairwise_nmi",
    "rank_settings",
]
