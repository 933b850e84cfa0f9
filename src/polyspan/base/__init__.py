"""What every method has: the way from views to labels, once, and what kinds of methods there are.

- `RepresentationClusterer` represents samples by samples, and clusters the affinity of that;
- `GraphClusterer` learns a graph of the samples, and cuts it;
- `EmbeddingClusterer` embeds the samples, and runs k-means there.
"""

from polyspan.base.embedding import EmbeddingClusterer
from polyspan.base.graph import GraphClusterer
from polyspan.base.representation import RepresentationClusterer
from polyspan.base.spine import (
    About,
    Iterative,
    MultiViewClusterer,
    OnDevice,
    Penalised,
    ScaledClusterer,
    ViewTags,
    is_fitted,
)

__all__ = [
    "About",
    "EmbeddingClusterer",
    "GraphClusterer",
    "Iterative",
    "MultiViewClusterer",
    "OnDevice",
    "Penalised",
    "RepresentationClusterer",
    "ScaledClusterer",
    "ViewTags",
    "is_fitted",
]
