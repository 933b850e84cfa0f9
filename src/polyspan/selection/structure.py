"""Is there anything here? Whether views have structure that noise like them does not have.

`polyspan.selection.structure_tests` has the two tests, between views and within a view, and says
what their nulls are. Together they have a level of .01: each has half of it, and within views it is
divided by the number of views. A single view has only the second test, and all of the level.
"""

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from polyspan.inputs.scaling import Scaling
from polyspan.inputs.views import Views
from polyspan.runtime.arrays import to_numpy
from polyspan.runtime.messages import view_names, view_title
from polyspan.selection.drawn import tell_drawn
from polyspan.selection.structure_tests import FEWEST, between, some, within

LEVEL = 0.01
STRONG = 0.2  # modularity of one view's clusters in another view
STRONG_ALONE = 0.08  # modularity of a view's clusters beyond that of noise like it
SAMPLES = 1000  # used at most
LATE = "not tested: the budget was spent"
FEW = f"not tested: fewer than {FEWEST} samples"


class ViewStructure(TypedDict):
    """What one view has, by itself and in common with others."""

    name: str
    role: str  # "takes part", "says nothing", "disagrees", "alone decides" or "not tested"
    sentence: str
    agreement: float | None  # modularity of clusters across the best pair of views with this one
    p_between: float | None  # corrected for the number of pairs
    excess: float | None  # modularity of its clusters in its own graph, less that of the null
    p_within: float | None  # not corrected for the number of views


class Structure(TypedDict):
    """Whether there is structure, and in which views."""

    verdict: str  # "strong", "weak", "none found", or why it was not tested
    sentence: str
    p: float | None  # of both tests, corrected: there is structure if it is at most .01
    agreement: float | None  # the largest that is significant; None if there is none
    excess: float | None  # likewise
    views: list[ViewStructure]


def find_structure(
    views: Views,
    scales: Sequence[Scaling],
    seed: int,
    deadline: float | None = None,
    among: int | None = None,
) -> Structure:
    """Test whether views have structure that noise like them does not have.

    Parameters
    ----------
    views : Views
        Checked views; rows of NaN are samples that lack the view. Two views are compared on the
        samples they have in common.
    scales : list of {"unit", "standard+unit", "standard", None}
        Scaling of each view, as `polyspan.inputs.choice.choose_scaling` gives it.
    seed : int
        Seeds the permutations, the surrogates, and the choice of samples where there are more than
        1,000 (400 within a view).
    deadline : float, default=None
        Time, as of `time.perf_counter`, at which the test is given up.
    among : int, default=None
        How many samples there are, if the views are a part of them that was drawn at random.

    Returns
    -------
    Structure
        Plain values that can be written as JSON. ``verdict`` is «none found» if neither test
        rejects its null at a level of .01 together. Else it is «strong» or «weak»: by the
        agreement of views, .2 or more being strong, or if no views agree by the excess of a view,
        .08 or more being strong.

    Notes
    -----
    Structure need not be clusters: a gradient that two views share is found too.

    Examples
    --------
    >>> from polyspan.datasets import make_subspaces
    >>> from polyspan.inputs.views import check_views
    >>> data = make_subspaces(n_samples=60, n_clusters=3, noise=0.1, random_state=0)
    >>> found = find_structure(check_views(data.views), ["unit", "unit"], seed=0)
    >>> found["verdict"], [view["role"] for view in found["views"]]
    ('strong', ['takes part', 'takes part'])
    >>> noise = np.random.default_rng(0).normal(size=(2, 60, 20))
    >>> find_structure(check_views(list(noise)), ["unit", "unit"], seed=0)["verdict"]
    'none found'
    """
    rng = np.random.default_rng(seed)
    names = views.names
    if views.n_samples < FEWEST:
        return _untested(names, FEW)
    rows = some(np.arange(views.n_samples), SAMPLES, rng)
    arrays = [view[rows] if sp.issparse(view) else to_numpy(view)[rows] for view in views.arrays]
    try:
        with threadpool_limits(1):  # the matrices are small
            agreement, p_between = between(arrays, names, scales, rng, deadline)
            own = [
                within(X, name, scale, rng, deadline)
                for X, name, scale in zip(arrays, names, scales, strict=True)
            ]
    except TimeoutError:
        return _untested(names, LATE)
    found = _judged(names, agreement, p_between, own)
    if told := tell_drawn(among or views.n_samples, len(rows)):
        found["sentence"] += f"; {told}"
    return found


