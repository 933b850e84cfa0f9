"""How large the package is: files and code lines by room, without comments and docstrings.

    python benchmarks/size.py                   # of this checkout
    python benchmarks/size.py ../before/src     # of another version

A module with one importer is one that a single other module imports by name.
"""

import argparse
import ast
import io
import tokenize
from collections import Counter, defaultdict
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"
CORE = ("base", "chunked", "clustering", "graphs", "inputs", "runtime", "selection", "solvers")
BLANK = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    tokenize.ENDMARKER,
}


def code_lines(text):
    """Number of lines that hold code."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in BLANK:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(lines)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("src", type=Path, nargs="?", default=SRC, help="folder src (this one)")
    root = parser.parse_args().src.resolve() / "polyspan"
    files, lines, importers = Counter(), Counter(), defaultdict(set)
    modules = set()
    for path in sorted(root.rglob("*.py")):
        text, place = path.read_text("utf-8"), path.relative_to(root)
        room = place.parts[0] if len(place.parts) > 1 else "(top)"
        files[room] += 1
        lines[room] += code_lines(text)
        module = ".".join(("polyspan", *place.with_suffix("").parts))
        if path.name != "__init__.py":
            modules.add(module)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    importers[name].add(module)
    print("| room | files | code lines |\n|---|---|---|")
    for room in sorted(files):
        print(f"| {room} | {files[room]} | {lines[room]} |")
    for title, rooms in (("the core", CORE), ("all", tuple(files))):
        print(f"| {title} | {sum(files[r] for r in rooms)} | {sum(lines[r] for r in rooms)} |")
    print(f"\n{sum(len(importers[module]) == 1 for module in modules)} modules with one importer")


if __name__ == "__main__":
    main()
