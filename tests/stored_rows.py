"""Rows for tests of the store."""

from harness.store import COLUMNS
from polyspan import __version__
from polyspan.metrics import SCORES


def made(seed=0, **changes):
    """A row of a benchmark with everything that one has."""
    row = dict.fromkeys(COLUMNS) | {"protocol": "p", "order": "shuffled", "selection": "tuned"}
    row |= {"estimator": "grmsc", "dataset": "NGs", "source": {"name": "ngs"}, "method": "GRMSC"}
    row |= {"paper": "GRMSC", "stage": "tune", "status": "ok", "params": {"lam1": 0.1, "k": None}}
    row |= {"versions": {"polyspan": __version__}, "machine": {"cores": 2}, "converged": True}
    row |= {"solve": "own", "seed": seed, "iterations": 30}
    row |= {name: (seed + 1) / (k + 7) for k, name in enumerate((*SCORES, "seconds"))}
    return row | changes


def without_keys(rows):
    return [{name: row[name] for name in COLUMNS} for row in rows]
