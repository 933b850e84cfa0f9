"""The way of a fit: which functions `GRMSC().fit` runs through, in the order of their first call.

    python benchmarks/way.py            # rooms, files and functions
    python benchmarks/way.py --counts   # the numbers only

Functions are those of this package that are called at least once, functions within
functions included, lambdas and comprehensions not.
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
    GRMSC().fit(views)  # what is imported only once does not count
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
    """Print the way."""
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
    print(f"{len(found)} functions in {len(files)} files; rooms: {' -> '.join(rooms)}")


if __name__ == "__main__":
    main()
