"""The command audit."""

import pytest

from polyspan import METHODS
from polyspan.audit import OrderEffect
from polyspan.cli import audit
from polyspan.cli.main import main
from polyspan.datasets import load_digits_views, make_subspaces


@pytest.fixture(autouse=True)
def few_samples(monkeypatch):
    """The built-in data set, with few of its samples."""
    small = load_digits_views(n_samples=80)
    monkeypatch.setattr("polyspan.datasets.load_dataset", lambda name: small)


def test_one_method(capsys, tmp_path):
    picture = tmp_path / "order.svg"
    asked = ["--method", "tsvdmsc", "--set", "sample_order=file", "--orders", "3"]
    assert main(["audit", "--dataset", "digits", *asked, "--plot", str(picture)]) == 0
    first, header, row, _, verdict, drew = capsys.readouterr().out.splitlines()
    assert first.startswith("digits: 80 samples, 10 classes; NMI")
    assert header.split()[:2] == ["method", "sorted"]
    assert row.startswith("TSVDMSC ")
    assert verdict.startswith("TSVDMSC sees the order of the samples: NMI ")
    assert drew == f"drew {picture}"
    drawn = picture.read_text("utf-8")
    assert ">digits, 80 samples, in three orders<" in drawn  # text stays text
    assert ">TSVDMSC<" in drawn


def test_the_same_seed_prints_the_same(capsys):
    asked = ["audit", "--dataset", "digits", "--method", "concatkmeans", "--orders", "2"]
    found = []
    for seed in ("0", "0", "1"):
        assert main([*asked, "--seed", seed]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1] != found[2]


def test_all_methods_without_method(capsys, monkeypatch):
    def measured(model, views, labels, n_orders, seed):
        if type(model).__name__ == "SNF":
            raise ValueError("too few samples")
        sees = type(model).__name__ == "GMC"
        scores = {"sorted by class": [0.9, 0.9], "as given": [0.5, 0.5], "shuffled": [0.5, 0.5]}
        return OrderEffect("", scores if sees else {key: [0.5, 0.5] for key in scores})

    monkeypatch.setattr("polyspan.audit.order_effect", measured)
    assert main(["audit", "--dataset", "digits"]) == 1  # one was not run
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(METHODS) + 3
    assert any(line.startswith("LRR, best view ") for line in lines)
    assert any(line.split() == ["SNF", "not", "run:", "too", "few", "samples"] for line in lines)
    assert lines[-2].startswith("GMC sees the order of the samples: NMI 0.900 sorted by class, ")
    blind, ran = len(METHODS) - 2, len(METHODS) - 1
    assert lines[-1] == f"{blind} of {ran} methods do not gain from the order of the samples."


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--method", "gmx"], "no method is called 'gmx', did you mean 'gmc'?"),
        (["--set", "k=3"], "--set needs --method"),
        (["--method", "gmc", "--set", "k=3"], "no parameter of GMC is called 'k'"),
        (["--method", "gmc", "--set", "n_neighbors=0"], "n_neighbors must be"),
        (["--method", "gmc", "--set", "n_clusters=3"], "use --clusters instead"),
        (["--method", "gmc", "--plot", "order.bmp"], "must end in .png, .svg or .pdf"),
    ],
)
def test_bad_requests_are_told_before_any_work(capsys, monkeypatch, arguments, told):
    def refuse(*args):
        raise AssertionError("work was begun")

    monkeypatch.setattr("polyspan.audit.order_effect", refuse)
    assert main(["audit", "--dataset", "digits", *arguments]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--orders", "1"], "--orders must be 2 or more, got 1"),
        (["--seed", "-1"], "--seed must be from 0 to 2**32 - 1, got -1"),
    ],
)
def test_bad_numbers(capsys, arguments, told):
    assert main(["audit", "--dataset", "digits", *arguments]) == 2
    assert told in capsys.readouterr().err


def test_single_view_data_need_no_choice_of_a_view():
    one = make_subspaces(40, 2, n_features=[5], random_state=0)
    assert list(audit.build("lrr", {}, one)) == ["LRR"]
