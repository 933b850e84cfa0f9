"""The scalings chosen for data of the kinds that people have."""

import array_api_strict as strict
import numpy as np
import pytest
import scipy.sparse as sp

from polyspan.inputs.choice import choose_scaling, look_at_columns, scalings_for
from polyspan.inputs.scaling import SCALES
from polyspan.inputs.views import check_views

COUNTS = ("unit", "standard+unit")
MIXED = ("standard+unit", "standard")
FAR = ("standard+unit", "unit", "standard", None)
ZEROS = "many values are zeros, as in counts, so samples are scaled to unit length"


def rng():
    return np.random.default_rng(0)


def words():
    return rng().poisson(rng().gamma(0.3, 0.5, size=40), size=(100, 40)).astype(float)


def pixels():
    """Strokes in the middle, and hardly anything at the border."""
    ink = np.exp(-(np.linspace(-3, 3, 64) ** 2))
    return np.clip(rng().normal(ink - 0.2, 0.3, size=(200, 64)), 0, 1)


def expression():
    return rng().normal(rng().uniform(4, 12, size=80), rng().uniform(0.5, 1.5, size=80), (60, 80))


def quiet_expression():
    """Logarithms of an array where half of the genes are silent: a flat background."""
    spread = np.where(np.arange(80) % 2, 0.03, 1.0)
    return rng().normal(rng().uniform(4, 12, size=80), spread, size=(60, 80))


def methylation():
    """Most sites are always on or always off; betas are between 0 and 1."""
    a = np.repeat([1.0, 30.0, 600.0], 20)
    return rng().beta(a, np.repeat([600.0, 30.0, 1.0], 20), size=(50, 60))


def blood():
    """Glucose, sodium, creatinine, haemoglobin, leukocytes and the like, in their own units."""
    mean = np.array([5.0, 140.0, 0.9, 14.0, 7000.0, 37.0])
    return rng().normal(mean, [1.0, 3.0, 0.2, 1.5, 2000.0, 0.5], size=(80, 6))


def questionnaire():
    """Yes-no questions, age and pressure."""
    answers = rng().integers(0, 2, size=(80, 8))
    return np.c_[answers, rng().normal(60, 12, 80).round(), rng().normal(130, 20, 80).round()]


def components():
    X = (
        rng().normal(size=(150, 40))
        * np.geomspace(300, 0.5, 40)
        @ np.linalg.qr(rng().normal(size=(40, 40)))[0]
    )
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return (U * s)[:, :20]


def log_ratios():
    return rng().normal(size=(70, 5)) @ rng().normal(size=(5, 30))


def one_hot():
    return np.eye(6)[rng().integers(0, 6, size=90)]


def rna():
    """Counts of genes of very different abundance, few of them zeros, in samples of other depth."""
    depth = rng().lognormal(0, 0.3, size=(50, 1))
    means = depth * rng().gamma(5, np.geomspace(10, 1e4, 100), size=(50, 100))
    return rng().poisson(means).astype(float)


def histograms():
    """Patterns counted in images: few zeros, and all images have the same number of patterns."""
    shares = np.geomspace(1, 30, 80) * rng().lognormal(0, 0.3, size=(70, 80))
    shares /= shares.sum(axis=1, keepdims=True)
    return np.array([rng().multinomial(200_000, one) for one in shares]).astype(float)


KINDS = [
    (words, COUNTS, ZEROS),
    (pixels, COUNTS, ZEROS),
    (one_hot, COUNTS, ZEROS),
    (expression, FAR, "values are far from zero compared with their spread"),
    (quiet_expression, SCALES, "but all of them lie in one range"),
    (methylation, SCALES, "but all values are between 0 and 1"),
    (log_ratios, SCALES, "by a factor of only"),
    (blood, MIXED, "so they are standardized first"),
    (questionnaire, MIXED, "so they are standardized first"),
    (rna, MIXED, "the values span decades, so consider log1p"),
    (histograms, COUNTS, "as in histograms, so samples are scaled to unit length"),
    (components, (None, "unit"), "as principal components, so their spreads are kept"),
]


@pytest.mark.parametrize(
    ("make", "allowed", "words"), KINDS, ids=lambda x: getattr(x, "__name__", "")
)
def test_the_values_say_what_kind_of_data_they_are(make, allowed, words):
    found = choose_scaling(make(), "a")
    assert found.allowed == allowed
    assert found.sentence.startswith("view 'a': ")
    assert words in found.sentence


@pytest.mark.parametrize("make", [one[0] for one in KINDS], ids=lambda x: x.__name__)
def test_the_choice_does_not_depend_on_the_order_the_unit_or_the_library(make):
    X = make()
    order = np.random.default_rng(1).permutation(len(X))
    found = choose_scaling(X, "0")
    assert choose_scaling(X[order], "0") == found
    assert choose_scaling(strict.asarray(X), "0") == found
    assert choose_scaling(X.astype(np.float32), "0").allowed == found.allowed
    if make not in (methylation, histograms):  # known by their range, or by whole numbers
        assert choose_scaling(X * 1e200, "0").allowed == found.allowed
        assert choose_scaling(X * 1e-200, "0").allowed == found.allowed


def test_a_sparse_view_is_taken_as_counts():
    X = sp.csr_array(words())
    assert choose_scaling(X, "0") == choose_scaling(words(), "0")
    assert choose_scaling(sp.csr_array(blood()), "0").allowed == COUNTS


def test_counts_over_decades_get_a_hint():
    X = words()[:, words().any(axis=0)]
    assert "log1p" not in choose_scaling(X, "0").sentence
    X[:, :5] *= 10_000
    for form in (np.asarray, sp.csr_array):
        found = choose_scaling(form(X), "0")
        assert found.allowed == COUNTS
        assert found.sentence.endswith("; the values span decades, so consider log1p")


