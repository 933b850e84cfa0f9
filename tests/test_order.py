"""The contract: shuffle the samples, and what a method learns is the shuffled same, also with ties.

Public files are sorted by class, so a method that sees the order of the samples sees the classes.
The data here are sorted by class and full of ties: counts, binary features, duplicates.
"""

import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

import polyspan.graphs.neighbors
from polyspan import (
    CGD,
    GRMSC,
    LRR,
    METHODS,
    NEMO,
    SNF,
    SSC,
    TSVDMSC,
    AnchorGRMSC,
    BestSingleView,
    ConcatKMeans,
    ConcatSpectral,
    ConsensusClusterer,
    MeanGraph,
)
from polyspan.cli.main import main
from polyspan.graphs.proximity import first_order
from polyspan.inputs.scaling import unit
from polyspan.methods.dssmsc import solve_dssmsc
from polyspan.methods.fpmvs import solve_fpmvs
from polyspan.methods.lmsc import solve_lmsc
from polyspan.metrics import clustering_scores

N = 42
CLASSES = np.repeat(np.arange(3), N // 3)
EXEMPT = {"tsvdmsc"}  # its Fourier transform runs along the samples
RANDOM = {  # with random starts, and parameters with which these matter for so few samples
    "lmsc": {},
    "dssmsc": {},
    "anchorgrmsc": {"n_anchors": 12},
    "lmvsc": {"n_anchors": 12},
    "fpmvs": {},
    "fastmice": {"n_anchors": 12},
    "concatkmeans": {"n_init": 1},
}
BLIND = [name for name in METHODS if name not in {*RANDOM, *EXEMPT, "bestsingleview"}]
SPARSE = [name for name in BLIND if "n_kept" in METHODS[name].parameter_checks()]
# Their programs go by row numbers, which the variants say.
BY_ROW = ["amgl", "gmc", "mcgc"]
RELEASED = [
    name
    for name in BLIND
    if "as_released" in METHODS[name].parameter_checks() and name not in BY_ROW
]
# Their neighbors are approximate among more than 20,000 samples.
APPROXIMATE = [MeanGraph, NEMO, ConcatSpectral, SNF, CGD]
BLIND_POOL = [MeanGraph(), MeanGraph(n_neighbors=5), ConcatSpectral(), NEMO(), GRMSC(), SNF()]
RANDOM_POOL = [MeanGraph(), ConcatSpectral(), ConcatKMeans(n_init=1)]


def counts():
    """Words in texts: few distinct values, most of them zero."""
    rng = np.random.default_rng(0)
    return [
        rng.poisson(0.3, (N, d)) + np.eye(3)[CLASSES][:, np.arange(d) % 3] * (np.arange(d) < 6)
        for d in (12, 9)
    ]


def binary():
    """Features that are there or not, the first one always."""
    rng, views = np.random.default_rng(1), []
    for d in (10, 8):
        X = rng.uniform(size=(N, d)) < rng.uniform(0.1, 0.7, size=(3, d))[CLASSES]
        X[:, 0] = True
        views.append(X.astype(float))
    return views


def duplicates():
    """Fifteen different samples, each several times."""
    rng = np.random.default_rng(2)
    rows = 5 * CLASSES + rng.integers(5, size=N)
    return [
        (rng.normal(size=(15, d)) + 2 * np.eye(3, d)[np.repeat(np.arange(3), 5)])[rows]
        for d in (6, 5)
    ]


DATA = [counts, binary, duplicates]
SHUFFLES = [np.random.default_rng(seed).permutation(N) for seed in (3, 4)]


def fit(name, views, **params):
    views = views[:1] if get_tags(METHODS[name]()).single_view else views
    with warnings.catch_warnings():  # of small n: more pieces than clusters, too few iterations
        warnings.simplefilter("ignore", ConvergenceWarning)
        return METHODS[name](**({"n_clusters": 3, "random_state": 0} | params)).fit(views)


def learned(model):
    """Matrices between samples that a model has learned: affinity and representation, or U U^T."""
    found = {}
    for name in ("affinity_matrix_", "representation_"):
        if hasattr(model, name):
            A = getattr(model, name)
            found[name] = A.toarray() if sp.issparse(A) else np.asarray(A)
    return found or {"embedding_": model.embedding_ @ model.embedding_.T}


def moved(name, make, **params):
    """Largest change of what is learned when the samples are shuffled, relative to its largest."""
    views = make()
    one, largest = learned(fit(name, views, **params)), 0.0
    for order in SHUFFLES:
        other = learned(fit(name, [view[order] for view in views], **params))
        assert one.keys() == other.keys()
        for key, A in one.items():
            assert A.shape == (N, N)
            assert np.any(A)
            change = np.max(np.abs(other[key] - A[np.ix_(order, order)]))
            largest = max(largest, float(change / np.max(np.abs(A))))
    return largest


@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("name", BLIND)
def test_the_order_of_the_samples_does_not_matter(name, make):
    assert moved(name, make) < 1e-8


@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("name", SPARSE)
def test_nor_among_the_largest_entries(name, make):
    assert moved(name, make, affinity="sparse", n_kept=4) < 1e-8


@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("name", RELEASED)
def test_nor_in_the_released_programs(name, make):
    assert moved(name, make, as_released=True) < 1e-8


@pytest.mark.parametrize("name", BY_ROW)
def test_the_variants_that_go_by_row_numbers_do_and_say_so(name):
    assert max(moved(name, make, as_released=True) for make in DATA) > 1e-3
    assert "row number" in sys.modules[METHODS[name].__module__].__doc__


@pytest.mark.parametrize(
    "params",
    [
        {"n_neighbors": 3},
        {"n_neighbors": 20},
        {"regularizer": "first_order"},
        {"second_width": "first"},
        {"orientation": "published"},
        {"scale": None},
        {"scale": "standard+unit", "graph_scale": "unit"},
    ],
    ids=str,
)
def test_grmsc_in_all_its_forms(params):
    for make in DATA:
        assert moved("grmsc", make, **params) < 1e-8


@pytest.mark.parametrize("make", DATA)
def test_glmsc_with_networks(make):
    pytest.importorskip("torch")
    assert moved("glmsc", make, mapping="network") < 1e-8


def test_distances_that_differ_by_rounding_are_tied():
    X = counts()[0]  # whole numbers: nothing is rounded
    # Far from zero, squared distances have four digits less; the units do not matter.
    far = first_order(X / 3 + 100 / 3, 5)[0]
    np.testing.assert_allclose(far, first_order(X, 5)[0], rtol=0, atol=1e-8)


def test_grmsc_of_sparse_and_of_missing_views():
    order = SHUFFLES[0]
    some, sparse = counts(), [sp.csr_array(X) for X in counts()]
    some[0][[3, 20, 40]] = np.nan
    for views in (some, sparse):
        one, two = (GRMSC(3, random_state=0).fit(Xs) for Xs in (views, [X[order] for X in views]))
        wanted = one.representation_[np.ix_(order, order)]
        assert np.max(np.abs(two.representation_ - wanted)) < 1e-8


@pytest.mark.parametrize("make", [counts, binary])  # duplicates fall into more pieces than clusters
def test_new_samples_do_not_see_the_order_of_the_fitted_ones(make):
    views, order = make(), SHUFFLES[0]
    one, two = (
        LRR(3, affinity="sparse", n_kept=4, random_state=0).fit(X)
        for X in (views[0], views[0][order])
    )
    # Clusters have other numbers: compare the partitions.
    found = [model.predict(views[0]) for model in (one, two)]
    assert clustering_scores(*found)["ari"] > 0.999


def apart_in_the_mean(fitted, data=DATA):
    """Mean NMI of ten seeds, sorted by class minus shuffled, and two standard errors of it."""
    scores = np.zeros((2, 10))  # the mean over the data sets
    for make in data:
        views = make()
        for seed in range(10):
            orders = np.arange(N), np.random.default_rng(seed).permutation(N)
            for row, order in enumerate(orders):
                model = fitted([X[order] for X in views], seed)
                nmi = clustering_scores(CLASSES[order], model.labels_)["nmi"]
                scores[row, seed] += nmi / len(data)
    error = np.sqrt(np.sum(np.var(scores, axis=1, ddof=1)) / 10)
    given, shuffled = np.mean(scores, axis=1)
    return given - shuffled, 2 * error


@pytest.mark.slow
@pytest.mark.parametrize("name", RANDOM)
def test_methods_with_random_starts_are_blind_in_the_mean(name):
    apart, chance = apart_in_the_mean(
        lambda views, seed: fit(name, views, random_state=seed, **RANDOM[name])
    )
    assert abs(apart) <= chance


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "lmsc" else ())
        for name in RANDOM
        if "as_released" in METHODS[name].parameter_checks()
    ],
)
def test_so_are_their_released_programs(name):
    apart, chance = apart_in_the_mean(
        lambda views, seed: fit(name, views, random_state=seed, as_released=True)
    )
    assert abs(apart) <= chance


