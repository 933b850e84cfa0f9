import re
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from report.pages import EVIDENCE, Page, data_of, fitted, merged, report, tried, unpack
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils import get_tags

from polyspan import GRMSC, LRR, METHODS, ConcatKMeans, ConcatSpectral
from polyspan.datasets import make_subspaces
from polyspan.figures.files import clean
from polyspan.report import measure
from polyspan.report.words import setting

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


def test_everything_is_on_the_page(tmp_path, digits):
    data, model = digits
    consensus = merged(
        model,
        labels_=np.roll(model.labels_, 1),
        table_=[
            tried(setting={"lam1": 1.0}, agreement=0.71234),
            tried(setting={"lam1": 100.0}, agreement=None, status="failed", reason="no memory"),
        ],
        evidence_=EVIDENCE,
    )
    text = report(
        tmp_path, data, consensus, command="polyspan fit a.csv --clusters 10", title="My digits",
        notes=["Three samples were dropped."],
        labels=model.labels_,  # those shown are of one method alone
    )  # fmt: skip
    page = Page(text)
    sections = [attrs["id"] for tag, attrs in page.elements if tag == "section"]
    assert sections == [
        "features", "map", "certainty", "clusters", "views", "samples", "methods", "run",
        "affinity", "count", "members", "convergence",
    ]  # fmt: skip
    for words in (
        "My digits", "2026-01-02 03:04 UTC", "pixels", "fourier", "gradients",
        "Three samples were dropped.", "polyspan fit a.csv --clusters 10", "lam1=100.0", "0.712",
        "no memory", "0.432",
        "GRMSC(affinity='sparse', n_clusters=10, random_state=0).fit_predict(views)",
        "Certainty is the share of the members", "scikit-learn", "tol = 1e-06",
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
    assert not re.search(
        r"@import|@font-face|url\((?!#)|importScripts|fetch\(|XMLHttp|WebSocket", text
    )
    for tag, attrs in Page(text).elements:
        for name in ("src", "href", "srcset", "action", "data"):
            if name in attrs:
                assert attrs[name].startswith(("#", "data:")), (tag, attrs)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src 'none'" in policy
    assert "script-src 'sha256-" in policy  # and so no other script than ours


@pytest.mark.slow
def test_all_user_strings_are_text(tmp_path):
    n, rng = len(NASTY), np.random.default_rng(0)
    views = [rng.standard_normal((n, 4)) for _ in range(n)]
    model = ConcatSpectral(n_clusters=2, random_state=0).fit(views[:2])
    labels, shown = np.array([NASTY[i % 2] for i in range(n)]), NASTY[:12]
    tables = {
        "table_": [tried(method=x, setting={x: x}, group=x, reason=x) for x in shown],
        "evidence_": EVIDENCE | {"settings": [{x: x} for x in shown]},
    }
    consensus = merged(model, **tables)

    def checked(name, views, view_names, **more):
        data = SimpleNamespace(views=views, view_names=view_names)
        text = report(tmp_path, data, consensus, title=name, command=name, force=True, **more)
        page = Page(text)
        assert sum(tag == "script" for tag, _ in page.elements) == 2
        assert not any(tag == "img" for tag, _ in page.elements)
        assert not any(key.startswith("on") for _, attrs in page.elements for key in attrs)
        return text, page

    _, plain = checked("plain", views[:2], ["v", "w"])
    kinds = {tag for tag, _ in plain.elements} | {"ul", "li", "details", "summary", "use"}
    text, page = checked(NASTY[0], views, NASTY, sample_ids=NASTY, labels=labels, notes=shown)
    assert {tag for tag, _ in page.elements} <= kinds
    for name in shown:
        assert page.shown.count(clean(name)) >= 4  # note, tables of views, members and settings
    assert data_of(text)["ids"] == [clean(name) for name in NASTY]
    assert data_of(text)["clusters"][0]["name"] in NASTY[:2]
    assert "\x00" not in text
    for name in shown[1:4]:  # as heading and command
        _, page = checked(name, views[:1], ["v"])
        assert {tag for tag, _ in page.elements} <= kinds
        assert page.shown.count(clean(name)) >= 5  # heading, command, tables
    assert clean("a\ud800\x00b") == "a\ufffd\ufffdb"


def test_addresses_in_memory_do_not_show(tmp_path, digits):
    data, _ = digits
    odd = ConcatSpectral(n_clusters=10, random_state=np.random.RandomState(0)).fit(data.views)
    assert " at 0x" not in report(tmp_path, data, odd)
    assert setting(print).startswith("<built-in function print")
    assert setting(lambda: 0).endswith("<lambda>>")


@pytest.mark.slow
def test_certainty_says_where_it_comes_from(tmp_path, digits):
    data, model = digits
    given = np.linspace(0, 1, 150)
    text = report(tmp_path, data, model, "a", certainty=given)
    assert "or was given with the labels" in text
    assert unpack(data_of(text)["certainty"], "u2") == pytest.approx(given * 10000, abs=0.5)
    assert text.index('data-sample="0"') < text.index('data-sample="1"')
    text = report(tmp_path, data, merged(model, certainty_=given[::-1]), "b")
    assert "Certainty is the share of the members in the consensus" in text
    assert text.index('data-sample="149"') < text.index('data-sample="148"')
    text = report(tmp_path, data, model, "c")
    assert "share of a sample\u2019s affinity" in text
    own = measure.measure_affinity(model.affinity_matrix_, model.labels_, 10).own
    assert unpack(data_of(text)["certainty"], "u2") == pytest.approx(own * 10000, abs=0.5)


def test_a_consensus_is_called_one(tmp_path, digits):
    data, model = digits
    consensus = merged(
        model,
        {"members": [LRR(lam=1.0), GRMSC()], "random_state": 7},
        labels_=np.where(np.arange(150) < 10, (model.labels_ + 1) % 10, model.labels_),
        table_=[tried(weight=weight) for weight in (0.5, 0.5, 0.0)],
    )
    page = Page(report(tmp_path, data, consensus, "a", repeat="polyspan again")).shown
    for words in (
        "Consensus of 2 members: 10 clusters in 150 samples",
        "nearest to the consensus, GRMSC",
        "from polyspan import ConsensusClusterer, GRMSC, LRR",
        "labels = ConsensusClusterer(members=[LRR(lam=1.0), GRMSC()], n_clusters=10, "
        "random_state=7).fit_predict(views)",
        "Certainty is the share of the members in the consensus",
        "The command that repeats it",
        "polyspan again",
    ):
        assert words in page, words
    assert "differ from those of GRMSC alone: their normalized mutual information is 0.9" in page
    page = Page(report(tmp_path, data, consensus, "b", labels=model.labels_)).shown
    assert "Consensus of" not in page
    assert "labels = GRMSC(" in page


@pytest.mark.slow
def test_every_kind_of_method_has_a_report(tmp_path):
    """One of each: with what residuals and which affinity, of one view or several."""
    data, kinds = make_subspaces(n_samples=45, n_clusters=3, random_state=0), {}
    for cls in METHODS.values():
        views = data.views[:1] if get_tags(cls()).single_view else data.views
        model = cls().set_params(n_clusters=3, random_state=0).fit(views)
        W = getattr(model, "affinity_matrix_", None)
        kind = len(views), type(W), len(getattr(model, "history_", None) or {}) > 1
        kinds[kind] = model, views
    assert len(kinds) > 5
    for i, (model, views) in enumerate(kinds.values()):
        names = data.view_names[: len(views)]
        text = report(tmp_path, SimpleNamespace(views=views, view_names=names), model, str(i))
        assert type(model).__name__ in Page(text).shown
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
    assert 'id="members"' not in text


def test_one_cluster_of_equal_samples(tmp_path):
    model = fitted([7, 7, 7, 7], np.ones((4, 4)))
    data = SimpleNamespace(views=[np.ones((4, 2))], view_names=["one"])
    text = report(tmp_path, data, model)
    assert "nothing to compare" in text
    assert data_of(text)["clusters"] == [{"name": "7", "size": 4, "color": "#0072b2"}]


def test_notes_on_convergence_and_on_other_labels(tmp_path, digits):
    data, _ = digits
    with pytest.warns(UserWarning, match="before it converged"):
        model = GRMSC(n_clusters=10, max_iter=3, random_state=0).fit(data.views)
    labels = model.labels_.copy()
    text = report(tmp_path, data, model, "a")
    assert "stopped after max_iter=3 iterations without converging" in text
    assert "differ from those of" not in text
    labels[:20] = (labels[:20] + 1) % 10
    text = report(tmp_path, data, model, "b", labels=labels)
    same = normalized_mutual_info_score(labels, model.labels_)
    assert f"normalized mutual information is {same:.3f}" in text


def test_history_with_zeros_and_without_numbers(tmp_path, digits):
    data, _ = digits
    model = ConcatSpectral(n_clusters=10, random_state=0).fit(data.views)
    model.history_ = {"data": [1.0, 0.1, 0.0], "odd": [np.nan, -1.0, 0.0], "none": []}
    text = report(tmp_path, data, model, "a")
    part = text[text.index('<section id="convergence"') :]
    part = part[: part.index("</section>")]
    assert ">data: X \u2212 XZ \u2212 E</text>" in part
    assert "odd" not in part  # nothing that a logarithm could show
    model.history_ = {"odd": [0.0, 0.0]}
    assert 'id="convergence"' not in report(tmp_path, data, model, "b")


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
