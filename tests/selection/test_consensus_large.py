"""Selection and count with so many samples that exact GRMSC is out of reach."""

import json
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp

from polyspan import AnchorGRMSC, MeanGraph
from polyspan.cli.fit import fit_files, repeat
from polyspan.cli.request import Outputs, Request
from polyspan.datasets import make_subspaces
from polyspan.inputs.choice import choose_scaling, scalings_for
from polyspan.inputs.views import Views, check_views
from polyspan.metrics import clustering_scores
from polyspan.runtime.cache import sharing
from polyspan.selection import ConsensusClusterer, count_clusters
from polyspan.selection.pool import anchor_grid, default_members, exactly


@pytest.fixture(scope="module")
def planted():
    return make_subspaces(360, 4, n_features=[40, 50], noise=0.3, random_state=0)


@pytest.fixture
def few_anchors(monkeypatch):
    """The grid has 40 anchors."""
    monkeypatch.setattr("polyspan.selection.pool.FEWEST_ANCHORS", 40)


@pytest.fixture
def few_are_many(monkeypatch, few_anchors):
    """More than 200 samples count as many, and 40 anchors are enough for the count as well."""
    monkeypatch.setattr("polyspan.selection.pool.EXACT_UP_TO", 200)
    monkeypatch.setattr("polyspan.selection.count.ANCHORS", 40)


def nmi(data, labels):
    return clustering_scores(data.labels, labels)["nmi"]


def settings(found, method):
    return [row["setting"] for row in found.table_ if row["method"] == method]


@pytest.mark.slow
def test_many_samples_are_clustered_by_cheap_members(planted, few_are_many):
    found = ConsensusClusterer(4, random_state=0).fit(planted.views)
    assert nmi(planted, found.labels_) > 0.98
    assert {row["status"] for row in found.table_} == {"ok"}
    counts = Counter(row["method"] for row in found.table_)
    assert counts == {
        "ConcatKMeans": 2, "MeanGraph": 4, "ConcatSpectral": 2, "FastMICE": 2, "LMVSC": 2,
        "AnchorGRMSC": 4,
    }  # fmt: skip
    # Two scalings and two numbers of neighbors.
    graphs = settings(found, "MeanGraph")
    assert [one["n_neighbors"] for one in graphs] == [10, 10, 20, 20]
    assert len({str(one.get("scale")) for one in graphs}) == 2
    assert len({str(one.get("scale")) for one in settings(found, "AnchorGRMSC")}) == 2


@pytest.mark.slow
def test_many_samples_have_two_scalings_and_few_have_all(monkeypatch):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 80)
    X = rng.normal(size=(240, 8)) + 4 * rng.normal(size=(3, 8))[labels]
    views = [X * np.geomspace(1, 20, 8), X[:, ::-1]]
    suit = scalings_for(check_views(views))
    assert len(suit) > 2

    def scalings():
        model = ConsensusClusterer(3, members=[MeanGraph()], random_state=0)
        checked = check_views(views)
        return model._scalings(checked, exactly(checked, None)).voting

    assert scalings() == suit
    monkeypatch.setattr("polyspan.selection.pool.EXACT_UP_TO", 200)
    best = tuple(choose_scaling(X, name).allowed[0] for X, name in check_views(views))
    assert scalings() == [best, next(one for one in suit if one != best)]


@pytest.mark.slow
def test_the_pool_changes_at_4000_samples():
    data = make_subspaces(4001, 3, n_features=5, random_state=0)

    def methods(views):
        return {type(one).__name__ for one in default_members(check_views(views), 3)}

    cheap = {"ConcatKMeans", "ConcatSpectral", "MeanGraph", "FastMICE"}
    assert methods([X[:4000] for X in data.views]) == cheap | {"NEMO", "CGD", "SNF", "GRMSC"}
    assert methods(data.views) == cheap | {"LMVSC", "AnchorGRMSC"}


@pytest.mark.slow
def test_more_than_4000_samples(few_anchors):
    data = make_subspaces(4100, 3, n_features=30, noise=0.2, random_state=0)
    found = ConsensusClusterer(3, random_state=0).fit([X.astype(np.float32) for X in data.views])
    assert nmi(data, found.labels_) > 0.99
    assert {row["status"] for row in found.table_} == {"ok"}
    assert {row["reason"] for row in found.table_} == {""}  # all converged, in float32
    assert {"LMVSC", "MeanGraph", "AnchorGRMSC"} < {row["method"] for row in found.table_}


