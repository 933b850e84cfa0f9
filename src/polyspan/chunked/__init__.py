"""Samples that do not fit in memory: where rows come from, and who works on them."""
