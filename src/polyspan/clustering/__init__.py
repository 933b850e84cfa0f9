"""From a representation to an affinity, eigenvectors and labels, also for new samples."""
