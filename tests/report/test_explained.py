"""What the report says of the clusters: features, what is known, how sure, rivals."""

import csv
import io
import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.image import imread
from report.pages import Page, data_of, merged, report, tried, unpack
from sklearn.metrics import silhouette_samples

from polyspan import ConcatKMeans, ConsensusClusterer, MeanGraph
from polyspan.figures import cluster_colors
from polyspan.report import agreement, content, drawings
from polyspan.report.content import check_content
from polyspan.report.measure import compare_view
from polyspan.report.picture import draw_picture
from polyspan.report.raster import to_png


def planted(n=60, seed=0):
    """Two views; feature 'key0' of the first and 'mark1' of the second tell clusters 0 and 1."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    views = [rng.standard_normal((n, 8)), rng.standard_normal((n, 9))]
    for X in views:
        for k in range(3):
            X[:, k] += 6 * (labels == k)
    names = [[f"key{j}" for j in range(8)], [f"mark{j}" for j in range(9)]]
    data = SimpleNamespace(views=views, view_names=["genes", "lipids"])
    model = ConcatKMeans(3, random_state=0).fit(views)
    model.labels_ = labels
    return data, model, names, labels


def verdict_of(text):
    return Page(text[text.index('<div class="verdict">') : text.index('<dl class="tiles">')]).shown


def test_features_are_named_in_the_first_words(tmp_path):
    data, model, names, labels = planted()
    diet = np.array(["corn", "fish", "oil"])[labels]
    text = report(tmp_path, data, model, feature_names=names, known={"diet": diet})
    first = verdict_of(text)
    for words in ("\u2191key0", "\u2191mark1", "corn \u2191key0", "oil \u2191key2", "ARI 1.00"):
        assert words in first, words
    assert "3 clusters, as asked" in first
    listed = data_of(text)["lists"]["markers"]
    assert listed["heads"][-1] == "held out"
    rows = list(zip(*listed["columns"], strict=True))
    assert len(rows) == (8 + 9) * 3
    assert {row[1] for row in rows[:6]} == {f"{a}{k}" for a in ("key", "mark") for k in range(3)}
    assert all(row[7] < 1e-6 for row in rows[:6])  # held out: the other view finds the clusters
    assert "p-values are optimistic" in text


def test_numbered_features_and_one_view(tmp_path):
    data, model, _, _ = planted()
    one = SimpleNamespace(views=data.views[:1], view_names=["genes"])
    text = report(tmp_path, one, model)
    assert "\u2191column1" in verdict_of(text)
    assert "held out" not in data_of(text)["lists"]["markers"]["heads"]
    assert data_of(text)["maps"] == []
    with pytest.raises(ValueError, match="view 'genes' has 8 features, but 2 feature_names"):
        report(tmp_path, one, model, "b", feature_names=[["a", "b"]])


def test_known_columns_are_tested_and_can_color_the_map(tmp_path):
    data, model, names, labels = planted()
    rng = np.random.default_rng(0)
    known = {
        "diet": np.where(np.arange(60) < 3, None, np.array(["corn", "fish", "oil"])[labels]),
        "age": rng.normal(50, 9, 60),
        "days": rng.integers(1, 99, 60),
        "dead": rng.integers(0, 2, 60),
    }
    text = report(
        tmp_path, data, model, feature_names=names, known=known, survival=("days", "dead"),
        figures=tmp_path / "drawn",
    )  # fmt: skip
    shown = Page(text).shown
    for words in ("never reached the clustering", "Kruskal-Wallis", "numbers at risk", "log-rank"):
        assert words in shown, words
    painted = {one["name"]: one for one in data_of(text)["known"]}
    assert set(painted) == {"diet", "age"}  # survival is no class
    assert painted["diet"]["codes"][:5] == [-1, -1, -1, 0, 1]
    assert painted["age"]["shares"][int(np.argmax(known["age"]))] == 1
    with open(tmp_path / "drawn" / "survival.csv") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["cluster"] for row in rows} == {"0", "1", "2"}
    assert rows[0]["alive"] == "1"
    for path in (tmp_path / "drawn").glob("*.svg"):
        assert len(list(ET.parse(path).getroot())) > 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"known": {"age": [1, 2]}}, "known has 2 values in 'age', but there are 60"),
        (
            {"known": {"age": [1] * 60}, "survival": ("agee", "age")},
            "column of survival is called 'agee'",
        ),
    ],
)
def test_what_is_known_must_fit(tmp_path, change, message):
    data, model, _, _ = planted()
    with pytest.raises(ValueError, match=message):
        report(tmp_path, data, model, **change)
    assert not list(tmp_path.iterdir())


def voted(n=30):
    """A consensus of three members, of which the last moves two samples."""
    data, model, _, labels = planted(n)
    votes = np.array([labels, (labels + 1) % 3, np.where(np.arange(n) < 2, 2, labels)])
    weights = (0.5, 0.3, 0.2)
    consensus = merged(model, table_=[tried(weight=w) for w in weights])
    consensus.member_labels_ = votes
    return data, consensus, votes, np.array(weights)


def test_the_consensus_matrix_is_always_there(tmp_path):
    data, consensus, votes, weights = voted()
    text = report(tmp_path, data, consensus)  # the nearest member, k-means, has no affinity
    assert 'data-name="consensus"' in text
    assert 'data-name="silhouette"' in text
    ids = [str(i) for i in range(30)]
    c = check_content(data.views, data.view_names, ids, consensus, None, None, None, ())
    found = agreement.measure_consensus(c)
    together = sum(w * (v[:, None] == v[None, :]) for w, v in zip(weights, votes, strict=True))
    assert (found.B @ found.B.T).toarray() == pytest.approx(together, abs=1e-12)
    known = silhouette_samples(1 - together, consensus.labels_, metric="precomputed")
    assert found.silhouette == pytest.approx(known, abs=1e-9)
    assert found.second[:2].tolist() == [2, 2]
    assert data_of(text)["second"] is not None


def test_the_matrix_is_averaged_over_blocks():
    _, _, votes, weights = voted(40)
    together = sum(w * (v[:, None] == v[None, :]) for w, v in zip(weights, votes, strict=True))
    c = SimpleNamespace(
        estimator=SimpleNamespace(member_labels_=votes), n_agreeing=3, clusters=list("abc"),
        members=[{"status": "ok", "weight": w} for w in weights], ids=range(40),
        codes=np.arange(40) % 3, rows=np.arange(40),
    )  # fmt: skip
    B = agreement.measure_consensus(c).B
    order = np.argsort(c.codes, kind="stable")
    small = agreement.shrink_consensus(B, order, 20)
    sorted_ = together[np.ix_(order, order)]
    blocks = sorted_.reshape(20, 2, 20, 2).sum(axis=(1, 3))
    known = (blocks - 2 * np.eye(20)) / (4 - 2 * np.eye(20))
    assert small == pytest.approx(known, abs=1e-12)
    assert agreement.shrink_consensus(B, order, 40) == pytest.approx(sorted_, abs=1e-12)


def test_rivals_show_who_moves(tmp_path):
    data, consensus, votes, _ = voted()
    other = votes[0].copy()
    other[:4] = 2
    consensus.alternatives_ = [
        {"labels": other, "share": 0.3, "similarity": 0.5, "modularity": [0.1, 0.2]}
    ]
    consensus.labels_by_k_ = {3: consensus.labels_, 2: np.minimum(votes[0], 1)}
    text = report(tmp_path, data, consensus)
    section = text[text.index('<section id="rivals"') :]
    section = Page(section[: section.index("</section>")]).shown
    assert "rival with 30% of the votes" in section
    assert "2 clusters" in section
    assert "0 to 2: 2 samples" in section
    assert re.search(r"0 to 2: 2 samples.*1 to 2: 1 sample", section, re.S)


def test_a_small_cluster_can_be_known_as_well_as_a_large_one():
    rng = np.random.default_rng(0)
    codes = np.array([0] * 80 + [1] * 4)
    centers = np.array([[5.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    X = rng.standard_normal((84, 3)) * 0.3 + centers[codes]
    assert compare_view(X, codes, "unit").near == pytest.approx([1, 1])
    near = compare_view(rng.standard_normal((84, 3)), codes, "unit").near
    assert near == pytest.approx([0.5, 0.5], abs=0.35)  # noise: neither


def test_flow_keeps_every_sample():
    counts = np.array([[3, 1], [0, 6]])
    svg = drawings.flow(counts, ["#111111", "#222222"], ["a", "b"], ["c", "d"], "move")
    assert [int(one) for one in re.findall(r"to \w: (\d+) sample", svg)] == [3, 1, 6]


def test_methods_paragraph_names_versions_and_citations(tmp_path):
    data, model, names, labels = planted()
    known = {"diet": labels.astype(str)}
    shown = Page(report(tmp_path, data, model, feature_names=names, known=known)).shown
    for words in (
        "60 samples described by 2 views, genes (8 features), lipids (9 features)",
        "with polyspan", "The method was ConcatKMeans", "The random seed was 0",
        "Benjamini and Hochberg, J. R. Stat. Soc. B", "was not used for the clustering",
        "Pedregosa et al.",
    ):  # fmt: skip
        assert words in shown, words


def test_figures_are_written_together_or_not_at_all(tmp_path, monkeypatch):
    from polyspan.report import downloads

    data, model, _, _ = planted()
    monkeypatch.setattr(downloads, "alone", lambda svg: 1 / 0)
    with pytest.raises(ZeroDivisionError, match="division"):
        report(tmp_path, data, model, figures=tmp_path / "drawn")
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    (tmp_path / "drawn").mkdir()
    (tmp_path / "drawn" / "mine").write_text("mine")
    with pytest.raises(FileExistsError, match="drawn for the figures is not empty"):
        report(tmp_path, data, model, figures=tmp_path / "drawn")
    report(tmp_path, data, model, figures=tmp_path / "drawn", force=True)
    assert (tmp_path / "drawn" / "mine").read_text() == "mine"
    assert (tmp_path / "drawn" / "features.svg").exists()


def test_samples_without_values(tmp_path):
    data, _, names, labels = planted()
    data.views[0][:5] = np.nan
    model = MeanGraph(3, random_state=0).fit(data.views)
    text = report(tmp_path, data, model, "a", feature_names=names)
    assert 'data-name="features"' in text
    data.views[1][7, 2] = np.nan  # a single value
    text = report(tmp_path, data, model, "b", feature_names=names, labels=labels)
    assert "held out" not in data_of(text)["lists"]["markers"]["heads"]


@pytest.mark.slow
def test_beyond_a_number_of_samples_some_are_shown(tmp_path, monkeypatch):
    data, consensus, votes, _ = voted(60)
    votes[:, 57:] = 3  # a cluster of three
    consensus.labels_ = votes[0]
    consensus.labels_by_k_ = {4: votes[0], 2: np.minimum(votes[0], 1)}
    monkeypatch.setattr(content, "MOST_SHOWN", 40)
    monkeypatch.setattr(content, "FEWEST_SHOWN", 5)
    known = {"row": np.arange(60.0)}
    text = report(tmp_path, data, consensus, known=known, figures=tmp_path / "drawn")
    assert "shows 40 of the 60 samples, drawn at random" in Page(text).shown
    found = data_of(text)
    rows = [int(one[1:]) for one in found["ids"]]
    assert len(rows) == 40
    assert found["n"] == 40
    assert rows == sorted(set(rows))
    assert {57, 58, 59} <= set(rows)  # the small cluster is there as a whole
    assert unpack(found["codes"], "u2").tolist() == votes[0][rows].tolist()
    sure = np.linspace(0, 1, 60)[rows] * 10000
    assert unpack(found["certainty"], "u2") == pytest.approx(sure, abs=0.5)
    shares = np.array(found["known"][0]["shares"])
    assert shares == pytest.approx((np.array(rows) - rows[0]) / (rows[-1] - rows[0]), abs=1e-4)
    assert 'data-name="consensus"' in text


def test_figures_as_png_have_the_colors_in_their_places():
    svg = drawings.matrix(np.eye(2), np.array([1, 1]), ["#ff0000", "#00ff00"], "two")
    picture = imread(io.BytesIO(to_png(svg, dpi=72)))[:, :, :3]
    assert picture.shape[:2] == (578, 578)
    assert picture[150, 150] == pytest.approx([0x08 / 255, 0x2F / 255, 0x5C / 255], abs=0.01)
    assert picture[150, 450] == pytest.approx([1, 1, 1], abs=0.01)
    assert picture[5, 150] == pytest.approx([1, 0, 0], abs=0.01)  # the strips: across, and down
    assert picture[450, 5] == pytest.approx([0, 1, 0], abs=0.01)
    curve = (np.array([0.0, 5.0]), np.array([1.0, 0.5]))
    ticks = np.array([0.0, 5.0])
    svg = drawings.steps([curve], ["#ff0000"], ["a"], ticks, np.ones((1, 2), int), "time")
    picture = imread(io.BytesIO(to_png(svg, dpi=72)))[:, :, :3]
    red = np.argwhere((picture[:, :, 0] > 0.9) & (picture[:, :, 1] < 0.3))
    red = red[red[:, 1] > 90]  # without the key
    assert (red.min(axis=0) <= [13, 97]).all()  # from the top left,
    assert red[:, 0].max() == pytest.approx(12 + 130, abs=2)  # down to half


def test_landmarks_have_different_names(tmp_path):
    """Sections, and tables that scroll, in the list that a screen reader offers."""
    data, consensus, votes, _ = voted(60)
    text = report(tmp_path, data, consensus, known={"diet": votes[0].astype(str)})
    names = re.findall(r'role="region" aria-label="([^"]+)"', text)
    names += re.findall(r'aria-labelledby="(h-[^"]+)"', text)
    names = [name.removeprefix("h-").lower() for name in names]
    assert {"features", "clusters", "samples", "table of samples"} <= set(names)
    assert len(set(names)) == len(names)


def test_one_picture_has_map_matrix_and_features(tmp_path):
    data, consensus, _, _ = voted(60)
    report(tmp_path, data, consensus, picture=tmp_path / "one.png")
    picture = imread(tmp_path / "one.png")[:, :, :3]
    tall, wide = picture.shape[:2]
    assert abs(wide - 940 / 72 * 100) <= 1
    half = 463 / 940 * wide
    top, bottom = picture[: int(half)], picture[int(half + 0.05 * wide) :]
    colors = cluster_colors(3)
    for part in (top[:, : int(half)], top[:, int(half) :], bottom):
        for color in colors:  # points, strips beside the matrix, a strip above the features
            rgb = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
            assert np.sum(np.all(np.abs(part - rgb) < 0.02, axis=-1)) > 50
    assert tall > half + 100
    with pytest.raises(FileExistsError, match=r"one\.png exists: pass force=True"):
        report(tmp_path, data, consensus, name="2.html", picture=tmp_path / "one.png")
    with pytest.raises(ValueError, match=r"one\.bmp: the file name of a figure must end in"):
        report(tmp_path, data, consensus, name="2.html", picture=tmp_path / "one.bmp")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "report.html"]


def test_the_picture_of_one_method_has_no_matrix():
    box = '<svg viewBox="0 0 100 50"><rect x="0" y="0" width="9" height="9" fill="#000000"/></svg>'
    figure = draw_picture({"features": box, "survival": box, "map": box})
    places = [one.get_position().bounds for one in figure.axes]
    assert len(places) == 2
    (left, low, wide, _), below = places
    assert (left, below[0], below[2]) == pytest.approx((0, 0, 1))
    assert wide == pytest.approx(463 / 940)
    assert below[1] + below[3] < low  # nothing overlaps


def test_a_fitted_consensus_keeps_the_labels_of_its_members(tmp_path):
    data, _, _, _ = planted(45)
    members = [MeanGraph(n_neighbors=k) for k in (5, 8, 10)]
    members += [ConcatKMeans(), ConcatKMeans(n_init=5)]
    model = ConsensusClusterer(3, members=members, random_state=0).fit(data.views)
    assert model.member_labels_.shape == (5, 45)
    ids = [str(i) for i in range(45)]
    c = content.check_content(data.views, data.view_names, ids, model, None, None, None, ())
    found = agreement.measure_consensus(c)
    together = (found.B @ found.B.T).toarray()
    own = model.labels_[:, None] == model.labels_[None, :]
    inside = (np.where(own, together, 0).sum(axis=1) - 1) / (own.sum(axis=1) - 1)
    others = [
        np.where(model.labels_ == k, -1, together[:, model.labels_ == k].mean(axis=1))
        for k in range(3)
    ]
    # The same votes give the certainty that the fit itself has computed.
    assert model.certainty_ == pytest.approx(np.clip(inside - np.max(others, axis=0), 0, 1))
    text = model.report(tmp_path / "r.html").read_text("utf-8")
    assert 'data-name="consensus"' in text
