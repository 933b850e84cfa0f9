"""The path of a fit: which functions `GRMSC().fit` calls, in the order of their first call.

    python benchmarks/way.py            # packages, files and functions
    python benchmarks/way.py --counts   # only the numbers

All functions of this package that are called at least once are listed, including nested functions
but not lambdas and comprehensions.
"""

import argparse
import sys
from pathlib import Path

import polyspan
from polyspan import GRMSC
from polyspan.datasets import make_subspaces

ROOT = Path(polyspan.__file__).parent
INNER = ("<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<module>")


def way():
    """Return (file, function) pairs in the order of their first call."""
    views = make_subspaces(60, 3, random_state=0).views
    GRMSC().fit(views)  # so that one-time imports do not count
    seen = {}

    def watch(frame, event, argument):
        code = frame.f_code
        path = Path(code.co_filename)
        if event == "call" and code.co_name not in INNER and path.is_relative_to(ROOT):
            seen.setdefault((path.relative_to(ROOT).as_posix(), code.co_qualname))

    model = GRMSC()
    sys.setprofile(watch)
    try:
        model.fit(views)
    finally:
        sys.setprofile(None)
    return list(seen)


def main():
    """Print the path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--counts", action="store_true", help="the numbers only")
    args = parser.parse_args()
    found = way()
    files = list(dict.fromkeys(file for file, _ in found))
    rooms = list(dict.fromkeys(file.split("/")[0] for file in files))
    if not args.counts:
        for file in files:
            print(file)
            print("    " + "\n    ".join(name for one, name in found if one == file))
        print()
    print(f"{len(found)} functions in {len(files)} files; packages: {' -> '.join(rooms)}")


if __name__ == "__main__":
    main()
