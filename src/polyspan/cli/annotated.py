"""AnnData and MuData in `polyspan fit`: which of their matrices are views, and labels in a copy."""

import argparse
import shutil
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polyspan.annotation import annotate
from polyspan.runtime.messages import own_warnings


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for .h5ad and .h5mu files."""
    parser.add_argument(
        "--obsm",
        action="append",
        metavar="KEY",
        help=".h5ad and .h5mu: this matrix of obsm is a view, instead of X; may be repeated; "
        "rna:KEY is that of one modality",
    )
    parser.add_argument(
        "--layer",
        dest="layers",
        action="append",
        metavar="NAME",
        help=".h5ad and .h5mu: this layer is a view, instead of X, which is the layer X; may be "
        "repeated",
    )


def is_annotated(path: Path) -> bool:
    """Whether the labels go into a copy of an AnnData or MuData file."""
    return path.suffix.lower() in (".h5ad", ".h5mu")


def annotated_source(labels: Path, files: Sequence[str | Path]) -> Path:
    """The input file whose copy gets the labels.

    Examples
    --------
    >>> annotated_source(Path("out.h5ad"), ["rna.csv", "cells.h5ad"]).name
    'cells.h5ad'
    """
    found = [Path(file) for file in files if Path(file).suffix.lower() == labels.suffix.lower()]
    if len(found) != 1:
        raise ValueError(
            f"{labels}: labels are written into a copy of the one {labels.suffix} file that is "
            f"read, but {len(found) or 'none'} of the files {'are' if found else 'is'} one: end "
            "the name in .csv"
        )
    return found[0]


def write_annotated(path: Path, source: Path, model: Any) -> None:
    """Write a copy of an AnnData or MuData file with the clusters in ``obs`` and ``uns``."""
    from polyspan.io.readers import read_annotated

    data = read_annotated(source)
    with own_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # the command has named the samples that were dropped
        annotate(data, model)
        written = Path(folder, path.name)
        data.write(written)  # not to the path itself: HDF5 wants a lock on it, which we hold
        shutil.copyfile(written, path)
