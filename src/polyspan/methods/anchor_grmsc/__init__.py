"""AnchorGRMSC: the estimator, its solver, its anchors and its Laplacian."""

from polyspan.methods.anchor_grmsc.estimator import AnchorGRMSC

__all__ = ["AnchorGRMSC"]
