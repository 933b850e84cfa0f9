import base64
import io
import json
import os
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from PIL import Image
from sklearn.metrics import normalized_mutual_info_score

from polyspan import GRMSC, LRR, METHODS, ConcatKMeans, ConcatSpectral
from polyspan.datasets import load_digits_views, load_file, make_subspaces
from polyspan.report import measure, palette, parts, write, write_report
from polyspan.report.page import _series
from polyspan.selection import Selection, count_clusters

DATE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
NASTY = [
    "<script>window.hacked=1</script>",
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "' onmouseover='window.hacked=1",
    "<!--",
    "]]>",
    "$title ${data} $$",
    "%s {0} {name}",
    "&lt;b&gt; &amp;",
    "caf\u00e9 \u6f22\u5b57 \U0001f9ec \u202eright to left",
    "\u2028line\u2029ends",
    "nul\x00bell\x07",
    "half \ud800 a pair",
    "tab\tand\nline",
    "long " + "x" * 3000,
    "",
]


class Page(HTMLParser):
    """What a browser would make of the file: elements with attributes, and the text in them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.inside = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_data(self, data):
        self.texts.append((self.inside[-1] if self.inside else "", data))

    @property
    def shown(self):
        return "".join(text for tag, text in self.texts if tag not in ("script", "style"))


def data_of(text):
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])


def unpack(text, kind):
    return np.frombuffer(base64.b64decode(text), np.dtype(kind).newbyteorder("<"))


def fitted(labels, W):
    """An estimator as it is after a fit, without the fit."""
    model = ConcatSpectral(len(np.unique(labels)))
    model.labels_, model.affinity_matrix_ = np.asarray(labels), W
    return model


@pytest.fixture(scope="module")
def digits():
    data = load_digits_views(150, random_state=0)
    model = GRMSC(n_clusters=10, affinity="sparse", random_state=0).fit(data.views)
    return data, model


def report(tmp_path, data, model, name="report.html", **more):
    given = {
        "views": data.views,
        "view_names": data.view_names,
        "sample_ids": [f"s{i}" for i in range(len(model.labels_))],
        "estimator": model,
        "labels": model.labels_,
        "date": DATE,
    }
    return write_report(tmp_path / name, **(given | more)).read_text("utf-8")


def test_everything_is_on_the_page(tmp_path, digits):
    data, model = digits
    selection = SimpleNamespace(
        table=[
            {"setting": {"lam1": 1.0}, "agreement": 0.71234, "chosen": True},
            {"setting": {"lam1": 100.0}, "agreement": 0.5, "seconds": 1.5},
        ],
        n_clusters=10,
        evidence={"n_clusters": [9, 10, 11], "eigengap": [0.1, 0.4321, 0.2], "by": "both"},
    )
    text = report(
        tmp_path, data, model, command="polyspan fit a.csv --clusters 10", title="My digits",
        notes=["Three samples were dropped."], selection=selection,
    )  # fmt: skip
    page = Page(text)
    sections = [attrs["id"] for tag, attrs in page.elements if tag == "section"]
    assert sections == [
        "map", "clusters", "affinity", "views", "certainty", "convergence", "selection", "count",
        "run",
    ]  # fmt: skip
    for words in (
        "My digits", "2026-01-02 03:04 UTC", "pixels", "fourier", "gradients",
        "Three samples were dropped.", "polyspan fit a.csv --clusters 10", "lam1=100.0", "0.712",
        "0.432", "GRMSC(affinity='sparse', n_clusters=10, random_state=0).fit_predict(views)",
        "share of a sample\u2019s affinity", "scikit-learn", "tol 1e-6",
    ):  # fmt: skip
        assert words in page.shown, words
    sizes = np.bincount(model.labels_)
    found = data_of(text)
    assert [one["size"] for one in found["clusters"]] == sizes.tolist()
    assert np.array_equal(unpack(found["codes"], "i2"), model.labels_)
    assert found["ids"] == [f"s{i}" for i in range(150)]
    assert all(len(unpack(axis, "u2")) == 150 for axis in found["axes"])


def test_nothing_is_loaded_from_anywhere(tmp_path, digits):
    text = report(tmp_path, *digits)
    assert "http:" not in text
    assert "https:" not in text
    assert not re.search(r"@import|@font-face|url\(|importScripts|fetch\(|XMLHttp|WebSocket", text)
    for tag, attrs in Page(text).elements:
        for name in ("src", "href", "srcset", "action", "data"):
            if name in attrs:
                assert attrs[name].startswith(("#", "data:")), (tag, attrs)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy  # and so no other script than ours


@pytest.mark.slow
def test_all_user_strings_are_text(tmp_path):
    n = len(NASTY)
    rng = np.random.default_rng(0)
    views = [rng.standard_normal((n, 4)) for _ in range(n)]
    model = ConcatSpectral(n_clusters=2, random_state=0).fit(views)
    labels = np.array([NASTY[i % 2] for i in range(n)])
    plain = report(tmp_path, SimpleNamespace(views=views, view_names=["v"] * n), model, "plain")
    for name in NASTY[:12]:
        selection = SimpleNamespace(
            table=[{name: name, "setting": {name: name}}],
            evidence={name: name, "n_clusters": [2, 3], name + "x": [0.5, 0.6]},
        )
        text = report(
            tmp_path, SimpleNamespace(views=views, view_names=NASTY), model, force=True,
            sample_ids=NASTY, labels=labels, title=name, command=name, notes=[name],
            selection=selection,
        )  # fmt: skip
        page = Page(text)
        kinds = {tag for tag, _ in Page(plain).elements} | {"ul", "li"}
        assert {tag for tag, _ in page.elements} <= kinds
        assert sum(tag == "script" for tag, _ in page.elements) == 2
        assert sum(tag == "img" for tag, _ in page.elements) == 1
        assert not any(key.startswith("on") for _, attrs in page.elements for key in attrs)
        cleaned = parts.clean(name)
        assert page.shown.count(cleaned) >= 5  # heading, title, note, command, tables
    assert data_of(text)["ids"] == [parts.clean(name) for name in NASTY]
    assert data_of(text)["clusters"][0]["name"] in NASTY[:2]
    assert "\x00" not in text
    assert parts.clean("a\ud800\x00b") == "a\ufffd\ufffdb"


def test_same_input_same_file(tmp_path, digits, monkeypatch):
    first, second = (report(tmp_path, *digits, name) for name in ("a.html", "b.html"))
    assert first == second
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(DATE.timestamp())))
    assert report(tmp_path, *digits, "c.html", date=None) == first
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    now = report(tmp_path, *digits, "d.html", date=None)
    shown = re.search(r'class="date">([^<]*)<', now)[1]
    age = datetime.now(UTC) - datetime.strptime(shown, "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC)
    assert -60 <= age.total_seconds() < 3600
    assert now.replace(shown, "2026-01-02 03:04 UTC") == first


def test_addresses_in_memory_do_not_show(tmp_path, digits):
    data, _ = digits
    odd = ConcatSpectral(n_clusters=10, random_state=np.random.RandomState(0)).fit(data.views)
    assert " at 0x" not in report(tmp_path, data, odd)
    assert parts.setting(print).startswith("<built-in function print")
    assert parts.setting(lambda: 0).endswith("<lambda>>")


def test_nothing_is_overwritten_or_left_behind(tmp_path, digits, monkeypatch):
    file = tmp_path / "report.html"
    file.write_text("mine")
    with pytest.raises(FileExistsError, match="exists: say force"):
        report(tmp_path, *digits)
    assert file.read_text() == "mine"
    monkeypatch.setattr(write, "build_page", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError, match="division"):
        report(tmp_path, *digits, force=True)
    assert file.read_text() == "mine"
    monkeypatch.undo()

    def fail(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk is full"):
        report(tmp_path, *digits, force=True)
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert file.read_text() == "mine"
    monkeypatch.undo()
    assert report(tmp_path, *digits, force=True).startswith("<!doctype html>")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]


def test_a_file_that_appears_meanwhile_is_kept(tmp_path, digits, monkeypatch):
    def slow(*_):
        (tmp_path / "report.html").write_text("theirs")
        return "ours"

    monkeypatch.setattr(write, "build_page", slow)
    with pytest.raises(FileExistsError, match="exists: say force"):
        report(tmp_path, *digits)
    assert (tmp_path / "report.html").read_text() == "theirs"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"views": []}, "views is empty"),
        ({"view_names": ["one"]}, "3 views but 1 view_names"),
        ({"labels": np.zeros(4)}, r"labels has shape \(4,\), but there are 150 sample_ids"),
        ({"sample_ids": ["a"]}, r"labels has shape \(150,\), but there are 1 sample_ids"),
        ({"views": [np.eye(3)] * 3}, r"view 'pixels' has shape \(3, 3\), but there are 150"),
        ({"views": [np.full((150, 2), "x")] * 3}, "view 'pixels' holds <U1 values"),
        ({"certainty": [0.5]}, "certainty must be 150 numbers between 0 and 1"),
        ({"certainty": np.full(150, 1.5)}, "between 0 and 1, one per sample; .* some outside"),
        ({"certainty": np.full(150, np.nan)}, "between 0 and 1"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(tmp_path, digits, change, message):
    with pytest.raises(ValueError, match=message):
        report(tmp_path, *digits, **change)
    assert not list(tmp_path.iterdir())


def test_bad_paths_and_a_foreign_estimator(tmp_path, digits):
    data, model = digits
    with pytest.raises(FileNotFoundError, match="does not exist: make it"):
        report(tmp_path / "nowhere", data, model)
    with pytest.raises(IsADirectoryError, match="is a folder: name a file"):
        report(tmp_path, data, model, "")
    other = ConcatSpectral(3).fit(make_subspaces(30, 3, random_state=0).views)
    with pytest.raises(ValueError, match=r"affinity_matrix_ has shape \(30, 30\), but there are"):
        report(tmp_path, data, model, estimator=other)


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
            found = measure.shrink_affinity(given, order, most)
            assert len(found) <= most
            assert found == pytest.approx(np.array(wanted), abs=1e-12)


def test_the_picture_is_the_affinity(tmp_path, digits):
    levels = np.arange(256).reshape(16, 16)
    code = parts.png(levels).removeprefix("data:image/png;base64,")
    with Image.open(io.BytesIO(base64.b64decode(code))) as picture:
        assert np.array_equal(np.asarray(picture), levels)
        light = np.asarray(picture.convert("L")).ravel().astype(int)
    assert np.all(np.diff(light) <= 0)  # more affinity is never lighter
    assert (light[0], light[255] < 60) == (255, True)
    big = 1501
    rng = np.random.default_rng(0)
    W = rng.random((big, big), dtype=np.float32)
    views = [rng.random((big, 2))]
    model = fitted(np.arange(big) % 3, W + W.T)
    text = report(tmp_path, SimpleNamespace(views=views, view_names=["one"]), model)
    code = re.search(r'src="data:image/png;base64,([^"]*)"', text)[1]
    with Image.open(io.BytesIO(base64.b64decode(code))) as picture:
        assert picture.size == (501, 501)
    assert "mean over 3 \u00d7 3 pairs" in text


def test_certainty_says_where_it_comes_from(tmp_path, digits):
    data, model = digits
    given = np.linspace(0, 1, 150)
    text = report(tmp_path, data, model, "a", certainty=given)
    assert "Certainty was given with the labels" in text
    assert unpack(data_of(text)["certainty"], "u2") == pytest.approx(given * 10000, abs=0.5)
    assert text.index('data-sample="0"') < text.index('data-sample="1"')
    picked = SimpleNamespace(certainty=given[::-1], table=None, evidence=None)
    text = report(tmp_path, data, model, "b", selection=picked)
    assert "Certainty is the share of the settings in the consensus" in text
    assert text.index('data-sample="149"') < text.index('data-sample="148"')
    text = report(tmp_path, data, model, "c")
    own = measure.measure_affinity(model.affinity_matrix_, model.labels_, 10).own
    assert unpack(data_of(text)["certainty"], "u2") == pytest.approx(own * 10000, abs=0.5)


def test_a_consensus_is_called_one(tmp_path, digits):
    data, model = digits
    merged = np.where(np.arange(150) < 10, (model.labels_ + 1) % 10, model.labels_)
    selection = Selection(
        labels=merged,
        certainty=np.linspace(0, 1, 150),
        best_estimator=model,
        table=[{"method": "GRMSC", "weight": weight} for weight in (0.5, 0.5, 0.0)],
        n_clusters=10,
        evidence={},
        asked={"n_clusters": 10, "estimator": LRR, "grid": [{"lam": 1.0}], "random_state": 7},
    )
    more = {"selection": selection, "certainty": selection.certainty, "repeat": "polyspan again"}
    page = Page(report(tmp_path, data, model, "a", labels=merged, **more)).shown
    for words in (
        "Consensus of 2 settings: 10 clusters in 150 samples",
        "nearest to the consensus, GRMSC",
        "from polyspan import LRR",
        "labels = select(views, 10, estimator=LRR, grid=[{'lam': 1.0}], random_state=7).labels",
        "Certainty is the share of the settings in the consensus",
        "The command that repeats it",
        "polyspan again",
    ):
        assert words in page, words
    assert "fit_predict" not in page
    page = Page(report(tmp_path, data, model, "b", **more)).shown  # the labels of the estimator
    assert "Consensus of" not in page
    assert "fit_predict" in page


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


def test_agreement_of_views(tmp_path, data_dir):
    data = load_file(data_dir / "three_sources.mat")
    model = ConcatSpectral(n_clusters=6, random_state=0).fit(data.views)
    text = report(tmp_path, data, model)
    shown = Page(text).shown
    for X in data.views:
        alone = ConcatSpectral(6, n_init=5, random_state=0).fit([X])
        assert f"{normalized_mutual_info_score(model.labels_, alone.labels_):.3f}" in shown
    assert "Computed on" not in shown
    # Only neighbours of the same cluster: a view of the labels themselves.
    near = measure.compare_view(np.eye(6)[model.labels_], model.labels_, "unit")
    assert near.nmi == pytest.approx(1, abs=1e-12)


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


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_report(tmp_path, name):
    data = make_subspaces(n_samples=45, n_clusters=3, random_state=0)
    cls = METHODS[name]
    views = data.views[:1] if cls._single_view else data.views
    model = cls().set_params(n_clusters=3, random_state=0).fit(views)
    names = data.view_names[: len(views)]
    text = report(tmp_path, SimpleNamespace(views=views, view_names=names), model)
    assert cls.__name__ in Page(text).shown
    has_affinity = hasattr(model, "affinity_matrix_")
    assert ('id="matrix"' in text) == has_affinity
    assert ("without an affinity" in text) == (not has_affinity)


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
@pytest.mark.parametrize("method", [ConcatKMeans, ConcatSpectral])
def test_three_samples(tmp_path, method, n_clusters):
    views = [np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]]), np.eye(3)]
    model = method(n_clusters=n_clusters, random_state=0).fit(views)
    data = SimpleNamespace(views=views, view_names=["a", "b"])
    text = report(tmp_path, data, model)
    assert f"{n_clusters} cluster" in Page(text).shown
    assert 'id="convergence"' not in text
    assert 'id="selection"' not in text


def test_one_cluster_of_equal_samples(tmp_path):
    model = fitted([7, 7, 7, 7], np.ones((4, 4)))
    data = SimpleNamespace(views=[np.ones((4, 2))], view_names=["one"])
    text = report(tmp_path, data, model)
    assert "nothing to compare" in text
    assert data_of(text)["clusters"] == [{"name": "7", "size": 4, "color": "#0072b2"}]


def test_lists_frames_and_sparse_views_are_taken(tmp_path):
    data = make_subspaces(n_samples=30, n_clusters=3, random_state=0)
    model = ConcatSpectral(n_clusters=3, random_state=0).fit(data.views)
    kinds = [data.views[0].tolist(), pd.DataFrame(data.views[1])]
    lists = SimpleNamespace(views=kinds, view_names=data.view_names)
    sparse = SimpleNamespace(views=[sp.csr_matrix(X) for X in kinds], view_names=data.view_names)
    a = report(tmp_path, lists, model, "a", labels=model.labels_.tolist())
    b = report(tmp_path, sparse, model, "b", sample_ids=pd.Index([f"s{i}" for i in range(30)]))
    assert re.sub(r"dense(.)float64", r"sparse\1float64", a) == b


def test_notes_on_convergence_and_on_other_labels(tmp_path, digits):
    data, _ = digits
    with pytest.warns(UserWarning, match="before it converged"):
        model = GRMSC(n_clusters=10, max_iter=3, random_state=0).fit(data.views)
    labels = model.labels_.copy()
    text = report(tmp_path, data, model, "a")
    assert "stopped after max_iter=3 turns before it converged" in text
    assert "not those of the estimator" not in text
    labels[:20] = (labels[:20] + 1) % 10
    text = report(tmp_path, data, model, "b", labels=labels)
    same = normalized_mutual_info_score(labels, model.labels_)
    assert f"normalised mutual information of {same:.3f}" in text


@pytest.mark.parametrize(
    "evidence",
    [
        {"n_clusters": [2, 3, 4], "gap": [0.11, 0.77, 0.22]},
        {"candidates": np.array([2, 3, 4]), "gap": np.array([0.11, 0.77, 0.22])},
        {"gap": {2: 0.11, 3: 0.77, 4: 0.22}},
        {2: {"gap": 0.11}, 3: {"gap": 0.77}, 4: {"gap": 0.22}},
        {2: 0.11, 3: 0.77, 4: 0.22},
    ],
)
def test_evidence_in_several_forms(tmp_path, digits, evidence):
    selection = SimpleNamespace(evidence=evidence, n_clusters=3)
    text = report(tmp_path, *digits, selection=selection)
    part = text[text.index('<section id="count"') : text.index('<section id="run"')]
    cells = re.findall(r"<td[^>]*>(?:<strong>)?([^<]*)", part)
    assert cells == ["2", "0.110", "", "3", "0.770", "chosen", "4", "0.220", ""]
    assert part.count("<circle") == 3
    assert 'class="mark"' in part


def test_evidence_of_a_count_is_tables_and_charts(tmp_path, digits):
    data, model = digits
    number, evidence = count_clusters(data.views, random_state=0)
    evidence = json.loads(json.dumps(evidence))  # as the settings file has it
    selection = SimpleNamespace(evidence=evidence, n_clusters=number)
    text = report(tmp_path, data, model, selection=selection)
    part = text[text.index('<section id="count"') : text.index('<section id="run"')]
    top, bottom = (Page(table) for table in re.findall(r"<table.*?</table>", part, re.S))
    heads = [text for tag, text in top.texts if tag in ("button", "bdi")]
    assert heads == ["Clusters", "gaps", "stability", "scores", "votes", "Choice"]
    counts = {*evidence["candidates"], *map(int, evidence["votes"])}
    assert part.count("<tr>") == 2 + len(counts) + len(evidence["settings"])
    assert top.shown.count("chosen") == 1
    assert "standard+unit" in bottom.shown
    assert re.findall(r'aria-label="(\w+)"><path', part) == [
        "gaps", "stability", "scores", "votes", "eigenvalues"
    ]  # fmt: skip
    words = Page(part).shown
    assert "[" not in words  # no list as Python prints it
    assert "{" not in words


def test_history_with_zeros_and_without_numbers(tmp_path, digits):
    data, _ = digits
    model = ConcatSpectral(n_clusters=10, random_state=0).fit(data.views)
    model.history_ = {"data": [1.0, 0.1, 0.0], "odd": [np.nan, -1.0, 0.0], "none": []}
    text = report(tmp_path, data, model, "a")
    part = text[text.index('<section id="convergence"') :]
    assert part.count('<path class="line s') == 2  # one line, one key
    model.history_ = {"odd": [0.0, 0.0]}
    assert 'id="convergence"' not in report(tmp_path, data, model, "b")


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


def test_100_clusters_have_100_colors_for_all_eyes():
    colors = palette.cluster_colors(100)
    assert len(set(colors)) == 100
    srgb = np.array([[int(c[k : k + 2], 16) / 255 for k in (1, 3, 5)] for c in colors])
    seen = palette._as_seen(srgb)
    gaps = np.linalg.norm(seen[:, :, None] - seen[:, None], axis=3).min(axis=0)
    gaps[np.diag_indices(100)] = np.inf
    assert gaps[:12, :12].min() > 0.06  # distances in OKLab; .02 is just noticed side by side
    assert gaps.min() > 0.02
    lightness = seen[0, :, 0]
    assert lightness.min() > 0.38  # neither lost on black
    assert lightness.max() < 0.86  # nor on white
    assert len(palette.cluster_colors(1000)) == 1000


def test_numbers_for_people():
    shown = [parts.number(x) for x in (1234567, 0.5, 12.3456, 1e9, -1e-5, True, np.int64(3))]
    assert shown == ["1,234,567", "0.500", "12.3", "1.00e9", "\u22121.00e-5", "yes", "3"]
    assert parts.number(float("inf")) == "\u221e"


def test_20000_samples_stay_small(tmp_path):
    n = 20000
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 12, n)
    X = rng.standard_normal((12, 3))[labels] * 3 + rng.standard_normal((n, 3))
    i = rng.integers(0, n, 100_000)
    order = np.argsort(labels, kind="stable")
    j = np.roll(order, 7)[np.argsort(order)][i]  # nearly always of the same cluster
    W = sp.coo_array((np.ones(len(i)), (i, j)), shape=(n, n)).tocsr()
    data = SimpleNamespace(views=[X], view_names=["points"])
    text = report(tmp_path, data, fitted(labels, W + W.T))
    assert len(text) < 1.5e6
    assert "Computed on 2,000 of the 20,000 samples" in Page(text).shown


def test_a_line_over_counts_goes_from_left_to_right():
    evidence = {"candidates": [9, 2, 5], "gaps": [0.3, 0.2, 0.1], "chosen": 9}
    columns, facts = _series(evidence)
    assert list(columns["gaps"].items()) == [(2.0, 0.2), (5.0, 0.1), (9.0, 0.3)]
    assert facts == {"chosen": 9}


def test_the_map_of_large_views_is_nearly_exact(monkeypatch):
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(300, 3)) * [9, 5, 2] @ rng.normal(size=(3, 40))]
    exact = measure.draw_map(None, views, 3, "unit")
    monkeypatch.setattr(measure, "MOST_VALUES", 0)
    quick = measure.draw_map(None, views, 3, "unit")
    assert not np.array_equal(quick.axes, exact.axes)  # it went another way
    # Three axes hold everything, and a randomised decomposition finds these to rounding.
    np.testing.assert_allclose(quick.axes[:, :3], exact.axes[:, :3], atol=1e-8)
