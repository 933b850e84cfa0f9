"""The verdict: the answer in words, before everything else."""

import numpy as np

from polyspan.report.content import Content
from polyspan.report.features import Features
from polyspan.report.known import KnownOf, Separated
from polyspan.report.markup import escape, p_value, user
from polyspan.report.measure import Agreement
from polyspan.runtime.messages import plural

MOST_LINES = 6  # clusters whose features are named
EACH = 4  # features of a cluster or class in every view


def show_verdict(
    c: Content,
    certainty: np.ndarray,
    compared: list[Agreement],
    features: Features | None,
    known: KnownOf | None,
) -> str:
    """Sentences: structure, number, views, certainty; then what is known, and features by name."""
    lines = [_structure(c), _number(c), _views(c, compared), _certainty(certainty)]
    lines += _known(known)
    items = "".join(f"<li>{line}</li>" for line in lines if line)
    named = _named(c, features, known)
    return f'<div class="verdict"><h2 id="h-verdict">In short</h2><ul>{items}</ul>{named}</div>'


def _structure(c: Content) -> str:
    found = getattr(c.estimator, "structure_evidence_", None)
    if not found:
        return ""
    word = {"strong": "Structure found", "weak": "Weak structure", "none found": "No structure"}
    head = word.get(found["verdict"], "Structure was not tested")
    return f"<strong>{head}</strong>: {user(found['sentence'])}."


def _number(c: Content) -> str:
    k = len(c.clusters)
    listed = (c.evidence or {}).get("shortlist") or []
    others = [row for row in listed if row["n_clusters"] != k]
    if not listed:
        return f"<strong>{plural(k, 'cluster')}</strong>, as asked."
    told = ", ".join(f"{row['n_clusters']} (score {row['score']:.2f})" for row in others[:3])
    rivals = len(getattr(c.estimator, "alternatives_", []))
    more = f"; the members also have {plural(rivals, 'rival clustering')}" if rivals else ""
    also = f"; also worth a look: {told}" if told else ""
    return f"<strong>{plural(k, 'cluster')}</strong>, estimated from the data{also}{more}."


def _views(c: Content, compared: list[Agreement]) -> str:
    roles = (getattr(c.estimator, "structure_evidence_", None) or {}).get("views") or []
    odd = [one["sentence"] for one in roles if one["role"] != "takes part"]
    agreed = [
        f"{user(name)} {one.nmi:.2f}"
        for name, one in zip(c.view_names[:8], compared[:8], strict=True)
        if one.nmi is not None
    ]
    told = "; ".join(user(sentence) for sentence in odd)
    if not agreed:
        return told
    head = f"<strong>Views</strong>: each alone agrees with the clusters (NMI): {', '.join(agreed)}"
    return head + (f"; {told}." if told else ".")


def _certainty(certainty: np.ndarray) -> str:
    low = int(np.sum(certainty < 0.5))
    return (
        f"<strong>Certainty</strong> {np.median(certainty):.2f} in the median; "
        f"{plural(low, 'sample')} below 0.5."
    )


def _known(known: KnownOf | None) -> list[str]:
    if known is None:
        return []
    told = [
        f"{user(one.column)} ({p_value(one.p_adjusted)}"
        + (f", ARI {one.ari:.2f})" if np.isfinite(one.ari) else ")")
        for one in known.found
        if one.kind and one.p_adjusted < 0.05
    ]
    lines = []
    if told:
        lines.append(f"<strong>Related to what is known</strong>: {', '.join(told[:6])}.")
    elif known.found:
        lines.append("<strong>Not related</strong> to any known column at a corrected 0.05.")
    if known.survival is not None:
        lines.append(f"<strong>Survival</strong> by cluster: log-rank {p_value(known.survival.p)}.")
    return lines


def _named(c: Content, features: Features | None, known: KnownOf | None) -> str:
    """What sets clusters, and known classes, apart: by name."""
    blocks = []
    if features is not None:
        rows = []
        for name in c.clusters[:MOST_LINES]:
            told = []
            for view in c.view_names[:4]:
                best = features.all.top(EACH, cluster=name, view=view)
                shown = [f"{_arrow(row['effect'])}{user(row['feature'])}" for row in best
                         if row["p_adjusted"] < 0.05]  # fmt: skip
                if shown:
                    told.append(f'<span class="soft">{user(view)}:</span> {", ".join(shown)}')
            rows.append(
                f"<dt>{user(name)}</dt><dd>{'<br>'.join(told) or 'nothing that stands out'}</dd>"
            )
        more = len(c.clusters) - MOST_LINES
        rest = f'<p class="soft">{plural(more, "more cluster")} below.</p>' if more > 0 else ""
        blocks.append(f"<h3>What sets the clusters apart</h3><dl>{''.join(rows)}</dl>{rest}")
    if known is not None and known.separated:
        rows = [
            f"<dt>{user(one.column)}</dt><dd>{_classes(c, one)}</dd>" for one in known.separated[:3]
        ]
        blocks.append(f"<h3>What separates the known classes</h3><dl>{''.join(rows)}</dl>")
    if not blocks:
        return ""
    legend = (
        "\u2191 more there than elsewhere, \u2193 less; the first few of every view, with a "
        "corrected p below 0.05."
    )
    return (
        f'<div class="two">{"".join(f"<div>{one}</div>" for one in blocks)}</div>'
        f'<p class="soft">{legend}</p>'
    )


def _classes(c: Content, one: Separated) -> str:
    """The features that separate the classes of a known column best, in every view."""
    two = len(one.classes) == 2  # one against the other: naming both would say it twice
    told = []
    for view in c.view_names[:4]:
        groups = []
        for name in one.classes[1:] if two else one.classes:
            best = one.markers.top(EACH + 1 if two else 2, cluster=name, view=view)
            shown = [
                f"{_arrow(row['effect'])}{user(row['feature'])}"
                for row in best
                if row["p_adjusted"] < 0.05
            ]
            if shown:
                groups.append(f"{user(name)} {', '.join(shown)}")
        if groups:
            told.append(f'<span class="soft">{user(view)}:</span> {"; ".join(groups)}')
    return "<br>".join(told) or "nothing that stands out"


def _arrow(effect: float) -> str:
    return escape("\u2191" if effect > 0 else "\u2193")
