import subprocess
import sys

import numpy as np
import pytest
import scipy.io
from scipy import sparse

from polyspan.datasets import load_dataset, load_file
from polyspan.datasets.registry import UnknownDatasetError
from polyspan.datasets.yale import yale_views

# name: samples, features of the views, classes; for yale_images the views computed on loading.
PUBLISHED = {
    "three_sources": (169, [3560, 3631, 3068], 6),
    "bbcsport": (544, [3183, 3203], 5),
    "movies617": (617, [1878, 1398], 17),
    "ngs": (500, [2000, 2000, 2000], 5),
    "prokaryotic": (551, [438, 3, 393], 4),
    "yale_images": (165, [4096, 3304, 2048], 15),
    "handwritten": (2000, [216, 76, 64, 6, 240, 47], 10),
    "leaves100": (1600, [64, 64, 64], 100),
    "bbc": (685, [4659, 4633, 4665, 4684], 5),
    "msrc_v1": (210, [24, 576, 512, 256, 254], 7),
    "reuters1200": (1200, [2000] * 5, 6),
    "scene15": (4485, [20, 59, 40], 15),
    "hdigit": (10000, [784, 256], 10),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_data_sets(data_dir, name):
    samples, features, classes = PUBLISHED[name]
    data = load_dataset(name)
    assert data.name == name
    assert [view.shape for view in data.views] == [(samples, d) for d in features]
    assert len(data.view_names) == len(features)
    assert data.n_clusters == classes
    assert data.labels.shape == (samples,)
    assert np.unique(data.labels).tolist() == list(range(classes))
    for view in data.views:
        assert view.dtype == np.float64
        values = view.data if sparse.issparse(view) else view
        assert np.isfinite(values).all()
    assert sparse.issparse(data.views[0]) == (name in {"three_sources", "bbcsport", "bbc"})


def test_values_and_labels_belong_to_their_samples(data_dir):
    """Against the raw variables, read here by hand."""
    raw = scipy.io.loadmat(data_dir / "ngs.mat")
    data = load_dataset("ngs")
    np.testing.assert_array_equal(data.views[2], raw["X"][0, 2].T)
    np.testing.assert_array_equal(data.labels, raw["Y"][:, 0].astype(int) - 1)

    raw = scipy.io.loadmat(data_dir / "three_sources.mat")
    data = load_dataset("three_sources")
    assert data.view_names == ["bbc", "guardian", "reuters"]
    np.testing.assert_array_equal(data.views[1].toarray(), raw["guardian"].toarray())


def test_leaves_views_are_in_the_order_of_their_names(data_dir):
    margin, shape, texture = load_dataset("leaves100").views
    for histogram in (margin, texture):
        np.testing.assert_allclose(histogram.sum(axis=1), 1, atol=1e-3)
    assert shape.sum(axis=1).max() < 0.2  # distances along the contour


def test_prokaryotic_truth_is_not_a_view(data_dir):
    data = load_file(data_dir / "prokaryotic.mat")
    assert data.view_names == ["text", "proteome_comp", "gene_repert"]


def test_unknown_name():
    with pytest.raises(UnknownDatasetError, match="did you mean 'hdigit' or 'digits'"):
        load_dataset("digit")


def test_absent_file_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path))
    monkeypatch.setenv("POLYSPAN_CACHE", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="`polyspan data fetch three_sources`"):
        load_dataset("3-sources")


def cell(*matrices):
    values = np.empty((1, len(matrices)), dtype=object)
    values[0] = matrices
    return values


def test_wrong_contents(monkeypatch, tmp_path):
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path))
    wide = np.ones((500, 2000))
    Y = np.arange(500)[:, None] % 5 + 1
    scipy.io.savemat(tmp_path / "ngs.mat", {"X": cell(wide, wide), "Y": Y})
    with pytest.raises(ValueError, match=r"ngs\.mat does not hold ngs: its views have shapes"):
        load_dataset("ngs")
    scipy.io.savemat(tmp_path / "ngs.mat", {"X": cell(wide, wide, wide), "Y": Y % 4})
    with pytest.raises(ValueError, match="does not hold ngs: it has 4 classes, expected 5"):
        load_dataset("ngs")
    scipy.io.savemat(tmp_path / "yale_images.mat", {"fea": np.ones((9, 15)), "gnd": np.arange(15)})
    with pytest.raises(ValueError, match="does not hold yale_images: its images have 9 pixels"):
        load_dataset("yale_images")


