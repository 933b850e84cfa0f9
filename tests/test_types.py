"""What a type checker sees in a user's program, with the wheel installed as a user has it."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROGRAM = """
import numpy as np
from polyspan import GRMSC, ConsensusClusterer

views = [np.eye(9), np.eye(9)]
model = GRMSC(3, lam1=2.0, n_neighbors=None, random_state=0).fit(views)
reveal_type(model)
reveal_type(model.labels_)
reveal_type(model.n_iter_)
reveal_type(ConsensusClusterer().fit(views).certainty_)
GRMSC(lam=2)
GRMSC(3, 30)
GRMSC(lam1="large")
model.nonsense
"""
SEEN = [
    'note: Revealed type is "polyspan.methods.grmsc.GRMSC"',
    'note: Revealed type is "numpy.ndarray',
    'note: Revealed type is "int"',
    'note: Revealed type is "numpy.ndarray',
    'error: Unexpected keyword argument "lam" for "GRMSC"; did you mean',
    'error: Too many positional arguments for "GRMSC"',
    'error: Argument 2 to "GRMSC" has incompatible type "int"',
    'error: Argument "lam1" to "GRMSC" has incompatible type "str"; expected "float"',
    'error: "GRMSC" has no attribute "nonsense"',
]
# Untyped or far from this program, and most of the time: their types are not looked at.
SKIPPED = """[mypy]
[mypy-dask.*,distributed.*,joblib.*,matplotlib.*,narwhals.*,pandas.*,rich.*,scipy.*,torch.*]
follow_imports = skip
"""


@pytest.mark.slow
def test_a_type_checker_knows_parameters_and_attributes(tmp_path):
    def run(*command, ok=(0,)):
        done = subprocess.run([sys.executable, "-m", *map(str, command)], cwd=ROOT,
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode in ok, done.stdout + done.stderr
        return done.stdout

    run("hatchling", "build", "-t", "wheel", "-d", tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    venv.create(tmp_path / "venv")
    python = next((tmp_path / "venv").glob("bin/python3"))
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    run("pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel)
    # What polyspan needs is found where these tests run; a path in a .pth is not searched for more.
    (site / "needs.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, "utf-8")
    settings = tmp_path / "mypy.ini"
    settings.write_text(SKIPPED, "utf-8")
    told = run("mypy", "--python-executable", python, "--config-file", settings, "--cache-dir",
               tmp_path / "cache", "--hide-error-codes", program, ok=(1,))  # fmt: skip
    lines = [line.split(": ", 1)[1] for line in told.splitlines() if "program.py" in line]
    assert [line[: len(seen)] for line, seen in zip(lines, SEEN, strict=True)] == SEEN
