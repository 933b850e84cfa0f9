import dataclasses

import numpy as np
import pytest

from polyspan.datasets import Dataset
from polyspan.io.dataset import contiguous_labels


def test_repr_is_one_short_line_however_large_the_views():
    views = [np.zeros((500, 2000)), np.zeros((500, 3))]
    data = Dataset("ngs", views, np.arange(500) % 5, ["words", "shape"], 5)
    assert repr(data) == "Dataset('ngs': 500 samples, 2 views (words 2000, shape 3), 5 clusters)"


def test_repr_without_labels_and_with_one_view():
    data = Dataset("mine", [np.zeros((4, 2))], np.empty(0, dtype=np.int64), ["mine"], 0)
    assert repr(data) == "Dataset('mine': 4 samples, 1 view (mine 2), no labels)"


def test_dataset_is_frozen():
    data = Dataset("mine", [np.zeros((4, 2))], np.zeros(4, dtype=np.int64), ["mine"], 1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign"):
        data.name = "yours"


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ([[3], [1], [3]], [1, 0, 1]),
        (np.array([10, 2, 200], dtype=np.uint8), [1, 0, 2]),
        (["b", "a", "b"], [1, 0, 1]),
    ],
)
def test_contiguous_labels(marks, expected):
    labels = contiguous_labels(marks)
    assert labels.tolist() == expected
    assert labels.dtype == np.int64
