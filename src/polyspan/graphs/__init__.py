"""From the features of a view to graphs of its samples, and their Laplacians."""
