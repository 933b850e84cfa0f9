import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from polyspan.datasets import make_subspaces
from polyspan.metrics import clustering_scores


def test_clusters_span_their_subspaces_and_together_more():
    data = make_subspaces(
        n_samples=90, n_clusters=3, n_views=2, n_features=40, subspace_dim=4, random_state=1
    )
    for view in data.views:
        for c in range(3):
            assert np.linalg.matrix_rank(view[data.labels == c]) == 4
        assert np.linalg.matrix_rank(view) == 12


def test_views_differ_but_share_the_coefficients():
    # Bases are orthonormal: Gram matrices within a cluster depend on the coefficients only.
    a, b = make_subspaces(n_samples=30, n_clusters=2, n_features=[20, 35], random_state=3).views
    np.testing.assert_allclose(a[:15] @ a[:15].T, b[:15] @ b[:15].T, atol=1e-12)
    assert not np.allclose(a[:15] @ a[15:].T, b[:15] @ b[15:].T, atol=1e-3)


@examples(30)
@given(
    n_clusters=st.integers(1, 6),
    extra=st.integers(0, 20),
    features=st.lists(st.integers(2, 9), min_size=1, max_size=3),
    seed=st.integers(0, 99),
)
def test_shapes_and_balanced_ordered_labels(n_clusters, extra, features, seed):
    n = n_clusters + extra
    data = make_subspaces(n, n_clusters, n_features=features, subspace_dim=2, random_state=seed)
    assert [view.shape for view in data.views] == [(n, d) for d in features]
    assert len(data.view_names) == len(features)
    sizes = np.bincount(data.labels, minlength=n_clusters)
    assert sizes.min() >= 1
    assert np.ptp(sizes) <= 1
    assert np.all(np.diff(data.labels) >= 0)


def test_noise_is_relative_to_the_length_of_a_sample():
    clean = make_subspaces(n_samples=400, n_features=[50, 500], noise=0.0)
    noisy = make_subspaces(n_samples=400, n_features=[50, 500], noise=0.2)
    # Both draw the same first subspaces; the noise comes after them in the first view.
    difference = noisy.views[0] - clean.views[0]
    ratio = np.linalg.norm(difference, axis=1).mean() / np.sqrt(
        (np.linalg.norm(clean.views[0], axis=1) ** 2).mean()
    )
    assert ratio == pytest.approx(0.2, rel=0.05)


def test_outliers_leave_the_subspace_in_the_given_fraction_of_each_view():
    data = make_subspaces(
        n_samples=200, n_clusters=2, n_views=2, n_features=60, subspace_dim=2, outliers=0.1
    )
    corrupted = []
    for view in data.views:
        bad = np.zeros(200, dtype=bool)
        for c in range(2):
            X = view[data.labels == c]
            # Good samples lie in a plane; pairs of good samples span it: a robust basis by voting.
            distances = []
            for i in range(10):
                basis = np.linalg.svd(X[i : i + 2], full_matrices=False)[2]
                distances.append(np.linalg.norm(X - X @ basis.T @ basis, axis=1) > 1e-8)
            bad[data.labels == c] = min(distances, key=np.sum)
        corrupted.append(set(np.flatnonzero(bad)))
    assert [len(c) for c in corrupted] == [20, 20]
    assert corrupted[0] != corrupted[1]


def test_seed_decides():
    first, again = make_subspaces(random_state=5), make_subspaces(random_state=5)
    other = make_subspaces(random_state=6)
    assert np.array_equal(first.views[1], again.views[1])
    assert not np.array_equal(first.views[1], other.views[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"subspace_dim": 31}, "subspace_dim=31 is more than the 30 features"),
        ({"subspace_dim": 5, "n_features": [9, 4]}, "more than the 4 features"),
        ({"n_clusters": 5, "n_samples": 4}, "n_clusters=5 is more than n_samples=4"),
        ({"n_clusters": 0}, "n_clusters must be a whole number >= 1; got 0"),
        ({"n_views": 0}, "n_views must be a whole number >= 1; got 0"),
        ({"subspace_dim": 0}, "subspace_dim must be a whole number >= 1; got 0"),
        ({"n_views": 3, "n_features": [9, 4]}, "n_features has 2 numbers for n_views=3"),
        ({"noise": -0.1}, "noise must be a finite number >= 0; got -0.1"),
        ({"noise": float("nan")}, "noise must be a finite number >= 0; got nan"),
        ({"outliers": 1.5}, "outliers must be a finite number >= 0 and <= 1; got 1.5"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_subspaces(**arguments)


def test_the_nuisance_is_another_partition_of_the_first_two_views_only():
    given = {"n_samples": 300, "n_clusters": 3, "n_views": 3, "subspace_dim": 2}
    data, plain = make_subspaces(**given, nuisance=2.0), make_subspaces(**given)
    groups = data.extra["nuisance"]
    assert np.bincount(groups).tolist() == [100, 100, 100]
    assert clustering_scores(data.labels, groups)["nmi"] < 0.05  # of two independent ones: .01
    for k, ranks in enumerate([(4, 6 + 2), (4, 6 + 2), (2, 6)]):  # of a cell, and of a group
        cell = data.views[k][(data.labels == 0) & (groups == 1)]
        assert np.linalg.matrix_rank(cell) == ranks[0]
        assert np.linalg.matrix_rank(data.views[k][groups == 1]) == ranks[1]
    # The clusters' part of the first view is drawn first: what is left is the nuisance.
    drawn = make_subspaces(**given, nuisance=1e-12).views[0]
    ratio = np.linalg.norm(data.views[0] - drawn) / np.linalg.norm(drawn)
    assert ratio == pytest.approx(2.0, rel=0.1)
    assert not np.allclose(data.views[2], plain.views[2])  # other numbers, the same structure


def test_float32_is_never_float64_and_as_long():
    given = {"n_samples": 400, "n_views": 3, "noise": 0.1, "outliers": 0.1, "nuisance": 1.0}
    one, other = make_subspaces(**given, dtype="float32"), make_subspaces(**given)
    assert {X.dtype for X in one.views} == {np.dtype("float32")}
    for X, Y in zip(one.views, other.views, strict=True):
        assert np.mean(X**2) == pytest.approx(np.mean(Y**2), rel=0.1)  # other draws


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"nuisance": -1.0, "n_views": 3}, "nuisance must be a finite number >= 0; got -1.0"),
        ({"nuisance": 1.0}, "n_views must be at least 3, got 2"),
        ({"dtype": "int8"}, "dtype must be 'float64' or 'float32'; got 'int8'"),
    ],
)
def test_what_a_nuisance_needs(wrong, words):
    with pytest.raises(ValueError, match=words):
        make_subspaces(**wrong)
