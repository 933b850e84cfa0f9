from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from polyspan.metrics import SCORES, clustering_scores

steady = examples(60)


@st.composite
def labelings(draw, most=6):
    """Two labelings of the same samples, with any numbers of groups."""
    n = draw(st.integers(1, 30))
    label = st.lists(st.integers(0, draw(st.integers(0, most - 1))), min_size=n, max_size=n)
    return draw(label), draw(st.lists(st.integers(0, most - 1), min_size=n, max_size=n))


@pytest.mark.slow
@given(labelings())
@steady
def test_against_scikit_learn(labels):
    true, pred = labels
    ours = clustering_scores(true, pred)
    # a few roundings of logarithms and quotients; two entropies are subtracted
    near = {"rel": 1e-12, "abs": 1e-12}
    assert ours["nmi"] == pytest.approx(metrics.normalized_mutual_info_score(true, pred), **near)
    assert ours["ari"] == pytest.approx(metrics.adjusted_rand_score(true, pred), **near)
    C = metrics.cluster.contingency_matrix(true, pred)
    assert ours["purity"] == pytest.approx(C.max(0).sum() / len(true), **near)
    bits = metrics.mutual_info_score(true, pred) / np.log(2)
    entropy = metrics.mutual_info_score(true, true) / np.log(2)
    assert ours["avg_entropy"] == pytest.approx(entropy - bits, **near)
    if len(true) > 1:
        assert ours["rand_index"] == pytest.approx(metrics.rand_score(true, pred), **near)
    # ordered pairs: [[apart in both, together in pred], [together in true, together in both]]
    (_, only_pred), (only_true, both) = metrics.cluster.pair_confusion_matrix(true, pred)
    precision = both / (both + only_pred) if both + only_pred else 1.0
    recall = both / (both + only_true) if both + only_true else 1.0
    assert ours["precision"] == pytest.approx(precision, **near)
    assert ours["recall"] == pytest.approx(recall, **near)
    if both:
        f_score = 2 * both / (2 * both + only_pred + only_true)
        assert ours["f_score"] == pytest.approx(f_score, **near)


@given(labelings(most=4))
@steady
def test_accuracy_is_the_best_of_all_matchings(labels):
    true, pred = map(np.array, labels)
    # with four names on each side every one-to-one matching, full or partial, is among these
    best = max(np.mean(np.array(names)[pred] == true) for names in permutations(range(4)))
    assert clustering_scores(true, pred)["acc"] == pytest.approx(best, rel=1e-15)


@pytest.mark.parametrize(
    ("true", "pred", "acc"),
    [
        ([0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 3], 4 / 6),  # more clusters than classes
        ([0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1], 4 / 6),  # fewer
        ([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 1], 4 / 6),  # the greedy choice is not the best
        ([0, 1, 2], [0, 0, 0], 1 / 3),
    ],
)
def test_accuracy_by_hand(true, pred, acc):
    assert clustering_scores(true, pred)["acc"] == pytest.approx(acc, rel=1e-15)


@given(labelings(), st.permutations(range(6)), st.permutations(range(6)), st.randoms())
@steady
def test_names_and_order_do_not_matter(labels, names, more, random):
    true, pred = labels
    order = list(range(len(true)))
    random.shuffle(order)
    renamed = clustering_scores(
        [names[true[i]] for i in order], [f"cluster {more[pred[i]]}" for i in order]
    )
    wanted = clustering_scores(true, pred)
    assert renamed == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@given(labelings())
@steady
def test_range_and_perfection(labels):
    true, pred = labels
    found = clustering_scores(true, pred)
    assert tuple(found) == SCORES
    assert all(isinstance(score, float) for score in found.values())
    for name, score in found.items():
        low, high = {"avg_entropy": (0, np.log2(6) + 1e-9), "ari": (-0.5, 1)}.get(name, (0, 1))
        assert low <= score <= high + 1e-12
    perfect = clustering_scores(true, true)
    wanted = dict.fromkeys(SCORES, 1.0) | {"avg_entropy": 0.0}
    assert perfect == pytest.approx(wanted, rel=1e-12, abs=1e-12)


@pytest.mark.slow
@given(labelings())
@steady
def test_swapping_the_two_swaps_precision_and_recall(labels):
    true, pred = labels
    one, two = clustering_scores(true, pred), clustering_scores(pred, true)
    assert one["precision"] == two["recall"]
    for name in ("nmi", "acc", "f_score", "rand_index", "ari"):
        assert one[name] == pytest.approx(two[name], rel=1e-12, abs=1e-12)


def test_by_hand():
    found = clustering_scores(["a", "a", "b", "b", "b", "c"], [1, 1, 1, 2, 2, 2])
    # together in both: aa, bb; together in classes: 1 + 3; in clusters: 3 + 3; pairs: 15
    assert found["precision"] == pytest.approx(2 / 6)
    assert found["recall"] == pytest.approx(2 / 4)
    assert found["f_score"] == pytest.approx(2 * 2 / (6 + 4))
    assert found["rand_index"] == pytest.approx((15 - 4 - 6 + 2 * 2) / 15)
    assert found["purity"] == pytest.approx(4 / 6)
    assert found["acc"] == pytest.approx(4 / 6)
    third = -(1 / 3 * np.log2(1 / 3) + 2 / 3 * np.log2(2 / 3))
    assert found["avg_entropy"] == pytest.approx(third)


def test_one_sample_and_all_apart():
    assert clustering_scores([0], [5])["f_score"] == 1
    apart = clustering_scores([0, 0, 0], [0, 1, 2])
    assert apart["precision"] == 1  # nothing claimed is wrong
    assert apart["recall"] == apart["f_score"] == apart["ari"] == 0


def test_many_samples_do_not_overflow():
    true = np.repeat([0, 1], 200_000)
    found = clustering_scores(true, 1 - true)
    assert found["ari"] == found["rand_index"] == 1


def test_kinds_of_labels():
    true = ["b", "b", "a", "c"]
    wanted = clustering_scores([1, 1, 0, 2], [0, 0, 1, 1])
    for given_true in (true, tuple(true), np.array(true), np.array(true, object), pd.Series(true)):
        assert clustering_scores(given_true, pd.Series([0, 0, 1, 1])) == wanted
    assert clustering_scores([True, False], [0.5, 1.5])["acc"] == 1


@pytest.mark.parametrize(
    ("true", "pred", "match"),
    [
        ([0, 1], [0, 1, 2], r"of equal length; got shapes \(2,\) and \(3,\)"),
        ([], [], r"not empty .* got shapes \(0,\) and \(0,\)"),
        ([[0], [1]], [[0], [1]], r"must be 1-D.* got shapes \(2, 1\)"),
        ([0, 1], 3, r"got shapes \(2,\) and \(\)"),
        (
            np.array(["a", 1], object),
            [0, 1],
            "^labels_true and labels_pred must each be all numbers or all text",
        ),
    ],
)
def test_errors(true, pred, match):
    with pytest.raises(ValueError, match=match):
        clustering_scores(true, pred)
