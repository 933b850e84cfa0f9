import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import normalized_mutual_info_score

from polyspan import MeanGraph, load_model, save_model
from polyspan.datasets import make_subspaces
from polyspan.explain import markers


@pytest.fixture(scope="module")
def fitted():
    data = make_subspaces(45, 3, n_views=2, n_features=[12, 15], random_state=0)
    ids = [f"p{i}" for i in range(45)]
    views = {
        name: pd.DataFrame(X, index=ids, columns=[f"{name}{j}" for j in range(X.shape[1])])
        for name, X in zip(("rna", "protein"), data.views, strict=True)
    }
    return views, MeanGraph(3, random_state=0).fit(views), data.labels


def test_explain_tells_what_the_functions_tell(fitted):
    views, model, classes = fitted
    ids = list(views["rna"].index)
    known = pd.DataFrame({"class": classes, "t": np.arange(45.0), "e": [0, 1, 1] * 15}, index=ids)
    found = model.explain(known=known[::-1], survival=("t", "e"))
    plain = markers(views, model.labels_)
    assert found.markers.feature.tolist() == plain.feature.tolist()
    assert np.array_equal(found.markers.p, plain.p)
    assert [one.column for one in found.known] == ["class"]
    assert found.known[0].n_samples == 45
    # By id, although the rows are turned round.
    same = normalized_mutual_info_score(classes, model.labels_)
    assert found.known[0].nmi == pytest.approx(same, abs=1e-9)
    frames = found.frames()
    assert list(frames) == ["markers", "known", "survival"]
    assert frames["survival"]["alive"].between(0, 1).all()
    honest = model.explain(held_out_view=True).markers
    again = markers(views, model.labels_, held_out_view=True, estimator=model)
    assert np.array_equal(honest.p, again.p)
    assert not np.array_equal(np.sort(honest.p), np.sort(plain.p))


@pytest.mark.slow
def test_report_needs_no_views_after_a_fit(fitted, tmp_path):
    views, model, classes = fitted
    path = model.report(tmp_path / "r.html", known={"class": classes}, figures=tmp_path / "drawn")
    text = path.read_text("utf-8")
    for words in ("rna", "protein3", "p44", "What separates the annotated classes"):
        assert words in text, words
    assert (tmp_path / "drawn" / "markers.csv").exists()
    whole = np.hstack([view.to_numpy() for view in views.values()])
    cut = MeanGraph(3, views=[slice(0, 12), slice(12, 27)], random_state=0).fit(whole)
    assert "column15" in cut.report(tmp_path / "cut.html").read_text("utf-8")
    assert set(cut.explain().markers.view) == {"0", "1"}


def test_copies_and_files_do_not_carry_the_data(fitted, tmp_path):
    views, model, _ = fitted
    for copied in (
        pickle.loads(pickle.dumps(model)),
        load_model(save_model(model, tmp_path / "model.npz")),
    ):
        with pytest.raises(ValueError, match="report: this model was loaded or copied"):
            copied.report(tmp_path / "r.html")
        assert copied.report(tmp_path / "r.html", views, force=True).exists()
    with pytest.raises(ValueError, match="survival: 'days' is none of the known columns"):
        model.explain(known={"t": np.arange(45)}, survival=("days", "t"))
