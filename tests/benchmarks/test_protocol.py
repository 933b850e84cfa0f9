from collections import Counter
from pathlib import Path

import pytest

from harness import read_protocol
from harness.jobs import count_jobs, deciding_jobs, final_jobs, first_jobs
from harness.plan import Source, build, load_in_order, load_source, settings
from harness.protocol import UnknownNameError, narrow
from harness.summaries import read_paper
from polyspan.datasets.registry import UnknownDatasetError

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HEAD = 'name = "p"\nseeds = 2\n'
DATA = '[[dataset]]\nname = "subspaces"\nlabel = "planted"\nn_samples = 40\n'
KMEANS = '[[method]]\nname = "k-means"\nestimator = "concatkmeans"\nselection = "default"\n'
TUNED = (
    '[[method]]\nname = "GRMSC"\nestimator = "grmsc"\nselection = "tuned"\n'
    'params = { graph_scale = "None", regularizer = "none" }\n'
    "grid = { lam1 = [1.0, 10.0], n_neighbors = [10, 39, 40] }\n"
)


@pytest.fixture
def read(tmp_path):
    def read(text, name="p.toml"):
        (tmp_path / name).write_text(text)
        return read_protocol(tmp_path / name)

    return read


def method(**fields):
    values = {"name": "m", "estimator": "grmsc", "selection": "default"} | fields
    lines = [f"{key} = {value if value[0] in '{[3' else repr(value)}"
             for key, value in values.items()]  # fmt: skip
    return "[[method]]\n" + "\n".join(lines) + "\n"


def test_jobs(read):
    protocol = read(HEAD + "timeout = 9\n" + DATA + KMEANS + TUNED)
    jobs = first_jobs(protocol)
    assert [(job.method.name, job.stage, job.seed) for job in jobs] == [
        ("k-means", "final", 0),
        ("k-means", "final", 1),
        *[("GRMSC", "tune", 0)] * 4,
    ]
    fixed = {"graph_scale": None, "regularizer": "none"}  # "None" is None, "none" is a word
    assert [job.params for job in jobs[2:]] == [
        fixed | {"lam1": lam1, "n_neighbors": k} for lam1 in (1.0, 10.0) for k in (10, 39)
    ]  # 40 neighbors are not among 40 samples
    assert {job.timeout for job in jobs} == {9}
    assert count_jobs(protocol) == 2 + 4 + 2 * 4 + 2
    assert len({job.key for job in jobs}) == len(jobs)


def answered(jobs, scores):
    return [
        {"protocol": "p", "method": job.method.name, "selection": "tuned", "stage": "tune",
         "key": job.key, "status": "failed" if score is None else "ok", "nmi": score}
        for job, score in zip(jobs, scores, strict=True)
    ]  # fmt: skip


def tuning_rows(protocol, scores, others=None):
    """Rows of the grid with the first seed, and of the two further seeds that decide."""
    jobs = [job for job in first_jobs(protocol) if job.stage == "tune"]
    rows = answered(jobs, scores)
    more = deciding_jobs(protocol, rows)
    known = {str(job.params): score for job, score in zip(jobs, others or scores, strict=True)}
    return rows + answered(more, [known[str(job.params)] for job in more])


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ([0.1, 0.2, 0.9, 0.3], (10.0, 10)),
        ([0.1, 0.7, 0.7 + 1e-13, 0.3], (1.0, 39)),  # a tie but for rounding: the first
        ([None, None, None, 0.0], (10.0, 39)),
    ],
)
def test_final_jobs_are_at_the_best_setting(read, scores, chosen):
    protocol = read(HEAD + DATA + KMEANS + TUNED)
    rows = tuning_rows(protocol, scores)
    for order in (rows, rows[::-1]):
        jobs = final_jobs(protocol, order)
        assert [(job.stage, job.seed) for job in jobs] == [("final", 0), ("final", 1)]
        assert {(job.params["lam1"], job.params["n_neighbors"]) for job in jobs} == {chosen}


def test_three_seeds_decide(read):
    protocol = read(HEAD + DATA + TUNED)
    rows = tuning_rows(protocol, [0.9, 0.1, 0.8, 0.7], [0.3, 0.1, 0.6, 0.66])
    assert [(row["nmi"]) for row in rows[4:6]] == [0.3, 0.3]  # seeds 1 and 2 at the best setting
    chosen = {(job.params["lam1"], job.params["n_neighbors"]) for job in final_jobs(protocol, rows)}
    assert chosen == {(10.0, 39)}  # .673 of all seeds; the others have .5, .1 and .667


