"""`polyspan fit` with annotations, survival, figures, and a published data set."""

import csv
import json
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from polyspan.cli.main import main
from polyspan.datasets import make_subspaces


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """Two views with ids, and what is known of the samples, in another order and without one."""
    monkeypatch.chdir(tmp_path)
    data = make_subspaces(45, 3, n_views=2, n_features=[12, 15], random_state=0)
    ids = [f"p{i}" for i in range(45)]
    for name, view in zip(("rna", "protein"), data.views, strict=True):
        columns = [f"{name}{j}" for j in range(view.shape[1])]
        pd.DataFrame(view, index=pd.Index(ids, name="id"), columns=columns).to_csv(f"{name}.csv")
    rng = np.random.default_rng(0)
    known = pd.DataFrame(
        {
            "diet": np.array(["fish", "corn", "oil"])[data.labels],
            "age": rng.integers(20, 80, 45),
            "days": rng.integers(1, 900, 45),
            "state": np.where(rng.random(45) < 0.7, "dead", "alive"),
        },
        index=pd.Index(ids, name="patient"),
    )
    known.drop("p3").sample(frac=1, random_state=0).to_csv("clinical.csv")
    return data


RUN = ["fit", "rna.csv", "protein.csv", "--clusters", "3", "--method", "meangraph"]


def labels():
    with open("labels.csv") as stream:
        return [row["cluster"] for row in csv.DictReader(stream)]


@pytest.mark.slow
def test_annotations_reach_the_report_and_not_the_clusters(tables, capsys, tmp_path):
    assert main(RUN) == 0
    plain = labels()
    more = ["--annotate", "clinical.csv", "--survival", "days,state", "--figures", "drawn"]
    assert main([*RUN, "--force", "--report", "r.html", *more]) == 0
    told = capsys.readouterr()
    assert "clinical.csv lacks 1 of 45 samples (p3)" in told.err
    assert "figures (.svg, .png, .pdf) and tables (.csv)" in told.out
    assert labels() == plain
    page = (tmp_path / "r.html").read_text()
    for words in ("diet", "log-rank", "Kaplan-Meier", "never used for the clustering", "rna11"):
        assert words in page, words
    with open("drawn/known.csv") as stream:
        rows = {row["column"]: row for row in csv.DictReader(stream)}
    assert set(rows) == {"diet", "age"}
    assert rows["diet"]["n_samples"] == "44"
    with open("drawn/samples.csv") as stream:
        assert [row["Cluster"] for row in csv.DictReader(stream)] == plain
    with open("drawn/markers.csv") as stream:
        assert len(list(csv.DictReader(stream))) == (12 + 15) * 3
    drawn = sorted((tmp_path / "drawn").glob("*.svg"))
    assert {"features", "survival", "map", "map-1", "map-2"} <= {one.stem for one in drawn}
    for one in drawn:
        assert ET.parse(one).getroot().tag.endswith("svg")
        assert imread(one.with_suffix(".png")).shape[0] > 200


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--annotate", "no.csv"], "no.csv"),
        (["--annotate", "rna.csv", "--survival", "days,state"], "column for --survival"),
        (["--annotate", "clinical.csv", "--survival", "days"], "--survival takes two columns"),
        (["--annotate", "clinical.csv", "--survival", "days,diet"], "must be 0 and 1, or dead"),
        (["--survival", "days,state"], "--survival names columns of --annotate"),
        (["--figures", "nowhere/drawn"], "there is no folder nowhere"),
        (["--figures", "full"], "full for the figures is not empty"),
    ],
)
def test_what_is_wrong_is_said_before_any_work(tables, capsys, tmp_path, more, message):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    assert main([*RUN, "--report", "r.html", *more]) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_what_is_known_needs_a_report(tables, capsys):
    with pytest.raises(SystemExit, match="2"):
        main([*RUN, "--annotate", "clinical.csv"])
    assert "--annotate is shown in the report" in capsys.readouterr().err


def test_a_data_set_by_its_name(tmp_path, monkeypatch, capsys, omics_dir):
    monkeypatch.chdir(tmp_path)
    run = ["fit", "--dataset", "gbm", "--method", "meangraph", "--clusters", "4"]
    assert main([*run, "--survival", "time,status", "--report", "gbm.html"]) == 0
    page = (tmp_path / "gbm.html").read_text()
    assert "log-rank test of all clusters" in page
    assert "TCGA-02-0001" in page
    capsys.readouterr()
    assert main(["fit", "--repeat", "labels.json"]) == 0
    assert "all labels are the same as before" in capsys.readouterr().out
    assert json.loads((tmp_path / "labels.json").read_text())["asked"]["dataset"] == "gbm"
    with pytest.raises(SystemExit, match="2"):
        main(["fit", "a.csv", "--dataset", "gbm"])
    assert "--dataset needs no files" in capsys.readouterr().err
    assert main(["fit", "--dataset", "gbn", "--out", "other.csv"]) == 2
    assert "gbn" in capsys.readouterr().err
