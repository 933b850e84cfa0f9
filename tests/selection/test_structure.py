"""Is there anything here? Noise, planted clusters, what is said of single views, and limits."""

import json
import time

import numpy as np
import pytest
import scipy.sparse as sp
from cases import case

from polyspan.inputs.views import check_views
from polyspan.selection import structure as module
from polyspan.selection.structure import (
    FEW,
    LATE,
    between,
    clustered,
    find_structure,
    modularities,
    surrogates,
)

N = 120


def correlated(rng, n=N, d=30):
    return rng.normal(size=(n, 6)) @ rng.normal(size=(6, d)) + rng.normal(size=(n, d))


def heavy(rng):
    return correlated(rng) / np.sqrt(rng.chisquare(2, size=(N, 1)) / 2)


def counts(rng):
    rates = rng.gamma(2, 0.5, size=(N, 1)) * rng.gamma(0.5, 1, size=60)
    X = rng.poisson(rates)
    X[X.sum(axis=1) == 0, 0] = 1  # no sample is all zeros
    return X


def binary(rng):
    return (correlated(rng) > rng.uniform(0, 2, size=30)).astype(float)


def groups(seed=0, n=N, c=3):
    return np.random.default_rng(seed).permutation(np.arange(n) % c)


def shifted(rng, labels, strength):
    """Correlated noise, with a mean of its own for every cluster."""
    means = strength * rng.normal(size=(labels.max() + 1, 30))
    return correlated(rng, len(labels)) + means[labels]


def structure(views, seed=0, scale="unit", **options):
    views = check_views(views, missing=True)
    return find_structure(views, [scale] * len(views.arrays), seed, **options)


def roles(found):
    return [view["role"] for view in found["views"]]


@pytest.mark.parametrize("strength", [0, 3])
def test_few_surrogates_where_the_case_is_clear(strength, monkeypatch):
    drawn = []

    def counted(X, rng):
        for one in surrogates(X, rng):
            drawn.append(one)
            yield one

    monkeypatch.setattr(module, "surrogates", counted)
    X = shifted(np.random.default_rng(0), groups(), strength)
    found = structure([X])
    assert found["verdict"] == ("strong" if strength else "none found")
    assert len(drawn) == 10


# ---- noise and clusters --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [correlated, heavy, counts, binary])
def test_nothing_is_found_in_noise(kind):
    rng = np.random.default_rng(0)
    for seed in range(3):
        found = structure([kind(rng), kind(rng), kind(rng)], seed)
        with case(kind.__name__, seed):
            assert found["verdict"] == "none found"
            assert found["p"] > 0.01
            assert found["agreement"] is found["excess"] is None
            assert roles(found) == ["says nothing"] * 3


def test_clusters_that_views_share_are_found():
    rng = np.random.default_rng(0)
    for strength, verdict in ((1.4, "weak"), (4.0, "strong")):
        found = structure([shifted(rng, groups(), strength) for _ in range(3)])
        assert found["verdict"] == verdict
        assert found["p"] <= 0.01
        assert roles(found) == ["takes part"] * 3
        assert (found["agreement"] >= 0.2) == (verdict == "strong")


def test_clusters_in_counts_are_found():
    rng = np.random.default_rng(0)
    rates = np.exp(1.5 * rng.normal(size=(3, 60)))[groups()] * rng.gamma(2, 0.2, size=(N, 1))
    views = [sp.csr_array(rng.poisson(rates) + np.eye(N, 60)) for _ in range(2)]
    assert structure(views)["verdict"] == "strong"


def test_the_same_seed_gives_the_same_answer_and_plain_values():
    rng = np.random.default_rng(0)
    views = {"text": shifted(rng, groups(), 2.0), "image": correlated(rng)}
    found = structure(views, 3)
    assert found == structure(views, 3) == json.loads(json.dumps(found))


