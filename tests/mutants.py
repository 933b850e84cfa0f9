"""Apply deliberate errors to a copy of the library, one at a time, and see if a test notices.

``python tests/mutants.py`` runs all of `mutants_list.MUTANTS`, each with the test files it names,
in copies in a temporary folder; the working tree is never touched. A mutant that no test
notices "survives": a test is missing. Like the tests, some mutants need POLYSPAN_DATA.
"""

import argparse
import ast
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path

from mutants_list import MUTANTS

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (ROOT / "src/polyspan", ROOT / "benchmarks/harness")
LIMIT = 300  # seconds for one mutant; a change that makes a loop endless is noticed, too
OUTCOMES = {0: "survived", 1: "killed", None: "killed"}  # by the exit status of pytest


class NotApplicable(Exception):
    """A mutant does not fit the code."""


@cache
def definitions(src):
    """All functions and classes below a folder: (module, qualified name, path, spans of lines).

    The spans exclude the docstring, where a change would have no effect.
    """
    found = []
    for path in sorted(src.rglob("*.py")):
        module = path.relative_to(src).with_suffix("").as_posix()
        nodes = [("", ast.parse(path.read_text("utf-8")))]
        while nodes:
            prefix, node = nodes.pop()
            for child in ast.iter_child_nodes(node):
                name = getattr(child, "name", None)
                if isinstance(child, ast.ClassDef | ast.FunctionDef):
                    nodes.append((f"{prefix}{name}.", child))
                    found.append((module, prefix + name, path, code_lines(child)))
                else:
                    nodes.append((prefix, child))
    return found


def code_lines(node):
    """Line spans of a definition, first and last (exclusive), without its docstring."""
    first, last = node.lineno - 1, node.end_lineno
    if ast.get_docstring(node) is None:
        return [(first, last)]
    doc = node.body[0]
    return [(first, doc.lineno - 1), (doc.end_lineno, last)]


def apply(mutant):
    """Return the path of the module that a mutant changes, and its changed text."""
    module, _, name = mutant.where.rpartition(":")  # the module may have a folder before it
    places = [row for src in SOURCES for row in definitions(src) if row[1] == name]
    if module:
        places = [row for row in places if f"/{row[0]}".endswith(f"/{module}")]
    if len(places) != 1:
        raise NotApplicable(f"mutant {mutant.id} does not apply: {len(places)} times {name}")
    _, _, path, spans = places[0]
    lines = path.read_text("utf-8").splitlines(keepends=True)
    parts = {span: "".join(lines[slice(*span)]) for span in spans}
    count = sum(text.count(mutant.old) for text in parts.values())
    if count != 1:
        raise NotApplicable(
            f"mutant {mutant.id} does not apply: {count} times {mutant.old!r} in {name}"
        )
    first, last = next(span for span, text in parts.items() if mutant.old in text)
    changed = parts[first, last].replace(mutant.old, mutant.new)
    text = "".join([*lines[:first], changed, *lines[last:]])
    try:
        same = ast.dump(ast.parse(text)) == ast.dump(ast.parse("".join(lines)))
    except SyntaxError as error:
        raise NotApplicable(f"mutant {mutant.id} is not Python: {error}") from error
    if same:
        raise NotApplicable(f"mutant {mutant.id} changes nothing")
    return path, text


def files_of(mutant, tests):
    """Paths of the test files of a mutant, wherever they are below the folder."""
    found = []
    for stem in mutant.tests:  # it may have a folder before it
        paths = sorted(tests.rglob(f"{stem}.py"))
        if len(paths) != 1:
            raise NotApplicable(f"mutant {mutant.id}: {len(paths)} test files are called {stem}")
        found += paths
    return found


def make_copy(folder):
    """Copy the source and the tests; link everything else that the tests read."""
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.name in ("src", "tests", "benchmarks"):
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(path, folder / path.name, ignore=ignore)
        elif not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    return folder


