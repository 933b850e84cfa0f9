"""Compare the speed and memory of this code with another version of it, in alternating runs.

    git worktree add ../before SOME_COMMIT
    python benchmarks/against.py ../before/src            # medians of five runs of each
    python benchmarks/against.py ../before/src --runs 1 --work "GRMSC 3-Sources"

Every run is its own process and uses only public names, which both versions have. The two versions
alternate, so that a busy machine slows both. The ratio is the other version's median processor time
over ours: above 1, this code is faster. Peak memory is that of the whole process.
Needs POLYSPAN_DATA.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"

RUN = """
import json, resource, sys, time, warnings
import numpy as np
import polyspan
from polyspan import METHODS, GRMSC, AnchorGRMSC
from polyspan.datasets import load_dataset, make_subspaces
try:
    from polyspan import ConsensusClusterer

    def consensus(views, c):
        return ConsensusClusterer(c, random_state=0).fit(views)
except ImportError:  # an older version, see --help
    from polyspan.selection import select

    def consensus(views, c):
        return select(views, c, random_state=0)


warnings.simplefilter("ignore")

def dense(name, most=None):
    data = load_dataset(name)
    order = np.random.RandomState(0).permutation(len(data.labels))[:most]
    views = [X.toarray() if hasattr(X, "toarray") else X for X in data.views]
    return [np.ascontiguousarray(X[order], dtype=float) for X in views], data.n_clusters

def grmsc(name, k, lam1, lam2, orientation, most=None, **more):
    views, c = dense(name, most)
    model = GRMSC(c, n_neighbors=k, lam1=lam1, lam2=lam2, orientation=orientation,
                  random_state=0, **more)
    return lambda: model.fit(views)

def method(name, data):
    views, c = dense(data)
    model = METHODS[name](n_clusters=c, random_state=0)
    return lambda: model.fit(views[:1] if name in ("lrr", "ssc") else views)

def anchors(n):
    data = make_subspaces(n, 5, n_features=[20, 30], noise=0.05, random_state=0)
    return lambda: AnchorGRMSC(5, random_state=0).fit(data.views)

def choice(name):
    views, c = dense(name)
    return lambda: consensus(views, c)

work = eval(sys.argv[1])
start, cpu = time.perf_counter(), time.process_time()
work()
spent = time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps([spent, time.perf_counter() - start, peak, polyspan.__file__]))
"""

WORK = {
    "GRMSC 3-Sources": 'grmsc("three_sources", 50, 0.1, 1.0, "published")',
    "GRMSC NGs": 'grmsc("ngs", 30, 1.0, 10.0, "published")',
    "GRMSC BBCSport": 'grmsc("bbcsport", 30, 100.0, 1000.0, "samples")',
    "GRMSC Handwritten": 'grmsc("handwritten", 10, 0.1, 1.0, "samples")',
    "GRMSC Hdigit 3,000, 4 iterations": (
        'grmsc("hdigit", 10, 0.1, 1.0, "samples", 3000, max_iter=4, mu0=10.0)'
    ),
    "LRR NGs": 'method("lrr", "ngs")',
    "LT-MSC 3-Sources": 'method("ltmsc", "three_sources")',
    "t-SVD-MSC MSRC-v1": 'method("tsvdmsc", "msrc_v1")',
    "CSMSC 3-Sources": 'method("csmsc", "three_sources")',
    "MVSC MSRC-v1": 'method("mvsc", "msrc_v1")',
    "GMC NGs": 'method("gmc", "ngs")',
    "LMVSC Handwritten": 'method("lmvsc", "handwritten")',
    "AnchorGRMSC planted 10,000": "anchors(10_000)",
    "consensus 3-Sources": 'choice("three_sources")',
    "consensus MSRC-v1": 'choice("msrc_v1")',
    "consensus BBCSport": 'choice("bbcsport")',
    "consensus Prokaryotic": 'choice("prokaryotic")',
    "consensus Handwritten": 'choice("handwritten")',
    "consensus Scene-15": 'choice("scene15")',
    "consensus Hdigit": 'choice("hdigit")',
}


def run(src, work):
    """Processor and wall seconds, and peak GiB, of one process."""
    env = os.environ | {"PYTHONPATH": str(src)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, work], env=env, capture_output=True, text=True, check=True
    )
    *numbers, file = json.loads(done.stdout.splitlines()[-1])
    assert Path(file).is_relative_to(Path(src).resolve()), file  # the right version was imported
    return numbers


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="folder src of the other version")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--work", nargs="+", choices=list(WORK), default=list(WORK))
    args = parser.parse_args()
    other = args.other.resolve()
    print("| work | before s | now s | before / now | before GiB | now GiB | now / before |")
    print("|---|---|---|---|---|---|---|", flush=True)
    worst, most = [], []
    for name in args.work:
        pairs = [(run(other, WORK[name]), run(SRC, WORK[name])) for _ in range(args.runs)]
        then, now = (
            [statistics.median(column) for column in zip(*rows, strict=True)]
            for rows in zip(*pairs, strict=True)
        )
        worst.append(then[0] / now[0])
        most.append(now[2] / then[2])
        print(
            f"| {name} | {then[0]:.2f} | {now[0]:.2f} | {worst[-1]:.2f} | {then[2]:.2f} "
            f"| {now[2]:.2f} | {most[-1]:.2f} |",
            flush=True,
        )
    print(f"\nLeast ratio of time {min(worst):.2f}, largest of memory {max(most):.2f}.")


if __name__ == "__main__":
    main()
