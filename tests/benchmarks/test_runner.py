import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest
from cases import BENCHMARKS
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from threadpoolctl import threadpool_info

from harness import read_protocol, read_rows, run_protocol, runner
from harness.jobs import Job, first_jobs
from harness.plan import Method, Source, load_source, sample_order
from harness.rows import empty_row
from harness.runner import run_job, run_jobs
from harness.store import alone
from harness.workers import share_cores, start_workers, stop_worker
from polyspan import GRMSC, METHODS
from polyspan.base.estimator import ViewTags
from polyspan.datasets import load_digits_views
from polyspan.metrics import SCORES, clustering_scores
from polyspan.runtime.cache import Store, active

PLANTED = Source("subspaces", "planted", {"n_samples": 30})
KMEANS = Method("k-means", "concatkmeans", "default")
LRR = Method("LRR", "lrr", "default")  # fails: it takes one view
TEXT = """
name = "small"
seeds = 3

[[dataset]]
name = "digits"
n_samples = 150

[[method]]
name = "GRMSC"
estimator = "grmsc"
selection = "tuned"
grid = { lam1 = [1.0, 10.0, 100.0], n_neighbors = [10, 30] }

[[method]]
name = "k-means"
estimator = "concatkmeans"
selection = "default"

[[method]]
name = "LRR"
estimator = "lrr"
selection = "default"
"""
TIMES = ("seconds", "cpu_seconds", "shared_seconds", "machine")


def job(method=KMEANS, params=None, source=PLANTED, seed=0, timeout=None):
    return Job("p", method, source, params or {}, seed, "final", timeout)


