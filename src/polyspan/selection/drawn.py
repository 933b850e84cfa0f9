"""The part of the samples that is looked at, drawn at random, and what can be missed there."""

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import hypergeom

from polyspan.chunked.chunks import make_chunks
from polyspan.chunked.workers import workers_for
from polyspan.inputs.rows import missing_rows
from polyspan.inputs.views import Views
from polyspan.runtime.threads import take_samples

ENOUGH = 11  # samples of a group, each of which then has ten neighbors in it
CHANCE = 0.01  # that a group has fewer in the part
PART = 20_000  # samples of dask arrays that are looked at
CHUNK = 131_072  # samples that are read together
EVERY = slice(None)  # sample


class Part(NamedTuple):
    """Samples that are looked at."""

    views: Views  # in memory
    rows: Any  # their numbers, or a slice if they are all
    among: int  # how many there are
    lacking: bool  # whether any of all samples lacks a view


def draw_part(views: Views, seed: int) -> Part:
    """At most 20,000 samples of dask arrays, in memory; the values of all samples are checked.

    Examples
    --------
    >>> part = draw_part(Views([np.eye(3)], ["0"]), 0)
    >>> part.views.n_samples, part.rows, part.lacking
    (3, array([0, 1, 2]), False)
    """
    n = views.n_samples
    # Not the seed alone: the number of clusters is counted on a part of the part, drawn with it.
    rng = np.random.RandomState([seed, 1])
    rows = np.sort(rng.choice(n, PART, replace=False)) if n > PART else np.arange(n)
    single = all(getattr(view, "dtype", np.float64) == np.float32 for view in views.arrays)
    with workers_for(views.arrays) as workers:
        chunks, spans, _ = make_chunks(
            workers, views, CHUNK, None, np.dtype("f4" if single else "f8"), new=True, missing=True
        )
        lacking = any(workers.collect(workers.map(_lacks, chunks)))
        arrays = take_samples(workers, chunks, spans, rows)
    return Part(Views(arrays, views.names), rows, n, lacking)


def all_of(views: Views) -> Part:
    """All samples of views in memory.

    Examples
    --------
    >>> all_of(Views([np.eye(3)], ["0"])).rows is EVERY
    True
    """
    return Part(views, EVERY, views.n_samples, _lacks(views.arrays))


def _lacks(chunk: Any) -> bool:
    return any(missing_rows(view) is not None for view in chunk)


def sure_size(n: int, drawn: int) -> int:
    """Size from which a group of n samples has 11 or more among those drawn, with chance .99.

    Their number is hypergeometric: the bound is exact for one group, whatever the data are.

    Examples
    --------
    >>> sure_size(10_000, 1_000), sure_size(1_000_000, 4_000), sure_size(500, 500)
    (196, 5025, 11)
    """
    low, high = ENOUGH, n
    while low < high:
        middle = (low + high) // 2
        if hypergeom.cdf(ENOUGH - 1, n, middle, drawn) <= CHANCE:
            high = middle
        else:
            low = middle + 1
    return low


def tell_drawn(n: int, drawn: int) -> str:
    """Say what a part of the samples can miss; nothing if all were looked at.

    Examples
    --------
    >>> tell_drawn(10_000, 1_000)
    '1,000 of 10,000 samples were looked at: a group of fewer than 196 may be missed'
    >>> tell_drawn(900, 1_000)
    ''
    """
    if n <= drawn:
        return ""
    size = sure_size(n, drawn)
    return (
        f"{drawn:,} of {n:,} samples were looked at: a group of fewer than {size:,} may be missed"
    )
