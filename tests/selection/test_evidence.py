"""What is said of a part of the samples that was looked at, and what it can miss."""

from math import comb

import numpy as np
import pytest

from polyspan.datasets import make_subspaces
from polyspan.inputs.views import check_views
from polyspan.selection import count_clusters
from polyspan.selection.evidence import sure_size
from polyspan.selection.structure import find_structure


@pytest.mark.parametrize(("n", "drawn"), [(300, 100), (1000, 50), (40, 39)])
def test_a_group_of_that_size_is_seen_and_of_one_less_is_not_sure(n, drawn):
    def fewer_than_11(size):  # by counting the draws
        ways = [comb(size, k) * comb(n - size, drawn - k) for k in range(11)]
        return sum(ways) / comb(n, drawn)

    size = sure_size(n, drawn)
    assert fewer_than_11(size) <= 0.01
    assert size == 11 or fewer_than_11(size - 1) > 0.01


def test_structure_says_what_its_part_can_miss(monkeypatch):
    views = check_views(make_subspaces(90, 3, noise=0.1).views)
    assert "looked at" not in find_structure(views, ["unit"] * 2, 0)["sentence"]
    monkeypatch.setattr("polyspan.selection.structure.SAMPLES", 60)
    told = find_structure(views, ["unit"] * 2, 0)["sentence"]
    assert told.endswith(f"; 60 of 90 samples were looked at: a group of fewer than "
                         f"{sure_size(90, 60)} may be missed")  # fmt: skip


@pytest.mark.slow
def test_the_count_says_what_its_part_can_miss(monkeypatch):
    views = make_subspaces(90, 3, noise=0.1).views
    assert count_clusters(views, random_state=0)[1]["drawn"] == ""
    monkeypatch.setattr("polyspan.selection.count.SEEN", 60)
    number, evidence = count_clusters(views, random_state=0)
    assert number == 3
    assert evidence["drawn"].startswith("60 of 90 samples were looked at")


def test_the_terminal_says_it(tmp_path, monkeypatch, capsys):
    from polyspan.cli.main import main

    monkeypatch.setattr("polyspan.selection.count.SEEN", 60)
    files = []
    for k, X in enumerate(make_subspaces(90, 3, noise=0.1).views):
        files.append(str(tmp_path / f"{k}.npy"))
        np.save(files[-1], X)
    main(["fit", *files, "--out", str(tmp_path / "labels.csv"), "--budget", "0.1"])
    told = " ".join(capsys.readouterr().out.split())
    assert "60 of 90 samples were looked at: a group of fewer than" in told
