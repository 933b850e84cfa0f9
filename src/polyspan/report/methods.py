"""The methods paragraph: what was done, with versions and citations, ready to paste."""

import platform
from importlib import metadata

from polyspan import __version__
from polyspan.report.content import Content
from polyspan.report.known import KnownOf
from polyspan.report.markup import escape
from polyspan.runtime.messages import plural

CITED = {
    "scikit-learn": "Pedregosa et al., JMLR 12:2825-2830, 2011",
    "scipy": "Virtanen et al., Nature Methods 17:261-272, 2020",
    "numpy": "Harris et al., Nature 585:357-362, 2020",
    "mann-whitney": "Mann and Whitney, Ann. Math. Stat. 18:50-60, 1947",
    "bh": "Benjamini and Hochberg, J. R. Stat. Soc. B 57:289-300, 1995",
    "lifelines": "Davidson-Pilon, JOSS 4(40):1317, 2019",
}


def methods_text(c: Content, known: KnownOf | None) -> str:
    """Sentences for the methods section of a paper.

    They name what was fitted, how features and known columns were compared, versions, citations.
    """
    n, k, v = len(c.ids), len(c.clusters), len(c.views)
    widths = ", ".join(f"{name} ({X.shape[1]:,} features)" for name, X in
                       zip(c.view_names, c.views, strict=True))  # fmt: skip
    done = [f"{plural(n, 'sample')} described by {plural(v, 'view')}, {widths}, were clustered "
            f"into {plural(k, 'group')} with polyspan {__version__}."]  # fmt: skip
    model = c.shown
    if c.n_agreeing:
        methods = sorted({row["method"] for row in c.members if row["weight"] > 0})
        done.append(
            f"The clusters are the consensus of {plural(c.n_agreeing, 'member')} chosen without "
            f"labels by mutual agreement and modularity in the views ({', '.join(methods)})."
        )
        model = c.estimator
    else:
        about = getattr(type(model), "about", None)
        paper = f" ({about.paper})" if about else ""
        done.append(f"The method was {type(model).__name__}{paper}.")
    if (c.evidence or {}).get("shortlist"):
        done.append("The number of clusters was estimated from the data.")
    seed = model.get_params(deep=False).get("random_state")
    if isinstance(seed, int):
        done.append(f"The random seed was {seed}.")
    done.append(
        "Features were compared between each cluster and the rest by the two-sided Mann-Whitney "
        f"test ({CITED['mann-whitney']}), corrected by the rule of Benjamini and Hochberg "
        f"({CITED['bh']})."
    )
    if known is not None:
        tests = list(dict.fromkeys(one.test for one in known.found if one.kind))
        if tests:
            done.append(
                "What was known of the samples was not used for the clustering and was compared "
                f"with the clusters afterwards ({', '.join(tests)}), with the same correction."
            )
        if known.survival is not None:
            version = metadata.version("lifelines")
            done.append(
                "Survival was compared by Kaplan-Meier curves and the log-rank test with lifelines "
                f"{version} ({CITED['lifelines']})."
            )
    used = ", ".join(
        f"{name} {metadata.version(name)} ({CITED[name]})"
        for name in ("scikit-learn", "scipy", "numpy")
    )
    done.append(f"Software: Python {platform.python_version()}, {used}.")
    return " ".join(done)


def show_methods(c: Content, known: KnownOf | None) -> str:
    """The paragraph, with a button that copies it."""
    return (
        "<p>Ready to paste; check it against what you did.</p>"
        '<div class="code"><div class="code-head"><h3>Methods</h3>'
        '<button type="button" data-copy="code-methods">Copy</button></div>'
        f'<pre tabindex="0"><code id="code-methods">{escape(methods_text(c, known))}</code></pre>'
        "</div>"
    )