@pytest.mark.parametrize(
    ("n", "clusters", "anchors"),
    [(5_000, 10, 100), (10**6, 10, 100), (10_000, 100, 500), (10**6, 100, 200), (40_000, 100, 250)],
)
def test_anchors_suffice_and_stay_affordable(n, clusters, anchors):
    grid = anchor_grid(n, clusters)
    assert [params["n_anchors"] for params in grid] == [anchors] * 2
    assert [params["n_kept"] for params in grid] == [3, 10]


def test_a_gpu_takes_more_samples(monkeypatch):
    def views(n):
        return Views([np.zeros((n, 1))], ["0"])

    monkeypatch.setattr(
        "polyspan.selection.pool._fits", lambda *_: True
    )  # asks the GPU how much is free
    assert exactly(views(4000), None)
    assert not exactly(views(4001), None)
    assert not exactly(views(4001), "cpu")
    assert exactly(views(10_000), "cuda:0")
    assert not exactly(views(10_001), "cuda")
    assert not exactly(Views([sp.csr_array((4001, 1))], ["0"]), None)


def test_too_little_memory_for_exact_solutions_means_anchors(planted, monkeypatch):
    views = check_views(planted.views)
    assert exactly(views, None)
    monkeypatch.setattr("polyspan.base.estimator.available_memory", lambda: 2**20)
    assert not exactly(views, None)


@pytest.mark.slow
def test_more_clusters_than_samples_that_are_looked_at(planted, few_are_many, monkeypatch):
    monkeypatch.setattr("polyspan.selection.count.COUNTED", 100)
    found, evidence = count_clusters(planted.views, random_state=0, max_clusters=150)
    assert 2 <= found <= 100
    assert len(evidence["eigenvalues"]) == 100


@pytest.mark.slow
def test_counting_leaves_out_a_scaling_that_does_not_fit(planted, few_are_many, monkeypatch):
    views = [sp.csr_array(X) for X in planted.views]
    monkeypatch.setattr(
        "polyspan.inputs.scaling.available_memory", lambda: 2**16
    )  # to make them dense
    found, evidence = count_clusters(views, random_state=0)
    assert found == 4
    assert {params["scale"] for params in evidence["settings"]} == {"unit"}


@pytest.mark.slow
def test_sparse_views(planted, few_are_many):
    views = [sp.csr_array(X.astype(np.float32)) for X in planted.views]
    found = ConsensusClusterer(4, random_state=0).fit(views)
    assert {row["status"] for row in found.table_} == {"ok"}
    assert nmi(planted, found.labels_) > 0.98
    assert count_clusters(views, random_state=0)[0] == 4


def test_samples_may_lack_a_view(planted, few_are_many):
    views = [X.copy() for X in planted.views]
    views[1][3] = np.nan
    found = ConsensusClusterer(4, random_state=0).fit(views)
    assert {row["method"] for row in found.table_} == {"MeanGraph"}
    assert nmi(planted, found.labels_) > 0.98


@pytest.mark.slow
def test_failures_name_the_method_that_ran(planted, few_are_many, monkeypatch):
    def broken(self, X, y=None):
        raise ArithmeticError("no luck")

    monkeypatch.setattr("polyspan.AnchorGRMSC.fit", broken)
    with pytest.warns(UserWarning, match=r"All \d members of AnchorGRMSC failed .*no luck"):
        ConsensusClusterer(4, random_state=0).fit(planted.views)


@pytest.mark.slow
def test_count_on_anchors(planted, few_are_many):
    number, evidence = count_clusters(planted.views, random_state=0)
    assert number == evidence["chosen"] == 4
    assert len(evidence["eigenvalues"]) == 40 // 5 + 1  # anchors are five for a cluster
    assert evidence["eigenvalues"][0] == pytest.approx(1.0, abs=1e-12)
    assert [p["n_anchors"] for p in evidence["settings"]] == [40] * 4
    json.dumps(evidence)
    _, wide = count_clusters(planted.views, random_state=0, max_clusters=50)
    assert [p["n_anchors"] for p in wide["settings"]] == [100] * 4
    assert len(wide["eigenvalues"]) == 51


@pytest.mark.slow
def test_count_looks_at_a_part_of_very_many(planted, few_are_many, monkeypatch):
    monkeypatch.setattr("polyspan.selection.count.COUNTED", 250)
    seen = []
    plain = AnchorGRMSC.fit

    def fit(self, X, y=None):
        seen.append(X.n_samples)
        return plain(self, X)

    monkeypatch.setattr(AnchorGRMSC, "fit", fit)
    number, evidence = count_clusters(planted.views, random_state=0)
    assert number == 4
    assert seen == [250] * 4
    assert count_clusters(planted.views, random_state=0)[1] == evidence


