"""Samples that do not fit in memory: where their rows come from, and where the work runs."""
