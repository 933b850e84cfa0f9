"""What the default answer costs, as a ratio to one `MeanGraph` in the same run (two threads).

python benchmarks/cost.py                      planted data and published sets, medians of three
python benchmarks/cost.py 600 handwritten
python benchmarks/cost.py --memory 5000        peak memory of the answer alone, in GiB
"""

import argparse
import resource
import time
import warnings
from typing import Any

import numpy as np

from polyspan import ConsensusClusterer, MeanGraph
from polyspan.datasets import load_dataset, make_subspaces

WHAT = [
    "600",
    "1200",
    "2000",
    "5000",
    "20000",
    "handwritten",
    "leaves100",
    "reuters1200",
    "scene15",
    "hdigit",
]
TIMES = 3


def views_of(what: str) -> tuple[list[Any], int]:
    """Planted data of that many samples, or a published set; and the number of clusters."""
    if what.isdigit():
        return make_subspaces(n_samples=int(what), n_clusters=6, random_state=0).views, 6
    data = load_dataset(what)
    return data.views, len(set(np.asarray(data.labels)))


def seconds(model: Any, views: list[Any]) -> float:
    """How long one fit takes."""
    started = time.perf_counter()
    model.fit(views)
    return time.perf_counter() - started


def main() -> None:
    """Print a line for each."""
    parser = argparse.ArgumentParser(description="Cost of the default answer.")
    parser.add_argument("what", nargs="*", default=WHAT)
    parser.add_argument("--memory", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for what in args.what:
        views, c = views_of(what)
        answer = ConsensusClusterer(c, n_jobs=2, random_state=0)
        if args.memory:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            answer.fit(views)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(f"{what}: {peak / 2**20:.2f} GiB, {before / 2**20:.2f} before the fit")
            continue
        one = [seconds(MeanGraph(c, random_state=0), views) for _ in range(TIMES)]
        all_of = [seconds(answer, views) for _ in range(TIMES)]
        ratio = np.median(all_of) / np.median(one)
        print(
            f"{what:12} MeanGraph {np.median(one):7.2f} s, default {np.median(all_of):7.2f} s, "
            f"ratio {ratio:5.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
