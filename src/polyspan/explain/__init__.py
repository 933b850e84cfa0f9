"""What the clusters are: features that tell them apart, and how they relate to what is known."""

from polyspan.explain.markers import Markers, markers, write_markers

__all__ = ["Markers", "markers", "write_markers"]
