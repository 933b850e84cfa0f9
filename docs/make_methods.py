"""Write the tables of methods, docs/methods.md and the block in README.md, from METHODS.

    python docs/make_methods.py    (make methods)

A row is what a class says of itself: ``_about`` and the first line of its docstring.
"""

import inspect
import re
import sys
from pathlib import Path

from polyspan import METHODS
from polyspan.base import MultiViewClusterer

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"(?<=<!-- methods:begin -->\n).*?(?=<!-- methods:end -->)", re.DOTALL)
INTRO = """\
<!-- Written by `make methods` from the classes: edit `_about` there, not this page. -->
# Methods

All methods are scikit-learn estimators of one form; `polyspan.METHODS` maps their names to them.
Every file begins with the objective, the recursion and the full reference, and says where it
departs from the paper.

- n samples, d features, m views (index v or k), c clusters; p is min(n, d), summed over the views.
- Samples are columns: `X_v` is d x n. `|.|_*` is the sum of the singular values, `|.|_{2,1}` that
  of the lengths of the columns, `|.|_1` that of the absolute entries.
- A parameter's name means the same in every method. `lam` weighs the errors, `lam_rank` a nuclear
  norm, `lam_ridge` a squared norm, `lam_agreement` the agreement between views, `lam_cut` the cut
  of a graph, and `lam_components` is the first weight of the term that makes c components. `lam1`,
  `lam2` and `alpha` are GRMSC's: errors, graphs, and the complementary graph among these. The
  docstrings name the letters of the papers.
- Costs are those of dense views, without the spectral clustering at the end.
- [benchmarks/METHODS.md](../benchmarks/METHODS.md): how close each comes to published figures, in
  what time.

"""


def cited(paper: str) -> str:
    """Iteration an arXiv number or a DOI at the end of a citation into a link around it."""
    words, _, number = paper.rpartition(", ")
    for kind, site in (("arXiv:", "https://arxiv.org/abs/"), ("doi:", "https://doi.org/")):
        if number.startswith(kind):
            return f"[{words}]({site}{number.removeprefix(kind)})"
    return paper


def formula(objective: str) -> str:
    """Set mathematics as code; a few methods have words instead."""
    return f"`{objective}`" if re.search(r"[_^|]", objective) else objective


def summary(method: type[MultiViewClusterer]) -> str:
    """Return the first line of the class's docstring, without its full stop."""
    return inspect.cleandoc(method.__doc__ or "").split("\n")[0].removesuffix(".")


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table; a bar inside a cell would end it, so it is escaped."""
    lines = [head, ["---"] * len(head)]
    lines += [[cell.replace("|", r"\|") for cell in row] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def full_page() -> str:
    """Return docs/methods.md."""
    rows = []
    for method in METHODS.values():
        about = method.about
        path = Path(inspect.getfile(method))
        file = path.name if path.parent.name == "methods" else f"{path.parent.name}/{path.name}"
        rows.append(
            [
                f"`{method.__name__}`",
                cited(about.paper),
                formula(about.objective),
                about.needs,
                about.cost,
                f"[{file}](../src/polyspan/methods/{file})",
            ]
        )
    return INTRO + table(["name", "paper", "objective", "think about", "cost", "file"], rows)


def short_table() -> str:
    """Return the block in README.md."""
    rows = [[f"`{m.__name__}`", cited(m.about.paper), summary(m)] for m in METHODS.values()]
    return table(["name", "paper", "in one line"], rows)


def pages(root: Path = ROOT) -> dict[Path, str]:
    """Return what both files should contain."""
    readme = root / "README.md"
    text, found = BLOCK.subn(lambda _: short_table(), readme.read_text("utf-8"))
    if found != 1:
        sys.exit(f"{readme}: {found} blocks from methods:begin to methods:end; there must be one.")
    return {root / "docs" / "methods.md": full_page(), readme: text}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
