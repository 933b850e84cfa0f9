"""What the clusters are: features that tell them apart, and how they relate to what is known."""

from polyspan.explain.associations import Association, associations
from polyspan.explain.known import Known, read_known
from polyspan.explain.markers import Markers, markers, write_markers
from polyspan.explain.survival import Survival, survival

__all__ = [
    "Association",
    "Known",
    "Markers",
    "Survival",
    "associations",
    "markers",
    "read_known",
    "survival",
    "write_markers",
]
