"""Reports for the tests, and what is read from them."""

import base64
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import numpy as np

from polyspan import ConcatSpectral, ConsensusClusterer
from polyspan.report import write_report

DATE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)

EVIDENCE = {
    "candidates": [10, 9, 11],
    "gaps": [0.4321, 0.1, 0.2],
    "stability": [0.9, 0.8, 0.7],
    "scores": [1.0, 0.25, 0.5],
    "votes": {"8": 1, "9": 0, "10": 3, "11": 0},
    "eigenvalues": np.linspace(1, 0, 30).tolist(),
    "settings": [{"scale": "unit", "lam1": 1.0}],
    "chosen": 10,
}


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


def tried(**changes):
    """A row of the table of a consensus."""
    row = {
        "method": "GRMSC", "setting": {}, "family": "subspace", "group": "subspace, unit",
        "agreement": 0.5, "modularity": 0.4, "score": 0.7, "nearness": 0.5,
        "weight": 0.5, "seconds": 1.5, "status": "ok", "reason": "",
    }  # fmt: skip
    assert set(changes) <= set(row)
    return row | changes


def merged(model, params=None, **changes):
    """A consensus as it is after a fit, without the fit."""
    n, c = len(model.labels_), len(np.unique(model.labels_))
    found = {
        "labels_": model.labels_,
        "certainty_": np.linspace(0, 1, n),
        "best_estimator_": model,
        "table_": [tried()],
        "n_clusters_": c,
        "evidence_": {},
    }
    assert set(changes) <= set(found)
    consensus = ConsensusClusterer(**({"n_clusters": c} | (params or {})))
    for name, value in (found | changes).items():
        setattr(consensus, name, value)
    return consensus


def report(tmp_path, data, model, name="report.html", **more):
    given = {
        "views": data.views,
        "view_names": data.view_names,
        "sample_ids": [f"s{i}" for i in range(len(model.labels_))],
        "estimator": model,
        "date": DATE,
    }
    return write_report(tmp_path / name, **(given | more)).read_text("utf-8")
