"""What all commands share: help, unknown names, and that help is quick."""

import os
import subprocess
import sys

import pytest

from polyspan import __version__
from polyspan.cli.main import main

COMMANDS = ["demo", "fit", "data", "audit", "info"]
HEAVY = {"numpy", "scipy", "sklearn", "pandas", "rich", "matplotlib", "joblib", "threadpoolctl"}


@pytest.fixture(autouse=True)
def width(monkeypatch):
    """A terminal of the usual width."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["dmeo"], "polyspan: no command is called 'dmeo', did you mean 'demo'? Known: demo, "),
        (
            ["cluster"],
            "polyspan: no command is called 'cluster'. Known: demo, fit, predict, data, ",
        ),
        (["data", "lst"], "polyspan data: no action is called 'lst', did you mean 'list'? Known: "),
    ],
)
def test_unknown_commands(capsys, arguments, answer):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    err = capsys.readouterr().err
    assert err.startswith(answer)
    assert err.count("\n") == 1


def test_no_command_is_a_usage_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "required: COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["demo"], ["fit"], ["info"]])
def test_help_has_examples(arguments, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([*arguments, "--help"])
    assert "examples:\n  polyspan " in capsys.readouterr().out


def test_help_of_fit_explains_budget_device_and_repeat(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["fit", "--help"])
    told = " ".join(capsys.readouterr().out.split()).replace("- ", "-")  # lines end at hyphens
    assert "--budget SECONDS stop the members of the consensus in time; the labels then" in told
    assert "--device D where to compute, such as cuda" in told
    assert "writes LABELS-again.csv unless --out names another file" in told


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="its pipes break otherwise")
@pytest.mark.parametrize(
    ("arguments", "unbuffered"),
    [(["data", "list"], ""), (["data", "list"], "1"), (["data", "list", "ngs"], "1")],
)
def test_a_closed_pipe_ends_quietly(arguments, unbuffered):
    """`polyspan ... | head`: rich prints the list, print the data set."""
    command = [sys.executable, "-m", "polyspan", *arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 141
    process.stderr.close()


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)],
    ids=" ".join,
)
def test_help_is_quick(arguments):
    """It loads nothing that computes, and takes little of the processor."""
    code = (
        "import sys, time\n"
        "from polyspan.cli.main import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "finally:\n"
        "    print(time.process_time(), *sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0
    assert done.stdout.startswith(("usage: polyspan", "polyspan "))
    seconds, *modules = done.stderr.split()
    assert not HEAVY & {name.split(".")[0] for name in modules}
    assert float(seconds) < 0.3


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"polyspan {__version__}\n"
