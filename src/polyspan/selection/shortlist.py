"""The short list of numbers of clusters: what each rule proposes, in one order.

A rule gives every number a score, which is divided by the rule's largest. The list takes the best
number of every rule, then the second best, and so on, until there are five. Numbers within 10% of
each other are one answer, and only the first of them is listed. The order is that of the mean score
over the rules, times the number's stability where it is known; a better score of another number
within 1 or 10% counts nine tenths, as a rule that says 6 does not speak against 5.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

LONGEST = 5  # numbers on the list
NEIGHBOUR = 0.9  # what the score of a number close by counts
SHARE = 0.1  # of a cluster that goes to another one: less is not a part of it

Scores = Mapping[int, float]  # by number of clusters


class Proposal(NamedTuple):
    """A number on the short list."""

    n_clusters: int
    rules: list[str]  # that propose it, or a number within 10%
    score: float  # from 0 to 1


def shortlist(
    rules: Mapping[str, Scores], stability: Callable[[int], float] | None = None
) -> list[Proposal]:
    """Combine the scores that several rules give to numbers of clusters, and their stability.

    Examples
    --------
    >>> found = shortlist({"a": {2: 1.0, 3: 4.0, 9: 2.0}, "b": {2: 0.5, 10: 1.0}})
    >>> [(c, rules, round(score, 3)) for c, rules, score in found]
    [(3, ['a'], 0.725), (10, ['b'], 0.725), (9, ['a'], 0.7), (2, ['a', 'b'], 0.7)]
    """
    scaled = {rule: _relative(scores) for rule, scores in rules.items() if scores}
    best = {rule: _best(scores) for rule, scores in scaled.items()}
    chosen: list[int] = []
    proposed: dict[str, list[int]] = {rule: [] for rule in best}
    for place in range(LONGEST):
        for rule, numbers in best.items():
            if place < len(numbers) and len(chosen) < LONGEST:
                proposed[rule].append(numbers[place])
                chosen += _apart(chosen, numbers[place])
    found = []
    for c in chosen:
        names = [rule for rule, several in proposed.items() if any(_same(c, k) for k in several)]
        mean = float(np.mean([_support(scores, c) for scores in scaled.values()]))
        held = 1.0 if stability is None else max(0.0, stability(c))
        found.append(Proposal(c, names, mean * held))
    return sorted(found, key=lambda one: -one.score)


def _relative(scores: Scores) -> dict[int, float]:
    """Divide scores by the largest; negative ones are zero."""
    most = max(scores.values())
    return {c: max(0.0, x) / most if most > 0 else 0.0 for c, x in scores.items()}


def _best(scores: Scores) -> list[int]:
    """The best numbers of one rule, none within 10% of a better one."""
    chosen: list[int] = []
    for c in sorted(scores, key=lambda c: (-scores[c], c)):
        chosen += _apart(chosen, c)
    return chosen[:LONGEST]


def _apart(chosen: list[int], c: int) -> list[int]:
    return [] if any(_same(c, other) for other in chosen) else [c]


def _same(a: int, b: int) -> bool:
    """Whether two numbers are one answer."""
    return max(a, b) <= 1.1 * min(a, b)


def _support(scores: Scores, c: int) -> float:
    """The score of a number, or nine tenths of that of a better one close by."""
    close = [x for k, x in scores.items() if abs(k - c) <= 1 or abs(k - c) <= 0.1 * max(k, c)]
    return max(scores.get(c, 0.0), NEIGHBOUR * max(close, default=0.0))


def nesting(labels: Mapping[int, np.ndarray]) -> list[dict[str, Any]]:
    """Say which clusters split from one number of clusters to the next larger one.

    Parameters
    ----------
    labels : dict of int to (n,) array
        Labels by number of clusters, 0 and up.

    Returns
    -------
    list of dict
        For every pair of neighbouring numbers ``from`` and ``to``, and ``splits``: for every
        cluster of the smaller number that splits, as a string, the clusters of the larger one that
        have at least 10% of it, the largest part first.

    Examples
    --------
    >>> two, three = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 2, 1, 1])
    >>> nesting({2: two, 3: three})
    [{'from': 2, 'to': 3, 'splits': {'0': [0, 2]}}]
    """
    found = []
    for small, large in pairwise(sorted(labels)):
        splits = {}
        for j in range(small):
            parts = np.bincount(labels[large][labels[small] == j], minlength=large)
            order = np.argsort(-parts, kind="stable")
            held = [int(i) for i in order if parts[i] and parts[i] >= SHARE * parts.sum()]
            if len(held) > 1:
                splits[str(j)] = held
        found.append({"from": small, "to": large, "splits": splits})
    return found
