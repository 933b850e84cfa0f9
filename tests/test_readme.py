"""What the README shows runs as shown; benchmarks/test_results.py holds its figures."""

import re
from pathlib import Path

import pytest

from polyspan.metrics import clustering_scores

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.M | re.S)


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_code_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(block, "README.md", "exec"), names)
    if "labels" in names:
        scores = clustering_scores(names["data"].labels, names["labels"])
        said = 0.84 if "ConsensusClusterer" in block else 0.85
        assert scores["nmi"] == pytest.approx(said, abs=0.01)  # as the text says
    assert list(tmp_path.iterdir()) == []


def test_the_first_result_is_on_the_first_screen():
    """What it is, when to use something else, how to install it, and then the main job."""
    lines = BLOCKS[0].splitlines()
    assert lines[0] == "from polyspan import ConsensusClusterer"
    assert 4 <= len([line for line in lines if line]) <= 6
    assert README[: README.index(BLOCKS[0])].count("\n") + len(lines) <= 40


def test_sections_are_in_order():
    wanted = ["When to use something else", "Install", "Quick start", "Your own data"]
    wanted += ["Methods", "Results", "More"]
    assert re.findall(r"^## (.*)$", README, flags=re.M) == wanted


def test_links_and_pictures_are_here():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert "docs/images/demo.png" in targets
    for target in targets:
        assert (ROOT / target).is_file(), target
    assert (ROOT / "docs/images/demo.png").stat().st_size < 150_000


@pytest.mark.slow
def test_what_is_said_of_digits():
    from polyspan import GRMSC, ConcatKMeans, ConcatSpectral
    from polyspan.datasets import load_digits_views

    assert "On 600 digits (`load_digits_views(600)`, one seed) GRMSC" in README
    data = load_digits_views(600)
    models = [GRMSC(10), GRMSC(10, affinity="sparse"), ConcatKMeans(10), ConcatSpectral(10)]
    dense, sparse, kmeans, spectral = (
        clustering_scores(data.labels, model.set_params(random_state=0).fit_predict(data.views))
        for model in models
    )
    assert dense["nmi"] < kmeans["nmi"] < spectral["nmi"]
    assert sparse["nmi"] == pytest.approx(spectral["nmi"], abs=0.01)


@pytest.mark.slow
def test_what_is_said_of_the_demo(capsys):
    from polyspan.cli.demo import run_demo

    rows = run_demo(out=None)
    said = re.search(
        r"the consensus has an NMI of (\S+), and the plain `ConcatSpectral` (\S+); told to "
        r"standardize the features, which the consensus finds out by itself, that has (\S+)\.\n",
        README,
    )
    found = [row.scores["nmi"] for row in list(rows.values())[:3]]
    assert [float(number) for number in said.groups()] == pytest.approx(found, abs=0.005)


def test_families_name_methods_once():
    from polyspan import METHODS

    section = README.split("\n## Methods\n")[1].split("\n## ")[0]
    _, *families = section.split("\n\n[docs/methods.md]")[0].split("\n- **")
    assert len(families) == 3
    named = [name for text in families for name in {*re.findall(r"`([A-Z]\w+)`", text)}]
    assert len(set(named)) == len(named) > 20
    assert set(named) <= {method.__name__ for method in METHODS.values()}


def test_commands_exist(capsys):
    from polyspan.cli.main import main

    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    pages = README + (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", pages, flags=re.M)) <= set(targets)
    for command in set(re.findall(r"polyspan (demo|fit|predict|data \w+|data|info)\b", README)):
        with pytest.raises(SystemExit, match="0"):
            main([*command.split(), "--help"])
