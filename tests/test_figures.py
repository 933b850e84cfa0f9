import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from polyspan.figures import (
    check_figure_path,
    new_figure,
    plot_affinity,
    plot_convergence,
    plot_image_clusters,
    save_figure,
)

LABELS = np.array([1, 0, 1, 0, 2])
BLOCKS = (LABELS[:, None] == LABELS).astype(float)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.coo_matrix])
def test_affinity_is_sorted_by_cluster(form):
    ax = plot_affinity(form(BLOCKS), LABELS)
    expected = np.zeros((5, 5))
    expected[:2, :2] = expected[2:4, 2:4] = 1
    np.fill_diagonal(expected, 0)
    np.testing.assert_array_equal(ax.images[0].get_array(), expected)
    frames = [(patch.get_xy(), patch.get_width()) for patch in ax.patches]
    assert frames == [((-0.5, -0.5), 2), ((1.5, 1.5), 2), ((3.5, 3.5), 1)]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["1", "2", "3"]


def test_affinity_does_not_change_its_input():
    W = BLOCKS.copy()
    plot_affinity(W, LABELS)
    np.testing.assert_array_equal(W, BLOCKS)


def test_one_large_entry_does_not_hide_the_rest():
    rng = np.random.default_rng(0)
    W = rng.uniform(size=(40, 40))
    W[0, 1] = 1e6
    assert plot_affinity(W, np.zeros(40)).images[0].get_clim()[1] <= 1


def test_an_affinity_of_zeros_is_drawn():
    plot_affinity(np.zeros((5, 5)), LABELS).figure.canvas.draw()


@pytest.mark.parametrize("shape", [(5, 4), (4, 4), (5,)])
def test_affinity_must_fit_the_labels(shape):
    with pytest.raises(ValueError, match=r"the affinity must be n x n for n labels; got shapes \("):
        plot_affinity(np.zeros(shape), LABELS)


def test_convergence_has_a_line_per_residual():
    history = {"data": [1.0, 0.1, 0.0], "split": [0.5, 0.05, 1e-7], "mine": [1.0, 2.0, 3.0]}
    ax = plot_convergence(history, tol=1e-6)
    *lines, tolerance = ax.lines
    assert [line.get_xdata().tolist() for line in lines] == [[1, 2, 3]] * 3
    np.testing.assert_array_equal(lines[0].get_ydata(), [1.0, 0.1, np.nan])  # zero has no logarithm
    assert set(tolerance.get_ydata()) == {1e-6}
    assert lines[2].get_label() == "mine"
    assert ax.get_yscale() == "log"
    assert len(plot_convergence(history).lines) == 3


@pytest.mark.parametrize("history", [{}, {"data": []}])
def test_convergence_of_nothing(history):
    with pytest.raises(ValueError, match="the history has no iterations: fit the model first"):
        plot_convergence(history)


def test_image_clusters_frames_what_is_wrong():
    images = np.arange(5)[:, None, None] * np.ones((5, 2, 3))
    ax = plot_image_clusters(images, LABELS, wrong=[False, True, False, False, True], n_shown=2)
    sheet = ax.images[0].get_array()
    assert sheet.shape == (3 * 4, 2 * 5)
    assert sheet[1::4, 1::5].tolist() == [[1, 3], [0, 2], [4, 0]]
    assert len(ax.patches) == 2


def test_image_clusters_spreads_over_the_cluster():
    images = np.arange(101)[:, None, None] * np.ones((101, 1, 1))
    sheet = plot_image_clusters(images, np.zeros(101), n_shown=3).images[0].get_array()
    assert sheet[1, 1::3].tolist() == [0, 50, 100]


def test_images_must_fit_the_labels():
    with pytest.raises(ValueError, match=r"images must be \(n, height, width\) for n labels"):
        plot_image_clusters(np.zeros((5, 4)), LABELS)


def test_given_axes_are_used():
    axes = new_figure().subplots(1, 3)
    assert plot_affinity(BLOCKS, LABELS, ax=axes[0]) is axes[0]
    assert plot_convergence({"data": [1.0]}, ax=axes[1]) is axes[1]
    assert plot_image_clusters(np.zeros((5, 2, 2)), LABELS, ax=axes[2]) is axes[2]


def test_pyplot_is_left_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would fail
    plot_affinity(BLOCKS, LABELS).figure.canvas.draw()


@pytest.mark.parametrize("name", ["figure.png", "figure.SVG", "figure.pdf"])
def test_save(tmp_path, name):
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    path = save_figure(new_figure(), tmp_path / name)
    assert path.read_bytes().startswith(begins[path.suffix.lower()])
    assert list(tmp_path.iterdir()) == [path]


def test_save_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "figure.png"
    path.write_bytes(b"old")

    def fail(source, target):
        assert Path(source).parent == tmp_path
        raise OSError("no")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no"):
        save_figure(new_figure(), path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


def test_check_figure_path(tmp_path):
    assert check_figure_path(str(tmp_path / "a.png")) == tmp_path / "a.png"
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere: create it first"):
        check_figure_path(tmp_path / "nowhere" / "a.png")


def test_matplotlib_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    sentence = r'a figure needs matplotlib: pip install "polyspan\[plot\]"'
    with pytest.raises(ImportError, match=sentence):
        plot_affinity(BLOCKS, LABELS)
