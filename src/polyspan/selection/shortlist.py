"""The short list of numbers of clusters: the most likely one, and four that cover the evidence.

Every rule gives numbers a score. Numbers come in steps: every one up to 20, then steps of 10%. A
number on the list covers its step and the two beside it, so that it is right within 1, or 10%.

- The first: every rule divides its votes among the numbers in proportion to its scores, so that a
  rule that likes many numbers decides little. The number with the most support is the answer: its
  own votes and half of those beside it, because an answer that is off by one step is worth half.
- The others: now the scores of a rule are divided by its largest, so that what an undecided rule
  holds possible counts too. What the first covers is struck out, and the next number is the one
  with the most support in what is left, and so on. So the list does not crowd around one number,
  and where the evidence is flat it spreads.

A rule counts by how far the clusterings that it compares agree at its best number: with an adjusted
Rand index of a, by the odds a / (1 - a), so that one that is sure is not outvoted by two that are
not. The list is in the order of the votes.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

LONGEST = 5  # numbers on the list
BESIDE = 0.5  # what the evidence of the steps beside a number counts
SUREST = 0.98  # agreement from which the odds of a rule grow no further
LEAST = 0.01  # agreement that any rule is credited with
PROPOSED = 0.5  # of its largest score: a rule proposes the numbers that have so much
SHARE = 0.1  # of a cluster that goes to another one: less is not a part of it
ALL_UP_TO = 20  # clusters; above, steps of 10%

Scores = Mapping[int, float]  # by number of clusters


class Proposal(NamedTuple):
    """A number on the short list."""

    n_clusters: int
    rules: list[str]  # that give it, or a number of the same step, half of their best score
    score: float  # from 0 to 1: its share of the votes, and half of those beside it


def shortlist(
    rules: Mapping[str, Scores], agreement: Mapping[str, float] | None = None
) -> list[Proposal]:
    """Choose at most five numbers of clusters by the scores that several rules give.

    Parameters
    ----------
    rules : dict of str to dict
        For every rule, scores by number of clusters.
    agreement : dict of str to float, default=None
        How far the clusterings of each rule agree, up to 1; None counts all rules alike.

    Returns
    -------
    list of Proposal
        At most five, by their scores.

    Examples
    --------
    >>> rules = {"a": {2: 0.2, 5: 0.8, 6: 0.9, 9: 0.5}, "b": {4: 0.1, 5: 0.6, 30: 0.3}}
    >>> [(c, names, round(score, 2)) for c, names, score in shortlist(rules)]
    [(5, ['a', 'b'], 0.59), (30, ['b'], 0.15), (9, ['a'], 0.1), (2, [], 0.04)]
    >>> [one.n_clusters for one in shortlist(rules, {"a": 0.95, "b": 0.5})]
    [6, 9, 4, 2, 30]
    """
    scaled = {rule: _relative(scores) for rule, scores in rules.items() if scores}
    steps = numbers_to_try(max((c for scores in scaled.values() for c in scores), default=2))
    own = {rule: _by_step(scores, steps) for rule, scores in scaled.items()}
    sure = np.array([0.5 if agreement is None else agreement[rule] for rule in own])
    sure = np.clip(sure, LEAST, SUREST)
    relative = np.array(list(own.values()))
    shares = relative / np.maximum(relative.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    votes = _support(np.average(shares, axis=0, weights=sure / (1 - sure)))
    left = np.average(relative, axis=0, weights=sure / (1 - sure))
    chosen = [int(np.argmax(votes.round(12)))]
    for _ in range(LONGEST - 1):
        left[max(0, chosen[-1] - 1) : chosen[-1] + 2] = 0
        support = _support(left)
        if support.max() <= 0:
            break
        chosen.append(int(np.argmax(support.round(12))))
    found = []
    for i in chosen:
        names = [rule for rule, scores in own.items() if scores[i] >= PROPOSED]
        found.append(Proposal(_best_of_step(scaled, steps, i), names, float(votes[i])))
    return sorted(found, key=lambda one: -one.score)


def _support(evidence: np.ndarray) -> np.ndarray:
    """The evidence for every step, and half of that beside it."""
    return evidence + BESIDE * (np.r_[0, evidence[:-1]] + np.r_[evidence[1:], 0])


def numbers_to_try(limit: int) -> list[int]:
    """Every number from 2 to 20, then steps of 10%.

    Examples
    --------
    >>> numbers_to_try(5), numbers_to_try(30)[18:]
    ([2, 3, 4, 5], [20, 22, 24, 26, 29])
    """
    numbers = [2]
    while numbers[-1] < limit:
        last = numbers[-1]
        numbers.append(last + 1 if last < ALL_UP_TO else max(last + 1, round(1.1 * last)))
    return [c for c in numbers if c <= limit]


def _relative(scores: Scores) -> dict[int, float]:
    """Divide scores by the largest; negative ones are zero."""
    most = max(scores.values())
    return {c: max(0.0, x) / most if most > 0 else 0.0 for c, x in scores.items()}


def _step(steps: list[int], c: int) -> int:
    """Which step a number belongs to: the nearest, of two the smaller."""
    return int(np.argmin(np.abs(np.array(steps) - c)))


def _by_step(scores: Scores, steps: list[int]) -> np.ndarray:
    """The best score of a rule in every step."""
    found = np.zeros(len(steps))
    for c, x in scores.items():
        i = _step(steps, c)
        found[i] = max(found[i], x)
    return found


def _best_of_step(scaled: Mapping[str, Scores], steps: list[int], i: int) -> int:
    """The number of a step that the rules prefer: above 20 a step has several."""
    sums = {steps[i]: 0.0}
    for scores in scaled.values():
        for c, x in scores.items():
            if _step(steps, c) == i:
                sums[c] = sums.get(c, 0.0) + x
    return max(sums, key=lambda c: sums[c])


def nesting(labels: Mapping[int, np.ndarray]) -> list[dict[str, Any]]:
    """Say which clusters split from one number of clusters to the next larger one.

    Parameters
    ----------
    labels : dict of int to (n,) array
        Labels by number of clusters, 0 and up.

    Returns
    -------
    list of dict
        For every pair of neighboring numbers ``from`` and ``to``, and ``splits``: for every
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