def test_the_order_of_samples_changes_only_the_random_numbers():
    rng = np.random.default_rng(0)
    views = [counts(rng) + 8 * np.eye(3, 60)[groups()], shifted(rng, groups(), 2.0)]
    order = rng.permutation(N)
    one, other = structure(views), structure([X[order] for X in views])
    assert one["agreement"] == pytest.approx(other["agreement"])
    assert one["verdict"] == other["verdict"]
    assert roles(one) == roles(other)


def test_few_samples_lack_a_view_or_most():
    rng = np.random.default_rng(0)
    views = [shifted(rng, groups(), 4.0) for _ in range(3)]
    for k, X in enumerate(views):
        X[k::4] = np.nan  # no sample is complete but one in four
    assert structure(views)["verdict"] == "strong"
    views[0][15:] = np.nan
    found = structure(views)
    assert roles(found) == ["not tested", "takes part", "takes part"]
    assert found["verdict"] == "strong"


@pytest.mark.slow
def test_many_samples_and_columns_take_seconds():
    rng = np.random.default_rng(0)
    labels = groups(n=2000)
    views = [rng.normal(size=(3, 3000))[labels] + rng.normal(size=(2000, 3000)) for _ in range(2)]
    started = time.perf_counter()
    assert structure(views)["verdict"] == "strong"
    assert time.perf_counter() - started < 30  # a few, on a machine with nothing else to do


# ---- what is said of single views ----------------------------------------------------------------


def test_one_view_alone_decides():
    rng = np.random.default_rng(0)
    found = structure({"a": shifted(rng, groups(), 4.0), "b": correlated(rng)})
    assert roles(found) == ["alone decides", "says nothing"]
    assert [view["sentence"] for view in found["views"]] == [
        "view 'a' alone decides: nothing was found in the others",
        "view 'b' says nothing that noise would not say, alone or with another view",
    ]
    assert found["verdict"] == "strong"
    assert "above noise" in found["sentence"]


def test_a_view_disagrees_with_the_others():
    rng = np.random.default_rng(0)
    views = [shifted(rng, groups(), 4.0), shifted(rng, groups(), 4.0), shifted(rng, groups(1), 4.0)]
    found = structure([*views, correlated(rng)])
    assert roles(found) == ["takes part", "takes part", "disagrees", "says nothing"]
    assert found["views"][0]["sentence"] == "view 0 takes part: it shares structure with view 1"
    assert found["views"][2]["sentence"].startswith("view 2 disagrees with the others: it has")


def test_two_views_that_both_have_something_of_their_own_disagree():
    rng = np.random.default_rng(0)
    found = structure([shifted(rng, groups(), 4.0), shifted(rng, groups(1), 4.0)])
    assert roles(found) == ["disagrees", "disagrees"]


def test_a_single_view():
    rng = np.random.default_rng(0)
    found = structure([shifted(rng, groups(), 4.0)])
    assert (found["verdict"], roles(found)) == ("strong", ["alone decides"])
    assert found["views"][0]["sentence"] == "view 0 alone decides: it is the only one"
    found = structure([correlated(rng)])
    assert (found["verdict"], roles(found)) == ("none found", ["says nothing"])
    assert found["views"][0]["sentence"] == "view 0 says nothing that noise would not say"


# ---- when nothing is tested ----------------------------------------------------------------------


def test_after_the_deadline_nothing_is_said():
    rng = np.random.default_rng(0)
    found = structure([correlated(rng)] * 2, deadline=time.perf_counter())
    assert found["verdict"] == found["sentence"] == LATE
    assert found["p"] is None
    assert roles(found) == ["not tested"] * 2
    assert json.dumps(found)


def test_few_samples_are_not_tested():
    rng = np.random.default_rng(0)
    assert structure([correlated(rng, 19)] * 2)["verdict"] == FEW
    views = [correlated(rng, 38), correlated(rng, 38)]
    views[0][:19] = views[1][19:] = np.nan
    assert structure(views)["verdict"] == FEW


# ---- the two tests -------------------------------------------------------------------------------


