"""How Sphinx builds the site: `make docs`. Warnings are errors, and nothing is downloaded."""

import importlib
import inspect
import os
import re
from importlib.util import find_spec
from pathlib import Path

import polyspan

HERE = Path(__file__).parent

project = "polyspan"
author = "The polyspan developers"
copyright = author
version = release = polyspan.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5"]
default_role = "py:obj"  # `GRMSC` in a docstring is a link

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_preprocess_types = True  # n_samples in a type is a word, not a link to an attribute
strip_signature_backslash = True  # else labels_, with its underscore, is a reference

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": (),  # what is shown was printed
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "polyspan"
html_static_path = ["_static"]
html_css_files = ["polyspan.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "polyspan"},
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "primary_sidebar_end": [],
}
# Pages without pages below them: their sidebar would be empty.
ALONE = ("index", "overview", "structure", "glossary", "changelog", "contributing")
html_sidebars = {page: [] for page in ALONE}


# Files outside docs/ that a page of the site includes: links to them lead to that page.
SHOWN = {
    "../README.md": "overview.md",
    "../CHANGELOG.md": "changelog.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../benchmarks/METHODS.md": "method-figures.md",
    "../benchmarks/RESULTS.md": "paper-results.md",
    "../examples/README.txt": "gallery/index.rst",
}

# Modules of the API reference, with what to say of them. One that is not there is left out.
MODULES = {
    "polyspan": "The consensus and the methods. `polyspan.METHODS` finds methods by name, in any "
    "case.",
    "polyspan.datasets": "Data sets by name, your own files, planted data.",
    "polyspan.inputs": "Scattered missing values, filled in.",
    "polyspan.metrics": "Scores against known classes.",
    "polyspan.selection": "Clustering without labels, and the number of clusters.",
    "polyspan.audit": "What a method gains from the order of the samples.",
    "polyspan.figures": "Figures of the results of a fit.",
    "polyspan.explain": "What the clusters are: features, known columns, survival.",
    "polyspan.report": "The report of a fit as one HTML file.",
    "polyspan.runtime.cache": "Sharing work between fits on the same data.",
    "polyspan.solvers.loop": "The loop around a solver, and how to watch it.",
    "polyspan.base": "The base classes, for those who write a method.",
}


def public_names(module: object) -> list[str]:
    """Functions and classes of ``__all__``, else those that the module itself defines."""
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    names = getattr(module, "__all__", own)
    members = {name: getattr(module, name) for name in names}
    return [n for n, v in members.items() if inspect.isclass(v) or inspect.isfunction(v)]


def api_page() -> tuple[str, list[str]]:
    """Return api/index.rst, a table of the public names of every module, and these names."""
    text, found = "API reference\n=============\n", []
    shown = []  # a name that two modules export has its page in the first
    for name, words in MODULES.items():
        if find_spec(name) is None:
            continue
        module = importlib.import_module(name)
        new = [one for one in public_names(module) if getattr(module, one) not in shown]
        shown += [getattr(module, one) for one in new]
        rows = [f"{name}.{one}" for one in new]
        text += f"\n{name}\n{'-' * len(name)}\n\n{words}\n\n"
        text += ".. autosummary::\n   :toctree: .\n   :nosignatures:\n\n"
        text += "".join(f"   {row}\n" for row in rows)
        found += rows
    return text, found


def write_api() -> None:
    """Write api/index.rst; autosummary writes a page for each name beside it."""
    folder = HERE / "api"
    folder.mkdir(exist_ok=True)
    text, found = api_page()
    for page in folder.glob("*.rst"):  # of names that are no more
        if page.stem not in [*found, "index"]:
            page.unlink()
    index = folder / "index.rst"
    if not index.exists() or index.read_text("utf-8") != text:  # Sphinx reads newer files again
        index.write_text(text, "utf-8")


def follow_links(app: object, docname: str, source: list[str]) -> None:
    """Put included files in, and lead links out of docs/ to the page that shows the file.

    Sphinx's own include leaves the links of the file as they are, which is wrong from here.
    Files that no page shows can be downloaded.
    """
    folder = (HERE / docname).parent
    text, file = source[0], folder / docname
    included = re.fullmatch(r"```{include} (\S+)\n```\n", text)
    if included:
        file = folder / included[1]
        text = file.read_text("utf-8").replace("# polyspan\n", "# Overview\n", 1)  # the README
        app.env.note_dependency(str(file.resolve()))

    def lead(link: re.Match) -> str:
        target = os.path.relpath((file.parent / link[1]).resolve(), folder)
        outside = target.startswith("..")
        return f"]({SHOWN.get(target, 'path:' + target if outside else target)}{link[2] or ''})"

    source[0] = re.sub(r"\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)", lead, text)


write_api()  # before Sphinx looks for pages


def setup(app: object) -> None:
    """Connect the above with Sphinx."""
    app.connect("source-read", follow_links)
