"""Write the tables of methods, docs/methods.md, from METHODS.

    python docs/make_methods.py    (make methods)

A row is what a class says about itself: ``about`` and the first line of its docstring. The table of
the optimum is the one that benchmarks/optimum.py keeps.
"""

import inspect
import re
import sys
from pathlib import Path

from polyspan import METHODS
from polyspan.base import MultiViewClusterer

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmarks"))

from page_tables import fill  # noqa: E402 - a script of the folder above

PAGE = ROOT / "docs" / "methods.md"
INTRO = """\
<!-- Written by `make methods` from the classes: edit `about` there, not this page. -->
# Methods

All methods are scikit-learn estimators with the same interface; `polyspan.METHODS` is a dictionary
of them by name. If you do not know which one to use, start with `ConsensusClusterer`, which runs
many: [choosing without labels](choosing-without-labels.md). It estimates the number of clusters;
to the methods below, pass `n_clusters`.

## In one line

"""
DETAILS = """
## Objectives and costs

Every source file (last column) begins with the objective, the recursion and the full reference,
and says where it departs from the paper. The letters in this table are

- n samples, d features, m views (index v), c clusters, k neighbors, a anchors;
- p, the sum of min(n, d) over the views, and q, the sum of min(a, d);
- `X_v`, view v, with samples in columns (d x n), and `A_v`, its anchors;
- `|.|_*`, the sum of the singular values, `|.|_{2,1}`, that of the lengths of the columns, and
  `|.|_1`, that of the absolute entries; `L`, the Laplacian of a graph;
- GMC's alpha, which is no parameter: it is set so that every row of S_v has k entries.

About the columns:

- *what to consider* has the parameters that matter most, and what the method expects of the data.
  A parameter's name means the same in every method: `lam` weighs the errors, `lam_rank` a nuclear
  norm, `lam_ridge` a squared norm, `lam_agreement` the agreement between views, `lam_cut` the cut
  of a graph, and `lam_components` is the first weight of the term that makes c components. GRMSC
  has `lam1` for the errors, `lam2` for its graphs, and `alpha` for the complementary graph among
  them. The docstrings name the letters of the papers.
- `as_released=True` follows the authors' program where it departs from their paper; the default
  follows the paper. `CSMSC` is the one exception: its default is the program. The head of every
  file says where the two part.
- *cost* is for dense views, without the spectral clustering at the end.

**How close to the optimum.** The methods with a penalty `mu` that grows by `rho` stop when their
constraints hold. If `mu` grows fast, that is before the objective is at its minimum. For the convex
ones `python benchmarks/optimum.py` prints by how much, on 40 texts of 3-Sources, and with which
slower growth they reach it:

<!-- rows: optimum -->
| method | setting | default | iterations | slow | iterations | slow growth |
|---|---|---:|---:|---:|---:|---|

A clustering need not be better at the optimum.

[benchmarks/METHODS.md](../benchmarks/METHODS.md) compares each method with published scores and
gives times.

"""


def cited(paper: str) -> str:
    """Make an arXiv number or a DOI at the end of a citation a link around it."""
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


def short_table() -> str:
    """Return what each method is, in one line."""
    rows = [[f"`{m.__name__}`", cited(m.about.paper), summary(m)] for m in METHODS.values()]
    return table(["name", "paper", "in one line"], rows)


def long_table() -> str:
    """Return what each method minimizes, what to consider, and what it costs."""
    rows = []
    for method in METHODS.values():
        about = method.about
        path = Path(inspect.getfile(method))
        file = path.name if path.parent.name == "methods" else f"{path.parent.name}/{path.name}"
        link = f"[{file}](../src/polyspan/methods/{file})"
        name = f"`{method.__name__}`"
        rows.append([name, formula(about.objective), about.needs, about.cost, link])
    return table(["name", "objective", "what to consider", "cost", "file"], rows)


def page() -> str:
    """Return docs/methods.md."""
    return fill(INTRO + short_table() + DETAILS + long_table())


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
