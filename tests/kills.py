"""Kill -9 at random times, and count what is lost, doubled or half-written: nothing may be.

    make kills                    or: python tests/kills.py --bench 50 --dask 20 --fit 20

- bench: `python -m benchmarks run` is killed and started again until it ends, into one store; then
  every job must have one row, with the scores of a run that nobody killed.
- dask: a worker of a Dask cluster is killed during a fit, whose labels must be those of a fit in
  memory.
- fit: `polyspan fit --force` is killed while it replaces the files of an earlier run; every file
  must then be the old or the new one, and the next run removes what was left.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

PROTOCOL = """
name = "kills"
seeds = 4
[[dataset]]
name = "subspaces"
n_samples = 40
noise = 0.1
[[dataset]]
name = "digits"
n_samples = 60
[[method]]
name = "k-means"
estimator = "concatkmeans"
selection = "default"
[[method]]
name = "GRMSC"
estimator = "grmsc"
selection = "tuned"
grid = {lam1 = [1.0, 10.0, 100.0]}
"""


ROOT = Path(__file__).resolve().parents[1]


def start(module, *words):
    """Start a command in a process."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *map(str, words)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def killed(process, seconds):
    """Kill a process after some seconds; whether it still ran."""
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True


def bench(kills, rng):
    """Kill benchmarks; returns counts."""
    sys.path.append(str(ROOT / "benchmarks"))
    from harness import read_rows
    from harness.store import identity
    from polyspan.metrics import SCORES

    def scores(rows):
        return {identity(row): tuple(row[name] for name in SCORES) for row in rows}

    found = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        protocol = folder / "kills.toml"
        protocol.write_text(PROTOCOL)
        command = ("benchmarks", "run", protocol, "--jobs", "1", "--store")
        started = time.monotonic()
        assert start(*command, folder / "whole.db").wait() == 0
        longest = time.monotonic() - started
        wanted = scores(read_rows(folder / "whole.db"))
        while found["kills"] < kills:
            store = folder / f"killed{found['runs']}.db"
            while killed(start(*command, store), rng.uniform(0.5, 1.1) * longest):
                found["kills"] += 1
                if found["kills"] >= kills:
                    assert start(*command, store).wait() == 0
                    break
            rows = read_rows(store)
            found["runs"] += 1
            found["rows"] += len(rows)
            found["lost"] += len(wanted.keys() - scores(rows).keys())
            found["doubled"] += len(rows) - len(scores(rows))
            found["half-written"] += sum(
                value != wanted.get(key) for key, value in scores(rows).items()
            )
    return found


def dask(fits, rng):
    """Kill workers during fits; returns counts."""
    import dask.array as da
    import distributed

    from polyspan import AnchorGRMSC
    from polyspan.datasets import make_subspaces

    data = make_subspaces(2400, 4, n_features=[20, 30], noise=0.05, outliers=0.05)
    model = AnchorGRMSC(4, n_anchors=24, chunk_size=1000, tol=1e-3, random_state=0)
    wanted = model.fit(data.views).labels_
    found = Counter()
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        views = [da.from_array(X, chunks=(800, -1)) for X in data.views]
        started = time.monotonic()
        model.fit(views)
        longest = time.monotonic() - started
        while found["fits"] < fits:
            client.wait_for_workers(2)
            pids = list(client.run(os.getpid).values())
            begun = time.monotonic()
            after = rng.uniform(0.05, 0.8) * longest
            timer = threading.Timer(after, os.kill, (rng.choice(pids), signal.SIGKILL))
            timer.start()
            try:
                labels = model.fit(views).labels_
                found["half-written"] += not np.array_equal(labels, wanted)
            except Exception as error:
                print(f"a fit failed: {type(error).__name__}: {error}")
                found["lost"] += 1
            found["killed"] += time.monotonic() - begun > after
            timer.cancel()
            timer.join()
            found["fits"] += 1
    return found


def fit(kills, rng):
    """Kill `polyspan fit --force`; returns counts."""
    found = Counter()
    draw = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for view in ("a", "b"):
            np.save(folder / f"{view}.npy", draw.normal(size=(60, 5)))
        names = ("labels.csv", "labels.json", "report.html")

        def command(clusters):
            return start("polyspan", "fit", folder / "a.npy", folder / "b.npy", "--method",
                         "concatkmeans", "--clusters", clusters, "--out", folder / names[0],
                         "--report", folder / names[2], "--force")  # fmt: skip

        def state():
            """What of a run shows: its number of clusters, read from each file."""
            return [_clusters(folder / one) for one in names]

        started = time.monotonic()
        assert command(2).wait() == 0
        longest = time.monotonic() - started
        now = 2
        while found["kills"] < kills:
            new = 5 - now  # 2 and 3 by turns
            # Most of the time goes into imports: the last third is where files are written.
            started = time.monotonic()
            if not killed(command(new), rng.uniform(0.65, 1.05) * longest):
                found["ended before"] += 1
                now = new
                longest = min(longest, time.monotonic() - started)
                continue
            found["kills"] += 1
            seen = state()
            found["lost"] += seen.count(None)
            found["half-written"] += sum(one not in (None, now, new) for one in seen)
            found["files of two runs"] += len(set(seen)) > 1
            found["left behind"] += sum(one.name.startswith(".") for one in folder.iterdir())
            assert command(now).wait() == 0
            found["never removed"] += sum(one.name.startswith(".") for one in folder.iterdir())
    return found


def _clusters(path):
    """The number of clusters that a file tells, None without the file, 0 if it is not whole."""
    if not path.is_file():
        return None
    text = path.read_text("utf-8")
    if path.suffix == ".csv":
        rows = [line.split(",") for line in text.splitlines()[1:]]
        return len({row[1] for row in rows}) if len(rows) == 60 and text.endswith("\n") else 0
    if path.suffix == ".json":
        import json

        return json.loads(text)["n_clusters"]
    whole = text.rstrip().endswith("</html>")
    return next((k for k in (2, 3) if whole and f"--clusters {k}" in text), 0)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, number in (("bench", 50), ("dask", 20), ("fit", 20)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    bad = 0
    for work in (bench, dask, fit):
        number = getattr(args, work.__name__)
        if number:
            found = work(number, random.Random(args.seed))
            for name in ("lost", "doubled", "half-written", "never removed"):
                bad += found[name]
            zeros = {name: found[name] for name in ("lost", "doubled", "half-written")}
            print(f"{work.__name__}: {dict(found) | zeros}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