def test_permuted_views_are_as_good_as_noise(monkeypatch):
    """The p-value is uniform if views have nothing in common, whatever each of them has."""
    monkeypatch.setattr(module, "PERMUTATIONS", 99)
    rng = np.random.default_rng(0)
    views = [shifted(rng, groups(n=60), 4.0), counts(rng)[:60]]
    ps = []
    for _ in range(60):
        pair = [views[0], views[1][rng.permutation(60)]]
        ps.append(between(pair, ["a", "b"], ["unit", "unit"], rng, None)[1][0, 1])
    assert 0.35 < np.mean(ps) < 0.65
    assert np.mean(np.array(ps) <= 0.1) < 0.25


def test_p_values_are_corrected_for_the_number_of_pairs(monkeypatch):
    monkeypatch.setattr(module, "PERMUTATIONS", 99)
    rng = np.random.default_rng(0)
    views = [correlated(rng) for _ in range(6)]
    p = between(views, list("abcdef"), ["unit"] * 6, rng, None)[1]
    assert np.isnan(np.diag(p)).all()
    assert np.nanmin(p) > 0.05
    assert np.nanmedian(p) > 0.5  # of the largest of 15: most pairs are far from it


def test_modularity_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    A, B = (clustered(correlated(rng, 40)) for _ in range(2))
    W = sp.coo_array((A.weights, (A.i, A.j)), shape=(40, 40)).toarray()
    assert np.allclose(W, W.T)
    assert W.sum() == pytest.approx(1)
    ends = [*B.starts[1:], B.members.shape[1]]
    for found, start, end in zip(modularities(A, B), B.starts, ends, strict=True):
        labels = B.members[:, start:end].argmax(axis=1)
        d = W.sum(axis=1)
        expected = np.sum((W - np.outer(d, d)) * (labels[:, None] == labels))
        assert found == pytest.approx(expected)


def test_clusters_far_apart_are_found_exactly():
    labels = groups()
    X = 100 * np.eye(3)[labels] + np.random.default_rng(0).normal(size=(N, 3))
    found = clustered(X)
    three = found.members[:, found.starts[1] : found.starts[2]].argmax(axis=1)
    assert len(set(zip(labels, three, strict=True))) == 3
    assert modularities(found, found)[1] == pytest.approx(2 / 3)


def test_surrogates_keep_values_and_correlations():
    rng = np.random.default_rng(0)
    X = correlated(rng, 300, 10)
    one = next(surrogates(X, rng))
    for q in (0.1, 0.25, 0.5, 0.75, 0.9):
        assert np.allclose(np.quantile(one, q, axis=0), np.quantile(X, q, axis=0), atol=0.5)
    assert np.allclose(one.mean(axis=0), X.mean(axis=0))
    assert np.allclose(one.std(axis=0), X.std(axis=0))
    assert np.abs(np.corrcoef(one.T) - np.corrcoef(X.T)).max() < 0.1
    assert np.abs(np.corrcoef(one.T, X.T)[:10, 10:]).max() < 0.3
    Y = counts(rng)
    Y = Y[:, Y.std(axis=0) > 0]
    assert np.array_equal(np.sort(next(surrogates(Y, rng)), axis=0), np.sort(Y, axis=0))


def test_surrogates_of_binary_columns_keep_their_correlations():
    """Without the correction for ties they would be half as large; with it, a little larger."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(400, 1))
    X = (common + rng.normal(size=(400, 12)) > 1).astype(float)
    off = ~np.eye(12, dtype=bool)
    means = [np.corrcoef(next(surrogates(X, rng)).T)[off].mean() for _ in range(5)]
    assert 1 < np.mean(means) / np.corrcoef(X.T)[off].mean() < 1.25


def test_gaps_between_clusters_are_closed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8)) + 20 * (np.arange(200) % 2)[:, None]
    one = next(surrogates(X, rng))
    assert np.diff(np.sort(X, axis=0), axis=0).max() > 10
    assert np.diff(np.sort(one, axis=0), axis=0)[5:-5].max() < 2
