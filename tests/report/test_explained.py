"""What the report says of the clusters: features, what is known, how sure, rivals."""

import csv
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
from polyspan.figures.matrices import member_indicators
from polyspan.figures.plots import plot_certainty
from polyspan.report import content
from polyspan.report.measure import compare_view
from polyspan.report.write import draw_picture


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
    assert "3 clusters (number set by you)" in first
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


@pytest.mark.slow
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
    for words in ("never used for the clustering", "Kruskal-Wallis", "numbers at risk", "log-rank"):
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


def test_counts_stand_beside_their_clusters(tmp_path):
    """Also where the names of the clusters are numbers, of which "10" comes before "2"."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 12
    views = [10 * np.eye(12)[labels] + rng.standard_normal((60, 12))]
    model = ConcatKMeans(12, random_state=0).fit(views)
    model.labels_ = labels
    known = {
        "half": np.where(labels == 2, "two", "other"),
        "days": np.arange(1, 61),
        "dead": [1] * 60,
    }
    data = SimpleNamespace(views=views, view_names=["one"])
    text = report(tmp_path, data, model, known=known, survival=("days", "dead"))
    table = re.search(r'aria-label="Clusters and half".*?<tbody>(.*?)</tbody>', text, re.S)[1]
    rows = [Page(row).shown.split() for row in table.split("<tr>")[1:]]
    assert rows == [[str(k), *(["0", "5"] if k == 2 else ["5", "0"])] for k in range(12)]
    lines = re.findall(r"<title>(\d+)</title><path[^>]*stroke: (#\w+)", text)
    assert lines == [(str(k), color) for k, color in enumerate(cluster_colors(12))]


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
    together = sum(w * (v[:, None] == v[None, :]) for w, v in zip(weights, votes, strict=True))
    known = silhouette_samples(1 - together, consensus.labels_, metric="precomputed")
    section = text[text.index('<section id="consensus"') :]
    means = re.findall(r'class="n" data-v="([^"]+)"', section[: section.index("</section>")])[::2]
    wanted = [known[consensus.labels_ == k].mean() for k in range(3)]
    assert [float(x) for x in means] == pytest.approx(wanted, abs=6e-4)
    second = unpack(data_of(text)["second"], "i2")
    assert second[:2].tolist() == [2, 2]


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


def test_methods_paragraph_names_versions_and_citations(tmp_path):
    data, model, names, labels = planted()
    known = {"diet": labels.astype(str)}
    shown = Page(report(tmp_path, data, model, feature_names=names, known=known)).shown
    for words in (
        "60 samples described by 2 views, genes (8 features), lipids (9 features)",
        "with polyspan", "The method was ConcatKMeans", "The random seed was 0",
        "Benjamini and Hochberg, J. R. Stat. Soc. B", "were not used for the clustering",
        "Pedregosa et al.",
    ):  # fmt: skip
        assert words in shown, words


@pytest.mark.slow
def test_figures_are_written_together_or_not_at_all(tmp_path, monkeypatch):
    from polyspan.report import write

    data, model, _, _ = planted()
    monkeypatch.setattr(write, "write_figure", lambda *_, dpi: 1 / 0)
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
    for kind in ("svg", "png", "pdf"):
        assert (tmp_path / "drawn" / f"features.{kind}").exists()
    assert {path.suffix for path in (tmp_path / "drawn").iterdir() if path.stem == "map-1"} == {
        ".svg", ".png", ".pdf",
    }  # fmt: skip


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
    assert (wide, tall) == (1300, 1280)
    half = 640
    top, bottom = picture[:half], picture[half:]
    colors = cluster_colors(3)
    for part in (top[:, :half], top[:, half:], bottom):
        for color in colors:  # points, strips beside the matrix, a strip above the features
            rgb = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
            assert np.sum(np.all(np.abs(part - rgb) < 0.11, axis=-1)) > 50
    with pytest.raises(FileExistsError, match=r"one\.png exists: pass force=True"):
        report(tmp_path, data, consensus, name="2.html", picture=tmp_path / "one.png")
    with pytest.raises(ValueError, match=r"one\.bmp: the file name of a figure must end in"):
        report(tmp_path, data, consensus, name="2.html", picture=tmp_path / "one.bmp")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "report.html"]


def test_the_picture_of_one_method_has_no_matrix():
    def draw(ax):
        return plot_certainty([0.5], ax)

    figure = draw_picture(dict.fromkeys(("features", "survival", "map"), draw))
    figure.draw_without_rendering()
    top, below = (one.get_position() for one in figure.axes)
    assert (top.x0, top.x1 < 0.51, below.x1 > 0.95) == (below.x0, True, True)
    assert below.y1 < top.y0  # nothing overlaps


def test_a_fitted_consensus_keeps_the_labels_of_its_members(tmp_path):
    data, _, _, _ = planted(45)
    members = [MeanGraph(n_neighbors=k) for k in (5, 8, 10)]
    members += [ConcatKMeans(), ConcatKMeans(n_init=5)]
    model = ConsensusClusterer(3, members=members, random_state=0).fit(data.views)
    assert model.member_labels_.shape == (5, 45)
    B = member_indicators(model.member_labels_, [row["weight"] for row in model.table_])
    together = (B @ B.T).toarray()
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
