"""Clustering without labels: which members run, what they agree on, and how many clusters."""

from polyspan.selection.consensus import consensus, find_camps, pairwise_nmi, rank_members
from polyspan.selection.count import count_clusters, labels_for
from polyspan.selection.estimator import ConsensusClusterer
from polyspan.selection.pool import anchor_grid, default_members

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
