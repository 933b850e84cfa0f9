import os
import re
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from report.pages import DATE, report
from sklearn.exceptions import NotFittedError

from polyspan import ConcatSpectral
from polyspan.datasets import make_subspaces
from polyspan.report import write


@pytest.mark.slow
def test_same_input_same_file(tmp_path, digits, monkeypatch):
    first = report(tmp_path, *digits, "a.html")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(DATE.timestamp())))
    assert report(tmp_path, *digits, "c.html", date=None) == first
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    now = report(tmp_path, *digits, "d.html", date=None)
    shown = re.search(r'class="date">([^<]*)<', now)[1]
    age = datetime.now(UTC) - datetime.strptime(shown, "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC)
    assert -60 <= age.total_seconds() < 3600
    assert now.replace(shown, "2026-01-02 03:04 UTC") == first


def test_nothing_is_overwritten_or_left_behind(tmp_path, digits, monkeypatch):
    file = tmp_path / "report.html"
    file.write_text("mine")
    with pytest.raises(FileExistsError, match="exists: pass force=True"):
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
    with pytest.raises(FileExistsError, match="exists: pass force=True"):
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
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*: create it first"):
        report(tmp_path / "nowhere", data, model)
    with pytest.raises(IsADirectoryError, match="is a folder: name a file in it"):
        report(tmp_path, data, model, "")
    other = ConcatSpectral(3).fit(make_subspaces(30, 3, random_state=0).views)
    with pytest.raises(ValueError, match=r"affinity_matrix_ has shape \(30, 30\), but there are"):
        report(tmp_path, data, model, estimator=other, labels=model.labels_)
    with pytest.raises(ValueError, match=r"labels has shape \(30,\), but there are 150 sample_ids"):
        report(tmp_path, data, model, estimator=other)
    with pytest.raises(NotFittedError, match="This ConcatSpectral instance is not fitted yet"):
        report(tmp_path, data, model, estimator=ConcatSpectral(3))


def test_lists_frames_and_sparse_views_are_taken(tmp_path):
    data = make_subspaces(n_samples=30, n_clusters=3, random_state=0)
    model = ConcatSpectral(n_clusters=3, random_state=0).fit(data.views)
    kinds = [data.views[0].tolist(), pd.DataFrame(data.views[1])]
    lists = SimpleNamespace(views=kinds, view_names=data.view_names)
    sparse = SimpleNamespace(views=[sp.csr_matrix(X) for X in kinds], view_names=data.view_names)
    a = report(tmp_path, lists, model, "a", labels=model.labels_.tolist())
    b = report(tmp_path, sparse, model, "b", sample_ids=pd.Index([f"s{i}" for i in range(30)]))
    assert re.sub(r"dense(.)float64", r"sparse\1float64", a) == b