@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("as_released", [False, True, "corrected"])
def test_lmsc_moves_with_its_start(as_released, make):
    X, H = unit(np.hstack(make())), np.random.default_rng(5).uniform(size=(10, N))
    Z, latent = solve_lmsc(X, H, lam_rank=0.1, as_released=as_released)
    for order in SHUFFLES:
        found, other = solve_lmsc(X[order], H[:, order], lam_rank=0.1, as_released=as_released)
        wanted = Z[np.ix_(order, order)]
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-8 * np.max(np.abs(Z)))
        wanted = latent[:, order]
        np.testing.assert_allclose(other, wanted, rtol=0, atol=1e-8 * np.max(np.abs(latent)))


@pytest.mark.parametrize("make", DATA)
def test_dssmsc_moves_with_its_start(make):
    Xs, rng = [unit(X) for X in make()], np.random.default_rng(5)
    start = [rng.uniform(size=(d, N)) for d in (3, 5, 5)]
    Z, Zs, H = solve_dssmsc(Xs, start, lam=0.1, lam_d=0.01)
    for order in SHUFFLES:
        found, others, latent = solve_dssmsc(
            [X[order] for X in Xs], [A[:, order] for A in start], lam=0.1, lam_d=0.01
        )
        for one, two in zip((found, *others), (Z, *Zs), strict=True):
            np.testing.assert_allclose(one, two[np.ix_(order, order)], rtol=0, atol=1e-8)
        np.testing.assert_allclose(latent, H[:, order], rtol=0, atol=1e-8)


