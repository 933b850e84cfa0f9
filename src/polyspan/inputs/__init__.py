"""Turn user input into clean, scaled arrays, or raise a one-sentence error saying what is wrong."""

from polyspan.io.filling import impute

__all__ = ["impute"]