def test_twenty_settings_are_decided_among(read):
    grid = "{ lam1 = [" + ", ".join(f"{k}.0" for k in range(1, 31)) + "] }"
    protocol = read(HEAD + DATA + method(selection="tuned", grid=grid))
    jobs = first_jobs(protocol)
    scores = [None if k in (3, 29) else k / 100 for k in range(30)]
    more = deciding_jobs(protocol, answered(jobs, scores))
    assert [(job.params["lam1"], job.seed) for job in more] == [
        (lam1, seed) for lam1 in range(29, 9, -1) for seed in (1, 2)
    ]
    assert {job.stage for job in more} == {"tune"}
    assert count_jobs(protocol) == 30 + 2 * 20 + 2
    few = deciding_jobs(protocol, answered(jobs, [0.5, 0.6, *[None] * 28]))
    assert {job.params["lam1"] for job in few} == {1.0, 2.0}  # no seed for what failed


def test_a_setting_that_failed_with_one_seed_is_not_chosen(read):
    protocol = read(HEAD + DATA + TUNED)
    rows = tuning_rows(protocol, [0.9, 0.1, 0.8, 0.7], [None, 0.1, 0.6, 0.2])
    assert {job.params["lam1"] for job in final_jobs(protocol, rows)} == {10.0}
    assert final_jobs(protocol, rows[:4]) == []  # nothing is chosen by one seed


def test_the_order_of_the_samples(read):
    for order in ("shuffled", "file", "sorted"):
        protocol = read(HEAD + f'order = "{order}"\n' + DATA + KMEANS)
        assert {job.order for job in first_jobs(protocol)} == {order}
    first = {order: first_jobs(read(HEAD + f'order = "{order}"\n' + DATA + KMEANS))[0].key
             for order in ("shuffled", "file", "sorted")}  # fmt: skip
    assert len(set(first.values())) == 3  # other orders, other jobs
    assert first_jobs(read(HEAD + DATA + KMEANS))[0].key == first["shuffled"]

    source = Source("digits", "x", {"n_samples": 50})
    plain = load_source(source)
    assert load_in_order(source, "file", 3) is plain
    for order in ("shuffled", "sorted"):
        one, other = (load_in_order(source, order, seed) for seed in (0, 1))
        assert (one.views[0] != other.views[0]).any()
        for view, moved in zip(plain.views, one.views, strict=True):  # all views alike
            place = [(plain.views[0] == row).all(1).argmax() for row in one.views[0]]
            assert sorted(place) == list(range(50))
            assert (moved == view[place]).all()
            assert (one.labels == plain.labels[place]).all()
    assert (one.labels[1:] >= one.labels[:-1]).all()


def test_no_final_jobs_when_every_setting_failed(read):
    protocol = read(HEAD + DATA + TUNED)
    assert final_jobs(protocol, tuning_rows(protocol, [None] * 4)) == []


def test_rows_of_other_protocols_do_not_choose(read):
    protocol = read(HEAD + DATA + TUNED)
    rows = tuning_rows(protocol, [0.5, 0.1, 0.1, 0.1])
    foreign = [row | {"protocol": "q", "nmi": 1 - row["nmi"]} for row in rows]
    assert {job.params["n_neighbors"] for job in final_jobs(protocol, rows + foreign)} == {10}


def test_nothing_to_tune(read):
    protocol = read(HEAD + DATA + method(estimator="amgl", selection="nothing to tune"))
    assert [job.stage for job in first_jobs(protocol)] == ["final", "final"]
    assert final_jobs(protocol, []) == []


def test_datasets_of_a_method(read):
    more = '[[dataset]]\nname = "digits"\nn_samples = 50\n'
    protocol = read(HEAD + DATA + more + KMEANS + 'datasets = ["planted"]\n' + method())
    assert [(m.name, s.label) for m, s in protocol.pairs()] == [
        ("k-means", "planted"),
        ("m", "planted"),
        ("m", "digits (n_samples=50)"),
    ]


def test_methods_from_another_protocol(read):
    read(HEAD + DATA + KMEANS + 'datasets = ["planted"]\n' + method(), "other.toml")
    wide = '[[dataset]]\nname = "digits"\nn_samples = 50\n'
    protocol = read(HEAD.replace('"p"', '"q"') + 'methods_from = "other.toml"\n' + wide)
    assert [(m.name, s.name) for m, s in protocol.pairs()] == [("m", "digits")]