def _untested(names: Sequence[str], why: str) -> Structure:
    nothing: Any = dict.fromkeys(("agreement", "p_between", "excess", "p_within"))
    views: Any = [
        {"name": name, "role": "not tested", "sentence": f"{view_title(name)}: {why}"} | nothing
        for name in names
    ]
    return Structure(verdict=why, sentence=why, p=None, agreement=None, excess=None, views=views)


def _judged(
    names: Sequence[str],
    agreement: np.ndarray,
    p_between: np.ndarray,
    own: Sequence[tuple[float | None, float | None]],
) -> Structure:
    """Put both tests together, for every view and for all of them."""
    V = len(names)
    parts = 2 if V > 1 else 1  # tests that share the level
    shares = parts * p_between <= LEVEL
    alone = [p is not None and parts * V * p <= LEVEL for _, p in own]
    views: list[ViewStructure] = []
    for v, (name, (excess, p_within)) in enumerate(zip(names, own, strict=True)):
        pairs = np.flatnonzero(~np.isnan(p_between[v]))
        partners = [other for other, yes in zip(names, shares[v], strict=True) if yes]
        others = bool(shares.any()) or any(alone[b] for b in range(V) if b != v)
        if len(pairs) or p_within is not None:
            role, words = _role(partners, alone[v], others, V)
        else:
            role, words = "not tested", f"was {FEW}"
        view = ViewStructure(
            name=name,
            role=role,
            sentence=f"{view_title(name)} {words}",
            agreement=float(agreement[v, pairs].max()) if len(pairs) else None,
            p_between=float(p_between[v, pairs].min()) if len(pairs) else None,
            excess=excess,
            p_within=p_within,
        )
        views.append(view)
    ps = [parts * one["p_between"] for one in views if one["p_between"] is not None]
    ps += [parts * V * one["p_within"] for one in views if one["p_within"] is not None]
    if not ps:
        return _untested(names, FEW)
    best = float(agreement[shares].max()) if shares.any() else None
    most = max((float(own[v][0] or 0) for v in range(V) if alone[v]), default=None)
    p = min([1.0, *ps])
    verdict, sentence = _verdict(best, most, p)
    return Structure(
        verdict=verdict,
        sentence=sentence,
        p=p,
        agreement=best,
        excess=most,
        views=views,
    )


def _role(partners: list[str], alone: bool, others: bool, n_views: int) -> tuple[str, str]:
    """What a view does, in a word or two and in a sentence that begins with its name."""
    if partners:
        with_whom = f"view{'s'[: len(partners) > 1]} {view_names(partners)}"
        return "takes part", f"takes part: it shares structure with {with_whom}"
    if not alone:
        shared = ", alone or with another view" if n_views > 1 else ""
        return "says nothing", f"says nothing that noise would not say{shared}"
    if others:
        return "disagrees", (
            "disagrees with the others: it has structure of its own, which no other view shares"
        )
    rest = ": nothing was found in the others" if n_views > 1 else ": it is the only one"
    return "alone decides", f"alone decides{rest}"


def _verdict(agreement: float | None, excess: float | None, p: float) -> tuple[str, str]:
    """Strong, weak or none found, and the figures behind it."""
    if agreement is None and excess is None:
        return "none found", f"no structure was found that noise would not have (p = {p:.2g})"
    if agreement is not None:
        figure, limit = agreement, STRONG
        words = f"clusters of one view have a modularity of {agreement:.2f} in another"
    else:
        figure, limit = float(excess or 0), STRONG_ALONE
        words = f"clusters of one view have a modularity in it that is {figure:.2f} above noise"
    verdict = "strong" if figure >= limit else "weak"
    return verdict, f"{words} ({limit:g} or more is strong; p = {p:.2g})"