def test_histograms_are_whole_numbers_in_many_columns_with_one_total():
    X = histograms()
    assert choose_scaling(X[:, ::2][:, :49], "0").allowed == MIXED  # few columns
    sizes = rng().uniform(0.7, 1.3, size=(len(X), 1))
    assert choose_scaling(np.round(X * sizes), "0").allowed == MIXED  # other totals
    rare = np.round(X / np.geomspace(100, 1, X.shape[1])) + 1  # too different
    rare[:, -1] += rare.sum(axis=1).max() - rare.sum(axis=1)
    assert choose_scaling(rare, "0").allowed == MIXED
    shapes = X + 2_000 * (np.arange(X.shape[1]) % 2)  # half of them hardly vary
    assert choose_scaling(shapes, "0").allowed == MIXED
    X[0, -1] += 0.5
    assert choose_scaling(X, "0").allowed == MIXED
    X[0, -1] = -1
    assert choose_scaling(np.round(X), "0").allowed == MIXED


def test_different_units_get_no_hint():
    assert "log1p" not in choose_scaling(blood(), "0").sentence


def test_a_sentence_says_how_much_spreads_differ():
    X = rng().normal(5, 1, size=(2000, 8)) * np.repeat([1.0, 40.0], 4)
    assert choose_scaling(X, "lipid").sentence == (
        "view 'lipid': columns differ in spread by a factor of 41, so they are standardized first"
    )
    X[:, 4:] *= 1e9
    assert "by a factor of more than a million" in choose_scaling(X, "0").sentence


def test_one_column_that_rules_the_others_is_seen():
    X = rng().normal(size=(100, 40))
    assert choose_scaling(X, "0").allowed == SCALES
    X[:, 7] *= 500
    found = choose_scaling(X, "0")
    assert found.allowed == MIXED
    assert "one column varies more than all others together" in found.sentence


@pytest.mark.parametrize(
    ("factors", "allowed"),
    [
        ([1.0], (None,)),
        ([1.0, 1.0], (None,)),
        ([1.0, 4.0, 2.0], (None, "standard")),
        ([1.0, 400.0, 2.0, 1.0], ("standard",)),
    ],
)
def test_few_columns_get_no_unit_length(factors, allowed):
    X = rng().normal(3, 1, size=(100, len(factors))) * factors
    for form in (np.asarray, sp.csr_array):
        assert choose_scaling(form(X), "0").allowed == allowed


def test_few_columns_in_words():
    X = rng().normal(3, 1, size=(100, 3))
    assert choose_scaling(X[:, :1], "0").sentence == (
        "view 0: only 1 column varies, too few for unit length, so values stay as they are"
    )
    assert choose_scaling(X * [1, 1, 1e3], "0").sentence.startswith(
        "view 0: only 3 columns vary, too few for unit length, and columns differ in spread by a "
        "factor of "
    )


def test_few_components_stay_as_they_are():
    assert choose_scaling(components()[:, :3] * [8, 2, 0.5], "0").allowed == (None,)


def test_components_of_some_of_the_samples_are_known():
    assert choose_scaling(components()[::3], "0").allowed == (None, "unit")


def test_correlated_columns_are_no_components():
    X = components()
    X[:, 1:] += 0.7 * X[:, :1] * X[:, 1:].std(axis=0) / X[:, 0].std()
    assert None not in choose_scaling(X, "0").allowed


def test_constant_columns_are_named_and_ignored():
    X = rng().normal(size=(50, 9))
    X[:, 3] = 0.1
    for form in (np.asarray, sp.csr_array):
        assert choose_scaling(form(X), "0").sentence.endswith(
            "; 1 constant column carries no information and is ignored"
        )
    X[:, 4:] = 7.0
    for form in (np.asarray, sp.csr_array):
        found = choose_scaling(form(X), "0")
        assert found.allowed == (None,)  # three columns are left
        assert found.sentence.endswith("; 6 constant columns carry no information and are ignored")


def test_a_view_without_information_is_left_alone():
    for form in (np.asarray, sp.csr_array):
        assert choose_scaling(form(np.ones((4, 2))), "0").allowed == (None,)


def test_samples_without_the_view_are_left_out():
    X = blood()
    gaps = np.r_[X, np.full((3, 6), np.nan)]
    assert choose_scaling(gaps, "0") == choose_scaling(X, "0")


# ---- all views ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("makes", "expected"),
    [
        ([log_ratios], [("unit",), ("standard+unit",), ("standard",), (None,)]),
        ([blood], [("standard+unit",), ("standard",)]),
        (
            [log_ratios, blood],
            [
                ("unit", "standard+unit"),
                ("standard+unit", "standard+unit"),
                ("standard", "standard"),
                (None, "standard+unit"),
            ],
        ),
        (
            [components, words, blood],
            [
                ("unit", "unit", "standard+unit"),
                (None, "standard+unit", "standard+unit"),
                (None, "unit", "standard"),
                (None, "unit", "standard+unit"),
            ],
        ),
    ],
)
def test_every_scaling_votes_where_it_is_allowed(makes, expected):
    views = [make()[:36] for make in makes]
    assert scalings_for(check_views(views)) == expected


def test_at_least_one_scaling_votes():
    points = rng().normal(size=(50, 2))
    assert scalings_for(check_views([points, points])) == [(None, None)]


def test_large_numbers_are_not_whole_for_want_of_digits():
    """A unit does not make counts of measurements: 1e20 has no digits after the point."""
    X = np.random.default_rng(0).normal(size=(30, 6))
    assert look_at_columns(np.round(X)).whole
    assert not look_at_columns(X * 1e20).whole
