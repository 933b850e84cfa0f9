import base64
import io
import re
from types import SimpleNamespace

import numpy as np
from PIL import Image
from report.pages import fitted, report

from polyspan.report import charts


def test_the_picture_is_the_affinity(tmp_path, digits):
    levels = np.arange(256).reshape(16, 16)
    code = charts.png(levels).removeprefix("data:image/png;base64,")
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
