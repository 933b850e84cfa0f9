import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from polyspan.datasets import load_dataset, load_digits_views
from polyspan.datasets.digits import edge_directions, fourier_magnitudes


def test_all_digits():
    data = load_dataset("digits")
    assert [view.shape for view in data.views] == [(1797, 64), (1797, 40), (1797, 32)]
    assert data.view_names == ["pixels", "fourier", "gradients"]
    assert data.n_clusters == 10
    np.testing.assert_array_equal(data.labels, load_digits().target)
    assert all(view.dtype == np.float64 and np.isfinite(view).all() for view in data.views)
    np.testing.assert_array_equal(data.views[0] * 16, load_digits().data)


def test_subset_is_balanced_reproducible_and_consistent():
    data, again = load_digits_views(603), load_digits_views(603)
    assert sorted(np.bincount(data.labels)) == [60] * 7 + [61] * 3
    np.testing.assert_array_equal(data.views[2], again.views[2])
    assert not np.array_equal(data.views[0], load_digits_views(603, random_state=1).views[0])
    # Rows of the subset are rows of the whole, with their own labels.
    whole = {tuple(row): label for row, label in zip(*load_digits(return_X_y=True), strict=True)}
    assert [whole[tuple(row * 16)] for row in data.views[0]] == data.labels.tolist()


def test_whole_set_as_subset_is_the_whole_set():
    data = load_digits_views(1797)
    np.testing.assert_array_equal(data.labels, load_digits().target)


@pytest.mark.parametrize("n_samples", [0, 9, 1798])
def test_impossible_subset(n_samples):
    with pytest.raises(ValueError, match=f"from 10 .* to 1797, got {n_samples}"):
        load_digits_views(n_samples)


def test_fourier_magnitudes_do_not_see_shifts():
    image = np.zeros((1, 8, 8))
    image[0, 2:5, 3] = 1
    moved = np.roll(image, (1, 2), axis=(1, 2))
    np.testing.assert_allclose(fourier_magnitudes(image), fourier_magnitudes(moved), atol=1e-12)
    assert not np.allclose(fourier_magnitudes(image), fourier_magnitudes(image.swapaxes(1, 2)))


def test_edge_directions_of_plain_ramps():
    rows, columns = np.mgrid[:8, :8].astype(float)
    ramps = np.array([columns, rows, rows + columns])  # gradient along 0, 90 and 45 degrees
    histograms = edge_directions(ramps).reshape(3, 4, 8)
    assert [set(np.flatnonzero(h.sum(axis=0) > 1e-9)) for h in histograms] == [{0}, {4}, {2}]
    np.testing.assert_allclose(histograms[0, :, 0], 16)  # 16 pixels of strength 1 per cell


def test_edge_directions_ignore_the_sign_and_place_ink_in_its_cell():
    image = np.zeros((1, 8, 8))
    image[0, 1:3, 1:3] = 1
    np.testing.assert_allclose(edge_directions(image), edge_directions(1 - image), atol=1e-12)
    cells = edge_directions(image).reshape(4, 8).sum(axis=1)
    assert cells[0] > 0
    assert cells[1:].max() == 0


def test_every_view_tells_the_digits_apart_but_none_perfectly():
    data = load_digits_views(600)
    for view in data.views:
        model = KNeighborsClassifier(1).fit(view[::2], data.labels[::2])
        assert 0.7 < model.score(view[1::2], data.labels[1::2]) < 0.99