@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("as_released", [False, True])
def test_fpmvs_moves_with_its_start(as_released, make):
    Xs = [unit(X) for X in make()]
    start = np.eye(3, N)[:, np.random.default_rng(5).permutation(N)]
    Z = solve_fpmvs(Xs, start, as_released=as_released)[0]
    for order in SHUFFLES:
        own = [X[order] for X in Xs]
        found = solve_fpmvs(own, start[:, order], as_released=as_released)[0]
        np.testing.assert_allclose(found, Z[:, order], rtol=0, atol=1e-8)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:ConsensusClusterer. no certainty")
def test_a_consensus_is_blind_in_the_mean():
    apart, chance = apart_in_the_mean(
        lambda views, seed: ConsensusClusterer(3, members=RANDOM_POOL, random_state=seed).fit(
            views
        ),
        [binary],
    )
    assert abs(apart) <= chance


@pytest.mark.parametrize("make", [counts, duplicates])  # binary: a k-means finds another optimum
def test_a_consensus_of_blind_members_does_not_see_the_order(make):
    views = make()
    one = ConsensusClusterer(3, members=BLIND_POOL, random_state=0).fit(views)
    for order in SHUFFLES:
        two = ConsensusClusterer(3, members=BLIND_POOL, random_state=0).fit(
            [X[order] for X in views]
        )
        assert clustering_scores(one.labels_[order], two.labels_)["ari"] > 0.999
        np.testing.assert_allclose(two.certainty_, one.certainty_[order], rtol=0, atol=1e-8)
        for before, after in zip(one.table_, two.table_, strict=True):
            for key in ("agreement", "modularity", "nearness"):
                assert abs(before[key] - after[key]) < 1e-8, key


@pytest.mark.parametrize(
    ("cls", "make"),
    # Not SSC with duplicates: five pieces and three clusters, so that labels are arbitrary.
    [(LRR, counts), (LRR, binary), (LRR, duplicates), (SSC, counts), (SSC, binary)],
)
def test_the_best_single_view_is_the_same_one(cls, make):
    views = make()
    one = BestSingleView(cls(3, random_state=0)).fit(views)
    for order in SHUFFLES:
        two = BestSingleView(cls(3, random_state=0)).fit([X[order] for X in views])
        assert two.best_view_ == one.best_view_
        np.testing.assert_allclose(two.scores_, one.scores_, rtol=0, atol=1e-8)
        assert clustering_scores(one.labels_[order], two.labels_)["ari"] > 0.999
        for before, after in zip(one.estimators_, two.estimators_, strict=True):
            W = before.affinity_matrix_[np.ix_(order, order)]
            assert np.max(np.abs(after.affinity_matrix_ - W)) < 1e-8 * np.max(np.abs(W))


def test_what_is_exempt_says_so():
    for cls in (TSVDMSC, AnchorGRMSC, *APPROXIMATE):
        assert "order of the samples" in " ".join(cls.__doc__.split()), cls.__name__


@pytest.mark.parametrize("name", BLIND)
def test_the_methods_with_approximate_neighbors_are_these(name, monkeypatch):
    monkeypatch.setattr(polyspan.graphs.neighbors, "EXACT_BELOW", N - 1)
    sees = METHODS[name] in APPROXIMATE
    assert (moved(name, binary) > 1e-3) == sees


@pytest.mark.slow
def test_the_page_shows_what_the_audit_prints(data_dir, monkeypatch, capsys):
    page = (Path(__file__).parents[1] / "docs" / "order-of-samples.md").read_text("utf-8")
    command = re.search(r"```bash\npolyspan (.*)\n", page)[1]
    shown = re.search(r"```text\n(.*?)```", page, flags=re.S)[1]
    monkeypatch.setenv("POLYSPAN_DATA", str(data_dir))
    main(command.split())
    number = r"\d+\.\d+"
    texts = [" ".join(text.split()) for text in (shown, capsys.readouterr().out)]
    assert re.sub(number, "0", texts[0]) == re.sub(number, "0", texts[1])
    found = [np.array(re.findall(number, text), dtype=float) for text in texts]
    np.testing.assert_allclose(*found, rtol=0, atol=0.02)  # of another BLAS
