"""The base of all estimators, what methods find, and the mixins by what methods share."""

from polyspan.base.capabilities import (
    InNumPy,
    Iterative,
    OnDevice,
    Penalized,
    RepresentationClusterer,
    ScaledClusterer,
    TakesFiles,
    TakesKernels,
)
from polyspan.base.estimator import About, MultiViewClusterer, ViewTags, fitted_names
from polyspan.base.outcome import Embedding, Graph, Labels, Outcome, Representation

__all__ = [
    "About",
    "Embedding",
    "Graph",
    "InNumPy",
    "Iterative",
    "Labels",
    "MultiViewClusterer",
    "OnDevice",
    "Outcome",
    "Penalized",
    "Representation",
    "RepresentationClusterer",
    "ScaledClusterer",
    "TakesFiles",
    "TakesKernels",
    "ViewTags",
    "fitted_names",
]