def test_data_are_what_the_entry_says():
    assert load_source(Source("subspaces", "x", {"n_samples": 30})).views[0].shape[0] == 30
    assert load_source(Source("digits", "x", {"n_samples": 50})).views[0].shape[0] == 50
    assert Source("digits", "x").n_samples == load_source(Source("digits", "x")).labels.size
    assert Source("subspaces", "x").n_samples == load_source(Source("subspaces", "x")).labels.size


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seeds = 2\n" + DATA + KMEANS, "a protocol needs the key 'name'"),
        (HEAD + "seed = 3\n" + DATA + KMEANS, "no key 'seed', did you mean 'seeds'"),
        ('name = "p"\nseeds = 0\n' + DATA + KMEANS, "seeds must be a whole number >= 1; got 0"),
        (HEAD + "timeout = 0\n" + DATA + KMEANS, "timeout must be a number of seconds > 0"),
        (HEAD + "name = ", "p.toml is not TOML"),
        (HEAD + DATA, r"needs at least one \[\[method\]\]"),
        (HEAD + "dataset = 3\n" + KMEANS, r"dataset must be written as \[\[dataset\]\]"),
        (HEAD + DATA + DATA + KMEANS, "two entries are called data set planted"),
        (HEAD + DATA + KMEANS + KMEANS, r"two entries are called method k-means \(default\)"),
        (HEAD + DATA + "noize = 1\n" + KMEANS, "no key 'noize', did you mean 'noise'"),
        (HEAD + DATA + "noise = -1\n" + KMEANS, "noise must be a finite number >= 0"),
        (HEAD + '[[dataset]]\nname = "ngs"\nn_samples = 9\n' + KMEANS, "'ngs' takes no 'n_samp"),
        (HEAD + '[[dataset]]\nname = "gbm"\n' + KMEANS, "'gbm' has no classes, so no"),
        (HEAD + DATA + method(estimator="grmcs"), "no estimator is called 'grmcs', .*'grmsc'"),
        (HEAD + DATA + method(selection="best"), "selection must be 'default' or 'tuned' or"),
        (HEAD + DATA + method(params="3"), "'params' of a .*method.* must be a table"),
        (HEAD + DATA + method(grid="[3]"), "'grid' of a .*method.* must be a table"),
        (HEAD + DATA + method(name="3"), "'name' of a .*method.* must be a text"),
        (HEAD + DATA + method(estimator="[3]"), "'estimator' of a .*method.* must be a text"),
        (HEAD + DATA + method(datasets="planted"), "'datasets' of a .*method.* must be a list"),
        (HEAD + "[[dataset]]\nname = 3\n" + KMEANS, "'name' of a .*dataset.* must be a text"),
        (HEAD + "methods_from = 3\n" + DATA, "'methods_from' of a protocol must be a text"),
        (HEAD + DATA + method(gird="{}"), "no key 'gird', did you mean 'grid'"),
        (HEAD + DATA + method(params="{ lam_1 = 2 }"), "GRMSC has no parameter 'lam_1', .*'lam1'"),
        (HEAD + DATA + method(params="{ lam1 = -2 }"), "lam1 must be a finite number .*got -2"),
        (HEAD + DATA + method(params="{ n_clusters = 2 }"), "n_clusters comes from the data"),
        (HEAD + DATA + method(params="{ random_state = 2 }"), "random_state comes from the data"),
        (HEAD + DATA + method(params="{ n_neighbors = 40 }"), "no setting for planted.* below"),
        (HEAD + DATA + method(grid="{ lam1 = [1] }"), "'default' takes no grid"),
        (HEAD + DATA + method(selection="tuned"), "selection 'tuned' needs a grid; without one"),
        (HEAD + 'order = "random"\n' + DATA + KMEANS, "order must be 'shuffled' or 'file' or"),
        (
            HEAD + DATA + method(selection="label-free", grid="{ lam1 = [1] }"),
            "'label-free' takes no grid",
        ),
        (HEAD + DATA + method(selection="tuned", grid="{ lam1 = 1 }"), "grid.lam1 must be a list"),
        (
            HEAD + DATA + method(selection="tuned", grid="{ alpha = [1, -1] }"),
            "alpha must be .* got -1",
        ),
        (
            HEAD + DATA + method(selection="tuned", params="{lam1 = 1}", grid="{ lam1 = [1] }"),
            "lam1 is both in params and in grid",
        ),
        (
            HEAD + DATA + method(estimator="bestsingleview", params="{ oracle = true }"),
            "oracle=true uses the labels",
        ),
        (
            HEAD + DATA + method(estimator="bestsingleview", params='{ estimator = "llr" }'),
            "params.estimator must be one of grmsc, anchorgrmsc",
        ),
        (
            HEAD
            + DATA
            + method(
                estimator="bestsingleview", params='{ estimator = "lrr", estimator__lam = -1 }'
            ),
            "LRR: lam must be .* got -1",
        ),
        (HEAD + DATA + method(datasets='["plant"]'), "no label 'plant', did you mean 'planted'"),
    ],
)
def test_errors_come_before_any_work(read, text, words):
    with pytest.raises(ValueError, match=words):
        read(text)


