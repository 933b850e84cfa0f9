"""The section on the views: their agreement with the result, and their contents."""

from typing import Any

from polyspan.report.content import Content
from polyspan.report.markup import bar, escape, number, percent, table, user
from polyspan.report.measure import Agreement, summarize_view
from polyspan.runtime.messages import plural


def show_views(c: Content, compared: list[Agreement]) -> str:
    """How well each view agrees with the result, and what is in the views."""
    best = max((one.nmi for one in compared if one.nmi is not None), default=None)
    bars = []
    for name, one in zip(c.view_names, compared, strict=True):
        if one.nmi is None:
            shown = f'<span class="why">{user(one.why)}</span>'
        else:
            shown = bar(one.nmi, f"{one.nmi:.3f}")
        first = ' class="best"' if one.nmi is not None and one.nmi == best else ""
        bars.append(f"<dt{first}>{user(name)}</dt><dd>{shown}</dd>")
    n = len(c.ids)
    used = sorted({one.n_used for one in compared if one.nmi is not None and one.n_used < n})
    part = ""
    if used:
        told = " to ".join(number(m) for m in dict.fromkeys((used[0], used[-1])))
        part = (
            f" Computed on {told} of the {n:,} samples: those without missing values, and a random "
            "2,000 of them if there are more."
        )
    summaries = [summarize_view(X) for X in c.views]
    heads = ["View", "Features", "Zeros", "Missing", "Smallest", "Largest", "Typical size",
             "Spread of features", "Stored"]  # fmt: skip
    rows: list[list[tuple[str, Any]]] = []
    for name, s in zip(c.view_names, summaries, strict=True):
        missing = number(s.missing)
        if s.missing_samples:
            missing += f" ({plural(s.missing_samples, 'whole sample')})"
        spread = f"{number(s.spread[0])} to {number(s.spread[1])}"
        if s.constant:
            spread += f" ({s.constant:,} constant)"
        storage = escape(s.storage.replace(" ", "\u00a0"))
        rows.append([
            (user(name), name), (number(s.n_features), s.n_features), (percent(s.zeros), s.zeros),
            (missing, s.missing), (number(s.smallest), s.smallest), (number(s.largest), s.largest),
            (number(s.typical), s.typical), (spread, s.spread[1]), (storage, s.storage),
        ])  # fmt: skip
    return (
        "<h3>Which view agrees with the result</h3>"
        "<p>Normalized mutual information between the clusters and those of one view alone "
        "(spectral clustering of its 10-nearest-neighbors graph): 1 means the same clusters, 0 "
        f"nothing in common.{part}</p>"
        f'<dl class="bars">{"".join(bars)}</dl>'
        f"<h3>What is in the views</h3><p>All have {plural(n, 'sample')}. Values are as read, "
        "before scaling. The typical size is the median absolute value of those that are not zero; "
        "the spread is the standard deviation of a feature, from the smallest to the largest.</p>"
        + table(heads, rows, name="What is in the views")
    )
