"""Numerical tools shared by all methods: steps, reductions, eigenvectors, loop, cache."""
