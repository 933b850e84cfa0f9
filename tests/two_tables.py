"""Two views of six samples, and how tests of several files write and compare them."""

import numpy as np
import pandas as pd
from scipy import sparse

rng = np.random.default_rng(0)
IDS = [f"s{i}" for i in range(6)]
A, B = rng.normal(size=(6, 3)), rng.normal(size=(6, 2))
ORDER = [3, 0, 5, 1, 4, 2]


def frame(values=A, ids=IDS, name="sample"):
    table = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
    if ids is not None:
        table.insert(0, name, ids)
    return table


def write(name, text):
    with open(name, "w", encoding="utf-8") as stream:
        stream.write(text)


def assert_matched(data, matched_by="id"):
    assert data.matched_by == matched_by
    np.testing.assert_allclose(dense(data.views[0]), A, rtol=0, atol=1e-12)
    np.testing.assert_allclose(dense(data.views[1]), B, rtol=0, atol=1e-12)


def dense(view):
    return view.toarray() if sparse.issparse(view) else view
