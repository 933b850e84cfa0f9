import numpy as np

from polyspan.report import words


def test_numbers_for_people():
    shown = [words.number(x) for x in (1234567, 0.5, 12.3456, 1e9, -1e-5, np.int64(3))]
    assert shown == ["1,234,567", "0.500", "12.3", "1.00e9", "\u22121.00e-5", "3"]
    assert words.number(float("inf")) == "\u221e"
