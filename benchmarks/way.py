"""The path of a fit: which functions it calls, in the order of their first call.

    python benchmarks/way.py                       # of GRMSC: packages, files and functions
    python benchmarks/way.py --of ConsensusClusterer
    python benchmarks/way.py --counts              # only the numbers, of both

All functions of this package that are called at least once are listed, including nested functions
but not lambdas and comprehensions. A switch is a step of the list into another package.
"""

import argparse
import sys
import threading
from itertools import pairwise
from pathlib import Path

import polyspan
from polyspan import GRMSC, ConsensusClusterer
from polyspan.datasets import make_subspaces

ROOT = Path(polyspan.__file__).parent
INNER = ("<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<module>")
MODELS = {"GRMSC": GRMSC, "ConsensusClusterer": ConsensusClusterer}


def way(name):
    """Return (file, function) pairs in the order of their first call."""
    views = make_subspaces(60, 3, random_state=0).views
    MODELS[name]().fit(views)  # so that one-time imports do not count
    seen = {}

    def watch(frame, event, argument):
        code = frame.f_code
        path = Path(code.co_filename)
        if event == "call" and code.co_name not in INNER and path.is_relative_to(ROOT):
            seen.setdefault((path.relative_to(ROOT).as_posix(), code.co_qualname))

    model = MODELS[name]()
    threading.setprofile(watch)  # of threads that the fit starts
    sys.setprofile(watch)
    try:
        model.fit(views)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)


def main():
    """Print the path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--of", choices=MODELS, default="GRMSC", help="whose fit (GRMSC)")
    parser.add_argument("--counts", action="store_true", help="the numbers only, of both")
    args = parser.parse_args()
    for name in MODELS if args.counts else [args.of]:
        calls = way(name)
        files = list(dict.fromkeys(file for file, _ in calls))
        if not args.counts:
            for file in files:
                print(file)
                print("    " + "\n    ".join(function for at, function in calls if at == file))
            print()
        rooms = [file.split("/")[0] for file, _ in calls]
        switches = sum(here != there for here, there in pairwise(rooms))
        print(
            f"{name}: {len(calls)} functions in {len(files)} files, {switches} switches between "
            f"{len(set(rooms))} packages"
        )


if __name__ == "__main__":
    main()