@pytest.mark.slow
def test_eigenvalues_are_those_of_the_affinity_of_samples(planted, few_are_many):
    """Samples linked by the anchors that they share: normalized, it has the same spectrum."""
    _, evidence = count_clusters(planted.views, random_state=0)
    number = int(np.random.RandomState(0).randint(2**31))
    spectra = []
    for params in evidence["settings"]:
        model = AnchorGRMSC(2, **params, random_state=number).fit(planted.views)
        B = np.abs(model.representation_.T).astype(float)
        B[B < np.sort(B, axis=1)[:, [-model.n_kept]]] = 0
        B = B[:, B.sum(axis=0) > 0]  # anchors that nobody is linked to
        W = B / B.sum(axis=0) @ B.T
        root = np.sqrt(W.sum(axis=1))
        spectra.append(np.linalg.eigvalsh(W / np.outer(root, root))[::-1][:9])
    # Singular vectors of one matrix against eigenvalues of another.
    np.testing.assert_allclose(evidence["eigenvalues"], np.mean(spectra, axis=0), atol=1e-10)


@pytest.mark.slow
def test_auto_and_the_grid_share_solutions(planted, few_are_many, monkeypatch):
    solved = []
    plain = AnchorGRMSC.represent

    def represent(self, workers, views):
        solved.append((self.n_anchors, self.scale, self.lam1))
        return plain(self, workers, views)

    monkeypatch.setattr(AnchorGRMSC, "represent", represent)
    found = ConsensusClusterer(random_state=0).fit(planted.views)
    assert found.n_clusters_ == found.evidence_["chosen"] == 4
    assert len(solved) == len(set(solved)) == 4  # for the count; the grid needs no other
    assert len(settings(found, "AnchorGRMSC")) == 4
    assert nmi(planted, found.labels_) > 0.98
    # Every solve anew, none for a count.
    again = ConsensusClusterer(4, random_state=0).fit(planted.views)
    np.testing.assert_array_equal(found.labels_, again.labels_)
    np.testing.assert_array_equal(found.certainty_, again.certainty_)
    assert [row["agreement"] for row in found.table_] == [row["agreement"] for row in again.table_]


@pytest.mark.slow
def test_a_shared_solution_is_the_same(planted):
    views = [X[:300] for X in planted.views]
    kept = [
        AnchorGRMSC(4, n_anchors=40, n_kept=k, n_init=2, random_state=3) for k in (2, 6)
    ]  # fmt: skip
    alone = [model.fit(views) for model in kept]
    with sharing() as store:
        AnchorGRMSC(2, n_anchors=40, n_init=1, random_state=3).fit(views)  # another number
        before = len(store.parts)
        for one in alone:
            other = AnchorGRMSC(**one.get_params()).fit(views)
            np.testing.assert_array_equal(other.labels_, one.labels_)
            np.testing.assert_array_equal(other._centers, one._centers)
            np.testing.assert_array_equal(other.representation_, one.representation_)
            assert other.history_ == one.history_
            assert other.recall_ == one.recall_
            new = [X[:9] for X in views]
            np.testing.assert_array_equal(other.predict(new), one.predict(new))
        assert len(store.parts) == before == 1
        for changed in ({"n_anchors": 30}, {"random_state": 4}, {"lam1": 2.0}):
            AnchorGRMSC(**(alone[0].get_params() | changed)).fit(views)
        assert len(store.parts) == 4
        AnchorGRMSC(4, random_state=np.random.RandomState(0)).fit(views)  # not to be repeated
        AnchorGRMSC(4, anchors=np.arange(20), random_state=0).fit(views)
        assert len(store.parts) == 4


@pytest.mark.slow
def test_from_files_to_a_report(planted, few_are_many, tmp_path, capsys):
    files = [tmp_path / "a.npy", tmp_path / "b.csv"]
    np.save(files[0], planted.views[0])
    np.savetxt(files[1], planted.views[1], delimiter=",")
    report = tmp_path / "report.html"
    found = fit_files(Request(files, 4), Outputs(tmp_path / "labels.csv", report))
    assert nmi(planted, found.labels) > 0.98
    page = report.read_text("utf-8")
    assert "AnchorGRMSC" in page
    assert "LMVSC" in page
    repeat(tmp_path / "labels.json", Outputs(tmp_path / "again.csv"))
    assert "all labels are the same as before" in capsys.readouterr().out
