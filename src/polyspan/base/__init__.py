"""The base classes: the path from views to labels, shared by all methods, and the kinds of method.

- `RepresentationClusterer` writes each sample in terms of the others and clusters the affinity
  this gives;
- `GraphClusterer` learns a graph of the samples and cuts it;
- `EmbeddingClusterer` embeds the samples and runs k-means on the embedding.
"""

from polyspan.base.attributes import is_fitted
from polyspan.base.embedding import EmbeddingClusterer
from polyspan.base.graph import GraphClusterer
from polyspan.base.kinds import Iterative, OnDevice, Penalized, ScaledClusterer
from polyspan.base.representation import RepresentationClusterer
from polyspan.base.spine import About, MultiViewClusterer, ViewTags

__all__ = [
    "About",
    "EmbeddingClusterer",
    "GraphClusterer",
    "Iterative",
    "MultiViewClusterer",
    "OnDevice",
    "Penalized",
    "RepresentationClusterer",
    "ScaledClusterer",
    "ViewTags",
    "is_fitted",
]