def run_tests(folder, arguments, limit=LIMIT):
    """Run pytest in a copy; return its exit status (None if it timed out) and the failed tests."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    changed = {"PYTHONPATH": str(folder / "src"), "OPENBLAS_NUM_THREADS": "1"}
    # Compiled modules are matched by their time in seconds, which two mutants may share.
    env = os.environ | changed | {"PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdout=out, stderr=out, start_new_session=True
        )
        try:
            status = process.wait(limit)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # also kills what the tests started
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            status = None
        out.seek(0)
        lines = [line.strip() for line in out if line.startswith(("FAILED ", "ERROR tests"))]
    return status, [line.split(" ", 1)[1].split(" - ")[0] for line in lines]


def run_mutant(mutant, copies):
    """Plant a mutant in a free copy and run its tests there."""
    folder = copies.get()
    started = time.perf_counter()
    try:
        files = [str(path.relative_to(ROOT)) for path in files_of(mutant, ROOT / "tests")]
        path, text = apply(mutant)
        place = folder / path.relative_to(ROOT)
        place.write_text(text, "utf-8")
        try:
            select = ["-k", mutant.select] if mutant.select else []
            status, failed = run_tests(folder, ["-x", *files, *select])
        finally:
            shutil.copyfile(path, place)
    finally:
        copies.put(folder)
    told = failed[0] if failed else ""
    if status is None:
        told = f"out of time after {LIMIT} s"
    outcome = OUTCOMES.get(status, f"error, pytest ended with {status}")
    return outcome, told, time.perf_counter() - started


def run_all(mutants, jobs):
    """Yield every mutant with its outcome as it finishes; last None and what fails without one."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as top:
        copies = queue.SimpleQueue()
        for number in range(jobs):
            copies.put(make_copy(Path(top) / str(number)))
        noticed = set()
        with ThreadPoolExecutor(jobs) as pool:
            calls = {pool.submit(run_mutant, one, copies): one for one in mutants}
            try:
                for call in as_completed(calls):
                    yield calls[call], *call.result()
                    noticed.add(call.result()[1])
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        # A test that also fails without the mutant has noticed nothing.
        names = sorted(name for name in noticed if "::" in name)
        status, failed = run_tests(copies.get(), names, 4 * LIMIT) if names else (0, [])
        yield None, status, failed, 0.0


def store(path, results):
    """Write the outcomes; other fields of rows in an earlier file, such as "before", are kept.

    "before" is the outcome on the code before it was split into packages, "-" if there was none.
    """
    path = Path(path)
    rows = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for mutant, (outcome, seconds) in results.items():
        rows.setdefault(mutant.id, {"before": "-"}).update(now=outcome, seconds=round(seconds))
    ordered = {one.id: rows[one.id] for one in MUTANTS if one.id in rows}
    lines = [f" {json.dumps(name)}: {json.dumps(row)}" for name, row in ordered.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def check(mutants):
    """Say which mutants do not apply; return how many."""
    bad = 0
    if len({one.id for one in MUTANTS}) < len(MUTANTS):
        bad += 1
        print("two mutants have the same id")
    for mutant in mutants:
        try:
            files_of(mutant, ROOT / "tests")
            apply(mutant)
        except NotApplicable as error:
            bad += 1
            print(error)
    return bad


def main():
    """Check, list or run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="mutants at the same time (2)")
    parser.add_argument("--only", default="", help="mutants whose id or function contains this")
    parser.add_argument("--check", action="store_true", help="only whether all mutants apply")
    parser.add_argument("--list", action="store_true", help="only show them")
    parser.add_argument("--store", help="write the outcomes to this JSON file")
    args = parser.parse_args()
    mutants = [one for one in MUTANTS if args.only in one.id or args.only in one.where]
    if args.list:
        for one in mutants:
            print(f"{one.id}: {one.where}: {one.old!r} -> {one.new!r}")
        return 0
    if bad := check(mutants):
        return 1
    if args.check:
        print(f"{len(mutants) - bad} of {len(mutants)} mutants apply")
        return 0
    results, wrong = {}, 0
    for mutant, outcome, told, seconds in run_all(mutants, args.jobs):
        if mutant is None:
            wrong = outcome
            if wrong != 0:
                print(f"without a mutant pytest ends with {wrong}; failed: {', '.join(told)}")
            continue
        results[mutant] = outcome, seconds
        print(f"{outcome:9} {seconds:4.0f} s  {mutant.id}  {told}", flush=True)
        if args.store:
            store(args.store, results)
    survived = [one for one, (outcome, _) in results.items() if outcome != "killed"]
    names = ", ".join(one.id for one in survived) or "none"
    print(f"{len(results) - len(survived)} of {len(results)} killed; survived: {names}")
    return int(wrong != 0 or any(not one.survives for one in survived))


if __name__ == "__main__":
    sys.exit(main())
