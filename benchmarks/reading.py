"""Reading a text table: time and memory, beside `pandas.read_csv` on the same file.

    python benchmarks/reading.py                  # 59 MB, and up to 450,000 columns
    python benchmarks/reading.py table.csv        # of your own

Every reading is a process of its own. The bars: at most 1.3 times the time of pandas, and at most
three times the size of the file in memory, beyond what the imports take.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

READ = """
import json, resource, sys, time
import pandas as pd
import polyspan.io
from polyspan.io import load_views
path, how = sys.argv[1:]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before, start, cpu = peak(), time.perf_counter(), time.process_time()
found = pd.read_csv(path) if how == "pandas" else load_views([path])
print(json.dumps([time.perf_counter() - start, time.process_time() - cpu, peak() - before]))
"""
SHAPES = {"59 MB": (600, 5000), "59 MB, long": (60_000, 50)}
SHAPES |= {f"{d:,} columns": (4, d) for d in (112_500, 225_000, 450_000)}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="*", type=Path, help="text tables; default: written here")
    files = parser.parse_args().file
    print("| file | MB | pandas s | polyspan s | ratio | ratio of CPU | memory / file |")
    print("|---|---|---|---|---|---|---|")
    for path in files:
        print(line(path.name, path))
    with tempfile.TemporaryDirectory() as folder:
        for name, (n, d) in {} if files else SHAPES.items():
            print(line(name, written(Path(folder, "table.csv"), n, d)), flush=True)


def written(path: Path, n: int, d: int) -> Path:
    """A file of normal numbers with all their digits, and ids."""
    values = np.random.default_rng(0).normal(size=(n, d))
    with path.open("w", encoding="utf-8") as stream:
        stream.write("id," + ",".join(f"g{j}" for j in range(d)) + "\n")
        for i, row in enumerate(values.tolist()):
            stream.write(f"s{i}," + ",".join(map(repr, row)) + "\n")
    return path


def line(name: str, path: Path) -> str:
    """One line of the table."""
    size, found = path.stat().st_size, []
    for how in ("pandas", "polyspan"):
        command = [sys.executable, "-c", READ, str(path), how]
        done = subprocess.run(command, capture_output=True, check=True)
        found.append(json.loads(done.stdout))
    (theirs, their_cpu, _), (ours, our_cpu, memory) = found
    return (
        f"| {name} | {size / 1e6:.0f} | {theirs:.2f} | {ours:.2f} | {ours / theirs:.2f} | "
        f"{our_cpu / their_cpu:.2f} | {memory / size:.1f} |"
    )


if __name__ == "__main__":
    main()
