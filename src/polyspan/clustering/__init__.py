"""From a representation to an affinity, eigenvectors and labels; and to those of new samples."""