@pytest.fixture
def protocol_file(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(TEXT)
    return path


def outcome(rows):
    """The rows without times and order; scores of equal labels may differ in the last digit."""
    kept = []
    for row in rows:
        row = {name: value for name, value in row.items() if name not in TIMES}
        kept.append({k: round(v, 9) if isinstance(v, float) else v for k, v in row.items()})
    return sorted(kept, key=json.dumps)


class Recorder(BaseEstimator):
    """Stands for any method; keeps what it was given."""

    def __init__(self, n_clusters=2, random_state=None):
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit(self, X, y=None):
        self.y_, self.threads_ = y, [pool["num_threads"] for pool in threadpool_info()]
        time.sleep(0.05)
        self.labels_ = np.arange(len(X[0])) % self.n_clusters
        return self


@pytest.fixture
def recorder(monkeypatch):
    model = Recorder()
    monkeypatch.setattr(runner, "build", lambda estimator, params: model)
    return model


def test_a_row_says_everything():
    data = load_digits_views(100)
    source = Source("digits", "Digits", {"n_samples": 100})
    method = Method("GR", "grmsc", "default", paper="GRMSC")
    row = run_job(job(method, {"scale": None}, source, seed=3), 1)
    model = runner.build("grmsc", {"scale": None}).set_params(n_clusters=10, random_state=3)
    rows = np.random.default_rng(0).permutation(100)  # the shuffle of the first seed, shared by all
    found = model.fit([view[rows] for view in data.views]).labels_
    expected = clustering_scores(data.labels[rows], found)
    assert (row["order"], row["solve"]) == ("shuffled", "shared")
    assert {name: row[name] for name in SCORES} == pytest.approx(expected)
    assert row["iterations"] == model.n_iter_
    assert row["converged"] is True
    assert row["cpu_seconds"] > 0
    assert (row["status"], row["reason"]) == ("ok", None)
    assert row["versions"]["numpy"] == np.__version__
    assert row["machine"]["threads"] == 1
    labels = {
        "protocol": "p", "dataset": "Digits", "source": {"name": "digits", "n_samples": 100},
        "method": "GR", "paper": "GRMSC", "selection": "default", "estimator": "grmsc",
        "params": {"scale": None}, "seed": 3, "order": "shuffled", "stage": "final",
    }  # fmt: skip
    assert row | labels == row
    assert json.loads(json.dumps(row, allow_nan=False)) == row


class Order(BaseEstimator):
    """Keeps the samples that it was given, in their order."""

    def __init__(self, n_clusters=2, random_state=None, *, one_solution=True):
        self.n_clusters, self.random_state = n_clusters, random_state
        self.one_solution = one_solution

    def fit(self, X, y=None):
        self.given_, self.shares_ = X, active.get() is runner._common
        self.labels_ = np.arange(len(X[0])) % self.n_clusters
        return self

    def __sklearn_tags__(self):
        known = super().__sklearn_tags__()
        return ViewTags(**vars_of(known), one_solution=self.one_solution)


def vars_of(tags):
    return {name: getattr(tags, name) for name in tags.__dataclass_fields__}


@pytest.mark.parametrize("order", ["shuffled", "file", "sorted"])
def test_who_shares_the_order_of_the_first_seed(order, monkeypatch):
    """Methods with one solution do, except for the jobs that check that; others never."""
    monkeypatch.setattr(Job, "checks", property(lambda self: self.seed == 7))
    plain = load_source(PLANTED)
    for one_solution, seed, used in ((True, 3, 0), (True, 7, 7), (False, 3, 3), (False, 7, 7)):
        model = Order(one_solution=one_solution)
        monkeypatch.setattr(runner, "build", lambda estimator, params, model=model: model)
        row = run_job(replace(job(seed=seed), order=order), 1)
        rows = sample_order(order, plain.labels, used)
        assert all((x == y[rows]).all() for x, y in zip(model.given_, plain.views, strict=True))
        assert (row["order"], row["solve"]) == (order, "shared" if used == 0 else "own")
        assert model.shares_ == (not one_solution or seed != 7)  # a check reuses nothing
        assert model.random_state == seed
        assert row["nmi"] == clustering_scores(plain.labels[rows], model.labels_)["nmi"]


def test_the_labels_of_an_oracle_are_in_the_order_of_its_samples(recorder):
    run_job(replace(job(params={"oracle": True}, seed=4), order="sorted"), 1)
    assert (recorder.y_[1:] >= recorder.y_[:-1]).all()


def test_one_job_in_twenty_is_a_check():
    share = np.mean([job(seed=seed).checks for seed in range(4000)])
    assert 0.04 < share < 0.06
    assert [job(seed=s).checks for s in range(99)] == [job(seed=s).checks for s in range(99)]


def test_seeds_share_the_solution_and_checks_do_not(monkeypatch):
    """With GRMSC itself: a check finds the same, from other data."""
    solves = []
    plain = GRMSC.solve
    monkeypatch.setattr(
        GRMSC, "solve", lambda self, *given: solves.append(0) or plain(self, *given)
    )
    monkeypatch.setattr(Job, "checks", property(lambda self: self.seed == 2))
    monkeypatch.setattr(runner, "_common", Store(2**28))
    easy, method = Source("subspaces", "p", {"n_samples": 60}), Method("G", "grmsc", "default")
    rows = [run_job(job(method, source=easy, seed=seed), 1) for seed in range(4)]
    assert len(solves) == 2
    assert [row["solve"] for row in rows] == ["shared", "shared", "own", "shared"]
    first, *others = (row["shared_seconds"] for row in rows)  # the first has scaled views only
    assert [seconds > first for seconds in others] == [True, False, True]
    assert others[1] == 0
    assert [row["nmi"] for row in rows] == pytest.approx([1.0] * 4)
    assert len({row["iterations"] for row in rows}) == 1


def test_methods_that_see_the_order_share_nothing():
    never = {
        "tsvdmsc": [{}, {"sample_order": "file"}],
        "amgl": [{"as_released": True}],
        "gmc": [{"as_released": True}],
        "mcgc": [{"as_released": True}],
        **{name: [{}] for name in ("lmsc", "dssmsc", "lmvsc", "fpmvs", "fastmice", "concatkmeans")},
        "anchorgrmsc": [{}],
        "glmsc": [{"mapping": "network"}],
        "bestsingleview": [{"estimator": "lmsc"}],
    }
    for name, some in never.items():
        assert not any(get_tags(runner.build(name, params)).one_solution for params in some), name
    rest = [name for name in METHODS if name not in never] + ["amgl", "glmsc", "gmc", "mcgc"]
    assert all(get_tags(runner.build(name, {})).one_solution for name in rest)
    assert get_tags(runner.build("bestsingleview", {"estimator": "lrr"})).one_solution


@pytest.mark.slow
def test_only_the_fit_is_timed(recorder, monkeypatch):
    def slowly(function):
        return lambda *args: time.sleep(0.5) or function(*args)

    monkeypatch.setattr(runner, "load_in_order", slowly(runner.load_in_order))
    monkeypatch.setattr(runner, "clustering_scores", slowly(runner.clustering_scores))
    row = run_job(job(), 1)
    assert 0.05 <= row["seconds"] < 0.5
    assert row["cpu_seconds"] < 0.05  # sleeping takes none


def test_threads_and_labels(recorder):
    run_job(job(), 1)
    assert recorder.y_ is None  # no method sees the labels ...
    assert set(recorder.threads_) == {1}
    run_job(job(), 2)
    assert max(recorder.threads_) == 2  # some library may be built for one thread only
    run_job(job(params={"oracle": True}), 1)
    assert len(recorder.y_) == 30  # ... except those with oracle=True
    assert recorder.random_state == 0
    assert recorder.n_clusters == 3
    run_job(job(seed=7), 1)
    assert recorder.random_state == 7


def test_not_converged():
    row = run_job(job(Method("G", "grmsc", "default"), {"max_iter": 2}), 1)
    assert (row["status"], row["converged"], row["iterations"]) == ("ok", False, 2)


def test_a_failure_is_a_row_with_its_reason():
    row = run_job(job(LRR), 1)
    assert row["status"] == "failed"
    assert row["reason"].startswith("ValueError: LRR takes one view; got 2")
    assert [row[name] for name in SCORES] == [None] * 9


def test_cores_are_shared(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    assert share_cores(None) == (8, 1)
    assert share_cores(1) == (1, 8)
    assert share_cores(3) == (3, 2)
    assert share_cores(99) == (8, 1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert share_cores(1) == (1, 1)


@pytest.mark.slow
def test_a_job_out_of_time_is_really_stopped(tmp_path):
    def work(job, threads):
        if job.timeout is None:
            return {"pid": os.getpid()}
        Path(job.params["file"]).write_text(str(os.getpid()))
        np.linalg.svd(np.ones((4000, 4000)))  # does not listen to signals for long
        return {}

    file = tmp_path / "pid"
    jobs = [job(params={"file": str(file)}, timeout=0.5), job()]
    started = time.perf_counter()
    late, fine = run_jobs(jobs, 1, 1, work)
    assert time.perf_counter() - started < 15
    assert (late["status"], late["reason"]) == ("timeout", "stopped after 0.5 s")
    assert late["nmi"] is None
    assert 0.5 <= late["seconds"] < 5
    assert gone(int(file.read_text()))
    assert fine["pid"] != int(file.read_text())  # a fresh worker takes the next job


def gone(pid):
    """Whether a process ends soon."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            status = Path(f"/proc/{pid}/stat")
            if status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_job_only():
    def work(job, threads):
        if job.seed == 1:
            os.kill(os.getpid(), 9)
        return {"status": "ok", "seed": job.seed}

    rows = list(run_jobs([job(seed=s) for s in range(3)], 1, 1, work))
    assert [(row["seed"], row["status"]) for row in rows] == [(0, "ok"), (1, "failed"), (2, "ok")]
    assert rows[1]["reason"].startswith("the worker process died")


@pytest.mark.slow
def test_jobs_run_side_by_side(tmp_path):
    def work(job, threads):
        (tmp_path / str(os.getpid())).touch()
        until = time.monotonic() + 20
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        return {"seen": sorted(path.name for path in tmp_path.iterdir())}

    rows = list(run_jobs([job(), job()], 2, 1, work))
    assert len(rows[0]["seen"]) == 2  # each waited until the other one ran
    assert rows[0]["seen"] == rows[1]["seen"]


@pytest.mark.slow
def test_a_device_reaches_the_methods_that_have_one():
    pytest.importorskip("torch")
    grmsc = job(Method("G", "grmsc", "default"), {})
    row = run_job(grmsc, 1, device="cpu")
    assert row["status"] == "ok", row["reason"]
    assert row["machine"]["device"] == "cpu"
    assert row["key"] == grmsc.key  # where it ran does not make it another job
    inside = run_job(
        job(Method("S", "bestsingleview", "default"), {"estimator": "ssc"}), 1, device="cpu"
    )
    assert inside["status"] == "ok", inside["reason"]
    assert inside["machine"]["device"] == "cpu"
    kmeans = run_job(job(Method("K", "concatkmeans", "default"), {}), 1, device="cpu")
    assert kmeans["status"] == "ok"
    assert "device" not in kmeans["machine"]


def test_a_device_that_is_not_there_is_refused_before_any_work(protocol_file, tmp_path):
    pytest.importorskip("torch")
    with pytest.raises(ValueError, match="device='cuda:99' is not available"):
        run_protocol(read_protocol(protocol_file), tmp_path / "s.db", device="cuda:99")
    assert not (tmp_path / "s.db").exists()


def start(protocol_file, store):
    command = [sys.executable, str(BENCHMARKS), "run", str(protocol_file)]
    return subprocess.Popen(
        [*command, "--jobs", "1", "--store", str(store)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell in the background ignores it, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for_rows(store, number, process):
    end = time.monotonic() + 60
    while not store.exists() or len(read_rows(store)) < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_like_an_undisturbed_one(protocol_file, tmp_path):
    whole, store = tmp_path / "whole.db", tmp_path / "killed.db"
    protocol = read_protocol(protocol_file)
    counts = run_protocol(protocol, whole, jobs=1)
    assert counts == {"ok": 6 + 12 + 3 + 3, "failed": 3}

    process = start(protocol_file, store)
    wait_for_rows(store, 2, process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    pids = [int(pid) for pid in children.read_text().split()] if children.exists() else []
    process.kill()  # -9
    process.communicate(timeout=30)
    assert all(map(gone, pids))  # no worker is left running
    rows = read_rows(store)
    assert 2 <= len(rows) < 27
    assert run_protocol(protocol, store, jobs=1) == counts
    assert read_rows(store)[: len(rows)] == rows  # what was there is still there

    damaged = store.read_bytes()  # and a row is damaged, as is the head of the file
    place = damaged.index(b'"seed": 2')
    store.write_bytes(bytes(16) + damaged[16:place] + b"?" + damaged[place + 1 :])
    notes = []
    assert run_protocol(protocol, store, jobs=1, tell=notes.append) == counts
    assert "is damaged. Lost: row" in notes[0]
    assert len(read_rows(store)) == 27
    assert outcome(read_rows(store)) == outcome(read_rows(whole))

    rows = read_rows(store)
    assert run_protocol(protocol, store) == counts
    assert read_rows(store) == rows  # nothing is left to do


@pytest.mark.slow
def test_workers_leave_ctrl_c_to_the_parent():
    [worker] = start_workers(1, None)
    assert worker.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
    stop_worker(worker)


@pytest.mark.slow
def test_ctrl_c_leaves_a_valid_store(protocol_file, tmp_path):
    store = tmp_path / "store.db"
    process = start(protocol_file, store)
    wait_for_rows(store, 1, process)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the workers too
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == ""
    assert err == (
        f"benchmarks: interrupted; finished jobs are in {store}, and the same command continues "
        "from there\n"
    )
    rows = read_rows(store)
    assert 1 <= len(rows) < 27
    assert all(row["status"] == "ok" for row in rows)


def test_retry(tmp_path, protocol_file, monkeypatch):
    protocol = read_protocol(protocol_file)
    protocol = replace(protocol, methods=protocol.methods[1:])
    calls = []

    def fake(jobs, slots, threads, device, idle):
        calls.append([job.method.name for job in jobs])
        for one in jobs:
            row = empty_row(one, threads)
            yield row | {"status": "failed" if one.method.name == "LRR" else "ok"}

    monkeypatch.setattr(runner, "run_jobs", fake)
    store = tmp_path / "s.db"
    for retry, expected in ((False, 6), (False, 0), (True, 3)):
        calls.clear()
        assert run_protocol(protocol, store, retry=retry) == {"ok": 3, "failed": 3}
        assert sum(map(len, calls)) == expected


@pytest.mark.slow
def test_two_methods_with_the_same_setting_each_have_their_rows(tmp_path, protocol_file):
    text = TEXT.split("[[method]]")[0] + "".join(
        f'[[method]]\nname = "{name}"\nestimator = "concatkmeans"\nselection = "{selection}"\n'
        for name, selection in (("a", "default"), ("b", "default"), ("a", "nothing to tune"))
    )
    protocol_file.write_text(text)
    protocol = read_protocol(protocol_file)
    store = tmp_path / "s.db"
    for some in (protocol.methods[:1], protocol.methods):
        counts = run_protocol(replace(protocol, methods=some), store, jobs=1)
        assert counts == {"ok": 3 * len(some)}
    rows = read_rows(store)
    assert len({row["key"] for row in rows}) == 3
    assert len({(row["method"], row["selection"], row["seed"]) for row in rows}) == 9


@pytest.mark.slow
def test_every_method_is_run_to_its_end_before_the_next(protocol_file, tmp_path):
    """And the workers are those of the methods before."""
    protocol = read_protocol(protocol_file)
    more = [Source("subspaces", "planted", {"n_samples": 40}), *protocol.datasets]
    store = tmp_path / "s.db"
    run_protocol(replace(protocol, datasets=more), store, jobs=1)
    rows = read_rows(store)
    seen = [(row["dataset"], row["method"], row["stage"], row["seed"] > 0) for row in rows]
    places = list(dict.fromkeys((*one[:2], one[2] == "final") for one in seen))
    assert places == [
        (source.label, *rest)
        for source in more
        for rest in (("GRMSC", False), ("GRMSC", True), ("k-means", True), ("LRR", True))
    ]
    run_protocol(replace(protocol, datasets=more), store, jobs=1)
    assert read_rows(store) == rows


def test_errors_before_any_work(tmp_path, protocol_file, monkeypatch):
    protocol = read_protocol(protocol_file)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*none: create it first"):
        run_protocol(protocol, tmp_path / "none" / "store.db")
    with pytest.raises(ValueError, match="jobs must be 1 or more; got 0"):
        run_protocol(protocol, tmp_path / "store.db", jobs=0)
    monkeypatch.delenv("POLYSPAN_DATA", raising=False)
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path))
    missing = replace(protocol, datasets=[*protocol.datasets, Source("hdigit", "hdigit")])
    with pytest.raises(FileNotFoundError, match="download it with `polyspan data fetch hdigit`"):
        run_protocol(missing, tmp_path / "store.db")
    assert not (tmp_path / "store.db").exists()
    assert len(first_jobs(missing)) == 24


def test_a_second_run_is_kept_out_of_the_store(protocol_file, tmp_path):
    store = tmp_path / "store.db"
    protocol = read_protocol(protocol_file)
    with (
        alone(store),
        pytest.raises(BlockingIOError, match=r"another run writes to .*store\.db: wait"),
    ):
        run_protocol(protocol, store, jobs=1)
    assert read_rows(store) == []


def test_a_file_that_is_no_store_is_an_error_before_any_work(protocol_file):
    with pytest.raises(ValueError, match=r"small\.toml is not a store: it has no rows"):
        run_protocol(read_protocol(protocol_file), protocol_file, jobs=1)
    assert protocol_file.read_text() == TEXT
