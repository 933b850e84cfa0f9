from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from report.pages import Page, report
from sklearn.metrics import normalized_mutual_info_score

from polyspan import GMC, GRMSC, ConcatKMeans, ConcatSpectral
from polyspan.datasets import load_file, make_subspaces
from polyspan.figures.matrices import shrink
from polyspan.report import measure


def test_a_view_in_numbers():
    X = np.array([[0.0, 2.0, 5.0], [np.nan, -4.0, 5.0], [3.0, 0.0, 5.0], [np.nan] * 3])
    dense, sparse = measure.summarize_view(X), measure.summarize_view(sp.csr_array(X))
    for s in (dense, sparse):
        assert s.n_features == 3
        assert s.zeros == 2 / 12
        assert (s.missing, s.missing_samples) == (4, 1)
        assert (s.smallest, s.largest, s.typical) == (-4, 5, 4.5)
        assert s.constant == 1
        # Exact but for the rounding of a few sums.
        assert s.spread == pytest.approx((0, np.std([2, -4, 0])), abs=1e-12)
    assert (dense.storage, sparse.storage) == ("dense float64", "sparse float64")
    empty = measure.summarize_view(np.zeros((3, 2), dtype=int))
    assert (empty.zeros, empty.smallest, empty.largest) == (1, 0, 0)
    assert np.isnan(empty.typical)


def test_affinity_sums_and_blocks_against_loops():
    rng = np.random.default_rng(1)
    n, c = 37, 4
    W = rng.random((n, n)) * (rng.random((n, n)) < 0.3)
    W = W + W.T
    W[5] = W[:, 5] = 0  # a sample without any affinity
    codes = rng.integers(0, c, n)
    own = []
    for i in range(n):
        parts_ = [sum(W[i, j] for j in range(n) if j != i and codes[j] == k) for k in range(c)]
        own.append(parts_[codes[i]] / sum(parts_) if sum(parts_) else 0)
    for given in (W, sp.csr_array(W)):
        found = measure.measure_affinity(given, codes, c)
        assert found.own == pytest.approx(own, abs=1e-12)
        assert found.second[5] == -1
        a, b = np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)
        assert found.between[0, 1] == pytest.approx(W[np.ix_(a, b)].mean(), abs=1e-12)
        inside = W[np.ix_(a, a)]
        pairs = len(a) * (len(a) - 1)
        assert found.between[0, 0] == pytest.approx(
            (inside.sum() - np.trace(inside)) / pairs, abs=1e-12
        )
    order = np.argsort(codes, kind="stable")
    S = W[np.ix_(order, order)]
    np.fill_diagonal(S, 0)
    for most in (37, 10, 5):
        block = -(-n // most)
        cuts = [range(k, min(k + block, n)) for k in range(0, n, block)]
        wanted = [
            [S[np.ix_(p, q)].sum() / max(1, len(p) * len(q) - len(p) * (p is q)) for q in cuts]
            for p in cuts
        ]
        for given in (W, sp.csr_array(W)):
            found = shrink(given, order, most)
            assert len(found) <= most
            assert found == pytest.approx(np.array(wanted), abs=1e-12)


def test_margin_of_a_method_without_affinity():
    X = np.array([[0.0, 0.0], [0.0, 2.0], [10.0, 0.0], [10.0, 2.0], [4.0, 1.0]])
    codes = np.array([0, 0, 1, 1, 0])
    centers = [X[codes == k].mean(axis=0) for k in (0, 1)]
    wanted = []
    for x, k in zip(X, codes, strict=True):
        own, other = (np.linalg.norm(x - centers[j]) for j in (k, 1 - k))
        wanted.append(1 - own / other)
    assert measure.center_margin([X], codes, None) == pytest.approx(wanted, abs=1e-12)
    assert measure.center_margin([sp.csr_array(X)], codes, None) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.slow
def test_agreement_of_views(tmp_path, data_dir):
    data = load_file(data_dir / "three_sources.mat")
    model = ConcatSpectral(n_clusters=6, random_state=0).fit(data.views)
    text = report(tmp_path, data, model)
    shown = Page(text).shown
    for X in data.views:
        alone = ConcatSpectral(6, n_init=5, random_state=0).fit([X])
        assert f"{normalized_mutual_info_score(model.labels_, alone.labels_):.3f}" in shown
    assert "Computed on" not in shown
    # Only neighbors of the same cluster: a view of the labels themselves.
    near = measure.compare_view(np.eye(6)[model.labels_], model.labels_, "unit")
    assert near.nmi == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("cls", [ConcatSpectral, ConcatKMeans, GMC])
def test_every_view_is_shown_as_it_was_scaled(tmp_path, cls, monkeypatch):
    data = make_subspaces(60, 3, random_state=0)
    own = "zscore" if cls is GMC else "unit"
    model = cls(n_clusters=3, scale=(own, "standard"), random_state=0).fit(data.views)
    seen, plain = [], measure.compare_view

    def watched(X, codes, scale):
        seen.append(scale)
        return plain(X, codes, scale)

    monkeypatch.setattr(measure, "compare_view", watched)
    text = report(tmp_path, data, model)
    assert seen == ["unit", "standard"]
    assert f"scale=('{own}', 'standard')" in Page(text).shown


def test_views_with_gaps_constant_views_and_many_samples(tmp_path):
    data = make_subspaces(n_samples=90, n_clusters=3, n_views=3, noise=0.1, random_state=0)
    model = GRMSC(n_clusters=3, random_state=0).fit(data.views)
    views = [X.copy() for X in data.views]
    views[0][:20] = np.nan
    views[1][:] = 1.0
    text = report(tmp_path, SimpleNamespace(views=views, view_names=data.view_names), model)
    shown = Page(text).shown
    assert "20 whole samples" in shown
    assert "Computed on 70 to 90 of the 90 samples" not in shown  # all 90 is no part
    assert "Computed on 70 of the 90 samples" in shown
    assert "is constant" in shown
    labels = np.arange(2700) % 3
    many = np.eye(3)[labels] + np.random.default_rng(0).normal(0, 0.2, (2700, 3))
    found = measure.compare_view(many, labels, "unit")
    assert found.n_used == measure.MOST_COMPARED == 2000
    assert found.nmi > 0.8


def test_map_is_the_spectral_embedding(digits):
    data, model = digits
    plane = measure.draw_map(model.affinity_matrix_, data.views, 10, "unit")
    Y = measure.spectral_embedding(model.affinity_matrix_, 10)
    Y = Y - Y.mean(axis=0)
    w = np.linalg.eigvalsh(Y.T @ Y)[::-1]
    # Coordinates on principal axes: uncorrelated, with the variances of the covariance.
    assert (plane.axes.T @ plane.axes) == pytest.approx(np.diag(w[:6]), abs=1e-9)
    assert plane.shares == pytest.approx(w[:6] / w.sum(), abs=1e-9)
    assert np.all(plane.axes.max(axis=0) >= -plane.axes.min(axis=0))


def test_the_map_of_large_views_is_nearly_exact(monkeypatch):
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(300, 3)) * [9, 5, 2] @ rng.normal(size=(3, 40))]
    exact = measure.draw_map(None, views, 3, "unit")
    monkeypatch.setattr(measure, "MOST_VALUES", 0)
    quick = measure.draw_map(None, views, 3, "unit")
    assert not np.array_equal(quick.axes, exact.axes)  # it went another way
    # Three axes hold everything, and a randomized decomposition finds these to rounding.
    np.testing.assert_allclose(quick.axes[:, :3], exact.axes[:, :3], atol=1e-8)