def test_a_method_has_one_key_however_it_is_written(read):
    inner = '{{ estimator = "{}" }}'
    texts = [
        HEAD + DATA + method(estimator=one, params=inner.format(two))
        for one, two in (("bestsingleview", "lrr"), ("BestSingleView", "LRR"))
    ]
    first, other = ([job.key for job in first_jobs(read(text))] for text in texts)
    assert first == other


def test_unknown_data_set(read):
    with pytest.raises(UnknownDatasetError, match=r"p\.toml: no data set is called 'ng'"):
        read(HEAD + '[[dataset]]\nname = "ng"\n' + KMEANS)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no protocol .*none\.toml"):
        read_protocol(tmp_path / "none.toml")


def test_narrow(read):
    protocol = read(HEAD + DATA + '[[dataset]]\nname = "digits"\n' + KMEANS + TUNED)
    assert narrow(protocol, [], []) == protocol
    one = narrow(protocol, ["grmsc"], ["planted"])
    assert [(m.name, s.label) for m, s in one.pairs()] == [("GRMSC", "planted")]
    with pytest.raises(UnknownNameError, match="has no method 'GRMS', did you mean 'GRMSC'"):
        narrow(protocol, ["GRMS"], [])
    with pytest.raises(UnknownNameError, match=r"has no data set 'ngs'\. Known: planted, digits"):
        narrow(protocol, [], ["ngs"])


@pytest.mark.parametrize(
    ("name", "jobs"), [("smoke", 90), ("paper", 27702), ("wide", 510), ("open", 2160)]
)
@pytest.mark.slow
def test_the_protocols_of_the_repository(name, jobs):
    protocol = read_protocol(BENCHMARKS / f"{name}.toml")
    assert protocol.name == name
    assert count_jobs(protocol) == jobs
    for one, source in protocol.pairs():
        for params in settings(one, source)[:1]:
            build(one.estimator, params)


@pytest.mark.slow
def test_the_grids_of_the_paper_protocol():
    protocol = read_protocol(BENCHMARKS / "paper.toml")
    tuned = Counter(job.method.name for job in first_jobs(protocol) if job.stage == "tune")
    assert {name: n // 6 for name, n in tuned.items()} == {
        "GRMSC": 9 * 9 * 7 * 2,
        "GRMSC_Naive": 9 * 9 * 7 * 2,
        "GRMSC (raw)": 9 * 9 * 7 * 2,
        "MSC_Naive": 9,
        "MSC_Naive (raw)": 9,
        "LRR_BSV": 9,
        "LRR_BSV (raw)": 9,
        "RMSC": 5,
        "RMSC (raw)": 5,
        "LMSC": 4,
        "LMSC (raw)": 4,
        "LMSC (as released)": 4,
        "MLRSSC": 45,
        "MLRSSC (raw)": 45,
        "MLRSSC (raw, lam 1)": 45,
        "ConcatSpectral": 2,
    }
    here = {(source.name, one.paper) for one, source in protocol.pairs() if one.paper}
    assert set(read_paper()) <= here  # every row of both tables is run


def test_seeds_do_not_depend_on_the_method():
    jobs = first_jobs(read_protocol(BENCHMARKS / "smoke.toml"))
    for stage, expected in (("final", {0, 1, 2}), ("tune", {0})):
        found = {}
        for job in jobs:
            if job.stage == stage:
                found.setdefault((job.method.name, job.source.label), set()).add(job.seed)
        assert all(seeds == expected for seeds in found.values())
