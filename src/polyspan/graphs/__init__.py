"""Build graphs of the samples of each view, and their Laplacians."""
