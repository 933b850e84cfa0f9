"""Clustering without labels: which members run, what they agree on, and how many clusters."""

from polyspan.selection.camps import find_camps
from polyspan.selection.consensus import consensus, pairwise_nmi, rank_members
from polyspan.selection.count import count_clusters
from polyspan.selection.estimator import ConsensusClusterer
from polyspan.selection.grids import anchor_grid, default_members
from polyspan.selection.viewgraphs import labels_for

__all__ = [
    "ConsensusClusterer",
    "anchor_grid",
    "consensus",
    "count_clusters",
    "default_members",
    "find_camps",
    "labels_for",
    "pairwise_nmi",
    "rank_members",
]
