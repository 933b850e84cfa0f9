"""polyspan: multi-view subspace clustering."""

__version__ = "0.1.0"
