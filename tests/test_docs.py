"""The pages in docs/: their code runs, their links lead somewhere, their commands exist."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from cases import case

from polyspan.datasets import list_datasets, make_subspaces

ROOT = Path(__file__).parent.parent
OWN = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*OWN, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
GENERATED = (ROOT / "docs/gallery", ROOT / "docs/api")  # by `make docs`


def names(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


def code(page, language="python"):
    """The blocks of code in a page."""
    text = (ROOT / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)


# ---- links ---------------------------------------------------------------------------------------


def test_links_lead_to_files():
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)(?:#[^)]*)?\)", text):
            path = (page.parent / target).resolve()
            assert path.is_relative_to(ROOT), f"{page.name}: {target}"
            if not any(path.is_relative_to(folder) for folder in GENERATED):
                assert path.is_file(), f"{page.name}: {target}"


def test_anchors_are_headings():
    for page in PAGES:
        for target, anchor in re.findall(
            r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)", page.read_text("utf-8")
        ):
            with case(f"{page.name}: {target}#{anchor}"):
                path = (page.parent / target).resolve() if target else page
                headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), flags=re.M)
                plain = [re.sub(r"[^\w -]", "", words.lower()) for words in headings]
                assert anchor in [words.replace(" ", "-") for words in plain]


def test_every_page_is_in_one_list():
    """Sphinx says the same, but only `make docs` would tell."""
    lists = [block for page in names(OWN) for block in code(page, "{toctree}")]
    entries = [line for block in lists for line in block.split("\n")]
    patterns = [
        re.sub(r"^.*<(.*)>$", r"\1", entry) for entry in entries if entry[:1] not in ("", ":")
    ]
    for page in OWN:
        matches = [pattern for pattern in patterns if Path(page.stem).match(pattern)]
        assert len(matches) == (page.stem != "index"), page.name


def test_included_files_exist():
    included = [re.findall(r"```{include} (\S+)", page.read_text("utf-8")) for page in OWN]
    assert ["../CHANGELOG.md"] in included
    for target in [target for targets in included for target in targets]:
        assert (ROOT / "docs" / target).is_file(), target


def test_the_table_of_data_sets_is_up_to_date():
    path = ROOT / "docs/make_data_sets.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text("utf-8") == module.page(), "run `make methods`"
    for name in list_datasets():
        assert f"| `{name}` |" in module.table()


# ---- commands ------------------------------------------------------------------------------------


def test_makefile_targets_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for page in PAGES:
        for target in re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), flags=re.M):
            known = re.search(rf"^{target}:", makefile, flags=re.M)
            assert known, f"{page.name}: make {target}"


# ---- code ----------------------------------------------------------------------------------------


def test_imported_names_exist():
    for page in names(PAGES):
        nodes = [node for block in code(page) for node in ast.walk(ast.parse(block, page))]
        for node in nodes:
            module = getattr(node, "module", None) or ""
            if module.startswith("polyspan") and find_spec(module):
                known = dir(importlib.import_module(module))
                missing = {one.name for one in node.names} - set(known)
                assert missing <= {"LSR"}, f"{page}: {module}"  # what add-a-method.md adds


@pytest.mark.slow
def test_first_clustering_runs_as_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    known = {}
    for block in code("docs/first-clustering.md"):
        exec(compile(block, "first-clustering.md", "exec"), known)
    printed = capsys.readouterr().out
    first, *others = code("docs/first-clustering.md", "text")
    assert printed.startswith(first)
    assert all(text in printed for text in others)
    assert known["scores"]["nmi"] > 0.8
    assert sorted(path.name for path in tmp_path.iterdir()) == ["affinity.png", "convergence.png"]


@pytest.mark.slow
def test_the_index_has_the_hello_world():
    (block,) = code("docs/index.md")
    known = {}
    exec(compile(block.replace("n_samples=300", "n_samples=60"), "index.md", "exec"), known)
    assert known["labels"].shape == (60,)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        *("inputs-and-outputs", "data-sets", "after-the-fit", "order-of-samples"),
        "what-the-clusters-are",
    ],
)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = {}
    for block in code(f"docs/{page}.md"):
        exec(compile(block, f"{page}.md", "exec"), known)


@pytest.mark.slow
def test_the_page_on_structure_runs(capsys):
    (block,) = code("docs/structure.md")
    views = make_subspaces(n_samples=60, n_clusters=3, random_state=0).views
    exec(compile(block, "structure.md", "exec"), {"views": views})
    verdict, sentence, *of_views = capsys.readouterr().out.splitlines()
    assert verdict in ("strong", "weak")
    assert sentence
    assert len(of_views) == len(views)


@pytest.fixture
def new_method(tmp_path):
    """A copy of the source with the method of add-a-method.md: its file and one registry line."""
    method, tests = code("docs/add-a-method.md")
    page = (ROOT / "docs/add-a-method.md").read_text("utf-8")
    (line,) = re.findall(r"```text\n(from polyspan\.methods\.lsr import .*)\n```", page)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    package = tmp_path / "src/polyspan"
    (package / "methods/lsr.py").write_text(method, "utf-8")
    with open(package / "__init__.pyi", "a", encoding="utf-8") as registry:
        registry.write(f"{line}\n")
    (tmp_path / "test_lsr.py").write_text(tests, "utf-8")

    def run(*args):
        command = [sys.executable, "-m", "pytest", "-q", *map(str, args), "-p", "no:cacheprovider"]
        command += ["--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
        env = os.environ | {"PYTHONPATH": str(tmp_path / "src"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        print(done.stdout, done.stderr)
        assert done.returncode == 0
        return re.findall(r"^PASSED (.*)$", done.stdout, flags=re.M)

    return run


OF_ALL_METHODS = (
    *("test_estimators.py", "test_package.py", "test_parameter_names.py"),
    "test_golden.py::test_every_case_is_stored",
)


@pytest.mark.slow
def test_the_new_method_passes_its_own_tests_and_what_every_method_must(new_method, tmp_path):
    """Its own are those of the page, and the examples in its docstrings."""
    own = tmp_path / "test_lsr.py", tmp_path / "src/polyspan/methods/lsr.py"
    others = [ROOT / "tests" / name for name in OF_ALL_METHODS]
    chosen = "lsr or test_package or test_parameter_names or every_case_is_stored"
    passed = new_method(*own, *others, "-rA", "-k", chosen)
    assert sum(name.startswith("::") for name in passed) == 6  # outside this folder
    assert sum("[lsr]" in name for name in passed) >= 20  # as many as for any other method
