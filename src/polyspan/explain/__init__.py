"""What the clusters are: features that tell them apart, and how they relate to what is known."""

from polyspan.explain.associations import Association, associations
from polyspan.explain.known import Known, read_known
from polyspan.explain.markers import Markers, markers, write_markers
from polyspan.explain.model import Explanation, explain_model, open_known
from polyspan.explain.survival import Survival, lifetimes, survival

__all__ = [
    "Association", "Explanation", "Known", "Markers", "Survival", "associations", "explain_model",
    "lifetimes", "markers", "open_known", "read_known", "survival", "write_markers",
]  # fmt: skip
