"""An option is declared in one place: its field. Everything else follows from it."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pytest
from fit_tables import FILES, GRMSC3

from polyspan.cli import fit, record
from polyspan.cli.main import main
from polyspan.cli.options import add_options, option, read_options, within
from polyspan.cli.request import Request

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def toy(monkeypatch):
    """`polyspan fit` with one more field, and nothing else; the requests that reach the work."""

    @dataclass(frozen=True)
    class Toy(Request):
        """What is clustered."""

        toy: int = option(3, "a toy option", "N", check=within(0, 9, "from 0 to 9"))

    asked = []
    really = fit.check_request
    monkeypatch.setattr(fit, "Request", Toy)
    monkeypatch.setattr(record, "Request", Toy)
    monkeypatch.setattr(
        fit, "check_request", lambda request: asked.append(request) or really(request)
    )
    return asked


def test_one_field_makes_an_option(toy, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["fit", "--help"])
    assert "--toy N               a toy option (default: 3)\n" in capsys.readouterr().out
    assert main(["fit", *FILES, *GRMSC3, "--toy", "7"]) == 0
    assert main(["fit", *FILES, *GRMSC3, "--out", "usual.csv"]) == 0
    assert main(["fit", "--repeat", "labels.json"]) == 0
    assert [request.toy for request in toy] == [7, 3, 7]
    for name, value in (("labels", 7), ("usual", 3), ("labels-again", 7)):
        with open(f"{name}.json") as stream:
            assert json.load(stream)["asked"]["toy"] == value
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):
        main(["fit", "--repeat", "labels.json", "--toy", "7"])
    assert "takes all settings from labels.json: leave --toy out" in capsys.readouterr().err
    assert main(["fit", *FILES, "--toy", "10", "--force"]) == 2
    assert capsys.readouterr().err == "polyspan: --toy must be from 0 to 9, got 10\n"


def test_settings_without_it_have_its_default_and_wrong_ones_are_refused(toy, capsys):
    assert main(["fit", *FILES, *GRMSC3, "--toy", "7"]) == 0
    with open("labels.json") as stream:
        settings = json.load(stream)
    for toys, code in (({}, 0), ({"toy": "7"}, 2), ({"toy": True}, 2), ({"doll": 1}, 2)):
        asked = {name: value for name, value in settings["asked"].items() if name != "toy"}
        with open("old.json", "w") as stream:
            json.dump(settings | {"asked": asked | toys}, stream)
        assert main(["fit", "--repeat", "old.json", "--force"]) == code
    assert [request.toy for request in toy] == [7, 3]
    err = capsys.readouterr().err
    assert "old.json: 'toy' cannot be '7': use the file as written" in err
    assert "old.json: 'toy' cannot be True: use the file as written" in err
    assert "old.json is not the settings file of a run" in err


@dataclass(frozen=True)
class Kinds:
    """One of each kind."""

    word: str | None = option(None, "a word", "W")
    share: float = option(0.5, "a share of 100%")
    rule: Literal["all", "none"] = option("all", "a rule")
    turn: bool | None = option(None, "a turn")
    safe_ids: bool = option(False, "a flag")
    names: Sequence[str] = option((), "names", "N", flag="--name")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], Kinds()),
        (["--word", "a", "--share", "1"], Kinds("a", 1.0)),
        (["--rule", "none", "--turn", "no"], Kinds(rule="none", turn=False)),
        (["--turn", "yes", "--safe-ids"], Kinds(turn=True, safe_ids=True)),
        (["--name", "a", "--name", "b"], Kinds(names=["a", "b"])),
    ],
)
def test_the_type_says_how_it_is_read(words, expected):
    parser = argparse.ArgumentParser()
    add_options(parser, Kinds)
    assert read_options(Kinds, parser.parse_args(words)) == expected
    told = " ".join(parser.format_help().split())
    assert "one of each kind: --word W a word --share SHARE a share of 100% (default: 0.5)" in told


def test_a_wrong_choice_gets_those_that_exist(capsys):
    parser = argparse.ArgumentParser("toy")
    add_options(parser, Kinds)
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--turn", "yea"])
    told = "toy: no choice of --turn is called 'yea', did you mean 'yes'? Known: yes, no\n"
    assert capsys.readouterr().err == told


def test_options_that_mean_nothing_alone(capsys):
    for arguments, told in (
        (["--max-missing", "0.2"], "--max-missing says what --impute leaves out: use both"),
        (["--max-missing", "0.2", "--impute", "none"], "--max-missing says what --impute leaves"),
        (["--figures", "drawn"], "--figures is shown in the report: name one with --report"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["fit", *FILES, *arguments])
        assert told in capsys.readouterr().err


def test_whole_words_only(capsys):
    """`--k 3`, meant as `--clusters 3`, is not `--keep 3`."""
    with pytest.raises(SystemExit, match="2"):
        main(["fit", *FILES, "--k", "3"])
    assert "unrecognized arguments: --k" in capsys.readouterr().err
