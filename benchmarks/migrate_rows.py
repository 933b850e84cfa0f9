"""Stored rows written under earlier names of parameters and columns, under those of today.

    python benchmarks/migrate_rows.py [FILE ...]    (all of benchmarks/results without one)

Parameters are renamed by estimator, the keys of the rows computed anew, so that a benchmark that is
resumed finds its rows. Rows of what no longer exists are dropped. Rows of protocols that do not say
in which order the samples were had them in the order of the file, and gave ties to the lower row
number; then methods without a grid were called tuned. A file is replaced whole, and only when
something in it changes: the second time nothing does.
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from polyspan.atomic import replacing
from polyspan.bench.jobs import Job
from polyspan.bench.plan import Method, Source
from polyspan.bench.store import SUM, pack, sealed

RESULTS = Path(__file__).resolve().parent / "results"
PARAMETERS = {
    "ssc": {"alpha": "lam_ratio"},
    "lmvsc": {"alpha": "lam_ridge"},
    "mlrssc": {"beta1": "rank_share", "lam3": "lam_agreement"},
    "coregspectral": {"lam": "lam_agreement"},
    "mcgc": {"beta": "lam_agreement", "gamma": "lam_components"},
    "gmc": {"lam": "lam_components"},
    "ltmsc": {"gamma": "lam_rank"},
    "lmsc": {"lam": "lam_rank"},
    "mvsc": {"lam1": "lam_cut", "lam2": "lam"},
    "grmsc": {"sigma2": "second_width"},
    "anchorgrmsc": {"sigma2": "second_width"},
}
COLUMNS = {"turns": "iterations"}
METHODS = {"20 turns": "20 iterations"}  # of protocols
GONE = {"grmsc": "init"}  # rows that set it are dropped
UNTUNED = ("amgl", "gmc")


def migrated(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return a row under today's names; None if there is nothing left that it describes.

    Examples
    --------
    >>> migrated({"method": "gmc", "setting": {"lam": 2.0}, "turns": 9})
    {'method': 'gmc', 'setting': {'lam_components': 2.0}, 'iterations': 9}
    """
    row = {COLUMNS.get(name, name): value for name, value in row.items()}
    estimator = row.get("estimator", row.get("method", "grmsc"))  # missing and predict: GRMSC only
    for place in ("params", "setting"):
        if place in row:
            if GONE.get(estimator) in row[place]:
                return None
            row[place] = renamed(estimator, row[place])
    for place in ("method", "paper"):
        if place in row:
            row[place] = METHODS.get(row[place], row[place])
    if "key" in row:
        if "order" not in row:
            row |= {"order": "file", "ties": "row"}
        if row["selection"] == "tuned" and estimator in UNTUNED:
            row["selection"] = "nothing to tune"
        row["key"] = key(row)
    return row


def renamed(estimator: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of an estimator, and of one inside it, under today's names."""
    names = dict(PARAMETERS.get(estimator, {}))
    for old, new in PARAMETERS.get(params.get("estimator", ""), {}).items():
        names[f"estimator__{old}"] = f"estimator__{new}"
    return {names.get(name, name): value for name, value in params.items()}


def key(row: dict[str, Any]) -> str:
    """Return the key of the job that a row of a protocol answers."""
    options = {name: value for name, value in row["source"].items() if name != "name"}
    source = Source(row["source"]["name"], row["dataset"], options)
    method = Method(row["method"], row["estimator"], row["selection"])
    rest = (row["params"], row["seed"], row["stage"], None, row["order"])
    return Job(row["protocol"], method, source, *rest).key


def migrate(path: Path) -> int:
    """Migrate a file, and count the lines that changed or went."""
    changed, lines = 0, []
    for line in text(path).splitlines():
        row = json.loads(line)
        had_sum = row.pop(SUM, None) is not None
        new = migrated(row)
        changed += new != row
        if new is not None:
            made = sealed(new) if had_sum else json.dumps(new)
            lines.append(line if new == row else made)
    if changed:
        with replacing(path) as part:
            part.write_text("".join(f"{line}\n" for line in lines), "utf-8")
            if path.suffix == ".gz":
                pack(part)
    return changed


def text(path: Path) -> str:
    """The lines of a store that no run writes to."""
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or sorted(RESULTS.glob("*.jsonl*")):
        print(f"{path.name}: {migrate(path)} rows")
