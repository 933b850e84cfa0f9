"""Clustering without labels: which members run, what they agree on, and how many clusters."""

from polyspan.selection.consensus import consensus, find_camps, pairwise_nmi, rank_members
from polyspan.selection.count import count_clusters, labels_for
from polyspan.selection.estimator import ConsensusClusterer
from polyspan.selection.pool import default_pool

__all__ = [
    "ConsensusClusterer",
    "consensus",
    "count_clusters",
    "default_pool",
    "find_camps",
    "labels_for",
    "pairwise_nmi",
    "rank_members",
]
