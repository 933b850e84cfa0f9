from fractions import Fraction

import numpy as np
import pytest
from cases import case

from polyspan import LRR
from polyspan.inputs.params import (
    check_params,
    clusterer,
    flag,
    integer,
    one_of,
    positive,
    real,
    seed,
)

LARGE = 10**400  # no float holds it

RIGHT = [
    (one_of("a", None), ["a", None]),
    (real(0), [0, 0.0, 1, np.float32(2), np.int8(3), Fraction(1, 3)]),
    (positive, [1e-50, 5]),
    (real(0, 1), [0, 1, 0.5]),
    (real(0, none="0.1"), [None, 0, 2.5]),
    (real(0, none="1/n"), [None, 2.5]),
    (integer(1), [1, np.int64(5), 10**30]),
    (integer(1, none="all"), [None, 1]),
    (flag, [True, False, np.True_]),
    (seed, [None, 0, 2**32 - 1, np.int32(3), np.random.RandomState(0)]),
    (clusterer, [None, LRR()]),
]
WRONG = [
    (one_of("a", None), "^'a' or None$", ["b", 0, ["a"], np.array(["a", "b"]), b"a", True]),
    (real(0), "^a finite number >= 0$", [-1, "1", None, True, np.nan, np.inf, 1j, [1], LARGE]),
    (positive, r"^a finite number >= 1e-50 and <= 1e\+50$", [0, -1.0, 1e-300, 1e51, np.True_]),
    (real(0, 1), "^a finite number >= 0 and <= 1$", [1.5, -0.1]),
    (real(0, none="0.1"), "^a finite number >= 0, or None for 0.1$", [-1, "1"]),
    (real(0, none="1/n"), "^a finite number >= 0, or None for 1/n$", [-1, "auto", np.nan]),
    (integer(1), "^a whole number >= 1$", [0, 1.0, "1", None, True, [1], np.nan]),
    (integer(1, none="all"), "^a whole number >= 1, or None for all$", [0, 2.5]),
    (flag, "^True or False$", [0, 1, None, "yes", [True]]),
    (seed, "^None, a whole number from 0 to", [-1, 2**32, 1.5, "0", True, [1]]),
    (clusterer, "^a clusterer such as LRR", ["lrr", LRR, 3, object()]),
]


@pytest.mark.parametrize(("check", "values"), RIGHT)
def test_right(check, values):
    for value in values:
        with case(f"{value!r:.80}"):
            assert check(value) is None


@pytest.mark.parametrize(("check", "words", "values"), WRONG)
def test_wrong(check, words, values):
    for value in values:
        match = "^M: p must be " + words.strip("^$") + ".*; got "
        with case(f"{value!r:.80}"), pytest.raises(ValueError, match=match):
            check_params("M", {"p": value}, {"p": check})


def test_the_first_wrong_parameter_is_named():
    checks = {"a": integer(1), "b": real(0), "c": flag}
    with pytest.raises(ValueError, match=r"^M: b must be a finite number >= 0; got -2\.$"):
        check_params("M", {"a": 1, "b": -2, "c": 3}, checks)
    check_params("M", {"a": 1, "b": 2, "c": True}, checks)


def test_an_array_is_shown_in_one_line():
    match = r"^A: x must be a whole number >= 1; got array\(\[\["
    with pytest.raises(ValueError, match=match) as caught:
        check_params("A", {"x": np.eye(2)}, {"x": integer(1)})
    assert "\n" not in str(caught.value)
