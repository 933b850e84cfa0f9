import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from matplotlib.image import imread
from sklearn.metrics import silhouette_samples

from polyspan.explain import survival
from polyspan.figures import (
    check_figure_path,
    cluster_colors,
    matrices,
    new_figure,
    plot_affinity,
    plot_agreement,
    plot_certainty,
    plot_consensus,
    plot_convergence,
    plot_count,
    plot_flow,
    plot_image_clusters,
    plot_map,
    plot_markers,
    plot_silhouettes,
    plot_survival,
    save_figure,
    svg_text,
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
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0", "1", "2"]


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


VOTES = np.array([[0, 0, 1, 1, 2], [1, 1, 0, 2, 2], [0, 1, 0, 0, 1]])
WEIGHTS = np.array([0.5, 0.3, 0.2])
TOGETHER = sum(w * (v[:, None] == v) for w, v in zip(WEIGHTS, VOTES, strict=True))


def test_consensus_is_how_often_two_are_together():
    ax = plot_consensus(VOTES, VOTES[0], WEIGHTS, names=["a", "b", "c"])
    values, second = matrices.consensus_silhouette(VOTES, VOTES[0], WEIGHTS)
    known = silhouette_samples(1 - TOGETHER, VOTES[0], metric="precomputed")
    assert values == pytest.approx(known, abs=1e-12)
    assert second.tolist() == [1, 2, 0, 2, 1]
    order = np.lexsort((-values, VOTES[0]))
    assert np.asarray(ax.images[0].get_array()) == pytest.approx(
        TOGETHER[np.ix_(order, order)], abs=1e-12
    )
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b", "c"]


@pytest.mark.parametrize("squared", [False, True])
def test_large_matrices_are_averaged_over_blocks(squared):
    rng = np.random.default_rng(0)
    votes = rng.integers(0, 3, (4, 40))
    B = matrices.member_indicators(votes)
    W, order = (B @ B.T).toarray(), rng.permutation(40)
    S = W[np.ix_(order, order)] - np.eye(40)
    blocks = S.reshape(20, 2, 20, 2).sum(axis=(1, 3)) / (4 - 2 * np.eye(20))
    for given in [B] if squared else [W, sp.csr_array(W)]:
        found = matrices.shrink(given, order, 20, squared=squared)
        assert found == pytest.approx(blocks, abs=1e-12)


def test_markers_are_sorted_and_standardized():
    values = {"a": [1.0, 5, 1, 5, np.nan], "b": [7.0] * 5}
    ax = plot_markers(values, ["y", "x", "y", "x", "x"], order=[1, 3, 0, 2, 1])
    assert ax.images[0].get_array().tolist() == [[0, 1, 1, -1, -1], [0] * 5]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["x", "y"]
    wide = {"a": np.arange(2000.0)}
    drawn = plot_markers(wide, np.zeros(2000)).images[0].get_array()
    assert drawn.shape == (1, 667)
    assert drawn[0, 0] == pytest.approx((1 - 999.5) / np.std(wide["a"]))


def test_survival_steps_and_numbers_at_risk():
    found = survival([0, 0, 1, 1, 1], [5, 10, 5, 10, 10], [1, 0, 1, 1, 0])
    ax = plot_survival(found, "$days$", names=[9, 0, 1])
    curves = [line for line in ax.lines if len(line.get_xdata()) > 2]
    assert [line.get_color() for line in curves] == cluster_colors(3)[1:]
    x, y = curves[0].get_data()
    assert list(zip(x, y, strict=True))[-3:] == [(0, 1), (5, 0.5), (10, 0.5)]
    words = [text.get_text() for text in ax.texts]
    assert words[0] == "at risk"
    assert words[1:3] == ["0", "\u25a0"]
    assert words[3 : 3 + len(found.ticks)] == [str(count) for count in found.at_risk[0]]
    assert ">$days$<" in svg_text(ax.figure)  # no formula


def test_flow_keeps_every_sample():
    ax = plot_flow([0, 0, 1, 1, 1], ["p", "q", "q", "q", "q"], names=["a", "b"])
    bands = [patch.get_gid() for patch in ax.patches if patch.get_gid()]
    told = ["a to p: 1 sample", "a to q: 1 sample", "b to q: 3 samples"]
    assert bands == [f"title: {words}" for words in told]


def test_silhouettes_and_certainty_and_scores():
    ax = plot_silhouettes([0.1, 0.9, -0.5], [1, 1, 0])
    assert [patch.get_data().values.tolist() for patch in ax.patches] == [[-0.5], [0.9, 0.1]]
    bars = plot_certainty([0.0, 0.02, 0.5, 1.0]).patches
    assert {k: bar.get_height() for k, bar in enumerate(bars) if bar.get_height()} == {
        0: 2, 10: 1, 19: 1,
    }  # fmt: skip
    assert bars[0].get_gid() == "title: 0.00 to 0.05: 2 samples"
    ax = plot_count({9: 0.3, 2: 0.1}, chosen=9)
    assert ax.lines[0].get_xdata().tolist() == [2, 9]
    assert set(ax.lines[1].get_xdata()) == {9}
    ax = plot_agreement({"one": 0.5, "two": 0.25})
    assert [patch.get_width() for patch in ax.patches] == [0.5, 0.25]


def test_the_map_has_colors_and_names_in_their_places(tmp_path):
    square = np.array([[0.0, 0], [0, 2], [2, 0], [2, 2]])
    ax = plot_map(np.concatenate([square, square + 8]), [4] * 4 + [7] * 4)
    names = [(name.get_text(), name.get_position()) for name in ax.texts]
    assert names == [("4", (1, 1)), ("7", (9, 9))]
    picture = imread(save_figure(ax.figure, tmp_path / "map.png"))[:, :, :3]
    for k, (below, left) in enumerate([(True, True), (False, False)]):
        rgb = [int(cluster_colors(2)[k][j : j + 2], 16) / 255 for j in (1, 3, 5)]
        down, right = np.argwhere(np.abs(picture - rgb).max(axis=2) < 0.11).mean(axis=0)
        assert (down > len(picture) / 2) == below
        assert (right < picture.shape[1] / 2) == left


HOSTILE = "</text><script>alert(1)</script> $x$ \x00\ud800 \u202e\u6f22 \" ' &amp;"


def test_svg_is_the_same_every_time_and_loads_nothing():
    def drawn():
        return plot_markers({HOSTILE: [1.0, 2], "b": [3, 4]}, [0, 1], names=[HOSTILE, "c"]).figure

    text = svg_text(drawn(), HOSTILE, page=True)
    assert text == svg_text(drawn(), HOSTILE, page=True)
    assert "http" not in text
    root = ET.fromstring(text)
    tags = {part.tag for part in root.iter()}
    assert tags <= {"svg", "g", "defs", "clipPath", "path", "rect", "image", "text", "title", "use"}
    links = [part.get("href") for part in root.iter() if part.get("href")]
    assert len(links) == 2
    assert all(link.startswith("data:image/png;base64,") for link in links)
    whole = HOSTILE.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
    assert whole in [part.text for part in root.iter("title")]
    assert "var(--ink, #1b2a41)" in text
    file = svg_text(drawn())
    assert "var(" not in file
    assert ET.fromstring(file).tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_files_have_the_same_bytes(tmp_path, kind):
    for name in "ab":
        save_figure(plot_certainty([0.1, 0.5]).figure, tmp_path / f"{name}.{kind}")
    assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


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