def test_yale_mtv_layout(monkeypatch, tmp_path):
    """Without the published file: use one with its shapes, features in rows."""
    monkeypatch.setenv("POLYSPAN_DATA", str(tmp_path))
    X = [np.full((d, 165), k, dtype=np.uint8) for k, d in enumerate((4096, 3304, 6750))]
    scipy.io.savemat(tmp_path / "yale_mtv.mat", {"X": cell(*X), "gt": np.arange(165)[:, None] % 15})
    data = load_dataset("yale_mtv")
    assert [view.shape[1] for view in data.views] == [4096, 3304, 6750]
    assert [view[0, 0] for view in data.views] == [0, 1, 2]


# --- The views of yale_images ---


def stripes(direction: str) -> np.ndarray:
    """Stripes 4 pixels wide per period, as a row of the file (image read column by column)."""
    rows, columns = np.mgrid[:64, :64]
    image = 127 + 100 * np.sin(2 * np.pi / 4 * (columns if direction == "upright" else rows))
    return image.ravel(order="F")


def test_gabor_answers_to_wavelength_and_direction():
    _, _, gabor = yale_views(np.array([stripes("upright"), stripes("lying"), np.full(4096, 90.0)]))
    energy = gabor.reshape(3, 2, 4, 256).mean(axis=3)  # image, wavelength, angle
    assert np.unravel_index(energy[0].argmax(), (2, 4)) == (0, 0)  # 4 pixels, 0 degrees
    assert np.unravel_index(energy[1].argmax(), (2, 4)) == (0, 2)  # 4 pixels, 90 degrees
    assert energy[2].max() < 1e-9 < energy[0].max()


def test_gabor_features_are_ordered_like_the_image():
    image = np.full((64, 64), 90.0)
    image[:16, 48:] = stripes("upright").reshape(64, 64, order="F")[:16, 48:]  # top right corner
    _, _, gabor = yale_views(image.ravel(order="F")[None])
    strongest = gabor.reshape(8, 16, 16)[0]
    assert strongest[:3, 13:].mean() > 10 * strongest[6:, :10].mean()


def test_lbp_cells_are_shares_and_see_texture_not_brightness():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 100, 4096).astype(float)
    _, lbp, _ = yale_views(np.array([image, image + 100, np.full(4096, 9.0)]))
    cells = lbp.reshape(3, 56, 59)
    np.testing.assert_allclose(cells.sum(axis=2), 1)
    # Neighbors on the diagonals are interpolated: a tie may fall either way, once in a while.
    assert np.abs(cells[0] - cells[1]).sum(axis=1).mean() < 0.02
    assert np.all(np.count_nonzero(cells[2], axis=1) == 1)  # all is flat: one pattern everywhere


def test_yale_faces_are_upright(data_dir):
    """Faces are nearly mirror images left to right, and not top to bottom."""
    intensity = load_dataset("yale_images").views[0]
    face = intensity.mean(axis=0).reshape(64, 64, order="F")
    across = np.abs(face - face[:, ::-1]).mean()
    down = np.abs(face - face[::-1]).mean()
    assert across < down / 2
    assert intensity.min() == 0
    assert intensity.max() == 1


def test_each_yale_view_tells_people_apart(data_dir):
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    data = load_dataset("yale_images")
    for view in data.views:
        assert cross_val_score(KNeighborsClassifier(1), view, data.labels, cv=5).mean() > 0.7


@pytest.mark.slow
def test_import_needs_no_optional_package():
    block = "import sys\nfor m in ('h5py', 'rdata', 'skimage'): sys.modules[m] = None\n"
    use = "from polyspan.datasets import load_dataset\nprint(load_dataset('digits').n_clusters)"
    answer = subprocess.run(
        [sys.executable, "-c", block + use], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "10\n"


def test_yale_without_scikit_image_names_the_extra(data_dir, monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.feature", None)
    with pytest.raises(
        ImportError, match=r'yale_images needs scikit-image: pip install "polyspan\[images\]"'
    ):
        load_dataset("yale_images")
