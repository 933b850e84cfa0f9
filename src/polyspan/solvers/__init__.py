"""The numerical tricks, once, for everybody: steps, reductions, eigenvectors, loop, cache."""
